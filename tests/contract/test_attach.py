"""What every ``Engine`` must do when it is asked to join a container's streams; run on the fake and on the real one."""

import threading
from typing import TYPE_CHECKING

import pytest

from runner.engine import Attached, EngineRefusal, Output, Piece, RefusalPhase

if TYPE_CHECKING:
    from tests.contract.conftest import Bench


def _attached(bench: "Bench", program: str) -> tuple[str, Attached]:
    container = bench.engine.create(bench.spec(program, stdin=True))
    attached = bench.engine.attach(container)
    bench.engine.start(container)
    return container, attached


def _written(pieces: list[Piece], output: Output) -> bytes:
    return b"".join(piece.content for piece in pieces if piece.output is output)


def _read_until(attached: Attached, end: bytes) -> list[Piece]:
    pieces: list[Piece] = []
    while not _written(pieces, Output.STDOUT).endswith(end):
        piece = attached.read()
        assert piece is not None
        pieces.append(piece)
    return pieces


def test_nothing_that_is_printed_is_lost_from_the_start_to_the_exit(bench: "Bench") -> None:
    container, attached = _attached(bench, "lines")
    pieces = list(iter(attached.read, None))
    lines = _written(pieces, Output.STDOUT).splitlines()
    assert lines == [f"line {number:04d} {'x' * 50}".encode() for number in range(1, 2001)]
    assert attached.read() is None
    assert bench.wait(container).code == 0
    attached.close()


def test_two_outputs_are_told_apart_and_input_arrives_and_ends(bench: "Bench") -> None:
    container, attached = _attached(bench, "talk")
    _read_until(attached, b"ready\n")
    for word in (b"one", b"two"):
        assert attached.write(word + b"\n", seconds=10) == 4
        assert _written(_read_until(attached, word + b"\n"), Output.STDOUT) == b"heard " + word + b"\n"
    attached.end_input()
    rest = list(iter(attached.read, None))
    assert _written(rest, Output.STDOUT) == b"no more\n"
    assert bench.wait(container).code == 4
    attached.close()


def test_standard_error_comes_too(bench: "Bench") -> None:
    _, attached = _attached(bench, "talk")
    attached.end_input()
    pieces = list(iter(attached.read, None))
    assert _written(pieces, Output.STDERR) == b"a note\n"
    assert _written(pieces, Output.STDOUT) == b"ready\nno more\n"
    attached.close()


def test_closing_wakes_the_reader_and_ends_the_containers_input(bench: "Bench") -> None:
    container, attached = _attached(bench, "talk")
    _read_until(attached, b"ready\n")
    seen: list[Piece] = []
    reader = threading.Thread(target=lambda: seen.extend(iter(attached.read, None)), daemon=True)
    reader.start()
    attached.close()
    reader.join(timeout=10)
    assert not reader.is_alive()
    assert _written(seen, Output.STDOUT) == b""
    assert attached.write(b"more\n", seconds=0) == 0
    bench.engine.kill(container)
    assert bench.wait(container).code in (4, 137)
    attached.close()


def test_a_killed_container_ends_the_reading(bench: "Bench") -> None:
    container, attached = _attached(bench, "talk")
    _read_until(attached, b"ready\n")
    bench.engine.kill(container)
    assert list(iter(attached.read, None)) == []
    assert bench.wait(container).code == 137
    attached.close()


def test_what_is_not_there_cannot_be_joined(bench: "Bench") -> None:
    with pytest.raises(EngineRefusal) as refusal:
        bench.engine.attach(bench.name())
    assert refusal.value.phase is RefusalPhase.ATTACH
    assert refusal.value.status == 404
