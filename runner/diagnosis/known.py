"""One known failure: when it fits, what is behind it, how to mend it."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from enum import StrEnum

from runner.diagnosis.facts import Facts, Gpu, Log
from runner.formats.signs import Sign
from runner.job import IntakeRefusal, NameKind, StartRefusal
from runner.streaming.protocol import Breach
from runner.verdict import VerdictWord


class Proof(StrEnum):
    """How it is known that an entry is found where it should be."""

    PROVOKED = "provoked"
    REPLAYED = "text replayed"


class Weight(StrEnum):
    """What an entry goes by; the first wins over the next."""

    FACTS = "facts"
    TEXT = "text"
    VERDICT = "verdict"


@dataclass(frozen=True, kw_only=True)
class When:
    """When an entry fits: all that is given must hold, of a collection any member.

    Attributes:
        words: Verdicts it can explain.
        exit_codes: Of the program.
        survived: The program itself lived on, or did not, when something was killed for memory.
        killed: We ended it, or did not.
        starts: Why the engine would not start it.
        intakes: Why its file was not taken.
        detail: What stands in the file's place, in our words.
        full: The output's file system was full.
        names: Kinds of names of other entries in the output folder.
        empty: The output folder was empty.
        answered: A valid file was there all the same.
        signs: What is seen of the file that was refused.
        gpus: What it was given of GPUs.
        length_dependent: Its answers depend on the length of a sequence.
        breaches: How it broke the protocol of streamed frames.
        printed: How much it printed.
        marks: Texts of the log, lower case.
        patterns: As marks, as regular expressions in which every repetition is bounded.
    """

    words: tuple[VerdictWord, ...]
    exit_codes: tuple[int, ...] = ()
    survived: bool | None = None
    killed: bool | None = None
    starts: tuple[StartRefusal, ...] = ()
    intakes: tuple[IntakeRefusal, ...] = ()
    detail: str = ""
    full: bool | None = None
    names: tuple[NameKind, ...] = ()
    empty: bool | None = None
    answered: bool | None = None
    signs: tuple[Sign, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    length_dependent: bool | None = None
    breaches: tuple[Breach, ...] = ()
    printed: tuple[Log, ...] = ()
    marks: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def conditions(self) -> int:
        """How many facts it asks for besides the verdict; the log's text is none."""
        given = [one.name for one in fields(self) if getattr(self, one.name) not in (None, (), "")]
        return len(set(given) - {"words", "marks", "patterns"})

    @property
    def weight(self) -> Weight:
        """What it goes by."""
        if self.conditions:
            return Weight.FACTS
        return Weight.TEXT if self.marks or self.patterns else Weight.VERDICT

    def fits(self, facts: Facts) -> bool:
        """True where everything it asks for holds."""
        return facts.word in self.words and all(self._held(facts)) and self._is_marked(facts.text)

    def _held(self, facts: Facts) -> Iterable[bool]:
        yield from (
            _is(self.killed, facts.killed),
            _is(self.full, facts.full),
            _is(self.empty, facts.others == 0),
            _is(self.answered, facts.answered),
            _is(self.length_dependent, facts.length_dependent),
            _is(self.survived, facts.out_of_memory and facts.exit_code != _KILLED),
            not self.detail or self.detail == facts.detail,
        )
        yield from (
            _among(self.exit_codes, {facts.exit_code}),
            _among(self.starts, {facts.start}),
            _among(self.intakes, {facts.intake}),
            _among(self.names, facts.names),
            _among(self.signs, facts.signs),
            _among(self.gpus, {facts.gpu}),
            _among(self.breaches, {facts.breach}),
            _among(self.printed, {facts.printed}),
        )

    def _is_marked(self, text: str) -> bool:
        if not self.marks and not self.patterns:
            return True
        return any(mark in text for mark in self.marks) or any(re.search(one, text) for one in self.patterns)


_KILLED = 137


def _is(wanted: bool | None, fact: bool) -> bool:  # noqa: FBT001  two truths, compared
    return wanted is None or wanted is fact


def _among(wanted: Collection[object], facts: Collection[object]) -> bool:
    return not wanted or not set(wanted).isdisjoint(facts)


@dataclass(frozen=True, kw_only=True)
class KnownFailure:
    """One entry of the catalogue.

    Attributes:
        slug: Its name, and its anchor in the page.
        title: What happened, in a few words.
        when: It fits where any of these does.
        cause: What is likely behind it; a constant.
        fix: What to do; a constant.
        tested: How it is tested.
        narrows: More general entries that say nothing new beside it.
        foreseen: The preflight tells most such images before they are run; its finding names this entry.
    """

    slug: str
    title: str
    when: tuple[When, ...]
    cause: str
    fix: str
    tested: Proof = Proof.PROVOKED
    narrows: tuple[str, ...] = ()
    foreseen: bool = False

    def rank(self, facts: Facts) -> tuple[int, int] | None:
        """The smaller the better it explains the facts; None where it does not fit."""
        ranks = [(list(Weight).index(one.weight), -one.conditions) for one in self.when if one.fits(facts)]
        return min(ranks, default=None)
