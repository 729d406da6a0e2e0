"""From a proposal to the writes that make it durable: pure, one function per kind of row.

What lives here: what one attempt at a commit writes, and on which conditions. What must never live here: doing
it, or what to do when it fails (`core.service.commit`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.instants import Instant
from core.model.log import Delta
from core.ports import Check, Put, Row, TooLarge, Update, When, Write
from core.service.values import Committed, Fence, Idempotency, Proposal
from core.state.space import SpaceState
from core.storage.codec import decode_json, encode_delta, encode_json
from core.storage.head import SWEPT, Head, epoch_attribute, row_of
from core.storage.invariants import check, check_chain, check_delta, check_rows
from core.storage.layout import DIRECTORY_PK, HEAD, delta_key, delta_sk, idempotency_sk, space_pk
from core.storage.log import GENESIS_CHAIN, INLINE_BYTES, LogRow, digest_of, next_chain
from core.storage.log import row_of as log_row
from core.storage.rows import check_writes

MAX_DELTA_BYTES: Final = 8 * 1024 * 1024  # stored, compressed; what a Lambda holds many times over
MAX_DELTA_ELEMENTS: Final = 20_000
MAX_OUTCOME_BYTES: Final = 256 * 1024  # stored, compressed; a row may take 390 KB
KEEP_OUTCOMES_MS: Final = 7 * 24 * 3600 * 1000  # how long a retry finds the first outcome
CHANCE_BYTES: Final = 12 + 16 + 8  # nonce, salt, key suffix


class Attempt(msgspec.Struct, frozen=True):
    """One try at one version: what it saw, what it writes, and the answer if it lands.

    before: HEAD as seen; None if there was no space. body: the delta as it is stored; None if it adds no commit.
    upload: the object to write first, where that is too large for a row.
    """

    ver: int
    before: Head | None
    nonce: bytes
    writes: tuple[Write, ...]
    committed: Committed
    body: bytes | None = None
    upload: tuple[str, bytes] | None = None

    @property
    def logged(self) -> bool:
        """Whether it adds a delta row, by whose nonce it can be recognised."""
        return self.body is not None


class Ticket(msgspec.Struct, frozen=True):
    """What stays the same over all attempts of one commit."""

    space_id: str
    idempotency: Idempotency | None = None
    fence: Fence | None = None

    @property
    def pk(self) -> str:
        """The space's partition."""
        return space_pk(self.space_id)


def prepare(
    ticket: Ticket,
    before: Head | None,
    state: SpaceState,
    proposal: Proposal,
    *,
    chance: bytes,
    now: Instant,
    expired: Row | None = None,
) -> Attempt:
    """The attempt that makes a proposal durable.

    Args:
        ticket: the commit it belongs to.
        before: HEAD as seen; None or a tombstone for a birth.
        state: what was decided on.
        proposal: what was decided.
        chance: `CHANCE_BYTES` fresh random bytes.
        now: the time (ms) before anything is uploaded; also for the expiry of the idempotency row.
        expired: the idempotency row to replace, where an old one of the same key is over its time.

    Raises:
        NoemaError: `TransactionTooLarge`.
        Violated: a bug of ours.
    """
    nonce = chance[:12]
    check_rows(ticket.space_id, proposal.rows)
    delta, writes = proposal.delta, list(proposal.rows)
    committed = Committed(
        outcome=proposal.outcome,
        ver=state.ver if delta is None else delta.ver,
        seq=state.seq if delta is None else delta.seq,
        effect=delta is not None,
        tx_id=None if delta is None else delta.tx_id,
        at=None if delta is None else delta.at,
    )
    upload = body = None
    if delta is not None:
        check_delta(state, delta)
        body = _body(delta)
        entry, upload = _entry(ticket.space_id, before, delta, body, chance)
        writes.append(Put(ticket.pk, delta_sk(delta.ver), log_row(entry), When(absent=True)))
        uploaded = None if upload is None else now
        writes += _move_head(ticket, before, state, proposal, entry, uploaded=uploaded)
    elif before is not None and (writes or proposal.head or ticket.idempotency is not None):
        writes.append(_hold_head(ticket, before, proposal.head))
    if ticket.idempotency is not None:
        writes.append(_outcome(ticket, committed, nonce, now=now, expired=expired))
    try:
        check_writes(writes)
    except TooLarge as fault:
        raise too_large(str(fault)) from fault
    return Attempt(committed.ver, before, nonce, tuple(writes), committed, body, upload)


def as_seen(before: Head, fence: Fence | None, *, uploaded: Instant | None = None) -> When:
    """The condition that HEAD stands as it was read and the lease is still the same.

    And that what was uploaded since `uploaded` cannot have been collected, however long the writer slept.
    """
    equals: Row = {"ver": before.ver, "pgen": before.pgen, "state": "active"}
    if fence is not None:
        equals[epoch_attribute(fence.role)] = fence.epoch
    return When(equals=equals, below=_not_swept(uploaded))


def _not_swept(uploaded: Instant | None) -> dict[str, int]:
    return {} if uploaded is None else {SWEPT: uploaded}


def _body(delta: Delta) -> bytes:
    """A delta as it is stored.

    Raises:
        NoemaError: `TransactionTooLarge`.
    """
    count = len(delta.puts) + len(delta.gone)
    if count > MAX_DELTA_ELEMENTS:
        raise too_large(f"a commit may write {MAX_DELTA_ELEMENTS} elements, not {count}")
    body = encode_delta(delta)
    if len(body) > MAX_DELTA_BYTES:
        raise too_large(f"a commit may take {MAX_DELTA_BYTES} bytes, not {len(body)}")
    return body


def _entry(
    space_id: str, before: Head | None, delta: Delta, body: bytes, chance: bytes
) -> tuple[LogRow, tuple[str, bytes] | None]:
    """The delta's row and, where it is too large for one, the object that holds its body."""
    count = len(delta.puts) + len(delta.gone)
    nonce, salt, suffix = chance[:12], chance[12:28], chance[28:36].hex()
    digest = digest_of(salt, body)
    prev = GENESIS_CHAIN if before is None else before.chain
    key = None if len(body) <= INLINE_BYTES else delta_key(space_id, delta.ver, suffix)
    entry = LogRow(
        ver=delta.ver,
        seq=delta.seq,
        at=delta.at if before is None else max(delta.at, before.at),
        by=delta.origin.principal,
        count=count,
        size=len(body),
        digest=digest,
        prev=prev,
        chain=next_chain(prev, digest),
        nonce=nonce,
        salt=salt,
        body=body if key is None else None,
        key=key,
    )
    return entry, None if key is None else (key, body)


def _move_head(
    ticket: Ticket,
    before: Head | None,
    state: SpaceState,
    proposal: Proposal,
    entry: LogRow,
    *,
    uploaded: Instant | None,
) -> list[Write]:
    """HEAD moved to the new commit."""
    if before is None or before.state == "deleted":
        return _first_head(ticket, before, state, proposal, entry, uploaded=uploaded)
    moved: Row = {**proposal.head, "ver": entry.ver, "seq": entry.seq, "at": entry.at, "chain": entry.chain}
    after = msgspec.structs.replace(
        before,
        ver=entry.ver,
        seq=entry.seq,
        at=entry.at,
        chain=entry.chain,
        log_n=before.log_n + 1,
        log_bytes=before.log_bytes + entry.size,
        row={**before.row, **moved},
    )
    check(before, after)
    check_chain(before, after, entry.digest)
    # log_n and log_bytes are added to, not set: a compaction may lower them between our read and our write
    grown = {"log_n": 1, "log_bytes": entry.size}
    when = as_seen(before, ticket.fence, uploaded=uploaded)
    return [Update(ticket.pk, HEAD, assign=moved, add=grown, when=when)]


def _first_head(
    ticket: Ticket,
    before: Head | None,
    state: SpaceState,
    proposal: Proposal,
    entry: LogRow,
    *,
    uploaded: Instant | None,
) -> list[Write]:
    """HEAD as a space is born with it, and the space's line in the directory."""
    head = Head(
        ver=entry.ver,
        seq=entry.seq,
        at=entry.at,
        instance=state.meta.instance,
        state="active",
        pgen=0 if before is None else before.pgen,
        floor=entry.ver,
        min_delta=entry.ver,
        born=entry.ver,
        chain=entry.chain,
        log_n=1,
        log_bytes=entry.size,
        row={**_inherited(before), **proposal.head},
    )
    when = When(absent=True)
    if before is not None:
        check(before, head)
        check_chain(before, head, entry.digest)
        equals: Row = {"ver": before.ver, "pgen": before.pgen, "state": "deleted"}
        when = When(equals=equals, below=_not_swept(uploaded))
    listed = Put(DIRECTORY_PK, ticket.space_id, {"instance": head.instance, "at": head.at})
    return [Put(ticket.pk, HEAD, row_of(head), when), listed]


def _inherited(before: Head | None) -> Row:
    """What a new life of a space id takes over from the old one: epochs, so that no old lease fits it."""
    row = {} if before is None else before.row
    return {name: value for name, value in row.items() if name.startswith("ep_")}


def _hold_head(ticket: Ticket, before: Head, attributes: Row) -> Write:
    """HEAD unmoved, with some attributes set: the outcome belongs to the state that was seen."""
    when = as_seen(before, ticket.fence)
    if not attributes:
        return Check(ticket.pk, HEAD, when)
    check(before, msgspec.structs.replace(before, row={**before.row, **attributes}))
    return Update(ticket.pk, HEAD, assign=attributes, when=when)


# --- the idempotency row


def _outcome(
    ticket: Ticket, committed: Committed, nonce: bytes, *, now: Instant, expired: Row | None
) -> Write:
    asked = ticket.idempotency
    assert asked is not None
    body = encode_json(committed.outcome)
    if len(body) > MAX_OUTCOME_BYTES:
        raise too_large(f"an outcome may take {MAX_OUTCOME_BYTES} bytes, not {len(body)}")
    row: Row = {
        "request": asked.digest,
        "outcome": body,
        "ver": committed.ver,
        "seq": committed.seq,
        "effect": committed.effect,
        "tx": committed.tx_id,
        "at": committed.at,
        "nonce": nonce,
        "until": now + KEEP_OUTCOMES_MS,
        "ttl": (now + KEEP_OUTCOMES_MS) // 1000,  # seconds, as a table that expires rows by itself wants it
    }
    when = When(absent=True) if expired is None else When(equals={"nonce": expired["nonce"]})
    return Put(ticket.pk, idempotency_sk(asked.scope, asked.key), row, when)


def is_over(row: Row, now: Instant) -> bool:
    """Whether an idempotency row's time is over; a table may keep it a while longer."""
    until = row["until"]
    return isinstance(until, int) and until <= now


def replayed(row: Row, idempotency: Idempotency) -> Committed:
    """The outcome an idempotency row retains.

    Raises:
        NoemaError: `IdempotencyConflict` if the key was used for another request.
    """
    if row["request"] != idempotency.digest:
        raise NoemaError("IdempotencyConflict", "the idempotency key was used for another request")
    kept = {name: row.get(source) for name, source in _KEPT.items()}
    body = row["outcome"]
    assert isinstance(body, bytes)
    return msgspec.convert({**kept, "outcome": decode_json(body), "replayed": True}, Committed)


_KEPT: Final = {"ver": "ver", "seq": "seq", "effect": "effect", "tx_id": "tx", "at": "at"}


def too_large(message: str) -> NoemaError:
    """The error for a commit over a bound."""
    return NoemaError("TransactionTooLarge", message)
