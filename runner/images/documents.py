"""Finds the one image of an archive in its JSON: ``docker save``'s manifest.json, or the index of an OCI layout.

Everything here was written by a stranger. A name that a document gives is looked up among the members and leads
nowhere else; a document is read within bounds, and what claims a digest must have it.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from runner.images.members import Kind
from runner.images.refusal import Unusable, quoted
from runner.images.unpacking import Packing

MOST_LAYERS = 125
"""What Docker's layer store takes ("max depth exceeded"); the file system below it would take two more."""
LARGEST_DOCUMENT = 4 << 20
SAVE_AGAIN = "write it again with: docker save IMAGE -o FILE"
SAVE_ONE = "save one image a file: docker save IMAGE -o FILE"
_DEEPEST_INDEX = 3
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_NAMED_DIGEST = re.compile(r"(?:blobs/sha256/)?([0-9a-f]{64})(?:\.json)?")
_ATTESTATION = "vnd.docker.reference.type"
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_CONFIGS = ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")
_LAYERS = {
    "application/vnd.oci.image.layer.v1.tar": Packing.PLAIN,
    "application/vnd.oci.image.layer.v1.tar+gzip": Packing.GZIP,
    "application/vnd.oci.image.layer.v1.tar+zstd": Packing.ZSTD,
    "application/vnd.docker.image.rootfs.diff.tar": Packing.PLAIN,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": Packing.GZIP,
    "application/vnd.docker.image.rootfs.diff.tar.zstd": Packing.ZSTD,
}
_ROOT_FOLDERS = ("bin", "etc", "usr", "lib")

Object: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Scanned:
    """A member of an archive after it was read once.

    Attributes:
        kind: What it is.
        size: Its bytes.
        sha256: Of its bytes, hexadecimal.
        packing: By its first bytes.
        target: What a link points to, as it stands there.
        text: Its bytes, where they look like a document and are few; else None.
    """

    kind: Kind
    size: int
    sha256: str
    packing: Packing
    target: str = ""
    text: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class LayerFile:
    """A layer: the member that holds it, how it is packed there, and the digest it must have unpacked."""

    member: str
    packing: Packing
    diff_id: str


@dataclass(frozen=True, kw_only=True)
class FoundImage:
    """The one image of an archive: its configuration's bytes and its layers, lowest first."""

    config: bytes
    config_sha256: str
    layers: tuple[LayerFile, ...]


def find_image(members: Mapping[str, Scanned], *, platform: str, what: str) -> FoundImage:
    """Find the one image an archive holds.

    Args:
        members: Everything in it, by plain name.
        platform: Which one is meant where it holds one for several, such as ``linux/amd64``.
        what: The archive, for sentences.

    Raises:
        Unusable: It holds none, several, or one that is not whole.
    """
    archive = _Archive(members, what)
    if "manifest.json" in members:
        return _of_docker(archive)
    if "index.json" in members:
        return _of_oci(archive, platform)
    if sum(folder in members or f"{folder}/" in members for folder in _ROOT_FOLDERS) > 1:
        raise Unusable(
            f"{what} is a file system, as docker export writes, not an image",
            remedy="save the image itself: docker save IMAGE -o FILE",
        )
    raise Unusable(
        f"{what} has neither a manifest.json nor an index.json", remedy="write it with: docker save IMAGE -o FILE"
    )


class _Archive:
    """The members, looked up with an error for each thing that can be wrong with one."""

    def __init__(self, members: Mapping[str, Scanned], what: str) -> None:
        self.members = members
        self.what = what

    def fault(self, sentence: str, *, remedy: str = SAVE_AGAIN) -> Unusable:
        return Unusable(f"{self.what} {sentence}", remedy=remedy)

    def file(self, name: str) -> Scanned:
        found = self.members.get(name)
        if found is None:
            raise self.fault(f"is not whole: {quoted(name)} is missing")
        if found.kind is not Kind.FILE:
            raise self.fault(f"is damaged: {quoted(name)} is not a plain file")
        return found

    def document(self, name: str) -> object:
        text = self.file(name).text
        if text is None:
            raise self.fault(f"is damaged: {quoted(name)} is no JSON, or larger than {LARGEST_DOCUMENT} bytes")
        return self.parsed(text, name)

    def parsed(self, text: bytes, name: str) -> object:
        try:
            value: object = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
        except RecursionError as error:
            raise self.fault(f"is damaged: {quoted(name)} is nested too deeply") from error
        except ValueError as error:
            raise self.fault(f"is damaged: {quoted(name)} is not JSON: {quoted(str(error))}") from error
        return value

    def mapping(self, name: str) -> Object:
        value = self.document(name)
        if not _is_object(value):
            raise self.fault(f"is damaged: {quoted(name)} is not a JSON object")
        return value

    def named(self, name: object, where: str) -> str:
        """A plain relative name as a document gives it."""
        if not isinstance(name, str) or not name:
            raise self.fault(f"is damaged: {where} names {quoted(name)} for a file")
        if name.startswith("/") or ".." in name.split("/"):
            raise self.fault(f"names {quoted(name)} in {where}, which lies outside of it")
        return plain(name)

    def require_digest(self, name: str) -> None:
        """Find fault with a member that is not what its own name says."""
        claimed = _NAMED_DIGEST.fullmatch(name)
        actual = self.file(name).sha256
        if claimed is not None and claimed[1] != actual:
            raise self.fault(f"is damaged: the SHA-256 of {quoted(name)} is {actual}")


def plain(name: str) -> str:
    """A member's name without a leading ``./`` and doubled slashes; a name with ``..`` or from the root stays."""
    return name if name.startswith("/") or ".." in name.split("/") else posixpath.normpath(name)


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return values


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no number")


def _is_object(value: object) -> TypeGuard[Object]:
    return isinstance(value, dict)


# docker save


def _of_docker(archive: _Archive) -> FoundImage:
    listed = archive.document("manifest.json")
    if not isinstance(listed, list):
        raise archive.fault("is damaged: 'manifest.json' is not a list of images")
    if len(listed) != 1:
        raise archive.fault(f"holds {len(listed)} images, not one", remedy=SAVE_ONE)
    (entry,) = listed
    if not _is_object(entry) or not isinstance(entry.get("Layers"), list):
        raise archive.fault("is damaged: 'manifest.json' lists no layers")
    names = [archive.named(name, "manifest.json") for name in _list(entry["Layers"])]
    config = archive.named(entry.get("Config"), "manifest.json")
    archive.require_digest(config)
    files = [_followed(archive, name) for name in names]
    for name in files:
        archive.require_digest(name)
    packings = [archive.file(name).packing for name in files]
    return _assembled(archive, config, files, packings)


def _followed(archive: _Archive, name: str) -> str:
    """Where a layer lies: ``docker save`` before 25 writes equal layers once, the others are links to it."""
    found = archive.members.get(name)
    if found is None or found.kind is not Kind.SYMLINK:
        return name
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), found.target))
    if archive.members.get(target) is None or archive.members[target].kind is not Kind.FILE:
        raise archive.fault(f"is damaged: {quoted(name)} is a link to {quoted(found.target)}, which is no layer of it")
    return target


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# OCI


@dataclass(frozen=True, kw_only=True)
class _Descriptor:
    """What an OCI document says of another."""

    media_type: str
    digest: str
    size: int
    platform: str
    attests: bool

    @property
    def name(self) -> str:
        return f"blobs/sha256/{self.digest}"


def _of_oci(archive: _Archive, platform: str) -> FoundImage:
    version = archive.mapping("oci-layout").get("imageLayoutVersion")
    if version != "1.0.0":
        raise archive.fault(f"is of the OCI layout version {quoted(version)}, not '1.0.0'")
    chosen = _chosen(archive, archive.mapping("index.json"), "index.json", platform)
    manifest = _blob(archive, chosen)
    config = _descriptor(archive, manifest.get("config"), chosen.name)
    if config.media_type not in _CONFIGS:
        raise archive.fault(f"holds no container image but {quoted(config.media_type)}", remedy=SAVE_ONE)
    _require(archive, config)
    layers = manifest.get("layers")
    if not isinstance(layers, list):
        raise archive.fault(f"is damaged: {quoted(chosen.name)} lists no layers")
    found = [_descriptor(archive, layer, chosen.name) for layer in layers]
    for layer in found:
        _require_layer(archive, layer)
    return _assembled(archive, config.name, [d.name for d in found], [_LAYERS[d.media_type] for d in found])


def _chosen(archive: _Archive, index: Object, name: str, platform: str, depth: int = 1) -> _Descriptor:
    """The one image an index means for a platform, through the indexes below it."""
    listed = index.get("manifests")
    if not isinstance(listed, list):
        raise archive.fault(f"is damaged: {quoted(name)} lists no images")
    found = {d.digest: d for d in (_descriptor(archive, entry, name) for entry in listed) if not d.attests}
    choices = list(found.values())
    if len(choices) > 1:
        choices = [d for d in choices if d.platform == platform]
    if len(choices) != 1:
        raise archive.fault(_several(list(found.values()), len(choices), platform), remedy=SAVE_ONE)
    (one,) = choices
    if one.media_type in _MANIFESTS:
        return one
    if one.media_type not in _INDEXES:
        raise archive.fault(f"holds no container image but {quoted(one.media_type)}", remedy=SAVE_ONE)
    if depth == _DEEPEST_INDEX:
        raise archive.fault(f"is damaged: its indexes are more than {depth} deep")
    return _chosen(archive, _blob(archive, one), one.name, platform, depth + 1)


def _several(every: list[_Descriptor], fitting: int, platform: str) -> str:
    if not every:
        return "holds 0 images, not one"
    if fitting:
        return f"holds {fitting} images for {platform}, not one"
    platforms = sorted({d.platform or "no platform" for d in every})
    return f"holds {len(every)} images, none of them for {platform}: {quoted(', '.join(platforms))}"


def _descriptor(archive: _Archive, value: object, where: str) -> _Descriptor:
    entry = value if _is_object(value) else {}
    media_type, digest, size = entry.get("mediaType"), entry.get("digest"), entry.get("size")
    match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if match is None or not isinstance(media_type, str) or not isinstance(size, int):
        raise archive.fault(f"is damaged: {quoted(where)} has a reference without media type, SHA-256 or size")
    platform = entry.get("platform")
    parts = [str(platform[key]) for key in ("os", "architecture") if key in platform] if _is_object(platform) else []
    notes = entry.get("annotations")
    return _Descriptor(
        media_type=media_type, digest=match[1], size=size, platform="/".join(parts),
        attests=_is_object(notes) and _ATTESTATION in notes,
    )  # fmt: skip


def _require(archive: _Archive, descriptor: _Descriptor) -> Scanned:
    """The member a descriptor means, which must be what the descriptor says."""
    found = archive.file(descriptor.name)
    archive.require_digest(descriptor.name)
    if found.size != descriptor.size:
        raise archive.fault(
            f"is damaged: {quoted(descriptor.name)} has {found.size} bytes, its reference says {descriptor.size}"
        )
    return found


def _blob(archive: _Archive, descriptor: _Descriptor) -> Object:
    _require(archive, descriptor)
    document = archive.mapping(descriptor.name)
    said = document.get("mediaType", descriptor.media_type)
    if said != descriptor.media_type:
        raise archive.fault(
            f"is damaged: {quoted(descriptor.name)} calls itself {quoted(said)}, "
            f"its reference {quoted(descriptor.media_type)}"
        )
    return document


def _require_layer(archive: _Archive, layer: _Descriptor) -> None:
    if layer.media_type not in _LAYERS:
        raise archive.fault(
            f"has a layer of the type {quoted(layer.media_type)}, which is not read here",
            remedy="save it with layers that are plain, gzip or zstd, and all in the file",
        )
    packing = _require(archive, layer).packing
    if packing is not _LAYERS[layer.media_type]:
        raise archive.fault(
            f"is damaged: {quoted(layer.name)} is {packing.value}, its reference says {quoted(layer.media_type)}"
        )


# Both


def _assembled(archive: _Archive, config: str, layers: list[str], packings: list[Packing]) -> FoundImage:
    described = archive.mapping(config)
    if len(layers) > MOST_LAYERS:
        raise archive.fault(
            f"has {len(layers)} layers; an engine takes {MOST_LAYERS}",
            remedy="join RUN instructions, or copy the result into one layer with a second FROM",
        )
    diff_ids = list(_diff_ids(archive, described, config))
    if len(diff_ids) != len(layers):
        raise archive.fault(f"is damaged: it has {len(layers)} layers, its configuration names {len(diff_ids)}")
    scanned = archive.file(config)
    assert scanned.text is not None
    return FoundImage(
        config=scanned.text, config_sha256=scanned.sha256,
        layers=tuple(
            # What has its digest as it stands there is not packed, whatever its first bytes look like.
            LayerFile(
                member=name,
                packing=Packing.PLAIN if archive.file(name).sha256 == diff_id else packing,
                diff_id=diff_id,
            )
            for name, packing, diff_id in zip(layers, packings, diff_ids, strict=True)
        ),
    )  # fmt: skip


def _diff_ids(archive: _Archive, config: Object, name: str) -> Iterator[str]:
    root = config.get("rootfs")
    listed = root.get("diff_ids") if _is_object(root) else None
    # A configuration without layers may leave them out.
    for digest in _list(listed):
        match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if match is None:
            raise archive.fault(f"is damaged: {quoted(name)} names {quoted(digest)} for a layer's SHA-256")
        yield match[1]
