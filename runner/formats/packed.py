"""Predictions as a confined child is given them: a header and plain arrays.

Label images do not pass this way: they are many, and go through a pipe one after the other (``image_stream``).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from runner.confine import JsonValue, Reply
from runner.formats.contract import Answer, Arrays, FrameScores, FrameTable, Prediction

_SCORES = "scores"


def packed(prediction: Prediction) -> Reply:
    """A prediction as header and arrays.

    Raises:
        TypeError: It is one of label images.
    """
    match prediction:
        case FrameTable():
            return _reply("frame_table", list(prediction.columns), list(prediction.columns.values()))
        case FrameScores():
            return _reply("frame_scores", [_SCORES], [prediction.scores])
        case Arrays():
            return _reply("arrays", list(prediction.arrays), list(prediction.arrays.values()))
        case Answer():
            return Reply(header={"kind": "answer", "fields": dict(prediction.fields)})
        case _:
            raise TypeError(f"a {type(prediction).__name__} cannot be packed")


def _reply(kind: str, names: list[str], arrays: list[NDArray[np.generic]]) -> Reply:
    # Names of columns are a challenge's words; as keys of arrays numbers are enough.
    header: dict[str, JsonValue] = {"kind": kind, "names": list[JsonValue](names)}
    return Reply(header=header, arrays={str(place): array for place, array in enumerate(arrays)})


def unpacked(header: Mapping[str, JsonValue], arrays: Mapping[str, NDArray[np.generic]]) -> Prediction:
    """The prediction that was packed."""
    if header["kind"] == "answer":
        fields = header["fields"]
        assert isinstance(fields, dict)
        return Answer(fields=fields)
    names = header["names"]
    assert isinstance(names, list)
    named = {str(name): arrays[str(place)] for place, name in enumerate(names)}
    match header["kind"]:
        case "frame_table":
            return FrameTable(columns={name: array.astype(np.int64, copy=False) for name, array in named.items()})
        case "frame_scores":
            return FrameScores(scores=named[_SCORES].astype(np.float64, copy=False))
        case kind:
            assert kind == "arrays"
            return Arrays(arrays=named)
