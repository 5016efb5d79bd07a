"""The one error by which an image itself is found at fault, and how a stranger's text stands in its sentence."""


class Unusable(Exception):
    """An image is not what it must be: its maker's doing, neither the host's nor the organisers'.

    Args:
        what: One sentence; what the image chose stands in it through ``quoted``.
        remedy: What its maker does next.
    """

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def quoted(text: object, *, most: int = 80) -> str:
    """A stranger's text for a sentence: in quotes, ASCII only, its beginning where it is long."""
    whole = ascii(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"
