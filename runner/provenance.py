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
        """Hash of a case's frames, their names and their order."""
        total = hashlib.sha256()
        for name in case.frames:
            total.update(f"{name}\0{self.file(case.folder / name)}\n".encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def save(self) -> None:
        """Remember what was hashed."""
        write_whole(self.cache, json.dumps(self._known).encode())
