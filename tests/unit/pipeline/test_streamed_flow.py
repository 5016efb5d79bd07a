"""A streamed entry goes through the flow as any other: runs, verdicts, resume; its causality holds by construction."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.challenge import Challenge
from runner.clock import SimulatedClock
from runner.confine import Confine
from runner.engine.fake import FakeBox, FakeEngine, FakeTalk
from runner.judge import CaseOutcome
from runner.pipeline.cases import done_parts, runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.looking_ahead import CausalityRecord, is_checked, pass_by_construction, policy_for
from runner.pipeline.streams import stream_of
from runner.plan import shared_runs
from runner.store import read_value
from runner.submissions import Profile
from runner.verdict import VerdictWord
from tests.unit.pipeline.test_looking_ahead import Stage


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine() as opened:
        yield opened


@pytest.fixture
def stage(tmp_path: Path, confine: Confine) -> Stage:
    clock = SimulatedClock()
    stage = Stage(folder=tmp_path, engine=FakeEngine(clock), clock=clock, confine=confine)
    stage.case("a", [0, 1, 0])
    stage.case("b", [1, 1])
    return stage


@pytest.fixture
def challenge(make_challenge: Callable[..., Challenge]) -> Callable[..., Challenge]:
    """A challenge that asks for causality and offers streams."""

    def make(mode: str, **invocation: Any) -> Challenge:
        rule = {"method": "targeted", "on": "all", "cuts": 4, "on_leak": "refuse", "length_dependence": "refuse"}
        return make_challenge(causality=rule, invocation={"mode": mode, "stream": {}, "args": (), **invocation})

    return make


def client(change: Callable[[int], int] = lambda label: label) -> Callable[[FakeBox], FakeTalk]:
    """A client that answers what stands in each frame."""

    def program(box: FakeBox) -> FakeTalk:
        said, reply = (yield b""), b""
        while said:
            for line in said.splitlines():
                message = json.loads(line)
                if message["type"] == "hello":
                    reply += b'{"type":"hello","protocol":1,"frames":"path"}\n'
                elif message["type"] == "frame":
                    label = int(box.path(message["inputs"]["frames"]["path"]).read_text())
                    answer = {"type": "answer", "index": message["index"], "answer": {"step": change(label)}}
                    reply += json.dumps(answer).encode() + b"\n"
            said, reply = (yield reply), b""
        return 0

    return program


def entry_of(stage: Stage, context: Context, program: Callable[[FakeBox], FakeTalk]) -> Entry:
    """A submission that chose to be streamed to."""
    (entry,) = stage.entries(context, program)  # type: ignore[arg-type]
    (shared,) = shared_runs(context.challenge, ("steps",), profile=Profile.STREAM)
    return replace(entry, shared=shared)


def settled(context: Context, entry: Entry) -> dict[str, CaseOutcome]:
    return {outcome.case: outcome for run in runs_of(context, entry) for outcome in settle_run(context, run)}


@pytest.mark.parametrize("mode", ["case", "dataset", "stream"])
def test_each_case_has_a_container_and_its_verdict(
    stage: Stage, challenge: Callable[..., Challenge], mode: str
) -> None:
    context = stage.context(challenge(mode))
    entry = entry_of(stage, context, client())
    outcomes = settled(context, entry)
    assert {case: outcome.verdict.word for case, outcome in outcomes.items()} == dict.fromkeys(
        ("a", "b"), VerdictWord.ACCEPTED
    )
    assert [outcome.ran_as for outcome in outcomes.values()] == [None, None]
    assert stage.starts == 2
    facts = stream_of(context.run, outcomes["a"])
    assert facts is not None
    assert (facts.answered, facts.released, facts.breach) == (3, 3, "")
    kept = context.run.attempt("ours", "steps", "a", "full", 1) / "predictions" / "prediction.csv"
    assert kept.read_text() == "t,step\n0,0\n1,1\n2,0\n"


def test_what_is_done_is_not_done_again(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    context = stage.context(challenge("case"))
    entry = entry_of(stage, context, client())
    first = settled(context, entry)
    assert [done_parts(context, run) for run in runs_of(context, entry)] == [1, 1]
    assert settled(context, entry) == first
    assert stage.starts == 2
    batch = replace(entry, shared=shared_runs(context.challenge, ("steps",))[0])
    assert [done_parts(context, run) for run in runs_of(context, batch)] == [0, 0]


def test_a_verdict_of_a_stream_has_its_hint_and_costs_its_case(
    stage: Stage, challenge: Callable[..., Challenge]
) -> None:
    def strays(box: FakeBox) -> FakeTalk:
        talk = client()(box)
        next(talk)
        said = yield b""
        while said:
            reply = talk.send(said)
            said = yield reply.replace(b'"index": 1', b'"index": 9')
        return 0

    context = stage.context(challenge("case"))
    outcome = settled(context, entry_of(stage, context, strays))["a"]
    assert outcome.verdict.word is VerdictWord.BROKE_PROTOCOL
    assert outcome.verdict.sentence == "it answered a frame that it had not been shown"
    assert [hint.slug for hint in outcome.verdict.hints] == ["answer-out-of-turn"]
    assert context.challenge.consequence.scope_of(outcome.verdict.word.value) == "case"


def test_bad_answers_are_named_by_their_rows(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    context = stage.context(challenge("case"))
    outcome = settled(context, entry_of(stage, context, client(lambda label: 7 * label)))["a"]
    assert outcome.verdict.word is VerdictWord.BAD_OUTPUT
    assert outcome.verdict.sentence == "<case>.csv has 1 problem: row 3: step is not a label: 0 to 1 are"


def test_causality_holds_by_construction_and_no_cut_is_run(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    context = stage.context(challenge("case"))
    entry = entry_of(stage, context, client())
    outcomes = settled(context, entry)
    assert not is_checked(context, entry)
    record = pass_by_construction(context, entry, "steps", outcomes)
    assert (record.findings, record.by_construction) == ((), True)
    assert record.online_compatible in (True, False)
    assert read_value(context.run.causality("ours", "steps"), CausalityRecord) == record
    assert policy_for(context.challenge.causality, record) is None
    assert stage.starts == 2


def test_nothing_is_said_of_the_pace_where_nothing_was_streamed_to_its_end(
    stage: Stage, challenge: Callable[..., Challenge]
) -> None:
    context = stage.context(challenge("case"))
    entry = entry_of(stage, context, client(lambda _: 7))
    record = pass_by_construction(context, entry, "steps", settled(context, entry))
    assert (record.by_construction, record.online_compatible) == (True, None)
