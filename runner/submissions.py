"""The submissions file: who handed in what, and how it takes part."""

import csv
import hashlib
import io
import re
from enum import StrEnum
from pathlib import Path

from pydantic import Field, field_validator

from runner.challenge.section import Section
from runner.errors import ConfigError, UsageError
from runner.yaml_text import parse_model, read_text

_COLUMNS = ("submission", "team", "image", "tasks", "status", "received")
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


class Submission(Section):
    """One entry.

    Attributes:
        submission: Unique key.
        team: Who handed it in; several submissions may share a team.
        image: A registry reference, a local image, or the path of a ``docker save`` archive.
        tasks: Which tasks it enters; empty: all.
        status: How it takes part.
        received: When it came in, as the organisers write it.
    """

    submission: str = Field(min_length=1, max_length=200)
    team: str = Field(min_length=1, max_length=200)
    image: str = Field(min_length=1)
    tasks: tuple[str, ...] = ()
    status: Status = Status.COMPETING
    received: str = ""

    @field_validator("received", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return value if isinstance(value, str) else str(value)

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


def _place(path: Path, text: str, name: str) -> str:
    lines = [number for number, line in enumerate(text.splitlines(), 1) if name in line]
    return f"{path}, line {', '.join(map(str, lines))}" if lines else str(path)


def _check_unique(path: Path, text: str, submissions: tuple[Submission, ...]) -> None:
    seen: set[str] = set()
    for entry in submissions:
        if entry.submission in seen:
            raise ConfigError(
                f"submission {entry.submission!r} is listed twice",
                where=_place(path, text, entry.submission),
                remedy="give each submission a key of its own; two submissions may share a team",
            )
        seen.add(entry.submission)


def _check_tasks(path: Path, submissions: tuple[Submission, ...], known: tuple[str, ...]) -> None:
    for entry in submissions:
        for task in entry.tasks:
            if task not in known:
                raise ConfigError(
                    f"submission {entry.submission!r} enters task {task!r}, which the challenge does not have",
                    where=str(path),
                    remedy=f"the challenge has: {', '.join(known)}",
                )


def _from_csv(path: Path, text: str) -> tuple[Submission, ...]:
    rows = csv.DictReader(io.StringIO(text))
    unknown = [name for name in rows.fieldnames or () if name not in _COLUMNS]
    missing = [name for name in _COLUMNS[:3] if name not in (rows.fieldnames or ())]
    if unknown or missing:
        wrong = [f"unknown column {name!r}" for name in unknown] + [f"column {name!r} is missing" for name in missing]
        raise ConfigError("; ".join(wrong), where=f"{path}, line 1", remedy=f"the columns are {', '.join(_COLUMNS)}")
    found = []
    for row in rows:
        if None in row or any(value is None for value in row.values()):
            raise ConfigError(
                "the row has more or fewer fields than the header",
                where=f"{path}, line {rows.line_num}",
                remedy="mend the row",
            )
        values: dict[str, object] = {key: value for key, value in row.items() if value != ""}
        if "tasks" in values:
            values["tasks"] = tuple(str(values["tasks"]).split())
        try:
            found.append(Submission.model_validate(values))
        except ValueError as error:
            raise ConfigError(
                "; ".join(_explain(error)), where=f"{path}, line {rows.line_num}", remedy="mend the row"
            ) from error
    return tuple(found)


def _explain(error: ValueError) -> list[str]:
    entries = error.errors() if hasattr(error, "errors") else []
    return [f"{'.'.join(map(str, e['loc']))} is {e['input']!r}: {e['msg']}" for e in entries] or [str(error)]


def read_submissions(path: Path, tasks: tuple[str, ...]) -> tuple[Submission, ...]:
    """Read a submissions file, YAML or CSV by its name.

    Args:
        path: The file.
        tasks: Names of the challenge's tasks.

    Raises:
        ConfigError: With file, line and value.
        UsageError: There is no such file.
    """
    if not path.is_file():
        raise UsageError(f"there is no submissions file {str(path)!r}", remedy="give the file with --submissions")
    text = read_text(path)
    found = (
        _from_csv(path, text) if path.suffix.lower() == ".csv" else parse_model(path, text, SubmissionList).submissions
    )
    if not found:
        raise ConfigError(
            "the file lists no submission", where=str(path), remedy=f"the columns are {', '.join(_COLUMNS)}"
        )
    _check_unique(path, text, found)
    _check_tasks(path, found, tasks)
    return found
