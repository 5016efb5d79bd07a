"""Findings from what an image says of itself, and from what lies where the challenge mounts its folders. Pure."""

from dataclasses import dataclass

from runner.challenge import Challenge
from runner.engine import FileKind, ImageFacts
from runner.engine.paths import plain_path
from runner.preflight.contents import Contents, Found, inside, start_words
from runner.preflight.cuda import HostGpu
from runner.preflight.findings import PreflightFinding, note, quoted, refuses, warns
from runner.quantities import show_bytes

SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_SHOWN_PLATFORMS = (
    "linux/amd64", "linux/arm64", "linux/arm", "linux/386", "linux/ppc64le", "linux/s390x", "linux/riscv64",
    "windows/amd64", "windows/arm64",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Host:
    """What counts of the host; of it only the largest size refuses an image.

    Attributes:
        architecture: Of the engine, as it says: ``x86_64``; empty where unknown.
        gpu: Its GPU's driver; None: it has none, or it is unknown.
        largest_image: Bytes an image may have here, unpacked; None: no limit.
    """

    architecture: str = ""
    gpu: HostGpu | None = None
    largest_image: int | None = None


def of_platform(image: ImageFacts, challenge: Challenge, host: Host) -> list[PreflightFinding]:
    """The platform is compared with the challenge's, never with the machine at hand."""
    built, asked = f"{image.os}/{image.architecture}", challenge.platform.value
    if built != asked:
        words = built if built in _SHOWN_PLATFORMS else "another platform"
        shown = () if built in _SHOWN_PLATFORMS else (quoted(built),)
        return [
            refuses(
                f"the image is built for {words}, the challenge runs {asked}",
                f"build it with: docker build --platform {asked}",
                *shown,
                hint="wrong-architecture",
            )
        ]
    here = _ARCHITECTURES.get(host.architecture, host.architecture)
    if here in _ARCHITECTURES.values() and asked != f"linux/{here}":
        return [
            warns(
                f"this engine runs on {here}, so {asked} is emulated here and run times mean nothing",
                f"judge run times on a machine with {asked}",
            )
        ]
    return []


def of_size(image: ImageFacts, host: Host) -> list[PreflightFinding]:
    """The size unpacked, against this host's limit."""
    if host.largest_image is None or image.size <= host.largest_image:
        return []
    size, most = show_bytes(image.size), show_bytes(host.largest_image)
    remedy = "leave out build tools, caches (pip --no-cache-dir) and data; build in stages"
    return [refuses(f"the image has {size}, {most} are allowed", remedy)]


def of_start(image: ImageFacts, challenge: Challenge) -> list[PreflightFinding]:
    """Whether there is anything to start, and whether the challenge's arguments reach it."""
    start = start_words(image, challenge)
    example = 'say what to start, like ENTRYPOINT ["python3", "predict.py"]'
    if not image.entrypoint and not image.command:
        return [refuses("the image has neither ENTRYPOINT nor CMD", example)]
    if start.own == 0 and "{" in start.words[0]:
        return [
            refuses(
                "the image has a CMD and no ENTRYPOINT, and the challenge's arguments take the place of CMD", example
            )
        ]
    if challenge.invocation.args and _is_deaf(image.entrypoint):
        return [
            warns(
                "the ENTRYPOINT is a shell command, which passes the challenge's arguments on to nothing",
                'write ENTRYPOINT as a list, or end the command with "$0" "$@"',
                quoted(image.entrypoint[2]),
            )
        ]
    return []


def _is_deaf(entrypoint: tuple[str, ...]) -> bool:
    """``["/bin/sh", "-c", "…"]``, which is what the shell form becomes, with nothing in it that takes an argument."""
    if len(entrypoint) != 3 or "$" in entrypoint[2]:
        return False
    return entrypoint[0].rpartition("/")[2] in ("sh", "bash", "dash", "ash") and entrypoint[1] == "-c"


def of_working_dir(image: ImageFacts, contents: Contents, *, foreign: bool) -> list[PreflightFinding]:
    """A WORKDIR that cannot be, or that the container's user cannot use."""
    if inside(image.working_dir, SYSTEM_FOLDERS):
        return [refuses("the image's WORKDIR lies in a system folder", "choose a WORKDIR such as /app")]
    found = contents.working_dir
    if found is None:
        return []
    if inside(found.end, SYSTEM_FOLDERS):
        return [refuses("the image's WORKDIR leads into a system folder", "choose a WORKDIR such as /app")]
    if found.blocked or found.kind not in (None, FileKind.FOLDER):
        return [
            refuses(
                "the image's WORKDIR is not a folder",
                "choose a WORKDIR that is none of the image's files",
                quoted(image.working_dir),
            )
        ]
    closed = found.closed or (found.place if found.kind is not None and not found.mode & 0o001 else "")
    if foreign and closed:
        return [
            warns(
                "the image's WORKDIR is closed to all but its owner and group, and the container runs as another "
                "user: relative paths lead nowhere",
                "choose a WORKDIR such as /app, or RUN chmod o+rx on the folder",
                quoted(closed),
            )
        ]
    return []


def of_volumes(image: ImageFacts, challenge: Challenge) -> list[PreflightFinding]:
    """Each VOLUME is covered by a small file system when the image is run."""
    mounts = mounts_of(challenge)
    findings = []
    for volume in image.volumes:
        if plain_path(volume) == "/" or inside(volume, SYSTEM_FOLDERS):
            findings.append(
                refuses("the image declares a VOLUME on a system folder", "take the VOLUME out of the Dockerfile")
            )
        elif plain_path(volume) not in mounts:
            findings.append(
                note(
                    "the image declares a VOLUME, which is empty and at most 16 MiB when it is run here",
                    "take the VOLUME out of the Dockerfile",
                    quoted(volume),
                )
            )
    return findings


def of_mounts(challenge: Challenge, contents: Contents) -> list[PreflightFinding]:
    """What the image has where the challenge's folders are mounted."""
    findings = []
    for found in contents.mounts:
        what = "input" if found.path == plain_path(challenge.invocation.input_mount) else "output"
        path = found.path
        if found.blocked or found.kind not in (None, FileKind.FOLDER):
            findings.append(
                refuses(
                    f"the image has something else than a folder where the challenge mounts its {what} folder, {path}",
                    f"take {path} out of the image",
                    quoted(found.end),
                )
            )
        elif found.linked:
            findings.append(_of_link(found, what))
    return findings


def _of_link(found: Found, what: str) -> PreflightFinding:
    remedy = f"take {found.path} out of the image"
    if inside(found.end, ("/proc",)):
        return refuses(f"the image has a link into /proc where the challenge mounts its {what} folder", remedy)
    sentence = f"the image has a link at {found.path}: the {what} folder is mounted where it leads"
    return note(sentence, remedy, quoted(found.end))


def of_health_check(image: ImageFacts) -> list[PreflightFinding]:
    """A HEALTHCHECK would be a stranger's code on a timer."""
    return [note("the image's HEALTHCHECK is not run", "none is needed")] if image.healthcheck else []


def of_user(image: ImageFacts, *, foreign: bool) -> list[PreflightFinding]:
    """Whose id the container runs as."""
    if not foreign:
        return []
    if image.user.partition(":")[0] in ("", "root", "0"):
        sentence = "the container runs as a user of its own, not as root"
    else:
        sentence = "the container runs as a user of its own, not as the image's USER"
    return [note(sentence, "let others read what the method reads: RUN chmod -R a+rX /app")]


def of_unread(contents: Contents) -> list[PreflightFinding]:
    """The engine let no container be made of it."""
    if not contents.unread:
        return []
    return [note("the image's files could not be looked at", "none is needed", quoted(contents.unread))]


def mounts_of(challenge: Challenge) -> tuple[str, str]:
    """Where the challenge's folders are mounted."""
    return plain_path(challenge.invocation.input_mount), plain_path(challenge.invocation.output_mount)
