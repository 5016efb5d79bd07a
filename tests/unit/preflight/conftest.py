"""Images of a few files, looked into without an engine."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from runner.challenge import Challenge
from runner.engine import FileFacts, ImageFacts
from runner.engine.fake_files import FakeTree, file, link
from runner.preflight import Contents, Host, PreflightFinding, examine, preflight

Files = Mapping[str, FileFacts]
GLIBC = "/lib64/ld-linux-x86-64.so.2"


def elf(*, machine: int = 62, loader: str = "", kind: int = 2) -> bytes:
    """A 64-bit ELF header, with a program header for a dynamic loader where one is named."""
    name = loader.encode() + b"\0"
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    rest = struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, bool(loader), 0, 0, 0)
    interp = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(name), len(name), 1)
    return ident + rest + (interp + name if loader else b"")


def debian(**more: FileFacts) -> dict[str, FileFacts]:
    """A small Debian: a shell, env and Python, with links as they are there; ``more`` by path without its slash."""
    files = {
        "/bin": link("usr/bin"),
        "/lib64": link("usr/lib64"),
        "/usr/bin/sh": link("dash"),
        "/usr/bin/dash": file(elf(loader=GLIBC)),
        "/usr/bin/env": file(elf(loader=GLIBC)),
        "/usr/bin/python3": link("python3.11"),
        "/usr/bin/python3.11": file(elf(loader=GLIBC)),
        "/usr/lib64/ld-linux-x86-64.so.2": file(elf()),
    }
    return files | {f"/{path}": facts for path, facts in more.items()}


IMAGE = ImageFacts(id="sha256:1", working_dir="/app", user="app")


class Look:
    """Looks into an image of some files and says what is found of it."""

    def __init__(self, make_challenge: Callable[..., Challenge]) -> None:
        self._make_challenge = make_challenge
        self.asked: list[tuple[str, int]] = []

    def contents(
        self, files: Files, *, challenge: dict[str, Any] | None = None, cuda: bool = False, **image: Any
    ) -> Contents:
        """What is read out of it."""
        tree = FakeTree(files)

        def read(path: str, most: int) -> FileFacts | None:
            self.asked.append((path, most))
            return tree.at(path, max_bytes=most)

        return examine(read, replace(IMAGE, **image), self._make_challenge(**(challenge or {})), cuda=cuda)

    def findings(
        self, files: Files, *, challenge: dict[str, Any] | None = None, host: Host | None = None, **image: Any
    ) -> tuple[PreflightFinding, ...]:
        """Everything that is found of it."""
        contents = self.contents(files, challenge=challenge, cuda=host is not None, **image)
        return preflight(replace(IMAGE, **image), self._make_challenge(**(challenge or {})), contents, host=host)

    def told(self, files: Files, **image: Any) -> list[tuple[str, str, str]]:
        """Severity, sentence and evidence of what is found of it, without the note that every image gets."""
        return [
            (finding.severity.value, finding.sentence, finding.evidence)
            for finding in self.findings(files, **image)
            if "runs as a user of its own, not as" not in finding.sentence
        ]


@pytest.fixture
def look(make_challenge: Callable[..., Challenge]) -> Look:
    return Look(make_challenge)
