"""Hints that real images provoke: each program gets its hint first, and nobody else does."""

import contextlib
import functools
import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import numpy as np
import pytest
from PIL import Image

from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.challenge import LeakPolicy, Limits
from runner.confine import Confine
from runner.dataset import Case, frames_case
from runner.engine import Engine
from runner.images import PinnedImage, SourceKind
from runner.pipeline.attempts import Judged, job_folder, job_of, run_attempt
from runner.pipeline.cases import CaseRun, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.host import open_bench
from runner.pipeline.looking_ahead import check_entry, with_leaks
from runner.plan import Shared
from runner.preflight import preflight
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder
from runner.submissions import Submission
from runner.verdict import VerdictWord
from tests.engine.conftest import BASE, Images, leftovers
from tests.hints.programs import FILES, PROGRAMS, RIGHT, ROOM, SURVIVES, UNRELATED, Program

pytestmark = [pytest.mark.engine, pytest.mark.root]

FRAMES = 12
CASE = "hidden-case-0815"
STEPS = Shared(names=("steps",), inputs=("frames",), files={"steps": "{case}.csv"})
DOCKERFILE = f"""
FROM {BASE}
COPY programs /programs
RUN chmod -R a+rX /programs && chmod a+x /programs/foreign /programs/*.sh && chmod 600 /programs/secret.pt \
    && rm -f /usr/lib/x86_64-linux-gnu/libgomp.so.1*
CMD ["python3"]
"""
_named = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.slug)


def _build(engine: Engine, folder: Path) -> PinnedImage:
    programs = folder / "programs"
    programs.mkdir(parents=True)
    sources = {program.slug: program.source for program in PROGRAMS if program.source}
    for name, source in {**sources, "right": RIGHT, "survives": SURVIVES, "unrelated": UNRELATED}.items():
        (programs / name).mkdir()  # of its own: a program named like a module would hide it from the others
        (programs / name / "predict.py").write_text(source)
    for name, content in FILES.items():
        (programs / name).write_bytes(content)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    reference = f"proctor-test/hints-{os.getpid()}:1"
    engine.build(folder, reference=reference, arguments={}, deadline=300, log=lambda _: None)
    facts = engine.image(reference)
    return PinnedImage(source=reference, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)


def _case(data: Path, case: str = CASE, *, seed: int = 0) -> Case:
    folder = data / "inputs" / case
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    names = tuple(f"{number:05d}.png" for number in range(FRAMES))
    for name in names:
        Image.new("RGB", (8, 8), (int(rng.integers(256)), 0, 0)).save(folder / name)
    reference = data / "references" / f"{case}.csv"
    reference.parent.mkdir()
    reference.write_text("int_time,int_step\n" + "".join(f"{number},1\n" for number in range(FRAMES)))
    return frames_case(case, folder, names, fps=1.0, references={"steps": reference})


@dataclass
class Room:
    """One host, one hidden case, one image with every program."""

    context: Context
    image: PinnedImage
    count: int = 0
    log: str = ""

    def challenge(self, command: tuple[str, ...], limits: Mapping[str, object]) -> LoadedChallenge:
        """The challenge whose arguments start a program."""
        loaded = self.context.loaded
        arguments = (*command, "{input}", "{output}.csv")
        changed = {
            "invocation": loaded.challenge.invocation.model_copy(update={"args": arguments}),
            "limits": Limits.model_validate({**ROOM, **limits}),
        }
        return replace(loaded, challenge=loaded.challenge.model_copy(update=changed))

    def run(self, command: tuple[str, ...], limits: Mapping[str, object]) -> Judged:
        """Run a program once, as a submission of its own; what it amounts to."""
        self.count += 1
        context = replace(self.context, loaded=self.challenge(command, limits))
        submission = Submission(submission=f"program {self.count}", team="a", image=self.image.source)
        entry = Entry(submission=submission, shared=STEPS, image=self.image)
        job = job_of(context, entry, context.cases[CASE])
        attempt = run_attempt(context, entry, job)
        self.log = (job_folder(context, job) / f"attempt-{attempt.number}" / "log.txt").read_bytes().decode()
        return attempt.of("steps", CASE)


def _hidden() -> LoadedChallenge:
    loaded = load_challenge(find_challenge("pitvis2023"))
    assert loaded.challenge.data == "hidden"
    return loaded


@pytest.fixture(scope="module")
def room(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    folder = tmp_path_factory.mktemp("hints")
    case = _case(folder / "data")
    with contextlib.ExitStack() as stack:
        image = _build(engine, folder / "image")
        stack.callback(engine.remove_image, image.source)
        settings = Settings(workspace=folder / "work")
        opened = functools.partial(open_bench, observe=lambda _: None)
        bench, host = stack.enter_context(opened(engine, settings, stop=threading.Event()))
        confine = stack.enter_context(Confine())
        yield Room(
            context=Context(
                run=RunFolder(root=folder / "run"), loaded=_hidden(), cases={CASE: case},
                input_hashes={CASE: "0" * 64}, settings=settings, seed=0, bench=bench, host=host, confine=confine,
                observe=lambda _: None, hashes=DataHashes(cache=folder / "hashes.json"),
            ),
            image=image,
        )  # fmt: skip


def _slugs(attempt: Judged) -> tuple[str, ...]:
    return tuple(hint.slug for hint in attempt.verdict.hints)


@_named
def test_a_program_gets_its_hint_first_and_no_strange_one(room: Room, program: Program) -> None:
    attempt = room.run(program.command, program.limits)
    seen = f"{attempt.verdict.sentence}\n{room.log[-2000:]}"
    assert attempt.verdict.word is program.word, seen
    assert _slugs(attempt) == (program.slug, *program.then), seen


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.survives], ids=lambda program: program.slug)
def test_the_same_act_in_a_run_that_ends_well_gets_no_hint(room: Room, program: Program) -> None:
    attempt = room.run(("python3", "/programs/survives/predict.py", *program.command), program.limits)
    assert attempt.verdict.accepted, attempt.verdict.sentence
    assert _slugs(attempt) == ()


@pytest.mark.parametrize("limits", [{}, {"run_time": {"fixed": "1 s"}}, {"gpus": 1}], ids=str)
def test_a_right_run_and_an_unrelated_failure_get_no_hint(room: Room, limits: Mapping[str, object]) -> None:
    right = room.run(("python3", "/programs/right/predict.py"), limits)
    assert right.verdict.accepted, right.verdict.sentence
    assert _slugs(right) == ()
    unrelated = room.run(("python3", "/programs/unrelated/predict.py"), limits)
    assert unrelated.verdict.word == "crashed"
    assert _slugs(unrelated) == ()


# Failures that need an image, or a run, of their own.


def _own_image(engine: Engine, name: str) -> PinnedImage:
    facts = engine.image(name)
    return PinnedImage(source=name, kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)


def _settled(room: Room, image: PinnedImage) -> tuple[VerdictWord, tuple[str, ...]]:
    """The verdict of an image that starts right.py, preflight included, and its hints."""
    context = replace(room.context, loaded=room.challenge(("python3", "/programs/right/predict.py"), {}))
    submission = Submission(submission=image.source, team="a", image=image.source)
    findings = preflight(image.facts, context.challenge)
    entry = Entry(submission=submission, shared=STEPS, image=image, findings=findings)
    (outcome,) = settle_run(context, CaseRun(entry=entry, cases=(context.cases[CASE],)))
    return outcome.verdict.word, tuple(hint.slug for hint in outcome.verdict.hints)


def _tar(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def arm_image(engine: Engine) -> Iterator[PinnedImage]:
    """An image for 64-bit ARM, loaded as docker save writes one."""
    name = f"proctor-test/hints-arm-{os.getpid()}:1"
    layer = _tar({"empty": b""})
    layers = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    config = {"architecture": "arm64", "os": "linux", "config": {"Cmd": ["python3"]}, "rootfs": layers}
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    archive = {"config.json": json.dumps(config).encode(), "layer.tar": layer}
    with contextlib.closing(docker.APIClient(version="auto")) as client:
        loaded = client.load_image(_tar({**archive, "manifest.json": json.dumps(manifest).encode()}))  # type: ignore[no-untyped-call]
        assert [line for line in loaded if "error" in line] == []
    yield _own_image(engine, name)
    engine.remove_image(name)


def test_an_image_for_another_platform(room: Room, arm_image: PinnedImage) -> None:
    assert arm_image.facts.architecture == "arm64"
    assert _settled(room, arm_image) == (VerdictWord.BAD_IMAGE, ("wrong-architecture",))
    assert _settled(room, room.image) == (VerdictWord.ACCEPTED, ())


def test_a_file_where_a_folder_is_due(room: Room, images: Images, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {BASE}\nRUN mkdir -p /data && touch /data/outputs\n")
    image = _own_image(images.engine, images.folder("hints-file-for-folder", tmp_path))
    assert _settled(room, image) == (VerdictWord.BAD_IMAGE, ("file-where-a-folder-is-due",))


CAUSAL = """
import pathlib, sys
from PIL import Image
frames = sorted(pathlib.Path(sys.argv[-2]).glob("*.png"))
seen = [Image.open(frame).getpixel((0, 0))[0] for frame in frames]
labels = [LABEL for t in range(len(seen))]
rows = "".join(f"{t},{label}\\n" for t, label in enumerate(labels))
pathlib.Path(sys.argv[-1]).write_text("int_time,int_step\\n" + rows)
"""


@pytest.mark.parametrize(
    ("label", "slugs"),
    [
        ("1 + seen[min(t + 1, len(seen) - 1)] % 7", ("looks-ahead",)),
        ("1 + (len(seen) + t) % 7", ("length-dependent",)),
        ("1 + seen[t] % 7", ()),
    ],
)  # fmt: skip
def test_a_method_that_is_not_causal(
    room: Room, images: Images, tmp_path: Path, label: str, slugs: tuple[str, ...]
) -> None:
    name = f"hints-{slugs[0] if slugs else 'causal'}"
    image = _own_image(images.engine, images.script(name, tmp_path / "image", CAUSAL.replace("LABEL", label)))
    cases = {case.name: case for case in (_case(tmp_path / "1", "1", seed=1), _case(tmp_path / "2", "2", seed=2))}
    loaded = room.challenge((), {})
    rule = loaded.challenge.causality.model_copy(update={"length_dependence": LeakPolicy.REFUSE, "cuts": 4})
    context = replace(
        room.context, cases=cases, input_hashes={name: name * 64 for name in cases},
        loaded=replace(loaded, challenge=loaded.challenge.model_copy(update={"causality": rule})),
    )  # fmt: skip
    submission = Submission(submission=name, team="a", image=image.source)
    entry = Entry(submission=submission, shared=STEPS, image=image)
    outcomes = {case: settle_run(context, CaseRun(entry=entry, cases=(cases[case],)))[0] for case in cases}
    judged = with_leaks(rule, check_entry(context, entry, "steps", outcomes), outcomes)
    assert {outcome.verdict.word for outcome in outcomes.values()} == {VerdictWord.ACCEPTED}
    shown = {tuple(hint.slug for hint in outcome.verdict.hints) for outcome in judged.values()} - {()}
    assert shown == ({slugs} if slugs else set())


def test_nothing_of_the_hints_is_left(room: Room, engine: Engine) -> None:
    room.context.bench.cleaner.settle()  # type: ignore[union-attr]
    assert leftovers(engine) == []
