"""A participant's own machine made ready: public data, the organisers' policy, and an image of one's own.

What this machine cannot tell is not judged. Without the GPU a challenge asks for, and on a sample so short that loading
a model takes longer than the sample is worth, the run time proves nothing about the final: the container is given
longer.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.challenge import CausalityRule, Challenge
from runner.challenge.limits import RunTimeFixed
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.engine import Engine
from runner.errors import RunnerError, UsageError
from runner.execute import Bench
from runner.gpu.pool import GpuHost
from runner.images import BuildNetwork, PinnedImage, RefusedImage, Room, Terms, pin
from runner.pipeline.context import Context, Entry
from runner.pipeline.evaluate import EngineFactory
from runner.pipeline.events import Observer, Step
from runner.pipeline.gpus import GpusWanted
from runner.pipeline.host import HostFacts, open_bench
from runner.pipeline.pinning import build_of, image_room, terms_of
from runner.plan import shared_runs
from runner.preflight import PreflightFinding
from runner.provenance import DataHashes
from runner.settings import Settings, load_settings
from runner.store import RunFolder
from runner.submissions import Profile, Submission

SHORT_SAMPLE_SECONDS = 60.0
_WITHOUT_GPU_FACTOR = 20.0
_WITHOUT_GPU_AT_LEAST = 600.0


@dataclass(frozen=True, kw_only=True)
class HomeRequest:
    """What is to be tried, and on what.

    Attributes:
        image: A reference, an archive, or a folder with a Dockerfile.
        challenge: Name or folder.
        tasks: The tasks that are entered; empty: all.
        profile: How the container is run.
        data: Own data in the challenge's layout; None: the bundled sample.
        keep: Where the run's files stay; None: nowhere.
        settings_file: This host's settings.
        flags: Settings from the command line.
        require_gpu: A missing GPU is an error.
        build_arguments: For a folder's Dockerfile.
        build_network: What a folder's build may reach.
    """

    image: str
    challenge: str
    tasks: tuple[str, ...] = ()
    profile: Profile = Profile.DEFAULT
    data: Path | None = None
    keep: Path | None = None
    settings_file: Path | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    require_gpu: bool = False
    build_arguments: Mapping[str, str] = field(default_factory=dict)
    build_network: BuildNetwork = BuildNetwork.DEFAULT


@dataclass(frozen=True, kw_only=True)
class Home:
    """A machine that is ready.

    Attributes:
        request: What was asked for.
        loaded: The challenge, as far as tasks are entered.
        cases: Of the data.
        settings: This host's.
        engine: Where containers run.
        bench: What the host gives a job.
        host: Facts of the host.
        confine: Where untrusted files are read.
        room: The engine's disk.
        terms: What an image may cost.
        root: Where the run's files are.
        has_gpu: There is the GPU that the challenge asks for, or it asks for none.
        observe: Is told what happens.
    """

    request: HomeRequest
    loaded: LoadedChallenge
    cases: tuple[Case, ...]
    settings: Settings
    engine: Engine
    bench: Bench
    host: HostFacts
    confine: Confine
    room: Room
    terms: Terms
    root: Path
    has_gpu: bool
    observe: Observer

    def pin(self) -> PinnedImage | RefusedImage:
        """Have the image."""
        image = self.request.image
        self.observe(Step(text=f"having the image {image}"))
        return pin(
            self.engine, image, base=Path(), terms=self.terms, progress=lambda text: self.observe(Step(text=text))
        )

    def context(self, seed: int, *, causality: CausalityRule | None = None) -> Context:
        """A run on the data, which is public; checked for causality as the challenge says, or otherwise."""
        sample = self.request.data is None
        run_time = _run_time(self.loaded.challenge, self.cases, has_gpu=self.has_gpu, sample=sample)
        run = RunFolder(root=self.root)
        hashes = DataHashes(cache=run.private / "hashes.json")
        return Context(
            run=run, loaded=_public(self.loaded, run_time, causality), cases={case.name: case for case in self.cases},
            input_hashes={case.name: hashes.inputs(case) for case in self.cases}, settings=self.settings, seed=seed,
            bench=self.bench, host=self.host, confine=self.confine, observe=self.observe, hashes=hashes,
        )  # fmt: skip

    def entries(self, image: PinnedImage, findings: tuple[PreflightFinding, ...]) -> list[Entry]:
        """The image as a submission, with the tasks that share its runs."""
        challenge = self.loaded.challenge
        shared = shared_runs(challenge, tuple(challenge.tasks), profile=self.request.profile)
        # Which tasks it enters is said by the challenge, whose others were left out.
        myself = Submission(submission="this image", team="you", image=self.request.image)
        return [Entry(submission=myself, shared=one, image=image, findings=findings) for one in shared]


def without_run(remedy: str) -> str:
    """A remedy that says to go on with a run, where there is none to go on with."""
    return re.sub(r"proctor (resume|score) RUN", "the same check again", remedy)


@contextmanager
def nothing_to_resume() -> Iterator[None]:
    """No error that passes sends anybody to a run folder."""
    try:
        yield
    except RunnerError as error:
        error.remedy = without_run(error.remedy)
        raise


def entered(name: str, tasks: tuple[str, ...]) -> LoadedChallenge:
    """The challenge of a name or folder as far as the tasks go that are entered; its digest is that of the whole.

    Raises:
        UsageError: There is no such challenge or task, or a task is entered without one whose prediction it is given.
    """
    loaded = load_challenge(find_challenge(name))
    known = loaded.challenge.tasks
    strangers = [one for one in tasks if one not in known]
    if strangers:
        raise UsageError(
            f"there is no task {strangers[0]!r} in {loaded.challenge.name}",
            remedy=f"its tasks are {', '.join(known)}",
        )
    if not tasks:
        return loaded
    kept = {one: task for one, task in known.items() if one in tasks}
    lacking = [earlier for task in kept.values() for earlier in task.inputs_from if earlier not in kept]
    if lacking:
        raise UsageError(
            f"a task that is entered is given the prediction of task {lacking[0]!r}, which is not entered",
            remedy=f"add --task {lacking[0]}",
        )
    return replace(loaded, challenge=loaded.challenge.model_copy(update={"tasks": kept}))


@contextmanager
def at_home(
    request: HomeRequest,
    loaded: LoadedChallenge,
    *,
    connect: EngineFactory,
    stop: threading.Event,
    observe: Observer,
    gpus: GpuHost | None = None,
) -> Iterator[Home]:
    """Make this machine ready; everything made is gone at the end, but for what is to be kept.

    Args:
        request: What is asked for.
        loaded: The challenge as far as it is entered.
        connect: Connects to the engine.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.
        gpus: Where GPUs are asked for; None: this host's own driver.

    Raises:
        RunnerError: Ours or the host's failure.
    """
    settings = load_settings(request.settings_file, request.flags).settings
    cases = find_cases(request.data or loaded.folder / "sample", loaded.challenge)
    engine = connect(settings.engine)
    wanted = GpusWanted(
        count=loaded.challenge.limits.gpus, allow_cpu=not request.require_gpu, host=gpus,
        remedy="run on a machine with a GPU, or leave out --require-gpu",
    )  # fmt: skip
    root = _kept(request.keep)
    with ExitStack() as stack:
        confine = stack.enter_context(Confine())
        policy = loaded.challenge.policy
        bench, host = stack.enter_context(
            open_bench(engine, settings, gpus=wanted, stop=stop, observe=observe, policy=policy)
        )
        if root is None:
            # In the workspace, not among other programs' files: what a killed check leaves is swept with the rest.
            root = stack.enter_context(bench.workspace.desk())
            root.chmod(0o700)
        room = stack.enter_context(image_room(engine, host.engine, settings, observe))
        build = build_of(
            settings, reference="proctor-check:latest", network=request.build_network,
            arguments=request.build_arguments,
        )  # fmt: skip
        yield Home(
            request=request, loaded=loaded, cases=cases, settings=settings, engine=engine, bench=bench, host=host,
            confine=confine, room=room, terms=terms_of(settings, loaded.challenge, bench, room, build), root=root,
            has_gpu=not wanted.count or bench.gpus is not None, observe=observe,
        )  # fmt: skip


def _kept(keep: Path | None) -> Path | None:
    if keep is None:
        return None
    if keep.exists() and any(keep.iterdir()):
        raise UsageError(f"the folder {str(keep)!r} is not empty", remedy="give a new folder with --keep")
    keep.mkdir(parents=True, exist_ok=True, mode=0o700)
    return keep


def _run_time(challenge: Challenge, cases: tuple[Case, ...], *, has_gpu: bool, sample: bool) -> float | None:
    """Seconds a run is given in place of the challenge's budget; None: the challenge's."""
    longest = max(challenge.limits.run_time.seconds(case.media_seconds) for case in cases)
    if not has_gpu:
        return max(longest * _WITHOUT_GPU_FACTOR, _WITHOUT_GPU_AT_LEAST)
    return max(longest, SHORT_SAMPLE_SECONDS) if sample else None


def _public(loaded: LoadedChallenge, run_time: float | None, causality: CausalityRule | None) -> LoadedChallenge:
    rule = causality or loaded.challenge.causality
    challenge = loaded.challenge.model_copy(update={"data": "public", "causality": rule})
    if run_time is not None:
        limits = challenge.limits.model_copy(update={"run_time": RunTimeFixed(fixed=run_time)})
        challenge = challenge.model_copy(update={"limits": limits})
    return replace(loaded, challenge=challenge)
