"""What the preflight refuses would have failed, and what it foresees of a start is what comes of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engine import FileFacts, RefusalPhase
from runner.engine.docker import DockerEngine
from runner.ownership import LABEL_OWNER
from runner.policy import PolicyName
from runner.preflight import look
from tests.engine.conftest import proctor, submissions_file
from tests.engine.kitchen import PREDICT, SHELL, Dish, Kitchen, Put, open_kitchen, writes_answer
from tests.unit.preflight.conftest import elf

pytestmark = pytest.mark.engine

RUN = ('ENTRYPOINT ["/app/run"]',)
IN_A_CLOSED_FOLDER = (
    "the entry point lies in a folder that only its owner and group may enter, and the container runs as a user "
    "of its own"
)
ONE_NAME = (
    "the program that the script's first line asks env for is not along the PATH of the image: env takes the whole "
    "line for one name"
)
HIDDEN = (
    "the entry point lies in a folder that is empty when it is run here, whose content in the image is hidden when "
    "it is run"
)
GOOD = "#!/bin/sh\n" + SHELL


def run(content: str | bytes, *lines: str, mode: int = 0o755, **links: str) -> Dish:
    """An image with the entry point ``/app/run``."""
    more = {name.replace("__", "/"): Put(link=target) for name, target in links.items()}
    return Dish(lines=(*lines, *RUN), files={"app/run": Put(content=content, mode=mode), **more})


BROKEN = {
    "missing": (Dish(lines=RUN), "the entry point is not in the image"),
    "not along PATH": (Dish(lines=('ENTRYPOINT ["run"]',)), "the entry point is not along the PATH of the image"),
    "a folder": (Dish(lines=RUN, files={"app/run/x": Put()}), "the entry point is a folder"),
    "not executable": (run(GOOD, mode=0o644), "the entry point is not executable"),
    "root's alone": (
        run(GOOD, mode=0o700),
        "the entry point is executable for its owner or group only, and the container runs as a user of its own",
    ),
    "in root's home": (
        Dish(
            lines=("RUN chmod 700 /root", 'ENTRYPOINT ["/root/run"]'),
            files={"root/run": Put(content=GOOD, mode=0o755)},
        ),
        IN_A_CLOSED_FOLDER,
    ),
    "Windows line ends": (
        run(GOOD.replace("\n", "\r\n")),
        "the script's first line ends as lines do on Windows (CR LF), so that its interpreter is not found",
    ),
    "env with options": (
        run("#!/usr/bin/env python3 -u\n" + PREDICT),
        ONE_NAME,
    ),
    "no interpreter": (
        run("#!/opt/conda/bin/python\n" + PREDICT),
        "the interpreter that the script's first line names is not in the image",
    ),
    "another architecture": (
        run(elf(machine=183)),
        "the entry point is built for arm64, the challenge runs linux/amd64",
    ),
    "a loader of Alpine": (
        run(elf(loader="/lib/ld-musl-x86_64.so.1")),
        "the dynamic loader of the entry point is not in the image: it was built on Alpine (musl)",
    ),
    "no script": (
        Dish(lines=('ENTRYPOINT ["python3", "-u", "/app/predict.py"]',)),
        "the script that the entry point is to run is not in the image",
    ),
    "under /tmp": (
        Dish(lines=('ENTRYPOINT ["/tmp/run"]',), files={"tmp/run": Put(content=GOOD, mode=0o755)}),
        HIDDEN,
    ),
    "in a VOLUME": (
        run(GOOD, "VOLUME /app"),
        "the entry point lies in a VOLUME, whose content in the image is hidden when it is run",
    ),
    "a file at a mount": (
        Dish(lines=RUN, files={"app/run": Put(content=GOOD, mode=0o755), "data": Put()}),
        "the image has something else than a folder where the challenge mounts its input folder, /data/inputs",
    ),
    "a link into /proc at a mount": (
        run(GOOD, data__inputs="/proc/1/root"),
        "the image has a link into /proc where the challenge mounts its input folder",
    ),
    "CMD alone": (
        Dish(lines=('CMD ["python3", "/app/predict.py"]',), files={"app/predict.py": Put(content=PREDICT)}),
        "the image has a CMD and no ENTRYPOINT, and the challenge's arguments take the place of CMD",
    ),
    "a shell form without a shell": (
        Dish(lines=('ENTRYPOINT /app/run "$0" "$@"',), base="scratch",
             files={"app/run": Put(content=writes_answer(), mode=0o755)}),
        "the entry point is not in the image",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def kitchen(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    with open_kitchen(engine, tmp_path_factory.mktemp("kitchen")) as opened:
        yield opened


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_refused_would_have_failed(kitchen: Kitchen, name: str) -> None:
    dish, sentence = BROKEN[name]
    image = kitchen.cook(dish)
    findings = kitchen.look(image)
    assert (findings[0].severity.value, findings[0].sentence) == ("refuses", sentence)
    refused = kitchen.run(image, findings=findings)
    assert refused.word.value == "bad-image"
    assert refused.sentence.split("; ")[0] == sentence
    assert refused.hints[0].fix == findings[0].remedy
    # Run all the same it fails; where the engine itself stumbles over it, it would be taken for the host's fault.
    assert kitchen.run(image).word.value in ("bad-image", "crashed", "host-fault")


def test_shell_command_whose_program_is_missing_is_a_bad_image_by_its_exit_code(kitchen: Kitchen) -> None:
    image = kitchen.cook(Dish(lines=('ENTRYPOINT exec segment --fast "$0" "$@"',)))
    findings = kitchen.look(image)
    assert (findings[0].severity.value, findings[0].evidence) == ("warns", "'segment'")
    foreseen = kitchen.run(image, findings=findings)
    assert foreseen.word.value == "bad-image"
    assert foreseen.sentence == f"{findings[0].sentence}; the container ended with exit code 127"
    assert kitchen.run(image).word.value == "crashed"


def test_exit_code_127_of_a_program_that_was_started_is_a_crash(kitchen: Kitchen) -> None:
    image = kitchen.cook(Dish(lines=RUN, files={"app/run": Put(content="#!/bin/sh\nexit 127\n", mode=0o755)}))
    verdict = kitchen.run(image, findings=kitchen.look(image))
    assert verdict.word.value == "crashed"


class Spy(DockerEngine):
    """The real engine, with a look at the containers files are read of."""

    def __init__(self, engine: DockerEngine) -> None:
        super().__init__(engine._clients)
        self.mounted: list[object] = []
        self.states: set[str] = set()

    def read_file(self, container: str, path: str, *, max_bytes: int) -> FileFacts | None:
        """Note what is mounted meanwhile."""
        with self._clients.lend(RefusalPhase.OTHER) as client:
            told = client.inspect_container(container)
        self.mounted += told["Mounts"]
        self.states.add(told["State"]["Status"])
        return super().read_file(container, path, max_bytes=max_bytes)


def test_looking_starts_nothing_copies_no_volume_and_leaves_nothing(kitchen: Kitchen, engine: DockerEngine) -> None:
    files = {"app/run": Put(content=GOOD, mode=0o755), "models/weights": Put(content="x" * 5000)}
    image = kitchen.cook(Dish(lines=("VOLUME /models /app/cache", *RUN), files=files))
    context, spy = kitchen.contexts[PolicyName.STRICT], Spy(engine)
    contents = look(spy, image.facts, context.challenge, labels={LABEL_OWNER: "preflight-test"})
    assert contents.programs[0].found.content == GOOD.encode()
    assert (spy.mounted, spy.states) == ([], {"created"})
    assert [c for c in engine.containers(LABEL_OWNER) if c.labels[LABEL_OWNER] == "preflight-test"] == []


def test_check_quotes_the_images_own_words_and_evaluate_does_not(
    kitchen: Kitchen, hidden: Path, settings: Path, tmp_path: Path
) -> None:
    broken = kitchen.cook(Dish(lines=("HEALTHCHECK CMD true", 'ENTRYPOINT ["/app/<b>run"]')))
    ran = proctor("check", broken.source, "--challenge", "pitvis2023", "--json")
    assert ran.code == 1, ran.out + ran.err
    (stage,) = [s for s in json.loads(ran.out)["stages"] if s["name"] == "preflight"]
    assert stage["sentence"] == "bad-image: the entry point is not in the image: '/app/<b>run'"
    assert stage["hints"][0]["fix"].startswith("COPY it to that place")
    assert "the image's HEALTHCHECK is not run" in stage["notes"]

    out = tmp_path / "run"
    asked = ("evaluate", "pitvis2023", "--data", hidden, "--submissions", tmp_path / "teams.yaml", "--out", out,
             "--settings", settings, "--allow-cpu")  # fmt: skip
    submissions_file(tmp_path / "teams.yaml", {"broken": broken.source})
    ran = proctor(*asked)
    assert ran.code == 0, ran.out + ran.err
    outcomes = [json.loads(path.read_text()) for path in out.glob("submissions/*/*/*/outcome.json")]
    assert {(o["verdict"]["word"], o["verdict"]["sentence"], o["attempt"]) for o in outcomes} == {
        ("bad-image", "the entry point is not in the image", 0)
    }
    (record,) = out.glob("submissions/*/preflight.json")
    findings = json.loads(record.read_text())["findings"]
    assert findings[0]["evidence"] == "'/app/<b>run'"
    assert not [path for path in out.rglob("outcome.json") if "<b>run" in path.read_text()]


def test_compatible_lets_the_images_own_user_in(kitchen: Kitchen) -> None:
    image = kitchen.cook(run(GOOD, mode=0o700))
    findings = kitchen.look(image, PolicyName.COMPATIBLE)
    assert findings == ()
    assert kitchen.run(image, policy=PolicyName.COMPATIBLE, findings=findings).word.value == "accepted"
