"""Hints: every entry of the catalogue is found where it should be, and nowhere else."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.budget import Budget, Usage
from runner.diagnosis import (
    CATALOGUE,
    Facts,
    Gpu,
    KnownFailure,
    Log,
    Proof,
    When,
    diagnose,
    facts_of,
    fitting,
    searchable,
)
from runner.diagnosis.page import page
from runner.engine import Exit
from runner.formats.contract import FrameTable, Reading
from runner.formats.signs import Sign
from runner.job import Intake, IntakeRefusal, Job, JobResult, KillReason, NameKind, StartRefusal, StreamFacts
from runner.streaming.protocol import Breach
from runner.verdict import Hint, VerdictWord
from tests.hints.files import FILES
from tests.hints.programs import OWN_IMAGES, OWN_STREAMS, PROGRAMS
from tests.hints.texts import TEXTS

ROOT = Path(__file__).resolve().parents[2]
SLUGS = [entry.slug for entry in CATALOGUE]
BY_SLUG = {entry.slug: entry for entry in CATALOGUE}
TOLD = TEXTS.replayed | TEXTS.also
MESSAGES = [pytest.param(slug, text, id=f"{slug}-{n}") for slug in TOLD for n, text in enumerate(TOLD[slug].messages)]
INNOCENT = [pytest.param(slug, text, id=f"{slug}-{n}") for slug in TOLD for n, text in enumerate(TOLD[slug].innocent)]
HOSTS_WORDS = (VerdictWord.ACCEPTED, VerdictWord.HOST_FAULT, VerdictWord.SCORER_FAULT)


def crash(text: str, **more: object) -> Facts:
    """A program that printed this and ended with exit code 1."""
    facts = Facts(word=VerdictWord.CRASHED, exit_code=1, text=searchable(text.encode()))
    return replace(facts, **more)  # type: ignore[arg-type]


def slugs(facts: Facts) -> list[str]:
    return [hint.slug for hint in diagnose(facts)]


def facts_that_fit(when: When) -> Facts:
    """Facts for which this holds, by its text where it has marks."""
    return Facts(
        word=when.words[0],
        exit_code=when.exit_codes[0] if when.exit_codes else 1,
        out_of_memory=bool(when.survived),
        killed=bool(when.killed),
        start=when.starts[0] if when.starts else None,
        intake=when.intakes[0] if when.intakes else None,
        detail=when.detail,
        full=bool(when.full),
        others=0 if when.empty else 1,
        names=frozenset(when.names[:1]),
        answered=bool(when.answered),
        signs=frozenset(when.signs[:1]),
        gpu=when.gpus[0] if when.gpus else Gpu.NOT_DUE,
        length_dependent=bool(when.length_dependent),
        breach=when.breaches[0] if when.breaches else None,
        printed=when.printed[0] if when.printed else Log.WHOLE,
        text=when.marks[0] if when.marks else "",
    )


ALTERNATIVES = [
    pytest.param(entry, when, id=f"{entry.slug}-{number}")
    for entry in CATALOGUE
    for number, when in enumerate(entry.when)
    if when.marks or not when.patterns
]


# What is tested, and how.


def test_every_entry_is_tested_as_it_says() -> None:
    provoked = {*(one.slug for one in PROGRAMS), *(one.slug for one in FILES), *OWN_IMAGES, *OWN_STREAMS}
    assert provoked.isdisjoint(TEXTS.replayed)
    assert set(TEXTS.also) <= provoked
    assert {entry.slug for entry in CATALOGUE if entry.tested is Proof.PROVOKED} == provoked
    assert {entry.slug for entry in CATALOGUE if entry.tested is Proof.REPLAYED} == set(TEXTS.replayed)


def test_there_are_enough_of_them() -> None:
    assert len(CATALOGUE) >= 40
    assert sum(entry.tested is Proof.PROVOKED for entry in CATALOGUE) >= 30


def test_every_message_has_innocent_lines_beside_it() -> None:
    assert [slug for slug, told in TOLD.items() if not told.messages or not told.innocent] == []


# Messages.


@pytest.mark.parametrize(("slug", "text"), MESSAGES)
def test_a_message_gets_its_hint_and_no_other(slug: str, text: str) -> None:
    assert slugs(crash(f"epoch 1\n{text}\n", gpu=TOLD[slug].given)) == [slug]


@pytest.mark.parametrize(("slug", "text"), MESSAGES)
def test_a_message_of_a_run_that_nobody_has_to_mend_gets_none(slug: str, text: str) -> None:
    for word in HOSTS_WORDS:
        assert slugs(crash(text, gpu=TOLD[slug].given, word=word)) == []


@pytest.mark.parametrize(("slug", "text"), INNOCENT)
def test_the_same_words_in_another_message_get_no_hint(slug: str, text: str) -> None:
    assert slugs(crash(f"{text}\nValueError: 7", gpu=TOLD[slug].given)) == []


@pytest.mark.parametrize("gpu", list(Gpu))
def test_what_a_gpu_message_means_depends_on_what_was_given(gpu: Gpu) -> None:
    means = {
        Gpu.NOT_DUE: "cuda-not-in-this-challenge", Gpu.ABSENT: "cuda-not-on-this-host", Gpu.GIVEN: "cuda-not-found",
    }  # fmt: skip
    assert slugs(crash("RuntimeError: No CUDA GPUs are available", gpu=gpu)) == [means[gpu]]


def test_the_end_of_a_long_log_is_searched_and_its_beginning_is_not() -> None:
    noise = b"epoch\n" * 50_000
    assert slugs(crash((noise + b"No module named x").decode())) == ["module-missing"]
    assert slugs(crash((b"No module named x\n" + noise).decode())) == []


def test_a_log_in_any_encoding_is_searched() -> None:
    log = b"\xff\xfe\x00 caf\xe9\nMODULENOTFOUNDERROR: x"
    assert slugs(replace(crash(""), text=searchable(log))) == ["module-missing"]


# Facts.


@pytest.mark.parametrize(("entry", "when"), ALTERNATIVES)
def test_an_entry_fits_the_facts_it_asks_for(entry: KnownFailure, when: When) -> None:
    facts = facts_that_fit(when)
    assert when.fits(facts)
    assert entry.rank(facts) is not None


def changes_that_break(when: When) -> list[dict[str, object]]:
    """For each thing it asks for, a change after which that is not so."""
    other_gpu = next((gpu for gpu in Gpu if gpu not in when.gpus), None)
    changes: list[tuple[object, dict[str, object]]] = [
        (when.words, {"word": next(word for word in VerdictWord if word not in when.words)}),
        (when.exit_codes, {"exit_code": 77}),
        (when.survived, {"exit_code": 137}),
        (when.survived, {"out_of_memory": False}),
        (when.killed is not None, {"killed": not when.killed}),
        (when.starts, {"start": None}),
        (when.intakes, {"intake": IntakeRefusal.TOO_LARGE}),
        (when.detail, {"detail": "a socket"}),
        (when.full, {"full": False}),
        (when.names, {"names": frozenset()}),
        (when.empty, {"others": 3}),
        (when.answered, {"answered": False}),
        (when.signs, {"signs": frozenset()}),
        (when.gpus, {"gpu": other_gpu}),
        (when.length_dependent, {"length_dependent": False}),
        (when.breaches, {"breach": None}),
        (when.printed, {"printed": Log.WHOLE}),
        (when.marks, {"text": "epoch 1"}),
    ]
    return [change for asked, change in changes if asked]


@pytest.mark.parametrize(("entry", "when"), ALTERNATIVES)
def test_an_entry_does_not_fit_where_one_thing_it_asks_for_is_not_so(entry: KnownFailure, when: When) -> None:
    facts = facts_that_fit(when)
    changes = changes_that_break(when)
    assert len(changes) >= 1 + when.conditions + bool(when.marks)
    still = [change for change in changes if when.fits(replace(facts, **change))]  # type: ignore[arg-type]
    assert still == []


USAGE = Usage(engine_seconds=1.0, monotonic_seconds=1.0, output_bytes=0, alone=True)
RESULT = JobResult(
    job="full", digest="d1", attempt=1, exit=Exit(code=0, oom_killed=False, seconds=1.0), killed=None, usage=USAGE,
    intake=Intake(file="n.csv", size=7),
)  # fmt: skip
TABLE = FrameTable(columns={"step": np.zeros(4, dtype=np.int64)})


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({}, {}),
        ({"exit": Exit(code=137, oom_killed=True, seconds=1.0)}, {"exit_code": 137, "out_of_memory": True}),
        ({"killed": KillReason.TIME}, {"killed": True}),
        ({"killed": KillReason.STOPPED}, {}),
        (
            {"killed": KillReason.PROTOCOL, "stream": StreamFacts(breach="silent")},
            {"killed": True, "breach": Breach.SILENT},
        ),
        ({"stream": StreamFacts()}, {}),
        (
            {"exit": None, "intake": None, "refusal": StartRefusal.NO_FOLDER.value},
            {"exit_code": None, "start": StartRefusal.NO_FOLDER},
        ),
        ({"refusal": "something else"}, {}),
        (
            {"intake": Intake(file="", refusal=IntakeRefusal.NOT_REGULAR, detail="a folder", other_entries=2, full=True,
                              other_names=(NameKind.STEM, NameKind.OTHER))},
            {"intake": IntakeRefusal.NOT_REGULAR, "detail": "a folder", "others": 2, "full": True,
             "names": frozenset({NameKind.STEM, NameKind.OTHER})},
        ),
        ({"log_truncated": True}, {"printed": Log.CUT}),
    ],
)  # fmt: skip
def test_facts_are_what_the_result_says(
    make_job: Callable[..., Job], change: dict[str, object], facts: dict[str, object]
) -> None:
    usual = Facts(word=VerdictWord.CRASHED, exit_code=0, text="e 7\n")
    result = replace(RESULT, **change)  # type: ignore[arg-type]
    assert facts_of(VerdictWord.CRASHED, make_job(), result, log=b"E 7\n") == replace(usual, **facts)  # type: ignore[arg-type]


def test_facts_are_what_the_file_and_the_log_say(make_job: Callable[..., Job]) -> None:
    def known(**more: Any) -> Facts:
        return facts_of(VerdictWord.CRASHED, make_job(), RESULT, **{"log": b"x", **more})

    assert known(reading=Reading(prediction=TABLE)).answered
    assert not known(reading=Reading(prediction=None)).answered
    assert not known().answered
    assert known(signs=frozenset({Sign.JPEG})).signs == {Sign.JPEG}
    assert [known(log=log).printed for log in (b"", b" \n\t\n", b"x\n")] == [Log.NOTHING, Log.NOTHING, Log.WHOLE]


@pytest.mark.parametrize(
    ("due", "has_gpu", "gpu"),
    [(0, False, Gpu.NOT_DUE), (0, True, Gpu.NOT_DUE), (1, False, Gpu.ABSENT), (1, True, Gpu.GIVEN)],
)
def test_what_was_given_of_gpus(
    make_job: Callable[..., Job], make_budget: Callable[..., Budget], due: int, has_gpu: bool, gpu: Gpu
) -> None:
    job = make_job(budget=make_budget(gpus=due))
    assert facts_of(VerdictWord.CRASHED, job, RESULT, log=b"", has_gpu=has_gpu).gpu is gpu


def test_facts_come_before_text_and_text_before_the_verdict() -> None:
    both = Facts(word=VerdictWord.CRASHED, exit_code=139, text="no module named x")
    assert slugs(both) == ["segmentation-fault", "module-missing"]
    late = Facts(word=VerdictWord.TIMED_OUT, killed=True, text="urlopen error")
    assert [entry.slug for entry in fitting(late)] == ["no-network", "too-slow"]
    assert slugs(late) == ["no-network"], "the verdict's own hint is shown only where nothing else fits"


def test_an_entry_goes_by_the_best_of_its_alternatives() -> None:
    few = When(words=(VerdictWord.CRASHED,), exit_codes=(3,))
    many = When(words=(VerdictWord.CRASHED,), exit_codes=(3,), killed=False, answered=False)
    text = When(words=(VerdictWord.CRASHED,), marks=("x",))
    facts = crash("x", exit_code=3)

    def rank(*when: When) -> tuple[int, int] | None:
        return KnownFailure(slug="s", title="t", when=when, cause="c", fix="f").rank(facts)

    assert rank(text, few) == rank(few, text) == rank(few) == (0, -1)
    assert rank(many, few) == (0, -3)
    assert rank(text) == (1, 0)
    assert rank(When(words=(VerdictWord.CRASHED,))) == (2, 0)
    assert rank(When(words=(VerdictWord.CRASHED,), exit_codes=(4,))) is None


def test_more_facts_come_before_fewer() -> None:
    facts = Facts(word=VerdictWord.UNSAFE_OUTPUT, intake=IntakeRefusal.NOT_REGULAR, detail="a folder")
    assert slugs(facts) == ["output-taken-for-a-folder"]
    silent = Facts(word=VerdictWord.TIMED_OUT, killed=True, printed=Log.NOTHING)
    assert slugs(silent) == ["silent-until-killed"]


def test_at_most_two_are_shown() -> None:
    text = "no module named x\nread-only file system\nno space left on device\ncuda out of memory"
    assert len(fitting(crash(text))) == 4
    assert len(slugs(crash(text))) == 2


def test_a_special_entry_is_shown_without_the_general_one_it_narrows() -> None:
    text = "PermissionError: [Errno 13] Permission denied: '/root/.cache/torch'"
    assert [entry.slug for entry in fitting(crash(text))] == ["roots-home"]
    assert slugs(crash("PermissionError: [Errno 13] Permission denied: '/app/x'")) == ["permission-denied"]


def test_a_crash_with_an_unknown_log_gets_no_hint() -> None:
    assert slugs(crash("Traceback\nValueError: 7")) == []


@pytest.mark.parametrize("word", HOSTS_WORDS)
def test_no_facts_give_a_hint_to_what_is_nobodys_doing(word: VerdictWord) -> None:
    for entry in CATALOGUE:
        for when in entry.when:
            assert slugs(replace(facts_that_fit(when), word=word)) == []


ANY_FACTS = st.builds(
    Facts,
    word=st.sampled_from(list(VerdictWord)),
    exit_code=st.sampled_from([None, 0, 1, 2, 126, 127, 132, 134, 135, 137, 139, 143, 153]),
    out_of_memory=st.booleans(),
    killed=st.booleans(),
    start=st.sampled_from([None, *StartRefusal]),
    intake=st.sampled_from([None, *IntakeRefusal]),
    detail=st.sampled_from(["", "a folder", "a symbolic link"]),
    full=st.booleans(),
    others=st.integers(0, 3),
    names=st.frozensets(st.sampled_from(list(NameKind))),
    answered=st.booleans(),
    signs=st.frozensets(st.sampled_from(list(Sign))),
    gpu=st.sampled_from(list(Gpu)),
    length_dependent=st.booleans(),
    breach=st.sampled_from([None, *Breach]),
    printed=st.sampled_from(list(Log)),
    text=st.one_of(
        st.text(), st.sampled_from([mark for entry in CATALOGUE for when in entry.when for mark in when.marks])
    ),
)


@given(ANY_FACTS)
def test_a_hint_is_always_a_constant_of_ours(facts: Facts) -> None:
    ours = {Hint(slug=entry.slug, cause=entry.cause, fix=entry.fix) for entry in CATALOGUE}
    shown = diagnose(facts)
    assert set(shown) <= ours
    assert len(set(shown)) == len(shown) <= 2


# The catalogue itself.


def test_slugs_are_anchors_and_stand_once() -> None:
    assert len(set(SLUGS)) == len(SLUGS)
    assert [slug for slug in SLUGS if not re.fullmatch(r"[a-z]+(?:-[a-z]+)*", slug)] == []


def test_what_an_entry_narrows_is_an_entry() -> None:
    for entry in CATALOGUE:
        assert set(entry.narrows) <= set(SLUGS) - {entry.slug}


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.slug)
def test_an_entry_is_written_as_it_must_be(entry: KnownFailure) -> None:
    for text in (entry.title, entry.cause, entry.fix):
        assert text.strip() == text
        assert text.isprintable()
        assert not text.endswith(".")
    assert len(entry.cause) <= 220
    assert len(entry.fix) <= 200
    for when in entry.when:
        assert when.words
        assert set(when.words).isdisjoint(HOSTS_WORDS)
        assert all(mark == mark.lower() and mark for mark in (*when.marks, *when.patterns))


@pytest.mark.parametrize("pattern", [one for e in CATALOGUE for when in e.when for one in when.patterns])
def test_every_repetition_in_a_pattern_is_bounded(pattern: str) -> None:
    """An unbounded one can take minutes on a log that was written for it."""
    bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", pattern)
    assert not re.search(r"[*+]|\{[0-9]*,\}", bare)


def test_every_condition_of_an_entry_is_a_fact() -> None:
    """A condition that is never asked for would be dead."""
    given = [
        one.name for e in CATALOGUE for w in e.when for one in fields(w) if getattr(w, one.name) not in (None, (), "")
    ]
    assert set(given) == {one.name for one in fields(When)}


def test_every_breach_of_the_protocol_has_its_hint() -> None:
    for breach in Breach:
        known = [slugs(Facts(word=word, exit_code=0, killed=True, breach=breach)) for word in VerdictWord]
        assert {slug for found in known for slug in found[:1]} & OWN_STREAMS, breach


# The page.


def test_the_committed_page_is_the_catalogue() -> None:
    committed = (ROOT / "docs" / "hints.md").read_text(encoding="utf-8")
    assert committed == page(), "next: python -m runner.diagnosis.page > docs/hints.md"


def test_every_entry_has_its_anchor_its_texts_and_says_how_it_is_tested() -> None:
    sections = dict(re.findall(r"^### (.+)\n((?:(?!##).*\n)*)", page(), re.MULTILINE))
    assert list(sections) == SLUGS
    for entry in CATALOGUE:
        section = re.sub(r"\\(?=[^A-Za-z0-9\s])", "", sections[entry.slug])
        assert f"· *{entry.tested}*" in section
        assert f"- Cause: {entry.cause}." in section
        assert f"- Fix: {entry.fix}." in section


def test_the_page_is_written_by_its_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runner.diagnosis.page"], capture_output=True, check=True, cwd=ROOT, encoding="utf-8"
    )
    assert done.stdout == page()


def test_every_finding_of_the_preflight_that_names_an_entry_names_one_that_says_so() -> None:
    named = {
        slug
        for path in (ROOT / "runner" / "preflight").glob("*.py")
        for slug in re.findall(r'hint="([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    assert named == {entry.slug for entry in CATALOGUE if entry.foreseen}
