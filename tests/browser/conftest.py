"""A report as a final would give it: five submissions, eight cases, one of everything that can happen."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.report import (
    CaseRow,
    CausalityPicture,
    CausalitySection,
    Chip,
    CutMark,
    CutState,
    Fact,
    HintLine,
    Histogram,
    Label,
    LatencySection,
    Leaderboard,
    PendingCase,
    ProblemLine,
    RankedLine,
    ReportView,
    Ribbon,
    SubmissionSection,
    TaskSection,
    Tone,
    UnrankedLine,
    ViewRibbon,
    segments_of,
)

FRAMES = 300
STEPS = (
    "out of patient", "no step", "nasal corridor creation", "anterior sphenoidotomy", "septum displacement",
    "sphenoid sinus clearance", "sellotomy", "durotomy", "tumour excision", "haemostasis", "synthetic graft placement",
    "fat graft placement", "gasket seal construct", "dural sealant", "nasal packing", "debris clearance",
)  # fmt: skip
LABELS = tuple(Label(number=n - 1, name=name) for n, name in enumerate(STEPS))
ACCEPTED = Chip(word="accepted", tone=Tone.GOOD)
ONLINE = Chip(word="online-compatible", tone=Tone.GOOD)
HOSTILE = "<script>alert(1)</script>\u202eevil\u2066 \"'><img src=x onerror=alert(1)>"


def workflow(rng: np.random.Generator) -> NDArray[np.int64]:
    """Steps mostly in their order, some of them revisited."""
    bounds = np.sort(rng.choice(np.arange(5, FRAMES - 5), size=17, replace=False))
    order = np.clip(np.arange(18) + rng.integers(-1, 2, 18), 0, 15) - 1
    return np.asarray(order[np.searchsorted(bounds, np.arange(FRAMES), side="right")], dtype=np.int64)


def predicted(reference: NDArray[np.int64], rng: np.random.Generator, noise: float) -> NDArray[np.int64]:
    late = reference[np.clip(np.arange(FRAMES) - rng.integers(0, 6), 0, FRAMES - 1)]
    wrong = np.repeat(rng.random(FRAMES // 6) < noise, 6)
    return np.asarray(np.where(wrong, np.clip(late + rng.integers(-1, 2), -1, 14), late), dtype=np.int64)


def ribbon(title: str, reference: NDArray[np.int64] | None, prediction: NDArray[np.int64] | None) -> Ribbon:
    return Ribbon(
        title=title,
        frames=FRAMES,
        fps=1.0,
        labels=LABELS,
        reference=None if reference is None else segments_of(reference),
        prediction=None if prediction is None else segments_of(prediction),
    )


def case_rows(seed: int, noise: float) -> Iterator[CaseRow]:
    rng = np.random.default_rng(seed)
    for n in range(1, 9):
        reference = workflow(np.random.default_rng(100 + n))
        prediction = predicted(reference, rng, noise)
        share = float((reference == prediction).mean())
        yield CaseRow(
            case=f"video_{25 + n:02d}",
            verdict=ACCEPTED,
            blame="nobody",
            sentence=f"Ran {17 + n / 3:.1f} s of 30.0 s allowed.",
            run_seconds=17 + n / 3,
            limit_seconds=30.0,
            scores=(share, min(1.0, share + 0.05), max(0.0, share - 0.1)),
            ribbons=(ribbon("int_step", reference, prediction),),
        )


METRICS = ("mean F1 and edit", "macro F1", "edit score")


def broken_rows(seed: int) -> tuple[CaseRow, ...]:
    first, second, third, *rest = case_rows(seed, 0.3)
    timed_out = CaseRow(
        case=first.case,
        verdict=Chip(word="timed-out", tone=Tone.BAD),
        blame="participant",
        sentence="Ran 61.0 s of 30.0 s allowed, and 60.2 s when repeated alone.",
        notes=("The better of two times was judged.",),
        hints=(HintLine(cause="The image loads its weights for each frame.", fix="Load them once, before the loop."),),
        run_seconds=60.2,
        limit_seconds=30.0,
        scores=(None, None, None),
        ribbons=(ribbon("int_step", workflow(np.random.default_rng(101)), None),),
    )
    bad = CaseRow(
        case=second.case,
        verdict=Chip(word="bad-output", tone=Tone.BAD),
        blame="participant",
        sentence="The file has 214 problems; the first is in row 41.",
        problems=(
            ProblemLine(place="row 41, int_step", what="the label 15 is not one of -1 to 14"),
            ProblemLine(place="row 44", what="the index is 43 where 42 was due"),
        ),
        problem_count=214,
        run_seconds=21.0,
        limit_seconds=30.0,
        scores=(None, None, None),
    )
    pending = CaseRow(
        case=third.case,
        verdict=Chip(word="host-fault", tone=Tone.WAITING),
        blame="host",
        sentence="The engine did not answer; the case is run again by: proctor resume.",
        limit_seconds=30.0,
        scores=(None, None, None),
    )
    return (timed_out, bad, pending, *rest)


def causality(*, leaks: bool) -> CausalitySection:
    full = predicted(workflow(np.random.default_rng(101)), np.random.default_rng(3), 0.1)
    rng = np.random.default_rng(8)
    cuts = [
        CutMark(frames=int(k), random=bool(i % 2), state=CutState.CLEAN)
        for i, k in enumerate(rng.permutation(299)[:20])
    ]
    if leaks:
        cuts = [*cuts[:2], CutMark(frames=121, random=False, state=CutState.UNDECIDED)]
        cuts.append(CutMark(frames=182, random=True, state=CutState.CHANGED))
        cuts.append(CutMark(frames=60, random=False, state=CutState.CLEAN))
    return CausalitySection(
        case="video_26",
        outcome=Chip(word="leaking", tone=Tone.BAD) if leaks else Chip(word="passed", tone=Tone.GOOD),
        text=(
            "The answer for 4 frames, the first of them 178, changed when the frames from 182 on were withheld, and "
            "again when they were replaced by others: 3 runs of the full sequence agree, 3 with the other frames "
            "agree, and they differ. Found with 3 of 299 possible cuts."
            if leaks
            else "No answer changed when later frames were withheld: 20 of 299 possible cuts tested, 10 of them "
            "random. At 95 % this leaves room for at most 25.9 % of cut points that leak."
        ),
        facts=(Fact(name="cuts tested", value="20 of 299"), Fact(name="noise", value="0.0 % of 300 frames")),
        pictures=(
            CausalityPicture(
                full=ribbon("int_step", None, full),
                cuts=tuple(cuts),
                leak_frame=178 if leaks else None,
                views=tuple(leaking_views(full) if leaks else clean_views(full, [cut.frames for cut in cuts])),
                full_answer=STEPS[int(full[178]) + 1] if leaks else "",
                view_answer=STEPS[8] if leaks else "",
                future_frames=4 if leaks else None,
            ),
        ),
        summary="" if leaks else "No answer changed in 8 cases: 160 of 2392 possible cuts tested.",
        pace="Start-up about 1.2 s, then 0.031 s a frame (slope over 23 runs); reported, never judged.",
        online=Chip(word="not online-compatible", tone=Tone.WARNING) if leaks else ONLINE,
    )


def clean_views(full: NDArray[np.int64], cuts: list[int]) -> Iterator[ViewRibbon]:
    for k in cuts[:12]:
        yield ViewRibbon(kind=f"First {k} frames", cut=k, frames=k, answers=segments_of(full[:k]), state=CutState.CLEAN)


def leaking_views(full: NDArray[np.int64]) -> Iterator[ViewRibbon]:
    """A clean prefix, one without answers, one that changes four answers, and the altered future that proves it."""
    changed = full.copy()
    changed[178:182] = 7
    altered = np.concatenate([changed[:182], workflow(np.random.default_rng(5))[182:]])
    yield from clean_views(full, [60])
    yield ViewRibbon(kind="First 121 frames", cut=121, frames=121, answers=(), state=CutState.UNDECIDED)
    prefix = segments_of(changed[:182])
    yield ViewRibbon(kind="First 182 frames", cut=182, frames=182, answers=prefix, state=CutState.CHANGED)
    yield ViewRibbon(
        kind="Other frames from 182 on", cut=182, frames=FRAMES, answers=segments_of(altered), state=CutState.CHANGED
    )


EDGES = (0.0, *np.geomspace(0.1, 10_000, 51).round(6).tolist(), float("inf"))
"""Milliseconds: ten a decade."""


def latency(case: str, seed: int, *, usual: float, frames: int = 4500) -> LatencySection:
    """One slow first frame, a slow spell in the middle, two answers that never came."""
    rng = np.random.default_rng(seed)
    seconds = rng.lognormal(np.log(usual), 0.25, frames)
    seconds[0] = 1.3
    seconds[frames // 2 : frames // 2 + 40] *= 6
    late = np.flatnonzero(seconds > 0.04).tolist()
    counts = np.histogram(1000 * seconds, EDGES)[0].tolist()
    return LatencySection(
        case=case,
        online=ONLINE if usual < 0.01 else Chip(word="not online-compatible", tone=Tone.WARNING),
        text="Released at 25 frames a second; a late answer is missed and never scored.",
        start_up=2.41,
        first_frame=1.3,
        mean=float(seconds.mean()),
        p50=float(np.quantile(seconds, 0.5)),
        p95=float(np.quantile(seconds, 0.95)),
        p99=float(np.quantile(seconds, 0.99)),
        longest=float(seconds.max()),
        period=0.04,
        over_period=len(late) + 2,
        missed=(*late, frames - 9, frames - 8),
        over_time=(*seconds[:-9].tolist(), None, None, *seconds[-7:].tolist()),
        frames=frames,
        histogram=Histogram(edges_ms=EDGES, counts=tuple(counts)),
    )


def submission(name: str, team: str, seed: int, noise: float, status: str = "competing") -> SubmissionSection:
    return SubmissionSection(
        submission=name,
        team=team,
        status=status,
        standing=ACCEPTED,
        facts=(
            Fact(name="image", value=f"sha256:{seed:064x}"),
            Fact(name="received", value="2023-09-01 11:58 UTC"),
            Fact(name="run time, all cases", value="148 s of 240 s"),
        ),
        tasks=(TaskSection(title="Step recognition", metrics=METRICS, cases=tuple(case_rows(seed, noise))),),
        causality=(causality(leaks=False),),
        latency=(latency("video_26", seed, usual=0.003 * seed * seed),),
    )


@pytest.fixture(scope="session")
def view() -> ReportView:
    good = [
        submission("steps-v2", "Orchard Lane Robotics", 1, 0.05),
        submission("final", "Université de la Côte, groupe « Vision »", 2, 0.12),
        submission("baseline-resnet", "organisers", 3, 0.25, "baseline"),
    ]
    bad = SubmissionSection(
        submission="last-minute",
        team="Team of a very long name, Institute for Computer-Assisted Surgery and Everything Around It",
        status="competing",
        standing=Chip(word="rejected", tone=Tone.BAD),
        tasks=(TaskSection(title="Step recognition", metrics=METRICS, cases=broken_rows(4)),),
        causality=(causality(leaks=True),),
    )
    hostile = SubmissionSection(
        submission=HOSTILE, team=HOSTILE, status="competing", standing=Chip(word="rejected", tone=Tone.BAD)
    )
    ranked = [(s, tuple(c.scores[0] or 0.0 for c in s.tasks[0].cases)) for s in good]
    board = Leaderboard(
        title="Step recognition",
        value_name="mean F1 and edit",
        better="higher is better",
        method="Mean over 8 cases, then rank; ties take the smallest rank; rounded to 6 decimals before ranking.",
        metrics=METRICS[1:],
        strip=(0.0, 1.0),
        ranked=tuple(
            RankedLine(
                rank=place,
                team=s.team,
                submission=s.submission,
                value=float(np.mean(scores)),
                metrics=(float(np.mean(scores)) + 0.04, float(np.mean(scores)) - 0.09),
                cases=scores,
            )
            for place, (s, scores) in enumerate(ranked[:2], start=1)
        ),
        unranked=(
            UnrankedLine(
                team="organisers",
                submission="baseline-resnet",
                reason="baseline: shown, not ranked",
                value=float(np.mean(ranked[2][1])),
                metrics=(0.7, 0.6),
            ),
            UnrankedLine(
                team=bad.team,
                submission="last-minute",
                reason="not-causal on video_26: the rule refuses",
                metrics=(None, None),
            ),
            UnrankedLine(team=HOSTILE, submission=HOSTILE, reason="bad-image on all cases", metrics=(None, None)),
        ),
    )
    return ReportView(
        title="PitVis 2023, workflow recognition in endoscopic pituitary surgery",
        challenge="pitvis2023",
        version="1.0",
        digest="sha256:" + "7e" * 32,
        banner="Contains hidden references: do not publish",
        run=(
            Fact(name="started", value="2023-09-02 19:00 UTC"),
            Fact(name="engine", value="Docker 27.1, runc 1.1"),
            Fact(name="GPU", value="V100 32 GB, driver 550.54"),
            Fact(name="proctor", value="0.1.0"),
        ),
        leaderboards=(board,),
        submissions=(*good, bad, hostile),
        assumptions=(
            "A missing case counts as the worst value, 0.",
            "F1 is the mean over classes that occur in the reference or the prediction of a video.",
        ),
        pending=(PendingCase(submission="last-minute", case="video_28", reason="the engine did not answer"),),
    )
