"""What Docker's archive answers mean: what lies at one path of a container, and the beginning of a file; pure.

A header says what lies there, in Go's own bits. The body is a tar made by the engine, with names an image chose: its
first entry's header is parsed, nothing behind that entry is looked at, and no name in it is used.
"""

import base64
import io
import json
import re
import tarfile

from runner.engine.contract import FileFacts, FileKind
from runner.engine.docker_answers import number, text

PATH_HEADER = "X-Docker-Container-Path-Stat"
HEADROOM = 64 << 10
"""Bytes of the tar that may stand before a file's content; a header with a path of 4096 bytes takes 10 KiB."""

_FOLDER, _LINK = 1 << 31, 1 << 27
_DEVICE, _PIPE, _SOCKET, _IRREGULAR = 1 << 26, 1 << 25, 1 << 24, 1 << 19
_SETUID, _SETGID, _STICKY = 1 << 23, 1 << 22, 1 << 20
# What the kernel answers where a path leads nowhere; Docker gives these the status of its own faults.
_LEADS_NOWHERE = re.compile(
    r"(?:not a directory|no such file or directory|file name too long|too many levels of symbolic links)$"
    r"|too many links in ",
)


def file_facts(header: str) -> FileFacts | None:
    """What a path's header says lies there; None where it says nothing that can be read."""
    try:
        told: object = json.loads(base64.b64decode(header, validate=True))
    except ValueError:
        return None
    bits = number(told, "mode")
    special = (_SETUID, 0o4000), (_SETGID, 0o2000), (_STICKY, 0o1000)
    mode = bits & 0o777 | sum(octal for bit, octal in special if bits & bit)
    if bits & _FOLDER:
        return FileFacts(kind=FileKind.FOLDER, mode=mode)
    if bits & _LINK:
        return FileFacts(kind=FileKind.LINK, mode=mode, link=text(told, "linkTarget"))
    if bits & (_DEVICE | _PIPE | _SOCKET | _IRREGULAR):
        return FileFacts(kind=FileKind.OTHER, mode=mode)
    return FileFacts(kind=FileKind.FILE, mode=mode, size=max(0, number(told, "size")))


def leads_nowhere(message: str) -> bool:
    """Whether an error answer means that nothing lies at the path."""
    return _LEADS_NOWHERE.search(message.strip()) is not None


def first_content(beginning: bytes, max_bytes: int) -> bytes | None:
    """The first bytes of the file a tar begins with, at most ``max_bytes``; None where it begins with no file."""
    try:
        with tarfile.open(fileobj=io.BytesIO(beginning), mode="r:") as tar:
            entry = tar.next()
    except (tarfile.TarError, ValueError, OverflowError, RecursionError):
        return None
    if entry is None or not entry.isreg() or entry.issparse():
        return None
    content = beginning[entry.offset_data : entry.offset_data + min(entry.size, max_bytes)]
    return content if len(content) == min(entry.size, max_bytes) else None
