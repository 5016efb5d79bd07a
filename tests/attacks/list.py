"""Writes the list of attacks into README.md: ``python -m tests.attacks.list``."""

from tests.attacks.expected import FOLDER, find_attacks, table

README = FOLDER / "README.md"
BEGIN, END = "<!-- the list: python -m tests.attacks.list -->\n", "<!-- end of the list -->\n"


def listed() -> str:
    """The list as the README holds it."""
    return README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Put the list between its marks."""
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    README.write_text(before + BEGIN + table(find_attacks()) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
