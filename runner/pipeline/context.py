"""What the steps of a run share: values, and the host's bench where containers are run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.catalog import LoadedChallenge
from runner.challenge import Challenge
from runner.confine import Confine
from runner.dataset import Case
from runner.execute import Bench
from runner.executors.local import Turnstile
from runner.images import PinnedImage
from runner.pipeline.events import Observer
from runner.pipeline.host import HostFacts
from runner.plan import Shared
from runner.preflight import PreflightFinding
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder
from runner.submissions import Submission


@dataclass(frozen=True, kw_only=True)
class Context:
    """A run under way.

    Attributes:
        run: Where its files are.
        loaded: The challenge.
        cases: By real name, in order.
        input_hashes: By real name.
        settings: This host's.
        seed: The organisers' secret.
        bench: What the host gives a job.
        host: Facts of the host.
        confine: Where untrusted files are read.
        observe: Is told what happens.
        hashes: Of files, remembered while the run lasts.
        turnstile: Lets one job have the host to itself.
    """

    run: RunFolder
    loaded: LoadedChallenge
    cases: Mapping[str, Case]
    input_hashes: Mapping[str, str]
    settings: Settings
    seed: int
    bench: Bench
    host: HostFacts
    confine: Confine
    observe: Observer
    hashes: DataHashes
    turnstile: Turnstile = field(default_factory=Turnstile)

    @property
    def challenge(self) -> Challenge:
        """What challenge.yaml says."""
        return self.loaded.challenge

    @property
    def public(self) -> bool:
        """The data is public: participants may see what their container wrote."""
        return self.challenge.data == "public"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A submission in the tasks that share its runs, with its pinned image and what the preflight found in it."""

    submission: Submission
    shared: Shared
    image: PinnedImage
    findings: tuple[PreflightFinding, ...] = ()

    @property
    def task(self) -> str:
        """The task below which its attempts are kept."""
        return self.shared.names[0]
