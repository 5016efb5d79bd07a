"""Gets an image (registry, ``docker save`` archive, local, or a folder to build) and pins it by digest."""

import json
import posixpath
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from runner.engine import Engine, EngineRefusal, ImageFacts, ImageMissing
from runner.errors import UsageError

_BLOCK = 1 << 20
_PATH_BEGINNINGS = (".", "/", "~")
_ARCHIVE_NAMES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_OURS = {".", "repositories", "index.json", "oci-layout", "manifest.json"}
_MANIFEST_CAP = 1 << 20
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


class SourceKind(StrEnum):
    """Where an image comes from."""

    REGISTRY = "registry"
    ARCHIVE = "archive"
    LOCAL = "local image"
    FOLDER = "folder"


@dataclass(frozen=True, kw_only=True)
class PinnedImage:
    """An image that cannot change any more.

    Attributes:
        source: As it was written in the submissions file.
        kind: Where it came from.
        id: ``sha256:…`` of its configuration; what is run.
        digests: Repository digests, where it has any.
        facts: What the engine says of it; untrusted.
    """

    source: str
    kind: SourceKind
    id: str
    digests: tuple[str, ...]
    facts: ImageFacts


def _pinned(source: str, kind: SourceKind, facts: ImageFacts) -> PinnedImage:
    return PinnedImage(source=source, kind=kind, id=facts.id, digests=facts.repo_digests, facts=facts)


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
    except ImageMissing:
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
    engine: Engine, source: str, *, base: Path, deadline: float, progress: Callable[[str], None], where: str = ""
) -> PinnedImage:
    """Get an image and pin it.

    Args:
        engine: Who holds it afterwards.
        source: A reference, an ID or the path of an archive, as ``source_kind`` reads it.
        base: Folder that relative paths start from.
        deadline: Seconds it may take.
        progress: Is told what happens.
        where: Place of the text, for errors.

    Raises:
        UsageError: There is no such image, or it is a folder.
        HostFault: The engine did not answer.
    """
    kind = source_kind(engine, source, base=base)
    if kind is SourceKind.FOLDER:
        raise UsageError(
            f"image {source!r} is a folder",
            where=where,
            remedy="building runs strangers' code with network beside the data: build it elsewhere and give the image",
        )
    if kind is SourceKind.LOCAL:
        return _pinned(source, kind, engine.image(source))
    if kind is SourceKind.ARCHIVE:
        return _pinned(
            source, kind, load_archive(engine, base / Path(source).expanduser(), deadline=deadline, where=where)
        )
    reference = source.removeprefix("docker://")
    if _ID.fullmatch(reference):
        raise UsageError(f"the engine holds no image {source!r}", where=where, remedy="see: docker images --no-trunc")
    try:
        return _pinned(source, kind, engine.pull(reference, deadline=deadline, progress=progress))
    except EngineRefusal as error:
        raise UsageError(
            f"image {source!r} could not be had: {error.message}",
            where=where,
            remedy="check the name; it is neither on the engine nor in a registry that answers",
        ) from error


def load_archive(engine: Engine, path: Path, *, deadline: float, where: str = "") -> ImageFacts:
    """Load a ``docker save`` archive without its names, so that it can re-point no tag of this engine.

    Raises:
        UsageError: The file is missing, damaged, or holds not exactly one image.
    """
    if not path.is_file():
        raise UsageError(f"there is no image archive {str(path)!r}", where=where, remedy="check the path")
    try:
        manifest = _read_manifest(path)
        loaded = engine.load(_without_names(path, manifest), deadline=deadline)
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, EngineRefusal) as error:
        raise UsageError(
            f"image archive {str(path)!r} is damaged: {error}",
            where=where,
            remedy="write it again with: docker save IMAGE -o FILE",
        ) from error
    if len(loaded) != 1:
        raise UsageError(
            f"image archive {str(path)!r} gave {len(loaded)} images", where=where, remedy="save exactly one image"
        )
    return engine.image(loaded[0])


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    """The one image an archive holds: its configuration and its layers, by plain relative names."""

    config: str
    layers: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.config, *self.layers))

    @property
    def text(self) -> bytes:
        """A manifest.json without names of images."""
        return json.dumps([{"Config": self.config, "RepoTags": None, "Layers": self.layers}]).encode()


def _read_manifest(path: Path) -> _Manifest:
    with tarfile.open(path, mode="r|*", bufsize=_BLOCK) as tar:
        for member in tar:
            if _clean(member.name) == "manifest.json" and member.isreg() and member.size <= _MANIFEST_CAP:
                stream = tar.extractfile(member)
                assert stream is not None
                return _parse_manifest(stream.read(_MANIFEST_CAP), path)
    raise UsageError(
        f"image archive {str(path)!r} has no manifest.json", remedy="write it with: docker save IMAGE -o FILE"
    )


def _parse_manifest(text: bytes, path: Path) -> _Manifest:
    try:
        (one,) = json.loads(text)
        return _Manifest(config=_plain_name(one["Config"]), layers=tuple(map(_plain_name, one["Layers"])))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"image archive {str(path)!r} does not hold exactly one image",
            remedy="save one image a file: docker save IMAGE -o FILE",
        ) from error


def _clean(name: str) -> str:
    return posixpath.normpath(name)


def _plain_name(name: object) -> str:
    """A name as the manifest gives it, or ValueError where it leaves the archive or is one of ours."""
    if not isinstance(name, str) or not name:
        raise TypeError
    clean = _clean(name)
    if clean.startswith(("/", "..")) or clean in _OURS:
        raise ValueError
    return clean


def _without_names(path: Path, manifest: _Manifest) -> Iterator[bytes]:
    """The archive written anew: what its manifest names, under plain names, and nothing else.

    Whatever else it holds is left out: a second ``./manifest.json``, or a link that another file is written through,
    would let the engine read the names after all.
    """
    wanted = set(manifest.names)
    # A file below a name would be written through it where that is a link.
    if any(str(above) in wanted for name in wanted for above in PurePosixPath(name).parents):
        raise tarfile.ReadError("a file of the image lies below another")
    yield from _member(tarfile.TarInfo("manifest.json"), manifest.text)
    with tarfile.open(path, mode="r|*", bufsize=_BLOCK) as tar:
        for member in tar:
            name = _clean(member.name)
            if name not in wanted:
                continue
            wanted.remove(name)
            info = tarfile.TarInfo(name)
            if member.issym():  # docker save links equal layers
                if _clean(posixpath.join(posixpath.dirname(name), member.linkname)) not in manifest.names:
                    raise tarfile.ReadError(f"{name!r} is a link to something else")
                info.type, info.linkname = tarfile.SYMTYPE, member.linkname
                yield info.tobuf(tarfile.PAX_FORMAT)
            elif member.isreg() and not member.issparse():
                info.size = member.size
                yield info.tobuf(tarfile.PAX_FORMAT)
                yield from _contents(tar, member)
            else:
                raise tarfile.ReadError(f"{name!r} is not a plain file")
    if wanted:
        raise tarfile.ReadError(f"{min(wanted)!r} is missing")
    yield b"\0" * 1024


def _contents(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    stream = tar.extractfile(member)
    assert stream is not None
    read = 0
    while chunk := stream.read(_BLOCK):
        read += len(chunk)
        yield chunk
    if read != member.size:
        raise tarfile.ReadError(f"{member.name!r} ends after {read} of {member.size} bytes")
    if read % 512:
        yield b"\0" * (-read % 512)


def _member(info: tarfile.TarInfo, data: bytes) -> Iterator[bytes]:
    info.size = len(data)
    yield info.tobuf(tarfile.PAX_FORMAT)
    yield data + b"\0" * (-len(data) % 512)
