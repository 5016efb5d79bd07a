"""ELF headers and first lines, read out of strangers' bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.preflight.executable import (
    Elf,
    Shebang,
    env_program,
    foreign_system,
    is_plain_text,
    read_elf,
    read_shebang,
)
from tests.unit.preflight.conftest import GLIBC, elf

LOADER = "/lib/ld.so"


def elf_32(loader: str) -> bytes:
    """A 32-bit ARM program of the byte order that ARM has."""
    name = loader.encode() + b"\0"
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    rest = struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    return ident + rest + struct.pack("<IIIIIIII", 3, 84, 0, 0, len(name), len(name), 4, 1) + name


def test_machine_and_loader() -> None:
    assert read_elf(elf(loader=GLIBC)) == Elf(machine=62, loader=GLIBC)
    assert read_elf(elf(machine=183)) == Elf(machine=183, loader="")
    assert read_elf(elf(loader="/" + "x" * 4094)) == Elf(machine=62, loader="/" + "x" * 4094)
    assert read_elf(elf_32(LOADER)) == Elf(machine=40, loader=LOADER)


def test_machine_of_the_other_byte_order() -> None:
    header = bytearray(elf())
    header[5] = 2
    header[16:20] = struct.pack(">HH", 2, 22)
    assert read_elf(bytes(header)) == Elf(machine=22, loader="")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", elf()[:63], b"\x7fELX" + elf()[4:], elf(kind=1), elf(kind=4),
     elf()[:4] + b"\x03" + elf()[5:], elf()[:5] + b"\x03" + elf()[6:]],
)  # fmt: skip
def test_no_program(content: bytes) -> None:
    assert read_elf(content) is None


def _patched(place: int, layout: str, value: int) -> bytes:
    content = bytearray(elf(loader=LOADER))
    struct.pack_into(layout, content, place, value)
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        elf(loader=LOADER)[:-1],
        elf(loader="no/slash"),
        elf(loader="/" + "x" * 4095),
        _patched(32, "<Q", 1 << 63),  # where the program headers begin
        _patched(64, "<I", 2),  # the kind of the first
        _patched(72, "<Q", 1 << 62),  # where the name begins
        _patched(96, "<Q", 1 << 62),  # how long it is
        _patched(96, "<Q", 1),
    ],
)
def test_loader_that_is_not_told(content: bytes) -> None:
    found = read_elf(content)
    assert found is not None
    assert found.loader == ""


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_are_read_without_an_error(noise: bytes, place: int) -> None:
    content = elf(loader=LOADER)
    spoilt = content[:place] + noise + content[place + len(noise) :]
    for bytes_of_a_stranger in (noise, spoilt, b"#!" + noise, b"MZ" + noise, content[:16] + noise):
        read_elf(bytes_of_a_stranger)
        read_shebang(bytes_of_a_stranger)
        foreign_system(bytes_of_a_stranger)
        is_plain_text(bytes_of_a_stranger)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"#!/bin/sh\n", ("/bin/sh", "", False)),
        (b"#!/bin/sh", ("/bin/sh", "", False)),
        (b"#!  /bin/sh \t\n", ("/bin/sh", "", False)),
        (b"#!/bin/sh\t-e -x \n", ("/bin/sh", "-e -x", False)),
        (b"#!/bin/sh\r\n", ("/bin/sh\r", "", True)),
        (b"#!/bin/sh -e\r\n", ("/bin/sh", "-e\r", True)),
        (b"#!/bin/sh \r\n", ("/bin/sh", "\r", True)),
        (b"#!/" + b"x" * 252 + b"\nrest", ("/" + "x" * 252, "", False)),
        (b"#!/" + b"x" * 253 + b"\nrest", None),
        (b"#!/" + b"x" * 252, ("/" + "x" * 252, "", False)),
        (b"#!/" + b"x" * 253, None),
        (b"#!\n", None),
        (b"#!\r\n", None),
        (b"#!/bin/\xff\n", None),
        (b" #!/bin/sh\n", None),
        (b"", None),
    ],
)
def test_first_line(content: bytes, line: tuple[str, str, bool] | None) -> None:
    expected = Shebang(interpreter=line[0], argument=line[1], windows=line[2]) if line else None
    assert read_shebang(content) == expected


@pytest.mark.parametrize(
    ("argument", "program"),
    [
        ("python3", "python3"), ("python3 -u", "python3 -u"), ("", None), ("-i x", None), ("A=1", None),
        ("-S python3 -u", "python3"), ("-Spython3", "python3"), ("-S A=1 B=2 python3", "python3"),
        ("-S -i python3", None), ("-S PATH=/x python3", None), ("-S 'a b'", None), ("-S ${X}", None), ("-S", None),
        ("-S a\\_b", None),
    ],
)  # fmt: skip
def test_program_that_env_is_asked_for(argument: str, program: str | None) -> None:
    assert env_program(argument) == program


@pytest.mark.parametrize(
    ("content", "system"),
    [
        (b"MZ" + bytes(58) + b"\x40\0\0\0PE\0\0", "Windows"),
        (b"MZ" + bytes(58) + b"\x41\0\0\0PE\0\0", ""),
        (b"MZ is how this text begins, which is no program but long enough to be one\n", ""),
        (b"\xfe\xed\xfa\xce", "macOS"), (b"\xcf\xfa\xed\xfe", "macOS"), (elf(), ""), (b"", ""),
    ],
)  # fmt: skip
def test_other_systems(content: bytes, system: str) -> None:
    assert foreign_system(content) == system


@pytest.mark.parametrize(
    ("content", "plain"),
    [(b"echo 1\n", True), ("écho\t\x1b\n".encode(), True), (b"\xff\xfe", True), (b"", False), (b"a\0b", False),
     (b"a\x10", False), (b"a" * 256 + b"\0", True)],
)  # fmt: skip
def test_text(content: bytes, plain: bool) -> None:
    assert is_plain_text(content) is plain
