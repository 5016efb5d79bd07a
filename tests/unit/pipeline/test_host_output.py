"""How a host comes to hold outputs: the strongest way that a probe shows to work, or the one the settings name."""

import json
import math
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner import mounts, probe
from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, RefusalPhase, VolumeSpec
from runner.engine.fake import FakeBox, FakeEngine, FakeExit
from runner.engine.helper import HELPER_LABEL, HELPER_REFERENCE
from runner.errors import HostFault, HostUnfit
from runner.execute import Bench
from runner.pipeline import host
from runner.pipeline.events import Notice
from runner.pipeline.host import HostFacts, open_bench
from runner.policy import PolicyName
from runner.seccomp import DOORS, profile
from runner.settings import OutputMethod, Settings

UNSEEN = "the engine does not see file systems mounted by this process"
UNHELD = "a volume in memory does not hold what a container writes"
WATCHED = "outputs are only watched on this host: a container can write more than it may before it is stopped"
TO_VOLUMES = "; outputs go to volumes in memory"
TO_FOLDERS = "; outputs go to folders"


@dataclass
class Place:
    """A simulated host: which outputs a container's files reach, and what the engine makes of volumes.

    Attributes:
        unseen: Ways whose containers write where nobody finds it: ``bind``, ``volume``.
        unsized: A volume is as large as the disk.
        floods: A container writes more than it may when it is asked to.
        volume_error: What comes of making a volume.
    """

    unseen: set[str] = field(default_factory=set)
    unsized: bool = False
    floods: bool = True
    volume_error: Exception | None = None

    def helper(self, box: FakeBox) -> FakeExit:
        """Our helper image's program: what each probe's script does."""
        if not box.spec.command:
            return FakeExit(seconds=math.inf)
        script, folder, output = box.spec.command[2:5]
        if ("volume" if box.spec.volumes else "bind") in self.unseen:
            return FakeExit(seconds=0.0)
        answer: dict[str, object] = {}
        if script == probe._SIGHT:
            size = 1 << 60 if self.unsized else probe.PROBE_BUDGET.output_bytes
            answer = {"marker": (box.path(folder) / "marker.txt").read_text(), "output_bytes": size}
        elif script == DOORS:
            answer = {"vsock": False, "io_uring": False}
        elif script == probe._FLOOD:
            box.path(f"{output}-0").write_bytes(b"x" * ((9 << 20) if self.floods else 1))
            return FakeExit(seconds=math.inf if self.floods else 0.0)
        box.path(f"{output}.json").write_text(json.dumps(answer))
        return FakeExit(seconds=0.0)


class Engine(FakeEngine):
    """A fake that may refuse to make volumes."""

    def __init__(self, place: Place) -> None:
        super().__init__(SimulatedClock())
        self.place = place
        self.add_image(HELPER_REFERENCE, place.helper, labels={HELPER_LABEL: "1"}, command=("python3",))

    def create_volume(self, spec: VolumeSpec) -> None:
        if self.place.volume_error is not None:
            raise self.place.volume_error
        super().create_volume(spec)


Opened = tuple[Bench, HostFacts, list[str]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Opened]]:
    """Open a bench on a simulated host, and close it again; nothing may be left."""

    def open_it(
        place: Place, method: str = "auto", *, mounts_work: bool = False, policy: PolicyName = PolicyName.STRICT
    ) -> Opened:
        monkeypatch.setattr(host, "can_mount", lambda: mounts_work)
        told: list[str] = []
        engine = Engine(place)
        settings = Settings(workspace=tmp_path / "work", output=OutputMethod(method))
        with open_bench(
            engine, settings, stop=threading.Event(), policy=policy,
            observe=lambda event: told.append(event.text) if isinstance(event, Notice) else None,
        ) as (bench, facts):  # fmt: skip
            pass
        assert engine.volumes("proctor.owner") == ()
        assert engine.containers("proctor.owner") == ()
        engine.close()
        return bench, facts, told

    yield open_it
    assert [path.name for path in (tmp_path / "work").iterdir() if path.name != "leases"] == []
    assert mounts.mounted_below(tmp_path) == ()


REFUSED = EngineRefusal(RefusalPhase.CREATE, "no such driver")


@pytest.mark.root
class TestWithLoop:
    @pytest.mark.parametrize("method", ["auto", "loop"])
    def test_a_loop_file_system_comes_first(self, opened: Callable[..., Opened], method: str) -> None:
        bench, facts, told = opened(Place(), method, mounts_work=True)
        assert (bench.helper, bench.watched, facts.output, told) == ("", False, "loop file system", [])

    def test_one_the_engine_does_not_see_gives_way_to_a_volume(self, opened: Callable[..., Opened]) -> None:
        bench, facts, told = opened(Place(unseen={"bind"}), mounts_work=True)
        assert (bool(bench.helper), bench.watched, facts.output) == (True, False, "volume in memory")
        assert told == [UNSEEN + TO_VOLUMES]

    def test_one_that_cannot_be_made_gives_way_and_says_why(
        self, opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise HostFault("mkfs.ext4 did not run")

        monkeypatch.setattr(mounts, "mount_new", fail)
        _, facts, told = opened(Place(), mounts_work=True)
        assert (facts.output, told) == ("volume in memory", ["mkfs.ext4 did not run" + TO_VOLUMES])
        with pytest.raises(HostUnfit, match=r"mkfs\.ext4 did not run"):
            opened(Place(), "loop", mounts_work=True)

    def test_where_neither_works_a_folder_is_watched(
        self, opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise HostFault("mkfs.ext4 did not run")

        monkeypatch.setattr(mounts, "mount_new", fail)
        bench, facts, told = opened(Place(volume_error=REFUSED), mounts_work=True)
        assert (bench.helper, bench.watched, facts.output) == ("", True, "watched folder")
        assert told == [
            "mkfs.ext4 did not run" + TO_VOLUMES,
            "the engine refused to create: no such driver" + TO_FOLDERS,
            WATCHED,
        ]

    def test_the_one_that_was_asked_for_is_not_replaced(self, opened: Callable[..., Opened]) -> None:
        with pytest.raises(HostUnfit, match=UNSEEN):
            opened(Place(unseen={"bind"}), "loop", mounts_work=True)


class TestWithoutLoop:
    @pytest.mark.parametrize("method", ["auto", "volume"])
    def test_a_volume_comes_next(self, opened: Callable[..., Opened], method: str) -> None:
        bench, facts, told = opened(Place(), method)
        assert (bool(bench.helper), bench.watched, facts.output, told) == (True, False, "volume in memory", [])
        assert (bench.seccomp, facts.seccomp) == (None, "the engine's")

    @pytest.mark.parametrize(
        ("place", "why"),
        [(Place(unseen={"volume"}), UNHELD), (Place(unsized=True), UNHELD),
         (Place(volume_error=REFUSED), "the engine refused to create: no such driver")],
    )  # fmt: skip
    def test_one_that_does_not_work_gives_way_only_where_nothing_was_asked_for(
        self, opened: Callable[..., Opened], place: Place, why: str
    ) -> None:
        bench, facts, told = opened(place)
        assert (bench.helper, bench.watched, facts.output) == ("", True, "watched folder")
        assert told == [why + TO_FOLDERS, WATCHED]
        with pytest.raises(HostUnfit, match=why) as caught:
            opened(place, "volume")
        assert caught.value.remedy == "see: proctor doctor, or set output: watch"

    def test_a_loop_that_is_asked_for_needs_root(self, opened: Callable[..., Opened]) -> None:
        with pytest.raises(HostUnfit, match="output: loop needs root on Linux"):
            opened(Place(), "loop")

    def test_an_engine_that_is_away_says_nothing_of_a_way(self, opened: Callable[..., Opened]) -> None:
        with pytest.raises(EngineUnreachable):
            opened(Place(volume_error=EngineUnreachable("no answer")))


class TestWatched:
    def test_it_is_taken_where_it_is_asked_for(self, opened: Callable[..., Opened]) -> None:
        bench, facts, told = opened(Place(), "watch", mounts_work=True)
        assert (bench.watched, facts.output, told) == (True, "watched folder", [WATCHED])
        # Gigabytes can be had in milliseconds by who need not write them.
        assert (bench.seccomp, facts.seccomp) == (profile(allocate=False), "proctor's")

    def test_a_folder_that_is_not_seen_is_nothing(self, opened: Callable[..., Opened]) -> None:
        with pytest.raises(HostUnfit, match="a folder does not hold what a container writes"):
            opened(Place(unseen={"bind"}), "watch")

    def test_a_flood_that_is_not_stopped_is_nothing(self, opened: Callable[..., Opened]) -> None:
        with pytest.raises(HostUnfit, match="a container that writes more than it may is not seen, or not stopped"):
            opened(Place(floods=False), "watch")

    def test_containers_of_any_user_need_root_on_our_side(
        self, opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert opened(Place(), "watch", policy=PolicyName.COMPATIBLE)[0].watched is True
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(HostUnfit, match="which cannot be read or deleted without root"):
            opened(Place(), "watch", policy=PolicyName.COMPATIBLE)
