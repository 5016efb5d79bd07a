"""Findings about CUDA: wanted by the image, against what the challenge gives and what the host's driver can. Pure.

Which driver a CUDA release needs at least is NVIDIA's own table (CUDA Compatibility, "Minor Version Compatibility"; for
releases before 11 the release notes, "CUDA Toolkit and Corresponding Driver Versions", Linux x86_64).
"""

import re
from dataclasses import dataclass

from runner.challenge import Challenge
from runner.engine import ImageFacts
from runner.preflight.contents import Contents, environment_of
from runner.preflight.findings import PreflightFinding, note, quoted, warns

Version = tuple[int, ...]

LEAST_DRIVERS: tuple[tuple[Version, str], ...] = (
    ((13, 0), "580"),
    ((12, 0), "525.60.13"),
    ((11, 1), "450.80.02"),
    ((11, 0), "450.36.06"),
    ((10, 2), "440.33"),
    ((10, 1), "418.39"),
    ((10, 0), "410.48"),
    ((9, 2), "396.26"),
    ((9, 1), "390.46"),
    ((9, 0), "384.81"),
    ((8, 0), "375.26"),
)
"""The first release of a row and those after it, up to the row above, need at least this driver; newest first."""

_VERSION = re.compile(r"(\d{1,2})(?:\.(\d{1,2}))?(?:\.\d{1,4})?")
_DRIVER = re.compile(r"\d{2,4}(?:\.\d{1,4}){0,3}")
_CONDITION = re.compile(r"(cuda|driver)(>=|<=|>|<|=)(\d{1,4}(?:\.\d{1,4}){0,2})")


@dataclass(frozen=True, kw_only=True)
class HostGpu:
    """A host's GPU driver.

    Attributes:
        driver: Its version, such as ``535.129.03``.
        cuda: The newest CUDA it knows, such as ``(12, 2)``.
    """

    driver: str
    cuda: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class WantedCuda:
    """That an image wants CUDA.

    Attributes:
        version: Major and minor of the newest version it names.
        text: As it is named, such as ``12.4.1``, or ``12`` where no more is told.
        source: Which of its parts names that one.
    """

    version: Version
    text: str
    source: str


def wanted_cuda(image: ImageFacts, contents: Contents) -> WantedCuda | None:
    """The CUDA an image was made for; None where nothing in it says so."""
    own = environment_of(image)
    named = (
        (own.get("CUDA_VERSION", ""), "ENV CUDA_VERSION"),
        (image.labels.get("com.nvidia.cuda.version", ""), "LABEL com.nvidia.cuda.version"),
        (contents.torch_cuda, "torch/version.py"),
        (contents.cuda_library, "a CUDA library"),
        (_least_required(own.get("NVIDIA_REQUIRE_CUDA", "")), "ENV NVIDIA_REQUIRE_CUDA"),
    )
    found = [
        WantedCuda(version=(int(parsed[1]), int(parsed[2] or 0)), text=text, source=source)
        for text, source in named
        if (parsed := _VERSION.fullmatch(text))
    ]
    return max(found, key=lambda wanted: wanted.version, default=None)


def of_cuda(image: ImageFacts, challenge: Challenge, contents: Contents, gpu: HostGpu | None) -> list[PreflightFinding]:
    """What an image's wish for CUDA meets.

    Args:
        image: What it says of itself.
        challenge: Says whether it is given a GPU.
        contents: What was read out of it.
        gpu: This host's driver; None: it has none, or it is unknown, and nothing is said of it.
    """
    wanted = wanted_cuda(image, contents)
    if not challenge.limits.gpus:
        return [_without_gpu(wanted)] if wanted else []
    if gpu is None:
        return []
    findings = [_required_by_toolkit(image, gpu), _of_driver(wanted, gpu) if wanted else None]
    return [finding for finding in findings if finding is not None]


def _without_gpu(wanted: WantedCuda) -> PreflightFinding:
    return note(
        f"the image is made for CUDA {wanted.text}, and this challenge gives no GPU",
        "see that the method runs on the processor: torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        wanted.source,
    )


def _of_driver(wanted: WantedCuda, gpu: HostGpu) -> PreflightFinding | None:
    driver = _numbers(gpu.driver) if _DRIVER.fullmatch(gpu.driver) else None
    least = next((least for first, least in LEAST_DRIVERS if wanted.version >= first), None)
    if driver is None or least is None:
        return None
    words = f"the image is made for CUDA {wanted.text}"
    if driver < _numbers(least):
        return warns(
            f"{words}, which needs driver {least} at least; this host has {gpu.driver}",
            f"organisers: install a newer driver; participants: build for CUDA {_show(gpu.cuda)} or older",
            wanted.source,
        )
    if wanted.version > gpu.cuda and wanted.version[0] == gpu.cuda[0]:
        return note(
            f"{words}, this host's driver knows CUDA {_show(gpu.cuda)}: what was compiled for it runs, code that is "
            "compiled at run time (PTX) may not",
            f"build for CUDA {_show(gpu.cuda)} to be sure",
            wanted.source,
        )
    return None


def _required_by_toolkit(image: ImageFacts, gpu: HostGpu) -> PreflightFinding | None:
    """NVIDIA's toolkit starts no container whose NVIDIA_REQUIRE_* does not hold."""
    own = environment_of(image)
    required = own.get("NVIDIA_REQUIRE_CUDA", "")
    if not required or own.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true"):
        return None
    if any(_may_hold(alternative, gpu) for alternative in required.split()):
        return None
    return warns(
        f"the image's NVIDIA_REQUIRE_CUDA does not hold on this host (driver {gpu.driver}, CUDA {_show(gpu.cuda)}), "
        "and NVIDIA's toolkit does not start such a container",
        "organisers: install a newer driver; participants: take a base image for an older CUDA",
        quoted(required),
    )


def _may_hold(alternative: str, gpu: HostGpu) -> bool:
    """Whether none of a group's conditions is known not to hold."""
    facts = {"cuda": gpu.cuda, "driver": _numbers(gpu.driver) if _DRIVER.fullmatch(gpu.driver) else None}
    return not any(_condition_holds(condition, facts) is False for condition in alternative.split(","))


def _condition_holds(condition: str, facts: dict[str, Version | None]) -> bool | None:
    parsed = _CONDITION.fullmatch(condition)
    here = facts[parsed[1]] if parsed else None
    if parsed is None or here is None:
        return None
    asked = _numbers(parsed[3])
    here = (*here, 0, 0)[: len(asked)]
    match parsed[2]:
        case ">=":
            return here >= asked
        case "<":
            return here < asked
        case ">":
            return here > asked
        case "<=":
            return here <= asked
        case _:
            return here == asked


def _least_required(required: str) -> str:
    """The CUDA version a ``NVIDIA_REQUIRE_CUDA`` asks for first, empty where it asks for none."""
    first = re.match(r"cuda>=(\d{1,2}\.\d{1,2})(?:\s|,|$)", required)
    return first[1] if first else ""


def _numbers(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def _show(version: Version) -> str:
    return ".".join(map(str, version))
