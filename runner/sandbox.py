"""One container's description: what it may see and use by policy and budget, and nothing else. Pure.

Whatever the image says of itself (USER, VOLUME, HEALTHCHECK, ENV, labels) can make this stricter or change nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.engine import Bind, ContainerSpec, ImageFacts, LogLimit, Tmpfs, VolumeMount
from runner.engine.paths import plain_path
from runner.gpu import access
from runner.job import Job
from runner.policy import Policy, Processors


@dataclass(frozen=True, kw_only=True)
class Seat:
    """What one run is given on this host: who it runs as, what it sees, where it writes, which devices it holds.

    Attributes:
        name: Container name, random.
        labels: Ours; they win over the image's.
        uid: User id, this job's own.
        gid: Group id.
        view: Folder of the host with the input, mounted read-only.
        input_name: The neutral name of the case; of the first one where there are several.
        output: Folder of the host, or volume, that is written to.
        gpus: UUIDs of the devices it holds.
        gpu_access: How the engine is asked for them; told where there are some.
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
    gpus: tuple[str, ...] = ()
    gpu_access: access.GpuAccess = access.GpuAccess.AUTO
    cpuset: str | None = None
    seccomp: str | None = None


def expand(arguments: tuple[str, ...], *, job: Job, name: str) -> tuple[str, ...]:
    """Fill the placeholders of the challenge's arguments with paths inside the container.

    Args:
        arguments: With placeholders.
        job: What is run.
        name: The neutral name of its case; where it is started for a data set, it has none.
    """
    alone = next(iter(job.places.values())) if len(job.places) == 1 else "{case}"
    values = {
        "{input}": job.input_mount if job.whole else f"{job.input_mount}/{alone}",
        "{output}": job.output_mount if job.whole else f"{job.output_mount}/{name}",
        "{task}": job.told,
        **{f"{{{given}}}": f"{job.input_mount}/{place}" for given, place in job.places.items()},
    }
    filled = []
    for argument in arguments:
        text = argument
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        filled.append(text if job.whole else text.replace("{case}", name))
    return tuple(filled)


def _environment(policy: Policy, job: Job, image: ImageFacts, seat: Seat) -> dict[str, str]:
    own = {name: value for name, _, value in (line.partition("=") for line in image.environment)}
    values = {key: value for key, value in policy.caches.items() if key not in own}
    values |= policy.environment
    values |= job.environment
    values["PROCTOR_TASK"] = job.told
    return values | access.environment(own, seat.gpus, seat.gpu_access)


def _cover(policy: Policy, image: ImageFacts, job: Job) -> tuple[Tmpfs, ...]:
    """A small tmpfs over each VOLUME: it would otherwise be a hole to the host's disk without a limit."""
    ours = {plain_path(job.input_mount), plain_path(job.output_mount), "/tmp"}  # noqa: S108
    return tuple(
        Tmpfs(target=path, size=policy.cover_bytes, inodes=policy.cover_inodes, mode=0o1777, executable=False)
        for path in sorted({plain_path(volume) for volume in image.volumes} - ours)
    )


def container_spec(*, policy: Policy, job: Job, image: ImageFacts, seat: Seat) -> ContainerSpec:
    """The one place where a participant's container is described.

    Args:
        policy: What every container of the run is held to.
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
    tmp = Tmpfs(target="/tmp", size=budget.tmp, inodes=policy.tmp_inodes, mode=0o1777, executable=True)  # noqa: S108
    # A cpuset without a quota: a quota pauses a program for most of its period once it is used up.
    cpuset = seat.cpuset if policy.processors is Processors.CPUSET else None
    given = access.grant(seat.gpus, seat.gpu_access)
    return ContainerSpec(
        image_id=job.image_id,
        name=seat.name,
        labels=seat.labels,
        entrypoint=expand(job.command, job=job, name=seat.input_name) or None,
        command=expand(job.arguments, job=job, name=seat.input_name) or (() if job.command else None),
        environment=_environment(policy, job, image, seat),
        user=image.user if policy.image_user else f"{seat.uid}:{seat.gid}",
        network=policy.network,
        read_only=policy.read_only,
        cap_add=policy.capabilities,
        binds=tuple(binds),
        volumes=tuple(volumes),
        tmpfs=(tmp, *_cover(policy, image, job)),
        memory=budget.memory + extra,
        shm=budget.shm,
        cpus=None if cpuset else budget.cpus,
        cpuset=cpuset,
        pids=budget.pids,
        open_files=budget.open_files,
        file_size=max(budget.output_bytes, budget.tmp),
        log=LogLimit(size=max(1 << 10, budget.log_bytes // policy.log_files), files=policy.log_files),
        runtime=given.runtime or policy.runtime,
        security_opt=("no-new-privileges:true", *((f"seccomp={seat.seccomp}",) if seat.seccomp else ())),
        gpus=given.request,
        cdi_devices=given.cdi,
        stdin=job.stream is not None,
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
        "user": spec.user or None,
        "read_only": spec.read_only,
        "privileged": False,
        "cap_drop": ",".join(sorted(spec.cap_drop)),
        "cap_add": ",".join(sorted(spec.cap_add)) or None,
        "runtime": spec.runtime,
        "no_new_privileges": True,
        "gpus": ",".join((*(spec.gpus.device_ids if spec.gpus else ()), *spec.cdi_devices)) or None,
    }
    never = ("gpus",) if spec.cap_add else ("gpus", "cap_add")
    return tuple(
        f"{name} is {kept.get(name)!r} where {value!r} was asked for"
        for name, value in asked.items()
        if kept.get(name) != value and (value is not None or name in never)
    )
