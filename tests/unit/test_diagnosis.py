"""Hints: every entry of the catalogue can be reached, and none is given where nothing is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.diagnosis import CATALOGUE, KnownFailure, diagnose
from runner.verdict import Hint, VerdictWord

MARKED = [(entry, word, mark) for entry in CATALOGUE for word in entry.words for mark in entry.marks]
UNMARKED = [(entry, word) for entry in CATALOGUE for word in entry.words if not entry.marks]


@pytest.mark.parametrize(("entry", "word", "mark"), MARKED, ids=lambda value: value if isinstance(value, str) else "")
def test_a_mark_in_the_log_finds_its_entry(entry: KnownFailure, word: VerdictWord, mark: str) -> None:
    assert mark == mark.lower()
    log = b"\xff noise\n" + mark.upper().encode() + b"\nmore"
    assert diagnose(word, log) == (Hint(cause=entry.cause, fix=entry.fix),)


@pytest.mark.parametrize(("entry", "word"), UNMARKED)
def test_a_verdict_alone_finds_its_entry(entry: KnownFailure, word: VerdictWord) -> None:
    assert diagnose(word, b"nothing known") == (Hint(cause=entry.cause, fix=entry.fix),)


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (b"requests.exceptions.ConnectionError: Max retries exceeded with url: /weights",
         "the program tries to reach the network, and there is none by rule"),
        (b"OSError: [Errno 30] Read-only file system: '/app/out'",
         "the program writes outside the output folder, /tmp and HOME, and the rest is read-only"),
        (b"RuntimeError: DataLoader worker is killed by signal: Bus error. insufficient shared memory (shm)",
         "shared memory was too small for what data loader workers pass to each other"),
        (b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate", "the GPU's memory was not enough"),
        (b"ModuleNotFoundError: No module named 'cv2'", "a Python package is not in the image"),
        (b"env: 'python3\\r': no such file or directory\n/bin/sh^M: bad interpreter",
         "the entry point script has Windows line ends"),
    ],
)  # fmt: skip
def test_logs_as_programs_write_them(log: bytes, cause: str) -> None:
    assert [hint.cause for hint in diagnose(VerdictWord.CRASHED, log)] == [cause]


@pytest.mark.parametrize(
    "word",
    [VerdictWord.ACCEPTED, VerdictWord.BAD_IMAGE, VerdictWord.HOST_FAULT, VerdictWord.SCORER_FAULT,
     VerdictWord.UNSAFE_OUTPUT],
)  # fmt: skip
def test_no_log_gives_a_hint_to_a_verdict_without_entries(word: VerdictWord) -> None:
    everything = "\n".join(mark for entry in CATALOGUE for mark in entry.marks).encode()
    assert diagnose(word, everything) == ()


def test_a_crash_with_an_unknown_log_gets_no_hint() -> None:
    assert diagnose(VerdictWord.CRASHED, b"Traceback\nValueError: 7") == ()


@given(st.sampled_from(list(VerdictWord)), st.binary())
def test_a_hint_is_always_our_own_text(word: VerdictWord, log: bytes) -> None:
    ours = {(entry.cause, entry.fix) for entry in CATALOGUE}
    assert {(hint.cause, hint.fix) for hint in diagnose(word, log)} <= ours
