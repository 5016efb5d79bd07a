"""Looks into an image without running it: a container is made of it, never started, a few files read, and removed.

What to read follows what is started: the entry point, found as the engine would find it; the interpreter its first line
names; the loader its ELF header names; the script it is given. Whatever cannot be followed with certainty ends the
chain there, and nothing is said of the rest.
"""

import posixpath
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from runner.challenge import Challenge
from runner.engine import ContainerSpec, Engine, EngineRefusal, FileKind, ImageFacts, ImageMissing, Tmpfs
from runner.engine.paths import plain_path
from runner.ownership import NAME_PREFIX
from runner.policy import policy_named
from runner.preflight import packages
from runner.preflight.contents import (
    USUAL_PATH,
    Contents,
    Found,
    Program,
    Role,
    absolute,
    environment_of,
    inside,
    start_words,
)
from runner.preflight.executable import env_program, is_plain_text, read_elf, read_shebang
from runner.preflight.tree import Read, Tree, Undecided

T = TypeVar("T")

_HEAD = 16 << 10
_MOST_FOLDERS = 256  # of PATH
_LONGEST_COMMAND = 4096
_MOST_SCRIPTS = 4  # interpreters of interpreters that Linux follows
_SYSTEM = ("/", "/proc", "/sys", "/dev")

_SHELLS = ("sh", "bash", "dash", "ash")
_STARTERS = ("tini", "tini-static", "dumb-init", "catatonit")
_STARTER_FLAG = re.compile(r"--|-[gsvwc]+")
_PYTHON_FLAG = re.compile(r"-[bBdEIOPqsSuv]+")
_SHELL_FLAG = re.compile(r"-[eux]+")
_SHELL_COMMAND = re.compile(r"-[eux]*c")
# What a shell runs itself; no program of that name has to be there.
_SHELL_WORDS = frozenset(
    "alias bg break builtin case cd command continue declare dirs disown echo enable eval exec exit export false fc fg "  # noqa: SIM905
    "for function getopts hash help history if jobs kill let local logout mapfile popd printf pushd pwd read "
    "readarray readonly return select set shift shopt source suspend test time times trap true type typeset ulimit "
    "umask unalias unset until wait while .".split()
)
# One command of plain words; all else is the shell's business.
_SIMPLE_COMMAND = re.compile(r"\s*(?:exec\s+)?([\w./+-]+(?:[ \t]+[\w./+:,@%-]+)*)((?:[ \t]+\"?\$[@*0-9]\"?)*)\s*")


def look(
    engine: Engine, image: ImageFacts, challenge: Challenge, *, labels: Mapping[str, str], cuda: bool = False
) -> Contents:
    """Read out of an image what tells whether it can start.

    Args:
        engine: Holds it.
        image: What it says of itself.
        challenge: How it will be started.
        labels: Of the container that is made of it, so that it is known to be ours.
        cuda: Also for which CUDA it was made, as far as its ENV does not say; there is a driver to compare it with.

    Raises:
        EngineUnreachable: No answer from the engine.
        ImageMissing: The image is gone.
    """
    if image.os != "linux" or any(plain_path(volume) == "/" or inside(volume, _SYSTEM[1:]) for volume in image.volumes):
        return Contents()  # refused for that, and a container of it may not be possible
    try:
        with _opened(engine, image, labels) as read:
            return examine(read, image, challenge, cuda=cuda)
    except ImageMissing:
        raise
    except EngineRefusal as refusal:
        return Contents(unread=refusal.message)


@contextmanager
def _opened(engine: Engine, image: ImageFacts, labels: Mapping[str, str]) -> Iterator[Read]:
    """A reader of the image's files, by a container that could do nothing if it were started."""
    spec = ContainerSpec(
        image_id=image.id,
        name=NAME_PREFIX + secrets.token_hex(8),
        labels=labels,
        entrypoint=("/",),
        command=(),
        working_dir="/",
        # Else the engine copies what the image holds there into a volume, whatever its size.
        tmpfs=tuple(
            Tmpfs(target=path, size=1 << 20, inodes=16, mode=0o700, executable=False)
            for path in sorted({plain_path(volume) for volume in image.volumes})
        ),
    )
    try:
        container = engine.create(spec)
        yield lambda path, most: engine.read_file(container, path, max_bytes=most)
    finally:
        engine.remove(spec.name)


def examine(read: Read, image: ImageFacts, challenge: Challenge, *, cuda: bool = False) -> Contents:
    """Read what matters, by a reader of the image's files."""
    return _Examination(read, image, challenge).contents(cuda=cuda)


class _Examination:
    def __init__(self, read: Read, image: ImageFacts, challenge: Challenge) -> None:
        invocation = challenge.invocation
        self._image = image
        self._mounts = (plain_path(invocation.input_mount), plain_path(invocation.output_mount))
        self._tree = Tree(read, open_places=self._mounts)
        self._environment = environment_of(image)
        self._start = start_words(image, challenge)
        self._foreign = not policy_named(challenge.policy).image_user
        self._gpus = challenge.limits.gpus
        self._base = plain_path(image.working_dir)
        self._programs: list[Program] = []

    def contents(self, *, cuda: bool) -> Contents:
        working_dir, tree = self._image.working_dir, self._tree
        self._attempt(self._follow_start)
        python = packages.python_of(self._programs)
        folders = packages.package_folders(python) if python and cuda else ()
        home = self._environment.get("PYTHONHOME", "") if python else ""
        return Contents(
            programs=tuple(self._programs),
            shell=self._attempt(self._finder("/bin/sh")) if self._needs_shell() else None,
            working_dir=self._attempt(self._finder(plain_path(working_dir))) if working_dir else None,
            mounts=tuple(found for path in self._mounts if (found := self._attempt(self._finder(path))) is not None),
            user_packages=self._attempt(lambda: packages.user_packages(tree, python, self._environment)),
            python_home=self._attempt(self._finder(absolute(home, base=self._base))) if home else None,
            cuda_library=(self._attempt(lambda: packages.cuda_library(tree, folders)) or "") if cuda else "",
            torch_cuda=self._attempt(lambda: packages.torch_cuda(tree, folders)) or "",
        )

    def _attempt(self, action: Callable[[], T]) -> T | None:
        try:
            return action()
        except Undecided:
            return None

    def _finder(self, path: str) -> Callable[[], Found]:
        return lambda: self._tree.find(path)

    # What is started

    def _follow_start(self) -> None:
        words = self._start.words
        if words and not ("{" in words[0] and self._start.own == 0):
            self._follow(Role.ENTRY, words[: max(1, self._start.own)])

    def _follow(self, role: Role, words: tuple[str, ...]) -> None:
        """Follow a command: its program, whatever that needs, and what it is to start or run in its turn."""
        program = self._execute(role, words[0])
        if program.found.kind is not FileKind.FILE or read_shebang(program.found.content):
            return
        name, arguments = posixpath.basename(words[0]), words[1:]
        if name in _STARTERS:
            rest = _after(arguments, _STARTER_FLAG)
            if rest and not rest[0].startswith("-"):
                self._follow(Role.STARTED, rest)
        elif name == "env":
            if arguments and not arguments[0].startswith("-") and "=" not in arguments[0]:
                self._follow(Role.STARTED, arguments)
        elif packages.is_python(name):
            self._run_script(_after(arguments, _PYTHON_FLAG), along_path=False)
        elif name in _SHELLS:
            self._run_shell(arguments)

    def _run_shell(self, arguments: tuple[str, ...]) -> None:
        if len(arguments) > 1 and _SHELL_COMMAND.fullmatch(arguments[0]):
            command = _SIMPLE_COMMAND.fullmatch(arguments[1][:_LONGEST_COMMAND])
            words = tuple(command[1].split()) if command else ()
            if words and words[0] not in _SHELL_WORDS:
                self._follow(Role.IN_SHELL, words)
            return
        self._run_script(_after(arguments, _SHELL_FLAG), along_path=True)

    def _run_script(self, arguments: tuple[str, ...], *, along_path: bool) -> None:
        """The file an interpreter is told to run; a shell looks for it along PATH as well."""
        if not arguments or arguments[0].startswith("-"):
            return
        word = arguments[0]
        found = self._program(absolute(word, base=self._base))
        if found.kind is None and along_path and "/" not in word:
            found = next((other for other in self._along_path(word) if other.kind is not None), found)
        self._programs.append(Program(role=Role.SCRIPT, word=word, found=found))

    def _execute(self, role: Role, word: str, *, depth: int = 0) -> Program:
        """A program and what it needs in order to be executed."""
        if self._gpus and posixpath.basename(word).startswith("nvidia-"):
            raise Undecided  # put there together with the device
        searched = "/" not in word
        found = self._search(word) if searched else self._program(absolute(word, base=self._base))
        if self._executable(found):
            found = replace(found, content=self._tree.content(found, _HEAD))
        elf = read_elf(found.content)
        loader = self._attempt(self._finder(elf.loader)) if elf and elf.loader else None
        program = Program(role=role, word=word, found=found, searched=searched, loader=loader)
        self._programs.append(program)
        if shebang := read_shebang(found.content):
            self._interpret(shebang.interpreter, shebang.argument, depth=depth + 1)
        return program

    def _interpret(self, interpreter: str, argument: str, *, depth: int) -> None:
        if depth > _MOST_SCRIPTS:
            raise Undecided
        self._execute(Role.INTERPRETER, interpreter, depth=depth)
        if posixpath.basename(interpreter) == "env" and (asked := env_program(argument)):
            self._execute(Role.FROM_ENV, asked, depth=depth)

    def _search(self, name: str) -> Found:
        """Look for a program along PATH as ``execvp`` does: what cannot be executed is passed over, but remembered."""
        first = None
        for found in self._along_path(name):
            if self._executable(found):
                return found
            first = first or (found if found.kind is not None else None)
        return first or Found(path=name)

    def _along_path(self, name: str) -> Iterator[Found]:
        folders = self._environment.get("PATH", USUAL_PATH).split(":")
        if len(folders) > _MOST_FOLDERS:
            raise Undecided
        for folder in folders:
            yield self._program(posixpath.join(absolute(folder, base=self._base), name))

    def _program(self, path: str) -> Found:
        found = self._tree.find(path)
        if found.open:
            raise Undecided
        return found

    def _executable(self, found: Found) -> bool:
        if found.kind is not FileKind.FILE:
            return False
        return bool(found.mode & 0o001) and not found.closed if self._foreign else bool(found.mode & 0o111)

    def _needs_shell(self) -> bool:
        """Whether a program is text without a first line: the container's init lets ``/bin/sh`` run it."""
        return any(
            program.role is not Role.SCRIPT
            and is_plain_text(program.found.content)
            and not program.found.content.startswith(b"#!")
            for program in self._programs
        )


def _after(arguments: tuple[str, ...], flag: re.Pattern[str]) -> tuple[str, ...]:
    """The arguments behind leading ones that take no value."""
    count = next((number for number, word in enumerate(arguments) if not flag.fullmatch(word)), len(arguments))
    return arguments[count:]
