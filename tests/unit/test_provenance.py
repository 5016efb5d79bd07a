"""Data hashes: exact, and remembered by size, time and inode."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.dataset import Case
from runner.provenance import DataHashes


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "frame.png"
    path.write_bytes(b"first")
    return path


def rewrite(path: Path, data: bytes, *, later: int) -> None:
    """Write in place and set the time: the inode stays."""
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + later))


def test_a_hash_is_of_the_bytes(tmp_path: Path, file: Path) -> None:
    assert DataHashes(cache=tmp_path / "c").file(file) == sha(b"first")


@pytest.mark.parametrize(
    ("data", "later", "read_again"),
    [
        (b"other", 0, False),  # same size, time and inode: what the cache trusts
        (b"other", 1, True),
        (b"longer", 0, True),
    ],
)
def test_a_file_is_read_again_when_size_or_time_changed(
    tmp_path: Path, file: Path, data: bytes, later: int, read_again: bool
) -> None:
    hashes = DataHashes(cache=tmp_path / "c")
    assert hashes.file(file) == sha(b"first")
    rewrite(file, data, later=later)
    assert hashes.file(file) == sha(data if read_again else b"first")


def test_a_file_is_read_again_when_it_was_replaced(tmp_path: Path, file: Path) -> None:
    hashes, facts = DataHashes(cache=tmp_path / "c"), file.stat()
    assert hashes.file(file) == sha(b"first")
    other = tmp_path / "other"
    other.write_bytes(b"other")
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.replace(file)
    assert hashes.file(file) == sha(b"other")


def test_what_was_saved_is_not_read_again(tmp_path: Path, file: Path) -> None:
    hashes = DataHashes(cache=tmp_path / "c")
    hashes.file(file)
    hashes.save()
    rewrite(file, b"other", later=0)
    assert DataHashes(cache=tmp_path / "c").file(file) == sha(b"first")
    assert DataHashes(cache=tmp_path / "elsewhere").file(file) == sha(b"other")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", "\x00", "FILE 7", "FILE []", "FILE [1,2,3]", 'FILE "abcd"']
)
def test_a_damaged_cache_only_costs_time(tmp_path: Path, file: Path, text: str) -> None:
    facts = file.stat()
    if text == "FILE [1,2,3]":
        text = f"FILE [{facts.st_size}, {facts.st_mtime_ns}, {facts.st_ino}]"
    if text.startswith("FILE "):
        text = f"{{{json.dumps(str(file))}: {text.removeprefix('FILE ')}}}"
    (tmp_path / "c").write_text(text)
    assert DataHashes(cache=tmp_path / "c").file(file) == sha(b"first")


def showing(case: Case, *frames: str) -> Case:
    return replace(case, inputs=(replace(case.inputs[0], frames=frames),))


class TestInputs:
    def test_the_hash_is_of_names_and_contents_in_order(self, tmp_path: Path, make_case: Callable[..., Case]) -> None:
        case = make_case("A", frames=2)
        text = "".join(f"frames\0{name}\0{sha(data)}\n" for name, data in (("000.png", b"A:0"), ("001.png", b"A:1")))
        assert DataHashes(cache=tmp_path / "c").inputs(case) == sha(text.encode())

    def test_it_changes_with_every_byte_name_and_order(self, tmp_path: Path, make_case: Callable[..., Case]) -> None:
        case = make_case("A", frames=2)

        def inputs(case: Case) -> str:
            return DataHashes(cache=tmp_path / "c").inputs(case)

        seen = {
            inputs(case),
            inputs(showing(case, "001.png", "000.png")),
            inputs(showing(case, "000.png")),
        }
        folder = case.inputs[0].path
        (folder / "001.png").rename(folder / "002.png")
        seen.add(inputs(showing(case, "000.png", "002.png")))
        (folder / "000.png").write_text("A:X")
        seen.add(inputs(showing(case, "000.png", "002.png")))
        assert len(seen) == 5

    def test_neither_name_folder_nor_reference_matters(self, tmp_path: Path, make_case: Callable[..., Case]) -> None:
        case, hashes = make_case("A", frames=2), DataHashes(cache=tmp_path / "c")
        before = hashes.inputs(case)
        moved = replace(case.inputs[0], path=case.inputs[0].path.rename(tmp_path / "moved"))
        assert hashes.inputs(replace(case, name="B", inputs=(moved,), references={})) == before

    def test_what_an_input_is_called_matters(self, tmp_path: Path, make_case: Callable[..., Case]) -> None:
        case, hashes = make_case("A", frames=2), DataHashes(cache=tmp_path / "c")
        renamed = replace(case.inputs[0], name="left")
        assert hashes.inputs(replace(case, inputs=(renamed,))) != hashes.inputs(case)

    def test_a_frame_whose_name_is_not_text(self, tmp_path: Path, make_case: Callable[..., Case]) -> None:
        case = make_case("A", frames=1)
        name = os.fsdecode(b"\xff.png")
        (case.inputs[0].path / name).write_bytes(b"x")
        expected = sha(b"frames\0\xff.png\0" + sha(b"x").encode() + b"\n")
        assert DataHashes(cache=tmp_path / "c").inputs(showing(case, name)) == expected
