"""The fake engine's own ways; what it shares with the real one is in ``tests/contract``."""

import math
from pathlib import Path

import pytest

from runner.clock import SimulatedClock
from runner.engine import Bind, ContainerSpec, EngineRefusal, EngineUnreachable, ImageMissing, RefusalPhase, Tmpfs
from runner.engine.fake import FakeBox, FakeEngine, FakeExit, FakeProgram
from runner.engine.helper import HELPER_REFERENCE, helper_image
from runner.errors import HostUnfit


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def fake(clock: SimulatedClock) -> FakeEngine:
    return FakeEngine(clock)


def _spec(image_id: str, **changes: object) -> ContainerSpec:
    return ContainerSpec(**{"image_id": image_id, "name": "n", "labels": {"l": "1"}, **changes})  # type: ignore[arg-type]


def _start(fake: FakeEngine, program: FakeProgram, **changes: object) -> str:
    container = fake.create(_spec(fake.add_image("i", program), **changes))
    fake.start(container)
    return container


@pytest.mark.parametrize(("outcome", "code", "seconds"), [(None, 0, 1.0), (4, 4, 1.0), (FakeExit(5, 2.5), 5, 2.5)])
def test_runs_for_its_seconds_on_the_clock(
    fake: FakeEngine, clock: SimulatedClock, outcome: FakeExit | int | None, code: int, seconds: float
) -> None:
    clock.sleep(100)
    container = _start(fake, lambda _: outcome)
    clock.sleep(seconds - 0.001)
    running = fake.inspect(container)
    assert running is not None
    assert (running.state, running.exit) == ("running", None)
    clock.sleep(0.001)
    ended = fake.inspect(container)
    assert ended is not None
    assert ended.exit is not None
    assert (ended.state, ended.exit.code, ended.exit.seconds) == ("exited", code, seconds)


def test_kill_ends_at_the_present_moment_and_loses_to_an_earlier_end(fake: FakeEngine, clock: SimulatedClock) -> None:
    container = _start(fake, lambda _: FakeExit(code=9, seconds=math.inf, oom_killed=True))
    clock.sleep(7)
    fake.kill(container)
    clock.sleep(1)
    fake.kill(container)
    ended = fake.inspect(container)
    assert ended is not None
    assert ended.exit is not None
    assert (ended.exit.code, ended.exit.seconds, ended.exit.oom_killed) == (137, 7.0, False)


def test_box_translates_paths_and_knows_its_arguments(fake: FakeEngine, tmp_path: Path) -> None:
    seen: list[object] = []
    (tmp_path / "in").mkdir()
    (tmp_path / "deep").mkdir()

    def look(box: FakeBox) -> int:
        seen.extend([box.arguments, dict(box.environment), box.spec.name])
        seen.append(box.path("/data/inputs/x/../y"))
        seen.append(box.path("/data/inputs/deep/z"))
        box.path("/tmp/scratch").write_text("s")
        for outside in ("/etc/passwd", "/data/inputs/../secret", "/data/inputsx"):
            with pytest.raises(FileNotFoundError):
                box.path(outside)
        return 0

    image = fake.add_image("i", look, command=("own",), environment=("A=1", "B=2"))
    binds = (
        Bind(source=tmp_path / "in", target="/data/inputs", read_only=True),
        Bind(source=tmp_path / "deep", target="/data/inputs/deep", read_only=True),
    )
    tmpfs = (Tmpfs(target="/tmp", size=1, inodes=1, mode=0o700, executable=False),)
    fake.start(fake.create(_spec(image, binds=binds, tmpfs=tmpfs, environment={"B": "3"})))
    assert seen == [("own",), {"A": "1", "B": "3"}, "n", tmp_path / "in" / "y", tmp_path / "deep" / "z"]


def test_own_entrypoint_takes_the_images_command_away(fake: FakeEngine) -> None:
    seen: list[tuple[str, ...]] = []
    image = fake.add_image("i", lambda box: seen.append(box.arguments), command=("own",))
    fake.start(fake.create(_spec(image, entrypoint=("/e",))))
    fake.start(fake.create(_spec(image, name="m", entrypoint=("/e",), command=("c",))))
    assert seen == [(), ("c",)]


def test_what_a_program_raises_comes_out_of_start_and_leaves_it_created(fake: FakeEngine) -> None:
    def refuse(_: FakeBox) -> int:
        raise EngineRefusal(RefusalPhase.START, "no such file", status=400)

    image = fake.add_image("i", refuse)
    container = fake.create(_spec(image))
    with pytest.raises(EngineRefusal, match="no such file"):
        fake.start(container)
    facts = fake.inspect(container)
    assert facts is not None
    assert facts.state == "created"


def test_faults_come_in_order_and_pass(fake: FakeEngine) -> None:
    fake.fail_next("ping", EngineUnreachable("one"))
    fake.fail_next("ping", EngineUnreachable("two"))
    for word in ("one", "two"):
        with pytest.raises(EngineUnreachable, match=word):
            fake.ping()
    fake.ping()
    with pytest.raises(ValueError, match="no method 'pign'"):
        fake.fail_next("pign", EngineUnreachable("x"))


@pytest.mark.parametrize("method", ["read_tree", "export_root"])
def test_streams_fail_when_they_are_read(fake: FakeEngine, method: str) -> None:
    fake.fail_next(method, EngineUnreachable("broken"))
    stream = fake.read_tree("c", "/x") if method == "read_tree" else fake.export_root("c")
    with pytest.raises(EngineUnreachable):
        b"".join(stream)


def test_restart_ends_what_runs_with_143_and_spares_what_had_ended(fake: FakeEngine, clock: SimulatedClock) -> None:
    ended = _start(fake, lambda _: FakeExit(seconds=1), name="a")
    running = _start(fake, lambda _: FakeExit(seconds=10), name="b")
    clock.sleep(2)
    fake.restart()
    with pytest.raises(EngineUnreachable):
        fake.ping()
    fake.ping()
    codes = []
    for container in (ended, running):
        facts = fake.inspect(container)
        assert facts is not None
        assert facts.exit is not None
        codes.append((facts.exit.code, facts.exit.seconds))
    assert codes == [(0, 1.0), (143, 2.0)]


def test_every_specification_is_recorded(fake: FakeEngine) -> None:
    _start(fake, lambda _: 0, name="a")
    _start(fake, lambda _: 0, name="b")
    assert [spec.name for spec in fake.created] == ["a", "b"]


def test_pull_brings_what_the_registry_has(fake: FakeEngine) -> None:
    image = fake.add_remote("team/model:1", lambda _: 0, architecture="arm64")
    with pytest.raises(ImageMissing):
        fake.image("team/model:1")
    lines: list[str] = []
    facts = fake.pull("team/model:1", deadline=1, progress=lines.append)
    assert (facts.id, facts.architecture, facts.repo_tags) == (image, "arm64", ("team/model:1",))
    assert lines == ["Pulling from team/model"]
    assert fake.image(image) == facts


def test_build_answers_with_the_image_the_test_added(fake: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\n")
    image = fake.add_image("built:1", lambda _: 3)
    assert fake.build(tmp_path, reference="built:1", arguments={}, deadline=1, log=lambda _: None) == image
    other = fake.build(tmp_path, reference="other:1", arguments={}, deadline=1, log=lambda _: None)
    assert fake.image("other:1").id == other


def test_closing_erases_its_files(fake: FakeEngine) -> None:
    container = _start(fake, lambda box: box.print("x"))
    scratch = fake._containers[container].scratch
    assert scratch.is_dir()
    fake.close()
    assert not scratch.exists()


# The helper image, which needs only an engine


def test_helper_is_made_once_of_the_local_base(fake: FakeEngine) -> None:
    fake.add_image("proctor-base:1", lambda _: 0, entrypoint=("/evil",), volumes=("/v",))
    image = helper_image(fake, base=None)
    facts = fake.image(HELPER_REFERENCE)
    assert (facts.id, facts.entrypoint, facts.volumes) == (image, (), ())
    assert facts.labels == {"proctor.helper": "1"}
    assert helper_image(fake, base="not looked at") == image
    assert len(fake.created) == 1
    assert fake.containers("proctor.helper") == ()


def test_helper_is_not_taken_from_somebody_elses_image_of_that_name(fake: FakeEngine) -> None:
    foreign = fake.add_image(HELPER_REFERENCE, lambda _: 0)
    fake.add_image("proctor-base:1", lambda _: 0)
    assert helper_image(fake, base=None) != foreign


def test_helper_takes_the_named_base_first_and_the_registrys_last(fake: FakeEngine) -> None:
    named = fake.add_image("mine:1", lambda _: 0)
    fake.add_image("proctor-base:1", lambda _: 0)
    helper_image(fake, base="mine:1")
    assert fake.created[-1].image_id == named
    other = FakeEngine(SimulatedClock())
    pulled = other.add_remote("python:3.11-slim", lambda _: 0)
    helper_image(other, base=None)
    assert other.created[-1].image_id == pulled


def test_no_base_names_the_remedy(fake: FakeEngine) -> None:
    with pytest.raises(HostUnfit, match=r"'proctor-base:1' is not here") as unfit:
        helper_image(fake, base=None)
    assert unfit.value.remedy.startswith("docker pull python:3.11-slim")
    with pytest.raises(HostUnfit, match=r"'mine:1' is not here"):
        helper_image(fake, base="mine:1")


def test_helper_leaves_no_container_when_it_fails(fake: FakeEngine) -> None:
    fake.add_image("proctor-base:1", lambda _: 0)
    fake.fail_next("import_root", EngineUnreachable("gone"))
    with pytest.raises(EngineUnreachable):
        helper_image(fake, base=None)
    assert fake.containers("proctor.helper") == ()
