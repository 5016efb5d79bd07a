"""A challenge that comes as one file: what is packed is what is found, and nothing leaves its folder."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner import challenge_archive
from runner.challenge_archive import is_archive, unpacked
from runner.errors import UsageError

FILES = {"challenge.yaml": b"name: x\n", "scorer.py": b"x = 1\n", "sample/inputs/01/00000.png": b"\x89PNG" * 500}


def tar_of(path: Path, files: dict[str, bytes], *, mode: str = "w", extra: list[tarfile.TarInfo] | None = None) -> Path:
    with tarfile.open(path, mode) as sink:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            sink.addfile(info, io.BytesIO(content))
        for info in extra or []:
            sink.addfile(info)
    return path


def zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as sink:
        for name, content in files.items():
            sink.writestr(name, content)
    return path


MAKERS: dict[str, Callable[[Path, dict[str, bytes]], Path]] = {
    "x.zip": zip_of,
    "x.tar": tar_of,
    "x.tar.gz": lambda path, files: tar_of(path, files, mode="w:gz"),
    "x.TGZ": lambda path, files: tar_of(path, files, mode="w:gz"),
}


def found_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refusal(path: Path, cache: Path) -> str:
    """The sentence; nothing is left of what was refused."""
    with pytest.raises(UsageError) as caught:
        unpacked(path, holds="challenge.yaml", cache=cache)
    assert caught.value.where == str(path)
    assert list(cache.iterdir()) == []
    return caught.value.what.removeprefix("the archive cannot be taken: ")


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("top", ["", "toy/", "./", "./toy/"])
def test_what_was_packed_is_found(tmp_path: Path, name: str, top: str) -> None:
    path = MAKERS[name](tmp_path / name, {top + key: value for key, value in FILES.items()})
    assert is_archive(path)
    folder = unpacked(path, holds="challenge.yaml", cache=tmp_path / "cache")
    assert found_in(folder) == FILES
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


def test_the_same_bytes_are_unpacked_once_and_others_beside_them(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = unpacked(zip_of(tmp_path / "a.zip", FILES), holds="challenge.yaml", cache=cache)
    (first / "mark").write_text("")
    (tmp_path / "b.zip").write_bytes((tmp_path / "a.zip").read_bytes())
    assert unpacked(tmp_path / "b.zip", holds="challenge.yaml", cache=cache) == first
    other = unpacked(zip_of(tmp_path / "c.zip", {**FILES, "more.py": b""}), holds="challenge.yaml", cache=cache)
    assert other != first
    assert (first / "mark").exists()
    assert len(list(cache.iterdir())) == 2


def test_a_mac_s_litter_is_left_out(tmp_path: Path) -> None:
    files = {f"toy/{key}": value for key, value in FILES.items()}
    path = zip_of(tmp_path / "a.zip", {**files, "__MACOSX/toy/._scorer.py": b"x"})
    assert found_in(unpacked(path, holds="challenge.yaml", cache=tmp_path / "cache")) == FILES


def test_a_folder_or_another_file_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.zip").mkdir()
    (tmp_path / "challenge.yaml").write_text("")
    assert not any(is_archive(tmp_path / name) for name in ("x.zip", "challenge.yaml", "gone.tar"))


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
@pytest.mark.parametrize(
    "member", ["../x", "a/../../x", "/etc/x", "a//x", "a\\..\\x", ".hidden", "a/..", "a\nb", "é", "a" * 201, "C:x"]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, member: str) -> None:
    path = MAKERS[name](tmp_path / name, {**FILES, member: b"x"})
    assert refusal(path, tmp_path / "cache").endswith("is no name for a file of a challenge")
    assert {entry.name for entry in tmp_path.iterdir()} == {name, "cache"}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_a_tar_with_a_link_or_a_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("evil")
    info.type, info.linkname = kind, "/etc/passwd"
    path = tar_of(tmp_path / "x.tar", FILES, extra=[info])
    assert refusal(path, tmp_path / "cache") == "'evil' is a link, a device or a sparse file"


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", FILES)
    with zipfile.ZipFile(path, "a") as sink:
        info = zipfile.ZipInfo("evil")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        sink.writestr(info, "/etc/passwd")
    assert refusal(path, tmp_path / "cache") == "'evil' is a link or a device"


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", {"challenge.yaml": b"x"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert refusal(path, tmp_path / "cache") == "'challenge.yaml' is encrypted"


def test_names_that_meet_are_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", {**FILES, "Scorer.py": b"x"})
    assert refusal(path, tmp_path / "cache") == "'Scorer.py' stands in it twice"
    path = zip_of(tmp_path / "x.zip", {**FILES, "scorer.py/x": b"x"})
    assert refusal(path, tmp_path / "cache") == "a name in it is both a file and a folder"


def test_what_is_too_large_deep_or_many_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    deep = zip_of(tmp_path / "deep.zip", {**FILES, "a/" * 8 + "b": b""})
    assert refusal(deep, cache) == "'a/a/a/a/a/a/a/a/b' lies more than 8 folders deep"
    monkeypatch.setattr(challenge_archive, "MOST_MEMBERS", 5)
    many = tar_of(tmp_path / "many.tar", {**FILES, **{f"{n}": b"" for n in range(3)}})
    assert refusal(many, cache) == "it has more than 5 members"
    monkeypatch.setattr(challenge_archive, "MOST_MEMBERS", 10_000)
    monkeypatch.setattr(challenge_archive, "MOST_BYTES", 1 << 20)
    for name in ("bomb.zip", "bomb.tar.gz"):
        bomb = MAKERS[f"x.{name.partition('.')[2]}"](tmp_path / name, {**FILES, "zeros": bytes(4 << 20)})
        assert bomb.stat().st_size < 20_000
        assert refusal(bomb, cache) == "it unpacks to more than 1 MiB"


def test_a_header_that_claims_much_is_not_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 5 << 20
    path = tmp_path / "x.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(6 << 20))
    assert refusal(path, tmp_path / "cache") == "a header or list in it has more than 4 MiB"


def test_an_archive_without_a_challenge_is_refused(tmp_path: Path) -> None:
    for files in ({"a/b/challenge.yaml": b""}, {"a/challenge.yaml": b"", "b": b""}, {"x": b""}):
        path = zip_of(tmp_path / "x.zip", files)
        assert refusal(path, tmp_path / "cache") == "it holds no challenge.yaml at its top, or in its only top folder"


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    for content in (b"", b"PK", b"\x1f\x8b", b"no archive" * 200):
        path.write_bytes(content)
        assert "it is damaged, or packed in another way" in refusal(path, tmp_path / "cache")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(["x.zip", "x.tar", "x.tar.gz"]))
def test_a_damaged_archive_ends_in_a_sentence_or_in_its_own_folder(
    tmp_path: Path, data: st.DataObject, name: str
) -> None:
    path = MAKERS[name](tmp_path / name, FILES)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    ended = ""
    try:
        ended = str(unpacked(path, holds="challenge.yaml", cache=tmp_path / "cache"))
    except UsageError as error:
        ended = error.what
    assert ended.startswith(("the archive cannot be taken: ", f"{tmp_path}/cache/"))
