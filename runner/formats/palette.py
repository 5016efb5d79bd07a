"""Colours of a label image become class indices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
Pixels = NDArray[np.uint8]
_RUN = 4
"""Where runs are shorter than this on average, each pixel is looked up: a run costs about as much as 4 pixels."""


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """What a colour image says.

    Args:
        labels: Class indices, shape ``(height, width)``; unknown pixels hold ``len(palette)``.
        unknown: How many pixels have a colour that is not of the palette.
        place: Row and column of the first of them in reading order, or None.
        colour: Its colour, or None.
    """

    labels: Pixels
    unknown: int
    place: tuple[int, int] | None
    colour: Colour | None


class Palette:
    """Colours in the order of their class indices.

    Args:
        colours: 1 to 255 different colours, each red, green and blue in 0 to 255.

    Raises:
        ValueError: A colour is doubled or out of range, or there are too many.
    """

    def __init__(self, colours: Sequence[Colour]) -> None:
        table = np.array(colours, dtype=np.int64).reshape(-1, 3)
        if not 1 <= len(table) <= 255 or table.min() < 0 or table.max() > 255:
            raise ValueError("a palette holds 1 to 255 colours of three numbers from 0 to 255")
        codes = _codes(table.astype(np.uint8))
        if len(np.unique(codes)) != len(codes):
            raise ValueError("a colour stands twice in the palette")
        self._order = np.argsort(codes).astype(np.uint8)
        self._codes = codes[self._order]

    def __len__(self) -> int:
        return len(self._codes)

    def decode(self, image: Pixels) -> Decoded:
        """Look up each pixel.

        Args:
            image: uint8, shape ``(height, width, 3)``.

        Raises:
            ValueError: The image has another shape or type.
        """
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise ValueError(
                f"an image of uint8 and shape (height, width, 3) is needed, not {image.dtype} {image.shape}"
            )
        height, width = image.shape[:2]
        flat = image.reshape(-1, 3)
        starts = _run_starts(flat)
        if starts.size * _RUN <= len(flat):
            labels = self._look_up(flat[starts]).repeat(np.diff(starts, append=len(flat)))
        else:
            labels = self._look_up(flat)
        strangers = labels == len(self)
        if not strangers.any():
            return Decoded(labels=labels.reshape(height, width), unknown=0, place=None, colour=None)
        first = int(strangers.argmax())
        red, green, blue = flat[first].tolist()
        return Decoded(
            labels=labels.reshape(height, width),
            unknown=int(strangers.sum()),
            place=(first // width, first % width),
            colour=(red, green, blue),
        )

    def _look_up(self, colours: Pixels) -> Pixels:
        codes = _codes(colours)
        nearest = np.minimum(np.searchsorted(self._codes, codes), len(self) - 1)
        return np.where(self._codes[nearest] == codes, self._order[nearest], np.uint8(len(self)))


def _codes(colours: Pixels) -> NDArray[np.uint32]:
    wide = colours.astype(np.uint32)
    codes: NDArray[np.uint32] = (wide[:, 0] << np.uint32(16)) | (wide[:, 1] << np.uint32(8)) | wide[:, 2]
    return codes


def _run_starts(flat: Pixels) -> NDArray[np.intp]:
    """The first pixel of each run of one colour."""
    values = flat.reshape(-1)
    # Bytes are compared three apart, which needs no three-byte pixels; a change is a change of its pixel.
    changed = np.flatnonzero(values[3:] != values[:-3]) // 3 + 1
    new = np.diff(changed, prepend=0) > 0
    return np.concatenate([np.zeros(min(1, len(flat)), dtype=np.intp), changed[new]])
