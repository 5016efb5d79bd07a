"""Whether a challenge makes sense, shown on its own sample.

The scorer is given predictions made of the references. What holds for any sensible scorer is required: nothing is
better than the reference itself, and a case that is left out is worth no more than one that is answered as badly as
can be. The reader is given files that are none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from runner.catalog import LoadedChallenge
from runner.challenge import FormatSection, MissingCase, Task
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.errors import ScorerFault, UsageError
from runner.formats.contract import Prediction, Role
from runner.formats.reading import read_output
from runner.pipeline.attempts import due_of
from runner.pipeline.references import reference_of
from runner.pipeline.trials import Trial, trial_of
from runner.scoring.contract import CaseScore, Metric, aggregate
from runner.scoring.run import Described, aggregate_cases, describe_scorer, score_case

_SEED = 20
_CLOSE = 1e-9

SAMPLE = "sample"
"""Folder beside challenge.yaml that holds a few public cases."""


@dataclass(frozen=True, kw_only=True)
class CheckedTask:
    """What was found of a task.

    Attributes:
        task: Its name.
        metric: The one that ranks.
        values: What each trial scores; None where that is not defined, or the scorer failed.
        refused: How many malformed predictions were refused.
        malformed: Of how many.
        problems: What must be mended.
        notes: What is good to know.
    """

    task: str
    metric: str
    values: Mapping[Trial, float | None]
    refused: int
    malformed: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CheckedChallenge:
    """What was found of a challenge; ``cases`` is how many its sample has."""

    cases: int
    tasks: tuple[CheckedTask, ...]

    @property
    def sensible(self) -> bool:
        """Nothing must be mended."""
        return not any(task.problems for task in self.tasks)


def check_challenge(
    loaded: LoadedChallenge, *, confine: Confine, advance: Callable[[int, int, str], None]
) -> CheckedChallenge:
    """Try a challenge's scorer and formats on its sample.

    Args:
        loaded: The challenge.
        confine: Where files are read and the scorer runs.
        advance: Is told how many tasks are done, of how many, and which is next.

    Raises:
        UsageError: There is no sample, or a case or reference of it does not fit.
        ConfigError: challenge.yaml ranks by what the scorer does not measure.
        HostFault: No child could be started.
    """
    folder = loaded.folder / SAMPLE
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {SAMPLE!r} beside challenge.yaml", where=str(loaded.folder),
            remedy="put two short public cases there, laid out as the section cases says",
        )  # fmt: skip
    cases = find_cases(folder, loaded.challenge)
    tasks = []
    for number, name in enumerate(loaded.challenge.tasks):
        advance(number, len(loaded.challenge.tasks), f"task {name}")
        tasks.append(_TaskCheck(loaded, name, cases, confine).checked())
    return CheckedChallenge(cases=len(cases), tasks=tuple(tasks))


class _TaskCheck:
    """Tries one task."""

    def __init__(self, loaded: LoadedChallenge, name: str, cases: Sequence[Case], confine: Confine) -> None:
        self._loaded, self._name, self._cases, self._confine = loaded, name, cases, confine
        self._task: Task = loaded.challenge.tasks[name]
        self._rule: FormatSection = self._task.format_of_references
        self._problems: list[str] = []
        self._notes: list[str] = []

    def checked(self) -> CheckedTask:
        references = [reference_of(self._confine, self._task, self._name, case) for case in self._cases]
        values = self._scored(references)
        refused, malformed = self._malformed()
        return CheckedTask(
            task=self._name, metric=self._task.primary.metric, values=values, refused=refused, malformed=malformed,
            problems=tuple(self._problems), notes=tuple(self._notes),
        )  # fmt: skip

    def _scored(self, references: Sequence[Prediction]) -> Mapping[Trial, float | None]:
        if self._rule.kind != self._task.format.kind:
            what = f"references are {self._rule.kind} and predictions {self._task.format.kind}"
            self._notes.append(f"the scorer was not tried: {what}, so that none can be made of a reference")
            return {}
        if self._task.scorer_image is not None:
            self._notes.append(
                "the scorer was not tried: it runs in a container; next: proctor score CHALLENGE --predictions DIR "
                "--references DIR --out DIR"
            )
            return {}
        try:
            described = describe_scorer(self._confine, self._loaded, self._name)
        except ScorerFault as fault:
            self._problems.append(_fault_words(fault))
            return {}
        values = {trial: self._value(trial, described, references) for trial in Trial}
        if values[Trial.PERFECT] != self._value(Trial.PERFECT, described, references):
            self._problems.append("the same predictions scored twice give two values: the scorer is not deterministic")
        problems, notes = sense_of(self._metric(described), values, self._task.missing_case)
        self._problems.extend(problems)
        self._notes.extend(notes)
        return values

    def _metric(self, described: Described) -> Metric:
        return next(metric for metric in described.metrics if metric.name == self._task.primary.metric)

    def _value(self, trial: Trial, described: Described, references: Sequence[Prediction]) -> float | None:
        """The primary metric over all cases; None where it is not defined, or where the scorer failed."""
        rng = np.random.default_rng(_SEED)
        scores: list[CaseScore] = []
        try:
            for number, (case, reference) in enumerate(zip(self._cases, references, strict=True)):
                another = references[(number + 1) % len(references)]
                made = trial_of(trial, self._task.format, reference, another, rng)
                scores.append(
                    score_case(self._confine, self._loaded, self._name, reference, made, frames=len(case.frames))
                )
            if described.aggregates:
                return aggregate_cases(self._confine, self._loaded, self._name, scores)[self._task.primary.metric]
            return aggregate(scores)[self._task.primary.metric].mean
        except ScorerFault as fault:
            sentence = f"{trial.value} predictions: {_fault_words(fault)}"
            if sentence not in self._problems:
                self._problems.append(sentence)
            return None

    def _malformed(self) -> tuple[int, int]:
        """Files that are no prediction are read as a container's would be."""
        refused = 0
        case = self._cases[0]
        contents = _malformed_contents(case.references[self._name])
        for what, content in contents.items():
            with TemporaryDirectory() as folder:
                path = _laid_out(Path(folder), self._task.format, case, content)
                reading = read_output(self._confine, self._task.format, path, due=due_of(case), role=Role.PREDICTION)
            if reading.prediction is None:
                refused += 1
            else:
                self._problems.append(f"a malformed prediction is taken: {what}")
        return refused, len(contents)


def _fault_words(fault: ScorerFault) -> str:
    return f"the scorer failed: {fault.what} ({fault.where})"


def _malformed_contents(reference: Path) -> Mapping[str, bytes]:
    whole = reference if reference.is_file() else min(path for path in reference.iterdir() if path.is_file())
    content = whole.read_bytes()
    return {
        "an empty file": b"",
        "bytes that are no text": bytes(range(256)),
        "text that says nothing": b"nothing\n",
        "numbers that are not finite": b'{"nan": NaN}\n',
        # One byte short of half, and not at the end of a line: half a table of unknown length would be one.
        "a file that is cut off": content[: len(content) // 2].rstrip() + b"\xff",
    }


def _laid_out(folder: Path, rule: FormatSection, case: Case, content: bytes) -> Path:
    """A file of that content; or a folder of such files, where the format has one a frame."""
    name = rule.file.rpartition("/")[2]
    if "{frame}" not in name:
        path = folder / f"prediction{Path(name).suffix}"
        path.write_bytes(content)
        return path
    for stem in case.stems:
        (folder / f"{stem}{Path(name).suffix}").write_bytes(content)
    return folder


def sense_of(
    metric: Metric, values: Mapping[Trial, float | None], missing: MissingCase
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What makes no sense, and what may not; pure.

    Args:
        metric: The one that ranks.
        values: What each trial scores.
        missing: What a case without a valid prediction counts as.

    Returns:
        Problems and notes.
    """
    sign = 1 if metric.higher_is_better else -1
    known = {trial: value for trial, value in values.items() if value is not None}
    perfect = known.pop(Trial.PERFECT, None)
    if perfect is None:
        return (f"the reference itself has no {metric.name}",), ()
    problems = [
        f"{trial.value} predictions score {value:g}, which is better than the reference itself, {perfect:g}"
        for trial, value in known.items()
        if sign * (value - perfect) > _CLOSE
    ]
    notes = []
    if Trial.WORST in known and abs(known[Trial.WORST] - perfect) <= _CLOSE:
        problems.append(f"the worst predictions score {perfect:g}, as the reference itself does")
    if missing is MissingCase.WORST:
        problems.extend(
            f"a case that is left out counts {metric.worst:g}, and {trial.value} predictions score {value:g}: "
            "leaving out would pay"
            for trial, value in {**known, Trial.PERFECT: perfect}.items()
            if sign * (metric.worst - value) > _CLOSE
        )
    best = 1.0 if metric.higher_is_better else 0.0
    if abs(perfect - best) > _CLOSE:
        notes.append(f"the reference itself scores {perfect:g} and not {best:g}: is that the best there is?")
    if Trial.SHUFFLED in known and abs(known[Trial.SHUFFLED] - perfect) <= _CLOSE:
        notes.append("shuffled predictions score as the reference itself does: does the sample vary?")
    return tuple(problems), tuple(notes)
