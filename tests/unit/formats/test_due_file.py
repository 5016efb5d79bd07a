"""What a confined child is told of a case, beside its request."""

from hypothesis import given
from hypothesis import strategies as st

from runner.formats.contract import Due
from runner.formats.due_file import due_file, read_due


@given(st.lists(st.text(max_size=20)), st.none() | st.integers(0, 10**9))
def test_a_child_reads_what_was_written(frames: list[str], count: int | None) -> None:
    due = Due(frames=tuple(frames), count=count)
    with due_file(due) as descriptor:
        assert read_due(descriptor) == due
        assert read_due(descriptor) == due


def test_a_name_that_is_no_text_comes_through() -> None:
    due = Due(frames=("a\udcff.png",), count=1)
    with due_file(due) as descriptor:
        assert read_due(descriptor) == due
