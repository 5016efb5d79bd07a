"""What is found of the programs an image starts."""

from typing import TYPE_CHECKING, Any

import pytest

from runner.engine import FileFacts, FileKind
from runner.engine.fake_files import file, folder, link
from runner.preflight import start_fault
from tests.unit.preflight.conftest import GLIBC, debian, elf

if TYPE_CHECKING:
    from tests.unit.preflight.conftest import Look

RUN: dict[str, Any] = {"entrypoint": ("/app/run",)}
COMPATIBLE: dict[str, Any] = {"challenge": {"policy": "compatible"}}
SH = b"#!/bin/sh\nexit 0\n"
WINDOWS = "the script's first line ends as lines do on Windows (CR LF), so that its interpreter is not found"
OTHER_USER = "and the container runs as a user of its own"
FROM_ENV = "the program that the script's first line asks env for is not along the PATH of the image"
MACHINE_999 = "the entry point is built for another processor (ELF machine 999), the challenge runs linux/amd64"
HIDDEN = "whose content in the image is hidden when it is run"
HIDDEN_BY_TMP = f"the entry point lies in a folder that is empty when it is run here, {HIDDEN}"
HIDDEN_BY_MOUNT = f"the entry point lies in a folder of the challenge's, {HIDDEN}"
PYTHON = ("python3", "/app/predict.py")


def put(**files: FileFacts) -> dict[str, FileFacts]:
    return debian(**{f"app/{name.replace('__', '/')}": facts for name, facts in files.items()})


@pytest.mark.parametrize(
    ("files", "image"),
    [
        (put(run=file(elf())), RUN),
        (put(run=file(elf(loader=GLIBC))), RUN),
        (put(run=file(elf(machine=3))), RUN),
        (put(run=file(elf(machine=183)[:40])), RUN),
        (put(run=file(SH)), RUN),
        (put(run=file(SH)), {"entrypoint": ("./run",)}),
        (put(run=file(SH)), {"entrypoint": ("../app/./run",)}),
        (put(run=file(SH)), {"entrypoint": ("run",), "environment": ("PATH=/usr/bin:.",)}),
        (put(run=link("real"), real=file(SH)), RUN),
        (put(run=link("/usr/../app/real"), real=file(SH)), RUN),
        (put(run=file(b"#!/usr/bin/env python3\n")), RUN),
        (put(run=file(b"#! /usr/bin/env -S python3 -u\nx")), RUN),
        (put(run=file(b"#!/usr/bin/env -S python3 -u\r\nx")), RUN),
        (put(run=file(b"#!/usr/bin/env -S 'strange name'\n")), RUN),
        (put(run=file(b"#!/usr/bin/env -i nothing\n")), RUN),
        (put(run=file(b"#!/app/inner\n"), inner=file(b"#!/bin/sh\n")), RUN),
        (put(run=file(b"#!" + b"/x" * 200)), RUN),
        (put(run=file(b"\x00\x01binary of a kind nobody knows")), RUN),
        (put(**{"predict.py": file(b"", mode=0o644)}), {"entrypoint": PYTHON}),
        (put(**{"predict.py": file(b"", mode=0o644)}), {"entrypoint": ("python3", "-u", "predict.py", "--no-such")}),
        (put(), {"entrypoint": ("python3", "-m", "package")}),
        (put(), {"entrypoint": ("python3", "-c", "print(1)")}),
        (put(), {"entrypoint": ("python3", "-X", "dev", "/not/looked/at.py")}),
        (put(package=folder()), {"entrypoint": ("python3", "/app/package")}),
        (put(), {"entrypoint": ("/bin/sh", "-c", 'python3 --version "$@"')}),
        (put(), {"entrypoint": ("/bin/sh", "-c", 'echo "$0" "$@"')}),
        (put(), {"entrypoint": ("/bin/sh", "-c")}),
        (put(python3=file(SH)), {"entrypoint": ("/app/python3", "/none.py")}),
        (put(), {"entrypoint": ("env",)}),
        (put(), {"entrypoint": ("env", "-i", "none")}),
        (put(), {"entrypoint": ("env", "A=1", "none")}),
        (put(**{"bin__go.sh": file(b"")}), {"entrypoint": ("sh", "go.sh"), "environment": ("PATH=/bin:/app/bin",)}),
        (put(), {"entrypoint": ("/bin/sh", "-c", "none | none2; exec none3 $1")}),
        (put(), {"entrypoint": ("/bin/sh", "-c", 'A=1 none "$@"')}),
        (put(), {"entrypoint": ("/bin/sh", "-lc", 'none "$@"')}),
        (debian(tini=file(elf())), {"entrypoint": ("/tini", "-g", "--", "python3", "-c", "1")}),
        (debian(tini=file(elf())), {"entrypoint": ("/tini", "-p", "SIGTERM", "--", "none")}),
        (put(), {"entrypoint": ("/proc/self/exe",)}),
        (put(), {"entrypoint": ("/data/inputs/run",)}),
        (put(), {"entrypoint": ("bad\ufffdname",)}),
        (put(), {"entrypoint": ("nvidia-smi",), "challenge": {"limits": {
            "run_time": {"fixed": 60}, "memory": "2 GiB", "shm": "64 MiB", "cpus": 2, "gpus": 1}}}),
        (put(run=file(SH, mode=0o700)), {**RUN, **COMPATIBLE}),
        (debian(root=folder(0o700), **{"root/run": file(SH)}), {"entrypoint": ("/root/run",), **COMPATIBLE}),
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_starts_or_cannot_be_told(
    look: "Look", files: dict[str, FileFacts], image: dict[str, Any]
) -> None:
    assert look.told(files, **image) == []


@pytest.mark.parametrize(
    ("files", "image", "sentence", "evidence"),
    [
        (put(), RUN, "the entry point is not in the image", "'/app/run'"),
        (put(), {"entrypoint": ("run",)}, "the entry point is not along the PATH of the image", "'run'"),
        (put(run=file(SH)), {"entrypoint": ("run",)}, "the entry point is not along the PATH of the image", "'run'"),
        (put(run=link("/none")), RUN, "the entry point is not in the image", "'/app/run'"),
        (put(run=link("run")), RUN, "the entry point is not in the image", "'/app/run'"),
        (put(run=file(SH)), {"entrypoint": ("/app/run/x",)}, "the entry point is not in the image", "'/app/run/x'"),
        (put(run=folder()), RUN, "the entry point is a folder", "'/app/run'"),
        (put(run=FileFacts(kind=FileKind.OTHER, mode=0o777)), RUN, "the entry point is not a file", "'/app/run'"),
        (put(run=file(SH, mode=0o644)), RUN, "the entry point is not executable", "'/app/run', 0o644"),
        (put(run=file(SH, mode=0o644)), {**RUN, **COMPATIBLE}, "the entry point is not executable",
         "'/app/run', 0o644"),
        (put(run=file(SH, mode=0o750)), RUN,
         f"the entry point is executable for its owner or group only, {OTHER_USER}", "'/app/run', 0o750"),
        (put(run=file(SH, mode=0o711)), RUN,
         f"the entry point is readable for its owner or group only, {OTHER_USER}", "'/app/run', 0o711"),
        (debian(root=folder(0o700), **{"root/run": file(SH)}), {"entrypoint": ("/root/run",)},
         f"the entry point lies in a folder that only its owner and group may enter, {OTHER_USER}",
         "'/root/run', '/root'"),
        ({"/": folder(0o700), "/run": file(elf())}, {"entrypoint": ("/run",), "working_dir": ""},
         f"the entry point lies in a folder that only its owner and group may enter, {OTHER_USER}", "'/run', '/'"),
        (put(run=file(b"#!/bin/sh\r\nexit 0\r\n")), RUN, WINDOWS, "'/bin/sh␍'"),
        (put(run=file(b"#!/bin/sh -e\r\n")), RUN, WINDOWS, "'/bin/sh -e␍'"),
        (put(run=file(b"#!/usr/bin/env python3\r\n")), RUN, WINDOWS, "'python3␍'"),
        (put(run=file(b"#!/usr/bin/env python3 -u\n")), RUN, f"{FROM_ENV}: env takes the whole line for one name",
         "'python3 -u'"),
        (put(run=file(b"#!/usr/bin/env python9\n")), RUN, FROM_ENV, "'python9'"),
        (put(run=file(b"#!/usr/bin/env -S A=1 python9 -u\n")), RUN, FROM_ENV, "'python9'"),
        (put(run=file(b"#!/opt/none/python\n")), RUN,
         "the interpreter that the script's first line names is not in the image", "'/opt/none/python'"),
        (put(run=file(b"#!/none\n", mode=0o700)), {**RUN, **COMPATIBLE},
         "the interpreter that the script's first line names is not in the image", "'/none'"),
        (put(run=file(b"#!/app/inner\n"), inner=file(b"#!/none\n")), RUN,
         "the interpreter that the script's first line names is not in the image", "'/none'"),
        (put(run=file(elf(machine=183))), RUN, "the entry point is built for arm64, the challenge runs linux/amd64",
         "'/app/run'"),
        (put(run=file(elf(machine=999))), RUN, MACHINE_999, "'/app/run'"),
        (put(run=file(b"MZ" + bytes(58) + b"\x40\0\0\0PE\0\0")), RUN, "the entry point is a program for Windows",
         "'/app/run'"),
        (put(run=file(b"\xcf\xfa\xed\xfe" + bytes(60))), RUN, "the entry point is a program for macOS", "'/app/run'"),
        (put(run=file(elf(loader="/lib/ld-musl-x86_64.so.1"))), RUN,
         "the dynamic loader of the entry point is not in the image: it was built on Alpine (musl)",
         "'/lib/ld-musl-x86_64.so.1'"),
        ({"/app/run": file(elf(loader=GLIBC))}, RUN,
         "the dynamic loader of the entry point is not in the image: it was built for glibc", f"'{GLIBC}'"),
        ({"/app/run": file(elf(loader="/nix/ld.so"))}, RUN,
         "the dynamic loader of the entry point is not in the image", "'/nix/ld.so'"),
        (put(), {"entrypoint": PYTHON}, "the script that the entry point is to run is not in the image",
         "'/app/predict.py'"),
        (put(), {"entrypoint": ("python3", "-uB", "predict.py")},
         "the script that the entry point is to run is not in the image", "'/app/predict.py'"),
        (put(), {"entrypoint": ("/bin/sh", "predict.sh")},
         "the script that the entry point is to run is not in the image", "'/app/predict.sh'"),
        (put(**{"predict.py": file(b"", mode=0o640)}), {"entrypoint": PYTHON},
         f"the script that the entry point is to run is readable for its owner or group only, {OTHER_USER}",
         "'/app/predict.py', 0o640"),
        ({"/app/x": file()}, {"entrypoint": ("/bin/sh", "-c", 'x "$@"')}, "the entry point is not in the image",
         "'/bin/sh'"),
        (debian(tini=file(elf())), {"entrypoint": ("/tini", "--", "/app/run")},
         "the program that the entry point is to start is not in the image", "'/app/run'"),
        (put(), {"entrypoint": ("env", "/app/run")},
         "the program that the entry point is to start is not in the image", "'/app/run'"),
        (debian(**{"tmp/run": file(elf())}), {"entrypoint": ("/tmp/run",)}, HIDDEN_BY_TMP, "'/tmp/run'"),
        (debian(**{"data/inputs/run": file(elf())}), {"entrypoint": ("/data/inputs/run",)}, HIDDEN_BY_MOUNT,
         "'/data/inputs/run'"),
        (debian(**{"tmp/venv/python": link("/usr/bin/python3")}), {"entrypoint": ("/tmp/venv/python",)}, HIDDEN_BY_TMP,
         "'/tmp/venv/python'"),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_cannot_start_is_refused_with_its_reason(
    look: "Look", files: dict[str, FileFacts], image: dict[str, Any], sentence: str, evidence: str
) -> None:
    assert look.told(files, **image) == [("refuses", sentence, evidence)]


def test_entry_point_in_a_volume_is_hidden(look: "Look") -> None:
    told = look.told(put(run=file(SH)), entrypoint=("/app/run",), volumes=("/app/",))
    assert told[0] == (
        "refuses",
        "the entry point lies in a VOLUME, whose content in the image is hidden when it is run",
        "'/app/run'",
    )


def test_only_the_first_fault_of_the_row_is_told(look: "Look") -> None:
    script = file(b"#!/none\n", mode=0o640)
    assert [found[1] for found in look.told(put(run=script), entrypoint=("/app/run",))] == [
        "the entry point is not executable"
    ]


def test_program_that_may_not_be_executed_is_passed_over_in_the_search(look: "Look") -> None:
    files = put(run=file(SH, mode=0o654), more__run=file(SH))
    own = {"entrypoint": ("run",), "environment": ("PATH=/app:/app/more",)}
    assert look.told(files, **own) == []
    assert look.told(put(run=file(SH, mode=0o600)), **own)[0][1] == "the entry point is not executable"


def test_script_without_a_first_line_is_run_by_the_shell_or_by_nobody(look: "Look") -> None:
    told = look.told(put(run=file(b"echo 1\n")), **RUN)
    sentence = "the entry point is a script without a first line that names its interpreter"
    assert told == [("note", f"{sentence}: /bin/sh runs it here, other engines refuse it", "'/app/run'")]
    (finding,) = [f for f in look.findings({"/app/run": file(b"echo 1\n")}, **RUN) if f.severity.value == "warns"]
    assert finding.sentence.endswith("names its interpreter, and there is no /bin/sh")
    assert finding.stops_start


def test_shell_command_whose_program_is_missing_warns_and_explains_a_127(look: "Look") -> None:
    findings = look.findings(put(), entrypoint=("/bin/bash", "-c", 'exec none --fast "$0" "$@"'))
    assert findings[0].sentence == "the entry point is not in the image"  # no bash here
    findings = look.findings(put(), entrypoint=("/bin/sh", "-c", 'exec none --fast "$0" "$@"'))
    assert (findings[0].severity.value, findings[0].evidence) == ("warns", "'none'")
    sentence = "the first program of the entry point's shell command is not along the PATH of the image"
    assert start_fault(findings) == sentence
    assert start_fault(look.findings(put(), entrypoint=("/app/none",))) == ""


def test_script_that_a_shell_command_runs_is_looked_for(look: "Look") -> None:
    told = look.told(put(), entrypoint=("/bin/sh", "-c", 'python3 predict.py "$@"'))
    assert told == [("refuses", "the script that the entry point is to run is not in the image", "'/app/predict.py'")]


def test_command_counts_only_where_the_challenge_has_no_arguments(look: "Look") -> None:
    own = {"entrypoint": ("python3",), "command": ("/app/none.py",)}
    assert look.told(put(), **own) == []
    alone = {"challenge": {"invocation": {"args": ()}}, **own}
    assert look.told(put(), **alone)[0][1] == "the script that the entry point is to run is not in the image"


def test_evidence_of_a_strangers_name_is_one_visible_line(look: "Look") -> None:
    name = "/app/\x1b[2Jrun\n\u202e" + "x" * 300
    ((_, sentence, evidence),) = look.told(put(), entrypoint=(name,))
    assert sentence == "the entry point is not in the image"
    assert evidence.startswith("'/app/␛[2Jrun␊⟨U+202E⟩xxx")
    assert evidence.endswith("…'")
    assert len(evidence) == 122


def test_interpreters_of_interpreters_are_followed_as_far_as_linux_does(look: "Look") -> None:
    def chain(length: int) -> dict[str, FileFacts]:
        return put(**{f"s{number}": file(f"#!/app/s{number + 1}\n".encode()) for number in range(length)})

    for length, told in ((1, 1), (4, 1), (5, 0)):
        assert len(look.told(chain(length), entrypoint=("/app/s0",))) == told


def test_what_the_gpu_brings_is_missing_only_where_there_is_none(look: "Look") -> None:
    gpu = {"run_time": {"fixed": 60}, "memory": "2 GiB", "shm": "64 MiB", "cpus": 2, "gpus": 1}
    for entry, limits, told in (
        ("nvidia-smi", gpu, 0),
        ("run-nvidia-smi", gpu, 1),
        ("nvidia-smi", {**gpu, "gpus": 0}, 1),
    ):
        assert len(look.told(put(), entrypoint=(entry,), challenge={"limits": limits})) == told


def test_nothing_to_start_is_not_followed(look: "Look") -> None:
    alone = {"invocation": {"args": ()}}
    assert look.contents(put(), entrypoint=(), command=(), challenge=alone).programs == ()
    assert look.contents(put(), entrypoint=(), command=("python3",)).programs == ()
    named = {"invocation": {"args": ("python3", "{input}")}}
    assert look.contents(put(), entrypoint=(), command=("x",), challenge=named).programs[0].word == "python3"
