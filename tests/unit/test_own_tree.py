"""What a container writes to its own tree, looked at again and again."""

import threading

import pytest

from runner.clock import SimulatedClock
from runner.engine import ContainerSpec, EngineUnreachable
from runner.engine.fake import FakeBox, FakeEngine, FakeExit
from runner.errors import HostFault
from runner.own_tree import SPARE_ROOM, OwnTree


class Silent(FakeEngine):
    """One that does not answer some questions for a size."""

    silent = 0

    def written_bytes(self, container: str) -> int:
        if self.silent:
            self.silent -= 1
            raise EngineUnreachable("no answer")
        return super().written_bytes(container)


@pytest.fixture
def engine() -> Silent:
    return Silent(SimulatedClock())


def _started(engine: FakeEngine, written: int) -> str:
    def program(box: FakeBox) -> FakeExit:
        box.tree_bytes = written
        return FakeExit(seconds=100)

    image = engine.add_image("x", program)
    container = engine.create(ContainerSpec(image_id=image, name="proctor-x", labels={}))
    engine.start(container)
    return container


def test_it_is_stopped_when_it_holds_more_than_it_may(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 101), most=100, free=lambda: None)
    killed = threading.Event()
    with tree.watching(killed.set):
        assert killed.wait(timeout=60)
    assert tree.exceeded() == tree.settle() == 101


def test_it_is_left_alone_up_to_what_it_may(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 100), most=100, free=lambda: None)
    killed = threading.Event()
    with tree.watching(killed.set):
        killed.wait(timeout=1)
    assert not killed.is_set()
    assert tree.settle() == 0


def test_what_was_written_last_is_seen_at_the_end(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 7), most=6, free=lambda: None)
    assert tree.exceeded() == 0
    assert tree.settle() == 7
    assert tree.exceeded() == 7


def test_what_was_deleted_again_still_counts(engine: Silent) -> None:
    container = _started(engine, 7)
    tree = OwnTree(engine, container, most=6, free=lambda: None)
    assert tree.settle() == 7
    engine.remove(container)
    assert tree.settle() == 7


def test_an_engine_that_does_not_answer_once_is_asked_again(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 101), most=100, free=lambda: None)
    engine.silent = 2
    killed = threading.Event()
    with tree.watching(killed.set):
        assert killed.wait(timeout=60)
    engine.silent = 1
    with pytest.raises(EngineUnreachable):
        tree.settle()


def test_a_disk_without_room_to_spare_is_the_hosts_and_ends_the_container(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 1), most=100, free=lambda: SPARE_ROOM - 1)
    killed = threading.Event()
    with pytest.raises(HostFault, match="the engine's disk has 256 MiB free"), tree.watching(killed.set):
        assert killed.wait(timeout=60)
    assert tree.exceeded() == 0


def test_a_disk_with_just_room_to_spare_is_enough(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 1), most=100, free=lambda: SPARE_ROOM)
    killed = threading.Event()
    with tree.watching(killed.set):
        assert not killed.wait(timeout=1)


def test_who_wrote_too_much_is_not_excused_by_a_full_disk(engine: Silent) -> None:
    tree = OwnTree(engine, _started(engine, 101), most=100, free=lambda: 0)
    killed = threading.Event()
    with tree.watching(killed.set):
        assert killed.wait(timeout=60)
    assert tree.settle() == 101
