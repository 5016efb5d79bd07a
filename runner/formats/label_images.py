"""Reads a folder with a label image a frame, some images at a time, and never holds more than those.

``read_images`` meets the bytes and runs in a confined child. ``confined_read`` looks at every image once, and keeps
none: what it answers reads them again, each time it is asked, and checks what the child answers each time. Sentences
are ours: a frame is named by its place in the case. What a container wrote goes into ``Problem.value`` alone.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter

from runner.challenge.formats import LabelImagesFormat
from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.errors import HostFault, UsageError
from runner.formats.contract import Due, LabelImages, Reading, Role
from runner.formats.palette import Colour, Palette
from runner.formats.readers import png_image, png_rule
from runner.formats.readers.confined import confined_call, garbled, told
from runner.formats.readers.file_bytes import in_memory
from runner.formats.readers.png_chunks import read_header
from runner.formats.readers.png_image import read_png
from runner.formats.readers.png_rule import SAMPLES, TYPES, Mode, PngCaps, PngRule
from runner.formats.readers.problems import ProblemList, any_of, sentence_pattern

Pixels = NDArray[np.uint8]
_Value = TypeVar("_Value")

MOST_IMAGES = 8
"""Images a call: the descriptors that a call takes."""

_MOST_LABELS = 16 << 20
"""Bytes of labels a call."""

_MOST_COLOURS = 255
_ATTACHED = 1 << 20


class Fault(StrEnum):
    """Every sentence about a label image, but for those about a PNG file."""

    MISSING = "the image is missing"
    LINK = "the image is no regular file"
    UNREADABLE = "the image cannot be opened"
    COLOUR = "pixel [{row}, {column}]: the colour is that of no class; of such pixels there are {count}"
    CLASS = "pixel [{row}, {column}]: the value is no class; of such pixels there are {count}"


_FRAME = "frame {frame} of {frames}: {sentence}"
_STOPPED = "frames {first} to {last} of {frames}: {sentence}"


@dataclass(frozen=True, kw_only=True)
class ImageRule:
    """What a child must know of a format.

    Attributes:
        width: Pixels a row.
        height: Rows.
        classes: Numbers of the classes.
        colours: Their colours in the same order; empty where a pixel holds the number itself.
    """

    width: int
    height: int
    classes: tuple[int, ...]
    colours: tuple[Colour, ...]

    @property
    def caps(self) -> PngCaps:
        """How large a file may be: pixels that nothing compresses, what PNG adds to them, and some text."""
        pixels = self.width * self.height * (3 if self.colours else 1)
        return PngCaps(size=pixels + pixels // 32 + 2 * self.height + 2 * _ATTACHED, attached=_ATTACHED)

    def png(self, mode: Mode) -> PngRule:
        """What is asked of the PNG file."""
        return PngRule(mode=mode, width=self.width, height=self.height)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """What a pixel may hold."""
        return (Mode.RGB,) if self.colours else (Mode.GREY, Mode.INDEX)

    @property
    def legal(self) -> NDArray[np.bool_]:
        """Whether a number is a class, shape ``(256,)``."""
        return np.isin(np.arange(256), self.classes)


def image_rule(rule: LabelImagesFormat) -> ImageRule:
    """The rule of a task's images.

    Raises:
        UsageError: They are larger, or of more colours, than are read.
    """
    coloured = rule.coding == "colour"
    found = ImageRule(
        width=rule.width,
        height=rule.height,
        classes=tuple(rule.classes),
        colours=tuple(one.colour for one in rule.classes.values() if one.colour is not None) if coloured else (),
    )
    remedy = "change the task's format in challenge.yaml"
    if (most := found.caps.pixel_bytes) < rule.width * rule.height * SAMPLES[found.modes[0]]:
        what = f"images of {rule.width} × {rule.height} pixels have more than the {most} bytes that are read"
        raise UsageError(what, remedy=remedy)
    if len(found.colours) > _MOST_COLOURS:
        raise UsageError(f"there are more than {_MOST_COLOURS} classes with colours", remedy=remedy)
    return found


# The child's side.


def read_images(
    rule: ImageRule, descriptors: Sequence[int], *, first: int, frames: int, problems: ProblemList
) -> Iterator[Pixels]:
    """Read some images; to be called in a confined child.

    Args:
        rule: What they must look like.
        descriptors: The files, open for reading.
        first: Which frame of the case the first of them is, from 1.
        frames: How many the case has.
        problems: What is wrong is added here.

    Yields:
        The sound ones: numbers of classes, shape ``(height, width)``.
    """
    legal, palette = rule.legal, Palette(rule.colours) if rule.colours else None
    for frame, descriptor in enumerate(descriptors, start=first):
        found = ProblemList()
        pixels = read_png(descriptor, rule=rule.png(_mode_of(rule, descriptor)), caps=rule.caps, problems=found)
        if pixels is not None:
            labels = _of_values(pixels, legal, found) if palette is None else _of_colours(pixels, palette, rule, found)
            if not found.count:
                yield labels
        named = [replace(one, what=_FRAME.format(frame=frame, frames=frames, sentence=one.what)) for one in found.kept]
        problems.take(ProblemList(kept=named, count=found.count))


def _mode_of(rule: ImageRule, descriptor: int) -> Mode:
    """What a pixel of this file holds, as far as that is left open."""
    header = read_header(descriptor, ProblemList())
    found = None if header is None else header.colour_type
    return next((mode for mode in rule.modes if TYPES[mode] == found), rule.modes[0])


def _of_values(pixels: Pixels, legal: NDArray[np.bool_], problems: ProblemList) -> Pixels:
    strangers = ~legal[pixels]
    if count := int(np.count_nonzero(strangers)):
        row, column = divmod(int(strangers.argmax()), pixels.shape[1])
        value = str(int(pixels[row, column]))
        problems.add(Fault.CLASS.format(row=row, column=column, count=count), value=value)
    return pixels


def _of_colours(pixels: Pixels, palette: Palette, rule: ImageRule, problems: ProblemList) -> Pixels:
    decoded = palette.decode(pixels)
    if decoded.place is not None:
        row, column = decoded.place
        problems.add(Fault.COLOUR.format(row=row, column=column, count=decoded.unknown), value=str(decoded.colour))
        return decoded.labels
    return np.array(rule.classes, dtype=np.uint8)[decoded.labels]


_RULE = TypeAdapter(ImageRule)


def check_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Look at some images, and keep none."""
    problems = ProblemList()
    for _ in _asked(request, descriptors, problems):
        pass
    return Reply(header=told(problems))


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Read some images; where one has a problem, none is answered."""
    problems = ProblemList()
    rule = _RULE.validate_python(request["rule"])
    labels = np.empty((len(descriptors), rule.height, rule.width), np.uint8)
    for place, one in enumerate(_asked(request, descriptors, problems)):
        labels[place] = one
    return Reply(header=told(problems), arrays={} if problems.count else {"labels": labels})


def _asked(request: Mapping[str, JsonValue], descriptors: Sequence[int], problems: ProblemList) -> Iterator[Pixels]:
    rule, first, frames = _RULE.validate_python(request["rule"]), request["first"], request["frames"]
    assert isinstance(first, int)
    assert isinstance(frames, int)
    return read_images(rule, descriptors, first=first, frames=frames, problems=problems)


# The parent's side.


def confined_read(
    confine: Confine,
    rule: LabelImagesFormat,
    path: Path,
    *,
    due: Due,
    role: Role,  # noqa: ARG001  the same for whoever wrote it
) -> Reading:
    """Look at every image of a folder, in children that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the images must be.
        path: The folder; of its files those count that the format names, one a frame.
        due: The case.
        role: Of no meaning here.

    Returns:
        The images, to be read one after the other; or the problems, in the order of the frames. Where a reader stops,
        nothing behind it is read.

    Raises:
        UsageError: The case has no frames, or the images are larger than are read.
        HostFault: No child could be started.
    """
    if not due.frames:
        raise UsageError(
            "label images are due for every frame, and the case has no frames",
            remedy="choose another format in challenge.yaml, or inputs that have frames",
        )
    folder = _Folder(confine, image_rule(rule), path, names_of(rule, due))
    problems = folder.check()
    if problems.count:
        return Reading(prediction=None, problems=tuple(problems.kept), problem_count=problems.count)
    return Reading(prediction=LabelImages(frames=len(due.frames), read=folder.read))


def names_of(rule: LabelImagesFormat, due: Due) -> tuple[str, ...]:
    """Names of the files that are due in a case's folder, in the order of its frames."""
    name = rule.file.rpartition("/")[2]
    return tuple(name.replace("{frame}", stem) for stem in due.stems)


class _Folder:
    """A case's images."""

    def __init__(self, confine: Confine, rule: ImageRule, path: Path, names: Sequence[str]) -> None:
        self._confine = confine
        self._rule = rule
        self._path = path
        self._frames = names
        self._images = max(1, min(MOST_IMAGES, _MOST_LABELS // (rule.width * rule.height)))

    def check(self) -> ProblemList:
        """Look at every image; what is wrong, in the order of the frames."""
        problems = ProblemList()
        for first, descriptors in self._batches(problems):
            found = ProblemList()
            sound = self._call("check_in_child", first, descriptors, check=_nothing, array_bytes=0, problems=found)
            problems.take(found)
            if sound is None and _is_stop(found):
                break
        return problems

    def read(self) -> Iterator[Pixels]:
        """Begin anew: each image, as ``LabelImages`` has it.

        Raises:
            HostFault: An image that was sound is so no more, or no child could be started.
        """
        problems = ProblemList()
        for first, descriptors in self._batches(problems):
            self._refuse(problems)
            labels = self._call(
                "read_in_child",
                first,
                descriptors,
                check=partial(_check_labels, rule=self._rule, images=len(descriptors)),
                array_bytes=len(descriptors) * self._rule.width * self._rule.height,
                problems=problems,
            )
            self._refuse(problems)
            assert labels is not None
            for place in range(len(labels)):
                yield labels[place].copy()
            del labels  # so that the next ones find room
        self._refuse(problems)

    def _refuse(self, problems: ProblemList) -> None:
        if problems.count:
            raise HostFault(
                f"label images that were sound cannot be read any more: {problems.kept[0].what}",
                remedy="did somebody change the files? is the disk sound?",
            )

    def _batches(self, problems: ProblemList) -> Iterator[tuple[int, Sequence[int]]]:
        """Open images that lie one after the other, some at a time, each batch with the number of its first frame."""
        batch: list[int] = []
        try:
            for frame, name in enumerate(self._frames, start=1):
                opened = _open(self._path / name)
                if isinstance(opened, int):
                    batch.append(opened)
                if batch and (not isinstance(opened, int) or len(batch) == self._images or frame == len(self._frames)):
                    yield frame - len(batch) + isinstance(opened, int), batch
                    _close(batch)
                if not isinstance(opened, int):
                    problems.add(_FRAME.format(frame=frame, frames=len(self._frames), sentence=opened))
        finally:
            _close(batch)

    def _call(
        self,
        function: str,
        first: int,
        descriptors: Sequence[int],
        *,
        check: Callable[[Reply], _Value],
        array_bytes: int,
        problems: ProblemList,
    ) -> _Value | None:
        found, last, frames = ProblemList(), first + len(descriptors) - 1, len(self._frames)
        value = confined_call(
            self._confine,
            f"runner.formats.label_images.{function}",
            {"rule": _RULE.dump_python(self._rule, mode="json"), "first": first, "frames": frames},
            descriptors[0],
            sentences=lambda: sentences(self._rule, range(first, last + 1), frames),
            array_bytes=array_bytes,
            check=check,
            problems=found,
            beside=descriptors[1:],
        )
        if value is None and _is_stop(found):
            what = _STOPPED.format(first=first, last=last, frames=frames, sentence=found.kept[0].what)
            found = ProblemList(kept=[replace(found.kept[0], what=what)], count=1)
        problems.take(found)
        return value


def _open(path: Path) -> int | Fault:
    """A file to be read; or why it is not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Fault.MISSING
    except OSError as error:
        return Fault.LINK if error.errno == errno.ELOOP else Fault.UNREADABLE
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return Fault.LINK


def _close(batch: list[int]) -> None:
    while batch:
        os.close(batch.pop())


def _is_stop(problems: ProblemList) -> bool:
    """Whether this is the end of a reader: the only sentence that names no single frame."""
    return any(not one.what.startswith("frame ") for one in problems.kept)


def sentences(rule: ImageRule, numbers: Sequence[int], frames: int) -> re.Pattern[str]:
    """What may be said of these frames."""
    pixels = rule.width * rule.height
    own = sentence_pattern(
        (Fault.COLOUR, Fault.CLASS),
        row=_up_to(rule.height),
        column=_up_to(rule.width),
        count=_up_to(pixels),
    )
    said = "|".join([own.pattern, *(png_rule.sentences(rule.png(mode)).pattern for mode in rule.modes)])
    return re.compile(f"frame (?:{any_of(numbers)}) of {frames}: (?:{said})")


def _up_to(most: int) -> str:
    return f"(?:0|[1-9][0-9]{{0,{len(str(most)) - 1}}})"


def _nothing(reply: Reply) -> bool:
    if reply.arrays:
        raise garbled("its answer has arrays, and none are due")
    return True


def _check_labels(reply: Reply, *, rule: ImageRule, images: int) -> Pixels:
    """Believe nothing: the child may no longer be ours."""
    labels = reply.arrays.get("labels")
    if labels is None or len(reply.arrays) != 1:
        raise garbled("its answer lacks the labels, or has more")
    if labels.dtype != np.uint8 or labels.shape != (images, rule.height, rule.width):
        raise garbled("its answer is of another type or shape")
    checked = labels.astype(np.uint8, copy=False)
    if not rule.legal[checked].all():
        raise garbled("its answer holds numbers that are no class")
    return checked


def warm_up() -> None:
    """Read good and bad images once; for the fork server."""
    png_image.warm_up()
    coloured = ImageRule(width=2, height=2, classes=(0, 1), colours=((0, 0, 0), (1, 1, 1)))
    plain = replace(coloured, colours=())
    for rule, mode in ((coloured, "RGB"), (plain, "L")):
        for colour in (0, 5):
            file = io.BytesIO()
            Image.new(mode, (2, 2), colour).save(file, "PNG")
            with in_memory(file.getvalue()) as descriptor:
                pack(read_in_child({"rule": _RULE.dump_python(rule), "first": 1, "frames": 1}, [descriptor]))
