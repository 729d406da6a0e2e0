"""A log checkpoint: what the hash chain through a stretch of a space's log came to, to be kept by somebody else.

What lives here: values and the statement that is signed. What must never live here: reading the log, and keys. A
checkpoint proves that the log is the one it was when it was made, and nothing about the truth of what it records
(Transactions §175).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

FORMAT: Final = "KIP-Checkpoint"
FORMAT_VERSION: Final = "2.0"
# Keeps a signature over a checkpoint from serving as another's.
CHECKPOINT_DOMAIN: Final = "KIP-CHECKPOINT/2.0"
MAX_COMMITS: Final = 10_000  # of one checkpoint, so that one request can read them all


class ChainReading(msgspec.Struct, frozen=True):
    """What reading a stretch of the log found.

    first, last: versions, inclusive. before, after: the chain's value before the first and after the last commit.
    redacted: commits whose bytes an erasure took; their digests stand. broken: the first version that does not fit
    its digest or the chain, or None.
    """

    first: int
    last: int
    before: bytes
    after: bytes
    redacted: int = 0
    broken: int | None = None


class LogCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The artifact. `chain_before` and `chain` are hexadecimal; two that meet in one value cover both stretches."""

    format: str = FORMAT
    format_version: str = FORMAT_VERSION
    space_id: str
    instance: str
    first: int
    last: int
    space_seq: int
    committed_at: str
    issued_at: str
    chain_before: str
    chain: str
    proofs: list[dict[str, Any]] = []


def content_of(checkpoint: LogCheckpoint) -> dict[str, Any]:
    """What is signed of a checkpoint: everything but the proofs."""
    content: dict[str, Any] = msgspec.to_builtins(checkpoint)
    del content["proofs"]
    return content
