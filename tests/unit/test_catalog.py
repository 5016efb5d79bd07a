"""A challenge is found by name, folder or archive, and its digest changes with everything that decides a score."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner import bundled_files
from runner.bundled_files import bundled
from runner.catalog import find_challenge, load_challenge
from runner.challenge import FrameTableFormat
from runner.errors import ConfigError, HostUnfit, UsageError
from runner.shelf import list_challenges

PITVIS = find_challenge("pitvis2023")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("challenge.yaml", "scorer.py"):
        shutil.copy(PITVIS / name, folder / name)
    return folder


def test_bundled_challenges_are_listed_by_name() -> None:
    names = [folder.name for folder in list_challenges()]
    assert "pitvis2023" in names
    assert names == sorted(names)


def test_every_bundled_challenge_is_named_like_its_folder() -> None:
    for folder in list_challenges():
        assert load_challenge(folder).challenge.name == folder.name


def test_the_folder_in_the_package_comes_before_the_one_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "runner"
    for folder in (package, tmp_path / "site" / "challenges"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(bundled_files, "__file__", str(package / "bundled_files.py"))
    assert bundled("challenges") == tmp_path / "site" / "challenges"
    (package / "bundled" / "challenges").mkdir(parents=True)
    assert bundled("challenges") == package / "bundled" / "challenges"
    with pytest.raises(HostUnfit, match="lacks its folder of templates"):
        bundled("templates")


def test_a_folder_and_its_file_are_the_same_challenge(copy: Path) -> None:
    assert find_challenge(str(copy)) == copy
    assert find_challenge(str(copy / "challenge.yaml")) == copy


@pytest.mark.parametrize("kind", ["zip", "gztar", "tar"])
def test_an_archive_is_the_same_challenge_as_its_folder(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packed = shutil.make_archive(str(tmp_path / "packed"), kind, root_dir=tmp_path, base_dir=copy.name)
    found = find_challenge(packed)
    assert found.is_relative_to(tmp_path / "cache" / "proctor" / "challenges")
    assert load_challenge(found).digest == load_challenge(copy).digest
    assert find_challenge(packed) == found


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no challenge '.*gone\.zip'"):
        find_challenge(str(tmp_path / "gone.zip"))


def test_an_unknown_name_gets_a_suggestion_and_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        find_challenge("pitvis2032")
    assert str(caught.value).startswith("there is no challenge 'pitvis2032' (did you mean 'pitvis2023'? bundled: ")
    with pytest.raises(UsageError) as caught:
        find_challenge("qqqq")
    assert "did you mean" not in str(caught.value)
    assert "pitvis2023" in caught.value.remedy


def test_a_folder_without_a_challenge_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no challenge\.yaml"):
        find_challenge(str(tmp_path))


def test_a_challenge_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read '.*challenge\.yaml'"):
        load_challenge(tmp_path)


def test_the_digest_is_that_of_the_contents_not_of_the_place(copy: Path) -> None:
    first = load_challenge(copy).digest
    assert len(first) == 64
    moved = copy.rename(copy.with_name("elsewhere"))
    (moved / "README.md").write_text("no part of it")
    assert load_challenge(moved).digest == first


@pytest.mark.parametrize("change", ["yaml", "scorer", "new", "renamed"])
def test_the_digest_changes_with_whatever_decides_a_score(copy: Path, change: str) -> None:
    first = load_challenge(copy).digest
    match change:
        case "yaml":
            with (copy / "challenge.yaml").open("a") as file:
                file.write("# a comment\n")
        case "scorer":
            with (copy / "scorer.py").open("a") as file:
                file.write("\n")
        case "new":
            (copy / "more.py").write_text("")
        case _:
            (copy / "scorer.py").rename(copy / "scorers.py")
    assert load_challenge(copy).digest != first


def test_importing_the_catalog_loads_nothing_heavy() -> None:
    code = "import sys, runner.catalog; print(sorted({'numpy', 'pandas', 'docker', 'scipy'} & set(sys.modules)))"
    root = Path(bundled_files.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("cpus: 8", "cpus: inf", "limits.cpus: 'inf': must be a finite number"),
        ("fps: 1", "fps: nan", "cases.fps: 'nan': must be a finite number"),
        (
            "prediction_only: [0]}\n      extra_columns: ignore\n",
            "reference_only: [0..99999999999]}\n      extra_columns: ignore\n",
            "'0..99999999999': the range is longer than 10000",
        ),
        (
            "refuse\n      extra_files: ignore\n    scorer: pitvis2023.Steps\n",
            "drop\n      extra_files: ignore\n    scorer: pitvis2023.Steps\n",
            "tasks.steps.format.unknown_label: 'drop': must be refuse, or a label by column: {phase: idle}",
        ),
        (
            "extra_files: ignore\n    scorer: pitvis2023.Steps\n",
            "extra_files: ignore\n      missing_frame: refuse\n    scorer: pitvis2023.Steps\n",
            "tasks.steps.format.missing_frame: is not a key of this section; did you mean 'missing_frames'?",
        ),
        ("gpus: 1", "gpu: 1", "limits.gpu: is not a key of this section; did you mean 'gpus'?"),
        ("on: 1", "on: 0", "causality.on: 0: must be at least 1"),
    ],
)
def test_what_a_challenge_must_not_say(copy: Path, before: str, after: str, message: str) -> None:
    path = copy / "challenge.yaml"
    assert path.read_text().count(before) == 1
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(ConfigError) as caught:
        load_challenge(copy)
    assert message in str(caught.value)


def test_pitvis_says_what_its_readme_says() -> None:
    challenge = load_challenge(PITVIS).challenge
    assert challenge.limits.run_time.seconds(600) == 60
    assert challenge.limits.memory == 32 << 30
    rule = challenge.tasks["steps"].format
    assert isinstance(rule, FrameTableFormat)
    assert rule.columns["int_step"].labels == tuple(range(-1, 15))
    assert list(challenge.tasks) == ["steps", "instruments", "both"]
    assert challenge.consequence.scope_of("not-causal") == "submission"
    assert challenge.consequence.scope_of("timed-out") == "case"
    assert challenge.invocation.args == ("{input}", "{output}.csv")
