"""The challenges that ship with the package, by name and title, without reading them whole.

Reading a challenge builds every model of challenge.yaml; to list what there is, three lines of each are enough.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import yaml

from runner.bundled_files import bundled
from runner.errors import ConfigError

CHALLENGE_FILE = "challenge.yaml"


@dataclass(frozen=True, kw_only=True)
class Label:
    """What stands on a challenge's spine; ``digest`` as ``LoadedChallenge`` has it."""

    name: str
    version: str
    title: str
    digest: str
    folder: Path


def list_challenges() -> tuple[Path, ...]:
    """Folders of the challenges that ship with proctor, by name."""
    root = bundled("challenges")
    return tuple(sorted(entry for entry in root.iterdir() if (entry / CHALLENGE_FILE).is_file()))


def digest_of(folder: Path, text: str) -> str:
    """sha256, in hex, over the names and contents of challenge.yaml and every ``*.py`` beside it."""
    contents = {path.name: path.read_bytes() for path in folder.glob("*.py") if path.is_file()}
    contents[CHALLENGE_FILE] = text.encode()
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def read_label(folder: Path) -> Label:
    """Read a shipped challenge's name, version and title.

    Raises:
        ConfigError: The file is no YAML; ``proctor challenge show`` says what is wrong.
    """
    path = folder / CHALLENGE_FILE
    text = path.read_text(encoding="utf-8-sig")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        values = yaml.load(text, Loader=loader)  # noqa: S506  a safe loader, the fast one where there is one
        return Label(
            name=str(values["name"]), version=str(values["version"]), title=str(values["title"]),
            digest=digest_of(folder, text), folder=folder,
        )  # fmt: skip
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ConfigError(
            "it cannot be read", where=str(path), remedy=f"see: proctor challenge show {folder}"
        ) from error
