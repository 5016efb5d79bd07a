"""What only a real engine can show: that a specification reaches the kernel, and how registries fail."""

import gzip
import hashlib
import io
import json
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner.engine import (
    Bind,
    EngineRefusal,
    EngineUnreachable,
    ImageMissing,
    RefusalPhase,
    Tmpfs,
    VolumeMount,
    VolumeSpec,
)
from runner.engine.helper import HELPER_LABEL, HELPER_REFERENCE, helper_image

if TYPE_CHECKING:
    from tests.contract.conftest import Bench

pytestmark = pytest.mark.engine

_TELL_ALL = """
import json, os, resource, socket, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
mounts = {line.split()[1]: line.split()[2:4] for line in open("/proc/mounts")}
print(json.dumps({
    "uid": os.getuid(), "gid": os.getgid(), "cwd": os.getcwd(), "host": socket.gethostname(), "argv":
    sys.argv[1:], "env": dict(os.environ), "caps": int(status["CapEff"], 16), "nnp":
    int(status["NoNewPrivs"]), "core": resource.getrlimit(resource.RLIMIT_CORE), "files":
    resource.getrlimit(resource.RLIMIT_NOFILE), "fsize": resource.getrlimit(resource.RLIMIT_FSIZE), "cpus":
    len(os.sched_getaffinity(0)), "root": mounts["/"], "tmp": mounts["/tmp"], "out": mounts["/data/outputs"],
    "in": mounts["/data/inputs"], "shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "inodes": os.statvfs("/data/outputs").f_files, "nets": sorted(os.listdir("/sys/class/net")), "owner":
    os.stat("/data/outputs").st_uid, "first": open("/proc/1/comm").read().strip(), "stdin": os.read(0,
    1).decode(),
}))
"""


def test_whole_specification_reaches_the_kernel(docker_bench: "Bench", tmp_path: Path) -> None:
    bench = docker_bench
    volume = bench.name()
    bench.engine.create_volume(
        VolumeSpec(name=volume, labels={bench.label: "1"}, size=1 << 20, inodes=77, uid=4321, gid=4322)
    )
    tmp_path.chmod(0o755)
    spec = bench.spec(
        "exit 3",
        entrypoint=("python3", "-c", _TELL_ALL),
        command=("one", "two"),
        environment={"WORD": "a=b c"},
        user="4321:4322",
        working_dir="/usr",
        hostname="elsewhere",
        binds=(Bind(source=tmp_path, target="/data/inputs", read_only=True),),
        volumes=(VolumeMount(volume=volume, target="/data/outputs", read_only=False),),
        tmpfs=(Tmpfs(target="/tmp", size=1 << 20, inodes=50, mode=0o1777, executable=False),),
        shm=8 << 20,
        cpuset="0",
        open_files=99,
        file_size=1 << 20,
    )
    container = bench.engine.create(spec)
    bench.engine.start(container)
    ended = bench.wait(container)
    log = bench.engine.logs(container, lines=100, max_bytes=1 << 16)
    assert ended.code == 0, log
    told: dict[str, Any] = json.loads(log)
    assert (told["uid"], told["gid"], told["owner"]) == (4321, 4322, 4321)
    assert (told["cwd"], told["host"], told["argv"]) == ("/usr", "elsewhere", ["one", "two"])
    assert told["env"]["WORD"] == "a=b c"
    assert (told["caps"], told["nnp"]) == (0, 1)
    assert (told["core"], told["files"], told["fsize"]) == ([0, 0], [99, 99], [1 << 20, 1 << 20])
    assert (told["cpus"], told["shm"], told["inodes"]) == (1, 8 << 20, 77)
    assert told["nets"] == ["lo"]
    assert told["first"] in ("docker-init", "podman-init", "tini")
    assert told["stdin"] == ""
    assert "ro" in told["root"][1].split(",")
    assert "ro" in told["in"][1].split(",")
    assert told["out"][0] == told["tmp"][0] == "tmpfs"
    assert {"noexec", "nosuid", "nodev", "rw"} <= set(told["tmp"][1].split(","))


def test_build_leaves_out_the_ignored_and_a_volume_starts_empty(docker_bench: "Bench", tmp_path: Path) -> None:
    bench = docker_bench
    dockerfile = "ARG BASE\nFROM ${BASE}\nCOPY . /data/outputs/\nHEALTHCHECK --interval=1s CMD exit 0\n"
    (tmp_path / "Dockerfile").write_text(dockerfile)
    (tmp_path / ".dockerignore").write_text("# not these\nsecret*\n")
    (tmp_path / "secret.txt").write_text("s")
    (tmp_path / "kept.txt").write_text("k")
    lines: list[str] = []
    image = bench.engine.build(
        tmp_path,
        reference=f"{bench.name()}:1",
        arguments={"BASE": "proctor-base:1"},
        deadline=60,
        log=lines.append,
    )
    bench.images.append(image)
    assert "COPY . /data/outputs/" in "".join(lines)
    assert bench.engine.image(image).healthcheck
    container = bench.started("stubborn", image_id=image)
    with tarfile.open(fileobj=io.BytesIO(b"".join(bench.engine.read_tree(container, "/data/outputs")))) as tar:
        held = [member.name for member in tar if member.isfile()]
    assert sorted(held) == ["outputs/.dockerignore", "outputs/Dockerfile", "outputs/kept.txt"]
    name = bench.name()
    bench.engine.create_volume(
        VolumeSpec(name=name, labels={bench.label: "1"}, size=1 << 20, inodes=77, uid=65534, gid=65534)
    )
    mount = VolumeMount(volume=name, target="/data/outputs", read_only=False)
    running = bench.started("list and wait", image_id=image, volumes=(mount,))
    bench.until(lambda: bench.engine.logs(running, lines=1, max_bytes=100) != b"")
    assert bench.engine.logs(running, lines=1, max_bytes=100) == b"\n"


def test_failing_build_says_its_last_words(docker_bench: "Bench", tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM proctor-base:1\nRUN echo so far && exit 7\n")
    lines: list[str] = []
    with pytest.raises(EngineRefusal, match="7") as refusal:
        docker_bench.engine.build(
            tmp_path, reference=f"{docker_bench.name()}:1", arguments={}, deadline=60, log=lines.append
        )
    assert refusal.value.phase is RefusalPhase.BUILD
    assert "so far" in lines


def test_build_ends_at_its_deadline(docker_bench: "Bench", tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM proctor-base:1\nRUN sleep 5\n")
    before = time.monotonic()
    with pytest.raises(EngineUnreachable, match=r"did not finish to build within 1\.5 s"):
        docker_bench.engine.build(
            tmp_path, reference=f"{docker_bench.name()}:1", arguments={}, deadline=1.5, log=lambda _: None
        )
    assert time.monotonic() - before < 2.5


_HOSTS = "import os; print(len([n for n in os.listdir('/sys/class/net') if n != 'lo']))"


def test_build_has_no_network_where_none_is_given_and_keeps_to_its_memory(
    docker_bench: "Bench", tmp_path: Path
) -> None:
    hungry = "held = bytearray(256 << 20)"
    # Never twice the same: what is cached prints nothing.
    sees = f'RUN python3 -c "{_HOSTS}" # {docker_bench.name()}'
    holds = 'RUN [ -z "$PROGRAM" ] || python3 -c "$PROGRAM"'
    (tmp_path / "Dockerfile").write_text(f"FROM proctor-base:1\nARG PROGRAM\n{holds}\n{sees}\n")

    def build(program: str, network: str, memory: int) -> list[str]:
        lines: list[str] = []
        docker_bench.images.append(
            docker_bench.engine.build(
                tmp_path, reference=f"{docker_bench.name()}:1", arguments={"PROGRAM": program}, deadline=60,
                log=lines.append, network=network, memory=memory,
            )
        )  # fmt: skip
        return lines

    assert "0" in build("", "none", 512 << 20)
    assert "0" not in build(hungry, "default", 512 << 20)
    with pytest.raises(EngineRefusal, match="137"):
        build(hungry + " ", "none", 64 << 20)


@pytest.mark.parametrize("program", ["/none/at/all", "/etc/passwd"])
def test_program_that_cannot_be_executed_is_refused_at_start(docker_bench: "Bench", program: str) -> None:
    container = docker_bench.engine.create(docker_bench.spec("exit 3", command=(program,), init=False))
    with pytest.raises(EngineRefusal) as refusal:
        docker_bench.engine.start(container)
    assert refusal.value.phase is RefusalPhase.START
    facts = docker_bench.facts(container)
    assert (facts.state, facts.exit) == ("created", None)


def test_one_engine_serves_many_threads(docker_bench: "Bench") -> None:
    def run(_: int) -> tuple[int, bytes]:
        container = docker_bench.started("lines")
        code = docker_bench.wait(container).code
        log = docker_bench.engine.logs(container, lines=1, max_bytes=100)
        docker_bench.engine.remove(container)
        return code, log[:9]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(run, range(8))) == [(0, b"line 2000")] * 8


def test_helper_image_has_nothing_of_its_bases_settings(docker_bench: "Bench") -> None:
    image = helper_image(docker_bench.engine, base=None)
    facts = docker_bench.engine.image(image)
    assert any(tag.endswith(HELPER_REFERENCE) for tag in facts.repo_tags)
    assert facts.labels == {HELPER_LABEL: "1"}
    assert (facts.entrypoint, facts.command, facts.volumes, facts.user) == ((), (), (), "")
    assert [entry.partition("=")[0] for entry in facts.environment] == ["PATH"]
    assert helper_image(docker_bench.engine, base=None) == image
    assert docker_bench.ran("exit 3", image_id=image).code == 3


# Pulling


class Registry(ThreadingHTTPServer):
    """A registry that serves one image, whole, spoilt, or for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RegistryHandler)
        self.released = threading.Event()
        self.silent = False
        self.spoilt = False
        self.content: dict[str, tuple[str, bytes]] = {}
        self.image_id = ""
        self.digest = ""
        self.name = f"127.0.0.1:{self.server_address[1]}/team/model"

    def offer(self, note: bytes) -> None:
        """Serve a new image as ``:1``."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            member = tarfile.TarInfo("note")
            member.size = len(note)
            tar.addfile(member, io.BytesIO(note))
        layer = gzip.compress(buffer.getvalue(), mtime=0)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/run"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(buffer.getvalue())]},
            }
        ).encode()
        kind = "application/vnd.docker."
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": f"{kind}distribution.manifest.v2+json",
                "config": _descriptor(f"{kind}container.image.v1+json", config),
                "layers": [_descriptor(f"{kind}image.rootfs.diff.tar.gzip", layer)],
            }
        ).encode()
        self.image_id, self.digest = _digest(config), _digest(manifest)
        served = (f"{kind}distribution.manifest.v2+json", manifest)
        self.content = {
            "manifests/1": served,
            f"manifests/{self.digest}": served,
            f"blobs/{_digest(config)}": ("application/octet-stream", config),
            f"blobs/{_digest(layer)}": ("application/octet-stream", layer),
        }


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(content), "digest": _digest(content)}


class _RegistryHandler(BaseHTTPRequestHandler):
    server: Registry

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        wanted = self.path.removeprefix("/v2/").removeprefix("team/model/")
        kind, content = self.server.content.get(wanted, ("", b""))
        if wanted.startswith("blobs/") and self.server.silent:
            self.server.released.wait(20)
        if wanted.startswith("blobs/") and self.server.spoilt and kind:
            content = content[:-1] + bytes([content[-1] ^ 1])
        if wanted and not kind:
            content = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
        self.send_response(200 if kind or not wanted else 404)
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Distribution-API-Version", "registry/2.0")
        if kind:
            self.send_header("Docker-Content-Digest", _digest(content))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_pull_by_name_and_by_digest_answers_with_the_id(docker_bench: "Bench", registry: Registry) -> None:
    lines: list[str] = []
    for note in (b"first", b"second"):
        registry.offer(note)
        for reference in (f"{registry.name}:1", f"{registry.name}:1@{registry.digest}"):
            facts = docker_bench.engine.pull(reference, deadline=20, progress=lines.append)
            docker_bench.images.append(facts.id)
            assert facts.repo_digests == (f"{registry.name}@{registry.digest}",)
            assert docker_bench.engine.image(facts.id).command == ("/run",)
    assert any("Digest" in line for line in lines)


def test_spoilt_layer_never_yields_the_image_that_was_there_before(docker_bench: "Bench", registry: Registry) -> None:
    registry.offer(b"good")
    good = docker_bench.engine.pull(f"{registry.name}:1", deadline=20, progress=lambda _: None)
    docker_bench.images.append(good.id)
    registry.offer(b"better")
    registry.spoilt = True
    with pytest.raises(EngineRefusal) as refusal:
        docker_bench.engine.pull(f"{registry.name}:1", deadline=60, progress=lambda _: None)
    assert refusal.value.phase is RefusalPhase.PULL


def test_registry_is_asked_what_a_name_means_without_fetching_it(docker_bench: "Bench", registry: Registry) -> None:
    registry.offer(b"only asked for")
    for reference in (f"{registry.name}:1", f"{registry.name}@{registry.digest}"):
        assert docker_bench.engine.registry_digest(reference) == registry.digest
    assert registry.image_id not in docker_bench.engine.image_ids()
    with pytest.raises(ImageMissing):
        docker_bench.engine.registry_digest(f"{registry.name}:2")


def test_name_the_registry_does_not_know_is_missing(docker_bench: "Bench", registry: Registry) -> None:
    registry.offer(b"x")
    with pytest.raises(ImageMissing):
        docker_bench.engine.pull(f"{registry.name}:2", deadline=20, progress=lambda _: None)


def test_silent_registry_is_left_at_the_deadline(docker_bench: "Bench", registry: Registry) -> None:
    registry.offer(b"never")
    registry.silent = True
    before = time.monotonic()
    with pytest.raises(EngineUnreachable, match=r"did not finish to pull within 1 s"):
        docker_bench.engine.pull(f"{registry.name}:1", deadline=1, progress=lambda _: None)
    assert time.monotonic() - before < 2
