"""Reads NumPy arrays of a case, one (``.npy``) or several (``.npz``), of the types, shapes and ranges that are due."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import ArraysFormat
from runner.confine import Confine
from runner.errors import UsageError
from runner.formats.contract import Arrays, Due, Reading, Role
from runner.formats.readers import npy_array, npz_archive
from runner.formats.readers.npy_rule import ArrayRule, NpyCaps
from runner.formats.readers.opened import read_file
from runner.formats.readers.problems import ProblemList

_MOST_BYTES = 128 << 20
"""Of all arrays together; the reader holds several copies at once."""

_LEAST_CAP = 32 << 20
_MORE_THAN_DUE = 8
"""How many times larger than due a file may be, so that its type and shape can be named and not its size alone."""


def array_rules(rule: ArraysFormat, due: Due) -> dict[str, ArrayRule]:
    """What each array must be for this case; where nobody knows the number of frames, any will do."""
    return {
        name: ArrayRule(
            types=(array.type,),
            shape=tuple(_extent(extent, due) for extent in array.shape),
            minimum=None if array.range is None else array.range[0],
            maximum=None if array.range is None else array.range[1],
        )
        for name, array in rule.arrays.items()
    }


def _extent(extent: int | str, due: Due) -> int | None:
    if isinstance(extent, int):
        return extent
    return due.count if extent == "frames" else None


def array_caps(rules: Mapping[str, ArrayRule]) -> NpyCaps:
    """How large the file may be.

    Raises:
        UsageError: More is due than is read.
    """
    sizes = [_bytes_due(rule) for rule in rules.values()]
    due = sum(size for size in sizes if size is not None)
    if due > _MOST_BYTES:
        raise UsageError(
            f"arrays of {due} bytes are due, and no more than {_MOST_BYTES} are read",
            remedy="choose smaller arrays or a smaller type in challenge.yaml",
        )
    most = _MOST_BYTES if None in sizes else min(_MOST_BYTES, max(_MORE_THAN_DUE * due, _LEAST_CAP))
    return NpyCaps(size=most + _LEAST_CAP // 32, unpacked=most)


def _bytes_due(rule: ArrayRule) -> int | None:
    """Bytes of an array; None where any length will do."""
    extents = [extent for extent in rule.shape if extent is not None]
    return math.prod(extents) * np.dtype(rule.types[0]).itemsize if len(extents) == len(rule.shape) else None


def confined_read(
    confine: Confine,
    rule: ArraysFormat,
    path: Path,
    *,
    due: Due,
    role: Role,  # noqa: ARG001  the same for whoever wrote it
) -> Reading:
    """Read a file of arrays in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the arrays must be.
        path: The file.
        due: The case.
        role: Of no meaning here.

    Raises:
        UsageError: More bytes are due than are read.
        HostFault: No child could be started.
    """
    rules = array_rules(rule, due)
    caps = array_caps(rules)

    def read(descriptor: int) -> Reading:
        problems = ProblemList()
        arrays = _read(confine, rule, descriptor, rules=rules, caps=caps, problems=problems)
        prediction = None if arrays is None else Arrays(arrays=arrays)
        return Reading(prediction=prediction, problems=tuple(problems.kept), problem_count=problems.count)

    return read_file(path, read)


def _read(
    confine: Confine,
    rule: ArraysFormat,
    descriptor: int,
    *,
    rules: Mapping[str, ArrayRule],
    caps: NpyCaps,
    problems: ProblemList,
) -> Mapping[str, NDArray[np.generic]] | None:
    if rule.file.endswith(".npz"):
        return npz_archive.confined_npz(confine, descriptor, rules=rules, caps=caps, problems=problems)
    ((name, only),) = rules.items()
    array = npy_array.confined_npy(confine, descriptor, rule=only, caps=caps, problems=problems)
    return None if array is None else {name: array}


def warm_up() -> None:
    """Read good and bad files once; for the fork server."""
    npy_array.warm_up()
    npz_archive.warm_up()
