"""What a run by proctor costs above bare create, start, wait and remove of the same container.

Both take turns, one run each, so that the machine's moods hit both. The runner's side is a whole case: view laid out,
output made and mounted, container, log, intake, reading in a confined child, verdict, files of the run written.
The floor is the Docker SDK's low-level client with the same options and folders that are there already.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from runner import execute, mounts, outputs
from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.confine import Confine
from runner.dataset import Case, frames_case
from runner.engine.docker import DockerEngine, connect
from runner.engine.helper import HELPER_REFERENCE
from runner.images import PinnedImage, SourceKind
from runner.pipeline import attempts, cases
from runner.pipeline.context import Context, Entry
from runner.pipeline.host import open_bench
from runner.plan import shared_runs
from runner.provenance import DataHashes
from runner.sandbox import Seat, container_spec
from runner.settings import load_settings
from runner.store import RunFolder
from runner.submissions import Submission

P = ParamSpec("P")
R = TypeVar("R")

_PROGRAM = 'printf "int_time,int_step\\n0,1\\n1,1\\n" > "$0.csv"'


class Stages:
    """Seconds spent in named stages of the runner, a list a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def timed(self, name: str, function: Callable[P, R]) -> Callable[P, R]:
        """The function, its time added to a stage."""

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name].append(time.perf_counter() - began)

        return run

    def shares(self, total: float, runs: int) -> dict[str, dict[str, float]]:
        """Milliseconds a run and the share of the whole, by stage."""
        each = {name: sum(found) / runs for name, found in self.seconds.items()}
        return {name: {"ms": round(value * 1e3, 2), "share": round(value / total, 4)} for name, value in each.items()}


@contextlib.contextmanager
def _challenge(folder: Path) -> Iterator[tuple[LoadedChallenge, Case]]:
    loaded = load_challenge(find_challenge("pitvis2023"))
    invocation = loaded.challenge.invocation.model_copy(update={"args": ("sh", "-c", _PROGRAM, "{output}")})
    limits = loaded.challenge.limits.model_copy(update={"gpus": 0})
    challenge = loaded.challenge.model_copy(update={"invocation": invocation, "limits": limits})
    frames = folder / "frames"
    frames.mkdir()
    for name in ("00000.png", "00001.png"):
        (frames / name).write_bytes(os.urandom(2048))
    reference = folder / "reference.csv"
    reference.write_text("int_time,int_step\n0,1\n1,1\n")
    case = frames_case("a", frames, ("00000.png", "00001.png"), fps=0.01, references={"steps": reference})
    yield replace(loaded, challenge=challenge), case


_TIMED = (
    (execute, "lay_out", "lay out the view"),
    (execute, "follow", "follow (engine's own time to end included)"),
    (execute, "_keep_log", "keep the log"),
    (mounts, "mount_new", "make and mount the output"),
    (mounts, "unmount", "unmount the output"),
    (outputs, "take_file", "take the file out"),
    (attempts, "read_output", "read in a confined child"),
    (attempts, "write_value", "write files"),
    (cases, "write_value", "write files"),
)
_ENGINE = ("create", "start", "await_exit", "inspect", "logs", "remove")


def _instrument(stages: Stages, engine: DockerEngine) -> None:
    owners: list[tuple[object, str, str]] = [*_TIMED, *((engine, name, f"engine {name}") for name in _ENGINE)]
    for owner, attribute, name in owners:
        setattr(owner, attribute, stages.timed(name, getattr(owner, attribute)))


def _bare(engine: DockerEngine, context: Context, entry: Entry, case: Case, folder: Path) -> Callable[[], float]:
    """The floor: the same container in folders that are there already."""
    import docker  # noqa: PLC0415

    client = docker.APIClient(version="auto", timeout=60)
    view, output = folder / "view", folder / "output"
    (view / "name").mkdir(parents=True)
    output.mkdir()
    output.chmod(0o777)
    job = attempts.job_of(context, entry, case)

    def once() -> float:
        seat = Seat(
            name=f"proctor-bare-{time.monotonic_ns()}", labels=context.bench.labels, uid=200_000, gid=200_000,
            view=view, input_name="name", output=output,
        )  # fmt: skip
        spec = container_spec(policy=context.bench.policy, job=job, image=entry.image.facts, seat=seat)
        began = time.perf_counter()
        container = engine.create(spec)
        client.start(container)
        client.wait(container, timeout=60)
        client.remove_container(container, v=True, force=True)
        return time.perf_counter() - began

    return once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Overhead:
    """Medians in seconds, their ratio, and the runner's time by stage; stages hold one another."""

    runs: int
    runner_median_s: float
    bare_median_s: float
    ratio: float
    output: str
    stages: Mapping[str, Mapping[str, float]]


def measure(runs: int) -> Overhead:
    """Take turns, ``runs`` times each."""
    engine = connect(None)
    floor_engine = connect(None)
    settings = load_settings(None, {}).settings
    stages = Stages()
    ours: list[float] = []
    floor: list[float] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        loaded, case = stack.enter_context(_challenge(folder))
        bench, host = stack.enter_context(open_bench(engine, settings, stop=threading.Event(), observe=lambda _: None))
        context = Context(
            run=RunFolder(root=folder / "run"), loaded=loaded, cases={"a": case}, input_hashes={"a": "0" * 64},
            settings=settings, seed=0, bench=bench, host=host, confine=stack.enter_context(Confine()),
            observe=lambda _: None, hashes=DataHashes(cache=folder / "hashes.json"),
        )  # fmt: skip
        # The helper has no entry point; the challenge's arguments name the program.
        facts = replace(engine.image(HELPER_REFERENCE), command=("sh",))
        image = PinnedImage(source=HELPER_REFERENCE, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)

        def entry(number: int) -> Entry:
            submission = Submission(submission=f"run-{number}", team="t", image="x")
            (shared,) = shared_runs(loaded.challenge, ("steps",))
            return Entry(submission=submission, shared=shared, image=image)

        bare = _bare(floor_engine, context, entry(0), case, folder)
        for number in range(2):
            cases.settle_run(context, cases.CaseRun(entry=entry(10_000 + number), cases=(case,)))
            bare()
        _instrument(stages, engine)
        for number in range(runs):
            began = time.perf_counter()
            (outcome,) = cases.settle_run(context, cases.CaseRun(entry=entry(number), cases=(case,)))
            assert bench.cleaner is not None
            bench.cleaner.settle()
            ours.append(time.perf_counter() - began)
            assert outcome.verdict.accepted, outcome.verdict
            floor.append(bare())
    mine, theirs = statistics.median(ours), statistics.median(floor)
    return Overhead(
        runs=runs, runner_median_s=round(mine, 4), bare_median_s=round(theirs, 4), ratio=round(mine / theirs, 4),
        output=host.output, stages=stages.shares(statistics.fmean(ours), runs),
    )  # fmt: skip


def main() -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    result = measure(options.runs)
    if options.json:
        print(json.dumps(dataclasses.asdict(result), indent=1))
        return
    print(f"runner {result.runner_median_s} s, bare {result.bare_median_s} s, ratio {result.ratio} of medians")
    for name, found in sorted(result.stages.items(), key=lambda item: -item[1]["ms"]):
        print(f"  {found['ms']:8.2f} ms  {found['share']:6.1%}  {name}")


if __name__ == "__main__":
    main()
