"""Decides what an image's text means, gets the image, and pins it."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from runner.clock import Clock, MonotonicClock
from runner.engine import Engine, EngineRefusal, ImageFacts, ImageMissing
from runner.errors import HostFault, UsageError
from runner.images.archive import LARGEST_IMAGE, load_archive
from runner.images.folder import Build, build_folder
from runner.images.pinned import PinnedImage, RefusedImage, SourceKind
from runner.images.pull import Patience, pull_image
from runner.images.refusal import Unusable
from runner.images.room import Room

_PATH_BEGINNINGS = (".", "/", "~")
_ARCHIVE_NAMES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar.xz", ".txz", ".tar.bz2")
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What an image may cost, and which one is meant.

    Attributes:
        deadline: Seconds it may take to have it.
        limit: Bytes of its layers, and of an archive's file unpacked.
        platform: Which image of several is meant, such as ``linux/amd64``.
        build: How a folder is built; None: folders are refused.
        room: Makes room on the engine's disk, and remembers what we brought there; None: nobody does.
        clock: Measures the deadline.
        stop: Set when the user asks us to stop.
    """

    deadline: float
    limit: int = LARGEST_IMAGE
    platform: str = "linux/amd64"
    build: Build | None = None
    room: Room | None = None
    clock: Clock = MonotonicClock()  # noqa: RUF009  # holds nothing
    stop: threading.Event | None = None


def source_kind(engine: Engine, source: str, *, base: Path) -> SourceKind:
    """Decide what an image's text means.

    In this order: ``docker://`` is a registry's; what ends like an archive, or begins with ``.``, ``/`` or ``~``, is a
    path; a name the engine holds is that image, also where a folder of the same name lies here (``docker build -t
    method method`` makes just that); an existing path; else a registry's.
    """
    if source.startswith("docker://"):
        return SourceKind.REGISTRY
    on_disk = _kind_on_disk(base / Path(source).expanduser())
    if source.endswith(_ARCHIVE_NAMES):
        return SourceKind.ARCHIVE
    if source.startswith(_PATH_BEGINNINGS) and on_disk is not None:
        return on_disk
    try:
        engine.image(source)
    except EngineRefusal as refusal:
        # What is no name at all is for the pull to tell.
        if not isinstance(refusal, ImageMissing) and refusal.status not in (400, 404):
            raise
        return on_disk or SourceKind.REGISTRY
    return SourceKind.LOCAL


def _kind_on_disk(path: Path) -> SourceKind | None:
    try:
        if path.is_file():
            return SourceKind.ARCHIVE
        return SourceKind.FOLDER if path.is_dir() else None
    except OSError:  # too long for a path
        return None


def pin(
    engine: Engine, source: str, *, base: Path, terms: Terms, progress: Callable[[str], None], where: str = ""
) -> PinnedImage | RefusedImage:
    """Get an image and pin it.

    Args:
        engine: Who holds it afterwards.
        source: A reference, an ID or the path of an archive or folder, as ``source_kind`` reads it.
        base: Folder that relative paths start from.
        terms: What it may cost.
        progress: Is told what happens.
        where: Place of the text, for errors.

    Returns:
        The image; or, where it is its maker's doing that there is none, why.

    Raises:
        UsageError: The organisers' to mend: a path, a name, credentials; or it is a folder, and none may be built.
        HostFault: The engine or the registry did not answer, or there is no room.
    """
    getting = _Getting(engine=engine, source=source, base=base, terms=terms, progress=progress, where=where)
    kind = source_kind(engine, source, base=base)
    try:
        match kind:
            case SourceKind.LOCAL:
                return getting.pinned(kind, engine.image(source))
            case SourceKind.ARCHIVE:
                return getting.from_archive()
            case SourceKind.FOLDER:
                return getting.from_folder()
            case SourceKind.REGISTRY:
                return getting.from_registry(source.removeprefix("docker://"))
    except Unusable as fault:
        return RefusedImage(source=source, kind=kind, sentence=fault.what, remedy=fault.remedy)


def pin_again(
    engine: Engine, before: PinnedImage, *, base: Path, terms: Terms, progress: Callable[[str], None], where: str = ""
) -> PinnedImage:
    """Get the same image as before, by its digest and not by its name: a tag that moved since changes nothing.

    Raises:
        UsageError: The same image cannot be had any more.
        HostFault: As ``pin``.
    """
    getting = _Getting(engine=engine, source=before.source, base=base, terms=terms, progress=progress, where=where)
    try:
        getting.use(engine.image(before.id))
    except ImageMissing:
        pass
    else:
        return before
    found: PinnedImage | RefusedImage
    if before.kind is SourceKind.REGISTRY and before.origin:
        try:
            found = getting.from_registry(before.origin)
        except Unusable as fault:
            found = RefusedImage(source=before.source, kind=before.kind, sentence=fault.what, remedy=fault.remedy)
    else:
        found = pin(engine, before.source, base=base, terms=terms, progress=progress, where=where)
    if isinstance(found, PinnedImage) and found.id == before.id:
        return before
    reason = found.sentence if isinstance(found, RefusedImage) else f"its source now gives {found.id}"
    raise UsageError(
        f"the image {before.id} that this run began with is no longer on the engine, and cannot be had again: {reason}",
        where=where,
        remedy="put the same image back on the engine (docker load), or begin a new run with another --out",
    )


@dataclass(frozen=True, kw_only=True)
class _Getting:
    """One image being had."""

    engine: Engine
    source: str
    base: Path
    terms: Terms
    progress: Callable[[str], None]
    where: str

    @property
    def path(self) -> Path:
        return self.base / Path(self.source).expanduser()

    def use(self, facts: ImageFacts) -> None:
        if self.terms.room is None:
            return
        self.terms.room.use(facts.id)
        try:
            self.engine.image(facts.id)
        except ImageMissing as error:
            raise HostFault(
                f"the image {facts.id} was removed by another runner, to make room, just before it was taken",
                where=self.where,
                remedy="proctor resume RUN gets it again",
            ) from error

    def pinned(self, kind: SourceKind, facts: ImageFacts, origin: str = "") -> PinnedImage:
        self.use(facts)
        return PinnedImage(
            source=self.source, kind=kind, id=facts.id, digests=facts.repo_digests, facts=facts, origin=origin
        )

    def from_registry(self, reference: str) -> PinnedImage:
        if not reference:
            raise UsageError(f"image {self.source!r} names nothing", where=self.where, remedy="name an image behind it")
        if _ID.fullmatch(reference):
            raise UsageError(
                f"the engine holds no image {self.source!r}", where=self.where, remedy="see: docker images --no-trunc"
            )
        terms = self.terms
        if terms.room is not None:
            terms.room.make(0)
        pulled = pull_image(
            self.engine, reference, limit=terms.limit, progress=self.progress, where=self.where,
            patience=Patience(deadline=terms.deadline, clock=terms.clock, stop=terms.stop),
        )  # fmt: skip
        origin = _origin(pulled.facts, reference)
        if terms.room is not None and pulled.new:
            terms.room.brought(pulled.facts, origin)
        return self.pinned(SourceKind.REGISTRY, pulled.facts, origin)

    def from_archive(self) -> PinnedImage:
        terms = self.terms
        before = frozenset(self.engine.image_ids())
        loaded = load_archive(
            self.engine, self.path, deadline=terms.deadline, limit=terms.limit, platform=terms.platform,
            where=self.where, progress=self.progress, make_room=terms.room.make if terms.room else _no_need,
        )  # fmt: skip
        origin = f"sha256:{loaded.sha256}"
        if terms.room is not None and loaded.facts.id not in before:
            terms.room.brought(loaded.facts, origin, archive=self.path)
        return self.pinned(SourceKind.ARCHIVE, loaded.facts, origin)

    def from_folder(self) -> PinnedImage | RefusedImage:
        if self.terms.build is None:
            raise UsageError(
                f"image {self.source!r} is a folder",
                where=self.where,
                remedy="building runs strangers' code with network beside the data: build it elsewhere and give the "
                "image, or allow it with --build-untrusted",
            )
        built = build_folder(self.engine, self.path, self.terms.build, progress=self.progress)
        if isinstance(built, ImageFacts):
            return self.pinned(SourceKind.FOLDER, built)
        return replace(built, source=self.source)


def _no_need(_size: int) -> None:
    """Make no room."""


def _origin(facts: ImageFacts, reference: str) -> str:
    """The reference by digest that gives this image again; empty where the engine names none."""
    if "@" in reference:
        return reference
    repository, colon, tag = reference.rpartition(":")
    name = repository if colon and "/" not in tag else reference
    # An engine writes a short name in full, or in short.
    return next((digest for digest in facts.repo_digests if f"/{digest}".partition("@")[0].endswith(f"/{name}")), "")
