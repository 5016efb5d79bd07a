"""A file-like view of an iterable of bytes, for libraries that want to read."""

import io
from collections.abc import Iterable


class IterableReader(io.RawIOBase):
    """Reads from chunks as they come; never holds more than one of them."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, exactly that many unless the stream ends; all of it for a negative size."""
        parts, wanted = [], size if size >= 0 else None
        while wanted is None or wanted > 0:
            if not self._rest:
                # An empty chunk is not the end.
                self._rest = next((chunk for chunk in self._chunks if chunk), b"")
                if not self._rest:
                    break
            piece = self._rest if wanted is None else self._rest[:wanted]
            self._rest = self._rest[len(piece) :]
            parts.append(piece)
            if wanted is not None:
                wanted -= len(piece)
        return b"".join(parts)
