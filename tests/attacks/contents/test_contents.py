"""What a container can write into a file to harm whoever reads it, and what each reader says of it.

Every file goes through a real confined child that has 128 MiB: an attack that were read on would end as "it needed more
than 128 MiB", which is no answer here. The last part gives a reader's child to a stranger altogether.
"""

import functools
import io
import json
import os
import pickle
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from runner.challenge.formats import ColumnRule, FrameTableFormat, IndexRule
from runner.confine import Confine, JsonValue, Privileges, Reply
from runner.confine.wire import pack
from runner.formats.contract import Problem
from runner.formats.frame_table import Role, confined_read
from runner.formats.readers import confined
from runner.formats.readers.json_faults import JsonCaps, Top
from runner.formats.readers.json_text import confined_json
from runner.formats.readers.npy_array import confined_npy
from runner.formats.readers.npy_rule import ArrayRule, NpyCaps
from runner.formats.readers.npz_archive import confined_npz
from runner.formats.readers.png_image import confined_png
from runner.formats.readers.png_rule import Mode, PngCaps, PngRule
from runner.formats.readers.problems import ProblemList

READERS = "runner.formats.readers"
DRILLS = "runner.confine.drills"
PRELOAD = (
    "runner.formats.frame_table",
    *(f"{READERS}.{name}" for name in ("json_text", "npy_array", "npz_archive", "png_image")),
    DRILLS,
)
MEMORY = 128 << 20

TABLE = FrameTableFormat(
    kind="frame_table",
    file="{case}.csv",
    index=IndexRule(column="t"),
    columns={"x": ColumnRule(labels=(0, 1, 2))},
)
ARRAY = ArrayRule(types=("float32",), shape=(2, 3))
MASK = PngRule(mode=Mode.INDEX, width=64, height=64)

Answer = tuple[object, list[Problem]]
Read = Callable[[bytes], Answer]


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=PRELOAD) as confined:
        yield confined


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "READ_MEMORY", MEMORY)


def opened(content: bytes) -> int:
    """A descriptor that can only be read, as the program itself has it."""
    with os.fdopen(os.memfd_create("contents"), "wb") as file:
        file.write(content)
        file.flush()
        return os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)


def asked(content: bytes, reader: Callable[[int, ProblemList], object]) -> Answer:
    problems = ProblemList()
    descriptor = opened(content)
    try:
        value = reader(descriptor, problems)
    finally:
        os.close(descriptor)
    assert problems.count == len(problems.kept)
    return value, problems.kept


def said(answer: Answer) -> list[str]:
    value, problems = answer
    assert value is None
    assert problems
    return [problem.what for problem in problems]


def as_table(confine: Confine, content: bytes, *, frames: int = 2) -> tuple[Problem, ...]:
    descriptor = opened(content)
    try:
        reading = confined_read(confine, TABLE, descriptor, frames=frames, role=Role.PREDICTION)
    finally:
        os.close(descriptor)
    assert (reading.prediction is None) == (reading.problem_count > 0)
    return reading.problems


def as_json(confine: Confine, content: bytes, *, top: Top = Top.ANY, caps: JsonCaps | None = None) -> Answer:
    def reader(descriptor: int, problems: ProblemList) -> object:
        return confined_json(confine, descriptor, caps=caps or JsonCaps(), top=top, problems=problems)

    return asked(content, reader)


def as_npy(confine: Confine, content: bytes, *, rule: ArrayRule = ARRAY) -> Answer:
    def reader(descriptor: int, problems: ProblemList) -> object:
        return confined_npy(confine, descriptor, rule=rule, caps=NpyCaps(), problems=problems)

    return asked(content, reader)


def as_npz(confine: Confine, content: bytes, *, caps: NpyCaps | None = None) -> Answer:
    def reader(descriptor: int, problems: ProblemList) -> object:
        rule = ArrayRule(types=("uint8",), shape=(None,))
        return confined_npz(confine, descriptor, rules={"a": rule}, caps=caps or NpyCaps(), problems=problems)

    return asked(content, reader)


def as_png(confine: Confine, content: bytes, *, rule: PngRule = MASK, caps: PngCaps | None = None) -> Answer:
    def reader(descriptor: int, problems: ProblemList) -> object:
        return confined_png(confine, descriptor, rule=rule, caps=caps or PngCaps(), problems=problems)

    return asked(content, reader)


# What is sound, through the same children.


def numpy_saved(array: NDArray[np.generic], *, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def numpy_packed(array: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, a=array)
    return file.getvalue()


GOOD = np.arange(6, dtype=np.float32).reshape(2, 3)
INDICES = np.arange(64 * 64).reshape(64, 64).astype(np.uint8) % 5


def mask_file() -> bytes:
    image = Image.fromarray(INDICES).convert("P")
    image.putdata(INDICES.reshape(-1).tolist())
    image.putpalette(bytes(15))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("preload", [PRELOAD, (DRILLS,)], ids=["preloaded", "loaded by the child"])
def test_sound_files_are_read(preload: Sequence[str]) -> None:
    with Confine(preload=preload) as confine:
        assert as_table(confine, b"t,x\n0,1\n1,2\n") == ()
        assert as_json(confine, b'{"a": [1, 2.5, "\\u00e9"]}') == ({"a": [1, 2.5, "é"]}, [])
        array, none = as_npy(confine, numpy_saved(GOOD))
        assert isinstance(array, np.ndarray)
        assert (array.dtype, array.tolist(), none) == (GOOD.dtype, GOOD.tolist(), [])
        arrays, none = as_npz(confine, numpy_packed(np.arange(9, dtype=np.uint8)))
        assert isinstance(arrays, dict)
        assert ({name: array.tolist() for name, array in arrays.items()}, none) == ({"a": [*range(9)]}, [])
        pixels, none = as_png(confine, mask_file())
        assert isinstance(pixels, np.ndarray)
        assert (pixels.tolist(), none) == (INDICES.tolist(), [])


# PNG.


def chunk(name: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def image_header(width: int, height: int, *, bits: int = 8, kind: int = 3) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0))


def deflated_zeros(count: int) -> bytes:
    """A zlib stream of so many zeros, made of one block again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    times, rest = divmod(count, 1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    last = packer.compress(bytes(rest)) + packer.flush()
    return b"\x78\xda" + block * times + last + struct.pack(">HH", count % 65521, 1)


def png(header: bytes, *chunks: bytes) -> bytes:
    return b"".join([b"\x89PNG\r\n\x1a\n", header, *chunks, chunk(b"IEND")])


PALETTE = chunk(b"PLTE", bytes(3))


def png_bomb(side: int) -> bytes:
    return png(image_header(side, side), PALETTE, chunk(b"IDAT", deflated_zeros(side * (side + 1))))


@pytest.mark.parametrize(("side", "kibibytes"), [(12_000, 200), (30_000, 1200)])
def test_a_png_bomb_is_known_by_its_header(confine: Confine, side: int, kibibytes: int) -> None:
    bomb = png_bomb(side)
    assert len(bomb) < kibibytes << 10
    assert said(as_png(confine, bomb)) == ["the image has another size than 64 × 64 pixels"]
    any_size = PngRule(mode=Mode.INDEX, width=None, height=None)
    assert said(as_png(confine, bomb, rule=any_size)) == [
        "the image has more than 33554432 bytes of pixels, which are not read"
    ]


def test_a_png_bomb_that_is_let_through_stays_in_its_child_so_the_test_above_can_fail(confine: Confine) -> None:
    rule = PngRule(mode=Mode.INDEX, width=12_000, height=12_000)
    answer = as_png(confine, png_bomb(12_000), rule=rule, caps=PngCaps(pixel_bytes=1 << 30))
    assert said(answer) == ["the file could not be read: the reader stopped: it needed more than 128 MiB"]


def test_a_small_image_with_the_pixels_of_a_large_one(confine: Confine) -> None:
    bomb = png(image_header(64, 64), PALETTE, chunk(b"IDAT", deflated_zeros(900 << 20)))
    assert said(as_png(confine, bomb)) == ["there are more pixels than the image header tells of"]


@pytest.mark.parametrize("name", [b"zTXt", b"iTXt", b"iCCP"])
def test_a_text_that_is_a_bomb_is_not_unpacked(confine: Confine, name: bytes) -> None:
    head = {b"zTXt": b"a\0\0", b"iTXt": b"a\0\1\0\0\0", b"iCCP": b"a\0\0"}[name]
    rows = chunk(b"IDAT", zlib.compress(bytes(64 * 65)))
    bomb = chunk(name, head + deflated_zeros(500 << 20))
    pixels, problems = as_png(confine, png(image_header(64, 64), bomb, PALETTE, rows))
    assert problems == []
    assert isinstance(pixels, np.ndarray)
    assert int(pixels.sum()) == 0
    assert said(as_png(confine, png(image_header(64, 64), bomb, bomb, bomb, PALETTE, rows))) == [
        "text and other attachments have more than 1048576 bytes"
    ]


def picture(mode: str, kind: str) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (64, 64)).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (picture("L", "JPEG"), ["this is a JPEG file: it changes the values of pixels, save the image as PNG"]),
        (picture("L", "GIF"), ["this is a GIF file: save the image as PNG"]),
        (picture("RGB", "PNG"), ["the image is colour (RGB) where palette index is due"]),
        (picture("RGBA", "PNG"), ["the image is colour with alpha (RGBA) where palette index is due"]),
        (
            picture("I;16", "PNG"),
            [
                "the image is grey where palette index is due",
                "the image has 16 bits a sample where at most 8 are due",
            ],
        ),
        (pickle.dumps([1]), ["this is not a PNG file"]),
        (b"", ["the file is empty"]),
    ],
    ids=["jpeg", "gif", "rgb", "alpha", "sixteen", "pickle", "empty"],
)
def test_masks_of_another_kind(confine: Confine, content: bytes, expected: list[str]) -> None:
    assert said(as_png(confine, content)) == expected


# NumPy.


class WouldRun:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, int, int]]:
        return os.open, (str(self.path), os.O_CREAT | os.O_WRONLY, 0o666)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that a child could write to, whatever its uid."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


OBJECTS = "the array holds Python objects, which are never opened: give it a type of numbers"
PICKLE = "this is a pickle, which is never opened: numpy.save(…, allow_pickle=False) writes what is due"


def test_a_pickle_is_never_run(confine: Confine, open_folder: Path) -> None:
    path = open_folder / "made"
    objects = np.full((2, 3), None, dtype=object)
    objects[0, 0] = WouldRun(path)
    content = numpy_saved(objects, allow_pickle=True)
    plain = pickle.dumps(WouldRun(path))
    assert said(as_npy(confine, content)) == [OBJECTS]
    assert said(as_npy(confine, plain)) == [PICKLE]
    assert said(as_npz(confine, plain)) == [PICKLE]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.npy", content)
    assert said(as_npz(confine, packed.getvalue())) == [
        f"array a: {OBJECTS}",
        "array a: the shape is another than (any,)",
    ]
    assert said(as_json(confine, plain)) == ["line 1, column 1: the bytes are not UTF-8"]
    assert not path.exists()
    os.close(int(pickle.loads(plain)))
    assert path.exists(), "it would have run, so the test can fail"


def with_shape(shape: str, data: bytes = b"") -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("shape", "what"),
    [
        ("(1000000000000,)", "the shape is another than (2, 3)"),
        ("(1000000, 1000000)", "the shape is another than (2, 3)"),
        ("(" * 4000 + ")" * 4000, "the header has more than 4096 bytes"),
        ("(" * 900 + ")" * 900, "the header is not as numpy.save writes it"),
        ("__import__('os').abort()", "the header is not as numpy.save writes it"),
        ("(2, 3)", "there are fewer bytes of data than the header tells of"),
    ],
)
def test_a_header_that_lies(confine: Confine, shape: str, what: str) -> None:
    assert said(as_npy(confine, with_shape(shape))) == [what]


def test_10_to_the_12_elements_of_a_shape_that_nobody_fixed(confine: Confine) -> None:
    rule = ArrayRule(types=("float32",), shape=(None,))
    assert said(as_npy(confine, with_shape("(1000000000000,)", bytes(24)), rule=rule)) == [
        "the header tells of more than 33554432 bytes of data, which are not read"
    ]


@functools.cache
def npz_bomb() -> bytes:
    return numpy_packed(np.zeros(140 << 20, np.uint8))


def test_an_npz_bomb_is_known_by_its_directory(confine: Confine) -> None:
    bomb = npz_bomb()
    assert len(bomb) < 150 << 10
    assert said(as_npz(confine, bomb)) == ["the archive unpacks to more than 33554432 bytes, which are not read"]
    let_through = as_npz(confine, bomb, caps=NpyCaps(unpacked=1 << 30))
    assert said(let_through) == ["the file could not be read: the reader stopped: it needed more than 128 MiB"]


def test_an_npz_bomb_whose_directory_lies_is_unpacked_no_further(confine: Confine) -> None:
    bomb = npz_bomb()
    at = bomb.index(b"PK\1\2") + 24
    liar = bomb[:at] + struct.pack("<I", 1000) + bomb[at + 4 :]
    assert said(as_npz(confine, liar)) == ["array a: the member is damaged, or is not as long as the directory says"]


def test_a_zip_of_many_entries_is_not_listed(confine: Confine) -> None:
    directory = (b"PK\1\2" + bytes(42)) * 500_000
    content = directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), 0, 0)
    assert said(as_npz(confine, content)) == ["the directory of the archive has more than 512 bytes"]


# JSON.


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[" * 100_000, ["line 1, column 33: arrays and objects are more than 32 deep"]),
        (b'{"a":' * 100_000, ["line 1, column 161: arrays and objects are more than 32 deep"]),
        (b"[" * 100_000 + b"]" * 100_000, ["line 1, column 33: arrays and objects are more than 32 deep"]),
        (b"[NaN]", ["line 1, column 2: NaN and infinity are not JSON"]),
        (b"[-Infinity]", ["line 1, column 2: NaN and infinity are not JSON"]),
        (b'{"a": 1, "a": 2}', ["line 1, column 10: the name stands here again, as in line 1, column 2"]),
        (b"[1e999]", ["line 1, column 2: the number is too large: it would be read as infinite"]),
        (b"[-1e999]", ["line 1, column 2: the number is too large: it would be read as infinite"]),
        (b"[" + b"9" * 4301 + b"]", ["line 1, column 2: the number has more than 64 digits"]),
        (b"[" + b"9" * 8_600_000 + b"]", ["line 1, column 2: the number has more than 64 digits"]),
        (b"9" * ((16 << 20) + 1), ["the file is larger than 16777216 bytes"]),
        (b"[1]".decode().encode("utf-16"), ["the file is UTF-16: save it as UTF-8"]),
        (b"\xef\xbb\xbf[1]", ["the file begins with a byte order mark: save it as UTF-8 without one"]),
        (
            b'["\\ud800"]',
            ["line 1, column 2: the string holds half of a surrogate pair (\\ud800 to \\udfff)"],
        ),
        (b'["\xed\xa0\x80"]', ["line 1, column 3: the bytes are not UTF-8"]),
        (b"[1,2,3", ["line 1, column 7: the file ends inside an array"]),
        (b"[1][2]", ["line 1, column 4: the value has ended, and more follows"]),
        (b"", ["the file is empty"]),
        (b"!!python/object/apply:os.abort []", ["line 1, column 1: this is no JSON value"]),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[0],
)
def test_json(confine: Confine, content: bytes, expected: list[str]) -> None:
    assert said(as_json(confine, content))[: len(expected)] == expected


def test_json_of_many_small_values_stays_within_memory(confine: Confine) -> None:
    content = b"[" + b"[]," * 5_000_000 + b"[]]"
    answer = as_json(confine, content, caps=JsonCaps(values=100_000))
    assert said(answer) == ["line 1, column 299999: there are more than 100000 values"]


# Tables.

DIGITS_ONLY = "is not a whole number: only the digits 0 to 9 and a minus sign are read"
NOT_A_NUMBER = "is no number (NaN, infinite or null)"
DECIMAL = "is a decimal number: ids are whole numbers, write 3 and not 3.0"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"," * 10_000_000, ["row 1: the line is longer than 4096 characters"]),
        (
            b",".join(b"c%d" % number for number in range(1_000_000)) + b"\n0,1\n1,2\n",
            ["row 1: the line is longer than 4096 characters"],
        ),
        (
            b't,x\n0,"' + b"y" * 200_000,
            ["there are no rows under the header; 2 are due", "row 2: the line is longer than 4096 characters"],
        ),
        (
            b't,x\n0,"1\n1,2\n',
            [
                "row 2: a quotation mark is not closed, or stands inside a field",
                "row 3: t is 1 where 0 was due: the row for frame 0 is missing",
            ],
        ),
        (b"t,x\n0,1\0\n1,2\n", ["row 2: a NUL byte stands here: the file is not text"]),
        (b"t,x,x\n0,1,1\n1,2,2\n", ["column 3 is 'x' again, as column 2"]),
        (b"t,x\n0,inf\n1,1e400\n", [f"row 2: x {NOT_A_NUMBER}", f"row 3: x {DECIMAL}"]),
        ("t,x\n0,1_0\n1,\u0661\n".encode(), [f"row 2: x {DIGITS_ONLY}", f"row 3: x {DIGITS_ONLY}"]),
        (b"t,x\n" + b"\n" * 500_001, ["the file has more than 500000 rows"]),
        (b"t,x\n0,1\n1,2\n" * 3_000_000, ["the file is larger than 33554432 bytes"]),
        ("t,x\n0,1\n1,2\n".encode("utf-16"), ["the file is UTF-16: save it as UTF-8"]),
        ("t,x\n0,1\n1,2\n".encode("utf-16-le"), ["the file is UTF-16: save it as UTF-8"]),
        (b"t,x\n0,\xe9\n1,2\n", ["row 2: the bytes are not UTF-8"]),
        (b"t,x\r0,1\r1,2\r", ["row 1: a carriage return stands inside the row: end rows with \\n"]),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[0],
)
def test_tables(confine: Confine, content: bytes, expected: list[str]) -> None:
    assert [problem.what for problem in as_table(confine, content)][: len(expected)] == expected


ESCAPES = "\x1b]0;title\x07\x1b[2J\u202eevil\u2028<script>`"


def test_what_moves_a_terminal_is_shown_as_text(confine: Confine) -> None:
    (cell,) = as_table(confine, f"t,x\n0,{ESCAPES}\n1,2\n".encode())
    (name,) = as_json(confine, json.dumps({"a": 0}).replace("0", "\x1b\x07\u202e\u2028`").encode())[1]
    for problem in (cell, name):
        assert problem.value is not None
        assert problem.value.isascii()
        assert problem.value.isprintable()
    assert (name.what, name.value) == ("line 1, column 7: this is no JSON value", "'\\x1b\\x07\\u202e\\u2028`'")
    assert cell.what == f"row 2: x {DIGITS_ONLY}"
    assert cell.value == "'\\x1b]0;title\\x07\\x1b[2J\\u202eevil\\u2028<script>`'"


# A reader's child that a stranger has taken over.


def as_table_too(confine: Confine, content: bytes) -> Answer:
    descriptor = opened(content)
    try:
        reading = confined_read(confine, TABLE, descriptor, frames=2, role=Role.PREDICTION)
    finally:
        os.close(descriptor)
    return reading.prediction, [*reading.problems]


READ: dict[str, Callable[[Confine], Answer]] = {
    "table": lambda confine: as_table_too(confine, b"t,x\n0,1\n1,2\n"),
    "json": lambda confine: as_json(confine, b"[1]", top=Top.ARRAY),
    "npy": lambda confine: as_npy(confine, numpy_saved(GOOD)),
    "npz": lambda confine: as_npz(confine, numpy_packed(np.arange(9, dtype=np.uint8))),
    "png": lambda confine: as_png(confine, mask_file()),
}
STOPPED = "the file could not be read: the reader stopped: "


@pytest.fixture
def take_over(confine: Confine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """From now on every child does this drill, whatever it was to read."""
    original = confine.call

    def become(drill: str, **drill_request: JsonValue) -> None:
        def call(_function: str, _request: Mapping[str, JsonValue], **how: object) -> Reply:
            return original(f"{DRILLS}.{drill}", drill_request, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(confine, "call", call)

    return become


def test_every_reader_gives_up_its_rights(confine: Confine, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []
    original = confine.call

    def call(function: str, request: Mapping[str, JsonValue], **how: object) -> Reply:
        kept.append(how["privileges"])
        return original(function, request, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(confine, "call", call)
    for read in READ.values():
        assert read(confine)[1] == []
    assert kept == [Privileges.DROP] * len(READ)


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize(
    ("drill", "request_", "detail"),
    [
        ("echo", {}, "its answer lacks its parts"),
        ("fill_reply", {"bytes": 99}, "its answer lacks its parts"),
        ("fill_reply", {"bytes": 60 << 20}, "it needed more than 128 MiB"),
        ("write_garbage", {"text": "SECRET"}, "the header has more than 1048576 bytes"),
        ("write_garbage", {"text": ""}, "the answer is too short"),
        (
            "write_garbage",
            {"text": "\0\0\x10\0", "again": "[", "times": 1 << 20},
            "the header is not strict JSON within its bounds",
        ),
        (
            "write_garbage",
            {"text": "\0\0\0\4", "again": "[", "times": 900_000},
            "the header has more than 1048576 bytes",
        ),
        ("leave", {"code": 0}, "the answer is too short"),
        ("leave", {"code": 7}, "it ended with code 7"),
        ("crash", {}, "it was killed by SIGSEGV"),
        ("fail", {"text": "SECRET"}, "an exception was raised"),
        ("not_finite", {}, "an exception was raised"),
        ("eat_memory", {}, "it needed more than 128 MiB"),
    ],
)
def test_a_child_that_misbehaves_costs_its_file(
    confine: Confine,
    take_over: Callable[..., None],
    kind: str,
    drill: str,
    request_: dict[str, JsonValue],
    detail: str,
) -> None:
    take_over(drill, **request_)
    assert said(READ[kind](confine)) == [STOPPED + detail]


def test_a_child_that_never_answers_costs_its_file(
    confine: Confine, take_over: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "READ_DEADLINE", 0.2)
    take_over("spin")
    for read in READ.values():
        assert said(read(confine)) == [STOPPED + "it took longer than 0.2 s"]


def forge(take_over: Callable[..., None], header: Mapping[str, JsonValue], **arrays: NDArray[np.generic]) -> None:
    """Let the child write an answer that is whole, and a lie."""
    take_over("write_garbage", text=pack(Reply(header=header, arrays=arrays)).decode("latin-1"))


def as_bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


NONE: dict[str, JsonValue] = {"problems": [], "count": 0}
A = np.arange(4, dtype=np.uint8)


@pytest.mark.parametrize(
    ("kind", "header", "arrays", "detail"),
    [
        ("table", NONE, {}, "its answer lacks a column, or has one too many"),
        ("table", NONE, {"x": A.astype(np.int64)[:2], "y": A}, "its answer lacks a column, or has one too many"),
        ("table", NONE, {"x": A[:2]}, "its answer has a column that is no list of labels"),
        ("table", NONE, {"x": A.astype(np.int64)[:1]}, "its answer has a wrong number of frames"),
        ("table", NONE, {"x": A.astype(np.int64)[2:]}, "its answer holds labels that are none"),
        ("json", NONE, {}, "its answer lacks its parts"),
        ("json", NONE, {"text": as_bytes("[]"), "a": A}, "its answer lacks its parts"),
        ("json", {**NONE, "value": []}, {"text": as_bytes("[]")}, "its answer lacks its parts"),
        ("json", NONE, {"text": as_bytes("{}")}, "its answer is of another kind"),
        *(
            ("json", NONE, {"text": as_bytes(text)}, "its answer is not sound, or larger than the file may be")
            for text in ("[" + "9" * 99 + "]", '["\\ud800"]', "[" * 50_000, "[NaN]", "[1e999]", '[{"a": 1, "a": 1}]')
        ),
        ("npy", NONE, {}, "its answer lacks an array, or has one too many"),
        ("npy", NONE, {"array": GOOD, "more": A}, "its answer lacks an array, or has one too many"),
        ("npy", NONE, {"array": GOOD.astype(np.float64)}, "its answer is of another type"),
        ("npy", NONE, {"array": GOOD.reshape(3, 2)}, "its answer is of another shape"),
        ("npy", NONE, {"array": np.full_like(GOOD, np.inf)}, "its answer holds values out of range"),
        ("npz", NONE, {"b": A}, "its answer lacks an array, or has one too many"),
        ("npz", NONE, {"a": A.reshape(2, 2)}, "its answer is of another shape"),
        ("png", NONE, {"pixels": INDICES[:63]}, "its answer is of another size"),
        ("png", NONE, {"pixels": INDICES.astype(np.uint16)}, "its answer is of another type"),
        ("png", NONE, {"pixels": np.stack([INDICES] * 3, -1)}, "its answer is of another shape"),
    ],
)
def test_a_forged_value_is_not_believed(
    confine: Confine,
    take_over: Callable[..., None],
    kind: str,
    header: dict[str, JsonValue],
    arrays: dict[str, NDArray[np.generic]],
    detail: str,
) -> None:
    forge(take_over, header, **arrays)
    assert said(READ[kind](confine)) == [STOPPED + detail]


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize(
    ("header", "detail"),
    [
        ({"problems": [["SECRET", None, None, None]], "count": 1}, "its list of problems is malformed"),
        (
            {"problems": [["the file is empty SECRET", None, None, None]], "count": 1},
            "its list of problems is malformed",
        ),
        ({"problems": [["the file is empty\n", None, None, None]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", "SECRET", None, None]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", 0, None, None]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", True, None, None]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", 10**30, None, None]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", None, "\x1b[2J"]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", None, None, "\u202e"]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", None, None, "x" * 61]], "count": 1}, "its list of problems is malformed"),
        ({"problems": ["the file is empty"], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", None, None, None]], "count": 0}, "its answer lacks its parts"),
        ({"problems": [], "count": 1}, "its answer lacks its parts"),
        ({"problems": [], "count": -1}, "its answer lacks its parts"),
        ({"problems": [["the file is empty", None, None, None]] * 51, "count": 51}, "its answer lacks its parts"),
        ({"problems": [["the file is empty", None, None, None]], "count": True}, "its answer lacks its parts"),
        ({"problems": [["the file is empty", None, None, None]] * 50, "count": 1 << 27}, "its answer lacks its parts"),
        (
            {"problems": [["the file is empty", None, None, None]], "count": 1, "more": "SECRET"},
            "its answer lacks its parts",
        ),
        ({"problems": [["the file is empty", None, "SECRET", None]], "count": 1}, "its list of problems is malformed"),
        ({"problems": [["the file is empty", None, None]], "count": 1}, "its list of problems is malformed"),
    ],
)
def test_a_forged_problem_is_not_passed_on(
    confine: Confine, take_over: Callable[..., None], kind: str, header: dict[str, JsonValue], detail: str
) -> None:
    forge(take_over, header)
    assert said(READ[kind](confine)) == [STOPPED + detail]


@pytest.mark.parametrize(
    ("kind", "header", "arrays"),
    [
        ("table", NONE, {"x": np.array([0, 2])}),
        ("json", NONE, {"text": as_bytes("[7]")}),
        ("npy", NONE, {"array": GOOD}),
        ("npz", NONE, {"a": A}),
        ("png", NONE, {"pixels": INDICES}),
    ],
)
def test_a_forgery_that_a_file_could_have_said_is_believed_so_the_tests_above_can_fail(
    confine: Confine,
    take_over: Callable[..., None],
    kind: str,
    header: dict[str, JsonValue],
    arrays: dict[str, NDArray[np.generic]],
) -> None:
    forge(take_over, header, **arrays)
    value, problems = READ[kind](confine)
    assert value is not None
    assert problems == []
    forge(take_over, {"problems": [["the file is empty", 3, None, "'x'"]], "count": 1})
    assert READ[kind](confine) == (None, [Problem(what="the file is empty", row=3, value="'x'")])
