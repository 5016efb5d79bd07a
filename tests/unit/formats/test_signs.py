"""What is seen of a refused file, through a real confined child; and the hint that it leads to."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.challenge.formats import AnswerFormat, ArraysFormat, ColumnRule, FrameScoresFormat, LabelImagesFormat
from runner.confine import Confine, ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
from runner.diagnosis import Facts, diagnose
from runner.formats.contract import Due as CaseDue
from runner.formats.frame_table import Role, confined_read
from runner.formats.readers.json_faults import JsonCaps, Top
from runner.formats.readers.json_text import confined_json
from runner.formats.readers.png_image import confined_png
from runner.formats.readers.png_rule import Mode, PngCaps, PngRule
from runner.formats.readers.problems import ProblemList
from runner.formats.signs import Due, Form, Sign, confined_signs, due_of, find_signs, table_due
from runner.verdict import VerdictWord
from tests.hints.files import FILES, FRAMES, MASK, RIGHT, RIGHT_FILES, ROWS, RULE, TABLE, File, table

NAMES = [f"{number}-{one.slug}" for number, one in enumerate(FILES)]


def hints(signs: frozenset[Sign]) -> tuple[str, ...]:
    return tuple(hint.slug for hint in diagnose(Facts(word=VerdictWord.BAD_OUTPUT, exit_code=0, signs=signs)))


def is_refused(confine: Confine, one: Due, path: Path) -> bool:
    """What the readers themselves say of a file; of scores in a table there is no reader yet."""
    if one == TABLE:
        return confined_read(confine, RULE, path, frames=FRAMES, role=Role.PREDICTION).prediction is None
    problems = ProblemList()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if one.form is Form.JSON:
            confined_json(confine, descriptor, caps=JsonCaps(), top=Top.ANY, problems=problems)
        elif one.form is Form.IMAGE:
            rule = PngRule(mode=Mode.GREY, width=one.width, height=one.height)
            confined_png(confine, descriptor, rule=rule, caps=PngCaps(), problems=problems)
    finally:
        os.close(descriptor)
    return problems.count > 0


@pytest.mark.parametrize("one", FILES, ids=NAMES)
def test_a_file_gets_its_hint_first(confine: Confine, tmp_path: Path, one: File) -> None:
    path = tmp_path / "prediction"
    path.write_bytes(one.content)
    assert hints(confined_signs(confine, one.due, path)) == (one.slug, *one.then)


@pytest.mark.parametrize("one", [one for one in FILES if one.due in (TABLE, MASK)], ids=lambda one: one.slug)
def test_the_reader_refuses_that_file(confine: Confine, tmp_path: Path, one: File) -> None:
    path = tmp_path / "prediction"
    path.write_bytes(one.content)
    assert is_refused(confine, one.due, path)


@pytest.mark.parametrize("name", RIGHT_FILES)
def test_nothing_is_seen_of_a_right_file(confine: Confine, tmp_path: Path, name: str) -> None:
    due, content = RIGHT_FILES[name]
    path = tmp_path / "prediction"
    path.write_bytes(content)
    assert confined_signs(confine, due, path) == frozenset()


@pytest.mark.parametrize("name", ["table", "table with Windows line ends", "table in quotes, columns turned round"])
def test_the_reader_takes_that_right_table(confine: Confine, tmp_path: Path, name: str) -> None:
    path = tmp_path / "prediction"
    path.write_bytes(RIGHT_FILES[name][1])
    assert not is_refused(confine, TABLE, path)


def test_a_table_is_due_as_its_rule_says() -> None:
    assert table_due(RULE, 7) == Due(
        form=Form.TABLE, frames=7, names=("int_time", "int_step"), separator=",", first=0, step=1,
        labels=tuple(range(-1, 15)),
    )  # fmt: skip


def test_what_is_due_of_each_format() -> None:
    case = CaseDue(frames=("a.png",), count=7)
    assert due_of(RULE, case) == table_due(RULE, 7)
    lacking = RULE.model_copy(update={"missing_frames": {"int_step": 1}})
    assert table_due(lacking, 7) == table_due(RULE, None)
    scores = FrameScoresFormat(kind="frame_scores", file="{case}", classes=2)
    assert due_of(scores, case) == Due(form=Form.JSON)
    assert due_of(scores.model_copy(update={"range": (-1.0, 1.0)}), case) == Due(form=Form.JSON, unit=False)
    assert due_of(scores.model_copy(update={"layout": "table"}), case) is None
    answer = AnswerFormat.model_validate({"kind": "answer", "file": "{case}", "fields": {"x": {"type": "number"}}})
    assert due_of(answer, case) == Due(form=Form.JSON, unit=False)
    images = LabelImagesFormat.model_validate({
        "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 16, "height": 8,
        "classes": {0: {"name": "x"}},
    })  # fmt: skip
    assert due_of(images, case) == MASK
    assert due_of(images.model_copy(update={"coding": "colour"}), case) == replace(MASK, colour=True)
    arrays = ArraysFormat.model_validate(
        {"kind": "arrays", "file": "{case}.npy", "arrays": {"x": {"type": "bool", "shape": []}}}
    )
    assert due_of(arrays, case) is None


def test_of_other_numbers_than_scores_no_scale_is_seen() -> None:
    content = b'{"seconds": 700.5, "x": NaN}'
    assert find_signs(Due(form=Form.JSON), content) == {Sign.LOGITS, Sign.NOT_A_NUMBER}
    assert find_signs(Due(form=Form.JSON, unit=False), content) == {Sign.NOT_A_NUMBER}


def test_of_a_table_of_names_the_cells_are_not_looked_at() -> None:
    named = table_due(RULE.model_copy(update={"columns": {"int_step": ColumnRule(names=("Idle", "Hold"))}}), FRAMES)
    assert named.named
    rows = [(t + 1, "Idle") for t, _ in ROWS]
    assert find_signs(named, table(rows)) == {Sign.OFF_BY_ONE}
    assert find_signs(TABLE, table(rows)) == {Sign.OFF_BY_ONE, Sign.NAMES}


def test_columns_that_are_not_asked_for_are_not_looked_at() -> None:
    due = table_due(RULE, 2)
    index, column = due.names
    assert find_signs(due, f"{index},{column},other\n1,1,99\n2,1,0.5\n".encode()) == {Sign.OFF_BY_ONE}
    assert Sign.UNKNOWN_LABELS in find_signs(due, f"{index},{column},other\n1,99,1\n2,1,1\n".encode())


def test_of_a_folder_the_first_file_is_looked_at(confine: Confine, tmp_path: Path) -> None:
    assert confined_signs(confine, MASK, tmp_path) == frozenset()
    (tmp_path / "b.png").write_bytes(b"GIF8")
    (tmp_path / "a.png").write_bytes(b"\xff\xd8\xff")
    assert confined_signs(confine, MASK, tmp_path) == {Sign.JPEG}
    (tmp_path / "a").symlink_to("b.png")
    assert confined_signs(confine, MASK, tmp_path) == frozenset()


@pytest.mark.parametrize(
    ("content", "signs"),
    [
        (table([(t + 2, x) for t, x in ROWS]), set()),
        (table([*ROWS, (FRAMES, 1), (FRAMES + 1, 1)]), set()),
        (table([(t - 1, x) for t, x in ROWS]), {Sign.OFF_BY_ONE}),
        (table([(t + 1, x) for t, x in ROWS[:5]]), set()),
        (table([(t, x) for t, x in ROWS if t != 4]), set()),
        (table(ROWS[:1]), set()),
        (table([*ROWS[:5], (5, 1, 7), *ROWS[6:]]), set()),
        (table([(t, 100) for t, _ in ROWS]), {Sign.UNKNOWN_LABELS}),
        (table([(t, -1) for t, _ in ROWS]), set()),
        (table([(t, 0) for t, _ in ROWS], "0,1"), {Sign.HEADER_NUMBERED}),
        (table([(t + 1, 0) for t, _ in ROWS[:-1]], "0,1"), {Sign.HEADER_MISSING}),
        (table([(t, 0, 5) for t, _ in ROWS], "int_time,int_step,note"), set()),
        (table([(t, "1.0") for t, _ in ROWS]), {Sign.FLOAT_IDS}),
        (table([(t, "1.5" if t else "-0.5") for t, _ in ROWS]), {Sign.LOGITS}),
        (table([(t, 100.5) for t, _ in ROWS]), {Sign.LOGITS}),
        (table([(t, 99.5) for t, _ in ROWS]), {Sign.PERCENT}),
        (table([(t, "0.5") for t, _ in ROWS]), {Sign.PROBABILITIES}),
        (table([(t, "inf" if t else "3") for t, _ in ROWS]), {Sign.NOT_A_NUMBER}),
        (table([*ROWS[:5], (3, 1), *ROWS[6:]]), set()),
        (b"int_time,int_step\n" + b"x" * 5000 + b"\n", {Sign.NO_ROWS}),
        (b'"\n', {Sign.INDEX_COLUMN, Sign.NO_ROWS}),
    ],
)  # fmt: skip
def test_signs_of_a_table(content: bytes, signs: set[Sign]) -> None:
    assert find_signs(TABLE, content) == signs


@given(st.binary(max_size=300), st.sampled_from([TABLE, replace(TABLE, labels=None), MASK, Due(form=Form.JSON)]))
def test_any_bytes_have_signs_or_none(content: bytes, due: Due) -> None:
    assert find_signs(due, content) <= set(Sign)


@given(st.text(alphabet="0123456789.,;-+eE\n\t \"'naif|_", max_size=200))
def test_any_text_has_signs_or_none(text: str) -> None:
    content = b"int_time,int_step\n" + text.encode()
    assert find_signs(TABLE, content) <= set(Sign)


# The parent believes nothing.


class Answering(Confine):
    """A child that answers this."""

    def __init__(self, answer: Reply | ConfinedFailure) -> None:
        super().__init__()
        self._answer = answer

    def call(
        self,
        function: str,
        request: Mapping[str, JsonValue],  # noqa: ARG002
        *,
        descriptors: Sequence[int] = (),
        deadline: float,  # noqa: ARG002
        memory: int,  # noqa: ARG002
        privileges: Privileges,
        array_bytes: int = 0,  # noqa: ARG002
    ) -> Reply:
        assert (function, privileges, len(descriptors)) == (
            "runner.formats.signs.look_in_child", Privileges.DROP, 1,
        )  # fmt: skip
        if isinstance(self._answer, ConfinedFailure):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("signs", "believed"),
    [
        (["jpeg", "SECRET", 7, None, ["jpeg"], "names"], {Sign.JPEG, Sign.NAMES}),
        ("jpeg", set()),
        (None, set()),
        ({"jpeg": 1}, set()),
    ],
)
def test_a_child_that_was_taken_over_can_only_choose_words_of_ours(
    tmp_path: Path, signs: JsonValue, believed: set[Sign]
) -> None:
    (tmp_path / "x").write_bytes(RIGHT)
    assert confined_signs(Answering(Reply(header={"signs": signs})), TABLE, tmp_path / "x") == believed


def test_a_child_that_fails_gives_no_signs(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(RIGHT)
    failing = Answering(ConfinedFailure(FailureKind.DIED, "it died"))
    assert confined_signs(failing, TABLE, tmp_path / "x") == frozenset()


def test_what_is_no_regular_file_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    unasked = Answering(Reply(header={"signs": ["jpeg"]}))
    for name in ("link", "folder", "pipe", "nothing"):
        assert confined_signs(unasked, TABLE, tmp_path / name) == frozenset()


def test_the_beginning_of_a_huge_file_is_enough(confine: Confine, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.write(b"\xff\xd8\xff")
        file.truncate(1 << 40)
    assert confined_signs(confine, MASK, path) == {Sign.JPEG}
