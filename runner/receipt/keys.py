"""The organisers' Ed25519 key: made, kept where nobody else can read it, and read."""

import contextlib
import os
import re
import stat
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from runner.errors import HostFault, UsageError
from runner.store import write_whole

_HEX = re.compile(r"[0-9a-f]{192}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MAKE = "make one: proctor receipt key FILE"


def public_file(path: Path) -> Path:
    """Where the public half of a key lies: beside it."""
    return path.with_name(f"{path.name}.pub")


def make_key(path: Path) -> Path:
    """Make a key and write it, mode 0600, and its public half beside it; both in PEM.

    Returns:
        The file of the public half, which is to be given to whoever is to verify.

    Raises:
        UsageError: One of the two files exists, or there is no such folder.
        HostFault: The disk is full or broken.
    """
    public = public_file(path)
    for taken in (path, public):
        if os.path.lexists(taken):
            raise UsageError(
                f"{str(taken)!r} exists, and a key is never overwritten",
                remedy="give another FILE; what was signed with a lost key stays verifiable by its public half",
            )
    key = Ed25519PrivateKey.generate()
    _write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_whole(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return public


def _write_private(path: Path, data: bytes) -> None:
    """Never readable by others, not even for a moment."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(
            f"the key cannot be written: {error.strerror}", where=str(path), remedy="give a FILE in a folder of yours"
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise HostFault(
            f"the key could not be written: {error.strerror}", where=str(path), remedy="make room, then the same again"
        ) from error


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read a key.

    Raises:
        UsageError: There is none, others can read it, or it is no Ed25519 key without a passphrase.
    """
    data = _read(path)
    if path.stat().st_mode & _OTHERS:
        raise UsageError(
            "others than its owner can read or write this key", where=str(path), remedy=f"chmod 600 {path}"
        )
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError("this is no private key in PEM without a passphrase", where=str(path), remedy=_MAKE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError("this key is of another kind than Ed25519", where=str(path), remedy=_MAKE)
    return key


def read_public(path: Path) -> Ed25519PublicKey:
    """Read the public half of a key.

    Raises:
        UsageError: There is none, or it is no public Ed25519 key.
    """
    remedy = "give the file that ends in .pub beside the key"
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError("this is no public key in PEM", where=str(path), remedy=remedy) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError("this public key is of another kind than Ed25519", where=str(path), remedy=remedy)
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"the key cannot be read: {error.strerror}", where=str(path), remedy=_MAKE) from error


def hex_of(key: Ed25519PublicKey) -> str:
    """The 32 bytes of a public key, hexadecimal."""
    return key.public_bytes_raw().hex()


def signed_by(public: str, signature: str, data: bytes) -> bool:
    """Whether a signature of some bytes is by the key of these 32 bytes; both in hexadecimal as we write it.

    Python reads spaces and capitals as well: then other text would do for the same signature.
    """
    if _HEX.fullmatch(public + signature) is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True
