"""A check keeps no run folder, so no error of it may send anybody to one."""

import threading
from collections.abc import Callable

import pytest

from runner.engine import Engine
from runner.errors import HostFault, Interrupted, RunnerError
from runner.pipeline.check import CheckRequest, check, without_run


def _refusing(error: RunnerError) -> Callable[[str], Engine]:
    def connect(_url: str) -> Engine:
        raise error

    return connect


@pytest.mark.parametrize(
    "error",
    [
        HostFault("the disk is full", remedy="make room, then: proctor resume RUN"),
        Interrupted("stopped", remedy="make room, then: proctor resume RUN"),
    ],
)
def test_an_error_of_a_check_says_to_check_again(error: RunnerError) -> None:
    request = CheckRequest(image="method:1", challenge="pitvis2023", flags={}, build_arguments={})
    with pytest.raises(type(error)) as raised:
        check(
            request, connect=_refusing(error), stop=threading.Event(), observe=lambda _: None, tell=lambda _: None
        )  # fmt: skip
    assert raised.value is error
    assert error.remedy == "make room, then: the same check again"


def test_a_remedy_that_names_no_run_stays() -> None:
    assert without_run("see: proctor doctor") == "see: proctor doctor"
