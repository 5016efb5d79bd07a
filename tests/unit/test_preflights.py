"""What a run makes of what was found in an image: looked for once, kept, told, and turned into a verdict."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.catalog import LoadedChallenge
from runner.challenge import Challenge
from runner.clock import SimulatedClock
from runner.confine import Confine
from runner.engine.fake import FAKE_FACTS, FakeBox, FakeEngine
from runner.engine.fake_files import file
from runner.execute import Bench
from runner.images import PinnedImage, SourceKind
from runner.lease import Leases
from runner.ownership import current_owner
from runner.pipeline.context import Context
from runner.pipeline.events import Event, Notice
from runner.pipeline.host import HostFacts
from runner.pipeline.preflights import findings_of, refusal_of
from runner.preflight import PreflightFinding, Severity
from runner.provenance import DataHashes
from runner.settings import Ceiling, Settings
from runner.store import RunFolder
from runner.workspace import Workspace

SHELL = ("/bin/sh", "-c", 'segment "$0" "$@"')


def finding(severity: Severity, sentence: str, evidence: str = "") -> PreflightFinding:
    return PreflightFinding(severity=severity, sentence=sentence, remedy=f"mend {sentence}", evidence=evidence)


def test_refusal_quotes_the_image_on_public_data_only() -> None:
    findings = (
        finding(Severity.REFUSES, "one", "'<b>'"),
        finding(Severity.REFUSES, "two"),
        finding(Severity.REFUSES, "two"),
        finding(Severity.WARNS, "three"),
        finding(Severity.NOTE, "four"),
    )
    hidden, public = refusal_of(findings, public=False), refusal_of(findings, public=True)
    assert hidden is not None
    assert public is not None
    assert (hidden.word.value, hidden.sentence) == ("bad-image", "one; two")
    assert [(hint.cause, hint.fix) for hint in hidden.hints][:2] == [("one", "mend one"), ("two", "mend two")]
    assert public.sentence == "one: '<b>'; two"
    assert public.hints[0].cause == "one: '<b>'"
    assert refusal_of(findings[3:], public=True) is None


class Run:
    """A run on a fake engine, with one image of the engine."""

    def __init__(self, folder: Path, challenge: Challenge) -> None:
        self.fake = FakeEngine(SimulatedClock())
        self.told: list[Event] = []
        self.settings = Settings(workspace=folder / "work", ceiling=Ceiling(image_size=2 << 20))
        bench = Bench(
            engine=self.fake, clock=SimulatedClock(), workspace=Workspace(folder=folder / "work"),
            leases=Leases(folder=folder / "leases"), owner=current_owner(), run_token="t", helper="",
        )  # fmt: skip
        self.context = Context(
            run=RunFolder(root=folder / "run"), cases={}, input_hashes={}, settings=self.settings, seed=0, bench=bench,
            loaded=LoadedChallenge(challenge=challenge, folder=folder, digest="d"), confine=Confine(),
            host=HostFacts(engine=FAKE_FACTS, output="", gpus=()), observe=self.told.append,
            hashes=DataHashes(cache=folder / "hashes.json"),
        )  # fmt: skip

    def image(self, name: str, *, size: int = 1) -> PinnedImage:
        """An image whose shell command names a program that is not there."""
        files = {"/bin/sh": file(b"\0")}
        facts = self.fake.image(self.fake.add_image(name, _nothing, files=files, entrypoint=SHELL, size=size))
        return PinnedImage(source=name, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)

    def notices(self) -> list[str]:
        """What people were told."""
        return [event.text for event in self.told if isinstance(event, Notice)]


def _nothing(_: FakeBox) -> int:
    return 0


@pytest.fixture
def run(tmp_path: Path, make_challenge: Callable[..., Challenge]) -> Run:
    return Run(tmp_path, make_challenge())


def test_an_image_is_looked_into_once_and_warned_of_each_time(run: Run) -> None:
    image = run.image("one")
    first = findings_of(run.context, "slug", "Team 1", image)
    assert len(run.fake.created) == 1
    warning = (
        "Team 1: the first program of the entry point's shell command is not along the PATH of the image: 'segment'"
    )
    assert run.notices() == [warning]
    assert findings_of(run.context, "slug", "Team 1", image) == first
    assert run.notices() == [warning, warning]
    assert len(run.fake.created) == 1
    findings_of(run.context, "other", "Team 2", image)
    assert len(run.fake.created) == 2


def test_another_image_of_the_same_submission_is_looked_into_anew(run: Run) -> None:
    findings_of(run.context, "slug", "Team 1", run.image("one"))
    large = findings_of(run.context, "slug", "Team 1", run.image("two", size=3 << 20))
    assert len(run.fake.created) == 2
    assert large[0].sentence == "the image has 3 MiB, 2 MiB are allowed"
    assert findings_of(run.context, "slug", "Team 1", run.image("two", size=3 << 20)) == large
