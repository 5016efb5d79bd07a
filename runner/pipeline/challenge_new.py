"""Writes a challenge to start from: it passes its own check at once."""

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

from runner.bundled_files import bundled
from runner.challenge.formats.registry import BUILT_IN
from runner.challenge_schema import challenge_schema
from runner.errors import UsageError
from runner.template import write_template

KINDS = tuple(BUILT_IN)
SCHEMA_FILE = "challenge.schema.json"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FRAMES = 8
_WIDTH, _HEIGHT = 16, 12
_TEXTS = {"01": "the quick brown fox jumps over the lazy dog\n", "02": "to be or not to be\n", "03": "one\ntwo\n"}
_RUN_TIME = {True: '{per_media: "60 s / 10 min", allowance: 30 s}', False: "{fixed: 60 s}"}

_Box = tuple[int, int, int, int]


def new_challenge(name: str, above: Path, *, kind: str) -> tuple[Path, ...]:
    """Write a new challenge into ``above / name``.

    Args:
        name: Letters, digits and dashes.
        above: Folder that gets the new one.
        kind: A built-in format.

    Returns:
        The files written.

    Raises:
        UsageError: The name or the kind is none, or the folder is not empty.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a challenge",
            remedy="give up to 64 lower-case letters, digits and dashes that begin with a letter or digit",
        )
    if kind not in KINDS:
        raise UsageError(f"--kind {kind!r} is not known", remedy=f"give one of: {', '.join(KINDS)}")
    templates = bundled("templates") / "challenge"
    timed = kind not in ("arrays", "answer")
    common = (templates / "common.yaml").read_text(encoding="utf-8")
    common = common.replace("@@RUN_TIME@@", _RUN_TIME[timed])
    common = common.replace("@@CAUSALITY@@", "targeted" if kind == "frame_table" else "off")
    following = (templates / "next.md").read_text(encoding="utf-8")
    folder = above / name
    written = write_template(
        f"challenge/{kind}", folder, values={"name": name, "common": common.rstrip("\n"), "next": following}
    )
    extra = {SCHEMA_FILE: (json.dumps(challenge_schema(), indent=1) + "\n").encode(), **_sample(kind)}
    for path, content in extra.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return (*written, *(folder / path for path in extra))


def _sample(kind: str) -> Mapping[str, bytes]:
    """Files of the sample, by path below the challenge's folder."""
    match kind:
        case "answer":
            found = {}
            for case, text in _TEXTS.items():
                found[f"inputs/{case}.txt"] = text.encode()
                found[f"references/{case}.json"] = _json({"words": len(text.split())})
        case "arrays":
            found = _arrays()
        case _:
            found = {}
            for number, case in enumerate(("01", "02")):
                found |= _frames(case, number)
                found |= _frame_references(kind, case, number)
    return {f"sample/{path}": content for path, content in found.items()}


def _json(value: object) -> bytes:
    return (json.dumps(value) + "\n").encode()


def _arrays() -> dict[str, bytes]:
    import numpy as np  # noqa: PLC0415  only where it is needed: start-up counts

    found = {}
    for number, case in enumerate(("01", "02")):
        positions = np.random.default_rng(number).uniform(-100, 100, size=(5, 3)).astype(np.float32)
        for path, array in ((f"inputs/{case}.npy", positions + 1), (f"references/{case}.npy", positions)):
            sink = io.BytesIO()
            np.save(sink, array)
            found[path] = sink.getvalue()
    return found


def _phase(frame: int, number: int) -> int:
    """What a frame of an invented case shows: 0 idle, 1 first, 2 second."""
    return min(2, (frame + 2 * number) * 3 // (_FRAMES + 2))


def _frames(case: str, number: int) -> dict[str, bytes]:
    colours = ((40, 40, 40), (200, 60, 60), (60, 200, 60))
    return {f"inputs/{case}/{frame:05d}.png": _png("RGB", colours[_phase(frame, number)]) for frame in range(_FRAMES)}


def _frame_references(kind: str, case: str, number: int) -> dict[str, bytes]:
    phases = [_phase(frame, number) for frame in range(_FRAMES)]
    match kind:
        case "frame_table":
            names = ("idle", "first", "second")
            rows = "".join(f"{frame},{names[phase]}\n" for frame, phase in enumerate(phases))
            return {f"references/{case}.csv": f"frame,phase\n{rows}".encode()}
        case "frame_scores":
            frames = {
                f"{frame:05d}": {"scores": [int(phase == k) for k in range(3)]} for frame, phase in enumerate(phases)
            }
            return {f"references/{case}.json": _json(frames)}
        case _:
            return {f"references/{case}/{frame:05d}.png": _mask(frame, phase) for frame, phase in enumerate(phases)}


def _mask(frame: int, phase: int) -> bytes:
    """A background with a box of the instrument that moves, and one of tissue from the second phase on."""
    boxes = {1: (frame, 2, frame + 5, 6)} | ({2: (3, 7, 10, 11)} if phase else {})
    return _png("L", 0, boxes)


def _png(
    mode: str, ground: int | tuple[int, ...], boxes: Mapping[int, tuple[int, int, int, int]] | None = None
) -> bytes:
    from PIL import Image  # noqa: PLC0415  as above

    image = Image.new(mode, (_WIDTH, _HEIGHT), ground)
    for value, box in (boxes or {}).items():
        image.paste(value, box)
    sink = io.BytesIO()
    image.save(sink, "png")
    return sink.getvalue()
