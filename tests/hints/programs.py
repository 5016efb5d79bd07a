"""Small programs that fail as participants' do, by the hint each must get; run in one image on the real engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.verdict import VerdictWord

ROOM: Mapping[str, object] = {
    "run_time": {"fixed": "20 s"}, "memory": "128 MiB", "shm": "8 MiB", "cpus": 1, "output": "8 MiB",
    "output_files": 64, "tmp": "8 MiB", "pids": 32,
}  # fmt: skip
"""What a program may use unless it says otherwise."""

_CRASHED, _MISSING, _LATE = VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT, VerdictWord.TIMED_OUT
_MEMORY, _MUCH, _UNSAFE = VerdictWord.OUT_OF_MEMORY, VerdictWord.TOO_MUCH_OUTPUT, VerdictWord.UNSAFE_OUTPUT
_ONE_SECOND = {"run_time": {"fixed": "1 s"}}

RIGHT = """
import pathlib, sys
frames = sorted(pathlib.Path(sys.argv[-2]).glob("*.png"))
rows = "".join(f"{number},1\\n" for number in range(len(frames)))
pathlib.Path(sys.argv[-1]).write_text("int_time,int_step\\n" + rows)
"""
"""Writes a right answer to its last argument."""

SURVIVES = f"""
import subprocess, sys
try:
    subprocess.run(sys.argv[1:], timeout=0.5)
except (OSError, subprocess.TimeoutExpired) as error:
    print(error)
pathlib = __import__("pathlib")
for entry in pathlib.Path(sys.argv[-1]).parent.iterdir():
    if entry.is_file() or entry.is_symlink():
        entry.unlink()
    else:
        __import__("shutil").rmtree(entry)
{RIGHT}
"""
"""Does what a failing program does, in a child, clears what that left, and writes a right answer all the same."""

UNRELATED = """
import sys
print("Traceback (most recent call last):\\n  File '/app/predict.py', line 7\\nValueError: 7", file=sys.stderr)
sys.exit(1)
"""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A failing program.

    Attributes:
        slug: The hint that must come first.
        then: The slugs of the hints that follow it.
        word: Its verdict.
        source: A Python program; empty where ``argv`` names another one.
        argv: How it is started, before input and output.
        limits: Where they differ from the usual ones.
        survives: The same act is done in a child by a program that ends well; False where that is not possible.
    """

    slug: str
    then: tuple[str, ...] = ()
    word: VerdictWord = _CRASHED
    source: str = ""
    argv: tuple[str, ...] = ()
    limits: Mapping[str, object] = field(default_factory=dict)
    survives: bool = True

    @property
    def command(self) -> tuple[str, ...]:
        """What is started, without input and output."""
        return self.argv or ("python3", f"/programs/{self.slug}/predict.py")


FILES: Mapping[str, bytes] = {
    "foreign": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00\x01\x00\x00\x00" + bytes(200),
    "crlf.sh": b"#!/usr/bin/env python3\r\nprint(1)\r\n",
    "no-interpreter.sh": b"#!/usr/local/bin/python9\nprint(1)\n",
    "queue.py": b"import queue\nqueue.Queue()\n",
    "plain.py": b"print(1)\n",
    "weights.pt": b"version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\nsize 170498071\n",
    "secret.pt": b"weights",
}
"""Further files beside the programs; ``plain.py`` is not executable and ``secret.pt`` is root's alone."""

_GLIBC = """
import ctypes, pathlib
def elf_hash(name):
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value.to_bytes(4, "little")
library = pathlib.Path("/usr/lib/x86_64-linux-gnu/libz.so.1").read_bytes()
old, new = b"GLIBC_2.14", b"GLIBC_9.14"
assert old in library and elf_hash(old) in library
pathlib.Path("/tmp/libnew.so").write_bytes(library.replace(old, new).replace(elf_hash(old), elf_hash(new)))
ctypes.CDLL("/tmp/libnew.so")
"""

PROGRAMS = (
    # Starting the program
    Program(slug="exec-format-error", argv=("/programs/foreign",)),
    Program(slug="windows-line-ends", argv=("/programs/crlf.sh",)),
    Program(slug="entry-point-missing", argv=("/programs/no-interpreter.sh",)),
    Program(slug="entry-point-not-executable", argv=("/programs/plain.py",)),
    Program(slug="no-program", argv=("python3",)),
    Program(slug="usage-error", source="""
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--input", required=True)
parser.parse_args()
"""),
    Program(slug="wants-a-terminal", source="import os; os.get_terminal_size()"),
    Program(slug="waits-for-input", source="input('Overwrite? [y/N] ')"),
    Program(slug="silent-until-killed", word=_LATE, source="import time; time.sleep(60)", limits=_ONE_SECOND,
            survives=False),
    Program(slug="relative-path", source="open('weights/model.pt', 'rb')"),
    Program(slug="locale", source="import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')"),
    Program(slug="unknown-user", source="import os, pwd; pwd.getpwuid(os.getuid())"),
    Program(slug="wants-to-be-root", source="import os, sys; open('/tmp/x', 'w'); os.chown('/tmp/x', 0, 0)"),
    # Libraries and programs
    Program(slug="libgl-missing", source="import ctypes; ctypes.CDLL('libGL.so.1')"),
    Program(slug="libgomp-missing", source="import ctypes; ctypes.CDLL('libgomp.so.1')"),
    Program(slug="glibc-too-old", source=_GLIBC),
    Program(slug="ffmpeg-missing",
            source="import subprocess; subprocess.run(['ffmpeg', '-version'])"),
    Program(slug="module-missing", source="import torchvision"),
    Program(slug="module-hidden", argv=("python3", "/programs/queue.py")),
    Program(slug="library-missing", source="import ctypes; ctypes.CDLL('libopenslide.so.0')"),
    Program(slug="weights-are-a-pointer", source="import pickle; pickle.load(open('/programs/weights.pt', 'rb'))"),
    Program(slug="illegal-instruction", source="""
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\\x0f\\x0b")
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""),
    Program(slug="segmentation-fault", source="import ctypes; ctypes.string_at(0)"),
    Program(slug="aborted", source="import os; os.abort()"),
    # GPUs
    Program(slug="cuda-not-on-this-host", limits={"gpus": 1},
            source="import ctypes; ctypes.CDLL('libcuda.so.1')"),
    Program(slug="cuda-not-in-this-challenge",
            source="import ctypes; ctypes.CDLL('libcuda.so.1')"),
    # What a container may reach
    Program(slug="no-network",
            source="import urllib.request; urllib.request.urlopen('https://weights.invalid/resnet50.pth')"),
    Program(slug="roots-home",
            source="open('/root/.cache/torch/hub/checkpoints/resnet50.pth', 'rb')"),
    Program(slug="unwritable-cache", source="import os; os.makedirs('/opt/model-cache')"),
    Program(slug="read-only", source="open('/programs/out.csv', 'w')"),
    Program(slug="permission-denied", source="open('/programs/secret.pt', 'rb')"),
    # Time, memory and other limits
    Program(slug="nearly-in-time", word=_LATE, limits=_ONE_SECOND, survives=False, source=f"""
import sys, time
print("reading the folder twice")
time.sleep(1.3)
{RIGHT}
"""),
    Program(slug="progress-bar", word=_LATE, limits=_ONE_SECOND, survives=False, source="""
for step in range(10**9):
    print(f"{step % 100:3d}%|####      | {step}/1000000 [00:01<10:00, 999.9it/s]")
"""),
    Program(slug="child-out-of-memory", word=_MEMORY, survives=False, source="""
import subprocess, sys
subprocess.run([sys.executable, "-c", "[bytearray(16 << 20) for _ in range(32)]"], check=True)
"""),
    Program(slug="killed-from-inside", source="import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    Program(slug="shared-memory", limits={"output": "64 MiB"}, source="""
import mmap, os
file = os.open("/dev/shm/batch", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 32 << 20)
mmap.mmap(file, 32 << 20).write(bytes(32 << 20))
"""),
    Program(slug="disk-full", source="""
for number in range(64):
    open(f"/tmp/{number}.npy", "wb").write(bytes(1 << 20))
"""),
    Program(slug="file-too-large", word=_MUCH, source="""
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
open("/tmp/features.npy", "wb").truncate(1 << 40)
"""),
    Program(slug="output-full", word=_MUCH, source="""
import pathlib, sys
folder = pathlib.Path(sys.argv[-1]).parent
for number in range(10**4):
    (folder / f"{number % 32}.npy").open("ab").write(bytes(1 << 14))
"""),
    Program(slug="too-many-open-files", source="""
import pathlib, sys
frame = next(pathlib.Path(sys.argv[-2]).iterdir())
kept = [open(frame, "rb") for _ in range(10**5)]
"""),
    Program(slug="cannot-start-thread", source="""
import threading
for _ in range(1000):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""),
    Program(slug="allocation-refused", source="import numpy; numpy.zeros((10**9, 10**6))"),
    # The file that is due
    Program(slug="crashed-after-the-answer", source=f"{RIGHT}\nraise ValueError('no plot')"),
    Program(slug="letter-case", word=_MISSING, source="""
import pathlib, sys
path = pathlib.Path(sys.argv[-1])
path.with_name(path.name.upper()).write_text("int_time,int_step\\n")
"""),
    Program(slug="unfinished-file", word=_MISSING, source="import sys; open(sys.argv[-1] + '.tmp', 'w').write('x')"),
    Program(slug="wrong-extension", word=_MISSING, source="""
import pathlib, sys
pathlib.Path(sys.argv[-1]).with_suffix(".json").write_text("{}")
"""),
    Program(slug="answer-in-a-folder", word=_MISSING, source="""
import pathlib, sys
folder = pathlib.Path(sys.argv[-1]).parent / "predictions"
folder.mkdir()
(folder / pathlib.Path(sys.argv[-1]).name).write_text("int_time,int_step\\n")
"""),
    Program(slug="wrong-name", word=_MISSING, source="""
import pathlib, sys
pathlib.Path(sys.argv[-1]).with_name("predictions.csv").write_text("int_time,int_step\\n")
"""),
    Program(slug="output-taken-for-a-folder", word=_UNSAFE, source="import os, sys; os.makedirs(sys.argv[-1])"),
    Program(slug="answer-is-a-link", word=_UNSAFE, source="""
import os, sys
open("/tmp/answer.csv", "w").write("int_time,int_step\\n")
os.symlink("/tmp/answer.csv", sys.argv[-1])
"""),
    Program(slug="wrote-elsewhere", word=_MISSING, source="""
open("/tmp/predictions.csv", "w").write("int_time,int_step\\n")
print("Results saved to /tmp/predictions.csv")
"""),
    Program(slug="error-was-swallowed", word=_MISSING, source="""
import traceback
try:
    {}["model"]
except KeyError:
    traceback.print_exc()
"""),
    # The verdict alone
    Program(slug="out-of-memory", word=_MEMORY, survives=False, source="[bytearray(16 << 20) for _ in range(32)]"),
    Program(slug="too-slow", word=_LATE, limits=_ONE_SECOND, survives=False,
            source="import time; print('model loaded', flush=True); time.sleep(60)"),
    Program(slug="too-much-output", word=_MUCH, limits={"tmp": "16 MiB"},
            source="import os, sys; open(sys.argv[-1], 'wb').truncate((8 << 20) + 1)"),
    Program(slug="wrote-nothing", word=_MISSING, source="print('done')"),
)  # fmt: skip

OWN_IMAGES = frozenset({"wrong-architecture", "file-where-a-folder-is-due", "looks-ahead", "length-dependent"})
"""Provoked beside these, by images or runs of their own."""

OWN_STREAMS = frozenset({
    "stray-message", "answer-out-of-turn", "no-answer", "no-hello", "other-client", "message-too-long",
    "message-malformed", "message-cut-off", "does-not-read", "error-was-told", "left-the-stream",
})  # fmt: skip
"""Provoked by the attacks on the protocol of streamed frames, ``tests/attacks/streaming``."""
