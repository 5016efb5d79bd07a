"""Colours become indices, in long runs and in noise, and a stranger is named with its place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.formats.palette import Palette

# Neighbours that differ in one channel only, and an order that is not the order of the numbers.
COLOURS = ((0, 0, 0), (0, 255, 255), (0, 255, 0), (255, 55, 0), (24, 55, 125), (255, 255, 125), (255, 255, 124))
PALETTE = Palette(COLOURS)
TABLE = np.array(COLOURS, dtype=np.uint8)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5, 30, 1000]))
def test_each_pixel_gets_the_index_of_its_colour(seed: int, run: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 20, 2).tolist()
    labels = rng.integers(0, 7, height * width // run + 1).repeat(run)[: height * width].reshape(height, width)
    decoded = PALETTE.decode(TABLE[labels])
    assert decoded.labels.dtype == np.uint8
    assert decoded.labels.tolist() == labels.tolist()
    assert (decoded.unknown, decoded.place, decoded.colour) == (0, None, None)


@pytest.mark.parametrize("run", [1, 30])
def test_the_first_stranger_is_named(run: int) -> None:
    labels = np.arange(12 * 60).reshape(12, 60) // run % 7
    image = TABLE[labels]
    image[3, 5] = (0, 255, 1)
    image[7, 1] = (255, 255, 255)
    decoded = PALETTE.decode(image)
    assert (decoded.unknown, decoded.place, decoded.colour) == (2, (3, 5), (0, 255, 1))
    assert decoded.labels[3, 5] == decoded.labels[7, 1] == 7
    labels[3, 5] = labels[7, 1] = 7
    assert decoded.labels.tolist() == labels.tolist()


def test_a_view_of_an_image_is_read_as_it_looks() -> None:
    labels = np.arange(48).reshape(6, 8) % 7
    image = TABLE[labels]
    assert PALETTE.decode(image[::-1, ::2]).labels.tolist() == labels[::-1, ::2].tolist()
    assert PALETTE.decode(image[:0]).labels.shape == (0, 8)


@pytest.mark.parametrize(
    "colours", [[], [(0, 0, 256)], [(0, -1, 0)], [(n, 0, 0) for n in range(256)], [(1, 2, 3), (0, 0, 0), (1, 2, 3)]]
)
def test_a_palette_must_tell_classes_apart(colours: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ValueError, match="palette"):
        Palette(colours)


def test_the_largest_palette() -> None:
    palette = Palette([(255 - n, n, 7) for n in range(255)])
    assert len(palette) == 255
    image = np.array([[(255 - n, n, 7) for n in range(255)] + [(0, 255, 7)]], dtype=np.uint8)
    decoded = palette.decode(image)
    assert decoded.labels[0].tolist() == list(range(256))
    assert decoded.unknown == 1


@pytest.mark.parametrize("image", [np.zeros((2, 2), np.uint8), np.zeros((2, 2, 4), np.uint8), np.zeros((2, 2, 3))])
def test_other_arrays_are_refused(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    with pytest.raises(ValueError, match=r"shape \(height, width, 3\) is needed"):
        PALETTE.decode(image)
