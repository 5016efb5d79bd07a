"""Talks to proctor for a method that is given its frames one by one; needs nothing but Python, 3.8 or later.

    import proctor_stream

    def start():                # once, before the first frame: load weights; its time is the start-up
        ...

    def reset(case):            # before the first frame of a case: forget all
        ...

    def predict(frame):         # once a frame, in order: the answer, as the challenge asks for it
        return {"step": 3}

    if __name__ == "__main__":
        proctor_stream.run(predict, start=start, reset=reset)

Print what you like: the protocol has a channel of its own, and all prints go to the log. To try a method without
proctor, give it a folder of images: ``python3 predict.py --try FOLDER``.
"""

import base64
import json
import os
import select
import sys
import time
import traceback
from pathlib import Path

VERSION = 1


class Frame:
    """One frame.

    Attributes:
        index: 0, 1, 2, …
        time: Seconds since the first frame.
        inputs: What there is of it, by name: ``{"path": …}``, ``{"image": …}``, base64, or ``{"header": …, "row": …}``.
        path: Where its first image lies, until the frame is answered; None where images come inside the messages.
    """

    def __init__(self, index, time, inputs):
        self.index = index
        self.time = time
        self.inputs = inputs
        self.path = next((given["path"] for given in inputs.values() if "path" in given), None)

    def image(self, name=None):
        """The bytes of an image file: of the input of this name, or of the first that is an image."""
        if name is None:
            name = next(name for name, given in self.inputs.items() if "row" not in given)
        given = self.inputs[name]
        if "image" in given:
            return base64.b64decode(given["image"])
        return Path(given["path"]).read_bytes()

    def row(self, name):
        """This frame's row of a table, as it stands in it, without its end of line."""
        return self.inputs[name]["row"]


def run(predict, start=None, reset=None, *, newest_only=False):
    """Answer frames until there are no more; does not return before.

    Args:
        predict: Takes a ``Frame``; the answer, a dict that JSON can hold.
        start: Called once, before the first frame.
        reset: Takes the name of the case; called before its first frame.
        newest_only: Of several frames that wait, answer the last only. For challenges at the camera's rate, where an
            answer that is late is not counted anyway.
    """
    if "--try" in sys.argv:
        _try(predict, start, reset, sys.argv[sys.argv.index("--try") + 1])
        return
    lines = _Lines(_take_over(0, os.open(os.devnull, os.O_RDONLY)))
    told = _take_over(1, os.dup(2))

    def say(**message):
        data = json.dumps(message, allow_nan=False, default=_plain).encode() + b"\n"
        while data:
            data = data[os.write(told, data) :]

    try:
        hello = _hello(lines)
        if start is not None:
            start()
        say(type="hello", protocol=VERSION, frames="path" if "path" in hello["frames"] else "inline")
        _answer(lines, say, predict, reset, newest_only)
    except Exception as error:  # noqa: BLE001  whatever it is, proctor is told at once
        traceback.print_exc()
        say(type="error", message=f"{type(error).__name__}: {error}")
        sys.stderr.flush()
        os._exit(1)


def _hello(lines):
    hello = lines.take()
    if hello is None or hello["protocol"] != VERSION:
        raise RuntimeError(f"this client speaks version {VERSION} of the protocol")
    return hello


def _answer(lines, say, predict, reset, newest_only):
    while True:
        message = lines.take()
        if message is None or message["type"] == "end":
            return
        if message["type"] == "begin" and reset is not None:
            reset(message["case"])
        elif message["type"] == "frame":
            frame = Frame(message["index"], message["time"], message["inputs"])
            if newest_only and lines.next_is_frame():
                continue
            answer = predict(frame)
            if not isinstance(answer, dict):
                raise TypeError(f"predict returned a {type(answer).__name__} for frame {frame.index}, and no dict")
            say(type="answer", index=frame.index, answer=answer)


def _take_over(descriptor, instead):
    """Keep a stream for the protocol, and give what reads or prints there, libraries included, another one."""
    kept = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    return kept


def _plain(value):
    """NumPy's numbers and arrays as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"an answer holds a {type(value).__name__}, which JSON cannot")


class _Lines:
    """Messages of a descriptor."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._whole = []
        self._rest = []

    def take(self):
        """The next message, waiting for it; None once there are no more."""
        while not self._whole:
            if not self._read():
                return None
        return json.loads(self._whole.pop(0))

    def next_is_frame(self):
        """Whether a further frame is there already."""
        while not self._whole and select.select([self._descriptor], [], [], 0)[0]:
            if not self._read():
                return False
        return bool(self._whole) and json.loads(self._whole[0])["type"] == "frame"

    def _read(self):
        data = os.read(self._descriptor, 1 << 20)
        first, *more = data.split(b"\n")
        self._rest.append(first)
        if more:
            self._whole.append(b"".join(self._rest))
            self._whole.extend(more[:-1])
            self._rest = [more[-1]]
        return bool(data)


def _try(predict, start, reset, folder):
    """Print the answers for the images of a folder, as if they were streamed, and how long each took."""
    if start is not None:
        start()
    if reset is not None:
        reset("try")
    for index, path in enumerate(sorted(Path(folder).iterdir())):
        began = time.monotonic()
        answer = predict(Frame(index, float(index), {"frames": {"path": str(path)}}))
        took = 1000 * (time.monotonic() - began)
        print(f"{path.name} {took:.1f} ms {json.dumps(answer, allow_nan=False, default=_plain)}")
