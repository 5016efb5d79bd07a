"""Looks at a data folder before anything runs on it: cases, lengths, and references that do not fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.catalog import LoadedChallenge
from runner.challenge import Challenge, FormatSection, InputKind
from runner.confine import Confine
from runner.dataset import Case, Input, case_names, references_of, survey, table_rows
from runner.errors import UsageError
from runner.formats.reading import read_reference
from runner.pipeline.attempts import due_of
from runner.video import video_length

Advance = Callable[[int, int, str], None]
"""Is told how many cases are done, of how many, and which is next."""


@dataclass(frozen=True, kw_only=True)
class CheckedCase:
    """What was found of a case.

    Attributes:
        case: Its name.
        frames: How many it has; None where no input has a length.
        media_seconds: Its length; None likewise.
        inputs: What is wrong with its inputs; empty where nothing is.
        references: By task, what is wrong with its reference; empty where nothing is.
    """

    case: str
    frames: int | None
    media_seconds: float | None
    inputs: tuple[str, ...]
    references: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class CheckedData:
    """What was found of a data folder.

    Attributes:
        cases: By name.
        problems: Everything that must be mended.
        notes: What is good to know.
    """

    cases: tuple[CheckedCase, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Nothing must be mended."""
        return not self.problems


def check_data(loaded: LoadedChallenge, data: Path, *, confine: Confine, advance: Advance) -> CheckedData:
    """Look at every case of a data folder, and read every reference.

    Args:
        loaded: The challenge.
        data: The folder.
        confine: Where references are read.
        advance: Is told how far it is.

    Raises:
        UsageError: The folder is missing, or a video cannot be read.
        HostFault: No child could be started.
    """
    found, surveyed = survey(data, loaded.challenge)
    cases = []
    for number, case in enumerate(found):
        advance(number, len(found), case.name)
        own = tuple(text for text in surveyed if text.startswith(f"case {case.name!r} "))
        cases.append(_case(loaded, case, own, confine))
    advance(len(found), len(found), "")
    problems = dict.fromkeys(surveyed)
    for one in cases:
        problems.update(dict.fromkeys((*one.inputs, *one.references.values())))
    problems.pop("", None)
    return CheckedData(cases=tuple(cases), problems=tuple(problems), notes=_strangers(loaded, data, found))


def _case(loaded: LoadedChallenge, case: Case, surveyed: tuple[str, ...], confine: Confine) -> CheckedCase:
    timed = bool(loaded.challenge.cases.timed)
    missing = {_no_reference(case, path) for path in case.references.values()}
    read: dict[tuple[Path, str], str] = {}
    references = {}
    for name, task in loaded.challenge.tasks.items():
        rule = task.format_of_references
        key = (case.references[name], rule.model_dump_json())
        if key not in read:  # tasks may share a reference
            # A case without frames is to be mended first, and that is told.
            unread = timed and not case.frames and case.references[name].exists()
            read[key] = "" if unread else _reference(confine, rule, case, case.references[name])
        references[name] = read[key]
    return CheckedCase(
        case=case.name,
        frames=len(case.frames) if timed else None,
        media_seconds=case.media_seconds if timed else None,
        inputs=(*(text for text in surveyed if text not in missing), *_lengths(case, loaded.challenge)),
        references=references,
    )


def _reference(confine: Confine, rule: FormatSection, case: Case, path: Path) -> str:
    if not path.exists():
        return _no_reference(case, path)
    try:
        read_reference(confine, rule, path, due=due_of(case))
    except UsageError as error:
        return f"case {case.name!r}, reference {path}: {error.what}"
    return ""


def _no_reference(case: Case, path: Path) -> str:
    return f"case {case.name!r} has no reference {path}"


def _lengths(case: Case, challenge: Challenge) -> list[str]:
    """Inputs that are not as long as the case."""
    timed, streamed = challenge.cases.timed, challenge.invocation.stream is not None
    others = [one for one in case.inputs if one.name != timed and one.path.exists()]
    lengths = {one.name: _length(one, streamed=streamed) for one in others}
    return [
        f"case {case.name!r} has {length} frames in {name}, and {len(case.frames)} in {timed}"
        for name, length in lengths.items()
        if length is not None and length != len(case.frames)
    ]


def _length(one: Input, *, streamed: bool) -> int | None:
    """Frames of an input that has one entry a frame; a video may have a rate of its own, unless it is streamed."""
    match one.kind:
        case InputKind.FRAMES:
            return len(one.frames)
        case InputKind.TABLE:
            return table_rows(one.path, header=one.header)
        case InputKind.VIDEO if streamed:
            return video_length(one.path)
        case _:
            return None


def _strangers(loaded: LoadedChallenge, data: Path, cases: tuple[Case, ...]) -> tuple[str, ...]:
    """References of cases that are not there."""
    known = {case.name for case in cases}
    notes: dict[str, None] = {}
    for pattern in references_of(loaded.challenge).values():
        try:
            names = case_names(data, pattern, key="references")
        except UsageError:
            continue  # that each case lacks its reference is told already
        for name in names:
            if name not in known:
                notes[f"the reference {pattern.replace('{case}', name)} is of no case"] = None
    return tuple(notes)
