"""The closed list of verdicts: whose doing each is, and which wins."""

import pytest

from runner.verdict import Blame, Hint, Verdict, VerdictWord, rank_of, replace_hints

IN_ORDER = [
    "host-fault", "scorer-fault", "bad-image", "timed-out", "out-of-memory", "too-much-output", "crashed",
    "broke-protocol", "unsafe-output", "missing-output", "bad-output", "not-causal", "accepted",
]  # fmt: skip


def test_the_order_of_precedence() -> None:
    assert [word.value for word in sorted(VerdictWord, key=rank_of)] == IN_ORDER


@pytest.mark.parametrize("word", list(VerdictWord))
def test_blame_accepted_and_pending_of_every_word(word: VerdictWord) -> None:
    verdict = Verdict(word=word, sentence="s")
    others = {"accepted": Blame.NOBODY, "host-fault": Blame.HOST, "scorer-fault": Blame.ORGANISER}
    assert verdict.blame is others.get(word.value, Blame.PARTICIPANT)
    assert verdict.accepted is (word.value == "accepted")
    assert verdict.pending is (word.value == "host-fault")


def test_replacing_hints_changes_nothing_else() -> None:
    verdict = Verdict(word=VerdictWord.CRASHED, sentence="s", notes=("n",), evidence=("e",))
    hint = Hint(cause="c", fix="f")
    changed = replace_hints(verdict, (hint,))
    assert changed == Verdict(word=VerdictWord.CRASHED, sentence="s", notes=("n",), hints=(hint,), evidence=("e",))
    assert verdict.hints == ()
