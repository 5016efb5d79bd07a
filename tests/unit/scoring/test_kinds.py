"""Scorers of every kind of prediction, made with options, with figures of their own, and installed ones."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.catalog import LoadedChallenge, load_challenge
from runner.confine import Confine
from runner.errors import HostFault, ScorerFault
from runner.formats.contract import Answer, Arrays, FrameScores, FrameTable, LabelImages, Prediction
from runner.scoring import CaseScore
from runner.scoring.child import MOST_DETAILS
from runner.scoring.run import aggregate_cases, describe_scorer, score_case

WithScorer = Callable[[str], LoadedChallenge]

CODE = """
import numpy as np
from runner.scoring import CaseScore, Metric

METRIC = Metric(name="mean_f1_edit", title="x", worst=0.0, chance=None, higher_is_better=True)

class steps:
    metrics = (METRIC,)
    def __init__(self, *, weight: float = 1, kind: str = "a"):
        self.weight = weight
    def score_case(self, reference, prediction):
        return {"mean_f1_edit": BODY}
"""
OWN = """
    def aggregate(self, cases):
        return {"mean_f1_edit": FIGURE}
"""
TABLE = FrameTable(columns={"int_step": np.array([1, 2])})


def code(body: str, figure: str = "") -> str:
    return CODE.replace("BODY", body) + (OWN.replace("FIGURE", figure) if figure else "")


def value(confine: Confine, loaded: LoadedChallenge, reference: Prediction, prediction: Prediction) -> float | None:
    return score_case(confine, loaded, "steps", reference, prediction).values["mean_f1_edit"]


def with_options(loaded: LoadedChallenge, text: str) -> LoadedChallenge:
    path = loaded.folder / "challenge.yaml"
    before = "scorer: pitvis2023.steps\n"
    assert path.read_text().count(before) == 1
    path.write_text(path.read_text().replace(before, f"{before}    options: {text}\n"))
    return load_challenge(loaded.folder)


@pytest.mark.parametrize(
    ("body", "prediction", "expected"),
    [
        ("prediction.scores[1, 2] + prediction.frames", FrameScores(scores=np.arange(6.0).reshape(2, 3)), 7.0),
        ("prediction.arrays['a'].dtype.itemsize", Arrays(arrays={"a": np.zeros((2, 2), np.float16)}), 2.0),
        ("prediction.fields['x'][1] + prediction.fields['y']", Answer(fields={"x": [1, 2.5], "y": True}), 3.5),
        ("prediction.columns['int_step'].sum()", TABLE, 3.0),
    ],
)
def test_every_kind_reaches_the_scorer(
    confine: Confine, with_scorer: WithScorer, body: str, prediction: Prediction, expected: float
) -> None:
    assert value(confine, with_scorer(code(body)), prediction, prediction) == expected


# Label images.

FRAMES = 6


def mask(number: int) -> NDArray[np.uint8]:
    return np.full((300, 400), number, np.uint8)


def images(*, fails_at: int = -1, first: int = 0) -> LabelImages:
    def read() -> Iterator[NDArray[np.uint8]]:
        for number in range(FRAMES):
            if number == fails_at:
                raise HostFault("frame 4 is gone")
            yield mask(number + first)

    return LabelImages(frames=FRAMES, read=read)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sum(int((p - r).max()) for r, p in zip(reference, prediction, strict=True))", 6.0),
        ("sum(int(i[0, 0]) for side in (prediction, reference) for i in side)", 21.0 + 15.0),
        ("int(next(iter(prediction))[0, 0])", 1.0),
        ("reference.frames", 6.0),
    ],
)
def test_label_images_are_read_in_step_in_turn_or_in_part(
    confine: Confine, with_scorer: WithScorer, body: str, expected: float
) -> None:
    assert value(confine, with_scorer(code(body)), images(), images(first=1)) == expected


@pytest.mark.parametrize(
    ("body", "what", "line"),
    [
        ("[list(reference), list(reference)]", ("the images of the reference can be read once; keep what is needed of "
         "them"), ":12"),
        ("list(prediction)[9]", "IndexError: list index out of range", ":12"),
        ("next(iter(reference)) and __import__('os')._exit(3)", ("ValueError: The truth value of an array with more "
         "than one element is ambiguous. Use a.any() or a.all()"), ":12"),
        ("[next(iter(reference)), __import__('os')._exit(3)]", ("the scorer of task 'steps' did not answer: it ended "
         "with code 3"), ""),
    ],
)  # fmt: skip
def test_a_scorer_that_fails_amid_images_is_named(
    confine: Confine, with_scorer: WithScorer, body: str, what: str, line: str
) -> None:
    loaded = with_scorer(code(body))
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(ScorerFault) as caught:
        score_case(confine, loaded, "steps", images(), images())
    assert (caught.value.what, caught.value.where) == (what, f"{loaded.folder / 'scorer.py'}{line}")
    assert before >= set(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_an_image_that_cannot_be_read_is_no_fault_of_the_scorer(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_scorer(code("len(list(zip(reference, prediction)))"))
    with pytest.raises(HostFault, match="frame 4 is gone"):
        score_case(confine, loaded, "steps", images(), images(fails_at=3))


# What is answered.


def test_details_and_frames_come_back(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_scorer(
        CODE.replace('{"mean_f1_edit": BODY}', 'CaseScore(values={"mean_f1_edit": 0.5}, details={"a": [1, None, "é"]})')
    )
    found = score_case(confine, loaded, "steps", TABLE, TABLE, frames=2)
    assert found == CaseScore(values={"mean_f1_edit": 0.5}, details={"a": [1, None, "é"]}, frames=2)


@pytest.mark.parametrize(
    ("details", "what"),
    [
        ("np.int64(3)", ("the details of score_case are no plain JSON values: Object of type int64 is not JSON "
         "serializable")),
        ("float('nan')", ("the details of score_case are no plain JSON values: Out of range float values are not JSON "
         "compliant")),
        ("'x' * (1 << 20)", (f"the details of score_case take {MOST_DETAILS + 2} bytes as JSON; at most {MOST_DETAILS} "
         "are kept")),
        ("[0] * 200_001", ("the details of score_case are more than 200000 values, deeper than 32, or hold a number of "
         "more than 32 digits")),
    ],
)  # fmt: skip
def test_details_have_bounds(confine: Confine, with_scorer: WithScorer, details: str, what: str) -> None:
    answer = f'CaseScore(values={{"mean_f1_edit": 0.5}}, details={details})'
    loaded = with_scorer(CODE.replace('{"mean_f1_edit": BODY}', answer))
    with pytest.raises(ScorerFault) as caught:
        score_case(confine, loaded, "steps", TABLE, TABLE)
    assert caught.value.what == what


def test_none_ranks_only_where_the_scorer_aggregates(confine: Confine, with_scorer: WithScorer) -> None:
    assert value(confine, with_scorer(code("None", "0.5")), TABLE, TABLE) is None
    with pytest.raises(ScorerFault, match="only a scorer with an aggregate of its own may"):
        value(confine, with_scorer(code("None")), TABLE, TABLE)


SCORES = [
    CaseScore(values={"mean_f1_edit": 0.25}, details={"n": 3}, frames=10),
    CaseScore(values={"mean_f1_edit": 0.75}),
    CaseScore(values={"mean_f1_edit": None}),
]


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        ("", 0.5),
        ("cases[0].details['n'] + cases[0].frames + len(cases)", 16.0),
        ("1.0 if cases[1].details is None and cases[2].values['mean_f1_edit'] is None else 0.0", 1.0),
        ("None", None),
    ],
)
def test_figures_over_cases_are_the_scorers_or_the_means(
    confine: Confine, with_scorer: WithScorer, figure: str, expected: float | None
) -> None:
    loaded = with_scorer(code("0.5", figure))
    assert describe_scorer(confine, loaded, "steps").aggregates is bool(figure)
    assert aggregate_cases(confine, loaded, "steps", SCORES) == {"mean_f1_edit": expected}


def test_a_wrong_figure_is_named(confine: Confine, with_scorer: WithScorer) -> None:
    for figure, what in (("'x'", "aggregate answers 'x' for 'mean_f1_edit'"), ("1 / 0", "ZeroDivisionError: division")):
        with pytest.raises(ScorerFault, match=what):
            aggregate_cases(confine, with_scorer(code("0.5", figure)), "steps", SCORES)


# Options.


def test_a_scorer_is_made_with_the_tasks_options(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_options(with_scorer(code("self.weight")), "{weight: 2.5}")
    assert value(confine, loaded, TABLE, TABLE) == 2.5


def test_a_function_may_make_a_scorer(confine: Confine, with_scorer: WithScorer) -> None:
    made = code("self.weight").replace("class steps", "class Made") + "\ndef steps(w, **_): return Made(weight=w)\n"
    assert value(confine, with_options(with_scorer(made), "{w: 4, more: true}"), TABLE, TABLE) == 4.0


@pytest.mark.parametrize(
    ("change", "options", "what"),
    [
        (("", ""), "{wieght: 2}", "'steps' has no option 'wieght' (did you mean 'weight'?): it has weight, kind"),
        (("weight: float = 1", "weight: float"), "{kind: b}", "'steps' needs the option 'weight': it has weight, kind"),
        (("self, *,", "self, x, /, *,"), "{}", ("'steps' cannot be made with options by name: missing a required "
         "argument: 'x'")),
        (("class steps", "class Made"), "{kind: b, weight: 1}", ("'steps' is an object and takes no options, but the "
         "task has 'kind', 'weight'")),
    ],
)  # fmt: skip
def test_options_must_fit(
    confine: Confine, with_scorer: WithScorer, change: tuple[str, str], options: str, what: str
) -> None:
    text = code("0.5").replace(*change)
    text += "\nsteps = Made()\n" if "class Made" in text else ""
    loaded = with_options(with_scorer(text), options)
    with pytest.raises(ScorerFault) as caught:
        describe_scorer(confine, loaded, "steps")
    assert (caught.value.what.replace(" positional-only", ""), caught.value.where) == (
        what,
        str(loaded.folder / "challenge.yaml"),
    )


# Installed ones.


def test_a_scorer_may_be_installed(with_scorer: WithScorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "brought-1.dist-info").mkdir(parents=True)
    (site / "brought-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (site / "brought-1.dist-info" / "entry_points.txt").write_text("[proctor.scorers]\noverlap = brought:steps\n")
    (site / "brought.py").write_text(code("self.weight"))
    monkeypatch.syspath_prepend(site)
    loaded = with_options(with_scorer(""), "{weight: 3}")
    path = loaded.folder / "challenge.yaml"
    text = path.read_text()
    with Confine(preload=("runner.scoring.child",)) as confine:
        for name, expected in (("overlap", 3.0), ("overlpa", None)):
            path.write_text(text.replace("scorer: pitvis2023.steps", f"scorer: {name}"))
            mended = load_challenge(loaded.folder)
            if expected is not None:
                assert value(confine, mended, TABLE, TABLE) == expected
                continue
            with pytest.raises(ScorerFault) as caught:
                describe_scorer(confine, mended, "steps")
    assert caught.value.what == (
        "there is no scorer 'overlpa' (did you mean 'overlap'?): it must be 'pitvis2023', a dot, and a name from "
        "scorer.py, or the name of an installed one: overlap"
    )
