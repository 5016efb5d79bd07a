"""A container's standard streams over the connection that Docker hands over when it is asked to attach.

What comes back has frames: a header with the stream's number and a length, then so many bytes, cut anywhere. What goes
out is the container's input as it is, and its end is told by closing our half of the connection.

Two threads use one socket, one to read and one to write, and neither may make the other wait. So it never blocks, and
each waits for its own direction. An OpenSSL connection, which is what a remote engine has, is for one thread at a
time: calls into it take turns, waiting does not.
"""

import contextlib
import selectors
import socket
import ssl
import struct
import threading
from collections.abc import Iterable, Iterator

from runner.clock import Clock
from runner.engine.contract import Output, Piece
from runner.errors import HostUnfit

_HEADER = struct.Struct(">BxxxL")
_CHUNK_BYTES = 1 << 16
_STDERR = 2


def demultiplexed(chunks: Iterable[bytes]) -> Iterator[Piece]:
    """What a log or an attached stream carries, without its frames and however the frames are cut."""
    header = bytearray()
    output, left = Output.STDOUT, 0
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            if left == 0:
                taken = rest[: _HEADER.size - len(header)]
                header += taken
                if len(header) == _HEADER.size:
                    number, left = _HEADER.unpack(header)
                    output = Output.STDERR if number == _STDERR else Output.STDOUT
                    header.clear()
            else:
                taken = rest[:left]
                left -= len(taken)
                yield Piece(output=output, content=bytes(taken))
            rest = rest[len(taken) :]


def plain_socket(found: object) -> socket.socket:
    """The socket in what docker-py hands over, which is wrapped in several ways.

    Raises:
        HostUnfit: There is none: the engine is reached through a named pipe or by a library of its own.
    """
    inner = getattr(found, "_sock", found)
    if isinstance(inner, socket.socket):
        return inner
    raise HostUnfit(
        "frames cannot be streamed over the way by which this engine is reached",
        remedy="give its Unix socket, or its address by TCP, as DOCKER_HOST",
    )


class DockerAttached:
    """An ``Attached`` over a socket.

    Args:
        connection: The socket; it is taken over.
        owner: What must live as long as the socket, and is closed with it.
        clock: Measures how long a write waits.
        early: What was read of it already.
    """

    def __init__(
        self,
        connection: socket.socket,
        owner: contextlib.AbstractContextManager[object],
        clock: Clock,
        *,
        early: bytes = b"",
    ) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._owner = owner
        self._clock = clock
        self._turn = threading.Lock()
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._readable = selectors.DefaultSelector()
        self._readable.register(connection, selectors.EVENT_READ)
        self._writable = selectors.DefaultSelector()
        self._writable.register(connection, selectors.EVENT_WRITE)
        self._closed = False
        self._early = early
        self._pieces = demultiplexed(self._chunks())

    def read(self) -> Piece | None:
        """Wait for the next piece of output, however long; None once there is no more, or the connection is gone."""
        with self._reading:
            return next(self._pieces, None)

    def _chunks(self) -> Iterator[bytes]:
        yield self._early
        while not self._closed:
            try:
                with self._turn:
                    chunk = self._connection.recv(_CHUNK_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                self._readable.select()
            except ssl.SSLWantWriteError:
                self._writable.select()
            except OSError:
                return
            else:
                if not chunk:
                    return
                yield chunk

    def write(self, data: bytes, *, seconds: float) -> int:
        """Pass on what the container takes of ``data`` within ``seconds``; how many bytes, fewer where it ended.

        With TLS, bytes that were not taken must stand at the beginning of what is written next.
        """
        ends = self._clock.now() + seconds
        rest = memoryview(data)
        with self._writing:
            while rest and not self._closed:
                try:
                    with self._turn:
                        rest = rest[self._connection.send(rest) :]
                except (BlockingIOError, ssl.SSLWantWriteError):
                    waiting = self._writable
                except ssl.SSLWantReadError:
                    waiting = self._readable
                except OSError:
                    break
                else:
                    continue
                if (left := ends - self._clock.now()) <= 0:
                    break
                waiting.select(left)
        return len(data) - len(rest)

    def end_input(self) -> None:
        """Close the container's standard input; over TLS, where Python cannot close one half only, it stays open.

        ``SSLSocket.unwrap`` also reads, and what it meets there that is no goodbye breaks the connection.
        """
        with self._writing, contextlib.suppress(OSError):
            if not isinstance(self._connection, ssl.SSLSocket):
                self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Break the connection, whoever waits for it; before the container is killed."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(OSError):
            # Closing alone would leave the reader waiting, and the engine with it; TLS is not asked, it may be in use.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)
        with self._reading, self._writing:
            self._readable.close()
            self._writable.close()
            self._connection.close()
            self._owner.__exit__(None, None, None)
