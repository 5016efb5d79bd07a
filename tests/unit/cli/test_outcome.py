"""What a check says while it runs."""

import threading

import pytest

from runner.cli.outcome import checking
from runner.errors import Interrupted
from runner.pipeline.events import HostFailed, Step


@pytest.mark.parametrize(("again", "rest"), [(True, "tried again"), (False, "given up")])
def test_a_check_tells_what_the_host_failed_at(capsys: pytest.CaptureFixture[str], again: bool, rest: str) -> None:
    with checking(threading.Event(), quiet=True) as (observe, _tell):
        observe(Step(text="running case 01"))
        observe(
            HostFailed(
                submission="you", case="[b]01", text="no answer (make room, then: proctor resume RUN)", again=again
            )
        )
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"host case [b]01: no answer (make room, then: the same check again); {rest}\n"


def test_a_check_ends_at_the_next_event_once_it_is_asked_to() -> None:
    stop = threading.Event()
    with checking(stop, quiet=True) as (observe, _tell):
        stop.set()
        with pytest.raises(Interrupted):
            observe(Step(text="running case 01"))
