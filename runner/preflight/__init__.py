"""What can be told of an image before it is run.

``look`` reads a few files out of it, through the engine and without starting it; ``preflight`` turns what it says of
itself and what was read into findings, and does no I/O. What cannot be told for certain is no finding.
"""

from runner.preflight.configuration import Host
from runner.preflight.contents import Contents
from runner.preflight.cuda import HostGpu
from runner.preflight.findings import PreflightFinding, Severity, start_fault
from runner.preflight.look import examine, look
from runner.preflight.preflight import preflight

__all__ = [
    "Contents",
    "Host",
    "HostGpu",
    "PreflightFinding",
    "Severity",
    "examine",
    "look",
    "preflight",
    "start_fault",
]
