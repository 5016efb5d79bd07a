"""What is known of one method on one case: its answers, run by run, and with what each view is compared."""

from dataclasses import dataclass, replace
from functools import cached_property

from runner.causality.answers import Answers
from runner.job import Cut, CutKind


@dataclass(frozen=True, kw_only=True, order=True)
class FullRun:
    """The whole sequence; ``repeat`` is 0 for the ordinary run of the evaluation, 1, 2, … for its repetitions."""

    repeat: int = 0


Request = FullRun | Cut
"""Something to run: the full sequence again, or a view of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """What came of a request: answers, or why there are none.

    Attributes:
        request: What was run.
        answers: The valid predictions; None where there are none.
        failure: In our own words why not: the verdict's word (``crashed``, ``timed-out``, …).
    """

    request: Request
    answers: Answers | None = None
    failure: str = ""

    def __post_init__(self) -> None:
        if (self.answers is None) != bool(self.failure):
            raise ValueError("an observation has either answers or a failure")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Everything observed so far of one method on one case.

    A prefix is compared with the whole it was cut from, and an altered future with a whole that was laid out the same
    way: with ``FullRun``, or, where one was copied first, with ``Cut(frames=frames, kind=CLIP)``.

    Attributes:
        frames: Length of the sequence that is tested: of the case, or of the clip of it.
        can_alter: Another case can lend its frames, so that an altered future can be laid out.
        possible: Lengths at which it may be cut, ascending; None: every length. A copy may be cut at every length.
        clip: A copy of its first frames is tested. The whole of it is ``Cut(frames=frames, kind=CLIP)``, a prefix
            ``Cut(frames=k, kind=CLIP)``; the case itself is not asked for.
        copied: Altered futures are laid out in a copy (those of videos), and compared with the whole of such a copy.
        observations: In any order; at most one for each request.
    """

    frames: int
    can_alter: bool = True
    possible: tuple[int, ...] | None = None
    clip: bool = False
    copied: bool = False
    observations: tuple[Observation, ...] = ()

    def __post_init__(self) -> None:
        if self.possible is not None and list(self.possible) != sorted(set(self.possible)):
            raise ValueError("the possible lengths are not ascending")
        seen: set[Request] = set()
        for observation in self.observations:
            if observation.request in seen:
                raise ValueError(f"{observation.request} was observed twice")
            seen.add(observation.request)
            self._check_length(observation)

    def _check_length(self, observation: Observation) -> None:
        shown = frames_shown(observation.request, self.frames)
        if observation.answers is not None and observation.answers.frames != shown:
            raise ValueError(
                f"{observation.request} shows {shown} frames, its answers have {observation.answers.frames}"
            )

    def plus(self, *observations: Observation) -> "Evidence":
        """The same with more observations."""
        return replace(self, observations=(*self.observations, *observations))

    @cached_property
    def by_request(self) -> dict[Request, Observation]:
        """What was observed, by what was asked."""
        return {observation.request: observation for observation in self.observations}

    @property
    def prefix_kind(self) -> CutKind:
        """The kind of view in which later frames are withheld."""
        return CutKind.CLIP if self.clip else CutKind.PREFIX

    def whole(self, kind: CutKind, repeat: int) -> Request:
        """The run of the whole sequence that a view of this kind is compared with."""
        if self.clip or (self.copied and kind is CutKind.ALTERED_FUTURE):
            return Cut(frames=self.frames, kind=CutKind.CLIP, repeat=repeat)
        return FullRun(repeat=repeat)


def frames_shown(request: Request, frames: int) -> int:
    """How many frames a request shows, of a sequence of ``frames``."""
    if isinstance(request, FullRun) or request.kind is CutKind.ALTERED_FUTURE:
        return frames
    return request.frames
