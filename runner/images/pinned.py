"""What became of an image's text: an image that cannot change any more, or a refusal."""

from dataclasses import dataclass
from enum import StrEnum

from runner.engine import ImageFacts


class SourceKind(StrEnum):
    """Where an image comes from."""

    REGISTRY = "registry"
    ARCHIVE = "archive"
    LOCAL = "local image"
    FOLDER = "folder"


@dataclass(frozen=True, kw_only=True)
class PinnedImage:
    """An image that cannot change any more.

    Attributes:
        source: As it was written in the submissions file.
        kind: Where it came from.
        id: ``sha256:…`` of its configuration; what is run.
        digests: Repository digests, where it has any.
        facts: What the engine says of it; untrusted.
        origin: What gives the same image again: ``NAME@sha256:…`` in a registry, ``sha256:…`` of an archive's file;
            empty for the others.
    """

    source: str
    kind: SourceKind
    id: str
    digests: tuple[str, ...]
    facts: ImageFacts
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class RefusedImage:
    """An image that cannot be run, by its maker's doing.

    Attributes:
        source: As it was written in the submissions file.
        kind: Where it came from.
        sentence: What is wrong with it; a stranger's text in it is quoted and plain.
        remedy: What its maker does next.
        log: The end of a build's output, where it was built; untrusted.
    """

    source: str
    kind: SourceKind
    sentence: str
    remedy: str
    log: str = ""
