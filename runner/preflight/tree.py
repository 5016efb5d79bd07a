"""Finds paths in an image's file system, one look at a time; what a link leads to is worked out here.

Every look is a request of about 5 ms, so each place is looked at once, and a hostile image (a PATH of ten thousand
folders, links in a ring) can cost no more than ``_LOOKS`` of them.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from runner.engine import FileFacts, FileKind
from runner.preflight.contents import Found, inside


class _Ending(TypedDict, total=False):
    end: str
    kind: FileKind
    mode: int
    size: int
    open: bool
    blocked: str


Read = Callable[[str, int], FileFacts | None]
"""Says what lies at an absolute path, with at most so many bytes of a file; None where nothing does."""

_HOPS = 40  # as many links as Linux follows
_LOOKS = 160
_LONGEST = 4096
# Filled only when the container runs, or by the engine.
_NOT_THE_IMAGES = ("/proc", "/sys", "/dev")


class Undecided(Exception):
    """It cannot be told from the image."""


def _steps(path: str) -> list[str]:
    """The parts of a path, the last first; empty ones and single dots lead nowhere."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


@dataclass
class _Walk:
    """Where one is on the way along a path; ``place`` is empty at the root, ``left`` has the next step at its end."""

    path: str
    left: list[str]
    place: str = ""
    closed: str = ""
    hops: int = 0
    trail: list[str] = field(default_factory=list)

    def follow(self, link: str) -> int:
        """Go on along a link; how many that makes."""
        if not link or "\ufffd" in link:
            raise Undecided
        self.hops += 1
        self.place = "" if link.startswith("/") else self.place
        self.left += _steps(link)
        return self.hops

    def found(self, **more: Unpack[_Ending]) -> Found:
        """What was found, at its end."""
        return Found(path=self.path, trail=tuple(self.trail), closed=self.closed, linked=self.hops > 0, **more)


class Tree:
    """An image's file system.

    Args:
        read: Reads it.
        open_places: Folders whose content is not the image's when it runs; what is missing there is not missing.
    """

    def __init__(self, read: Read, *, open_places: tuple[str, ...] = ()) -> None:
        self._read = read
        self._open = (*_NOT_THE_IMAGES, *open_places)
        self._seen: dict[str, FileFacts | None] = {}
        self._left = _LOOKS

    def find(self, path: str) -> Found:
        """Follow an absolute path to its end, as Linux would.

        Raises:
            Undecided: Too many looks, or a name that is not text.
        """
        if "\ufffd" in path or "\0" in path or len(path) > _LONGEST:
            raise Undecided
        root = self._folder("/")
        walk, facts = _Walk(path=path, left=_steps(path)), root
        while walk.left:
            walk.closed = walk.closed or ("" if facts.mode & 0o001 else walk.place or "/")
            step = walk.left.pop()
            if step == "..":
                walk.place = posixpath.dirname(walk.place).rstrip("/")
                facts = self._folder(walk.place or "/")
                continue
            here = f"{walk.place}/{step}"
            below = self._at(here)
            if below is None:
                end = "/".join([here, *reversed(walk.left)])
                return walk.found(end=end, open=inside(end, self._open))
            walk.trail.append(here)
            if below.kind is not FileKind.LINK:
                walk.place, facts = here, below
                if walk.left and facts.kind is not FileKind.FOLDER:
                    return walk.found(end=here, blocked=here)
                continue
            if walk.follow(below.link) > _HOPS:
                return walk.found(end=here)
            facts = facts if walk.place else root
        return walk.found(end=walk.place or "/", kind=facts.kind, mode=facts.mode, size=facts.size)

    def content(self, found: Found, most: int) -> bytes:
        """The first bytes of a file that was found."""
        facts = self._look(found.place, most) if found.kind is FileKind.FILE and found.size else None
        return facts.content if facts is not None else b""

    def _folder(self, place: str) -> FileFacts:
        """A folder that must be there."""
        if (facts := self._at(place)) is None:
            raise Undecided
        return facts

    def _at(self, place: str) -> FileFacts | None:
        if place not in self._seen:
            self._seen[place] = self._look(place, 0)
        return self._seen[place]

    def _look(self, place: str, most: int) -> FileFacts | None:
        if not self._left:
            raise Undecided
        self._left -= 1
        return self._read(place, most)
