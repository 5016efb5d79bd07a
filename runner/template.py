"""Copies a template folder and fills its tokens ``@@NAME@@``."""

from collections.abc import Mapping
from pathlib import Path

from runner.bundled_files import bundled
from runner.errors import UsageError


def write_template(kind: str, folder: Path, *, values: Mapping[str, str]) -> tuple[Path, ...]:
    """Write a template's files.

    Args:
        kind: Name of a folder of ``templates``.
        folder: New or empty.
        values: What the tokens stand for, by lower-case name.

    Returns:
        The files written.

    Raises:
        UsageError: The folder is not empty, or cannot be made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} exists and is not empty", remedy="give a new folder")
    source = bundled("templates") / kind
    written = []
    for path in sorted(p for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        target = folder / path.relative_to(source)
        text = path.read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@@{name.upper()}@@", value)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{str(target)!r} cannot be written: {error.strerror}", remedy="give another folder"
            ) from error
        written.append(target)
    return tuple(written)
