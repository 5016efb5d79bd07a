"""Registries on loopback for the tests: Debian's own, with or without a password, and a stand-in that misbehaves."""

import base64
import contextlib
import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.archives import Oci, oci

USER, PASSWORD = "organiser", "correct-horse-7"
# bcrypt of the password above, as htpasswd -B writes it.
_HTPASSWD = f"{USER}:$2y$04$FR9lOlxZjtMn78prhwzoVut5Pi./zUygeVoOZPGQe8WlUl7f4Uube\n"
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_CONFIG = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
{auth}
"""


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass
class Registry:
    """Debian's docker-registry; ``password`` where it asks for one."""

    folder: Path
    password: bool = False
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "htpasswd").write_text(_HTPASSWD)
        auth = f"auth: {{htpasswd: {{realm: test, path: {self.folder}/htpasswd}}}}" if self.password else ""
        config = self.folder / "config.yml"
        config.write_text(_CONFIG.format(folder=self.folder, port=self.port, auth=auth))
        try:
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
        except FileNotFoundError:
            pytest.fail("there is no docker-registry\nrun: make registry-tools", pytrace=False)
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "the registry did not come up within 20 s"
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            self.ask("GET", "/v2/")
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self._process is not None

    def ask(self, method: str, path: str) -> Mapping[str, str]:
        """Ask it something, as its user; the headers of the answer."""
        request = urllib.request.Request(f"http://{self.address}{path}", method=method)
        request.add_header("Accept", ", ".join(_MANIFESTS))
        if self.password:
            token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return dict(answer.headers)

    def push(self, source: str, name: str) -> str:
        """Copy an image here by skopeo (``docker-daemon:…``, ``oci-archive:…``); its digest."""
        command = ["skopeo", "copy", "--quiet", "--dest-tls-verify=false"]
        command += ["--dest-creds", f"{USER}:{PASSWORD}"] if self.password else []
        done = subprocess.run(
            [*command, source, f"docker://{self.address}/{name}"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stderr}\nrun: make registry-tools"
        return self.digest(name)

    def offer(self, image: Oci, name: str, scratch: Path) -> str:
        """Push an image made by hand; its digest."""
        path = scratch / "offered.tar"
        path.write_bytes(oci(image))
        return self.push(f"oci-archive:{path}", name)

    def digest(self, name: str) -> str:
        """What a name means here."""
        repository, _, tag = name.rpartition(":")
        return self.ask("HEAD", f"/v2/{repository}/manifests/{tag}")["Docker-Content-Digest"]

    def delete(self, repository: str, digest: str) -> None:
        """Delete a manifest, with every tag of it."""
        self.ask("DELETE", f"/v2/{repository}/manifests/{digest}")

    def spoil(self) -> None:
        """Flip a byte of the largest blob."""
        blobs = (path for path in self.folder.glob("data/**/blobs/**/data") if path.is_file())
        path = max(blobs, key=lambda path: path.stat().st_size)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


@contextlib.contextmanager
def running(folder: Path, *, password: bool = False) -> Iterator[Registry]:
    """A registry, gone at the end."""
    registry = Registry(folder, password=password)
    registry.start()
    try:
        yield registry
    finally:
        registry.kill()


Behaviour = Callable[["StandIn", str], tuple[int, str, bytes]]


class StandIn(ThreadingHTTPServer):
    """Stands before a registry: answers as a test says, or passes on what the registry answers.

    Attributes:
        behave: Gives status, media type and body for a path; a status of 0 passes the request on.
        asked: The paths that were asked for.
        released: Set at the end, so that nobody waits for nothing.
    """

    daemon_threads = True

    def __init__(self, behind: Registry | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.behave: Behaviour = lambda _server, _path: (0, "", b"")
        self.asked: list[str] = []
        self.released = threading.Event()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, kind, body = self.server.behave(self.server, self.path)
        headers = {"Content-Type": kind}
        if not status:
            status, headers, body = self._passed_on()
        self.send_response(status)
        for name in ("Content-Type", "Docker-Content-Digest"):
            if name in headers:
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            with contextlib.suppress(OSError):
                self.wfile.write(body)

    def _passed_on(self) -> tuple[int, dict[str, str], bytes]:
        assert self.server.behind is not None
        request = urllib.request.Request(f"http://{self.server.behind.address}{self.path}")
        request.add_header("Accept", ", ".join(self.headers.get_all("Accept") or _MANIFESTS))
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass


@contextlib.contextmanager
def stand_in(behind: Registry | None = None) -> Iterator[StandIn]:
    """A stand-in, gone at the end."""
    server = StandIn(behind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def errors(status: int, code: str, message: str) -> tuple[int, str, bytes]:
    """An answer as the registry's protocol has it."""
    body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
    return status, "application/json", body


def logged_in(folder: Path, registry: Registry, *, password: str = PASSWORD) -> Path:
    """A folder for DOCKER_CONFIG, in which the user is logged in."""
    folder.mkdir(exist_ok=True)
    token = base64.b64encode(f"{USER}:{password}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {registry.address: {"auth": token}}}))
    return folder


def helped(folder: Path, registry: Registry, program: str) -> Path:
    """A folder for DOCKER_CONFIG and PATH, in which a credential helper of our own is named."""
    folder.mkdir(exist_ok=True)
    helper = folder / "docker-credential-proctortest"
    helper.write_text(f"#!/bin/sh\n{program}\n")
    helper.chmod(0o755)
    (folder / "config.json").write_text(json.dumps({"credHelpers": {registry.address: "proctortest"}}))
    return folder
