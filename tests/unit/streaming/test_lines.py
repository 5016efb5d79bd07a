"""What a container prints is cut into messages and log, however it comes and within bounds."""

from hypothesis import given
from hypothesis import strategies as st

from runner.streaming.lines import Line, Lines, Tail, TooLong


def _cut(data: bytes, *, places: list[int], longest: int = 64) -> tuple[list[bytes | None], bytes, bool]:
    """The messages, with None for one that is too long, the log, and whether the last message has no end."""
    log = Tail(1 << 20)
    lines = Lines(longest=longest, log=log)
    heard: list[bytes | None] = []
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        heard.extend(one.text if isinstance(one, Line) else None for one in lines.feed(data[start:end], 0.0))
    return heard, log.content(), lines.unfinished


def test_a_line_that_begins_with_a_brace_is_a_message_and_all_else_is_log() -> None:
    data = b'loading\n{"a":1}\n {"no":1}\n\n{}\r\n50 % {"no":2}\n{"b":2}\nbye'
    assert _cut(data, places=[]) == (
        [b'{"a":1}', b"{}\r", b'{"b":2}'],
        b'loading\n {"no":1}\n\n50 % {"no":2}\nbye',
        False,
    )


def test_half_a_message_is_no_message_and_is_known_for_one() -> None:
    assert _cut(b'x\n{"a":', places=[]) == ([], b"x\n", True)
    assert _cut(b'{"a":1}\n', places=[]) == ([b'{"a":1}'], b"", False)


def test_a_message_may_be_as_long_as_the_bound_and_no_longer() -> None:
    fits, over = b"{" + b"x" * 63, b"{" + b"x" * 64
    assert _cut(fits + b"\n" + over + b"\n{}\n", places=[]) == ([fits, None, b"{}"], b"", False)


def test_a_message_without_an_end_is_told_once_and_takes_no_memory() -> None:
    lines = Lines(longest=1000, log=Tail(1000))
    told = [one for _ in range(1000) for one in lines.feed(b"{" * 1000, 1.0)]
    assert told == [TooLong(at=1.0)]
    assert not lines.unfinished


def test_a_message_is_stamped_by_its_last_byte() -> None:
    lines = Lines(longest=64, log=Tail(64))
    assert list(lines.feed(b'{"a"', 1.0)) == []
    assert list(lines.feed(b":1}\n{}", 2.0)) == [Line(text=b'{"a":1}', at=2.0)]
    assert list(lines.feed(b"\n", 3.0)) == [Line(text=b"{}", at=3.0)]


def test_of_a_log_the_end_is_kept_and_all_is_counted() -> None:
    tail = Tail(10)
    for number in range(100):
        tail.write(f"{number:02d}".encode())
    assert tail.content() == b"9596979899"
    assert tail.written == 200
    tail.write(b"x" * 1000 + b"end")
    assert tail.content() == b"xxxxxxxend"
    assert tail.written == 1203


@given(
    st.lists(st.sampled_from([b"{", b"}", b"\n", b"\r", b"x", b'{"a":1}\n', b"{" * 70, b"log\n", b"\xff"])).map(
        b"".join
    ),
    st.data(),
)
def test_however_the_bytes_are_cut_the_lines_are_the_same(data: bytes, draw: st.DataObject) -> None:
    places = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    assert _cut(data, places=places) == _cut(data, places=[])


@given(st.binary(max_size=300))
def test_messages_and_log_are_all_there_is(data: bytes) -> None:
    heard, log, unfinished = _cut(data, places=[], longest=1000)
    told = b"".join(line + b"\n" for line in data.split(b"\n")[:-1] if not line.startswith(b"{"))
    last = data.split(b"\n")[-1]
    assert log == told + (b"" if last.startswith(b"{") else last)
    assert heard == [line for line in data.split(b"\n")[:-1] if line.startswith(b"{")]
    assert unfinished == last.startswith(b"{")
