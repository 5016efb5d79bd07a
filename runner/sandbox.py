"""The policy: what a container may see and use, and nothing else. Pure.

Whatever the image says of itself (USER, VOLUME, HEALTHCHECK, ENV, labels) can make this stricter or change nothing.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.budget import Budget
from runner.engine import Bind, ContainerSpec, GpuRequest, ImageFacts, LogLimit, Tmpfs, VolumeMount
from runner.job import Job

_COVER_BYTES = 16 << 20
_COVER_INODES = 4096
_TMP_INODES = 65536
_LOG_FILES = 3

_HOME = {"HOME": "/tmp", "USER": "participant", "LOGNAME": "participant", "PYTHONUNBUFFERED": "1"}  # noqa: S108  the container's own /tmp
_CACHES = {
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "MPLCONFIGDIR": "/tmp/.cache/matplotlib",  # noqa: S108
    "NUMBA_CACHE_DIR": "/tmp/.cache/numba",  # noqa: S108
    "TRITON_CACHE_DIR": "/tmp/.cache/triton",  # noqa: S108
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/.cache/inductor",  # noqa: S108
}
"""Where libraries write at run time; an image's own setting wins, since it may point at files it carries."""

_LOADER = ("LD_AUDIT", "LD_PRELOAD")


@dataclass(frozen=True, kw_only=True)
class Seat:
    """What one run is given on this host: who it runs as, what it sees, where it writes, which device it holds.

    Attributes:
        name: Container name, random.
        labels: Ours; they win over the image's.
        uid: User id, this job's own.
        gid: Group id.
        view: Folder of the host with the input, mounted read-only.
        input_name: Name of the case's input in it; neutral.
        output: Folder of the host, or volume, that is written to.
        gpu: UUID of the device, None for none.
        cpuset: Processors such as ``0-1``; None: a quota.
        seccomp: A profile in place of the engine's own; None: the engine's.
    """

    name: str
    labels: dict[str, str]
    uid: int
    gid: int
    view: Path
    input_name: str
    output: Path | str
    gpu: str | None = None
    cpuset: str | None = None
    seccomp: str | None = None


def expand(arguments: tuple[str, ...], *, job: Job, name: str) -> tuple[str, ...]:
    """Fill the placeholders of the challenge's arguments with paths inside the container."""
    values = {
        "{input}": f"{job.input_mount}/{name}",
        "{output}": f"{job.output_mount}/{name}",
        "{task}": job.task,
    }
    filled = []
    for argument in arguments:
        text = argument
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        filled.append(text)
    return tuple(filled)


def _environment(job: Job, image: ImageFacts, gpu: str | None) -> dict[str, str]:
    own = {line.partition("=")[0] for line in image.environment}
    values = {key: value for key, value in _CACHES.items() if key not in own}
    values |= _HOME
    values["PROCTOR_TASK"] = job.task
    values["NVIDIA_VISIBLE_DEVICES"] = gpu or "void"
    if gpu:
        values["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
        # The toolkit's hooks run on the host with the container's environment (CVE-2025-23266).
        values |= {key: "" for key in own if key in _LOADER}
    return values


def _cover(image: ImageFacts, job: Job) -> tuple[Tmpfs, ...]:
    """A small tmpfs over each VOLUME: it would otherwise be a hole to the host's disk without a limit."""
    ours = {_clean(job.input_mount), _clean(job.output_mount), "/tmp"}  # noqa: S108
    return tuple(
        Tmpfs(target=path, size=_COVER_BYTES, inodes=_COVER_INODES, mode=0o1777, executable=False)
        for path in sorted({_clean(volume) for volume in image.volumes} - ours)
    )


def _clean(path: str) -> str:
    """A path as the engine will understand it: ``/data/outputs/`` would otherwise be a second place, over ours."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _tmp(budget: Budget) -> Tmpfs:
    return Tmpfs(target="/tmp", size=budget.tmp, inodes=_TMP_INODES, mode=0o1777, executable=True)  # noqa: S108


def container_spec(*, job: Job, image: ImageFacts, seat: Seat) -> ContainerSpec:
    """The one place where a participant's container is described.

    Args:
        job: What is run.
        image: The pinned image's facts; untrusted.
        seat: What this host gives it.
    """
    budget = job.budget
    binds = [Bind(source=seat.view, target=job.input_mount, read_only=True)]
    volumes: list[VolumeMount] = []
    if isinstance(seat.output, Path):
        binds.append(Bind(source=seat.output, target=job.output_mount, read_only=False))
    else:
        volumes.append(VolumeMount(volume=seat.output, target=job.output_mount, read_only=False))
    # A volume in memory is charged to its writer; the output's size is given on top, so that memory means memory.
    extra = budget.output_bytes if volumes else 0
    return ContainerSpec(
        image_id=job.image_id,
        name=seat.name,
        labels=seat.labels,
        command=expand(job.arguments, job=job, name=seat.input_name) or None,
        environment=_environment(job, image, seat.gpu),
        user=f"{seat.uid}:{seat.gid}",
        binds=tuple(binds),
        volumes=tuple(volumes),
        tmpfs=(_tmp(budget), *_cover(image, job)),
        memory=budget.memory + extra,
        shm=budget.shm,
        cpus=None if seat.cpuset else budget.cpus,
        cpuset=seat.cpuset,
        pids=budget.pids,
        open_files=budget.open_files,
        file_size=max(budget.output_bytes, budget.tmp),
        log=LogLimit(size=max(1 << 10, budget.log_bytes // _LOG_FILES), files=_LOG_FILES),
        security_opt=("no-new-privileges:true", *((f"seccomp={seat.seccomp}",) if seat.seccomp else ())),
        gpus=GpuRequest(device_ids=(seat.gpu,)) if seat.gpu else None,
    )


Limit = int | float | str | bool


def unkept(spec: ContainerSpec, kept: Mapping[str, Limit]) -> tuple[str, ...]:
    """What an engine does not hold a created container to, though it was told; a limit that is not kept is none.

    Args:
        spec: What the engine was told.
        kept: What it says it enforces, by our names.

    Returns:
        A sentence for each difference; empty where all is kept.
    """
    asked: dict[str, Limit | None] = {
        "memory": spec.memory,
        "memory_swap": spec.memory,
        "shm": spec.shm,
        "pids": spec.pids,
        "cpus": None if spec.cpuset else spec.cpus,
        "cpuset": spec.cpuset,
        "open_files": spec.open_files,
        "file_size": spec.file_size,
        "network": spec.network,
        "user": spec.user,
        "read_only": spec.read_only,
        "privileged": False,
        "cap_drop": ",".join(sorted(spec.cap_drop)),
        "no_new_privileges": True,
    }
    return tuple(
        f"{name} is {kept.get(name)!r} where {value!r} was asked for"
        for name, value in asked.items()
        if value is not None and kept.get(name) != value
    )
