"""The two policies as data, and what one allows more than the other."""

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from runner.policy import COMPATIBLE, STRICT, Policy, PolicyName, Processors, facts_of, loosened, policy_named


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        STRICT.read_only = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        STRICT.environment["HOME"] = "/root"  # type: ignore[index]
    with pytest.raises(TypeError):
        STRICT.caches["X"] = "/x"  # type: ignore[index]


@pytest.mark.parametrize("name", PolicyName)
def test_each_name_is_a_policy(name: PolicyName) -> None:
    assert policy_named(name).name is name


def test_a_host_adds_its_processors_and_its_runtime() -> None:
    assert policy_named(PolicyName.STRICT) == STRICT
    assert policy_named(PolicyName.COMPATIBLE, processors=Processors.CPUSET, runtime="runsc") == replace(
        COMPATIBLE, processors=Processors.CPUSET, runtime="runsc"
    )


def test_strict_loosens_nothing_and_compatible_says_what() -> None:
    assert loosened(STRICT) == ()
    assert len(loosened(COMPATIBLE)) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_user": True}, "the image's own user"),
        ({"read_only": False}, "write anywhere in their own tree"),
        ({"capabilities": ("CHOWN", "SETUID")}, "keeps CHOWN, SETUID"),
    ],
    ids=str,
)
def test_each_loosening_has_its_sentence(change: dict[str, Any], words: str) -> None:
    (sentence,) = loosened(replace(STRICT, **change))
    assert words in sentence


def test_no_policy_gives_what_opens_the_host() -> None:
    dangerous = {"SYS_ADMIN", "MKNOD", "NET_RAW", "NET_ADMIN", "SYS_PTRACE", "SYS_MODULE", "SETPCAP", "SETFCAP", "ALL"}
    for policy in (STRICT, COMPATIBLE):
        assert policy.network == "none"
        assert dangerous.isdisjoint(policy.capabilities)
        assert {"HOME": "/tmp", "USER": "participant"}.items() <= policy.environment.items()
        assert all(path.startswith("/tmp/.cache") for path in policy.caches.values())


def _another(value: object) -> object:
    match value:
        case bool():
            return not value
        case PolicyName() | Processors():
            return next(other for other in type(value) if other is not value)
        case int():
            return value + 1
        case str() | None:
            return f"{value}x"
        case tuple():
            return (*value, "X")
        case _:
            return {"X": "x"}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Policy)])
def test_every_field_is_told_to_a_jobs_digest(name: str) -> None:
    other: dict[str, Any] = {name: _another(getattr(STRICT, name))}
    changed = replace(STRICT, **other)
    assert facts_of(changed) != facts_of(STRICT)
    assert facts_of(replace(STRICT)) == facts_of(STRICT)
