"""A scorer in a container: what challenge.yaml says of it, and what its file must hold."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.catalog import LoadedChallenge
from runner.challenge import Challenge, ScorerImage
from runner.confine import Confine
from runner.formats.contract import Answer, Reading
from runner.scoring.container import check_scores, metrics_of, read_scores, scores_of
from runner.scoring.contract import CaseScore, Metric
from runner.scoring.run import aggregate_cases, describe_scorer

LIMITS = {"run_time": {"fixed": "60 s"}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1}
SECTION: dict[str, Any] = {
    "image": "scorer:1", "args": ["{input}", "{output}", "{task}"], "limits": LIMITS,
    "metrics": {
        "f1": {"title": "F1", "worst": 0, "chance": 0.5, "higher_is_better": True},
        "error": {"title": "Error", "worst": 9, "higher_is_better": False},
    },
}  # fmt: skip


def section(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SECTION), **changes}


@pytest.fixture
def challenge_of(make_challenge: Callable[..., Challenge]) -> Callable[..., Challenge]:
    """A challenge whose only task is changed."""
    task = make_challenge().tasks["steps"].model_dump(by_alias=True, exclude_unset=True)

    def make(**changes: Any) -> Challenge:
        return make_challenge(tasks={"steps": {**task, **changes}})

    return make


class TestSection:
    def test_it_says_what_is_measured(self, challenge_of: Callable[..., Challenge], confine: Confine) -> None:
        challenge = challenge_of(scorer="container", scorer_image=section())
        rule = challenge.tasks["steps"].scorer_image
        assert rule is not None
        metrics = (
            Metric(name="f1", title="F1", worst=0.0, chance=0.5, higher_is_better=True),
            Metric(name="error", title="Error", worst=9.0, chance=None, higher_is_better=False),
        )
        assert metrics_of(rule) == metrics
        # No child: there is no Python to load, and the folder does not exist.
        loaded = LoadedChallenge(challenge=challenge, folder=Path("/nonexistent"), digest="")
        found = describe_scorer(confine, loaded, "steps")
        assert (found.metrics, found.aggregates) == (metrics, False)
        scores = [CaseScore(values={"f1": 1.0, "error": None}), CaseScore(values={"f1": 0.5, "error": 4.0})]
        assert aggregate_cases(confine, loaded, "steps", scores) == {"f1": 0.75, "error": 4.0}

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"scorer": "container"},
             "tasks.steps.scorer: 'container' needs the section scorer_image, which says in which"),
            ({"scorer_image": section()},
             "tasks.steps.scorer_image goes with scorer: container, and the scorer is 'toy.steps'"),
            ({"scorer": "container", "scorer_image": section(), "options": {"a": 1}},
             "tasks.steps.options are for a scorer in Python; one in a container takes scorer_image.args"),
            ({"scorer": "container", "scorer_image": section(metrics={"f2": SECTION["metrics"]["f1"]})},
             "tasks.steps.scorer_image: primary.metric is 'f1', which is none of its metrics: f2"),
            ({"scorer": "container", "scorer_image": section(),
              "primary": {"metric": "f1", "higher_is_better": False}},
             "tasks.steps.scorer_image: primary.higher_is_better contradicts that of its metric 'f1'"),
            ({"scorer": "container", "scorer_image": section(), "missing_case": "chance",
              "primary": {"metric": "error", "higher_is_better": False}},
             "tasks.steps.scorer_image: missing_case is 'chance', but its metric 'error' states no chance value"),
            ({"scorer": "container", "scorer_image": section(image="../scorer.tar")},
             "'../scorer.tar' must be a reference, or the path of an archive beside challenge.yaml"),
            ({"scorer": "container", "scorer_image": section(args=["{case}"])},
             "{case} in '{case}' is not a placeholder; known: {input}, {output}, {task}"),
            ({"scorer": "container", "scorer_image": section(limits={**LIMITS, "gpus": 1})},
             "a scorer is given no GPU: gpus: 0"),
            ({"scorer": "container",
              "scorer_image": section(limits={**LIMITS, "run_time": {"per_media": "60 s / 10 min"}})},
             "run_time must be fixed: it holds for all cases together"),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_told(
        self, challenge_of: Callable[..., Challenge], changes: dict[str, Any], sentence: str
    ) -> None:
        with pytest.raises(ValidationError) as caught:
            challenge_of(**changes)
        assert [error["msg"] for error in caught.value.errors()] == [f"Value error, {sentence}"]

    @pytest.mark.parametrize("key", ["image", "limits", "metrics"])
    def test_nothing_has_a_silent_default(self, key: str) -> None:
        lacking = section()
        del lacking[key]
        with pytest.raises(ValidationError, match=key):
            ScorerImage.model_validate(lacking)

    @pytest.mark.parametrize(("key", "value"), [("image", ""), ("metrics", {})])
    def test_nothing_is_empty(self, key: str, value: object) -> None:
        with pytest.raises(ValidationError, match=key):
            ScorerImage.model_validate(section(**{key: value}))


def problems(reading: Reading) -> list[str]:
    return [problem.what for problem in reading.problems]


def check(found: object) -> Reading:
    return check_scores(found, metrics=("f1", "error"), primary="f1", cases=("a", "b"))  # type: ignore[arg-type]


FINE = {"cases": {"a": {"f1": 1, "error": None}, "b": {"error": 0.25, "f1": -2.5}}}
TOP = 'the file must be an object with the one name "cases", which is an object'


class TestCheck:
    def test_what_is_due_is_taken(self) -> None:
        assert scores_of(check(FINE)) == {
            "a": CaseScore(values={"f1": 1.0, "error": None}),
            "b": CaseScore(values={"f1": -2.5, "error": 0.25}),
        }

    @pytest.mark.parametrize("found", [[], {}, {"cases": []}, {"cases": None}, {**FINE, "version": 1}, {"case": {}}])
    def test_the_top_is_an_object_with_the_cases(self, found: object) -> None:
        assert problems(check(found)) == [TOP]

    @pytest.mark.parametrize(
        ("case", "sentences"),
        [
            (None, ["case 'a' is no object of metrics"]),
            ([1, 2], ["case 'a' is no object of metrics"]),
            ({"f1": 1}, ["case 'a' lacks the metric 'error'"]),
            ({"error": 1}, ["case 'a' lacks the metric 'f1'"]),
            ({"f1": 1, "error": 1, "f2": 1}, ["case 'a' has a metric that challenge.yaml does not name"]),
            ({"f1": True, "error": 1}, ["case 'a': 'f1' is neither a number nor null"]),
            ({"f1": 1, "error": False}, ["case 'a': 'error' is neither a number nor null"]),
            ({"f1": 1, "error": "0.5"}, ["case 'a': 'error' is neither a number nor null"]),
            ({"f1": 10**400, "error": 1}, ["case 'a': 'f1' is neither a number nor null"]),
            ({"f1": None, "error": 1}, ["case 'a': 'f1' is null, and it ranks"]),
            ({}, ["case 'a' lacks the metric 'f1'", "case 'a' lacks the metric 'error'"]),
        ],
    )  # fmt: skip
    def test_every_problem_of_a_case_is_told(self, case: object, sentences: list[str]) -> None:
        reading = check({"cases": {**FINE["cases"], "a": case}})
        assert (problems(reading), reading.problem_count) == (sentences, len(sentences))
        assert reading.prediction is None

    def test_the_cases_are_exactly_those_that_were_shown(self) -> None:
        reading = check({"cases": {"a": FINE["cases"]["a"], "\x1b[2Jc": {}}})
        assert problems(reading) == ["there is a case that was not shown", "case 'b' is missing"]
        assert reading.problems[0].value == r"'\x1b[2Jc'"

    def test_all_problems_are_counted_and_some_kept(self) -> None:
        cases = [f"case-{number}" for number in range(200)]
        reading = check_scores({"cases": {}}, metrics=("f1",), primary="f1", cases=cases)
        assert (len(reading.problems), reading.problem_count) == (50, 200)

    @given(
        st.dictionaries(
            st.text(max_size=8),
            st.tuples(
                st.floats(-1e300, 1e300, exclude_min=True, exclude_max=True) | st.integers(-(1 << 53), 1 << 53),
                st.none() | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9),
            ),
            min_size=1,
            max_size=6,
        )
    )
    def test_any_numbers_come_through_as_they_are(self, rows: dict[str, tuple[float, float | None]]) -> None:
        found: Any = {"cases": {case: {"f1": first, "error": second} for case, (first, second) in rows.items()}}
        reading = check_scores(found, metrics=("f1", "error"), primary="f1", cases=tuple(rows))
        assert {case: dict(score.values) for case, score in scores_of(reading).items()} == found["cases"]


class TestRead:
    def read(self, confine: Confine, path: Path) -> Reading:
        rule = ScorerImage.model_validate(SECTION)
        return read_scores(confine, path, rule=rule, primary="f1", cases=("a", "b"))

    def test_a_file_that_is_fine(self, confine: Confine, tmp_path: Path) -> None:
        (tmp_path / "scores.json").write_text(json.dumps(FINE))
        reading = self.read(confine, tmp_path / "scores.json")
        assert isinstance(reading.prediction, Answer)
        assert list(scores_of(reading)) == ["a", "b"]

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"", "the file is empty"),
            (b'{"cases": {"a": {"f1": NaN}}}', "line 1, column 24: NaN and infinity are not JSON"),
            (b'{"cases": {"a": {"f1": 1e999}}}',
             "line 1, column 24: the number is too large: it would be read as infinite"),
            (b'{"cases": {"a": {"f1": 1, "f1": 0}}}',
             "line 1, column 27: the name stands here again, as in line 1, column 18"),
            (b"[1]", "line 1, column 1: the file holds an array where an object is due"),
            (b'{"cases": {"a": {"f1": 1}', "line 1, column 26: the file ends inside an object"),
            (b"\xff\xfe", "the file is UTF-16: save it as UTF-8"),
            (b" " * 200_000 + b"{}", "the file is larger than "),
            (b'{"cases": ' + b"[" * 1000, "arrays and objects are more than 32 deep"),
            (json.dumps({"cases": {"a": list(range(3000))}}).encode(), "there are more than "),
        ],
    )  # fmt: skip
    def test_a_file_that_is_none(self, confine: Confine, tmp_path: Path, content: bytes, sentence: str) -> None:
        (tmp_path / "scores.json").write_bytes(content)
        reading = self.read(confine, tmp_path / "scores.json")
        assert reading.prediction is None
        assert sentence in reading.problems[0].what

    def test_a_link_is_not_followed(self, confine: Confine, tmp_path: Path) -> None:
        (tmp_path / "elsewhere.json").write_text(json.dumps(FINE))
        (tmp_path / "scores.json").symlink_to("elsewhere.json")
        assert self.read(confine, tmp_path / "scores.json").prediction is None
