"""CUDA wanted by an image, against the challenge and a host's driver."""

from typing import TYPE_CHECKING, Any

import pytest

from runner.engine import FileFacts
from runner.engine.fake_files import file, folder, link
from runner.preflight import Host, HostGpu
from runner.preflight.cuda import LEAST_DRIVERS
from tests.unit.preflight.conftest import debian

if TYPE_CHECKING:
    from tests.unit.preflight.conftest import Look

GPU = {"limits": {"run_time": {"fixed": 60}, "memory": "2 GiB", "shm": "64 MiB", "cpus": 2, "gpus": 1}}
SITE = "usr/local/lib/python3.11/dist-packages"
TORCH = b"__version__ = '2.4.0+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\ngit_version = 'x'\n"
TENSORFLOW = {f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12": file()}


def told(
    look: "Look", files: dict[str, FileFacts], *, gpu: HostGpu | None, challenge: dict[str, Any] = GPU, **image: Any
) -> list[tuple[str, str, str]]:
    own: dict[str, Any] = {"entrypoint": ("python3",), **image}
    findings = look.findings(debian(**files), challenge=challenge, host=Host(gpu=gpu), **own)
    return [(f.severity.value, f.sentence, f.evidence) for f in findings if "CUDA" in f.sentence]


@pytest.mark.parametrize(
    ("files", "environment", "version", "source"),
    [
        ({}, ("CUDA_VERSION=12.4.1",), "12.4.1", "ENV CUDA_VERSION"),
        ({}, ("NVIDIA_REQUIRE_CUDA=cuda>=11.8 brand=tesla,driver>=450,driver<451",), "11.8",
         "ENV NVIDIA_REQUIRE_CUDA"),
        ({f"{SITE}/torch/version.py": file(TORCH)}, (), "12.1", "torch/version.py"),
        ({f"{SITE}/torch/version.py": file(TORCH)}, ("CUDA_VERSION=11.8.0",), "12.1", "torch/version.py"),
        ({f"{SITE}/torch/version.py": file(TORCH)}, ("CUDA_VERSION=12.6.0",), "12.6.0", "ENV CUDA_VERSION"),
        ({"usr/local/cuda": link("/etc/alternatives/cuda"), "etc/alternatives/cuda": link("/usr/local/cuda-12.2"),
          "usr/local/cuda-12.2": folder()}, (), "12.2", "a CUDA library"),
        (TENSORFLOW, (), "12", "a CUDA library"),
        ({"opt/conda/bin/python": link("python3.9"), "opt/conda/bin/python3.9": file(),
          "opt/conda/lib/python3.9/site-packages/torch/version.py": file(b'cuda = "11.3"')},
         ("PATH=/opt/conda/bin",), "11.3", "torch/version.py"),
    ],
)  # fmt: skip
def test_image_made_for_cuda_is_noted_where_the_challenge_gives_no_gpu(
    look: "Look", files: dict[str, FileFacts], environment: tuple[str, ...], version: str, source: str
) -> None:
    entry = "python" if "opt/conda/bin/python" in files else "python3"
    found = told(look, files, gpu=None, challenge={}, environment=environment, entrypoint=(entry,))
    assert found == [("note", f"the image is made for CUDA {version}, and this challenge gives no GPU", source)]


@pytest.mark.parametrize(
    ("files", "environment"),
    [
        ({}, ()),
        ({}, ("CUDA_VERSION=latest",)),
        ({f"{SITE}/torch/version.py": file(b"cuda: Optional[str] = None\n")}, ()),
        ({f"{SITE}/torch/version.py": file(b"# cuda = '12.1'\n")}, ()),
        ({f"{SITE}/torch/version.py": folder()}, ()),
        ({"usr/local/cuda": folder()}, ()),
        ({}, ("NVIDIA_REQUIRE_CUDA=brand=tesla",)),
    ],
)
def test_nothing_is_said_where_no_version_is_told(
    look: "Look", files: dict[str, FileFacts], environment: tuple[str, ...]
) -> None:
    assert told(look, files, gpu=None, challenge={}, environment=environment) == []
    assert told(look, files, gpu=HostGpu(driver="450.36.06", cuda=(11, 0)), environment=environment) == []


@pytest.mark.parametrize(
    ("wanted", "driver", "cuda", "found"),
    [
        ("12.4.1", "550.54.14", (12, 4), None),
        ("12.4.1", "570.1", (12, 8), None),
        ("12.4.1", "525.60.13", (12, 0), "note"),
        ("12.4.1", "525.60.12", (12, 0), "525.60.13"),
        ("12.0", "520.61.05", (11, 8), "525.60.13"),
        ("11.8.0", "525.60.13", (12, 0), None),
        ("11.8.0", "450.80.02", (11, 0), "note"),
        ("11.8.0", "450.51.06", (11, 0), "450.80.02"),
        ("11.0.3", "450.51.06", (11, 0), None),
        ("10.2", "440.32", (10, 2), "440.33"),
        ("13.0.1", "580.65.06", (13, 0), None),
        ("13.0.1", "575.51.03", (12, 9), "580"),
        ("13.0.1", "an odd one", (12, 9), None),
        ("7.5", "340.1", (6, 5), None),
    ],
)
def test_driver_against_the_published_table(
    look: "Look", wanted: str, driver: str, cuda: tuple[int, int], found: str | None
) -> None:
    here = told(look, {}, gpu=HostGpu(driver=driver, cuda=cuda), environment=(f"CUDA_VERSION={wanted}",))
    words = f"the image is made for CUDA {wanted}"
    if found is None:
        assert here == []
    elif found == "note":
        sentence = (
            f"{words}, this host's driver knows CUDA {cuda[0]}.{cuda[1]}: what was compiled for it runs, code that is "
            "compiled at run time (PTX) may not"
        )
        assert here == [("note", sentence, "ENV CUDA_VERSION")]
    else:
        sentence = f"{words}, which needs driver {found} at least; this host has {driver}"
        assert here == [("warns", sentence, "ENV CUDA_VERSION")]


@pytest.mark.parametrize(
    ("required", "holds"),
    [
        ("cuda>=12.2", True),
        ("cuda>=12.3", False),
        ("cuda>=12.3 driver>=535", True),
        ("cuda>=12.3 driver>=535,driver<536", True),
        ("cuda>=12.3 driver>=470,driver<471", False),
        ("cuda>=12.3 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=525,driver<526", False),
        ("cuda>=12.3 brand=tesla,driver>=535,driver<536", True),
        ("cuda>=12.3 brand=tesla", True),
        ("cuda>12.2", False),
        ("cuda>12.1", True),
        ("cuda<=12.2", True),
        ("cuda<=12.1", False),
        ("cuda=12.2", True),
        ("cuda=12.1", False),
        ("cuda<12.2", False),
        ("arch>=9.0", True),
        ("", True),
    ],
)
def test_condition_that_nvidias_toolkit_holds_images_to(look: "Look", required: str, holds: bool) -> None:
    own = (f"NVIDIA_REQUIRE_CUDA={required}",)
    gpu = HostGpu(driver="535.129.03", cuda=(12, 2))
    found = [sentence for _, sentence, _ in told(look, {}, gpu=gpu, environment=own) if "REQUIRE" in sentence]
    sentence = (
        "the image's NVIDIA_REQUIRE_CUDA does not hold on this host (driver 535.129.03, CUDA 12.2), and NVIDIA's "
        "toolkit does not start such a container"
    )
    assert found == ([] if holds else [sentence])
    assert told(look, {}, gpu=gpu, environment=(*own, "NVIDIA_DISABLE_REQUIRE=true"))[1:] == []


def test_table_goes_from_new_to_old(look: "Look") -> None:
    releases = [release for release, _ in LEAST_DRIVERS]
    drivers = [tuple(int(part) for part in driver.split(".")) for _, driver in LEAST_DRIVERS]
    assert releases == sorted(releases, reverse=True)
    assert drivers == sorted(drivers, reverse=True)


def test_condition_on_a_driver_whose_version_is_no_number_is_left_open(look: "Look") -> None:
    gpu = HostGpu(driver="an odd one", cuda=(12, 2))
    assert told(look, {}, gpu=gpu, environment=("NVIDIA_REQUIRE_CUDA=driver>=535,driver<536",)) == []


def test_label_of_older_base_images_tells_the_version(look: "Look") -> None:
    found = told(look, {}, gpu=None, challenge={}, labels={"com.nvidia.cuda.version": "10.0.130"})
    sentence = "the image is made for CUDA 10.0.130, and this challenge gives no GPU"
    assert found == [("note", sentence, "LABEL com.nvidia.cuda.version")]


def test_files_are_looked_at_only_where_there_is_a_driver_to_compare_with(look: "Look") -> None:
    files = debian(**{f"{SITE}/torch/version.py": file(TORCH), "usr/local/cuda": folder()})
    assert look.contents(files, entrypoint=("python3",), cuda=True).torch_cuda == "12.1"
    assert look.contents(files, entrypoint=("python3",)).torch_cuda == ""
