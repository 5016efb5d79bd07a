"""A container engine without containers, for tests: an image is a Python function.

The function runs at once when its container is started; what it returns says how long the container *counts*
as running on the simulated clock, so a test of an hour's time limit takes no time::

    clock = SimulatedClock()
    fake = FakeEngine(clock)

    def predict(box: FakeBox) -> FakeExit:
        frames = sorted(box.path("/data/inputs/case-1").iterdir())
        box.path("/data/outputs/result.csv").write_text(f"{len(frames)}\\n")
        return FakeExit(seconds=2.5)

    image_id = fake.add_image("team-1", predict)

It keeps the ``Engine`` contract: ``tests/contract`` runs one suite on it and on the real engine. It isolates
nothing: a read-only bind can be written to, and no limit is enforced.
"""

import hashlib
import io
import itertools
import json
import math
import posixpath
import re
import shutil
import tarfile
import tempfile
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack

from runner.clock import Clock, SimulatedClock
from runner.engine.contract import (
    Attached,
    ContainerFacts,
    ContainerSpec,
    EngineFacts,
    EngineRefusal,
    EngineUnreachable,
    Exit,
    FileFacts,
    ImageFacts,
    ImageMissing,
    ImageTooLarge,
    RefusalPhase,
    VolumeFacts,
    VolumeSpec,
)
from runner.engine.docker_answers import split_reference
from runner.engine.fake_files import FakeTree, static_program, tree_of
from runner.engine.fake_talk import FakeAttached

FAKE_FACTS = EngineFacts(
    name="Docker Engine",
    version="28.0.0",
    identity="FAKE",
    cgroup_version=2,
    cgroup_driver="systemd",
    security_options=("name=seccomp,profile=builtin", "name=cgroupns"),
    runtimes=("runc",),
    warnings=(),
    data_root="/var/lib/docker",
    cpus=8,
    memory=32 << 30,
    rootless=False,
    os_type="linux",
    architecture="x86_64",
    operating_system="Debian GNU/Linux 12 (bookworm)",
    kernel="6.1.0",
)
_LEAST_MEMORY = 6 << 20  # what Docker insists on
_REAL_NAP = 0.02


@dataclass(frozen=True)
class FakeExit:
    """How a fake program ends: its exit code, how long it ran, and whether memory ran out.

    ``seconds`` may be ``math.inf``: it runs until it is killed.
    """

    code: int = 0
    seconds: float = 1.0
    oom_killed: bool = False


class FakeBox:
    """What a fake program sees of its container."""

    def __init__(self, spec: ContainerSpec, image: ImageFacts, roots: Mapping[str, Path], clock: Clock) -> None:
        self.spec = spec
        self.arguments = _arguments(spec, image)
        self.environment: Mapping[str, str] = {**_environment(image.environment), **spec.environment}
        self.log = bytearray()
        self.tree_bytes = 0
        """What it wrote to its own tree; a fake one has none, so the program says how much it would have been."""
        self._roots = roots
        self._clock = clock

    def path(self, inside: str) -> Path:
        """The host's path of a path in the container.

        Raises:
            FileNotFoundError: The path is in no bind, volume or tmpfs of the container.
        """
        wanted = posixpath.normpath(inside)
        for target in sorted(self._roots, key=len, reverse=True):
            if wanted == target or wanted.startswith(target.rstrip("/") + "/"):
                return self._roots[target] / posixpath.relpath(wanted, target)
        raise FileNotFoundError(f"{inside!r} is in no bind, volume or tmpfs of {self.spec.name}")

    def print(self, text: str) -> None:
        """Write a line to the container's log."""
        self.log += text.encode() + b"\n"

    def sleep(self, seconds: float) -> None:
        """Let time pass while it works; for a program that talks."""
        self._clock.sleep(seconds)


FakeTalk: TypeAlias = Generator[bytes, bytes, FakeExit | int | None]
FakeProgram: TypeAlias = Callable[[FakeBox], FakeExit | int | FakeTalk | None]
"""A program: its box in; an exit, an exit code, or None for success after one second out.

One that talks is a generator: it yields what it prints, and is sent what it reads next, empty once its input has
ended; ``yield b""`` only reads. It runs whenever it is written to, in the writer's thread, and ends at once when it
returns an exit code or None.

What it raises comes out of ``start`` and leaves the container created: an ``EngineRefusal`` is an engine's
refusal to start, anything else a mistake in the test. A program that crashes returns its exit code.
"""


class ImageOverrides(TypedDict, total=False):
    """The fields of ``ImageFacts`` a test may choose."""

    id: str
    repo_digests: tuple[str, ...]
    os: str
    architecture: str
    size: int
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: tuple[str, ...]
    user: str
    working_dir: str
    volumes: tuple[str, ...]
    labels: Mapping[str, str]
    healthcheck: bool


@dataclass
class _Container:
    id: str
    spec: ContainerSpec
    image: ImageFacts
    box: FakeBox
    scratch: Path
    started: float | None = None
    finished: float = math.inf
    end: FakeExit = field(default_factory=FakeExit)
    streams: FakeAttached[FakeExit | int | None] | None = None


class FakeEngine:
    """An ``Engine`` whose images are functions and whose time is a simulated clock.

    Attributes:
        created: The specification of every container ever created, in order.
        builds: The network and the memory of every build, in order.
        engine_facts: What ``facts`` answers; a test may set it.
    """

    def __init__(self, clock: SimulatedClock) -> None:
        self.created: list[ContainerSpec] = []
        self.builds: list[tuple[str, int | None]] = []
        self.engine_facts = FAKE_FACTS
        self._clock = clock
        self._lock = threading.RLock()
        self._serial = itertools.count(1)
        self._faults: defaultdict[str, list[Exception]] = defaultdict(list)
        self._images: dict[str, ImageFacts] = {}
        self._programs: dict[str, FakeProgram] = {}
        self._trees: dict[str, FakeTree] = {}
        self._names: dict[str, str] = {}
        self._registry: dict[str, tuple[FakeProgram, ImageFacts]] = {}
        self._containers: dict[str, _Container] = {}
        self._volumes: dict[str, tuple[VolumeSpec, Path]] = {}
        self._scratch = Path(tempfile.mkdtemp(prefix="proctor-fake-"))
        self._erase = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)

    # What a test says

    def add_image(
        self,
        name: str,
        program: FakeProgram,
        *,
        files: Mapping[str, FileFacts] | None = None,
        **overrides: Unpack[ImageOverrides],
    ) -> str:
        """Put an image on the engine; its ID, by default made of its name.

        Args:
            name: What it is called.
            program: What it does.
            files: What lies in it, by absolute path; None: nothing but the program it names.
            overrides: What it says of itself.
        """
        facts = _describe(name, overrides)
        with self._lock:
            if files is not None:
                self._trees[facts.id] = FakeTree(files)
            return self._keep(_named(name), program, facts)

    def add_remote(self, name: str, program: FakeProgram, **overrides: Unpack[ImageOverrides]) -> str:
        """Put an image in the registry, where ``pull`` finds it; the ID it will have."""
        facts = _describe(name, overrides)
        self._registry[_named(name)] = (program, facts)
        return facts.id

    def fail_next(self, method: str, error: Exception) -> None:
        """Let the next call of a method raise; more than once, and the calls after it raise in that order."""
        if not callable(getattr(self, method, None)):
            raise ValueError(f"an engine has no method {method!r}")  # noqa: TRY004  # the name is wrong
        self._faults[method].append(error)

    def restart(self) -> None:
        """Restart the engine: what runs ends with 143, and it is not reached once."""
        with self._lock:
            for container in self._containers.values():
                self._end(container, code=143)
            self.fail_next("ping", EngineUnreachable("the engine is shutting down"))

    # The contract

    def ping(self) -> None:
        """Return when the engine answers."""
        self._enter("ping")

    def facts(self) -> EngineFacts:
        """Say what this engine is."""
        self._enter("facts")
        return self.engine_facts

    def image(self, reference: str) -> ImageFacts:
        """Describe an image the engine holds, by ID, digest or name; ``ImageMissing`` where it does not."""
        self._enter("image")
        return self._image(reference, RefusalPhase.OTHER)

    def pull(
        self,
        reference: str,
        *,
        deadline: float,  # noqa: ARG002  # nothing takes time here
        progress: Callable[[str], None],
        limit: int | None = None,
    ) -> ImageFacts:
        """Fetch an image ``add_remote`` put into the registry; its size counts as packed."""
        self._enter("pull")
        found = self._registry.get(_named(reference))
        if found is None:
            message = f"manifest for {reference} not found: manifest unknown"
            raise ImageMissing(RefusalPhase.PULL, message, status=404)
        program, facts = found
        if limit is not None and facts.size > limit:
            raise ImageTooLarge(facts.size)
        progress(f"Pulling from {split_reference(reference)[0]}")
        with self._lock:
            return self._images[self._keep(_named(reference), program, facts)]

    def image_ids(self) -> tuple[str, ...]:
        """List the IDs of all images."""
        self._enter("image_ids")
        with self._lock:
            return tuple(self._images)

    def registry_digest(self, reference: str) -> str:
        """The digest an image was put into the registry with; one made of its ID where it has none."""
        self._enter("registry_digest")
        found = self._registry.get(_named(reference))
        if found is None:
            raise ImageMissing(RefusalPhase.PULL, "manifest unknown", status=404)
        digests = found[1].repo_digests
        return digests[0].partition("@")[2] if digests else f"sha256:{_digest(found[1].id)}"

    def load(
        self,
        archive: Iterable[bytes],
        *,
        deadline: float,  # noqa: ARG002  # nothing takes time here
    ) -> tuple[str, ...]:
        """Load a ``docker save`` archive; an image the test has not added does nothing when it is run."""
        self._enter("load")
        try:
            with tarfile.open(fileobj=io.BytesIO(b"".join(archive))) as tar:
                loaded = [_loaded(tar, entry) for entry in json.load(_member(tar, "manifest.json"))]
        except (tarfile.TarError, KeyError, ValueError) as error:
            raise EngineRefusal(RefusalPhase.LOAD, f"invalid archive: {error}") from error
        with self._lock:
            for tags, facts in loaded:
                for name in tags or (facts.id,):
                    self._keep(name, self._programs.get(facts.id, _nothing), facts)
        return tuple(facts.id for _, facts in loaded)

    def import_root(self, tar: Iterable[bytes], *, reference: str, changes: tuple[str, ...]) -> str:
        """Make an image of a tar, and of ``LABEL`` and ``ENV`` changes; its files can be read."""
        self._enter("import_root")
        content = b"".join(tar)
        facts = ImageFacts(
            id=f"sha256:{hashlib.sha256(repr(changes).encode() + content).hexdigest()}",
            labels=dict(_pairs(changes, "LABEL ")),
            environment=tuple(f"{name}={value}" for name, value in _pairs(changes, "ENV ")),
        )
        with self._lock:
            self._trees[facts.id] = tree_of(content)
            return self._keep(_named(reference), self._programs.get(facts.id, _nothing), facts)

    def build(
        self,
        folder: Path,
        *,
        reference: str,
        arguments: Mapping[str, str],  # noqa: ARG002  # nothing is built
        deadline: float,  # noqa: ARG002  # nothing takes time here
        log: Callable[[str], None],
        network: str = "default",
        memory: int | None = None,
    ) -> str:
        """Answer with the image the test added as ``reference``; without one, an image that does nothing."""
        self._enter("build")
        self.builds.append((network, memory))
        if not (folder / "Dockerfile").is_file():
            raise EngineRefusal(RefusalPhase.BUILD, "Cannot locate specified Dockerfile: Dockerfile", status=500)
        log("Step 1/1 : FROM fake")
        with self._lock:
            if _named(reference) in self._names:
                return self._names[_named(reference)]
            return self._keep(_named(reference), _nothing, _describe(reference, {}))

    def remove_image(self, reference: str) -> None:
        """Forget an image; silent where it is gone or in use."""
        self._enter("remove_image")
        with self._lock:
            image_id = self._names.get(_named(reference), reference)
            if not any(container.image.id == image_id for container in self._containers.values()):
                self._images.pop(image_id, None)
                self._names = {name: held for name, held in self._names.items() if held != image_id}

    def create(self, spec: ContainerSpec) -> str:
        """Create a container; its ID."""
        self._enter("create")
        with self._lock:
            image = self._image(spec.image_id, RefusalPhase.CREATE)
            self._check(spec)
            identity = _digest(f"container {next(self._serial)}")
            scratch = self._folder()
            box = FakeBox(spec, image, self._roots(spec, scratch), self._clock)
            self._containers[identity] = _Container(identity, spec, image, box, scratch)
            self.created.append(spec)
            return identity

    def attach(self, container: str) -> Attached:
        """Join the standard streams of a created container, whose program should be a generator."""
        self._enter("attach")
        with self._lock:
            found = self._container(container, RefusalPhase.ATTACH)
            found.streams = FakeAttached()
            return found.streams

    def start(self, container: str) -> None:
        """Run a created container's program; the container then counts as running for its seconds."""
        self._enter("start")
        with self._lock:
            found = self._container(container, RefusalPhase.START)
            if found.started is not None:
                raise EngineRefusal(RefusalPhase.START, "it was started before", status=409)
            self._clear_idle_volumes(found)
            program = self._programs[found.image.id]
        outcome = program(found.box)
        with self._lock:
            found.started = self._clock.now()
            if not isinstance(outcome, Generator):
                found.end = outcome if isinstance(outcome, FakeExit) else FakeExit(code=outcome or 0)
                found.finished = found.started + found.end.seconds
                if found.streams is not None:
                    found.streams.print_all(bytes(found.box.log))
                return
            streams = found.streams = found.streams or FakeAttached()

        def over(outcome: FakeExit | int | None) -> None:
            """It has returned, unless it was killed."""
            with self._lock:
                if found.finished != math.inf:
                    return
                found.end = outcome if isinstance(outcome, FakeExit) else FakeExit(code=outcome or 0, seconds=0.0)
                found.finished = self._clock.now() + found.end.seconds

        streams.begin(outcome, found.box.log, over)

    def inspect(self, container: str) -> ContainerFacts | None:
        """Say how a container is; None where there is none."""
        self._enter("inspect")
        with self._lock:
            found = self._find(container)
            return self._facts(found) if found else None

    def written_bytes(self, container: str) -> int:
        """Bytes a container has written to its own tree; 0 where there is none."""
        self._enter("written_bytes")
        with self._lock:
            found = self._find(container)
            return found.box.tree_bytes if found else 0

    def await_exit(self, container: str, *, seconds: float) -> None:
        """Move the clock to the container's end, at most by ``seconds``; where it talks, no faster than a real one."""
        with self._lock:
            found = self._find(container)
        if found is not None and found.streams is not None and found.finished == math.inf:
            seconds = min(seconds, _REAL_NAP)
            found.streams.await_end(seconds)
        with self._lock:
            left = 0.0 if found is None or found.started is None else found.finished - self._clock.now()
        self._clock.sleep(min(seconds, max(0.0, left)))

    def kill(self, container: str) -> None:
        """End a container that runs with 137, now; silent where it has ended or is gone."""
        self._enter("kill")
        with self._lock:
            if (found := self._find(container)) is not None:
                self._end(found, code=137)

    def logs(self, container: str, *, lines: int, max_bytes: int) -> bytes:
        """Read the last ``lines`` lines of the log, at most ``max_bytes`` bytes."""
        self._enter("logs")
        with self._lock:
            found = self._container(container, RefusalPhase.OTHER)
        kept = _last(bytes(found.box.log), found.spec.log.size * found.spec.log.files)
        pieces = [line for line in re.split(rb"(?<=\n)", kept) if line]
        return _last(b"".join(pieces[-lines:] if lines else ()), max_bytes)

    def remove(self, container: str) -> None:
        """Remove a container, killing it first; silent where it is gone."""
        self._enter("remove")
        with self._lock:
            if (found := self._find(container)) is not None:
                self._end(found, code=137)
                del self._containers[found.id]
                shutil.rmtree(found.scratch)

    def containers(self, label: str) -> tuple[ContainerFacts, ...]:
        """List all containers, running or not, that carry a label key."""
        self._enter("containers")
        with self._lock:
            every = [self._facts(container) for container in self._containers.values()]
        return tuple(facts for facts in every if label in facts.labels)

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a volume; its size is not enforced."""
        self._enter("create_volume")
        with self._lock:
            if spec.name not in self._volumes:
                self._volumes[spec.name] = (spec, self._folder())

    def remove_volume(self, name: str) -> None:
        """Remove a volume; silent where it is gone."""
        self._enter("remove_volume")
        with self._lock:
            if any(_holds(container, name) for container in self._containers.values()):
                raise EngineRefusal(RefusalPhase.OTHER, f"volume {name} is in use", status=409)
            if (found := self._volumes.pop(name, None)) is not None:
                shutil.rmtree(found[1])

    def volumes(self, label: str) -> tuple[VolumeFacts, ...]:
        """List the volumes that carry a label key."""
        self._enter("volumes")
        with self._lock:
            specs = [spec for spec, _ in self._volumes.values()]
        return tuple(VolumeFacts(name=spec.name, labels=spec.labels) for spec in specs if label in spec.labels)

    def read_file(self, container: str, path: str, *, max_bytes: int) -> FileFacts | None:
        """Say what lies at a path of the container's image; None where nothing does."""
        self._enter("read_file")
        with self._lock:
            found = self._container(container, RefusalPhase.OTHER)
            tree = self._trees.get(found.image.id) or FakeTree(_own_program(found.image))
        return tree.at(path, max_bytes=max_bytes)

    def read_tree(self, container: str, path: str) -> Iterator[bytes]:
        """Stream a folder of a running container as a tar."""
        self._enter("read_tree")
        with self._lock:
            found = self._container(container, RefusalPhase.OTHER)
            if not self._runs(found):
                raise EngineRefusal(RefusalPhase.OTHER, "the container does not run", status=409)
        try:
            root = found.box.path(path)
            yield _tar(root, posixpath.basename(posixpath.normpath(path)) or "/")
        except FileNotFoundError as error:
            raise EngineRefusal(RefusalPhase.OTHER, f"no such path: {path}", status=404) from error

    def export_root(self, container: str) -> Iterator[bytes]:
        """Stream a tar that stands for the container's root file system: its image's ID in a file."""
        self._enter("export_root")
        found = self._container(container, RefusalPhase.OTHER)
        (found.scratch / "image-id").write_text(found.image.id)
        yield _tar(found.scratch, ".")

    def close(self) -> None:
        """Erase the volumes' and containers' files."""
        self._erase()

    # Inside

    def _enter(self, method: str) -> None:
        with self._lock:
            if self._faults[method]:
                raise self._faults[method].pop(0)

    def _folder(self) -> Path:
        folder = self._scratch / f"{next(self._serial)}"
        folder.mkdir()
        return folder

    def _keep(self, name: str, program: FakeProgram, facts: ImageFacts) -> str:
        held = self._images.get(facts.id, facts)
        tags = held.repo_tags if name == facts.id or name in held.repo_tags else (*held.repo_tags, name)
        self._images[facts.id] = replace(held, repo_tags=tags)
        self._programs[facts.id] = program
        self._names[name] = facts.id
        return facts.id

    def _image(self, reference: str, phase: RefusalPhase) -> ImageFacts:
        image_id = self._names.get(_named(reference), reference)
        for facts in self._images.values():
            if image_id == facts.id or reference in facts.repo_digests:
                return facts
        raise ImageMissing(phase, f"No such image: {reference}", status=404)

    def _find(self, container: str) -> _Container | None:
        for found in self._containers.values():
            if container in (found.id, found.spec.name):
                return found
        return None

    def _container(self, container: str, phase: RefusalPhase) -> _Container:
        found = self._find(container)
        if found is None:
            raise EngineRefusal(phase, f"No such container: {container}", status=404)
        return found

    def _check(self, spec: ContainerSpec) -> None:
        if any(spec.name == other.spec.name for other in self._containers.values()):
            message = f"the container name {spec.name!r} is already in use"
            raise EngineRefusal(RefusalPhase.CREATE, message, status=409)
        problem = ""
        for bind in spec.binds:
            if not bind.source.exists():
                problem = f"bind source path does not exist: {bind.source}"
        for mount in spec.volumes:
            if mount.volume not in self._volumes:
                problem = f"no such volume: {mount.volume}"
        if spec.memory is not None and spec.memory < _LEAST_MEMORY:
            problem = "Minimum memory limit allowed is 6MB"
        if spec.cpuset is None and spec.cpus is not None and not 0.01 <= spec.cpus <= self.engine_facts.cpus:
            problem = f"Range of CPUs is from 0.01 to {self.engine_facts.cpus}.00"
        if problem:
            raise EngineRefusal(RefusalPhase.CREATE, problem, status=400)

    def _roots(self, spec: ContainerSpec, scratch: Path) -> dict[str, Path]:
        roots = {bind.target: bind.source for bind in spec.binds}
        roots.update({mount.target: self._volumes[mount.volume][1] for mount in spec.volumes})
        for number, mount in enumerate(spec.tmpfs):
            roots[mount.target] = scratch / f"tmpfs-{number}"
            roots[mount.target].mkdir()
        return roots

    def _clear_idle_volumes(self, starting: _Container) -> None:
        """Empty the volumes no container holds: in memory, they vanished when the last one ended."""
        for mount in starting.spec.volumes:
            if any(self._runs(other) and _holds(other, mount.volume) for other in self._containers.values()):
                continue
            folder = self._volumes[mount.volume][1]
            shutil.rmtree(folder)
            folder.mkdir()

    def _runs(self, container: _Container) -> bool:
        return container.started is not None and self._clock.now() < container.finished

    def _end(self, container: _Container, *, code: int) -> None:
        if self._runs(container):
            container.finished = self._clock.now()
            container.end = FakeExit(code=code)
            if container.streams is not None:
                container.streams.end()

    def _facts(self, container: _Container) -> ContainerFacts:
        runs, started = self._runs(container), container.started
        ended = None
        if started is not None and not runs:
            ended = Exit(
                code=container.end.code,
                oom_killed=container.end.oom_killed,
                seconds=container.finished - started,
            )
        return ContainerFacts(
            id=container.id,
            name=container.spec.name,
            state="running" if runs else "exited" if ended else "created",
            pid=1 if runs else 0,
            exit=ended,
            labels={**container.image.labels, **container.spec.labels},
            limits=_limits(container.spec),
        )


def _nothing(_: FakeBox) -> int:
    """A program that does nothing."""
    return 0


def _named(reference: str) -> str:
    repository, tag, digest = split_reference(reference)
    if digest or repository == "sha256":
        return reference
    return f"{repository}:{tag or 'latest'}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _describe(name: str, overrides: ImageOverrides) -> ImageFacts:
    own = ImageFacts(id=f"sha256:{_digest(name)}", size=1 << 20, command=("run",), architecture="amd64")
    return replace(own, **overrides)


def _own_program(image: ImageFacts) -> dict[str, FileFacts]:
    """The file an image starts, where it names one: a program that needs nothing, on the usual search path."""
    words = image.entrypoint or image.command
    return {posixpath.join("/usr/bin", words[0]): static_program(image.architecture)} if words else {}


def _arguments(spec: ContainerSpec, image: ImageFacts) -> tuple[str, ...]:
    if spec.command is not None:
        return spec.command
    # An entrypoint of one's own takes the image's command away, as Docker has it.
    return image.command if spec.entrypoint is None else ()


def _environment(listed: Iterable[str]) -> dict[str, str]:
    return {name: value for name, _, value in (entry.partition("=") for entry in listed)}


def _pairs(changes: Iterable[str], instruction: str) -> Iterator[tuple[str, str]]:
    for change in changes:
        if change.startswith(instruction):
            name, _, value = change.removeprefix(instruction).partition("=")
            yield name, value


def _holds(container: _Container, volume: str) -> bool:
    return any(mount.volume == volume for mount in container.spec.volumes)


def _last(log: bytes, count: int) -> bytes:
    return log[-count:] if count else b""


def _member(tar: tarfile.TarFile, name: str) -> io.BufferedReader | io.BytesIO:
    found = tar.extractfile(name)
    if found is None:
        raise KeyError(f"{name} is not a file")
    return io.BytesIO(found.read())


def _loaded(tar: tarfile.TarFile, entry: object) -> tuple[tuple[str, ...], ImageFacts]:
    """The tags and the description of one image of a ``docker save`` archive."""
    if not isinstance(entry, dict):
        raise ValueError("manifest.json does not list images")  # noqa: TRY004  # a broken archive, not a caller's slip
    text = _member(tar, entry["Config"]).read()
    description = json.loads(text)
    config = description.get("config") or {}
    facts = ImageFacts(
        id=f"sha256:{hashlib.sha256(text).hexdigest()}",
        os=description.get("os", "linux"),
        architecture=description.get("architecture", "amd64"),
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        environment=tuple(config.get("Env") or ()),
        user=config.get("User", ""),
        working_dir=config.get("WorkingDir", ""),
        volumes=tuple(config.get("Volumes") or ()),
        labels=dict(config.get("Labels") or {}),
    )
    return tuple(entry.get("RepoTags") or ()), facts


def _tar(root: Path, name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(root, arcname=name)
    return buffer.getvalue()


def _limits(spec: ContainerSpec) -> dict[str, int | float | str | bool]:
    asked: dict[str, int | float | str | bool | None] = {
        "memory": spec.memory,
        "memory_swap": spec.memory,
        "shm": spec.shm,
        "pids": spec.pids,
        "cpus": spec.cpus if spec.cpuset is None else None,
        "cpuset": spec.cpuset,
        "open_files": spec.open_files,
        "file_size": spec.file_size,
        "network": spec.network,
        "user": spec.user or None,
        "cap_drop": ",".join(sorted(spec.cap_drop)) or None,
        "cap_add": ",".join(sorted(spec.cap_add)) or None,
        "runtime": spec.runtime or "runc",
        "gpus": ",".join((*(spec.gpus.device_ids if spec.gpus else ()), *spec.cdi_devices)) or None,
        "read_only": spec.read_only,
        "init": spec.init,
        "privileged": False,
        "no_new_privileges": "no-new-privileges:true" in spec.security_opt,
    }
    return {name: value for name, value in asked.items() if value is not None}
