"""Reads a folder with a label image a frame, some images at a time, and never holds more than those.

``read_images`` meets the bytes and runs in a confined child. ``confined_read`` looks at every image once, and keeps
none: what it answers reads them again, each time it is asked, and checks what the child answers each time. Sentences
are ours: a frame is named by its place in the case. What a container wrote goes into ``Problem.value`` alone.
"""

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from runner.formats.image_rule import FRAME, STOPPED, Fault, ImageRule, image_rule, names_of, sentences
from runner.formats.lenience import filled_note
from runner.formats.palette import Palette
from runner.formats.readers import png_image
from runner.formats.readers.confined import confined_call, garbled, told
from runner.formats.readers.file_bytes import in_memory
from runner.formats.readers.png_chunks import read_header
from runner.formats.readers.png_image import read_png
from runner.formats.readers.png_rule import TYPES, Mode
from runner.formats.readers.problems import ProblemList

__all__ = ["confined_read", "image_rule", "names_of", "read_images", "sentences"]

Pixels = NDArray[np.uint8]
_Value = TypeVar("_Value")

MOST_IMAGES = 8
"""Images a call: the descriptors that a call takes."""

_MOST_LABELS = 16 << 20
"""Bytes of labels a call."""

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
        named = [replace(one, what=FRAME.format(frame=frame, frames=frames, sentence=one.what)) for one in found.kept]
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
    role: Role,
    sound: bool = False,
) -> Reading:
    """Look at every image of a folder, in children that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the images must be.
        path: The folder; of its files those count that the format names, one a frame.
        due: The case.
        role: A prediction may lack images where challenge.yaml states what they count as.
        sound: They were looked at before: each is looked at again only when it is read.

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
    fill = None if role is Role.REFERENCE or rule.missing_frames == "refuse" else rule.missing_frames
    folder = _Folder(confine, image_rule(rule), path, names_of(rule, due), fill=fill)
    problems = folder.find_missing() if sound else folder.check()
    if problems.count:
        return Reading(prediction=None, problems=tuple(problems.kept), problem_count=problems.count)
    notes: tuple[str, ...] = ()
    if fill is not None and folder.missing:
        label = f"wholly {fill} ({rule.classes[fill].name})"
        notes = (filled_note(len(folder.missing), len(due.frames), "image", label),)
    return Reading(prediction=LabelImages(frames=len(due.frames), read=folder.read), notes=notes)


class _Folder:
    """A case's images.

    Attributes:
        missing: Frames, from 1, that have no image and count as one of a single class.
    """

    def __init__(
        self, confine: Confine, rule: ImageRule, path: Path, names: Sequence[str], *, fill: int | None
    ) -> None:
        """``fill``: the class of a frame without an image; None where it is a problem."""
        self._confine = confine
        self._rule = rule
        self._path = path
        self._frames = names
        self._fill = fill
        self.missing: frozenset[int] = frozenset()
        self._images = max(1, min(MOST_IMAGES, _MOST_LABELS // (rule.width * rule.height)))

    def find_missing(self) -> ProblemList:
        """Say which frames have no image, where that is allowed; a problem where none has."""
        problems = ProblemList()
        if self._fill is not None:
            self.missing = frozenset(
                frame for frame, name in enumerate(self._frames, start=1) if _is_missing(self._path / name)
            )
            if len(self.missing) == len(self._frames):
                problems.add(Fault.NO_IMAGES.format(frames=len(self._frames)))
        return problems

    def check(self) -> ProblemList:
        """Look at every image; what is wrong, in the order of the frames."""
        problems = self.find_missing()
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
        problems, due = ProblemList(), 1
        for first, descriptors in self._batches(problems):
            self._refuse(problems)
            yield from self._filled(first - due)
            due = first + len(descriptors)
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
        yield from self._filled(len(self._frames) + 1 - due)

    def _filled(self, images: int) -> Iterator[Pixels]:
        """Images of frames that have none; there are such frames only where it is stated what they count as."""
        for _ in range(images):
            assert self._fill is not None
            yield np.full((self._rule.height, self._rule.width), self._fill, np.uint8)

    def _refuse(self, problems: ProblemList) -> None:
        if problems.count:
            raise HostFault(
                f"label images that were sound cannot be read any more: {problems.kept[0].what}",
                where=str(self._path),
                remedy="did somebody change the files? is the disk sound?",
            )

    def _batches(self, problems: ProblemList) -> Iterator[tuple[int, Sequence[int]]]:
        """Open images that lie one after the other, some at a time, each batch with the number of its first frame."""
        batch: list[int] = []
        try:
            for frame, name in enumerate(self._frames, start=1):
                opened = Fault.MISSING if frame in self.missing else _open(self._path / name)
                if isinstance(opened, int):
                    batch.append(opened)
                if batch and (not isinstance(opened, int) or len(batch) == self._images or frame == len(self._frames)):
                    yield frame - len(batch) + isinstance(opened, int), batch
                    _close(batch)
                if not isinstance(opened, int) and frame not in self.missing:
                    problems.add(FRAME.format(frame=frame, frames=len(self._frames), sentence=opened))
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
            what = STOPPED.format(first=first, last=last, frames=frames, sentence=found.kept[0].what)
            found = ProblemList(kept=[replace(found.kept[0], what=what)], count=1)
        problems.take(found)
        return value


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:  # it is there in some way, and opening it says what is wrong
        return False
    return False


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
