"""Runs hostile clients of the protocol through the runner's own pipeline, and asks the engine all the while."""

import contextlib
import functools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import docker

from runner.challenge import Limits, Stream
from runner.confine import Confine
from runner.engine.docker import connect
from runner.job import JobResult, StreamFacts
from runner.pipeline.cases import CaseRun, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.host import open_bench
from runner.plan import Shared
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder, read_value
from runner.submissions import Profile, Submission
from tests.attacks.expected import Attack
from tests.attacks.stage import CASE, TEAM, Played, WatchedEngine, build_image, hidden_pitvis, leftovers_of, make_case

FOLDER = Path(__file__).parent
_SIZE = 480
"""Pixels a side of a frame, so that one inside a message is more than a pipe and the engine hold."""

_STREAM = {"answer": "5 s", "start_up": "10 s"}
_PAUSE = 0.02


@dataclass
class Pings:
    """What another client of the engine met.

    Attributes:
        longest: Seconds of the answer that took longest.
        answered: How many came.
        failed: What went wrong.
    """

    longest: float = 0.0
    answered: int = 0
    failed: list[str] = field(default_factory=list)


@contextlib.contextmanager
def pinging() -> Iterator[Pings]:
    """Ask the engine, by a connection of its own, over and over for as long as the block lasts."""
    pings, over = Pings(), threading.Event()

    def ask() -> None:
        with contextlib.closing(docker.APIClient(version="auto")) as client:
            while not over.wait(_PAUSE):
                asked = time.monotonic()
                try:
                    client.ping()
                except Exception as error:  # noqa: BLE001  whatever it is, it is what is looked for
                    pings.failed.append(repr(error))
                    return
                pings.longest = max(pings.longest, time.monotonic() - asked)
                pings.answered += 1

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield pings
    finally:
        over.set()
        thread.join(30)


@dataclass
class StreamStage:
    """One host, one hidden case, one image; every script is played once."""

    engine: WatchedEngine
    context: Context
    image: str
    entry: Entry
    played: dict[tuple[str, str], tuple[Played, Pings]] = field(default_factory=dict)

    def attack(self, attack: Attack) -> tuple[Played, Pings]:
        """Play an attack."""
        return self._once(attack.script, attack)

    def control(self, attack: Attack) -> tuple[Played, Pings]:
        """Play what does the same honestly, under the same limits."""
        return self._once(attack.control, attack)

    def _once(self, script: str, attack: Attack) -> tuple[Played, Pings]:
        limits, stream = attack.expected.room(), Stream.model_validate({**_STREAM, **attack.expected.stream})
        key = (script, limits.model_dump_json() + stream.model_dump_json())
        if key not in self.played:
            with pinging() as pings:
                self.played[key] = self._play(script, limits, stream), pings
        return self.played[key]

    def _play(self, script: str, limits: Limits, stream: Stream) -> Played:
        context = self._context_for(script, limits, stream)
        case = context.cases[CASE]
        submission = Submission(
            submission=f"{script} {len(self.played)}", team=TEAM, image=self.image, profile=Profile.STREAM
        )
        shared = replace(self.entry.shared, stream=stream)
        entry = replace(self.entry, submission=submission, shared=shared)
        before = set(self.engine.watches)
        self.engine.limit = stream.start_up + limits.run_time.seconds(case.media_seconds)
        (outcome,) = settle_run(context, CaseRun(entry=entry, cases=(case,)))
        self.engine.limit = None
        assert context.bench.cleaner is not None
        context.bench.cleaner.settle()
        watches = [watch for container, watch in self.engine.watches.items() if container not in before]
        for watch in watches:
            watch.join()
        folder = context.run.attempt(submission.slug, "steps", CASE, "full", outcome.attempt)
        taken = folder / "predictions" / "prediction.csv"
        past = [watch.past_limit for watch in watches if watch.past_limit is not None]
        return Played(
            outcome=outcome, result=read_value(folder / "result.json", JobResult),
            log=(folder / "log.txt").read_bytes(), taken=taken.read_bytes() if taken.is_file() else None,
            past_limit=max(past, default=None),
        )  # fmt: skip

    def _context_for(self, script: str, limits: Limits, stream: Stream) -> Context:
        loaded = self.context.loaded
        invocation = loaded.challenge.invocation.model_copy(update={"args": (f"/attacks/{script}",), "stream": stream})
        changed = loaded.challenge.model_copy(update={"invocation": invocation, "limits": limits})
        return replace(self.context, loaded=replace(loaded, challenge=changed))

    def leftovers(self) -> list[str]:
        """Whatever of ours is still on the engine, in the mount table, among the processes or in the workspace."""
        return leftovers_of(self.engine, [self.context])


def facts_of(played: Played) -> StreamFacts:
    """What is known of the stream."""
    assert played.result.stream is not None
    return played.result.stream


@contextlib.contextmanager
def open_stream_stage(folder: Path) -> Iterator[StreamStage]:
    """Make everything an attack wants; gone at the end."""
    case, _ = make_case(folder / "canary-data", size=_SIZE)
    (folder / "image").mkdir()
    engine = WatchedEngine(connect(None))
    with contextlib.ExitStack() as stack:
        image = build_image(engine, folder / "image", FOLDER)
        stack.callback(engine.remove_image, image.source)
        confine = stack.enter_context(Confine())
        settings = Settings(workspace=folder / "work")
        opened = functools.partial(open_bench, observe=lambda _: None)
        bench, facts = stack.enter_context(opened(engine, settings, stop=threading.Event()))
        context = Context(
            run=RunFolder(root=folder / "run"), loaded=hidden_pitvis(), cases={CASE: case},
            input_hashes={CASE: "0" * 64}, settings=settings, seed=0, bench=bench, host=facts, confine=confine,
            observe=lambda _: None, hashes=DataHashes(cache=folder / "hashes.json"),
        )  # fmt: skip
        shared = Shared(names=("steps",), inputs=("frames",), files={"steps": "{case}.csv"})
        myself = Submission(submission="a", team=TEAM, image=image.source, profile=Profile.STREAM)
        entry = Entry(submission=myself, shared=shared, image=image)
        yield StreamStage(engine=engine, context=context, image=image.source, entry=entry)
