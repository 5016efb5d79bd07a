"""PETRAW 2021: phase, step and the verb of each hand, with and without forgiving transitions a short delay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from runner.formats.contract import FrameTable
from runner.scoring import Metric
from runner.scoring.metrics import (
    Between,
    Forgiving,
    FrameScores,
    TransitionType,
    Undefined,
    delay_scores,
    frame_scores,
)


class MissingComponent(StrEnum):
    """What the accuracy of a component counts as that was not predicted: 1 / K, or 0."""

    CHANCE = "chance"
    WORST = "worst"


@dataclass(frozen=True, kw_only=True)
class Component:
    """A column of labels 0 to K - 1."""

    column: str
    name: str
    title: str
    classes: int

    @property
    def chance(self) -> float:
        """Expected balanced accuracy of a uniform guess."""
        return 1 / self.classes


COMPONENTS = (
    Component(column="Phase", name="phase", title="phase", classes=3),
    Component(column="Step", name="step", title="step", classes=13),
    Component(column="Verb_Left", name="verb_left", title="left verb", classes=7),
    Component(column="Verb_Right", name="verb_right", title="right verb", classes=7),
)
WAYS = {"ad": "AD", "fbf": "Frame-by-frame"}
"""Application-dependent: transitions that come a little early or late are forgiven; and without that."""

WEIGHTED = {"precision": "precision", "recall": "recall", "f1": "F1"}
"""Means over classes weighted by their frequency, as in the paper's appendix."""


def _metrics() -> tuple[Metric, ...]:
    found = []
    for way, title in WAYS.items():
        chances: dict[str, tuple[str, float | None]] = {
            "accuracy": ("accuracy", fmean(component.chance for component in COMPONENTS))
        }
        chances |= {one.name: (f"accuracy, {one.title}", one.chance) for one in COMPONENTS}
        chances |= {measure: (words, None) for measure, words in WEIGHTED.items()}
        found += [
            Metric(name=f"{way}_{name}", title=f"{title} {words}", worst=0.0, chance=chance, higher_is_better=True)
            for name, (words, chance) in chances.items()
        ]
    return tuple(found)


class Workflow:
    """Balanced accuracy of each component and their mean, which ranks; weighted precision, recall and F1 beside it.

    Args:
        missing_component: What the accuracy of a component counts as that was not predicted: ``chance`` or ``worst``.
        delay: Seconds a transition may come early or late.
        fps: Frames a second.
        transition: Two transitions are of equal type if both labels are (``pair``) or the new one is (``incoming``).
        between: ``any``, or ``clean``: a transition is forgiven only where no other one lies between.

    Raises:
        ValueError: An option is none of these words, or the delay or the frame rate is not possible.
    """

    metrics = _metrics()

    def __init__(
        self,
        *,
        missing_component: str = "chance",
        delay: float = 0.25,
        fps: float = 30,
        transition: str = "pair",
        between: str = "any",
    ) -> None:
        self._missing = MissingComponent(missing_component)
        self._forgiving = Forgiving(delay=delay, fps=fps, type=TransitionType(transition), between=Between(between))

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float | None]:
        """Score one sequence.

        Where a component was not predicted, precision, recall and F1 are not defined: nobody says what they count.
        """
        forgiven = [self._forgiven(one, reference, prediction) for one in COMPONENTS]
        plain = [self._plain(one, reference, prediction) for one in COMPONENTS]
        return {**self._values("ad", forgiven), **self._values("fbf", plain)}

    def _forgiven(self, component: Component, reference: FrameTable, prediction: FrameTable) -> FrameScores | None:
        if component.column not in prediction.columns:
            return None
        return delay_scores(
            reference.columns[component.column],
            prediction.columns[component.column],
            labels=range(component.classes),
            forgiving=self._forgiving,
            undefined=Undefined.ZERO,
        )

    @staticmethod
    def _plain(component: Component, reference: FrameTable, prediction: FrameTable) -> FrameScores | None:
        if component.column not in prediction.columns:
            return None
        return frame_scores(
            reference.columns[component.column],
            prediction.columns[component.column],
            labels=range(component.classes),
            undefined=Undefined.ZERO,
        )

    def _values(self, way: str, scores: Sequence[FrameScores | None]) -> dict[str, float | None]:
        accuracy = {
            component.name: self._accuracy_without(component) if score is None else score.accuracy
            for component, score in zip(COMPONENTS, scores, strict=True)
        }
        there = [score for score in scores if score is not None]
        values: dict[str, float | None] = {f"{way}_accuracy": fmean(accuracy.values())}
        values |= {f"{way}_{name}": value for name, value in accuracy.items()}
        for measure in WEIGHTED:
            complete = len(there) == len(COMPONENTS)
            values[f"{way}_{measure}"] = fmean(getattr(score, measure) for score in there) if complete else None
        return values

    def _accuracy_without(self, component: Component) -> float:
        return component.chance if self._missing is MissingComponent.CHANCE else 0.0
