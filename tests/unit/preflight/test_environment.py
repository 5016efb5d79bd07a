"""What is found in an image's ENV."""

from typing import TYPE_CHECKING, Any

import pytest

from runner.engine import FileFacts
from runner.engine.fake_files import file, folder
from tests.unit.preflight.conftest import debian

if TYPE_CHECKING:
    from tests.unit.preflight.conftest import Look

GPU = {"limits": {"run_time": {"fixed": 60}, "memory": "2 GiB", "shm": "64 MiB", "cpus": 2, "gpus": 1}}
HIDES = "the image's CUDA_VISIBLE_DEVICES hides the one device there is, which has the number 0"
REPLACED = "the image's NVIDIA_VISIBLE_DEVICES is replaced: the container is given the device it is due, no other"
EMPTIED = "is emptied, since the GPU's set-up runs on the host with it"
COMPAT = "the image's LD_LIBRARY_PATH names CUDA's compat folder, whose driver library may not fit this host's driver"
NOT_WRITABLE = "is no folder that can be written here"
PROXY = "the image's ENV names a proxy, and there is no network here"


@pytest.mark.parametrize(
    ("line", "gpu", "found"),
    [
        ("PATH=/usr/bin", True, []),
        ("NVIDIA_VISIBLE_DEVICES=all", False, []),
        ("NVIDIA_VISIBLE_DEVICES=all", True, [("note", REPLACED, "'all'")]),
        ("CUDA_VISIBLE_DEVICES=1", False, []),
        ("CUDA_VISIBLE_DEVICES=0", True, []),
        ("CUDA_VISIBLE_DEVICES=0,1", True, []),
        ("CUDA_VISIBLE_DEVICES=1", True, [("warns", HIDES, "'1'")]),
        ("CUDA_VISIBLE_DEVICES=1,0", True, [("warns", HIDES, "'1,0'")]),
        ("CUDA_VISIBLE_DEVICES=", True, [("warns", HIDES, "''")]),
        ("CUDA_VISIBLE_DEVICES=-1", True, [("warns", HIDES, "'-1'")]),
        ("LD_PRELOAD=/x.so", False, []),
        ("LD_PRELOAD=", True, []),
        ("LD_PRELOAD=/x.so", True, [("note", f"the image's LD_PRELOAD {EMPTIED}", "")]),
        ("LD_AUDIT=/x.so", True, [("note", f"the image's LD_AUDIT {EMPTIED}", "")]),
        ("LD_LIBRARY_PATH=/usr/local/cuda/lib64", True, []),
        ("LD_LIBRARY_PATH=/usr/local/cuda/compat", False, []),
        ("LD_LIBRARY_PATH=/usr/local/cuda/compat", True, [("note", COMPAT, "'/usr/local/cuda/compat'")]),
        ("HOME=/tmp", False, []),
        ("HOME=/home/me", False, [("note", "the image's HOME is replaced by /tmp", "'/home/me'")]),
        ("USER=me", False, [("note", "the image's USER is replaced by participant", "'me'")]),
        ("PYTHONUNBUFFERED=1", False, []),
        ("TMPDIR=/tmp/mine", False, []),
        ("TMPDIR=/data/outputs/tmp", False, []),
        ("TMPDIR=scratch", False, []),
        ("TMPDIR=/scratch", False, [("note", f"the image's TMPDIR {NOT_WRITABLE}", "'/scratch'")]),
        ("TMP=/tmpx", False, [("note", f"the image's TMP {NOT_WRITABLE}", "'/tmpx'")]),
        ("no_proxy=localhost", False, []),
        ("http_proxy=", False, []),
        ("http_proxy=http://p:1", False, [("note", PROXY, "")]),
        ("HTTPS_PROXY=http://secret@p:1", False, [("note", PROXY, "")]),
    ],
)  # fmt: skip
def test_environment(look: "Look", line: str, gpu: bool, found: list[tuple[str, str, str]]) -> None:
    own: dict[str, Any] = {"environment": (line,), "entrypoint": ("/usr/bin/python3",)}
    assert look.told(debian(), challenge=GPU if gpu else {}, **own) == found


def test_tree_that_can_be_written_is_a_place_for_scratch_files(look: "Look") -> None:
    own = {"environment": ("TMPDIR=/scratch",), "entrypoint": ("python3",)}
    assert look.told(debian(), challenge={"policy": "compatible"}, **own) == []


PACKAGES = "/root/.local/lib/python3.11/site-packages"
NOT_FOUND = (
    "Python packages were installed for one user, below that user's home; HOME is /tmp here, so that Python does not "
    "find them"
)


@pytest.mark.parametrize(
    ("files", "image", "found"),
    [
        ({}, {}, []),
        ({PACKAGES[1:]: folder()}, {}, [("warns", NOT_FOUND, f"'{PACKAGES}'")]),
        ({PACKAGES[1:]: folder()}, {"environment": ("PYTHONPATH=/root/.local/lib",)}, []),
        ({PACKAGES[1:]: folder()}, {"entrypoint": ("sh",)}, []),
        ({PACKAGES[1:].replace("11", "9"): folder()}, {}, []),
        ({"root/.local/lib": folder()}, {}, []),
        ({"app/run": file(b"#!/usr/bin/env python3\n"), PACKAGES[1:]: folder()}, {"entrypoint": ("/app/run",)},
         [("warns", NOT_FOUND, f"'{PACKAGES}'")]),
    ],
)  # fmt: skip
def test_packages_of_one_users_home(
    look: "Look", files: dict[str, FileFacts], image: dict[str, Any], found: list[tuple[str, str, str]]
) -> None:
    assert look.told(debian(**files), **{"entrypoint": ("python3",), **image}) == found


def test_packages_of_the_home_that_env_names(look: "Look") -> None:
    path = "/home/me/.local/lib/python3.11/site-packages"
    own = {"entrypoint": ("python3",), "environment": ("HOME=/home/me",)}
    told = look.told(debian(**{path[1:]: folder()}), **own)
    assert told[0] == ("warns", NOT_FOUND, f"'{path}'")


@pytest.mark.parametrize(
    ("home", "warned"), [("/opt/python", False), ("/none", True), ("/usr/bin/python3", True), ("/none:/none", False)]
)
def test_python_home_that_is_not_there(look: "Look", home: str, warned: bool) -> None:
    own = {"entrypoint": ("python3",), "environment": (f"PYTHONHOME={home}",)}
    told = look.told(debian(**{"opt/python": folder()}), **own)
    sentence = "the image's PYTHONHOME is no folder of it, and Python does not start without its library"
    assert told == ([("warns", sentence, f"'{home}'")] if warned else [])
