"""Files as participants hand them in, by the hint each must get; read by the confined readers."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from runner.challenge.formats import ColumnRule, FrameTableFormat, IndexRule
from runner.formats.signs import Due, Form, table_due

FRAMES = 12
RULE = FrameTableFormat(
    kind="frame_table",
    file="{case}.csv",
    index=IndexRule(column="int_time"),
    columns={"int_step": ColumnRule(labels=tuple(range(-1, 15)))},
)
TABLE = table_due(RULE, FRAMES)
SCORES = replace(TABLE, names=("frame", "score"), labels=None, separator=";")
MASK = Due(form=Form.IMAGE, width=16, height=8)
JSON = Due(form=Form.JSON)


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that is refused.

    Attributes:
        slug: The hint that must come first.
        content: What it holds.
        due: What it had to be.
        then: The slugs of the hints that follow.
    """

    slug: str
    content: bytes
    due: Due = TABLE
    then: tuple[str, ...] = ()


def table(rows: Sequence[Sequence[object]], header: str = "int_time,int_step", separator: str = ",") -> bytes:
    """A table as bytes; no header where it is empty."""
    lines = ([header] if header else []) + [separator.join(map(str, row)) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def picture(mode: str, size: tuple[int, int], form: str = "PNG") -> bytes:
    """An image file."""
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, form)
    return buffer.getvalue()


def saved(array: object) -> bytes:
    """What numpy.save writes."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array))
    return buffer.getvalue()


ROWS = [(frame, frame % 3) for frame in range(FRAMES)]
RIGHT = table(ROWS)
_BY_TEXT = sorted(ROWS, key=lambda row: str(row[0]))
_HEADER = b"int_time,int_step\n"

FILES = (
    File(slug="empty-file", content=b""),
    File(slug="empty-file", content=b"\xef\xbb\xbf\n\n"),
    File(slug="not-text", content=saved([1, 2, 3])),
    File(slug="not-text", content=b"PK\x03\x04" + b"xl/workbook.xml" * 9),
    File(slug="wide-text", content=RIGHT.decode().encode("utf-16")),
    File(slug="separator", content=RIGHT.replace(b",", b";")),
    File(slug="separator", content=RIGHT.replace(b",", b"\t")),
    File(slug="decimal-comma", due=SCORES, content=table([(t, f"0,{t}") for t in range(12)], "frame;score", ";")),
    File(slug="decimal-comma", due=replace(SCORES, separator=","),
         content=table([(t, f"0,{t}") for t in range(12)], "frame,score")),
    File(slug="header-missing", content=table(ROWS, "")),
    File(slug="ids-for-names", content=table(ROWS, "0,1")),
    File(slug="header-doubled", content=table(ROWS[:6]) + table(ROWS[6:])),
    File(slug="header-doubled", content=RIGHT + RIGHT, then=("written-twice",)),
    File(slug="written-twice", content=table([*ROWS, *ROWS])),
    File(slug="pandas-index", content=table([(t, *row) for t, row in enumerate(ROWS)], ",int_time,int_step")),
    File(slug="only-a-header", content=_HEADER),
    File(slug="text-order", content=table(_BY_TEXT)),
    File(slug="no-order", content=table(ROWS[::-1])),
    File(slug="no-order", content=table([*ROWS[6:], *ROWS[:6]])),
    File(slug="off-by-one", content=table([(t + 1, x) for t, x in ROWS])),
    File(slug="off-by-one", content=table(ROWS[:-1])),
    File(slug="off-by-one", content=table([*ROWS, (FRAMES, 1)])),
    File(slug="last-frames-missing", content=table(ROWS[:8])),
    File(slug="other-step", content=table([(25 * t, x) for t, x in ROWS])),
    File(slug="names-for-ids", content=table([(t, "nasal_corridor_creation") for t, _ in ROWS])),
    File(slug="names-for-ids", content=table([(t, "Hémostase") for t, _ in ROWS])),
    File(slug="not-a-number", content=table([(t, "nan" if t == 7 else 1) for t in range(FRAMES)])),
    File(slug="not-a-number", content=table([(t, "" if t == 7 else 1) for t in range(FRAMES)])),
    File(slug="not-a-number", due=JSON, content=json.dumps({"0": [0.5, float("nan")]}).encode()),
    File(slug="ids-with-a-point", content=table([(t, f"{x}.0") for t, x in ROWS])),
    File(slug="probabilities-for-labels", content=table([(t, 0.5 + t / 30) for t in range(FRAMES)])),
    File(slug="percent", content=table([(t, 50.5 + t) for t in range(FRAMES)])),
    File(slug="percent", due=SCORES, content=table([(t, 97.25) for t in range(12)], "frame;score", ";")),
    File(slug="percent", due=JSON, content=json.dumps({"0": [97.5, 2.5], "1": [0.5, 99.5]}).encode()),
    File(slug="logits", content=table([(t, -3.25 + t) for t in range(FRAMES)])),
    File(slug="logits", due=JSON, content=json.dumps({"0": [-4.25, 7.5e-1], "1": [12.5, -0.5]}).encode()),
    File(slug="unknown-labels", content=table([(t, 15) for t in range(FRAMES)])),
    File(slug="python-text", due=JSON, content=str({"frame": 0, "tool": "hook"}).encode()),
    File(slug="python-text", due=JSON, content=b'{"present": True}'),
    File(slug="mask-as-jpeg", due=MASK, content=picture("L", (16, 8), "JPEG")),
    File(slug="mask-in-another-format", due=MASK, content=picture("L", (16, 8), "BMP")),
    File(slug="mask-size", due=MASK, content=picture("L", (32, 32))),
    File(slug="mask-size", due=MASK, content=picture("L", (8, 16))),
    File(slug="colours-for-labels", due=MASK, content=picture("RGB", (16, 8))),
    File(slug="colours-for-labels", due=MASK, content=picture("RGBA", (16, 8))),
    File(slug="bad-output", content=table([row for row in ROWS if row[0] != 4])),
)  # fmt: skip

RIGHT_FILES: Mapping[str, tuple[Due, bytes]] = {
    "table": (TABLE, RIGHT),
    "table with Windows line ends": (TABLE, RIGHT.replace(b"\n", b"\r\n")),
    "table in quotes, columns turned round": (TABLE, table([(f'"{x}"', t) for t, x in ROWS], '"int_step",int_time')),
    "table of unknown length": (replace(TABLE, frames=None), table(ROWS[:5])),
    "scores": (SCORES, table([(t, 0.125) for t in range(12)], "frame;score", ";")),
    "JSON": (JSON, json.dumps({"0": [0.25, 1.0], "tool": "None", "it's": "NaN", "n": 512, "ok": None}).encode()),
    "mask": (MASK, picture("L", (16, 8))),
    "palette": (MASK, picture("P", (16, 8))),
    "colour where it is due": (replace(MASK, colour=True), picture("RGB", (16, 8))),
    "mask of any size": (Due(form=Form.IMAGE), picture("L", (3, 5))),
}
"""Right files: nothing may be seen of them."""
