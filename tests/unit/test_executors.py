"""Jobs spread over threads, results in order, and one that has the host to itself."""

import threading
import time

import pytest

from runner.executors.local import Turnstile, spread


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_results_come_in_the_items_order(workers: int) -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.01 if item == 0 else 0)
        return item * item

    assert spread(slow_first, range(6), workers=workers) == [0, 1, 4, 9, 16, 25]


@pytest.mark.parametrize("workers", [1, 3])
def test_nothing_to_do(workers: int) -> None:
    assert spread(str, [], workers=workers) == []


def test_workers_run_at_once_and_no_more_than_that() -> None:
    barrier, inside, most, lock = threading.Barrier(3, timeout=5), 0, 0, threading.Lock()

    def meet(_: int) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        barrier.wait()
        with lock:
            inside -= 1

    spread(meet, range(6), workers=3)
    assert most == 3


def test_one_worker_runs_on_the_callers_own_thread() -> None:
    assert spread(lambda _: threading.current_thread(), [0], workers=1) == [threading.current_thread()]


class Boom(Exception):
    """A job's failure."""


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_exception_stops_what_has_not_begun(workers: int) -> None:
    begun, failed = [], threading.Event()

    def job(item: int) -> int:
        begun.append(item)
        if item == 0:
            failed.set()
            raise Boom
        failed.wait(5)
        time.sleep(0.05)  # what has begun is done
        begun.append(item + 100)
        return item

    with pytest.raises(Boom):
        spread(job, range(50), workers=workers)
    # A worker that comes free takes the next item until the others are cancelled.
    first = sorted(item for item in begun if item < 100)
    assert first == list(range(len(first)))
    assert len(first) == 1 if workers == 1 else 2 <= len(first) <= 10
    assert sorted(item for item in begun if item >= 100) == [item + 100 for item in first[1:]]


class TestTurnstile:
    def test_many_are_inside_together(self) -> None:
        turnstile, barrier = Turnstile(), threading.Barrier(4, timeout=5)

        def enter(_: int) -> int:
            with turnstile.together():
                return barrier.wait()

        assert sorted(spread(enter, range(4), workers=4)) == [0, 1, 2, 3]

    def test_alone_is_alone(self) -> None:
        turnstile, lock = Turnstile(), threading.Lock()
        inside: list[str] = []
        met: set[frozenset[str]] = set()

        def enter(item: int) -> None:
            alone = item % 4 == 0
            name = f"{'alone' if alone else 'together'}-{item}"
            with turnstile.alone() if alone else turnstile.together():
                with lock:
                    inside.append(name)
                time.sleep(0.001)
                with lock:
                    met.add(frozenset(inside))
                    inside.remove(name)

        spread(enter, range(80), workers=8)
        lonely = {group for group in met if any(name.startswith("alone") for name in group)}
        assert len(lonely) == 20
        assert {len(group) for group in lonely} == {1}
        assert max(len(group) for group in met) > 1

    def test_who_wants_to_be_alone_lets_nobody_in_before_him(self) -> None:
        turnstile, order = Turnstile(), []
        entered, leave = threading.Event(), threading.Event()

        def first() -> None:
            with turnstile.together():
                entered.set()
                leave.wait(5)
                order.append("first")

        def alone() -> None:
            with turnstile.alone():
                order.append("alone")

        def last() -> None:
            with turnstile.together():
                order.append("last")

        threads = [threading.Thread(target=target) for target in (first, alone, last)]
        threads[0].start()
        entered.wait(5)
        threads[1].start()
        time.sleep(0.05)
        threads[2].start()
        time.sleep(0.05)
        assert order == []
        leave.set()
        for thread in threads:
            thread.join(5)
        assert order == ["first", "alone", "last"]

    @pytest.mark.parametrize("way", ["together", "alone"])
    def test_an_error_inside_lets_the_next_one_in(self, way: str) -> None:
        turnstile, done = Turnstile(), []

        def fail() -> None:
            with turnstile.alone() if way == "alone" else turnstile.together():
                raise Boom

        with pytest.raises(Boom):
            fail()

        def next_ones() -> None:
            with turnstile.alone():
                done.append("alone")
            with turnstile.together():
                done.append("together")

        thread = threading.Thread(target=next_ones, daemon=True)
        thread.start()
        thread.join(5)
        assert done == ["alone", "together"]
