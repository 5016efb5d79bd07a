"""Finds a challenge by name, folder or archive, and reads it."""

import difflib
from dataclasses import dataclass
from pathlib import Path

from runner.challenge import Challenge
from runner.challenge_archive import is_archive, unpacked
from runner.errors import UsageError
from runner.shelf import CHALLENGE_FILE, digest_of, list_challenges
from runner.yaml_text import parse_model, read_text


@dataclass(frozen=True, kw_only=True)
class LoadedChallenge:
    """A challenge and where it came from.

    Attributes:
        challenge: What its challenge.yaml says.
        folder: Where that lies; a scorer of its own lies beside it.
        digest: sha256, in hex, over the names and contents of challenge.yaml and every ``*.py`` beside it.
    """

    challenge: Challenge
    folder: Path
    digest: str


def find_challenge(name_or_folder: str) -> Path:
    """Find the folder of a challenge.

    A bundled name comes first; ``./name`` is always a folder. A challenge.yaml stands for its folder. An archive is
    unpacked into the user's cache, once.

    Raises:
        UsageError: Nothing of that name, and what there is; or an archive that cannot be taken.
    """
    folders = {folder.name: folder for folder in list_challenges()}
    if name_or_folder in folders:
        return folders[name_or_folder]
    path = Path(name_or_folder)
    if is_archive(path):
        return unpacked(path, holds=CHALLENGE_FILE)
    folder = path.parent if path.name == CHALLENGE_FILE else path
    if name_or_folder and (folder / CHALLENGE_FILE).is_file():
        return folder
    if folder.is_dir() and "/" in name_or_folder:
        raise UsageError(
            f"the folder {name_or_folder!r} holds no {CHALLENGE_FILE}",
            remedy="give the folder that holds it, or the name of a bundled challenge",
        )
    raise _unknown(name_or_folder, sorted(folders))


def _unknown(name: str, known: list[str]) -> UsageError:
    close = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return UsageError(
        f"there is no challenge {name!r}",
        remedy=f"{guess}bundled: {', '.join(known) or 'none'}; or give a folder or archive that holds {CHALLENGE_FILE}",
    )


def load_challenge(folder: Path) -> LoadedChallenge:
    """Read a challenge.

    Raises:
        ConfigError: challenge.yaml is missing or does not say what it must; every error is listed.
    """
    path = folder / CHALLENGE_FILE
    text = read_text(path)
    challenge = parse_model(path, text, Challenge)
    return LoadedChallenge(challenge=challenge, folder=folder, digest=digest_of(folder, text))
