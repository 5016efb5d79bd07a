"""Image archives, good, odd and damaged, each with what comes of it; for the fake engine and for the real one.

They are made here byte by byte: ``docker save`` in its two layouts, OCI layouts as Podman and buildx write them, and
some hundred ways of being wrong. Nothing in them is random.
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker."


class Entry(NamedTuple):
    """A member of a tar."""

    name: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    pax: Mapping[str, str] | None = None


def tar_of(*entries: Entry, tar_format: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar of these members, in this order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as tar:
        for name, data, kind, link, pax in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(data)
            info.pax_headers = dict(pax or {})
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def sha256(data: bytes) -> str:
    """Hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def layer(note: str) -> bytes:
    """A layer of one file."""
    return tar_of(Entry(f"note-{note}", f"{note} of proctor's archives ".encode() * 100))


@dataclass(frozen=True)
class Image:
    """An image to be saved: its layers, unpacked, and what its configuration says beside their digests."""

    layers: tuple[bytes, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> bytes:
        """The configuration."""
        described = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/run"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(data)}" for data in self.layers]},
        }
        return json.dumps({**described, **self.config}).encode()

    @property
    def id(self) -> str:
        """What an engine calls it."""
        return f"sha256:{sha256(self.text)}"


IMAGE = Image((layer("one"), layer("two")))
CONFIG_NAME = f"{sha256(IMAGE.text)}.json"


def docker_manifest(image: Image = IMAGE, **changes: Any) -> bytes:
    """``docker save``'s manifest.json; None leaves a key out."""
    one = {
        "Config": f"{sha256(image.text)}.json",
        "RepoTags": ["team:1"],
        "Layers": [f"l{number}/layer.tar" for number in range(len(image.layers))],
        **changes,
    }
    return json.dumps([{key: value for key, value in one.items() if value is not None}]).encode()


def docker_entries(image: Image = IMAGE, **changes: Any) -> tuple[Entry, ...]:
    """What ``docker save`` wrote before Docker 25."""
    return (
        Entry(f"{sha256(image.text)}.json", image.text),
        *(Entry(f"l{number}/layer.tar", data) for number, data in enumerate(image.layers)),
        Entry("manifest.json", docker_manifest(image, **changes)),
    )


def replaced(entries: tuple[Entry, ...], name: str, *instead: Entry) -> tuple[Entry, ...]:
    """The members with one of them replaced."""
    assert any(entry.name == name for entry in entries), name
    return tuple(e for entry in entries for e in (instead if entry.name == name else (entry,)))


def descriptor(kind: str, data: bytes, **more: Any) -> dict[str, Any]:
    """How an OCI document refers to another."""
    return {"mediaType": kind, "digest": f"sha256:{sha256(data)}", "size": len(data), **more}


def blob(data: bytes) -> Entry:
    """A blob under its digest."""
    return Entry(f"blobs/sha256/{sha256(data)}", data)


PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "tar": lambda data: data,
    "tar+gzip": lambda data: gzip.compress(data, mtime=0),
    "tar+zstd": zstd.compress,
}
LAYOUT = Entry("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


@dataclass(frozen=True)
class Oci:
    """An OCI layout under construction, each part of which a test may replace."""

    image: Image = IMAGE
    packing: str = "tar+gzip"
    config_type: str = f"{OCI}config.v1+json"
    layer_type: str | None = None
    manifest_type: str = f"{OCI}manifest.v1+json"
    manifest_more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def layers(self) -> tuple[bytes, ...]:
        """The layers as they lie in the layout."""
        return tuple(PACKERS[self.packing](data) for data in self.image.layers)

    @property
    def manifest(self) -> bytes:
        """The image's manifest."""
        kind = self.layer_type or f"{OCI}layer.v1.{self.packing}"
        document = {
            "schemaVersion": 2,
            "mediaType": self.manifest_type,
            "config": descriptor(self.config_type, self.image.text),
            "layers": [descriptor(kind, data) for data in self.layers],
        }
        return json.dumps({**document, **self.manifest_more}).encode()

    def refer(self, **more: Any) -> dict[str, Any]:
        """How an index refers to the manifest."""
        return descriptor(self.manifest_type, self.manifest, **more)

    @property
    def blobs(self) -> tuple[Entry, ...]:
        """Everything below blobs/."""
        return (*map(blob, self.layers), blob(self.image.text), blob(self.manifest))


def index(*references: Mapping[str, Any]) -> bytes:
    """An index of images."""
    return json.dumps({"schemaVersion": 2, "mediaType": f"{OCI}index.v1+json", "manifests": references}).encode()


def oci(*parts: Oci, top: bytes | None = None, more: tuple[Entry, ...] = ()) -> bytes:
    """An OCI archive."""
    blobs = {entry.name: entry for part in parts for entry in part.blobs}
    return tar_of(*blobs.values(), *more, Entry("index.json", top or index(*(p.refer() for p in parts))), LAYOUT)


AMD, ARM = {"os": "linux", "architecture": "amd64"}, {"os": "linux", "architecture": "arm64", "variant": "v8"}
ONE = Oci()
OTHER = Oci(Image((layer("arm"),), {"architecture": "arm64"}))
ATTESTATION = Oci(Image((layer("in-toto"),)), manifest_more={"annotations": {"in": "toto"}})
ATTESTS = ATTESTATION.refer(
    platform={"os": "unknown", "architecture": "unknown"},
    annotations={"vnd.docker.reference.type": "attestation-manifest"},
)
NESTED = index(ONE.refer(platform=AMD), OTHER.refer(platform=ARM), ATTESTS)


def docker_25(image: Image = IMAGE) -> bytes:
    """What ``docker save`` writes since Docker 25: an OCI layout with a manifest.json."""
    part = Oci(image, packing="tar")
    names = [entry.name for entry in map(blob, part.layers)]
    manifest = docker_manifest(image, Config=blob(image.text).name, Layers=names)
    return tar_of(*part.blobs, Entry("index.json", index(part.refer())), Entry("manifest.json", manifest), LAYOUT)


SAVED = tar_of(*docker_entries())

GOOD: Mapping[str, bytes] = {
    "docker save": SAVED,
    "docker save, gzip": gzip.compress(SAVED),
    "docker save, gzip in two pieces": gzip.compress(SAVED[:3000]) + gzip.compress(SAVED[3000:]),
    "docker save, gzip and zeros behind it": gzip.compress(SAVED) + b"\0" * 700,
    "docker save, zstd": zstd.compress(SAVED),
    "docker save, xz": lzma.compress(SAVED),
    "docker save, bz2": bz2.compress(SAVED),
    "docker save, pax": tar_of(*docker_entries(), tar_format=tarfile.PAX_FORMAT),
    "docker save, ustar": tar_of(*docker_entries(), tar_format=tarfile.USTAR_FORMAT),
    "docker save, any order": tar_of(*reversed(docker_entries())),
    "docker save, names with a dot": tar_of(*(e._replace(name=f"./{e.name}") for e in docker_entries())),
    "docker save, layers that are packed": tar_of(
        *replaced(docker_entries(), "l1/layer.tar", Entry("l1/layer.tar", gzip.compress(IMAGE.layers[1])))
    ),
    "docker save of Docker 25": docker_25(),
    "docker save of Docker 25, gzip": gzip.compress(docker_25()),
    "long names": tar_of(
        *replaced(docker_entries(Layers=["l0/layer.tar", "x" * 300]), "l1/layer.tar", Entry("x" * 300, IMAGE.layers[1]))
    ),
    "long names, pax": tar_of(
        *replaced(
            docker_entries(Layers=["l0/layer.tar", "ü" * 300]), "l1/layer.tar", Entry("ü" * 300, IMAGE.layers[1])
        ),
        tar_format=tarfile.PAX_FORMAT,
    ),
    "oci, gzip layers": oci(ONE),
    "oci, zstd layers": oci(Oci(packing="tar+zstd")),
    "oci, plain layers": oci(Oci(packing="tar")),
    "oci, zstd layers in zstd": zstd.compress(oci(Oci(packing="tar+zstd"))),
    "oci with Docker's media types": oci(
        Oci(
            config_type=f"{DOCKER}container.image.v1+json",
            layer_type=f"{DOCKER}image.rootfs.diff.tar.gzip",
            manifest_type=f"{DOCKER}distribution.manifest.v2+json",
        )
    ),
    "buildx, one platform and its attestation": oci(
        ONE, ATTESTATION, top=index(descriptor(f"{OCI}index.v1+json", index(ONE.refer(platform=AMD), ATTESTS))),
        more=(blob(index(ONE.refer(platform=AMD), ATTESTS)),),
    ),
    "buildx, two platforms": oci(
        ONE, OTHER, ATTESTATION, top=index(descriptor(f"{OCI}index.v1+json", NESTED)), more=(blob(NESTED),)
    ),
    "one image named twice": oci(
        ONE, top=index(*(ONE.refer(annotations={"org.opencontainers.image.ref.name": name}) for name in "ab"))
    ),
}  # fmt: skip
"""Archives of ``IMAGE``; each gives the same ID."""


# Odd and damaged ones


@dataclass(frozen=True)
class Odd:
    """An archive that is refused, and the sentence it gets behind its name; ``…`` stands for a library's own words."""

    data: bytes
    sentence: str


def _header(data: bytes, name: str, **fields: tuple[int, bytes]) -> bytes:
    """The tar with some bytes of a member's header replaced, and the sum that fits."""
    spoilt = bytearray(data)
    start = spoilt.rindex(name.encode() + b"\0")
    header = spoilt[start : start + 512]
    for place, text in fields.values():
        header[place : place + len(text)] = text
    spoilt[start : start + 512] = with_sum(header)
    return bytes(spoilt)


def with_sum(header: bytes | bytearray) -> bytes:
    """A header with the sum that fits it."""
    blank = bytes(header[:148]) + b" " * 8 + bytes(header[156:])
    return blank[:148] + f"{sum(blank) & 0o777777:06o}\0 ".encode() + blank[156:]


def _config(**changes: Any) -> bytes:
    """An archive whose configuration differs, under its right name."""
    return tar_of(*docker_entries(Image(IMAGE.layers, changes)))


def _raw_config(text: bytes) -> bytes:
    """An archive whose configuration is this text, under its right name."""
    name = f"{sha256(text)}.json"
    return tar_of(*replaced(docker_entries(Config=name), CONFIG_NAME, Entry(name, text)))


def _manifest(text: bytes) -> bytes:
    return tar_of(*replaced(docker_entries(), "manifest.json", Entry("manifest.json", text)))


def _layer(*instead: Entry) -> bytes:
    return tar_of(*replaced(docker_entries(), "l1/layer.tar", *instead))


def _link(target: str) -> bytes:
    return _layer(Entry("l1/layer.tar", kind=tarfile.SYMTYPE, link=target))


def _flipped(data: bytes, mark: bytes) -> bytes:
    at = data.index(mark) + 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


FLIPPED = _flipped(IMAGE.layers[1], b"two")
SHA_1 = sha256(IMAGE.layers[1])
MANY = Image(tuple(layer(f"many-{number}") for number in range(126)))
NO_LAYERS_NAMED = Image(IMAGE.layers, {"rootfs": {"type": "layers", "diff_ids": []}})
DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000
DOUBLED = IMAGE.text[:-1] + b', "os": "windows"}'
MANIFEST_BLOB = f"blobs/sha256/{sha256(ONE.manifest)}"
BLOB_0 = f"blobs/sha256/{sha256(ONE.layers[0])}"
SPOILT_BLOB = ONE.layers[0][:-1] + b"\1"
WRONG_LAYER = f"is damaged: layer 'l1/layer.tar' has the SHA-256 {sha256(FLIPPED)}, its configuration says {SHA_1}"
TWICE = "holds 'manifest.json' twice; which of the two is meant cannot be told"
EVIL = docker_manifest(RepoTags=["proctor-helper:1"])
BOMB = gzip.compress(bytes(64 << 20))
"""64 KiB that unpack to 64 MiB, more than the tests allow."""
LIMIT = 16 << 20
NO_TAR = "is damaged, or is no tar: invalid header"
NEITHER = "has neither a manifest.json nor an index.json"
CUT_HEADER = "is cut off in the middle of a header"
LAYERED = f"{OCI}layer.v1.tar+gzip"


def _oci_of(**changes: Any) -> bytes:
    return oci(Oci(**changes))


def _reference(**changes: Any) -> bytes:
    return oci(ONE, top=index({**ONE.refer(), **changes}))


def _depth(count: int) -> bytes:
    """An image below so many indexes."""
    top, entries = index(ONE.refer()), list[Entry]()
    for _ in range(count - 1):
        entries.append(blob(top))
        top = index(descriptor(f"{OCI}index.v1+json", top))
    return oci(ONE, top=top, more=tuple(entries))


ODD: Mapping[str, Odd] = {
    # No archive at all
    "empty file": Odd(b"", CUT_HEADER),
    "garbage": Odd(b"garbage" * 1000, NO_TAR),
    "a web page": Odd(b"<!DOCTYPE html>404" * 50, NO_TAR),
    "zip": Odd(b"PK\3\4" * 400, NO_TAR),
    "gzip of nothing": Odd(gzip.compress(b""), CUT_HEADER),
    "gzip magic and garbage": Odd(b"\x1f\x8b\x08" + b"\xff" * 500, "is damaged gzip data: …"),
    "zstd magic and garbage": Odd(b"\x28\xb5\x2f\xfd" + b"\xff" * 500, "is damaged zstd data: …"),
    "xz magic and garbage": Odd(b"\xfd7zXZ\0" + b"\xff" * 500, "is damaged xz data: …"),
    "bz2 magic and garbage": Odd(b"BZh9" + b"\xff" * 500, "is damaged bz2 data: …"),
    "another tar": Odd(tar_of(Entry("readme.txt", b"x")), NEITHER),
    "empty tar": Odd(tar_of(), NEITHER),
    "docker export": Odd(
        tar_of(Entry("bin", kind=tarfile.DIRTYPE), Entry("etc", kind=tarfile.DIRTYPE), Entry("etc/passwd", b"root")),
        "is a file system, as docker export writes, not an image",
    ),
    # Cut off and spoilt
    "a header whose sum does not fit": Odd(
        SAVED.replace(b"l1/layer.tar\0", b"l2/layer.tar\0"), "is damaged, or is no tar: bad checksum"
    ),
    "cut in a layer": Odd(SAVED[:2000], "is cut off in the middle of 'l0/layer.tar'"),
    "cut in a header": Odd(SAVED[: SAVED.rindex(b"manifest.json") + 100], CUT_HEADER),
    "cut before its end": Odd(SAVED[: len(SAVED.rstrip(b"\0")) // 512 * 512 + 512], CUT_HEADER),
    "gzip cut off": Odd(gzip.compress(SAVED)[:-9], "is cut off: its gzip data end in the middle"),
    "zstd cut off": Odd(zstd.compress(SAVED)[:-9], "is cut off: its zstd data end in the middle"),
    "xz cut off": Odd(lzma.compress(SAVED)[:-9], "is cut off: its xz data end in the middle"),
    "bz2 cut off": Odd(bz2.compress(SAVED)[:-9], "is cut off: its bz2 data end in the middle"),
    "a wrong checksum of gzip": Odd(
        gzip.compress(SAVED)[:-8] + b"\0\0\0\0" + gzip.compress(SAVED)[-4:], "is damaged gzip data: …"
    ),
    "garbage behind gzip": Odd(gzip.compress(SAVED) + b"garbage", "is damaged gzip data: …"),
    "a flipped byte in a layer": Odd(_layer(Entry("l1/layer.tar", FLIPPED)), WRONG_LAYER),
    "a flipped byte in a packed layer": Odd(_layer(Entry("l1/layer.tar", gzip.compress(FLIPPED))), WRONG_LAYER),
    "a flipped byte in the configuration": Odd(
        tar_of(*replaced(docker_entries(), CONFIG_NAME, Entry(CONFIG_NAME, _flipped(IMAGE.text, b"linux")))),
        f"is damaged: the SHA-256 of '{CONFIG_NAME}' is {sha256(_flipped(IMAGE.text, b'linux'))}",
    ),
    "a flipped byte in a blob": Odd(
        oci(ONE).replace(ONE.layers[0], SPOILT_BLOB), f"is damaged: the SHA-256 of '{BLOB_0}' is {sha256(SPOILT_BLOB)}"
    ),
    "a layer that is cut off": Odd(
        _layer(Entry("l1/layer.tar", gzip.compress(IMAGE.layers[1])[:-5])),
        ", layer 'l1/layer.tar', is cut off: its gzip data end in the middle",
    ),
    "a layer is missing": Odd(_layer(), "is not whole: 'l1/layer.tar' is missing"),
    "the configuration is missing": Odd(
        tar_of(*docker_entries()[1:]), f"is not whole: '{CONFIG_NAME}' is missing"
    ),
    # manifest.json
    "manifest: empty": Odd(_manifest(b""), "is damaged: 'manifest.json' is no JSON, or larger than 4194304 bytes"),
    "manifest: half": Odd(_manifest(b"[{"), "is damaged: 'manifest.json' is not JSON: …"),
    "manifest: an object": Odd(_manifest(b"{}"), "is damaged: 'manifest.json' is not a list of images"),
    "manifest: deep": Odd(_manifest(b"[" * 100_000), "is damaged: 'manifest.json' is nested too deeply"),
    "manifest: large": Odd(
        _manifest(docker_manifest() + b" " * (4 << 20)),
        "is damaged: 'manifest.json' is no JSON, or larger than 4194304 bytes",
    ),
    "manifest: no image": Odd(_manifest(b"[]"), "holds 0 images, not one"),
    "manifest: two images": Odd(
        _manifest(docker_manifest()[:-1] + b"," + docker_manifest()[1:]), "holds 2 images, not one"
    ),
    "manifest: no list": Odd(_manifest(docker_manifest(Layers=7)), "is damaged: 'manifest.json' lists no layers"),
    "manifest: a number for an image": Odd(_manifest(b"[7]"), "is damaged: 'manifest.json' lists no layers"),
    "manifest: no configuration": Odd(
        _manifest(docker_manifest(Config=None)), "is damaged: manifest.json names None for a file"
    ),
    "manifest: a number for a layer": Odd(
        _manifest(docker_manifest(Layers=[7])), "is damaged: manifest.json names 7 for a file"
    ),
    "manifest: a name twice in an object": Odd(
        _manifest(docker_manifest()[:-2] + b', "Config": "evil"}]'),
        'is damaged: \'manifest.json\' is not JSON: "the name \'Config\' stands twice in one object"',
    ),
    "manifest: two of them": Odd(tar_of(*docker_entries(), Entry("manifest.json", EVIL)), TWICE),
    "manifest: two of them by a dot": Odd(tar_of(*docker_entries(), Entry(".//manifest.json", EVIL)), TWICE),
    "manifest: two of them by pax": Odd(
        tar_of(
            *docker_entries(), Entry("other", EVIL, pax={"path": "./manifest.json"}), tar_format=tarfile.PAX_FORMAT
        ),
        TWICE,
    ),
    "manifest: a second one that is a link": Odd(
        tar_of(*docker_entries(), Entry("manifest.json", kind=tarfile.SYMTYPE, link="evil.json")), TWICE
    ),
    "manifest: a link": Odd(
        tar_of(*docker_entries()[:-1], Entry("manifest.json", kind=tarfile.SYMTYPE, link="/etc/passwd")),
        "is damaged: 'manifest.json' is not a plain file",
    ),
    "manifest: a folder": Odd(
        tar_of(*docker_entries()[:-1], Entry("manifest.json", kind=tarfile.DIRTYPE)),
        "is damaged: 'manifest.json' is not a plain file",
    ),
    # Paths and links
    "a layer outside": Odd(
        _manifest(docker_manifest(Layers=["l0/layer.tar", "../../etc/shadow"])),
        "names '../../etc/shadow' in manifest.json, which lies outside of it",
    ),
    "a layer from the root": Odd(
        _manifest(docker_manifest(Layers=["l0/layer.tar", "/etc/shadow"])),
        "names '/etc/shadow' in manifest.json, which lies outside of it",
    ),
    "a configuration outside": Odd(
        _manifest(docker_manifest(Config="x/../../passwd")),
        "names 'x/../../passwd' in manifest.json, which lies outside of it",
    ),
    "a layer that links out": Odd(
        _link("../../etc/shadow"),
        "is damaged: 'l1/layer.tar' is a link to '../../etc/shadow', which is no layer of it",
    ),
    "a layer that links to the root": Odd(
        _link("/etc/shadow"), "is damaged: 'l1/layer.tar' is a link to '/etc/shadow', which is no layer of it"
    ),
    "a layer that links to itself": Odd(
        _link("layer.tar"), "is damaged: 'l1/layer.tar' is a link to 'layer.tar', which is no layer of it"
    ),
    "a layer that is another layer": Odd(
        _link("../l0/layer.tar"),
        f"is damaged: layer 'l0/layer.tar' has the SHA-256 {sha256(IMAGE.layers[0])}, "
        f"its configuration says {SHA_1}",
    ),
    "a layer that is a hard link": Odd(
        _layer(Entry("l1/layer.tar", kind=tarfile.LNKTYPE, link="/etc/shadow")),
        "is damaged: 'l1/layer.tar' is not a plain file",
    ),
    "a layer that is a device": Odd(
        _layer(Entry("l1/layer.tar", kind=tarfile.CHRTYPE)), "is damaged: 'l1/layer.tar' is not a plain file"
    ),
    "a layer that is a pipe": Odd(
        _layer(Entry("l1/layer.tar", kind=tarfile.FIFOTYPE)), "is damaged: 'l1/layer.tar' is not a plain file"
    ),
    "a configuration that is a link": Odd(
        tar_of(*replaced(docker_entries(), CONFIG_NAME, Entry(CONFIG_NAME, kind=tarfile.SYMTYPE, link="l0/layer.tar"))),
        f"is damaged: '{CONFIG_NAME}' is not a plain file",
    ),
    # Headers
    "a sparse terabyte": Odd(
        _header(
            SAVED, "l1/layer.tar", kind=(156, b"S"), magic=(257, b"ustar  \0"),
            parts=(386, b"00000000000\x0000000001000\0"), real=(483, b"\x80" + (1 << 40).to_bytes(11, "big")),
        ),
        "has the sparse member 'l1/layer.tar', which an image never has",
    ),
    "a sparse terabyte by pax": Odd(
        tar_of(
            *replaced(
                docker_entries(), "l1/layer.tar",
                Entry("l1/layer.tar", b"x", pax={"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}),
            ),
            tar_format=tarfile.PAX_FORMAT,
        ),
        "has the sparse member 'l1/layer.tar', which an image never has",
    ),
    "a size of 2^60": Odd(
        _header(SAVED, "l1/layer.tar", size=(124, b"\x80" + (1 << 60).to_bytes(11, "big"))),
        "is cut off in the middle of 'l1/layer.tar'",
    ),
    "a negative size": Odd(
        _header(SAVED, "l1/layer.tar", size=(124, b"\xff" * 12)), "is damaged: 'l1/layer.tar' has a size of -1"
    ),
    "a size that is no number": Odd(
        _header(SAVED, "l1/layer.tar", size=(124, b"not a size!\0")), "is damaged, or is no tar: invalid header"
    ),
    "a size by pax that is no number": Odd(
        tar_of(
            *replaced(docker_entries(), "l1/layer.tar", Entry("l1/layer.tar", b"x", pax={"size": "-1"})),
            tar_format=tarfile.PAX_FORMAT,
        ),
        "has a member of the size '-1'",
    ),
    "a name of a gigabyte": Odd(
        _header(
            tar_of(Entry("n" * 200, b"x")), "././@LongLink", size=(124, b"10000000000\0")
        ),
        "has a header of 1073741824 bytes; 65536 are allowed",
    ),
    "a pax header of a gigabyte": Odd(
        _header(
            tar_of(Entry("ü" * 200, b"x"), tar_format=tarfile.PAX_FORMAT), "././@PaxHeader",
            size=(124, b"10000000000\0"),
        ),
        "has a header of 1073741824 bytes; 1048576 are allowed",
    ),
    "a pax header that lies": Odd(
        tar_of(Entry("ü" * 200, b"x"), tar_format=tarfile.PAX_FORMAT).replace(b"410 path=", b"999 path="),
        "has a damaged pax header",
    ),
    "a pax header for all": Odd(
        tar_of(Entry("other", b"18 path=manifest.json\n", kind=tarfile.XGLTYPE), *docker_entries()),
        "has a damaged pax header",
    ),
    "a pax name for all": Odd(
        tar_of(Entry("other", b"22 path=manifest.json\n", kind=tarfile.XGLTYPE), *docker_entries()),
        "renames or resizes all of its members by a global header",
    ),
    "headers without a member": Odd(
        tar_of(*docker_entries(), Entry("x", b"12 path=abc\n", kind=tarfile.XHDTYPE)),
        "is cut off: a header stands at its end",
    ),
    # The configuration
    "configuration: not JSON": Odd(_raw_config(b"{os: linux}"), "is damaged: '…' is not JSON: …"),
    "configuration: a list": Odd(_raw_config(b"[]"), "is damaged: '…' is not a JSON object"),
    "configuration: a picture": Odd(
        _raw_config(b"\x89PNG"), "is damaged: '…' is no JSON, or larger than 4194304 bytes"
    ),
    "configuration: deep": Odd(_raw_config(DEEP), "is damaged: '…' is nested too deeply"),
    "configuration: a name twice": Odd(
        _raw_config(DOUBLED), "is damaged: '…' is not JSON: \"the name 'os' stands twice in one object\""
    ),
    "configuration: NaN": Odd(
        _raw_config(b'{"os": NaN}'), "is damaged: '…' is not JSON: 'NaN is no number'"
    ),
    "configuration: no layers": Odd(
        tar_of(*docker_entries(NO_LAYERS_NAMED)),
        "is damaged: it has 2 layers, its configuration names 0",
    ),
    "configuration: no digest": Odd(
        _config(rootfs={"type": "layers", "diff_ids": ["md5:0", "md5:1"]}),
        "is damaged: '…' names 'md5:0' for a layer's SHA-256",
    ),
    "126 layers": Odd(tar_of(*docker_entries(MANY)), "has 126 layers; an engine takes 125"),
    # Bombs
    "a bomb": Odd(BOMB, "unpacks to more than the 16 MiB allowed here"),
    "a bomb for a layer": Odd(
        _layer(Entry("l1/layer.tar", BOMB)), ", its layers together, unpacks to more than the 16 MiB allowed here"
    ),
    "a bomb of zstd": Odd(zstd.compress(bytes(64 << 20)), "unpacks to more than the 16 MiB allowed here"),
    "a bomb behind the end": Odd(
        gzip.compress(SAVED) + BOMB, "unpacks to more than the 16 MiB allowed here"
    ),
    # OCI
    "oci: no layout": Odd(
        tar_of(*ONE.blobs, Entry("index.json", index(ONE.refer()))), "is not whole: 'oci-layout' is missing"
    ),
    "oci: another version": Odd(
        oci(ONE).replace(LAYOUT.data, b'{"imageLayoutVersion": "2.0.0"}'),
        "is of the OCI layout version '2.0.0', not '1.0.0'",
    ),
    "oci: no image": Odd(oci(ONE, top=index()), "holds 0 images, not one"),
    "oci: two images": Odd(oci(ONE, OTHER), "holds 2 images, none of them for linux/amd64: 'no platform'"),
    "oci: two images for one platform": Odd(
        oci(ONE, OTHER, top=index(ONE.refer(platform=AMD), OTHER.refer(platform=AMD))),
        "holds 2 images for linux/amd64, not one",
    ),
    "oci: other platforms only": Odd(
        oci(ONE, OTHER, top=index(ONE.refer(platform={"os": "windows", "architecture": "amd64"}),
                                  OTHER.refer(platform=ARM))),
        "holds 2 images, none of them for linux/amd64: 'linux/arm64, windows/amd64'",
    ),
    "oci: an index without a list": Odd(oci(ONE, top=b"{}"), "is damaged: 'index.json' lists no images"),
    "oci: indexes without end": Odd(_depth(4), "is damaged: its indexes are more than 3 deep"),
    "oci: the manifest is missing": Odd(
        tar_of(*ONE.blobs[:-1], Entry("index.json", index(ONE.refer())), LAYOUT),
        f"is not whole: '{MANIFEST_BLOB[:77]}…",
    ),
    "oci: a reference without a digest": Odd(
        _reference(digest="sha512:00"),
        "is damaged: 'index.json' has a reference without media type, SHA-256 or size",
    ),
    "oci: a digest that is a path": Odd(
        _reference(digest="sha256:../../../etc/passwd"),
        "is damaged: 'index.json' has a reference without media type, SHA-256 or size",
    ),
    "oci: a wrong size": Odd(
        _reference(size=7), f"is damaged: '…' has {len(ONE.manifest)} bytes, its reference says 7"
    ),
    "oci: another media type": Odd(
        _reference(mediaType=f"{DOCKER}distribution.manifest.v2+json"),
        f"is damaged: '…' calls itself '{OCI}manifest.v1+json', "
        f"its reference '{DOCKER}distribution.manifest.v2+json'",
    ),
    "oci: no image but a chart": Odd(
        _oci_of(config_type="application/vnd.cncf.helm.config.v1+json"),
        "holds no container image but 'application/vnd.cncf.helm.config.v1+json'",
    ),
    "oci: no manifest but something": Odd(
        _reference(mediaType="application/json"), "holds no container image but 'application/json'"
    ),
    "oci: foreign layers": Odd(
        _oci_of(layer_type=f"{DOCKER}image.rootfs.foreign.diff.tar.gzip"),
        f"has a layer of the type '{DOCKER}image.rootfs.foreign.diff.tar.gzip', which is not read here",
    ),
    "oci: encrypted layers": Odd(
        _oci_of(layer_type=f"{LAYERED}+encrypted"),
        f"has a layer of the type '{LAYERED}+encrypted', which is not read here",
    ),
    "oci: layers packed otherwise": Odd(
        _oci_of(packing="tar+zstd", layer_type=LAYERED), f"is damaged: '…' is zstd, its reference says '{LAYERED}'"
    ),
    "oci: layers not packed": Odd(
        _oci_of(packing="tar", layer_type=LAYERED), f"is damaged: '…' is plain, its reference says '{LAYERED}'"
    ),
}  # fmt: skip
