"""Makes images of a few files and runs them on one public-looking case, as ``check`` and ``evaluate`` do."""

import contextlib
import itertools
import os
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from PIL import Image

from runner.catalog import find_challenge, load_challenge
from runner.challenge import Challenge
from runner.confine import Confine
from runner.dataset import Case, frames_case
from runner.engine import Engine
from runner.images import PinnedImage, SourceKind
from runner.pipeline.cases import CaseRun, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.host import open_bench
from runner.pipeline.preflights import look_into
from runner.plan import shared_runs
from runner.policy import PolicyName
from runner.preflight import PreflightFinding
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder
from runner.submissions import Submission
from runner.verdict import Verdict

BASE = "proctor-base:1"
FRAMES = 4
CASE = "case-1"
ANSWER = "int_time,int_step\n" + "".join(f"{frame},1\n" for frame in range(FRAMES))

PREDICT = """
import pathlib, sys
frames = sorted(pathlib.Path(sys.argv[-2]).iterdir())
rows = "".join(f"{number},1\\n" for number in range(len(frames)))
pathlib.Path(sys.argv[-1]).write_text("int_time,int_step\\n" + rows)
"""
SHELL = """
n=0
echo int_time,int_step > "$2"
for frame in "$1"/*; do echo "$n,1" >> "$2"; n=$((n + 1)); done
"""
_LIMITS = {"run_time": {"fixed": 20}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1, "tmp": "16 MiB", "gpus": 0}


def static_program(code: bytes) -> bytes:
    """An x86-64 program of raw machine code, without loader, libraries or sections."""
    size = 120 + len(code)
    start = 0x400000
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, start + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, size, size, 4096) + code


def writes_answer() -> bytes:
    """A static program that writes the answer to the file its second argument names."""
    open_file = bytes.fromhex("488b7c2418 b802000000 be41020000 baa4010000 0f05 89c7 b801000000")
    leave = bytes.fromhex("0f05 31ff b83c000000 0f05")
    length = b"\xba" + struct.pack("<I", len(ANSWER))
    address = b"\x48\x8d\x35" + struct.pack("<i", len(length) + len(leave))
    return static_program(open_file + address + length + leave + ANSWER.encode())


def starts_the_rest() -> bytes:
    """A static program that becomes what stands behind its first argument, as an image's own init does."""
    return static_program(
        bytes.fromhex("488b7c2418 488d742418 488b0424 488d54c410 b83b000000 0f05 bf7f000000 b83c000000 0f05")
    )


@dataclass(frozen=True, kw_only=True)
class Put:
    """A file of an image: its content, or where it links to."""

    content: str | bytes = ""
    mode: int = 0o644
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Dish:
    """An image to be made.

    Attributes:
        lines: Of its Dockerfile, behind FROM and the COPY of its files.
        files: By path without its first slash.
        base: What it is made from.
    """

    lines: tuple[str, ...]
    files: Mapping[str, Put] = field(default_factory=dict)
    base: str = BASE


@dataclass
class Kitchen:
    """A host with one case, where images are made, looked into and run.

    Attributes:
        contexts: By policy.
        folder: Where Dockerfiles are written.
    """

    engine: Engine
    contexts: Mapping[PolicyName, Context]
    folder: Path
    made: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def cook(self, dish: Dish) -> PinnedImage:
        """Build an image; gone at the end."""
        folder = self.folder / f"image-{next(self.numbers)}"
        (folder / "root").mkdir(parents=True)
        for name, put in dish.files.items():
            path = folder / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if put.link:
                path.symlink_to(put.link)
                continue
            path.write_bytes(put.content.encode() if isinstance(put.content, str) else put.content)
            path.chmod(put.mode)
        copy = ("COPY root/ /",) if dish.files else ()
        (folder / "Dockerfile").write_text("\n".join((f"FROM {dish.base}", *copy, *dish.lines, "")))
        reference = f"proctor-test/dish-{os.getpid()}-{folder.name}:1"
        image = self.engine.build(folder, reference=reference, arguments={}, deadline=120, log=lambda _: None)
        self.made.append(reference)
        facts = self.engine.image(image)
        return PinnedImage(source=reference, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)

    def look(self, image: PinnedImage, policy: PolicyName = PolicyName.STRICT) -> tuple[PreflightFinding, ...]:
        """What the preflight finds in an image."""
        context = self.contexts[policy]
        return look_into(context.bench, context.host, image, context.challenge, context.settings)

    def run(
        self,
        image: PinnedImage,
        *,
        policy: PolicyName = PolicyName.STRICT,
        findings: tuple[PreflightFinding, ...] = (),
    ) -> Verdict:
        """Run an image on the case, whatever the preflight would say but for ``findings``."""
        context = self.contexts[policy]
        submission = Submission(submission=f"dish {next(self.numbers)}", team="kitchen", image=image.source)
        (shared,) = shared_runs(context.challenge, ("steps",))
        entry = Entry(submission=submission, shared=shared, image=image, findings=findings)
        (outcome,) = settle_run(context, CaseRun(entry=entry, cases=(context.cases[CASE],)))
        assert context.bench.cleaner is not None
        context.bench.cleaner.settle()
        return outcome.verdict


def _case(data: Path) -> Case:
    folder = data / "inputs" / CASE
    folder.mkdir(parents=True)
    names = tuple(f"{number:05d}.png" for number in range(FRAMES))
    for name in names:
        Image.new("RGB", (4, 4)).save(folder / name)
    reference = data / "references" / f"{CASE}.csv"
    reference.parent.mkdir()
    reference.write_text(ANSWER)
    return frames_case(CASE, folder, names, fps=1.0, references={"steps": reference})


def _challenge(challenge: Challenge, policy: PolicyName) -> Challenge:
    limits = type(challenge.limits).model_validate(_LIMITS)
    return challenge.model_copy(update={"limits": limits, "policy": policy})


@contextlib.contextmanager
def open_kitchen(engine: Engine, folder: Path) -> Iterator[Kitchen]:
    """Make a host ready; what was made is gone at the end."""
    case, loaded = _case(folder / "data"), load_challenge(find_challenge("pitvis2023"))
    with contextlib.ExitStack() as stack:
        confine = stack.enter_context(Confine())
        contexts = {}
        for policy in PolicyName:
            settings = Settings(workspace=folder / "work" / policy.value, host_retries=0)
            bench, host = stack.enter_context(
                open_bench(engine, settings, stop=threading.Event(), observe=lambda _: None, policy=policy)
            )
            contexts[policy] = Context(
                run=RunFolder(root=folder / f"run-{policy.value}"), cases={CASE: case}, settings=settings, seed=0,
                loaded=replace(loaded, challenge=_challenge(loaded.challenge, policy)), bench=bench, host=host,
                input_hashes={CASE: "0" * 64}, confine=confine, observe=lambda _: None,
                hashes=DataHashes(cache=folder / "hashes.json"),
            )  # fmt: skip
        kitchen = Kitchen(engine=engine, contexts=contexts, folder=folder)
        yield kitchen
        for reference in kitchen.made:
            engine.remove_image(reference)
