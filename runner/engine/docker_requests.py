"""What Docker is asked, from our own specifications; pure.

Podman's Docker face differs in two things, measured with 4.3.1: it refuses ``nr_inodes`` on a container's own tmpfs
(so there the memory limit alone bounds the number of files), and takes ``size`` of a volume for a disk quota
(so a volume's size is given in pages, which the kernel reads as well).
"""

import os

from runner.engine.contract import Bind, ContainerSpec, Tmpfs, VolumeMount, VolumeSpec


def create_body(spec: ContainerSpec, *, podman: bool = False) -> dict[str, object]:
    """The body of a ``/containers/create`` request."""
    body: dict[str, object] = {
        "Image": spec.image_id,
        "Hostname": spec.hostname,
        "User": spec.user,
        "Labels": dict(spec.labels),
        "Env": [f"{name}={value}" for name, value in spec.environment.items()],
        "OpenStdin": spec.stdin,
        # Its input ends with ours; else it goes on waiting once we are gone.
        "StdinOnce": spec.stdin,
        "Tty": False,
        "AttachStdout": False,
        "AttachStderr": False,
        # Else an image's health check runs its author's code on a timer of its own.
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": _host_config(spec, podman=podman),
    }
    if spec.entrypoint is not None:
        body["Entrypoint"] = list(spec.entrypoint)
    if spec.command is not None:
        body["Cmd"] = list(spec.command)
    if spec.working_dir is not None:
        body["WorkingDir"] = spec.working_dir
    return body


def _host_config(spec: ContainerSpec, *, podman: bool) -> dict[str, object]:
    config: dict[str, object] = {
        "NetworkMode": spec.network,
        "IpcMode": "private",
        "ReadonlyRootfs": spec.read_only,
        "Mounts": [*map(_bind, spec.binds), *map(_volume, spec.volumes)],
        "Tmpfs": {mount.target: _tmpfs_options(mount, podman=podman) for mount in spec.tmpfs},
        "CapDrop": list(spec.cap_drop),
        "CapAdd": list(spec.cap_add),
        "SecurityOpt": list(spec.security_opt),
        "Ulimits": _ulimits(spec),
        # The end of the log survives; `local` would keep more than it says, `none` nothing.
        "LogConfig": {
            "Type": "json-file",
            "Config": {"max-size": str(spec.log.size), "max-file": str(spec.log.files)},
        },
        "Init": spec.init,
        "Privileged": False,
        # An auto-removed container takes its exit code with it.
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
    }
    config.update(_resources(spec))
    if spec.runtime is not None:
        config["Runtime"] = spec.runtime
    if spec.gpus is not None:
        config["DeviceRequests"] = [{"Driver": "", "DeviceIDs": list(spec.gpus.device_ids), "Capabilities": [["gpu"]]}]
    if spec.cdi_devices:
        config["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": list(spec.cdi_devices)}]
    return config


def _resources(spec: ContainerSpec) -> dict[str, object]:
    config: dict[str, object] = {}
    if spec.memory is not None:
        # Memory and swap together equal to memory: no swap.
        config["Memory"] = config["MemorySwap"] = spec.memory
    if spec.shm is not None:
        config["ShmSize"] = spec.shm
    if spec.pids is not None:
        config["PidsLimit"] = spec.pids
    if spec.cpuset is not None:
        config["CpusetCpus"] = spec.cpuset
    elif spec.cpus is not None:
        config["NanoCpus"] = round(spec.cpus * 1e9)
    return config


def _ulimits(spec: ContainerSpec) -> list[dict[str, object]]:
    asked = {"core": 0, "nofile": spec.open_files, "fsize": spec.file_size}
    return [{"Name": name, "Soft": value, "Hard": value} for name, value in asked.items() if value is not None]


def _bind(bind: Bind) -> dict[str, object]:
    # The Mount form refuses a source that is not there; `-v` would make it, as root.
    return {"Type": "bind", "Source": str(bind.source), "Target": bind.target, "ReadOnly": bind.read_only}


def _volume(mount: VolumeMount) -> dict[str, object]:
    return {
        "Type": "volume",
        "Source": mount.volume,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        # Else the engine copies what the image holds at the target into an empty volume.
        "VolumeOptions": {"NoCopy": True},
    }


def _tmpfs_options(mount: Tmpfs, *, podman: bool) -> str:
    execution = "exec" if mount.executable else "noexec"
    inodes = "" if podman else f"nr_inodes={mount.inodes},"
    return f"rw,nosuid,nodev,{execution},size={mount.size},{inodes}mode={mount.mode:o}"


def volume_options(spec: VolumeSpec, *, podman: bool = False) -> dict[str, str]:
    """The ``local`` driver's options for a volume in memory."""
    owner = f"uid={spec.uid},gid={spec.gid},mode={spec.mode:04o}"
    pages = -(-spec.size // os.sysconf("SC_PAGE_SIZE")) if podman else 0
    size = f"nr_blocks={pages}" if podman else f"size={spec.size}"
    return {"type": "tmpfs", "device": "tmpfs", "o": f"{size},nr_inodes={spec.inodes},{owner}"}
