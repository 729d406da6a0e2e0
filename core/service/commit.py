"""The one optimistic loop: load, decide, write if nothing moved, else again, until the deadline.

What lives here: everything about how a commit becomes durable exactly once. What must never live here: what a
commit means, or which rows it takes (`core.service.attempt`). One `Table.transact` changes HEAD on condition
that it stands as it was read, and adds the delta row, the idempotency row and the rows the proposal brings; so
all of it happens or none.

Whatever goes wrong is settled by looking, never by guessing. A refused write means that something moved: look
and decide again. A write without an answer may have happened, or may still: its delta row bears the attempt's
nonce, so the next look finds out, and because every attempt is conditional on the version it saw, at most one
attempt for a version can ever land.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.elements import Origin
from core.model.ids import check_space_id, make_salt, transaction_id
from core.model.instants import Instant
from core.model.log import Delta, SpaceMeta
from core.ports import (
    MAX_WRITES,
    Check,
    Clock,
    Delete,
    Entropy,
    KeyExists,
    Objects,
    Refused,
    Row,
    Table,
    TooLarge,
    Unavailable,
    When,
    Write,
)
from core.service.attempt import CHANCE_BYTES, Attempt, Ticket, is_over, prepare, replayed, too_large
from core.service.leases import Fenced
from core.service.spaces import Spaces
from core.service.values import Committed, Decide, Fence, Idempotency, Proposal
from core.state.layer import Empty
from core.state.space import SpaceState
from core.storage.codec import decode_delta
from core.storage.head import Head, head_of
from core.storage.layout import ALL_ROWS, HEAD, following, idempotency_sk
from core.storage.reader import LogReader

__all__ = ["Birth", "Commits", "Fenced", "RowRefused"]

_FIRST_PAUSE_S: Final = 0.02
# Longer is not kinder: whoever pauses for a second comes back so far behind that catching up takes longer than
# the others' next commit, and loses again. Two writers back to back: with 1.0 the loser never got in.
_LONGEST_PAUSE_S: Final = 0.2


class RowRefused(Exception):  # noqa: N818 - for the service that proposed the row
    """A row of the proposal does not stand as its condition says; nothing was written."""

    def __init__(self, write: Write, row: Row | None) -> None:
        self.write = write
        self.row = row
        super().__init__(f"{type(write).__name__} of {write.sk} was refused")


class Birth(msgspec.Struct, frozen=True):
    """What a new space is born with: its instance, its salt, and when (ms)."""

    space_id: str
    instance: str
    salt: str
    at: Instant


class Commits:
    """Writes spaces. One instance per process; safe to share between threads."""

    def __init__(
        self, table: Table, objects: Objects, clock: Clock, entropy: Entropy, spaces: Spaces
    ) -> None:
        self._table = table
        self._objects = objects
        self._clock = clock
        self._entropy = entropy
        self._spaces = spaces

    def commit(
        self,
        space_id: str,
        decide: Decide,
        *,
        deadline: Instant,
        idempotency: Idempotency | None = None,
        fence: Fence | None = None,
    ) -> Committed:
        """Decide on the newest state and make the proposal durable, once.

        Args:
            space_id: the space.
            decide: pure; it runs again on a newer state whenever another commit came first. What it raises
                passes through, writes nothing and does not bind the key.
            deadline: when to give up (ms). One attempt is always made.
            idempotency: the request's retry key; the first outcome is replayed for a repeated request.
            fence: the lease the work is done under.

        Raises:
            NoemaError: `SerializationConflict` when others were always first, `OutcomeUnknown` when the store
                did not say whether it was written, `IdempotencyConflict`, `TransactionTooLarge`,
                `NotFoundOrNotVisible`, `ServiceUnavailable`.
            Fenced: the lease is lost.
            RowRefused: a row of the proposal does not stand as its condition says.
        """
        check_space_id(space_id)
        ticket = Ticket(space_id, idempotency, fence)
        tried: list[tuple[Attempt, SpaceState]] = []

        def attempt(expired: Row | None) -> Attempt:
            head, state = self._spaces.read_current(space_id)
            if fence is not None and head.epoch(fence.role) != fence.epoch:
                raise Fenced(fence.role)
            proposal = decide(state)
            chance, now = self._entropy.token(CHANCE_BYTES), self._clock.now()
            made = prepare(ticket, head, state, proposal, chance=chance, now=now, expired=expired)
            tried[:] = [(made, state)]
            return made

        committed = self._run(ticket, deadline).until_settled(attempt)
        for made, state in tried:
            if committed is made.committed and made.body is not None:
                self._spaces.advance(space_id, state, decode_delta(made.body))
        return committed

    def create(
        self,
        space_id: str,
        describe: Callable[[Birth], SpaceMeta],
        *,
        origin: Origin,
        deadline: Instant,
        seed: Decide | None = None,
        idempotency: Idempotency | None = None,
    ) -> Committed:
        """Make a space with its first commit.

        Args:
            space_id: an id that no space has. The id of a deleted space may be used again: the new space is
                another instance with another salt, and its versions go on where the old one's ended.
            describe: the protected state of the new space.
            origin: who creates it.
            deadline: when to give up (ms).
            seed: what it remembers from the start, decided on the empty state with that protected state.
            idempotency: the request's retry key.

        Raises:
            NoemaError: `IdentityConflict` if the space exists; else as `commit`.
        """
        check_space_id(space_id)
        ticket = Ticket(space_id, idempotency)
        instance, salt = self._entropy.token(8).hex(), make_salt(self._entropy.token(4))

        def attempt(expired: Row | None) -> Attempt:
            row = self._table.get(ticket.pk, HEAD)
            before = None if row is None else head_of(row)
            if before is not None and before.state != "deleted":
                raise NoemaError("IdentityConflict", f"the space {space_id} exists already")
            if before is not None:
                self._sweep(ticket, before)
            chance, now = self._entropy.token(CHANCE_BYTES), self._clock.now()
            meta = describe(Birth(space_id, instance, salt, now))
            state = SpaceState.on(Empty(), meta=meta, ver=before.ver if before else 0, seq=0, at=now)
            proposal = Proposal(None) if seed is None else seed(state)
            first = proposal.delta or _empty_delta(state, origin)
            first = msgspec.structs.replace(first, meta=first.meta or meta)
            proposal = msgspec.structs.replace(proposal, delta=first)
            return prepare(ticket, before, state, proposal, chance=chance, now=now, expired=expired)

        return self._run(ticket, deadline).until_settled(attempt)

    def _sweep(self, ticket: Ticket, before: Head) -> None:
        """Remove what a late writer left in a deleted space, so that its next life begins with nothing."""
        tombstone = Check(ticket.pk, HEAD, When(equals={"state": "deleted", "ver": before.ver}))
        first, last = ALL_ROWS
        while page := self._table.query(ticket.pk, first, last, limit=MAX_WRITES - 1):
            left = [Delete(ticket.pk, sk) for sk, _ in page if sk != HEAD and not sk.startswith("P#")]
            if left:
                self._table.transact([tombstone, *left])
            first = following(page[-1][0])

    def _run(self, ticket: Ticket, deadline: Instant) -> _Run:
        return _Run(
            ticket,
            deadline,
            table=self._table,
            objects=self._objects,
            clock=self._clock,
            entropy=self._entropy,
        )


def _empty_delta(state: SpaceState, origin: Origin) -> Delta:
    """A first commit that remembers nothing yet."""
    return Delta(
        ver=state.ver + 1,
        seq=state.seq,
        snapshot_seq=state.seq,
        tx_id=transaction_id(state.ver + 1, state.meta.salt),
        at=state.at,
        origin=origin,
        transaction_class="management",
    )


class _Run:
    """One call of the loop: its budget of time, and the attempts whose outcome is not known."""

    def __init__(
        self,
        ticket: Ticket,
        deadline: Instant,
        *,
        table: Table,
        objects: Objects,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._ticket = ticket
        self._deadline = deadline
        self._table = table
        self._objects = objects
        self._clock = clock
        self._entropy = entropy
        self._unknown: list[Attempt] = []
        self._pauses = 0

    def until_settled(self, make: Callable[[Row | None], Attempt]) -> Committed:
        """Look for what is settled already, else make an attempt and write it; until the deadline."""
        while True:
            try:
                expired, settled = self._look()
                if settled is not None:
                    return settled
                attempt = make(expired)
                if self._write(attempt):
                    return attempt.committed
                reason = NoemaError("SerializationConflict", "other commits of this space always came first")
            except Refused:  # a sweep met another creator
                reason = NoemaError("SerializationConflict", "another request creates this space")
            except Unavailable:
                reason = NoemaError("ServiceUnavailable", "the store did not answer in time")
            except NoemaError as error:
                if error.code != "ServiceUnavailable":  # raised while an erasure runs, which takes seconds
                    raise
                reason = error
            self._pause(reason)

    def _look(self) -> tuple[Row | None, Committed | None]:
        """An idempotency row whose time is over; and the outcome, if one is settled already."""
        expired, asked = None, self._ticket.idempotency
        if asked is not None:
            row = self._table.get(self._ticket.pk, idempotency_sk(asked.scope, asked.key))
            if row is not None and is_over(row, self._clock.now()):
                expired = row
            elif row is not None:
                mine = next((a for a in self._unknown if a.nonce == row["nonce"]), None)
                return None, replayed(row, asked) if mine is None else mine.committed
        return expired, self._landed()

    def _landed(self) -> Committed | None:
        """The answer of the unknown attempt that did land; attempts that can no longer land are forgotten."""
        if not self._unknown:
            return None
        row = self._table.get(self._ticket.pk, HEAD)
        head = None if row is None else head_of(row)
        pending = []
        for attempt in self._unknown:
            if not attempt.logged or head is None or head.ver < attempt.ver:
                if _may_land(attempt, head):
                    pending.append(attempt)
                continue
            if attempt.ver < head.min_delta:
                raise _outcome_unknown()  # the row that would tell is gone: the space was deleted meanwhile
            entry = LogReader(self._table, self._objects, self._ticket.space_id).entry(attempt.ver)
            if entry is not None and entry.nonce == attempt.nonce:
                return attempt.committed
        self._unknown = pending
        return None

    def _write(self, attempt: Attempt) -> bool:
        """Write an attempt; False if something had moved.

        Raises:
            Unavailable: no answer; the attempt is remembered if it may have been written.
        """
        if not attempt.writes:
            return True
        try:
            if attempt.upload is not None:
                self._objects.put(*attempt.upload)
        except KeyExists:
            return False  # another attempt draws another key
        try:
            self._table.transact(attempt.writes)
        except Refused as refused:
            self._explain(attempt, refused)
            return False
        except TooLarge as fault:
            raise too_large(str(fault)) from fault
        except Unavailable:
            if not attempt.logged and self._ticket.idempotency is None:
                raise _outcome_unknown() from None  # nothing will ever tell
            self._unknown.append(attempt)
            raise
        return True

    def _explain(self, attempt: Attempt, refused: Refused) -> None:
        """Tell a proposal's own refused row from a log that moved; only the latter is worth another attempt."""
        failed = {attempt.writes[index].sk: index for index in refused.failed}
        if not failed or HEAD in failed:
            return
        own = {self._idempotency_sk()}
        for sk, index in failed.items():
            if sk not in own:
                raise RowRefused(attempt.writes[index], refused.failed[index])

    def _idempotency_sk(self) -> str | None:
        asked = self._ticket.idempotency
        return None if asked is None else idempotency_sk(asked.scope, asked.key)

    def _pause(self, reason: NoemaError) -> None:
        """Wait a random while, longer each time (full jitter); at the deadline raise what must be said."""
        left = (self._deadline - self._clock.now()) / 1000
        if left <= 0:
            raise _outcome_unknown() if self._unknown else reason
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**self._pauses)
        self._pauses += 1
        self._clock.sleep(min(left, self._entropy.uniform(0, longest)))


def _may_land(attempt: Attempt, head: Head | None) -> bool:
    """Whether HEAD still stands as an attempt's condition wants it."""
    seen = attempt.before
    if seen is None or head is None:
        return seen is head
    return (head.ver, head.pgen, head.instance) == (seen.ver, seen.pgen, seen.instance)


def _outcome_unknown() -> NoemaError:
    return NoemaError("OutcomeUnknown", "the store did not say whether the request was carried out")
