"""The NPY primitive: a header is judged before data is read, nothing is unpickled, archives are bounded."""

import io
import os
import pickle
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from numpy.typing import NDArray

from runner.confine import ConfinedFailure, Reply
from runner.formats.readers.npy_array import read_npy
from runner.formats.readers.npy_data import check_arrays
from runner.formats.readers.npy_rule import ArrayRule, Fault, NpyCaps, sentences
from runner.formats.readers.npz_archive import read_npz
from runner.formats.readers.problems import ProblemList, sentence_pattern

CAPS = NpyCaps(size=4000, unpacked=2000, header=500)
RULE = ArrayRule(types=("float32", "int16"), shape=(2, 3), minimum=-1, maximum=10)
RULES = {"a": RULE, "b": ArrayRule(types=("uint8",), shape=(None,))}

Array = NDArray[np.generic]


def opened(content: bytes) -> int:
    descriptor = os.memfd_create("npy")
    os.write(descriptor, content)
    return descriptor


def read(content: bytes, *, rule: ArrayRule = RULE, caps: NpyCaps = CAPS) -> tuple[Array | None, list[str]]:
    problems = ProblemList()
    descriptor = opened(content)
    try:
        array = read_npy(descriptor, rule=rule, caps=caps, problems=problems)
    finally:
        os.close(descriptor)
    assert (array is None) == (problems.count > 0)
    return array, [problem.what for problem in problems.kept]


def read_all(
    content: bytes, *, rules: Mapping[str, ArrayRule] = RULES, caps: NpyCaps = CAPS
) -> tuple[dict[str, Array] | None, list[str]]:
    problems = ProblemList()
    descriptor = opened(content)
    try:
        arrays = read_npz(descriptor, rules=rules, caps=caps, problems=problems)
    finally:
        os.close(descriptor)
    assert (arrays is None) == (problems.count > 0)
    return arrays, [problem.what for problem in problems.kept]


def saved(array: object, *, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def with_header(text: str, data: bytes = b"", *, version: bytes = b"\1\0") -> bytes:
    width = "<H" if version == b"\1\0" else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, len(text)) + text.encode("latin-1") + data


def header(descr: str, shape: str, order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


GOOD = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_is_read(version: tuple[int, int]) -> None:
    array, problems = read(saved(GOOD, version=version))
    assert problems == []
    assert array is not None
    assert (array.dtype, array.tolist()) == (np.dtype("<f4"), GOOD.tolist())


def test_fortran_order_becomes_c_order() -> None:
    content = saved(np.asfortranarray(GOOD))
    assert b"'fortran_order': True" in content
    array, _ = read(content)
    assert array is not None
    assert array.flags.c_contiguous
    assert array.tolist() == GOOD.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}     \n",
        '{"descr": "<f4", "fortran_order": False, "shape": (2, 3,), }',
    ],
)
def test_headers_of_other_writers_are_read(text: str) -> None:
    array, problems = read(with_header(text, GOOD.tobytes()))
    assert problems == []
    assert array is not None
    assert array.tolist() == GOOD.tolist()


@settings(max_examples=40)
@given(
    st_numpy.arrays(
        dtype=st.sampled_from(["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]),
        shape=st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
    st.booleans(),
)
def test_what_numpy_saves_is_read_and_believed(array: Array, fortran: bool) -> None:
    rule = ArrayRule(types=(array.dtype.name,), shape=(None,) * array.ndim)
    found, problems = read(saved(np.asfortranarray(array) if fortran and array.ndim else array), rule=rule)
    assert problems == []
    assert found is not None
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    checked = check_arrays(Reply(header={}, arrays={"x": found}), rules={"x": rule}, caps=CAPS)
    assert checked["x"] is found


class WouldRun:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.path,)


MAGIC = "this is not what numpy.save writes: it does not begin as an .npy file does"
PICKLE = "this is a pickle, which is never opened: numpy.save(…, allow_pickle=False) writes what is due"
HEADER = "the header is not as numpy.save writes it"
TYPES = "where float32 or int16 is due"
BAD: list[tuple[bytes, list[str]]] = [
    (b"", ["the file is empty"]),
    (b" " * 4001, ["the file is larger than 4000 bytes"]),
    (b"x" * 50, [MAGIC]),
    (b"\x93NUMP", [MAGIC]),
    (pickle.dumps([1]), [PICKLE]),
    (b"PK\3\4" + b"x" * 50, ["this is an archive (.npz) where one array (.npy) is due: numpy.save writes it"]),
    (with_header("", version=b"\4\0"), ["the file is of a version that is not read: 1.0, 2.0 and 3.0 are"]),
    (with_header("", version=b"\1\1"), ["the file is of a version that is not read: 1.0, 2.0 and 3.0 are"]),
    (b"\x93NUMPY\1\0\x10", ["the file ends inside its header"]),
    (with_header(header("'<f4'", "(2, 3)"))[:-1], ["the file ends inside its header"]),
    (with_header(" " * 501), ["the header has more than 500 bytes"]),
    (b"\x93NUMPY\2\0\xff\xff\xff\xff", ["the header has more than 500 bytes"]),
    *((with_header(text), [HEADER]) for text in (
        "",
        "{}",
        "{" * 400,
        "(" * 400,
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1, }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        header("'<f4'", "(2, 3)") + "# and more",
        header("'<f4'", "(-2, 3)"),
        header("'<f4'", "(6)"),
        header("'<f4'", "[2, 3]"),
        header("'<f4'", "(2, 3,,)"),
        header("'<f4'", "(2L, 3L)"),
        header("'<f4'", "(" + "9" * 20 + ",)"),
        header("'<f4'", "(" + "1, " * 65 + ")"),
        header("__import__('os').abort()", "(2, 3)"),
        header("'<f4'", "(2, 3)", "0"),
    )),
    (saved(np.zeros((2, 3), [("x", "f4")])), ["the array has named fields: save one array of numbers"]),
    (with_header(header("'|O'", "(2, 3)")), [
        "the array holds Python objects, which are never opened: give it a type of numbers"]),
    (saved(GOOD.astype(">f4")), ["the numbers are stored big-endian: save array.astype('<f4')"]),
    (saved(GOOD.astype("f8")), [f"the type is float64 {TYPES}"]),
    (saved(GOOD.astype(">f8")), [f"the type is float64 {TYPES}"]),
    (saved(GOOD > 1), [f"the type is bool {TYPES}"]),
    (saved(np.full((2, 3), "x")), [f"the type is text {TYPES}"]),
    (saved(np.full((2, 3), b"x")), [f"the type is bytes {TYPES}"]),
    (saved(GOOD.astype("c8")), [f"the type is complex {TYPES}"]),
    (saved(np.zeros((2, 3), "M8[s]")), [f"the type is a date or a duration {TYPES}"]),
    (with_header(header("'<f16'", "(2, 3)")), [f"the type is another type {TYPES}"]),
    (with_header(header("'|V4'", "(2, 3)")), [f"the type is another type {TYPES}"]),
    (saved(GOOD.T), ["the shape is another than (2, 3)"]),
    (saved(GOOD[0]), ["the shape is another than (2, 3)"]),
    (saved(np.float32(1)), ["the shape is another than (2, 3)"]),
    (saved(np.zeros((1,) * 12, "u1")), [f"the type is uint8 {TYPES}",
                                        "the shape is another than (2, 3)"]),
    (with_header(header("'<f4'", "(1000000, 1000000)")), ["the shape is another than (2, 3)"]),
    (saved(GOOD)[:-1], ["there are fewer bytes of data than the header tells of"]),
    (saved(GOOD) + b"\0", ["there are more bytes of data than the header tells of"]),
    (saved(GOOD * np.float32("nan")), ["6 values are not finite (NaN or infinity), the first at (0, 0)"]),
    (saved(np.array([[0, -2, 1], [np.inf, 11, -np.inf]], np.float32)), [
        "2 values are not finite (NaN or infinity), the first at (1, 0)",
        "1 values are less than -1, the first at (0, 1)",
        "1 values are greater than 10, the first at (1, 1)"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), BAD, ids=[said[0] for _, said in BAD])
def test_what_is_wrong_is_said(content: bytes, expected: list[str]) -> None:
    assert read(content) == (None, expected)


def values(content: bytes, *, packed: bool) -> list[tuple[str, str | None]]:
    problems = ProblemList()
    descriptor = opened(zipped({"a.npy": content, "b.npy": saved(B)}) if packed else content)
    if packed:
        read_npz(descriptor, rules=RULES, caps=CAPS, problems=problems)
    else:
        read_npy(descriptor, rule=RULE, caps=CAPS, problems=problems)
    os.close(descriptor)
    return [(problem.what, problem.value) for problem in problems.kept]


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_header_says_of_itself_is_a_value_and_no_sentence(packed: bool) -> None:
    where = "array a: " if packed else ""
    shape = [(f"{where}the shape is another than (2, 3)", "'(251, 1)'")]
    assert values(saved(np.zeros((251, 1), np.float32)), packed=packed) == shape
    version = [(f"{where}the file is of a version that is not read: 1.0, 2.0 and 3.0 are", "'251.9'")]
    assert values(with_header("", version=b"\xfb\x09"), packed=packed) == version


LOOSE = ArrayRule(types=("uint8", "bool"), shape=(None, None))


@pytest.mark.parametrize(
    "shape", ["(1000000, 1000000)", "(0, 9999999999999999999)", "(9999999999999999999, 0)", "(2001, 1)"]
)
def test_a_shape_that_nobody_fixed_is_capped_before_anything_is_read(shape: str) -> None:
    what = "the header tells of more than 2000 bytes of data, which are not read"
    assert read(with_header(header("'|u1'", shape)), rule=LOOSE) == (None, [what])


def test_a_shape_at_the_cap_is_read() -> None:
    array, _ = read(saved(np.ones((2000, 1), "u1")), rule=LOOSE)
    assert array is not None
    assert int(array.sum(dtype=np.int64)) == 2000


def test_truth_values_are_0_or_1() -> None:
    content = with_header(header("'|b1'", "(2, 2)"), b"\0\1\2\xff")
    what = "the array is said to hold true and false, but 2 bytes are neither"
    assert read(content, rule=LOOSE) == (None, [what])
    assert read(content[:-2] + b"\0\1", rule=LOOSE)[1] == []


def test_an_array_of_objects_is_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "made"
    content = saved(np.array([[WouldRun(path)] * 3] * 2, dtype=object))
    what = "the array holds Python objects, which are never opened: give it a type of numbers"
    assert read(content) == (None, [what])
    assert not path.exists()
    np.load(io.BytesIO(content), allow_pickle=True)
    assert path.exists(), "it would have run, so the test can fail"


def test_bounds_beyond_a_type_are_no_bounds() -> None:
    rule = ArrayRule(types=("float16",), shape=(1,), minimum=-1e9, maximum=1e9)
    assert read(saved(np.array([60000], np.float16)), rule=rule)[1] == []


@pytest.mark.parametrize(
    ("types", "shape"), [((), (1,)), (("object",), (1,)), (("float32", "complex64"), (1,)), (("int8",), (1,) * 5)]
)
def test_a_rule_that_asks_for_what_is_never_read_is_refused(types: tuple[str, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"are not all of bool, int8|5 dimensions are more than 4"):
        ArrayRule(types=types, shape=shape)


def test_a_file_cut_anywhere_is_a_problem() -> None:
    for length in range(len(saved(GOOD))):
        array, problems = read(saved(GOOD)[:length])
        assert array is None
        assert len(problems) == 1


@given(st.integers(0, len(saved(GOOD)) - 1), st.integers(0, 255))
def test_a_changed_byte_is_a_problem_or_another_array(place: int, byte: int) -> None:
    content = bytearray(saved(GOOD))
    content[place] = byte
    array, problems = read(bytes(content))
    assert all(sentences({"array": RULE}).fullmatch(what) for what in problems)
    if array is not None:
        check_arrays(Reply(header={}, arrays={"x": array}), rules={"x": RULE}, caps=CAPS)


# Archives.

B = np.array([1, 2, 3], dtype=np.uint8)


def zipped(members: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_is_read(save: Callable[..., None]) -> None:
    file = io.BytesIO()
    save(file, b=B, a=GOOD)
    arrays, problems = read_all(file.getvalue())
    assert problems == []
    assert arrays is not None
    assert {name: array.tolist() for name, array in arrays.items()} == {"a": GOOD.tolist(), "b": B.tolist()}
    assert list(arrays) == ["a", "b"]


MEMBERS = {"a.npy": saved(GOOD), "b.npy": saved(B)}
SOUND = zipped(MEMBERS)
STORED = zipped(MEMBERS, method=zipfile.ZIP_STORED)


def twice() -> bytes:
    """One name, two members."""
    return STORED.replace(b"b.npy", b"a.npy")


def with_comment(comment: bytes) -> bytes:
    """The last member has a comment: it ends the directory."""
    file = io.BytesIO(STORED)
    with zipfile.ZipFile(file, "a") as archive:
        archive.infolist()[-1].comment = comment
        archive.comment = b"x"  # so that the directory is written anew
        archive.comment = b""
    return file.getvalue()


def patched(content: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """Overwrite a field of the first record with this signature."""
    at = content.index(signature) + offset
    return content[:at] + value + content[at + len(value) :]


DIRECTORY, LOCAL, END = b"PK\1\2", b"PK\3\4", b"PK\5\6"
NO_NPZ = "this is not what numpy.savez writes: it does not end as a plain zip archive does"
STRANGER = "the archive holds a member that is not asked for: a, b are due"
DAMAGED = "the member is damaged, or is not as long as the directory says"
BAD_ARCHIVES: list[tuple[bytes, list[str]]] = [
    (b"", ["the file is empty"]),
    (b" " * 4001, ["the file is larger than 4000 bytes"]),
    (saved(GOOD), ["this is one array (.npy) where an archive (.npz) is due: numpy.savez writes it"]),
    (pickle.dumps([1]), [PICKLE]),
    (b"PK\5\6", [NO_NPZ]),
    (SOUND + b"x", [NO_NPZ]),
    (b"x" + SOUND, [NO_NPZ]),
    (patched(SOUND, END, 20, b"\1\0") + b"c", [NO_NPZ]),
    (patched(SOUND, END, 4, b"\1"), [NO_NPZ]),
    (patched(SOUND, END, 20, b"\1\0"), [NO_NPZ]),
    (SOUND[:-22] + b"PK\6\7" + bytes(16) + SOUND[-22:], [NO_NPZ]),
    (with_comment(b"PK\6\7" + bytes(16)), [NO_NPZ]),
    (patched(SOUND, DIRECTORY, 0, b"PX"), ["the directory of the archive is damaged"]),
    (zipped({**MEMBERS, "c.npy": b""}), ["the archive holds more than 2 members"]),
    (zipped({"a.npy": b"", "x" * 1000: b""}), [
        "the directory of the archive has more than 1024 bytes"]),
    (zipped({"a.npy": saved(GOOD)}), ["the archive does not hold b"]),
    (zipped({"a.npy": saved(GOOD), "c.npy": saved(B)}), [STRANGER, "the archive does not hold b"]),
    (zipped({"a": saved(GOOD), "../b.npy": saved(B)}), [
        STRANGER, STRANGER, "the archive does not hold a", "the archive does not hold b"]),
    (twice(), ["the archive holds a twice", "the archive does not hold b"]),
    (patched(SOUND, DIRECTORY, 8, b"\1"), ["array a: the member is encrypted"]),
    (zipped(MEMBERS, method=zipfile.ZIP_BZIP2), [
        f"array {name}: the member is packed by a method that is not read: numpy.savez_compressed deflates"
        for name in "ab"]),
    (zipped({"a.npy": saved(GOOD), "b.npy": saved(np.zeros(3000, "u1"))}), [
        "the archive unpacks to more than 2000 bytes, which are not read"]),
    (patched(SOUND, DIRECTORY, 24, b"\xff\xff\xff\0"), [
        "array a: the member unpacks to more than 1040 times its size",
        "the archive unpacks to more than 2000 bytes, which are not read"]),
    (patched(STORED, DIRECTORY, 20, b"\x99\0\0\0"), ["array b: the member shares bytes with another"]),
    (patched(SOUND, DIRECTORY, 16, b"\0\0\0\0"), [f"array a: {DAMAGED}"]),
    (patched(SOUND, LOCAL, 0, b"PX"), [f"array a: {DAMAGED}"]),
    (patched(SOUND, LOCAL, 35, b"\xff" * 9), [f"array a: {DAMAGED}"]),
    (patched(SOUND, DIRECTORY, 24, b"\x97\0\0\0"), [f"array a: {DAMAGED}"]),
    (patched(SOUND, DIRECTORY, 24, b"\x99\0\0\0"), [
        "array a: there are more bytes of data than the header tells of"]),
    (zipped({"a.npy": saved(GOOD.T), "b.npy": saved(B.astype("u2"))}), [
        "array a: the shape is another than (2, 3)", "array b: the type is uint16 where uint8 is due"]),
    (zipped({"a.npy": b"\x80\4N.", "b.npy": b""}), [
        f"array a: {PICKLE}",
        f"array b: {MAGIC}"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), BAD_ARCHIVES, ids=[said[0] for _, said in BAD_ARCHIVES])
def test_what_is_wrong_with_an_archive_is_said(content: bytes, expected: list[str]) -> None:
    assert read_all(content) == (None, expected)


def test_every_sentence_is_tried_above_and_is_one_the_parent_lets_through() -> None:
    tried = [what for _, expected in BAD for what in expected]
    archived = [what for _, expected in BAD_ARCHIVES for what in expected]
    tried += ["the header tells of more than 2000 bytes of data, which are not read"]
    tried += ["the array is said to hold true and false, but 2 bytes are neither"]
    assert [what for what in tried if not sentences({"array": RULE}).fullmatch(what)] == []
    assert [what for what in archived if not sentences(RULES).fullmatch(what)] == []
    fields = dict.fromkeys(("where", "name", "names", "found", "due", "place"), ".*")
    missing = [
        fault for fault in Fault if not any(map(sentence_pattern([fault], **fields).fullmatch, tried + archived))
    ]
    assert missing == []


def test_a_sentence_with_a_word_of_somebody_elses_is_not_let_through() -> None:
    pattern = sentences(RULES)
    assert pattern.fullmatch("array a: the type is uint16 where uint8 is due")
    for what in (
        "array c: the type is uint16 where uint8 is due",
        "array a: the type is SECRET where uint8 is due",
        "array a: the type is uint16 where uint8 is due\n",
        "the archive does not hold SECRET",
        "the shape is another than (1, SECRET)",
    ):
        assert pattern.fullmatch(what) is None


def test_a_comment_of_a_member_is_no_fault_so_the_one_above_can_fail() -> None:
    content = with_comment(b"PK\6\6" + bytes(16))
    assert content != STORED
    assert read_all(content)[1] == []


def test_an_archive_cut_anywhere_is_a_problem() -> None:
    assert read_all(b"") == (None, ["the file is empty"])
    for length in range(1, len(SOUND)):
        assert read_all(SOUND[:length]) == (None, [NO_NPZ])


@given(st.data())
def test_changed_bytes_of_an_archive_are_problems_or_other_arrays(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from([SOUND, STORED])))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    arrays, problems = read_all(bytes(content))
    assert [what for what in problems if not sentences(RULES).fullmatch(what)] == []
    if arrays is not None:
        check_arrays(Reply(header={}, arrays=arrays), rules=RULES, caps=CAPS)


def test_no_byte_of_an_archive_can_be_broken_so_that_other_numbers_come_out() -> None:
    for place, right in enumerate(SOUND):
        for byte in (0x00, 0xFF, right ^ 0x80, right ^ 0x01):
            arrays, _ = read_all(SOUND[:place] + bytes([byte]) + SOUND[place + 1 :])
            assert arrays is None or [arrays["a"].tolist(), arrays["b"].tolist()] == [GOOD.tolist(), B.tolist()]


@pytest.mark.parametrize("name", ["", "../x", "a.b", "x" * 65])
def test_an_array_that_is_asked_for_has_a_plain_name(name: str) -> None:
    descriptor = opened(SOUND)
    with pytest.raises(ValueError, match=re.escape(f"{name!r} is no name of an array")):
        read_npz(descriptor, rules={name: RULE}, caps=CAPS, problems=ProblemList())
    os.close(descriptor)


LACKS = "its answer lacks an array, or has one too many"


@pytest.mark.parametrize(
    ("arrays", "detail"),
    [
        ({}, LACKS),
        ({"a": GOOD}, LACKS),
        ({"a": GOOD, "b": B, "c": B}, LACKS),
        ({"a": GOOD.astype("f8"), "b": B}, "its answer is of another type"),
        ({"a": GOOD.T, "b": B}, "its answer is of another shape"),
        ({"a": GOOD, "b": B.reshape(1, 3)}, "its answer is of another shape"),
        ({"a": GOOD * 3, "b": B}, "its answer holds values out of range"),
        ({"a": GOOD - 2, "b": B}, "its answer holds values out of range"),
        ({"a": GOOD * np.float32("nan"), "b": B}, "its answer holds values out of range"),
        ({"a": GOOD, "b": np.zeros(2000, "u1")}, "its answer is larger than the file may be"),
    ],
)
def test_an_answer_that_no_file_can_have_is_not_believed(arrays: dict[str, Array], detail: str) -> None:
    with pytest.raises(ConfinedFailure, match=f"garbled: {detail}"):
        check_arrays(Reply(header={}, arrays=arrays), rules=RULES, caps=CAPS)


def test_truth_values_of_an_answer_are_0_or_1() -> None:
    wild = np.array([[0, 2]], np.uint8).view(np.bool_)
    with pytest.raises(ConfinedFailure, match="garbled: its answer holds what is neither true nor false"):
        check_arrays(Reply(header={}, arrays={"x": wild}), rules={"x": LOOSE}, caps=CAPS)


def test_a_right_answer_is_believed_so_the_tests_above_can_fail() -> None:
    found = check_arrays(Reply(header={}, arrays={"b": B, "a": GOOD}), rules=RULES, caps=CAPS)
    assert list(found) == ["a", "b"]
    assert found["a"] is GOOD
