"""Public keys as operators write them."""

import base64

import cbor2
import pytest

from functions.keys import PublicKey, decode_base64, parse_public_key

X = bytes(range(240, 272 - 16)) + b"\xfb\xff" * 8  # its base64 has both + and / in it


def spellings(raw: bytes) -> list[str]:
    standard, url = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()
    return [standard, standard.rstrip("="), url, url.rstrip("=")]


def cose(**more: object) -> bytes:
    return cbor2.dumps({1: 1, -1: 6, -2: X} | {int(k[1:].replace("m", "-")): v for k, v in more.items()})


@pytest.mark.parametrize("text", spellings(X))
def test_a_raw_key_is_read_in_every_spelling_of_base64(text: str) -> None:
    """Standard or URL-safe, padded or not: the same key."""
    assert "+" in base64.b64encode(X).decode() or "/" in base64.b64encode(X).decode()
    assert parse_public_key(text) == PublicKey(X)


@pytest.mark.parametrize("text", spellings(cose(_2=b"name", _3=-8)))
def test_a_cose_key_is_read_with_its_name(text: str) -> None:
    """A COSE_Key of an Ed25519 public key gives x and kid."""
    assert parse_public_key(f" {text} ") == PublicKey(X, b"name")


BAD = {
    "empty": "",
    "not base64": "!!!!",
    "one character too many": base64.b64encode(X).decode().rstrip("=") + "AA",
    "cut": base64.b64encode(X).decode()[:41],
    "31 bytes": base64.b64encode(X[:31]).decode(),
    "33 bytes": base64.b64encode(X + b"x").decode(),
    "blank inside": base64.b64encode(X).decode()[:20] + " " + base64.b64encode(X).decode()[20:],
    "padding inside": "AA==AA==",
    "a COSE_Key of another type": base64.b64encode(cbor2.dumps({1: 2, -1: 6, -2: X})).decode(),
    "a COSE_Key of another curve": base64.b64encode(cbor2.dumps({1: 1, -1: 4, -2: X})).decode(),
    "a COSE_Key for another algorithm": base64.b64encode(cose(_3=-7)).decode(),
    "a COSE_Key without x": base64.b64encode(cbor2.dumps({1: 1, -1: 6})).decode(),
    "a short x": base64.b64encode(cose(_m2=b"x")).decode(),
    "a private key": base64.b64encode(cose(_m4=X)).decode(),
    "a kid that is text": base64.b64encode(cose(_2="name")).decode(),
    "bytes after the COSE_Key": base64.b64encode(cose() + b"\x00").decode(),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_public_key_is_refused(name: str) -> None:
    """Anything but 32 raw bytes or an Ed25519 COSE_Key is a ValueError."""
    with pytest.raises(ValueError, match=r"."):
        parse_public_key(BAD[name])


def test_every_length_of_bytes_survives_base64() -> None:
    """Decoding is exact for each remainder of the length by three."""
    for length in range(1, 9):
        for text in spellings(X[:length]):
            assert decode_base64(text) == X[:length]
