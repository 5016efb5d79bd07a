"""Random runs of consecutive frames: every place equally likely, the same from the same seed, tested like cases."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import scipy.stats

from runner.ranking.signed_rank import Alternative
from runner.ranking.significance import Adjustment, significance_map
from runner.ranking.windows import LENGTH, RUNS, Window, draw_windows, window_means

LENGTHS = {"VID01": 300, "VID02": 99, "VID03": 100, "VID04": 1500}


def test_windows_lie_inside_their_cases_and_are_drawn_once() -> None:
    found = list(draw_windows(LENGTHS, seed=1))
    assert len(found) == len(set(found)) == 201 + 0 + 1 + 1401
    assert all(0 <= one.first <= LENGTHS[one.case] - LENGTH and one.length == LENGTH for one in found)
    assert {one.case for one in found} == {"VID01", "VID03", "VID04"}


def test_the_same_seed_gives_the_same_windows_and_another_others() -> None:
    one, again, other = (list(islice(draw_windows(LENGTHS, seed=seed), RUNS)) for seed in (7, 7, 8))
    assert one == again != other
    assert len(one) == 30


def test_every_place_is_as_likely_as_another() -> None:
    firsts = Counter(next(draw_windows({"a": 102, "b": 101}, seed=seed)) for seed in range(3000))
    assert len(firsts) == 5
    assert scipy.stats.chisquare(list(firsts.values())).pvalue > 0.001


def test_there_may_be_no_window_at_all() -> None:
    assert list(draw_windows({}, seed=1)) == []
    assert list(draw_windows({"short": 5}, length=6, seed=1)) == []
    with pytest.raises(ValueError, match="a window of 0 frames"):
        next(draw_windows({"a": 5}, length=0, seed=1))


def test_means_over_windows() -> None:
    windows = [Window(case="v", first=1, length=2), Window(case="v", first=0, length=4)]
    found = window_means({"a": {"v": np.array([1.0, 0.0, 1.0, 1.0])}, "b": {"v": np.array([0, 0, 0, np.nan])}}, windows)
    assert found.cases == ("v frames 1 to 2", "v frames 0 to 3")
    assert found.values.tolist()[0] == [0.5, 0.75]
    assert found.missing.tolist() == [[False, False], [False, True]]


def test_a_window_beyond_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="'a' has 3 frames"):
        window_means({"a": {"v": np.zeros(3)}}, [Window(case="v", first=1, length=3)])


def test_teams_are_compared_over_thirty_runs_as_scipy_does() -> None:
    generator = np.random.default_rng(11)
    frames = {
        name: {case: (generator.random(n) < right).astype(np.float64) for case, n in LENGTHS.items()}
        for name, right in (("good", 0.8), ("as good", 0.8), ("worse", 0.6))
    }
    windows = list(islice(draw_windows(LENGTHS, seed=3), RUNS))
    table = window_means(frames, windows)
    found = significance_map(
        table, higher_is_better=True, precision=6, alternative=Alternative.TWO_SIDED, adjustment=Adjustment.NONE
    )
    for first, second in ((0, 1), (0, 2), (1, 2)):
        difference = np.round(table.values[first] - table.values[second], 6)
        peer = scipy.stats.wilcoxon(difference, correction=True, method="asymptotic", zero_method="wilcox")
        assert found.p[first, second] == pytest.approx(float(peer.pvalue), rel=1e-12)
    assert found.significant[0, 2]
    assert found.significant[1, 2]
