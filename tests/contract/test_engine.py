"""What every ``Engine`` must do; run on the fake and on the real one."""

import hashlib
import io
import json
import secrets
import tarfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner.engine import (
    Bind,
    EngineRefusal,
    EngineUnreachable,
    ImageMissing,
    LogLimit,
    RefusalPhase,
    Tmpfs,
    VolumeMount,
    VolumeSpec,
)

if TYPE_CHECKING:
    from tests.contract.conftest import Bench

OUT = "/data/outputs"
UNKNOWN_ID = "sha256:" + "0" * 64


def test_answers_and_says_what_it_is(bench: "Bench") -> None:
    bench.engine.ping()
    facts = bench.engine.facts()
    assert facts.os_type == "linux"
    assert facts.cgroup_version in (1, 2)
    assert facts.version
    assert facts.identity == bench.engine.facts().identity
    assert "runc" in facts.runtimes or "crun" in facts.runtimes


# Images


def test_image_is_found_by_name_and_by_id(bench: "Bench") -> None:
    by_name = bench.engine.image("proctor-base:1")
    assert by_name.id == bench.image_id
    assert any(tag.removeprefix("localhost/") == "proctor-base:1" for tag in by_name.repo_tags)
    assert bench.engine.image(bench.image_id) == by_name


@pytest.mark.parametrize("reference", ["proctor-none:1", UNKNOWN_ID])
def test_missing_image_is_told_apart(bench: "Bench", reference: str) -> None:
    with pytest.raises(ImageMissing):
        bench.engine.image(reference)
    with pytest.raises(ImageMissing) as missing:
        bench.engine.create(bench.spec("exit 3", image_id=reference))
    assert missing.value.phase is RefusalPhase.CREATE
    assert missing.value.status == 404


def test_pull_of_what_no_registry_has_is_refused(bench: "Bench") -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.pull("127.0.0.1:1/proctor/none:1", deadline=20, progress=lambda _: None)
    assert refusal.value.phase is RefusalPhase.PULL


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _saved_image(tags: list[str] | None) -> tuple[str, bytes]:
    """The ID and the ``docker save`` archive of a small image nobody else has."""
    layer = _tar({"note": secrets.token_bytes(16)})
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/run"], "User": "7", "Labels": {"a": "b"}, "Volumes": {"/data": {}}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    text = json.dumps(config).encode()
    digest = hashlib.sha256(text).hexdigest()
    manifest = [{"Config": f"{digest}.json", "RepoTags": tags, "Layers": ["layer.tar"]}]
    files = {"manifest.json": json.dumps(manifest).encode(), f"{digest}.json": text, "layer.tar": layer}
    return f"sha256:{digest}", _tar(files)


@pytest.mark.parametrize("tagged", [False, True])
def test_loaded_archive_is_named_by_id(bench: "Bench", tagged: bool) -> None:
    name = f"{bench.name()}:1"
    image_id, archive = _saved_image([name] if tagged else None)
    bench.images.append(name if tagged else image_id)
    pieces = (archive[start : start + 1000] for start in range(0, len(archive), 1000))
    assert bench.engine.load(pieces, deadline=20) == (image_id,)
    facts = bench.engine.image(image_id)
    assert (facts.command, facts.user, facts.volumes, dict(facts.labels)) == (("/run",), "7", ("/data",), {"a": "b"})
    # Podman puts its own registry's name before.
    assert tuple(tag.removeprefix("localhost/") for tag in facts.repo_tags) == ((name,) if tagged else ())


def test_every_image_is_listed_by_id_named_or_not(bench: "Bench") -> None:
    image_id, archive = _saved_image(None)
    assert image_id not in bench.engine.image_ids()
    bench.images.append(image_id)
    bench.engine.load([archive], deadline=20)
    assert {image_id, bench.image_id} <= set(bench.engine.image_ids())
    bench.engine.remove_image(image_id)
    assert image_id not in bench.engine.image_ids()


def test_broken_archive_is_refused(bench: "Bench") -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.load((b"no tar at all " * 1000 for _ in range(100)), deadline=20)
    assert refusal.value.phase is RefusalPhase.LOAD


def test_error_of_the_archives_source_is_not_the_engines(bench: "Bench") -> None:
    def unreadable() -> "list[bytes]":
        raise OSError("the disk is broken")

    with pytest.raises(OSError, match="the disk is broken"):
        bench.engine.load((piece for _ in range(1) for piece in unreadable()), deadline=20)
    bench.engine.ping()


def test_a_name_given_away_leaves_the_id_valid(bench: "Bench") -> None:
    reference = f"{bench.name()}:1"
    first = bench.engine.import_root([_tar({"a": b"1"})], reference=reference, changes=("LABEL k=v",))
    bench.images.append(first)
    second = bench.engine.import_root([_tar({"a": b"2"})], reference=reference, changes=("ENV P=q",))
    bench.images.append(second)
    assert first != second
    assert bench.engine.image(reference).id == second
    assert bench.engine.image(first).labels == {"k": "v"}
    assert "P=q" in bench.engine.image(second).environment


def test_removed_image_is_gone_and_removing_it_again_is_silent(bench: "Bench") -> None:
    image_id = bench.engine.import_root([_tar({"a": b"3"})], reference=f"{bench.name()}:1", changes=())
    bench.engine.remove_image(image_id)
    bench.engine.remove_image(image_id)
    with pytest.raises(ImageMissing):
        bench.engine.image(image_id)


def test_image_in_use_stays(bench: "Bench") -> None:
    bench.engine.create(bench.spec("exit 3"))
    bench.engine.remove_image(bench.image_id)
    assert bench.engine.image(bench.image_id).id == bench.image_id


def test_folder_without_dockerfile_is_refused(bench: "Bench", tmp_path: Path) -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.build(tmp_path, reference="proctor-x:1", arguments={}, deadline=20, log=lambda _: None)
    assert refusal.value.phase is RefusalPhase.BUILD


# Running


@pytest.mark.parametrize(("program", "code"), [("exit 3", 3), ("exit 137", 137)])
def test_exit_code(bench: "Bench", program: str, code: int) -> None:
    ended = bench.ran(program)
    assert (ended.code, ended.oom_killed, ended.error) == (code, False, "")


def test_seconds_are_the_programs(bench: "Bench") -> None:
    assert 0.5 <= bench.ran("half a second").seconds < 0.9


def test_states_and_pid_over_a_life(bench: "Bench") -> None:
    container = bench.engine.create(bench.spec("stubborn"))
    created = bench.facts(container)
    assert (created.state, created.pid, created.exit) == ("created", 0, None)
    bench.engine.start(container)
    running = bench.facts(container)
    assert (running.state, running.exit) == ("running", None)
    assert running.pid > 0
    bench.engine.kill(container)
    ended = bench.facts(container)
    assert (ended.state, ended.pid) == ("exited", 0)
    bench.engine.remove(container)
    assert bench.engine.inspect(container) is None


def test_kill_ends_what_ignores_signals_at_once(bench: "Bench") -> None:
    container = bench.started("stubborn")
    before = bench.clock.now()
    bench.engine.kill(container)
    ended = bench.wait(container)
    assert bench.clock.now() - before < 3
    assert (ended.code, ended.oom_killed) == (137, False)
    assert ended.seconds < 5


def test_kill_and_remove_are_silent_where_there_is_nothing_to_do(bench: "Bench") -> None:
    never_started = bench.engine.create(bench.spec("exit 3"))
    bench.engine.kill(never_started)
    assert bench.facts(never_started).state == "created"
    container = bench.started("exit 3")
    bench.wait(container)
    bench.engine.kill(container)
    assert bench.facts(container).exit == bench.wait(container)
    for _ in range(2):
        bench.engine.remove(container)
        bench.engine.kill(container)
    assert bench.engine.inspect(container) is None


def test_remove_kills_first(bench: "Bench") -> None:
    container = bench.started("stubborn")
    bench.engine.remove(container)
    assert bench.engine.inspect(container) is None


def test_many_threads_may_remove_one_container(bench: "Bench") -> None:
    container = bench.started("stubborn")
    errors: list[Exception] = []

    def remove() -> None:
        try:
            bench.engine.remove(container)
        except (EngineRefusal, EngineUnreachable) as error:
            errors.append(error)

    threads = [threading.Thread(target=remove) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert bench.engine.inspect(container) is None


def test_memory_limit_kills_and_is_told(bench: "Bench") -> None:
    ended = bench.ran("hungry", memory=64 << 20)
    assert (ended.code, ended.oom_killed) == (137, True)


def test_arguments_environment_and_bind_reach_the_program(bench: "Bench", tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "word.txt").write_text("bound")
    bind = Bind(source=tmp_path, target="/data/inputs", read_only=True)
    container = bench.started("tell", "argued", environment={"WORD": "set"}, binds=(bind,))
    assert bench.wait(container).code == 0
    assert bench.engine.logs(container, lines=10, max_bytes=1000) == b"argued set bound\n"


# Logs


def test_logs_keep_the_end(bench: "Bench") -> None:
    container = bench.started("lines")
    bench.wait(container)

    def line(number: int) -> bytes:
        return f"line {number:04d} {'x' * 50}\n".encode()

    assert bench.engine.logs(container, lines=2, max_bytes=1000) == line(1999) + line(2000)
    assert bench.engine.logs(container, lines=2000, max_bytes=100) == (line(1999) + line(2000))[-100:]
    everything = bench.engine.logs(container, lines=5000, max_bytes=1 << 20)
    assert everything == b"".join(line(number) for number in range(1, 2001))
    assert bench.engine.logs(container, lines=5, max_bytes=0) == b""


def test_log_limit_keeps_the_end(bench: "Bench") -> None:
    container = bench.started("lines", log=LogLimit(size=20_000, files=2))
    bench.wait(container)
    kept = bench.engine.logs(container, lines=5000, max_bytes=1 << 20)
    assert kept.endswith(b"line 2000 " + b"x" * 50 + b"\n")
    assert len(kept) <= 40_000


def test_logs_of_no_container_are_refused(bench: "Bench") -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.logs("proctor-none", lines=1, max_bytes=1)
    assert refusal.value.status == 404


# Refusals


def test_name_in_use_is_refused(bench: "Bench") -> None:
    spec = bench.spec("exit 3")
    bench.engine.create(spec)
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.create(spec)
    assert refusal.value.phase is RefusalPhase.CREATE


def test_bind_of_what_is_not_there_is_refused(bench: "Bench", tmp_path: Path) -> None:
    bind = Bind(source=tmp_path / "none", target="/data/inputs", read_only=True)
    with pytest.raises(EngineRefusal):
        bench.started("exit 3", binds=(bind,))
    assert not (tmp_path / "none").exists()


def test_volume_that_is_not_there_is_refused_not_made(bench: "Bench") -> None:
    mount = VolumeMount(volume=bench.name(), target=OUT, read_only=False)
    with pytest.raises(EngineRefusal, match="no such volume"):
        bench.engine.create(bench.spec("exit 3", volumes=(mount,)))


@pytest.mark.parametrize("limit", [{"memory": 1 << 20}, {"cpus": 4096.0}])
def test_limit_the_host_cannot_keep_is_refused(bench: "Bench", limit: dict[str, float]) -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.create(bench.spec("exit 3", **limit))
    assert (refusal.value.phase, refusal.value.status) == (RefusalPhase.CREATE, 400)
    assert bench.engine.containers(bench.label) == ()


def test_start_of_no_container_is_refused(bench: "Bench") -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.start("proctor-none")
    assert (refusal.value.phase, refusal.value.status) == (RefusalPhase.START, 404)


# Limits, labels, lists


def test_limits_read_back_as_asked(bench: "Bench") -> None:
    spec = bench.spec(
        "exit 3",
        memory=96 << 20,
        shm=16 << 20,
        cpus=0.5,
        pids=64,
        open_files=512,
        file_size=8 << 20,
        user="1234:1235",
        tmpfs=(Tmpfs(target="/tmp", size=1 << 20, inodes=100, mode=0o1777, executable=True),),
    )
    limits = bench.facts(bench.engine.create(spec)).limits
    wanted = {
        "memory": 96 << 20,
        "memory_swap": 96 << 20,
        "shm": 16 << 20,
        "cpus": 0.5,
        "pids": 64,
        "open_files": 512,
        "file_size": 8 << 20,
        "user": "1234:1235",
        "read_only": True,
        "network": "none",
        "init": True,
        "cap_drop": "ALL",
        "no_new_privileges": True,
        "privileged": False,
        "runtime": limits["runtime"],
    }
    assert dict(limits) == wanted


def test_loosened_sandbox_reads_back_as_loosened(bench: "Bench") -> None:
    spec = bench.spec(
        "exit 3",
        cpuset="0",
        cpus=0.5,
        read_only=False,
        init=False,
        cap_drop=(),
        security_opt=(),
        network="bridge",
        user="",
        open_files=None,
    )
    limits = bench.facts(bench.engine.create(spec)).limits
    assert limits["cpuset"] == "0"
    assert (limits["read_only"], limits["init"], limits["no_new_privileges"]) == (False, False, False)
    assert limits["network"] in ("bridge", "default")
    assert limits.get("cap_drop") != "ALL"
    assert {"cpus", "memory", "memory_swap", "user"}.isdisjoint(limits)


def test_what_a_container_wrote_to_its_own_tree_is_measured(bench: "Bench") -> None:
    container = bench.engine.create(bench.spec("write own tree", user="", read_only=False))
    assert bench.engine.written_bytes(container) < 1 << 20
    bench.engine.start(container)
    assert bench.wait(container).code == 0
    assert 3 << 20 <= bench.engine.written_bytes(container) < 4 << 20
    bench.engine.remove(container)
    assert bench.engine.written_bytes(container) == 0


def test_containers_are_listed_by_label_running_or_not(bench: "Bench") -> None:
    created = bench.engine.create(bench.spec("exit 3", labels={bench.label: "a", "other": "b"}))
    running = bench.started("stubborn")
    listed = {facts.id: facts for facts in bench.engine.containers(bench.label)}
    assert set(listed) == {created, running}
    assert listed[created].labels[bench.label] == "a"
    assert listed[created].labels["other"] == "b"
    assert listed[running].state == "running"
    assert bench.engine.containers(f"{bench.label}.none") == ()


# Volumes


def _volume(bench: "Bench") -> str:
    spec = VolumeSpec(name=bench.name(), labels={bench.label: "1"}, size=1 << 20, inodes=100, uid=65534, gid=65534)
    bench.engine.create_volume(spec)
    return spec.name


def test_volume_lives_until_it_is_removed(bench: "Bench") -> None:
    name = _volume(bench)
    assert [(volume.name, dict(volume.labels)) for volume in bench.engine.volumes(bench.label)] == [
        (name, {bench.label: "1"})
    ]
    bench.engine.remove_volume(name)
    bench.engine.remove_volume(name)
    assert bench.engine.volumes(bench.label) == ()


def test_volume_in_use_cannot_be_removed(bench: "Bench") -> None:
    name = _volume(bench)
    mount = VolumeMount(volume=name, target=OUT, read_only=False)
    bench.engine.create(bench.spec("exit 3", volumes=(mount,)))
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.remove_volume(name)
    assert refusal.value.status == 409


def test_tree_of_a_running_container_is_read_and_vanishes_with_it(bench: "Bench") -> None:
    mount = VolumeMount(volume=_volume(bench), target=OUT, read_only=False)
    container = bench.started("write and wait", volumes=(mount,))
    content = _read_when_there(bench, container)
    assert content == b"42"
    bench.engine.kill(container)
    bench.wait(container)
    later = bench.started("list and wait", volumes=(mount,))
    bench.until(lambda: bench.engine.logs(later, lines=1, max_bytes=100) != b"")
    assert bench.engine.logs(later, lines=1, max_bytes=100) == b"\n"


def _read_when_there(bench: "Bench", container: str) -> bytes:
    found: list[bytes] = []

    def there() -> bool:
        stream = b"".join(bench.engine.read_tree(container, OUT))
        with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
            file = tar.extractfile("outputs/answer.txt") if "outputs/answer.txt" in tar.getnames() else None
            found[:] = [file.read()] if file else []
        return found not in ([], [b""])

    bench.until(there)
    return found[0]


@pytest.mark.parametrize("path", ["/none", f"{OUT}/none"])
def test_tree_that_is_not_there_is_refused(bench: "Bench", path: str) -> None:
    mount = VolumeMount(volume=_volume(bench), target=OUT, read_only=False)
    container = bench.started("stubborn", volumes=(mount,))
    with pytest.raises(EngineRefusal) as refusal:
        b"".join(bench.engine.read_tree(container, path))
    assert refusal.value.status == 404


def _tree() -> bytes:
    """A root file system with one of each thing that can lie at a path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, mode, told in (
            ("app", tarfile.DIRTYPE, 0o750, b""),
            ("app/run", tarfile.REGTYPE, 0o4711, b"#!/bin/sh\n"),
            ("app/large", tarfile.REGTYPE, 0o644, bytes(range(256)) * 4096),
            ("app/empty", tarfile.REGTYPE, 0o400, b""),
            ("app/" + "long" * 40, tarfile.REGTYPE, 0o644, b"a name that needs a second header"),
            ("app/pipe", tarfile.FIFOTYPE, 0o600, b""),
            ("bin", tarfile.SYMTYPE, 0o777, b"app"),
            ("app/link", tarfile.SYMTYPE, 0o777, b"/app/run"),
            ("app/nowhere", tarfile.SYMTYPE, 0o777, b"/none/at/all"),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, mode
            if kind == tarfile.SYMTYPE:
                member.linkname = told.decode()
            member.size = len(told) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(told))
    return buffer.getvalue()


@pytest.fixture
def unstarted(bench: "Bench") -> str:
    """A container that was never started, of that root file system."""
    image = bench.engine.import_root([_tree()], reference=f"{bench.name()}:1", changes=())
    bench.images.append(image)
    spec = bench.spec("exit 3", image_id=image, entrypoint=("/none",), command=(), working_dir="/")
    return bench.engine.create(spec)


@pytest.mark.parametrize(
    ("path", "most", "found"),
    [
        ("/", 9, ("folder", 0o755, 0, b"")),
        ("/app", 9, ("folder", 0o750, 0, b"")),
        ("/app/run", 9, ("file", 0o4711, 10, b"#!/bin/sh")),
        ("/app/run", 99, ("file", 0o4711, 10, b"#!/bin/sh\n")),
        ("/app/run", 0, ("file", 0o4711, 10, b"")),
        ("/bin/run", 2, ("file", 0o4711, 10, b"#!")),
        ("/bin/../app/run", 2, ("file", 0o4711, 10, b"#!")),
        ("/app/large", 300, ("file", 0o644, 1 << 20, bytes(range(256)) + bytes(range(44)))),
        ("/app/empty", 9, ("file", 0o400, 0, b"")),
        ("/app/" + "long" * 40, 6, ("file", 0o644, 33, b"a name")),
        ("/app/pipe", 9, ("something else", 0o600, 0, b"")),
        ("/none", 9, None),
        ("/app/none", 9, None),
        ("/app/run/none", 9, None),
        ("/app/nowhere/none", 9, None),
        ("/" + "x" * 300, 9, None),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_what_lies_at_a_path_is_told_and_no_more_of_it_read_than_asked(
    bench: "Bench", unstarted: str, path: str, most: int, found: tuple[str, int, int, bytes] | None
) -> None:
    facts = bench.engine.read_file(unstarted, path, max_bytes=most)
    told = facts and (facts.kind.value, facts.mode, facts.size, facts.content)
    assert told == found
    assert bench.facts(unstarted).state == "created"


@pytest.mark.parametrize(("path", "target"), [("/app/link", "/app/run"), ("/app/nowhere", "/none/at/all")])
def test_link_is_told_and_not_followed(bench: "Bench", unstarted: str, path: str, target: str) -> None:
    facts = bench.engine.read_file(unstarted, path, max_bytes=9)
    assert facts is not None
    assert (facts.kind.value, facts.link, facts.content) == ("link", target, b"")


def test_file_of_no_container_is_refused(bench: "Bench") -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.read_file("proctor-none", "/etc/passwd", max_bytes=9)
    assert refusal.value.status == 404


def test_root_file_system_of_a_container_never_started_is_a_tar(bench: "Bench") -> None:
    container = bench.engine.create(bench.spec("exit 3"))
    stream = bench.engine.export_root(container)
    start = b"".join(piece for piece, _ in zip(stream, range(4), strict=False))
    assert start[257:262] == b"ustar"
