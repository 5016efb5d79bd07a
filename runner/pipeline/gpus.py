"""The GPUs of a run: found, opened, and proved to reach the container of the job that holds them, and it alone.

The proof is by device nodes: a container that is given ``/dev/nvidia0`` can use that card whatever any variable says,
and one that is not cannot.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from runner.engine import EngineFacts, ImageFacts
from runner.errors import HostUnfit
from runner.execute import Bench
from runner.gpu.access import choose_access
from runner.gpu.discovery import find_gpus
from runner.gpu.nvml import NvmlFault
from runner.gpu.pool import GpuHost, GpuPool
from runner.pipeline.events import Notice, Observer
from runner.probe import PROBE_BUDGET, ask
from runner.settings import Settings

_NODES = """
import json, os, sys
names = [name.removeprefix("nvidia") for name in os.listdir("/dev") if name.startswith("nvidia")]
with open(sys.argv[2] + ".json", "w") as sink:
    json.dump({"cards": sorted(int(name) for name in names if name.isdigit())}, sink)
"""


@dataclass(frozen=True, kw_only=True)
class GpusWanted:
    """What a run asks for.

    Attributes:
        count: Devices a job.
        allow_cpu: Go on without.
        host: Where they are asked for; None: this host's own driver.
        remedy: What to do where there are too few.
    """

    count: int = 0
    allow_cpu: bool = True
    host: GpuHost | None = None
    remedy: str = "run on a host with a GPU, or add --allow-cpu: run times will not be comparable"


NO_GPUS = GpusWanted()


@contextlib.contextmanager
def open_gpus(
    wanted: GpusWanted, facts: EngineFacts, settings: Settings, *, stop: threading.Event, observe: Observer
) -> Iterator[GpuPool | None]:
    """The devices jobs can be given; None where none is wanted, or none is there and that is allowed.

    Args:
        wanted: What the run asks for.
        facts: The engine.
        settings: This host's.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.

    Raises:
        HostUnfit: The host has too few, or the engine does not offer the way the settings name.
    """
    if not wanted.count:
        yield None
        return
    host = wanted.host or GpuHost.real()
    search = find_gpus(host.nvml)
    usable = search.usable_for(wanted.count)
    if len(usable) < wanted.count:
        do_without(
            wanted,
            f"the challenge asks for {wanted.count} GPU and this host has {len(usable) or 'no GPU'} that can be used"
            + (f": {search.reason}" if search.reason else ""),
            observe,
        )
        yield None
        return
    access = choose_access(settings.gpu_access, facts, runtime=settings.runtime)
    try:
        host.nvml.open()
    except NvmlFault as error:
        raise HostUnfit(f"the NVIDIA driver went away: {error}", remedy="see: proctor doctor") from error
    try:
        yield GpuPool(host, usable, access, stop=stop, say=lambda text: observe(Notice(text=text)))
    finally:
        host.nvml.close()


def do_without(wanted: GpusWanted, why: str, observe: Observer) -> None:
    """Go on without a GPU, where that is allowed.

    Raises:
        HostUnfit: It is not.
    """
    if not wanted.allow_cpu:
        raise HostUnfit(why, remedy=wanted.remedy)
    observe(Notice(text=f"{why}; none is used: run times are not comparable"))


def misgiven(bench: Bench, helper: ImageFacts, *, scratch: Path, count: int) -> str:
    """What is wrong with the devices a container is given that is due ``count``; empty where nothing is.

    Raises:
        HostFault: The devices cannot be used, or failed.
        HostUnfit: The engine gives no container a GPU.
    """
    found = ask(bench, helper, _NODES, scratch=scratch, budget=replace(PROBE_BUDGET, gpus=count))
    answer = found.answer.get("cards") if isinstance(found.answer, dict) else None
    if not isinstance(answer, list):
        return f"a container of ours did not answer: {found.result.refusal or found.log.strip()[-200:]}"
    seen = {number for number in answer if isinstance(number, int)}
    held = {usage.device for usage in found.result.usage.gpus}
    gpus = bench.gpus.gpus if bench.gpus is not None else ()
    minors = [gpu.minor for gpu in gpus if gpu.uuid in held]
    due = {minor for minor in minors if minor is not None}
    if len(minors) != count:
        return f"a container that is due {count} GPU was given {len(minors)}"
    if None in minors:
        return ""  # a driver without device numbers, as under Windows' Linux
    if others := seen - due:
        return f"a container sees GPUs that its job does not hold: {_nodes(others)}"
    if missing := due - seen:
        return f"a container does not see the GPU its job holds: {_nodes(missing)}"
    return ""


def _nodes(numbers: set[int]) -> str:
    return ", ".join(f"/dev/nvidia{number}" for number in sorted(numbers))
