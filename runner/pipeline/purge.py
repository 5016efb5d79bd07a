"""Deletes what a finished run need not keep, and keeps a record of it, so that its receipt still verifies the rest.

The record is written before files are deleted: a purge that is cut short can be done again, and never leaves a file
missing that nobody accounts for. Images go first, since only the engine can tell what became of them. The data folder
is the organisers' own and is not touched, and a run folder holds no inputs: only the copies are deleted that runners
which are gone left in the workspace. A runner that lives removes its own.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.engine import Engine
from runner.errors import Interrupted, UsageError
from runner.images import PinnedImage, Room, SourceKind
from runner.ownership import current_owner
from runner.pipeline.evaluate import EngineFactory
from runner.pipeline.host import sweep
from runner.pipeline.receipt import open_receipt, require_finished
from runner.pipeline.record import RunRecord, read_record
from runner.receipt.compare import judge_purge
from runner.receipt.contents import (
    NOT_COVERED,
    PURGE_FILE,
    RECEIPT_FILE,
    NotThat,
    Purge,
    PurgedImage,
    purge_content,
    read_purges,
    read_receipt,
)
from runner.receipt.keys import hex_of, read_key
from runner.receipt.seal import open_seal, seal
from runner.receipt.steps import Step, step_of
from runner.receipt.tree import Digest, digests_below
from runner.settings import Settings
from runner.store import RunFolder, locked, read_value, write_whole

_VERIFY = "see what it is: proctor receipt verify RUN"


@dataclass(frozen=True, kw_only=True)
class PurgeRequest:
    """What ``proctor purge`` is asked for.

    Attributes:
        run: The run.
        images: Delete the images from the engine.
        inputs: Delete copies of inputs that dead runners left.
        predictions: Delete what containers wrote.
        key: The organisers'; needed where the receipt is signed.
        at: The time, UTC, as ISO 8601 has it.
    """

    run: RunFolder
    images: bool
    inputs: bool
    predictions: bool
    key: Path | None
    at: str


@dataclass(frozen=True, kw_only=True)
class PurgePlan:
    """What a purge would delete.

    Attributes:
        images: By ID: the slug of a submission that it is of, and the pin.
        files: By path.
        inputs: Leftovers in the workspace are swept.
    """

    images: Mapping[str, tuple[str, PinnedImage]]
    files: Mapping[str, Digest]
    inputs: bool

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(digest.size for digest in self.files.values())


def purge(request: PurgeRequest, *, connect: EngineFactory, confirm: Callable[[PurgePlan], bool]) -> Purge:
    """Delete what is asked for, and record it in ``purged.json``.

    Args:
        request: What is asked for.
        connect: Connects to the engine; not called where only predictions are to go.
        confirm: Is shown what would be deleted, and says whether it may be.

    Returns:
        What was deleted.

    Raises:
        UsageError: Nothing is asked for; the run is not finished, or somebody works on it; what would be deleted is not
            what the receipt says; or a receipt is signed and the purge is not.
        Interrupted: It may not be; nothing was deleted.
        HostFault: The engine or the disk failed; the same again finishes it.
    """
    run = request.run
    if not (request.images or request.inputs or request.predictions):
        raise UsageError("nothing is named to be deleted", remedy="add --images, --inputs or --predictions")
    read_record(run)
    signer = read_key(request.key) if request.key is not None else None
    with locked(run):
        record = require_finished(run)
        before = _purges_before(run, hex_of(signer.public_key()) if signer is not None else "")
        plan = _plan(request, record)
        _require_as_in_receipt(run, plan.files)
        if not confirm(plan):
            raise Interrupted("nothing was deleted", remedy="the same again with --yes deletes without asking")
        images, inputs = _delete_from_host(plan, record.settings, connect)
        done = Purge(at=request.at, files=plan.files, images=images, inputs=inputs)
        write_whole(run.root / PURGE_FILE, seal(purge_content((*before, done)), signer))
        for path in plan.files:
            (run.root / path).unlink()
        _delete_empty(run.root, plan.files)
    return done


def _plan(request: PurgeRequest, record: RunRecord) -> PurgePlan:
    run = request.run
    images: dict[str, tuple[str, PinnedImage]] = {}
    if request.images:
        for submission in record.submissions:
            path = run.image(submission.slug)
            if path.is_file():
                image = read_value(path, PinnedImage)
                images.setdefault(image.id, (submission.slug, image))
    files = digests_below(run.root, besides=NOT_COVERED) if request.predictions else {}
    return PurgePlan(
        images=images, inputs=request.inputs,
        files={path: digest for path, digest in files.items() if step_of(path) is Step.PREDICTIONS},
    )  # fmt: skip


def _purges_before(run: RunFolder, public: str) -> tuple[Purge, ...]:
    """The purges that are on record; who signs must be who signed the receipt."""
    receipt = open_receipt(run) if (run.root / RECEIPT_FILE).is_file() else None
    if receipt is not None and receipt.flaw:
        raise UsageError(f"the receipt was changed, {receipt.flaw}", where=str(run.root), remedy=_VERIFY)
    if receipt is not None and receipt.signed and receipt.public_key != public:
        raise UsageError(
            f"the receipt is signed with key {receipt.public_key[:16]}…: a purge that is not could be anybody's",
            where=str(run.root),
            remedy="name the same key with --key FILE",
        )
    path = run.root / PURGE_FILE
    if not path.is_file():
        return ()
    opened = open_seal(path.read_bytes())
    wrong = judge_purge(opened, receipt) if receipt is not None else opened.flaw
    try:
        before = read_purges(opened.content) if not wrong else None
    except NotThat:
        before = None
    if before is None:
        raise UsageError("the record of an earlier purge was changed", where=str(path), remedy=_VERIFY)
    return before


def _require_as_in_receipt(run: RunFolder, files: Mapping[str, Digest]) -> None:
    """What is not as it was must not be deleted: it is the evidence."""
    if not files or not (run.root / RECEIPT_FILE).is_file():
        return
    try:
        known = read_receipt(open_receipt(run).content).files
    except NotThat as error:
        raise UsageError("the receipt cannot be read", where=str(run.root), remedy=_VERIFY) from error
    odd = [path for path, digest in files.items() if known.get(path) != digest]
    if odd:
        raise UsageError(
            f"{odd[0]!r} is not what the receipt says, so it must not be deleted", where=str(run.root), remedy=_VERIFY
        )


def _delete_from_host(
    plan: PurgePlan, settings: Settings, connect: EngineFactory
) -> tuple[tuple[PurgedImage, ...], tuple[str, ...]]:
    """Delete images, and copies of inputs; what became of each."""
    if not plan.images and not plan.inputs:
        return (), ()
    engine = connect(settings.engine)
    inputs = sweep(engine, settings, current_owner()).removed if plan.inputs else ()
    return _delete_images(engine, plan, settings), inputs


def _delete_images(engine: Engine, plan: PurgePlan, settings: Settings) -> tuple[PurgedImage, ...]:
    folder = settings.workspace / "images"
    with Room(engine, folder, keep_free=0, free=lambda: None, tell=lambda _: None) as room:
        return tuple(
            PurgedImage(
                submission=slug, id=image.id, origin=image.origin,
                fate=room.discard(image.id, built=image.kind is SourceKind.FOLDER).value,
            )
            for slug, image in plan.images.values()
        )  # fmt: skip


def _delete_empty(root: Path, paths: Mapping[str, Digest]) -> None:
    """Delete the folders of these files as far as they are empty, up to ``predictions``."""
    for path in paths:
        for folder in (root / path).parents:
            if folder.name.startswith("attempt-"):
                break
            with contextlib.suppress(OSError):  # something else lies in it, or it is gone
                folder.rmdir()
