"""Asks a container of ours what it can see and do on this host.

A probe is an ordinary job under the ordinary policy, with our helper image in the participant's place: what holds for
it holds for them.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from runner.budget import Budget
from runner.dataset import frames_case
from runner.engine import ImageFacts
from runner.errors import HostUnfit
from runner.execute import Bench, run_job
from runner.inputs import CaseView
from runner.job import IntakeRefusal, Job, JobResult, KillReason, Output
from runner.seccomp import DOORS
from runner.workspace import neutral_name

PROBE_BUDGET = Budget(
    run_time=30.0, memory=256 << 20, shm=16 << 20, cpus=1.0, gpus=0, pids=64, output_bytes=8 << 20, output_files=64,
    tmp=16 << 20, open_files=1024, log_bytes=64 << 10,
)  # fmt: skip

_OTHER_RUNTIMES_PIDS = 512
"""A runtime that is a kernel of its own, as runsc is, counts its threads too: with 64 it ends with exit code 2."""

_MARKER = "marker.txt"
_SIGHT = """
import json, os, sys
folder, output = sys.argv[1], sys.argv[2]
size = os.statvfs(os.path.dirname(output))
try:
    marker = open(os.path.join(folder, "marker.txt")).read()
except OSError as error:
    marker = ""
with open(output + ".json", "w") as sink:
    json.dump({"marker": marker, "output_bytes": size.f_blocks * size.f_frsize}, sink)
"""


@dataclass(frozen=True, kw_only=True)
class ProbeAnswer:
    """What came of a probe.

    Attributes:
        result: The facts of the run.
        answer: What the script wrote; None where its file could not be taken.
        log: The end of its log.
    """

    result: JobResult
    answer: JsonValue | None
    log: str


def ask(
    bench: Bench, helper: ImageFacts, script: str, *, scratch: Path, budget: Budget = PROBE_BUDGET, marker: str = "x"
) -> ProbeAnswer:
    """Run a Python script in our helper image, under the policy participants get.

    Args:
        bench: What this host gives.
        helper: Our helper image.
        script: Is given the input folder and the output path without ending; may write ``<output>.json``.
        scratch: A folder for the probe's own files.
        budget: What it may use.
        marker: Text of the one file of its input.
    """
    if bench.policy.runtime:
        budget = replace(budget, pids=max(budget.pids, _OTHER_RUNTIMES_PIDS))
    inputs = scratch / neutral_name()
    inputs.mkdir(parents=True)
    (inputs / _MARKER).write_text(marker, encoding="ascii")
    case = frames_case("probe", inputs, (_MARKER,), fps=1.0, references={})
    job = Job(
        submission="probe", task="probe", case="probe", name="full", frames=1, image_id=helper.id,
        arguments=("python3", "-c", script, "{input}", "{output}"), input_mount="/data/inputs",
        output_mount="/data/outputs", outputs=(Output(case="probe", file="{case}.json"),), budget=budget, digest="",
    )  # fmt: skip
    folder = scratch / neutral_name()
    folder.mkdir()
    result = run_job(bench, job, {"probe": CaseView(case=case)}, image=helper, attempt=1, folder=folder)
    log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace") if (folder / "log.txt").exists() else ""
    answer: JsonValue | None = None
    if result.intake is not None and result.intake.refusal is None:
        answer = json.loads((folder / "predictions" / "prediction.json").read_bytes())
    return ProbeAnswer(result=result, answer=answer, log=log)


def sees_our_folders(bench: Bench, helper: ImageFacts, *, scratch: Path) -> bool:
    """True where a container sees what we lay out and we see what it writes, in an output of the size we gave.

    An output that is only watched has no size of its own; for that ask ``flood_stopped_at``.

    Raises:
        HostUnfit: It does not even see its input, so no way of output can help.
    """
    marker = neutral_name()
    found = ask(bench, helper, _SIGHT, scratch=scratch, marker=marker)
    seen = found.answer if isinstance(found.answer, dict) else {}
    if found.result.exit is None or found.result.exit.code != 0:
        raise HostUnfit(
            f"a container of ours did not run: {found.result.refusal or found.log.strip() or found.result.exit}",
            remedy="see: proctor doctor",
        )
    if found.result.intake is not None and found.result.intake.refusal is IntakeRefusal.MISSING:
        return False
    if seen.get("marker") != marker:
        raise HostUnfit(
            "the engine does not see this process's files, so no data can be mounted",
            where=str(bench.workspace.folder),
            remedy="name a folder that both see with workspace: in the settings, or PROCTOR_WORKSPACE",
        )
    size = seen.get("output_bytes")
    return bench.watched or (isinstance(size, int) and size <= PROBE_BUDGET.output_bytes)


_FLOOD = """
import sys, time
for number in range(64):
    with open(f"{sys.argv[2]}-{number}", "wb") as sink:
        for _ in range(8):
            sink.write(b"x" * (1 << 20))
time.sleep(5)
"""
"""Writes 512 MiB, in files that are each as large as the whole output may be, and waits to be stopped."""


def flood_stopped_at(bench: Bench, helper: ImageFacts, *, scratch: Path) -> int | None:
    """Bytes found of a container that wrote as fast as it could, to an output that is watched; None: not stopped."""
    budget = replace(PROBE_BUDGET, output_files=256)
    result = ask(bench, helper, _FLOOD, scratch=scratch, budget=budget).result
    if result.killed is not KillReason.OUTPUT or result.overshoot is None:
        return None
    return result.overshoot.bytes


def open_doors(bench: Bench, helper: ImageFacts, *, scratch: Path) -> tuple[str, ...]:
    """Which ways past the engine's own seccomp profile a container finds open."""
    found = ask(bench, helper, DOORS, scratch=scratch)
    answers = found.answer if isinstance(found.answer, dict) else {}
    if answers.keys() != {"vsock", "io_uring"}:
        raise HostUnfit(f"a probe did not answer: {found.log.strip()[-200:]}", remedy="see: proctor doctor")
    return tuple(name for name, is_open in answers.items() if is_open)


def by_volume(bench: Bench, helper: ImageFacts) -> Bench:
    """The same bench with outputs in volumes held by our helper."""
    return replace(bench, helper=helper.id)


def by_watching(bench: Bench) -> Bench:
    """The same bench with outputs in plain folders that are watched."""
    return replace(bench, helper="", watched=True)
