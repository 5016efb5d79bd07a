"""Who handed in again is marked, and where only the last of a team counts, the others are not ranked."""

import pytest

from runner.pipeline.publish import team_of
from runner.pipeline.standings import Row, _marked
from runner.submissions import Status, Submission

FOLLOWED = "was followed by a3: the last submission of a team counts"


def row(name: str, status: Status = Status.COMPETING, reason: str = "") -> Row:
    submission = Submission(submission=name, team=f"Team {name[0]}", image="x", status=status)
    return Row(submission=submission, rank=None, reason=reason, values={}, cases=(), causality=None)


@pytest.mark.parametrize("last_counts", [True, False])
def test_the_last_submission_counts_where_the_challenge_says_so(last_counts: bool) -> None:
    rows = [
        row("a1"), row("b1"), row("a2", reason="is refused"), row("a3"), row("b2", Status.BASELINE),
        row("a4", Status.POST_CHALLENGE),
    ]  # fmt: skip
    found = {one.submission.submission: one for one in _marked(rows, last_counts=last_counts)}
    assert {name: one.reason for name, one in found.items() if one.reason} == (
        {"a1": FOLLOWED, "a2": "is refused"} if last_counts else {"a2": "is refused"}
    )
    assert {name for name, one in found.items() if one.resubmitted} == {"a2", "a3"}
    assert (team_of(found["a1"]), team_of(found["a3"])) == ("Team a", "Team a *")
