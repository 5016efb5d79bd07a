"""The submissions file: who handed in what, and how it takes part."""

import csv
import hashlib
import io
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from runner.challenge import Stream
from runner.challenge.section import Section
from runner.errors import ConfigError, UsageError
from runner.yaml_text import parse_model, parse_yaml, plain_words, read_text

_COLUMNS = ("submission", "team", "image", "predictions", "tasks", "profile", "status", "received")
_MARKED = re.compile(r"(?:^|-)[0-9a-f]{8}$")


class Status(StrEnum):
    """How a submission takes part; what is ranked and what is only shown follows from it."""

    COMPETING = "competing"
    NO_PRIZE = "no-prize"
    NON_COMPETING = "non-competing"
    BASELINE = "baseline"
    POST_CHALLENGE = "post-challenge"
    WITHDRAWN = "withdrawn"

    @property
    def ranked(self) -> bool:
        """True where it gets a rank."""
        return self in (Status.COMPETING, Status.NO_PRIZE)


class Profile(StrEnum):
    """How a submission's container is run: as the challenge's mode says, or frame by frame where that is offered."""

    DEFAULT = "default"
    STREAM = "stream"


class Submission(Section):
    """One entry.

    Attributes:
        submission: Unique key.
        team: Who handed it in; several submissions may share a team.
        image: A registry reference, a local image, or the path of a ``docker save`` archive; empty where there are
            ``predictions``.
        predictions: In place of an image: a folder of files as its container would write them, named by the real names
            of the cases; run time and causality are not tested.
        tasks: Which tasks it enters; empty: all.
        profile: How its container is run.
        status: How it takes part.
        received: When it came in, as the organisers write it.
    """

    submission: str = Field(min_length=1, max_length=200)
    team: str = Field(min_length=1, max_length=200)
    image: str = ""
    predictions: str = ""
    tasks: tuple[str, ...] = ()
    profile: Profile = Profile.DEFAULT
    status: Status = Status.COMPETING
    received: str = ""

    @field_validator("received", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return value if isinstance(value, str) else str(value)

    @model_validator(mode="after")
    def _one_of_both(self) -> "Submission":
        if bool(self.image) == bool(self.predictions):
            raise ValueError("either image or predictions is due, and not both")
        if self.predictions and self.profile is not Profile.DEFAULT:
            raise ValueError("profile is for an image: predictions are not run")
        return self

    @property
    def slug(self) -> str:
        """The submission's name as a path part: made by us, unique where the names are."""
        return slug_of(self.submission)


class SubmissionList(Section):
    """A submissions file."""

    submissions: tuple[Submission, ...] = Field(min_length=1)


def slug_of(name: str) -> str:
    """A path part for any name: lower-case letters, digits and dashes, with a hash where that lost something."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    # A name that looks as if it had a mark gets one of its own: it may be another name's path part.
    if plain and plain == name and not _MARKED.search(name):
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{mark}" if plain else mark


class _Listed(NamedTuple):
    """An entry and the line of the file it stands in."""

    line: int
    entry: Submission


def _check_unique(path: Path, listed: list[_Listed]) -> None:
    seen: dict[str, int] = {}
    for line, entry in listed:
        if entry.submission in seen:
            raise ConfigError(
                f"submission {entry.submission!r} is listed twice, first in line {seen[entry.submission]}",
                where=f"{path}, line {line}",
                remedy="give each submission a key of its own; two submissions may share a team",
            )
        seen[entry.submission] = line


def _check_tasks(path: Path, listed: list[_Listed], known: tuple[str, ...]) -> None:
    for line, entry in listed:
        for task in entry.tasks:
            if task not in known:
                raise ConfigError(
                    f"submission {entry.submission!r} enters task {task!r}, which the challenge does not have",
                    where=f"{path}, line {line}",
                    remedy=f"the challenge has: {', '.join(known)}",
                )


def _check_profiles(path: Path, listed: list[_Listed]) -> None:
    for line, entry in listed:
        if entry.profile is Profile.STREAM:
            raise ConfigError(
                f"submission {entry.submission!r} chooses profile {entry.profile.value!r}, which the challenge does "
                "not offer",
                where=f"{path}, line {line}",
                remedy="leave profile out, or offer it by the section invocation.stream of challenge.yaml",
            )


def _from_yaml(path: Path, text: str) -> list[_Listed]:
    entries = parse_model(path, text, SubmissionList).submissions
    lines = parse_yaml(path, text).lines
    return [_Listed(lines[("submissions", number, "submission")], entry) for number, entry in enumerate(entries)]


def _from_csv(path: Path, text: str) -> list[_Listed]:
    rows = csv.DictReader(io.StringIO(text, newline=None))
    try:
        _check_header(path, rows.fieldnames or ())
        return [_Listed(rows.line_num, _from_row(path, row, rows.line_num)) for row in rows]
    except csv.Error as error:
        raise ConfigError(
            f"this is not CSV: {error}", where=f"{path}, line {rows.line_num + 1}", remedy="mend the row"
        ) from error


def _check_header(path: Path, names: Sequence[str]) -> None:
    wrong = [f"unknown column {name!r}" for name in names if name not in _COLUMNS]
    wrong += [f"column {name!r} is missing" for name in _COLUMNS[:2] if name not in names]
    if "image" not in names and "predictions" not in names:
        wrong.append("column 'image' is missing")
    wrong += [f"column {name!r} stands there twice" for name in _COLUMNS if names.count(name) > 1]
    if wrong:
        raise ConfigError("; ".join(wrong), where=f"{path}, line 1", remedy=f"the columns are {', '.join(_COLUMNS)}")


def _from_row(path: Path, row: dict[str, str], line: int) -> Submission:
    # DictReader files surplus fields under None, and None where fields are missing.
    if None in row or None in row.values():
        raise ConfigError(
            "the row has more or fewer fields than the header", where=f"{path}, line {line}", remedy="mend the row"
        )
    values: dict[str, object] = {key: value for key, value in row.items() if value != ""}
    if "tasks" in values:
        values["tasks"] = tuple(str(values["tasks"]).split())
    try:
        return Submission.model_validate(values)
    except ValidationError as error:
        what = "; ".join(_explain(detail) for detail in error.errors(include_url=False))
        raise ConfigError(what, where=f"{path}, line {line}", remedy="mend the row") from error


def _explain(detail: ErrorDetails) -> str:
    key = ".".join(map(str, detail["loc"]))
    if not key:
        return detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        return f"{key} is missing"
    return f"{key} is {detail['input']!r}: {plain_words(detail)}"


def read_submissions(path: Path, tasks: tuple[str, ...], *, stream: Stream | None = None) -> tuple[Submission, ...]:
    """Read a submissions file, YAML or CSV by its name.

    Args:
        path: The file.
        tasks: Names of the challenge's tasks.
        stream: How the challenge streams frames; None: it does not.

    Raises:
        ConfigError: With file, line and value.
        UsageError: There is no such file.
    """
    if not path.is_file():
        raise UsageError(f"there is no submissions file {str(path)!r}", remedy="give the file with --submissions")
    text = read_text(path)
    listed = _from_csv(path, text) if path.suffix.lower() == ".csv" else _from_yaml(path, text)
    if not listed:
        raise ConfigError(
            "the file lists no submission", where=str(path), remedy=f"the columns are {', '.join(_COLUMNS)}"
        )
    _check_unique(path, listed)
    _check_tasks(path, listed, tasks)
    if stream is None:
        _check_profiles(path, listed)
    return tuple(entry for _, entry in listed)
