"""The schema that editors are given takes what proctor takes, and finds what it refuses."""

import copy
from typing import Any

import jsonschema
import pytest
import yaml

from runner.catalog import load_challenge
from runner.challenge_schema import challenge_schema
from runner.pipeline.challenge_new import KINDS, new_challenge
from runner.shelf import list_challenges
from runner.yaml_text import parse_yaml, read_text

SCHEMA = challenge_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def written(folder: Any) -> Any:
    """What a challenge.yaml says, as proctor's own reader takes it."""
    path = folder / "challenge.yaml"
    return parse_yaml(path, read_text(path)).value


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("folder", list_challenges(), ids=lambda folder: folder.name)
def test_every_bundled_challenge_passes(folder: Any) -> None:
    load_challenge(folder)
    assert [error.message for error in VALIDATOR.iter_errors(written(folder))] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_new_challenge_passes(kind: str, tmp_path: Any) -> None:
    new_challenge("toy", tmp_path, kind=kind)
    load_challenge(tmp_path / "toy")
    assert [error.message for error in VALIDATOR.iter_errors(written(tmp_path / "toy"))] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("limits.memory", "32 gigabytes"),
        ("limits.memory", "32"),
        ("limits.cpus", 0),
        ("limits.run_time", {"fixed": "60 parsecs"}),
        ("limits.run_time", {"per_media": "60 s"}),
        ("limits.gpu", 1),
        ("platform", "windows"),
        ("name", "Not A Name"),
        ("tasks.steps.format.kind", "frame_tables"),
        ("tasks.steps.format.colour", 1),
        ("tasks.steps.format.columns.int_step.labels", ["a..b"]),
        ("tasks.steps.format.missing_frames", "drop"),
        ("tasks.steps.format.missing_frames", {"int_step": 1.5}),
        ("tasks.steps.format.unknown_label", ["int_step"]),
        ("tasks.steps.format.extra_frames", "drop"),
        ("tasks.steps.format.extra_files", "drop"),
        ("tasks.steps.format", {"kind": "answer", "file": "{case}.json"}),
        ("tasks.steps.missing_case", "best"),
        ("cases.inputs", {"left": {"kind": "film", "path": "{case}"}}),
    ],
)
def test_what_proctor_refuses_is_found(path: str, value: Any) -> None:
    good = written(next(folder for folder in list_challenges() if folder.name == "pitvis2023"))
    bad = copy.deepcopy(good)
    *above, last = path.split(".")
    place = bad
    for key in above:
        place = place[key]
    place[last] = value
    assert not VALIDATOR.is_valid(bad)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("FrameTableFormat", "missing_frames", {"int_step": -1}),
        ("FrameTableFormat", "unknown_label", {"int_step": "idle"}),
        ("FrameTableFormat", "extra_frames", "ignore"),
        ("FrameScoresFormat", "missing_frames", 0),
        ("LabelImagesFormat", "missing_frames", 3),
        ("AnswerFormat", "extra_files", "refuse"),
    ],
)
def test_what_a_task_may_take_is_known(kind: str, key: str, value: Any) -> None:
    rule = SCHEMA["$defs"][kind]["properties"][key] | {"$defs": SCHEMA["$defs"]}
    assert jsonschema.Draft202012Validator(rule).is_valid(value)
    assert jsonschema.Draft202012Validator(rule).is_valid("refuse")


@pytest.mark.parametrize(
    "text",
    [
        "{inputs: {left: {kind: frames, path: 'l/{case}', as: '{case}/l'}}, references: '{case}', fps: 2.5}",
        "{inputs: '{case}', references: '{case}', fps: 1}",
    ],
)
def test_inputs_may_be_a_pattern_or_named(text: str) -> None:
    schema = {"$ref": "#/$defs/CaseFiles", "$defs": SCHEMA["$defs"]}
    assert jsonschema.Draft202012Validator(schema).is_valid(yaml.safe_load(text))
