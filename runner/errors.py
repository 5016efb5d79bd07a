"""Every error a user can see, its exit code and its remedy.

RunnerError                 ours, or the host's; never a participant's (that is a ``Verdict``)
├── UsageError         2    a wrong flag, path or file
│   └── ConfigError    2    a file a person wrote: names file, line and key
├── HostUnfit          3    this host cannot do the job (no engine, no GPU, no space)
├── ScorerFault        4    the organiser's scorer failed
├── HostFault          5    the host failed while a job ran: retried, then pending
└── Interrupted      130    the user asked us to stop
"""


class RunnerError(Exception):
    """What went wrong, where, and what to do next.

    Args:
        what: One sentence, the offending value quoted.
        where: File, line and key, or the object concerned; empty when the sentence says it.
        remedy: The next thing to type or to change; empty only where nothing can be done.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.remedy})" if self.remedy else ""
        return f"{place}{self.what}{hint}"


class UsageError(RunnerError):
    """A wrong flag, path or file; exit code 2."""


class ConfigError(UsageError):
    """A file a person wrote does not say what it must; exit code 2."""


class HostUnfit(RunnerError):
    """This host cannot do what was asked; exit code 3."""

    exit_code = 3


class ScorerFault(RunnerError):
    """The organiser's scorer failed; exit code 4."""

    exit_code = 4


class HostFault(RunnerError):
    """The host failed while a job ran: retried within a bound, then pending; exit code 5."""

    exit_code = 5


class Interrupted(RunnerError):
    """The user asked us to stop; exit code 130."""

    exit_code = 130
