"""CholecTriplet 2021: average precision of action triplets and of their components, and top-K recall."""

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel

from runner.formats.contract import FrameScores
from runner.scoring import CaseScore, Metric
from runner.scoring.metrics import Undefined, mean_precision, top_k_recall, video_precision

INSTRUMENTS = ("grasper", "bipolar", "hook", "scissors", "clipper", "irrigator")
VERBS = (
    "grasp", "retract", "dissect", "coagulate", "clip", "cut", "aspirate", "irrigate", "pack", "null_verb",
)  # fmt: skip
TARGETS = (
    "gallbladder", "cystic_plate", "cystic_duct", "cystic_artery", "cystic_pedicle", "blood_vessel", "fluid",
    "abdominal_wall_cavity", "liver", "adhesion", "omentum", "peritoneum", "gut", "specimen_bag", "null_target",
)  # fmt: skip
_OCCURRING = """
grasper   dissect    cystic_plate gallbladder omentum
grasper   grasp      cystic_artery cystic_duct cystic_pedicle cystic_plate gallbladder gut liver omentum peritoneum \
                     specimen_bag
grasper   pack       gallbladder
grasper   retract    cystic_duct cystic_pedicle cystic_plate gallbladder gut liver omentum peritoneum
bipolar   coagulate  abdominal_wall_cavity blood_vessel cystic_artery cystic_duct cystic_pedicle cystic_plate \
                     gallbladder liver omentum peritoneum
bipolar   dissect    adhesion cystic_artery cystic_duct cystic_plate gallbladder omentum
bipolar   grasp      cystic_plate liver specimen_bag
bipolar   retract    cystic_duct cystic_pedicle gallbladder liver omentum
hook      coagulate  blood_vessel cystic_artery cystic_duct cystic_pedicle cystic_plate gallbladder liver omentum
hook      cut        blood_vessel peritoneum
hook      dissect    blood_vessel cystic_artery cystic_duct cystic_plate gallbladder omentum peritoneum
hook      retract    gallbladder liver
scissors  coagulate  omentum
scissors  cut        adhesion blood_vessel cystic_artery cystic_duct cystic_plate liver omentum peritoneum
scissors  dissect    cystic_plate gallbladder omentum
clipper   clip       blood_vessel cystic_artery cystic_duct cystic_pedicle cystic_plate
irrigator aspirate   fluid
irrigator dissect    cystic_duct cystic_pedicle cystic_plate gallbladder omentum
irrigator irrigate   abdominal_wall_cavity cystic_pedicle liver
irrigator retract    gallbladder liver omentum
grasper   null_verb  null_target
bipolar   null_verb  null_target
hook      null_verb  null_target
scissors  null_verb  null_target
clipper   null_verb  null_target
irrigator null_verb  null_target
"""


def _triplets() -> tuple[tuple[int, int, int], ...]:
    rows = [line.split() for line in _OCCURRING.strip().splitlines()]
    return tuple(
        (INSTRUMENTS.index(instrument), VERBS.index(verb), TARGETS.index(target))
        for instrument, verb, *targets in rows
        for target in targets
    )


TRIPLETS = _triplets()
"""Instrument, verb and target of each class, in the order of the classes: the label map of CholecT45 and CholecT50
(``maps.txt`` of the organisers' package ivtmetrics 0.1.5; the classes' names in the data set's label files agree)."""

LEVELS: Mapping[str, Sequence[int]] = {
    "ivt": range(len(TRIPLETS)),
    "i": [instrument for instrument, _, _ in TRIPLETS],
    "v": [verb for _, verb, _ in TRIPLETS],
    "t": [target for _, _, target in TRIPLETS],
    "iv": [instrument * len(VERBS) + verb for instrument, verb, _ in TRIPLETS],
    "it": [instrument * len(TARGETS) + target for instrument, _, target in TRIPLETS],
}
"""By level, the component class of each triplet."""

NOT_NULL = range(94)
"""Triplets 94 to 99 say that an instrument is there and does nothing."""

KS = (5, 10, 15, 20)
_NULL_TRIPLETS: Mapping[str, Sequence[int] | None] = {"left out": NOT_NULL, "included": None}
_TITLES = {
    "ivt": "AP of triplets",
    "i": "AP of instruments",
    "v": "AP of verbs",
    "t": "AP of targets",
    "iv": "AP of instrument and verb",
    "it": "AP of instrument and target",
}


class _Video(BaseModel):
    """What is kept of one video.

    Attributes:
        precision: By level, AP of each class; None where the video has no positive frame of it.
        hits: For each K, the positives among the K best of their frames.
        positives: How many positives there are.
    """

    precision: dict[str, list[float | None]]
    hits: list[int]
    positives: int


class Triplets:
    """AP of triplets, which ranks, and of their components: over videos first, then over classes; top-K recall.

    Args:
        null_triplets: Whether classes 94 to 99 enter ``ap_ivt``: ``left out`` or ``included``. They always enter the
            components and top-K.

    Raises:
        ValueError: It is another word.
    """

    metrics = (
        *(
            Metric(name=f"ap_{level}", title=title, worst=0.0, chance=None, higher_is_better=True)
            for level, title in _TITLES.items()
        ),
        # Of 100 classes in random order, K are among the K best.
        *(Metric(name=f"top_{k}", title=f"Top-{k}", worst=0.0, chance=k / 100, higher_is_better=True) for k in KS),
        Metric(name="top_mean", title="Mean of top-K", worst=0.0, chance=sum(KS) / 400, higher_is_better=True),
    )

    def __init__(self, *, null_triplets: str = "left out") -> None:
        if null_triplets not in _NULL_TRIPLETS:
            raise ValueError(f"null_triplets {null_triplets!r} is none of {', '.join(_NULL_TRIPLETS)}")
        self._ranking = _NULL_TRIPLETS[null_triplets]

    def score_case(self, reference: FrameScores, prediction: FrameScores) -> CaseScore:
        """Score one video; None where it has no positive frame of the classes asked for.

        Args:
            reference: Zeros and ones, shape ``(frames, 100)``.
            prediction: Scores of the same shape.

        Raises:
            ValueError: The shapes differ.
        """
        positive = reference.scores == 1
        precision = video_precision(positive, prediction.scores, levels=LEVELS)
        recall = top_k_recall(positive, prediction.scores, ks=KS, undefined=Undefined.ZERO)
        positives = int(positive.sum())
        video = _Video(
            precision={
                level: [None if np.isnan(one) else one for one in ap.tolist()] for level, ap in precision.items()
            },
            hits=[round(recall[k] * positives) for k in KS],
            positives=positives,
        )
        return CaseScore(values=self._figures([video], without=0), details=video.model_dump(), frames=reference.frames)

    def aggregate(self, cases: Sequence[CaseScore]) -> Mapping[str, float | None]:
        """The figures over videos.

        A video without a prediction counts as 0 for each class that another video has, and as so many positives that
        were all missed as the other videos have on average.
        """
        videos = [_Video.model_validate(case.details) for case in cases if case.details is not None]
        if not videos:
            return {metric.name: metric.worst for metric in self.metrics}
        return self._figures(videos, without=len(cases) - len(videos))

    def _figures(self, videos: Sequence[_Video], *, without: int) -> dict[str, float | None]:
        """Every metric over these videos and so many more that have no prediction."""
        found: dict[str, float | None] = {}
        for level in _TITLES:
            chosen = self._ranking if level == "ivt" else None
            found[f"ap_{level}"] = _mean([video.precision[level] for video in videos], chosen, without=without)
        hits = np.sum([video.hits for video in videos], axis=0)
        positives = sum(video.positives for video in videos)
        share = len(videos) / (len(videos) + without)
        recall = [share * hit / positives if positives else None for hit in hits.tolist()]
        found |= {f"top_{k}": value for k, value in zip(KS, recall, strict=True)}
        found["top_mean"] = share * float(hits.mean()) / positives if positives else None
        return found


def _mean(precision: Sequence[Sequence[float | None]], classes: Sequence[int] | None, *, without: int) -> float | None:
    by_video = np.array(precision, dtype=np.float64)
    nowhere = np.isnan(by_video).all(axis=0, keepdims=True)
    if nowhere.take(range(by_video.shape[1]) if classes is None else classes).all():
        return None
    by_video = np.concatenate([by_video, np.where(nowhere, np.nan, 0.0).repeat(without, axis=0)])
    return mean_precision(by_video, classes=classes, undefined=Undefined.LEFT_OUT).mean
