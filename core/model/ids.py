"""Identifiers: how an element, a transaction and a space are named.

An element id is `<kind letter>-<16 characters>`: the log version that created it, its ordinal in that commit
and a salt drawn once per space instance. So an id is unique without a random source, sorts by creation, is
never reused (versions only grow), and an id of a deleted or restored space does not fit its successor. To a
client it is opaque (KIP §7.1).
"""

from __future__ import annotations

import re
from typing import Final, Literal

from core.errors import NoemaError

Kind = Literal["concept", "proposition", "assertion", "evidence", "activity"]

KINDS: Final[tuple[Kind, ...]] = ("concept", "proposition", "assertion", "evidence", "activity")
LETTER: Final[dict[Kind, str]] = {
    "concept": "C",
    "proposition": "P",
    "assertion": "A",
    "evidence": "E",
    "activity": "X",
}
KIND_OF_LETTER: Final[dict[str, Kind]] = {letter: kind for kind, letter in LETTER.items()}

# Crockford's base 32 in lower case: no i, l, o, u, so an id survives being read aloud; it sorts like the number.
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE: Final = {digit: value for value, digit in enumerate(_DIGITS)}

VERSION_DIGITS: Final = 8  # 40 bits of log version: 15 commits a second for two thousand years
ORDINAL_DIGITS: Final = 3  # 32,768 elements in one commit, far above the transaction limits
SALT_DIGITS: Final = 5
BODY_DIGITS: Final = VERSION_DIGITS + ORDINAL_DIGITS + SALT_DIGITS
MAX_ORDINAL: Final = 32**ORDINAL_DIGITS - 1

_ID: Final = re.compile(rf"[CPAEX]-[{_DIGITS}]{{{BODY_DIGITS}}}\Z")
_SPACE: Final = re.compile(r"[a-z0-9_]{1,64}\Z")
_PART: Final = "\x1f"  # between a request's idempotency key and the place of one of its transactions
_PLACE: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")


def encode_base32(value: int, digits: int) -> str:
    """`value` as exactly `digits` characters of Crockford base 32, most significant first."""
    out = []
    for _ in range(digits):
        out.append(_DIGITS[value & 31])
        value >>= 5
    return "".join(reversed(out))


def make_salt(entropy: bytes) -> str:
    """A space instance's salt from at least four random bytes."""
    return encode_base32(int.from_bytes(entropy[:4], "big") & (32**SALT_DIGITS - 1), SALT_DIGITS)


def element_id(kind: Kind, version: int, ordinal: int, salt: str) -> str:
    """The id of the `ordinal`-th element that the commit `version` creates."""
    body = encode_base32(version, VERSION_DIGITS) + encode_base32(ordinal, ORDINAL_DIGITS) + salt
    return f"{LETTER[kind]}-{body}"


def transaction_id(version: int, salt: str) -> str:
    """The engine-assigned id of the transaction that commits as `version` (KIP §32.4)."""
    return f"tx-{encode_base32(version, VERSION_DIGITS)}{salt}"


def version_of_transaction(tx_id: str, salt: str) -> int | None:
    """The log version a transaction id names in the space instance with `salt`, or None if it names none."""
    body = tx_id[3:]
    well_formed = tx_id.startswith("tx-") and len(body) == VERSION_DIGITS + SALT_DIGITS
    if not well_formed or body[VERSION_DIGITS:] != salt or any(digit not in _VALUE for digit in body):
        return None
    version = 0
    for digit in body[:VERSION_DIGITS]:
        version = version * 32 + _VALUE[digit]
    return version


def part_key(key: str, place: int) -> str:
    """The idempotency key of one of several transactions of a request that has one key: by its place, from 0."""
    return f"{key}{_PART}{place}"


def part_of(key: str) -> tuple[str, int | None]:
    """The request's key behind a transaction's, and which place it has; None where it is a key of its own."""
    whole, mark, place = key.rpartition(_PART)
    return (whole, int(place)) if mark and whole and _PLACE.match(place) else (key, None)


def is_element_id(text: str) -> bool:
    """Whether `text` has the shape of an element id; not whether the element exists."""
    return _ID.match(text) is not None


def kind_of(element: str) -> Kind:
    """The kind an element id names by its letter."""
    return KIND_OF_LETTER[element[0]]


def sort_key(element: str) -> str:
    """Orders ids of all kinds by creation: the body without the kind letter."""
    return element[2:]


def check_space_id(text: str) -> str:
    """Return `text` if it may name a space, else raise `InvalidInput`.

    A space id is 1-64 lower-case letters, digits and underscores (Anda Brain contract §1.1).
    """
    if _SPACE.match(text) is None:
        raise NoemaError(
            "InvalidInput",
            "a space id is 1 to 64 lower-case letters, digits and underscores",
            details={"member": "space_id"},
        )
    return text
