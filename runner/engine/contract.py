"""The boundary to a container engine: values going in, facts coming out.

An engine decides nothing. It never retries, never waits longer than one short request (the methods that say
otherwise take a deadline of their own), and turns every answer of the real thing into one of three errors:

* ``EngineUnreachable``: no answer, or the connection broke; the caller does not know whether the request was done.
* ``EngineRefusal``: the engine answered no; ``phase`` and ``message`` are its own.
* ``ImageMissing``: the image named is not on the engine.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from runner.errors import HostFault, RunnerError


class EngineUnreachable(HostFault):
    """No answer from the engine, or the connection broke in the middle of one."""


class Overdue(EngineUnreachable):
    """The engine did not finish within the time it was given."""


class RefusalPhase(StrEnum):
    """What the engine was asked to do when it said no."""

    CREATE = "create"
    START = "start"
    KILL = "kill"
    PULL = "pull"
    LOAD = "load"
    BUILD = "build"
    ATTACH = "attach"
    OTHER = "other"


class EngineRefusal(RunnerError):
    """The engine answered no.

    Args:
        phase: What it was asked to do.
        message: The engine's own text; may quote the image, so it is untrusted.
        status: The HTTP status of the answer, 0 where there was none.
    """

    exit_code = 3

    def __init__(self, phase: RefusalPhase, message: str, *, status: int = 0) -> None:
        super().__init__(f"the engine refused to {phase.value}: {message}")
        self.phase = phase
        self.message = message
        self.status = status


class ImageMissing(EngineRefusal):
    """The image named is not on the engine, or not in the registry."""


class ImageTooLarge(EngineRefusal):
    """A pull was given up: the layers to be fetched come to ``size`` bytes so far, packed, more than the limit."""

    def __init__(self, size: int) -> None:
        super().__init__(RefusalPhase.PULL, f"its layers come to more than the limit: {size} bytes so far, packed")
        self.size = size


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """What an engine says of itself; every field is as reported, nothing is guessed.

    Attributes:
        name: ``Docker Engine`` or ``Podman``; what ``version`` answers.
        version: As reported, for example ``20.10.24``.
        identity: The engine's own id; stays over restarts.
        cgroup_version: 1 or 2.
        security_options: As reported, for example ``name=seccomp,profile=default``.
        runtimes: Names of the OCI runtimes it offers.
        warnings: What it warns of, for example ``WARNING: No swap limit support``.
        data_root: Its data folder on *its* host.
        cpus: Processors it sees.
        memory: Bytes it sees.
        rootless: True where the daemon does not run as root.
        os_type: ``linux`` or ``windows``.
        architecture: As reported, for example ``x86_64``.
        api_version: Of its API: ``1.44``.
        cdi_folders: Where it looks for CDI device lists; empty where it does not.
        devices: Those it found in them, where it tells: ``nvidia.com/gpu=all``.
    """

    name: str
    version: str
    identity: str
    cgroup_version: int
    cgroup_driver: str
    security_options: tuple[str, ...]
    runtimes: tuple[str, ...]
    warnings: tuple[str, ...]
    data_root: str
    cpus: int
    memory: int
    rootless: bool
    os_type: str
    architecture: str
    operating_system: str
    kernel: str
    api_version: str = ""
    cdi_folders: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """An image as the engine holds it; everything but ``id`` and ``size`` was chosen by its author."""

    id: str
    repo_digests: tuple[str, ...] = ()
    repo_tags: tuple[str, ...] = ()
    os: str = "linux"
    architecture: str = "amd64"
    size: int = 0
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    user: str = ""
    working_dir: str = ""
    volumes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    healthcheck: bool = False


@dataclass(frozen=True, kw_only=True)
class Bind:
    """A folder of the host shown in a container."""

    source: Path
    target: str
    read_only: bool


@dataclass(frozen=True, kw_only=True)
class VolumeMount:
    """A named volume shown in a container."""

    volume: str
    target: str
    read_only: bool


@dataclass(frozen=True, kw_only=True)
class Tmpfs:
    """A sized file system in memory; ``size`` in bytes, ``inodes`` in files, ``mode`` octal, ``executable`` or not."""

    target: str
    size: int
    inodes: int
    mode: int
    executable: bool


@dataclass(frozen=True, kw_only=True)
class LogLimit:
    """How much log the engine keeps: ``files`` files of ``size`` bytes; the end survives."""

    size: int
    files: int


@dataclass(frozen=True, kw_only=True)
class GpuRequest:
    """The GPUs a container is given, by UUID; never by count."""

    device_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """Everything an engine is told about a container; sizes in bytes.

    ``command`` and ``entrypoint`` of None leave the image's own. ``cpuset`` such as ``0-3`` wins over ``cpus``
    (a quota, in processors) where both are given. ``stdin``: it has an open standard input, for one ``attach``.
    """

    image_id: str
    name: str
    labels: Mapping[str, str]
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "65534:65534"
    working_dir: str | None = None
    hostname: str = "worker"
    network: str = "none"
    read_only: bool = True
    binds: tuple[Bind, ...] = ()
    volumes: tuple[VolumeMount, ...] = ()
    tmpfs: tuple[Tmpfs, ...] = ()
    cap_drop: tuple[str, ...] = ("ALL",)
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ("no-new-privileges:true",)
    memory: int | None = None
    shm: int | None = None
    cpus: float | None = None
    cpuset: str | None = None
    pids: int | None = None
    open_files: int | None = None
    file_size: int | None = None
    log: LogLimit = LogLimit(size=1 << 20, files=3)
    gpus: GpuRequest | None = None
    cdi_devices: tuple[str, ...] = ()
    runtime: str | None = None
    init: bool = True
    stdin: bool = False


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How a container ended, by the engine's account.

    Attributes:
        code: Exit code; 128 + n for signal n.
        oom_killed: The engine's flag; true also where only a child was killed.
        seconds: FinishedAt − StartedAt.
        error: The engine's own error text, empty where there is none.
    """

    code: int
    oom_killed: bool
    seconds: float
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ContainerFacts:
    """A container as the engine sees it now.

    Attributes:
        state: ``created``, ``running``, ``paused``, ``restarting``, ``removing``, ``exited`` or ``dead``.
        pid: Process id on the engine's host, 0 where none runs.
        exit: Set once the container has ended.
        labels: The container's labels, the image's merged in.
        limits: What the engine says it enforces, by our spec's field names; absent where it reports nothing.
    """

    id: str
    name: str
    state: str
    pid: int
    exit: Exit | None
    labels: Mapping[str, str]
    limits: Mapping[str, int | float | str | bool] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """A volume in memory with a size; vanishes when no container holds it. ``uid`` owns its root, of ``mode``."""

    name: str
    labels: Mapping[str, str]
    size: int
    inodes: int
    uid: int
    gid: int
    mode: int = 0o700


@dataclass(frozen=True, kw_only=True)
class VolumeFacts:
    """A volume as the engine lists it."""

    name: str
    labels: Mapping[str, str]


class FileKind(StrEnum):
    """What lies at a path."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "something else"


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What lies at a path of a container; a link is told, not followed.

    Attributes:
        kind: What it is.
        mode: Permission bits, at most 0o7777.
        size: Bytes of a file.
        link: Where a link leads, as the engine says: absolute and followed to its end, or as it is written.
        content: The first bytes of a file, as many as were asked for.
    """

    kind: FileKind
    mode: int
    size: int = 0
    link: str = ""
    content: bytes = b""


class Output(StrEnum):
    """Which of its streams a container wrote to."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What a container wrote, as it came: cut anywhere, at most some 64 KiB."""

    output: Output
    content: bytes


class Attached(Protocol):
    """A container's standard streams, joined to us since before it was started; for one reader and one writer.

    Somebody must read at all times: an engine whose reader stalls stands still for everybody (moby #41827).
    """

    def read(self) -> Piece | None:
        """Wait for the next piece of output, however long; None once there is no more, or the connection is gone."""

    def write(self, data: bytes, *, seconds: float) -> int:
        """Pass on what the container takes of ``data`` within ``seconds``; how many bytes, fewer where it ended."""

    def end_input(self) -> None:
        """Close the container's standard input, where the connection can; whoever must know is told otherwise too."""

    def close(self) -> None:
        """Break the connection, whoever waits for it; before the container is killed."""


class Engine(Protocol):
    """What we ask of a container engine. Every method may raise ``EngineUnreachable``."""

    def ping(self) -> None:
        """Return when the engine answers."""

    def facts(self) -> EngineFacts:
        """Say what this engine is."""

    def image(self, reference: str) -> ImageFacts:
        """Describe an image the engine holds, by ID, digest or name; ``ImageMissing`` where it does not."""

    def image_ids(self) -> tuple[str, ...]:
        """List the IDs of all images the engine holds, named or not."""

    def pull(
        self, reference: str, *, deadline: float, progress: Callable[[str], None], limit: int | None = None
    ) -> ImageFacts:
        """Fetch an image from its registry, at most ``deadline`` seconds; the answer is what was fetched, by ID.

        With a ``limit``, it is given up by ``ImageTooLarge`` as soon as the sizes of the layers to be fetched, packed
        as they travel, are known to come to more bytes.
        """

    def registry_digest(self, reference: str) -> str:
        """Ask the registry for the ``sha256:…`` a reference means there now, without fetching it."""

    def load(self, archive: Iterable[bytes], *, deadline: float) -> tuple[str, ...]:
        """Load a ``docker save`` archive, at most ``deadline`` seconds; the IDs of the images it held."""

    def import_root(self, tar: Iterable[bytes], *, reference: str, changes: tuple[str, ...]) -> str:
        """Make an image named ``reference`` of a root file system in a tar; its ID."""

    def build(
        self,
        folder: Path,
        *,
        reference: str,
        arguments: Mapping[str, str],
        deadline: float,
        log: Callable[[str], None],
        network: str = "default",
        memory: int | None = None,
    ) -> str:
        """Build a Dockerfile folder with the classic builder and name the result ``reference``; its ID.

        Each of its steps runs on ``network`` and within ``memory`` bytes; swap is off.
        """

    def remove_image(self, reference: str) -> None:
        """Forget an image; silent where it is gone or in use."""

    def create(self, spec: ContainerSpec) -> str:
        """Create a container; its ID. A warning of the engine about a limit raises ``EngineRefusal``."""

    def attach(self, container: str) -> Attached:
        """Join the standard streams of a container that was created with ``stdin``, before it is started.

        Closing its input, or losing the connection, ends what the container reads.
        """

    def start(self, container: str) -> None:
        """Start a created container."""

    def inspect(self, container: str) -> ContainerFacts | None:
        """Say how a container is; None where there is none."""

    def written_bytes(self, container: str) -> int:
        """Bytes a container has written to its own tree, volumes and mounts left out; 0 where there is none."""

    def await_exit(self, container: str, *, seconds: float) -> None:
        """Return when a container has ended, or about ``seconds`` later; may return early, and proves nothing.

        Raises nothing: whoever waits looks afterwards, and whatever was wrong shows then.
        """

    def kill(self, container: str) -> None:
        """Send SIGKILL; silent where the container has ended or is gone."""

    def logs(self, container: str, *, lines: int, max_bytes: int) -> bytes:
        """Read the last ``lines`` lines of stdout and stderr together, at most ``max_bytes`` bytes, after it ended."""

    def remove(self, container: str) -> None:
        """Remove a container and its anonymous volumes, killing it first; silent where it is gone."""

    def containers(self, label: str) -> tuple[ContainerFacts, ...]:
        """List all containers, running or not, that carry a label key."""

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a sized volume in memory."""

    def remove_volume(self, name: str) -> None:
        """Remove a volume; silent where it is gone."""

    def volumes(self, label: str) -> tuple[VolumeFacts, ...]:
        """List the volumes that carry a label key."""

    def read_file(self, container: str, path: str, *, max_bytes: int) -> FileFacts | None:
        """Say what lies at a path of a container, started or not; None where nothing does.

        Of a file at most its first ``max_bytes`` bytes are read, and nothing of it where that is 0.
        """

    def read_tree(self, container: str, path: str) -> Iterator[bytes]:
        """Stream a folder of a running container as a tar."""

    def export_root(self, container: str) -> Iterator[bytes]:
        """Stream the whole root file system of a container as a tar, whether it was started or not."""

    def close(self) -> None:
        """Let go of the connection."""
