"""Recorded answers of engines, and what they mean.

Docker 20.10 and Podman 4.3 were recorded here; the cgroup v2 answers are Docker 28's and 29's documented ones,
for this kind of machine cannot switch cgroup v2 on.
"""

import json

import pytest

from runner.engine import EngineFacts, Exit, ImageFacts
from runner.engine import docker_answers as answers

DOCKER_20_INFO = json.loads("""{
 "ID": "AMLY:U62N:57BO", "CgroupDriver": "cgroupfs", "CgroupVersion": "1", "KernelVersion": "6.18.44",
 "OperatingSystem": "Debian GNU/Linux 12 (bookworm)", "OSType": "linux", "Architecture": "x86_64", "NCPU": 2,
 "MemTotal": 25276063744, "DockerRootDir": "/var/lib/docker", "Name": "vm", "ServerVersion": "20.10.24+dfsg1",
 "Runtimes": {"runc": {"path": "runc"}, "io.containerd.runc.v2": {"path": "runc"}},
 "SecurityOptions": ["name=seccomp,profile=default"], "Warnings": null}""")
DOCKER_20_VERSION = json.loads("""{
 "Platform": {"Name": ""}, "Components": [{"Name": "Engine", "Version": "20.10.24+dfsg1"}],
 "Version": "20.10.24+dfsg1", "ApiVersion": "1.41", "Os": "linux"}""")
PODMAN_INFO = json.loads("""{
 "ID": "c6d266c5-9653-4e70-9b9d-97a66ffd135e", "CgroupDriver": "cgroupfs", "CgroupVersion": "1",
 "KernelVersion": "6.18.44", "OperatingSystem": "debian", "OSType": "linux", "Architecture": "amd64", "NCPU": 2,
 "MemTotal": 25276063744, "DockerRootDir": "/var/lib/containers/storage", "Name": "vm", "ServerVersion": "4.3.1",
 "Runtimes": {"crun": {"path": "/usr/bin/crun"}, "runsc": {"path": "/usr/bin/runsc"}},
 "SecurityOptions": ["name=seccomp,profile=default"], "Warnings": [], "Rootless": false}""")
PODMAN_VERSION = json.loads("""{
 "Platform": {"Name": "linux/amd64/debian-12"}, "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}],
 "Version": "4.3.1", "ApiVersion": "1.41", "Os": "linux"}""")


def test_facts_of_docker_20_on_cgroup_v1() -> None:
    assert answers.engine_facts(DOCKER_20_INFO, DOCKER_20_VERSION) == EngineFacts(
        name="Docker Engine",
        version="20.10.24+dfsg1",
        identity="AMLY:U62N:57BO",
        cgroup_version=1,
        cgroup_driver="cgroupfs",
        security_options=("name=seccomp,profile=default",),
        runtimes=("io.containerd.runc.v2", "runc"),
        warnings=(),
        data_root="/var/lib/docker",
        cpus=2,
        memory=25276063744,
        rootless=False,
        os_type="linux",
        architecture="x86_64",
        operating_system="Debian GNU/Linux 12 (bookworm)",
        kernel="6.18.44",
        api_version="1.41",
    )


def test_facts_of_an_engine_that_finds_devices() -> None:
    """As documented for API 1.50; of the fields, 1.44 has the first."""
    found = [{"Source": "cdi", "ID": "nvidia.com/gpu=GPU-1"}, {"Source": "cdi"}, None]
    info = {**DOCKER_20_INFO, "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"], "DiscoveredDevices": found}
    facts = answers.engine_facts(info, {**DOCKER_20_VERSION, "ApiVersion": "1.50"})
    assert (facts.api_version, facts.cdi_folders) == ("1.50", ("/etc/cdi", "/var/run/cdi"))
    assert facts.devices == ("nvidia.com/gpu=GPU-1",)
    older = answers.engine_facts({**DOCKER_20_INFO, "CDISpecDirs": None}, {})
    assert (older.api_version, older.cdi_folders, older.devices) == ("", (), ())


@pytest.mark.parametrize(
    ("requests", "gpus"),
    [
        (None, None), ([], None), ([{"Driver": "", "DeviceIDs": None}], None),
        ([{"Driver": "", "DeviceIDs": ["GPU-1", "GPU-2"], "Capabilities": [["gpu"]]}], "GPU-1,GPU-2"),
        ([{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=GPU-1"]}], "nvidia.com/gpu=GPU-1"),
    ],
)  # fmt: skip
def test_the_devices_an_engine_says_a_container_is_given(requests: object, gpus: str | None) -> None:
    assert answers.limits({"HostConfig": {"DeviceRequests": requests}}).get("gpus") == gpus


def test_facts_of_a_rootless_docker_on_cgroup_v2() -> None:
    info = {
        **DOCKER_20_INFO,
        "CgroupVersion": "2",
        "CgroupDriver": "systemd",
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"],
        "Warnings": ["WARNING: No cpuset support", "WARNING: No io.max (rbps) support"],
    }
    facts = answers.engine_facts(info, DOCKER_20_VERSION)
    assert (facts.cgroup_version, facts.cgroup_driver, facts.rootless) == (2, "systemd", True)
    assert facts.warnings == ("WARNING: No cpuset support", "WARNING: No io.max (rbps) support")


def test_facts_of_podman_whose_id_changes_with_every_answer() -> None:
    facts = answers.engine_facts(PODMAN_INFO, PODMAN_VERSION)
    assert (facts.name, facts.version) == ("Podman", "4.3.1")
    again = answers.engine_facts({**PODMAN_INFO, "ID": "another"}, PODMAN_VERSION)
    assert again.identity == facts.identity == "vm:/var/lib/containers/storage"
    assert answers.engine_facts({**PODMAN_INFO, "Rootless": True}, PODMAN_VERSION).rootless


def test_empty_answer_is_no_error() -> None:
    facts = answers.engine_facts({}, {})
    assert (facts.version, facts.cpus, facts.cgroup_version) == ("", 0, 1)


# Times


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("2026-11-29T23:04:03.371723158Z", 1_795_993_443_371_723_158),
        ("2026-11-30T00:04:03.371723158+01:00", 1_795_993_443_371_723_158),
        ("2026-11-29T17:34:03.371723158-05:30", 1_795_993_443_371_723_158),
        ("2026-11-29 23:04:03.371723158+00:00", 1_795_993_443_371_723_158),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        ("soon", None),
    ],
)
def test_times_are_exact_to_the_nanosecond(stamp: str, expected: int | None) -> None:
    assert answers.nanoseconds(stamp) == expected


def _container(**state: object) -> dict[str, object]:
    whole = {
        "Status": "exited",
        "Pid": 0,
        "ExitCode": 0,
        "OOMKilled": False,
        "Error": "",
        "StartedAt": "2026-01-01T00:00:00.000000001Z",
        "FinishedAt": "2026-01-01T00:00:02.000000002Z",
        **state,
    }
    return {"Id": "c1", "Name": "/proctor-1", "State": whole, "Config": {"Labels": {"a": "b"}}, "HostConfig": {}}


def test_ended_container() -> None:
    facts = answers.container_facts(_container(ExitCode=137, OOMKilled=True, Error="e"))
    assert (facts.id, facts.name, facts.state, facts.labels) == ("c1", "proctor-1", "exited", {"a": "b"})
    assert facts.exit == Exit(code=137, oom_killed=True, seconds=2.000000001, error="e")


@pytest.mark.parametrize("status", ["created", "running", "paused", "restarting", "removing"])
def test_container_that_has_not_ended_has_no_exit(status: str) -> None:
    never = "0001-01-01T00:00:00Z"
    facts = answers.container_facts(_container(Status=status, FinishedAt=never, Pid=7))
    assert (facts.state, facts.exit, facts.pid) == (status, None, 7)


def test_failed_start_of_20_10_has_no_exit() -> None:
    never = "0001-01-01T00:00:00Z"
    facts = answers.container_facts(_container(Status="created", ExitCode=127, StartedAt=never, FinishedAt=never))
    assert facts.exit is None


def test_clock_set_back_makes_no_negative_run() -> None:
    facts = answers.container_facts(_container(FinishedAt="2025-01-01T00:00:00Z"))
    assert facts.exit is not None
    assert facts.exit.seconds == 0.0


@pytest.mark.parametrize(
    ("status", "state"),
    [("configured", "created"), ("initialized", "created"), ("stopping", "running"), ("stopped", "exited")],
)
def test_podmans_own_states(status: str, state: str) -> None:
    assert answers.container_facts(_container(Status=status)).state == state


# Limits


def test_limits_of_a_hardened_container_of_20_10() -> None:
    answer = {
        "Config": {"User": "65534:65534"},
        "HostConfig": {
            "Memory": 67108864,
            "MemorySwap": 67108864,
            "ShmSize": 16777216,
            "NanoCpus": 500000000,
            "CpusetCpus": "",
            "PidsLimit": 64,
            "ReadonlyRootfs": True,
            "NetworkMode": "none",
            "Ulimits": [
                {"Name": "core", "Hard": 0, "Soft": 0},
                {"Name": "nofile", "Hard": 256, "Soft": 256},
                {"Name": "fsize", "Hard": 1048576, "Soft": 1048576},
            ],
            "Init": True,
            "CapAdd": None,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "Privileged": False,
            "Runtime": "runc",
        },
    }
    assert answers.limits(answer) == {
        "memory": 67108864,
        "memory_swap": 67108864,
        "shm": 16777216,
        "cpus": 0.5,
        "pids": 64,
        "read_only": True,
        "network": "none",
        "user": "65534:65534",
        "open_files": 256,
        "file_size": 1048576,
        "init": True,
        "cap_drop": "ALL",
        "no_new_privileges": True,
        "privileged": False,
        "runtime": "runc",
    }


def test_no_limit_is_reported_as_absent() -> None:
    host = {"Memory": 0, "MemorySwap": -1, "PidsLimit": None, "NanoCpus": 0, "Ulimits": None, "CapDrop": None}
    assert answers.limits({"HostConfig": host}) == {
        "read_only": False,
        "init": False,
        "privileged": False,
        "no_new_privileges": False,
    }


@pytest.mark.parametrize(
    ("bounding", "expected"),
    [
        ({"BoundingCaps": None}, "ALL"),
        ({"BoundingCaps": ["CAP_KILL"]}, "CAP_CHOWN,CAP_FOWNER"),
        ({}, "CAP_CHOWN,CAP_FOWNER"),
    ],
)
def test_podman_has_dropped_all_where_it_bounds_to_nothing(bounding: dict[str, object], expected: str) -> None:
    answer = {"HostConfig": {"CapDrop": ["CAP_FOWNER", "CAP_CHOWN"]}, **bounding}
    assert answers.limits(answer)["cap_drop"] == expected


def test_podmans_ulimits_and_privilege_option() -> None:
    host = {
        "Ulimits": [{"Name": "RLIMIT_NOFILE", "Soft": 5, "Hard": 6}, {"Name": "RLIMIT_NPROC", "Soft": 1, "Hard": 1}],
        "SecurityOpt": ["no-new-privileges"],
    }
    found = answers.limits({"HostConfig": host})
    assert (found["open_files"], found["no_new_privileges"]) == (6, True)


@pytest.mark.parametrize("option", ["no-new-privileges:false", "seccomp=no-new-privileges"])
def test_privilege_option_that_does_not_say_so(option: str) -> None:
    assert answers.limits({"HostConfig": {"SecurityOpt": [option]}})["no_new_privileges"] is False


# Images


def test_image_of_docker_29_that_leaves_empty_fields_out() -> None:
    assert answers.image_facts({"Id": "sha256:ab", "Os": "linux", "Architecture": "arm64", "Config": {}}) == ImageFacts(
        id="sha256:ab", os="linux", architecture="arm64"
    )


def test_image_of_20_10_with_everything() -> None:
    answer = {
        "Id": "sha256:ab",
        "RepoTags": ["a:1"],
        "RepoDigests": ["a@sha256:cd"],
        "Os": "linux",
        "Architecture": "amd64",
        "Size": 9,
        "Config": {
            "Entrypoint": ["/e"],
            "Cmd": ["c"],
            "Env": ["A=b=c"],
            "User": "u",
            "WorkingDir": "/w",
            "Volumes": {"/output": {}},
            "Labels": {"l": "m"},
            "Healthcheck": {"Test": ["CMD-SHELL", "x"]},
        },
    }
    assert answers.image_facts(answer) == ImageFacts(
        id="sha256:ab",
        repo_tags=("a:1",),
        repo_digests=("a@sha256:cd",),
        size=9,
        entrypoint=("/e",),
        command=("c",),
        environment=("A=b=c",),
        user="u",
        working_dir="/w",
        volumes=("/output",),
        labels={"l": "m"},
        healthcheck=True,
    )


def test_podmans_bare_image_id_gets_its_algorithm() -> None:
    assert answers.image_facts({"Id": "ab" * 32}).id == "sha256:" + "ab" * 32


def test_health_check_of_none_is_none() -> None:
    assert not answers.image_facts({"Config": {"Healthcheck": {"Test": ["NONE"]}}}).healthcheck


# Warnings and errors

LIMIT_WARNINGS = [
    "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.",
    "Your kernel does not support PIDs limit capabilities or the cgroup is not mounted. PIDs limit discarded.",
    "Your kernel does not support cpuset or the cgroup is not mounted. CPUset discarded.",
    "Your kernel does not support CPU cfs quota or the cgroup is not mounted. Quota discarded.",
]
HARMLESS_WARNINGS = [
    "The requested image's platform (linux/arm64) does not match the detected host platform (linux/amd64/v3)",
    "IPv4 forwarding is disabled. Networking will not work.",
    'Configured runtime "io.containerd.runtime.v1.linux" is deprecated and will be removed in the next release.',
]


def test_warnings_about_limits_are_told_from_the_harmless() -> None:
    assert answers.limit_warnings({"Warnings": LIMIT_WARNINGS + HARMLESS_WARNINGS}) == tuple(LIMIT_WARNINGS)
    assert answers.limit_warnings({"Warnings": None}) == ()
    assert answers.limit_warnings({}) == ()


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (503, "anything", True),
        (502, "bad gateway", True),
        (500, "rpc error: code = Unavailable desc = transport is closing", True),
        (500, "ttrpc: closed: unknown", True),
        (500, "failed to create task for container: ttrpc: closed", True),
        (500, "dial unix /var/run/docker/containerd/containerd.sock: connect: no such file or directory", True),
        (500, "connection error: desc = ...", True),
        (409, "ttrpc: closed", False),
        (500, 'OCI runtime create failed: exec: "ttrpc: closed": executable file not found in $PATH', False),
        (500, "unable to find user server is shutting down: no matching entries in passwd file", False),
        (500, "failed to start shim: fork/exec /x: transport is closing", False),
        (400, "No command specified", False),
    ],
)
def test_shutting_down_is_never_what_an_image_could_say(status: int, message: str, expected: bool) -> None:
    assert answers.shutting_down(status, message) is expected


# Streams

ID = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"stream": f"Loaded image ID: {ID}\n"}, (ID,)),
        ({"stream": "Loaded image: team/model:1\n"}, ("team/model:1",)),
        ({"stream": "Loaded image(s): localhost/a:1,localhost/b:2\n"}, ("localhost/a:1", "localhost/b:2")),
        ({"status": "Loading layer", "id": "abc", "progressDetail": {}}, ()),
        ({"stream": "not Loaded image: x"}, ()),
        ({}, ()),
    ],
)
def test_loaded_names(entry: object, names: tuple[str, ...]) -> None:
    assert answers.loaded_names(entry) == names


@pytest.mark.parametrize(
    ("entry", "digest"),
    [
        ({"status": f"Digest: {ID}"}, ID),
        ({"status": "Digest: sha256:short"}, ""),
        ({"status": "Status: Downloaded newer image for a:1"}, ""),
        ({"status": f"Digest: {ID}", "id": "x"}, ID),
    ],
)
def test_pulled_digest(entry: object, digest: str) -> None:
    assert answers.pulled_digest(entry) == digest


@pytest.mark.parametrize(
    ("entry", "sizes"),
    [
        ({"status": "Downloading", "id": "ab", "progressDetail": {"current": 1, "total": 9}}, {"ab": 9}),
        ({"status": "Extracting", "id": "ab", "progressDetail": {"current": 1, "total": 9}}, {}),
        ({"status": "Downloading", "id": "ab", "progressDetail": {"current": 1}}, {}),
        ({"status": "Downloading", "id": "ab", "progressDetail": {"current": 1, "total": -1}}, {}),
        ({"status": "Already exists", "id": "ab", "progressDetail": {}}, {}),
        ("Downloading", {}),
    ],
)
def test_layer_size(entry: object, sizes: dict[str, int]) -> None:
    assert answers.layer_size(entry) == sizes


def test_image_ids() -> None:
    assert answers.image_ids([ID, ID.removeprefix("sha256:"), 7]) == (ID, ID)
    assert answers.image_ids({"message": "no"}) == ()


def test_built_and_imported_ids_and_errors() -> None:
    assert answers.built_id({"aux": {"ID": ID}}) == ID
    assert answers.built_id({"stream": "Successfully built 0c48e03d33b9\n"}) == "0c48e03d33b9"
    assert answers.built_id({"stream": "Step 1/7 : FROM x\n"}) == ""
    assert answers.imported_id({"status": ID}) == ID
    assert answers.imported_id({"status": ID.removeprefix("sha256:")}) == ID
    assert answers.imported_id({"status": "Importing"}) == ""
    assert answers.stream_error({"errorDetail": {"message": "m"}}) == "m"
    assert answers.stream_error({"error": "e", "errorDetail": {"message": "m"}}) == "e"
    assert answers.stream_error({"stream": "fine"}) == ""


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("a", ("a", "", "")),
        ("a:1", ("a", "1", "")),
        ("host:5000/a", ("host:5000/a", "", "")),
        ("host:5000/a:1", ("host:5000/a", "1", "")),
        (f"host:5000/a:1@{ID}", ("host:5000/a", "1", ID)),
        (f"a@{ID}", ("a", "", ID)),
    ],
)
def test_reference_is_split(reference: str, parts: tuple[str, str, str]) -> None:
    assert answers.split_reference(reference) == parts


@pytest.mark.parametrize(
    "message",
    [
        "manifest for a:1 not found: manifest unknown: manifest unknown",
        "pull access denied for a, repository does not exist or may require 'docker login'",
    ],
)
def test_registry_that_has_no_such_image(message: str) -> None:
    assert answers.not_in_registry(message)
    assert not answers.not_in_registry("dial tcp: lookup registry.example: no such host")
