"""Works, ends well, and forgets to write its answers."""

import sys
from pathlib import Path

frames = sorted(Path(sys.argv[1]).glob("*.png"))
print(f"predicted {len(frames)} frames")
