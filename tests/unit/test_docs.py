"""The documents say what is: links resolve, files and targets exist, command lines parse."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from runner.cli.application import build_app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/authoring.md",
    "docs/causality.md", "docs/malformed.md", "docs/streaming.md",
)  # fmt: skip
WITH_COMMANDS = ("README.md", "CONTRIBUTING.md", "docs/authoring.md", "docs/causality.md", "docs/streaming.md")
TREES = "runner|tests|challenges|templates|demo|tools|docs|benchmarks|\\.ci"

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(rf"`((?:{TREES})/[\w./-]+)`")
NAMED_TARGET = re.compile(r"(?:`|^\$ )make ([a-z][a-z-]*)", re.MULTILINE)
CONSOLE = re.compile(r"^( *)```console\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)

FORBIDDEN = {
    "it is installed from the repository or a wheel": re.compile(r"pip3? install (?:-\S+ )*[\"']?proctor\b"),
    "it names a machine's own path": re.compile(r"/(?:work|home|root|Users)/"),
    "a token was left unfilled": re.compile(r"@@\w*@@"),
}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """The fragments a forge makes of a document's headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}


def console_lines(text: str) -> Iterator[str]:
    """What is typed in the console blocks of a document, a command a line, without where its answer is kept."""
    for _, block in CONSOLE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.strip().removeprefix("$ ").partition(" > ")[0]


def proctor_lines() -> list[tuple[str, str]]:
    """Every ``proctor …`` line, with its document."""
    return [
        (name, line)
        for name in WITH_COMMANDS
        for line in console_lines(text_of(name))
        if line.split(maxsplit=1)[:1] in (["proctor"], [".venv/bin/proctor"])
    ]


def unparsed(line: str) -> list[str]:
    """Why the real command line would refuse a line; nothing is run and no path is looked at."""
    words = shlex.split(line, comments=True)[1:]
    command: object = typer.main.get_command(build_app())
    while (found := getattr(command, "commands", None)) is not None:
        if words == ["--help"]:
            return []
        if not words or words[0] not in found:
            return [f"{words[:1]} is none of {sorted(found)}"]
        command = found[words.pop(0)]
    assert isinstance(command, typer.core.TyperCommand)
    parser = command.make_parser(typer.Context(command))
    try:
        given, rest, _ = parser.parse_args(words)
    except Exception as error:  # noqa: BLE001  whatever the parser's library raises is a refusal
        return [str(error)]
    missing = [f"{p.name} is missing" for p in command.params if p.required and given.get(p.name or "") is None]
    return missing + [f"{word!r} is one too many" for word in rest]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    broken = []
    for link in LINK.findall(text_of(name)):
        path, _, fragment = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (fragment and fragment not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_named_file_exists(name: str) -> None:
    assert [path for path in NAMED_FILE.findall(text_of(name)) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_named_make_target_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", text_of("Makefile"), re.MULTILINE))
    assert set(NAMED_TARGET.findall(text_of(name))) <= targets


def test_make_help_lists_every_target_people_call() -> None:
    makefile = text_of("Makefile")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    explained = set(re.findall(r"^([a-z][a-z-]*):.*## ", makefile, re.MULTILINE))
    assert set(phony[1].split()) - explained == {"chromium", "registry-tools", "runsc"}


@pytest.mark.parametrize("name", [*DOCUMENTS, "Makefile", "demo/submissions.yaml", "demo/settings.yaml"])
def test_no_document_says_what_is_not_so(name: str) -> None:
    text = text_of(name)
    assert {why: found[0] for why, pattern in FORBIDDEN.items() if (found := pattern.search(text))} == {}


def test_the_documents_show_commands() -> None:
    assert {name for name, _ in proctor_lines()} == set(WITH_COMMANDS)


@pytest.mark.parametrize(("name", "line"), proctor_lines())
def test_every_command_line_parses(name: str, line: str) -> None:
    assert unparsed(line) == [], name


@pytest.mark.parametrize(
    "line",
    [
        "proctor",
        "proctor evalute pitvis2023",
        "proctor check my-method",
        "proctor check my-method --challenge pitvis2023 --gpu",
        "proctor check my-method --challenge",
        "proctor status",
        "proctor status one two",
        "proctor challenge",
    ],
)
def test_a_wrong_command_line_does_not_parse(line: str) -> None:
    assert unparsed(line) != []


def test_the_architecture_fits_on_a_few_screens() -> None:
    assert len(text_of("ARCHITECTURE.md").splitlines()) < 150
