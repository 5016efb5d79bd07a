"""What is said of an image before it is run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runner.challenge import Challenge
from runner.engine import ImageFacts
from runner.preflight import PreflightFinding, Severity, preflight

GOOD = ImageFacts(id="sha256:1", entrypoint=("run",), working_dir="/app")
SYSTEM_WORKDIR = ("refuses", "the image's WORKDIR lies in a system folder")
SYSTEM_VOLUME = ("refuses", "the image declares a VOLUME on a system folder")
SMALL_VOLUME = ("note", "the image declares a VOLUME, which is empty and at most 16 MiB when it is run here")
NOTHING_TO_START = ("refuses", "the image has neither ENTRYPOINT nor CMD")
NO_HEALTHCHECK = ("note", "the image's HEALTHCHECK is not run")


def built_for(platform: str) -> str:
    return f"the image is built for {platform}, the challenge runs linux/amd64"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"entrypoint": (), "command": ("run",)}, []),
        ({"user": "root", "environment": ("NVIDIA_VISIBLE_DEVICES=all",), "labels": {"a": "b"}, "size": 1 << 40}, []),
        ({"entrypoint": ()}, [NOTHING_TO_START]),
        ({"architecture": "arm64"}, [("refuses", built_for("linux/arm64"))]),
        ({"os": "windows"}, [("refuses", built_for("windows/amd64"))]),
        ({"working_dir": ""}, []),
        ({"working_dir": "/process"}, []),
        ({"working_dir": "/proc"}, [SYSTEM_WORKDIR]),
        ({"working_dir": "/proc/self/fd/7"}, [SYSTEM_WORKDIR]),
        ({"working_dir": "/app/../proc/self/fd/7"}, [SYSTEM_WORKDIR]),
        ({"working_dir": "//proc/self/fd/7"}, [SYSTEM_WORKDIR]),
        ({"working_dir": "proc/self/fd/7"}, [SYSTEM_WORKDIR]),
        ({"working_dir": "/sys/fs"}, [SYSTEM_WORKDIR]),
        ({"working_dir": "/dev/shm"}, [SYSTEM_WORKDIR]),
        ({"volumes": ("/data/inputs", "/data/outputs", "/data/outputs/")}, []),
        ({"volumes": ("/cache",)}, [SMALL_VOLUME]),
        ({"volumes": ("/",)}, [SYSTEM_VOLUME]),
        ({"volumes": ("/..",)}, [SYSTEM_VOLUME]),
        ({"volumes": ("/dev/shm/",)}, [SYSTEM_VOLUME]),
        ({"volumes": ("/x/../proc",)}, [SYSTEM_VOLUME]),
        ({"healthcheck": True}, [NO_HEALTHCHECK]),
        ({"healthcheck": True, "volumes": ("/cache", "/proc"), "entrypoint": ()},
         [NOTHING_TO_START, SYSTEM_VOLUME, SMALL_VOLUME, NO_HEALTHCHECK]),
    ],
    ids=str,
)  # fmt: skip
def test_the_findings_those_that_refuse_first(
    make_challenge: Callable[..., Challenge], changes: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    findings = preflight(replace(GOOD, **changes), make_challenge())
    assert [(finding.severity.value, finding.sentence) for finding in findings] == found
    assert all(finding.remedy for finding in findings)


def test_the_platform_is_the_challenges_whatever_this_machine_is(make_challenge: Callable[..., Challenge]) -> None:
    challenge = make_challenge(platform="linux/arm64")
    assert preflight(replace(GOOD, architecture="arm64"), challenge) == ()
    assert preflight(GOOD, challenge) == (
        PreflightFinding(
            severity=Severity.REFUSES,
            sentence="the image is built for linux/amd64, the challenge runs linux/arm64",
            remedy="build it with: docker build --platform linux/arm64",
        ),
    )


def test_mounts_are_the_challenges(make_challenge: Callable[..., Challenge]) -> None:
    challenge = make_challenge(invocation={"input_mount": "/in/", "output_mount": "/out"})
    assert preflight(replace(GOOD, volumes=("/in", "/out")), challenge) == ()
    assert [f.sentence for f in preflight(replace(GOOD, volumes=("/data/inputs",)), challenge)] == [SMALL_VOLUME[1]]
