"""What is found in what an image says of itself, and at the places where the challenge mounts its folders."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from runner.challenge import Challenge
from runner.engine import FileFacts, ImageFacts
from runner.engine.fake_files import file, folder, link
from runner.preflight import Contents, Host, PreflightFinding, Severity, preflight
from tests.unit.preflight.conftest import debian

if TYPE_CHECKING:
    from tests.unit.preflight.conftest import Look

GOOD = ImageFacts(id="sha256:1", entrypoint=("run",), working_dir="/app", user="app")
SYSTEM_WORKDIR = ("refuses", "the image's WORKDIR lies in a system folder")
SYSTEM_VOLUME = ("refuses", "the image declares a VOLUME on a system folder")
SMALL_VOLUME = ("note", "the image declares a VOLUME, which is empty and at most 16 MiB when it is run here")
NOTHING_TO_START = ("refuses", "the image has neither ENTRYPOINT nor CMD")
ONLY_CMD = ("refuses", "the image has a CMD and no ENTRYPOINT, and the challenge's arguments take the place of CMD")
NO_HEALTHCHECK = ("note", "the image's HEALTHCHECK is not run")
OWN_USER = ("note", "the container runs as a user of its own, not as the image's USER")
NOT_ROOT = ("note", "the container runs as a user of its own, not as root")
DEAF = ("warns", "the ENTRYPOINT is a shell command, which passes the challenge's arguments on to nothing")
SHELL = ("/bin/sh", "-c", "python3 predict.py")


def built_for(platform: str) -> str:
    return f"the image is built for {platform}, the challenge runs linux/amd64"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, [OWN_USER]),
        ({"user": "1000:1000"}, [OWN_USER]),
        ({"user": ""}, [NOT_ROOT]),
        ({"user": "root:staff"}, [NOT_ROOT]),
        ({"user": "0"}, [NOT_ROOT]),
        ({"labels": {"a": "b"}, "size": 1 << 40}, [OWN_USER]),
        ({"entrypoint": ()}, [NOTHING_TO_START, OWN_USER]),
        ({"entrypoint": (), "command": ("run",)}, [ONLY_CMD, OWN_USER]),
        ({"entrypoint": SHELL}, [DEAF, OWN_USER]),
        ({"entrypoint": (*SHELL, "name")}, [OWN_USER]),
        ({"entrypoint": ("/bin/sh", "-c", 'python3 predict.py "$@"')}, [OWN_USER]),
        ({"architecture": "arm64"}, [("refuses", built_for("linux/arm64")), OWN_USER]),
        ({"os": "windows"}, [("refuses", built_for("windows/amd64")), OWN_USER]),
        ({"architecture": "<b>"}, [("refuses", built_for("another platform")), OWN_USER]),
        ({"working_dir": ""}, [OWN_USER]),
        ({"working_dir": "/process"}, [OWN_USER]),
        ({"working_dir": "/proc"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"working_dir": "/proc/self/fd/7"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"working_dir": "/app/../proc/self/fd/7"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"working_dir": "//proc/self/fd/7"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"working_dir": "proc/self/fd/7"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"working_dir": "/sys/fs"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"working_dir": "/dev/shm"}, [SYSTEM_WORKDIR, OWN_USER]),
        ({"volumes": ("/data/inputs", "/data/outputs", "/data/outputs/")}, [OWN_USER]),
        ({"volumes": ("/cache",)}, [SMALL_VOLUME, OWN_USER]),
        ({"volumes": ("/",)}, [SYSTEM_VOLUME, OWN_USER]),
        ({"volumes": ("/..",)}, [SYSTEM_VOLUME, OWN_USER]),
        ({"volumes": ("/dev/shm/",)}, [SYSTEM_VOLUME, OWN_USER]),
        ({"volumes": ("/x/../proc",)}, [SYSTEM_VOLUME, OWN_USER]),
        ({"healthcheck": True}, [NO_HEALTHCHECK, OWN_USER]),
        ({"healthcheck": True, "volumes": ("/cache", "/proc"), "entrypoint": SHELL},
         [SYSTEM_VOLUME, DEAF, SMALL_VOLUME, NO_HEALTHCHECK, OWN_USER]),
    ],
    ids=str,
)  # fmt: skip
def test_the_findings_the_worst_first(
    make_challenge: Callable[..., Challenge], changes: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    findings = preflight(replace(GOOD, **changes), make_challenge())
    assert [(finding.severity.value, finding.sentence) for finding in findings] == found
    assert all(finding.remedy for finding in findings)


def test_the_platform_is_the_challenges_whatever_this_machine_is(make_challenge: Callable[..., Challenge]) -> None:
    challenge = make_challenge(platform="linux/arm64", policy="compatible")
    assert preflight(replace(GOOD, architecture="arm64"), challenge, host=Host(architecture="aarch64")) == ()
    assert preflight(GOOD, challenge, host=Host(architecture="x86_64")) == (
        PreflightFinding(
            severity=Severity.REFUSES,
            sentence="the image is built for linux/amd64, the challenge runs linux/arm64",
            remedy="build it with: docker build --platform linux/arm64",
        ),
    )


@pytest.mark.parametrize(
    ("engine", "warned"), [("x86_64", False), ("", False), ("riscv64", False), ("aarch64", True), ("arm64", True)]
)
def test_emulation_is_said_to_make_run_times_meaningless(
    make_challenge: Callable[..., Challenge], engine: str, warned: bool
) -> None:
    findings = preflight(GOOD, make_challenge(policy="compatible"), host=Host(architecture=engine))
    told = [(finding.severity.value, finding.sentence) for finding in findings]
    sentence = "this engine runs on arm64, so linux/amd64 is emulated here and run times mean nothing"
    assert told == ([("warns", sentence)] if warned else [])


def test_an_unknown_platform_is_quoted_as_evidence_only(make_challenge: Callable[..., Challenge]) -> None:
    finding = preflight(replace(GOOD, architecture="\x1b]0;x"), make_challenge())[0]
    assert (finding.sentence, finding.evidence) == (built_for("another platform"), "'linux/␛]0;x'")
    assert finding.full == f"{built_for('another platform')}: 'linux/␛]0;x'"


@pytest.mark.parametrize(("size", "refused"), [(1 << 30, False), ((1 << 30) + 1, True)])
def test_size_against_the_hosts_limit(make_challenge: Callable[..., Challenge], size: int, refused: bool) -> None:
    findings = preflight(replace(GOOD, size=size), make_challenge(), host=Host(largest_image=1 << 30))
    assert ("refuses" in [finding.severity.value for finding in findings]) is refused


def test_mounts_are_the_challenges(make_challenge: Callable[..., Challenge]) -> None:
    challenge = make_challenge(invocation={"input_mount": "/in/", "output_mount": "/out"}, policy="compatible")
    own = replace(GOOD, volumes=("/in", "/out"))
    assert preflight(own, challenge) == ()
    assert [f.sentence for f in preflight(replace(GOOD, volumes=("/data/inputs",)), challenge)] == [SMALL_VOLUME[1]]


CLOSED = (
    "the image's WORKDIR is closed to all but its owner and group, and the container runs as another user: relative "
    "paths lead nowhere"
)


@pytest.mark.parametrize(
    ("files", "working_dir", "found"),
    [
        ({}, "/none", []),
        ({"app": folder()}, "/app", []),
        ({"app": folder(0o711)}, "/app", []),
        ({"app": folder(0o700)}, "/app", [("warns", CLOSED, "'/app'")]),
        ({"root": folder(0o700), "root/app": folder()}, "/root/app", [("warns", CLOSED, "'/root'")]),
        ({"app": link("/opt"), "opt": folder(0o750)}, "/app", [("warns", CLOSED, "'/opt'")]),
        ({"app": file()}, "/app", [("refuses", "the image's WORKDIR is not a folder", "'/app'")]),
        ({"app": file()}, "/app/x", [("refuses", "the image's WORKDIR is not a folder", "'/app/x'")]),
        ({"app": link("/proc")}, "/app",
         [("refuses", "the image's WORKDIR leads into a system folder", "")]),
    ],
)  # fmt: skip
def test_working_dir(
    look: "Look", files: dict[str, FileFacts], working_dir: str, found: list[tuple[str, str, str]]
) -> None:
    assert look.told(debian(**files), working_dir=working_dir, entrypoint=("python3",)) == found


def test_closed_working_dir_is_open_to_the_images_own_user(look: "Look") -> None:
    files = debian(app=folder(0o700))
    assert look.told(files, entrypoint=("python3",), challenge={"policy": "compatible"}) == []


NOT_A_FOLDER = "the image has something else than a folder where the challenge mounts its"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"data/inputs": folder(), "data/outputs/kept": file()}, []),
        ({"data/inputs": file()}, [("refuses", f"{NOT_A_FOLDER} input folder, /data/inputs", "'/data/inputs'")]),
        ({"data": file()}, [
            ("refuses", f"{NOT_A_FOLDER} input folder, /data/inputs", "'/data'"),
            ("refuses", f"{NOT_A_FOLDER} output folder, /data/outputs", "'/data'"),
        ]),
        ({"data/outputs": link("/opt"), "opt": folder()},
         [("note", "the image has a link at /data/outputs: the output folder is mounted where it leads", "'/opt'")]),
        ({"data/outputs": link("/proc/1/root")},
         [("refuses", "the image has a link into /proc where the challenge mounts its output folder", "")]),
    ],
)  # fmt: skip
def test_what_lies_where_a_folder_is_mounted(
    look: "Look", files: dict[str, FileFacts], found: list[tuple[str, str, str]]
) -> None:
    assert look.told(debian(**files), entrypoint=("python3",)) == found


def test_mount_that_a_link_leads_over_the_programs_hides_them(look: "Look") -> None:
    told = look.told(debian(**{"data/inputs": link("/usr/bin")}), entrypoint=("python3",))
    assert told[0][1] == (
        "the entry point lies in a folder of the challenge's, whose content in the image is hidden when it is run"
    )


def test_image_that_could_not_be_looked_at_is_said_to_be(make_challenge: Callable[..., Challenge]) -> None:
    (finding,) = preflight(GOOD, make_challenge(policy="compatible"), Contents(unread="no \x1b way"))
    assert (finding.severity.value, finding.full) == ("note", "the image's files could not be looked at: 'no ␛ way'")
