"""The GPUs of this host: which there are, whether they are fit, and whether a container gets the one its job holds."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runner.doctor.findings import Finding, fine, note, problem
from runner.engine import EngineFacts, ImageFacts
from runner.errors import RunnerError
from runner.execute import Bench
from runner.gpu.access import choose_access
from runner.gpu.discovery import Gpu, find_gpus
from runner.gpu.health import Fitness, before_a_job
from runner.gpu.nvml import Nvml, NvmlFault
from runner.gpu.pool import GpuHost
from runner.pipeline.gpus import GpusWanted, misgiven, open_gpus
from runner.quantities import show_bytes
from runner.settings import Settings


def examine_gpus(host: GpuHost) -> Iterator[Finding]:
    """Each device, and whether it could be given to a job now."""
    search = find_gpus(host.nvml)
    if not search.gpus:
        yield note(
            "GPU", f"none: {search.reason}", "challenges that ask for a GPU need --allow-cpu here; check works without"
        )
        return
    for sentence in search.unusable:
        yield note("GPU", sentence, "make instances with nvidia-smi mig, or switch MIG mode off")
    host.nvml.open()
    try:
        yield from (_device(host.nvml, gpu) for gpu in search.gpus)
    except NvmlFault as error:
        yield problem("GPU", f"the NVIDIA driver answers with an error: {error}", "see: nvidia-smi, dmesg")
    finally:
        host.nvml.close()


def _device(nvml: Nvml, gpu: Gpu) -> Finding:
    condition = before_a_job(nvml, gpu)
    text = f"{gpu.uuid}: {gpu}"
    match condition.fitness:
        case Fitness.FIT:
            memory = nvml.memory(gpu.uuid)
            return fine("GPU", f"{text}, {show_bytes(memory.total - memory.used)} free")
        case Fitness.BUSY:
            return note("GPU", f"{text}; {condition.sentence}", "end what uses it: a job would not be given it")
        case Fitness.BROKEN:
            return problem("GPU", f"{text}; {condition.sentence}", "see: nvidia-smi, dmesg")


def examine_access(
    bench: Bench, helper: ImageFacts, facts: EngineFacts, settings: Settings, host: GpuHost, *, scratch: Path
) -> Iterator[Finding]:
    """Give a container of ours a device, and none; nothing to say where this host has none."""
    gpus = find_gpus(host.nvml).gpus
    if not gpus:
        return
    try:
        access = choose_access(settings.gpu_access, facts, runtime=settings.runtime)
        wanted = GpusWanted(count=1, allow_cpu=False, host=host)
        with open_gpus(wanted, facts, settings, stop=threading.Event(), observe=lambda _event: None) as pool:
            with_gpus = replace(bench, gpus=pool)
            wrong = [misgiven(with_gpus, helper, scratch=scratch, count=count) for count in (1, 0)]
    except RunnerError as error:
        yield problem("GPU access", error.what, error.remedy)
        return
    way = f"by {access.value}" + (" (gpu_access: auto)" if settings.gpu_access != access else "")
    if why := "; ".join(filter(None, wrong)):
        yield problem("GPU access", f"{way}: {why}", "see the NVIDIA container toolkit's own log, and gpu_access")
    else:
        yield fine("GPU access", f"{way}: a container gets the GPU its job holds, and none where it holds none")
