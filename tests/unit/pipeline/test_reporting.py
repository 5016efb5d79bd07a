"""What the report says of the policy and of the ranking, in sentences that can be repeated."""

from dataclasses import replace

from runner.challenge import Challenge
from runner.engine.fake import FAKE_FACTS
from runner.pipeline.host import HostFacts
from runner.pipeline.reporting import _assumptions, _policy
from runner.policy import COMPATIBLE, PolicyName, loosened
from tests.unit.conftest import CHALLENGE

HOST_FACTS = HostFacts(engine=FAKE_FACTS, output="x", gpus=())


def test_what_a_policy_loosens_stands_in_the_report() -> None:
    assert _policy(replace(HOST_FACTS, policy=PolicyName.STRICT, runtime="runsc")) == "strict, runtime runsc"
    told = _policy(replace(HOST_FACTS, policy=PolicyName.COMPATIBLE))
    assert told == "; ".join(["compatible", *loosened(COMPATIBLE)])
    assert "the image's own user" in told


def test_a_ranking_by_tests_says_which() -> None:
    challenge = Challenge.model_validate(CHALLENGE)
    assert _assumptions(challenge)[0] == "Ranks follow mean then rank; ties take the smallest rank."
    ranking = challenge.ranking.model_copy(update={"method": "test_based", "alpha": 0.01, "adjust": "holm"})
    told = _assumptions(challenge.model_copy(update={"ranking": ranking}))[0]
    assert told == (
        "Ranks follow test based, one-sided Wilcoxon signed-rank tests at p ≤ 0.01, adjusted by Holm's method; ties "
        "take the smallest rank."
    )
    ranking = ranking.model_copy(update={"adjust": "none"})
    assert "without adjustment" in _assumptions(challenge.model_copy(update={"ranking": ranking}))[0]
