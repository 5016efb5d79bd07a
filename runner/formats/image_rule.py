"""What is asked of a label image, and every sentence in which one can be refused."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import LabelImagesFormat
from runner.errors import UsageError
from runner.formats.contract import Due
from runner.formats.palette import Colour
from runner.formats.readers import png_rule
from runner.formats.readers.png_rule import SAMPLES, Mode, PngCaps, PngRule
from runner.formats.readers.problems import any_of, sentence_pattern

_MOST_COLOURS = 255
_ATTACHED = 1 << 20


class Fault(StrEnum):
    """Every sentence about a label image, but for those about a PNG file."""

    MISSING = "the image is missing"
    NO_IMAGES = "there is an image for none of the {frames} frames"
    LINK = "the image is no regular file"
    UNREADABLE = "the image cannot be opened"
    COLOUR = "pixel [{row}, {column}]: the colour is that of no class; of such pixels there are {count}"
    CLASS = "pixel [{row}, {column}]: the value is no class; of such pixels there are {count}"


FRAME = "frame {frame} of {frames}: {sentence}"
STOPPED = "frames {first} to {last} of {frames}: {sentence}"


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


def names_of(rule: LabelImagesFormat, due: Due) -> tuple[str, ...]:
    """Names of the files that are due in a case's folder, in the order of its frames."""
    name = rule.file.rpartition("/")[2]
    return tuple(name.replace("{frame}", stem) for stem in due.stems)


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
