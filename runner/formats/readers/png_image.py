"""Reads one PNG image of a size and kind that are known beforehand.

A kilobyte of PNG can stand for gigapixels. So the image's header is compared with what is due before anything else is
read; then the chunks are walked, each with its length and checksum; then the pixels are inflated up to the one size
they may have. Only what passed all this is given to Pillow, and only the chunks that make the pixels: text, colour
profiles and other attachments, which can be bombs of their own, are neither unpacked nor passed on.
"""

import io
import os
import re
import struct
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin  # noqa: F401  the plugin: a confined child may not be able to import it
from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.readers.csv_table import (
    ProblemList,
    confined_call,
    garbled,
    read_bytes,
    sentence_pattern,
    told,
)


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
    SIZE = "the image is {width} × {height} pixels where {due} are due"
    PIXELS = "the image is {width} × {height} pixels; more than {cap} bytes of pixels are not read"
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
    ATTACHED = "text and other attachments have {found} bytes; more than {cap} are not read"
    NO_PALETTE = "the image has no palette"
    NO_PIXELS = "the image has no pixels (IDAT)"
    NO_END = "the file ends without IEND"
    AFTER_END = "there are {found} bytes after the end of the image (IEND)"
    DAMAGED = "the compressed pixels are damaged"
    PIXELS_END = "the pixels end too early: there are {found} bytes of {due}"
    PIXELS_MORE = "there are more pixels than the image header tells of"
    FILTER = "row {row} of the pixels has a filter that PNG does not know"
    NOT_IN_PALETTE = "pixel [{row}, {column}]: the palette has {due} colours, and none for this pixel"
    VALUE = "pixel [{row}, {column}]: the value is {found} where at most {due} is due"
    DECODER = "the image could not be decoded"


_FOUND = {0: "grey", 2: "colour (RGB)", 3: "palette index", 4: "grey with alpha", 6: "colour with alpha (RGBA)"}
"""By colour type of the header."""

_TYPES = {Mode.GREY: 0, Mode.RGB: 2, Mode.INDEX: 3}
_SAMPLES = {Mode.GREY: 1, Mode.RGB: 3, Mode.INDEX: 1}
_PILLOW = {Mode.GREY: "L", Mode.RGB: "RGB", Mode.INDEX: "P"}
_FORMATS = {
    b"GIF8": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"BM": "BMP",
    b"RIFF": "WebP",
    b"P5": "PGM",
    b"P6": "PPM",
}


def _sentences(rule: PngRule) -> re.Pattern[str]:
    count = "[0-9]{1,20}"
    return sentence_pattern(
        Fault,
        format="|".join(sorted(set(_FORMATS.values()))),
        found="|".join([count, *map(re.escape, _FOUND.values())]),
        due="|".join([count, re.escape(_size_words(rule)), re.escape(rule.mode), _depth_words(rule.mode)]),
        name="IHDR|PLTE|IDAT|tRNS",
    )


def _size_words(rule: PngRule) -> str:
    return " × ".join("any" if length is None else str(length) for length in (rule.width, rule.height))


def _depth_words(mode: Mode) -> str:
    return "at most 8" if mode is Mode.INDEX else "8"


def read_png(descriptor: int, *, rule: PngRule, caps: PngCaps, problems: ProblemList) -> NDArray[np.uint8] | None:
    """Read a PNG file.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        rule: What the image must be.
        caps: How large the file may be.
        problems: What is wrong is added here; pixels are counted from 0, parts of the file from 1.

    Returns:
        Shape ``(height, width)``, or ``(height, width, 3)`` for colour; None where there is a problem.
    """
    found = ProblemList()
    pixels = _read(descriptor, rule, caps, found)
    problems.take(found)
    return None if found.count else pixels


def _read(descriptor: int, rule: PngRule, caps: PngCaps, problems: ProblemList) -> NDArray[np.uint8] | None:
    header = _read_header(descriptor, problems)
    if header is not None:
        _judge_header(header, rule, caps, problems)
    if header is None or problems.count:
        return None
    content = read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
        return None
    parts = _Parts(header, rule.mode)
    for chunk in _chunks(content, caps, problems):
        parts.take(chunk, problems)
    parts.finish(caps, problems)
    if problems.count or not _inflates(parts, problems):
        return None
    pixels = _decode(parts, problems)
    if pixels is not None:
        _judge_pixels(pixels, parts, rule, problems)
    return pixels


# The image header, before anything else.

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_IHDR = struct.Struct(">IIBBBBB")
_HEADER_SIZE = len(_SIGNATURE) + 8 + _IHDR.size + 4


class _Header(NamedTuple):
    width: int
    height: int
    bits: int
    colour_type: int
    compression: int
    filtering: int
    interlace: int


def _read_header(descriptor: int, problems: ProblemList) -> _Header | None:
    head = os.pread(descriptor, _HEADER_SIZE, 0)
    if not head.startswith(_SIGNATURE[: len(head)]):
        problems.add(_other_format(head))
        return None
    if len(head) < _HEADER_SIZE:
        problems.add(Fault.HEADER_END if head else Fault.EMPTY)
        return None
    header = _Header(*_IHDR.unpack_from(head, 16))
    length = int.from_bytes(head[8:12], "big")
    sound = length == _IHDR.size and head[12:16] == b"IHDR" and zlib.crc32(head[12:29]).to_bytes(4, "big") == head[29:]
    known = header.colour_type in _FOUND and header.bits in (1, 2, 4, 8, 16) and header.interlace in (0, 1)
    sized = min(header.width, header.height) > 0 and max(header.width, header.height) < 1 << 31
    if not (sound and known and sized) or (header.compression, header.filtering) != (0, 0):
        problems.add(Fault.HEADER)
        return None
    return header


def _other_format(head: bytes) -> str:
    if head.startswith(b"\xff\xd8\xff"):
        return Fault.LOSSY
    name = next((name for mark, name in _FORMATS.items() if head.startswith(mark)), None)
    return Fault.NO_PNG if name is None else Fault.OTHER_FORMAT.format(format=name)


def _judge_header(header: _Header, rule: PngRule, caps: PngCaps, problems: ProblemList) -> None:
    width, height = header.width, header.height
    if rule.width not in (None, width) or rule.height not in (None, height):
        problems.add(Fault.SIZE.format(width=width, height=height, due=_size_words(rule)))
    elif width * height * _SAMPLES[rule.mode] > caps.pixel_bytes:
        problems.add(Fault.PIXELS.format(width=width, height=height, cap=caps.pixel_bytes))
    if header.colour_type != _TYPES[rule.mode]:
        problems.add(Fault.MODE.format(found=_FOUND[header.colour_type], due=rule.mode))
    if header.bits > 8 or (header.bits < 8 and rule.mode is not Mode.INDEX):
        problems.add(Fault.DEPTH.format(bits=header.bits, due=_depth_words(rule.mode)))
    if header.interlace:
        problems.add(Fault.INTERLACED)


# The chunks.


class _Chunk(NamedTuple):
    number: int
    name: bytes
    data: memoryview
    whole: memoryview


def _chunks(content: bytes, caps: PngCaps, problems: ProblemList) -> list[_Chunk]:
    """Cut a file into its chunks, up to the end of the image or to where none can be seen any more."""
    view = memoryview(content)
    chunks: list[_Chunk] = []
    at = len(_SIGNATURE)
    while at < len(view):
        number = len(chunks) + 1
        if number > caps.chunks:
            problems.add(Fault.CHUNKS.format(cap=caps.chunks))
            break
        length, name = int.from_bytes(view[at : at + 4], "big"), bytes(view[at + 4 : at + 8])
        end = at + 12 + length
        if end > len(view):
            problems.add(Fault.CHUNK_END.format(number=number))
            break
        if not name.isalpha():
            problems.add(Fault.CHUNK_NAME.format(number=number), value=name.decode("latin-1"))
            break
        if zlib.crc32(view[at + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
            problems.add(Fault.CHUNK_SUM.format(number=number))
        chunks.append(_Chunk(number, name, view[at + 8 : end - 4], view[at:end]))
        at = end
        if name == b"IEND":
            if at < len(view):
                problems.add(Fault.AFTER_END.format(found=len(view) - at))
            break
    return chunks


class _Parts:
    """What an image is made of; each chunk is judged as it comes, by those before it."""

    def __init__(self, header: _Header, mode: Mode) -> None:
        self.header = header
        self.mode = mode
        self.colours = 0
        self._pixels: list[_Chunk] = []
        self._palette: _Chunk | None = None
        self._first: _Chunk | None = None
        self._transparency: _Chunk | None = None
        self._end: _Chunk | None = None
        self._attached = 0

    def take(self, chunk: _Chunk, problems: ProblemList) -> None:
        """Take the next chunk."""
        match chunk.name:
            case b"IHDR" if chunk.number == 1:
                self._first = chunk
            case b"IDAT" if not self._pixels or self._pixels[-1].number == chunk.number - 1:
                self._pixels.append(chunk)
            case b"PLTE" if self._palette is None and not self._pixels:
                self._take_palette(chunk, problems)
            case b"tRNS" if self._transparency is None and not self._pixels:
                self._take_transparency(chunk, problems)
            case b"IEND":
                self._take_end(chunk, problems)
            case b"IHDR" | b"IDAT" | b"PLTE" | b"tRNS" as name:
                problems.add(Fault.ORDER.format(number=chunk.number, name=name.decode()))
            case b"acTL":
                problems.add(Fault.ANIMATED.format(number=chunk.number))
            case name if name[:1].isupper():
                problems.add(Fault.UNKNOWN.format(number=chunk.number), value=name.decode())
            case _:
                self._attached += len(chunk.data)

    def _take_palette(self, chunk: _Chunk, problems: ProblemList) -> None:
        self._palette = chunk
        self.colours, rest = divmod(len(chunk.data), 3)
        most = 1 << self.header.bits
        if rest or not 1 <= self.colours <= most or self.mode is Mode.GREY:
            problems.add(Fault.PALETTE.format(number=chunk.number))

    def _take_transparency(self, chunk: _Chunk, problems: ProblemList) -> None:
        self._transparency = chunk
        if self.mode is not Mode.INDEX:
            problems.add(Fault.ALPHA.format(number=chunk.number))
        elif len(chunk.data) > self.colours:
            problems.add(Fault.ALPHA_SIZE.format(number=chunk.number))

    def _take_end(self, chunk: _Chunk, problems: ProblemList) -> None:
        self._end = chunk
        if chunk.data:
            problems.add(Fault.END_DATA.format(number=chunk.number))

    def finish(self, caps: PngCaps, problems: ProblemList) -> None:
        """Say what never came."""
        if self._attached > caps.attached:
            problems.add(Fault.ATTACHED.format(found=self._attached, cap=caps.attached))
        if self._end is None and not problems.count:
            problems.add(Fault.NO_END)
        if not problems.count and self.mode is Mode.INDEX and self._palette is None:
            problems.add(Fault.NO_PALETTE)
        if not problems.count and not self._pixels:
            problems.add(Fault.NO_PIXELS)

    @property
    def compressed(self) -> bytes:
        """The pixels as they are stored."""
        return b"".join(chunk.data for chunk in self._pixels)

    @property
    def image(self) -> bytes:
        """A PNG file of what makes the pixels, and of nothing else."""
        kept = [self._first, self._palette, *self._pixels, self._end]
        return b"".join([_SIGNATURE, *(chunk.whole for chunk in kept if chunk is not None)])


# The pixels.


def _inflates(parts: _Parts, problems: ProblemList) -> bool:
    """Whether the pixels are as many bytes as they must be, no byte more being unpacked, and every filter is known."""
    header = parts.header
    stride = 1 + (header.width * header.bits * _SAMPLES[parts.mode] + 7) // 8
    due = stride * header.height
    inflater = zlib.decompressobj()
    try:
        rows = inflater.decompress(parts.compressed, due + 1)
    except zlib.error:
        problems.add(Fault.DAMAGED)
        return False
    if len(rows) > due or inflater.unused_data:
        problems.add(Fault.PIXELS_MORE)
    elif len(rows) < due or not inflater.eof:
        problems.add(Fault.PIXELS_END.format(found=len(rows), due=due))
    elif (strange := np.frombuffer(rows, np.uint8)[::stride] > 4).any():
        problems.add(Fault.FILTER.format(row=int(np.argmax(strange))))
    else:
        return True
    return False


def _decode(parts: _Parts, problems: ProblemList) -> NDArray[np.uint8] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # DecompressionBombWarning above all
        try:
            with Image.open(io.BytesIO(parts.image), formats=("PNG",)) as image:
                if image.mode == _PILLOW[parts.mode] and image.size == (parts.header.width, parts.header.height):
                    return np.array(image, dtype=np.uint8)
        except (OSError, SyntaxError, ValueError, Warning, Image.DecompressionBombError):
            pass
    problems.add(Fault.DECODER)
    return None


def _judge_pixels(pixels: NDArray[np.uint8], parts: _Parts, rule: PngRule, problems: ProblemList) -> None:
    if rule.mode is Mode.INDEX and (place := _first_above(pixels, parts.colours - 1)):
        problems.add(Fault.NOT_IN_PALETTE.format(row=place[0], column=place[1], due=parts.colours))
    elif place := _first_above(pixels, rule.maximum):
        found = int(pixels[place])
        problems.add(Fault.VALUE.format(row=place[0], column=place[1], found=found, due=rule.maximum))


def _first_above(pixels: NDArray[np.uint8], most: int) -> tuple[int, ...] | None:
    if int(pixels.max()) <= most:
        return None
    return tuple(int(part) for part in np.unravel_index(int(np.argmax(pixels > most)), pixels.shape))


# The two sides of the confined call.

_CAPS = TypeAdapter(PngCaps)
_RULE = TypeAdapter(PngRule)


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_png``."""
    problems = ProblemList()
    rule, caps = _RULE.validate_python(request["rule"]), _CAPS.validate_python(request["caps"])
    pixels = read_png(descriptors[0], rule=rule, caps=caps, problems=problems)
    return Reply(header=told(problems), arrays={} if pixels is None else {"pixels": pixels})


def confined_png(
    confine: Confine, descriptor: int, *, rule: PngRule, caps: PngCaps, problems: ProblemList
) -> NDArray[np.uint8] | None:
    """``read_png`` in a child that can do nothing else; what it answers is held against the rule again.

    Raises:
        HostFault: No child could be started.
    """
    return confined_call(
        confine,
        "runner.formats.readers.png_image.read_in_child",
        {"rule": _RULE.dump_python(rule, mode="json"), "caps": _CAPS.dump_python(caps, mode="json")},
        descriptor,
        sentences=_sentences(rule),
        check=lambda reply: check_pixels(reply, rule=rule, caps=caps),
        problems=problems,
    )


def check_pixels(reply: Reply, *, rule: PngRule, caps: PngCaps) -> NDArray[np.uint8]:
    """The pixels of an answer, if they are what the rule asks for.

    Raises:
        ConfinedFailure: They are not; ``GARBLED``.
    """
    if set(reply.arrays) != {"pixels"}:
        raise garbled("its answer lacks the pixels, or has more")
    pixels = reply.arrays["pixels"]
    if pixels.dtype != np.uint8:
        raise garbled("its answer is of another type")
    samples = () if _SAMPLES[rule.mode] == 1 else (_SAMPLES[rule.mode],)
    if pixels.ndim != 2 + len(samples) or pixels.shape[2:] != samples:
        raise garbled("its answer is of another shape")
    height, width = pixels.shape[:2]
    if (
        rule.height not in (None, height)
        or rule.width not in (None, width)
        or not 0 < pixels.nbytes <= caps.pixel_bytes
    ):
        raise garbled("its answer is of another size")
    checked = pixels.astype(np.uint8, copy=False)
    if int(checked.max()) > rule.maximum:
        raise garbled("its answer holds values out of range")
    return checked


def warm_up() -> None:
    """Read a good and a bad image once; for the fork server."""
    file = io.BytesIO()
    Image.new("L", (2, 2)).save(file, "PNG")
    rule = PngRule(mode=Mode.GREY, width=2, height=2)
    for content in (file.getvalue(), file.getvalue()[:50]):
        descriptor = os.memfd_create("warm", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            pack(read_in_child({"rule": _RULE.dump_python(rule, mode="json"), "caps": {}}, [descriptor]))
        finally:
            os.close(descriptor)
