"""The PNG primitive: the header is judged before the rest, the rest before the pixels, and pixels come out exactly."""

import io
import os
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

from runner.confine import ConfinedFailure, Reply
from runner.formats.readers.png_image import check_pixels, read_png
from runner.formats.readers.png_rule import Fault, Mode, PngCaps, PngRule, sentences
from runner.formats.readers.problems import ProblemList, sentence_pattern

CAPS = PngCaps(size=3000, pixel_bytes=600, chunks=12, attached=100)
GREY = PngRule(mode=Mode.GREY, width=3, height=2)
INDEX = PngRule(mode=Mode.INDEX, width=3, height=2, maximum=3)
RGB = PngRule(mode=Mode.RGB, width=3, height=2)
MASK = np.array([[0, 1, 2], [3, 2, 1]], np.uint8)
COLOUR = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)

Pixels = NDArray[np.uint8]


def read(content: bytes, rule: PngRule = GREY, *, caps: PngCaps = CAPS) -> tuple[Pixels | None, list[str]]:
    problems = ProblemList()
    descriptor = os.memfd_create("png")
    try:
        os.write(descriptor, content)
        pixels = read_png(descriptor, rule=rule, caps=caps, problems=problems)
    finally:
        os.close(descriptor)
    assert (pixels is None) == (problems.count > 0)
    return pixels, [problem.what for problem in problems.kept]


def chunk(name: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def ihdr(width: int = 3, height: int = 2, *, bits: int = 8, kind: int = 0, interlace: int = 0, odd: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, odd, 0, interlace))


SIGNATURE = b"\x89PNG\r\n\x1a\n"
ROWS = b"\0\0\1\2\0\3\2\1"
DATA = chunk(b"IDAT", zlib.compress(ROWS))
PALETTE = chunk(b"PLTE", bytes(range(12)))
END = chunk(b"IEND")


def png(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks)


def written(array: Pixels, mode: str, kind: str = "PNG", **how: object) -> bytes:
    file = io.BytesIO()
    image = Image.fromarray(array)
    if mode == "P":
        image.putpalette(bytes(range(4 * 3)))
        image = image if image.mode == "P" else image.convert("P")
    else:
        image = image.convert(mode)
    image.save(file, kind, **how)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "rule", "pixels"),
    [
        (png(ihdr(), DATA, END), GREY, MASK),
        (png(ihdr(kind=3), PALETTE, DATA, END), INDEX, MASK),
        (png(ihdr(kind=3, bits=2), PALETTE, chunk(b"IDAT", zlib.compress(b"\0\x18\0\xe4")), END), INDEX, MASK),
        (png(ihdr(kind=3), PALETTE, chunk(b"tRNS", b"\0\xff"), DATA, END), INDEX, MASK),
        (png(ihdr(), DATA[:0], chunk(b"IDAT"), *(chunk(b"IDAT", bytes([byte])) for byte in zlib.compress(ROWS, 0)[:2]),
             chunk(b"IDAT", zlib.compress(ROWS, 0)[2:]), END), GREY, MASK),
        (png(ihdr(), chunk(b"tEXt", b"a\0" + b"b" * 98), DATA, chunk(b"tIME", b""), END), GREY, MASK),
        (written(MASK, "L"), GREY, MASK),
        (written(MASK, "P"), INDEX, MASK),
        (written(COLOUR, "RGB"), RGB, COLOUR),
        (written(MASK, "L"), PngRule(mode=Mode.GREY, width=None, height=None, maximum=3), MASK),
    ],
)  # fmt: skip
def test_sound_images(content: bytes, rule: PngRule, pixels: Pixels) -> None:
    found, problems = read(content, rule)
    assert problems == []
    assert found is not None
    assert found.dtype == np.uint8
    assert found.tolist() == pixels.tolist()
    assert check_pixels(Reply(header={}, arrays={"pixels": found}), rule=rule, caps=CAPS).tolist() == pixels.tolist()


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_indices_of_every_depth_come_out_as_they_are(bits: int) -> None:
    colours = 1 << bits
    pixels = np.random.default_rng(bits).integers(0, colours, (7, 5), np.uint8)
    image = Image.fromarray(pixels).convert("P")
    image.putdata(pixels.reshape(-1).tolist())
    image.putpalette(bytes(3 * colours))
    file = io.BytesIO()
    image.save(file, "PNG", bits=bits)
    rule = PngRule(mode=Mode.INDEX, width=5, height=7)
    found, problems = read(file.getvalue(), rule)
    assert problems == []
    assert found is not None
    assert found.tolist() == pixels.tolist()


def test_every_filter_is_undone() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 6), np.uint8)
    rows = b""
    for number, row in enumerate(pixels.astype(np.int64)):
        left, up = np.concatenate([[0], row[:-1]]), pixels[number - 1].astype(np.int64) if number else row * 0
        corner = np.concatenate([[0], up[:-1]])
        guess = left + up - corner
        nearest = np.argmin(np.abs([guess - left, guess - up, guess - corner]), axis=0)
        predicted = [0, left, up, (left + up) // 2, np.choose(nearest, [left, up, corner])][number]
        rows += bytes([number]) + ((row - predicted) % 256).astype(np.uint8).tobytes()
    found, _ = read(
        png(ihdr(6, 5), chunk(b"IDAT", zlib.compress(rows)), END), PngRule(mode=Mode.GREY, width=6, height=5)
    )
    assert found is not None
    assert found.tolist() == pixels.tolist()


def renamed(content: bytes, name: bytes) -> bytes:
    return content[:4] + name + content[8:]


SIZE = "the image has another size than 3 × 2 pixels"
BAD: list[tuple[bytes, PngRule, list[str]]] = [
    (b"", GREY, ["the file is empty"]),
    (written(MASK, "L", "JPEG"), GREY, [
        "this is a JPEG file: it changes the values of pixels, save the image as PNG"]),
    *((written(MASK, "L", kind), GREY, [f"this is a {shown} file: save the image as PNG"]) for kind, shown in (
        ("GIF", "GIF"), ("TIFF", "TIFF"), ("BMP", "BMP"), ("WebP", "WebP"), ("PPM", "PGM"))),
    (b"x" * 99, GREY, ["this is not a PNG file"]),
    (b"\x89PNG\n\x1a\n" + b"x" * 99, GREY, ["this is not a PNG file"]),
    (png(ihdr())[:-1], GREY, ["the file ends inside the image header"]),
    (png(renamed(ihdr(), b"IHDX")), GREY, ["the image header is not valid"]),
    (png(ihdr()[:-1] + b"\0"), GREY, ["the image header is not valid"]),
    *((png(one, DATA, END), GREY, ["the image header is not valid"]) for one in (
        ihdr(0), ihdr(3, 0), ihdr(1 << 31), ihdr(bits=3), ihdr(kind=1), ihdr(interlace=2), ihdr(odd=1))),
    (png(ihdr(12000, 12000), END), GREY, [SIZE]),
    (png(ihdr(2, 3), END), GREY, [SIZE]),
    (png(ihdr(30000, 20000), END), PngRule(mode=Mode.GREY, width=None, height=None), [
        "the image has more than 600 bytes of pixels, which are not read"]),
    (png(ihdr(30000, 20001), END), PngRule(mode=Mode.GREY, width=None, height=20000), [
        "the image has another size than any × 20000 pixels"]),
    (written(COLOUR, "RGB"), INDEX, ["the image is colour (RGB) where palette index is due"]),
    (written(COLOUR, "RGBA"), RGB, ["the image is colour with alpha (RGBA) where colour (RGB) is due"]),
    (written(MASK, "LA"), GREY, ["the image is grey with alpha where grey is due"]),
    (written(MASK, "P"), GREY, ["the image is palette index where grey is due",
                                "the image has 2 bits a sample where 8 are due"]),
    (written(MASK, "L"), INDEX, ["the image is grey where palette index is due"]),
    (written(MASK, "1"), GREY, ["the image has 1 bits a sample where 8 are due"]),
    (written(MASK, "I;16"), GREY, ["the image has 16 bits a sample where 8 are due"]),
    (png(ihdr(kind=3, bits=16), PALETTE, DATA, END), INDEX, ["the image has 16 bits a sample where at most 8 are due"]),
    (png(ihdr(4, bits=16, kind=6, interlace=1), DATA, END), GREY, [
        SIZE, "the image is colour with alpha (RGBA) where grey is due",
        "the image has 16 bits a sample where 8 are due", "the image is interlaced: save it without"]),
    (png(ihdr(), DATA, END) + b"\0" * 3000, GREY, ["the file is larger than 3000 bytes"]),
    (png(ihdr(), *[chunk(b"tEXt")] * 12), GREY, ["the file has more than 12 chunks"]),
    (png(ihdr(), DATA[:-1]), GREY, ["chunk 2: the file ends inside the chunk"]),
    (png(ihdr(), b"\xff\xff\xff\xffIDAT", bytes(99)), GREY, ["chunk 2: the file ends inside the chunk"]),
    (png(ihdr(), chunk(b"ID T")), GREY, ["chunk 2: this is no chunk of a PNG file"]),
    (png(ihdr(), DATA[:-1] + b"\0", END), GREY, ["chunk 2: the checksum is wrong"]),
    (png(ihdr(), chunk(b"ABCD"), DATA, END), GREY, ["chunk 2: the chunk must be understood, and is unknown"]),
    (png(ihdr(), ihdr(), DATA, END), GREY, ["chunk 2: IHDR stands here again, or where it must not"]),
    (png(ihdr(), DATA, chunk(b"tIME"), DATA, END), GREY, ["chunk 4: IDAT stands here again, or where it must not"]),
    (png(ihdr(kind=3), PALETTE, PALETTE, DATA, END), INDEX, [
        "chunk 3: PLTE stands here again, or where it must not"]),
    (png(ihdr(kind=3), DATA, PALETTE, END), INDEX, ["chunk 3: PLTE stands here again, or where it must not"]),
    (png(ihdr(kind=3), PALETTE, DATA, chunk(b"tRNS"), END), INDEX, [
        "chunk 4: tRNS stands here again, or where it must not"]),
    (png(ihdr(), DATA, chunk(b"IEND", b"x")), GREY, ["chunk 3: IEND must be empty"]),
    (png(ihdr(), PALETTE, DATA, END), GREY, ["chunk 2: the palette does not fit the image"]),
    *((png(ihdr(kind=3, bits=2), chunk(b"PLTE", bytes(size)), DATA, END), INDEX, [
        "chunk 2: the palette does not fit the image"]) for size in (0, 4, 15)),
    (png(ihdr(), chunk(b"tRNS", b"\0\1"), DATA, END), GREY, [
        "chunk 2: the image has transparency (tRNS), and none is allowed"]),
    (png(ihdr(kind=3), PALETTE, chunk(b"tRNS", bytes(5)), DATA, END), INDEX, [
        "chunk 3: there are more transparencies than colours in the palette"]),
    (png(ihdr(kind=3), chunk(b"tRNS", bytes(1)), PALETTE, DATA, END), INDEX, [
        "chunk 2: there are more transparencies than colours in the palette"]),
    (png(ihdr(), chunk(b"acTL", bytes(8)), DATA, END), GREY, ["chunk 2: the image is an animation"]),
    (png(ihdr(), chunk(b"tEXt", bytes(101)), DATA, END), GREY, [
        "text and other attachments have more than 100 bytes"]),
    (png(ihdr(kind=3), DATA, END), INDEX, ["the image has no palette"]),
    (png(ihdr(), END), GREY, ["the image has no pixels (IDAT)"]),
    (png(ihdr(), DATA), GREY, ["the file ends without IEND"]),
    (png(ihdr(), DATA, END, b"PK\3\4"), GREY, ["there are bytes after the end of the image (IEND)"]),
    (png(ihdr(), chunk(b"IDAT", b"x" * 9), END), GREY, ["the compressed pixels are damaged"]),
    (png(ihdr(), chunk(b"IDAT", zlib.compress(ROWS)[:-1] + b"\0"), END), GREY, ["the compressed pixels are damaged"]),
    (png(ihdr(), chunk(b"IDAT", zlib.compress(ROWS[:-1])), END), GREY, [
        "the pixels end too early"]),
    (png(ihdr(), chunk(b"IDAT", zlib.compress(ROWS)[:-4]), END), GREY, [
        "the pixels end too early"]),
    (png(ihdr(), chunk(b"IDAT", zlib.compress(ROWS + b"\0")), END), GREY, [
        "there are more pixels than the image header tells of"]),
    (png(ihdr(), chunk(b"IDAT", zlib.compress(ROWS) + b"\0"), END), GREY, [
        "there are more pixels than the image header tells of"]),
    (png(ihdr(), chunk(b"IDAT", zlib.compress(ROWS[:4] + b"\5" + ROWS[5:])), END), GREY, [
        "row 1 of the pixels has a filter that PNG does not know"]),
    (png(ihdr(kind=3), chunk(b"PLTE", bytes(9)), DATA, END), INDEX, [
        "pixel [1, 0]: the palette has no colour for this pixel"]),
    (png(ihdr(), DATA, END), PngRule(mode=Mode.GREY, width=3, height=2, maximum=1), [
        "pixel [0, 2]: the value is greater than 1"]),
    (written(COLOUR, "RGB"), PngRule(mode=Mode.RGB, width=3, height=2, maximum=10), [
        "pixel [1, 0]: the value is greater than 10"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "rule", "expected"), BAD, ids=[said[0] for *_, said in BAD])
def test_what_is_wrong_is_said(content: bytes, rule: PngRule, expected: list[str]) -> None:
    assert read(content, rule) == (None, expected)


@pytest.mark.parametrize(
    ("content", "rule", "problem"),
    [
        (png(ihdr(251, 2), END), GREY, ("the image has another size than 3 × 2 pixels", "'251x2'")),
        (
            png(ihdr(251, 251), END),
            PngRule(mode=Mode.GREY, width=None, height=None),
            ("the image has more than 600 bytes of pixels, which are not read", "'251x251'"),
        ),
        (
            png(ihdr(), chunk(b"IDAT", zlib.compress(b"\0\0\0\xfb\0\0\0\0")), END),
            PngRule(mode=Mode.GREY, width=3, height=2, maximum=1),
            ("pixel [0, 2]: the value is greater than 1", "'251'"),
        ),
        (
            png(ihdr(kind=3), PALETTE, chunk(b"IDAT", zlib.compress(b"\0\0\0\xfb\0\0\0\0")), END),
            INDEX,
            ("pixel [0, 2]: the palette has no colour for this pixel", "'251'"),
        ),
    ],
)
def test_what_a_file_says_of_itself_is_a_value_and_no_sentence(
    content: bytes, rule: PngRule, problem: tuple[str, str]
) -> None:
    problems = ProblemList()
    descriptor = os.memfd_create("png")
    os.write(descriptor, content)
    assert read_png(descriptor, rule=rule, caps=CAPS, problems=problems) is None
    os.close(descriptor)
    assert [(one.what, one.value) for one in problems.kept] == [problem]


def test_every_sentence_is_tried_above_and_is_one_the_parent_lets_through() -> None:
    assert [what for _, rule, said in BAD for what in said if not sentences(rule).fullmatch(what)] == []
    tried = [what for _, _, said in BAD for what in said] + ["the image could not be decoded"]
    fields = dict.fromkeys(("format", "due", "found", "name"), ".*")
    missing = [fault for fault in Fault if not any(map(sentence_pattern([fault], **fields).fullmatch, tried))]
    assert missing == []


@pytest.mark.parametrize("failure", [OSError, SyntaxError, ValueError, Image.DecompressionBombWarning])
def test_a_decoder_that_gives_up_is_a_problem(failure: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(Image, "open", give_up)
    assert read(png(ihdr(), DATA, END)) == (None, ["the image could not be decoded"])


def test_pillows_own_warning_of_a_bomb_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    assert read(png(ihdr(), DATA, END)) == (None, ["the image could not be decoded"])


def test_pillow_sees_only_what_makes_the_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    original = PngImagePlugin.ChunkStream.read

    def spy(stream: PngImagePlugin.ChunkStream) -> tuple[bytes, int, int]:
        found = original(stream)
        seen.append(found[0])
        return found

    monkeypatch.setattr(PngImagePlugin.ChunkStream, "read", spy)
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10_000)))
    content = png(ihdr(kind=3), text, PALETTE, chunk(b"tRNS", b"\0"), DATA, chunk(b"eXIf", b"II*\0"), END)
    assert read(content, INDEX)[1] == []
    assert {*seen} <= {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
    assert b"IDAT" in seen


SMALL = [png(ihdr(kind=3), PALETTE, chunk(b"tRNS", b"\0"), DATA, chunk(b"tEXt", b"a\0b"), END), written(MASK, "P")]


@pytest.mark.parametrize("content", SMALL)
def test_a_file_cut_anywhere_is_a_problem(content: bytes) -> None:
    for length in range(len(content)):
        pixels, problems = read(content[:length], INDEX)
        assert pixels is None
        assert len(problems) == 1
    assert read(content, INDEX)[1] == []


@pytest.mark.parametrize("content", SMALL)
def test_no_byte_of_a_file_can_be_broken_unnoticed(content: bytes) -> None:
    for place in range(len(content)):
        for byte in {0x00, 0xFF, content[place] ^ 0x20, content[place] ^ 0x01} - {content[place]}:
            pixels, problems = read(content[:place] + bytes([byte]) + content[place + 1 :], INDEX)
            assert pixels is None
            assert all(sentences(INDEX).fullmatch(what) for what in problems)


CHUNK = st.sampled_from([b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"tEXt", b"ABCD", b"acTL", b"\0\0\0\0"])


@settings(max_examples=60)
@given(
    st.sampled_from([0, 2, 3]),
    st.sampled_from([1, 8]),
    st.lists(
        st.tuples(CHUNK, st.one_of(st.binary(max_size=20), st.binary(max_size=20).map(zlib.compress))), max_size=6
    ),
    st.sampled_from(list(Mode)),
)
def test_any_chunks_are_problems_or_pixels(
    kind: int, bits: int, chunks: Sequence[tuple[bytes, bytes]], mode: Mode
) -> None:
    rule = PngRule(mode=mode, width=None, height=None)
    content = png(ihdr(1, 2, kind=kind, bits=bits), *(chunk(*one) for one in chunks), END)
    pixels, problems = read(content, rule)
    assert [what for what in problems if not sentences(rule).fullmatch(what)] == []
    if pixels is not None:
        check_pixels(Reply(header={}, arrays={"pixels": pixels}), rule=rule, caps=CAPS)


@given(st.binary(max_size=60))
def test_random_bytes_are_problems_and_never_exceptions(content: bytes) -> None:
    assert read(content)[0] is None
    assert read(png(ihdr(), content))[0] is None


@pytest.mark.parametrize(
    ("arrays", "rule", "detail"),
    [
        ({}, GREY, "its answer lacks the pixels, or has more"),
        ({"pixels": MASK, "more": MASK}, GREY, "its answer lacks the pixels, or has more"),
        ({"pixels": MASK.astype(np.int8)}, GREY, "its answer is of another type"),
        ({"pixels": MASK[0]}, GREY, "its answer is of another shape"),
        ({"pixels": COLOUR}, GREY, "its answer is of another shape"),
        ({"pixels": MASK}, RGB, "its answer is of another shape"),
        ({"pixels": COLOUR[..., :2]}, RGB, "its answer is of another shape"),
        ({"pixels": MASK.T}, GREY, "its answer is of another size"),
        ({"pixels": MASK[:0]}, PngRule(mode=Mode.GREY, width=None, height=None), "its answer is of another size"),
        (
            {"pixels": np.zeros((601, 1), np.uint8)},
            PngRule(mode=Mode.GREY, width=None, height=None),
            "its answer is of another size",
        ),
        ({"pixels": MASK + 1}, INDEX, "its answer holds values out of range"),
    ],
)
def test_an_answer_that_no_file_can_have_is_not_believed(
    arrays: dict[str, NDArray[np.generic]], rule: PngRule, detail: str
) -> None:
    with pytest.raises(ConfinedFailure, match=f"garbled: {detail}"):
        check_pixels(Reply(header={}, arrays=arrays), rule=rule, caps=CAPS)
