"""What Docker's and Podman's answers mean, in our words; pure, so recorded answers can test it.

Answers are walked with small accessors that give a typed value or its empty one, because fields come and go:
Docker 20.10 writes ``null`` where 29 leaves the key out, and Podman leaves out what it does not know. Text
in an answer may quote an image, and so be a participant's: it is passed on, and decides nothing but the two
cases stated at ``shutting_down`` and ``not_in_registry``.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone

from runner.engine.contract import ContainerFacts, EngineFacts, Exit, ImageFacts

_STAMP = re.compile(
    r"(?P<moment>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?:(?P<utc>Z)|(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d))"
)
_LIMIT_WARNING = re.compile(
    r"discarded|without swap|does not support|not supported|unsupported|limit|quota|ignored", re.IGNORECASE
)
# Anchored: the engine's own words come first, what it quotes of an image only later.
_SHUTTING_DOWN = re.compile(
    r"(?:(?:failed to |cannot )(?:create|start|kill)[\w ]*: )?"
    r"(?:rpc error: code = unavailable|transport is closing|connection error: desc|context canceled"
    r"|grpc: the client connection is|ttrpc: (?:closed|client shutting down|server closed)"
    r"|(?:the )?(?:server|daemon) is shutting down|dial unix [\w./-]*containerd)",
    re.IGNORECASE,
)
_NOT_IN_REGISTRY = re.compile(
    r"manifest unknown|name unknown|pull access denied|repository does not exist|not found", re.IGNORECASE
)
_LOADED = re.compile(r"Loaded image(?: ID|\(s\))?: (?P<names>\S.*)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ENDED = ("exited", "dead")
# Podman has states of its own; its Docker face does not translate all of them.
_PODMAN_STATES = {
    "configured": "created",
    "initialized": "created",
    "stopping": "running",
    "stopped": "exited",
}


def dig(answer: object, *keys: str) -> object:
    """The value under nested keys, None where a step is missing."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    return answer


def text(answer: object, *keys: str) -> str:
    """The string under nested keys, empty where there is none."""
    value = dig(answer, *keys)
    return value if isinstance(value, str) else ""


def number(answer: object, *keys: str) -> int:
    """The whole number under nested keys, 0 where there is none."""
    value = dig(answer, *keys)
    return int(value) if isinstance(value, int | float) else 0


def texts(answer: object, *keys: str) -> tuple[str, ...]:
    """The strings of a list under nested keys; the keys of a table are taken as such a list."""
    value = dig(answer, *keys)
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, Iterable) else ()


def rows(answer: object, *keys: str) -> tuple[object, ...]:
    """The entries of a list under nested keys, empty where there is none."""
    value = dig(answer, *keys)
    return tuple(value) if isinstance(value, list) else ()


def table(answer: object, *keys: str) -> dict[str, str]:
    """The string-to-string table under nested keys, empty where there is none."""
    value = dig(answer, *keys)
    return {str(key): str(entry) for key, entry in value.items()} if isinstance(value, Mapping) else {}


def nanoseconds(stamp: str) -> int | None:
    """An RFC 3339 time in nanoseconds since 1970, exact; None for the engines' "never" (year 1)."""
    match = _STAMP.fullmatch(stamp)
    if match is None or match["moment"].startswith("0001"):
        return None
    zone = UTC
    if match["sign"]:
        offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"]))
        zone = timezone(offset if match["sign"] == "+" else -offset)
    moment = datetime.fromisoformat(match["moment"]).replace(tzinfo=zone)
    whole = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    return whole * 1_000_000_000 + int((match["fraction"] or "0").ljust(9, "0"))


def is_podman(version: object) -> bool:
    """Whether a ``/version`` answer is Podman's."""
    components = dig(version, "Components")
    names = [text(part, "Name") for part in components] if isinstance(components, list) else []
    return any("podman" in name.lower() for name in names)


def engine_facts(info: object, version: object) -> EngineFacts:
    """The engine, from its ``/info`` and ``/version``."""
    podman = is_podman(version)
    security = texts(info, "SecurityOptions")
    # Podman makes up a new ID for every answer.
    identity = f"{text(info, 'Name')}:{text(info, 'DockerRootDir')}" if podman else text(info, "ID")
    return EngineFacts(
        name="Podman" if podman else "Docker Engine",
        version=text(version, "Version") or text(info, "ServerVersion"),
        identity=identity,
        cgroup_version=int(text(info, "CgroupVersion") or "1"),
        cgroup_driver=text(info, "CgroupDriver"),
        security_options=security,
        runtimes=tuple(sorted(texts(info, "Runtimes"))),
        warnings=texts(info, "Warnings"),
        data_root=text(info, "DockerRootDir"),
        cpus=number(info, "NCPU"),
        memory=number(info, "MemTotal"),
        rootless=dig(info, "Rootless") is True or any("name=rootless" in option for option in security),
        os_type=text(info, "OSType") or text(version, "Os"),
        architecture=text(info, "Architecture"),
        operating_system=text(info, "OperatingSystem"),
        kernel=text(info, "KernelVersion"),
        api_version=text(version, "ApiVersion"),
        cdi_folders=texts(info, "CDISpecDirs"),
        devices=tuple(filter(None, (text(device, "ID") for device in rows(info, "DiscoveredDevices")))),
    )


def image_facts(answer: object) -> ImageFacts:
    """An image, from its inspect answer."""
    test = texts(answer, "Config", "Healthcheck", "Test")
    return ImageFacts(
        id=_with_algorithm(text(answer, "Id")),
        repo_digests=texts(answer, "RepoDigests"),
        repo_tags=texts(answer, "RepoTags"),
        os=text(answer, "Os"),
        architecture=text(answer, "Architecture"),
        size=number(answer, "Size"),
        entrypoint=texts(answer, "Config", "Entrypoint"),
        command=texts(answer, "Config", "Cmd"),
        environment=texts(answer, "Config", "Env"),
        user=text(answer, "Config", "User"),
        working_dir=text(answer, "Config", "WorkingDir"),
        volumes=texts(answer, "Config", "Volumes"),
        labels=table(answer, "Config", "Labels"),
        healthcheck=bool(test) and test[0] != "NONE",
    )


def _with_algorithm(image_id: str) -> str:
    # Podman's own form is the bare hexadecimal digest.
    return f"sha256:{image_id}" if re.fullmatch(r"[0-9a-f]{64}", image_id) else image_id


def container_facts(answer: object) -> ContainerFacts:
    """A container, from its inspect answer."""
    state = text(answer, "State", "Status")
    state = _PODMAN_STATES.get(state, state)
    return ContainerFacts(
        id=text(answer, "Id"),
        name=text(answer, "Name").removeprefix("/"),
        state=state,
        pid=number(answer, "State", "Pid"),
        exit=_exit(answer) if state in _ENDED else None,
        labels=table(answer, "Config", "Labels"),
        limits=limits(answer),
    )


def written_bytes(answer: object) -> int:
    """Bytes a container has written to its own tree, from an inspect answer that was asked for sizes."""
    return number(answer, "SizeRw")


def _exit(answer: object) -> Exit | None:
    started = nanoseconds(text(answer, "State", "StartedAt"))
    finished = nanoseconds(text(answer, "State", "FinishedAt"))
    if finished is None:
        return None
    # A host clock that was set back must not make a run shorter than nothing.
    elapsed = max(0, finished - started) if started is not None else 0
    return Exit(
        code=number(answer, "State", "ExitCode"),
        oom_killed=dig(answer, "State", "OOMKilled") is True,
        seconds=elapsed / 1e9,
        error=text(answer, "State", "Error"),
    )


def limits(answer: object) -> dict[str, int | float | str | bool]:
    """What the engine says it enforces on a container, by the field names of ``ContainerSpec``.

    Beside them stand ``memory_swap`` (memory and swap together, in bytes), ``no_new_privileges`` and
    ``privileged``.
    """
    host = dig(answer, "HostConfig")
    found: dict[str, int | float | str | bool] = {
        "read_only": dig(host, "ReadonlyRootfs") is True,
        "init": dig(host, "Init") is True,
        "privileged": dig(host, "Privileged") is True,
        "no_new_privileges": _no_new_privileges(texts(host, "SecurityOpt")),
    }
    numbers: dict[str, int | float] = {
        "memory": number(host, "Memory"),
        "memory_swap": number(host, "MemorySwap"),
        "shm": number(host, "ShmSize"),
        "pids": number(host, "PidsLimit"),
        "cpus": number(host, "NanoCpus") / 1e9,
        **_ulimits(host),
    }
    words = {
        "cpuset": text(host, "CpusetCpus"),
        "network": text(host, "NetworkMode"),
        "user": text(answer, "Config", "User"),
        "cap_drop": _dropped(answer),
        # Engines since 23 spell them CAP_CHOWN.
        "cap_add": ",".join(sorted(name.removeprefix("CAP_") for name in texts(host, "CapAdd"))),
        "runtime": text(host, "Runtime"),
        "gpus": ",".join(name for request in rows(host, "DeviceRequests") for name in texts(request, "DeviceIDs")),
    }
    found.update({name: value for name, value in numbers.items() if value > 0})
    found.update({name: value for name, value in words.items() if value})
    return found


def _no_new_privileges(options: tuple[str, ...]) -> bool:
    return any(re.fullmatch(r"no-new-privileges(?:[:=]true)?", option) for option in options)


def _ulimits(host: object) -> dict[str, int]:
    names = {"nofile": "open_files", "fsize": "file_size"}
    found = {}
    listed = dig(host, "Ulimits")
    for entry in listed if isinstance(listed, list) else []:
        # Podman spells them RLIMIT_NOFILE.
        name = names.get(text(entry, "Name").lower().removeprefix("rlimit_"))
        if name is not None:
            found[name] = number(entry, "Hard")
    return found


def _dropped(answer: object) -> str:
    dropped = texts(answer, "HostConfig", "CapDrop")
    if any(name.upper() in ("ALL", "CAP_ALL") for name in dropped):
        return "ALL"
    # Podman lists what ALL stood for; that nothing is left says the same.
    if dropped and isinstance(answer, Mapping) and "BoundingCaps" in answer and not texts(answer, "BoundingCaps"):
        return "ALL"
    return ",".join(sorted(dropped))


def limit_warnings(answer: object) -> tuple[str, ...]:
    """The warnings of a create answer that say a limit is not enforced.

    Known and harmless are: an image for another platform ("does not match the detected host platform"), a
    deprecated runtime or option, and "IPv4 forwarding is disabled", which cannot matter without a network.
    """
    return tuple(warning for warning in texts(answer, "Warnings") if _LIMIT_WARNING.search(warning))


def shutting_down(status: int, message: str) -> bool:
    """Whether an error answer means that the engine is going away, not that it refuses.

    Only the message's beginning is looked at, where nothing of an image can stand: a participant whose
    program is called ``ttrpc: closed`` must not look like a host fault.
    """
    return status in (502, 503, 504) or (status >= 500 and _SHUTTING_DOWN.match(message) is not None)


def not_in_registry(message: str) -> bool:
    """Whether a failed pull means that the registry has no such image."""
    return _NOT_IN_REGISTRY.search(message) is not None


def stream_error(entry: object) -> str:
    """The error in an entry of a progress stream, empty where there is none."""
    return text(entry, "error") or text(entry, "errorDetail", "message")


def loaded_names(entry: object) -> tuple[str, ...]:
    """The image IDs and names a load stream's entry says were loaded."""
    match = _LOADED.fullmatch((text(entry, "stream") or text(entry, "status")).strip())
    return tuple(name.strip() for name in match["names"].split(",")) if match else ()


def pulled_digest(entry: object) -> str:
    """The digest a pull stream's entry names as the result, empty where it names none."""
    status = text(entry, "status").strip()
    return status.removeprefix("Digest: ") if re.fullmatch(rf"Digest: {_DIGEST.pattern}", status) else ""


def layer_size(entry: object) -> dict[str, int]:
    """The layer a pull stream's entry tells of and its packed size in bytes; empty where it tells none."""
    size = number(entry, "progressDetail", "total")
    return {text(entry, "id"): size} if text(entry, "status") == "Downloading" and size > 0 else {}


def image_ids(answer: object) -> tuple[str, ...]:
    """The IDs in a quiet listing of images."""
    return tuple(_with_algorithm(item) for item in answer if isinstance(item, str)) if isinstance(answer, list) else ()


def imported_id(entry: object) -> str:
    """The image ID an import's last entry names as the result, empty where it names none."""
    status = _with_algorithm(text(entry, "status").strip())
    return status if _DIGEST.fullmatch(status) else ""


def built_id(entry: object) -> str:
    """The image ID a build stream's entry names as the result, empty where it names none."""
    match = re.fullmatch(r"Successfully built ([0-9a-f]{12,64})", text(entry, "stream").strip())
    return match[1] if match else text(entry, "aux", "ID")


def split_reference(reference: str) -> tuple[str, str, str]:
    """A reference's repository, tag and digest; the last two empty where it names none."""
    named, _, digest = reference.partition("@")
    repository, colon, tag = named.rpartition(":")
    if not colon or "/" in tag:
        return named, "", digest
    return repository, tag, digest
