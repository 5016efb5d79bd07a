"""Label images in pipes: in order, as they were, and nobody waits for ever."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.errors import HostFault, ScorerFault
from runner.formats.contract import LabelImages
from runner.formats.image_stream import BrokenStreamError, ReadTwiceError, arriving, fed

Pixels = NDArray[np.uint8]
FRAMES = 12


def image(number: int) -> Pixels:
    """More than a pipe holds."""
    return np.random.default_rng(number).integers(0, 256, (300, 500), np.uint8)


def images(*, fails_at: int = -1, begun: list[int] | None = None) -> LabelImages:
    def read() -> Iterator[Pixels]:
        for number in range(FRAMES):
            if number == fails_at:
                raise HostFault("the disk is gone")
            if begun is not None:
                begun.append(number)
            yield image(number)

    return LabelImages(frames=FRAMES, read=read)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208
    yield
    assert (set(os.listdir("/proc/self/fd")), threading.active_count()) == before  # noqa: PTH208


def test_images_arrive_as_they_were() -> None:
    with fed(images()) as descriptor:
        for number, found in enumerate(arriving(descriptor, frames=FRAMES, side="reference")):
            assert np.array_equal(found, image(number))
    assert number == FRAMES - 1


@pytest.mark.parametrize("in_step", [True, False])
def test_two_sides_are_read_in_step_or_one_after_the_other(*, in_step: bool) -> None:
    with ExitStack() as stack:
        sides = [
            arriving(stack.enter_context(fed(images())), frames=FRAMES, side=side)
            for side in ("reference", "prediction")
        ]
        if in_step:
            equal = [np.array_equal(one, other) for one, other in zip(*sides, strict=True)]
        else:
            equal = [np.array_equal(found, image(n)) for side in reversed(sides) for n, found in enumerate(side)]
    assert equal == [True] * (FRAMES if in_step else 2 * FRAMES)


@pytest.mark.parametrize("read", [0, 1, 5])
def test_who_has_enough_may_stop(read: int) -> None:
    begun: list[int] = []
    with fed(images(begun=begun)) as descriptor:
        found = iter(arriving(descriptor, frames=FRAMES, side="reference"))
        for number in range(read):
            assert np.array_equal(next(found), image(number))
    assert read <= len(begun) <= read + 2


@pytest.mark.parametrize("failure", [ScorerFault("it died"), HostFault("no child"), None])
def test_an_image_that_cannot_be_read_counts_before_what_came_of_it(failure: Exception | None) -> None:
    def use(descriptor: int) -> None:
        found = iter(arriving(descriptor, frames=FRAMES, side="reference"))
        for _ in range(3):
            next(found)
        with pytest.raises(BrokenStreamError):
            next(found)
        if failure is not None:
            raise failure

    with pytest.raises(HostFault, match="the disk is gone"), fed(images(fails_at=3)) as descriptor:
        use(descriptor)


def test_a_failure_of_the_block_stays_where_images_are_sound() -> None:
    with pytest.raises(ScorerFault, match="it died"), fed(images()):
        raise ScorerFault("it died")


def test_images_are_read_once() -> None:
    with fed(images()) as descriptor:
        side = arriving(descriptor, frames=FRAMES, side="prediction")
        next(side.read())
        with pytest.raises(ReadTwiceError, match="the images of the prediction can be read once; keep what is needed"):
            side.read()


def test_who_begins_in_the_middle_is_told() -> None:
    with fed(images()) as descriptor:
        next(arriving(descriptor, frames=FRAMES, side="reference").read())
        with pytest.raises(BrokenStreamError):
            next(arriving(descriptor, frames=FRAMES, side="reference").read())
        os.read(descriptor, 7)
        with pytest.raises(BrokenStreamError):
            next(arriving(descriptor, frames=FRAMES, side="reference").read())
