"""What of a run is not as its receipt says: each thing with the step it makes doubtful and what depends on it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from runner.receipt.contents import PURGE_FILE, RECEIPT_FILE, CaseDigests
from runner.receipt.seal import Opened
from runner.receipt.steps import ABOUT, Step, dependents_of, doubt_in_words, step_of
from runner.receipt.tree import Digest


class What(StrEnum):
    """How something differs."""

    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it was.

    Attributes:
        path: Below the run folder; of data, its case and what of it.
        what: How it differs.
        step: The step that it makes doubtful.
        dependents: The steps that depend on that one, in their order.
        sentence: Both, in words.
        remedy: What to do.
    """

    path: str
    what: What
    step: Step
    dependents: tuple[Step, ...]
    sentence: str
    remedy: str


def finding(path: str, what: What, step: Step, how: str, *, remedy: str = "") -> Finding:
    """A finding.

    Args:
        path: What differs.
        what: How.
        step: Which step is doubtful.
        how: How, in words that follow its name: ``was changed``.
        remedy: What to do; empty: as the step has it.
    """
    return Finding(
        path=path, what=what, step=step, dependents=dependents_of(step), remedy=remedy or ABOUT[step].remedy,
        sentence=f"{path} {how}: {doubt_in_words(step)}",
    )  # fmt: skip


def compare_files(
    before: Mapping[str, Digest], now: Mapping[str, Digest], purged: Mapping[str, Digest]
) -> tuple[Finding, ...]:
    """Every file that is not as it was, by path.

    Args:
        before: As the receipt has them.
        now: As they are.
        purged: That were deleted on purpose; one of them may be missing, where it was deleted as the receipt has it.
    """
    found = []
    for path in sorted(before.keys() | now.keys()):
        was, is_now = before.get(path), now.get(path)
        if is_now is None:
            if purged.get(path) != was:
                how = "was purged with other bytes than the receipt's" if path in purged else "is missing"
                found.append(finding(path, What.MISSING, step_of(path), how))
        elif was is None:
            found.append(finding(path, What.ADDED, step_of(path), "was added", remedy=_ADDED))
        elif is_now != was:
            found.append(finding(path, What.CHANGED, step_of(path), _changed(was, is_now)))
    return tuple(found)


_ADDED = "move it out of the run folder; where it belongs there: proctor receipt write RUN --replace"


def _changed(was: Digest, now: Digest) -> str:
    if not now.regular:
        return "is no regular file any more"
    if now.size != was.size:
        return f"was changed, from {was.size} bytes to {now.size}"
    return f"was changed, with its {now.size} bytes kept in number"


def compare_cases(before: Mapping[str, CaseDigests], now: Mapping[str, CaseDigests]) -> tuple[Finding, ...]:
    """Every case whose inputs or references are not as they were when the run began."""
    found = []
    for name in sorted(before.keys() | now.keys()):
        was, is_now, case = before.get(name), now.get(name), f"case {name!r}"
        if is_now is None or was is None:
            what = What.MISSING if is_now is None else What.ADDED
            found.append(finding(case, what, Step.DATA, f"{_IS[what]} among the data"))
            continue
        if is_now.inputs != was.inputs:
            found.append(finding(f"{case}, inputs,", What.CHANGED, Step.DATA, "were changed"))
        for task in sorted(was.references.keys() | is_now.references.keys()):
            if was.references.get(task) != is_now.references.get(task):
                path = f"{case}, reference of task {task!r},"
                found.append(finding(path, What.CHANGED, Step.DATA, "was changed"))
    return tuple(found)


_IS = {What.MISSING: "is missing", What.ADDED: "was added"}


def judge_receipt(opened: Opened, public: str) -> tuple[Finding, ...]:
    """What is wrong with a receipt itself.

    Args:
        opened: As it was read.
        public: The key it must be signed with, hexadecimal; empty: any, or none.
    """
    return _judge_seal(RECEIPT_FILE, Step.RECEIPT, opened, public)


def judge_purge(opened: Opened, receipt: Opened) -> tuple[Finding, ...]:
    """What is wrong with the record of a purge: it must be signed as the receipt is, or whoever deletes could write it.

    Args:
        opened: The record as it was read.
        receipt: The run's receipt.
    """
    return _judge_seal(PURGE_FILE, Step.PURGE, opened, receipt.public_key)


def _judge_seal(path: str, step: Step, opened: Opened, public: str) -> tuple[Finding, ...]:
    if opened.flaw:
        return (finding(path, What.CHANGED, step, f"was changed, {opened.flaw}"),)
    if public and not opened.signed:
        return (finding(path, What.CHANGED, step, "is not signed, and it must be by the organisers' key"),)
    if public and opened.public_key != public:
        how = f"is signed with another key, {opened.public_key[:16]}, and not with {public[:16]}"
        return (finding(path, What.CHANGED, step, how),)
    return ()
