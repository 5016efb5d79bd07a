"""How an engine is asked for exactly the devices a job holds, and what an image's environment may not say. Pure.

There are three ways, and all end in NVIDIA's container toolkit, which runs as root on the host:

* a *device request*: the engine itself names the devices to the toolkit's hook (``docker run --gpus``);
* the *nvidia runtime*: the toolkit stands in for the OCI runtime, and reads the devices from the environment;
* *CDI*: the engine looks the devices up in a list that the toolkit wrote, and no environment is read.

The toolkit reads the container's environment, most of which its image can set: which devices, which of the driver's
parts, MIG management, IMEX channels, further hardware, and what must be there for the container to start at all. Where
the image says such a thing, what we say stands in its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from runner.engine import EngineFacts, GpuRequest
from runner.engine.paths import plain_path
from runner.errors import HostUnfit

NVIDIA_RUNTIME = "nvidia"
CDI_KIND = "nvidia.com/gpu"
NOTHING = "void"
"""What the toolkit takes for: leave this container alone."""

NO_GPU_GIVEN = (
    "could not select device driver",
    f"unknown runtime specified {NVIDIA_RUNTIME}",
    f"unknown or invalid runtime name: {NVIDIA_RUNTIME}",
    "cdi device injection failed",
)
"""What an engine's refusal says where the host cannot give any container a GPU; lower case."""

_CDI_API = (1, 44)
_LISTS_DEVICES_API = (1, 50)


class GpuAccess(StrEnum):
    """How an engine is asked for a device."""

    AUTO = "auto"
    DEVICE_REQUEST = "device-request"
    NVIDIA_RUNTIME = "nvidia-runtime"
    CDI = "cdi"


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a container's description carries so that it gets its devices.

    Attributes:
        visible: For ``NVIDIA_VISIBLE_DEVICES``.
        request: A device request; None for none.
        runtime: OCI runtime; None: the engine's own, or that of the policy.
        cdi: CDI device names.
    """

    visible: str = NOTHING
    request: GpuRequest | None = None
    runtime: str | None = None
    cdi: tuple[str, ...] = ()


def grant(uuids: tuple[str, ...], access: GpuAccess) -> Grant:
    """What gives a container these devices and no other; ``access`` is not ``auto``."""
    if not uuids:
        return Grant()
    listed = ",".join(uuids)
    match access:
        case GpuAccess.DEVICE_REQUEST:
            return Grant(visible=listed, request=GpuRequest(device_ids=uuids))
        case GpuAccess.NVIDIA_RUNTIME:
            return Grant(visible=listed, runtime=NVIDIA_RUNTIME)
        case GpuAccess.CDI:
            # An engine whose default runtime is nvidia's must not add devices of its own.
            return Grant(cdi=tuple(f"{CDI_KIND}={uuid}" for uuid in uuids))
        case GpuAccess.AUTO:
            raise ValueError("auto is to be chosen first")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _cdi(facts: EngineFacts) -> str:
    """Why an engine cannot give a device by CDI; empty where it can."""
    if _version(facts.api_version) < _CDI_API:
        return f"{facts.name} {facts.version} is older than 25, the first with CDI"
    if not facts.cdi_folders:
        return "CDI is switched off in the engine"
    listed = any(name.startswith(f"{CDI_KIND}=") for name in facts.devices)
    if _version(facts.api_version) >= _LISTS_DEVICES_API and not listed:
        return f"the engine finds no {CDI_KIND} in {', '.join(facts.cdi_folders)}"
    return ""


def choose_access(asked: GpuAccess, facts: EngineFacts, *, runtime: str = "") -> GpuAccess:
    """The way this engine is asked for a device.

    Args:
        asked: The host's setting; ``auto``: the nvidia runtime where the engine offers it, else CDI, else a request.
        facts: The engine.
        runtime: OCI runtime of the host's choice, which leaves no room for nvidia's.

    Raises:
        HostUnfit: The engine does not offer what was asked for. Whether it grants a device request shows only when
            one is made.
    """
    taken = runtime not in ("", NVIDIA_RUNTIME)
    has_runtime = NVIDIA_RUNTIME in facts.runtimes and not taken
    no_cdi = _cdi(facts)
    match asked:
        case GpuAccess.AUTO:
            if has_runtime:
                return GpuAccess.NVIDIA_RUNTIME
            return GpuAccess.DEVICE_REQUEST if no_cdi else GpuAccess.CDI
        case GpuAccess.NVIDIA_RUNTIME if not has_runtime:
            offered = f"runtime is {runtime!r}" if taken else f"the engine offers {', '.join(facts.runtimes) or 'none'}"
            raise HostUnfit(
                f"gpu_access is 'nvidia-runtime' and {offered}",
                where="settings: gpu_access",
                remedy="nvidia-ctk runtime configure --runtime=docker, then restart the engine; or gpu_access: auto",
            )
        case GpuAccess.CDI if no_cdi:
            raise HostUnfit(
                f"gpu_access is 'cdi' and {no_cdi}",
                where="settings: gpu_access",
                remedy=f"nvidia-ctk cdi generate --output={_SPEC}, switch CDI on in the engine; or gpu_access: auto",
            )
        case _:
            return asked


_SPEC = "/etc/cdi/nvidia.yaml"

_TOOLKITS = "NVIDIA_"
_METHODS_OWN = ("NVIDIA_TF32_OVERRIDE",)
"""Read by libraries in the container, not by the toolkit."""

_SWARM = "DOCKER_RESOURCE_"
"""Where a toolkit is set up for it, such a name stands above NVIDIA_VISIBLE_DEVICES."""

_LOADER = "LD_"
_LIBRARY_PATH = "LD_LIBRARY_PATH"
_ALSO_READ_AT_START = ("GLIBC_TUNABLES", "GCONV_PATH")
_LED_BY_THE_CALLER = ("/proc", "/dev", "/sys")


def environment(own: Mapping[str, str], uuids: tuple[str, ...], access: GpuAccess) -> dict[str, str]:
    """What is set so that nothing an image says reaches the toolkit, or the loader of the toolkit's programs.

    Args:
        own: What the image sets.
        uuids: The devices the job holds.
        access: How the engine is asked for them.
    """
    visible = grant(uuids, access).visible
    values = {name: "" for name in own if name.startswith(_TOOLKITS) and name not in _METHODS_OWN}
    values |= {name: visible for name in own if name.startswith(_SWARM)}
    values["NVIDIA_VISIBLE_DEVICES"] = visible
    if not uuids:
        return values
    values["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
    # A requirement that is not met would be refused by the toolkit, in the host's name.
    values["NVIDIA_DISABLE_REQUIRE"] = "true"
    if "CUDA_VISIBLE_DEVICES" in own:
        values["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(len(uuids))))
    # The toolkit's hooks run on the host with the container's environment (CVE-2025-23266).
    values |= {name: "" for name in own if name.startswith(_LOADER) or name in _ALSO_READ_AT_START}
    if _LIBRARY_PATH in own:
        values[_LIBRARY_PATH] = _harmless(own[_LIBRARY_PATH])
    return values


def _harmless(path: str) -> str:
    """The folders of a library path that mean the host's own to a program of the host."""
    kept = []
    for folder in path.replace(";", ":").split(":"):
        plain = plain_path(folder)
        led = any(plain == top or plain.startswith(f"{top}/") for top in _LED_BY_THE_CALLER)
        if folder.startswith("/") and "$" not in folder and not led:
            kept.append(plain)
    return ":".join(kept)
