"""What can be told from an image's facts before it is run."""

import posixpath
from dataclasses import dataclass
from enum import StrEnum

from runner.challenge import Challenge
from runner.engine import ImageFacts

_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")


class Severity(StrEnum):
    """Whether a finding refuses the image."""

    REFUSES = "refuses"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True)
class PreflightFinding:
    """Something about an image.

    Attributes:
        severity: Whether it refuses the image.
        sentence: What it is, in our words.
        remedy: How to mend it.
    """

    severity: Severity
    sentence: str
    remedy: str


def _clean(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    path = _clean(path)
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def preflight(image: ImageFacts, challenge: Challenge) -> tuple[PreflightFinding, ...]:
    """Compare an image with what the challenge asks; the machine at hand plays no part.

    Returns:
        The findings, those that refuse first.
    """
    findings = []
    platform = f"{image.os}/{image.architecture}"
    if platform != challenge.platform.value:
        findings.append(
            _refuses(
                f"the image is built for {platform}, the challenge runs {challenge.platform.value}",
                f"build it with: docker build --platform {challenge.platform.value}",
            )
        )
    if not image.entrypoint and not image.command:
        findings.append(
            _refuses(
                "the image has neither ENTRYPOINT nor CMD",
                'say what to start, like ENTRYPOINT ["python3", "predict.py"]',
            )
        )
    if _inside(image.working_dir, _SYSTEM_FOLDERS):
        findings.append(_refuses("the image's WORKDIR lies in a system folder", "choose a WORKDIR such as /app"))
    mounts = (_clean(challenge.invocation.input_mount), _clean(challenge.invocation.output_mount))
    for volume in image.volumes:
        if _clean(volume) == "/" or _inside(volume, _SYSTEM_FOLDERS):
            findings.append(
                _refuses("the image declares a VOLUME on a system folder", "take the VOLUME out of the Dockerfile")
            )
        elif _clean(volume) not in mounts:
            findings.append(
                _note(
                    "the image declares a VOLUME, which is empty and at most 16 MiB when it is run here",
                    "take the VOLUME out of the Dockerfile",
                )
            )
    if image.healthcheck:
        findings.append(_note("the image's HEALTHCHECK is not run", "none is needed"))
    return tuple(sorted(findings, key=lambda f: f.severity is not Severity.REFUSES))


def _refuses(sentence: str, remedy: str) -> PreflightFinding:
    return PreflightFinding(severity=Severity.REFUSES, sentence=sentence, remedy=remedy)


def _note(sentence: str, remedy: str) -> PreflightFinding:
    return PreflightFinding(severity=Severity.NOTE, sentence=sentence, remedy=remedy)
