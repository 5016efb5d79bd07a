"""Every hostile client gets the verdict it must get, learns nothing before its time, and the engine answers others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.verdict import Verdict
from tests.attacks.expected import answered, find_attacks, matches, table
from tests.attacks.list import STREAMING, listed
from tests.attacks.stage import CASE, Played, told_by
from tests.attacks.streaming.stage import FOLDER, StreamStage, facts_of, open_stream_stage
from tests.hints.programs import OWN_STREAMS

pytestmark = [pytest.mark.engine, pytest.mark.root]

ATTACKS = find_attacks(FOLDER)
HOSTILE = "HOSTILE"
LOG_BYTES = 3 << 20
BY_NAME = {attack.name: attack for attack in ATTACKS}
_named = pytest.mark.parametrize("name", BY_NAME)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamStage]:
    with open_stream_stage(tmp_path_factory.mktemp("streaming")) as stage:
        yield stage


def _told(verdict: Verdict) -> tuple[str, ...]:
    """The verdict's notes, but for that of a host which was busy."""
    return tuple(note for note in verdict.notes if not note.startswith("the engine kept us waiting"))


def _nothing_got_out(played: Played) -> None:
    """What a participant may read is ours alone."""
    text = played.participant_text()
    assert text.isprintable() or set(text) - {"\n"} == {c for c in text if c.isprintable()}
    for hidden in (HOSTILE, CASE, "<script"):
        assert hidden not in text, text
    assert len(played.log) <= LOG_BYTES


@_named
def test_an_attack_gets_its_verdict_and_nothing_else(stage: StreamStage, name: str) -> None:
    attack = BY_NAME[name]
    played, pings = stage.attack(attack)
    expected, verdict = attack.expected, played.outcome.verdict
    seen = f"{verdict.sentence}\n{played.log[-1000:].decode(errors='replace')}"
    assert (verdict.word, verdict.blame) == (expected.verdict, expected.blame), seen
    assert matches(expected.sentence, verdict.sentence), seen
    assert _told(verdict) == expected.notes
    if expected.hint:
        assert verdict.hints[0].slug == expected.hint
    told = told_by(played.log)
    assert told.keys() == expected.answers.keys(), seen
    assert {act: got for act, got in told.items() if not answered(expected.answers[act], got)} == {}
    for text in expected.log:
        assert text.encode() in played.log
    assert played.past_limit is None, "it lived on past its time"
    assert (pings.failed, pings.answered > 0) == ([], True)
    _nothing_got_out(played)
    assert stage.leftovers() == []


@_named
def test_its_control_is_accepted_under_the_same_limits(stage: StreamStage, name: str) -> None:
    played, pings = stage.control(BY_NAME[name])
    verdict = played.outcome.verdict
    assert verdict.accepted, verdict.sentence
    assert _told(verdict) == ()
    assert (facts_of(played).answered, facts_of(played).missed) == (6, 0)
    assert pings.failed == []
    assert stage.leftovers() == []


def test_who_peeks_at_the_next_frame_is_scored_with_nothing_it_saw(stage: StreamStage) -> None:
    played, _ = stage.attack(BY_NAME["peeks-in-realtime"])
    assert played.taken == b"int_time,int_step\n" + b"".join(b"%d,-1\n" % frame for frame in range(6))
    control, _ = stage.control(BY_NAME["peeks-in-realtime"])
    assert control.taken == b"int_time,int_step\n" + b"".join(b"%d,1\n" % frame for frame in range(6))


def test_every_hint_about_streams_is_provoked() -> None:
    assert {attack.expected.hint for attack in ATTACKS} - {""} == OWN_STREAMS


def test_the_list_is_true() -> None:
    assert listed(STREAMING) == table(ATTACKS), "next: python -m tests.attacks.list"


def test_the_folder_holds_nothing_else() -> None:
    folders = {path.name for path in Path(FOLDER).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(BY_NAME)
