"""How long the engine lets another client wait while hostile clients of the protocol run.

    python -m benchmarks.streaming_attacks

Needs root, a running engine and the base image. Each attack of ``tests/attacks/streaming`` is played as in its test,
and another client pings the engine all the while, every 20 ms; the ping before any attack is the floor.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from tests.attacks.expected import find_attacks
from tests.attacks.streaming.stage import FOLDER, open_stream_stage, pinging

_QUIET_SECONDS = 5.0
_BAR = 0.1
"""Seconds within which the engine must answer."""


def main() -> None:
    """Print a row an attack, the longest wait last, and the same as JSON."""
    rows: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, open_stream_stage(Path(folder)) as stage:
        with pinging() as quiet:
            time.sleep(_QUIET_SECONDS)
        for attack in find_attacks(FOLDER):
            _, pings = stage.attack(attack)
            if pings.failed:
                sys.exit(f"{attack.name}: the engine did not answer: {pings.failed[0]}")
            rows[attack.name] = pings.longest
    print(f"| attack | longest ping (quiet: {quiet.longest * 1000:.1f} ms) |\n|---|---|")
    for name, longest in sorted(rows.items(), key=lambda row: row[1]):
        print(f"| {name} | {longest * 1000:.1f} ms |")
    worst = max(rows.values())
    figures = {"quiet_ms": quiet.longest * 1000, "worst_ms": worst * 1000, "bar_ms": _BAR * 1000, "met": worst <= _BAR}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
