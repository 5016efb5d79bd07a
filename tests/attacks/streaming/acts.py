"""What attacks on the protocol share: a client that speaks it, in parts that can be left out."""

import json
import os
import sys

INPUT = "/data/inputs"


def read():
    """The next message; None where there is none."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def write(data):
    """Bytes as they are."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def line(**message):
    return json.dumps(message).encode() + b"\n"


def say(**message):
    write(line(**message))


def hello(way="path", protocol=1):
    say(type="hello", protocol=protocol, frames=way)


def greet(way="path"):
    """Up to the first frame."""
    assert read()["type"] == "hello"
    hello(way)
    assert read()["type"] == "begin"


def answers(*indices, label=1):
    """Answers to several frames, in one write."""
    write(b"".join(line(type="answer", index=index, answer={"int_step": label}) for index in indices))


def answer(index, label=1):
    answers(index, label=label)


def frames():
    """Every frame's message, until the case is over."""
    while (message := read()) is not None and message["type"] == "frame":
        yield message


def serve(label=1):
    """Answer whatever comes."""
    for frame in frames():
        answer(frame["index"], label)


def names():
    """What lies in the folder of inputs."""
    return sorted(os.path.join(folder, name) for folder, _, files in os.walk(INPUT) for name in files)


def tell(**answers):
    text = json.dumps({name.replace("_", " "): answer for name, answer in answers.items()})
    print("answers", text, file=sys.stderr, flush=True)
