"""What a check costs, before it starts."""

from dataclasses import dataclass

from runner.causality.evidence import Evidence, FullRun
from runner.causality.examination import MOST_FAILURES, MOST_UNCONFIRMED
from runner.causality.findings import RUNS_THAT_PROVE
from runner.causality.schedule import cuts_wanted, possible_lengths
from runner.challenge import AnswersCompared, CausalityMethod, CausalityRule
from runner.job import CutKind


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Container runs a check of one case adds to its ordinary run.

    Attributes:
        clean: For a method that never disagrees with itself.
        most: Never more than this, where runs are made one at a time. Runs made ahead on a guess come on top.
        relative: ``clean`` in multiples of the ordinary run, where a prefix of k of n frames costs k / n.
    """

    clean: int
    most: int
    relative: float = 0.0


def estimate(
    rule: CausalityRule,
    frames: int,
    *,
    can_alter: bool = True,
    possible: tuple[int, ...] | None = None,
    clip: bool = False,
    copied: bool = False,
    of: int | None = None,
) -> Cost:
    """What a check of a sequence of ``frames`` frames costs, in extra container runs.

    The most: each whole to three good runs with two failed ones between, each cut once, three cut points that are
    confirmed as far as possible (two more prefixes, three altered futures), and the search after a leak.

    Args:
        rule: The challenge's section.
        frames: Length of the sequence tested.
        can_alter: As in ``Evidence``, and so are ``possible``, ``clip`` and ``copied``.
        possible: Lengths at which it may be cut.
        clip: A copy of the first frames is tested.
        copied: Altered futures are laid out in a copy.
        of: Length of the case in its ordinary run; None: ``frames``.
    """
    evidence = Evidence(frames=frames, can_alter=can_alter, possible=possible, clip=clip, copied=copied)
    lengths = possible_lengths(rule, evidence)
    altered = rule.method is CausalityMethod.ALTERED_FUTURE
    cuts = cuts_wanted(rule, len(lengths))
    if cuts == 0 or (altered and not can_alter):
        return Cost(clean=0, most=0)
    first = CutKind.ALTERED_FUTURE if altered else evidence.prefix_kind
    wholes = {evidence.whole(first, 0), *({evidence.whole(CutKind.ALTERED_FUTURE, 0)} if can_alter else ())}
    free = int(evidence.whole(first, 0) == FullRun())
    once = (1 if rule.method is CausalityMethod.CUT_RUN else 2) - free
    confirmation = RUNS_THAT_PROVE - 1 + (RUNS_THAT_PROVE if can_alter and not altered else 0)
    most = len(wholes) * (RUNS_THAT_PROVE + MOST_FAILURES - 1) - free
    most += cuts + min(cuts, MOST_UNCONFIRMED) * confirmation
    if can_alter or rule.rule is AnswersCompared.LAST:
        most += 2 * frames.bit_length()
    replaced = cuts // 4 if rule.method is CausalityMethod.TARGETED and can_alter and not copied else 0
    mean = sum(lengths) / len(lengths)
    shown = frames if altered else (replaced * frames + (cuts - replaced) * mean) / cuts
    clean = once + cuts
    if rule.most_runs is not None:
        clean, most = min(clean, rule.most_runs), min(most, rule.most_runs)
    whole_runs = min(clean, once)
    relative = (whole_runs * frames + (clean - whole_runs) * shown) / (of or frames)
    return Cost(clean=clean, most=most, relative=relative)
