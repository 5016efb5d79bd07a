"""Names as people write them, and as a sentence lists them."""

from collections.abc import Sequence

_MOST_LISTED = 30


def loosely(name: str) -> str:
    """A name without what people write now so and now so: case, spaces, underscores."""
    return "".join(name.replace("_", " ").split()).lower()


def listed(names: Sequence[str]) -> str:
    """Names one after the other, of many the first thirty."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
