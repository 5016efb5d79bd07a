"""Arrays as challenge.yaml asks for them; the readers themselves are tested in ``test_npy_array``."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.challenge.formats import ArraysFormat
from runner.confine import Confine
from runner.errors import UsageError
from runner.formats.arrays import array_caps, array_rules, confined_read
from runner.formats.contract import Arrays, Due, Reading, Role
from runner.formats.readers.npy_rule import ArrayRule

DUE = Due(count=4)


def rule(file: str, **arrays: Mapping[str, object]) -> ArraysFormat:
    return ArraysFormat.model_validate({"kind": "arrays", "file": file, "arrays": arrays})


ONE = rule("{case}.npy", depth={"type": "float32", "shape": ["frames", 2], "range": [0, 1]})
TWO = rule("{case}.npz", pose={"type": "float64", "shape": [3]}, mask={"type": "bool", "shape": ["any", "frames"]})


def saved(array: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(**arrays: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def read(confine: Confine, folder: Path, one: ArraysFormat, content: bytes, due: Due = DUE) -> Reading:
    (folder / "x").write_bytes(content)
    return confined_read(confine, one, folder / "x", due=due, role=Role.PREDICTION)


def test_one_array_has_the_name_of_the_rule(confine: Confine, tmp_path: Path) -> None:
    depth = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    reading = read(confine, tmp_path, ONE, saved(depth))
    assert isinstance(reading.prediction, Arrays)
    assert list(reading.prediction.arrays) == ["depth"]
    assert reading.prediction.arrays["depth"].dtype == np.float32
    assert reading.prediction.arrays["depth"].tolist() == depth.tolist()


def test_several_arrays(confine: Confine, tmp_path: Path) -> None:
    reading = read(confine, tmp_path, TWO, archive(mask=np.ones((2, 4), np.bool_), pose=np.array([1.0, 2.0, 3.0])))
    assert isinstance(reading.prediction, Arrays)
    assert {name: array.tolist() for name, array in reading.prediction.arrays.items()} == {
        "pose": [1.0, 2.0, 3.0],
        "mask": [[True] * 4] * 2,
    }


def test_frames_are_those_of_the_case_and_of_no_number_where_nobody_knows(confine: Confine, tmp_path: Path) -> None:
    five = saved(np.zeros((5, 2), np.float32))
    assert [problem.what for problem in read(confine, tmp_path, ONE, five).problems] == [
        "the shape is another than (4, 2)"
    ]
    assert read(confine, tmp_path, ONE, five, Due()).prediction is not None
    assert array_rules(TWO, Due())["mask"] == ArrayRule(types=("bool",), shape=(None, None))


def test_what_is_wrong_is_said_in_the_readers_words(confine: Confine, tmp_path: Path) -> None:
    wrong = np.array([[0, 2], [-1, 0], [np.nan, 0], [0, 0]], np.float32)
    reading = read(confine, tmp_path, ONE, saved(wrong))
    assert reading.prediction is None
    assert [problem.what for problem in reading.problems] == [
        "1 values are not finite (NaN or infinity), the first at (2, 0)",
        "1 values are less than 0, the first at (1, 0)",
        "1 values are greater than 1, the first at (0, 1)",
    ]
    assert [problem.what for problem in read(confine, tmp_path, TWO, archive(pose=np.zeros(3))).problems] == [
        "the archive does not hold mask"
    ]


@pytest.mark.parametrize(
    ("shape", "most"),
    [((4, 2), 32 << 20), ((1 << 21, 8), 128 << 20), ((1 << 17, 8), 32 << 20), (("any",), 128 << 20)],
)
def test_a_file_may_be_so_large(shape: tuple[object, ...], most: int) -> None:
    rules = array_rules(rule("{case}.npy", x={"type": "float32", "shape": shape}), DUE)
    assert (array_caps(rules).unpacked, array_caps(rules).size) == (most, most + (1 << 20))


def test_more_than_is_read_is_the_organisers_error(confine: Confine, tmp_path: Path) -> None:
    huge = rule("{case}.npy", x={"type": "uint8", "shape": [(128 << 20) + 1]})
    with pytest.raises(UsageError, match="arrays of 134217729 bytes are due, and no more than 134217728 are read"):
        read(confine, tmp_path, huge, b"")


def test_the_largest_array_fits_into_the_childs_memory(confine: Confine, tmp_path: Path) -> None:
    largest = rule("{case}.npy", x={"type": "float32", "shape": ["any"], "range": [0, 1]})
    reading = read(confine, tmp_path, largest, saved(np.zeros((128 << 20) // 4, np.float32)))
    assert reading.problems == ()
    assert isinstance(reading.prediction, Arrays)
    assert reading.prediction.arrays["x"].shape == (32 << 20,)
