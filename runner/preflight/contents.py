"""What was read out of an image, as plain values; and what it would start."""

import posixpath
from dataclasses import dataclass
from enum import StrEnum

from runner.challenge import Challenge
from runner.engine import FileKind, ImageFacts
from runner.engine.paths import plain_path

USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What an engine searches for programs where an image names no PATH."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a path of an image leads to, links followed.

    Attributes:
        path: As it was looked for, absolute.
        trail: The places it leads over, links included, without what is not there.
        end: Where it ends, or would end where nothing is there.
        kind: What lies there; None for nothing.
        open: Nothing is there in the image, but something can be when it runs.
        mode: Permission bits.
        size: Bytes.
        closed: The first folder on the way that others than its owner and group may not enter; empty for none.
        blocked: What is on the way and is not a folder; empty for nothing.
        linked: It leads over a link.
        content: Its first bytes, where they were read.
    """

    path: str
    trail: tuple[str, ...] = ()
    end: str = ""
    kind: FileKind | None = None
    open: bool = False
    mode: int = 0
    size: int = 0
    closed: str = ""
    blocked: str = ""
    linked: bool = False
    content: bytes = b""

    @property
    def place(self) -> str:
        """Where it ends; empty where nothing is there."""
        return self.end if self.kind is not None else ""


class Role(StrEnum):
    """What a program or file is to the container's start, in words for a sentence."""

    ENTRY = "the entry point"
    INTERPRETER = "the interpreter that the script's first line names"
    FROM_ENV = "the program that the script's first line asks env for"
    STARTED = "the program that the entry point is to start"
    IN_SHELL = "the first program of the entry point's shell command"
    SCRIPT = "the script that the entry point is to run"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A file that is executed, or run by the program before it.

    Attributes:
        role: What it is.
        word: As it was written.
        found: What it leads to.
        searched: It was looked for along PATH.
        loader: What its dynamic loader's path leads to; None where it has none.
    """

    role: Role
    word: str
    found: Found
    searched: bool = False
    loader: Found | None = None


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What was read out of an image; what is not here was not to be told.

    Attributes:
        programs: What is executed to start it, each started by the one before.
        shell: ``/bin/sh``, where a script without a first line needs it.
        working_dir: Its WORKDIR, where it names one.
        mounts: Where the challenge's folders are mounted: input, output.
        user_packages: Python packages below the home of whoever built it.
        python_home: What ENV PYTHONHOME leads to.
        cuda_library: Version of a CUDA library in it, such as ``12.4`` or ``12``.
        torch_cuda: Version of CUDA its torch was built for.
        unread: Why nothing could be read, by the engine's words.
    """

    programs: tuple[Program, ...] = ()
    shell: Found | None = None
    working_dir: Found | None = None
    mounts: tuple[Found, ...] = ()
    user_packages: Found | None = None
    python_home: Found | None = None
    cuda_library: str = ""
    torch_cuda: str = ""
    unread: str = ""


@dataclass(frozen=True, kw_only=True)
class StartWords:
    """What a container of the image is started with.

    Attributes:
        words: The whole command line.
        own: How many of them are the image's.
    """

    words: tuple[str, ...]
    own: int


def start_words(image: ImageFacts, challenge: Challenge) -> StartWords:
    """The command line: the challenge's command or arguments, where it has any, take the place of the image's own."""
    arguments, command = challenge.invocation.args, challenge.invocation.command
    if command:
        return StartWords(words=(*command, *arguments), own=0)
    if arguments:
        return StartWords(words=(*image.entrypoint, *arguments), own=len(image.entrypoint))
    words = (*image.entrypoint, *image.command)
    return StartWords(words=words, own=len(words))


def environment_of(image: ImageFacts) -> dict[str, str]:
    """The image's ENV by name."""
    return {name: value for name, _, value in (line.partition("=") for line in image.environment)}


def absolute(path: str, *, base: str = "/") -> str:
    """A path made absolute; dots stay, since what ``..`` means depends on links."""
    return path if path.startswith("/") else posixpath.join(base or "/", path)


def inside(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a path is one of some folders or lies below one."""
    path = plain_path(path)
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
