"""What a run is, written at its start so that every later step and a resume need no other argument."""

import datetime as dt
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner import __version__
from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.dataset import Case, find_cases
from runner.errors import UsageError
from runner.images import BuildNetwork
from runner.pipeline.events import Observer, Step
from runner.pipeline.host import HostFacts
from runner.provenance import DataHashes
from runner.settings import Settings, SettingsWithSources, load_settings
from runner.store import RunFolder, read_value, write_value, write_whole
from runner.submissions import Submission, read_submissions


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """A case as it was at the start; hashes are SHA-256, of references by task."""

    name: str
    frames: int
    media_seconds: float
    inputs: str
    references: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What a run is.

    Attributes:
        proctor: Version of this program.
        challenge: Name.
        challenge_version: As the organisers number it.
        challenge_digest: Of challenge.yaml and the code beside it.
        data: The data folder.
        cases: Its cases.
        submissions: Who takes part.
        base: Folder that relative paths of image archives start from.
        settings: This host's.
        sources: Where each setting that is not a default came from.
        allow_cpu: Go on without the GPU the challenge asks for.
        build_untrusted: Build submissions that are folders.
        build_network: What such a build may reach.
        files_only: Predictions were handed in as files, and the data may hold references alone.
        for_ensemble: Its predictions are kept and scored for ensembles to be fitted on; nobody is checked for causality
            or ranked.
        started: When, UTC.
        host: What it ran on last; None before it ran.
    """

    proctor: str
    challenge: str
    challenge_version: str
    challenge_digest: str
    data: Path
    cases: tuple[CaseRecord, ...]
    submissions: tuple[Submission, ...]
    base: Path
    settings: Settings
    sources: Mapping[str, str]
    allow_cpu: bool
    started: str
    host: HostFacts | None = None
    build_untrusted: bool = False
    build_network: BuildNetwork = BuildNetwork.DEFAULT
    files_only: bool = False
    for_ensemble: bool = False


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """What ``proctor evaluate`` is asked for."""

    challenge: str
    data: Path
    submissions: Path
    out: Path
    settings_file: Path | None = None
    flags: Mapping[str, str]
    allow_cpu: bool = False
    seed: int | None = None
    build_untrusted: bool = False
    build_network: BuildNetwork = BuildNetwork.DEFAULT
    for_ensemble: bool = False


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A request that was read and found sound; nothing has been written yet."""

    challenge: LoadedChallenge
    cases: tuple[Case, ...]
    submissions: tuple[Submission, ...]
    settings: SettingsWithSources


def check_request(request: EvaluateRequest) -> Checked:
    """Read everything a request names.

    Raises:
        UsageError: Something is wrong; nothing has been written.
    """
    challenge = load_challenge(find_challenge(request.challenge))
    return Checked(
        challenge=challenge,
        settings=load_settings(request.settings_file, request.flags),
        cases=find_cases(request.data, challenge.challenge),
        submissions=read_submissions(
            request.submissions, tuple(challenge.challenge.tasks), stream=challenge.challenge.invocation.stream
        ),
    )


def write_record(run: RunFolder, request: EvaluateRequest, checked: Checked, observe: Observer) -> RunRecord:
    """Write what the run is; a run folder of the same challenge is taken up again.

    Raises:
        UsageError: The folder holds a run of another challenge, or something else.
    """
    _check_folder(run, checked.challenge)
    _check_purpose(run, request)
    own = checked.challenge
    observe(Step(text=f"challenge {own.challenge.name} {own.challenge.version}, digest {own.digest[:12]}"))
    observe(Step(text=f"hashing {len(checked.cases)} cases"))
    cases = _hashed(run, checked.cases)
    _write_seed(run, request.seed)
    _copy_challenge(run, checked.challenge)
    challenge = checked.challenge.challenge
    record = RunRecord(
        proctor=__version__, challenge=challenge.name, challenge_version=challenge.version,
        challenge_digest=checked.challenge.digest, data=request.data.resolve(), cases=cases,
        submissions=checked.submissions, base=request.submissions.resolve().parent,
        settings=checked.settings.settings, sources=checked.settings.sources, allow_cpu=request.allow_cpu,
        started=_now(), build_untrusted=request.build_untrusted, build_network=request.build_network,
        for_ensemble=request.for_ensemble,
    )  # fmt: skip
    write_value(run.record, record)
    return record


def record_of_files(
    run: RunFolder, loaded: LoadedChallenge, data: Path, cases: tuple[Case, ...], submissions: tuple[Submission, ...]
) -> RunRecord:
    """Write what a run of handed-in files is.

    Raises:
        UsageError: The folder is not empty.
    """
    _check_folder(run, loaded)
    _copy_challenge(run, loaded)
    found = load_settings(None, {})
    record = RunRecord(
        proctor=__version__, challenge=loaded.challenge.name, challenge_version=loaded.challenge.version,
        challenge_digest=loaded.digest, data=data.resolve(), cases=_hashed(run, cases), submissions=submissions,
        base=Path.cwd(), settings=found.settings, sources=found.sources, allow_cpu=True, started=_now(),
        files_only=True,
    )  # fmt: skip
    write_value(run.record, record)
    return record


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def _hashed(run: RunFolder, cases: tuple[Case, ...]) -> tuple[CaseRecord, ...]:
    run.private.mkdir(mode=0o700, exist_ok=True)
    hashes = DataHashes(cache=run.private / "hashes.json")
    records = tuple(
        CaseRecord(
            name=case.name,
            frames=len(case.frames),
            media_seconds=case.media_seconds,
            inputs=hashes.inputs(case),
            references={task: hashes.tree(path) for task, path in case.references.items()},
        )
        for case in cases
    )
    hashes.save()
    return records


def _check_folder(run: RunFolder, challenge: LoadedChallenge) -> None:
    if not run.record.exists():
        strangers = sorted(p.name for p in run.root.iterdir() if p.name not in (".lock", "private", "challenge"))
        if strangers:
            raise UsageError(
                f"the folder is not empty and holds no run: {strangers[0]!r} is there",
                where=str(run.root),
                remedy="give a new or empty folder with --out",
            )
        return
    before = read_value(run.record, RunRecord)
    if (before.challenge, before.challenge_digest) != (challenge.challenge.name, challenge.digest):
        raise UsageError(
            f"the run folder belongs to challenge {before.challenge!r} version {before.challenge_version} "
            f"({before.challenge_digest[:12]}), not to {challenge.challenge.name!r} version "
            f"{challenge.challenge.version} ({challenge.digest[:12]})",
            where=str(run.root),
            remedy="give another folder with --out",
        )


def _check_purpose(run: RunFolder, request: EvaluateRequest) -> None:
    """A run that ranks does not become one to fit on, nor the reverse."""
    before = read_value(run.record, RunRecord).for_ensemble if run.record.exists() else request.for_ensemble
    if before != request.for_ensemble:
        was, now = ("with", "without") if before else ("without", "with")
        raise UsageError(
            f"the run began {was} --for-ensemble, and cannot go on {now} it",
            where=str(run.root),
            remedy="give another folder with --out",
        )


def _write_seed(run: RunFolder, seed: int | None) -> None:
    path = run.private / "seed"
    if seed is not None:
        write_whole(path, f"{seed}\n".encode())
    elif not path.exists():
        write_whole(path, f"{secrets.randbits(64)}\n".encode())


def read_seed(run: RunFolder) -> int:
    """The organisers' secret seed.

    Raises:
        UsageError: It is missing or no number.
    """
    path = run.private / "seed"
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise UsageError(
            "the run's seed is missing or damaged", where=str(path), remedy="write a whole number into it"
        ) from error


def _copy_challenge(run: RunFolder, challenge: LoadedChallenge) -> None:
    run.challenge.mkdir(exist_ok=True)
    for path in sorted(challenge.folder.iterdir()):
        if path.name == "challenge.yaml" or path.suffix == ".py":
            shutil.copyfile(path, run.challenge / path.name)
    for image in {task.scorer_image.image for task in challenge.challenge.tasks.values() if task.scorer_image}:
        _copy_archive(challenge.folder / image, run.challenge / image)


def _copy_archive(source: Path, target: Path) -> None:
    """Keep a scorer's image that lies beside challenge.yaml, so that a run can be scored again without that folder."""
    if source == target or not source.is_file():
        return  # an absolute path, or a reference
    facts, kept = source.stat(), target.stat() if target.is_file() else None
    if kept is None or (facts.st_size, facts.st_mtime_ns) != (kept.st_size, kept.st_mtime_ns):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def read_record(run: RunFolder) -> RunRecord:
    """Read what a run is.

    Raises:
        UsageError: It is not a run folder.
    """
    if not run.record.is_file():
        raise UsageError(
            f"{str(run.root)!r} is not a run folder: it has no run.json",
            remedy="give the folder that --out of proctor evaluate named",
        )
    return read_value(run.record, RunRecord)
