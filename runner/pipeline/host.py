"""Makes this host ready for a run: engine, workspace, a sweep of what dead runners left, the way outputs are held."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from runner.cleaner import Cleaner
from runner.clock import MonotonicClock
from runner.engine import Engine, EngineFacts, EngineUnreachable, ImageFacts
from runner.engine.helper import helper_image
from runner.errors import HostFault, HostUnfit
from runner.execute import Bench
from runner.gpu.energy import find_zones
from runner.images import free_below
from runner.lease import Leases
from runner.mounts import can_mount
from runner.ownership import LABEL_OWNER, Owner, current_owner, is_our_name, provably_dead
from runner.pipeline.events import Notice, Observer, Step
from runner.pipeline.gpus import NO_GPUS, GpusWanted, do_without, misgiven, open_gpus
from runner.plan import HostSize
from runner.policy import Policy, PolicyName, Processors, loosened, policy_named
from runner.probe import by_volume, by_watching, flood_stopped_at, open_doors, sees_our_folders
from runner.processors import ProcessorPool, processors_of
from runner.seccomp import profile
from runner.settings import OutputMethod, Settings
from runner.workspace import discard_workspace, leftovers, neutral_name, open_workspace


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """What is recorded of the host a run took place on."""

    engine: EngineFacts
    output: str
    gpus: tuple[str, ...]
    gpu_names: tuple[str, ...] = ()
    gpu_access: str = ""
    seccomp: str = "the engine's"
    policy: PolicyName = PolicyName.STRICT
    runtime: str = ""

    @property
    def size(self) -> HostSize:
        """Processors and memory."""
        return HostSize(cpus=self.engine.cpus, memory=self.engine.memory)


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """What other runners have on this host: what is provably left over, and the rest."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]


def sweep(engine: Engine, settings: Settings, observer: Owner, *, force: bool = False) -> Leftovers:
    """Remove containers, volumes and folders whose runner is provably dead; with ``force`` all of other runners.

    A label alone proves nothing, an image can carry any: what is ours has our label and our kind of name.

    Returns:
        What was removed and what was left alone, in words.
    """
    removed: list[str] = []
    kept: list[str] = []
    for text, owner, remove in _others_things(engine, settings, observer):
        if force or (owner is not None and provably_dead(owner, observer)):
            remove()
            removed.append(text)
        else:
            kept.append(text)
    return Leftovers(removed=tuple(removed), kept=tuple(kept))


def _others_things(
    engine: Engine, settings: Settings, observer: Owner
) -> Iterator[tuple[str, Owner | None, Callable[[], None]]]:
    """What other runners made: in words, whose it is, and how it is removed. Containers first: they hold the rest."""
    for container in engine.containers(LABEL_OWNER):
        owner = Owner.parse(container.labels.get(LABEL_OWNER, ""))
        if owner != observer and is_our_name(container.name):
            yield f"container {container.name}", owner, functools.partial(engine.remove, container.id)
    for volume in engine.volumes(LABEL_OWNER):
        owner = Owner.parse(volume.labels.get(LABEL_OWNER, ""))
        if owner != observer and is_our_name(volume.name):
            yield f"volume {volume.name}", owner, functools.partial(engine.remove_volume, volume.name)
    for left in leftovers(settings.workspace, observer):
        yield f"folder {left.folder}", Owner.parse(left.owner), functools.partial(discard_workspace, left.folder)


@contextlib.contextmanager
def open_bench(
    engine: Engine,
    settings: Settings,
    *,
    stop: threading.Event,
    observe: Observer,
    gpus: GpusWanted = NO_GPUS,
    policy: PolicyName = PolicyName.STRICT,
) -> Iterator[tuple[Bench, HostFacts]]:
    """Make this host ready; everything made is gone at the end.

    Args:
        engine: Where containers run.
        settings: This host's.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.
        gpus: What the challenge asks for.
        policy: What the challenge holds containers to.

    Raises:
        HostUnfit: The host cannot run this challenge.
    """
    facts = engine.facts()
    rules = _policy(policy, settings, facts)
    for sentence in loosened(rules):
        observe(Notice(text=f"policy {rules.name.value}: {sentence}"))
    owner = current_owner()
    swept = sweep(engine, settings, owner)
    if swept.removed:
        observe(Notice(text=f"removed what a dead runner had left: {', '.join(swept.removed)}"))
    with (
        open_gpus(gpus, facts, settings, stop=stop, observe=observe) as pool,
        open_workspace(settings.workspace, owner) as workspace,
    ):
        bench = Bench(
            engine=engine, clock=MonotonicClock(), workspace=workspace,
            leases=Leases(folder=settings.workspace / "leases"),
            owner=owner, run_token=neutral_name(), helper="", stop=stop, gpus=pool,
            zones=find_zones(), policy=rules,
            engine_room=functools.partial(free_below, facts.data_root, kernel=facts.kernel),
            processors=_processors(rules, facts, settings, stop),
        )  # fmt: skip
        observe(Step(text="probing what a container sees on this host"))
        helper = bench.engine.image(helper_image(bench.engine, base=settings.helper_base or None))
        with workspace.desk() as scratch:
            bench, output = _with_output(bench, helper, settings, scratch=scratch, observe=observe)
            doors = open_doors(bench, helper, scratch=scratch)
            if bench.gpus is not None:
                bench = _with_gpus(bench, helper, gpus, scratch=scratch, observe=observe)
        if doors or bench.watched:
            bench = replace(bench, seccomp=profile(allocate=not bench.watched))
        cleaner = Cleaner()
        try:
            yield (
                replace(bench, cleaner=cleaner),
                HostFacts(
                    engine=facts,
                    output=output,
                    seccomp="proctor's" if bench.seccomp else "the engine's",
                    gpus=tuple(gpu.uuid for gpu in bench.gpus.gpus) if bench.gpus else (),
                    gpu_names=tuple(map(str, bench.gpus.gpus)) if bench.gpus else (),
                    gpu_access=bench.gpus.access.value if bench.gpus else "",
                    policy=rules.name,
                    runtime=settings.runtime,
                ),
            )
        finally:
            if left := cleaner.close():
                observe(Notice(text=f"something could not be put away ({left}); next: proctor clean"))


def _processors(rules: Policy, facts: EngineFacts, settings: Settings, stop: threading.Event) -> ProcessorPool | None:
    if rules.processors is Processors.QUOTA:
        return None
    leases = Leases(folder=settings.workspace / "leases")
    return ProcessorPool(numbers=processors_of(facts.cpus), leases=leases, stop=stop)


def _policy(asked: PolicyName, settings: Settings, facts: EngineFacts) -> Policy:
    """What the challenge asks for, where this host allows it; a stricter one would fail images that keep the rules."""
    if settings.ceiling.policy is PolicyName.STRICT and asked is not PolicyName.STRICT:
        raise HostUnfit(
            f"the challenge runs images under the policy {asked.value!r}, this host allows only 'strict'",
            where="settings: ceiling.policy",
            remedy="take ceiling.policy out of the settings, or use another host",
        )
    if settings.runtime and settings.runtime not in facts.runtimes:
        raise HostUnfit(
            f"the engine has no runtime {settings.runtime!r}; it offers {', '.join(sorted(facts.runtimes)) or 'none'}",
            where="settings: runtime",
            remedy="install it and name it to the engine (dockerd --add-runtime), or take runtime out of the settings",
        )
    return policy_named(asked, processors=settings.processors, runtime=settings.runtime or None)


def _with_gpus(bench: Bench, helper: ImageFacts, wanted: GpusWanted, *, scratch: Path, observe: Observer) -> Bench:
    """The same bench once a container was seen to get what its job holds; without GPUs where that is allowed."""
    try:
        why = misgiven(bench, helper, scratch=scratch, count=wanted.count)
    except (HostFault, HostUnfit) as error:
        why = error.what
    if not why:
        return bench
    do_without(wanted, why, observe)
    return replace(bench, gpus=None)


_UNSEEN = "the engine does not see file systems mounted by this process"
_UNHELD = "a volume in memory does not hold what a container writes"
_UNWATCHED = "a container that writes more than it may is not seen, or not stopped"


def _with_output(
    bench: Bench, helper: ImageFacts, settings: Settings, *, scratch: Path, observe: Observer
) -> tuple[Bench, str]:
    """Choose how outputs are held to their size, and prove that it works before it is trusted.

    In this order, unless the settings name one: a loop file system, a volume in memory, a folder that is only watched.

    Raises:
        HostUnfit: The way the settings name does not work, or none does.
    """
    wanted = settings.output
    if wanted is OutputMethod.LOOP and not can_mount():
        raise HostUnfit("output: loop needs root on Linux", remedy="run as root, or set output: volume")
    if wanted in (OutputMethod.AUTO, OutputMethod.LOOP) and can_mount():
        if not (why := _fails(bench, helper, scratch=scratch, otherwise=_UNSEEN)):
            return bench, "loop file system"
        if wanted is OutputMethod.LOOP:
            raise HostUnfit(why, remedy="set output: volume")
        observe(Notice(text=f"{why}; outputs go to volumes in memory"))
    if wanted in (OutputMethod.AUTO, OutputMethod.VOLUME):
        held = by_volume(bench, helper)
        if not (why := _fails(held, helper, scratch=scratch, otherwise=_UNHELD)):
            return held, "volume in memory"
        if wanted is OutputMethod.VOLUME:
            raise HostUnfit(why, remedy="see: proctor doctor, or set output: watch")
        observe(Notice(text=f"{why}; outputs go to folders"))
    return _watched(bench, helper, scratch=scratch, observe=observe), "watched folder"


def _watched(bench: Bench, helper: ImageFacts, *, scratch: Path, observe: Observer) -> Bench:
    if bench.policy.image_user and os.geteuid() != 0:
        raise HostUnfit(
            f"under the policy {bench.policy.name.value!r} a container leaves files of another user in a watched "
            "folder, which cannot be read or deleted without root",
            remedy="run as root, or set output: volume",
        )
    watched = by_watching(bench)
    why = _fails(watched, helper, scratch=scratch, otherwise="a folder does not hold what a container writes")
    if not why and flood_stopped_at(watched, helper, scratch=scratch) is None:
        why = _UNWATCHED
    if why:
        raise HostUnfit(why, remedy="run proctor as root on the engine's own host")
    observe(
        Notice(
            text="outputs are only watched on this host: a container can write more than it may before it is stopped"
        )
    )
    return watched


def _fails(bench: Bench, helper: ImageFacts, *, scratch: Path, otherwise: str) -> str:
    """Why a way of holding outputs does not work here; empty where it does."""
    try:
        return "" if sees_our_folders(bench, helper, scratch=scratch) else otherwise
    except HostFault as fault:
        if isinstance(fault, EngineUnreachable) or isinstance(fault.__cause__, EngineUnreachable):
            raise  # it says nothing of the way
        return fault.what
