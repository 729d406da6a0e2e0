"""Verifies a CWT: a COSE_Sign1 over claims, signed with Ed25519 (contract §2.1 with the safer rules of §2.5).

What lives here: from the text of a bearer token to `Claims`, or `Rejected`. What must never live here: what a
claim permits (`functions.identity`), and the time (an argument). The signature is `cwt`'s work, a maintained
library; its claim checks are not used, because they read the clock themselves and accept a token that never
expires. It is imported on first use: it costs about 60 ms, and space tokens do without it.

The reason of a `Rejected` is for our log. A caller is told nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.service.values import Scope
from functions.keys import EDDSA, PublicKey, decode_base64
from functions.plain import CborReader

MAX_TOKEN_CHARS: Final = 4096  # ours are below 300; refused before anything is decoded
MAX_SUBJECT_CHARS: Final = 128
SKEW_S: Final = 60
MAX_LIFE_S: Final = 24 * 3600
MAX_LIFE_ANY_SPACE_S: Final = 3600  # of a token whose audience is every space

ISS, SUB, AUD, EXP, NBF, IAT, SCOPE = 1, 2, 3, 4, 5, 6, 9  # CWT claim keys (RFC 8392, RFC 8693)
_ALG, _CRIT, _KID = 1, 2, 4  # COSE header labels (RFC 9052 §3.1)
_TAG_SIGN1: Final = b"\xd2"  # CBOR tag 18
_TAG_CWT: Final = b"\xd8\x3d"  # CBOR tag 61
_SCOPES: Final[dict[str, Scope]] = {"read": "read", "write": "write", "*": "*"}
_RESERVED: Final = ("token:", "system:")  # subjects that we give out ourselves


class Rejected(Exception):  # noqa: N818 - a verdict, not a fault
    """The token admits nobody; the message is a reason for the log and holds nothing of the token."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a verified token says. Times are Unix seconds."""

    subject: str
    audience: str
    scope: Scope
    expires: float


def verify(token: str, keys: tuple[PublicKey, ...], now_s: float) -> Claims:
    """The claims of a token that one of `keys` signed and that holds at `now_s`.

    Raises:
        Rejected: for any flaw.
    """
    if len(token) > MAX_TOKEN_CHARS:
        raise Rejected("oversized")
    try:
        raw = decode_base64(token)
        protected, unprotected, payload, signature = _sign1(raw)
        headers = _map(protected) if protected else {}
        _check_headers(headers, unprotected)
        kid = headers.get(_KID, unprotected.get(_KID))
        candidates = _candidates(keys, kid)
        _check_signature([protected, unprotected, payload, signature], candidates, kid)
        claims = _map(payload)
    except (ValueError, NoemaError) as error:
        raise Rejected("malformed") from error
    return check_claims(claims, now_s)


def _sign1(raw: bytes) -> tuple[bytes, dict[Any, Any], bytes, bytes]:
    """The four parts of a COSE_Sign1; tag 18, and tag 61 before it, may be there or not."""
    reader = CborReader(raw.removeprefix(_TAG_CWT).removeprefix(_TAG_SIGN1), integer_keys=True)
    parts = reader.item(0)
    if reader.at != len(reader.data) or not isinstance(parts, list) or len(parts) != 4:
        raise Rejected("not a COSE_Sign1")
    protected, unprotected, payload, signature = parts
    bytes_where_due = all(isinstance(part, bytes) for part in (protected, payload, signature))
    if not bytes_where_due or not isinstance(unprotected, dict):
        raise Rejected("not a COSE_Sign1")
    return protected, unprotected, payload, signature


def _map(data: bytes) -> dict[Any, Any]:
    reader = CborReader(data, integer_keys=True)
    value = reader.item(0)
    if not isinstance(value, dict) or reader.at != len(data):
        raise Rejected("malformed")
    return value


def _check_headers(protected: dict[Any, Any], unprotected: dict[Any, Any]) -> None:
    if protected.get(_ALG) != EDDSA:
        raise Rejected("algorithm")
    if _CRIT in protected or _CRIT in unprotected:  # we understand no extension that must be understood
        raise Rejected("critical header")
    if protected.keys() & unprotected.keys():  # RFC 9052 §3: a label stands in one of them
        raise Rejected("header given twice")


def _candidates(keys: tuple[PublicKey, ...], kid: object) -> list[PublicKey]:
    """The keys that may have signed: a key with another name than the token's never may."""
    if kid is not None and not isinstance(kid, bytes):
        raise Rejected("kid")
    return [key for key in keys if kid is None or key.kid is None or key.kid == kid]


def _check_signature(parts: list[Any], keys: list[PublicKey], kid: bytes | None) -> None:
    from cbor2 import CBORTag  # noqa: PLC0415 - see the top
    from cwt import COSE, COSEKey, CWTError  # noqa: PLC0415

    def named(key: PublicKey) -> Any:  # a cwt key; the library wants the token's kid on every candidate
        return COSEKey.new({1: 1, 3: EDDSA, -1: 6, -2: key.x, **({2: kid} if kid else {})})

    try:
        COSE.new().decode(CBORTag(18, parts), [named(key) for key in keys])
    except (CWTError, ValueError) as error:
        raise Rejected("signature") from error


def check_claims(claims: dict[Any, Any], now_s: float) -> Claims:
    """The claims, checked against the clock and the bounds on a token's life.

    Raises:
        Rejected: a claim is missing, malformed, or does not hold at `now_s`.
    """
    subject, scope, audience = claims.get(SUB), claims.get(SCOPE), claims.get(AUD)
    if not isinstance(subject, str) or not is_subject(subject):
        raise Rejected("subject")
    if not isinstance(scope, str) or scope not in _SCOPES:
        raise Rejected("scope")
    if not isinstance(audience, str) or not audience:
        raise Rejected("audience")
    expires, not_before, issued = _time(claims, EXP), _time(claims, NBF), _time(claims, IAT)
    if expires is None:
        raise Rejected("no expiry")
    if now_s >= expires + SKEW_S:
        raise Rejected("expired")
    if max(not_before or 0, issued or 0) > now_s + SKEW_S:
        raise Rejected("not yet valid")
    life = MAX_LIFE_ANY_SPACE_S if audience == "*" else MAX_LIFE_S
    begins = [begin for begin in (issued, not_before) if begin is not None]
    if expires - min([*begins, now_s + SKEW_S]) > life:
        raise Rejected("lives too long")
    return Claims(subject=subject, audience=audience, scope=_SCOPES[scope], expires=expires)


def _time(claims: dict[Any, Any], label: int) -> float | None:
    value = claims.get(label)
    if value is None and label not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Rejected("a time is not a number")
    return value


def is_subject(text: str) -> bool:
    """Whether a text may name a principal: printable, at most 128 characters, not a name we give out."""
    proper = 0 < len(text) <= MAX_SUBJECT_CHARS and text.isprintable() and text == text.strip()
    return proper and text != "anonymous" and not text.startswith(_RESERVED)
