"""The private engine, loaded once, and a fresh scene for every drill."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from runner import mounts
from runner.engine.docker import connect
from runner.engine.helper import HELPER_REFERENCE, helper_image
from runner.errors import HostUnfit
from tests.drills.daemon import Daemon, copy_image, private_daemon, twin_of
from tests.drills.scene import (
    ALL_ACCEPTED,
    BASE,
    PROGRAMS,
    Disturbed,
    Scene,
    board,
    lose_containerd,
    make_challenge,
    make_data,
    make_image,
    pause,
)


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """A private engine that holds our helper image, which serves as base as well: loading one image takes seconds."""
    try:
        helper_image(connect(), base=BASE)
    except HostUnfit as error:
        pytest.fail(f"drills copy an image of this host's engine; next: make engine base ({error})")
    with private_daemon() as running:
        engine = running.engine()
        copy_image(HELPER_REFERENCE, engine)
        repository, tag = BASE.split(":")
        running.api().tag(HELPER_REFERENCE, repository, tag=tag)
        engine.close()
        yield running


@pytest.fixture(scope="session")
def images(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Images of the programs by name."""
    folder = tmp_path_factory.mktemp("images")
    engine = daemon.engine()
    return {name: make_image(engine, folder / name, name) for name in PROGRAMS}


@pytest.fixture(scope="session")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A challenge of seconds."""
    return make_challenge(tmp_path_factory.mktemp("challenge") / "pitvis2023")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its hidden data."""
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def scene(daemon: Daemon, images: dict[str, str], challenge: Path, data: Path, tmp_path: Path) -> Iterator[Scene]:
    """A fresh scene; the engine answers before and after, and nothing of ours is on it."""
    workspace = tmp_path / "work"
    found = Scene(
        daemon=daemon, challenge=challenge, data=data, images=images, folder=tmp_path, workspace=workspace
    )  # fmt: skip
    assert found.leftovers() == []
    yield found
    if not daemon.answers():
        daemon.start()
    for container in daemon.api().containers(all=True):
        daemon.api().remove_container(container["Id"], force=True, v=True)
    for point in mounts.mounted_below(tmp_path):
        mounts.unmount(point)


@pytest.fixture(scope="session")
def undisturbed(
    daemon: Daemon, images: dict[str, str], challenge: Path, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The leaderboard of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    scene = Scene(
        daemon=daemon, challenge=challenge, data=data, images=images, folder=folder, workspace=folder / "work"
    )  # fmt: skip
    ran = scene.evaluate(folder / "run")
    assert ran.code == 0, ran.err
    assert scene.words(folder / "run") == ALL_ACCEPTED
    assert scene.leftovers() == []
    return board(folder / "run")


@pytest.fixture(scope="session")
def long_drills(
    daemon: Daemon,
    images: dict[str, str],
    challenge: Path,
    data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[Disturbed]]]:
    """What takes a minute: on an engine of its own, beside the other drills."""

    def scene(daemon: Daemon, name: str) -> Scene:
        folder = tmp_path_factory.mktemp(name)
        return Scene(
            daemon=daemon, challenge=challenge, data=data, images=images, folder=folder, workspace=folder / "work"
        )  # fmt: skip

    with twin_of(daemon) as twin, ThreadPoolExecutor(max_workers=1) as pool:
        yield {
            "pause": pool.submit(pause, scene(twin, "pause"), 62.0),
            "containerd": pool.submit(lose_containerd, scene(twin, "containerd")),
        }


@pytest.fixture(autouse=True)
def _begin_the_long_drills_early(request: pytest.FixtureRequest) -> None:
    if any("long_drills" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("long_drills")
