"""A folder is built within limits, through buildx where it is; a failure names its cause."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, ImageFacts, Overdue, RefusalPhase
from runner.engine.fake import FakeEngine
from runner.errors import HostFault, UsageError
from runner.images import Build, BuildNetwork, RefusedImage
from runner.images.folder import build_folder, buildkit_syntax

BUILD = Build(reference="built:1", deadline=20, memory=1 << 30)
MUST_HOLD = Build(reference="built:1", deadline=20, memory=1 << 30, memory_must_hold=True)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(SimulatedClock())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "method"
    found.mkdir()
    (found / "Dockerfile").write_text("FROM scratch\n")
    return found


@pytest.fixture
def no_buildx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, build: str) -> Path:
    """A ``docker`` that has buildx and builds by a shell script; the file it writes its arguments to."""
    folder.mkdir()
    asked = folder / "asked"
    program = folder / "docker"
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "buildx version" ] && exit 0\n'
        f'for word in "$@"; do echo "$word"; done > {asked}\necho "host $DOCKER_HOST" >> {asked}\n'
        f'while [ "$1" != "--iidfile" ]; do shift; done\nanswer=$2\n{build}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return asked


def built(engine: FakeEngine, folder: Path, build: Build = BUILD, told: list[str] | None = None) -> ImageFacts:
    found = build_folder(engine, folder, build, progress=(told if told is not None else []).append)
    assert isinstance(found, ImageFacts), found
    return found


def refused(engine: FakeEngine, folder: Path, build: Build = BUILD) -> RefusedImage:
    found = build_folder(engine, folder, build, progress=lambda _: None)
    assert isinstance(found, RefusedImage), found
    return found


# The classic builder


@pytest.mark.usefixtures("no_buildx")
@pytest.mark.parametrize("network", BuildNetwork)
def test_the_classic_builder_is_given_network_and_memory(
    engine: FakeEngine, folder: Path, network: BuildNetwork
) -> None:
    build = Build(reference="built:1", deadline=20, memory=1 << 30, network=network)
    assert built(engine, folder, build).repo_tags == ("built:1",)
    assert engine.builds == [(network.value, 1 << 30)]


def test_a_build_is_not_on_the_hosts_network_unless_asked() -> None:
    assert BUILD.network is BuildNetwork.DEFAULT


def test_where_the_memory_must_hold_buildx_is_not_used(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = stand_in(tmp_path / "bin", monkeypatch, "exit 1")
    built(engine, folder, MUST_HOLD)
    assert engine.builds == [("default", 1 << 30)]
    assert not asked.exists()


@pytest.mark.usefixtures("no_buildx")
def test_a_folder_that_does_not_build_is_told_with_the_engines_words(engine: FakeEngine, folder: Path) -> None:
    engine.fail_next("build", EngineRefusal(RefusalPhase.BUILD, "The command 'false' returned \x1b a code: 1"))
    found = refused(engine, folder)
    assert found.sentence == ("the folder does not build: \"The command 'false' returned \\x1b a code: 1\"")
    assert found.remedy == "mend the Dockerfile; docker build shows the same"


SYNTAX = {
    "# syntax=docker/dockerfile:1\nFROM x\n": "# syntax=docker/dockerfile:1",
    "FROM x\nRUN --mount=type=cache,target=/c pip install y\n": "RUN --mount",
    "FROM x\n  run --network=none true\n": "run --network",
    "FROM x\nRUN --security=insecure true\n": "RUN --security",
    "FROM x\nCOPY --link a b\n": "COPY --link",
    "FROM x\nCOPY --from=y --chmod=755 a b\n": "COPY --from=y --chmod",
    "FROM x\nADD --checksum=sha256:0 a b\n": "ADD --checksum",
    "FROM x\nRUN <<EOF\ntrue\nEOF\n": "RUN <<EOF",
    "FROM x\nRUN python3 <<-'END'\nprint()\nEND\n": "RUN python3 <<-'END",
    "FROM x\nCOPY <<EOF /etc/x\n": "COPY <<EOF",
    "FROM --platform=$BUILDPLATFORM x\n": "$BUILDPLATFORM",
    "FROM x\nARG TARGETARCH\nRUN echo ${TARGETARCH}\n": "${TARGETARCH",
}


@pytest.mark.usefixtures("no_buildx")
@pytest.mark.parametrize("text", SYNTAX)
def test_where_the_classic_builder_fails_on_buildkit_syntax_buildkit_is_named(
    engine: FakeEngine, folder: Path, text: str
) -> None:
    (folder / "Dockerfile").write_text(text)
    engine.fail_next("build", EngineRefusal(RefusalPhase.BUILD, "Unknown flag: mount"))
    found = refused(engine, folder)
    assert found.sentence.startswith("the folder does not build: its Dockerfile needs BuildKit (")
    assert SYNTAX[text].replace("'", "") in found.sentence.replace("'", "")
    assert found.sentence.endswith("which says: 'Unknown flag: mount'")
    assert "docker buildx build" in found.remedy


@pytest.mark.parametrize(
    "text",
    ["FROM x\nRUN echo --mount\n", "FROM x\n# RUN --mount=x\n", "FROM x\nRUN echo $((1<<3))\n", "FROM x\nCOPY a b\n"],
)
def test_ordinary_syntax_is_not_taken_for_buildkits(folder: Path, text: str) -> None:
    (folder / "Dockerfile").write_text(text)
    assert buildkit_syntax(folder) == ""


def test_a_folder_without_a_dockerfile_needs_no_buildkit(tmp_path: Path) -> None:
    assert buildkit_syntax(tmp_path) == ""


@pytest.mark.usefixtures("no_buildx")
def test_a_build_that_takes_too_long_is_its_makers_and_an_engine_that_is_away_the_hosts(
    engine: FakeEngine, folder: Path
) -> None:
    engine.fail_next("build", Overdue("late"))
    assert refused(engine, folder).sentence == "the folder did not build within 20.0 s"
    engine.fail_next("build", EngineUnreachable("down"))
    with pytest.raises(HostFault):
        build_folder(engine, folder, BUILD, progress=lambda _: None)


@pytest.mark.usefixtures("no_buildx")
def test_the_end_of_the_output_is_kept_and_bounded(
    engine: FakeEngine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_self: FakeEngine, _folder: Path, **options: object) -> str:
        log = options["log"]
        for number in range(100):
            log(f"{number} " + "x" * 1000)  # type: ignore[operator]
        raise EngineRefusal(RefusalPhase.BUILD, "no")

    monkeypatch.setattr(FakeEngine, "build", fails)
    lines = refused(engine, folder).log.splitlines()
    assert (len(lines), lines[0][:3], lines[-1][:3]) == (40, "60 ", "99 ")
    assert {len(line) for line in lines} == {500}


# buildx


def test_buildx_is_used_where_it_is(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = engine.add_image("made", lambda _: 0, id=f"sha256:{'5' * 64}")
    asked = stand_in(tmp_path / "bin", monkeypatch, f"echo step one; echo '{image}' > $answer")
    build = Build(
        reference="built:1", deadline=20, memory=1 << 30, network=BuildNetwork.NONE, arguments={"A": "1 2"},
        engine_address="unix:///x.sock",
    )  # fmt: skip
    told: list[str] = []
    assert built(engine, folder, build, told).id == image
    words = asked.read_text().splitlines()
    assert words[:8] == ["buildx", "build", "--load", "--progress", "plain", "--network", "none", "--iidfile"]
    assert words[9:] == ["--tag", "built:1", "--build-arg", "A=1 2", str(folder), "host unix:///x.sock"]
    assert told == ["building with buildx, which cannot hold a build to its memory", "step one"]
    assert engine.builds == []


def test_a_failed_buildx_is_its_makers_with_the_end_of_its_output(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", monkeypatch, "echo 'ERROR: no such file' >&2; exit 17")
    (folder / "Dockerfile").write_text("# syntax=docker/dockerfile:1\n")
    found = refused(engine, folder)
    assert found.sentence == "the folder does not build: 'docker buildx build ended with 17'"
    assert found.log.splitlines()[-1] == "ERROR: no such file"


def test_buildx_and_its_children_end_at_the_deadline(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", monkeypatch, f"sleep 731 & echo $! > {tmp_path}/child; wait")
    found = refused(engine, folder, Build(reference="built:1", deadline=0.5, memory=1 << 30))
    assert found.sentence == "the folder did not build within 0.5 s"
    child = (tmp_path / "child").read_text().strip()
    deadline = time.monotonic() + 10
    while subprocess.run(["ps", "-p", child, "-o", "stat="], capture_output=True, check=False).stdout.strip() not in (
        b"", b"Z",
    ):  # fmt: skip
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_endless_line_is_read_in_pieces(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", monkeypatch, "head -c 3000000 /dev/zero | tr '\\0' x; exit 1")
    found = refused(engine, folder)
    assert len(found.log) <= 40 * 501


def test_an_image_on_another_engine_is_told(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", monkeypatch, f"echo sha256:{'6' * 64} > $answer")
    with pytest.raises(UsageError, match="is not on the engine that proctor uses"):
        build_folder(engine, folder, BUILD, progress=lambda _: None)


def test_a_docker_without_buildx_is_known(
    engine: FakeEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", monkeypatch, "exit 1")
    program = tmp_path / "bin" / "docker"
    program.write_text("#!/bin/sh\necho 'unknown command' >&2; exit 1\n")
    built(engine, folder)
    assert engine.builds == [("default", 1 << 30)]
