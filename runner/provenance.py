"""What a result came from: hashes of the data, cached by size, time and inode."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from runner.dataset import Case
from runner.store import write_whole

_BLOCK = 1 << 20


@dataclass(kw_only=True)
class DataHashes:
    """Hashes of files, remembered between runs in ``cache``."""

    cache: Path
    _known: dict[str, list[object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cache.is_file():
            try:
                found = json.loads(self.cache.read_bytes())
            except ValueError:
                return  # a damaged cache only costs time
            if isinstance(found, dict):
                self._known = found

    def file(self, path: Path) -> str:
        """SHA-256 of a file's bytes, hexadecimal."""
        facts = path.stat()
        key: list[object] = [facts.st_size, facts.st_mtime_ns, facts.st_ino]
        known = self._known.get(str(path))
        if isinstance(known, list) and len(known) == 4 and known[:3] == key:
            return str(known[3])
        with path.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
        self._known[str(path)] = [*key, digest]
        return digest

    def inputs(self, case: Case) -> str:
        """Hash of a case's inputs: their names, their files' names and bytes, and the order of the frames."""
        total = hashlib.sha256()
        for given in case.inputs:
            for name, path in given.files():
                line = f"{given.name}\0{name}\0{self.file(path)}\n"
                total.update(line.encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def tree(self, path: Path) -> str:
        """Hash of a file, or of a folder: the names and bytes of its files, at any depth."""
        if path.is_file():
            return self.file(path)
        total = hashlib.sha256()
        for found in sorted(path.rglob("*")):
            if found.is_file():
                line = f"{found.relative_to(path).as_posix()}\0{self.file(found)}\n"
                total.update(line.encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def save(self) -> None:
        """Remember what was hashed."""
        write_whole(self.cache, json.dumps(self._known).encode())
