"""How sure a ranking is: the whole method again on resampled cases, and with each case left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from runner.challenge import RankingRule
from runner.ranking.multisets import every_case_once, rank_multisets
from runner.ranking.signed_rank import Counts, Values
from runner.ranking.table import ScoreTable

_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, kw_only=True)
class SubmissionStability:
    """How one submission fared over the resamples.

    Attributes:
        submission: Its name.
        frequencies: Share of the resamples in which it had each rank, by rank; in [0, 1], those above 0 only.
        median: Of its ranks.
        low: 2.5 % quantile of its ranks.
        high: 97.5 % quantile of its ranks.
        wins: Share of the resamples in which it had rank 1.
    """

    submission: str
    frequencies: Mapping[float, float]
    median: float
    low: float
    high: float
    wins: float


@dataclass(frozen=True, kw_only=True)
class Stability:
    """How sure a ranking is.

    Attributes:
        resamples: How many.
        seed: What they were drawn with.
        rows: In the order of the table.
        taus: Kendall's tau-b of each resample's ranking to the full one, shape ``(resamples,)``; NaN where a ranking
            is one tie.
    """

    resamples: int
    seed: int
    rows: tuple[SubmissionStability, ...]
    taus: NDArray[np.float64]


def draw(cases: int, *, resamples: int, seed: int) -> Counts:
    """Draw as many cases as there are with replacement, so often; shape ``(resamples, cases)``."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(cases, size=(resamples, cases))
    drawn += cases * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * cases).reshape(resamples, cases)


def bootstrap(
    table: ScoreTable,
    rule: RankingRule,
    *,
    higher_is_better: bool,
    resamples: int,
    seed: int,
    challenger: bool = False,
) -> Stability:
    """Rank resampled cases (Wiesenfarth et al., Scientific Reports 11:2369, 2021, with a true multiset).

    Args:
        table: Complete, of at least one submission and one case.
        rule: The ranking method; all of it is applied again.
        higher_is_better: The metric's direction.
        resamples: How often.
        seed: For the random numbers.
        challenger: Resample as challengeR 1.0.5 does; see ``rank_multisets``.
    """
    counts = draw(len(table.cases), resamples=resamples, seed=seed)
    _, ranks = rank_multisets(table.values, counts, rule, higher_is_better=higher_is_better, challenger=challenger)
    _, full = rank_multisets(table.values, every_case_once(len(table.cases)), rule, higher_is_better=higher_is_better)
    return stability_of(table.submissions, ranks, full[0], seed=seed)


def stability_of(submissions: Sequence[str], ranks: Values, full: Values, *, seed: int) -> Stability:
    """What the ranks over resampled cases say.

    Args:
        submissions: Their names.
        ranks: Over each resample, shape ``(resamples, submissions)``.
        full: Over every case once, shape ``(submissions,)``.
        seed: What the resamples were drawn with.
    """
    rows = tuple(_row(name, ranks[:, number]) for number, name in enumerate(submissions))
    return Stability(resamples=len(ranks), seed=seed, rows=rows, taus=kendall_tau(ranks, full))


def _row(name: str, ranks: Values) -> SubmissionStability:
    places, times = np.unique(ranks, return_counts=True)
    low, median, high = np.percentile(ranks, [_INTERVAL[0], 50.0, _INTERVAL[1]])
    return SubmissionStability(
        submission=name,
        frequencies={float(place): float(n / ranks.size) for place, n in zip(places, times, strict=True)},
        median=float(median), low=float(low), high=float(high), wins=float((ranks == 1).mean()),
    )  # fmt: skip


def kendall_tau(ranks: Values, full: Values) -> NDArray[np.float64]:
    """Kendall's tau-b of many rankings to one.

    Args:
        ranks: Shape ``(rankings, n)``.
        full: Shape ``(n,)``.

    Returns:
        Shape ``(rankings,)``, in [-1, 1]; NaN where either ranking is one tie.
    """
    first, second = np.triu_indices(full.size, 1)
    theirs = np.sign(ranks[:, first] - ranks[:, second])
    ours = np.sign(full[first] - full[second])
    agreement = (theirs * ours).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = agreement / np.sqrt((theirs != 0).sum(axis=1) * float((ours != 0).sum()))
    return np.asarray(tau)


@dataclass(frozen=True, kw_only=True)
class Influence:
    """What leaving one case out does.

    Attributes:
        case: The case.
        moved: Rank with every case and rank without this one, by submission; those that differ only.
    """

    case: str
    moved: Mapping[str, tuple[float, float]]


def flips(influence: Influence) -> tuple[tuple[str, str], ...]:
    """The pairs of moved submissions whose order a case decides: the one that is before, with every case, first.

    A tie that appears or goes is no flip.
    """
    order = sorted(influence.moved, key=lambda name: (influence.moved[name][0], name))
    return tuple(
        (one, other)
        for one, other in combinations(order, 2)
        if influence.moved[one][0] < influence.moved[other][0] and influence.moved[one][1] > influence.moved[other][1]
    )


def influence_sentence(influence: Influence) -> str:
    """What a case decides, in a sentence: ``without case 079 the order of 2 and 3 flips (MedAIR, SK)``."""
    found = [
        f"the order of {influence.moved[one][0]:g} and {influence.moved[other][0]:g} flips ({one}, {other})"
        for one, other in flips(influence)
    ]
    named = {name for pair in flips(influence) for name in pair}
    found += [
        f"{name} moves from {before:g} to {after:g}"
        for name, (before, after) in influence.moved.items()
        if name not in named
    ]
    return f"without case {influence.case} {', and '.join(found)}"


def influences(table: ScoreTable, rule: RankingRule, *, higher_is_better: bool) -> tuple[Influence, ...]:
    """Leave each case out in turn; only those cases that change a rank, in the table's order.

    Raises:
        ValueError: There are fewer than two cases.
    """
    size = len(table.cases)
    if size < 2:
        raise ValueError("one case cannot be left out of one")
    counts = np.concatenate([every_case_once(size), 1 - np.eye(size, dtype=np.int64)])
    _, ranks = rank_multisets(table.values, counts, rule, higher_is_better=higher_is_better)
    found = []
    for number, case in enumerate(table.cases, start=1):
        differs = np.flatnonzero(ranks[number] != ranks[0])
        if differs.size:
            moved = {table.submissions[who]: (float(ranks[0, who]), float(ranks[number, who])) for who in differs}
            found.append(Influence(case=case, moved=moved))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Pronounced:
    """A rank as it is announced.

    Attributes:
        submission: Its name.
        rank: The rule's own rank where it is stable; where not, the best rank of those it is tied with.
        stable: It has that rank under the majority of methods.
        methods: In how many of them.
    """

    submission: str
    rank: float
    stable: bool
    methods: int


def pronounce(ranks: Mapping[str, Sequence[float]]) -> tuple[Pronounced, ...]:
    """Announce ranks by the majority rule: a rank is stable if more than half of the methods give it (PETRAW 2021).

    Neighbours of which one is not stable, and whose order the methods do not agree on, are announced as tied.

    Args:
        ranks: By submission, the rule's own rank first, then those of the other methods; equally many each.

    Raises:
        ValueError: They are not equally many.
    """
    if len({len(row) for row in ranks.values()}) > 1:
        raise ValueError("the submissions differ in their number of ranks")
    order = sorted(ranks, key=lambda name: (ranks[name][0], name))
    votes = {name: sum(rank == ranks[name][0] for rank in ranks[name]) for name in order}
    stable = {name: 2 * votes[name] > len(ranks[name]) for name in order}
    found: list[Pronounced] = []
    for name in order:
        before = found[-1] if found else None
        rank = float(ranks[name][0])
        if (
            before is not None
            and not (stable[name] and before.stable)
            and _disputed(ranks[before.submission], ranks[name])
        ):
            rank = before.rank
        found.append(Pronounced(submission=name, rank=rank, stable=stable[name], methods=votes[name]))
    return tuple(found)


def _disputed(before: Sequence[float], after: Sequence[float]) -> bool:
    return any(one >= other for one, other in zip(before, after, strict=True))


def consensus(ranks: Mapping[str, Sequence[float]]) -> Mapping[str, float]:
    """Rank by the mean of the ranks in several tasks, ties with their mean rank.

    Args:
        ranks: By submission, a rank a task; equally many each.
    """
    names = list(ranks)
    means = np.array([np.mean(ranks[name]) for name in names])
    places = [float((means < mean).sum() + ((means == mean).sum() + 1) / 2) for mean in means]
    return dict(zip(names, places, strict=True))
