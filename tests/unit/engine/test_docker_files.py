"""What the archive answers of Docker and Podman mean, from recorded and from spoilt ones."""

import base64
import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine import FileFacts, FileKind
from runner.engine.docker_files import HEADROOM, file_facts, first_content, leads_nowhere


def header(**told: object) -> str:
    return base64.b64encode(json.dumps(told).encode()).decode()


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        # Recorded: a folder, a link, a file, a device, /tmp with its sticky bit.
        ({"name": "usr", "size": 4096, "mode": 2147484141, "linkTarget": ""},
         FileFacts(kind=FileKind.FOLDER, mode=0o755)),
        ({"name": "bin", "size": 7, "mode": 134218239, "linkTarget": "/usr/bin"},
         FileFacts(kind=FileKind.LINK, mode=0o777, link="/usr/bin")),
        ({"name": "python3.11", "size": 6834488, "mode": 493, "linkTarget": ""},
         FileFacts(kind=FileKind.FILE, mode=0o755, size=6834488)),
        ({"name": "null", "size": 0, "mode": 69206454, "linkTarget": ""}, FileFacts(kind=FileKind.OTHER, mode=0o666)),
        ({"name": "tmp", "size": 4096, "mode": 2148532735}, FileFacts(kind=FileKind.FOLDER, mode=0o1777)),
        ({"mode": 1 << 25 | 0o600}, FileFacts(kind=FileKind.OTHER, mode=0o600)),
        ({"mode": 1 << 24}, FileFacts(kind=FileKind.OTHER, mode=0)),
        ({"mode": 1 << 23 | 0o755, "size": 1}, FileFacts(kind=FileKind.FILE, mode=0o4755, size=1)),
        ({"mode": 1 << 22 | 0o755, "size": -1}, FileFacts(kind=FileKind.FILE, mode=0o2755, size=0)),
        ({}, FileFacts(kind=FileKind.FILE, mode=0)),
    ],
)  # fmt: skip
def test_header(told: dict[str, object], facts: FileFacts) -> None:
    assert file_facts(header(**told)) == facts


@pytest.mark.parametrize("text", ["", "!", "e30", base64.b64encode(b"{").decode(), base64.b64encode(b"\xff").decode()])
def test_header_that_says_nothing(text: str) -> None:
    assert file_facts(text) is None


@pytest.mark.parametrize(
    ("message", "nowhere"),
    [
        ("lstat /var/lib/docker/overlay2/0c/merged/etc/passwd/x: not a directory", True),
        ("lstat /var/lib/docker/overlay2/0c/merged/x: file name too long", True),
        ('evalSymlinksInScope: too many links in "/var/lib/docker/overlay2/0c/merged/loop"', True),
        ("lstat /merged/loop/x: too many levels of symbolic links\n", True),
        ("lstat /merged/x: no such file or directory", True),
        ("No such container: abc", False),
        ("error creating overlay mount: not a directory is there", False),
        ("input/output error", False),
        ("container is marked for removal", False),
    ],
)
def test_error_that_means_that_nothing_is_there(message: str, nowhere: bool) -> None:
    assert leads_nowhere(message) is nowhere


def archive(*entries: tuple[str, bytes, bytes], style: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=style) as tar:
        for name, kind, content in entries:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


FILE = ("run", tarfile.REGTYPE, b"0123456789")
LONG = ("/".join(["long"] * 800), tarfile.REGTYPE, b"0123456789")


@pytest.mark.parametrize(
    ("tar", "most", "content"),
    [
        (archive(FILE), 4, b"0123"),
        (archive(FILE), 10, b"0123456789"),
        (archive(FILE), 99, b"0123456789"),
        (archive(FILE, ("other", tarfile.REGTYPE, b"x")), 99, b"0123456789"),
        (archive(LONG), 4, b"0123"),
        (archive(LONG, style=tarfile.GNU_FORMAT), 4, b"0123"),
        (archive(FILE)[:516], 4, b"0123"),
        (archive(FILE)[:515], 4, None),
        (archive(FILE)[:511], 4, None),
        (archive(("run", tarfile.DIRTYPE, b""), FILE), 4, None),
        (archive(("run", tarfile.SYMTYPE, b"")), 4, None),
        (archive(("run", tarfile.FIFOTYPE, b"")), 4, None),
        (b"", 4, None),
        (b"no tar" * 200, 4, None),
    ],
)
def test_first_bytes_of_the_first_file(tar: bytes, most: int, content: bytes | None) -> None:
    assert first_content(tar, most) == content


def test_headers_of_the_longest_path_fit_the_headroom() -> None:
    path = "/".join(["x" * 200] * 20)
    assert archive((path, tarfile.REGTYPE, b"0123"), style=tarfile.PAX_FORMAT).index(b"0123") < HEADROOM


@given(st.binary(max_size=700), st.integers(0, 520))
def test_any_bytes_are_read_without_an_error(noise: bytes, place: int) -> None:
    whole = archive(LONG)
    for tar in (noise, whole[:place] + noise + whole[place + len(noise) :], archive(FILE)[:place] + noise):
        content = first_content(tar, 8)
        assert content is None or len(content) <= 8
    file_facts(base64.b64encode(noise).decode())
    file_facts(noise.decode("latin-1"))
