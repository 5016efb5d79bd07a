"""The way an engine is asked, exactly what it is then asked, and that nothing an image sets reaches the toolkit."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine import ContainerSpec, EngineFacts, GpuRequest
from runner.engine.docker_requests import create_body
from runner.engine.fake import FAKE_FACTS
from runner.errors import HostUnfit
from runner.gpu.access import GpuAccess, Grant, choose_access, environment, grant

AUTO, REQUEST, RUNTIME, CDI = (
    GpuAccess.AUTO, GpuAccess.DEVICE_REQUEST, GpuAccess.NVIDIA_RUNTIME, GpuAccess.CDI
)  # fmt: skip
BARE = replace(FAKE_FACTS, version="20.10.24", api_version="1.41", runtimes=("runc",))
WITH_RUNTIME = replace(BARE, runtimes=("nvidia", "runc"))
WITH_CDI = replace(BARE, version="25.0.0", api_version="1.44", cdi_folders=("/etc/cdi", "/var/run/cdi"))
LISTS = replace(WITH_CDI, version="28.3.0", api_version="1.51")
LISTED = replace(LISTS, devices=("vendor.com/x=1", "nvidia.com/gpu=all"))


class TestChoice:
    @pytest.mark.parametrize(
        ("facts", "runtime", "chosen"),
        [
            (BARE, "", REQUEST),
            (WITH_RUNTIME, "", RUNTIME),
            (WITH_RUNTIME, "runsc", REQUEST),
            (WITH_RUNTIME, "nvidia", RUNTIME),
            (WITH_CDI, "", CDI),
            (replace(WITH_CDI, runtimes=("nvidia", "runc")), "", RUNTIME),
            (replace(WITH_CDI, runtimes=("nvidia", "runc")), "runsc", CDI),
            (replace(WITH_CDI, api_version="1.43"), "", REQUEST),
            (replace(WITH_CDI, api_version=""), "", REQUEST),
            (replace(WITH_CDI, cdi_folders=()), "", REQUEST),
            (LISTS, "", REQUEST),
            (replace(LISTS, devices=("vendor.com/gpu=1",)), "", REQUEST),
            (LISTED, "", CDI),
        ],
    )
    def test_auto_takes_what_the_engine_offers(self, facts: EngineFacts, runtime: str, chosen: GpuAccess) -> None:
        assert choose_access(AUTO, facts, runtime=runtime) is chosen

    @pytest.mark.parametrize(
        ("asked", "facts"), [(REQUEST, WITH_RUNTIME), (REQUEST, LISTED), (RUNTIME, WITH_RUNTIME), (CDI, LISTED)]
    )
    def test_what_a_host_sets_is_taken(self, asked: GpuAccess, facts: EngineFacts) -> None:
        assert choose_access(asked, facts) is asked

    @pytest.mark.parametrize(
        ("asked", "facts", "runtime", "why"),
        [
            (RUNTIME, BARE, "", "gpu_access is 'nvidia-runtime' and the engine offers runc"),
            (RUNTIME, WITH_RUNTIME, "runsc", "gpu_access is 'nvidia-runtime' and runtime is 'runsc'"),
            (CDI, BARE, "", "gpu_access is 'cdi' and Docker Engine 20.10.24 is older than 25, the first with CDI"),
            (CDI, replace(LISTED, cdi_folders=()), "", "gpu_access is 'cdi' and CDI is switched off in the engine"),
            (CDI, LISTS, "", "gpu_access is 'cdi' and the engine finds no nvidia.com/gpu in /etc/cdi, /var/run/cdi"),
        ],
    )
    def test_what_the_engine_does_not_offer_is_refused(
        self, asked: GpuAccess, facts: EngineFacts, runtime: str, why: str
    ) -> None:
        with pytest.raises(HostUnfit) as caught:
            choose_access(asked, facts, runtime=runtime)
        assert caught.value.what == why
        assert caught.value.where == "settings: gpu_access"
        assert "gpu_access: auto" in caught.value.remedy


GRANTS = {
    REQUEST: Grant(visible="GPU-1,MIG-2", request=GpuRequest(device_ids=("GPU-1", "MIG-2"))),
    RUNTIME: Grant(visible="GPU-1,MIG-2", runtime="nvidia"),
    CDI: Grant(visible="void", cdi=("nvidia.com/gpu=GPU-1", "nvidia.com/gpu=MIG-2")),
}
HOST_CONFIGS: dict[GpuAccess, dict[str, Any]] = {
    REQUEST: {
        "DeviceRequests": [{"Driver": "", "DeviceIDs": ["GPU-1", "MIG-2"], "Capabilities": [["gpu"]]}],
    },
    RUNTIME: {"Runtime": "nvidia"},
    CDI: {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=MIG-2"]}]},
}


@pytest.mark.parametrize("access", GRANTS)
def test_a_grant_and_the_request_made_of_it(access: GpuAccess) -> None:
    given_ = grant(("GPU-1", "MIG-2"), access)
    assert given_ == GRANTS[access]
    spec = ContainerSpec(image_id="i", name="n", labels={})
    plain: dict[str, Any] = create_body(spec)
    asked: dict[str, Any] = create_body(
        replace(spec, gpus=given_.request, runtime=given_.runtime, cdi_devices=given_.cdi)
    )
    added = {key: value for key, value in asked["HostConfig"].items() if key not in plain["HostConfig"]}
    assert added == HOST_CONFIGS[access]
    assert asked["HostConfig"] == plain["HostConfig"] | added
    assert {**asked, "HostConfig": {}} == {**plain, "HostConfig": {}}


@pytest.mark.parametrize("access", GpuAccess)
def test_no_device_is_no_request_at_all(access: GpuAccess) -> None:
    assert grant((), access) == Grant(visible="void", request=None, runtime=None, cdi=())


def test_auto_must_have_been_decided() -> None:
    with pytest.raises(ValueError, match="chosen first"):
        grant(("GPU-1",), AUTO)


HOSTILE = {
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "all",
    "NVIDIA_MIG_CONFIG_DEVICES": "all",
    "NVIDIA_MIG_MONITOR_DEVICES": "all",
    "NVIDIA_IMEX_CHANNELS": "0",
    "NVIDIA_REQUIRE_CUDA": "cuda>=99",
    "NVIDIA_REQUIRE_X": "brand=nothing",
    "NVIDIA_DISABLE_REQUIRE": "false",
    "NVIDIA_GDS": "enabled",
    "NVIDIA_ANYTHING_NEW": "1",
    "DOCKER_RESOURCE_GPU": "all",
    "CUDA_VISIBLE_DEVICES": "1",
    "LD_PRELOAD": "/evil.so",
    "LD_AUDIT": "/evil.so",
    "LD_DEBUG_OUTPUT": "/etc/x",
    "LD_LIBRARY_PATH": "/usr/local/nvidia/lib::lib:/proc/self/cwd/lib:/a/../dev/fd/3:$ORIGIN/x:/opt/$LIB;/usr/lib64/",
    "GLIBC_TUNABLES": "glibc.x=1",
    "GCONV_PATH": "/evil",
    "CUDA_VERSION": "12.4",
    "NVIDIA_TF32_OVERRIDE": "0",
    "PATH": "/usr/bin",
}
NEUTRAL = {
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "NVIDIA_MIG_CONFIG_DEVICES": "",
    "NVIDIA_MIG_MONITOR_DEVICES": "",
    "NVIDIA_IMEX_CHANNELS": "",
    "NVIDIA_REQUIRE_CUDA": "",
    "NVIDIA_REQUIRE_X": "",
    "NVIDIA_DISABLE_REQUIRE": "true",
    "NVIDIA_GDS": "",
    "NVIDIA_ANYTHING_NEW": "",
    "LD_PRELOAD": "",
    "LD_AUDIT": "",
    "LD_DEBUG_OUTPUT": "",
    "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/lib64",
    "GLIBC_TUNABLES": "",
    "GCONV_PATH": "",
}


class TestEnvironment:
    @pytest.mark.parametrize(
        ("uuids", "access", "visible", "cuda"),
        [
            (("GPU-1",), REQUEST, "GPU-1", "0"), (("GPU-1", "GPU-2"), RUNTIME, "GPU-1,GPU-2", "0,1"),
            (("GPU-1",), CDI, "void", "0"),
        ],
    )  # fmt: skip
    def test_every_hostile_name_is_overruled_with_a_device(
        self, uuids: tuple[str, ...], access: GpuAccess, visible: str, cuda: str
    ) -> None:
        assert environment(HOSTILE, uuids, access) == NEUTRAL | {
            "NVIDIA_VISIBLE_DEVICES": visible, "DOCKER_RESOURCE_GPU": visible, "CUDA_VISIBLE_DEVICES": cuda,
        }  # fmt: skip

    def test_without_a_device_the_toolkit_is_told_of_none_and_the_loader_is_the_images_own(self) -> None:
        toolkits = {name: "" for name in HOSTILE if name.startswith("NVIDIA_") and name != "NVIDIA_TF32_OVERRIDE"}
        assert environment(HOSTILE, (), AUTO) == toolkits | {
            "NVIDIA_VISIBLE_DEVICES": "void", "DOCKER_RESOURCE_GPU": "void"
        }  # fmt: skip

    def test_a_plain_image_is_told_no_more_than_it_must(self) -> None:
        assert environment({"PATH": "/bin"}, (), AUTO) == {"NVIDIA_VISIBLE_DEVICES": "void"}
        assert environment({"PATH": "/bin"}, ("GPU-1",), REQUEST) == {
            "NVIDIA_VISIBLE_DEVICES": "GPU-1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "NVIDIA_DISABLE_REQUIRE": "true",
        }  # fmt: skip

    @given(
        own=st.dictionaries(
            st.text() | st.builds("{}{}".format, st.sampled_from(["NVIDIA_", "LD_", "DOCKER_RESOURCE_"]), st.text()),
            st.text(),
        )
    )
    def test_of_what_an_image_sets_nothing_gets_by(self, own: dict[str, str]) -> None:
        merged = own | environment(own, ("GPU-1",), REQUEST)
        mine = environment({}, ("GPU-1",), REQUEST)
        for name, value in merged.items():
            if name.startswith("NVIDIA_") and name != "NVIDIA_TF32_OVERRIDE":
                assert value == mine.get(name, "")
            elif name.startswith("DOCKER_RESOURCE_"):
                assert value == "GPU-1"
            elif name.startswith("LD_") and name != "LD_LIBRARY_PATH":
                assert value == ""
            elif name != "LD_LIBRARY_PATH":
                assert value == own[name]
