"""What it costs to tell whether a method looks ahead: PETRAW's protocol, aimed cuts, and one cut a case.

PETRAW ran a clip of 300 frames and all its prefixes, and compared the last answer of each with that on the whole clip;
it always ran all of them. Each way decides on a method that looks 15 frames ahead and on one that does not, on the real
engine, with the runs of the ordinary evaluation made before and not counted. Where frames are streamed, nobody can look
ahead and nothing is run beside the evaluation: what is counted there is the evaluation itself, of the clean method.
Frames are a few bytes each, so what is measured is the start of a container more than the reading of frames: both are
told, and the bars are about wall time.
"""

import argparse
import contextlib
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from runner.bundled_files import bundled
from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.causality import Answers, FullRun, Request
from runner.challenge import CausalityMethod, CausalityRule, InvocationMode, LeakPolicy, Stream
from runner.confine import Confine
from runner.dataset import Case, frames_case
from runner.engine.docker import connect
from runner.images import PinnedImage, SourceKind
from runner.job import Cut, Job
from runner.pipeline.cases import runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.host import open_bench
from runner.pipeline.looking_ahead import check_cases
from runner.pipeline.looks import looks_for, run_look
from runner.pipeline.sequences import drawn_cases, sequence_of
from runner.plan import shared_runs
from runner.provenance import DataHashes
from runner.settings import load_settings
from runner.store import RunFolder, read_value
from runner.submissions import Submission

BASE = "proctor-base:1"
TASK = "steps"
CASES = 10
LOOKS = {"leaking": 15, "clean": 0}
BARS = {"leaking": 1 / 10, "clean": 1 / 5}

_PROGRAM = """
import pathlib, sys
ahead = {look}
def answer(folder, target):
    seen = [int(frame.read_text()) for frame in sorted(folder.iterdir())]
    rows = [f"{{t}},{{seen[min(t + ahead, len(seen) - 1)]}}" for t in range(len(seen))]
    pathlib.Path(target).write_text("\\n".join(["int_time,int_step", *rows, ""]))
shown = pathlib.Path(sys.argv[1])
if len(sys.argv) > 2:
    answer(shown, sys.argv[2])
else:
    for case in shown.iterdir():
        answer(case, "/data/outputs/" + case.name + ".csv")
"""


_STREAMED = """
import proctor_stream
proctor_stream.run(lambda frame: {"int_step": int(frame.image())})
"""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a way to decide has cost.

    Attributes:
        outcome: What it came to.
        starts: Containers that were started.
        frames: Frames they were shown.
        seconds: Wall time.
    """

    outcome: str
    starts: int
    frames: int
    seconds: float


def write_cases(folder: Path, frames: int) -> tuple[Case, ...]:
    """Sequences of phases that last 20 to 50 frames."""
    cases = []
    for number in range(CASES):
        name, inputs = f"case-{number}", folder / f"case-{number}"
        inputs.mkdir()
        names = tuple(f"{t:05d}.png" for t in range(frames))
        for t, frame in enumerate(names):
            (inputs / frame).write_text(str(1 + (t // (20 + 3 * number) + number) % 9))
        reference = folder / f"{name}.csv"
        reference.write_text("int_time,int_step\n")
        cases.append(frames_case(name, inputs, names, fps=1.0, references={TASK: reference}))
    return tuple(cases)


def challenge_with(rule: CausalityRule, mode: InvocationMode) -> LoadedChallenge:
    """PitVis's steps, checked in some way, with containers started in some way."""
    loaded = load_challenge(find_challenge("pitvis2023"))
    args = ("{input}", "{output}.csv") if mode is InvocationMode.CASE else ("{input}",)
    stream = Stream() if mode is InvocationMode.STREAM else None
    invocation = loaded.challenge.invocation.model_copy(update={"mode": mode, "args": args, "stream": stream})
    limits = type(loaded.challenge.limits).model_validate(
        {"run_time": {"fixed": 60}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1, "gpus": 0}
    )
    changes = {
        "invocation": invocation, "limits": limits, "causality": rule, "tasks": {TASK: loaded.challenge.tasks[TASK]},
    }  # fmt: skip
    return replace(loaded, challenge=loaded.challenge.model_copy(update=changes))


def targeted(cuts: int) -> CausalityRule:
    """At most so many cuts of one case."""
    return CausalityRule(
        method=CausalityMethod.TARGETED, on=1, cuts=cuts, on_leak=LeakPolicy.REPORT,
        length_dependence=LeakPolicy.REPORT,
    )  # fmt: skip


def petraw(context: Context, entry: Entry) -> str:
    """PETRAW's protocol: the last answers of all prefixes, strung together, against the answers on the whole."""
    (name,) = drawn_cases(context)
    tested = sequence_of(context, entry.shared, context.cases[name])

    def answers(request: Request) -> Answers:
        (look,) = looks_for(context, [(tested, request)], None)
        observation = run_look(context, entry, TASK, look).observations[name]
        assert observation.answers is not None, observation.failure
        return observation.answers

    whole = answers(FullRun()).labels
    differ = [
        k for k in range(1, tested.frames + 1)
        if (answers(Cut(frames=k)).labels[:, -1] != whole[:, k - 1]).any()
    ]  # fmt: skip
    return "leaking" if differ else "passed"


def checked(context: Context, entry: Entry) -> str:
    """As an evaluation checks it."""
    summary = check_cases(context, entry, TASK, drawn_cases(context)).summary
    assert summary is not None
    return summary.outcome.value


def evaluated(context: Context, entry: Entry) -> str:
    """The ordinary runs on what is drawn."""
    runs = runs_of(context, entry)
    for run in runs if len(runs) == 1 else [run for run in runs if run.cases[0].name in drawn_cases(context)]:
        assert all(outcome.verdict.accepted for outcome in settle_run(context, run))
    return "passed"


def spent(context: Context, entry: Entry, way: Callable[[Context, Entry], str]) -> Spent:
    """What a way costs; beside the ordinary runs, which are made first, unless they are all it needs."""
    if entry.shared.stream is None:
        evaluated(context, entry)
    plain = set(context.run.root.rglob("job.json"))
    began = time.perf_counter()
    outcome = way(context, entry)
    seconds = time.perf_counter() - began
    jobs = [read_value(path, Job) for path in set(context.run.root.rglob("job.json")) - plain]
    return Spent(outcome=outcome, starts=len(jobs), frames=sum(job.frames for job in jobs), seconds=seconds)


@contextlib.contextmanager
def images() -> Iterator[dict[str, PinnedImage]]:
    """The two methods, and the clean one as it is streamed; gone at the end."""
    engine, made = connect(None), {}
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: _PROGRAM.format(look=look) for name, look in LOOKS.items()}
        for name, program in (programs | {"streamed": _STREAMED}).items():
            place = Path(folder) / name
            place.mkdir()
            (place / "predict.py").write_text(program)
            shutil.copyfile(bundled("templates") / "stream" / "proctor_stream.py", place / "proctor_stream.py")
            (place / "Dockerfile").write_text(
                f'FROM {BASE}\nCOPY predict.py proctor_stream.py /app/\nENTRYPOINT ["python3", "/app/predict.py"]\n'
            )
            reference = f"proctor-bench/causality-{name}:1"
            engine.build(place, reference=reference, arguments={}, deadline=300, log=lambda _: None)
            facts = engine.image(reference)
            made[name] = PinnedImage(source=reference, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)
    yield made
    for image in made.values():
        engine.remove_image(image.source)


def measure(frames: int, cuts: int) -> dict[str, dict[str, Spent]]:
    """Every way on both methods; by method and way."""
    cut_run = targeted(1).model_copy(update={"method": CausalityMethod.CUT_RUN, "on": "all"})
    every: list[tuple[str, str, CausalityRule, InvocationMode, Callable[[Context, Entry], str]]] = []
    for name in LOOKS:
        every += [
            (name, "petraw", targeted(1), InvocationMode.CASE, petraw),
            (name, "targeted", targeted(cuts), InvocationMode.CASE, checked),
            (name, "cut-run", cut_run, InvocationMode.DATASET, checked),
        ]
    every.append(("clean", "streaming", targeted(1), InvocationMode.STREAM, evaluated))
    found: dict[str, dict[str, Spent]] = {name: {} for name in LOOKS}
    with tempfile.TemporaryDirectory() as folder, images() as made, Confine() as confine:
        root = Path(folder)
        settings = load_settings(None, {}).settings
        cases = write_cases(root, frames)
        hashes = DataHashes(cache=root / "hashes.json")
        hashed = {case.name: hashes.inputs(case) for case in cases}
        with open_bench(connect(None), settings, stop=threading.Event(), observe=lambda _: None) as (bench, host):
            for name, way, rule, mode, decide in every:
                context = Context(
                    run=RunFolder(root=root / f"{name}-{way}"), loaded=challenge_with(rule, mode),
                    cases={case.name: case for case in cases}, input_hashes=hashed, settings=settings, seed=1,
                    bench=bench, host=host, confine=confine, observe=lambda _: None, hashes=hashes,
                )  # fmt: skip
                (shared,) = shared_runs(context.challenge, (TASK,))
                image = made["streamed" if way == "streaming" else name]
                submission = Submission(submission=name, team="bench", image=image.source)
                found[name][way] = spent(context, Entry(submission=submission, shared=shared, image=image), decide)
    return found


def main() -> int:
    """Measure, print, and say whether the bars are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--out", type=Path, help="where the figures go, as JSON")
    options = parser.parse_args()
    figures: dict[str, dict[str, dict[str, float | int | str]]] = {}
    met = True
    for name, ways in measure(options.frames, options.cuts).items():
        whole = ways["petraw"].seconds
        figures[name] = {}
        for way, cost in ways.items():
            share = cost.seconds / whole
            figures[name][way] = {
                "outcome": cost.outcome, "starts": cost.starts, "frames": cost.frames,
                "seconds": round(cost.seconds, 2), "of_petraw": round(share, 4),
            }  # fmt: skip
            print(
                f"{name:8} {way:9} {cost.outcome:8} {cost.starts:4} starts {cost.frames:6} frames "
                f"{cost.seconds:7.1f} s  {share:.3f} of PETRAW's"
            )
        kept = ways["targeted"].seconds / whole <= BARS[name]
        met = met and kept
        verdict = "met" if kept else "MISSED"
        print(f"{name:8} bar: targeted at most {BARS[name]:.2f} of PETRAW's wall time: {verdict}")
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
