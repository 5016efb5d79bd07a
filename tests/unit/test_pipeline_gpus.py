"""Whether a run has its GPUs: found, refused, gone without, opened, and seen in a container."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.budget import Budget, GpuUsage, Usage
from runner.doctor.gpus import examine_gpus
from runner.engine import ImageFacts
from runner.engine.fake import FAKE_FACTS
from runner.errors import HostUnfit
from runner.gpu.access import GpuAccess
from runner.gpu.nvml import NvmlFault
from runner.gpu.pool import GpuPool
from runner.job import JobResult
from runner.pipeline import gpus as flow
from runner.pipeline.events import Event, Notice
from runner.pipeline.gpus import NO_GPUS, GpusWanted, misgiven, open_gpus
from runner.probe import ProbeAnswer
from runner.settings import Settings
from tests.gpu.stand_in import GIB, StandIn, card, host_of

NONE = "the challenge asks for 1 GPU and this host has no GPU that can be used"
RUNTIME = replace(FAKE_FACTS, runtimes=("nvidia", "runc"))


class Run:
    """A run on a host with some cards."""

    def __init__(self, folder: Path, nvml: StandIn) -> None:
        self.nvml, self.host = nvml, host_of(nvml, folder / "leases")
        self.said: list[str] = []

    def _observe(self, event: Event) -> None:
        assert isinstance(event, Notice)
        self.said.append(event.text)

    @contextmanager
    def opened(self, count: int = 1, *, settings: Settings | None = None, **wanted: Any) -> Iterator[GpuPool | None]:
        with open_gpus(
            GpusWanted(count=count, host=self.host, **{"allow_cpu": False, **wanted}), RUNTIME,
            settings or Settings(), stop=threading.Event(), observe=self._observe,
        ) as pool:  # fmt: skip
            yield pool


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, StandIn(card(0), card(1)))


def test_devices_are_open_as_long_as_the_run_lasts(run: Run) -> None:
    with run.opened() as pool:
        assert pool is not None
        assert [gpu.uuid for gpu in pool.gpus] == ["GPU-0", "GPU-1"]
        assert (pool.access, run.nvml.opened) == (GpuAccess.NVIDIA_RUNTIME, 1)
    assert (run.nvml.opened, run.said) == (0, [])


def test_the_hosts_setting_decides_the_way(run: Run) -> None:
    with run.opened(settings=Settings(gpu_access=GpuAccess.DEVICE_REQUEST)) as pool:
        assert pool is not None
        assert pool.access is GpuAccess.DEVICE_REQUEST
    with run.opened(settings=Settings(runtime="runsc")) as pool:
        assert pool is not None
        assert pool.access is GpuAccess.DEVICE_REQUEST


def test_where_none_is_wanted_nothing_is_asked(run: Run) -> None:
    run.nvml.fails = NvmlFault("must not be asked")
    with run.opened(0) as pool:
        assert pool is None
    with open_gpus(NO_GPUS, RUNTIME, Settings(), stop=threading.Event(), observe=lambda _: None) as pool:
        assert pool is None


@pytest.mark.parametrize(
    ("nvml", "count", "why"),
    [
        (StandIn(absent=True), 1, f"{NONE}: there is no NVIDIA driver: NVML Shared Library Not Found"),
        (StandIn(card(0)), 2, "the challenge asks for 2 GPU and this host has 1 that can be used"),
        (StandIn(card(0, 1, 2)), 2, "the challenge asks for 2 GPU and this host has no GPU that can be used"),
    ],
)  # fmt: skip
def test_too_few_are_refused_or_done_without(tmp_path: Path, nvml: StandIn, count: int, why: str) -> None:
    run = Run(tmp_path, nvml)
    with pytest.raises(HostUnfit) as caught, run.opened(count, remedy="another host"):
        pass
    assert (caught.value.what, caught.value.remedy) == (why, "another host")
    with run.opened(count, allow_cpu=True) as pool:
        assert pool is None
    assert run.said == [f"{why}; none is used: run times are not comparable"]
    assert nvml.opened == 0


class TestMisgiven:
    @pytest.fixture
    def asked(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
        """What is wrong where a container that is due some GPUs holds these and sees those nodes."""
        budgets: list[Budget] = []

        def wrong(answer: object, *held: str, count: int = 1, nvml: StandIn | None = None) -> str:
            usage = Usage(
                engine_seconds=1, monotonic_seconds=1, output_bytes=1, alone=True,
                gpus=tuple(GpuUsage(device=uuid, name="x", every=1) for uuid in held),
            )  # fmt: skip
            result = JobResult(job="full", digest="", attempt=1, exit=None, killed=None, usage=usage, intake=None)

            def ask(*_: object, budget: Budget, **__: object) -> ProbeAnswer:
                budgets.append(budget)
                return ProbeAnswer(result=result, answer=answer, log="no python3\n")  # type: ignore[arg-type]

            monkeypatch.setattr(flow, "ask", ask)
            with ExitStack() as stack:
                opened = Run(tmp_path, nvml) if nvml else run
                bench: Any = SimpleNamespace(gpus=stack.enter_context(opened.opened()))
                found = misgiven(bench, ImageFacts(id="i"), scratch=tmp_path, count=count)
            assert budgets[-1].gpus == count
            return found

        return wrong

    def test_what_is_held_is_seen_and_nothing_else(self, asked: Callable[..., str]) -> None:
        assert asked({"cards": [1]}, "GPU-1") == ""
        assert asked({"cards": [0, 1]}, "GPU-0", "GPU-1", count=2) == ""
        assert asked({"cards": []}, count=0) == ""

    def test_others_and_missing_ones_are_named(self, asked: Callable[..., str]) -> None:
        assert asked({"cards": [0, 1, 7]}, "GPU-1") == (
            "a container sees GPUs that its job does not hold: /dev/nvidia0, /dev/nvidia7"
        )
        assert asked({"cards": [0]}, count=0) == "a container sees GPUs that its job does not hold: /dev/nvidia0"
        assert asked({"cards": []}, "GPU-1") == "a container does not see the GPU its job holds: /dev/nvidia1"
        assert asked({"cards": [0]}, "GPU-0", "GPU-1", count=2) == (
            "a container does not see the GPU its job holds: /dev/nvidia1"
        )

    def test_a_slice_is_seen_by_its_cards_node(self, asked: Callable[..., str]) -> None:
        assert asked({"cards": [3]}, "MIG-32", nvml=StandIn(card(3, 1, 2))) == ""

    def test_a_driver_without_numbers_cannot_be_checked(self, asked: Callable[..., str]) -> None:
        for cards in ([], [0]):
            assert asked({"cards": cards}, "GPU-0", nvml=StandIn(card(0, minor=None))) == ""

    def test_no_answer_is_no_proof(self, asked: Callable[..., str]) -> None:
        assert asked(None, "GPU-0") == "a container of ours did not answer: no python3"
        assert asked({"cards": 1}, "GPU-0") == "a container of ours did not answer: no python3"
        assert asked({"cards": []}) == "a container that is due 1 GPU was given 0"


class TestDoctor:
    def findings(self, run: Run) -> list[tuple[str, str]]:
        found = [(one.state.value, one.sentence) for one in examine_gpus(run.host)]
        assert run.nvml.opened == 0
        return found

    def test_each_device_with_its_state(self, tmp_path: Path) -> None:
        run = Run(tmp_path, StandIn(card(0), card(1), card(2), card(3, mig=True)))
        run.nvml.used = {"GPU-0": [GIB], "GPU-1": [8 * GIB]}
        run.nvml.lost.add("GPU-2")
        facts = "Stand-in 16 GB, 16 GiB, compute capability 8.0, driver 550.54, CUDA 12.4"
        assert self.findings(run) == [
            ("note", "Stand-in 16 GB (GPU-3) is in MIG mode and has no instance"),
            ("fine", f"GPU-0: {facts}, 15 GiB free"),
            ("note", f"GPU-1: {facts}; GPU-1 is used by others: 8 GiB of 16 GiB taken, at most 10% may be"),
            ("problem", f"GPU-2: {facts}; GPU-2 is lost: GPU is lost"),
        ]

    def test_no_device_is_a_note_with_the_reason(self, tmp_path: Path) -> None:
        run = Run(tmp_path, StandIn(absent=True))
        assert self.findings(run) == [("note", "none: there is no NVIDIA driver: NVML Shared Library Not Found")]
