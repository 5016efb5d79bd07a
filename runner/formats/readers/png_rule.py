"""What is asked of a PNG image, and every sentence in which one can be refused.

What a file says of itself and the values of its pixels are the container's own: they go into ``Problem.value``, and
into no sentence.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from runner.formats.readers.problems import any_of, sentence_pattern


class Mode(StrEnum):
    """What a pixel holds."""

    GREY = "grey"
    INDEX = "palette index"
    RGB = "colour (RGB)"


@dataclass(frozen=True, kw_only=True)
class PngCaps:
    """How large a file may be.

    Attributes:
        size: Bytes of the file.
        pixel_bytes: Bytes of the pixels, one or three each.
        chunks: Parts of the file.
        attached: Bytes of text, colour profiles and the like.
    """

    size: int = 16 << 20
    pixel_bytes: int = 32 << 20
    chunks: int = 16_384
    attached: int = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PngRule:
    """What an image must be: not interlaced, 8 bits a sample (or fewer for an index).

    Attributes:
        mode: What a pixel holds.
        width: Pixels a row; None where any will do.
        height: Rows; None where any will do.
        maximum: The greatest value of a sample.
    """

    mode: Mode
    width: int | None
    height: int | None
    maximum: int = 255


class Fault(StrEnum):
    """Every sentence of this reader."""

    EMPTY = "the file is empty"
    TOO_LARGE = "the file is larger than {cap} bytes"
    OTHER_FORMAT = "this is a {format} file: save the image as PNG"
    LOSSY = "this is a JPEG file: it changes the values of pixels, save the image as PNG"
    NO_PNG = "this is not a PNG file"
    HEADER_END = "the file ends inside the image header"
    HEADER = "the image header is not valid"
    SIZE = "the image has another size than {due} pixels"
    PIXELS = "the image has more than {cap} bytes of pixels, which are not read"
    MODE = "the image is {found} where {due} is due"
    DEPTH = "the image has {bits} bits a sample where {due} are due"
    INTERLACED = "the image is interlaced: save it without"
    CHUNKS = "the file has more than {cap} chunks"
    CHUNK_END = "chunk {number}: the file ends inside the chunk"
    CHUNK_NAME = "chunk {number}: this is no chunk of a PNG file"
    CHUNK_SUM = "chunk {number}: the checksum is wrong"
    UNKNOWN = "chunk {number}: the chunk must be understood, and is unknown"
    ORDER = "chunk {number}: {name} stands here again, or where it must not"
    END_DATA = "chunk {number}: IEND must be empty"
    PALETTE = "chunk {number}: the palette does not fit the image"
    ALPHA = "chunk {number}: the image has transparency (tRNS), and none is allowed"
    ALPHA_SIZE = "chunk {number}: there are more transparencies than colours in the palette"
    ANIMATED = "chunk {number}: the image is an animation"
    ATTACHED = "text and other attachments have more than {cap} bytes"
    NO_PALETTE = "the image has no palette"
    NO_PIXELS = "the image has no pixels (IDAT)"
    NO_END = "the file ends without IEND"
    AFTER_END = "there are bytes after the end of the image (IEND)"
    DAMAGED = "the compressed pixels are damaged"
    PIXELS_END = "the pixels end too early"
    PIXELS_MORE = "there are more pixels than the image header tells of"
    FILTER = "row {row} of the pixels has a filter that PNG does not know"
    NOT_IN_PALETTE = "pixel [{row}, {column}]: the palette has no colour for this pixel"
    VALUE = "pixel [{row}, {column}]: the value is greater than {due}"
    DECODER = "the image could not be decoded"


FOUND = {0: "grey", 2: "colour (RGB)", 3: "palette index", 4: "grey with alpha", 6: "colour with alpha (RGBA)"}
"""By colour type of the header."""

TYPES = {Mode.GREY: 0, Mode.RGB: 2, Mode.INDEX: 3}
BITS = (1, 2, 4, 8, 16)
"""Bits a sample may have."""

SAMPLES = {Mode.GREY: 1, Mode.RGB: 3, Mode.INDEX: 1}
FORMATS = {
    b"GIF8": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"BM": "BMP",
    b"RIFF": "WebP",
    b"P5": "PGM",
    b"P6": "PPM",
}


def sentences(rule: PngRule) -> re.Pattern[str]:
    """What may be said of an image with this rule."""
    return sentence_pattern(
        Fault,
        format=any_of(sorted(set(FORMATS.values()))),
        found=any_of(FOUND.values()),
        bits=any_of(BITS),
        due=any_of([rule.maximum, size_words(rule), rule.mode, depth_words(rule.mode)]),
        name="IHDR|PLTE|IDAT|tRNS",
    )


def size_words(rule: PngRule) -> str:
    """The size that is due as a sentence has it."""
    return " × ".join("any" if length is None else str(length) for length in (rule.width, rule.height))


def depth_words(mode: Mode) -> str:
    """The bits a sample that are due as a sentence has them."""
    return "at most 8" if mode is Mode.INDEX else "8"
