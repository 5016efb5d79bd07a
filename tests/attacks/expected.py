"""What an attack must come to, as its folder says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from runner.challenge import Limits
from runner.challenge.section import Section
from runner.verdict import Blame, VerdictWord
from runner.yaml_text import parse_model, read_text

FOLDER = Path(__file__).parent
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_DENIED = frozenset({"EPERM", "EACCES", "EROFS", "ENOSYS", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT"})
_CLOSED = _DENIED | {"ENOENT", "0 bytes"}
_UNREACHABLE = frozenset({"ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"})
_ROOM: Mapping[str, object] = {
    "run_time": {"fixed": "20 s"}, "memory": "128 MiB", "shm": "16 MiB", "cpus": 1, "output": "8 MiB",
    "output_files": 256, "tmp": "16 MiB", "pids": 32,
}  # fmt: skip
"""What an attack may use unless it says otherwise."""


def matches(pattern: str, text: str) -> bool:
    """True where a text is exactly the pattern, in which ``#`` stands for any number."""
    return re.fullmatch(_NUMBER.join(map(re.escape, pattern.split("#"))), text) is not None


def answered(want: JsonValue, got: JsonValue) -> bool:
    """True where an act came to what it must.

    ``denied`` is any of the kernel's ways to say no, ``closed`` also that there is nothing, and ``unreachable`` any of
    the ways of a network that is not there.
    """
    match want:
        case "denied":
            return got in _DENIED
        case "closed":
            return got in _CLOSED
        case "unreachable":
            return got in _UNREACHABLE
        case _:
            return got == want


class Expected(Section):
    """``expected.yaml``.

    Attributes:
        about: What the attack tries, in a few words.
        verdict: The word it must get.
        blame: Whose doing that is.
        sentence: The verdict's sentence; ``#`` stands for a number that varies.
        notes: The verdict's notes, all of them.
        outlasts: It lives on past its limit: its last process must be dead soon after.
        answers: What each of its acts must come to, by the name under which it reports it.
        log: What the organisers' log must hold, so that the attack is known to have happened.
        places: How its output is held; both where it is about the output.
        volume_verdict: The word where the output is a volume in memory and what is known of it differs.
        volume_sentence: The sentence there.
        limits: Where they differ from the usual ones.
        stream: Of an attack on the protocol of streamed frames: where the section differs from the usual one.
        hint: Slug of the hint that must come first; empty: any, or none.
    """

    about: str
    verdict: VerdictWord
    blame: Blame
    sentence: str
    notes: tuple[str, ...] = ()
    outlasts: bool = False
    answers: dict[str, JsonValue] = Field(default_factory=dict)
    log: tuple[str, ...] = ()
    places: tuple[Literal["loop", "volume"], ...] = ("loop",)
    volume_verdict: VerdictWord | None = None
    volume_sentence: str = ""
    limits: dict[str, JsonValue] = Field(default_factory=dict)
    stream: dict[str, JsonValue] = Field(default_factory=dict)
    hint: str = ""

    def room(self) -> Limits:
        """All limits."""
        return Limits.model_validate({**_ROOM, **self.limits})

    def verdict_in(self, place: str) -> VerdictWord:
        """The word under a way of holding the output."""
        return self.volume_verdict if place == "volume" and self.volume_verdict else self.verdict

    def sentence_in(self, place: str) -> str:
        """The sentence under a way of holding the output."""
        return self.volume_sentence if place == "volume" and self.volume_sentence else self.sentence


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A folder of this suite."""

    name: str
    expected: Expected
    folder: Path = FOLDER

    @property
    def script(self) -> str:
        """The attack, by its place in the image."""
        return f"{self.name}/attack.py"

    @property
    def control(self) -> str:
        """What does the same honestly: the folder's own control, else the common one."""
        own = f"{self.name}/control.py"
        return own if (self.folder / own).is_file() else "control.py"


def _read(folder: Path) -> Attack:
    path = folder / "expected.yaml"
    return Attack(name=folder.name, expected=parse_model(path, read_text(path), Expected), folder=folder.parent)


def find_attacks(folder: Path = FOLDER) -> tuple[Attack, ...]:
    """Every folder that says what it must come to."""
    return tuple(_read(path.parent) for path in sorted(folder.glob("*/expected.yaml")))


def table(attacks: tuple[Attack, ...]) -> str:
    """The list of attacks for the README."""
    lines = ["| attack | what it tries | verdict | sentence |", "|---|---|---|---|"]
    lines += [f"| `{a.name}` | {a.expected.about} | {a.expected.verdict} | `{a.expected.sentence}` |" for a in attacks]
    return "\n".join(lines) + "\n"
