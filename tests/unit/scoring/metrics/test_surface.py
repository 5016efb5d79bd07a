"""Outlines: by hand, and against distances taken pixel by pixel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.scoring.metrics import Undefined, normalised_surface_distance, outline

Region = NDArray[np.bool_]


def square(row: int, column: int, side: int = 6) -> Region:
    region = np.zeros((20, 20), dtype=np.bool_)
    region[row : row + side, column : column + side] = True
    return region


def nsd(reference: Region, prediction: Region, tolerance: float) -> float:
    return normalised_surface_distance(reference, prediction, tolerance=tolerance, undefined=Undefined.FAIL)


def test_the_outline_is_inside_and_the_edge_of_the_image_is_outside() -> None:
    ring = outline(square(3, 3))
    assert ring.sum() == 20
    assert not (ring & ~square(3, 3)).any()
    assert outline(np.ones((4, 5), dtype=np.bool_)).tolist() == [
        [True] * 5,
        [True, False, False, False, True],
        [True, False, False, False, True],
        [True] * 5,
    ]
    # a corner outside is no neighbour
    bent = np.ones((5, 5), dtype=np.bool_)
    bent[0, 0] = False
    assert not outline(bent)[1, 1]


def test_a_shift_is_forgiven_up_to_the_tolerance() -> None:
    reference, shifted = square(3, 3), square(3, 5)
    assert nsd(reference, shifted, 2) == 1.0
    # 20 pixels each; on the lines above and below, 4 of 6 coincide, and the two sides are 2 away
    assert nsd(reference, shifted, 0) == 8 / 20
    assert nsd(reference, reference, 0) == 1.0
    assert nsd(square(0, 0), square(14, 14), 2) == 0.0


def test_absent_classes() -> None:
    empty = np.zeros((20, 20), dtype=np.bool_)
    assert nsd(square(3, 3), empty, 100) == nsd(empty, square(3, 3), 100) == 0.0
    values = [
        normalised_surface_distance(empty, empty, tolerance=1, undefined=undefined)
        for undefined in (Undefined.ZERO, Undefined.ONE, Undefined.LEFT_OUT)
    ]
    assert values[:2] == [0.0, 1.0]
    assert np.isnan(values[2])
    with pytest.raises(ValueError, match="absent from both masks is undefined"):
        nsd(empty, empty, 1)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan")])
def test_a_tolerance_must_be_a_distance(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        nsd(square(3, 3), square(3, 3), tolerance)
    with pytest.raises(ValueError, match="shapes differ"):
        nsd(square(3, 3), square(3, 3)[1:], 1)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 1.5, 2.0, 5.0]))
def test_it_agrees_with_distances_pixel_by_pixel(seed: int, tolerance: float) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 15, 2).tolist())
    one, other = (rng.random(shape) < rng.choice([0.1, 0.5, 0.9]) for _ in range(2))
    if not one.any() or not other.any():
        return
    a, b = np.argwhere(outline(one)), np.argwhere(outline(other))
    distances = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    near = (distances.min(axis=1) <= tolerance).sum() + (distances.min(axis=0) <= tolerance).sum()
    ours = nsd(one, other, tolerance)
    assert ours == pytest.approx(near / (len(a) + len(b)), abs=1e-12)
    assert ours == pytest.approx(nsd(other, one, tolerance), abs=1e-12)
    assert nsd(one, other, tolerance + 1) >= ours
