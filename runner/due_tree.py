"""Tells what is due in an output folder from what is not, by path alone."""

from collections.abc import Iterable, Sequence


class DueTree:
    """The files that are due, with the folders on the way to them.

    Args:
        outputs: Path of each output, and the names of its files where it is a folder with a file a frame.

    Attributes:
        folders: The folders on the way, the one above before the one below.
    """

    def __init__(self, outputs: Iterable[tuple[str, Sequence[str]]]) -> None:
        self._files = frozenset(
            file for path, names in outputs for file in ([f"{path}/{name}" for name in names] or [path])
        )
        ways = {file[:place] for file in self._files for place, letter in enumerate(file) if letter == "/"}
        self.folders = tuple(sorted(ways))
        self._ways = frozenset(ways)

    def is_stray(self, path: str) -> bool:
        """True where an entry is not due, and stands where something is: what lies in a stray folder counts with it."""
        above = path.rpartition("/")[0]
        return path not in self._files and path not in self._ways and (not above or above in self._ways)
