"""How a connection fails, on a daemon that a test can break: a Unix socket and a script of answers."""

import base64
import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.engine import (
    EngineRefusal,
    EngineUnreachable,
    ImageMissing,
    ImageTooLarge,
    Overdue,
    RefusalPhase,
    docker_client,
)
from runner.engine.docker import DockerEngine, connect
from runner.errors import HostUnfit

Answer = Callable[[socket.socket, str], None]


class Daemon:
    """Answers ``/version`` as Docker does, and everything else as the test says."""

    def __init__(self, path: Path) -> None:
        self.answer: Answer = lambda connection, _: say(connection, 200, {})
        self.path = path
        self.asked: list[str] = []
        self.requests: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._open: list[socket.socket] = []
        self._serving: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()  # a connection taken in this very moment is among the open ones then
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for serving in self._serving:
            serving.join(timeout=10)
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._serving.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._serving[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that has heard enough goes away in the middle of an answer, and may.
        with contextlib.suppress(OSError):
            self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        received = b""
        while True:
            try:
                piece = connection.recv(1 << 16)
            except OSError:
                return
            if not piece:
                return
            received += piece
            if b"\r\n\r\n" in received:
                head = received.decode(errors="replace")
                request = head.splitlines()[0]
                received = b""
                self.asked.append(request)
                self.requests.append(head)
                if "/version" in request:
                    say(connection, 200, {"ApiVersion": "1.41", "Version": "20.10.24"})
                else:
                    self.answer(connection, request)


def say(connection: socket.socket, status: int, body: object) -> None:
    raw(connection, status, json.dumps(body).encode())


def raw(connection: socket.socket, status: int, body: bytes, *, claimed: int | None = None) -> None:
    length = len(body) if claimed is None else claimed
    connection.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n".encode() + body)


def chunked(connection: socket.socket, *chunks: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for chunk in chunks:
        connection.sendall(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    server = Daemon(tmp_path / "docker.sock")
    yield server
    server.close()


@pytest.fixture
def engine(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerEngine]:
    monkeypatch.setattr(docker_client, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr("runner.engine.docker.REQUEST_SECONDS", 0.3)
    found = connect(str(daemon.path))
    yield found
    found.close()


def _silent(connection: socket.socket, request: str) -> None:
    """Say nothing."""


def _cut_off(connection: socket.socket, request: str) -> None:
    raw(connection, 200, b"{", claimed=100)
    connection.shutdown(socket.SHUT_RDWR)


def _no_json(connection: socket.socket, request: str) -> None:
    raw(connection, 200, b"<html>")


def _hang_up(connection: socket.socket, request: str) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def _going(connection: socket.socket, request: str) -> None:
    say(connection, 503, {"message": "going away"})


@pytest.mark.parametrize("answer", [_silent, _cut_off, _no_json, _hang_up, _going])
def test_no_whole_answer_is_unreachable_never_a_verdict(daemon: Daemon, engine: DockerEngine, answer: Answer) -> None:
    daemon.answer = answer
    with pytest.raises(EngineUnreachable):
        engine.inspect("c")
    with pytest.raises(EngineUnreachable):
        engine.containers("l")
    daemon.answer = lambda connection, _: raw(connection, 200, b"OK")
    engine.ping()


@pytest.mark.parametrize("answer", [_silent, _cut_off, _hang_up, _going])
def test_broken_stream_is_unreachable(daemon: Daemon, engine: DockerEngine, answer: Answer) -> None:
    daemon.answer = answer
    with pytest.raises(EngineUnreachable):
        b"".join(engine.read_tree("c", "/x"))
    with pytest.raises(EngineUnreachable):
        engine.logs("c", lines=1, max_bytes=1)


def test_refusal_keeps_the_engines_words_and_status(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.answer = lambda connection, _: say(connection, 400, {"message": "No command specified"})
    with pytest.raises(EngineRefusal) as refusal:
        engine.start("c")
    assert (refusal.value.phase, refusal.value.message, refusal.value.status) == (
        RefusalPhase.START,
        "No command specified",
        400,
    )
    daemon.answer = lambda connection, _: say(connection, 404, {"message": "No such image: i"})
    with pytest.raises(ImageMissing):
        engine.image("i")


def test_kill_that_came_too_late_is_silent_and_one_that_failed_is_not(daemon: Daemon, engine: DockerEngine) -> None:
    state = {"Status": "exited", "StartedAt": "", "FinishedAt": "2026-01-01T00:00:00Z"}

    def answer(connection: socket.socket, request: str) -> None:
        if "/kill" in request:
            say(connection, 500, {"message": "no such process"})
        else:
            say(connection, 200, {"Id": "c", "State": state})

    daemon.answer = answer
    engine.kill("c")
    state["Status"] = "running"
    with pytest.raises(EngineRefusal, match="no such process"):
        engine.kill("c")


def test_create_that_warns_of_a_limit_is_refused_and_undone(daemon: Daemon, engine: DockerEngine) -> None:
    from runner.engine import ContainerSpec  # noqa: PLC0415

    def answer(connection: socket.socket, request: str) -> None:
        if "/create" in request:
            say(connection, 201, {"Id": "c9", "Warnings": ["PIDs limit discarded."]})
        elif request.startswith("DELETE"):
            raw(connection, 204, b"")
        else:
            say(connection, 404, {"message": "No such container: c9"})

    daemon.answer = answer
    with pytest.raises(EngineRefusal, match="PIDs limit discarded"):
        engine.create(ContainerSpec(image_id="i", name="n", labels={}))
    assert any(request.startswith("DELETE /v1.41/containers/c9?v=True") for request in daemon.asked)


def _pull_then_silence(connection: socket.socket, request: str) -> None:
    chunked(connection, b'{"status": "Pulling"}\r\n')


@pytest.mark.parametrize("answer", [_silent, _pull_then_silence])
def test_pull_ends_at_its_deadline_however_silent_the_daemon(
    daemon: Daemon, engine: DockerEngine, answer: Answer
) -> None:
    daemon.answer = answer
    before = time.monotonic()
    with pytest.raises(Overdue, match=r"did not finish to pull within 0\.5 s"):
        engine.pull("a:1", deadline=0.5, progress=lambda _: None)
    assert time.monotonic() - before > 0.4


def test_long_requests_outlast_the_short_ones_patience(daemon: Daemon, engine: DockerEngine) -> None:
    def answer(connection: socket.socket, request: str) -> None:
        if "/images/load" in request:
            time.sleep(0.5)
            chunked(connection, b'{"stream": "Loaded image: a:1\\n"}\r\n', b"")
        else:
            say(connection, 200, {"Id": "sha256:ab"})

    daemon.answer = answer
    assert engine.load([], deadline=5) == ("sha256:ab",)


def test_pull_without_a_digest_never_falls_back_on_the_name(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.answer = lambda connection, _: chunked(connection, b'{"status": "Status: done"}\r\n', b"")
    with pytest.raises(EngineRefusal, match="did not say what it fetched"):
        engine.pull("a:1", deadline=5, progress=lambda _: None)


def test_error_in_a_pull_stream_is_a_refusal(daemon: Daemon, engine: DockerEngine) -> None:
    daemon.answer = lambda connection, _: chunked(connection, b'{"error": "layer broken"}\r\n')
    with pytest.raises(EngineRefusal, match="layer broken"):
        engine.pull("a:1", deadline=5, progress=lambda _: None)


def test_pull_that_grows_too_large_is_given_up(daemon: Daemon, engine: DockerEngine) -> None:
    lines = [
        json.dumps({"status": status, "id": layer, "progressDetail": {"current": 1, "total": 600}}).encode()
        for status, layer in (("Downloading", "a"), ("Downloading", "a"), ("Extracting", "c"), ("Downloading", "b"))
    ]
    ended = b'{"status": "Digest: sha256:' + b"0" * 64 + b'"}'

    def answer(connection: socket.socket, request: str) -> None:
        if "/images/create" in request:
            chunked(connection, *lines, ended, b"")
        else:
            say(connection, 200, {"Id": "sha256:ab"})

    daemon.answer = answer
    with pytest.raises(ImageTooLarge) as caught:
        engine.pull("a:1", deadline=5, progress=lambda _: None, limit=1199)
    assert caught.value.size == 1200
    assert engine.pull("a:1", deadline=5, progress=lambda _: None, limit=1200).id == "sha256:ab"
    assert engine.pull("a:1", deadline=5, progress=lambda _: None).id == "sha256:ab"


def test_a_builds_output_is_told_by_the_line_however_it_comes(
    daemon: Daemon, engine: DockerEngine, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\n")
    pieces = ["Step 1/1 : FROM x\n", "se", "es ", "['lo']\n", "\n", "a\nb", "x" * 70_000, "end"]
    entries = [json.dumps({"stream": piece}).encode() for piece in pieces]
    daemon.answer = lambda connection, _: chunked(connection, *entries, b'{"error": "no "}', b"")
    lines: list[str] = []
    with pytest.raises(EngineRefusal, match=r"no$"):
        engine.build(tmp_path, reference="x:1", arguments={}, deadline=5, log=lines.append)
    assert lines == ["Step 1/1 : FROM x", "sees ['lo']", "a", "b" + "x" * 70_000, "end"]


def _user(folder: Path, monkeypatch: pytest.MonkeyPatch, settings: object) -> None:
    """Let Docker's settings of the user be these."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))


def _sent(daemon: Daemon) -> list[str]:
    """The credentials sent so far, decoded."""
    headers = [line for request in daemon.requests for line in request.split("\r\n")]
    values = [line.partition(": ")[2] for line in headers if line.lower().startswith("x-registry-auth")]
    return [base64.urlsafe_b64decode(value).decode() for value in values]


def test_pull_goes_with_the_users_own_credentials_for_that_registry_only(
    daemon: Daemon, engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = base64.b64encode(b"me:my-secret").decode()
    _user(tmp_path / "user", monkeypatch, {"auths": {"127.0.0.1:5000": {"auth": token}}})
    daemon.answer = lambda connection, _: say(connection, 500, {"message": "no"})
    for reference in ("127.0.0.1:5000/a:1", "localhost:5001/a:1"):
        with pytest.raises(EngineRefusal):
            engine.pull(reference, deadline=5, progress=lambda _: None)
    mine, other = _sent(daemon)
    assert (json.loads(mine)["username"], json.loads(mine)["password"]) == ("me", "my-secret")
    assert json.loads(other) == {}
    # Neither in the request's line, where a proxy would log it.
    assert not [request for request in daemon.asked if "secret" in request or token in request]


def test_credentials_that_cannot_be_read_are_told_without_what_they_say(
    daemon: Daemon, engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _user(tmp_path / "user", monkeypatch, {"auths": {"127.0.0.1:5001": {"auth": "not base64: my-secret"}}})
    with pytest.raises(EngineRefusal, match="credentials: they cannot be read") as caught:
        engine.pull("127.0.0.1:5001/a:1", deadline=5, progress=lambda _: None)
    assert "my-secret" not in str(caught.value)
    assert "my-secret" not in str(caught.value.__cause__)


def test_logs_are_cut_from_the_front_however_the_frames_are_cut(daemon: Daemon, engine: DockerEngine) -> None:
    frames = b"".join(struct.pack(">BxxxL", 1 + n % 2, 4) + f"{n:03d}\n".encode() for n in range(100))
    pieces = [frames[start : start + 7] for start in range(0, len(frames), 7)]
    daemon.answer = lambda connection, _: chunked(connection, *pieces, b"")
    assert engine.logs("c", lines=100, max_bytes=10) == b"7\n098\n099\n"
    assert "follow=0&tail=100" in daemon.asked[-1]


# Finding the engine


def test_nothing_there_is_told_with_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(HostUnfit, match=r"none\.sock: not running, no such socket") as unfit:
        connect()
    assert "make engine" in unfit.value.remedy


def test_credentials_that_cannot_be_read_are_told_with_the_file_to_mend(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for auths in (
        {"127.0.0.1:5001": {"auth": "not base64: my-secret"}},
        {"127.0.0.1:5001": {"auth": "YQ=="}},
        {"127.0.0.1:5001": 7},
    ):
        _user(tmp_path / "user", monkeypatch, {"auths": auths})
        with pytest.raises(HostUnfit, match="credentials: they cannot be read") as unfit:
            connect(str(daemon.path))
        assert "config.json" in unfit.value.remedy
        assert "my-secret" not in str(unfit.value)


def test_left_over_socket_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "left.sock"))
    with pytest.raises(HostUnfit, match="left over"):
        connect(str(tmp_path / "left.sock"))


def test_forbidden_socket_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(self: socket.socket, address: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    with pytest.raises(HostUnfit, match="permission denied") as unfit:
        connect(str(tmp_path / "x.sock"))
    assert "usermod -aG docker" in unfit.value.remedy


def test_docker_host_wins_over_the_sockets(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{daemon.path}")
    found = connect()
    daemon.answer = lambda connection, _: raw(connection, 200, b"OK")
    found.ping()
    found.close()
    assert daemon.asked[-1].startswith("GET /v1.41/_ping")
