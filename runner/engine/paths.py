"""Paths inside a container, as an engine understands them."""

import posixpath


def plain_path(path: str) -> str:
    """An absolute path without doubled, dotted or closing parts: ``data//out/`` is ``/data/out``."""
    return posixpath.normpath("/" + path.lstrip("/"))
