"""Of a sealed file every byte counts, and nothing in one can raise."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.receipt.seal import open_seal, seal
from runner.receipt.tree import digests_below

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
CONTENT = {"b": [1, None, "ü\u202e</script>\udcff"], "a": {"z": 1, "y": 2.5}}


@pytest.mark.parametrize("key", [KEY, None])
def test_what_is_sealed_is_read_again(key: Ed25519PrivateKey | None) -> None:
    opened = open_seal(seal(CONTENT, key))
    assert (opened.content, opened.flaw, opened.signed) == (CONTENT, "", key is not None)


def test_the_same_value_and_key_give_the_same_bytes() -> None:
    other_order = {"a": {"y": 2.5, "z": 1}, "b": CONTENT["b"]}
    assert seal(CONTENT, KEY) == seal(other_order, KEY)
    assert seal(CONTENT, KEY) != seal(CONTENT, Ed25519PrivateKey.from_private_bytes(bytes(32)))


@pytest.mark.parametrize("key", [KEY, None])
def test_no_byte_can_be_changed_added_or_left_out(key: Ed25519PrivateKey | None) -> None:
    data = seal(CONTENT, key)
    for place in range(len(data)):
        for changed in (
            data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :],
            data[:place] + b" " + data[place:],
            data[:place] + data[place + 1 :],
        ):
            assert open_seal(changed).flaw, (place, changed)


def test_a_digest_that_was_made_to_fit_does_not_fit_the_signature() -> None:
    value = json.loads(seal({"a": 2}, None))
    value |= {key: json.loads(seal({"a": 1}, KEY))[key] for key in ("public_key", "signature")}
    assert open_seal(json.dumps(value).encode()).flaw == "its signature does not fit what it says"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff", b"[]", b"{}", b"null", b"[" * 100_000,
        b'{"content": 1, "digest": 1, "public_key": 1, "signature": 1}',
        b'{"content": {}, "digest": "", "public_key": 1, "signature": ""}',
        b'{"content": {"a": NaN}, "digest": "", "public_key": "", "signature": ""}',
    ],
)  # fmt: skip
def test_what_is_no_sealed_file_is_told(data: bytes) -> None:
    opened = open_seal(data)
    assert opened.flaw
    assert opened.content == {}


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "left-out").write_bytes(b"")
    found = digests_below(tmp_path, besides=frozenset({"left-out"}))
    sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert {path: (one.sha256, one.size, one.regular) for path, one in found.items()} == {
        "a/file": (sha, 3, True), "link": ("", 0, False),
    }  # fmt: skip
