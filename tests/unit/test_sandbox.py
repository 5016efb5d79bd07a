"""A container's description: every field an engine is told, and that nothing an image says of itself loosens it."""

import dataclasses
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.budget import Budget
from runner.engine import Bind, ContainerSpec, GpuRequest, ImageFacts, LogLimit, Tmpfs, VolumeMount
from runner.gpu.access import GpuAccess
from runner.job import Job
from runner.policy import COMPATIBLE, STRICT, Policy, PolicyName, Processors, policy_named
from runner.sandbox import Seat, container_spec, expand, unkept

MIB = 1 << 20
IMAGE = ImageFacts(id="sha256:" + "0" * 64)
SEAT = Seat(
    name="proctor-abc", labels={"proctor.owner": "me", "proctor.run": "r"}, uid=200_003, gid=200_003,
    view=Path("/work/d/v"), input_name="n1", output=Path("/work/d/o"),
)  # fmt: skip
TMP = Tmpfs(target="/tmp", size=32 * MIB, inodes=65536, mode=0o1777, executable=True)
ENVIRONMENT = {
    "HOME": "/tmp", "USER": "participant", "LOGNAME": "participant", "PYTHONUNBUFFERED": "1", "PROCTOR_TASK": "steps",
    "NVIDIA_VISIBLE_DEVICES": "void", "XDG_CACHE_HOME": "/tmp/.cache", "MPLCONFIGDIR": "/tmp/.cache/matplotlib",
    "NUMBA_CACHE_DIR": "/tmp/.cache/numba", "TRITON_CACHE_DIR": "/tmp/.cache/triton",
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/.cache/inductor", "TORCH_EXTENSIONS_DIR": "/tmp/.cache/torch_extensions",
    "CUDA_CACHE_PATH": "/tmp/.cache/cuda",
}  # fmt: skip


def cover(target: str) -> Tmpfs:
    return Tmpfs(target=target, size=16 * MIB, inodes=4096, mode=0o1777, executable=False)


@pytest.fixture(scope="session")
def spec_of(make_job: Callable[..., Job]) -> Callable[..., ContainerSpec]:
    """The spec of the usual job, but for what is changed of image, seat and job."""

    def make(
        image: dict[str, Any] | None = None,
        seat: dict[str, Any] | None = None,
        policy: Policy = STRICT,
        **job: Any,
    ) -> ContainerSpec:
        return container_spec(
            policy=policy, job=make_job(**job), image=replace(IMAGE, **image or {}), seat=replace(SEAT, **seat or {})
        )

    return make


EXPECTED = ContainerSpec(
    image_id="sha256:" + "0" * 64,
    name="proctor-abc",
    labels={"proctor.owner": "me", "proctor.run": "r"},
    entrypoint=None,
    command=("/data/inputs/n1", "/data/outputs/n1.csv"),
    environment=ENVIRONMENT,
    user="200003:200003",
    working_dir=None,
    hostname="worker",
    network="none",
    read_only=True,
    binds=(
        Bind(source=Path("/work/d/v"), target="/data/inputs", read_only=True),
        Bind(source=Path("/work/d/o"), target="/data/outputs", read_only=False),
    ),
    volumes=(),
    tmpfs=(TMP,),
    cap_drop=("ALL",),
    cap_add=(),
    security_opt=("no-new-privileges:true",),
    memory=2 << 30,
    shm=64 * MIB,
    cpus=2.0,
    cpuset=None,
    pids=128,
    open_files=1024,
    file_size=32 * MIB,
    log=LogLimit(size=1024, files=3),
    gpus=None,
    runtime=None,
    init=True,
)


def test_every_field_of_the_spec(spec_of: Callable[..., ContainerSpec]) -> None:
    spec = spec_of()
    for field in fields(ContainerSpec):
        assert getattr(spec, field.name) == getattr(EXPECTED, field.name), field.name


@pytest.mark.parametrize(
    "image",
    [
        {"user": "root"},
        {"user": "0:0"},
        {"healthcheck": True},  # an engine is told of none; see tests/contract
        {"working_dir": "/proc/self/fd/7"},
        {"labels": {"proctor.owner": "evil", "proctor.run": "evil", "com.docker.x": "y"}},
        {"entrypoint": ("/evil",), "command": ("--privileged",)},
        {"environment": ("NVIDIA_VISIBLE_DEVICES=all", "HOME=/root", "USER=root", "LOGNAME=root", "PROCTOR_TASK=x")},
        {"environment": ("NVIDIA_TF32_OVERRIDE=0", "LD_PRELOAD=/evil.so", "PATH=/evil", "", "=", "NOEQUALS")},
        {"volumes": ("/data/inputs", "/data/outputs", "/tmp")},
        {"volumes": ("/data/inputs/", "//data//outputs", "/data/./outputs", "/x/../tmp", "data/outputs")},
        {"repo_tags": ("proctor-helper:1",), "repo_digests": ("x@sha256:1",), "os": "windows", "architecture": "arm"},
        {"id": "sha256:other", "size": 1 << 50},
    ],
    ids=str,
)
def test_nothing_an_image_says_changes_the_spec(spec_of: Callable[..., ContainerSpec], image: dict[str, Any]) -> None:
    assert spec_of(image) == EXPECTED


def test_each_volume_of_an_image_is_covered_by_a_small_tmpfs(spec_of: Callable[..., ContainerSpec]) -> None:
    spec = spec_of({"volumes": ("/var/lib/b/", "/a", "/a/./", "relative", "/data")})
    covered = tuple(cover(path) for path in ("/a", "/data", "/relative", "/var/lib/b"))
    assert spec == replace(EXPECTED, tmpfs=(TMP, *covered))


def test_covered_volumes_cannot_reach_out_of_the_root(spec_of: Callable[..., ContainerSpec]) -> None:
    assert spec_of({"volumes": ("/../../etc",)}).tmpfs == (TMP, cover("/etc"))


ANY_IMAGE = st.fixed_dictionaries(
    {},
    optional={
        "user": st.text(),
        "working_dir": st.text(),
        "healthcheck": st.booleans(),
        "labels": st.dictionaries(st.text() | st.just("proctor.owner"), st.text()),
        "entrypoint": st.lists(st.text()).map(tuple),
        "command": st.lists(st.text()).map(tuple),
        "volumes": st.lists(st.text() | st.sampled_from(["/data/outputs/", "/tmp", "/"])).map(tuple),
        "environment": st.lists(
            st.text()
            | st.builds("{}={}".format, st.sampled_from([*sorted(ENVIRONMENT), "LD_PRELOAD", "NVIDIA_X"]), st.text())
        ).map(tuple),
    },
)


@given(image=ANY_IMAGE, gpus=st.just(()) | st.just(("GPU-1",)))
def test_no_image_at_all_loosens_the_spec(
    spec_of: Callable[..., ContainerSpec], image: dict[str, Any], gpus: tuple[str, ...]
) -> None:
    seat = {"gpus": gpus, "gpu_access": GpuAccess.DEVICE_REQUEST}
    plain, spec = spec_of({}, seat), spec_of(image, seat)
    assert replace(spec, tmpfs=plain.tmpfs, environment=plain.environment) == plain
    assert spec.tmpfs[0] == TMP
    targets = [mount.target for mount in spec.tmpfs] + [bind.target for bind in spec.binds]
    assert len(targets) == len(set(targets))
    assert all(mount == cover(mount.target) for mount in spec.tmpfs[1:])
    # What an image sets can at most take one of the cache folders out; what is added says nothing, or less.
    added = set(spec.environment) - set(plain.environment)
    assert all(spec.environment[key] == plain.environment[key] for key in set(spec.environment) - added)
    assert all(key.startswith(("NVIDIA_", "LD_", "DOCKER_RESOURCE_")) or key == "CUDA_VISIBLE_DEVICES" for key in added)
    missing = set(plain.environment) - set(spec.environment)
    assert missing <= {key for key in ENVIRONMENT if ENVIRONMENT[key].startswith("/tmp/.cache")}


@pytest.mark.parametrize("key", [key for key, value in ENVIRONMENT.items() if value.startswith("/tmp/.cache")])
def test_the_images_own_cache_folder_wins(spec_of: Callable[..., ContainerSpec], key: str) -> None:
    expected = {name: value for name, value in ENVIRONMENT.items() if name != key}
    assert spec_of({"environment": (f"{key}=/opt/cache",)}).environment == expected


HELD = {"gpus": ("GPU-1", "GPU-2")}
WITH_GPUS = {
    **ENVIRONMENT, "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "NVIDIA_DISABLE_REQUIRE": "true",
}  # fmt: skip


@pytest.mark.parametrize(
    ("access", "change"),
    [
        (GpuAccess.DEVICE_REQUEST, {"gpus": GpuRequest(device_ids=("GPU-1", "GPU-2"))}),
        (GpuAccess.NVIDIA_RUNTIME, {"runtime": "nvidia"}),
        (GpuAccess.CDI, {
            "cdi_devices": ("nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"),
            "environment": {**WITH_GPUS, "NVIDIA_VISIBLE_DEVICES": "void"},
        }),
    ],
)  # fmt: skip
def test_devices_are_given_by_their_uuids_in_the_hosts_way(
    spec_of: Callable[..., ContainerSpec], access: GpuAccess, change: dict[str, Any]
) -> None:
    image = {"environment": ("NVIDIA_VISIBLE_DEVICES=all",)}
    spec = spec_of(image, {**HELD, "gpu_access": access})
    assert spec == replace(EXPECTED, **{"environment": WITH_GPUS, **change})


def test_a_runtime_of_the_hosts_choice_stands_beside_a_device_request(spec_of: Callable[..., ContainerSpec]) -> None:
    policy = policy_named(PolicyName.STRICT, runtime="runsc")
    spec = spec_of(seat={**HELD, "gpu_access": GpuAccess.DEVICE_REQUEST}, policy=policy)
    assert (spec.runtime, spec.gpus) == ("runsc", GpuRequest(device_ids=("GPU-1", "GPU-2")))


@pytest.mark.parametrize("gpus", [(), ("GPU-1",)])
def test_what_an_image_tells_the_toolkit_is_blanked(
    spec_of: Callable[..., ContainerSpec], gpus: tuple[str, ...]
) -> None:
    image = {"environment": ("NVIDIA_MIG_CONFIG_DEVICES=all", "LD_PRELOAD=/evil.so")}
    seat = {"gpus": gpus, "gpu_access": GpuAccess.DEVICE_REQUEST}
    environment = spec_of(image, seat).environment
    assert environment["NVIDIA_MIG_CONFIG_DEVICES"] == ""
    assert environment.get("LD_PRELOAD") == ("" if gpus else None)
    assert set(environment) - {"NVIDIA_MIG_CONFIG_DEVICES", "LD_PRELOAD"} == set(spec_of(seat=seat).environment)


def test_a_volume_in_memory_adds_its_size_to_the_memory(spec_of: Callable[..., ContainerSpec]) -> None:
    assert spec_of(seat={"output": "vol-1"}) == replace(
        EXPECTED,
        binds=EXPECTED.binds[:1],
        volumes=(VolumeMount(volume="vol-1", target="/data/outputs", read_only=False),),
        memory=(2 << 30) + (4 << 20),
    )


def test_a_cpuset_takes_the_place_of_the_quota(spec_of: Callable[..., ContainerSpec]) -> None:
    whole = policy_named(PolicyName.STRICT, processors=Processors.CPUSET)
    assert spec_of(seat={"cpuset": "0-1"}, policy=whole) == replace(EXPECTED, cpuset="0-1", cpus=None)
    assert spec_of(seat={"cpuset": "0-1"}) == EXPECTED
    assert spec_of(policy=whole) == EXPECTED


def test_compatible_differs_in_three_things_and_in_nothing_else(spec_of: Callable[..., ContainerSpec]) -> None:
    image = {"user": "app", "volumes": ("/a",)}
    assert spec_of(image, policy=COMPATIBLE) == replace(
        spec_of(image),
        user="app",
        read_only=False,
        cap_add=("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"),
    )
    assert spec_of(policy=COMPATIBLE).user == ""


def test_a_runtime_reaches_the_spec(spec_of: Callable[..., ContainerSpec]) -> None:
    assert spec_of(policy=policy_named(PolicyName.STRICT, runtime="runsc")) == replace(EXPECTED, runtime="runsc")


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"network": "bridge"}, "network", "bridge"),
        ({"log_files": 2}, "log", LogLimit(size=1500, files=2)),
        ({"tmp_inodes": 9}, "tmpfs", (replace(TMP, inodes=9), cover("/a"))),
        ({"cover_bytes": 5 * MIB, "cover_inodes": 7}, "tmpfs", (TMP, replace(cover("/a"), size=5 * MIB, inodes=7))),
        ({"environment": {"HOME": "/h"}, "caches": {"X": "/x"}}, "environment", {
            "HOME": "/h", "X": "/x", "PROCTOR_TASK": "steps", "NVIDIA_VISIBLE_DEVICES": "void"}),
    ],
    ids=str,
)  # fmt: skip
def test_the_policy_reaches_the_spec(
    spec_of: Callable[..., ContainerSpec], change: dict[str, Any], field: str, value: object
) -> None:
    spec = spec_of({"volumes": ("/a",)}, policy=replace(STRICT, **change))
    assert getattr(spec, field) == value


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"memory": 1 << 30}, "memory", 1 << 30),
        ({"shm": 8 * MIB}, "shm", 8 * MIB),
        ({"cpus": 0.5}, "cpus", 0.5),
        ({"pids": 16}, "pids", 16),
        ({"open_files": 99}, "open_files", 99),
        ({"output_bytes": 64 * MIB}, "file_size", 64 * MIB),
        ({"tmp": 2 * MIB}, "file_size", 4 * MIB),
        ({"tmp": 2 * MIB}, "tmpfs", (replace(TMP, size=2 * MIB),)),
        ({"log_bytes": 3 << 20}, "log", LogLimit(size=1 << 20, files=3)),
        ({"log_bytes": 1}, "log", LogLimit(size=1024, files=3)),
    ],
    ids=str,
)
def test_the_budget_reaches_the_spec(
    spec_of: Callable[..., ContainerSpec],
    make_budget: Callable[..., Budget],
    change: dict[str, Any],
    field: str,
    value: object,
) -> None:
    assert getattr(spec_of(budget=make_budget(**change)), field) == value


def test_no_real_case_id_is_anywhere_in_the_spec(spec_of: Callable[..., ContainerSpec]) -> None:
    spec = spec_of(case="PATIENT-07", arguments=("{input}", "{output}", "{task}", "{case}"))
    assert "PATIENT-07" not in repr(dataclasses.asdict(spec))
    assert "team-1" not in repr(dataclasses.asdict(spec))


@pytest.mark.parametrize(
    ("arguments", "filled"),
    [
        ((), ()),
        (("{input}",), ("/data/inputs/n1",)),
        (("--out={output}.csv", "{task}"), ("--out=/data/outputs/n1.csv", "steps")),
        (("{input}:{input}", "{other}", "plain"), ("/data/inputs/n1:/data/inputs/n1", "{other}", "plain")),
    ],
)
def test_placeholders(make_job: Callable[..., Job], arguments: tuple[str, ...], filled: tuple[str, ...]) -> None:
    assert expand(arguments, job=make_job(), name="n1") == filled


def test_without_arguments_the_images_own_command_stays(spec_of: Callable[..., ContainerSpec]) -> None:
    assert spec_of(arguments=()).command is None


_KEPT: dict[str, int | float | str | bool] = {
    "memory": 1 << 30, "memory_swap": 1 << 30, "shm": 1 << 20, "pids": 64, "cpus": 2.0, "open_files": 1024,
    "file_size": 1 << 20, "network": "none", "user": "7:7", "read_only": True, "privileged": False, "cap_drop": "ALL",
    "no_new_privileges": True,
}  # fmt: skip
_ASKED = ContainerSpec(
    image_id="sha256:x", name="proctor-x", labels={}, user="7:7", memory=1 << 30, shm=1 << 20, pids=64, cpus=2.0,
    open_files=1024, file_size=1 << 20,
)  # fmt: skip


def test_an_engine_that_keeps_everything_is_believed() -> None:
    assert unkept(_ASKED, _KEPT) == ()


@pytest.mark.parametrize("name", _KEPT)
def test_every_limit_that_is_not_kept_is_named(name: str) -> None:
    without = {key: value for key, value in _KEPT.items() if key != name}
    assert unkept(_ASKED, without) == (f"{name} is None where {_KEPT[name]!r} was asked for",)
    loose = not _KEPT[name] if isinstance(_KEPT[name], bool) else "other"
    assert unkept(_ASKED, {**_KEPT, name: loose}) == (f"{name} is {loose!r} where {_KEPT[name]!r} was asked for",)


def test_an_image_without_a_user_is_root_and_that_is_no_difference() -> None:
    as_the_image = replace(_ASKED, user="")
    assert unkept(as_the_image, {key: value for key, value in _KEPT.items() if key != "user"}) == ()


def test_a_capability_nobody_asked_for_is_named() -> None:
    assert unkept(_ASKED, {**_KEPT, "cap_add": "SYS_ADMIN"}) == ("cap_add is 'SYS_ADMIN' where None was asked for",)
    with_one = replace(_ASKED, cap_add=("SETUID", "CHOWN"))
    assert unkept(with_one, {**_KEPT, "cap_add": "CHOWN,SETUID"}) == ()
    assert unkept(with_one, _KEPT) == ("cap_add is None where 'CHOWN,SETUID' was asked for",)


def test_devices_that_differ_from_those_asked_for_are_named() -> None:
    with_one = replace(_ASKED, gpus=GpuRequest(device_ids=("GPU-1",)))
    assert unkept(with_one, {**_KEPT, "gpus": "GPU-1"}) == ()
    assert unkept(with_one, _KEPT) == ("gpus is None where 'GPU-1' was asked for",)
    assert unkept(_ASKED, {**_KEPT, "gpus": "GPU-1"}) == ("gpus is 'GPU-1' where None was asked for",)
    by_name = replace(_ASKED, cdi_devices=("nvidia.com/gpu=GPU-1",))
    assert unkept(by_name, {**_KEPT, "gpus": "nvidia.com/gpu=GPU-1"}) == ()


def test_another_runtime_is_named() -> None:
    assert unkept(_ASKED, {**_KEPT, "runtime": "runc"}) == ()
    inside = replace(_ASKED, runtime="runsc")
    assert unkept(inside, {**_KEPT, "runtime": "runc"}) == ("runtime is 'runc' where 'runsc' was asked for",)


def test_processors_by_name_win_over_a_quota() -> None:
    by_name = replace(_ASKED, cpuset="0-1")
    assert unkept(by_name, {**_KEPT, "cpuset": "0-1"}) == ()
    assert unkept(by_name, {**_KEPT, "cpuset": "0-3"}) == ("cpuset is '0-3' where '0-1' was asked for",)
