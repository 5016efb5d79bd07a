"""Defaults < file < environment < flags, each value with its source, and a wrong one names where it came from."""

from pathlib import Path

import pytest

from runner.errors import ConfigError, UsageError
from runner.settings import Ceiling, OutputMethod, Settings, load_settings, user_settings_file


@pytest.fixture(autouse=True)
def no_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    return path


def test_the_defaults() -> None:
    loaded = load_settings(None, {}, environ={})
    assert loaded.sources == {}
    settings = loaded.settings
    assert (settings.engine, settings.jobs, settings.output, settings.host_retries) == ("", 1, OutputMethod.AUTO, 2)
    assert (settings.pull_deadline, settings.build_deadline, settings.helper_base) == (3600.0, 3600.0, "")
    assert settings.ceiling == Ceiling()
    assert settings.ceiling.model_dump() == {**dict.fromkeys(Ceiling.model_fields), "image_size": 50 << 30}
    assert (settings.keep_free, settings.build_memory) == (20 << 30, 8 << 30)


FILE = "jobs: 2\nhost_retries: 5\noutput: loop\nceiling:\n  memory: 4 GiB\n  cpus: 1.5\n"


def test_each_layer_wins_over_the_one_before(tmp_path: Path) -> None:
    path = write(tmp_path, FILE)
    environ = {
        "PROCTOR_JOBS": "3", "PROCTOR_CEILING_MEMORY": "3 GiB", "PROCTOR_OUTPUT": "volume", "PROCTOR_TASK": "not ours",
        "PROCTOR_CEILING": "not ours", "JOBS": "9", "proctor_jobs": "9",
    }  # fmt: skip
    flags = {"output": "auto", "ceiling.pids": "64", "pull_deadline": "5 min"}
    loaded = load_settings(path, flags, environ=environ)
    assert loaded.settings == Settings(
        jobs=3, host_retries=5, output=OutputMethod.AUTO, pull_deadline=300.0,
        ceiling=Ceiling(memory=3 << 30, cpus=1.5, pids=64), workspace=loaded.settings.workspace,
    )  # fmt: skip
    assert loaded.sources == {
        "jobs": "environment",
        "host_retries": str(path),
        "output": "command line",
        "ceiling.memory": "environment",
        "ceiling.cpus": str(path),
        "ceiling.pids": "command line",
        "pull_deadline": "command line",
    }


@pytest.mark.parametrize(
    ("layers", "jobs", "source"),
    [("", 1, None), ("f", 2, "file"), ("fe", 3, "environment"), ("fel", 4, "command line"), ("l", 4, "command line"),
     ("fl", 4, "command line"), ("e", 3, "environment")],
)  # fmt: skip
def test_precedence(tmp_path: Path, layers: str, jobs: int, source: str | None) -> None:
    path = write(tmp_path, "jobs: 2\n") if "f" in layers else None
    environ = {"PROCTOR_JOBS": "3"} if "e" in layers else {}
    flags = {"jobs": "4"} if "l" in layers else {}
    loaded = load_settings(path, flags, environ=environ)
    assert loaded.settings.jobs == jobs
    assert loaded.sources.get("jobs") == (str(path) if source == "file" else source)


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name != "ceiling"])
def test_every_setting_can_be_given_in_the_environment(name: str) -> None:
    values = {
        "output": "loop", "jobs": "7", "processors": "cpuset", "gpu_access": "cdi", "host_retries": "7",
        "pull_deadline": "7 s", "build_deadline": "7 s", "build_memory": "7 GiB", "keep_free": "7 GiB",
    }  # fmt: skip
    text = values.get(name, "/seven")
    loaded = load_settings(None, {}, environ={f"PROCTOR_{name.upper()}": text})
    assert loaded.sources == {name: "environment"}
    assert getattr(loaded.settings, name) != getattr(Settings(), name)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("run_time", "1 min", 60.0), ("memory", "1 GiB", 1 << 30), ("shm", "2 MiB", 2 << 20), ("cpus", "0.5", 0.5),
     ("pids", "99", 99), ("output", "3 MiB", 3 << 20), ("tmp", "4 MiB", 4 << 20), ("image_size", "5 GiB", 5 << 30)],
)  # fmt: skip
def test_every_ceiling_can_be_given_in_the_environment(name: str, text: str, value: float) -> None:
    loaded = load_settings(None, {}, environ={f"PROCTOR_CEILING_{name.upper()}": text})
    assert loaded.settings.ceiling == Ceiling.model_validate({name: value})
    assert loaded.sources == {f"ceiling.{name}": "environment"}


def test_a_file_of_ones_own_is_read_where_none_is_named() -> None:
    path = user_settings_file()
    assert path.parts[-2:] == ("proctor", "settings.yaml")
    path.parent.mkdir(parents=True)
    path.write_text("jobs: 6\n")
    loaded = load_settings(None, {}, environ={})
    assert (loaded.settings.jobs, loaded.sources) == (6, {"jobs": str(path)})


def test_this_processs_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_JOBS", "8")
    assert load_settings(None, {}).settings.jobs == 8


@pytest.mark.parametrize(
    ("environ", "flags", "what", "where"),
    [
        ({"PROCTOR_JOBS": "many"}, {}, "jobs is 'many': ", "settings, from the environment"),
        ({"PROCTOR_JOBS": "0"}, {}, "jobs is '0': ", "settings, from the environment"),
        ({"PROCTOR_JOBS": "2"}, {"jobs": "0"}, "jobs is '0': ", "settings, from the command line"),
        ({}, {"output": "disk"}, "output is 'disk': ", "settings, from the command line"),
        ({}, {"jobz": "1"}, "jobz is '1': ", "settings, from the command line"),
        ({"PROCTOR_CEILING_MEMORY": "4 gigs"}, {}, "ceiling.memory is '4 gigs': '4 gigs' is not a number with a unit",
         "settings, from the environment"),
        ({"PROCTOR_CEILING_MEMORY": "5 MiB"}, {}, "ceiling.memory is '5 MiB': ", "settings, from the environment"),
        ({"PROCTOR_CEILING_PIDS": "15"}, {}, "ceiling.pids is '15': ", "settings, from the environment"),
        ({"PROCTOR_CEILING_CPUS": "nan"}, {}, "ceiling.cpus is 'nan': ", "settings, from the environment"),
        ({}, {"ceiling.gpus": "1"}, "ceiling.gpus is '1': ", "settings, from the command line"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_names_itself_and_its_source(
    environ: dict[str, str], flags: dict[str, str], what: str, where: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(None, flags, environ=environ)
    assert caught.value.what.startswith(what)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("jobs: 1\noutput: disk\n", ":2: output: 'disk': "),
        ("jobs: 1\njobz: 2\n", ":2: jobz: is not a key of this section; did you mean 'jobs'?"),
        ("ceiling:\n  memory: 1 KiB\n", ":2: ceiling.memory: '1 KiB': "),
        ("jobs: [\n", ":2: this is not YAML"),
    ],
)
def test_a_wrong_value_in_the_file_names_file_and_line(tmp_path: Path, text: str, what: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {}, environ={})
    assert f"{path}{what}" in str(caught.value)


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(tmp_path / "none.yaml", {}, environ={})
    assert caught.value.what == f"there is no settings file '{tmp_path}/none.yaml'"
