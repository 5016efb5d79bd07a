"""Outlines of masks, compared with a tolerance."""

import numpy as np
from numpy.typing import NDArray

from runner.scoring.metrics.policies import Undefined, settled

Region = NDArray[np.bool_]


def normalised_surface_distance(
    reference: Region, prediction: Region, *, tolerance: float, undefined: Undefined
) -> float:
    """Share of both outlines that lies within a tolerance of the other one.

    (|{x in dG: d(x, dP) <= t}| + |{x in dP: d(x, dG) <= t}|) / (|dG| + |dP|), d Euclidean. The outline d of a
    region is its pixels with one of the four neighbours outside; beyond the image's edge is outside.

    Args:
        reference: The pixels of one class, shape ``(height, width)``.
        prediction: The same shape.
        tolerance: t in pixels, >= 0.
        undefined: What a class absent from both masks counts as; ``LEFT_OUT`` is NaN. Absent from one only it is 0.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: The shapes differ, the tolerance is negative, or the class is absent and the policy is ``FAIL``.

    Source:
        Nikolov et al., Clinically applicable segmentation of head and neck anatomy for radiotherapy, JMIR 23(7), 2021,
        surface Dice, with outlines counted in pixels in place of lengths.
    """
    if reference.shape != prediction.shape or reference.ndim != 2:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    if not tolerance >= 0:
        raise ValueError(f"the tolerance {tolerance} is not a number of pixels >= 0")
    box = _box(reference | prediction)
    if box is None:
        return settled(undefined, "the surface distance of a class absent from both masks")
    if not reference.any() or not prediction.any():
        return 0.0
    theirs, ours = outline(reference)[box], outline(prediction)[box]
    near = (_distances(ours)[theirs] <= tolerance).sum() + (_distances(theirs)[ours] <= tolerance).sum()
    return float(near / (theirs.sum() + ours.sum()))


def outline(region: Region) -> Region:
    """The pixels of a region with one of the four neighbours outside it; shapes ``(height, width)``."""
    padded = np.pad(region, 1)
    inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return region & ~inside


def _box(region: Region) -> tuple[slice, slice] | None:
    """The smallest box around all pixels: distances between them are not changed by what lies outside."""
    rows, columns = np.flatnonzero(region.any(axis=1)), np.flatnonzero(region.any(axis=0))
    if not rows.size:
        return None
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _distances(line: Region) -> NDArray[np.float64]:
    from scipy.ndimage import distance_transform_edt  # noqa: PLC0415  a quarter of a second, and few need it

    found: NDArray[np.float64] = distance_transform_edt(~line)
    return found
