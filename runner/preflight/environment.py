"""Findings from an image's ENV: what is replaced, what means nothing here, and what breaks a program. Pure."""

from collections.abc import Mapping

from runner.challenge import Challenge
from runner.engine import FileKind, ImageFacts
from runner.engine.paths import plain_path
from runner.policy import Policy
from runner.preflight.contents import Contents, environment_of, inside
from runner.preflight.findings import PreflightFinding, note, quoted, warns

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy")
_LOADER = ("LD_AUDIT", "LD_PRELOAD")
_WRITABLE = ("/tmp", "/dev/shm")  # noqa: S108  the container's own


def of_environment(
    image: ImageFacts, challenge: Challenge, contents: Contents, policy: Policy
) -> list[PreflightFinding]:
    """What an image's ENV does here.

    Args:
        image: What it says of itself.
        challenge: Says whether there is a GPU, and where the folders are.
        contents: What was read out of it.
        policy: Says what is set whatever the image says.
    """
    own = environment_of(image)
    return [
        *(_of_devices(own) if challenge.limits.gpus else []),
        *_of_replaced(own, policy),
        *_of_scratch(own, challenge, policy),
        *_of_network(own, policy),
        *_of_python(own, contents, policy),
    ]


def _of_devices(own: Mapping[str, str]) -> list[PreflightFinding]:
    findings = []
    if "NVIDIA_VISIBLE_DEVICES" in own:
        findings.append(
            note(
                "the image's NVIDIA_VISIBLE_DEVICES is replaced: the container is given the device it is due, no other",
                "none is needed",
                quoted(own["NVIDIA_VISIBLE_DEVICES"]),
            )
        )
    shown = own.get("CUDA_VISIBLE_DEVICES", "0")
    if shown.split(",")[0].strip() != "0":
        findings.append(
            warns(
                "the image's CUDA_VISIBLE_DEVICES hides the one device there is, which has the number 0",
                "take CUDA_VISIBLE_DEVICES out of the Dockerfile",
                quoted(shown),
            )
        )
    findings += [
        note(f"the image's {name} is emptied, since the GPU's set-up runs on the host with it", "none is needed")
        for name in _LOADER
        if own.get(name)
    ]
    if "/compat" in own.get("LD_LIBRARY_PATH", ""):
        findings.append(
            note(
                "the image's LD_LIBRARY_PATH names CUDA's compat folder, whose driver library may not fit this host's "
                "driver",
                "where CUDA fails with error 803 or 804, take the folder out of LD_LIBRARY_PATH",
                quoted(own["LD_LIBRARY_PATH"]),
            )
        )
    return findings


def _of_replaced(own: Mapping[str, str], policy: Policy) -> list[PreflightFinding]:
    changed = [name for name, value in policy.environment.items() if own.get(name, value) != value]
    return [
        note(
            f"the image's {name} is replaced by {policy.environment[name]}",
            "name folders and users outright, not by such variables",
            quoted(own[name]),
        )
        for name in changed
    ]


def _of_scratch(own: Mapping[str, str], challenge: Challenge, policy: Policy) -> list[PreflightFinding]:
    """TMPDIR at a place that cannot be written: Python falls back to /tmp, others fail."""
    if not policy.read_only:
        return []
    places = (*_WRITABLE, plain_path(challenge.invocation.output_mount))
    return [
        note(f"the image's {name} is no folder that can be written here", "use /tmp", quoted(own[name]))
        for name in ("TMPDIR", "TEMP", "TMP")
        if own.get(name, "").startswith("/") and not inside(own[name], places)
    ]


def _of_network(own: Mapping[str, str], policy: Policy) -> list[PreflightFinding]:
    if policy.network != "none" or not any(value and name.lower() in _PROXIES for name, value in own.items()):
        return []
    return [
        note(
            "the image's ENV names a proxy, and there is no network here",
            "whatever is fetched at run time must be in the image",
        )
    ]


def _of_python(own: Mapping[str, str], contents: Contents, policy: Policy) -> list[PreflightFinding]:
    findings = []
    home, packages = contents.python_home, contents.user_packages
    if home is not None and ":" not in own["PYTHONHOME"] and home.kind is not FileKind.FOLDER:
        findings.append(
            warns(
                "the image's PYTHONHOME is no folder of it, and Python does not start without its library",
                "take PYTHONHOME out of the Dockerfile",
                quoted(own["PYTHONHOME"]),
            )
        )
    if packages is not None and "HOME" in policy.environment:
        findings.append(
            warns(
                f"Python packages were installed for one user, below that user's home; HOME is "
                f"{policy.environment['HOME']} here, so that Python does not find them",
                "install them without --user and as root, or in a virtual environment that others may read",
                quoted(packages.path),
            )
        )
    return findings
