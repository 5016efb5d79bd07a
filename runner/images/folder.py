"""Builds a folder with a Dockerfile: a stranger's program, run as root in containers of the engine, within limits.

Through ``docker buildx build`` where the command line has it, because that is what its maker's ``docker build`` is; but
BuildKit takes no limit of memory for a build. So where that limit must hold, and where there is no buildx, the engine's
classic builder is asked, which knows no BuildKit syntax and says so in words that name no cause.
"""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from runner.engine import Engine, EngineRefusal, ImageFacts, ImageMissing, Overdue, RefusalPhase
from runner.errors import UsageError
from runner.images.pinned import RefusedImage, SourceKind
from runner.images.refusal import quoted
from runner.quantities import show_seconds

_LINES_KEPT = 40
_LONGEST_LINE = 500
_LARGEST_DOCKERFILE = 1 << 20
_BUILDKIT = re.compile(
    r"(?P<syntax>^#\s*syntax\s*=.*)"
    r"|(?P<flag>^\s*(?:RUN\s+--(?:mount|network|security)"
    r"|(?:COPY|ADD)\s+(?:--\S+\s+)*--(?:link|parents|exclude|chmod|checksum|keep-git-dir))\b)"
    r"|(?P<heredoc>^\s*(?:RUN|COPY|ADD)\b[^\n]*<<-?[\"']?[A-Za-z_]\w*)"
    r"|(?P<platform>\$\{?(?:TARGET|BUILD)(?:PLATFORM|OS|ARCH|VARIANT)\b)",
    re.IGNORECASE | re.MULTILINE,
)


class BuildNetwork(StrEnum):
    """What a build may reach."""

    DEFAULT = "default"
    NONE = "none"
    HOST = "host"


@dataclass(frozen=True, kw_only=True)
class Build:
    """How a folder may be built.

    Attributes:
        reference: What the image is called on the engine.
        deadline: Seconds it may take.
        memory: Bytes each step may use; swap is off. BuildKit cannot hold a build to it.
        network: What it may reach; the engine's default is a network of its own with a way out.
        arguments: For the Dockerfile's ARG.
        memory_must_hold: Ask only the builder that can hold a build to its memory.
        engine_address: Address of the engine for the command line; empty: its own default.
    """

    reference: str
    deadline: float
    memory: int
    network: BuildNetwork = BuildNetwork.DEFAULT
    arguments: Mapping[str, str] = field(default_factory=dict)
    memory_must_hold: bool = False
    engine_address: str = ""


RISK = (
    "building runs the folders' programs as root in containers of this engine, with network unless --build-network "
    "none, on the host that holds the hidden data; a hole in the engine or the kernel gives them the data"
)
"""What ``--build-untrusted`` risks."""


def build_folder(
    engine: Engine, folder: Path, build: Build, *, progress: Callable[[str], None]
) -> ImageFacts | RefusedImage:
    """Build a folder with a Dockerfile.

    Returns:
        The image; or, where the folder does not build, why, with the end of the output.

    Raises:
        HostFault: The engine failed.
        UsageError: The command line built on another engine.
    """
    lines: collections.deque[str] = collections.deque(maxlen=_LINES_KEPT)

    def log(line: str) -> None:
        lines.append(line[:_LONGEST_LINE])
        progress(line[:_LONGEST_LINE])

    buildx = not build.memory_must_hold and has_buildx()
    try:
        if buildx:
            return _by_buildx(engine, folder, build, log)
        return engine.image(
            engine.build(
                folder, reference=build.reference, arguments=build.arguments, deadline=build.deadline, log=log,
                network=build.network.value, memory=build.memory,
            )
        )  # fmt: skip
    except Overdue:
        sentence = f"the folder did not build within {show_seconds(build.deadline)}"
        return _refused(folder, sentence, "make the build shorter, or raise build_deadline", lines)
    except EngineRefusal as refusal:
        if not buildx and (found := buildkit_syntax(folder)):
            return _refused(
                folder,
                f"the folder does not build: its Dockerfile needs BuildKit ({quoted(found)}), and the engine's classic "
                f"builder was asked, which says: {quoted(refusal.message, most=300)}",
                "build it with docker buildx build, and give the image; or do without that syntax",
                lines,
            )
        sentence = f"the folder does not build: {quoted(refusal.message, most=300)}"
        return _refused(folder, sentence, "mend the Dockerfile; docker build shows the same", lines)


def _refused(folder: Path, sentence: str, remedy: str, lines: collections.deque[str]) -> RefusedImage:
    return RefusedImage(
        source=str(folder), kind=SourceKind.FOLDER, sentence=sentence, remedy=remedy, log="\n".join(lines)
    )


def buildkit_syntax(folder: Path) -> str:
    """The first thing in a folder's Dockerfile that only BuildKit understands; empty where there is none."""
    try:
        with (folder / "Dockerfile").open("rb") as file:
            text = file.read(_LARGEST_DOCKERFILE).decode("utf-8", "replace")
    except OSError:
        return ""
    found = _BUILDKIT.search(text)
    return found[0].strip() if found else ""


def has_buildx() -> bool:
    """Whether Docker's command line is here and has buildx."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        asked = subprocess.run(
            [docker, "buildx", "version"], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _by_buildx(engine: Engine, folder: Path, build: Build, log: Callable[[str], None]) -> ImageFacts:
    log("building with buildx, which cannot hold a build to its memory")
    with tempfile.TemporaryDirectory(prefix="proctor-build-") as scratch:
        answer = Path(scratch) / "id"
        command = [
            "docker", "buildx", "build", "--load", "--progress", "plain", "--network", build.network.value,
            "--iidfile", str(answer), "--tag", build.reference,
        ]  # fmt: skip
        for name, value in build.arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        code = _run([*command, str(folder)], build, log)
        if code != 0:
            raise EngineRefusal(RefusalPhase.BUILD, f"docker buildx build ended with {code}")
        image_id = answer.read_text(encoding="ascii", errors="replace").strip() if answer.is_file() else ""
    try:
        return engine.image(image_id or build.reference)
    except ImageMissing as error:
        raise UsageError(
            "docker buildx built the folder, and the image is not on the engine that proctor uses",
            where=str(folder),
            remedy="point both at one engine: docker context use default, or the setting engine",
        ) from error


def _run(command: list[str], build: Build, log: Callable[[str], None]) -> int:
    """Run the command line to its end or the deadline; it and all its children are ended with it."""
    environment = dict(os.environ) | ({"DOCKER_HOST": build.engine_address} if build.engine_address else {})
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
        start_new_session=True,
    )  # fmt: skip
    late = threading.Event()

    def end() -> None:
        late.set()
        _kill(child)

    timer = threading.Timer(build.deadline, end)
    timer.start()
    assert child.stdout is not None
    try:
        _read_lines(child.stdout, log)
        code = child.wait()
    finally:
        timer.cancel()
        if child.poll() is None:
            _kill(child)
            child.wait()
        child.stdout.close()
    if late.is_set():
        raise Overdue(f"the build did not end within {build.deadline:g} s")
    return code


def _kill(child: subprocess.Popen[bytes]) -> None:
    if os.name != "posix":
        child.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _read_lines(stream: IO[bytes], log: Callable[[str], None]) -> None:
    # Not by readline alone: a line may have no end.
    while line := stream.readline(_LONGEST_LINE):
        if text := line.decode("utf-8", "replace").rstrip():
            log(text)
