"""A container's streams over each kind of connection that docker-py hands over, on a daemon of a few lines."""

import json
import os
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clock import MonotonicClock
from runner.engine import Attached, EngineUnreachable, Output, Piece, docker_client
from runner.engine.docker import connect
from runner.engine.docker_attach import DockerAttached, demultiplexed, plain_socket
from runner.errors import HostUnfit

_LARGE = bytes(range(256)) * (8 << 10)


def _framed(content: bytes, *, number: int = 1) -> bytes:
    return struct.pack(">BxxxL", number, len(content)) + content


def _whole(pieces: list[Piece], output: Output) -> bytes:
    return b"".join(piece.content for piece in pieces if piece.output is output)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=20)), max_size=6), st.data())
def test_streams_are_told_apart_however_the_bytes_are_cut(
    written: list[tuple[int, bytes]], draw: st.DataObject
) -> None:
    data = b"".join(_framed(content, number=number) for number, content in written)
    places = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    cuts = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    pieces = list(demultiplexed(cuts))
    assert _whole(pieces, Output.STDOUT) == b"".join(content for number, content in written if number == 1)
    assert _whole(pieces, Output.STDERR) == b"".join(content for number, content in written if number == 2)


@pytest.fixture
def pair() -> Iterator[tuple[DockerAttached, socket.socket]]:
    ours, theirs = socket.socketpair()
    attached = DockerAttached(ours, nullcontext(), MonotonicClock())
    yield attached, theirs
    attached.close()
    theirs.close()


def test_a_container_that_does_not_read_makes_nobody_wait(pair: tuple[DockerAttached, socket.socket]) -> None:
    attached, theirs = pair
    taken = attached.write(_LARGE, seconds=0)
    assert 0 < taken < len(_LARGE)
    assert attached.write(_LARGE[taken:], seconds=0.05) == 0
    theirs.sendall(_framed(b"still heard"))
    assert attached.read() == Piece(output=Output.STDOUT, content=b"still heard")
    received = bytearray()
    while len(received) < taken:
        received += theirs.recv(1 << 16)
    assert attached.write(b"more", seconds=10) == 4
    assert bytes(received) == _LARGE[:taken]


def test_closing_wakes_who_reads_and_who_writes(pair: tuple[DockerAttached, socket.socket]) -> None:
    attached, theirs = pair
    seen: list[object] = []
    reader = threading.Thread(target=lambda: seen.append(attached.read()), daemon=True)
    writer = threading.Thread(
        target=lambda: seen.append(attached.write(_LARGE * 4, seconds=60) < 4 * len(_LARGE)), daemon=True
    )
    for thread in (reader, writer):
        thread.start()
    theirs.recv(1)
    attached.close()
    for thread in (reader, writer):
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert sorted(map(str, seen)) == ["None", "True"]
    assert attached.write(b"x", seconds=10) == 0
    assert attached.read() is None


def test_a_connection_that_breaks_is_an_end(pair: tuple[DockerAttached, socket.socket]) -> None:
    attached, theirs = pair
    theirs.sendall(_framed(b"half of it")[:12])
    theirs.close()
    assert [piece.content for piece in iter(attached.read, None)] == [b"half"]
    assert attached.write(_LARGE, seconds=10) == 0


def test_a_connection_that_is_no_socket_is_told_with_a_way_out() -> None:
    with pytest.raises(HostUnfit) as unfit:
        plain_socket(object())
    assert unfit.value.remedy == "give its Unix socket, or its address by TCP, as DOCKER_HOST"


# As docker-py hands it over


Serve = Callable[[socket.socket], None]


def _echo(connection: socket.socket) -> None:
    """Answer requests; after an attach, greet, send all that comes back, and say goodbye when the input ends."""
    request = b""
    while b"/attach" not in request:
        request = _request(connection)
        if not request:
            return
        if b"/attach" not in request:
            body = json.dumps({"ApiVersion": "1.41", "Version": "20.10.24"}).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    connection.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + _framed(b"hello"))
    connection.sendall(_framed(b"a note", number=2))
    while data := connection.recv(1 << 16):
        connection.sendall(_framed(data))
    connection.sendall(_framed(b"goodbye"))


def _request(connection: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request and (data := connection.recv(1 << 16)):
        request += data
    return request


class Daemon:
    """Takes connections, with TLS where a context is given, and serves each in a thread."""

    def __init__(self, listener: socket.socket, serve: Serve, context: ssl.SSLContext | None = None) -> None:
        self._listener = listener
        self._serve = serve
        self._context = context
        listener.listen()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._talk, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            self._serve(connection)
        with connection, suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with connection, suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)


@pytest.fixture(params=["unix", "tcp", "tls"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where a daemon of each kind listens."""
    context = None
    if request.param == "unix":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "docker.sock"))
        found = f"unix://{tmp_path / 'docker.sock'}"
    else:
        listener = socket.create_server(("127.0.0.1", 0))
        found = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    if request.param == "tls":
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
            check=True, capture_output=True,
        )  # fmt: skip
        (tmp_path / "ca.pem").write_bytes((tmp_path / "cert.pem").read_bytes())
        for other in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests lets them win
            monkeypatch.delenv(other, raising=False)
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
        monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    daemon = Daemon(listener, _echo, context)
    yield found
    daemon.close()


def _write_all(attached: Attached, data: bytes) -> None:
    assert attached.write(data, seconds=30) == len(data)
    attached.end_input()


def test_streams_go_both_ways_at_once_and_the_input_can_end_alone(address: str) -> None:
    engine = connect(address)
    attached = engine.attach("c1")
    beginning = [attached.read(), attached.read()]
    assert beginning == [
        Piece(output=Output.STDOUT, content=b"hello"),
        Piece(output=Output.STDERR, content=b"a note"),
    ]
    # Over TLS the input stays open, and the reading goes on after it was to end.
    sent, last = (_LARGE + b"over", b"over") if "DOCKER_TLS_VERIFY" in os.environ else (_LARGE, b"goodbye")
    writer = threading.Thread(target=_write_all, args=(attached, sent))
    writer.start()
    whole = b""
    while not whole.endswith(last):
        piece = attached.read()
        assert piece is not None
        whole += piece.content
    writer.join(timeout=30)
    assert whole == _LARGE + last
    attached.close()
    engine.close()


def test_closing_ends_a_reader_over_each_of_them(address: str) -> None:
    engine = connect(address)
    attached = engine.attach("c1")
    pieces: list[Piece] = []
    reader = threading.Thread(target=lambda: pieces.extend(iter(attached.read, None)), daemon=True)
    reader.start()
    attached.close()
    reader.join(timeout=10)
    assert not reader.is_alive()
    engine.close()


def test_an_engine_that_does_not_answer_an_attach_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "docker.sock"))
    attaching = threading.Event()

    def serve(connection: socket.socket) -> None:
        if attaching.is_set():
            _request(connection)
            connection.recv(1 << 16)
        else:
            _echo(connection)

    daemon = Daemon(listener, serve)
    engine = connect(str(tmp_path / "docker.sock"))
    attaching.set()
    monkeypatch.setattr(docker_client.Client, "remaining", lambda _: 0.3)
    with pytest.raises(EngineUnreachable):
        engine.attach("c1")
    engine.close()
    daemon.close()
