"""Verifying CWTs: every rule, each broken once."""

import base64
from collections.abc import Callable
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from functions.cwts import (
    AUD,
    EXP,
    IAT,
    MAX_LIFE_ANY_SPACE_S,
    MAX_LIFE_S,
    MAX_TOKEN_CHARS,
    NBF,
    SCOPE,
    SKEW_S,
    SUB,
    Claims,
    Rejected,
    verify,
)
from functions.keys import PublicKey, decode_base64
from functions.minting import generate_key, mint, public_key_of, sign_claims
from tests.functions.world import OTHER_KEY, TENANT_KEY, public

NOW = 1_780_000_000
KEYS = (public(OTHER_KEY), public(TENANT_KEY))
CLAIMS = {SUB: "alice", AUD: "demo", SCOPE: "*", IAT: NOW, EXP: NOW + 3600}


def text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def signed(
    claims: Any = None,
    *,
    protected: dict[Any, Any] | bytes = {1: -8},
    unprotected: dict[Any, Any] | None = None,
    key: str = TENANT_KEY,
    aad: bytes = b"",
    change: Callable[[list[Any]], Any] = lambda parts: parts,
    prefix: bytes = b"",
    suffix: bytes = b"",
) -> str:
    """A COSE_Sign1 made by hand, so that anything about it can be wrong (RFC 9052 §4.4)."""
    header = protected if isinstance(protected, bytes) else cbor2.dumps(protected)
    payload = cbor2.dumps(CLAIMS if claims is None else claims)
    to_sign = cbor2.dumps(["Signature1", header, aad, payload])
    signature = Ed25519PrivateKey.from_private_bytes(decode_base64(key)).sign(to_sign)
    parts = change([header, unprotected or {}, payload, signature])
    return text(prefix + cbor2.dumps(parts) + suffix)


def test_what_is_minted_verifies() -> None:
    """A token of the command line admits its subject to its audience."""
    token = mint(TENANT_KEY, subject="alice", audience="demo", scope="write", now_s=NOW)

    assert verify(token, KEYS, NOW) == Claims(
        subject="alice", audience="demo", scope="write", expires=NOW + 3600
    )


def test_a_generated_pair_fits_together() -> None:
    """The public half of a new key verifies what the private half signs, and no other does."""
    private, public_half = generate_key()
    token = mint(private, subject="alice", audience="demo", scope="read", now_s=NOW)

    assert public_key_of(private) == public_half
    assert verify(token, (PublicKey(decode_base64(public_half)),), NOW).subject == "alice"
    with pytest.raises(Rejected):
        verify(token, KEYS, NOW)


@pytest.mark.parametrize("prefix", [b"", b"\xd2", b"\xd8\x3d\xd2", b"\xd8\x3d"])
def test_the_tags_may_be_there_or_not(prefix: bytes) -> None:
    """A COSE_Sign1 tag (18) and a CWT tag (61) before it are optional."""
    assert verify(signed(prefix=prefix), KEYS, NOW).subject == "alice"


def test_every_spelling_of_base64_is_read() -> None:
    """Both alphabets, padded or not."""
    raw = decode_base64(signed())
    standard, url = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()
    for spelling in (standard, standard.rstrip("="), url, url.rstrip("=")):
        assert verify(spelling, KEYS, NOW).subject == "alice"


def claims(**changes: Any) -> dict[Any, Any]:
    names = {"sub": SUB, "aud": AUD, "scope": SCOPE, "iat": IAT, "exp": EXP, "nbf": NBF}
    out = dict(CLAIMS) | {names[name]: value for name, value in changes.items()}
    return {label: value for label, value in out.items() if value is not ...}


GOOD_CLAIMS = {
    "no iat": claims(iat=...),
    "an issuer of any kind": CLAIMS | {1: "https://issuer.example"},
    "times with fractions": claims(iat=NOW - 0.5, exp=NOW + 0.5),
    "just expired, within the skew": claims(iat=NOW - 3600, exp=NOW - SKEW_S + 1),
    "not yet valid, within the skew": claims(nbf=NOW + SKEW_S),
    "issued by a clock ahead of ours": claims(iat=NOW + SKEW_S),
    "a day": claims(exp=NOW + MAX_LIFE_S),
    "an hour for every space": claims(aud="*", exp=NOW + MAX_LIFE_ANY_SPACE_S),
    "an Internet Computer principal": claims(sub="un4fu-tqaaa-aaaab-qadjq-cai"),
    "128 characters": claims(sub="x" * 128),
    "another script": claims(sub="Алиса 李"),
}


@pytest.mark.parametrize("name", GOOD_CLAIMS)
def test_claims_that_hold(name: str) -> None:
    """What the rules allow, at their edges."""
    found = verify(signed(GOOD_CLAIMS[name]), KEYS, NOW)

    assert found.subject == GOOD_CLAIMS[name][SUB]
    assert found.audience == GOOD_CLAIMS[name][AUD]


BAD_CLAIMS = {
    "no expiry": claims(exp=...),
    "expired": claims(iat=NOW - 3600, exp=NOW - SKEW_S),
    "long expired": claims(iat=NOW - 9999, exp=NOW - 7200),
    "expiry as text": claims(exp=str(NOW + 60)),
    "expiry true": claims(exp=True),
    "expiry null": claims(exp=None),
    "not yet valid": claims(nbf=NOW + SKEW_S + 1),
    "nbf as text": claims(nbf="now"),
    "issued in the future": claims(iat=NOW + SKEW_S + 1),
    "more than a day": claims(exp=NOW + MAX_LIFE_S + 1),
    "a year, in its last hour": claims(iat=NOW - 364 * 86400, exp=NOW + 3600),
    "a year, no iat": claims(iat=..., exp=NOW + 365 * 86400),
    "more than an hour for every space": claims(aud="*", exp=NOW + MAX_LIFE_ANY_SPACE_S + 1),
    "no subject": claims(sub=...),
    "an empty subject": claims(sub=""),
    "129 characters": claims(sub="x" * 129),
    "a subject with a line break": claims(sub="alice\nroot"),
    "a subject with an invisible character": claims(sub="ali\u200bce"),
    "a subject in blanks": claims(sub=" alice "),
    "a subject that is a number": claims(sub=7),
    "our name for nobody": claims(sub="anonymous"),
    "our name for a space token": claims(sub="token:reader"),
    "our name for ourselves": claims(sub="system:worker"),
    "no audience": claims(aud=...),
    "an empty audience": claims(aud=""),
    "a list of audiences": claims(aud=["demo", "*"]),
    "no scope": claims(scope=...),
    "an unknown scope": claims(scope="admin"),
    "two scopes": claims(scope="read write"),
    "a list of scopes": claims(scope=["read"]),
    "no map": [1, 2],
    "nothing": {},
}


@pytest.mark.parametrize("name", BAD_CLAIMS)
def test_claims_that_do_not_hold(name: str) -> None:
    """A genuine signature does not help a token whose claims break a rule."""
    with pytest.raises(Rejected):
        verify(signed(BAD_CLAIMS[name]), KEYS, NOW)


def flip(index: int) -> Callable[[list[Any]], list[Any]]:
    def change(parts: list[Any]) -> list[Any]:
        parts[index] = parts[index][:-1] + bytes([parts[index][-1] ^ 1])
        return parts

    return change


def other_claims(parts: list[Any]) -> list[Any]:
    return [*parts[:2], cbor2.dumps(claims(sub="boss", aud="*")), parts[3]]


BAD_TOKENS = {
    "empty": lambda: "",
    "not base64": lambda: "%%%",
    "not CBOR": lambda: text(b"\xff" * 90),
    "words": lambda: "correct-horse-battery-staple-correct-horse-battery-staple-correct-horse",
    "a JWT": lambda: "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl",
    "another's key": lambda: signed(key=text(b"k" * 32)),
    "payload changed": lambda: signed(change=flip(2)),
    "payload exchanged": lambda: signed(change=other_claims),
    "signature changed": lambda: signed(change=flip(3)),
    "no signature": lambda: signed(change=lambda parts: [*parts[:3], b""]),
    "signature missing": lambda: signed(change=lambda parts: parts[:3]),
    "five parts": lambda: signed(change=lambda parts: [*parts, b""]),
    "parts in a map": lambda: signed(change=lambda parts: dict(enumerate(parts))),
    "detached payload": lambda: signed(change=lambda parts: [*parts[:2], None, parts[3]]),
    "external data": lambda: signed(aad=b"context"),
    "no algorithm": lambda: signed(protected={}),
    "no protected header": lambda: signed(protected=b""),
    "algorithm not protected": lambda: signed(protected={}, unprotected={1: -8}),
    "algorithm in both": lambda: signed(unprotected={1: -8}),
    "algorithm none": lambda: signed(protected={1: 0}),
    "algorithm ES256": lambda: signed(protected={1: -7}),
    "algorithm HMAC": lambda: signed(protected={1: 5}),
    "algorithm by name": lambda: signed(protected={1: "EdDSA"}),
    "an extension that must be understood": lambda: signed(protected={1: -8, 2: [99], 99: 1}),
    "a kid that is text": lambda: signed(protected={1: -8, 4: "name"}),
    "a kid twice": lambda: signed(protected={1: -8, 4: b"a"}, unprotected={4: b"b"}),
    "a header that is no map": lambda: signed(protected=cbor2.dumps([1, -8])),
    "bytes after the header": lambda: signed(protected=cbor2.dumps({1: -8}) + b"\x00"),
    "bytes after the token": lambda: signed(suffix=b"\x00"),
    "a MAC0": lambda: signed(prefix=b"\xd1"),
    "a key given twice in the claims": lambda: text(
        cbor2.dumps([cbor2.dumps({1: -8}), {}, b"\xa2\x02\x61a\x02\x61b", b"s" * 64])
    ),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_tokens_that_are_not_genuine(name: str) -> None:
    """Forged, truncated, of another kind: rejected, and never an error of another sort."""
    with pytest.raises(Rejected):
        verify(BAD_TOKENS[name](), KEYS, NOW)


def test_no_truncation_of_a_genuine_token_is_accepted() -> None:
    """A token cut anywhere admits nobody."""
    token = signed()
    for length in range(len(token)):
        with pytest.raises(Rejected):
            verify(token[:length], KEYS, NOW)


def test_an_oversized_token_is_refused_before_it_is_decoded() -> None:
    """Size comes first: even a genuine token is refused when it is too long."""
    token = signed(CLAIMS | {1: "x" * MAX_TOKEN_CHARS})

    with pytest.raises(Rejected, match="oversized"):
        verify(token, KEYS, NOW)


def test_without_keys_nothing_verifies() -> None:
    """An empty list of keys admits nobody."""
    with pytest.raises(Rejected):
        verify(signed(), (), NOW)


def test_a_named_key_verifies_only_tokens_of_its_name() -> None:
    """A token's kid rules out keys of another name; a key without a name is tried for every token."""
    raw = public(TENANT_KEY).x
    named, other, nameless = PublicKey(raw, b"k1"), PublicKey(raw, b"k2"), PublicKey(raw)
    bearing = sign_claims(TENANT_KEY, CLAIMS, kid=b"k1")

    assert verify(bearing, (named,), NOW).subject == "alice"
    assert verify(bearing, (nameless,), NOW).subject == "alice"
    assert verify(signed(), (named,), NOW).subject == "alice"
    assert verify(signed(unprotected={4: b"k1"}), (other, named), NOW).subject == "alice"
    with pytest.raises(Rejected):
        verify(bearing, (other,), NOW)
