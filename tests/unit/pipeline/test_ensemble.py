"""Ensembles of what a finished run keeps: scored as submissions are, outside the competition, fitted on other data."""

import csv
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from runner.catalog import load_challenge
from runner.causality import CausalityOutcome, CausalityVerdict
from runner.challenge import MissingCase, RankingRule
from runner.cli.boundary import run_cli
from runner.confine import Confine
from runner.dataset import find_cases
from runner.ensembles import Method
from runner.errors import HostFault, UsageError
from runner.judge import CaseOutcome
from runner.pipeline.challenge_new import new_challenge
from runner.pipeline.ensemble import EnsembleRequest, make_ensembles
from runner.pipeline.ensemble_files import EnsembleRow, Ensembles
from runner.pipeline.handed_in import Reception
from runner.pipeline.long_table import Columns
from runner.pipeline.looking_ahead import CausalityFinding, CausalityRecord
from runner.pipeline.rank import RankRequest, rank_table
from runner.pipeline.record import record_of_files
from runner.store import RunFolder, read_value, write_value
from runner.submissions import Submission
from runner.verdict import VerdictWord

Truth = Mapping[str, Sequence[int]]
TEST: Truth = {"t1": [0, 0, 1, 1, 2, 2], "t2": [1, 1, 1, 0, 0, 2]}
OTHER: Truth = {"o1": [0, 1, 2, 0, 1, 2, 0, 1, 2], "o2": [2, 2, 1, 1, 0, 0, 1, 0, 2]}
PHASES = ("idle", "first", "second")


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.scoring.child", "runner.formats.frame_table")) as confined:
        yield confined


class Hall:
    """Where runs are made by hand, of a challenge of one kind; a member says the truth but for the frames it misses."""

    def __init__(self, folder: Path, confine: Confine, kind: str) -> None:
        self.folder, self.confine, self.kind = folder, confine, kind
        new_challenge("toy", folder, kind=kind)
        shutil.rmtree(folder / "toy" / "sample")

    def run(self, name: str, truth: Truth, members: Mapping[str, set[int]]) -> Path:
        """A finished run on cases of this truth; by member, the frames in which it is wrong."""
        data = self.folder / f"{name}-data"
        for case, labels in truth.items():
            (data / "inputs" / case).mkdir(parents=True)
            for frame in range(len(labels)):
                (data / "inputs" / case / f"{frame:05}.png").write_text(f"{case} {frame}")
            self.write(data / "references", case, labels, surely=1.0)
        submissions = tuple(
            Submission(submission=one, team=f"Team {one}", predictions=f"{name}-{one}") for one in members
        )
        for one, wrong in members.items():
            for case, labels in truth.items():
                said = [(label + 1) % 3 if frame in wrong else label for frame, label in enumerate(labels)]
                self.write(self.folder / f"{name}-{one}", case, said, surely=0.8)
        return self._settled(name, data, submissions)

    def _settled(self, name: str, data: Path, submissions: tuple[Submission, ...]) -> Path:
        loaded = load_challenge(self.folder / "toy")
        run = RunFolder(root=self.folder / name)
        run.root.mkdir()
        cases = find_cases(data, loaded.challenge)
        record = record_of_files(run, loaded, data, cases, submissions)
        write_value(run.record, replace(record, files_only=False))
        reception = Reception(
            run=run, challenge=loaded.challenge, cases={case.name: case for case in cases}, base=self.folder,
            confine=self.confine, observe=lambda _: None,
        )  # fmt: skip
        for submission in submissions:
            reception.settle(submission)
        return run.root

    def write(self, folder: Path, case: str, labels: Sequence[int], *, surely: float) -> None:
        """A file, or a folder of images, that says these labels."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.kind == "frame_table":
            rows = [f"{frame},{PHASES[label]}" for frame, label in enumerate(labels)]
            (folder / f"{case}.csv").write_text("\n".join(["frame,phase", *rows]) + "\n")
        elif self.kind == "frame_scores":
            one = [[surely if label == k else 1 - surely for k in range(3)] for label in labels]
            (folder / f"{case}.json").write_text(
                json.dumps(
                    {
                        f"{frame:05}": {"scores": [int(v) if surely == 1 else v for v in row]}
                        for frame, row in enumerate(one)
                    }
                )
            )
        else:
            (folder / case).mkdir()
            for frame, label in enumerate(labels):
                pixels: NDArray[np.uint8] = np.full((12, 16), label, dtype=np.uint8)
                pixels[0] = np.arange(16) % 3
                Image.fromarray(pixels).save(folder / case / f"{frame:05}.png")

    def make(self, run: Path, *methods: Method, members: Sequence[str], **more: object) -> Ensembles:
        """Make ensembles."""
        request = replace(EnsembleRequest(run=run, methods=methods, members=tuple(members)), **more)  # type: ignore[arg-type]
        return make_ensembles(request, self.confine, lambda _: None)


def values(row: EnsembleRow) -> list[float | None]:
    return [value for case in row.cases.values() for value in case.values()]


THREE = {"a": {0, 5}, "b": {1}, "c": {2}}
"""Nobody is wrong where another one is."""


class TestScored:
    @pytest.mark.parametrize("kind", ["frame_table", "label_images"])
    def test_the_majority_mends_what_each_gets_wrong(self, tmp_path: Path, confine: Confine, kind: str) -> None:
        hall = Hall(tmp_path, confine, kind)
        run = hall.run("final", TEST, THREE)
        (row,) = hall.make(run, Method.MAJORITY, members=["b", "c", "a"]).rows
        assert (row.name, row.members, row.status) == ("majority of a, b, c", ("a", "b", "c"), "non-competing")
        assert values(row) == [1.0, 1.0]
        assert list(row.values.values()) == [1.0]
        (alone,) = hall.make(run, Method.MAJORITY, members=["a"]).rows
        assert all(value is not None and value < 1 for value in values(alone))

    def test_scores_are_averaged(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_scores")
        run = hall.run("final", TEST, THREE)
        rows = hall.make(run, Method.MEAN, Method.SOFT_VOTE, members=["a", "b", "c"]).rows
        assert [row.method for row in rows] == ["mean", "soft-vote"]
        assert [values(row) for row in rows] == [[1.0, 1.0], [1.0, 1.0]]

    def test_the_order_of_members_changes_no_byte(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_scores")
        run, fit = hall.run("final", TEST, THREE), hall.run("other", OTHER, THREE)
        methods = (Method.MEAN, Method.LEARNED, Method.NETWORK)
        for members, out in ((["a", "b", "c"], "one"), (["c", "a", "b"], "two")):
            hall.make(run, *methods, members=members, fit=fit, out=tmp_path / out)
        for name in ("ensembles.json", "ensembles.csv"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        assert not (run / "ensembles.json").exists()
        assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("method", [Method.WEIGHTED, Method.LEARNED, Method.LEARNED_PER_CLASS, Method.NETWORK])
    def test_what_is_fitted_follows_the_better_member(self, tmp_path: Path, confine: Confine, method: Method) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        wrong = {"bad": {0, 1, 2, 3, 4, 5, 6}, "good": set[int](), "worse": set(range(9))}
        run, fit = hall.run("final", TEST, wrong), hall.run("other", OTHER, wrong)
        (row,) = hall.make(run, method, members=list(wrong), fit=fit).rows
        assert (values(row), row.fitted_on) == ([1.0, 1.0], "other")
        assert row.seed == (0 if method is Method.NETWORK else None)
        assert list(row.weights) == ([""] if method is Method.WEIGHTED else [] if row.seed == 0 else ["phase"])

    def test_a_member_weighs_as_its_score_on_the_other_data(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run, fit = (
            hall.run("final", TEST, THREE),
            hall.run("other", OTHER, {"a": set(), "b": set(range(9)), "c": set()}),
        )
        (row,) = hall.make(run, Method.WEIGHTED, members=list(THREE), fit=fit).rows
        assert row.weights == {"": (0.5, 0.0, 0.5)}


class TestFiles:
    def test_the_table_can_be_ranked_and_stands_below_the_scores(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        hall.make(run, Method.MAJORITY, members=["a", "b", "c"])
        hall.make(run, Method.MAJORITY, members=["a"])
        with (run / "ensembles.csv").open(newline="") as source:
            rows = list(csv.DictReader(source))
        assert list(rows[0]) == ["task", "submission", "team", "status", "case", "verdict", "metric", "value"]
        assert {(row["status"], row["verdict"], row["metric"]) for row in rows} == {
            ("non-competing", "accepted", "macro_f1")
        }
        ranked = rank_table(RankRequest(
            table=run / "ensembles.csv", columns=Columns(), metric="macro_f1", higher_is_better=True,
            rule=RankingRule.model_validate({"method": "mean_then_rank"}), missing=MissingCase.FAIL, worst=None,
            resamples=0, seed=0, challenger=False,
        ))  # fmt: skip
        (task,) = ranked.tasks
        assert [team.team for team in task.teams] == ["majority of a, b, c", "majority of a"]

    def test_an_ensemble_made_again_takes_its_own_place(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        for members in (["a", "b"], ["a"], ["b", "a"]):
            hall.make(run, Method.MAJORITY, members=members)
        kept = read_value(run / "ensembles.json", Ensembles)
        assert [row.name for row in kept.rows] == ["majority of a, b", "majority of a"]

    def test_nothing_is_written_over_by_out(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        with pytest.raises(UsageError, match="nothing is written over"):
            hall.make(run, Method.MAJORITY, members=["a"], out=run)

    def test_names_that_a_spreadsheet_would_run_are_text(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, {"=1+1\u202e": set()})
        hall.make(run, Method.MAJORITY, members=["=1+1\u202e"])
        text = (run / "ensembles.csv").read_text() + (run / "ensembles.json").read_text()
        assert "\u202e" not in text


class TestRefused:
    def refusal(self, hall: Hall, run: Path, *methods: Method, members: Sequence[str], **more: object) -> str:
        with pytest.raises(UsageError) as found:
            hall.make(run, *methods, members=members, **more)
        assert found.value.remedy
        assert not (run / "ensembles.json").exists()
        return str(found.value)

    def test_the_test_itself(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        text = self.refusal(hall, run, Method.LEARNED, members=["a", "b"], fit=run)
        assert "case 't1' is a case of the test" in text

    def test_a_case_of_the_test_under_another_name(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        fit = hall.run("other", {**OTHER, "o3": TEST["t2"]}, THREE)
        for method in (Method.WEIGHTED, Method.NETWORK):
            text = self.refusal(hall, run, method, members=["a", "b"], fit=fit)
            assert "case 'o3' has the inputs or the reference of case 't2' of the test" in text

    @pytest.mark.parametrize("what", ["inputs", "references"])
    def test_what_was_a_case_of_the_test_when_it_was_run(self, tmp_path: Path, confine: Confine, what: str) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run, fit = hall.run("final", TEST, THREE), hall.run("other", OTHER, THREE)
        record = json.loads((fit / "run.json").read_text())
        record["cases"][1][what] = json.loads((run / "run.json").read_text())["cases"][0][what]
        (fit / "run.json").write_text(json.dumps(record))
        text = self.refusal(hall, run, Method.LEARNED, members=["a", "b"], fit=fit)
        assert "case 'o2' has the inputs or the reference of case 't1' of the test" in text

    def test_a_reference_of_the_test_that_came_in_later(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        fit = hall.run("other", {"o1": [0, 1, 0, 1, 0, 1]}, THREE)
        shutil.copy(tmp_path / "final-data/references/t1.csv", tmp_path / "other-data/references/o1.csv")
        assert "of the test" in self.refusal(hall, run, Method.LEARNED, members=["a", "b"], fit=fit)

    def test_a_run_of_another_challenge(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        text = (tmp_path / "toy/challenge.yaml").read_text()
        (tmp_path / "toy/challenge.yaml").write_text(
            text.replace("[idle, first, second]", "[idle, first, second, more]")
        )
        fit = hall.run("other", OTHER, THREE)
        assert "is not that of" in self.refusal(hall, run, Method.LEARNED, members=["a", "b"], fit=fit)

    def test_a_member_without_a_valid_prediction(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        path = RunFolder(root=run).outcome("b", "phases", "t2")
        outcome = read_value(path, CaseOutcome)
        refused = replace(outcome.verdict, word=VerdictWord.BAD_OUTPUT, sentence="no")
        write_value(path, replace(outcome, verdict=refused))
        text = self.refusal(hall, run, Method.MAJORITY, members=["a", "b"])
        assert "submission 'b', task 'phases': case 't2' has no accepted prediction: bad-output, no" in text
        path.unlink()
        assert "case 't2' has no outcome" in self.refusal(hall, run, Method.MAJORITY, members=["a", "b"])

    @pytest.mark.parametrize("kind", ["frame_table", "label_images"])
    def test_a_prediction_that_was_put_away(self, tmp_path: Path, confine: Confine, kind: str) -> None:
        hall = Hall(tmp_path, confine, kind)
        run = hall.run("final", TEST, THREE)
        for folder in run.glob("submissions/b/*/t2/full/attempt-1/predictions"):
            shutil.rmtree(folder)
        with pytest.raises((UsageError, HostFault), match="cannot be read any more"):
            hall.make(run, Method.MAJORITY, members=["a", "b"])
        assert not (run / "ensembles.json").exists()

    def test_a_member_that_looked_ahead(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run = hall.run("final", TEST, THREE)
        leaks = CausalityVerdict(outcome=CausalityOutcome.LEAKING, sentence="it looked", detail="")
        finding = CausalityFinding(case="t1", frames=6, verdict=leaks)
        write_value(RunFolder(root=run).causality("a", "phases"), CausalityRecord(findings=(finding,)))
        text = self.refusal(hall, run, Method.MAJORITY, members=["a", "b"])
        assert "case 't1' has no accepted prediction: not-causal, it looked" in text

    def test_what_does_not_go_together(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "frame_table")
        run, fit = hall.run("final", TEST, THREE), hall.run("other", OTHER, THREE)
        said = [
            self.refusal(hall, run, Method.MEAN, members=["a"]),
            self.refusal(hall, run, Method.LEARNED, members=["a"]),
            self.refusal(hall, run, Method.MAJORITY, members=["a"], fit=fit),
            self.refusal(hall, run, Method.MAJORITY, members=["a", "a"]),
            self.refusal(hall, run, Method.MAJORITY, members=["z"]),
            self.refusal(hall, run, Method.MAJORITY, members=["a"], task="steps"),
            self.refusal(hall, run, Method.WEIGHTED, members=["a"], fit=fit, metric="dice"),
            self.refusal(hall, run, Method.MAJORITY, members=["a"], metric="macro_f1"),
            self.refusal(hall, run, Method.MAJORITY, members=[]),
        ]
        expected = (
            "--method mean does not fit predictions of kind 'frame_table'", "--method learned is fitted",
            "--method majority fits nothing", "--of 'a' stands twice", "--of 'z' is no submission",
            "--task 'steps' is none", "--metric 'dice' is not measured", "--metric is what weighted goes by",
            "needs members",
        )  # fmt: skip
        assert [words in text for words, text in zip(expected, said, strict=True)] == [True] * len(expected)

    def test_images_have_no_learned_weights(self, tmp_path: Path, confine: Confine) -> None:
        hall = Hall(tmp_path, confine, "label_images")
        run, fit = hall.run("final", TEST, {"a": set()}), hall.run("other", OTHER, {"a": set()})
        text = self.refusal(hall, run, Method.LEARNED, members=["a"], fit=fit)
        assert "methods that do: majority, weighted" in text


class TestCommand:
    @pytest.fixture
    def run(self, tmp_path: Path, confine: Confine) -> Path:
        return Hall(tmp_path, confine, "frame_table").run("final", TEST, THREE)

    def test_it_shows_what_came_of_it(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_cli(["ensemble", str(run), "--method", "majority", "--of", "a", "--of", "b", "--of", "c"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split() for line in lines[:3]] == [
            ["Task", "phases,", "outside", "the", "competition"], ["ensemble", "macro_f1"],
            ["majority", "of", "a,", "b,", "c", "1.0000"],
        ]  # fmt: skip
        assert lines[3] == f"scores {run / 'ensembles.csv'}"

    def test_for_programs(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_cli(["ensemble", str(run), "--method", "majority", "--of", "a", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert (row["method"], row["members"], row["status"], list(row["cases"])) == (
            "majority", ["a"], "non-competing", ["t1", "t2"],
        )  # fmt: skip

    def test_an_unknown_method_is_refused(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_cli(["ensemble", str(run), "--method", "median", "--of", "a"]) == 2
        assert "--method 'median' is not known" in capsys.readouterr().err
