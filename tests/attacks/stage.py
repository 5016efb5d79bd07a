"""Runs hostile scripts through the runner's own pipeline and keeps an eye on what it cannot be trusted to say itself.

The watched engine notes when a container starts, and a thread of its own looks, from the container's limit on, for
processes in the container's control group: the runner's word that all is over is not taken for it.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import docker
import numpy as np
from PIL import Image
from pydantic import JsonValue

from runner import __version__, mounts
from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.challenge import Limits
from runner.confine import Confine
from runner.dataset import Case, frames_case
from runner.engine.docker import DockerEngine, connect
from runner.images import PinnedImage, SourceKind
from runner.job import JobResult
from runner.judge import CaseOutcome
from runner.ownership import LABEL_OWNER, LABEL_RUN
from runner.pipeline.cases import CaseRun, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.evaluate import finish
from runner.pipeline.host import open_bench
from runner.pipeline.record import CaseRecord, RunRecord
from runner.plan import Shared
from runner.provenance import DataHashes
from runner.settings import OutputMethod, Settings
from runner.store import RunFolder, read_value
from runner.submissions import Submission
from tests.attacks.expected import FOLDER, Attack

BASE = "proctor-base:1"
FRAMES = 6
STEPS = Shared(names=("steps",), inputs=("frames",), files={"steps": "{case}.csv"})
CASE = "canary-case-0815"
SECRET = "CANARY-SECRET-OF-THE-HOST"
REFERENCE_MARK = "CANARY-OF-THE-REFERENCE"
TEAM = '=cmd|x\u202e\x1b[31m<script>alert("team")</script>'
_JOB_UIDS = range(200_000, 204_096)
_LOOK_EVERY = 0.02
_GIVE_UP = 30.0


def _control_group(process: Path) -> str:
    try:
        return (process / "cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _processes() -> Iterator[Path]:
    return (path for path in Path("/proc").iterdir() if path.name.isdigit())


def alive_in(container: str) -> list[str]:
    """Processes of this host that belong to a container."""
    return [process.name for process in _processes() if container in _control_group(process)]


def strays(containers: Collection[str]) -> list[str]:
    """Processes that belong to one of these containers, or to a job's user outside of every container."""
    found = []
    for process in _processes():
        group = _control_group(process)
        found += [f"process {process.name} of container {name}" for name in containers if name in group]
        with contextlib.suppress(OSError):
            if process.stat().st_uid in _JOB_UIDS and not any(engine in group for engine in ("docker", "libpod")):
                found.append(f"process {process.name} outside of every container")
    return found


@dataclass
class Watch:
    """What was seen of one container of a job.

    Attributes:
        owner: The owner label it really had.
        past_limit: Seconds from its limit to the moment no process was left; None where it ended before.
    """

    container: str
    owner: str
    over: threading.Event = field(default_factory=threading.Event)
    past_limit: float | None = None
    thread: threading.Thread | None = None

    def look(self, began: float, limit: float) -> None:
        """Wait for the limit, then for the end."""
        while self.over.wait(max(0.0, began + limit - time.monotonic())) is False:
            while alive_in(self.container) and time.monotonic() < began + limit + _GIVE_UP:
                self.past_limit = time.monotonic() - began - limit
                time.sleep(_LOOK_EVERY)
            return

    def join(self) -> None:
        """Stop waiting for the limit; a container that outlasted it is watched to its end."""
        self.over.set()
        if self.thread is not None:
            self.thread.join(_GIVE_UP)


class WatchedEngine(DockerEngine):
    """The real engine, with an eye on every container it starts."""

    def __init__(self, engine: DockerEngine) -> None:
        super().__init__(engine._clients)
        self.watches: dict[str, Watch] = {}
        self.limit: float | None = None

    def start(self, container: str) -> None:
        """Start a container and a watch over it."""
        limit, facts = self.limit, self.inspect(container)
        assert facts is not None
        super().start(container)
        began = time.monotonic()
        if limit is None:
            return
        watch = self.watches[container] = Watch(container=container, owner=facts.labels[LABEL_OWNER])
        watch.thread = threading.Thread(target=watch.look, args=(began, limit), daemon=True)
        watch.thread.start()


@dataclass(frozen=True, kw_only=True)
class Played:
    """What came of a script.

    Attributes:
        outcome: The verdict and what belongs to it.
        result: The facts of the attempt that counts.
        log: What the organisers keep of its log.
        taken: What was taken out of its output; None where nothing was.
        past_limit: Seconds from its limit to the death of its last process; None where it ended before.
    """

    outcome: CaseOutcome
    result: JobResult
    log: bytes
    taken: bytes | None
    past_limit: float | None

    def participant_text(self) -> str:
        """Everything of the verdict that its participant may read."""
        verdict = self.outcome.verdict
        return "\n".join([verdict.sentence, *verdict.notes, *(f"{h.cause}\n{h.fix}" for h in verdict.hints)])


@dataclass(frozen=True, kw_only=True)
class Host:
    """What a container would love to reach on this host; it is told where all of it is.

    Attributes:
        reference: The hidden reference.
        secret: A file of the host.
        listener: A service of the host on the engine's bridge.
        marker: A file that must never come to be: whoever makes it runs code on the host.
        pixels: Values of the first frame's pixels, as a program would print them.
    """

    reference: Path
    secret: Path
    listener: socket.socket
    marker: Path
    pixels: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """As a script gets them, after its input and output."""
        address, port = self.listener.getsockname()
        return (str(self.reference), str(self.secret), f"{address}:{port}", str(self.marker))

    @property
    def telling_pixels(self) -> set[str]:
        """Those values that no sentence of ours holds for a reason of its own."""
        return {value for value in self.pixels.split() if int(value) > 40} - {"128", "137", "134", "153", "127", "256"}

    def callers(self) -> int:
        """How many connections the service was asked for since the last time."""
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.listener.accept()[0].close()
                count += 1
        return count


def make_case(data: Path, *, size: int = 8) -> tuple[Case, str]:
    """A hidden case of square frames that nothing compresses, and some of the first one's pixels."""
    frames = data / "inputs" / CASE
    frames.mkdir(parents=True)
    rng = np.random.default_rng(4)
    names = tuple(f"{number:05d}.png" for number in range(FRAMES))
    pictures = [rng.integers(0, 256, (size, size, 3), dtype=np.uint8) for _ in names]
    for name, picture in zip(names, pictures, strict=True):
        Image.fromarray(picture).save(frames / name)
    reference = data / "references" / f"{CASE}.csv"
    reference.parent.mkdir()
    rows = "".join(f"{number},1,{REFERENCE_MARK}\n" for number in range(FRAMES))
    reference.write_text(f"int_time,int_step,mark\n{rows}")
    pixels = " ".join(str(value) for value in pictures[0].ravel()[:24])
    return frames_case(CASE, frames, names, fps=1.0, references={"steps": reference}), pixels


def build_image(engine: DockerEngine, folder: Path, source: Path = FOLDER) -> PinnedImage:
    """Build the one image that holds every attack of a folder."""
    shutil.copyfile(FOLDER / "Dockerfile", folder / "Dockerfile")
    scripts = folder / "attacks"
    for script in (
        *source.glob("*/attack.py"),
        *source.glob("*/control.py"),
        source / "control.py",
        source / "acts.py",
    ):
        target = scripts / script.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(script, target)
    reference = f"proctor-test/{source.name}-{os.getpid()}:1"
    engine.build(folder, reference=reference, arguments={"BASE_IMAGE": BASE}, deadline=300, log=lambda _: None)
    facts = engine.image(reference)
    return PinnedImage(source=reference, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)


@contextlib.contextmanager
def bridge_listener() -> Iterator[socket.socket]:
    """A service of the host that containers on the engine's default network reach."""
    client = docker.APIClient(version="auto")
    address = client.inspect_network("bridge")["IPAM"]["Config"][0]["Gateway"]
    client.close()
    with socket.create_server((address, 0)) as server:
        server.setblocking(False)
        yield server


@dataclass
class Stage:
    """One host, one hidden case, one image; every script is played once."""

    engine: WatchedEngine
    image: PinnedImage
    host: Host
    contexts: Mapping[str, Context]
    played: dict[tuple[str, str, str], Played] = field(default_factory=dict)

    def attack(self, attack: Attack, place: str = "loop") -> Played:
        """Play an attack."""
        return self._once(attack.script, attack.expected.room(), place, name=attack.name)

    def control(self, attack: Attack, place: str = "loop") -> Played:
        """Play what does the same honestly, under the same limits."""
        return self._once(attack.control, attack.expected.room(), place, name="")

    def _once(self, script: str, limits: Limits, place: str, *, name: str) -> Played:
        key = (script, place, limits.model_dump_json())
        if key not in self.played:
            self.played[key] = self.play(script, limits, place, name=name or f"control {len(self.played)}")
        return self.played[key]

    def context_for(self, script: str, limits: Limits, place: str) -> Context:
        """The context under which a script is run."""
        context = self.contexts[place]
        arguments = (f"/attacks/{script}", "{input}", "{output}.csv", *self.host.arguments)
        challenge = context.challenge
        changed = challenge.model_copy(
            update={"invocation": challenge.invocation.model_copy(update={"args": arguments}), "limits": limits}
        )
        return replace(context, loaded=replace(context.loaded, challenge=changed))

    def play(self, script: str, limits: Limits, place: str, *, name: str) -> Played:
        """Run a script as a submission of its own."""
        context = self.context_for(script, limits, place)
        case = context.cases[CASE]
        submission = Submission(submission=name, team=TEAM, image=self.image.source)
        entry = Entry(submission=submission, shared=STEPS, image=self.image)
        before = set(self.engine.watches)
        self.engine.limit = limits.run_time.seconds(case.media_seconds)
        (outcome,) = settle_run(context, CaseRun(entry=entry, cases=(case,)))
        self.engine.limit = None
        assert context.bench.cleaner is not None
        context.bench.cleaner.settle()
        watches = [watch for container, watch in self.engine.watches.items() if container not in before]
        for watch in watches:
            watch.join()
            assert watch.owner == str(context.bench.owner)
        folder = context.run.attempt(submission.slug, "steps", CASE, "full", outcome.attempt)
        taken = folder / "predictions" / "prediction.csv"
        past = [watch.past_limit for watch in watches if watch.past_limit is not None]
        return Played(
            outcome=outcome,
            result=read_value(folder / "result.json", JobResult),
            log=(folder / "log.txt").read_bytes(),
            taken=taken.read_bytes() if taken.is_file() else None,
            past_limit=max(past, default=None),
        )

    def leftovers(self) -> list[str]:
        """Whatever of ours is still on the engine, in the mount table, among the processes or in the workspace."""
        return leftovers_of(self.engine, self.contexts.values())

    def publish(self, attacks: tuple[Attack, ...]) -> RunFolder:
        """Score, rank and report the attacks as the submissions of one run."""
        context = self.contexts["loop"]
        case = context.cases[CASE]
        record = RunRecord(
            proctor=__version__, challenge="pitvis2023", challenge_version="1", challenge_digest="0" * 64,
            data=case.references["steps"].parents[1], base=case.inputs[0].path, settings=context.settings, sources={},
            allow_cpu=True, started="2026-01-01T00:00:00+00:00", host=context.host,
            cases=(CaseRecord(name=CASE, frames=FRAMES, media_seconds=6.0, inputs="0" * 64, references={}),),
            submissions=tuple(
                Submission(submission=a.name, team=TEAM, image=self.image.source, tasks=("steps",)) for a in attacks
            ),
        )  # fmt: skip
        finish(
            context.run, record, loaded=context.loaded, cases=context.cases, confine=context.confine,
            observe=lambda _: None,
        )  # fmt: skip
        return context.run


def leftovers_of(engine: WatchedEngine, contexts: Iterable[Context]) -> list[str]:
    """Whatever of ours is still on an engine, in the mount table, among the processes or in a workspace."""
    found = strays(engine.watches)
    for context in contexts:
        bench, work = context.bench, context.bench.workspace.folder
        labelled = [(c.name, c.labels) for c in engine.containers(LABEL_RUN)]
        labelled += [(volume.name, volume.labels) for volume in engine.volumes(LABEL_RUN)]
        found += [name for name, labels in labelled if labels[LABEL_RUN] == bench.run_token]
        found += [f"mount {point}" for point in mounts.mounted_below(work)]
        found += [p.name for p in work.iterdir() if not p.name.startswith("blank-")]
        for device in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):
                found += [str(device)] if str(work) in device.read_text() else []
    return found


def told_by(log: bytes) -> dict[str, JsonValue]:
    """What a script says of its acts, in the last line of its log that does."""
    lines = re.findall(rb"^answers (.*)$", log, re.MULTILINE)
    return json.loads(lines[-1]) if lines else {}


def hidden_pitvis() -> LoadedChallenge:
    """The challenge of PitVis's steps, on hidden data, without a GPU."""
    loaded = load_challenge(find_challenge("pitvis2023"))
    limits = loaded.challenge.limits.model_copy(update={"gpus": 0})
    assert loaded.challenge.data == "hidden"
    # Further columns are refused here: then a stranger's names for them reach the sentences' reader as well.
    steps = loaded.challenge.tasks["steps"]
    rule = steps.format.model_copy(update={"extra_columns": "refuse"})
    tasks = {"steps": steps.model_copy(update={"format": rule})}
    return replace(loaded, challenge=loaded.challenge.model_copy(update={"limits": limits, "tasks": tasks}))


@contextlib.contextmanager
def open_stage(folder: Path) -> Iterator[Stage]:
    """Make everything an attack wants; gone at the end."""
    case, pixels = make_case(folder / "canary-data")
    secret = folder / "secret.txt"
    secret.write_text(SECRET)
    (folder / "image").mkdir()
    engine = WatchedEngine(connect(None))
    with contextlib.ExitStack() as stack:
        image = build_image(engine, folder / "image")
        stack.callback(engine.remove_image, image.source)
        host = Host(
            reference=case.references["steps"], secret=secret, listener=stack.enter_context(bridge_listener()),
            marker=folder / "code-ran-on-the-host", pixels=pixels,
        )  # fmt: skip
        confine = stack.enter_context(Confine())
        contexts = {}
        for place in ("loop", "volume"):
            settings = Settings(workspace=folder / "work" / place, output=OutputMethod(place))
            opened = functools.partial(open_bench, observe=lambda _: None)
            bench, facts = stack.enter_context(opened(engine, settings, stop=threading.Event()))
            contexts[place] = Context(
                run=RunFolder(root=folder / f"run-{place}"), loaded=hidden_pitvis(), cases={CASE: case},
                input_hashes={CASE: "0" * 64}, settings=settings, seed=0, bench=bench, host=facts, confine=confine,
                observe=lambda _: None, hashes=DataHashes(cache=folder / "hashes.json"),
            )  # fmt: skip
        yield Stage(engine=engine, image=image, host=host, contexts=contexts)
