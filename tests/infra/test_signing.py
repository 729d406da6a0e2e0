"""`infra.signing.ed25519`: the deployment's key and checks of anybody's."""

from __future__ import annotations

import pytest

from core.model.proofs import Verdict
from infra.signing.ed25519 import Ed25519Keys, key_id_of, public_of

MINE, THEIRS = Ed25519Keys(b"m" * 32), Ed25519Keys(b"t" * 32)


def test_a_signature_is_checked_by_anybody() -> None:
    """The key id holds the key, so who never saw it can check; who knows its name says so."""
    signed = THEIRS.sign(b"payload")
    knowing = Ed25519Keys(None, {THEIRS.key_id: "them"})

    assert MINE.check(signed.key_id, b"payload", signed.value) == Verdict(valid=True)
    assert knowing.check(signed.key_id, b"payload", signed.value) == Verdict(valid=True, signer="them")
    assert THEIRS.check(signed.key_id, b"payload", signed.value) == Verdict(
        valid=True, signer="this-deployment"
    )
    assert THEIRS.sign(b"payload") == signed


@pytest.mark.parametrize("change", ["payload", "signature", "key", "short"])
def test_what_does_not_fit_is_invalid(change: str) -> None:
    """Another payload, another signature, another key, and a signature of another length are all invalid."""
    signed = THEIRS.sign(b"payload")
    payload = b"other" if change == "payload" else b"payload"
    value = {"signature": b"\0" * 64, "short": b"x"}.get(change, signed.value)
    key = MINE.key_id if change == "key" else signed.key_id

    assert MINE.check(key, payload, value).valid is False


@pytest.mark.parametrize(
    "key_id", ["", "rsa:x", "ed25519:", "ed25519:!!", "ed25519:" + "A" * 42 + "B", "ed25519:" + "A" * 86]
)
def test_other_keys_are_not_understood(key_id: str) -> None:
    """What is no id of an Ed25519 key, or spells one in another way, is neither valid nor invalid."""
    assert MINE.check(key_id, b"", b"").valid is None


def test_ids_and_keys_are_one_to_one() -> None:
    """A key has one id, and an id one key; without a seed nothing is signed."""
    assert public_of(key_id_of(b"k" * 32)) == b"k" * 32
    with pytest.raises(ValueError, match="no key"):
        Ed25519Keys(None).sign(b"")


@pytest.mark.parametrize("sign", [0, 0x80])
@pytest.mark.parametrize(
    "low",
    [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ],
)
def test_a_key_that_signs_everything_is_nobodys(low: str, sign: int) -> None:
    """Keys of small order, or past the field, are not understood: their signatures fit bytes that nobody signed."""
    public = bytearray.fromhex(low)
    public[31] |= sign
    keys = Ed25519Keys(None)

    for value in (bytes(64), b"\x01" + bytes(63), bytes(public) + bytes(32)):
        assert keys.check(key_id_of(bytes(public)), b"anything", value).valid is None
