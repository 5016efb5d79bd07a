"""Docker's HTTP client, with an end to every wait and one meaning for every failure.

docker-py waits for ever in places: ``pull``, ``build`` and ``import`` send ``timeout=None``, and the
streaming readers switch the socket's time-out off (docker-py #1966). All of its requests pass
``requests.Session.send``, so that is where a time-out is put, and streams are read here with the time-out
left on.

A ``requests`` session is not promised to be safe across threads, so no two threads ever hold the same
client: one is lent for the length of a request and given back.
"""

import contextlib
import http.client
import io
import json
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import docker
import docker.auth
import docker.errors
import requests
import urllib3

from runner.clock import Clock
from runner.engine.contract import EngineRefusal, EngineUnreachable, ImageMissing, Overdue, RefusalPhase
from runner.engine.docker_answers import not_in_registry, shutting_down
from runner.errors import HostFault, RunnerError

if TYPE_CHECKING:
    import socket

REQUEST_SECONDS = 30
_CHUNK_BYTES = 1 << 16
_HELPER_SECONDS = 60.0
_PODMAN_API = "4.0.0"  # the oldest that Podman 4 and 5 answer
_FILLING = (RefusalPhase.PULL, RefusalPhase.LOAD, RefusalPhase.BUILD)
# At the end stands the kernel's reason, and nothing that an image chose.
_FULL = ("no space left on device", "disk quota exceeded")
_REMEDY = "see that the engine runs: docker info"
# What a connection that broke looks like, by the layer that noticed. A RequestException is an OSError too.
_BROKEN = (
    OSError,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    json.JSONDecodeError,
    docker.errors.StreamParseError,
)


class CredentialsUnknown(docker.errors.DockerException):
    """The user's credentials for a registry could not be had."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"credentials: {reason}")


class SourceError(Exception):
    """What we were sending could not be read; ``error`` is the reason, and not the engine's doing."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Client(docker.APIClient):
    """One connection to the engine; for one thread at a time.

    Every wait for a byte ends after ``REQUEST_SECONDS``, or, once ``bound`` was called, when its time is
    over.
    """

    def __init__(self, **options: Any) -> None:
        try:
            # docker-py reads them too, whether they are needed or not, and says something else of each thing wrong.
            docker.auth.load_config()
        except Exception as error:  # noqa: BLE001  whatever it says may be a secret
            raise CredentialsUnknown(f"they cannot be read ({type(error).__name__})") from None
        super().__init__(**options)

    _clock: Clock | None = None
    _ends: float | None = None
    _streamed: requests.Response | None = None

    def bound(self, clock: Clock, seconds: float) -> None:
        """Let everything asked from now on end within ``seconds``."""
        self._clock = clock
        self._ends = clock.now() + seconds

    def remaining(self) -> float:
        """Seconds left; ``EngineUnreachable`` where none are."""
        if self._clock is None or self._ends is None:
            return float(REQUEST_SECONDS)
        left = self._ends - self._clock.now()
        if left <= 0:
            raise EngineUnreachable("the time for this request is over")
        return left

    def send(self, request: requests.PreparedRequest, **kwargs: object) -> requests.Response:
        """Send a request with a time-out, whatever the caller left out."""
        if self._ends is not None or kwargs.get("timeout") is None:
            kwargs["timeout"] = self.remaining()
        response = super().send(request, **kwargs)  # type: ignore[arg-type]  # what we were given
        if kwargs.get("stream"):
            self._streamed = response
        return response

    def read(self, path: str, name: str, parameters: Mapping[str, str | int]) -> Generator[bytes, None, None]:
        """Stream the body of ``GET path``, in which ``{}`` stands for the quoted ``name``."""
        url = f"{self.base_url}/v{self.api_version}{path.format(quote(name, safe=''))}"
        with self.get(url, params=parameters, stream=True, timeout=REQUEST_SECONDS) as response:
            _require_success(response)
            yield from response.iter_content(_CHUNK_BYTES)

    def podman_container(self, name: str) -> object:
        """Ask Podman in its own words about a container; its Docker face leaves out what it bounds."""
        url = f"{self.base_url}/v{_PODMAN_API}/libpod/containers/{quote(name, safe='')}/json"
        response = self.get(url, timeout=REQUEST_SECONDS)
        _require_success(response)
        answer: object = response.json()
        return answer

    def sized_container(self, name: str) -> object:
        """Ask for a container's description with the size of what it wrote, which docker-py cannot ask for."""
        url = f"{self.base_url}/v{self.api_version}/containers/{quote(name, safe='')}/json"
        response = self.get(url, params={"size": 1}, timeout=REQUEST_SECONDS)
        _require_success(response)
        answer: object = response.json()
        return answer

    def path_header(self, name: str, path: str, header: str) -> str | None:
        """Ask what lies at a path of a container; links are not followed, nothing is read. None for nothing."""
        url = f"{self.base_url}/v{self.api_version}/containers/{quote(name, safe='')}/archive"
        response = self.head(url, params={"path": path}, timeout=REQUEST_SECONDS)
        if response.status_code == 404:
            self.inspect_container(name)  # raises where it is the container that is not there
            return None
        if not response.ok:
            # Only the answer to a GET says why; it fails as well, before anything is sent.
            with self.get(url, params={"path": path}, stream=True, timeout=REQUEST_SECONDS) as told:
                _require_success(told)
        return response.headers.get(header, "")

    def joined(self, container: str) -> object:
        """Ask for a container's standard streams; docker-py's wrapping of a socket."""
        asked = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        found: object = self.attach_socket(container, params=asked)
        return found

    def read_ahead(self, connection: "socket.socket") -> bytes:
        """What came right behind the answer that handed a connection over, and was read with it."""
        buffer: object = self._streamed.raw if self._streamed is not None else None
        for step in ("_fp", "fp"):
            buffer = getattr(buffer, step, None)
        connection.settimeout(0)  # so that an empty buffer is not waited for
        with contextlib.suppress(OSError):
            if isinstance(buffer, io.BufferedReader):
                return buffer.peek()
        return b""

    # docker-py's type stubs leave these three untyped.

    def image_answer(self, reference: str) -> object:
        """Ask for an image's description."""
        return self.inspect_image(reference)  # type: ignore[no-untyped-call]

    def pulling(self, repository: str, tag: str) -> Iterable[object]:
        """Ask for an image of a registry, as its user; the progress stream."""
        known = self._credentials(repository)
        stream: Iterable[object] = self.pull(repository, tag=tag, stream=True, decode=True, auth_config=known)
        return stream

    def distribution(self, reference: str) -> object:
        """Ask what a reference means in its registry, as its user."""
        known = self._credentials(reference)
        return self.inspect_distribution(reference, auth_config=known)  # type: ignore[no-untyped-call]

    def _credentials(self, repository: str) -> dict[str, str]:
        """The user's own for a registry, from Docker's settings or a credential helper; empty where there are none.

        A helper may ask its user something and wait for ever, so it is asked in a thread that can be left. What it
        said is not told: on a failure, too, that may be the secret itself.
        """
        answer: Future[dict[str, str] | None] = Future()

        def ask() -> None:
            try:
                registry, _ = docker.auth.resolve_repository_name(repository)
                answer.set_result(docker.auth.load_config().resolve_authconfig(registry))
            except Exception as error:  # noqa: BLE001  handed over to who waits
                answer.set_exception(error)

        threading.Thread(target=ask, daemon=True).start()
        try:
            return answer.result(timeout=min(_HELPER_SECONDS, self.remaining())) or {}
        except TimeoutError:
            raise CredentialsUnknown("the credential helper did not answer in time") from None
        except docker.errors.InvalidRepository:
            raise
        except Exception as error:  # noqa: BLE001  whatever it says may be the secret
            raise CredentialsUnknown(f"they cannot be read ({type(error).__name__})") from None

    def creation(self, body: Mapping[str, object], name: str) -> object:
        """Ask for a container; the whole answer, warnings and all."""
        return self.create_container_from_config(body, name)  # type: ignore[no-untyped-call]

    def loading(self, archive: Iterable[bytes]) -> Iterable[object]:
        """Send a ``docker save`` archive; its progress stream."""
        sent = self.upload(archive)
        stream: Iterable[object] = self.load_image(sent, quiet=True)  # type: ignore[no-untyped-call]
        return stream

    def entries(self, stream: Iterable[object]) -> Iterator[object]:
        """Read a progress stream, each entry within what is left of the time."""
        iterator = iter(stream)
        while True:
            self._hurry()
            try:
                entry = next(iterator)
            except StopIteration:
                return
            yield entry

    def upload(self, source: Iterable[bytes]) -> Iterator[bytes]:
        """Pass on what is to be sent, within what is left of the time."""
        iterator = iter(source)
        while True:
            self.remaining()
            try:
                chunk = next(iterator)
            except StopIteration:
                return
            except OSError as error:
                raise SourceError(error) from error
            yield chunk

    def _hurry(self) -> None:
        """Let the next read of the stream wait no longer than is left; a time-out is for each read anew."""
        left = self.remaining()
        body: object = self._streamed.raw if self._streamed is not None else None
        # http.client keeps the socket this deep; should it not, a silent engine is left after twice the time.
        for step in ("_fp", "fp", "raw", "_sock"):
            body = getattr(body, step, None)
        if body is not None:
            connection: socket.socket = body  # type: ignore[assignment]  # found by name, see above
            connection.settimeout(left)

    def close(self) -> None:
        """Let go of the connection, and of a stream that was not read to its end."""
        if self._streamed is not None:
            self._streamed.close()
        super().close()


def _require_success(response: requests.Response) -> None:
    if not response.ok:
        kind = docker.errors.NotFound if response.status_code == 404 else docker.errors.APIError
        raise kind(response.reason, response=response, explanation=_explanation(response))


def _explanation(response: requests.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return response.text.strip()


@contextmanager
def answering(phase: RefusalPhase) -> Iterator[None]:
    """Turn whatever a request ends in into one of the contract's errors."""
    try:
        yield
    except docker.errors.APIError as error:
        raise _refusal(phase, error) from error
    except SourceError as failed:
        raise failed.error from failed
    except _BROKEN as error:
        raise EngineUnreachable(f"the engine gave no whole answer: {error}", remedy=_REMEDY) from error
    except docker.errors.DockerException as error:
        raise EngineRefusal(phase, str(error)) from error


def refusal(phase: RefusalPhase, message: str) -> RunnerError:
    """What the engine's error means: its no, or that its disk is full, which is no image's fault."""
    if phase in _FILLING and message.strip().lower().endswith(_FULL):
        return HostFault(
            f"the engine's disk is full, an image could not be had: {message}",
            remedy="make room where it keeps images (docker info: Docker Root Dir), then: proctor resume RUN",
        )
    if phase is RefusalPhase.PULL and not_in_registry(message):
        return ImageMissing(phase, message)
    return EngineRefusal(phase, message)


def _refusal(phase: RefusalPhase, error: docker.errors.APIError) -> RunnerError:
    status = error.response.status_code if error.response is not None else 0
    message = str(error.explanation or error)
    if shutting_down(status, message):
        return EngineUnreachable(f"the engine is shutting down: {message}", remedy=_REMEDY)
    if (read := refusal(phase, message)).exit_code == HostFault.exit_code:
        return read
    unknown = phase is RefusalPhase.PULL and (status == 404 or not_in_registry(message))
    if unknown or isinstance(error, docker.errors.ImageNotFound):
        return ImageMissing(phase, message, status=status)
    return EngineRefusal(phase, message, status=status)


class Clients:
    """Lends clients, each to one borrower at a time, and keeps the idle ones."""

    def __init__(self, make: Callable[[], Client], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[Client] = []

    @contextmanager
    def lend(self, phase: RefusalPhase) -> Iterator[Client]:
        """Lend a client for a short request; one whose connection broke is not used again."""
        with answering(phase):
            client = self._take()
            try:
                yield client
            except docker.errors.APIError:
                self._give_back(client)
                raise
            except BaseException:
                client.close()
                raise
            self._give_back(client)

    @contextmanager
    def lend_bounded(self, phase: RefusalPhase, seconds: float) -> Iterator[Client]:
        """Lend a client of its own for a long request, which ends within ``seconds``."""
        started = self._clock.now()
        try:
            with answering(phase):
                client = self._make()
                client.bound(self._clock, seconds)
                try:
                    yield client
                finally:
                    client.close()
        except EngineUnreachable as error:
            if self._clock.now() - started < seconds:
                raise
            raise Overdue(f"the engine did not finish to {phase.value} within {seconds:g} s", remedy=_REMEDY) from error

    @contextmanager
    def give(self, phase: RefusalPhase) -> Iterator[Client]:
        """Give a client away, to be closed by who got it; it is closed here only where the block fails."""
        with answering(phase):
            client = self._make()
            try:
                yield client
            except BaseException:
                client.close()
                raise

    def close(self) -> None:
        """Let go of the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _take(self) -> Client:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._make()

    def _give_back(self, client: Client) -> None:
        with self._lock:
            self._idle.append(client)
