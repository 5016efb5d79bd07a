"""Predict every frame of a case, one at a time, with ``proctor_stream`` beside it.

Replace ``predict`` with your method. The frames after this one do not exist yet.
"""

import json
import os
from pathlib import Path

import proctor_stream

# What the example below answers, whatever it sees, for the task, or the tasks, that it is started for.
ANSWERS = json.loads((Path(__file__).parent / "answers.json").read_text())
TASKS = os.environ.get("PROCTOR_TASK", ",".join(ANSWERS)).split(",")
ANSWER = {name: value for task in TASKS for name, value in ANSWERS[task].items()}


class Method:
    """An example: it counts the bytes of the frames it was given, and answers always the same."""

    def __init__(self):
        self.seen = 0

    def start(self):
        """Load weights here: once, before the first frame. It counts as start-up, not as time of a frame."""

    def reset(self, case):
        """Forget what was remembered: a case begins."""
        self.seen = 0
        print("case", case)  # goes to the log

    def predict(self, frame):
        """Answer one frame: ``frame.index``, ``frame.time``, ``frame.path`` or ``frame.image()``, ``frame.inputs``."""
        self.seen += len(frame.image())
        return ANSWER


if __name__ == "__main__":
    method = Method()
    proctor_stream.run(method.predict, start=method.start, reset=method.reset)
