"""The examination of this host, from the outside in."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from runner.doctor.findings import Finding, fine, note, problem
from runner.doctor.gpus import examine_access, examine_gpus
from runner.doctor.isolation import examine_isolation
from runner.engine import Engine, EngineFacts
from runner.engine.helper import helper_image
from runner.errors import RunnerError
from runner.execute import Bench
from runner.gpu.pool import GpuHost
from runner.pipeline.host import HostFacts, open_bench
from runner.quantities import show_bytes
from runner.settings import Settings

_OLDEST = (20, 10)
_ROOM = 10 << 30


def examine(settings: Settings, connect: Callable[[str], Engine], *, gpus: GpuHost | None = None) -> Iterator[Finding]:
    """Look at everything a run depends on; goes on as far as it can.

    Args:
        settings: This host's.
        connect: Connects to the engine at an address.
        gpus: Where GPUs are asked for; None: this host's own driver.
    """
    host_gpus = gpus or GpuHost.real()
    yield from _disk(settings)
    yield from examine_gpus(host_gpus)
    try:
        engine = connect(settings.engine)
        facts = engine.facts()
    except RunnerError as error:
        yield problem("engine", error.what, error.remedy)
        return
    yield from examine_engine(facts)
    try:
        with contextlib.ExitStack() as stack:
            bench, host = stack.enter_context(
                open_bench(engine, settings, stop=threading.Event(), observe=lambda _event: None)
            )
            yield _output(bench, host)
            yield fine("system calls", f"filtered by {host.seccomp} profile, chosen by a probe for vsock and io_uring")
            helper = engine.image(helper_image(engine, base=settings.helper_base or None))
            scratch = stack.enter_context(bench.workspace.desk())
            yield from examine_access(bench, helper, facts, settings, host_gpus, scratch=scratch)
            yield from examine_isolation(bench, helper, scratch=scratch)
    except RunnerError as error:
        yield problem("probe", error.what, error.remedy)


def _output(bench: Bench, host: HostFacts) -> Finding:
    if bench.watched:
        return note(
            "output",
            f"not held to its size: a {host.output}; a container that writes more than it may is stopped after it did, "
            "and what it deletes and holds open is not counted",
            "run proctor as root on the engine's own host",
        )
    return fine("output", f"held to its size by a {host.output}, seen by engine and host alike")


def _version(text: str) -> tuple[int, ...]:
    parts = []
    for part in text.split("."):
        digits = "".join(c for c in part if c.isdigit())
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts[:2])


def examine_engine(facts: EngineFacts) -> Iterator[Finding]:
    """Judge what an engine says of itself."""
    text = (
        f"{facts.name} {facts.version} on {facts.operating_system}, {facts.cpus} processors, {show_bytes(facts.memory)}"
    )
    if facts.name.lower().startswith("docker") and _version(facts.version) < _OLDEST:
        yield problem("engine", text, "update Docker to 20.10 or newer")
    else:
        yield fine("engine", text)
    yield fine("cgroups", f"version {facts.cgroup_version}, driver {facts.cgroup_driver}")
    if any("seccomp" in option for option in facts.security_options):
        yield fine("seccomp", "the engine's own profile is on")
    else:
        yield problem(
            "seccomp",
            "the engine runs containers without a seccomp profile",
            "start the engine with its default seccomp profile",
        )
    for warning in facts.warnings:
        if "swap limit" in warning.lower() or "memory limit" in warning.lower():
            yield note(
                "swap",
                f"the engine warns: {warning}",
                "boot with swapaccount=1 cgroup_enable=memory, or switch swap off",
            )


def _disk(settings: Settings) -> Iterator[Finding]:
    path: Path = settings.workspace
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    if free < _ROOM:
        yield note(
            "disk",
            f"{show_bytes(free)} free at {path}",
            f"make room: views of the data are copied there; {show_bytes(_ROOM)} or more is advised",
        )
    else:
        yield fine("disk", f"{show_bytes(free)} free at {path}")
