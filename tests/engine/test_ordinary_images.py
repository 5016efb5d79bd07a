"""Images as people publish them run correctly under ``strict``, or under ``compatible`` with the reason."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.engine import Engine
from runner.policy import PolicyName
from tests.engine.kitchen import (
    PREDICT,
    SHELL,
    Dish,
    Kitchen,
    Put,
    open_kitchen,
    starts_the_rest,
    writes_answer,
)

pytestmark = pytest.mark.engine

STRICT, COMPATIBLE = PolicyName.STRICT, PolicyName.COMPATIBLE
PYTHON = 'ENTRYPOINT ["python3", "/app/predict.py"]'
SCRIPT = {"app/predict.py": Put(content=PREDICT)}
IN_CACHE = "import os\nfolder = os.path.expanduser('~/.cache/method')\nos.makedirs(folder)\nopen(folder + '/x', 'w')\n"
IN_OWN_TREE = "import os\nopen(os.path.join(os.path.dirname(__file__), 'weights.tmp'), 'w').write('x')\n"
IN_VOLUME = "open('/cache/x', 'w').write('x' * 1000)\n"
VOLUME = "the image declares a VOLUME, which is empty and at most 16 MiB when it is run here"
UNREADABLE = (
    "the script that the entry point is to run is readable for its owner or group only, and the container runs as a "
    "user of its own"
)
WITHOUT_FIRST_LINE = (
    "the entry point is a script without a first line that names its interpreter: /bin/sh runs it here, other engines "
    "refuse it"
)
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, kw_only=True)
class Ordinary:
    """An image, the policy it needs, what ``strict`` finds in it and what it says where it needs more.

    Attributes:
        policy: The strictest it runs under.
        found: Severity and sentence of what the preflight finds under ``strict``, but for the note on its user.
        word: The verdict under ``strict`` where it needs ``compatible``.
    """

    dish: Dish
    policy: PolicyName = STRICT
    found: tuple[tuple[str, str], ...] = ()
    word: str = ""


def python(*lines: str, start: str = PYTHON, **files: str) -> Dish:
    """An image with a Python script, more lines and more text files."""
    more = {name.replace("__", "/"): Put(content=text, mode=0o755) for name, text in files.items()}
    return Dish(lines=(*lines, start), files={**SCRIPT, **more})


def script(text: str, *lines: str) -> Dish:
    """An image whose script is another one."""
    return Dish(lines=(*lines, PYTHON), files={"app/predict.py": Put(content=text)})


def executable(text: str | bytes, *lines: str, base: str = "proctor-base:1") -> Dish:
    """An image with one executable file."""
    return Dish(lines=(*lines, 'ENTRYPOINT ["/app/run"]'), files={"app/run": Put(content=text, mode=0o755)}, base=base)


IMAGES = {
    "python script by a relative path": Ordinary(
        dish=python("WORKDIR /app", start='ENTRYPOINT ["python3", "predict.py"]')
    ),
    "conda-like: python by a link on PATH": Ordinary(
        dish=Dish(
            lines=("ENV PATH=/opt/conda/bin:$PATH", 'ENTRYPOINT ["python", "-u", "/app/predict.py"]'),
            files={**SCRIPT, "opt/conda/bin/python": Put(link="python3.11"),
                   "opt/conda/bin/python3.11": Put(link="/usr/bin/python3.11")},
        )
    ),
    "virtual environment": Ordinary(
        dish=Dish(
            lines=("ENV VIRTUAL_ENV=/opt/venv", "ENV PATH=/opt/venv/bin:$PATH", 'ENTRYPOINT ["/app/run"]'),
            files={"opt/venv/bin/python": Put(link="/usr/bin/python3"),
                   "opt/venv/pyvenv.cfg": Put(content="home = /usr/bin\ninclude-system-site-packages = false\n"),
                   "opt/venv/lib/python3.11/site-packages/method.py": Put(content=PREDICT),
                   "app/run": Put(content="#!/usr/bin/env python\nimport method\n", mode=0o755)},
        )
    ),
    "named USER": Ordinary(
        dish=python("RUN echo 'app:x:1000:1000::/home/app:/bin/sh' >> /etc/passwd", "USER app")
    ),
    "numeric USER": Ordinary(dish=python("USER 12345:12345")),
    "files of root alone": Ordinary(
        dish=Dish(lines=(PYTHON,), files={"app/predict.py": Put(content=PREDICT, mode=0o600)}),
        policy=COMPATIBLE, found=(("refuses", UNREADABLE),), word="bad-image",
    ),
    "ENTRYPOINT with arguments, and CMD": Ordinary(
        dish=python('CMD ["--help"]', start='ENTRYPOINT ["python3", "-u", "/app/predict.py", "--mode", "fast"]')
    ),
    "shell form": Ordinary(dish=python(start='ENTRYPOINT exec python3 /app/predict.py "$0" "$@"')),
    "VOLUME": Ordinary(dish=script(IN_VOLUME + PREDICT, "VOLUME /cache"), found=(("note", VOLUME),)),
    "HEALTHCHECK": Ordinary(
        dish=python("HEALTHCHECK --interval=1s CMD touch /data/outputs/unasked"),
        found=(("note", "the image's HEALTHCHECK is not run"),),
    ),
    "from scratch, no shell": Ordinary(dish=executable(writes_answer(), base="scratch")),
    "static binary": Ordinary(dish=executable(writes_answer(), "USER nobody")),
    "shell script": Ordinary(dish=executable("#!/bin/sh -e\n" + SHELL)),
    "script by env -S": Ordinary(dish=executable("#!/usr/bin/env -S python3 -u\n" + PREDICT)),
    "script without a first line": Ordinary(
        dish=executable(SHELL),
        found=(("note", WITHOUT_FIRST_LINE),),
    ),
    "WORKDIR on top of WORKDIR": Ordinary(
        dish=Dish(
            lines=("WORKDIR /srv", "WORKDIR app/code", 'ENTRYPOINT ["./run.sh"]'),
            files={"srv/app/code/run.sh": Put(content='#!/bin/sh\nexec python3 lib/predict.py "$@"\n', mode=0o755),
                   "srv/app/code/lib/predict.py": Put(content=PREDICT)},
        )
    ),
    "odd PATH": Ordinary(
        dish=Dish(
            lines=("ENV PATH=/none::/app/bin:/usr/bin", 'ENTRYPOINT ["predict"]'),
            files={"app/bin/predict": Put(content="#!/usr/bin/python3\n" + PREDICT, mode=0o755)},
        )
    ),
    "entry point by links": Ordinary(
        dish=Dish(
            lines=('ENTRYPOINT ["predict"]',),
            files={"usr/local/bin/predict": Put(link="../../../app/current/run"), "app/current": Put(link="v2"),
                   "app/v2/run": Put(content="#!/bin/sh\n" + SHELL, mode=0o755)},
        )
    ),
    "python -m package": Ordinary(
        dish=Dish(
            lines=("WORKDIR /app", 'ENTRYPOINT ["python3", "-m", "method"]'),
            files={"app/method/__init__.py": Put(), "app/method/__main__.py": Put(content=PREDICT)},
        )
    ),
    "writes to ~/.cache": Ordinary(dish=script(IN_CACHE + PREDICT, "ENV HOME=/root"),
                                   found=(("note", "the image's HOME is replaced by /tmp"),)),
    "an init of its own": Ordinary(
        dish=Dish(
            lines=('ENTRYPOINT ["/sbin/tini", "--", "/usr/bin/python3", "/app/predict.py"]',),
            files={**SCRIPT, "usr/sbin/tini": Put(content=starts_the_rest(), mode=0o755)},
        )
    ),
    "writes to its own tree": Ordinary(dish=script(IN_OWN_TREE + PREDICT), policy=COMPATIBLE, word="crashed"),
    "many layers": Ordinary(
        dish=Dish(lines=(*(f"COPY root/app/predict.py /layers/{letter}.py" for letter in ALPHABET),
                         'ENTRYPOINT ["python3", "/layers/z.py"]'), files=SCRIPT)
    ),
    "ONBUILD, LABEL, STOPSIGNAL, EXPOSE": Ordinary(
        dish=python('LABEL proctor.owner="me"', "ONBUILD RUN false", "STOPSIGNAL SIGINT", "EXPOSE 80/tcp", "USER 0")
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def kitchen(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    with open_kitchen(engine, tmp_path_factory.mktemp("kitchen")) as opened:
        yield opened


@pytest.mark.parametrize("name", IMAGES)
def test_ordinary_image(kitchen: Kitchen, name: str) -> None:
    ordinary = IMAGES[name]
    image = kitchen.cook(ordinary.dish)
    findings = kitchen.look(image)
    told = [(f.severity.value, f.sentence) for f in findings if "runs as a user of its own, not as" not in f.sentence]
    assert told == list(ordinary.found)
    verdict = kitchen.run(image, findings=findings)
    if ordinary.policy is COMPATIBLE:
        assert verdict.word.value == ordinary.word, verdict
        findings = kitchen.look(image, COMPATIBLE)
        assert findings == ()
        verdict = kitchen.run(image, policy=COMPATIBLE, findings=findings)
    assert verdict.word.value == "accepted", verdict


def test_there_are_twenty_and_all_but_two_run_under_strict() -> None:
    assert len(IMAGES) >= 20
    assert sorted(name for name, image in IMAGES.items() if image.policy is COMPATIBLE) == [
        "files of root alone",
        "writes to its own tree",
    ]


def test_init_of_ours_follows_what_an_images_own_init_starts(kitchen: Kitchen, tmp_path: Path) -> None:
    dish = IMAGES["an init of its own"].dish
    image = kitchen.cook(Dish(lines=dish.lines, files={"usr/sbin/tini": dish.files["usr/sbin/tini"]}))
    assert kitchen.look(image)[0].full == (
        "the script that the entry point is to run is not in the image: '/app/predict.py'"
    )
