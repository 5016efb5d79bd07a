"""Writes a finished run's receipt, and verifies a run by it; needs no engine."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from runner.catalog import LoadedChallenge, load_challenge
from runner.confine import Confine
from runner.dataset import find_cases
from runner.errors import UsageError
from runner.images import PinnedImage
from runner.pipeline.container_scores import ContainerScores
from runner.pipeline.progress import how_far
from runner.pipeline.record import RunRecord, read_record
from runner.pipeline.references import cases_of_references
from runner.policy import facts_of, policy_named
from runner.provenance import DataHashes
from runner.receipt.compare import Finding, What, compare_cases, compare_files, finding, judge_purge, judge_receipt
from runner.receipt.contents import (
    NOT_COVERED,
    PURGE_FILE,
    RECEIPT_FILE,
    CaseDigests,
    NotThat,
    Purge,
    Receipt,
    read_purges,
    read_receipt,
)
from runner.receipt.keys import hex_of, read_key, read_public
from runner.receipt.seal import Opened, open_seal, seal
from runner.receipt.steps import Step, step_of
from runner.receipt.tree import Digest, digests_below
from runner.store import RunFolder, locked, read_value, write_whole
from runner.submissions import Status

_RESULTS = (Step.OUTCOMES, Step.CAUSALITY, Step.SCORES, Step.LEADERBOARD, Step.ENSEMBLES, Step.REPORT)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A receipt that was written.

    Attributes:
        path: Where.
        files: How many files it covers.
        public_key: Of the key it is signed with, hexadecimal; empty where it is not signed.
    """

    path: Path
    files: int
    public_key: str


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """What ``proctor receipt verify`` is asked for.

    Attributes:
        run: The run.
        public: The public half of the organisers' key; None: the receipt's own.
        data: The data folder, where it is not where it was; None: where it was.
        skip_data: Do not read the data.
    """

    run: RunFolder
    public: Path | None = None
    data: Path | None = None
    skip_data: bool = False


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What came of it.

    Attributes:
        findings: Everything that is not as it was; none where the run is whole.
        files: How many files the receipt covers.
        purged: How many of them were deleted on purpose, and are missing.
        cases: Of how many cases the data were read.
        public_key: Of the key that the receipt says it is signed with, hexadecimal; empty where it is not signed.
        notes: What was not tested, and what that means.
    """

    findings: tuple[Finding, ...]
    files: int
    purged: int
    cases: int
    public_key: str
    notes: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Nothing differs."""
        return not self.findings


def require_finished(run: RunFolder) -> RunRecord:
    """The record of a run of which every case has its verdict, and which has its leaderboard where it ranks anybody.

    Raises:
        UsageError: It is no run, or it is not finished.
    """
    record = read_record(run)
    rows = how_far(run)
    done, cases = sum(row.done for row in rows), sum(row.cases for row in rows)
    if done < cases:
        raise UsageError(
            f"the run is not finished: {done} of {cases} cases have a verdict",
            where=str(run.root),
            remedy="finish it first: proctor resume RUN",
        )
    if not record.for_ensemble and not run.leaderboard_json.is_file():
        raise UsageError(
            "the run has no leaderboard yet", where=str(run.root), remedy="finish it first: proctor score RUN"
        )
    return record


def write_receipt(run: RunFolder, *, key: Path | None, replace: bool = False) -> Written:
    """Write the receipt of a finished run; the same run and key give the same bytes.

    Args:
        run: The run.
        key: The organisers'; None: the receipt is not signed.
        replace: An older receipt may go.

    Raises:
        UsageError: The run is not finished, has a receipt, or holds what is no regular file; or the key is none.
    """
    read_record(run)
    signer = read_key(key) if key is not None else None
    path = run.root / RECEIPT_FILE
    with locked(run):
        record = require_finished(run)
        if path.exists() and not replace:
            raise UsageError(
                "the run has a receipt, and a new one would vouch for whatever was changed since",
                where=str(path),
                remedy="first: proctor receipt verify RUN; then add --replace",
            )
        found = digests_below(run.root, besides=NOT_COVERED)
        odd = [name for name, digest in found.items() if not digest.regular]
        if odd:
            raise UsageError(
                f"{odd[0]!r} is no regular file, so nothing can vouch for it",
                where=str(run.root),
                remedy="move it out of the run folder",
            )
        receipt = Receipt(
            summary=_summary(run, record, found), files=found,
            cases={c.name: CaseDigests(inputs=c.inputs, references=c.references) for c in record.cases},
        )  # fmt: skip
        write_whole(path, seal(receipt.content(), signer))
    return Written(path=path, files=len(found), public_key=hex_of(signer.public_key()) if signer else "")


def _summary(run: RunFolder, record: RunRecord, found: Mapping[str, Digest]) -> Mapping[str, object]:
    loaded = load_challenge(run.challenge)
    if loaded.digest != record.challenge_digest:
        raise UsageError(
            f"the run's copy of the challenge ({loaded.digest[:12]}) is not the one that it began with "
            f"({record.challenge_digest[:12]})",
            where=str(run.challenge),
            remedy="put it back from a copy",
        )
    return {
        "proctor": record.proctor,
        "started": record.started,
        "challenge": {"name": record.challenge, "version": record.challenge_version, "digest": record.challenge_digest},
        "images": _images(run, record),
        "data": _digest({c.name: {"inputs": c.inputs, "references": dict(c.references)} for c in record.cases}),
        "scorer": _scorer(run, record, loaded),
        "policy": _policy(record),
        "results": _digest({path: one.sha256 for path, one in found.items() if step_of(path) in _RESULTS}),
    }


def _images(run: RunFolder, record: RunRecord) -> Mapping[str, object]:
    """By submission; one that was withdrawn, refused or handed in as files has none."""
    pinned = {one.submission: run.image(one.slug) for one in record.submissions if one.status is not Status.WITHDRAWN}
    images = {name: read_value(path, PinnedImage) for name, path in pinned.items() if path.is_file()}
    return {name: {"id": one.id, "source": one.source, "origin": one.origin} for name, one in images.items()}


def _scorer(run: RunFolder, record: RunRecord, loaded: LoadedChallenge) -> Mapping[str, object]:
    """What scored: each task's scorer, the images of those in containers, and the code of proctor's own metrics."""
    images = {
        task: sorted(
            {
                read_value(path, ContainerScores).image
                for one in record.submissions
                if (path := run.container_scores(one.slug, task)).is_file()
            }
        )
        for task in loaded.challenge.tasks
    }
    tasks = loaded.challenge.tasks.items()
    return {
        "tasks": {name: {"scorer": task.scorer, "images": images[name]} for name, task in tasks},
        "metrics": _digest(_code(files("runner.scoring"), "")),
    }


def _code(folder: Traversable, before: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _code(entry, f"{before}{entry.name}/")
        elif entry.name.endswith(".py"):
            found[before + entry.name] = hashlib.sha256(entry.read_bytes()).hexdigest()
    return found


def _policy(record: RunRecord) -> Mapping[str, object] | None:
    """What containers were held to; None where none was run."""
    host, settings = record.host, record.settings
    if host is None:
        return None
    policy = policy_named(host.policy, processors=settings.processors, runtime=host.runtime or None)
    return {"name": host.policy.value, "digest": _digest(facts_of(policy)), "system_calls": host.seccomp}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def verify_receipt(request: VerifyRequest) -> Verified:
    """Find every byte of a run, and of its data, that is not as the receipt says; nothing is written.

    Raises:
        UsageError: There is no receipt, or the key is none.
    """
    run = request.run
    public = hex_of(read_public(request.public)) if request.public is not None else ""
    opened = open_receipt(run)
    findings = list(judge_receipt(opened, public))
    receipt = _receipt_of(opened)
    if receipt is None:
        findings = findings or [finding(RECEIPT_FILE, What.CHANGED, Step.RECEIPT, "is no receipt of this proctor's")]
        return Verified(
            findings=tuple(findings), files=0, purged=0, cases=0, public_key=opened.public_key,
            notes=("no file was compared: the receipt cannot be read",),
        )  # fmt: skip
    purges, odd = _trusted_purges(run, opened)
    findings += odd
    purged = {path: digest for one in purges for path, digest in one.files.items()}
    now = digests_below(run.root, besides=NOT_COVERED)
    findings += compare_files(receipt.files, now, purged)
    data, notes, cases = _verify_data(request, receipt)
    gone = sum(path not in now and purged.get(path) == digest for path, digest in receipt.files.items())
    return Verified(
        findings=tuple(findings) + data, files=len(receipt.files), purged=gone, cases=cases,
        public_key=opened.public_key, notes=(*_words_on_key(opened, public), *notes),
    )  # fmt: skip


def open_receipt(run: RunFolder) -> Opened:
    """Read a run's receipt.

    Raises:
        UsageError: There is none.
    """
    path = run.root / RECEIPT_FILE
    if not path.is_file():
        raise UsageError(
            f"there is no {RECEIPT_FILE} in {str(run.root)!r}",
            remedy="give a run folder; its receipt is written by: proctor receipt write RUN",
        )
    return open_seal(path.read_bytes())


def _receipt_of(opened: Opened) -> Receipt | None:
    try:
        return read_receipt(opened.content)
    except NotThat:
        return None


def _trusted_purges(run: RunFolder, receipt: Opened) -> tuple[tuple[Purge, ...], tuple[Finding, ...]]:
    """The purges of a run, where their record is as it was; else what is wrong with it."""
    path = run.root / PURGE_FILE
    if not path.is_file():
        return (), ()
    opened = open_seal(path.read_bytes())
    wrong = judge_purge(opened, receipt)
    try:
        return (read_purges(opened.content) if not wrong else ()), wrong
    except NotThat:
        return (), (finding(PURGE_FILE, What.CHANGED, Step.PURGE, "is no record of this proctor's"),)


def _words_on_key(opened: Opened, public: str) -> tuple[str, ...]:
    if not opened.signed:
        return ("the receipt is not signed: whoever can change a file can write another receipt",)
    if not public:
        key = f"{opened.public_key[:16]}…"
        return (f"whose key {key} is was not tested: give the organisers' with --public",)
    return ()


def _verify_data(request: VerifyRequest, receipt: Receipt) -> tuple[tuple[Finding, ...], tuple[str, ...], int]:
    """What of the data differs, what was not tested, and of how many cases the data were read."""
    if request.skip_data:
        return (), ("the data were not read: --skip-data",), 0
    try:
        record = read_record(request.run)
        loaded = load_challenge(request.run.challenge)
    except UsageError as error:
        return (), (f"the data were not read: {error.what}",), 0
    root = request.data or record.data
    if not root.is_dir():
        return (), (f"the data were not read: there is no folder {str(root)!r}; name it with --data",), 0
    try:
        with Confine() as confine:
            apart = record.files_only
            cases = cases_of_references(confine, loaded, root) if apart else find_cases(root, loaded.challenge)
        hashes = DataHashes(cache=Path("/dev/null"))  # no memory: a file's times can be set
        now = {
            case.name: CaseDigests(
                inputs=hashes.inputs(case),
                references={task: hashes.tree(path) for task, path in case.references.items()},
            )
            for case in cases
        }
    except UsageError as error:
        how = f"cannot be read any more, since {error.what}"
        return (finding("the data folder", What.CHANGED, Step.DATA, how),), (), 0
    return compare_cases(receipt.cases, now), (), len(now)
