"""Writes the lists of attacks into their READMEs: ``python -m tests.attacks.list``."""

from pathlib import Path

from tests.attacks.expected import FOLDER, find_attacks, table

STREAMING = FOLDER / "streaming"
BEGIN, END = "<!-- the list: python -m tests.attacks.list -->\n", "<!-- end of the list -->\n"


def listed(folder: Path = FOLDER) -> str:
    """The list as a folder's README holds it."""
    return (folder / "README.md").read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Put the lists between their marks."""
    for folder in (FOLDER, STREAMING):
        readme = folder / "README.md"
        before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
        written = before + BEGIN + table(find_attacks(folder)) + END + rest.partition(END)[2]
        readme.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
