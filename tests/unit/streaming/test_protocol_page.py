"""docs/streaming.md says what the protocol is: its examples are messages, its breaches the closed list."""

import json
import re
from pathlib import Path

from runner.challenge import FrameWay
from runner.streaming.protocol import VERSION, Answered, Breach, Broken, Conversation, Greeted, frame_message

PAGE = (Path(__file__).resolve().parents[3] / "docs/streaming.md").read_text(encoding="utf-8")
EXAMPLES = [block.encode() for block in re.findall(r"```json\n(.*)\n```", PAGE)]
NUMBERS = {
    "seconds": "10.0 s", "limit": "1 MiB", "offered": "path or inline", "index": 7, "last": 9,
    "what": "frame 7 was answered",
}  # fmt: skip


def test_a_case_goes_by_its_examples() -> None:
    ours, theirs, begin, frame, answer, end, error = EXAMPLES
    conversation = Conversation(ways=(FrameWay.PATH, FrameWay.INLINE))
    assert conversation.hello("steps") == ours + b"\n"
    assert conversation.hear(theirs) == Greeted(way=FrameWay.PATH)
    assert conversation.begin(case="3f9a", fps=25.0, inputs=("frames", "kinematics")) == begin + b"\n"
    assert frame_message(index=0, time=0.0, inputs=json.loads(frame)["inputs"]) == frame + b"\n"
    conversation.release()
    assert conversation.hear(answer) == Answered(index=0, answer={"int_step": 3})
    assert conversation.end() == end + b"\n"
    broken = conversation.hear(error)
    assert isinstance(broken, Broken)
    assert broken.breach is Breach.ERROR_TOLD
    assert f"## The protocol, version {VERSION}\n" in PAGE


def test_its_breaches_are_all_there_are_with_their_sentences() -> None:
    listed = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", PAGE.split("## What must not be")[1], re.MULTILINE))
    conversations = {one: Conversation(ways=(FrameWay.PATH, FrameWay.INLINE)) for one in Breach}
    assert listed == {one.value: told.breach(one, **NUMBERS).sentence for one, told in conversations.items()}
