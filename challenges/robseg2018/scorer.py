"""2018 Robotic Scene Segmentation: mean IoU over the classes that occur in a frame, overall and by class."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from runner.formats.contract import LabelImages
from runner.scoring import CaseScore, Metric
from runner.scoring.metrics import (
    AveragedOver,
    Counts,
    MaskCounter,
    Measure,
    SequenceMean,
    SequenceWeight,
    Undefined,
    frame_overlap,
    mean_over_frames,
    mean_over_sequences,
)

CLASSES = 12
SCORED = {
    "shaft": 1,
    "clasper": 2,
    "wrist": 3,
    "kidney_parenchyma": 4,
    "covered_kidney": 5,
    "thread": 6,
    "clamps": 7,
    "suturing_needle": 8,
    "small_intestine": 10,
    "ultrasound_probe": 11,
}
"""The ten classes of the tables: all but background (0) and suction (9)."""

SETS: Mapping[str, Sequence[int]] = {"overall": list(SCORED.values())} | {name: [one] for name, one in SCORED.items()}
"""By metric, the set of classes a frame's mean is taken over."""

_WEIGHTS = {
    "frames": SequenceWeight.FRAMES,
    "equal": SequenceWeight.EQUAL,
    "counted": SequenceWeight.COUNTED_FRAMES,
}


class _Counted(BaseModel):
    """By metric, the frames of a sequence that have a class of its set."""

    counted: dict[str, int]


class Scenes:
    """IoU of a frame over the classes in its reference, then over frames, then over sequences.

    Args:
        weight: What a sequence weighs in the mean over sequences: its ``frames``, discounted ones too; each the same
            (``equal``); or its ``counted`` frames only, which differ by metric.

    Raises:
        ValueError: It is another word.
    """

    metrics = tuple(
        Metric(name=name, title=name.replace("_", " ").capitalize(), worst=0.0, chance=None, higher_is_better=True)
        for name in SETS
    )

    def __init__(self, *, weight: str = "frames") -> None:
        if weight not in _WEIGHTS:
            raise ValueError(f"weight {weight!r} is none of {', '.join(_WEIGHTS)}")
        self._weight = _WEIGHTS[weight]

    def score_case(self, reference: LabelImages, prediction: LabelImages) -> CaseScore:
        """Score one sequence; None where no frame of the reference has a class of the metric's set.

        Args:
            reference: Class numbers 0 to 11, an image a frame.
            prediction: As many images of the same size.

        Raises:
            ValueError: They differ in number or in size.
        """
        counter = MaskCounter(classes=CLASSES)
        for truth, guess in zip(reference, prediction, strict=True):
            counter.add(truth, guess)
        means = _means(counter.counts())
        return CaseScore(
            values={name: mean.value if mean.counted else None for name, mean in means.items()},
            details=_Counted(counted={name: mean.counted for name, mean in means.items()}).model_dump(),
            frames=reference.frames,
        )

    def aggregate(self, cases: Sequence[CaseScore]) -> Mapping[str, float | None]:
        """The mean over the sequences for which a metric is defined, weighted.

        A sequence without a prediction counts with its value of ``missing_case`` in every metric, and all of its frames
        count.
        """
        return {metric.name: self._over_sequences(metric.name, cases) for metric in self.metrics}

    def _over_sequences(self, name: str, cases: Sequence[CaseScore]) -> float | None:
        sequences = [
            SequenceMean(value=value, frames=case.frames, counted=_counted(case, name))
            for case in cases
            if (value := case.values[name]) is not None
        ]
        return mean_over_sequences(sequences, weight=self._weight) if sequences else None


def _means(counts: Counts) -> dict[str, SequenceMean]:
    return {
        name: mean_over_frames(
            frame_overlap(
                counts,
                classes=classes,
                measure=Measure.IOU,
                averaged_over=AveragedOver.REFERENCE,
                # A class of the reference always has a value.
                undefined=Undefined.FAIL,
            )
        )
        for name, classes in SETS.items()
    }


def _counted(case: CaseScore, name: str) -> int:
    return case.frames if case.details is None else _Counted.model_validate(case.details).counted[name]
