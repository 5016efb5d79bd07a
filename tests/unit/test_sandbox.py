"""The policy: every field of what an engine is told, and that nothing an image says of itself loosens it."""

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
from runner.job import Job
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
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/.cache/inductor",
}  # fmt: skip


def cover(target: str) -> Tmpfs:
    return Tmpfs(target=target, size=16 * MIB, inodes=4096, mode=0o1777, executable=False)


@pytest.fixture(scope="session")
def spec_of(make_job: Callable[..., Job]) -> Callable[..., ContainerSpec]:
    """The spec of the usual job, but for what is changed of image, seat and job."""

    def make(image: dict[str, Any] | None = None, seat: dict[str, Any] | None = None, **job: Any) -> ContainerSpec:
        return container_spec(
            job=make_job(**job), image=replace(IMAGE, **image or {}), seat=replace(SEAT, **seat or {})
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
        {"environment": ("NVIDIA_DRIVER_CAPABILITIES=all", "LD_PRELOAD=/evil.so", "PATH=/evil", "", "=", "NOEQUALS")},
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
            st.text() | st.builds("{}={}".format, st.sampled_from(sorted(ENVIRONMENT)), st.text())
        ).map(tuple),
    },
)


@given(image=ANY_IMAGE, gpu=st.none() | st.just("GPU-1"))
def test_no_image_at_all_loosens_the_spec(
    spec_of: Callable[..., ContainerSpec], image: dict[str, Any], gpu: str | None
) -> None:
    plain, spec = spec_of({}, {"gpu": gpu}), spec_of(image, {"gpu": gpu})
    assert replace(spec, tmpfs=plain.tmpfs, environment=plain.environment) == plain
    assert spec.tmpfs[0] == TMP
    targets = [mount.target for mount in spec.tmpfs] + [bind.target for bind in spec.binds]
    assert len(targets) == len(set(targets))
    assert all(mount == cover(mount.target) for mount in spec.tmpfs[1:])
    # What an image sets can at most take one of the cache folders out, or blank a loader's variable.
    loader = {"LD_PRELOAD", "LD_AUDIT"}
    assert set(spec.environment) - loader <= set(plain.environment)
    assert all(spec.environment[key] == plain.environment.get(key, "") for key in spec.environment)
    missing = set(plain.environment) - set(spec.environment)
    assert missing <= {key for key in ENVIRONMENT if ENVIRONMENT[key].startswith("/tmp/.cache")}


@pytest.mark.parametrize("key", [key for key, value in ENVIRONMENT.items() if value.startswith("/tmp/.cache")])
def test_the_images_own_cache_folder_wins(spec_of: Callable[..., ContainerSpec], key: str) -> None:
    expected = {name: value for name, value in ENVIRONMENT.items() if name != key}
    assert spec_of({"environment": (f"{key}=/opt/cache",)}).environment == expected


def test_a_gpu_is_given_by_its_uuid(spec_of: Callable[..., ContainerSpec]) -> None:
    spec = spec_of({"environment": ("NVIDIA_VISIBLE_DEVICES=all",)}, {"gpu": "GPU-1"})
    environment = {
        **ENVIRONMENT, "NVIDIA_VISIBLE_DEVICES": "GPU-1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }  # fmt: skip
    assert spec == replace(EXPECTED, gpus=GpuRequest(device_ids=("GPU-1",)), environment=environment)


def test_with_a_gpu_the_images_preloads_are_blanked(spec_of: Callable[..., ContainerSpec]) -> None:
    image = {"environment": ("LD_PRELOAD=/evil.so", "LD_AUDIT=/evil.so", "LD_LIBRARY_PATH=/usr/local/nvidia/lib")}
    with_gpu = spec_of(image, {"gpu": "GPU-1"}).environment
    assert {key: value for key, value in with_gpu.items() if key.startswith("LD_")} == {
        "LD_PRELOAD": "",
        "LD_AUDIT": "",
    }
    assert not [key for key in spec_of(image).environment if key.startswith("LD_")]


def test_a_volume_in_memory_adds_its_size_to_the_memory(spec_of: Callable[..., ContainerSpec]) -> None:
    assert spec_of(seat={"output": "vol-1"}) == replace(
        EXPECTED,
        binds=EXPECTED.binds[:1],
        volumes=(VolumeMount(volume="vol-1", target="/data/outputs", read_only=False),),
        memory=(2 << 30) + (4 << 20),
    )


def test_a_cpuset_takes_the_place_of_the_quota(spec_of: Callable[..., ContainerSpec]) -> None:
    assert spec_of(seat={"cpuset": "0-1"}) == replace(EXPECTED, cpuset="0-1", cpus=None)


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


def test_processors_by_name_win_over_a_quota() -> None:
    by_name = replace(_ASKED, cpuset="0-1")
    assert unkept(by_name, {**_KEPT, "cpuset": "0-1"}) == ()
    assert unkept(by_name, {**_KEPT, "cpuset": "0-3"}) == ("cpuset is '0-3' where '0-1' was asked for",)
