"""The log's rows: how a commit stands in its `D#` row, and the hash chain through all of them.

What lives here: the value of a delta row, its spelling as a row, and the arithmetic of the chain. What must
never live here: deciding what to commit (`core.service.commit`) or when a row may go (`core.service.upkeep`).

The chain: `digest` = sha256(salt + the stored bytes), `chain` = sha256(the previous chain + digest). An erased
delta keeps its digest and loses its salt with its bytes, so the chain still verifies while nobody who guesses
the text can confirm the guess.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from core.model.instants import Instant
from core.ports import Row

INLINE_BYTES: Final = 8192  # above it an object is cheaper than the row, and the row stays quick to read
GENESIS_CHAIN: Final = bytes(32)


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """One `D#` row.

    at: commit time (ms), never before the previous commit's. by: the principal. count: elements it wrote.
    body, or key of the object that holds it; size: bytes of it. nonce: tells whose attempt became this commit.
    salt: None after erasure. redacted: the purge generation that rewrote the body; 0 if none did.
    """

    ver: int
    seq: int
    at: Instant
    by: str
    count: int
    size: int
    digest: bytes
    prev: bytes
    chain: bytes
    nonce: bytes
    salt: bytes | None = None
    body: bytes | None = None
    key: str | None = None
    redacted: int = 0


def digest_of(salt: bytes, body: bytes) -> bytes:
    """The salted digest of a delta's stored bytes."""
    return hashlib.sha256(salt + body).digest()


def next_chain(prev: bytes, digest: bytes) -> bytes:
    """The chain's value after a commit with this digest."""
    return hashlib.sha256(prev + digest).digest()


def row_of(entry: LogRow) -> Row:
    """The row of a log entry; the version is in its key."""
    row = msgspec.structs.asdict(entry)
    del row["ver"]
    if not entry.redacted:
        del row["redacted"]
    return {name: value for name, value in row.items() if value is not None}


def entry_of(ver: int, row: Row) -> LogRow:
    """The log entry of a row."""
    return msgspec.convert({**row, "ver": ver}, LogRow, strict=True, builtin_types=(bytes,))
