"""How a case is scored: IoU over the classes of each frame, mean over frames."""

from collections.abc import Mapping

import numpy as np

from runner.formats.contract import LabelImages
from runner.scoring import Metric

CLASSES = (1, 2)
"""The classes that are scored: all but the background."""


class Segments:
    """Mean IoU of one case."""

    metrics = (Metric(name="mean_iou", title="Mean IoU", worst=0.0, chance=None, higher_is_better=True),)

    def score_case(self, reference: LabelImages, prediction: LabelImages) -> Mapping[str, float | None]:
        """Score one case; a frame without any of the classes is left out. One pair of images is in memory at a time."""
        frames = []
        for truth, guess in zip(reference, prediction, strict=True):
            present = [number for number in CLASSES if (truth == number).any()]
            if present:
                frames.append(np.mean([_iou(truth == number, guess == number) for number in present]))
        return {"mean_iou": float(np.mean(frames)) if frames else None}


def _iou(truth: np.ndarray, guess: np.ndarray) -> float:
    return float((truth & guess).sum() / (truth | guess).sum())


segments = Segments()
