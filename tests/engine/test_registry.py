"""Pulls from real registries on loopback: verdict, blame and retry of each way they fail."""

import base64
import json
import os
import re
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engine import Engine, ImageMissing
from runner.errors import HostFault, UsageError
from runner.images import PinnedImage, RefusedImage, Room, SourceKind, Terms, pin, pin_again
from tests.archives import Entry, Image, Oci, docker_entries, layer, oci, tar_of
from tests.engine.conftest import leftovers, proctor, submissions_file
from tests.engine.registries import (
    PASSWORD,
    USER,
    Registry,
    StandIn,
    errors,
    helped,
    logged_in,
    running,
    stand_in,
)

pytestmark = [pytest.mark.engine, pytest.mark.registry]

TERMS = Terms(deadline=60)
NAME = "team/model:1"


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials of the person who runs the tests."""
    (tmp_path / "nobody").mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "nobody"))


@pytest.fixture
def registry(tmp_path: Path, nobody: None) -> Iterator[Registry]:
    with running(tmp_path / "registry") as found:
        yield found


@pytest.fixture
def guarded(tmp_path: Path, nobody: None) -> Iterator[Registry]:
    """A registry that asks for a password."""
    with running(tmp_path / "guarded", password=True) as found:
        yield found


def image(*, large: int = 0) -> Oci:
    """An image that no engine holds; ``large`` bytes of it cannot be packed."""
    layers = (layer(secrets.token_hex(8)), *([tar_of(Entry("large", secrets.token_bytes(large)))] if large else ()))
    return Oci(Image(layers))


class Pulling:
    """One image being pinned, and what was told meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.told: list[str] = []
        self.ids: list[str] = []

    def found(self, source: str, terms: Terms = TERMS) -> PinnedImage | RefusedImage:
        found = pin(self.engine, source, base=Path(), terms=terms, progress=self.told.append, where="submission 'a'")
        if isinstance(found, PinnedImage):
            self.ids.append(found.id)
        return found

    def pinned(self, source: str, terms: Terms = TERMS) -> PinnedImage:
        found = self.found(source, terms)
        assert isinstance(found, PinnedImage), found
        return found

    def refused(self, source: str, terms: Terms = TERMS) -> str:
        found = self.found(source, terms)
        assert isinstance(found, RefusedImage), found
        return found.sentence

    def fails(self, source: str, kind: type[Exception], terms: Terms = TERMS) -> str:
        with pytest.raises(kind) as caught:
            self.found(source, terms)
        assert type(caught.value) is kind
        return str(caught.value)

    @property
    def tries(self) -> int:
        """How often it was tried anew."""
        return sum("; try " in line for line in self.told)


@pytest.fixture
def pulling(engine: Engine) -> Iterator[Pulling]:
    found = Pulling(engine)
    yield found
    for image_id in found.ids:
        engine.remove_image(image_id)


# Having it


def test_an_image_is_pulled_and_pinned_by_digest(pulling: Pulling, registry: Registry, tmp_path: Path) -> None:
    offered = image()
    digest = registry.offer(offered, NAME, tmp_path)
    found = pulling.pinned(f"{registry.address}/{NAME}")
    assert (found.kind, found.id) == (SourceKind.REGISTRY, offered.image.id)
    assert found.origin == f"{registry.address}/team/model@{digest}"
    assert pulling.tries == 0
    again = pulling.pinned(f"docker://{found.origin}")
    assert (again.id, again.origin) == (found.id, found.origin)


def test_a_tag_that_moved_or_is_gone_changes_nothing(pulling: Pulling, registry: Registry, tmp_path: Path) -> None:
    registry.offer(image(), NAME, tmp_path)
    name = f"{registry.address}/{NAME}"
    first = pulling.pinned(name)
    moved = image()
    registry.offer(moved, NAME, tmp_path)

    def again(deadline: float = 60) -> PinnedImage:
        terms = replace(TERMS, deadline=deadline)
        return pin_again(pulling.engine, first, base=Path(), terms=terms, progress=pulling.told.append, where="s")

    # Moved: the engine's own counts, then the registry's by digest.
    assert again() == first
    pulling.engine.remove_image(first.id)
    with pytest.raises(ImageMissing):
        pulling.engine.image(first.id)
    assert again() == first
    assert pulling.engine.image(first.id).id == first.id
    assert pulling.pinned(f"docker://{name}").id == moved.image.id
    # Deleted: the engine's own counts. Gone there too, and the registry down: pending. The registry without it: told.
    # An engine may remember a manifest for a while and need only its blobs, so these are lost as well.
    registry.delete("team/model", first.origin.partition("@")[2])
    assert again() == first
    pulling.engine.remove_image(first.id)
    registry.kill()
    with pytest.raises(HostFault, match="connection refused"):
        again(deadline=1)
    shutil.rmtree(registry.folder / "data")
    registry.start()
    with pytest.raises(UsageError) as caught:
        again()
    assert "is no longer on the engine, and cannot be had again: image" in caught.value.what
    assert re.search("the registry has (no such image|only a part of it)", caught.value.what)


# Credentials


def test_a_registry_with_a_password_takes_the_users_own(
    pulling: Pulling, guarded: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = image()
    guarded.offer(offered, NAME, tmp_path)
    name = f"{guarded.address}/{NAME}"
    # None, wrong ones, right ones.
    told = [pulling.fails(name, UsageError)]
    monkeypatch.setenv("DOCKER_CONFIG", str(logged_in(tmp_path / "wrong", guarded, password="wrong-horse-8")))
    told.append(pulling.fails(name, UsageError))
    for text in told:
        assert text.startswith(f"submission 'a': image '{name}': the registry does not let this user have it")
        assert "docker login REGISTRY" in text
        assert "wrong-horse-8" not in text
    assert pulling.tries == 0
    monkeypatch.setenv("DOCKER_CONFIG", str(logged_in(tmp_path / "right", guarded)))
    assert pulling.pinned(name).id == offered.image.id


def test_a_credential_helper_is_asked_and_its_failure_tells_nothing(
    pulling: Pulling, guarded: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = image()
    guarded.offer(offered, NAME, tmp_path)
    name = f"{guarded.address}/{NAME}"

    def use(program: str) -> None:
        folder = helped(tmp_path / "helper", guarded, program)
        monkeypatch.setenv("DOCKER_CONFIG", str(folder))
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    use(f"echo 'the secret is {PASSWORD}'; echo '{PASSWORD}' >&2; exit 1")
    text = pulling.fails(name, UsageError)
    assert "credentials: they cannot be read" in text
    assert PASSWORD not in text
    monkeypatch.setattr("runner.engine.docker_client._HELPER_SECONDS", 0.5)
    use("exec sleep 3")
    assert "credentials: the credential helper did not answer in time" in pulling.fails(name, UsageError)
    monkeypatch.undo()
    use(json.dumps({"ServerURL": guarded.address, "Username": USER, "Secret": PASSWORD}).join(("echo '", "'")))
    assert pulling.pinned(name).id == offered.image.id


# Failing


def test_a_name_the_registry_does_not_know_is_the_participants(
    pulling: Pulling, registry: Registry, tmp_path: Path
) -> None:
    registry.offer(image(), NAME, tmp_path)
    for name in ("team/model:2", "team/nothing:1"):
        sentence = pulling.refused(f"{registry.address}/{name}")
        assert sentence.startswith(f"image '{registry.address}/{name}': the registry has no such image")
    assert pulling.tries == 0


def test_an_image_that_the_registry_has_in_part_is_tried_thrice_and_then_the_participants(
    pulling: Pulling, registry: Registry, tmp_path: Path
) -> None:
    registry.offer(image(), NAME, tmp_path)
    (layers,) = registry.folder.glob("data/docker/registry/v2/repositories/team/model/_layers")
    shutil.rmtree(layers)
    sentence = pulling.refused(f"{registry.address}/{NAME}")
    assert "the registry has only a part of it (the engine says, 3 times: " in sentence
    assert pulling.tries == 2


def test_spoilt_layers_are_tried_thrice_and_then_the_participants(
    pulling: Pulling, registry: Registry, tmp_path: Path
) -> None:
    registry.offer(image(large=1 << 16), NAME, tmp_path)
    registry.spoil()
    sentence = pulling.refused(f"{registry.address}/{NAME}")
    assert "what the registry sends is not what its digest says (the engine says, 3 times: " in sentence
    assert pulling.tries == 2


def test_an_image_that_is_too_large_is_given_up_while_it_comes(
    pulling: Pulling, registry: Registry, tmp_path: Path
) -> None:
    offered = image(large=8 << 20)
    registry.offer(offered, NAME, tmp_path)
    sentence = pulling.refused(f"{registry.address}/{NAME}", replace(TERMS, limit=1 << 20))
    assert "is too large: " in sentence
    assert sentence.endswith("1 MiB are allowed here")
    with pytest.raises(ImageMissing):
        pulling.engine.image(offered.image.id)


def _limited(_server: StandIn, path: str) -> tuple[int, str, bytes]:
    return errors(429, "TOOMANYREQUESTS", "slow down") if "manifests" in path else (200, "application/json", b"{}")


def _broken(_server: StandIn, path: str) -> tuple[int, str, bytes]:
    return (503, "text/html", b"<html>") if "manifests" in path else (200, "application/json", b"{}")


@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (_limited, "lets this host pull no more for now (the engine says, 3 times: 'toomanyrequests"),
        (_broken, "received unexpected HTTP status: 503 Service Unavailable"),
    ],
    ids=["429", "503"],
)
def test_a_registry_that_says_not_now_is_the_hosts_and_waited_for(
    pulling: Pulling, registry: Registry, tmp_path: Path, behave: Callable[[StandIn, str], tuple[int, str, bytes]],
    words: str,
) -> None:  # fmt: skip
    offered = image()
    registry.offer(offered, NAME, tmp_path)
    with stand_in(registry) as server:
        server.behave = behave
        assert words in pulling.fails(f"{server.address}/{NAME}", HostFault, replace(TERMS, deadline=4))
        assert pulling.tries == 2
        calls = 0

        def recovers(server: StandIn, path: str) -> tuple[int, str, bytes]:
            nonlocal calls
            calls += "manifests" in path
            return behave(server, path) if calls < 3 else (0, "", b"")

        server.behave = recovers
        assert pulling.pinned(f"{server.address}/{NAME}").id == offered.image.id
        assert pulling.tries > 2


def test_a_registry_that_is_slow_is_the_hosts(pulling: Pulling, registry: Registry, tmp_path: Path) -> None:
    registry.offer(image(), NAME, tmp_path)
    with stand_in(registry) as server:

        def slow(server: StandIn, path: str) -> tuple[int, str, bytes]:
            if "blobs" in path:
                server.released.wait(30)
            return 0, "", b""

        server.behave = slow
        text = pulling.fails(f"{server.address}/{NAME}", HostFault, replace(TERMS, deadline=1.5))
    assert "could not be had within 1.5 s: the registry is too slow" in text


def test_a_registry_that_is_killed_in_the_middle_is_the_hosts_and_the_pull_goes_on_when_it_is_back(
    pulling: Pulling, registry: Registry, tmp_path: Path
) -> None:
    offered = image(large=1 << 20)
    registry.offer(offered, NAME, tmp_path)
    with stand_in(registry) as server:
        reached = threading.Event()

        def kills(server: StandIn, path: str) -> tuple[int, str, bytes]:
            if "blobs" in path and not reached.is_set():
                registry.kill()
                reached.set()
            return (0, "", b"") if registry.up else (502, "text/plain", b"gone")

        server.behave = kills

        def back() -> None:
            reached.wait(30)
            time.sleep(1)
            registry.start()

        waiting = threading.Thread(target=back)
        waiting.start()
        assert pulling.pinned(f"{server.address}/{NAME}").id == offered.image.id
        waiting.join()
    assert reached.is_set()
    registry.kill()
    text = pulling.fails(f"{registry.address}/{NAME}", HostFault, replace(TERMS, deadline=2))
    assert "connection refused" in text
    assert "proctor resume RUN" in text


# A whole run


def _secrets() -> tuple[str, ...]:
    token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return PASSWORD, token, base64.b64encode(PASSWORD.encode()).decode().rstrip("=")


def test_a_run_gives_each_failure_its_verdict_and_tells_no_secret(
    engine: Engine, guarded: Registry, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One is run, one is refused, one waits for its registry; then the registry is back, and all have a verdict."""
    monkeypatch.setenv("DOCKER_CONFIG", str(logged_in(tmp_path / "docker", guarded)))
    guarded.push(f"docker-daemon:{demo_image('writes-nothing')}", NAME)
    pulled = f"{guarded.address}/{NAME}"
    with stand_in(guarded) as server:
        server.behave = _limited
        rows = {
            "runs": f"docker://{pulled}",
            "missing": f"{guarded.address}/team/model:2",
            "limited": f"{server.address}/team/other:1",
        }
        submissions, run = submissions_file(tmp_path / "teams.yaml", rows), tmp_path / "run"
        ran = proctor(
            "evaluate", "pitvis2023", "--data", hidden, "--submissions", submissions, "--out", run,
            "--settings", settings, "--allow-cpu", "--seed", "5", "--set", "pull_deadline=2 s",
        )  # fmt: skip
        told = [ran.out, ran.err]
        assert ran.code == 5, ran.out + ran.err
        assert _words(run) == {"runs": {"missing-output"}, "missing": {"bad-image"}, "limited": {"host-fault"}}
        assert not (run / "leaderboard.csv").exists() or "limited" not in (run / "leaderboard.csv").read_text()
        server.behave = lambda _server, path: (
            errors(404, "MANIFEST_UNKNOWN", "manifest unknown")
            if "manifests" in path
            else (200, "application/json", b"{}")
        )
        ran = proctor("resume", run)
        told += [ran.out, ran.err]
    assert ran.code == 0, ran.out + ran.err
    assert _words(run) == {"runs": {"missing-output"}, "missing": {"bad-image"}, "limited": {"bad-image"}}
    board = json.loads((run / "leaderboard.json").read_text())["boards"][0]
    blames = {row["submission"]: {case["blame"] for case in row["cases"]} for row in board["rows"]}
    assert blames == {name: {"participant"} for name in rows}
    sentence = next(row for row in board["rows"] if row["submission"] == "missing")["not_ranked_because"]
    assert "the registry has no such image" in sentence
    texts = told + [path.read_bytes().decode("latin-1") for path in run.rglob("*") if path.is_file()]
    for secret in _secrets():
        assert not [text for text in texts if secret in text]
    engine.remove_image(pulled)
    assert leftovers(engine) == []


def _words(run: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in run.glob("submissions/*/*/*/outcome.json"):
        outcome = json.loads(path.read_text())
        found.setdefault(outcome["submission"], set()).add(outcome["verdict"]["word"])
    return found


def test_a_wrong_password_stops_a_run_before_anything_runs(
    guarded: Registry, hidden: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = logged_in(tmp_path / "docker", guarded, password="wrong-horse-8")
    monkeypatch.setenv("DOCKER_CONFIG", str(wrong))
    guarded.offer(image(), NAME, tmp_path)
    submissions = submissions_file(tmp_path / "teams.yaml", {"a": f"{guarded.address}/{NAME}"})
    ran = proctor(
        "evaluate", "pitvis2023", "--data", hidden, "--submissions", submissions, "--out", tmp_path / "run",
        "--settings", settings, "--allow-cpu",
    )  # fmt: skip
    assert ran.code == 2, ran.out + ran.err
    assert "does not let this user have it" in ran.err
    assert "docker login" in ran.err
    assert "Traceback" not in ran.err
    texts = [ran.out, ran.err, *(p.read_bytes().decode("latin-1") for p in tmp_path.glob("run/**/*") if p.is_file())]
    assert not [text for text in texts if "wrong-horse" in text]


# Making room


def test_room_is_made_of_what_we_brought_and_can_have_again(
    pulling: Pulling, registry: Registry, tmp_path: Path
) -> None:
    """On the real engine, with a disk that is said to be full."""
    told: list[str] = []

    def room(free: int) -> Room:
        return Room(pulling.engine, tmp_path / "images", keep_free=1 << 40, free=lambda: free, tell=told.append)

    def bring(source: str) -> str:
        with room(1 << 41) as found:
            return pulling.pinned(source, replace(TERMS, room=found)).id

    registry.offer(image(), "team/kept:1", tmp_path)
    gone_digest = registry.offer(image(), "team/gone:1", tmp_path)
    registry.offer(image(), "team/named:1", tmp_path)
    archive = tmp_path / "archive.tar"
    archive.write_bytes(oci(image()))
    local = image()
    pulling.engine.load([tar_of(*docker_entries(local.image, RepoTags=None))], deadline=60)
    pulling.ids.append(local.image.id)
    kept, gone, named = (bring(f"{registry.address}/team/{name}:1") for name in ("kept", "gone", "named"))
    loaded, own = bring(str(archive)), bring(local.image.id)
    registry.delete("team/gone", gone_digest)
    subprocess.run(["docker", "tag", named, "proctor-test/named:1"], check=True)
    try:
        with room(1 << 30) as found:
            found.use(kept)
            found.make(0)
        assert {kept, gone, named, own} <= set(pulling.engine.image_ids())
        assert loaded not in pulling.engine.image_ids()
        with room(1 << 30) as found:
            found.make(0)
        assert {gone, named, own} <= set(pulling.engine.image_ids())
        assert kept not in pulling.engine.image_ids()
    finally:
        subprocess.run(["docker", "image", "rm", "proctor-test/named:1"], check=True, capture_output=True)
    assert [line[:25] for line in told] == ["removed image " + image_id[:11] for image_id in (loaded, kept)]
    # And it can be had again.
    assert bring(f"{registry.address}/team/kept:1") == kept
