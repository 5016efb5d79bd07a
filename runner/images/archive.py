"""Loads an image archive of a stranger: streamed, checked whole, written anew, and only then given to the engine.

Three readings of one opened file. The first finds every member, its digest and its documents. The second, only where
layers are packed, learns how long they are unpacked. Up to here the engine knows nothing. The third sends one plain
``docker save`` archive of our own making: the configuration, the layers under names of ours, unpacked, and last of all
a manifest without a name. The file is hashed at each reading, and without the manifest nothing is loaded, so what
changed under our hands is not loaded either. The engine itself would take a damaged layer whose digest it holds.
"""

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runner.engine import Engine, EngineRefusal, ImageFacts
from runner.errors import HostFault, UsageError
from runner.images.documents import (
    LARGEST_DOCUMENT,
    SAVE_AGAIN,
    SAVE_ONE,
    FoundImage,
    LayerFile,
    Scanned,
    find_image,
    plain,
)
from runner.images.members import Kind, Member, read_members
from runner.images.refusal import Unusable, quoted
from runner.images.unpacking import BLOCK, Packing, capped, packing_of, unpacked
from runner.quantities import show_bytes

LARGEST_IMAGE = 50 << 30
_DOCUMENTS_IN_ALL = 64 << 20
_SAID_EVERY = 256 << 20
_SMALLER = "make the image smaller, or ask the organisers for a higher ceiling.image_size"

Progress = Callable[[str], None]


def _silent(_text: str) -> None:
    """Say nothing."""


def _no_need(_size: int) -> None:
    """Make no room."""


@dataclass(frozen=True, kw_only=True)
class LoadedArchive:
    """What was loaded: the image, and the SHA-256 of the file, hexadecimal."""

    facts: ImageFacts
    sha256: str


def load_archive(
    engine: Engine,
    path: Path,
    *,
    deadline: float,
    limit: int = LARGEST_IMAGE,
    platform: str = "linux/amd64",
    where: str = "",
    progress: Progress = _silent,
    make_room: Callable[[int], None] = _no_need,
) -> LoadedArchive:
    """Load an archive of ``docker save`` or of the OCI layout without its names, so that it can re-point no tag.

    Args:
        engine: Who holds it afterwards.
        path: The file; plain, gzip, zstd, xz or bz2.
        deadline: Seconds the engine may take to load it.
        limit: Bytes that the file, and all layers together, may unpack to.
        platform: Which image is meant where there is one for several platforms.
        where: Place of the text that named it, for errors.
        progress: Is told what happens.
        make_room: Is told, before the engine is asked, how many bytes its disk will need for a while.

    Raises:
        Unusable: The file is damaged, or does not hold exactly one image.
        UsageError: There is no such file, or it may not be read.
        HostFault: It could not be read, the engine failed, or has no room.
    """
    with _opened(path, where) as file:
        try:
            return _load(_Reading(file, path, limit, progress), engine, deadline, platform, make_room)
        except OSError as error:
            raise HostFault(
                f"image archive {str(path)!r} could not be read: {error.strerror or error}",
                where=where,
                remedy="see that its disk is well, then: proctor resume RUN",
            ) from error


def archive_sha256(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _opened(path: Path, where: str) -> BinaryIO:
    if not path.is_file():
        raise UsageError(f"there is no image archive {str(path)!r}", where=where, remedy="check the path")
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(
            f"image archive {str(path)!r} cannot be opened: {error.strerror}", where=where, remedy="check its mode"
        ) from error


def _load(
    reading: "_Reading", engine: Engine, deadline: float, platform: str, make_room: Callable[[int], None]
) -> LoadedArchive:
    members = reading.scan()
    image = find_image(members, platform=platform, what=reading.what)
    sizes = reading.sizes(image, members)
    # The engine keeps the whole archive beside what it makes of it.
    make_room(2 * sum(sizes.values()))
    try:
        loaded = engine.load(reading.normalised(image, sizes), deadline=deadline)
    except EngineRefusal as refusal:
        raise Unusable(
            f"{reading.what} is refused by the engine: {quoted(refusal.message, most=300)}", remedy=SAVE_AGAIN
        ) from refusal
    if len(loaded) != 1:
        raise Unusable(f"{reading.what} gave {len(loaded)} images", remedy=SAVE_ONE)
    return LoadedArchive(facts=engine.image(loaded[0]), sha256=reading.sha256)


class _Reading:
    """An archive file that is read several times over."""

    def __init__(self, file: BinaryIO, path: Path, limit: int, progress: Progress) -> None:
        # Its name alone: a verdict's sentence is shown to anybody.
        self.what = f"image archive {path.name!r}"
        self.sha256 = ""
        self._file = file
        self._name = path.name
        self._limit = limit
        self._progress = progress

    def _members(self, doing: str) -> Iterator[tuple[Member, Iterable[bytes]]]:
        self._file.seek(0)
        packing = packing_of(self._file.read(6))
        self._file.seek(0)
        hashing = hashlib.sha256()
        pieces = unpacked(self._pieces(hashing.update, doing), packing, what=self.what, remedy=SAVE_AGAIN)
        pieces = capped(pieces, self._limit, what=self.what, remedy=_SMALLER)
        yield from read_members(pieces, what=self.what, remedy=SAVE_AGAIN)
        if self.sha256 not in ("", hashing.hexdigest()):
            raise self._changed()
        self.sha256 = hashing.hexdigest()

    def _pieces(self, update: Callable[[bytes], None], doing: str) -> Iterator[bytes]:
        told = 0
        while piece := self._file.read(BLOCK):
            if self._file.tell() - told > _SAID_EVERY:
                told = self._file.tell()
                self._progress(f"{doing} {self._name}: {show_bytes(told)}")
            update(piece)
            yield piece

    def _changed(self) -> HostFault:
        return HostFault(
            f"{self.what} changed while it was read", remedy="wait until it is written whole, then: proctor resume RUN"
        )

    # First

    def scan(self) -> dict[str, Scanned]:
        """Every member, by plain name."""
        found: dict[str, Scanned] = {}
        left = _DOCUMENTS_IN_ALL
        for member, body in self._members("reading"):
            name = plain(member.name)
            scanned = _scanned(member, body)
            if scanned.text is not None:
                left -= scanned.size
                if left < 0:
                    raise self._unusable(f"holds more than {show_bytes(_DOCUMENTS_IN_ALL)} of JSON")
            if name in found and member.kind is not Kind.OTHER:
                raise self._unusable(f"holds {quoted(name)} twice; which of the two is meant cannot be told")
            found.setdefault(name, scanned)
        return found

    def _unusable(self, sentence: str) -> Unusable:
        return Unusable(f"{self.what} {sentence}", remedy=SAVE_AGAIN)

    # Second

    def sizes(self, image: FoundImage, members: Mapping[str, Scanned]) -> dict[str, int]:
        """How long each layer is unpacked, by the digest it must have, and has."""
        for layer in image.layers:
            found = members[layer.member].sha256
            if layer.packing is Packing.PLAIN and found != layer.diff_id:
                raise self._wrong(layer, found)
        sizes = {layer.diff_id: members[layer.member].size for layer in image.layers if layer.packing is Packing.PLAIN}
        packed: dict[str, LayerFile] = {}
        for layer in image.layers:
            if layer.packing is not Packing.PLAIN and packed.setdefault(layer.member, layer).diff_id != layer.diff_id:
                raise self._wrong(layer, packed[layer.member].diff_id)
        for member, body in self._members("unpacking") if packed else ():
            wanted = packed.get(plain(member.name))
            if wanted is None:
                continue
            pieces = _Hashing(self._layer(body, wanted))
            what, before = f"{self.what}, its layers together,", sum(sizes.values())
            counted = capped(pieces, self._limit, what=what, remedy=_SMALLER, before=before)
            sizes[wanted.diff_id] = sum(map(len, counted))
            if pieces.sha256 != wanted.diff_id:
                raise self._wrong(wanted, pieces.sha256)
        return sizes

    def _layer(self, body: Iterable[bytes], layer: LayerFile) -> Iterator[bytes]:
        what = f"{self.what}, layer {quoted(layer.member)},"
        return unpacked(body, layer.packing, what=what, remedy=SAVE_AGAIN)

    def _wrong(self, layer: LayerFile, found: str) -> Unusable:
        return self._unusable(
            f"is damaged: layer {quoted(layer.member)} has the SHA-256 {found}, its configuration says {layer.diff_id}"
        )

    # Third

    def normalised(self, image: FoundImage, sizes: Mapping[str, int]) -> Iterator[bytes]:
        """The archive written anew."""
        config = f"{image.config_sha256}.json"
        yield from _member(config, image.config)
        left: dict[str, LayerFile] = {layer.member: layer for layer in image.layers}
        written: set[str] = set()
        for member, body in self._members("loading"):
            layer = left.get(plain(member.name))
            if layer is None or layer.diff_id in written:
                continue
            written.add(layer.diff_id)
            yield _header(_layer_name(layer), sizes[layer.diff_id])
            yield from self._layer(body, layer)
            yield b"\0" * (-sizes[layer.diff_id] % tarfile.BLOCKSIZE)
        names = [_layer_name(layer) for layer in image.layers]
        yield from _member(
            "manifest.json", json.dumps([{"Config": config, "RepoTags": None, "Layers": names}]).encode()
        )
        yield b"\0" * (2 * tarfile.BLOCKSIZE)


class _Hashing:
    """Passes pieces on, and knows their SHA-256 once they are all through."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self._digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._digest.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def _scanned(member: Member, body: Iterable[bytes]) -> Scanned:
    pieces, head, kept = _Hashing(body), b"", [b""]
    for piece in pieces:
        head = (head + piece[:6])[:6]
        if member.size <= LARGEST_DOCUMENT:
            kept.append(piece)
    text = b"".join(kept)
    looks = member.kind is Kind.FILE and member.size <= LARGEST_DOCUMENT and text.lstrip()[:1] in (b"{", b"[")
    return Scanned(
        kind=member.kind, size=member.size, sha256=pieces.sha256, packing=packing_of(head), target=member.target,
        text=text if looks else None,
    )  # fmt: skip


def _layer_name(layer: LayerFile) -> str:
    return f"{layer.diff_id}.tar"


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)


def _member(name: str, data: bytes) -> Iterator[bytes]:
    yield _header(name, len(data))
    yield data + b"\0" * (-len(data) % tarfile.BLOCKSIZE)
