"""Malformed outputs, a table over all formats, and exactly what is said of each; also the page that shows it.

The page is written by ``python -m tests.unit.formats.malformed > docs/malformed.md``.
"""

import io
import json
import pickle
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from PIL import Image

from runner.challenge.formats import (
    AnswerFormat,
    ArraysFormat,
    ColumnRule,
    FormatSection,
    FrameScoresFormat,
    FrameTableFormat,
    IndexRule,
    LabelImagesFormat,
)
from runner.formats.contract import Due

Colour = int | tuple[int, ...]
DUE = Due(frames=("000001", "000002", "000003"), count=3)

TABLE = FrameTableFormat(
    kind="frame_table",
    file="{case}.csv",
    index=IndexRule(column="int_time"),
    columns={"int_step": ColumnRule(labels=tuple(range(-1, 15)))},
)
NAMES = FrameTableFormat(
    kind="frame_table",
    file="{case}.txt",
    separator="\t",
    index=IndexRule(column="Frame"),
    columns={
        "Phase": ColumnRule(names=("Idle", "Transfer Left to Right"), missing="allow"),
        "Verb": ColumnRule(names=("Catch", "Drop"), missing="allow"),
    },
)
SCORES = FrameScoresFormat(kind="frame_scores", file="{case}.json", key="recognition", classes=3)
SCORE_TABLE = FrameScoresFormat(kind="frame_scores", file="{case}.csv", layout="table", classes=2, whole=True)
COLOURS = LabelImagesFormat.model_validate(
    {
        "kind": "label_images",
        "file": "{case}/{frame}.png",
        "coding": "colour",
        "width": 4,
        "height": 2,
        "classes": {0: {"name": "background", "colour": [0, 0, 0]}, 1: {"name": "shaft", "colour": [0, 255, 0]}},
    }
)
LACKING = TABLE.model_copy(update={"missing_frames": {"int_step": -1}})
FOLDER = COLOURS.model_copy(update={"missing_frames": 0})
NUMBERS = COLOURS.model_copy(update={"coding": "index"})
ARRAY = ArraysFormat.model_validate(
    {
        "kind": "arrays",
        "file": "{case}.npy",
        "arrays": {"depth": {"type": "float32", "shape": ["frames", 2], "range": [0, 1]}},
    }
)
ARCHIVE = ArraysFormat.model_validate(
    {
        "kind": "arrays",
        "file": "{case}.npz",
        "arrays": {"pose": {"type": "float64", "shape": [3]}, "mask": {"type": "uint8", "shape": ["any"]}},
    }
)
ANSWER = AnswerFormat.model_validate(
    {
        "kind": "answer",
        "file": "{case}.json",
        "fields": {
            "grade": {"type": "text", "choices": ["low", "very high"]},
            "count": {"type": "integer", "range": [0, 10]},
            "curve": {"type": "numbers", "length": 2, "range": [0, 1], "optional": True},
            "sure": {"type": "boolean", "optional": True},
        },
    }
)

RULES: Mapping[str, FormatSection] = {
    "A table of numbers": TABLE,
    "A table of names": NAMES,
    "Scores in JSON": SCORES,
    "Scores in a table": SCORE_TABLE,
    "A table that may lack frames": LACKING,
    "Images in colours": COLOURS,
    "A folder that may lack images": FOLDER,
    "Images of numbers": NUMBERS,
    "One array": ARRAY,
    "Several arrays": ARCHIVE,
    "One answer": ANSWER,
}
"""What is due, by the heading of the page."""

LENIENT: Mapping[str, FormatSection] = {
    "`missing_frames: {int_step: -1}`": LACKING,
    "`extra_frames: ignore`": TABLE.model_copy(update={"extra_frames": "ignore"}),
    "`unknown_label: {int_step: -1}`": TABLE.model_copy(update={"unknown_label": {"int_step": -1}}),
    "scores, `missing_frames: 0`": SCORES.model_copy(update={"missing_frames": 0.0}),
    "scores, `extra_frames: ignore`": SCORES.model_copy(update={"extra_frames": "ignore"}),
    "images, `missing_frames: 0`": FOLDER,
}
"""What is due, by what the task states beside it."""

IDS = "ids are the names of the frames' files, without the extension"
NO_INTEGER = "is not a whole number: only the digits 0 to 9 and a minus sign are read"
NEARLY = "is not written exactly as the label: mind case, spaces and underscores in Idle, Transfer Left to Right"
NOT_FINITE = "is no number (NaN, infinite or null)"
PICKLE = "which is never opened: numpy.save(…, allow_pickle=False) writes what is due"


@dataclass(frozen=True)
class Malformed:
    """A file that is refused.

    Attributes:
        format: A key of ``RULES``.
        name: What is wrong with it.
        content: What it holds; of a folder, its files.
        sentences: What is said of it, in order.
    """

    format: str
    name: str
    content: bytes | Mapping[str, bytes]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Taken:
    """A file that is not as it is due, and is taken all the same.

    Attributes:
        states: A key of ``LENIENT``.
        name: What is wrong with it.
        content: As ``Malformed`` has it.
        notes: What is noted of it, in order.
    """

    states: str
    name: str
    content: bytes | Mapping[str, bytes]
    notes: tuple[str, ...]


def scores(**changed: object) -> bytes:
    """A right file of scores, but for these frames; one that is None is left out."""
    frames: dict[str, object] = {name: {"recognition": [0, 0.5, 1]} for name in DUE.frames}
    frames |= {name.removeprefix("f"): value for name, value in changed.items()}
    return json.dumps({name: value for name, value in frames.items() if value is not None}).encode()


def answer(**changed: object) -> bytes:
    """A right answer, but for these fields."""
    return json.dumps({"grade": "low", "count": 3} | changed).encode()


def picture(mode: str, *, size: tuple[int, int] = (4, 2), form: str = "PNG", colour: Colour = 0) -> bytes:
    """An image file of one colour."""
    file = io.BytesIO()
    Image.new(mode, size, colour).save(file, form)
    return file.getvalue()


def folder(mode: str, **changed: bytes | None) -> Mapping[str, bytes]:
    """A right folder of images, but for these; one that is None is left out."""
    files: dict[str, bytes | None] = dict.fromkeys(DUE.frames, picture(mode))
    files |= {name.removeprefix("f"): content for name, content in changed.items()}
    return {f"{name}.png": content for name, content in files.items() if content is not None}


def saved(array: object) -> bytes:
    """What numpy.save writes."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array))
    return file.getvalue()


def archive(**arrays: object) -> bytes:
    """What numpy.savez writes; a right archive, but for these arrays; one that is None is left out."""
    due: dict[str, object] = {"pose": np.zeros(3), "mask": np.zeros(2, np.uint8)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name, array in (due | arrays).items():
            if array is not None:
                members.writestr(zipfile.ZipInfo(f"{name}.npy"), saved(array))
    return file.getvalue()


def saved_objects() -> bytes:
    """What numpy.save writes of Python objects."""
    file = io.BytesIO()
    np.save(file, np.array([[None, None]] * 3), allow_pickle=True)
    return file.getvalue()


GOOD = np.zeros((3, 2), np.float32)
NOT_A_NUMBER = np.array([[0, 1], [np.nan, 1], [1, np.inf]], np.float32)

MALFORMED: tuple[Malformed, ...] = (
    Malformed("A table of numbers", "empty", b"", ("the file is empty",)),
    Malformed(
        "A table of numbers", "UTF-16", "int_time,int_step".encode("utf-16"), ("the file is UTF-16: save it as UTF-8",)
    ),
    Malformed("A table of numbers", "not UTF-8", b"int_time,int_step\n0,\xff\n", ("row 2: the bytes are not UTF-8",)),
    Malformed(
        "A table of numbers",
        "a NUL byte",
        b"int_time,int_step\n0,1\n1,\0\n",
        ("row 3: a NUL byte stands here: the file is not text",),
    ),
    Malformed(
        "A table of numbers",
        "a header and nothing else",
        b"int_time,int_step\n",
        ("there are no rows under the header; 3 are due",),
    ),
    Malformed(
        "A table of numbers",
        "no header",
        b"0,1\n1,1\n2,1\n",
        ("there is no header: the first row must be int_time,int_step",),
    ),
    Malformed(
        "A table of numbers",
        "a header written otherwise",
        b"int_time,Int Step\n0,1\n1,1\n2,1\n",
        ("column 2 is not named exactly 'int_step', which is missing: did you mean it?",),
    ),
    Malformed(
        "A table of numbers",
        "an index that pandas wrote",
        b",int_time,int_step\n0,0,1\n1,1,1\n2,2,1\n",
        ("column 1 has no name: is it an index? (pandas: to_csv(..., index=False))",),
    ),
    Malformed(
        "A table of numbers",
        "a column too many",
        b"int_time,int_step,score\n0,1,9\n1,1,9\n2,1,9\n",
        ("column 3 is not asked for: the columns are int_time, int_step",),
    ),
    Malformed(
        "A table of numbers",
        "semicolons",
        b"int_time;int_step\n0;1\n1;1\n2;1\n",
        ("the fields are separated by a semicolon where a comma is due",),
    ),
    Malformed(
        "A table of numbers",
        "unknown label, decimal label, NaN",
        b"int_time,int_step\n0,15\n1,3.0\n2,nan\n",
        (
            "row 2: int_step is not a label: -1 to 14 are",
            "row 3: int_step is a decimal number: ids are whole numbers, write 3 and not 3.0",
            f"row 4: int_step {NOT_FINITE}",
        ),
    ),
    Malformed(
        "A table of numbers",
        "a name where a number is due",
        b"int_time,int_step\n0,1\n1,suture\n2,\n",
        (
            f"row 3: int_step {NO_INTEGER}",
            "row 4: int_step is empty",
        ),
    ),
    Malformed(
        "A table of numbers",
        "frames from 1",
        b"int_time,int_step\n1,1\n2,1\n3,1\n",
        ("row 2: int_time starts at 1 where 0 is due",),
    ),
    Malformed(
        "A table of numbers",
        "a frame left out",
        b"int_time,int_step\n0,1\n2,1\n",
        ("row 3: int_time is 2 where 1 was due: the row for frame 1 is missing",),
    ),
    Malformed(
        "A table of numbers",
        "cut short",
        b"int_time,int_step\n0,1\n1",
        (
            "row 3: there are 1 fields where 2 are due",
            "row 4: the table ends too early: the row for frame 2 is missing",
        ),
    ),
    Malformed(
        "A table of numbers",
        "too many frames",
        b"int_time,int_step\n0,1\n1,1\n2,1\n3,1\n4,1\n",
        ("row 5: int_time is beyond the last frame, 2; 2 rows are too many",),
    ),
    Malformed(
        "A table of numbers",
        "a frame twice",
        b"int_time,int_step\n0,1\n1,1\n1,1\n2,1\n",
        ("row 4: int_time 1 stands here again, as in row 3",),
    ),
    Malformed(
        "A table of numbers",
        "frames out of order",
        b"int_time,int_step\n0,1\n2,1\n1,1\n",
        ("row 4: int_time 1 comes after 2: rows must be in order",),
    ),
    Malformed(
        "A table of numbers",
        "every 24th frame",
        b"int_time,int_step\n0,1\n24,1\n48,1\n",
        ("int_time rises by more than 1 a row",),
    ),
    Malformed(
        "A table of numbers",
        "an open quotation mark, an empty row",
        b'int_time,int_step\n0,"1\n\n2,1\n',
        (
            "row 2: a quotation mark is not closed, or stands inside a field",
            "row 3: the row is empty",
            "row 4: int_time is 2 where 0 was due: the rows for frames 0 to 1 are missing (2)",
        ),
    ),
    Malformed(
        "A table of names",
        "commas",
        b"Frame,Phase,Verb\n0,Idle,Drop\n1,Idle,Drop\n2,Idle,Drop\n",
        ("the fields are separated by a comma where a tab is due",),
    ),
    Malformed(
        "A table of names",
        "underscores in a name",
        b"Frame\tPhase\n0\tIdle\n1\tTransfer_Left_to_Right\n2\tIdle\n",
        (f"row 3: Phase {NEARLY}",),
    ),
    Malformed(
        "A table of names",
        "lower case, a number, an unknown name",
        b"Frame\tPhase\n0\tidle\n1\t0\n2\tWait\n",
        (
            f"row 2: Phase {NEARLY}",
            "row 3: Phase is a number where a name is due: Idle, Transfer Left to Right are",
            "row 4: Phase is not a label: Idle, Transfer Left to Right are",
        ),
    ),
    Malformed("A table of names", "an empty cell", b"Frame\tVerb\n0\tDrop\n1\t\n2\tDrop\n", ("row 3: Verb is empty",)),
    Malformed(
        "A table of names", "no column of labels", b"Frame\n0\n1\n2\n", ("there is none of the columns Phase, Verb",)
    ),
    Malformed(
        "A table of names",
        "a column twice",
        b"Frame\tVerb\tVerb\n0\tDrop\tDrop\n1\tDrop\tDrop\n2\tDrop\tDrop\n",
        ("column 3 is 'Verb' again, as column 2",),
    ),
    Malformed(
        "A table of names",
        "no header",
        b"0\tIdle\tDrop\n1\tIdle\tDrop\n2\tIdle\tDrop\n",
        ("there is no header: the first row must be Frame\tPhase\tVerb",),
    ),
    Malformed("Scores in JSON", "empty", b"", ("the file is empty",)),
    Malformed(
        "Scores in JSON",
        "a list",
        b"[[0, 0, 0]]",
        ("line 1, column 1: the file holds an array where an object is due",),
    ),
    Malformed(
        "Scores in JSON",
        "NaN, as Python writes it",
        scores(f000002={"recognition": [0, float("nan"), 1]}),
        ("line 1, column 72: NaN and infinity are not JSON",),
    ),
    Malformed(
        "Scores in JSON",
        "cut off",
        scores()[:-20],
        ("line 1, column 93: the file ends inside the string that begins here",),
    ),
    Malformed(
        "Scores in JSON",
        "Python's own text",
        str({"000001": None}).encode(),
        ('line 1, column 2: JSON knows no single quotation marks: write "',),
    ),
    Malformed(
        "Scores in JSON",
        "a frame twice",
        b'{"000001": {}, "000001": {}}',
        ("line 1, column 16: the name stands here again, as in line 1, column 2",),
    ),
    Malformed(
        "Scores in JSON", "frames left out", scores(f000002=None, f000003=None), ("frames 2 to 3 of 3 are missing (2)",)
    ),
    Malformed(
        "Scores in JSON",
        "a frame that is none",
        scores(f000004={"recognition": [0, 0, 0]}),
        (f"entry 4 is none of the 3 frames: {IDS}",),
    ),
    Malformed(
        "Scores in JSON",
        "ids with an extension",
        scores().replace(b'2"', b'2.png"'),
        (f"entry 2 is not named exactly as frame 2 of 3 is: {IDS}",),
    ),
    Malformed(
        "Scores in JSON",
        "ids without zeros",
        scores().replace(b"00000", b""),
        (
            f"entry 1 is not named exactly as frame 1 of 3 is: {IDS}",
            f"entry 2 is not named exactly as frame 2 of 3 is: {IDS}",
            f"entry 3 is not named exactly as frame 3 of 3 is: {IDS}",
        ),
    ),
    Malformed(
        "Scores in JSON",
        "a list where an object is due",
        scores(f000001=[0, 0, 0]),
        ("frame 1 of 3: an object that holds 'recognition' is due",),
    ),
    Malformed("Scores in JSON", "no key", scores(f000001={}), ("frame 1 of 3: there is no 'recognition'",)),
    Malformed(
        "Scores in JSON",
        "a key too many",
        scores(f000001={"recognition": [0, 0, 0], "detection": []}),
        ("frame 1 of 3: there is a key that is not asked for, beside 'recognition'",),
    ),
    Malformed(
        "Scores in JSON",
        "a number where a list is due",
        scores(f000003={"recognition": 1}),
        ("frame 3 of 3: a list of 3 scores is due",),
    ),
    Malformed(
        "Scores in JSON",
        "a list too short, one too long",
        scores(f000001={"recognition": [0, 0]}, f000003={"recognition": [0] * 4}),
        (
            "frame 1 of 3: there are fewer than 3 scores",
            "frame 3 of 3: there are more than 3 scores",
        ),
    ),
    Malformed(
        "Scores in JSON",
        "scores that are no numbers",
        scores(f000001={"recognition": [0, "0.5", None]}),
        ("frame 1 of 3: 2 of 3 scores are no numbers, the first is that of class 1",),
    ),
    Malformed(
        "Scores in JSON",
        "true and false",
        scores(f000001={"recognition": [True, False, False]}),
        ("frame 1 of 3: 3 of 3 scores are no numbers, the first is that of class 0",),
    ),
    Malformed(
        "Scores in JSON",
        "percent, logits",
        scores(f000001={"recognition": [0, 50, 99.5]}, f000002={"recognition": [-2, 0, 7]}),
        (
            "frame 1 of 3: 2 of 3 scores are greater than 1, the first is that of class 1",
            "frame 2 of 3: 1 of 3 scores are less than 0, the first is that of class 0",
            "frame 2 of 3: 1 of 3 scores are greater than 1, the first is that of class 2",
        ),
    ),
    Malformed(
        "Scores in a table",
        "a header",
        b"frame,a,b\n0,0,1\n1,0,1\n2,0,1\n",
        ("row 1: a header stands here, and none is due: the first row is that of frame 0",),
    ),
    Malformed(
        "Scores in a table",
        "semicolons",
        b"0;0;1\n1;0;1\n2;0;1\n",
        ("the fields are separated by a semicolon where a comma is due",),
    ),
    Malformed(
        "Scores in a table",
        "a row too short, one too long",
        b"0,0\n1,0,1\n2,0,1,1\n",
        (
            "row 1: there are fewer than 2 scores",
            "row 3: there are more than 2 scores",
        ),
    ),
    Malformed(
        "Scores in a table",
        "scores that are not whole",
        b"0,0,0.5\n1,0,1\n2,0,1\n",
        ("row 1: 1 of 2 scores are not whole numbers, the first is that of class 1",),
    ),
    Malformed(
        "Scores in a table",
        "scores out of range, NaN",
        b"0,-1,2\n1,0,nan\n2,0,1\n",
        (
            "row 1: 1 of 2 scores are less than 0, the first is that of class 0",
            "row 1: 1 of 2 scores are greater than 1, the first is that of class 1",
            f"row 2: 1 of 2 scores cannot be read; the first is that of class 1, which {NOT_FINITE}",
        ),
    ),
    Malformed(
        "Scores in a table",
        "a frame left out",
        b"0,0,1\n2,0,1\n",
        ("row 2: the frame's number is 2 where 1 was due: the row for frame 1 is missing",),
    ),
    Malformed(
        "Scores in a table",
        "a frame's number that is none",
        b"0,0,1\nx,0,1\n2,0,1\n",
        (f"row 2: the frame's number {NO_INTEGER}",),
    ),
    Malformed(
        "A table that may lack frames",
        "a header and nothing else",
        b"int_time,int_step\n",
        ("there are no rows under the header; 3 are due",),
    ),
    Malformed(
        "A table that may lack frames",
        "a frame twice, another left out",
        b"int_time,int_step\n0,1\n2,1\n2,1\n",
        ("row 4: int_time 2 stands here again, as in row 3",),
    ),
    Malformed(
        "A table that may lack frames",
        "frames out of order",
        b"int_time,int_step\n2,1\n0,1\n",
        ("row 3: int_time 0 comes after 2: rows must be in order",),
    ),
    Malformed(
        "A table that may lack frames",
        "every 24th frame",
        b"int_time,int_step\n0,1\n24,1\n48,1\n",
        ("int_time rises by more than 1 a row",),
    ),
    Malformed(
        "A folder that may lack images",
        "an empty folder",
        {},
        ("there is an image for none of the 3 frames",),
    ),
    Malformed(
        "A folder that may lack images",
        "an empty file",
        folder("RGB", f000001=None, f000003=b""),
        ("frame 3 of 3: the file is empty",),
    ),
    Malformed(
        "Images in colours",
        "images left out",
        folder("RGB", f000001=None, f000003=None),
        (
            "frame 1 of 3: the image is missing",
            "frame 3 of 3: the image is missing",
        ),
    ),
    Malformed("Images in colours", "an empty file", folder("RGB", f000002=b""), ("frame 2 of 3: the file is empty",)),
    Malformed(
        "Images in colours",
        "JPEG",
        folder("RGB", f000002=picture("RGB", form="JPEG")),
        ("frame 2 of 3: this is a JPEG file: it changes the values of pixels, save the image as PNG",),
    ),
    Malformed(
        "Images in colours",
        "BMP",
        folder("RGB", f000002=picture("RGB", form="BMP")),
        ("frame 2 of 3: this is a BMP file: save the image as PNG",),
    ),
    Malformed(
        "Images in colours",
        "another size",
        folder("RGB", f000001=picture("RGB", size=(2, 4))),
        ("frame 1 of 3: the image has another size than 4 × 2 pixels",),
    ),
    Malformed(
        "Images in colours",
        "grey",
        folder("L"),
        (
            "frame 1 of 3: the image is grey where colour (RGB) is due",
            "frame 2 of 3: the image is grey where colour (RGB) is due",
            "frame 3 of 3: the image is grey where colour (RGB) is due",
        ),
    ),
    Malformed(
        "Images in colours",
        "transparency",
        folder("RGB", f000003=picture("RGBA")),
        ("frame 3 of 3: the image is colour with alpha (RGBA) where colour (RGB) is due",),
    ),
    Malformed(
        "Images in colours",
        "a colour of no class",
        folder("RGB", f000002=picture("RGB", colour=(0, 254, 0))),
        ("frame 2 of 3: pixel [0, 0]: the colour is that of no class; of such pixels there are 8",),
    ),
    Malformed(
        "Images in colours",
        "cut off",
        folder("RGB", f000002=picture("RGB")[:-12]),
        ("frame 2 of 3: the file ends without IEND",),
    ),
    Malformed(
        "Images in colours",
        "a damaged byte",
        folder("RGB", f000002=picture("RGB").replace(b"IDAT", b"IDAU")),
        (
            "frame 2 of 3: chunk 2: the checksum is wrong",
            "frame 2 of 3: chunk 2: the chunk must be understood, and is unknown",
        ),
    ),
    Malformed(
        "Images of numbers",
        "colours",
        folder("L", f000001=picture("RGB")),
        ("frame 1 of 3: the image is colour (RGB) where grey is due",),
    ),
    Malformed(
        "Images of numbers",
        "16 bits",
        folder("L", f000001=picture("I;16")),
        ("frame 1 of 3: the image has 16 bits a sample where 8 are due",),
    ),
    Malformed(
        "Images of numbers",
        "a number that is no class",
        folder("L", f000003=picture("L", colour=2)),
        ("frame 3 of 3: pixel [0, 0]: the value is no class; of such pixels there are 8",),
    ),
    Malformed(
        "Images of numbers",
        "bytes behind the end",
        folder("L", f000003=picture("L") + b"x"),
        ("frame 3 of 3: there are bytes after the end of the image (IEND)",),
    ),
    Malformed("One array", "empty", b"", ("the file is empty",)),
    Malformed(
        "One array",
        "text",
        b"0 0\n0 0\n",
        ("this is not what numpy.save writes: it does not begin as an .npy file does",),
    ),
    Malformed("One array", "a pickle", pickle.dumps([0, 1]), (f"this is a pickle, {PICKLE}",)),
    Malformed(
        "One array",
        "an archive",
        archive(),
        ("this is an archive (.npz) where one array (.npy) is due: numpy.save writes it",),
    ),
    Malformed(
        "One array",
        "Python objects",
        saved_objects(),
        ("the array holds Python objects, which are never opened: give it a type of numbers",),
    ),
    Malformed(
        "One array", "another type", saved(GOOD.astype(np.float64)), ("the type is float64 where float32 is due",)
    ),
    Malformed(
        "One array",
        "big-endian",
        saved(GOOD.astype(">f4")),
        ("the numbers are stored big-endian: save array.astype('<f4')",),
    ),
    Malformed("One array", "another shape", saved(GOOD.T), ("the shape is another than (3, 2)",)),
    Malformed("One array", "a frame too few", saved(GOOD[:2]), ("the shape is another than (3, 2)",)),
    Malformed("One array", "cut off", saved(GOOD)[:-1], ("there are fewer bytes of data than the header tells of",)),
    Malformed(
        "One array",
        "bytes behind its end",
        saved(GOOD) + b"\0",
        ("there are more bytes of data than the header tells of",),
    ),
    Malformed(
        "One array",
        "NaN and infinity",
        saved(NOT_A_NUMBER),
        ("2 values are not finite (NaN or infinity), the first at (1, 0)",),
    ),
    Malformed(
        "One array", "values out of range", saved(GOOD + 7), ("6 values are greater than 1, the first at (0, 0)",)
    ),
    Malformed(
        "Several arrays",
        "one array",
        saved(GOOD),
        ("this is one array (.npy) where an archive (.npz) is due: numpy.savez writes it",),
    ),
    Malformed(
        "Several arrays",
        "cut off",
        archive()[:-1],
        ("this is not what numpy.savez writes: it does not end as a plain zip archive does",),
    ),
    Malformed("Several arrays", "an array left out", archive(mask=None), ("the archive does not hold mask",)),
    Malformed(
        "Several arrays",
        "an array of another name",
        archive(mask=None, masks=np.zeros(2, np.uint8)),
        (
            "the archive holds a member that is not asked for: pose, mask are due",
            "the archive does not hold mask",
        ),
    ),
    Malformed(
        "Several arrays", "an array too many", archive(more=np.zeros(2)), ("the archive holds more than 2 members",)
    ),
    Malformed(
        "Several arrays",
        "another type and another shape",
        archive(pose=np.zeros(4), mask=np.zeros(2)),
        (
            "array pose: the shape is another than (3,)",
            "array mask: the type is float64 where uint8 is due",
        ),
    ),
    Malformed("One answer", "empty", b"", ("the file is empty",)),
    Malformed("One answer", "a list", b"[]", ("line 1, column 1: the file holds an array where an object is due",)),
    Malformed(
        "One answer",
        "an empty object",
        b"{}",
        (
            "there is no field 'grade'",
            "there is no field 'count'",
        ),
    ),
    Malformed(
        "One answer",
        "a comment, a comma too many",
        b'{"grade": "low", // sure\n}',
        ("line 1, column 18: a name in quotation marks is due here",),
    ),
    Malformed(
        "One answer",
        "single quotation marks",
        b"{'grade': 1}",
        ('line 1, column 2: JSON knows no single quotation marks: write "',),
    ),
    Malformed(
        "One answer",
        "a field too many",
        answer(reason="x"),
        ("there is a field that is not asked for: the fields are grade, count, curve, sure",),
    ),
    Malformed(
        "One answer",
        "a field named otherwise",
        b'{"Grade": "low", "count": 1}',
        ("a field is not named exactly 'grade', which is missing: did you mean it?",),
    ),
    Malformed(
        "One answer",
        "none of the choices",
        answer(grade="medium"),
        ("field 'grade' is none of its choices: low, very high",),
    ),
    Malformed(
        "One answer",
        "a choice written otherwise",
        answer(grade="Very_High"),
        ("field 'grade' is not written exactly as a choice: mind case, spaces and underscores in low, very high",),
    ),
    Malformed(
        "One answer",
        "a decimal where a whole number is due",
        answer(count=3.0),
        ("field 'count' is a decimal number where a whole number is due: write 3 and not 3.0",),
    ),
    Malformed("One answer", "a number out of range", answer(count=11), ("field 'count' is greater than 10",)),
    Malformed(
        "One answer",
        "types mixed up",
        answer(grade=1, count="3", sure="yes", curve=0.5),
        (
            "field 'grade' is a number where a text is due",
            "field 'count' is a text where a whole number is due",
            "field 'curve' is a number where a list of numbers is due",
            "field 'sure' is a text where true or false is due",
        ),
    ),
    Malformed("One answer", "null", answer(grade=None), ("field 'grade' is null where a text is due",)),
    Malformed(
        "One answer",
        "a list too short, out of range",
        answer(curve=[1.5]),
        (
            "field 'curve' has fewer numbers than the 2 that are due",
            "field 'curve': 1 of its numbers are greater than 1, the first is item 1",
        ),
    ),
    Malformed(
        "One answer",
        "items that are no numbers",
        answer(curve=[0.5, "1"]),
        ("field 'curve': 1 of its items are no numbers, the first is item 2",),
    ),
)

TAKEN: tuple[Taken, ...] = (
    Taken(
        "`missing_frames: {int_step: -1}`",
        "a frame left out",
        b"int_time,int_step\n0,1\n2,1\n",
        ("1 of 3 frames has no row and counts as int_step -1",),
    ),
    Taken(
        "`missing_frames: {int_step: -1}`",
        "a table that ends too early",
        b"int_time,int_step\n0,1\n",
        ("2 of 3 frames have no row and count as int_step -1",),
    ),
    Taken(
        "`extra_frames: ignore`",
        "too many frames",
        b"int_time,int_step\n0,1\n1,1\n2,1\n3,1\n4,1\n",
        ("2 answers are to no frame and were left out",),
    ),
    Taken(
        "`unknown_label: {int_step: -1}`",
        "unknown labels",
        b"int_time,int_step\n0,15\n1,1\n2,-2\n",
        ("2 labels of int_step are unknown and count as -1",),
    ),
    Taken(
        "scores, `missing_frames: 0`",
        "frames left out",
        scores(f000002=None, f000003=None),
        ("2 of 3 frames have no scores and count as 0 in each class",),
    ),
    Taken(
        "scores, `extra_frames: ignore`",
        "a frame that is none",
        scores(f000004={"recognition": [0, 0, 0]}),
        ("1 answer is to no frame and was left out",),
    ),
    Taken(
        "images, `missing_frames: 0`",
        "an image left out",
        folder("RGB", f000002=None),
        ("1 of 3 frames has no image and counts as wholly 0 (background)",),
    ),
)

_INTRODUCTION = """\
# Malformed outputs

What proctor says of an output that is not as its challenge asks: {count} outputs, and every sentence that each gets. A
verdict lists all of them, with the line and the column where there is one. On public data what stood there is quoted
beside it; on hidden data nothing of it is shown, so no sentence holds a byte that a container wrote.

Three frames are due in each, `000001` to `000003`. This page is written by
`python -m tests.unit.formats.malformed > docs/malformed.md`, and a test holds each output to its sentences.
"""


_TAKEN = """
## What a task may take

All of the above is refused where the task says nothing else. It may state what a frame without an answer, an answer to
no frame and an unknown label count as. The verdict of an output that is taken so says how often that was needed:

| the task states | the output | what is noted |
|---|---|---|
"""


def page() -> str:
    """The whole page, as Markdown."""
    parts = [_INTRODUCTION.format(count=len(MALFORMED))]
    for heading in RULES:
        parts.append(f"\n## {heading}\n\n| the output | what is said of it |\n|---|---|\n")
        parts += [_row(one) for one in MALFORMED if one.format == heading]
    parts.append(_TAKEN)
    parts += [f"| {one.states} | {one.name} | {'<br>'.join(one.notes)} |\n" for one in TAKEN]
    return "".join(parts)


def _row(one: Malformed) -> str:
    said = "<br>".join(
        sentence.replace("|", "\\|").replace("\t", "\\t").replace("<", "&lt;") for sentence in one.sentences
    )
    return f"| {one.name} | {said} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
