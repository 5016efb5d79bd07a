"""Joules: from counters that wrap around, and from samples of power.

The processors' counters are Linux's powercap files (Intel RAPL, and AMD's under the same name). They count a whole
package, whoever uses it, and since CVE-2020-8694 only root can read them.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, kw_only=True)
class EnergyZone:
    """A processor package's counter; ``wraps_at`` in microjoules."""

    counter: Path
    wraps_at: int


def find_zones(root: Path = POWERCAP) -> tuple[EnergyZone, ...]:
    """The packages whose counter can be read.

    By name: a zone within a package, such as its ``core``, would be counted twice, and so would ``psys``, the board.
    """
    found = []
    for folder in sorted(root.glob("intel-rapl:*")):
        with contextlib.suppress(OSError, ValueError):
            name = (folder / "name").read_text(encoding="ascii").strip()
            zone = EnergyZone(
                counter=folder / "energy_uj",
                wraps_at=int((folder / "max_energy_range_uj").read_text(encoding="ascii")),
            )
            read_counter(zone)
            if name.startswith("package"):
                found.append(zone)
    return tuple(found)


def read_counter(zone: EnergyZone) -> int:
    """Microjoules since some moment, modulo ``wraps_at``. Raises ``OSError`` or ``ValueError``."""
    return int(zone.counter.read_text(encoding="ascii"))


def counted(readings: Iterable[int], *, wraps_at: int) -> int:
    """What a counter counted between its first reading and its last; it wraps at most once between two."""
    total, before = 0, None
    for reading in readings:
        if before is not None:
            total += reading - before if reading >= before else reading - before + wraps_at
        before = reading
    return total


def integrated(samples: Iterable[tuple[float, float]]) -> float:
    """Joules of (seconds, watts) samples in their order, by trapezoids; 0 for fewer than two."""
    total, before = 0.0, None
    for moment, watts in samples:
        if before is not None:
            total += (moment - before[0]) * (watts + before[1]) / 2
        before = (moment, watts)
    return total
