"""Every hostile container gets the verdict it must get, reaches nothing, leaves nothing, and tells nobody anything."""

import csv
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.budget import KILL_GRACE
from runner.verdict import VerdictWord
from tests.attacks.expected import Attack, answered, find_attacks, matches, table
from tests.attacks.list import listed
from tests.attacks.stage import CASE, REFERENCE_MARK, SECRET, TEAM, Played, Stage, open_stage, told_by

pytestmark = [pytest.mark.engine, pytest.mark.root]

ATTACKS = find_attacks()
HOSTILE = "HOSTILE"
"""What attacks write into every text they can reach."""

PAST_LIMIT = 3.0
"""Seconds from a limit to the death of the last process."""

LOG_BYTES = 3 << 20
_named = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
_by_volume = pytest.mark.parametrize(
    "attack", [a for a in ATTACKS if "volume" in a.expected.places], ids=lambda attack: attack.name
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("attacks")) as stage:
        yield stage


def _expected_verdict(attack: Attack, played: Played, place: str) -> None:
    verdict = played.outcome.verdict
    assert (verdict.word, verdict.blame) == (attack.expected.verdict_in(place), attack.expected.blame), verdict.sentence
    assert matches(attack.expected.sentence_in(place), verdict.sentence), verdict.sentence
    assert verdict.notes == attack.expected.notes
    assert len(played.outcome.all_seconds) == 1, "nothing else may have run on the host"


def _it_happened(attack: Attack, played: Played, stage: Stage) -> None:
    """What the attack says of its acts, and what the organisers' log holds of it."""
    for text in attack.expected.log:
        assert text.replace("{pixels}", stage.host.pixels).encode() in played.log
    told = told_by(played.log)
    assert told.keys() == attack.expected.answers.keys(), played.log.decode(errors="replace")[-2000:]
    wrong = {act: got for act, got in told.items() if not answered(attack.expected.answers[act], got)}
    assert wrong == {}


def _nothing_got_out(played: Played, stage: Stage) -> None:
    """What a participant may read is ours alone; what was taken out is the container's alone."""
    text = played.participant_text()
    assert text.isprintable() or set(text) - {"\n"} == {c for c in text if c.isprintable()}
    for secret in (HOSTILE, CASE, SECRET, REFERENCE_MARK, "<script", str(stage.host.reference.parent)):
        assert secret not in text, text
    assert not set(re.findall(r"[0-9]+", text)) & stage.host.telling_pixels, text
    for mark in (SECRET, REFERENCE_MARK):
        assert mark.encode() not in (played.taken or b"")
        assert mark.encode() not in played.log
    assert len(played.log) <= LOG_BYTES


def _nothing_is_left(stage: Stage) -> None:
    assert stage.leftovers() == []
    assert not stage.host.marker.exists(), "code of a submission ran on the host"
    assert stage.host.callers() == 0, "a service of the host was reached"


@_named
def test_an_attack_gets_its_verdict_and_nothing_else(stage: Stage, attack: Attack) -> None:
    played = stage.attack(attack)
    _expected_verdict(attack, played, "loop")
    _it_happened(attack, played, stage)
    _nothing_got_out(played, stage)
    _nothing_is_left(stage)


@_named
def test_its_control_is_accepted_under_the_same_limits(stage: Stage, attack: Attack) -> None:
    stage.attack(attack)  # first: what it may have left must not matter
    verdict = stage.control(attack).outcome.verdict
    assert verdict.accepted, verdict.sentence
    _nothing_is_left(stage)


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.expected.outlasts], ids=lambda attack: attack.name)
def test_the_last_process_of_an_attack_that_outlasts_its_limit_dies_soon_after(stage: Stage, attack: Attack) -> None:
    played = stage.attack(attack)
    limit = played.outcome.limit
    assert played.past_limit is not None, "it did not outlast its limit"
    assert KILL_GRACE - 0.5 <= played.past_limit <= PAST_LIMIT
    assert played.result.usage.monotonic_seconds - limit <= PAST_LIMIT


def test_no_other_attack_outlasts_its_limit(stage: Stage) -> None:
    late = [a.name for a in ATTACKS if not a.expected.outlasts and stage.attack(a).past_limit is not None]
    assert late == []


@_by_volume
def test_an_output_in_a_volume_gives_the_same_verdict(stage: Stage, attack: Attack) -> None:
    played = stage.attack(attack, "volume")
    _expected_verdict(attack, played, "volume")
    _it_happened(attack, played, stage)
    _nothing_got_out(played, stage)
    assert stage.control(attack, "volume").outcome.verdict.accepted
    _nothing_is_left(stage)


def test_one_team_cannot_take_what_another_needs_at_the_same_time(stage: Stage) -> None:
    attack = next(a for a in ATTACKS if a.name == "fills-inotify")
    limits = attack.expected.room()
    ended: list[float] = []

    def hold() -> None:
        assert stage.play(attack.script, limits, "loop", name="holds").outcome.verdict.accepted
        ended.append(time.monotonic())

    before = len(stage.engine.watches)
    holder = threading.Thread(target=hold)
    holder.start()
    while len(stage.engine.watches) == before:
        time.sleep(0.01)
    time.sleep(0.4)  # of the second and more for which it holds them
    assert stage.play(attack.control, limits, "loop", name="needs").outcome.verdict.accepted
    still_held = not ended
    holder.join(30)
    assert still_held


def test_the_hosts_service_can_be_reached_by_the_host(stage: Stage) -> None:
    address, port = stage.host.listener.getsockname()
    with socket.create_connection((address, port), timeout=5):
        pass
    time.sleep(0.05)
    assert stage.host.callers() == 1


def test_nothing_a_stranger_wrote_is_published_as_it_is(stage: Stage) -> None:
    for attack in ATTACKS:
        stage.attack(attack)
    run = stage.publish(ATTACKS)
    rows = list(csv.reader(run.leaderboard_csv.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == len(ATTACKS) + 1
    board = json.loads(run.leaderboard_json.read_bytes())["boards"][0]["rows"]
    got = {row["submission"]: row["cases"][0]["verdict"] for row in board}
    assert got == {attack.name: attack.expected.verdict for attack in ATTACKS}
    assert {row["team"] for row in board} == {TEAM}  # JSON is for programs, which escape for themselves
    for path in (run.leaderboard_csv, run.scores, run.report):
        text = path.read_text(encoding="utf-8")
        assert "\x1b" not in text
        assert "\u202e" not in text
    for row in (*rows, *csv.reader(run.scores.read_text(encoding="utf-8").splitlines())):
        assert not any(field.startswith("=") for field in row)
    for path in (run.leaderboard_csv, run.leaderboard_json, run.scores):
        text = path.read_text(encoding="utf-8")
        for hidden in (HOSTILE, SECRET, REFERENCE_MARK, stage.host.pixels):
            assert hidden not in text, path.name
    report = run.report.read_text(encoding="utf-8")
    assert "<script" not in report.lower()
    assert HOSTILE in report, "the organisers' report quotes what was wrong, escaped"
    assert not any(hidden in report for hidden in (SECRET, REFERENCE_MARK))


def test_there_are_enough_of_them_and_every_verdict_is_met() -> None:
    assert len(ATTACKS) >= 45
    met = {attack.expected.verdict for attack in ATTACKS}
    ours = {VerdictWord.HOST_FAULT, VerdictWord.SCORER_FAULT}
    elsewhere = {VerdictWord.BAD_IMAGE, VerdictWord.NOT_CAUSAL, VerdictWord.BROKE_PROTOCOL}
    assert met == set(VerdictWord) - ours - elsewhere


def test_the_list_is_true(stage: Stage) -> None:
    assert listed() == table(ATTACKS), "next: python -m tests.attacks.list"
    lines = ["| attack | verdict | sentence | seconds past its limit |", "|---|---|---|---|"]
    for attack in ATTACKS:
        played = stage.attack(attack)
        past = "" if played.past_limit is None else f"{played.past_limit:.2f}"
        verdict = played.outcome.verdict
        lines.append(f"| `{attack.name}` | {verdict.word} | `{verdict.sentence}` | {past} |")
    build = Path(__file__).resolve().parents[2] / "build"
    build.mkdir(exist_ok=True)
    (build / "attacks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
