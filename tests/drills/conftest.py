"""The private engine, loaded once, and a fresh scene for every drill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner import mounts
from runner.engine.docker import connect
from runner.engine.helper import HELPER_REFERENCE, helper_image
from runner.errors import HostUnfit
from tests.drills.daemon import Daemon, copy_helper, private_daemon
from tests.drills.scene import ALL_ACCEPTED, BASE, Images, Scene, board, make_challenge, make_data
from tests.drills.warm import Warm, warm


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """A private engine that holds our helper image, which serves as base as well: loading one image takes seconds."""
    try:
        helper_image(connect(), base=BASE)
    except HostUnfit as error:
        pytest.fail(f"drills copy an image of this host's engine; next: make engine base ({error})")
    with private_daemon() as running:
        engine = running.engine()
        copy_helper(engine)
        repository, tag = BASE.split(":")
        running.api().tag(HELPER_REFERENCE, repository, tag=tag)
        engine.close()
        yield running


@pytest.fixture(scope="session")
def warmed() -> Iterator[Warm]:
    """What begins commands."""
    with warm() as begun:
        yield begun


@pytest.fixture(scope="session")
def images(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Images of the programs by name."""
    return Images(daemon.engine(), tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A challenge of seconds."""
    return make_challenge(tmp_path_factory.mktemp("challenge") / "pitvis2023")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its hidden data."""
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def scene(daemon: Daemon, warmed: Warm, images: Images, challenge: Path, data: Path, tmp_path: Path) -> Iterator[Scene]:
    """A fresh scene; the engine answers before and after, and nothing of ours is on it."""
    workspace = tmp_path / "work"
    found = Scene(
        daemon=daemon, warm=warmed, challenge=challenge, data=data, images=images, folder=tmp_path, workspace=workspace
    )  # fmt: skip
    assert found.leftovers() == []
    yield found
    if not daemon.answers():
        daemon.start()
    api = daemon.api()
    for container in api.containers(all=True):
        api.remove_container(container["Id"], force=True, v=True)
    for volume in api.volumes()["Volumes"] or ():
        api.remove_volume(volume["Name"])
    api.close()
    for point in mounts.mounted_below(tmp_path):
        mounts.unmount(point)


@pytest.fixture(scope="session")
def undisturbed(
    daemon: Daemon, warmed: Warm, images: Images, challenge: Path, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The leaderboard of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    scene = Scene(
        daemon=daemon, warm=warmed, challenge=challenge, data=data, images=images, folder=folder,
        workspace=folder / "work",
    )  # fmt: skip
    ran = scene.evaluate(folder / "run")
    assert ran.code == 0, ran.err
    assert scene.words(folder / "run") == ALL_ACCEPTED
    assert scene.leftovers() == []
    return board(folder / "run")
