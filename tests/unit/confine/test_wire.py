"""Whatever bytes a child sends, the parent either gets plain values or a garbled answer."""

import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from numpy.typing import NDArray

from runner.confine.contract import JsonValue, Reply
from runner.confine.wire import MAX_HEADER, GarbledError, most_bytes, pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip
ARRAYS = st_numpy.arrays(
    dtype=st.sampled_from([np.int64, np.float64, np.uint8, np.bool_]),
    shape=st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements={"allow_nan": True},
)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.text(max_size=5), PLAIN, max_size=4), st.dictionaries(st.text(max_size=5), ARRAYS, max_size=3)
)
def test_what_is_packed_is_unpacked(header: dict[str, JsonValue], arrays: dict[str, NDArray[np.generic]]) -> None:
    back = unpack(pack(Reply(header=header, arrays=arrays)))
    assert back.header == header
    assert list(back.arrays) == list(arrays)
    for name, array in arrays.items():
        assert back.arrays[name].dtype == array.dtype
        assert back.arrays[name].shape == array.shape
        assert back.arrays[name].tobytes() == array.tobytes()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_garbled(data: bytes) -> None:
    with pytest.raises(GarbledError):
        unpack(data)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_changed_byte_is_garbled_or_still_plain(data: st.DataObject) -> None:
    packed = bytearray(pack(Reply(header={"a": [1, "b"]}, arrays={"x": np.arange(3)})))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] = data.draw(st.integers(0, 255))
    try:
        reply = unpack(bytes(packed))
    except GarbledError:
        return
    assert all(array.dtype.kind in "buif" for array in reply.arrays.values())


def wired(header: object, *blobs: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blobs)


def npy(array: NDArray[np.generic], *, fortran: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asfortranarray(array) if fortran else array, version=(1, 0))
    return file.getvalue()


def with_header(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "too short"),
        (struct.pack("<I", 99) + b"{}", "ends inside its header"),
        (wired([]), "lacks its parts"),
        (wired({"header": {}}), "lacks its parts"),
        (wired({"header": {}, "arrays": [], "more": 1}), "lacks its parts"),
        (wired({"header": {}, "arrays": []}, b"x"), "do not fill"),
        (wired({"header": {}, "arrays": [["x", -1]]}), "list of arrays"),
        (wired({"header": {}, "arrays": [["x", True]]}), "list of arrays"),
        (wired({"header": {}, "arrays": [["x", 0], ["x", 0]]}), "list of arrays"),
        (wired({"header": {}, "arrays": [[f"x{n}", 0] for n in range(65)]}), "too many arrays"),
        (wired({"header": {}, "arrays": [["x", 0.0]]}), "list of arrays"),
        (wired({"header": {}, "arrays": [["x", 10**31]]}), "do not fill"),
        (wired({"header": {}, "arrays": [["x", 1], ["y", -1]]}), "list of arrays"),
        (wired({"header": {}, "arrays": [["x", 10**15]]}), "do not fill"),
    ],
)
def test_a_malformed_frame_is_garbled(data: bytes, detail: str) -> None:
    with pytest.raises(GarbledError, match=detail):
        unpack(data)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        npy(np.arange(3))[:-1],
        npy(np.arange(6.0).reshape(2, 3), fortran=True),
        npy(np.array(["text"])),
        npy(np.arange(3, dtype=">i8")),
        npy(np.array([1 + 2j])),
        with_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"\x80\x04N."),
        with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
        with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 999999999999, 999999999999), }\n"),
        with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n"),
        with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (2305843009213693952, 8), }\n"),
        with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1), }\n", bytes(8)),
        *(
            with_header(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}\n", bytes(size))
            for descr, size in (
                ("<f1", 1),
                ("<b8", 8),
                ("|b2", 2),
                ("|f8", 8),
                ("=i8", 8),
                ("<c8", 8),
                ("<V8", 8),
                ("<M8", 8),
                ("O", 8),
                ("<U2", 8),
            )
        ),
        with_header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n", b"\1\2"),
        with_header("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }\n", bytes(8)),
        with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }\n"),
        with_header("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,), }\n"),
        with_header("(" * 9000 + "\n"),
        b"\x93NUMPY\x02\x00" + npy(np.arange(3))[8:],
    ],
)
def test_an_array_that_is_not_plain_is_garbled(blob: bytes) -> None:
    with pytest.raises(GarbledError, match="an array"):
        unpack(wired({"header": {}, "arrays": [["x", len(blob)]]}, blob))


def framed(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text


NOT_STRICT = "the header is not strict JSON within its bounds"


@pytest.mark.parametrize(
    "inner",
    [
        b"NaN",
        b"[-Infinity]",
        b"1e999",
        b'{"a": 1, "a": 2}',
        b"[" * 15 + b"]" * 15,
        b"[" * 900_000,
        b'{"a":' * 180_000,
        b"[" + b"1," * 20_000 + b"1]",
        b"1" * 33,
        b"1" * 900_000,
        b"0." + b"1" * 33,
        b'"\xff"',
        b"'x'",
        b"",
        b"1}",
    ],
)
def test_a_header_is_read_strictly_and_within_bounds(inner: bytes) -> None:
    with pytest.raises(GarbledError, match=NOT_STRICT):
        unpack(framed(b'{"arrays": [], "header": {"x": ' + inner + b"}}"))


def test_a_header_in_another_encoding_is_none() -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        with pytest.raises(GarbledError, match=NOT_STRICT):
            unpack(framed('{"arrays": [], "header": {}}'.encode(encoding)))


@pytest.mark.parametrize(
    "inner", [b"[" * 14 + b"]" * 14, b"[" + b"1," * 19_990 + b"1]", b"1" * 32, b"1.7976931348623157e308"]
)
def test_a_header_at_its_bounds_is_read_so_the_test_above_can_fail(inner: bytes) -> None:
    reply = unpack(framed(b'{"arrays": [], "header": {"x": ' + inner + b"}}"))
    assert reply.header == {"x": json.loads(inner)}


def test_a_header_is_no_longer_than_it_needs_to_be() -> None:
    fitting = b'{"arrays": [], "header": {}}'.ljust(MAX_HEADER)
    assert unpack(framed(fitting)).header == {}
    for longer in (fitting + b" ", b"[" * (64 << 20)):
        with pytest.raises(GarbledError, match=f"the header has more than {MAX_HEADER} bytes"):
            unpack(framed(longer))


@pytest.mark.parametrize("count", [1, 64])
def test_an_answer_has_room_for_a_full_header_and_full_arrays(count: int) -> None:
    reply = Reply(header={"x": ""}, arrays={f"name {n}": np.zeros((5, 1, 10, 20), np.uint8) for n in range(count)})
    short = pack(reply)
    (length,) = struct.unpack_from("<I", short)
    filled = pack(Reply(header={"x": "x" * (MAX_HEADER - length)}, arrays=reply.arrays))
    assert len(unpack(filled).arrays) == count
    assert len(filled) <= most_bytes(count * 1000)
    assert most_bytes(5000) - most_bytes(0) == 5000


@pytest.mark.parametrize("header", [{"x": float("nan")}, {"x": [float("inf")]}])
def test_a_header_that_is_not_finite_is_not_packed(header: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack(Reply(header=header))


def test_objects_are_not_packed() -> None:
    with pytest.raises(ValueError, match="Object arrays"):
        pack(Reply(header={}, arrays={"x": np.array([None], dtype=object)}))
