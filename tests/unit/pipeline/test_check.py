"""A check keeps no run folder, so no error of it may send anybody to one."""

import threading
from collections.abc import Callable

import pytest

from runner.challenge import CausalityRule
from runner.engine import Engine
from runner.errors import HostFault, Interrupted, RunnerError
from runner.pipeline.check import check, few_cuts
from runner.pipeline.home import HomeRequest, without_run


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
    request = HomeRequest(image="method:1", challenge="pitvis2023")
    with pytest.raises(type(error)) as raised:
        check(
            request, connect=_refusing(error), stop=threading.Event(), observe=lambda _: None, tell=lambda _: None
        )  # fmt: skip
    assert raised.value is error
    assert error.remedy == "make room, then: the same check again"


def test_a_scorer_that_was_mended_is_checked_again() -> None:
    assert without_run("mend the scorer's image, then: proctor score RUN") == (
        "mend the scorer's image, then: the same check again"
    )


def test_a_remedy_that_names_no_run_stays() -> None:
    assert without_run("see: proctor doctor") == "see: proctor doctor"


def rule(**changes: object) -> CausalityRule:
    own = {"method": "targeted", "on": 1, "on_leak": "refuse", "length_dependence": "report"}
    return CausalityRule.model_validate({**own, **changes})


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ({}, {"cuts": 6}),
        ({"cuts": 4}, {"cuts": 4}),
        ({"on": "all"}, {"cuts": 6}),
        ({"method": "altered-future", "on": 3}, {"method": "altered-future", "cuts": 6}),
        ({"method": "cut-run", "on": "all", "cuts": 6}, {"method": "cut-run", "on": "all", "cuts": 6}),
        ({"method": "exhaustive", "rule": "last", "clip": 300}, {"clip": 300, "cuts": 6}),
        ({"method": "off", "cuts": 1}, {"method": "off", "cuts": 1}),
    ],
)
def test_a_check_makes_a_few_cuts_of_one_case(asked: dict[str, object], made: dict[str, object]) -> None:
    assert few_cuts(rule(**asked)) == rule(**made)
