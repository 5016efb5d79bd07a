"""The parts of a PNG file: the header of the image, before anything else is read, then the chunks, each for itself."""

import os
import struct
import zlib
from typing import NamedTuple

from runner.formats.readers.png_rule import (
    BITS,
    FORMATS,
    FOUND,
    SAMPLES,
    TYPES,
    Fault,
    Mode,
    PngCaps,
    PngRule,
    depth_words,
    size_words,
)
from runner.formats.readers.problems import ProblemList

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_IHDR = struct.Struct(">IIBBBBB")
_HEADER_SIZE = len(SIGNATURE) + 8 + _IHDR.size + 4


class Header(NamedTuple):
    """The header of an image."""

    width: int
    height: int
    bits: int
    colour_type: int
    compression: int
    filtering: int
    interlace: int


def read_header(descriptor: int, problems: ProblemList) -> Header | None:
    """The header, if these bytes are the beginning of a PNG file; nothing behind it is read."""
    head = os.pread(descriptor, _HEADER_SIZE, 0)
    if not head.startswith(SIGNATURE[: len(head)]):
        problems.add(_other_format(head))
        return None
    if len(head) < _HEADER_SIZE:
        problems.add(Fault.HEADER_END if head else Fault.EMPTY)
        return None
    header = Header(*_IHDR.unpack_from(head, 16))
    length = int.from_bytes(head[8:12], "big")
    sound = length == _IHDR.size and head[12:16] == b"IHDR" and zlib.crc32(head[12:29]).to_bytes(4, "big") == head[29:]
    known = header.colour_type in FOUND and header.bits in BITS and header.interlace in (0, 1)
    sized = min(header.width, header.height) > 0 and max(header.width, header.height) < 1 << 31
    if not (sound and known and sized) or (header.compression, header.filtering) != (0, 0):
        problems.add(Fault.HEADER)
        return None
    return header


def _other_format(head: bytes) -> str:
    if head.startswith(b"\xff\xd8\xff"):
        return Fault.LOSSY
    name = next((name for mark, name in FORMATS.items() if head.startswith(mark)), None)
    return Fault.NO_PNG if name is None else Fault.OTHER_FORMAT.format(format=name)


def judge_header(header: Header, rule: PngRule, caps: PngCaps, problems: ProblemList) -> None:
    """Say what is wrong with a header."""
    width, height = header.width, header.height
    if rule.width not in (None, width) or rule.height not in (None, height):
        problems.add(Fault.SIZE.format(due=size_words(rule)), value=f"{width}x{height}")
    elif width * height * SAMPLES[rule.mode] > caps.pixel_bytes:
        problems.add(Fault.PIXELS.format(cap=caps.pixel_bytes), value=f"{width}x{height}")
    if header.colour_type != TYPES[rule.mode]:
        problems.add(Fault.MODE.format(found=FOUND[header.colour_type], due=rule.mode))
    if header.bits > 8 or (header.bits < 8 and rule.mode is not Mode.INDEX):
        problems.add(Fault.DEPTH.format(bits=header.bits, due=depth_words(rule.mode)))
    if header.interlace:
        problems.add(Fault.INTERLACED)


class Chunk(NamedTuple):
    """A part of the file, counted from 1."""

    number: int
    name: bytes
    data: memoryview
    whole: memoryview


def split_chunks(content: bytes, caps: PngCaps, problems: ProblemList) -> list[Chunk]:
    """Cut a file into its chunks, up to the end of the image or to where none can be seen any more."""
    view = memoryview(content)
    chunks: list[Chunk] = []
    at = len(SIGNATURE)
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
        chunks.append(Chunk(number, name, view[at + 8 : end - 4], view[at:end]))
        at = end
        if name == b"IEND":
            if at < len(view):
                problems.add(Fault.AFTER_END)
            break
    return chunks


class Parts:
    """What an image is made of; each chunk is judged as it comes, by those before it."""

    def __init__(self, header: Header, mode: Mode) -> None:
        self.header = header
        self.mode = mode
        self.colours = 0
        self._pixels: list[Chunk] = []
        self._palette: Chunk | None = None
        self._first: Chunk | None = None
        self._transparency: Chunk | None = None
        self._end: Chunk | None = None
        self._attached = 0

    def take(self, chunk: Chunk, problems: ProblemList) -> None:
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

    def _take_palette(self, chunk: Chunk, problems: ProblemList) -> None:
        self._palette = chunk
        self.colours, rest = divmod(len(chunk.data), 3)
        most = 1 << self.header.bits
        if rest or not 1 <= self.colours <= most or self.mode is Mode.GREY:
            problems.add(Fault.PALETTE.format(number=chunk.number))

    def _take_transparency(self, chunk: Chunk, problems: ProblemList) -> None:
        self._transparency = chunk
        if self.mode is not Mode.INDEX:
            problems.add(Fault.ALPHA.format(number=chunk.number))
        elif len(chunk.data) > self.colours:
            problems.add(Fault.ALPHA_SIZE.format(number=chunk.number))

    def _take_end(self, chunk: Chunk, problems: ProblemList) -> None:
        self._end = chunk
        if chunk.data:
            problems.add(Fault.END_DATA.format(number=chunk.number))

    def finish(self, caps: PngCaps, problems: ProblemList) -> None:
        """Say what never came."""
        if self._attached > caps.attached:
            problems.add(Fault.ATTACHED.format(cap=caps.attached))
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
        return b"".join([SIGNATURE, *(chunk.whole for chunk in kept if chunk is not None)])
