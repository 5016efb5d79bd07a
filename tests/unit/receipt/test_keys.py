"""The organisers' key is theirs alone, and a wrong file is told from one."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from runner.errors import UsageError
from runner.receipt.keys import hex_of, make_key, read_key, read_public, signed_by


def test_a_key_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    public = make_key(tmp_path / "k")
    assert public == tmp_path / "k.pub"
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    assert hex_of(read_key(tmp_path / "k").public_key()) == hex_of(read_public(public))
    assert b"PRIVATE" not in public.read_bytes()


def test_two_keys_differ(tmp_path: Path) -> None:
    assert hex_of(read_public(make_key(tmp_path / "a"))) != hex_of(read_public(make_key(tmp_path / "b")))


@pytest.mark.parametrize("taken", ["k", "k.pub"])
def test_no_key_is_overwritten(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).symlink_to("nowhere")
    with pytest.raises(UsageError, match=f"{taken}' exists"):
        make_key(tmp_path / "k")
    assert [path.name for path in tmp_path.iterdir()] == [taken]


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        make_key(tmp_path / "nowhere" / "k")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    make_key(tmp_path / "k")
    (tmp_path / "k").chmod(mode)
    with pytest.raises(UsageError, match="others than its owner") as told:
        read_key(tmp_path / "k")
    assert told.value.remedy == f"chmod 600 {tmp_path / 'k'}"


def private_file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no private key"):
        read_key(private_file(tmp_path / "text", b"hello"))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_key(tmp_path / "nowhere")
    make_key(tmp_path / "k")
    with pytest.raises(UsageError, match="no public key"):
        read_public(tmp_path / "k")
    with pytest.raises(UsageError, match="no private key"):
        read_key(private_file(tmp_path / "k2", (tmp_path / "k.pub").read_bytes()))


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    rsa = generate_private_key(public_exponent=65537, key_size=1024)
    private = rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(UsageError, match="another kind"):
        read_key(private_file(tmp_path / "rsa", private))
    public = rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(UsageError, match="another kind"):
        read_public(private_file(tmp_path / "rsa.pub", public))


def test_a_signature_fits_its_bytes_and_its_key_only() -> None:
    # RFC 8032, section 7.1, test 2.
    key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    signature = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert signed_by(key, signature, b"\x72")
    assert not signed_by(key, signature, b"\x73")
    assert not signed_by(key, "00" * 64, b"\x72")
    assert not signed_by("no hex", signature, b"\x72")
    assert not signed_by(key[:-2], signature, b"\x72")
    assert not signed_by(key.upper(), signature, b"\x72")
    assert not signed_by(f" {key}", signature, b"\x72")
