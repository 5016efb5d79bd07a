"""Folders with a Dockerfile, built by the real engine's classic builder: limits, network, and BuildKit's syntax."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engine import Engine, ImageFacts
from runner.images import Build, BuildNetwork, RefusedImage
from runner.images.folder import build_folder
from tests.engine.conftest import BASE, ROOT, leftovers, proctor, submissions_file

pytestmark = [pytest.mark.engine, pytest.mark.root]

REFERENCE = "proctor-test/folder:1"
SEES = "import os; print('sees', sorted(os.listdir('/sys/class/net')))"


@pytest.fixture
def build(engine: Engine, tmp_path: Path) -> Callable[..., tuple[ImageFacts | RefusedImage, list[str]]]:
    """Build a Dockerfile of these lines; what came of it, and what was told."""

    def build(*lines: str, **changes: object) -> tuple[ImageFacts | RefusedImage, list[str]]:
        folder, told = tmp_path / "folder", list[str]()
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text("\n".join((f"FROM {BASE}", *lines)) + "\n")
        fields = {"reference": REFERENCE, "deadline": 60, "memory": 512 << 20, "memory_must_hold": True, **changes}
        found = build_folder(engine, folder, Build(**fields), progress=told.append)  # type: ignore[arg-type]
        engine.remove_image(REFERENCE)
        return found, told

    return build


Builder = Callable[..., tuple[ImageFacts | RefusedImage, list[str]]]


def test_a_build_keeps_to_its_memory_and_is_told_to_its_maker(build: Builder) -> None:
    hungry = 'RUN python3 -c "held = bytearray(256 << 20)"'
    found, _ = build(hungry)
    assert isinstance(found, ImageFacts)
    found, told = build(hungry, "RUN true", memory=64 << 20)
    assert isinstance(found, RefusedImage)
    assert "returned a non-zero code: 137" in found.sentence
    assert hungry in found.log
    assert told


def test_a_build_that_takes_too_long_is_its_makers(build: Builder) -> None:
    found, _ = build("RUN sleep 60", deadline=2.0)
    assert isinstance(found, RefusedImage)
    assert found.sentence == "the folder did not build within 2.0 s"


@pytest.mark.parametrize(
    ("network", "sees"), [(BuildNetwork.NONE, ["lo"]), (BuildNetwork.DEFAULT, None), (BuildNetwork.HOST, None)]
)
def test_a_build_sees_the_network_it_is_given(build: Builder, network: BuildNetwork, sees: list[str] | None) -> None:
    # Never twice the same: what is cached prints nothing.
    found, told = build(f'RUN python3 -c "{SEES}" # {secrets.token_hex(8)}', network=network)
    assert isinstance(found, ImageFacts)
    (line,) = [line for line in told if line.startswith("sees ")]
    seen = line.removeprefix("sees ")
    here = str(sorted(path.name for path in Path("/sys/class/net").iterdir()))
    if network is BuildNetwork.HOST:
        assert seen == here
    else:
        assert seen != here
    if sees is not None:
        assert seen == str(sees)


def test_buildkits_syntax_is_named_where_the_classic_builder_fails_on_it(build: Builder) -> None:
    found, _ = build("RUN --mount=type=cache,target=/c true")
    assert isinstance(found, RefusedImage)
    assert "its Dockerfile needs BuildKit ('RUN --mount')" in found.sentence
    found, _ = build("RUN <<EOF", "true", "EOF")
    assert isinstance(found, RefusedImage)
    assert "its Dockerfile needs BuildKit ('RUN <<EOF')" in found.sentence


def test_a_run_builds_folders_only_when_told_to_and_says_what_that_risks(
    engine: Engine, hidden: Path, settings: Path, tmp_path: Path
) -> None:
    rows = {
        "folder": str(ROOT / "demo" / "submissions" / "writes-nothing"),
        "broken": "./broken",
    }
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "Dockerfile").write_text(f"FROM {BASE}\nRUN --mount=type=cache,target=/c true\n")
    submissions, run = submissions_file(tmp_path / "teams.yaml", rows), tmp_path / "run"
    command: list[str | Path] = [
        "evaluate", "pitvis2023", "--data", hidden, "--submissions", submissions, "--out", run, "--settings", settings,
        "--allow-cpu", "--seed", "5",
    ]  # fmt: skip
    ran = proctor(*command)
    assert ran.code == 2, ran.out + ran.err
    assert "is a folder" in ran.err
    ran = proctor(*command, "--build-untrusted", "--build-network", "none")
    try:
        assert ran.code == 0, ran.out + ran.err
        assert "--build-untrusted, for 2 folders: building runs the folders' programs as root" in ran.err
        assert "broken: bad-image: the folder does not build: its Dockerfile needs BuildKit" in ran.err
        assert "missing-output" in ran.err
    finally:
        engine.remove_image("proctor-build:folder")
    assert leftovers(engine) == []
