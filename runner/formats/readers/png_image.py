"""Reads one PNG image of a size and kind that are known beforehand.

A kilobyte of PNG can stand for gigapixels. So the image's header is compared with what is due before anything else is
read; then the chunks are walked, each with its length and checksum; then the pixels are inflated up to the one size
they may have. Only what passed all this is given to Pillow, and only the chunks that make the pixels: text, colour
profiles and other attachments, which can be bombs of their own, are neither unpacked nor passed on.
"""

import io
import warnings
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin  # noqa: F401  the plugin: a confined child may not be able to import it
from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.readers.confined import confined_call, garbled, told
from runner.formats.readers.file_bytes import in_memory, read_bytes
from runner.formats.readers.png_chunks import Parts, judge_header, read_header, split_chunks
from runner.formats.readers.png_rule import SAMPLES, Fault, Mode, PngCaps, PngRule, sentences
from runner.formats.readers.problems import ProblemList

_PILLOW = {Mode.GREY: "L", Mode.RGB: "RGB", Mode.INDEX: "P"}


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
    header = read_header(descriptor, problems)
    if header is not None:
        judge_header(header, rule, caps, problems)
    if header is None or problems.count:
        return None
    content = read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
        return None
    parts = Parts(header, rule.mode)
    for chunk in split_chunks(content, caps, problems):
        parts.take(chunk, problems)
    parts.finish(caps, problems)
    if problems.count or not _inflates(parts, problems):
        return None
    pixels = _decode(parts, problems)
    if pixels is not None:
        _judge_pixels(pixels, parts, rule, problems)
    return pixels


def _inflates(parts: Parts, problems: ProblemList) -> bool:
    """Whether the pixels are as many bytes as they must be, no byte more being unpacked, and every filter is known."""
    header = parts.header
    stride = 1 + (header.width * header.bits * SAMPLES[parts.mode] + 7) // 8
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
        problems.add(Fault.PIXELS_END)
    elif (strange := np.frombuffer(rows, np.uint8)[::stride] > 4).any():
        problems.add(Fault.FILTER.format(row=int(np.argmax(strange))))
    else:
        return True
    return False


def _decode(parts: Parts, problems: ProblemList) -> NDArray[np.uint8] | None:
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


def _judge_pixels(pixels: NDArray[np.uint8], parts: Parts, rule: PngRule, problems: ProblemList) -> None:
    if rule.mode is Mode.INDEX and (place := _first_above(pixels, parts.colours - 1)):
        problems.add(Fault.NOT_IN_PALETTE.format(row=place[0], column=place[1]), value=str(int(pixels[place])))
    elif place := _first_above(pixels, rule.maximum):
        problems.add(Fault.VALUE.format(row=place[0], column=place[1], due=rule.maximum), value=str(int(pixels[place])))


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
        sentences=lambda: sentences(rule),
        array_bytes=caps.pixel_bytes,
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
    samples = () if SAMPLES[rule.mode] == 1 else (SAMPLES[rule.mode],)
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
        with in_memory(content) as descriptor:
            pack(read_in_child({"rule": _RULE.dump_python(rule, mode="json"), "caps": {}}, [descriptor]))
