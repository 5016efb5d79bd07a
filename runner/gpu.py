"""Finds this host's GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A device; memory in bytes."""

    index: int
    uuid: str
    name: str
    memory: int
    driver: str


@dataclass(frozen=True, kw_only=True)
class GpuSearch:
    """What looking for GPUs gave: devices, or why there are none."""

    gpus: tuple[Gpu, ...]
    reason: str = ""


def find_gpus() -> GpuSearch:
    """Ask the NVIDIA management library; a host without it has no GPU for us."""
    import pynvml  # noqa: PLC0415  loads a driver library

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return GpuSearch(gpus=(), reason=f"the NVIDIA driver does not answer: {error}")
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
            uuid, name = _text(pynvml.nvmlDeviceGetUUID(handle)), _text(pynvml.nvmlDeviceGetName(handle))
            found.append(Gpu(index=index, uuid=uuid, name=name, memory=memory, driver=driver))
    except pynvml.NVMLError as error:
        return GpuSearch(gpus=(), reason=f"the NVIDIA driver answers with an error: {error}")
    finally:
        pynvml.nvmlShutdown()
    return GpuSearch(gpus=tuple(found), reason="" if found else "the NVIDIA driver lists no device")


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
