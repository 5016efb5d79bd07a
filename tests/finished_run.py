"""A finished run with a file of every kind, made by hand: no container was run for it."""

import shutil
from dataclasses import replace
from pathlib import Path

from runner.catalog import find_challenge, load_challenge
from runner.dataset import find_cases
from runner.engine import ImageFacts
from runner.engine.fake import FAKE_FACTS
from runner.images import PinnedImage, SourceKind
from runner.judge import CaseOutcome
from runner.pipeline.container_scores import ContainerScores
from runner.pipeline.host import HostFacts
from runner.pipeline.record import CaseRecord, RunRecord
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder, read_value, write_value, write_whole
from runner.submissions import Submission
from runner.verdict import Verdict, VerdictWord

IMAGE = "sha256:" + "a" * 64
CASES = ("01", "02")
_BELOW = "submissions/team-1"
STEP_OF = {
    "run.json": "settings",
    "private/seed": "settings",
    "private/hashes.json": "settings",
    "challenge/challenge.yaml": "challenge",
    "challenge/scorer.py": "challenge",
    "challenge/generate.py": "challenge",
    f"{_BELOW}/image.json": "image",
    f"{_BELOW}/preflight.json": "preflight",
    f"{_BELOW}/steps/causality.json": "causality",
    f"{_BELOW}/steps/scores.container.json": "scores",
    **{
        f"{_BELOW}/steps/{case}/{name}": step
        for case in CASES
        for name, step in {
            "outcome.json": "outcomes",
            "full/attempt-1/job.json": "attempts",
            "full/attempt-1/result.json": "attempts",
            "full/attempt-1/log.txt": "attempts",
            "full/attempt-1/timing.csv": "attempts",
            "full/attempt-1/predictions/prediction.csv": "predictions",
        }.items()
    },
    f"{_BELOW}/steps/01/cut-0012/attempt-2/predictions/deep/prediction.csv": "predictions",
    "scores.csv": "scores",
    "latency.csv": "scores",
    "leaderboard.csv": "leaderboard",
    "leaderboard.json": "leaderboard",
    "ensembles.csv": "ensembles",
    "ensembles.json": "ensembles",
    "report.organiser.html": "report",
    "notes.txt": "other",
}
"""Every file of the run, with the step it belongs to."""


def make_run(folder: Path, *, kind: SourceKind = SourceKind.REGISTRY) -> RunFolder:
    """Write the run to ``folder/run``, and its data to ``folder/data``; its workspace is ``folder/work``.

    Args:
        folder: An empty folder.
        kind: Where its only submission's image came from.
    """
    loaded = load_challenge(find_challenge("pitvis2023"))
    data = folder / "data"
    for name in ("inputs", "references"):
        shutil.copytree(loaded.folder / "sample" / name, data / name)
    run = RunFolder(root=folder / "run")
    run.challenge.mkdir(parents=True)
    for name in ("challenge.yaml", "scorer.py", "generate.py"):
        shutil.copyfile(loaded.folder / name, run.challenge / name)
    hashes = DataHashes(cache=run.private / "hashes.json")
    cases = tuple(
        CaseRecord(
            name=case.name, frames=len(case.frames), media_seconds=case.media_seconds, inputs=hashes.inputs(case),
            references={task: hashes.tree(path) for task, path in case.references.items()},
        )
        for case in find_cases(data, loaded.challenge)
    )  # fmt: skip
    hashes.save()
    assert tuple(case.name for case in cases) == CASES
    host = HostFacts(engine=FAKE_FACTS, output="sized volumes", gpus=())
    record = RunRecord(
        proctor="0", challenge=loaded.challenge.name, challenge_version=loaded.challenge.version,
        challenge_digest=loaded.digest, data=data, cases=cases, base=folder, sources={}, allow_cpu=True, host=host,
        submissions=(Submission(submission="team-1", team="T", image="x:1", tasks=("steps",)),),
        settings=Settings(workspace=folder / "work"), started="2023-01-01T00:00:00+00:00",
    )  # fmt: skip
    write_value(run.record, record)
    origin = f"registry/x@{IMAGE}" if kind is SourceKind.REGISTRY else ""
    image = PinnedImage(source="x:1", kind=kind, id=IMAGE, digests=(), facts=ImageFacts(id=IMAGE), origin=origin)
    write_value(run.image("team-1"), image)
    write_value(run.container_scores("team-1", "steps"), ContainerScores(digest="d", image=IMAGE, scores={}))
    for case in CASES:
        outcome = CaseOutcome(
            submission="team-1", task="steps", case=case, digest="d", attempt=1, seconds=1.0, limit=2.0,
            verdict=Verdict(word=VerdictWord.ACCEPTED, sentence="fine"),
        )  # fmt: skip
        write_value(run.outcome("team-1", "steps", case), outcome)
    for path in STEP_OF:
        if not (run.root / path).exists():
            write_whole(run.root / path, f"what {path} holds\n".encode())
    return run


def leave_pending(run: RunFolder, case: str) -> None:
    """Let the host have failed on a case."""
    path = run.outcome("team-1", "steps", case)
    verdict = Verdict(word=VerdictWord.HOST_FAULT, sentence="the host failed")
    write_value(path, replace(read_value(path, CaseOutcome), verdict=verdict))
