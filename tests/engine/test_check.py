"""The participant's job: init, build, check."""

import json
from pathlib import Path

import pytest

from tests.engine.conftest import Images, leftovers, proctor

pytestmark = pytest.mark.engine

BROKEN = {
    "label out of range": (
        "return (step, first, second), step",
        "return (99, first, second), step",
        "output format",
        "bad-output",
        ["unknown-labels"],
    ),
    "off by one frame": (
        "enumerate(labels)",
        "enumerate(labels, start=1)",
        "output format",
        "bad-output",
        ["off-by-one"],
    ),
    "wrong file": (
        "write(output, labels)",
        "write(output.with_suffix('.txt'), labels)",
        "output format",
        "missing-output",
        ["wrong-extension"],
    ),
    "missing package": (
        "import numpy as np",
        "import numpy as np\nimport torchvision",
        "run",
        "crashed",
        ["module-missing"],
    ),
    "writes beside the code": (
        "write(output, labels)",
        "Path('/app/features.npy').write_text('x')",
        "run",
        "crashed",
        ["read-only"],
    ),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init") / "my-method"
    ran = proctor("init", "pitvis2023", folder)
    assert ran.code == 0, ran.err
    assert "proctor check my-method --challenge pitvis2023" in ran.out
    return folder


def test_the_template_builds_and_passes_at_once(images: Images, template: Path) -> None:
    image = images.folder("template", template)
    ran = proctor("check", image, "--challenge", "pitvis2023")
    assert ran.code == 0, ran.out + ran.err
    last = ran.out.strip().splitlines()[-1]
    assert last.startswith("accepted, not tested: GPU, run time")
    assert "GPU: the final has 1" in ran.out
    assert leftovers(images.engine) == []


@pytest.mark.parametrize("mistake", BROKEN)
def test_one_broken_line_is_rejected_with_its_reason(
    images: Images, template: Path, mistake: str, tmp_path: Path
) -> None:
    old, new, stage, word, slugs = BROKEN[mistake]
    source = (template / "predict.py").read_text()
    assert old in source
    for path in template.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "predict.py").write_text(source.replace(old, new, 1))
    image = images.folder(f"broken-{mistake.replace(' ', '-')}", tmp_path)
    ran = proctor("check", image, "--challenge", "pitvis2023", "--json")
    assert ran.code == 1, ran.out + ran.err
    report = json.loads(ran.out)
    failed = [s for s in report["stages"] if s["state"] == "failed"]
    assert [s["name"] for s in failed] == [stage]
    assert failed[0]["sentence"].startswith(f"{word}: task steps, case ")
    assert [hint["slug"] for hint in failed[0]["hints"]] == slugs
    assert report["accepted"] is False


def test_require_gpu_is_refused_without_one() -> None:
    ran = proctor("check", "proctor-base:1", "--challenge", "pitvis2023", "--require-gpu")
    assert ran.code == 3
    assert "no GPU" in ran.err


def test_a_folder_is_built_and_checked(template: Path) -> None:
    ran = proctor("check", template, "--challenge", "pitvis2023", "--build-arg", "BASE_IMAGE=proctor-base:1")
    assert ran.code == 0, ran.out + ran.err
