"""Means over the printed results of single sequences give the printed means back."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from runner.scoring.metrics import SequenceMean, SequenceWeight, mean_over_frames, mean_over_sequences

HERE = Path(__file__).parent
PETRAW = pd.read_csv(HERE / "petraw_results.csv", dtype={"sequence": str, "task": str})
ROBSEG = pd.read_csv(HERE / "robseg2018_results.csv", dtype={"test_set": str})


def test_petraw_table_11_is_one_digit_off() -> None:
    """Hutom's mean in task 4 is printed as 91.33. Tasks 1 to 3 are checked with the rankings."""
    rows = PETRAW[(PETRAW.team == "Hutom") & (PETRAW.task == "4")]
    mean = mean_over_frames(rows.ad_accuracy.to_numpy(dtype=np.float64))
    assert mean.counted == 60
    assert round(mean.value, 2) == 91.34


def test_petraw_application_dependent_scores_are_never_lower() -> None:
    """The definition promises it, and the printed accuracy, recall and F1 keep it to their last digit."""
    for name in ("accuracy", "recall", "f1"):
        assert (PETRAW[f"ad_{name}"] >= PETRAW[f"fbf_{name}"] - 0.011).all(), name


@pytest.mark.parametrize("column", sorted(ROBSEG["class"].unique()))
def test_robseg_table_v_weighs_sequences_equally(column: str) -> None:
    """Over the sequences that have the class. The printed row ``Average`` was rounded before and is no team."""
    rows = ROBSEG[(ROBSEG["class"] == column) & (ROBSEG.team != "Average")]
    teams = rows.team.unique()
    assert len(teams) == 18
    for team in teams:
        own = rows[rows.team == team]
        printed = own[own.test_set == "overall"].iou.item()
        values = own[own.test_set != "overall"].iou
        sequences = [SequenceMean(value=value, frames=300, counted=300) for value in values]
        for weight in SequenceWeight:
            assert mean_over_sequences(sequences, weight=weight) == pytest.approx(printed, abs=0.0005 + 1e-9)
