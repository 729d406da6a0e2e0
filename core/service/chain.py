"""The hash chain through a space's log: reading a stretch of it again, and checkpoints of it.

What lives here: recomputing digests and chain from the stored rows and bodies, and signing what they came to. What
must never live here: what a commit means.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.capsule.proofs import make_proof
from core.errors import NoemaError
from core.model.checkpoints import CHECKPOINT_DOMAIN, MAX_COMMITS, ChainReading, LogCheckpoint, content_of
from core.model.instants import format_instant
from core.ports import Clock, Signer
from core.protocol.canonical import digest_of as digest_of_json
from core.service.faults import reading
from core.service.spaces import Spaces
from core.storage.log import digest_of, next_chain
from core.storage.reader import LogReader, Moved

CHECKPOINT_SCOPE: Final = "checkpoint"


class CheckpointInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From which version on a checkpoint covers the log; None for as far back as one checkpoint may."""

    first: int | None = None


def read_chain(reader: LogReader, first: int, last: int) -> ChainReading:
    """Recompute the chain from the stored commits of a stretch; every body is read.

    A redacted commit keeps its digest and has lost its bytes: the chain still holds over it.
    """
    before = chain = b""
    redacted, ver = 0, first - 1
    try:
        for entry in reader.entries(first, last):
            if ver < first:
                before = chain = entry.prev
            ver = entry.ver
            intact = bool(entry.redacted) or (
                entry.salt is not None and digest_of(entry.salt, reader.body(entry)) == entry.digest
            )
            follows = entry.prev == chain
            chain = next_chain(entry.prev, entry.digest)
            redacted += bool(entry.redacted)
            if not (follows and intact and chain == entry.chain):
                return ChainReading(first, last, before, chain, redacted, ver)
    except Moved:
        return ChainReading(first, last, before, chain, redacted, ver + 1)
    return ChainReading(first, last, before, chain, redacted)


class Checkpoints:
    """Makes log checkpoints. Safe to share between threads."""

    def __init__(self, spaces: Spaces, clock: Clock, signer: Signer | None) -> None:
        self._spaces = spaces
        self._clock = clock
        self._signer = signer

    def make(self, space_id: str, wish: CheckpointInput) -> LogCheckpoint:
        """A signed checkpoint of the log up to now, after its commits have been checked one by one.

        Raises:
            NoemaError: UnsupportedCapability without a key; InvalidInput for a version that is not kept or too far
                back; DigestMismatch where the log does not hold; NotFoundOrNotVisible, ServiceUnavailable.
        """
        if self._signer is None:
            raise NoemaError("UnsupportedCapability", "this service has no key to sign with")
        with reading():
            head = self._spaces.read_head(space_id)
            oldest = max(head.min_delta, head.ver - MAX_COMMITS + 1)
            first = oldest if wish.first is None else wish.first
            if not oldest <= first <= head.ver:
                raise NoemaError(
                    "InvalidInput",
                    f"first must be between {oldest} and {head.ver}",
                    details={"member": "first", "oldest": oldest, "newest": head.ver},
                )
            found = read_chain(self._spaces.reader(space_id), first, head.ver)
        if found.broken is not None or found.after != head.chain:
            raise NoemaError(
                "DigestMismatch",
                f"the log does not hold at version {found.broken or head.ver}: no checkpoint is made of it",
                details={"broken": found.broken or head.ver},
            )
        now = format_instant(self._clock.now())
        made = LogCheckpoint(
            space_id=space_id,
            instance=head.instance,
            first=first,
            last=head.ver,
            space_seq=head.seq,
            committed_at=format_instant(head.at),
            issued_at=now,
            chain_before=found.before.hex(),
            chain=found.after.hex(),
        )
        digest = digest_of_json(content_of(made))
        proof = make_proof(
            self._signer.sign, CHECKPOINT_DOMAIN, digest, scope=CHECKPOINT_SCOPE, created_at=now
        )
        return msgspec.structs.replace(made, proofs=[proof])
