"""NVIDIA's management library itself, by its Python binding."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pynvml

from runner.gpu.nvml import Card, CriticalErrors, DeviceMemory, GpuLost, NvmlAbsent, NvmlFault, Slice, Versions

_ABSENT = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_NOT_FOUND)
_NOT_OFFERED = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,  # a slice asked for what only its card has
)

T = TypeVar("T")


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except pynvml.NVMLError as error:
        if error.value in _ABSENT:
            raise NvmlAbsent(str(error)) from error
        if error.value in _LOST:
            raise GpuLost(str(error)) from error
        raise NvmlFault(str(error)) from error


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class SystemNvml:
    """``Nvml`` of this host.

    Args:
        library: The binding; tests give one that answers without a driver.
    """

    def __init__(self, library: Any = pynvml) -> None:
        self._nvml = library

    def open(self) -> None:
        """Load the library."""
        with _in_our_words():
            self._nvml.nvmlInit()

    def close(self) -> None:
        """Let go of it."""
        with contextlib.suppress(pynvml.NVMLError):
            self._nvml.nvmlShutdown()

    def versions(self) -> Versions:
        """Of driver and CUDA."""
        with _in_our_words():
            cuda = int(self._nvml.nvmlSystemGetCudaDriverVersion_v2())
            driver = _text(self._nvml.nvmlSystemGetDriverVersion())
        return Versions(driver=driver, cuda=(cuda // 1000, cuda % 1000 // 10))

    def cards(self) -> tuple[Card, ...]:
        """All cards, by index."""
        with _in_our_words():
            return tuple(self._card(index) for index in range(self._nvml.nvmlDeviceGetCount()))

    def _card(self, index: int) -> Card:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        mode = self._offered(lambda: nvml.nvmlDeviceGetMigMode(handle))
        mig = mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
        capability = self._offered(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
        return Card(
            index=index,
            uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
            name=_text(nvml.nvmlDeviceGetName(handle)),
            memory=self._memory(handle).total,
            minor=self._offered(lambda: int(nvml.nvmlDeviceGetMinorNumber(handle))),
            capability=(int(capability[0]), int(capability[1])) if capability is not None else None,
            mig=mig,
            slices=tuple(self._slices(handle)) if mig else (),
        )

    def _slices(self, card: Any) -> Iterator[Slice]:
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(card)):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index)
            except pynvml.NVMLError as error:
                if error.value != pynvml.NVML_ERROR_NOT_FOUND:
                    raise
                continue  # indices have holes
            yield Slice(
                uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
                name=_text(nvml.nvmlDeviceGetName(handle)),
                memory=self._memory(handle).total,
            )

    def memory(self, uuid: str) -> DeviceMemory:
        """How much memory is used."""
        with _in_our_words():
            return self._memory(self._handle(uuid))

    def _memory(self, handle: Any) -> DeviceMemory:
        # The first version counts what the driver keeps for itself as used; drivers before 510 know no other.
        found = self._offered(lambda: self._nvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2))
        if found is None:
            found = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return DeviceMemory(total=int(found.total), used=int(found.used))

    def processes(self, uuid: str) -> tuple[int, ...] | None:
        """Ids of the processes that compute on it."""
        found = self._ask(uuid, self._nvml.nvmlDeviceGetComputeRunningProcesses)
        return None if found is None else tuple(sorted({int(process.pid) for process in found}))

    def utilisation(self, uuid: str) -> int | None:
        """Percent of the driver's last sampling period in which something ran on it."""
        return self._ask(uuid, lambda handle: int(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu))

    def energy(self, uuid: str) -> float | None:
        """Joules since the driver was loaded."""
        return self._ask(uuid, lambda handle: self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3)

    def power(self, uuid: str) -> float | None:
        """Watts at the moment."""
        return self._ask(uuid, lambda handle: self._nvml.nvmlDeviceGetPowerUsage(handle) / 1e3)

    def memory_errors(self, uuid: str) -> int | None:
        """Uncorrected memory errors of its card since the driver was loaded."""
        kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        return self._ask(
            uuid, lambda handle: int(self._nvml.nvmlDeviceGetTotalEccErrors(self._whole(uuid, handle), kind, since))
        )

    def critical_errors(self, uuid: str) -> CriticalErrors | None:
        """Listen for critical errors of its card from now on."""
        nvml, kind = self._nvml, pynvml.nvmlEventTypeXidCriticalError
        with _in_our_words():
            card = self._whole(uuid, self._handle(uuid))
            events = self._offered(nvml.nvmlEventSetCreate)
            if events is None:
                return None
            try:
                nvml.nvmlDeviceRegisterEvents(card, kind, events)
            except pynvml.NVMLError as error:
                nvml.nvmlEventSetFree(events)
                if error.value in _NOT_OFFERED:
                    return None
                raise
        return _Events(nvml, events)

    def _handle(self, uuid: str) -> Any:
        return self._nvml.nvmlDeviceGetHandleByUUID(uuid)

    def _whole(self, uuid: str, handle: Any) -> Any:
        """The card a device is, or is a slice of."""
        return self._nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if uuid.startswith("MIG-") else handle

    def _ask(self, uuid: str, question: Callable[[Any], T]) -> T | None:
        with _in_our_words():
            handle = self._handle(uuid)
            return self._offered(lambda: question(handle))

    @staticmethod
    def _offered(question: Callable[[], T]) -> T | None:
        try:
            return question()
        except pynvml.NVMLError as error:
            if error.value in _NOT_OFFERED:
                return None
            raise


class _Events:
    """An event set of the library."""

    def __init__(self, library: Any, events: Any) -> None:
        self._nvml = library
        self._events = events

    def poll(self) -> tuple[int, ...]:
        """The numbers of those that came since the last call, without waiting."""
        found: list[int] = []
        with _in_our_words():
            while True:
                try:
                    event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
                except pynvml.NVMLError as error:
                    if error.value == pynvml.NVML_ERROR_TIMEOUT:
                        return tuple(found)
                    raise
                found.append(int(event.eventData))

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(pynvml.NVMLError):
            self._nvml.nvmlEventSetFree(self._events)
