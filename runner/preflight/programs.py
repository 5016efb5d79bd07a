"""Findings about what an image starts: is it there, may it be executed, is what it needs there. Pure.

The programs stand in the order in which each starts the next; the first fault ends the row, the rest follows from it.
"""

import posixpath

from runner.challenge import Challenge
from runner.challenge.challenge import Platform
from runner.engine import FileKind, ImageFacts
from runner.engine.paths import plain_path
from runner.preflight.configuration import mounts_of
from runner.preflight.contents import Contents, Program, Role, inside
from runner.preflight.executable import Elf, foreign_system, is_plain_text, read_elf, read_shebang
from runner.preflight.findings import PreflightFinding, Severity, note, quoted, refuses, warns

_MACHINES = {Platform.LINUX_AMD64: (62, 3), Platform.LINUX_ARM64: (183, 40)}
"""ELF machines a platform's processor runs: its own, and the 32-bit one before it."""

_MACHINE_NAMES = {3: "386", 40: "arm", 62: "amd64", 183: "arm64", 21: "ppc64", 22: "s390x", 243: "riscv64"}
_TMP = ("/tmp", "/dev/shm")  # noqa: S108  the container's own
_OTHERS = "the container runs as a user of its own"


def of_programs(
    image: ImageFacts, challenge: Challenge, contents: Contents, *, foreign: bool
) -> list[PreflightFinding]:
    """What is wrong with what the image starts.

    Args:
        image: What it says of itself.
        challenge: How it will be started.
        contents: What was read out of it.
        foreign: The container runs as another user than the image's own.
    """
    covers = _covers(image, challenge, contents)
    notes: list[PreflightFinding] = []
    for program in contents.programs:
        finding = (
            _of_place(program, covers)
            or _of_rights(program, foreign=foreign)
            or _of_content(program, challenge.platform, contents)
        )
        if finding is not None and finding.severity is not Severity.NOTE:
            return [*notes, _softened(finding) if program.role is Role.IN_SHELL else finding]
        notes += [finding] if finding is not None else []
    return notes


def _softened(finding: PreflightFinding) -> PreflightFinding:
    """A shell may do otherwise than we read it to; its exit code will tell."""
    return warns(finding.sentence, finding.remedy, *filter(None, [finding.evidence]), stops_start=True)


def _covers(image: ImageFacts, challenge: Challenge, contents: Contents) -> dict[str, str]:
    """Folders whose content is hidden when the image is run, and what hides it."""
    covers = {plain_path(volume): "a VOLUME" for volume in image.volumes}
    covers |= dict.fromkeys(_TMP, "a folder that is empty when it is run here")
    for path in (*mounts_of(challenge), *(found.end for found in contents.mounts)):
        covers[path] = "a folder of the challenge's"
    return covers


def _of_place(program: Program, covers: dict[str, str]) -> PreflightFinding | None:
    found = program.found
    hidden = next((cover for cover in covers if any(inside(step, (cover,)) for step in found.trail)), None)
    if hidden is not None and found.kind is not None:
        return refuses(
            f"{program.role.value} lies in {covers[hidden]}, whose content in the image is hidden when it is run",
            "put it into a folder of its own, such as /app, that is no VOLUME",
            quoted(found.path),
        )
    if found.kind is None:
        return _missing(program)
    if found.kind is FileKind.FOLDER:
        # Python runs a folder that has a __main__.py.
        return None if program.role is Role.SCRIPT else refuses(
            f"{program.role.value} is a folder", "name the program itself", quoted(found.path)
        )  # fmt: skip
    if found.kind is FileKind.OTHER:
        return refuses(f"{program.role.value} is not a file", "name the program itself", quoted(found.path))
    return None


def _missing(program: Program) -> PreflightFinding:
    if program.word.endswith("\r"):
        return _windows(quoted(program.word))
    role, searched = program.role, program.searched
    sentence = f"{role.value} is not {'along the PATH of the image' if searched else 'in the image'}"
    evidence = quoted(program.word if searched else program.found.path)
    if role is Role.FROM_ENV and " " in program.word:
        remedy = "write #!/usr/bin/env -S in place of #!/usr/bin/env, or leave the options out"
        return refuses(f"{sentence}: env takes the whole line for one name", remedy, evidence)
    if role is Role.INTERPRETER:
        remedy = "install it, or name one that is there in the script's first line"
    elif searched:
        remedy = "install it, give its whole path, or put its folder into PATH with ENV"
    else:
        remedy = "COPY it to that place, or mend the ENTRYPOINT; a relative path starts from WORKDIR"
    return refuses(sentence, remedy, evidence, hint="entry-point-missing")


def _windows(*evidence: str) -> PreflightFinding:
    return refuses(
        "the script's first line ends as lines do on Windows (CR LF), so that its interpreter is not found",
        "save it with Unix line ends: RUN sed -i 's/\\r$//' FILE, and in .gitattributes: *.sh text eol=lf",
        *evidence,
        hint="windows-line-ends",
    )


def _of_rights(program: Program, *, foreign: bool) -> PreflightFinding | None:
    found, role = program.found, program.role.value
    executed = program.role is not Role.SCRIPT
    if executed and not found.mode & 0o111:
        return refuses(f"{role} is not executable", "RUN chmod a+rx FILE", quoted(found.path), oct(found.mode),
                       hint="entry-point-not-executable")  # fmt: skip
    if not foreign:
        return None
    if found.closed:
        return refuses(
            f"{role} lies in a folder that only its owner and group may enter, and {_OTHERS}",
            "put it into a folder such as /app, or RUN chmod o+x on the folder",
            quoted(found.path),
            quoted(found.closed),
        )
    if executed and not found.mode & 0o001:
        return refuses(
            f"{role} is executable for its owner or group only, and {_OTHERS}",
            "RUN chmod a+rx FILE",
            quoted(found.path),
            oct(found.mode),
        )
    read = not executed or found.content.startswith(b"#!")
    if found.kind is FileKind.FILE and read and not found.mode & 0o004:
        return refuses(
            f"{role} is readable for its owner or group only, and {_OTHERS}",
            "RUN chmod -R a+rX on its folder",
            quoted(found.path),
            oct(found.mode),
        )
    return None


def _of_content(program: Program, platform: Platform, contents: Contents) -> PreflightFinding | None:
    content = program.found.content
    if (elf := read_elf(content)) is not None:
        return _of_elf(program, elf, platform)
    if system := foreign_system(content):
        return refuses(f"{program.role.value} is a program for {system}", "build it for Linux", quoted(program.word))
    if (shebang := read_shebang(content)) is not None:
        # What env is asked for is looked at by itself, and env -S takes a carriage return for a blank.
        ends_badly = shebang.windows and shebang.argument and posixpath.basename(shebang.interpreter) != "env"
        return _windows(quoted(f"{shebang.interpreter} {shebang.argument}")) if ends_badly else None
    if is_plain_text(content) and not content.startswith(b"#!"):
        return _without_first_line(program, contents)
    return None


def _without_first_line(program: Program, contents: Contents) -> PreflightFinding | None:
    shell = contents.shell
    if shell is None:
        return None
    sentence = f"{program.role.value} is a script without a first line that names its interpreter"
    remedy = "begin it with a line such as #!/bin/sh"
    if shell.kind is FileKind.FILE:
        return note(f"{sentence}: /bin/sh runs it here, other engines refuse it", remedy, quoted(program.found.path))
    return warns(f"{sentence}, and there is no /bin/sh", remedy, quoted(program.found.path), stops_start=True)


def _of_elf(program: Program, elf: Elf, platform: Platform) -> PreflightFinding | None:
    role = program.role.value
    if elf.machine not in _MACHINES[platform]:
        name = _MACHINE_NAMES.get(elf.machine, f"another processor (ELF machine {elf.machine})")
        return refuses(
            f"{role} is built for {name}, the challenge runs {platform.value}",
            f"build the image, and all that is copied into it, for {platform.value}",
            quoted(program.found.path),
            hint="exec-format-error",
        )
    loader = program.loader
    if loader is None or loader.kind is not None:
        return None
    name = posixpath.basename(loader.path)
    if name.startswith("ld-musl"):
        why, remedy = ": it was built on Alpine (musl)", "build it on the image's own base, or take Alpine as the base"
    elif name.startswith("ld-linux"):
        why, remedy = (
            ": it was built for glibc",
            "build it on the image's own base, build it static, or take a base with glibc (Debian) in place of Alpine",
        )
    else:
        why, remedy = "", "build it on the image's own base, or build it static"
    return refuses(f"the dynamic loader of {role} is not in the image{why}", remedy, quoted(loader.path))
