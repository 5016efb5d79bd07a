"""How many cuts it takes until a method that looks ahead is caught, and whether one that does not ever is. Simulated.

1. Cuts until a leak is confirmed, on 200 sequences of 300 frames a method, in the order of ``method: targeted``, in a
   random order, and in that of ``method: exhaustive``. Where no cut at all changes an answer of a sequence, the method
   does not leak there, and the sequence is left out ("of" tells how many remain). Bars: for ``targeted`` a median of at
   most 2, and 5 at the 95th percentile; none for families whose leaks are rarer than those of methods in use.
2. 10,000 whole checks of causal methods that flip answers at random, with rates from 1 in 100,000 to 1 in 100. Bar:
   none is called leaking.
3. What the sentence for a clean method claims: of cut points that leak in the stated share, at random places, n random
   cuts meet one in 95 % of the draws, or more, since they are drawn without replacement. Bar: 95 %, less three standard
   errors.

    python benchmarks/causality_power.py [--sequences 200] [--checks 10000] [--json]

Ends with 1 where a bar is missed.
"""

import argparse
import json
import os
import sys
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner.causality import upper_bound
from runner.causality.answers import differing
from runner.challenge import CausalityRule, LeakPolicy
from runner.job import Cut, CutKind
from tools.simulated_methods import (
    CAUSAL,
    FRAMES,
    LABELS,
    LOOKING_AHEAD,
    SELDOM,
    Method,
    a_case,
    ahead,
    answers_of,
    examine_in_one_go,
    flipping,
    recurrent,
    view,
)

MOST_CUTS = 60
MEDIAN_BAR, LATE_BAR = 2, 5
FEW = 0.01
RATES = (1e-5, 1e-4, 1e-3, 1e-2)
DRAWS = 20_000
FAMILIES = {**LOOKING_AHEAD, **SELDOM}
UNBARRED = frozenset(SELDOM)
CAUSAL_OF: dict[str, Method] = {
    "peeks only in the last second": recurrent,
    "leaks in fewer than 1 % of frames": recurrent,
    "leaks in fewer than 0.1 %": recurrent,
    "smoothing, 15 behind and 1 ahead": CAUSAL["causal smoothing"],
}
"""What those would answer that could look ahead only now and then, if they did not."""


def a_rule(cuts: int) -> CausalityRule:
    """Targeted, with so many cuts."""
    return CausalityRule(
        method="targeted", on=1, cuts=cuts, on_leak=LeakPolicy.REFUSE, length_dependence=LeakPolicy.REPORT
    )


@dataclass(frozen=True, kw_only=True)
class Order:
    """Cuts until detection over the sequences on which a method leaks; those never caught count as infinitely many."""

    median: float | None
    late: float | None
    caught: int


@dataclass(frozen=True, kw_only=True)
class Family:
    """What came of a method that looks ahead.

    Attributes:
        name: Of the family.
        changed: Share of the answers that looking ahead changes, where that is told.
        leaking: Share of cut points that show it.
        sequences: On how many sequences any cut does.
        orders: By name of the order.
        barred: It is held to the bars.
    """

    name: str
    changed: float | None
    leaking: float
    sequences: int
    orders: dict[str, Order]
    barred: bool

    @property
    def missed(self) -> bool:
        """It misses a bar."""
        found = self.orders["targeted"]
        late = found.median is None or found.late is None or found.median > MEDIAN_BAR or found.late > LATE_BAR
        return self.barred and late


def leaking_cuts(method: Method, seed: int) -> NDArray[np.bool_]:
    """For k = 1 … 299: a prefix of k frames changes answers, and so do other frames from k on."""
    case, other = a_case(2 * seed), a_case(2 * seed + 1)
    full = answers_of(method(case))

    def changes(cut: Cut) -> bool:
        seen = answers_of(method(view(case, other, cut)))
        return bool(differing(full, seen, cut.frames, tolerance=1e-4).any())

    both = (
        changes(Cut(frames=k)) and changes(Cut(frames=k, kind=CutKind.ALTERED_FUTURE)) for k in range(1, FRAMES)
    )  # fmt: skip
    return np.fromiter(both, dtype=np.bool_)


def measure_sequence(name: str, seed: int) -> tuple[int, int, int, float] | None:
    """Cuts until detection by the three orders (0: never), and the share of cut points that leak; None where none."""
    method = FAMILIES[name]
    leaks = leaking_cuts(method, seed)
    verdict = examine_in_one_go(method, seed, a_rule(MOST_CUTS))
    targeted = verdict.cuts_tested if verdict.first_leak is not None else 0
    if not leaks.any():
        return (targeted, 0, 0, 0.0) if targeted else None
    shuffled = np.random.default_rng(seed).permutation(leaks)
    return targeted, 1 + int(shuffled.argmax()), 1 + int(leaks.argmax()), float(leaks.mean())


def measure_family(name: str, sequences: int, pool: Executor) -> Family:
    """All sequences of a family."""
    measured = pool.map(measure_sequence, [name] * sequences, range(sequences), chunksize=25)
    found = [one for one in measured if one is not None]
    columns = list(zip(*found, strict=True))
    orders = {order: _order(columns[i]) for i, order in enumerate(("targeted", "random", "exhaustive"))}
    changed = _changed(name, sequences)
    few = changed is not None and changed < FEW
    return Family(
        name=name,
        changed=changed,
        leaking=float(np.mean(columns[3])),
        sequences=len(found),
        orders=orders,
        barred=not few and name not in UNBARRED,
    )


def _changed(name: str, sequences: int) -> float | None:
    causal = CAUSAL_OF.get(name)
    if causal is None:
        return None
    shares = [(FAMILIES[name](a_case(2 * seed)) != causal(a_case(2 * seed))).mean() for seed in range(sequences)]
    return float(np.mean(shares))


def _order(cuts: tuple[float, ...]) -> Order:
    taken = np.array([one or np.inf for one in cuts])
    median, late = np.percentile(taken, [50, 95], method="higher")
    return Order(
        median=float(median) if np.isfinite(median) else None,
        late=float(late) if np.isfinite(late) else None,
        caught=int(np.isfinite(taken).sum()),
    )


def check_flipping(number: int, rate: float) -> str:
    """One check of a causal method with random flips; its outcome."""
    methods = (ahead(0), recurrent)
    method = flipping(methods[number % len(methods)], rate, number)
    return examine_in_one_go(method, number, a_rule(20)).outcome.value


def met_at_the_stated_share(random_cuts: int) -> dict[str, float]:
    """How often n random cuts meet a leaking cut point, where as many leak as the sentence of a clean method allows."""
    possible = FRAMES - 1
    share = upper_bound(random_cuts, tested_clean=random_cuts, possible=possible)
    leaking = int(np.ceil(share * possible))
    rng = np.random.default_rng(random_cuts)
    met = [(rng.permutation(possible)[:random_cuts] < leaking).any() for _ in range(DRAWS)]
    return {"random_cuts": random_cuts, "share": share, "met": float(np.mean(met))}


def main() -> int:
    """Measure and print; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--checks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    count = options.checks // len(RATES)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        families = [measure_family(name, options.sequences, pool) for name in FAMILIES]
        flips = {rate: Counter(pool.map(check_flipping, range(count), [rate] * count, chunksize=25)) for rate in RATES}
    stated = [met_at_the_stated_share(n) for n in (1, 5, 10, 20)]
    missed = [f"{f.name}: more cuts than the bar" for f in families if f.missed]
    missed += [f"{found['leaking']} convicted at {rate:g}" for rate, found in flips.items() if found["leaking"]]
    least = 0.95 - 3 * np.sqrt(0.95 * 0.05 / DRAWS)
    missed += [
        f"{one['random_cuts']} random cuts meet a leak in {one['met']:.1%}" for one in stated if one["met"] < least
    ]
    result = {
        "families": [asdict(family) for family in families],
        "flips": {f"{rate:g}": dict(found) for rate, found in flips.items()},
        "stated": stated,
        "missed": missed,
    }
    if options.json:
        json.dump(result, sys.stdout, indent=1)
    else:
        _print(families, flips, stated, missed)
    return 1 if missed else 0


def _print(
    families: list[Family], flips: dict[float, Counter[str]], stated: list[dict[str, float]], missed: list[str]
) -> None:
    print(f"Cuts until a leak was confirmed, of {FRAMES - 1} possible ones, {LABELS} labels: median / 95 %")
    print(f"{'':36} {'targeted':>10} {'random':>10} {'exhaustive':>10} {'leaking':>9} {'changed':>9}  caught of")
    for family in families:
        shown = [f"{_number(one.median)} / {_number(one.late)}" for one in family.orders.values()]
        changed = "" if family.changed is None else f"{family.changed:.2%}"
        note = "missed" if family.missed else "" if family.barred else "no bar"
        caught = f"{family.orders['targeted'].caught} of {family.sequences}"
        columns = " ".join(f"{one:>10}" for one in shown)
        print(f"{family.name:36} {columns} {family.leaking:9.1%} {changed:>9}  {caught} {note}")
    print("\nCausal methods with random flips")
    for rate, found in flips.items():
        shares = ", ".join(f"{count / found.total():.1%} {word}" for word, count in found.most_common())
        print(f"  1 in {1 / rate:<9,.0f} {found['leaking']} of {found.total()} convicted; {shares}")
    print("\nRandom cuts that meet a leaking cut point at the share stated for a clean method")
    for one in stated:
        print(f"  {one['random_cuts']:3.0f} cuts, {one['share']:.1%} leaking: {one['met']:.2%}")
    print("\n" + ("; ".join(missed) if missed else "No bar is missed."))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


if __name__ == "__main__":
    sys.exit(main())
