"""What attacks share: they try something and say what came of it, in the last line of their log."""

import ctypes
import errno
import json
import os
import socket
import sys

INPUT, OUTPUT = sys.argv[1:3]
REFERENCE, SECRET, LISTENER, MARKER = sys.argv[3:7]
FOLDER = os.path.dirname(OUTPUT)
libc = ctypes.CDLL(None, use_errno=True)


def write_valid(path=OUTPUT):
    with open(path, "w") as sink:
        print("int_time,int_step", *(f"{n},1" for n in range(len(os.listdir(INPUT)))), sep="\n", file=sink)


def outcome(act, *arguments):
    try:
        found = act(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else "done"


def tell(**answers):
    print("answers", json.dumps({name.replace("_", " "): answer for name, answer in answers.items()}), flush=True)


def call(number, *arguments):
    """A system call by number."""
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "system call")
    return "done"


def write(path, text="x"):
    with open(path, "w") as sink:
        sink.write(text)


def read(path):
    """How much can be read, up to a kilobyte."""
    with open(path, "rb") as source:
        return f"{len(source.read(1024))} bytes"


def connect(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(1)
        s.connect((address, port))


def loopback():
    """The control of everything about networks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect(*server.getsockname())


def fill(path, limit=1 << 30):
    """Write until there is an error; the error, or how much there was room for."""
    with open(path, "wb", buffering=0) as sink:
        for _ in range(limit >> 16):
            sink.write(b"x" * (1 << 16))
    return "done"


def fill_two(folder):
    """Fill a folder with two files: one alone may not grow to its size."""
    outcome(fill, folder + "/x")
    return outcome(fill, folder + "/y")
