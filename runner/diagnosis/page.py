"""The catalogue as a page of the documents: ``python -m runner.diagnosis.page > docs/hints.md``."""

import sys
from collections.abc import Iterable, Sequence

from runner.diagnosis.catalogue import CATALOGUE, SUBJECTS
from runner.diagnosis.facts import Log
from runner.diagnosis.known import KnownFailure, Proof, When

_INTRODUCTION = """\
# Hints

A verdict says how a run ended; a hint says what is likely behind it and how to mend it. A hint decides nothing. It is
one of the constant texts below: what a container printed is searched for marks and never quoted, and what a refused
file holds is looked at by a confined child that answers in words of a closed list.

At most two hints are shown. Entries that ask for facts (the exit code, what lies in the output folder, what is seen of
a file, whether a GPU was given) come before those that go by the text of the log; one that knows no more than the
verdict is shown only where nothing else fits.

Of {count} entries, {provoked} are *provoked* in the tests, by a real container or a real file, and {replayed} are *text
replayed*: what programs print in such a case was put into a log, since no test here can make one fail so.

This page is written by `python -m runner.diagnosis.page` from `runner/diagnosis/catalogue/`.
"""


def page() -> str:
    """The whole page, as Markdown."""
    provoked = sum(entry.tested is Proof.PROVOKED for entry in CATALOGUE)
    parts = [_INTRODUCTION.format(count=len(CATALOGUE), provoked=provoked, replayed=len(CATALOGUE) - provoked)]
    for subject, entries in SUBJECTS.items():
        parts.append(f"## {subject}\n")
        parts += [_entry(entry) for entry in entries]
    return "\n".join(parts)


def _entry(entry: KnownFailure) -> str:
    shown = "; or ".join(dict.fromkeys(_when(one) for one in entry.when))
    foreseen = " Most such images are refused by the preflight, before they are run." if entry.foreseen else ""
    lines = [
        f"### {entry.slug}",
        "",
        f"**{entry.title}** · *{entry.tested.value}*",
        "",
        f"- Cause: {_plain(entry.cause)}.",
        f"- Fix: {_plain(entry.fix)}.",
        f"- Shown where: {shown}.{foreseen}",
        "",
    ]
    return "\n".join(lines)


def _when(when: When) -> str:
    """What an entry asks for, in a sentence's part."""
    words = _any(f"`{word.value}`" for word in when.words)
    asked = [text for text in _asked(when) if text]
    return f"the verdict is {words}" + "".join(f", and {text}" for text in asked)


def _asked(when: When) -> Iterable[str]:
    yield _given("the exit code is {}", when.exit_codes)
    yield _told(when.survived, "the program itself lived on", "the program itself was killed")
    yield _told(when.killed, "it was stopped at the end of its time", "it ended by itself")
    yield _given("the engine refused to start it: {}", [reason.value for reason in when.starts])
    yield f"{when.detail} stands in the place of the file" if when.detail else ""
    yield _given("the file was refused as {}", [] if when.detail else [one.value for one in when.intakes])
    yield _told(when.full, "the output folder was full", "the output folder was not full")
    yield _given("the output folder holds an entry whose name differs in kind: {}", [one.value for one in when.names])
    yield _told(when.empty, "the output folder is empty", "the output folder is not empty")
    yield _told(when.answered, "a valid file is there", "no valid file is there")
    yield _given("the file is seen to be: {}", [one.value for one in when.signs])
    yield _given("a GPU was {}", [one.value for one in when.gpus])
    yield _told(when.length_dependent, "the length of the sequence is what matters", "later frames are what matters")
    yield _given("the protocol was broken: {}", [one.value for one in when.breaches])
    yield _given("it printed {}", [_PRINTED[one] for one in when.printed])
    marks = list(dict.fromkeys(map(_code, when.marks)))
    yield (
        f"the log holds {_any([*marks, 'a pattern'] if when.patterns else marks)}"
        if when.marks
        else ("the log matches a pattern" if when.patterns else "")
    )


_PRINTED = {Log.NOTHING: "nothing", Log.WHOLE: "something", Log.CUT: "more than is kept"}


def _told(value: bool | None, yes: str, no: str) -> str:  # noqa: FBT001  the value is what is told
    return "" if value is None else yes if value else no


def _given(sentence: str, values: Sequence[object]) -> str:
    return sentence.format(_any(map(str, values))) if values else ""


def _any(texts: Iterable[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last


def _code(text: str) -> str:
    """A mark, visibly."""
    shown = text.replace("\r", "\\r").replace("\x7f", "\\x7f")
    return f"``{shown}``" if "`" in shown else f"`{shown}`"


_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_<>[]#|~"})


def _plain(text: str) -> str:
    """A text of the catalogue, which is not Markdown, as Markdown."""
    return text.translate(_SPECIAL)


if __name__ == "__main__":
    sys.stdout.write(page())
