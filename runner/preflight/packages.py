"""Where a Python program of an image finds its packages, and for which CUDA they were built."""

import posixpath
import re
from collections.abc import Mapping, Sequence

from runner.engine import FileKind
from runner.engine.paths import plain_path
from runner.preflight.contents import Found, Program, Role
from runner.preflight.tree import Tree

_PYTHON = re.compile(r"python(?:[23](?:\.\d{1,2})?)?")
_VERSION = re.compile(r"python(3\.\d{1,2})")
_TORCH_CUDA = re.compile(rb"^cuda\s*(?::[^=\n]{0,80})?=\s*['\"](\d{1,2}\.\d{1,2})['\"]", re.MULTILINE)
_VERSION_FILE = 4 << 10
_CUDA_FOLDER = re.compile(r"/usr/local/cuda-(\d{1,2}\.\d{1,2})")
_CUDART = "nvidia/cuda_runtime/lib/libcudart.so"
_FOUND_OTHERWISE = {"PYTHONUSERBASE", "PYTHONPATH", "PYTHONHOME"}


def is_python(name: str) -> bool:
    """Whether a program of that name is Python."""
    return _PYTHON.fullmatch(name) is not None


def python_of(programs: Sequence[Program]) -> Program | None:
    """The Python that an image's start comes to; None where it comes to none."""
    pythons = (p for p in reversed(programs) if p.role is not Role.SCRIPT and is_python(posixpath.basename(p.word)))
    return next(pythons, None)


def package_folders(python: Program) -> tuple[str, ...]:
    """Where it looks for packages: its environment's, the one it was linked from, and Debian's own."""
    version = _version(python)
    if not version:
        return ()
    prefixes = dict.fromkeys(_prefix(path) for path in (python.found.path, python.found.place))
    folders = [f"{prefix}/lib/python{version}/site-packages" for prefix in prefixes if prefix]
    if "/usr" in prefixes:
        folders += [f"/usr/local/lib/python{version}/dist-packages", "/usr/lib/python3/dist-packages"]
    return tuple(folders)


def user_packages(tree: Tree, python: Program | None, environment: Mapping[str, str]) -> Found | None:
    """Packages of the home of whoever built the image; Python looks for them in HOME, which is another one here."""
    version = _version(python) if python else ""
    if not version or _FOUND_OTHERWISE & environment.keys():
        return None
    for home in dict.fromkeys(("/root", plain_path(environment.get("HOME", "/root")))):
        found = tree.find(f"{home}/.local/lib/python{version}/site-packages")
        if found.kind is FileKind.FOLDER:
            return found
    return None


def torch_cuda(tree: Tree, folders: Sequence[str]) -> str:
    """The CUDA that torch was built for, such as ``12.1``; empty where there is none."""
    for folder in folders:
        found = tree.find(f"{folder}/torch/version.py")
        if found.kind is FileKind.FILE:
            told = _TORCH_CUDA.search(tree.content(found, _VERSION_FILE))
            return told[1].decode() if told else ""
    return ""


def cuda_library(tree: Tree, folders: Sequence[str]) -> str:
    """The CUDA whose libraries are there, such as ``12.4``, or ``12`` where no more is told."""
    installed = tree.find("/usr/local/cuda")
    if named := _CUDA_FOLDER.fullmatch(installed.place):
        return named[1]
    for folder in folders:
        for release in ("13", "12", "11.0"):
            if tree.find(f"{folder}/{_CUDART}.{release}").kind is FileKind.FILE:
                return release
    return ""


def _version(python: Program) -> str:
    """``3.11``, from the name of the file it is."""
    told = _VERSION.search(posixpath.basename(python.found.place))
    return told[1] if told else ""


def _prefix(path: str) -> str:
    """``/opt/conda`` for ``/opt/conda/bin/python``; empty where it is in no ``bin``."""
    folder, name = posixpath.split(path)
    return folder.removesuffix("/bin") if name and folder.endswith("/bin") else ""
