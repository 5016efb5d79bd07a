"""What a receipt, and the record of a purge, say: as values, and as what is sealed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from runner.receipt.steps import Step, step_of
from runner.receipt.tree import Digest

RECEIPT_FILE = "receipt.json"
PURGE_FILE = "purged.json"
NOT_COVERED = frozenset({".lock", RECEIPT_FILE, PURGE_FILE})
"""Who works on the run, the receipt itself, and the record of a purge, which is sealed apart."""

_RECEIPT, _PURGE = "proctor receipt 1", "proctor purge 1"
Plain: TypeAlias = Mapping[str, object]


class NotThat(Exception):
    """A sealed value that is no receipt, or no record of a purge."""


@dataclass(frozen=True, kw_only=True)
class CaseDigests:
    """SHA-256 of a case's inputs, and of its references by task; hexadecimal."""

    inputs: str
    references: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What a run is vouched for by.

    Attributes:
        summary: What was run on what, by what rules, and what it was run with; for people to read and to publish.
        cases: Of the data, by name.
        files: Of the run folder, by path.
    """

    summary: Plain
    cases: Mapping[str, CaseDigests]
    files: Mapping[str, Digest]

    def content(self) -> Plain:
        """What is sealed: the files stand below their step."""
        steps = {step.value: _files({p: d for p, d in self.files.items() if step_of(p) is step}) for step in Step}
        return {
            "kind": _RECEIPT,
            "summary": self.summary,
            "cases": {
                name: {"inputs": one.inputs, "references": dict(one.references)} for name, one in self.cases.items()
            },
            "files": {step: files for step, files in steps.items() if files},
        }


@dataclass(frozen=True, kw_only=True)
class PurgedImage:
    """An image that was to be deleted from the engine.

    Attributes:
        submission: Slug.
        id: ``sha256:…``.
        origin: What gives it again; empty where nothing does.
        fate: What became of it, in words.
    """

    submission: str
    id: str
    origin: str
    fate: str


@dataclass(frozen=True, kw_only=True)
class Purge:
    """One purge.

    Attributes:
        at: When, UTC, as ISO 8601 has it.
        files: That were deleted from the run folder, by path.
        images: That were deleted from the engine, or were to be.
        inputs: Copies of inputs that were deleted from the workspace, in words.
    """

    at: str
    files: Mapping[str, Digest]
    images: tuple[PurgedImage, ...]
    inputs: tuple[str, ...]


def purge_content(purges: Iterable[Purge]) -> Plain:
    """What is sealed of all purges of a run."""
    return {
        "kind": _PURGE,
        "purges": [
            {
                "at": one.at,
                "files": _files(one.files),
                "images": [
                    {"submission": i.submission, "id": i.id, "origin": i.origin, "fate": i.fate} for i in one.images
                ],
                "inputs": list(one.inputs),
            }
            for one in purges
        ],
    }


def read_receipt(content: Plain) -> Receipt:
    """The receipt that was sealed.

    Raises:
        NotThat: It is none.
    """
    if content.get("kind") != _RECEIPT:
        raise NotThat
    files: dict[str, Digest] = {}
    for _, below in _pairs(content.get("files")):
        files |= _digests(below)
    cases = {
        name: CaseDigests(
            inputs=_text(_field(one, "inputs")),
            references={task: _text(value) for task, value in _pairs(_field(one, "references"))},
        )
        for name, one in _pairs(content.get("cases"))
    }
    return Receipt(summary=dict(_pairs(content.get("summary"))), cases=cases, files=files)


def read_purges(content: Plain) -> tuple[Purge, ...]:
    """The purges that were sealed, the earliest first.

    Raises:
        NotThat: It is no record of purges.
    """
    if content.get("kind") != _PURGE:
        raise NotThat
    return tuple(
        Purge(
            at=_text(_field(one, "at")),
            files=_digests(_field(one, "files")),
            images=tuple(
                PurgedImage(
                    submission=_text(_field(image, "submission")), id=_text(_field(image, "id")),
                    origin=_text(_field(image, "origin")), fate=_text(_field(image, "fate")),
                )
                for image in _items(_field(one, "images"))
            ),
            inputs=tuple(_text(text) for text in _items(_field(one, "inputs"))),
        )
        for one in _items(content.get("purges"))
    )  # fmt: skip


def _files(digests: Mapping[str, Digest]) -> Plain:
    return {path: {"sha256": one.sha256, "bytes": one.size} for path, one in digests.items()}


def _digests(value: object) -> dict[str, Digest]:
    return {
        path: Digest(sha256=_text(_field(one, "sha256")), size=_number(_field(one, "bytes")))
        for path, one in _pairs(value)
    }


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict):
        raise NotThat
    yield from value.items()


def _items(value: object) -> Iterator[object]:
    if not isinstance(value, list):
        raise NotThat
    yield from value


def _field(value: object, name: str) -> object:
    return dict(_pairs(value)).get(name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotThat
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise NotThat
    return value
