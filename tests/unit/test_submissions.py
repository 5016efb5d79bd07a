"""A submissions file: what it says, every way it can be wrong, and path parts that are safe and never shared."""

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.challenge import Stream
from runner.errors import ConfigError, UsageError
from runner.submissions import Profile, Status, Submission, read_submissions, slug_of

TASKS = ("steps", "phases")


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


EXPECTED = (
    Submission(submission="a", team="Team A", image="registry.example/a:1", tasks=("steps", "phases")),
    Submission(submission="b 2", team="Team A", image="b.tar.gz", status=Status.NO_PRIZE, received="2025-01-02"),
)
YAML = """\
submissions:
  - submission: a
    team: Team A
    image: registry.example/a:1
    tasks: [steps, phases]
  - submission: b 2
    team: Team A
    image: b.tar.gz
    status: no-prize
    received: 2025-01-02
"""
CSV = """\
submission,team,image,tasks,status,received
a,Team A,registry.example/a:1,steps phases,,
b 2,Team A,b.tar.gz,,no-prize,2025-01-02
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", YAML),
        ("s.csv", CSV),
        ("S.CSV", CSV),
        ("s.csv", CSV.replace("\n", "\r\n")),
        ("s.csv", CSV.replace("\n", "\r")),
        ("s.csv", "\ufeff" + CSV),
        ("s.csv", CSV.replace("b 2,Team A", '"b 2"," Team A "') + "\n\n"),
    ],
)
def test_both_kinds_of_file_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    assert read_submissions(write(tmp_path, name, text), TASKS) == EXPECTED


def test_three_columns_are_enough(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", "team,image,submission\nT,./a.tar,x\n")
    assert read_submissions(path, TASKS) == (Submission(submission="x", team="T", image="./a.tar"),)


def test_predictions_take_the_place_of_an_image(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", "team,predictions,submission\nT,./a,x\n")
    assert read_submissions(path, TASKS) == (Submission(submission="x", team="T", predictions="./a"),)


STREAMED = "submission: a, team: T, image: i"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", "submission,team,image,profile\na,T,i,stream\nb,T,j,\n"),
        ("s.yaml", f"submissions:\n- {{{STREAMED}, profile: stream}}\n- {{submission: b, team: T, image: j}}\n"),
    ],
)
def test_a_submission_may_choose_to_be_streamed_to_where_that_is_offered(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    found = read_submissions(path, TASKS, stream=Stream())
    assert [one.profile for one in found] == [Profile.STREAM, Profile.DEFAULT]
    with pytest.raises(ConfigError) as caught:
        read_submissions(path, TASKS)
    assert caught.value.what == "submission 'a' chooses profile 'stream', which the challenge does not offer"
    assert caught.value.where == f"{path}, line 2"


def test_files_have_no_profile(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", "submission,team,predictions,profile\na,T,f,stream\n")
    with pytest.raises(ConfigError, match="profile is for an image: predictions are not run"):
        read_submissions(path, TASKS, stream=Stream())


HEAD = "submission,team,image,tasks,status,received\n"
FILES = "submission,team,predictions\n"
EITHER = ":2: submissions[0]: either image or predictions is due, and not both"
STATUSES = "'competing', 'no-prize', 'non-competing', 'baseline', 'post-challenge' or 'withdrawn'"
LONG = "x" * 201
COLUMNS = "the columns are submission, team, image, predictions, tasks, profile, status, received"


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("", "column 'submission' is missing; column 'team' is missing; column 'image' is missing", 1),
        ("submission,team\na,b\n", "column 'image' is missing", 1),
        ("submission,team,image,mail\n", "unknown column 'mail'", 1),
        ("submission,team,image, tasks\n", "unknown column ' tasks'", 1),
        ("submission,team,image,image\na,b,c,d\n", "column 'image' stands there twice", 1),
        (HEAD + "a,b,c,,,\nd,e\n", "the row has more or fewer fields than the header", 3),
        (HEAD + "a,b,c,,,,\n", "the row has more or fewer fields than the header", 2),
        (FILES + "a,b,\n", "either image or predictions is due, and not both", 2),
        (HEAD + "a,b,,,,\n", "either image or predictions is due, and not both", 2),
        (HEAD + ",b,c,,,\n", "submission is missing", 2),
        (HEAD + ",,,,,\n", "submission is missing; team is missing", 2),
        (HEAD + "a,b,c,,winning,\n", f"status is 'winning': must be {STATUSES}", 2),
        (HEAD + LONG + ",b,c,,,\n", f"submission is '{LONG}': must have at most 200 characters", 2),
        (HEAD + "a,b,c,,,\n\nd,e,f,x,,\n", "submission 'd' enters task 'x', which the challenge does not have", 4),
        (HEAD + "a-10,b,c,,,\na-1,b,c,,,\na-1,a-1,d,,,\n", "submission 'a-1' is listed twice, first in line 3", 4),
        (HEAD + "a,b,c,,,\n a ,b,d,,,\n", "submission 'a' is listed twice, first in line 2", 3),
        (HEAD + 'a,b,"c\nc",,,\na,b,d,,,\n', "submission 'a' is listed twice, first in line 3", 4),
        (HEAD + "a,b," + "c" * 200_000 + ",,,\n", "this is not CSV: field larger than field limit (131072)", 2),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_csv_is_told_with_its_line(tmp_path: Path, text: str, what: str, line: int) -> None:
    path = write(tmp_path, "s.csv", text)
    with pytest.raises(ConfigError) as caught:
        read_submissions(path, TASKS)
    assert (caught.value.what, caught.value.where) == (what, f"{path}, line {line}")
    assert caught.value.remedy


def entry(*lines: str) -> str:
    return "  - " + "\n    ".join(lines) + "\n"


GOOD = entry("submission: a", "team: b", "image: c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submissions:\n" + entry("submission: a", "team: b"), EITHER),
        ("submissions:\n" + entry("submission: a", "team: b", "image: c", "predictions: d"),
         EITHER),
        ("submissions:\n" + GOOD + entry("submission: d", "team: b", "image: c", "statsu: baseline"),
         ":8: submissions[1].statsu: is not a key of this section; did you mean 'status'?"),
        ("submissions:\n" + entry("submission: a", "team: b", "image: c", "status: winning"),
         ":5: submissions[0].status: 'winning': "),
        ("submissions:\n" + entry("submission: ''", "team: b", "image: c"), ":2: submissions[0].submission: ''"),
        ("submissions: []\n", ":1: submissions: "),
        ("submission: a\n", ":1: submission: is not a key of this section; did you mean 'submissions'?"),
        ("", ":1: submissions: is missing"),
        ("submissions:\n" + GOOD + "  - [\n", ":6: this is not YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_yaml_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "s.yaml", text)
    with pytest.raises(ConfigError) as caught:
        read_submissions(path, TASKS)
    assert f"{path}{message}" in str(caught.value)


@pytest.mark.parametrize(
    ("added", "what", "line"),
    [
        (entry("team: b", "submission: a", "image: d"), "submission 'a' is listed twice, first in line 2", 6),
        (entry("submission: d", "team: a", "image: c", "tasks: [steps, step]"),
         "submission 'd' enters task 'step', which the challenge does not have", 5),
    ],
)  # fmt: skip
def test_duplicates_and_unknown_tasks_in_a_yaml(tmp_path: Path, added: str, what: str, line: int) -> None:
    path = write(tmp_path, "s.yaml", "submissions:\n" + GOOD + added)
    with pytest.raises(ConfigError) as caught:
        read_submissions(path, TASKS)
    assert (caught.value.what, caught.value.where) == (what, f"{path}, line {line}")


def test_an_empty_list(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", HEAD)
    with pytest.raises(ConfigError) as caught:
        read_submissions(path, TASKS)
    assert str(caught.value) == f"{path}: the file lists no submission ({COLUMNS})"


def test_the_file_must_be_there_and_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no submissions file"):
        read_submissions(tmp_path / "none.csv", TASKS)
    path = tmp_path / "s.csv"
    path.write_bytes(HEAD.encode() + b"a,\xff,c,,,\n")
    with pytest.raises(ConfigError) as caught:
        read_submissions(path, TASKS)
    assert str(caught.value) == f"{path}:2: byte 0xff is not UTF-8 (save the file as UTF-8)"


@pytest.mark.parametrize("status", list(Status))
def test_who_is_ranked(status: Status) -> None:
    assert status.ranked is (status.value in ("competing", "no-prize"))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Team 1", "team-1-"),
        ("../../etc", "etc-"),
        ("a--b", "a-b-"),
        ("日本", ""),
        ("", ""),
        ("..", ""),
        ("a" * 61, "a" * 60 + "-"),
        ("team-deadbeef", "team-deadbeef-"),  # as if it had a mark already
        ("deadbeef", "deadbeef-"),
    ],
)
def test_a_name_that_is_no_path_part_gets_a_mark(name: str, plain: str) -> None:
    assert slug_of(name) == plain + hashlib.sha256(name.encode()).hexdigest()[:8]


@pytest.mark.parametrize("name", ["team-1", "01", "a", "a" * 60, "team-deadbee", "teamdeadbeef", "team-deadbeeff"])
def test_a_name_that_is_a_path_part_stays(name: str) -> None:
    assert slug_of(name) == name
    assert Submission(submission=name, team="t", image="i").slug == name


NAMES = st.text(st.characters(), max_size=80) | st.text("aA-1 .", max_size=6) | st.text("abc0123456789-", max_size=20)


@given(st.lists(NAMES, min_size=2, max_size=8, unique=True))
@example(["\udc80", "\ud800", "", ".", "..", "/", "a/b", "a\0b"])
def test_distinct_names_have_distinct_safe_path_parts(names: list[str]) -> None:
    slugs = [slug_of(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,69}", slug) for slug in slugs)


@given(NAMES)
def test_a_name_that_imitates_anothers_path_part_gets_its_own(name: str) -> None:
    imitation = slug_of(name)
    assert imitation == name or slug_of(imitation) != imitation
