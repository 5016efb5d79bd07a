"""Docker, and Podman through its Docker socket, behind the ``Engine`` contract.

Only the low-level client is used: the high-level one drops the warnings of ``create``, swallows the errors
of ``pull`` and runs by tag. A read that gets no byte for ``REQUEST_SECONDS`` is ``EngineUnreachable``; no
time-out of ours ever says anything about a submission.
"""

import contextlib
import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple, cast

from runner.clock import Clock, MonotonicClock
from runner.engine import docker_answers as answers
from runner.engine import docker_files as files
from runner.engine.contract import (
    Attached,
    ContainerFacts,
    ContainerSpec,
    EngineFacts,
    EngineRefusal,
    EngineUnreachable,
    FileFacts,
    FileKind,
    ImageFacts,
    ImageMissing,
    ImageTooLarge,
    RefusalPhase,
    VolumeFacts,
    VolumeSpec,
)
from runner.engine.docker_attach import DockerAttached, demultiplexed, plain_socket
from runner.engine.docker_requests import create_body, volume_options
from runner.errors import HostUnfit

try:
    import docker.errors
    import docker.utils
    from docker.tls import TLSConfig

    from runner.engine.docker_client import REQUEST_SECONDS, Client, Clients, CredentialsUnknown, refusal
except ImportError as missing:
    raise HostUnfit(f"the Python package {missing.name!r} is not installed", remedy="pip install docker") from missing

_log = logging.getLogger(__name__)

# Silence of this length while a root file system is imported is a broken connection.
_IMPORT_SECONDS = 900.0
_REMOVAL_SECONDS = 20.0
_PING_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LONGEST_LINE = 1 << 16


class DockerEngine:
    """A container engine that speaks Docker's API, from 20.10 on; safe to call from many threads at once."""

    def __init__(self, clients: Clients, *, podman: bool = False, clock: Clock | None = None) -> None:
        self._clients = clients
        self._podman = podman
        self._clock = clock or MonotonicClock()

    def ping(self) -> None:
        """Return when the engine answers a newcomer.

        An engine that goes down closes its door first, then ends containers, and answers old connections until the end.
        """
        with self._clients.lend_bounded(RefusalPhase.OTHER, _PING_SECONDS) as client:
            client.ping()

    def facts(self) -> EngineFacts:
        """Say what this engine is."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            return answers.engine_facts(client.info(), client.version())

    # Images

    def image(self, reference: str) -> ImageFacts:
        """Describe an image the engine holds, by ID, digest or name; ``ImageMissing`` where it does not."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            return answers.image_facts(client.image_answer(reference))

    def image_ids(self) -> tuple[str, ...]:
        """List the IDs of all images the engine holds, named or not."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            return answers.image_ids(client.images(quiet=True, all=True))

    def pull(
        self, reference: str, *, deadline: float, progress: Callable[[str], None], limit: int | None = None
    ) -> ImageFacts:
        """Fetch an image from its registry, at most ``deadline`` seconds; what was fetched, by ID."""
        repository, tag, digest = answers.split_reference(reference)
        sizes: dict[str, int] = {}
        with self._clients.lend_bounded(RefusalPhase.PULL, deadline) as client:
            for entry in client.entries(client.pulling(repository, digest or tag or "latest")):
                if error := answers.stream_error(entry):
                    raise refusal(RefusalPhase.PULL, error)
                digest = answers.pulled_digest(entry) or digest
                sizes.update(answers.layer_size(entry))
                if limit is not None and sum(sizes.values()) > limit:
                    raise ImageTooLarge(sum(sizes.values()))
                progress(_progress_line(entry))
        if digest:
            return self.image(f"{repository}@{digest}")
        # A tag may still name what was there before; only Podman never says what it fetched.
        if not self._podman:
            raise EngineRefusal(RefusalPhase.PULL, f"the engine did not say what it fetched for {reference!r}")
        return self.image(reference)

    def registry_digest(self, reference: str) -> str:
        """Ask the registry for the ``sha256:…`` a reference means there now, without fetching it."""
        with self._clients.lend_bounded(RefusalPhase.PULL, REQUEST_SECONDS) as client:
            return answers.text(client.distribution(reference), "Descriptor", "digest")

    def load(self, archive: Iterable[bytes], *, deadline: float) -> tuple[str, ...]:
        """Load a ``docker save`` archive, at most ``deadline`` seconds; the IDs of the images it held."""
        names: list[str] = []
        with self._clients.lend_bounded(RefusalPhase.LOAD, deadline) as client:
            for entry in client.entries(client.loading(archive)):
                if error := answers.stream_error(entry):
                    raise refusal(RefusalPhase.LOAD, error)
                names.extend(answers.loaded_names(entry))
        if not names:
            raise EngineRefusal(RefusalPhase.LOAD, "the archive held no image")
        return tuple(dict.fromkeys(self.image(name).id for name in names))

    def import_root(self, tar: Iterable[bytes], *, reference: str, changes: tuple[str, ...]) -> str:
        """Make an image named ``reference`` of a root file system in a tar; its ID."""
        repository, tag, _ = answers.split_reference(reference)
        with self._clients.lend_bounded(RefusalPhase.LOAD, _IMPORT_SECONDS) as client:
            answer = client.import_image_from_stream(client.upload(tar), changes=list(changes))
            entries = [json.loads(line) for line in str(answer).splitlines()]
            for entry in entries:
                if error := answers.stream_error(entry):
                    raise refusal(RefusalPhase.LOAD, error)
            made = answers.imported_id(entries[-1]) if entries else ""
            if not made:
                raise EngineRefusal(RefusalPhase.LOAD, "the engine did not say what it made of the tar")
            # Not named in the import itself: Podman 4.3 names everything it imports `latest`.
            client.tag(made, repository, tag or "latest")
        return made

    def build(
        self,
        folder: Path,
        *,
        reference: str,
        arguments: Mapping[str, str],
        deadline: float,
        log: Callable[[str], None],
        network: str = "default",
        memory: int | None = None,
    ) -> str:
        """Build a Dockerfile folder with the classic builder and name the result ``reference``; its ID."""
        built = ""
        with _context(folder) as context, self._clients.lend_bounded(RefusalPhase.BUILD, deadline) as client:
            stream = client.build(
                fileobj=context,
                custom_context=True,
                tag=reference,
                buildargs=dict(arguments),
                network_mode=None if network == "default" else network,
                container_limits={"memory": memory, "memswap": memory} if memory else None,
                rm=True,
                forcerm=True,
                decode=True,
            )
            pending = ""
            for entry in client.entries(stream):
                # A program's output comes as it was written, not by the line.
                *lines, pending = (pending + answers.text(entry, "stream")).split("\n")
                error = answers.stream_error(entry)
                if error or len(pending) > _LONGEST_LINE:
                    lines, pending = [*lines, pending], ""
                for line in filter(None, lines):
                    log(line)
                if error:
                    raise refusal(RefusalPhase.BUILD, error.strip())
                built = answers.built_id(entry) or built
        return self.image(built or reference).id

    def remove_image(self, reference: str) -> None:
        """Forget an image; silent where it is gone or in use."""
        try:
            with self._clients.lend(RefusalPhase.OTHER) as client:
                client.remove_image(reference)
        except EngineRefusal as refusal:
            # Podman answers 500 where Docker's 409 says that it is in use, or has a second name.
            silent = (404, 409, 500) if self._podman else (404, 409)
            if refusal.status not in silent:
                raise

    # Containers

    def create(self, spec: ContainerSpec) -> str:
        """Create a container; its ID. A warning of the engine about a limit raises ``EngineRefusal``."""
        self._require_mounts(spec)
        try:
            with self._clients.lend(RefusalPhase.CREATE) as client:
                answer = client.creation(create_body(spec, podman=self._podman), spec.name)
        except EngineRefusal as refusal:
            if refusal.status != 404:
                raise
            # Podman's 404 does not say what is missing; the volumes are there, so it is the image.
            raise ImageMissing(RefusalPhase.CREATE, refusal.message, status=404) from refusal
        container = answers.text(answer, "Id")
        if warnings := answers.limit_warnings(answer):
            self.remove(container)
            raise EngineRefusal(RefusalPhase.CREATE, "; ".join(warnings))
        for warning in answers.texts(answer, "Warnings"):
            _log.warning("engine, on creating %s: %s", spec.name, ascii(warning))
        return container

    def _require_mounts(self, spec: ContainerSpec) -> None:
        """Refuse what is not there: an engine would make a volume without a size, and Podman a bind's source."""
        for bind in spec.binds if self._podman else ():
            if not bind.source.exists():
                message = f"bind source path does not exist: {bind.source}"
                raise EngineRefusal(RefusalPhase.CREATE, message, status=400)
        with self._clients.lend(RefusalPhase.CREATE) as client:
            for mount in spec.volumes:
                try:
                    client.inspect_volume(mount.volume)
                except docker.errors.NotFound as error:
                    message = f"no such volume: {mount.volume}"
                    raise EngineRefusal(RefusalPhase.CREATE, message, status=400) from error

    def attach(self, container: str) -> Attached:
        """Join the standard streams of a container that was created with ``stdin``, before it is started."""
        with self._clients.give(RefusalPhase.ATTACH) as client:
            connection = plain_socket(client.joined(container))
            return DockerAttached(connection, client, self._clock, early=client.read_ahead(connection))

    def start(self, container: str) -> None:
        """Start a created container."""
        with self._clients.lend(RefusalPhase.START) as client:
            client.start(container)

    def inspect(self, container: str) -> ContainerFacts | None:
        """Say how a container is; None where there is none."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            try:
                if self._podman:
                    return answers.container_facts(client.podman_container(container))
                return answers.container_facts(client.inspect_container(container))
            except docker.errors.NotFound:
                return None

    def written_bytes(self, container: str) -> int:
        """Bytes a container has written to its own tree, volumes and mounts left out; 0 where there is none."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            try:
                return answers.written_bytes(client.sized_container(container))
            except docker.errors.NotFound:
                return 0

    def await_exit(self, container: str, *, seconds: float) -> None:
        """Return when a container has ended, or about ``seconds`` later; may return early, and proves nothing."""
        # A time-out raises ReadTimeout or ConnectionError as it likes (docker-py #1966); neither says anything.
        with contextlib.suppress(EngineUnreachable, EngineRefusal), self._clients.lend(RefusalPhase.OTHER) as client:
            client.wait(container, timeout=seconds)  # type: ignore[arg-type]  # a float does as well

    def kill(self, container: str) -> None:
        """Send SIGKILL; silent where the container has ended or is gone."""
        try:
            with self._clients.lend(RefusalPhase.KILL) as client:
                client.kill(container)
        except EngineRefusal as refusal:
            if refusal.status in (404, 409):
                return
            # Engines word "it has just ended" in many ways; the state says it in one.
            facts = self.inspect(container)
            if facts is not None and facts.state in ("running", "paused", "restarting"):
                raise

    def logs(self, container: str, *, lines: int, max_bytes: int) -> bytes:
        """Read the last ``lines`` lines of stdout and stderr together, after it ended.

        At most ``max_bytes`` bytes are returned, and no more than that and a piece held; the beginning is
        left out.
        """
        asked: dict[str, str | int] = {"stdout": 1, "stderr": 1, "follow": 0, "tail": lines}
        end = bytearray()
        with self._clients.lend(RefusalPhase.OTHER) as client:
            for piece in demultiplexed(client.read("/containers/{}/logs", container, asked)):
                end += piece.content
                if len(end) > max_bytes:
                    del end[: len(end) - max_bytes]
        return bytes(end)

    def remove(self, container: str) -> None:
        """Remove a container and its anonymous volumes, killing it first; silent where it is gone."""
        ends = self._clock.now() + _REMOVAL_SECONDS
        refusal = self._try_remove(container)
        while self.inspect(container) is not None:
            if self._clock.now() > ends:
                message = refusal.message if refusal else "it is still there"
                raise EngineRefusal(RefusalPhase.OTHER, f"container {container} cannot be removed: {message}")
            self._clock.sleep(_POLL_SECONDS)
            # 409 is another thread's removal, which may fail; 500 may be a mount that is busy for a moment.
            refusal = self._try_remove(container)

    def _try_remove(self, container: str) -> EngineRefusal | None:
        try:
            with self._clients.lend(RefusalPhase.OTHER) as client:
                client.remove_container(container, v=True, force=True)
        except EngineRefusal as refusal:
            return None if refusal.status == 404 else refusal
        return None

    def containers(self, label: str) -> tuple[ContainerFacts, ...]:
        """List all containers, running or not, that carry a label key."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            listed = client.containers(all=True, filters={"label": label})
        found = [self.inspect(answers.text(entry, "Id")) for entry in listed]
        return tuple(facts for facts in found if facts is not None)

    # Volumes and streams

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a sized volume in memory."""
        with self._clients.lend(RefusalPhase.CREATE) as client:
            client.create_volume(
                spec.name,
                driver="local",
                driver_opts=volume_options(spec, podman=self._podman),
                labels=dict(spec.labels),
            )

    def remove_volume(self, name: str) -> None:
        """Remove a volume; silent where it is gone."""
        try:
            with self._clients.lend(RefusalPhase.OTHER) as client:
                client.remove_volume(name)
        except EngineRefusal as refusal:
            if refusal.status != 404:
                raise

    def volumes(self, label: str) -> tuple[VolumeFacts, ...]:
        """List the volumes that carry a label key."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            listed = answers.dig(client.volumes(filters={"label": label}), "Volumes")
        return tuple(
            VolumeFacts(name=answers.text(entry, "Name"), labels=answers.table(entry, "Labels"))
            for entry in (listed if isinstance(listed, list) else [])
        )

    def read_file(self, container: str, path: str, *, max_bytes: int) -> FileFacts | None:
        """Say what lies at a path of a container, started or not; None where nothing does.

        Of a file at most its first ``max_bytes`` bytes are read, and nothing of it where that is 0.
        """
        with self._clients.lend(RefusalPhase.OTHER) as client:
            try:
                header = client.path_header(container, path, files.PATH_HEADER)
            except docker.errors.APIError as error:
                if not files.leads_nowhere(str(error.explanation or "")):
                    raise
                header = None
            if header is None:
                return None
            found = files.file_facts(header)
            wanted = min(found.size, max_bytes) if found is not None and found.kind is FileKind.FILE else 0
            beginning = _first(client.read("/containers/{}/archive", container, {"path": path}), wanted)
        content = files.first_content(beginning, wanted) if wanted else b""
        if found is None or content is None:
            raise EngineRefusal(RefusalPhase.OTHER, f"the engine did not say what lies at {path!r}")
        return replace(found, content=content)

    def read_tree(self, container: str, path: str) -> Iterator[bytes]:
        """Stream a folder of a running container as a tar; nothing is asked before the first piece is."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            yield from client.read("/containers/{}/archive", container, {"path": path})

    def export_root(self, container: str) -> Iterator[bytes]:
        """Stream a container's whole root file system as a tar, started or not."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            yield from client.read("/containers/{}/export", container, {})

    def close(self) -> None:
        """Let go of the connection."""
        self._clients.close()


def _first(pieces: Generator[bytes, None, None], wanted: int) -> bytes:
    """As much of an archive's stream as ``wanted`` bytes of its first file need; the rest is never sent."""
    beginning = bytearray()
    with contextlib.closing(pieces):
        while wanted and len(beginning) < wanted + files.HEADROOM:
            piece = next(pieces, b"")
            if not piece:
                break
            beginning += piece
    return bytes(beginning)


def _progress_line(entry: object) -> str:
    parts = (answers.text(entry, key) for key in ("id", "status", "progress", "stream"))
    return " ".join(part.strip() for part in parts if part.strip())


def _context(folder: Path) -> IO[bytes]:
    """The folder as the engine wants it: a tar, without what ``.dockerignore`` names."""
    if not folder.is_dir():
        raise EngineRefusal(RefusalPhase.BUILD, f"{str(folder)!r} is not a folder")
    ignore = folder / ".dockerignore"
    try:
        listed = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
        patterns = [line.strip() for line in listed if line.strip() and not line.strip().startswith("#")]
        return cast("IO[bytes]", docker.utils.tar(folder, exclude=patterns))
    except (OSError, UnicodeDecodeError) as error:
        raise EngineRefusal(RefusalPhase.BUILD, f"cannot read {str(folder)!r}: {error}") from error


# Finding the engine


class _Failure(NamedTuple):
    """Why no engine answered at an address; of several remedies that of the lowest ``order`` is told."""

    address: str
    reason: str
    order: int
    remedy: str


def connect(url: str | None = None, *, clock: Clock | None = None) -> DockerEngine:
    """Find the engine: the one named, else DOCKER_HOST, else Docker's sockets, else Podman's.

    Args:
        url: The engine's address, such as ``unix:///run/podman/podman.sock``; a path is taken for a socket's.
        clock: Measures deadlines; the host's by default.

    Raises:
        HostUnfit: No engine answers; says what was tried and what to do.
    """
    failures = []
    for address in _addresses(url):
        outcome = _try_address(address, clock or MonotonicClock())
        if isinstance(outcome, DockerEngine):
            return outcome
        failures.append(outcome)
    tried = "; ".join(f"{failure.address}: {failure.reason}" for failure in failures)
    remedy = min(failures, key=lambda failure: failure.order).remedy
    raise HostUnfit(f"no container engine answers ({tried})", remedy=remedy)


def _addresses(url: str | None) -> Iterator[str]:
    if chosen := url or os.environ.get("DOCKER_HOST"):
        yield f"unix://{chosen}" if chosen.startswith("/") else chosen
        return
    if os.name == "nt":
        yield "npipe:////./pipe/docker_engine"
        return
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    yield "unix:///var/run/docker.sock"
    yield f"unix://{runtime}/docker.sock"
    yield f"unix://{Path.home()}/.docker/run/docker.sock"
    yield f"unix://{runtime}/podman/podman.sock"
    yield "unix:///run/podman/podman.sock"


def _try_address(address: str, clock: Clock) -> DockerEngine | _Failure:
    if address.startswith("unix://") and (failure := _try_socket(address)) is not None:
        return failure
    try:
        tls = _tls()
        first = Client(base_url=address, timeout=REQUEST_SECONDS, tls=tls)
    except CredentialsUnknown as error:
        return _Failure(address, str(error), 0, "mend ~/.docker/config.json, or log in again: docker login REGISTRY")
    except (docker.errors.DockerException, OSError, ValueError) as error:
        return _Failure(address, str(error), 1, "see that the engine at this address runs and its keys are right")

    def make() -> Client:
        return Client(base_url=address, version=first.api_version, timeout=REQUEST_SECONDS, tls=tls)

    try:
        podman = answers.is_podman(first.version())
    except (docker.errors.DockerException, OSError) as error:
        return _Failure(address, str(error), 1, "restart the engine")
    finally:
        first.close()
    return DockerEngine(Clients(make, clock), podman=podman, clock=clock)


def _tls() -> TLSConfig | bool:
    """What DOCKER_TLS_VERIFY and DOCKER_CERT_PATH ask for; no TLS where they are not set."""
    asked = docker.utils.kwargs_from_env().get("tls")
    return asked if isinstance(asked, TLSConfig) else False


def _try_socket(address: str) -> _Failure | None:
    """Why a Unix socket cannot be used, told apart as one must be told what to do; None where it can."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5.0)
            probe.connect(address.removeprefix("unix://"))
    except PermissionError:
        remedy = "run as root, or join the socket's group: sudo usermod -aG docker $USER, then log in again"
        return _Failure(address, "permission denied", 0, remedy)
    except ConnectionRefusedError:
        return _Failure(address, "not running, the socket is left over", 2, _how_to_start())
    except (FileNotFoundError, NotADirectoryError):
        return _Failure(address, "not running, no such socket", 3, _how_to_start())
    except OSError as error:
        return _Failure(address, str(error), 1, "restart the engine")
    return None


def _how_to_start() -> str:
    if shutil.which("dockerd") or shutil.which("podman"):
        return "start it: make engine (or systemctl start docker, or systemctl --user start podman.socket)"
    return "install one: make engine (root, Debian or Ubuntu), or see https://docs.docker.com/engine/install"
