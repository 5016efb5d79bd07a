"""How labels are written in challenge.yaml."""

import re

_RANGE = re.compile(r"\s*([+-]?\d+)\s*\.\.\s*([+-]?\d+)\s*")
_LONGEST_RANGE = 10_000


def spread(labels: object) -> object:
    """Turn ``[-1..14]`` or ``-1..14`` into the list of whole numbers it stands for; anything else stays as it is."""
    items = labels if isinstance(labels, (list, tuple)) else [labels]
    found: list[object] = []
    for item in items:
        match = _RANGE.fullmatch(item) if isinstance(item, str) else None
        if match is None:
            found.append(item)
            continue
        first, last = int(match[1]), int(match[2])
        if last < first:
            raise ValueError(f"{item!r}: the range ends before it begins")
        if last - first >= _LONGEST_RANGE:
            raise ValueError(f"{item!r}: the range is longer than {_LONGEST_RANGE}")
        found.extend(range(first, last + 1))
    return found
