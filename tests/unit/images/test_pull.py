"""Whose doing a failed pull is, by texts recorded from Docker 20.10, and how often it is tried."""

import pytest

from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, Overdue, RefusalPhase
from runner.engine.fake import FakeEngine
from runner.errors import HostFault, RunnerError, UsageError
from runner.images import Unusable
from runner.images.pull import FAULTS, MOST_TRIES, Patience, fault_of, pull_image
from runner.verdict import Blame

NAME = "127.0.0.1:5000/team/model"
DIGEST = "sha256:" + "c" * 64
HEAD = 'Head "http://127.0.0.1:5000/v2/team/model/manifests/1": '
GET = 'Get "http://127.0.0.1:5000/v2/": '

RECORDED = [
    ("failed to register layer: write /usr/lib/x.so: no space left on device", "disk", Blame.HOST),
    ("write /var/lib/docker/tmp/GetImageBlob1: disk quota exceeded", "disk", Blame.HOST),
    ("toomanyrequests: You have reached your pull rate limit.", "rate limit", Blame.HOST),
    ('error parsing HTTP 429 response body: invalid character \'s\': "slow down"', "rate limit", Blame.HOST),
    (f"{HEAD}no basic auth credentials", "credentials", Blame.ORGANISER),
    ("unauthorized: authentication required", "credentials", Blame.ORGANISER),
    (f"{HEAD}unauthorized: authentication required", "credentials", Blame.ORGANISER),
    ("denied: requested access to the resource is denied", "credentials", Blame.ORGANISER),
    ("pull access denied for team/x, repository does not exist or may require 'docker login'", "credentials",
     Blame.ORGANISER),
    ("unauthorized: incorrect username or password", "credentials", Blame.ORGANISER),
    ("credentials: they cannot be read (StoreError)", "credentials", Blame.ORGANISER),
    (f"{GET}x509: certificate signed by unknown authority", "trust", Blame.ORGANISER),
    (f"{GET}http: server gave HTTP response to HTTPS client", "trust", Blame.ORGANISER),
    ("invalid reference format: repository name must be lowercase", "reference", Blame.ORGANISER),
    ("Repository name cannot contain a scheme (https://x)", "reference", Blame.ORGANISER),
    (f"manifest verification failed for digest {DIGEST}", "spoilt", Blame.PARTICIPANT),
    (f"filesystem layer verification failed for digest {DIGEST}", "spoilt", Blame.PARTICIPANT),
    ("error pulling image configuration: download failed after attempts=1: unknown blob", "partial", Blame.PARTICIPANT),
    (f"manifest for {NAME}:1 not found: manifest unknown: manifest unknown", "missing", Blame.PARTICIPANT),
    ("manifest unknown: manifest unknown", "missing", Blame.PARTICIPANT),
    ("name unknown: repository name not known to registry", "missing", Blame.PARTICIPANT),
    ("no matching manifest for linux/amd64 in the manifest list entries", "platform", Blame.PARTICIPANT),
    ("max depth exceeded", "unusable", Blame.PARTICIPANT),
    ("archive/tar: invalid tar header", "unusable", Blame.PARTICIPANT),
    ("unsupported media type application/vnd.cncf.helm.config.v1+json", "unusable", Blame.PARTICIPANT),
    ("received unexpected HTTP status: 500 Internal Server Error", "outage", Blame.HOST),
    ("received unexpected HTTP status: 503 Service Unavailable", "outage", Blame.HOST),
    (f"{GET}dial tcp 127.0.0.1:5000: connect: connection refused", "outage", Blame.HOST),
    (f"{GET}dial tcp: lookup localhost: no such host", "outage", Blame.HOST),
    (f"{GET}net/http: request canceled while waiting for connection (Client.Timeout exceeded)", "outage", Blame.HOST),
    (f"{GET}net/http: TLS handshake timeout", "outage", Blame.HOST),
    ("error parsing HTTP 404 response body: invalid character '<' looking for beginning of value", "outage",
     Blame.HOST),
    ("unexpected EOF", "outage", Blame.HOST),
    ("something that nobody has seen before", "outage", Blame.HOST),
    ("failed to register layer: mkdir /var/lib/docker/x: read-only file system", "outage", Blame.HOST),
]  # fmt: skip


@pytest.mark.parametrize(("message", "name", "blame"), RECORDED, ids=[message[:50] for message, _, _ in RECORDED])
def test_whose_doing_it_is(message: str, name: str, blame: Blame) -> None:
    fault = fault_of(message, f"{NAME}:1")
    assert (fault.name, fault.blame) == (name, blame)


@pytest.mark.parametrize(
    "reference",
    ["127.0.0.1:5001/unauthorized:1", "127.0.0.1:5001/x:toomanyrequests", "127.0.0.1:5001/manifest unknown",
     "denied/team", f"127.0.0.1:5001/denied@{DIGEST}"],
)  # fmt: skip
def test_a_name_decides_nothing(reference: str) -> None:
    repository = reference.partition("@")[0].rpartition(":")[0] or reference.partition("@")[0]
    for name in (reference, repository):
        assert fault_of(f"{name}: connection refused", reference).name == "outage"


def test_every_fault_is_recorded() -> None:
    assert {name for _, name, _ in RECORDED} == {fault.name for fault in FAULTS} | {"outage"}


class Pull:
    """A pull from a fake engine, and what was told meanwhile."""

    def __init__(self, *errors: Exception, size: int = 1000) -> None:
        self.clock = SimulatedClock()
        self.engine = FakeEngine(self.clock)
        self.image = self.engine.add_remote(f"{NAME}:1", lambda _: 0, size=size)
        self.told: list[str] = []
        for error in errors:
            self.engine.fail_next("pull", error)

    def run(self, *, deadline: float = 1000, limit: int = 2000) -> str:
        patience = Patience(deadline=deadline, clock=self.clock)
        pulled = pull_image(
            self.engine, f"{NAME}:1", limit=limit, patience=patience, progress=self.told.append, where="s.csv, line 2"
        )
        return pulled.facts.id

    def fails(self, kind: type[Exception], *, deadline: float = 1000, limit: int = 2000) -> Exception:
        with pytest.raises(kind) as caught:
            self.run(deadline=deadline, limit=limit)
        assert type(caught.value) is kind
        if isinstance(caught.value, RunnerError):
            assert caught.value.where == "s.csv, line 2"
        return caught.value


def no(message: str) -> EngineRefusal:
    return EngineRefusal(RefusalPhase.PULL, message)


def test_an_outage_is_waited_for_longer_and_longer() -> None:
    pull = Pull(*[no("connection refused")] * 3)
    assert pull.run() == pull.image
    assert pull.clock.now() == 1 + 2 + 4
    assert pull.told[0] == f"the registry does not give it; try 2 of {MOST_TRIES} in 1 s"


@pytest.mark.parametrize("message", ["connection refused", "toomanyrequests: slow down"])
def test_what_does_not_pass_stays_the_hosts(message: str) -> None:
    pull = Pull(*[no(message)] * MOST_TRIES)
    error = pull.fails(HostFault)
    assert f"(the engine says, {MOST_TRIES} times: '{message}')" in str(error)
    assert "proctor resume RUN" in str(error)
    assert pull.clock.now() == 1 + 2 + 4 + 8 + 16 + 32
    # The next one is the engine's own answer again.
    assert pull.run() == pull.image


def test_no_try_begins_behind_the_deadline() -> None:
    pull = Pull(*[no("connection refused")] * MOST_TRIES)
    pull.fails(HostFault, deadline=6.5)
    assert pull.clock.now() == 3


def test_an_engine_that_is_away_for_a_moment_is_waited_for() -> None:
    pull = Pull(EngineUnreachable("down"))
    assert pull.run() == pull.image
    pull = Pull(*[EngineUnreachable("down")] * MOST_TRIES)
    assert "the engine gives no answer" in str(pull.fails(HostFault))


def test_a_registry_that_is_too_slow_is_the_hosts_and_not_tried_again() -> None:
    pull = Pull(Overdue("late"))
    assert "could not be had within 1000 s: the registry is too slow" in str(pull.fails(HostFault))
    assert pull.clock.now() == 0


def test_spoilt_bytes_are_fetched_again_and_then_the_participants() -> None:
    spoilt = no("filesystem layer verification failed for digest sha256:0")
    pull = Pull(spoilt, spoilt)
    assert pull.run() == pull.image
    error = Pull(spoilt, spoilt, spoilt).fails(Unusable)
    assert "what the registry sends is not what its digest says (the engine says, 3 times: " in str(error)


def test_what_is_missing_or_forbidden_is_not_tried_again() -> None:
    for message, kind in (("manifest unknown", Unusable), ("unauthorized", UsageError)):
        pull = Pull(no(message))
        pull.fails(kind)
        assert pull.clock.now() == 0


def test_progress_is_told_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pull = Pull()
    real = FakeEngine.pull

    def chatty(self: FakeEngine, reference: str, **options: object) -> object:
        for number in range(100):
            options["progress"](f"layer {number}")  # type: ignore[operator]
            pull.clock.sleep(0.11)
        return real(self, reference, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeEngine, "pull", chatty)
    pull.run()
    assert pull.told == ["layer 0", "layer 46", "layer 92"]


def test_a_full_disk_is_the_hosts() -> None:
    pull = Pull(HostFault("the engine's disk is full", where="s.csv, line 2"))
    pull.fails(HostFault)


def test_an_image_that_is_too_large_is_given_up_while_it_is_fetched() -> None:
    pull = Pull(size=3000)
    error = pull.fails(Unusable)
    assert str(error) == (
        f"image '{NAME}:1' is too large: 2.93 KiB of packed layers or more; 1.953 KiB are allowed here"
    )


def test_an_image_that_is_too_large_unpacked_is_removed_unless_it_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pull = Pull(size=3000)
    real = FakeEngine.pull

    def unaware(self: FakeEngine, reference: str, **options: object) -> object:
        return real(self, reference, **{**options, "limit": None})  # type: ignore[arg-type]

    monkeypatch.setattr(FakeEngine, "pull", unaware)
    assert "is too large: 2.93 KiB; 1.953 KiB are allowed here" in str(pull.fails(Unusable))
    assert pull.image not in pull.engine.image_ids()
    pull.run(limit=4000)
    pull.fails(Unusable)
    assert pull.image in pull.engine.image_ids()


def test_the_engines_words_are_plain() -> None:
    error = Pull(no("manifest unknown\x1b[31m\u202e" + "x" * 500)).fails(Unusable)
    assert str(error).isascii() or str(error).isprintable()
    assert "\x1b" not in str(error)
    assert len(str(error)) < 450
