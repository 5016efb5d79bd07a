"""What the first bytes of a program say of it: an ELF header's machine and loader, a script's first line. Pure.

The bytes are a stranger's. Everything is read at bounded places of a bounded piece; what is not to be told from it is
answered with None or an empty value, and never guessed.
"""

import re
import struct
from dataclasses import dataclass

_BLANKS = re.compile(r"[ \t]+")
_LINE = 256  # bytes of a script's first line that Linux looks at
_MOST_HEADERS = 256
_LONGEST_LOADER = 4096
_PT_INTERP = 3
_RUNNABLE = (2, 3)  # ET_EXEC, ET_DYN
_FOREIGN = {
    b"\xfe\xed\xfa\xce": "macOS",
    b"\xfe\xed\xfa\xcf": "macOS",
    b"\xce\xfa\xed\xfe": "macOS",
    b"\xcf\xfa\xed\xfe": "macOS",
}


@dataclass(frozen=True, kw_only=True)
class Elf:
    """An ELF program.

    Attributes:
        machine: ``e_machine``, such as 62 for x86-64.
        loader: Path of its dynamic loader; empty where it has none or it is not in the bytes read.
    """

    machine: int
    loader: str


@dataclass(frozen=True, kw_only=True)
class Shebang:
    """A script's first line.

    Attributes:
        interpreter: Path of what runs it.
        argument: What stands behind it, as one argument, as Linux has it.
        windows: The line ends as lines do on Windows; the carriage return is part of the last word.
    """

    interpreter: str
    argument: str
    windows: bool


def read_elf(content: bytes) -> Elf | None:
    """Read an ELF header and the loader's name; None where it is no ELF program."""
    if content[:4] != b"\x7fELF" or len(content) < 64 or content[4] not in (1, 2) or content[5] not in (1, 2):
        return None
    order = "<" if content[5] == 1 else ">"
    kind, machine = struct.unpack_from(f"{order}HH", content, 16)
    if kind not in _RUNNABLE:
        return None
    return Elf(machine=machine, loader=_loader(content, order, wide=content[4] == 2))


def _loader(content: bytes, order: str, *, wide: bool) -> str:
    (start,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", content, 32 if wide else 28)
    size, count = struct.unpack_from(f"{order}HH", content, 54 if wide else 42)
    layout = f"{order}IIQQQQ" if wide else f"{order}IIIII"
    for number in range(min(count, _MOST_HEADERS)):
        place = start + number * size
        if place + struct.calcsize(layout) > len(content):
            return ""
        header = struct.unpack_from(layout, content, place)
        if header[0] == _PT_INTERP:
            offset, length = (header[2], header[5]) if wide else (header[1], header[4])
            return _name(content, offset, length)
    return ""


def _name(content: bytes, offset: int, length: int) -> str:
    if not 1 < length <= _LONGEST_LOADER or offset + length > len(content):
        return ""
    name = content[offset : offset + length].split(b"\0", 1)[0]
    return name.decode("ascii") if name.isascii() and name.startswith(b"/") else ""


def read_shebang(content: bytes) -> Shebang | None:
    """Read a script's first line; None where there is none, or it is longer than Linux looks."""
    if content[:2] != b"#!":
        return None
    line, newline, _ = content[:_LINE].partition(b"\n")
    if not newline and len(content) >= _LINE:
        return None
    try:
        text = line[2:].decode("utf-8").strip(" \t")
    except UnicodeDecodeError:
        return None
    interpreter, *argument = _BLANKS.split(text, maxsplit=1)
    if not interpreter.strip("\r"):
        return None
    return Shebang(interpreter=interpreter, argument="".join(argument), windows=text.endswith("\r"))


def env_program(argument: str) -> str | None:
    """The program ``env`` is asked for by a script's first line; None where that is not to be told.

    Without ``-S`` the whole argument is one name, blanks and all.
    """
    if not argument.startswith("-"):
        return None if "=" in argument or not argument else argument
    if not argument.startswith("-S") or any(mark in argument for mark in "'\"\\$#"):
        return None
    for word in argument.removeprefix("-S").split():
        if word.startswith(("-", "PATH=")):
            return None
        if "=" not in word:
            return word
    return None


def foreign_system(content: bytes) -> str:
    """The system a program is for where it is another: ``Windows`` or ``macOS``; empty where that is not to be told."""
    if content[:2] == b"MZ" and len(content) >= 64:
        (place,) = struct.unpack_from("<I", content, 60)
        return "Windows" if content[place : place + 4] == b"PE\0\0" else ""
    return _FOREIGN.get(content[:4], "")


def is_plain_text(content: bytes) -> bool:
    """Whether the bytes can be a script: not empty, no byte 0, no other control codes than text has."""
    return bool(content) and not any(byte < 9 or 13 < byte < 27 for byte in content[:_LINE])
