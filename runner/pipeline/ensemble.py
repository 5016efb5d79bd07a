"""Makes ensembles of the predictions that a finished run keeps, and scores them. Needs no engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.confine import Confine
from runner.ensembles import Blend, Example, Method, combined, fitted, score_weights
from runner.errors import UsageError
from runner.pipeline.ensemble_files import EnsembleRow, Ensembles, Weights, require_free, write_ensembles
from runner.pipeline.events import Observer, Step
from runner.pipeline.kept import OTHER_DATA, Kept, opened, refuse_test_cases
from runner.pipeline.record import read_record
from runner.scoring.contract import CaseScore
from runner.scoring.run import describe_scorer
from runner.store import RunFolder, locked


@dataclass(frozen=True, kw_only=True)
class EnsembleRequest:
    """What ``proctor ensemble`` is asked for.

    Attributes:
        run: A finished run.
        methods: How predictions become one; each gives a row.
        members: Submissions, by name, in any order.
        fit: A second run of the same submissions, on other data; for methods that are fitted.
        task: Which one; None: the only one that all members entered.
        metric: By which a member weighs, for ``weighted``; None: the one that ranks.
        out: A new folder; None: the run's.
        seed: For a network's first weights.
    """

    run: Path
    methods: tuple[Method, ...]
    members: tuple[str, ...]
    fit: Path | None = None
    task: str | None = None
    metric: str | None = None
    out: Path | None = None
    seed: int = 0


def make_ensembles(request: EnsembleRequest, confine: Confine, observe: Observer) -> Ensembles:
    """Make ensembles, score them, and write them beside the run's scores, or to a folder of their own.

    Args:
        request: What is asked for.
        confine: Where files are read and scorers run.
        observe: Is told what happens.

    Returns:
        The new ones; the files hold those that were made before as well.

    Raises:
        UsageError: A member is unknown or lacks a prediction, a method does not fit the task, or it would be fitted on
            cases of the test; nothing was written.
        ScorerFault: The organisers' scorer failed.
        HostFault: No child could be started, or nothing can be written.
    """
    _check_words(request)
    run = RunFolder(root=request.run)
    if read_record(run).for_ensemble:
        raise UsageError(
            f"{str(run.root)!r} was run with --for-ensemble, to be fitted on", remedy=f"name it with --fit {run.root}"
        )
    with locked(run):
        kept = opened(run, request.members, request.task, confine)
        kept.check_methods(request.methods)
        fit = None
        if request.fit is not None:
            fit = opened(RunFolder(root=request.fit), request.members, kept.task_name, confine)
            refuse_test_cases(kept, fit)
        bench = _Bench(request=request, kept=kept, fit=fit, observe=observe)
        own = kept.loaded
        made = Ensembles(
            challenge=own.challenge.name, version=own.challenge.version, digest=own.digest,
            rows=bench.rows(),
        )  # fmt: skip
        write_ensembles(request.out or run.root, made)
    return made


def _check_words(request: EnsembleRequest) -> None:
    fits = [method for method in request.methods if method.is_fitted]
    for name in request.members:
        if request.members.count(name) > 1:
            raise UsageError(f"--of {name!r} stands twice", remedy="name each member once")
    if not request.members or not request.methods:
        raise UsageError("an ensemble needs members and a method", remedy="give --of and --method")
    if fits and request.fit is None:
        raise UsageError(
            f"--method {fits[0].value} is fitted, and not on the cases of the test",
            remedy=OTHER_DATA,
        )
    if request.metric is not None and Method.WEIGHTED not in request.methods:
        raise UsageError("--metric is what weighted goes by", remedy="leave it out, or add --method weighted")
    if request.fit is not None and not fits:
        raise UsageError(
            f"--method {request.methods[0].value} fits nothing", remedy="leave --fit out, or name another method"
        )
    if request.out is not None:
        require_free(request.out)


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """Where ensembles are made; ``fit`` is there where a method is fitted."""

    request: EnsembleRequest
    kept: Kept
    fit: Kept | None
    observe: Observer

    def rows(self) -> tuple[EnsembleRow, ...]:
        """Make and score them; each prediction is read once, whatever the number of methods."""
        kept = self.kept
        blends = self._blends()
        self.observe(Step(text=f"scoring {len(blends)} of {len(kept.members)} members on {len(kept.cases)} cases"))
        scores: list[dict[str, CaseScore]] = [{} for _ in blends]
        for name, case in kept.cases.items():
            example = kept.example(case)
            for blend, found in zip(blends, scores, strict=True):
                prediction = combined(example.predictions, blend, kept.task.format)
                found[name] = kept.score(case, example.reference, prediction)
        return tuple(map(self._row, blends, scores))

    def _row(self, blend: Blend, scores: Mapping[str, CaseScore]) -> EnsembleRow:
        method = blend.method
        return EnsembleRow(
            name=self._name(method), task=self.kept.task_name, method=method.value, members=self.kept.members,
            fitted_on=self._fitted_on(method), seed=self.request.seed if method is Method.NETWORK else None,
            weights={column: _listed(weights) for column, weights in blend.weights.items()},
            values=self.kept.over_all(list(scores.values())),
            cases={name: score.values for name, score in scores.items()},
        )  # fmt: skip

    def _fitted_on(self, method: Method) -> str:
        return self.fit.run.root.resolve().name if self.fit is not None and method.is_fitted else ""

    def _name(self, method: Method) -> str:
        by = f" by {self.request.metric}" if method is Method.WEIGHTED and self.request.metric else ""
        seed = f", seed {self.request.seed}" if method is Method.NETWORK else ""
        on = f", fitted on {self._fitted_on(method)}" if method.is_fitted else ""
        return f"{method.value}{by} of {', '.join(self.kept.members)}{on}{seed}"

    def _blends(self) -> list[Blend]:
        fit = self.fit
        if fit is None:
            return [Blend(method=method) for method in self.request.methods]
        self.observe(Step(text=f"fitting on {len(fit.cases)} other cases"))
        examples = {case.name: fit.example(case) for case in fit.cases.values()}
        return [self._blend(method, fit, examples) for method in self.request.methods]

    def _blend(self, method: Method, fit: Kept, examples: Mapping[str, Example]) -> Blend:
        if not method.is_fitted:
            return Blend(method=method)
        if method is Method.WEIGHTED:
            return Blend(method=method, weights={"": self._score_weights(fit, examples)})
        rules = (self.kept.task.format, fit.task.format_of_references)
        try:
            return fitted(method, list(examples.values()), *rules, seed=self.request.seed)
        except ValueError as error:
            raise UsageError(
                f"{method.value} cannot be fitted: {error}", where=str(fit.run.root), remedy=OTHER_DATA
            ) from error

    def _score_weights(self, fit: Kept, examples: Mapping[str, Example]) -> NDArray[np.float64]:
        kept = self.kept
        described = describe_scorer(kept.confine, kept.loaded, kept.task_name)
        name = self.request.metric or kept.task.primary.metric
        metric = next((one for one in described.metrics if one.name == name), None)
        if metric is None:
            raise UsageError(
                f"--metric {name!r} is not measured",
                remedy=f"give one of: {', '.join(one.name for one in described.metrics)}",
            )
        values = []
        for place, member in enumerate(fit.members):
            scores = [
                kept.score(fit.cases[case], example.reference, example.predictions[place])
                for case, example in examples.items()
            ]
            value = kept.over_all(scores)[name]
            if value is None:
                raise UsageError(
                    f"{name} of {member!r} is not defined for the cases it would be fitted on",
                    where=str(fit.run.root), remedy="give another metric with --metric, or other data",
                )  # fmt: skip
            values.append(value)
        return score_weights(values, worst=metric.worst, higher_is_better=metric.higher_is_better)


def _listed(weights: NDArray[np.float64]) -> Weights:
    if weights.ndim == 1:
        return tuple(weights.tolist())
    return tuple(tuple(row) for row in weights.tolist())
