"""What containers are held to beside a budget, as data: ``strict``, and ``compatible`` for images that need more."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType


class PolicyName(StrEnum):
    """How much an image may be as its author is used to."""

    STRICT = "strict"
    COMPATIBLE = "compatible"


class Processors(StrEnum):
    """How a job is held to its processors: a quota of all, or whole ones of its own."""

    QUOTA = "quota"
    CPUSET = "cpuset"


_HOME = {
    "HOME": "/tmp",  # noqa: S108  the container's own /tmp
    "USER": "participant",
    "LOGNAME": "participant",
    "PYTHONUNBUFFERED": "1",
}
_CACHES = {
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "MPLCONFIGDIR": "/tmp/.cache/matplotlib",  # noqa: S108
    "NUMBA_CACHE_DIR": "/tmp/.cache/numba",  # noqa: S108
    "TRITON_CACHE_DIR": "/tmp/.cache/triton",  # noqa: S108
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/.cache/inductor",  # noqa: S108
    "TORCH_EXTENSIONS_DIR": "/tmp/.cache/torch_extensions",  # noqa: S108
    "CUDA_CACHE_PATH": "/tmp/.cache/cuda",  # noqa: S108
}
"""Torch, transformers and others follow HOME or XDG_CACHE_HOME: to name them would hide weights an image points at."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What every container of a run is held to.

    Attributes:
        name: Which of the two.
        image_user: It runs as the image's own USER, else as an id of the job's own that is never root.
        read_only: Its root file system cannot be written.
        capabilities: Kept of the engine's; all others are dropped.
        network: What it is connected to.
        processors: How it is held to its processors.
        runtime: OCI runtime such as ``runsc``; None: the engine's own.
        open_files: Open files a process.
        log_bytes: Bytes of log that are kept.
        log_files: In so many files; the end survives.
        tmp_inodes: Files and folders in /tmp.
        cover_bytes: Size of the file system that lies over each VOLUME of the image.
        cover_inodes: Files and folders in it.
        environment: Set whatever the image says.
        caches: Where libraries write at run time; the image's own setting wins, since it may point at files it carries.
    """

    name: PolicyName = PolicyName.STRICT
    image_user: bool = False
    read_only: bool = True
    capabilities: tuple[str, ...] = ()
    network: str = "none"
    processors: Processors = Processors.QUOTA
    runtime: str | None = None
    open_files: int = 4096
    log_bytes: int = 3 << 20
    log_files: int = 3
    tmp_inodes: int = 65536
    cover_bytes: int = 16 << 20
    cover_inodes: int = 4096
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(_HOME))
    caches: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(_CACHES))


STRICT = Policy()

COMPATIBLE = Policy(
    name=PolicyName.COMPATIBLE,
    image_user=True,
    read_only=False,
    capabilities=("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"),
)
"""For images that must be root or write their own tree. No device, raw socket, mount or new privilege here either."""

_BY_NAME = {policy.name: policy for policy in (STRICT, COMPATIBLE)}


def policy_named(name: PolicyName, *, processors: Processors = Processors.QUOTA, runtime: str | None = None) -> Policy:
    """The policy of a name, with what a host adds.

    Args:
        name: As the challenge says.
        processors: How this host holds a job to its processors.
        runtime: OCI runtime of this host's choice.
    """
    return replace(_BY_NAME[name], processors=processors, runtime=runtime)


def facts_of(policy: Policy) -> dict[str, object]:
    """Every field of a policy, for a job's digest: another policy is another run."""
    return {one.name: _plain(getattr(policy, one.name)) for one in fields(policy)}


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


def loosened(policy: Policy) -> tuple[str, ...]:
    """What a policy allows that ``strict`` does not, a sentence each; empty for ``strict``."""
    differences = (
        (
            policy.image_user and not STRICT.image_user,
            (
                "containers run as the image's own user, which can be root; it may be that of another container, so "
                "two at once can get into each other's way"
            ),
        ),
        (
            STRICT.read_only and not policy.read_only,
            (
                "containers can write anywhere in their own tree, as much as /tmp may hold; the host measures it four "
                "times a second, so more can be written before it is stopped"
            ),
        ),
        (
            set(policy.capabilities) > set(STRICT.capabilities),
            f"root in a container keeps {', '.join(policy.capabilities)}: all of its own tree is its own",
        ),
    )
    return tuple(sentence for differs, sentence in differences if differs)
