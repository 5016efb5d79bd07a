"""``proctor`` on a host whose driver is a stand-in: everything else is the command's own.

The seam is ``GpuHost``: whoever calls the pipeline can say where devices are asked for and leased. No flag, setting or
variable of ``proctor`` does.

STAND_IN_CARDS: how many there are; 0: no driver. STAND_IN_LEASES: the folder runners share.
"""

import os
import sys
from pathlib import Path

from runner.gpu.pool import GpuHost
from tests.gpu.stand_in import GIB, StandIn, card, host_of


def stand_in(count: int) -> StandIn:
    """So many cards, each with 1 GiB in use, four fifths busy, and 50 J more at every look."""
    nvml = StandIn(*map(card, range(count)), absent=not count)
    for number in range(count):
        nvml.used[f"GPU-{number}"] = [GIB]
        nvml.percent[f"GPU-{number}"] = [80]
        nvml.joules[f"GPU-{number}"] = [50.0 * look for look in range(10_000)]
    return nvml


if __name__ == "__main__":
    host = host_of(stand_in(int(os.environ["STAND_IN_CARDS"])), Path(os.environ["STAND_IN_LEASES"]))
    GpuHost.real = classmethod(lambda _: host)  # type: ignore[method-assign, assignment]
    from runner.cli.boundary import run_cli

    sys.exit(run_cli(sys.argv[1:]))
