"""ivtmetrics, in an environment of its own, as a second opinion on average precision: equal to 1e-12.

The first run makes the environment in build/peers, with pip from PyPI; without PyPI the tests fail and say so.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.scoring.metrics import (
    Sets,
    Undefined,
    component_values,
    mean_precision,
    top_k_recall,
    video_precision,
)
from tools.peers import IVTMETRICS, PeerMissing, peer_python

ROOT = Path(__file__).parents[2]
PEER = ROOT / "benchmarks" / "peers" / "ivtmetrics_peer.py"
LEVELS = ("i", "v", "t", "iv", "it", "ivt")
Video = tuple[Sets, NDArray[np.float64]]


def video(seed: int, frames: int, density: float, *, steps: int) -> Video:
    """Random scores; with few steps many are equal. About half of the classes never occur, unless density is 1."""
    rng = np.random.default_rng(seed)
    occurs = rng.random(100) < (1.0 if density == 1.0 else 0.5)
    positive = (rng.random((frames, 100)) < density) & occurs
    return positive, rng.integers(0, steps, (frames, 100)) / steps


CASES: dict[str, list[Video]] = {
    "no ties": [video(1, 40, 0.1, steps=10**9), video(2, 25, 0.1, steps=10**9)],
    "ties": [video(3, 40, 0.1, steps=4), video(4, 25, 0.1, steps=4), video(5, 3, 0.1, steps=2)],
    "constant scores": [video(6, 30, 0.1, steps=1)],
    "absent classes": [video(7, 30, 0.005, steps=9), video(8, 30, 0.005, steps=9)],
    "a video without positives": [video(9, 30, 0.1, steps=9), video(10, 20, 0.0, steps=9)],
    "one frame": [video(11, 1, 0.3, steps=9), video(12, 1, 0.3, steps=9)],
    "one positive frame": [video(13, 30, 0.1, steps=9), video(14, 1, 0.3, steps=9)],
    "all frames positive": [video(15, 12, 1.0, steps=9)],
}
NO_TIES = ("no ties",)


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ivtmetrics makes of all cases."""
    folder = tmp_path_factory.mktemp("ivtmetrics")
    try:
        python = peer_python(ROOT / "build" / "peers" / "ivtmetrics", IVTMETRICS)
    except PeerMissing as error:
        pytest.fail(str(error))
    arrays: dict[str, Any] = {
        f"{case}/{number}/{what}": array
        for case, videos in CASES.items()
        for number, pair in enumerate(videos)
        for what, array in zip(("positive", "score"), pair, strict=True)
    }
    np.savez(folder / "in.npz", **arrays)
    command = [str(python), "-W", "ignore", str(PEER), str(folder / "in.npz"), str(folder / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "out.json").read_text())
    assert set(found["cases"]) == set(CASES)
    return found


def test_the_components_are_the_challenges(answers: dict[str, Any]) -> None:
    sizes = {level: len(set(components)) for level, components in answers["levels"].items()}
    assert sizes == {"i": 6, "v": 10, "t": 15, "iv": 26, "it": 59, "ivt": 100}


@pytest.mark.parametrize("case", CASES)
def test_average_precision_by_video_and_class(case: str, answers: dict[str, Any]) -> None:
    videos, expected = CASES[case], answers["cases"][case]
    by_video = [video_precision(*one, levels=answers["levels"]) for one in videos]
    for level in LEVELS:
        ours = mean_precision(
            np.stack([found[level] for found in by_video]), classes=None, undefined=Undefined.LEFT_OUT
        )
        np.testing.assert_allclose(ours.by_class, expected["by_class"][level], rtol=0, atol=1e-12)
        assert ours.mean == pytest.approx(expected["mean"][level], abs=1e-12)
        labels = [component_values(one[0], answers["levels"][level]) for one in videos]
        assert np.isnan(ours.by_class).tolist() == (~np.concatenate(labels).any(axis=0)).tolist()


@pytest.mark.parametrize("case", CASES)
def test_average_precision_of_pooled_frames(case: str, answers: dict[str, Any]) -> None:
    positive, score = (np.concatenate(parts) for parts in zip(*CASES[case], strict=True))
    ours = video_precision(positive, score, levels={"ivt": range(100)})["ivt"]
    np.testing.assert_allclose(ours, answers["cases"][case]["pooled"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", NO_TIES)
def test_top_k(case: str, answers: dict[str, Any]) -> None:
    """Only without ties: there ivtmetrics leaves the order of equal scores to an unstable sort."""
    positive, score = (np.concatenate(parts) for parts in zip(*CASES[case], strict=True))
    ours = top_k_recall(positive, score, ks=(5, 10, 15, 20), undefined=Undefined.FAIL)
    expected = {int(k): value for k, value in answers["cases"][case]["top_k"].items()}
    assert ours == pytest.approx(expected, abs=1e-12)
