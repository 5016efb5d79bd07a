"""The ways in which predictions are made into one, and what each of them asks for."""

from enum import StrEnum

from runner.challenge import FormatSection, FrameScoresFormat, FrameTableFormat, LabelImagesFormat


class Method(StrEnum):
    """How the members' predictions become one.

    ``mean``: of the scores. ``soft-vote``: the highest score where the mean is in the upper half of the scores' range,
    else the lowest. ``majority``: the label that most members give; of several such, the smallest.
    ``weighted``: mean or vote in which a member weighs as much as its score on other data. ``learned``: a weight a
    member, ``learned-per-class``: a weight a member and class, by least squares on other data. ``network``: a network
    of two layers, trained on other data.
    """

    MEAN = "mean"
    SOFT_VOTE = "soft-vote"
    MAJORITY = "majority"
    WEIGHTED = "weighted"
    LEARNED = "learned"
    LEARNED_PER_CLASS = "learned-per-class"
    NETWORK = "network"

    @property
    def is_fitted(self) -> bool:
        """True where it needs predictions for other data, with their references."""
        return self in (Method.WEIGHTED, *_LEARNED)

    @property
    def is_learned(self) -> bool:
        """True where it needs references frame by frame, and not only the members' scores."""
        return self in _LEARNED


_LEARNED = (Method.LEARNED, Method.LEARNED_PER_CLASS, Method.NETWORK)


def methods_for(rule: FormatSection) -> tuple[Method, ...]:
    """The methods that a prediction format allows; none where its predictions cannot be joined."""
    match rule:
        case FrameScoresFormat():
            return (Method.MEAN, Method.SOFT_VOTE, Method.WEIGHTED, *_LEARNED)
        case FrameTableFormat():
            return (Method.MAJORITY, Method.WEIGHTED, *_LEARNED)
        case LabelImagesFormat():
            return (Method.MAJORITY, Method.WEIGHTED)
        case _:
            return ()
