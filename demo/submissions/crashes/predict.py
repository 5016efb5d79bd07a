"""Stops with an exception after a few frames."""

import sys
from pathlib import Path

for number, frame in enumerate(sorted(Path(sys.argv[1]).glob("*.png"))):
    if number == 5:
        raise RuntimeError(f"cannot handle {frame.name}")
