"""Makes this host ready for a run: engine, workspace, a sweep of what dead runners left, the way outputs are held."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from runner.cleaner import Cleaner
from runner.clock import MonotonicClock
from runner.engine import Engine, EngineFacts, ImageFacts
from runner.engine.helper import helper_image
from runner.errors import HostUnfit
from runner.execute import Bench
from runner.gpu import find_gpus
from runner.lease import Leases
from runner.mounts import can_mount
from runner.ownership import LABEL_OWNER, Owner, current_owner, is_our_name, provably_dead
from runner.pipeline.events import Notice, Observer, Step
from runner.plan import HostSize
from runner.probe import by_volume, open_doors, sees_our_folders
from runner.seccomp import profile
from runner.settings import OutputMethod, Settings
from runner.workspace import discard, leftovers, neutral_name, open_workspace


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """What is recorded of the host a run took place on."""

    engine: EngineFacts
    output: str
    gpus: tuple[str, ...]
    seccomp: str = "the engine's"

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
        yield f"folder {left.folder}", Owner.parse(left.owner), functools.partial(discard, left.folder)


@contextlib.contextmanager
def open_bench(
    engine: Engine, settings: Settings, *, gpus_wanted: int, allow_cpu: bool, stop: threading.Event, observe: Observer
) -> Iterator[tuple[Bench, HostFacts]]:
    """Make this host ready; everything made is gone at the end.

    Args:
        engine: Where containers run.
        settings: This host's.
        gpus_wanted: What the challenge asks for.
        allow_cpu: Go on without a GPU.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.

    Raises:
        HostUnfit: The host cannot run this challenge.
    """
    facts = engine.facts()
    gpus = _gpus(gpus_wanted, allow_cpu=allow_cpu, observe=observe)
    owner = current_owner()
    swept = sweep(engine, settings, owner)
    if swept.removed:
        observe(Notice(text=f"removed what a dead runner had left: {', '.join(swept.removed)}"))
    with open_workspace(settings.workspace, owner) as workspace:
        bench = Bench(
            engine=engine, clock=MonotonicClock(), workspace=workspace,
            leases=Leases(folder=settings.workspace / "leases"),
            owner=owner, run_token=neutral_name(), helper="", stop=stop, gpus=gpus,
        )  # fmt: skip
        observe(Step(text="probing what a container sees on this host"))
        helper = bench.engine.image(helper_image(bench.engine, base=settings.helper_base or None))
        with workspace.desk() as scratch:
            bench, output = _with_output(bench, helper, settings, scratch=scratch, observe=observe)
            doors = open_doors(bench, helper, scratch=scratch)
        if doors:
            bench = replace(bench, seccomp=profile())
        cleaner = Cleaner()
        try:
            yield (
                replace(bench, cleaner=cleaner),
                HostFacts(engine=facts, output=output, gpus=gpus, seccomp="proctor's" if doors else "the engine's"),
            )
        finally:
            if left := cleaner.close():
                observe(Notice(text=f"something could not be put away ({left}); next: proctor clean"))


def _gpus(wanted: int, *, allow_cpu: bool, observe: Observer) -> tuple[str, ...]:
    if not wanted:
        return ()
    search = find_gpus()
    if len(search.gpus) >= wanted:
        return tuple(gpu.uuid for gpu in search.gpus)
    if not allow_cpu:
        raise HostUnfit(
            f"the challenge asks for {wanted} GPU and this host has {len(search.gpus)}: {search.reason}",
            remedy="run on a host with a GPU, or add --allow-cpu: run times will not be comparable",
        )
    observe(
        Notice(
            text=f"the challenge asks for {wanted} GPU, none is used here: run times are not comparable (--allow-cpu)"
        )
    )
    return ()


def _with_output(
    bench: Bench, helper: ImageFacts, settings: Settings, *, scratch: Path, observe: Observer
) -> tuple[Bench, str]:
    """Choose how outputs are held to their size, and prove that it works before it is trusted."""
    loop_wanted = settings.output is not OutputMethod.VOLUME
    if settings.output is OutputMethod.LOOP and not can_mount():
        raise HostUnfit("output: loop needs root on Linux", remedy="run as root, or set output: volume")
    if loop_wanted and can_mount():
        if sees_our_folders(bench, helper, scratch=scratch):
            return bench, "loop file system"
        if settings.output is OutputMethod.LOOP:
            raise HostUnfit("the engine does not see file systems mounted by this process", remedy="set output: volume")
        observe(
            Notice(text="the engine does not see file systems mounted by this process; outputs go to volumes in memory")
        )
    held = by_volume(bench, helper)
    if not sees_our_folders(held, helper, scratch=scratch):
        raise HostUnfit("a volume in memory does not hold what a container writes", remedy="see: proctor doctor")
    return held, "volume in memory"
