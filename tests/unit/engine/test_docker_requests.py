"""What Docker is asked: every hardening flag, each in its place."""

from pathlib import Path
from typing import Any

from runner.engine import Bind, ContainerSpec, GpuRequest, LogLimit, Tmpfs, VolumeMount, VolumeSpec
from runner.engine.docker_requests import create_body, volume_options

FULL = ContainerSpec(
    image_id="sha256:ab",
    name="n",
    labels={"l": "m"},
    entrypoint=("/e",),
    command=("c",),
    environment={"A": "b"},
    user="1:2",
    working_dir="/w",
    hostname="h",
    network="bridge",
    binds=(Bind(source=Path("/s"), target="/t", read_only=True),),
    volumes=(VolumeMount(volume="v", target="/u", read_only=False),),
    tmpfs=(Tmpfs(target="/tmp", size=10, inodes=20, mode=0o1777, executable=True),),
    cap_add=("FOWNER",),
    security_opt=("no-new-privileges:true", "seccomp={}"),
    memory=100,
    shm=50,
    cpus=1.5,
    pids=7,
    open_files=8,
    file_size=9,
    log=LogLimit(size=11, files=2),
    gpus=GpuRequest(device_ids=("GPU-1",)),
    runtime="runsc",
)


def test_every_field_is_asked_for() -> None:
    assert create_body(FULL) == {
        "Image": "sha256:ab",
        "Hostname": "h",
        "User": "1:2",
        "Labels": {"l": "m"},
        "Env": ["A=b"],
        "OpenStdin": False,
        "StdinOnce": False,
        "Tty": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "Healthcheck": {"Test": ["NONE"]},
        "Entrypoint": ["/e"],
        "Cmd": ["c"],
        "WorkingDir": "/w",
        "HostConfig": {
            "NetworkMode": "bridge",
            "IpcMode": "private",
            "ReadonlyRootfs": True,
            "Mounts": [
                {"Type": "bind", "Source": "/s", "Target": "/t", "ReadOnly": True},
                {
                    "Type": "volume",
                    "Source": "v",
                    "Target": "/u",
                    "ReadOnly": False,
                    "VolumeOptions": {"NoCopy": True},
                },
            ],
            "Tmpfs": {"/tmp": "rw,nosuid,nodev,exec,size=10,nr_inodes=20,mode=1777"},
            "CapDrop": ["ALL"],
            "CapAdd": ["FOWNER"],
            "SecurityOpt": ["no-new-privileges:true", "seccomp={}"],
            "Ulimits": [
                {"Name": "core", "Soft": 0, "Hard": 0},
                {"Name": "nofile", "Soft": 8, "Hard": 8},
                {"Name": "fsize", "Soft": 9, "Hard": 9},
            ],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "11", "max-file": "2"}},
            "Init": True,
            "Privileged": False,
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "Memory": 100,
            "MemorySwap": 100,
            "ShmSize": 50,
            "PidsLimit": 7,
            "NanoCpus": 1_500_000_000,
            "Runtime": "runsc",
            "DeviceRequests": [{"Driver": "", "DeviceIDs": ["GPU-1"], "Capabilities": [["gpu"]]}],
        },
    }


def test_least_specification_is_hardened_and_leaves_the_image_its_program() -> None:
    body: dict[str, Any] = create_body(ContainerSpec(image_id="i", name="n", labels={}))
    host = body["HostConfig"]
    assert {"Entrypoint", "Cmd", "WorkingDir"}.isdisjoint(body)
    assert body["User"] == "65534:65534"
    assert (host["NetworkMode"], host["CapDrop"], host["SecurityOpt"]) == ("none", ["ALL"], ["no-new-privileges:true"])
    assert {"Memory", "NanoCpus", "CpusetCpus", "Runtime", "DeviceRequests", "PidsLimit"}.isdisjoint(host)
    assert host["Ulimits"] == [{"Name": "core", "Soft": 0, "Hard": 0}]


def test_cpuset_wins_over_a_quota() -> None:
    body: dict[str, Any] = create_body(ContainerSpec(image_id="i", name="n", labels={}, cpus=1.0, cpuset="0-1"))
    assert body["HostConfig"]["CpusetCpus"] == "0-1"
    assert "NanoCpus" not in body["HostConfig"]


def test_volume_in_memory() -> None:
    spec = VolumeSpec(name="v", labels={}, size=8193, inodes=20, uid=1, gid=2)
    assert volume_options(spec) == {
        "type": "tmpfs",
        "device": "tmpfs",
        "o": "size=8193,nr_inodes=20,uid=1,gid=2,mode=0700",
    }


def test_podman_is_asked_without_what_it_refuses(monkeypatch: Any) -> None:
    monkeypatch.setattr("runner.engine.docker_requests.os.sysconf", lambda _: 4096)
    spec = VolumeSpec(name="v", labels={}, size=8193, inodes=20, uid=1, gid=2)
    assert volume_options(spec, podman=True)["o"] == "nr_blocks=3,nr_inodes=20,uid=1,gid=2,mode=0700"
    body: dict[str, Any] = create_body(FULL, podman=True)
    assert body["HostConfig"]["Tmpfs"] == {"/tmp": "rw,nosuid,nodev,exec,size=10,mode=1777"}
