"""The adapter of the real binding: what its answers and its errors become.

No test here has seen a driver. The binding's functions are stood in for by ones of the same names and parameters; the
exceptions and constants are the binding's own.
"""

import inspect
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from runner.gpu.discovery import find_gpus
from runner.gpu.driver import SystemNvml
from runner.gpu.nvml import Card, DeviceMemory, GpuLost, NvmlAbsent, NvmlFault, Slice, Versions


def error(code: int) -> pynvml.NVMLError:
    return pynvml.NVMLError(code)


class Library:
    """Two cards, the second partitioned; ``told`` is what a function returns or raises in place of its usual answer."""

    def __init__(self, **told: Any) -> None:
        self.told = told
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.usual: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlSystemGetDriverVersion": "550.54.14",
            "nvmlSystemGetCudaDriverVersion_v2": 12040,
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetHandleByIndex": lambda index: f"card-{index}",
            "nvmlDeviceGetHandleByUUID": lambda uuid: {"GPU-0": "card-0", "GPU-1": "card-1", "MIG-b": "mig-2"}[uuid],
            "nvmlDeviceGetUUID": lambda h: {"card-0": "GPU-0", "card-1": b"GPU-1", "mig-2": "MIG-b"}[h],
            "nvmlDeviceGetName": lambda h: {"card-0": b"A", "card-1": "B", "mig-2": "B MIG 1g"}[h],
            "nvmlDeviceGetMinorNumber": lambda h: int(h[-1]) + 4,
            "nvmlDeviceGetCudaComputeCapability": (8, 6),
            "nvmlDeviceGetMigMode": lambda h: [int(h == "card-1"), 0],
            "nvmlDeviceGetMaxMigDeviceCount": 3,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._slice,
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda _: "card-1",
            "nvmlDeviceGetMemoryInfo": lambda _, version=None: SimpleNamespace(total=100 + bool(version), used=7),
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=9), SimpleNamespace(pid=3)],
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=55, memory=1),
            "nvmlDeviceGetTotalEnergyConsumption": 1500,
            "nvmlDeviceGetPowerUsage": 250_500,
            "nvmlDeviceGetTotalEccErrors": 4,
            "nvmlEventSetCreate": "events",
            "nvmlDeviceRegisterEvents": None,
            "nvmlEventSetWait_v2": error(pynvml.NVML_ERROR_TIMEOUT),
            "nvmlEventSetFree": None,
        }

    @staticmethod
    def _slice(_card: str, index: int) -> str:
        if index != 2:
            raise error(pynvml.NVML_ERROR_NOT_FOUND)
        return "mig-2"

    def __getattr__(self, name: str) -> Any:
        usual = self.usual[name]

        def call(*arguments: Any, **named: Any) -> Any:
            inspect.signature(getattr(pynvml, name)).bind(*arguments, **named)
            self.calls.append((name, arguments))
            answer = self.told.get(name, usual)
            if isinstance(answer, list) and name == "nvmlEventSetWait_v2":
                answer = answer.pop(0)
            if isinstance(answer, pynvml.NVMLError):
                raise answer
            return answer(*arguments, **named) if callable(answer) else answer

        return call


def test_the_cards_of_a_host() -> None:
    nvml = SystemNvml(Library())
    assert nvml.versions() == Versions(driver="550.54.14", cuda=(12, 4))
    assert nvml.cards() == (
        Card(index=0, uuid="GPU-0", name="A", memory=101, minor=4, capability=(8, 6)),
        Card(
            index=1, uuid="GPU-1", name="B", memory=101, minor=5, capability=(8, 6), mig=True,
            slices=(Slice(uuid="MIG-b", name="B MIG 1g", memory=101),),
        ),
    )  # fmt: skip


def test_the_answers_about_one_device() -> None:
    nvml = SystemNvml(Library())
    assert nvml.memory("GPU-0") == DeviceMemory(total=101, used=7)
    assert nvml.processes("GPU-0") == (3, 9)
    assert nvml.utilisation("GPU-0") == 55
    assert (nvml.energy("GPU-0"), nvml.power("GPU-0")) == (1.5, 250.5)
    assert nvml.memory_errors("GPU-0") == 4


@pytest.mark.parametrize(
    "code",
    [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT,
     pynvml.NVML_ERROR_NO_PERMISSION],
)  # fmt: skip
def test_what_a_device_does_not_offer_is_none(code: int) -> None:
    names = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage",
             "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceRegisterEvents",
             "nvmlDeviceGetMinorNumber", "nvmlDeviceGetMigMode", "nvmlDeviceGetCudaComputeCapability")  # fmt: skip
    library = Library(**{name: error(code) for name in names})
    nvml = SystemNvml(library)
    asked = (nvml.processes, nvml.utilisation, nvml.power, nvml.energy, nvml.memory_errors, nvml.critical_errors)
    assert [question("GPU-0") for question in asked] == [None] * 6
    assert ("nvmlEventSetFree", ("events",)) in library.calls
    assert nvml.cards()[1] == Card(index=1, uuid="GPU-1", name="B", memory=101)


def test_an_old_driver_is_asked_for_memory_in_the_old_way() -> None:
    def memory(_handle: str, version: int | None = None) -> SimpleNamespace:
        if version:
            raise error(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(total=80, used=8)

    assert SystemNvml(Library(nvmlDeviceGetMemoryInfo=memory)).memory("GPU-0") == DeviceMemory(total=80, used=8)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (pynvml.NVML_ERROR_GPU_IS_LOST, GpuLost), (pynvml.NVML_ERROR_RESET_REQUIRED, GpuLost),
        (pynvml.NVML_ERROR_NOT_FOUND, GpuLost), (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, NvmlAbsent),
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, NvmlAbsent), (pynvml.NVML_ERROR_UNKNOWN, NvmlFault),
        (pynvml.NVML_ERROR_UNINITIALIZED, NvmlFault),
    ],
)  # fmt: skip
def test_errors_in_our_words(code: int, kind: type[NvmlFault]) -> None:
    told = {name: error(code) for name in ("nvmlInit", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetCount")}
    nvml = SystemNvml(Library(**told))
    asked = (nvml.open, nvml.cards, lambda: nvml.memory("GPU-0"), lambda: nvml.power("GPU-0"),
             lambda: nvml.critical_errors("GPU-0"))  # fmt: skip
    for question in asked:
        with pytest.raises(NvmlFault) as caught:
            question()
        assert type(caught.value) is kind
        assert str(caught.value) == str(error(code))


def test_critical_errors_are_those_that_came_and_of_a_slices_card() -> None:
    events: list[Any] = [SimpleNamespace(eventData=79), SimpleNamespace(eventData=31), error(pynvml.NVML_ERROR_TIMEOUT)]
    library = Library(nvmlEventSetWait_v2=events)
    listening = SystemNvml(library).critical_errors("MIG-b")
    assert listening is not None
    assert ("nvmlDeviceRegisterEvents", ("card-1", pynvml.nvmlEventTypeXidCriticalError, "events")) in library.calls
    assert listening.poll() == (79, 31)
    listening.close()
    assert library.calls[-1] == ("nvmlEventSetFree", ("events",))


def test_memory_errors_are_the_uncorrected_ones_of_a_slices_card_since_the_driver_was_loaded() -> None:
    library = Library()
    assert SystemNvml(library).memory_errors("MIG-b") == 4
    asked = ("card-1", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    assert library.calls[-1] == ("nvmlDeviceGetTotalEccErrors", asked)


def test_closing_what_is_gone_is_silent() -> None:
    library = Library(nvmlShutdown=error(pynvml.NVML_ERROR_UNINITIALIZED))
    SystemNvml(library).close()
    assert library.calls == [("nvmlShutdown", ())]


def test_the_real_binding_on_this_host_gives_devices_or_a_reason() -> None:
    """On a host without a driver: the library is not found, and that is what is said."""
    search = find_gpus(SystemNvml())
    assert bool(search.gpus) != bool(search.reason)
    missing: pynvml.NVMLError | None = None
    try:
        pynvml.nvmlInit()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error_:
        missing = error_
    assert bool(search.gpus) == (missing is None)
    assert missing is None or search.reason.endswith(f": {missing}")
    if missing is not None and missing.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        assert search.reason == "there is no NVIDIA driver: NVML Shared Library Not Found"
