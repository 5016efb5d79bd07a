"""Where the challenges and templates that ship with the package lie."""

from pathlib import Path
from typing import Literal

from runner.errors import HostUnfit


def bundled(kind: Literal["challenges", "templates"]) -> Path:
    """Find the shipped folder of that kind: inside the package in a wheel, beside it in a checkout.

    Raises:
        HostUnfit: The installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "bundled" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise HostUnfit(
        f"this installation lacks its folder of {kind}",
        where=str(package),
        remedy="install proctor again",
    )
