"""What ``proctor causality`` prints of a report, for people and for programs."""

import json
from dataclasses import replace

import pytest

from runner.causality import CausalityOutcome, CausalityVerdict, Standing, TriedCut
from runner.challenge import CausalityMethod, CausalityRule, LeakPolicy
from runner.cli import causality
from runner.errors import UsageError
from runner.pipeline.causality import CausalityPlan, CausalityReport
from runner.pipeline.looking_ahead import CausalityFinding, CausalityRecord
from runner.pipeline.pace import Pace
from runner.verdict import Hint, Verdict, VerdictWord

RULE = CausalityRule(
    method=CausalityMethod.TARGETED, on=1, on_leak=LeakPolicy.REFUSE, length_dependence=LeakPolicy.REPORT
)
PLAN = CausalityPlan(seed=2**63, cases=("A",), expected=21, most=50, relative=11.4)
CUTS = tuple(TriedCut(frames=k, random=k % 2 == 0, standing=Standing.CLEAN) for k in range(1, 43))
VERDICT = CausalityVerdict(
    outcome=CausalityOutcome.PASSED, sentence="for all", detail="Nothing [red]changed[/].", cuts=CUTS
)
RECORD = CausalityRecord(
    findings=(CausalityFinding(case="A\x1b[2J", frames=60, verdict=VERDICT),), summary=VERDICT,
    pace=Pace(start_up_seconds=1.25, seconds_per_frame=0.0105, runs=22), online_compatible=True,
)  # fmt: skip
REPORT = CausalityReport(
    challenge="toy", version="1", digest="0123456789abcdef", image="sha256:1", rule=RULE, plan=PLAN,
    records={"steps": RECORD},
)  # fmt: skip


def shown(report: CausalityReport, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    causality._show(report, as_json=as_json)
    return capsys.readouterr().out


def test_a_clean_method(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(REPORT, capsys)
    lines = text.splitlines()
    assert lines[:2] == [
        "✓ passed: Nothing [red]changed[/].",
        "  10.5 ms a frame and 1.2 s to start, by the slope over 22 runs; online-compatible",
    ]
    assert lines[-1] == f"challenge toy 1, digest 0123456789ab; method targeted, seed {2**63}"
    assert "2 more: --json" in text
    assert "at random" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("outcome", "sign"),
    [(CausalityOutcome.LEAKING, "✗ leaking"), (CausalityOutcome.INCONCLUSIVE, "? inconclusive")],
)
def test_other_outcomes(capsys: pytest.CaptureFixture[str], outcome: CausalityOutcome, sign: str) -> None:
    record = replace(RECORD, summary=replace(VERDICT, outcome=outcome), online_compatible=False, pace=None)
    report = replace(REPORT, records={"a": record, "b": RECORD})
    text = shown(report, capsys)
    assert text.startswith(f"task a: {sign}: ")
    assert "task b: ✓ passed: " in text
    assert report.leaking is (outcome is CausalityOutcome.LEAKING)


def test_an_image_that_gives_no_answers(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Verdict(
        word=VerdictWord.CRASHED, sentence="case A: it ended with 3", hints=(Hint(cause="a fault", fix="mend it"),)
    )
    text = shown(replace(REPORT, refusal=verdict, records={}, log="one\n\x1b[1mtwo\n"), capsys)
    assert text.splitlines()[:5] == [
        "✗ not tested    crashed: case A: it ended with 3", "  likely a fault", "  mend   mend it",
        "  the end of what the container printed:", "  | one",
    ]  # fmt: skip
    assert "\x1b" not in text


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    value = json.loads(shown(REPORT, capsys, as_json=True))
    assert (value["leaking"], value["refusal"], value["rule"]["cuts"]) == (False, None, 20)
    assert value["plan"] == {
        "seed": str(2**63), "cases": ["A"], "expected_runs": 21, "most_runs": 50, "times_the_plain_evaluation": 11.4,
    }  # fmt: skip
    assert value["tasks"]["steps"]["pace"] == {"start_up_seconds": 1.25, "seconds_per_frame": 0.0105, "runs": 22}
    assert len(value["tasks"]["steps"]["findings"][0]["verdict"]["cuts"]) == 42
    refused = replace(REPORT, plan=None, refusal=Verdict(word=VerdictWord.BAD_IMAGE, sentence="no"), records={})
    value = json.loads(shown(refused, capsys, as_json=True))
    assert (value["plan"], value["refusal"]) == (None, {"verdict": "bad-image", "sentence": "no"})


def test_how_many_cases() -> None:
    assert [causality._cases(text) for text in (None, "all", "3")] == [None, "all", 3]
    for text in ("few", "-1", "1.5", ""):
        with pytest.raises(UsageError) as caught:
            causality._cases(text)
        assert caught.value.what == f"--cases {text!r} is neither a number nor 'all'"
