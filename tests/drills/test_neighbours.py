"""Two runners share an engine, strangers' containers stand beside ours: only what is provably left over is removed."""

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runner.ownership import LABEL_OWNER, LABEL_RUN, Owner, current_owner, provably_dead
from runner.pipeline.host import Leftovers, sweep
from runner.settings import Settings
from tests.drills.scene import ACCEPTED, Scene, board

pytestmark = [pytest.mark.engine, pytest.mark.root]


def _owners(scene: Scene) -> dict[str, int]:
    """Containers and the pid of the runner that made each."""
    engine = scene.daemon.engine()
    owners = {c.name: Owner.parse(c.labels[LABEL_OWNER]) for c in engine.containers(LABEL_OWNER)}
    engine.close()
    return {name: owner.pid for name, owner in owners.items() if owner is not None}


def _swept(scene: Scene) -> Leftovers:
    """What ``proctor clean`` does, at once: a new process would find the containers ended."""
    engine = scene.daemon.engine()
    try:
        return sweep(engine, Settings(workspace=scene.workspace), current_owner())
    finally:
        engine.close()


def test_a_runners_death_costs_its_neighbour_nothing(scene: Scene, undisturbed: str) -> None:
    one, two = scene.folder / "one", scene.folder / "two"
    lives, dies = (scene.begin(out, *scene.arguments(out)) for out in (one, two))
    with scene.held(lives, containers=2), scene.held(dies, containers=2):
        assert set(_owners(scene).values()) == {lives.process.pid, dies.process.pid}
        dies.signal(signal.SIGKILL)
        dies.process.wait()
        before = _owners(scene)
        swept = _swept(scene)
        after = _owners(scene)
        dead, alive = ({name for name, pid in before.items() if pid == play.process.pid} for play in (dies, lives))
        assert (len(dead), len(alive)) == (1, 1)
        assert {f"container {name}" for name in dead} < set(swept.removed)
        assert {f"container {name}" for name in alive} < set(swept.kept)
        assert (len(swept.removed), len(swept.kept)) == (2, 2)  # a folder of each
        assert after.keys() == alive
        # A third, the dead one's successor, works beside the one that lives.
        resumed = scene.proctor("resume", two)
        ran = lives.wait()
    assert (ran.code, resumed.code) == (0, 0), (ran.err, resumed.err)
    assert "host" not in ran.err.replace("this host", "")
    assert (board(one), board(two)) == (undisturbed, undisturbed)
    assert scene.leftovers() == []


@pytest.fixture
def dead_owner() -> Owner:
    """A runner of this machine that is provably gone."""
    owner = replace(current_owner(), started="1")
    assert provably_dead(owner, current_owner())
    return owner


@pytest.fixture
def labelled(scene: Scene, dead_owner: Owner) -> Iterator[str]:
    """A participant's image that carries our labels, and so do containers that anybody starts from it."""
    folder = scene.folder / "labelled"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        f"FROM {scene.images['first']}\nLABEL {LABEL_OWNER}={dead_owner} {LABEL_RUN}=0123456789abcdef\n"
    )
    engine = scene.daemon.engine()
    reference = "proctor-drill/labelled:1"
    engine.build(folder, reference=reference, arguments={}, deadline=60, log=lambda _line: None)
    yield reference
    engine.remove_image(reference)
    engine.close()


def test_strangers_containers_with_our_labels_are_left_alone(scene: Scene, labelled: str) -> None:
    names = ["proctor-db", "proctor-helper-01234567", "somebody-elses"]
    api = scene.daemon.api()
    for name in names:
        api.create_container(labelled, name=name, host_config=api.create_host_config(network_mode="none"))
    for arguments in (["clean"], ["clean", "--force"]):
        cleaned = scene.proctor(*arguments)
        assert (cleaned.code, cleaned.out) == (0, "nothing is left over\n")
        assert sorted(scene.containers()) == names
    api.close()


def test_our_labels_in_an_image_do_not_make_its_container_look_left_over(scene: Scene, labelled: str) -> None:
    out = scene.folder / "run"
    play = scene.begin(out, *scene.arguments(out, labelled=labelled))
    with scene.held(play):
        containers = scene.containers("running")
        assert _swept(scene).removed == ()
        assert scene.containers("running") == containers
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert scene.words(out) == {("labelled", "01"): ACCEPTED, ("labelled", "02"): ACCEPTED}
