"""A value with its digest and, where there is a key, its signature, as a file of which every byte counts.

The digest and the signature are of the value as JSON with sorted keys, no spaces and ASCII only. The file is that value
laid out for people; one that is laid out otherwise, be it by a space, was changed. Ed25519 has no random part (RFC
8032, section 5.1.6), so the same value under the same key gives the same file.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.receipt.keys import hex_of, signed_by
from runner.safe_text import for_json

_FIELDS = {"content", "digest", "public_key", "signature"}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What a sealed file says.

    Attributes:
        content: Its value; empty where it cannot be read.
        digest: SHA-256 of its value, hexadecimal, as it is now.
        public_key: Of the key that it says it was signed with, hexadecimal; empty where it is not signed.
        flaw: Why it is not as it was written, the rest of a sentence; empty where it is.
    """

    content: Mapping[str, object]
    digest: str
    public_key: str
    flaw: str

    @property
    def signed(self) -> bool:
        """It says that it is signed."""
        return bool(self.public_key)


def seal(content: Mapping[str, object], key: Ed25519PrivateKey | None) -> bytes:
    """The file of a value.

    Args:
        content: What JSON can hold.
        key: The organisers'; None: it is not signed, so whoever changes it can seal it anew.
    """
    plain = _canonical(content)
    return _laid_out(
        {
            "content": content,
            "digest": hashlib.sha256(plain).hexdigest(),
            "public_key": hex_of(key.public_key()) if key is not None else "",
            "signature": key.sign(plain).hex() if key is not None else "",
        }
    )


def open_seal(data: bytes) -> Opened:
    """Read a sealed file and look whether it is as it was written; nothing is raised."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _broken("it is no JSON")
    if not isinstance(value, dict) or set(value) != _FIELDS or not isinstance(value["content"], dict):
        return _broken("it has other fields than proctor writes")
    content, public_key, signature = value["content"], value["public_key"], value["signature"]
    if not isinstance(public_key, str) or not isinstance(signature, str):
        return _broken("its signature is no text")
    try:
        plain, same = _canonical(content), _laid_out(value) == data
    except (ValueError, RecursionError):
        return _broken("it holds a number that is none")
    digest = hashlib.sha256(plain).hexdigest()
    flaw = ""
    if value["digest"] != digest:
        flaw = "its digest does not fit what it says"
    elif (public_key or signature) and not signed_by(public_key, signature, plain):
        flaw = "its signature does not fit what it says"
    elif not same:
        flaw = "its text is laid out otherwise than proctor writes it"
    return Opened(content=content, digest=digest, public_key=public_key, flaw=flaw)


def _broken(flaw: str) -> Opened:
    return Opened(content={}, digest="", public_key="", flaw=flaw)


def _canonical(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _laid_out(value: Mapping[str, object]) -> bytes:
    return for_json(json.loads(_canonical(value)), indent=1).encode() + b"\n"
