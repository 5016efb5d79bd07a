"""Label images: every problem with its frame, little in memory, and nothing of a child believed."""

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from runner.challenge.formats import LabelImagesFormat
from runner.confine import Confine, ConfinedFailure, FailureKind, Reply
from runner.errors import HostFault, UsageError
from runner.formats import label_images
from runner.formats.contract import Due, LabelImages, Problem, Reading, Role
from runner.formats.label_images import Pixels, confined_read, image_rule
from runner.formats.readers import confined
from runner.formats.reading import read_again

COLOURS = {0: (0, 0, 0), 3: (0, 255, 0), 7: (255, 55, 0)}
FRAMES = tuple(f"f.{number:02}" for number in range(20))


def rule(coding: str = "index", *, width: int = 4, height: int = 3) -> LabelImagesFormat:
    classes = {number: {"name": str(number), "colour": colour} for number, colour in COLOURS.items()}
    return LabelImagesFormat.model_validate(
        {"kind": "label_images", "file": "{case}/{frame}.png", "coding": coding, "width": width, "height": height,
         "classes": classes}
    )  # fmt: skip


def mask(number: int) -> Pixels:
    return np.random.default_rng(number).choice(np.array(list(COLOURS), np.uint8), (3, 4))


def painted(labels: Pixels) -> Pixels:
    table = np.zeros((256, 3), np.uint8)
    for number, colour in COLOURS.items():
        table[number] = colour
    return table[labels]


def save(path: Path, pixels: Pixels) -> None:
    Image.fromarray(pixels).save(path, "PNG")


def folder_of(path: Path, frames: Sequence[str] = FRAMES, *, coding: str = "index") -> Path:
    for number, name in enumerate(frames):
        save(path / f"{name}.png", mask(number) if coding == "index" else painted(mask(number)))
    return path


def read(confine: Confine, folder: Path, *, coding: str = "index", frames: Sequence[str] = FRAMES) -> Reading:
    due = Due(frames=tuple(f"{name}.jpg" for name in frames), count=len(frames))
    return confined_read(confine, rule(coding), folder, due=due, role=Role.PREDICTION)


def images_of(reading: Reading) -> LabelImages:
    assert reading.problems == ()
    assert isinstance(reading.prediction, LabelImages)
    return reading.prediction


@pytest.mark.parametrize("coding", ["index", "colour"])
def test_images_are_read_in_order_and_each_time_anew(confine: Confine, tmp_path: Path, coding: str) -> None:
    images = images_of(read(confine, folder_of(tmp_path, coding=coding), coding=coding))
    assert images.frames == 20
    for _ in range(2):
        found = list(images)
        assert [image.tolist() for image in found] == [mask(number).tolist() for number in range(20)]
        assert {(image.dtype, image.base is None) for image in found} == {(np.dtype(np.uint8), True)}


def test_an_index_may_be_a_palettes(confine: Confine, tmp_path: Path) -> None:
    image = Image.fromarray(mask(0)).convert("P")
    image.putdata(mask(0).reshape(-1).tolist())
    image.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as saved:
        assert saved.mode == "P"
    (found,) = images_of(read(confine, tmp_path, frames=["a"]))
    assert found.tolist() == mask(0).tolist()


def test_every_problem_is_told_in_the_order_of_the_frames(confine: Confine, tmp_path: Path) -> None:
    folder_of(tmp_path)
    wrong = mask(0)
    wrong[1, 2:] = 9
    save(tmp_path / "f.01.png", wrong)
    (tmp_path / "f.02.png").unlink()
    (tmp_path / "f.05.png").write_bytes(b"GIF89a secret")
    (tmp_path / "f.06.png").unlink()
    (tmp_path / "f.06.png").symlink_to("f.07.png")
    (tmp_path / "f.12.png").unlink()
    (tmp_path / "f.12.png").mkdir()
    save(tmp_path / "f.19.png", np.zeros((3, 5), np.uint8))
    (tmp_path / "another.png").write_bytes(b"ignored")
    reading = read(confine, tmp_path)
    assert (reading.prediction, reading.problem_count) == (None, 6)
    assert reading.problems == (
        Problem(
            what="frame 2 of 20: pixel [1, 2]: the value is no class; of such pixels there are 2", value="'9'"
        ),
        Problem(what="frame 3 of 20: the image is missing"),
        Problem(what="frame 6 of 20: this is a GIF file: save the image as PNG"),
        Problem(what="frame 7 of 20: the image is no regular file"),
        Problem(what="frame 13 of 20: the image is no regular file"),
        Problem(what="frame 20 of 20: the image has another size than 4 × 3 pixels", value="'5x3'"),
    )  # fmt: skip


def test_a_colour_of_no_class_is_a_value_only(confine: Confine, tmp_path: Path) -> None:
    pixels = painted(mask(0))
    pixels[2, 3] = (1, 2, 3)
    save(tmp_path / "a.png", pixels)
    save(tmp_path / "b.png", mask(0))
    assert read(confine, tmp_path, coding="colour", frames=["a", "b"]).problems == (
        Problem(
            what="frame 1 of 2: pixel [2, 3]: the colour is that of no class; of such pixels there are 1",
            value="'(1, 2, 3)'",
        ),
        Problem(what="frame 2 of 2: the image is grey where colour (RGB) is due"),
    )


def test_all_missing_are_counted(confine: Confine, tmp_path: Path) -> None:
    reading = read(confine, tmp_path, frames=[f"{number}" for number in range(60)])
    assert (reading.problem_count, len(reading.problems)) == (60, 50)
    assert reading.problems[49].what == "frame 50 of 60: the image is missing"


def test_what_changed_since_is_the_hosts_fault(confine: Confine, tmp_path: Path) -> None:
    images = images_of(read(confine, folder_of(tmp_path)))
    (tmp_path / "f.09.png").unlink()
    arriving = images.read()
    for number in range(9):
        assert next(arriving).tolist() == mask(number).tolist()
    with pytest.raises(HostFault) as caught:
        next(arriving)
    assert caught.value.what == (
        "label images that were sound cannot be read any more: frame 10 of 20: the image is missing"
    )


def test_what_was_sound_before_is_looked_at_only_when_it_is_read(
    confine: Confine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path)
    asked: list[str] = []
    call = confined.confined_call

    def heard(given: Confine, function: str, *values: Any, **named: Any) -> Any:
        asked.append(function)
        return call(given, function, *values, **named)

    monkeypatch.setattr(label_images, "confined_call", heard)
    due = Due(frames=tuple(f"{name}.jpg" for name in FRAMES), count=len(FRAMES))
    images = images_of(read_again(confine, rule(), folder, due=due))
    assert asked == []
    assert [labels.tolist() for labels in images.read()] == [mask(number).tolist() for number in range(20)]
    assert set(asked) == {"runner.formats.label_images.read_in_child"}


def test_what_was_left_open_is_closed(confine: Confine, tmp_path: Path) -> None:
    images = images_of(read(confine, folder_of(tmp_path)))
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    begun = images.read()
    next(begun)
    assert len(os.listdir("/proc/self/fd")) > len(before)  # noqa: PTH208
    del begun
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize(
    ("labels", "detail"),
    [
        (None, "its answer lacks the labels, or has more"),
        (np.zeros((1, 3, 4), np.int64), "its answer is of another type or shape"),
        (np.zeros((2, 3, 4), np.uint8), "its answer is of another type or shape"),
        (np.zeros((1, 4, 3), np.uint8), "its answer is of another type or shape"),
        (np.full((1, 3, 4), 1, np.uint8), "its answer holds numbers that are no class"),
    ],
)
def test_an_answer_is_not_believed(labels: Pixels | None, detail: str) -> None:
    reply = Reply(header={}, arrays={} if labels is None else {"labels": labels})
    with pytest.raises(ConfinedFailure) as caught:
        label_images._check_labels(reply, rule=image_rule(rule()), images=1)
    assert (caught.value.kind, caught.value.detail) == (FailureKind.GARBLED, detail)


def test_a_reader_that_stops_is_told_once(confine: Confine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fail(function: str, *_: object, **__: object) -> Reply:
        asked.append(function)
        raise ConfinedFailure(FailureKind.DIED, "it was killed by SIGSEGV")

    monkeypatch.setattr(confine, "call", fail)
    reading = read(confine, folder_of(tmp_path))
    what = "frames 1 to 8 of 20: the file could not be read: the reader stopped: it was killed by SIGSEGV"
    assert (reading.problems, reading.problem_count) == ((Problem(what=what),), 1)
    assert asked == ["runner.formats.label_images.check_in_child"]


@given(st.sampled_from([1, 9, 10, 12]), st.integers(0, 99), st.text(max_size=20))
def test_sentences_name_frames_of_the_batch_and_nothing_else(frame: int, row: int, text: str) -> None:
    pattern = label_images.sentences(image_rule(rule()), [9, 10, 11], 20)
    said = f"frame {frame} of 20: pixel [{row}, 0]: the value is no class; of such pixels there are 1"
    assert bool(pattern.fullmatch(said)) == (frame in (9, 10) and row < 10)
    assert not pattern.fullmatch(f"frame 9 of 20: {text}")
    assert not re.fullmatch(pattern, text)


def test_what_is_too_large_or_has_no_frames_is_the_organisers(confine: Confine, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="an image of 8192 × 8192 has 67108864 bytes of pixels; 32 MiB are read"):
        rule(width=8192, height=8192)
    with pytest.raises(UsageError, match="the case has no frames"):
        confined_read(confine, rule(), tmp_path, due=Due(), role=Role.REFERENCE)


def test_a_file_may_be_as_large_as_pixels_that_nothing_compresses() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (500, 700, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG", compress_level=0)
    assert len(file.getvalue()) <= image_rule(rule("colour", width=700, height=500)).caps.size


def test_files_are_named_as_the_format_says() -> None:
    prefixed = rule().model_copy(update={"file": "{case}/mask-{frame}.png"})
    due = Due(frames=("a.b.jpg", "c"), count=2)
    assert label_images.names_of(prefixed, due) == ("mask-a.b.png", "mask-c.png")


def test_the_fork_server_can_be_warmed() -> None:
    label_images.warm_up()
