"""This host's settings: defaults < file < environment ``PROCTOR_*`` < flags, each with its source."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import Field, ValidationError

from runner.challenge.section import Section
from runner.errors import UsageError
from runner.gpu.access import GpuAccess
from runner.policy import PolicyName, Processors
from runner.quantities import Bytes, Seconds
from runner.workspace import default_root
from runner.yaml_text import parse_model, plain_words, read_text

_ENVIRONMENT = "PROCTOR_"


class OutputMethod(StrEnum):
    """How the output folder is held to its size."""

    AUTO = "auto"
    LOOP = "loop"
    VOLUME = "volume"
    WATCH = "watch"


class Ceiling(Section):
    """The most this host gives any job; a challenge can only ask for less. Absent: as the challenge says."""

    run_time: Seconds | None = Field(default=None, gt=0)
    memory: Bytes | None = Field(default=None, ge=6 << 20)
    shm: Bytes | None = Field(default=None, ge=1 << 20)
    cpus: float | None = Field(default=None, gt=0)
    pids: int | None = Field(default=None, ge=16)
    output: Bytes | None = Field(default=None, ge=1 << 20)
    tmp: Bytes | None = Field(default=None, ge=1 << 20)
    image_size: Bytes = Field(default=50 << 30, ge=1 << 20)
    policy: PolicyName | None = None


class Settings(Section):
    """What a person decides about this host.

    Attributes:
        engine: Address of the container engine; empty: the usual places are tried.
        workspace: Where views and outputs live while jobs run; the engine must see it.
        jobs: Containers at once; 1 times every container alone.
        output: How the output folder is held to its size.
        processors: ``quota`` of all processors, or ``cpuset``: whole ones of each job's own, for even run times.
        runtime: OCI runtime the engine runs containers with, such as ``runsc``; empty: its own.
        gpu_access: How the engine is asked for a GPU: ``device-request``, ``nvidia-runtime`` or ``cdi``; ``auto``: as
            it offers.
        ceiling: The most this host gives any job.
        host_retries: How often a job is tried again after the host failed.
        pull_deadline: How long a pull may take.
        build_deadline: How long a build may take.
        build_memory: Bytes that each step of a build may use; BuildKit cannot hold a build to it.
        keep_free: Bytes that should stay free on the engine's disk; images that we brought there and that can be had
            again are removed for it, the least recently used first.
        helper_base: Image with Python 3 that our helper image is made of; empty: proctor-base:1, else python:3.11-slim.
    """

    engine: str = ""
    workspace: Path = Field(default_factory=default_root)
    jobs: int = Field(default=1, ge=1)
    output: OutputMethod = OutputMethod.AUTO
    processors: Processors = Processors.QUOTA
    runtime: str = ""
    gpu_access: GpuAccess = GpuAccess.AUTO
    ceiling: Ceiling = Ceiling()
    host_retries: int = Field(default=2, ge=0)
    pull_deadline: Seconds = 3600.0
    build_deadline: Seconds = 3600.0
    build_memory: Bytes = Field(default=8 << 30, ge=6 << 20)
    keep_free: Bytes = Field(default=20 << 30, ge=0)
    helper_base: str = ""


@dataclass(frozen=True, kw_only=True)
class SettingsWithSources:
    """Settings, and where each value that is not a default came from."""

    settings: Settings
    sources: Mapping[str, str]


def user_settings_file() -> Path:
    """Where a person's settings are looked for when no file is named."""
    import platformdirs  # noqa: PLC0415  only where it is needed: start-up counts

    return Path(platformdirs.user_config_dir("proctor")) / "settings.yaml"


def _from_file(path: Path | None) -> tuple[Settings, str]:
    if path is None:
        path = user_settings_file()
        if not path.is_file():
            return Settings(), ""
    if not path.is_file():
        raise UsageError(f"there is no settings file {str(path)!r}", remedy="name an existing file with --settings")
    return parse_model(path, read_text(path), Settings), str(path)


def _assign(values: dict[str, object], key: str, text: str) -> None:
    head, _, tail = key.partition(".")
    if tail:
        inner = values.setdefault(head, {})
        assert isinstance(inner, dict)
        inner[tail] = text
    else:
        values[head] = text


def _environment_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """``PROCTOR_CEILING_MEMORY`` is ``ceiling.memory``; names we do not know belong to somebody else."""
    known = {_ENVIRONMENT + name.upper(): name for name in Settings.model_fields if name != "ceiling"}
    known |= {f"{_ENVIRONMENT}CEILING_{name.upper()}": f"ceiling.{name}" for name in Ceiling.model_fields}
    return {known[name]: text for name, text in environ.items() if name in known}


def load_settings(
    file: Path | None, flags: Mapping[str, str], *, environ: Mapping[str, str] | None = None
) -> SettingsWithSources:
    """Read the settings of this host.

    Args:
        file: A settings file; None: the person's own, where there is one.
        flags: From the command line, by dotted key.
        environ: The environment; None: this process's.

    Raises:
        UsageError: A file is missing or a value is wrong; says where it came from.
    """
    base, origin = _from_file(file)
    sources = {} if not origin else dict.fromkeys(_dotted(base), origin)
    values = base.model_dump(exclude_unset=True)
    layers = (
        (_environment_keys(os.environ if environ is None else environ), "environment"),
        (flags, "command line"),
    )
    for layer, source in layers:
        for key, text in layer.items():
            _assign(values, key, text)
            sources[key] = source
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{key} is {first['input']!r}: {plain_words(first)}",
            where=f"settings, from the {sources.get(key, 'defaults')}",
            remedy="give another value",
        ) from error
    return SettingsWithSources(settings=settings, sources=sources)


def _dotted(settings: Settings) -> tuple[str, ...]:
    keys = []
    for name in settings.model_fields_set:
        value = getattr(settings, name)
        keys.extend([f"{name}.{inner}" for inner in value.model_fields_set] if isinstance(value, Ceiling) else [name])
    return tuple(keys)
