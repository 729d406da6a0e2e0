"""Formation: conversations become memory, each exactly once, in order, in the background.

What lives here: whose turn it is, under which lease, which reader forms it, and what becomes of a conversation that
cannot be formed. What must never live here: what a conversation means (`core.agents`), or how a model is led through
it (`core.service.formation_model`). The row is the truth, a queue message only
a hint: whoever gets one drains the whole space from the high-water mark `formed` in HEAD.

Exactly once rests on one thing: a part of a conversation is one commit, which carries the lease's epoch, moves
the row on from the part before, and with the last part moves the mark, all in the same transaction. A worker
that died, slept or got the message twice finds the row where the last commit left it. Besides, every element is
keyed by the input's digest, so even forming a conversation again adds nothing.

A conversation that fails is tried again, later each time; the ones after it wait, for they may correct it. After
three rounds over at least half an hour it is set aside (`cancelled`), visibly, and the space goes on. Where it was a
model that failed, the reader without one forms it before that, and the record says so.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from core.agents.dialogue import Dialogue
from core.agents.offline.formation import Formed, Reading, form_part
from core.errors import NoemaError
from core.model.elements import Origin
from core.model.instants import Instant
from core.ports import (
    Clock,
    Delete,
    Entropy,
    Put,
    Queue,
    Refused,
    Row,
    StoreFault,
    Table,
    Update,
    When,
    Write,
)
from core.service.commit import Commits, Fenced, RowRefused
from core.service.conversation_record import Record
from core.service.conversations import Conversations
from core.service.faults import reading
from core.service.formation_authority import formed_for
from core.service.formation_place import Kept, Outcome, Place, Reader, add_warnings
from core.service.hints import send_hint
from core.service.leases import Leases
from core.service.rows import rows_between
from core.service.spaces import Spaces
from core.service.values import Fence, Idempotency, Proposal
from core.state.space import SpaceState
from core.storage.head import Head
from core.storage.layout import (
    DUE_PK,
    again_sk,
    conversation_number,
    conversation_sk,
    counter_sk,
    due_rows,
    due_sk,
    due_space,
    rows_of,
    space_pk,
)
from core.transaction.draft import Draft

WORK: Final = "formation"
LEASE_MS: Final = 120_000
COMMIT_MS: Final = 20_000  # how long one part may try to commit
ROUNDS: Final = 3  # contract §4.4: set aside after three failed rounds ...
SPAN_MS: Final = 30 * 60 * 1000  # ... that span at least half an hour
FIRST_PAUSE_MS: Final = 60_000
LATER_PAUSE_MS: Final = 15 * 60 * 1000
HINT_GRACE_MS: Final = 60_000  # how long a hint may take before the sweep sends another
# Of a row, what attempts with a model left; a conversation that begins anew is without it.
_ATTEMPTS: Final = ("reader", "window", "goes", "turns", "spent", "reviewed", "again")
# How far its messages were filed and read.
_READ: Final = ("captured", "done", "evidence", "claims", "commitments")

# Faults that say nothing of the conversation: the drain stops, and the next one goes on from the row.
_TRANSIENT: Final = frozenset(["ServiceUnavailable", "SerializationConflict", "OutcomeUnknown"])


class Drained(msgspec.Struct, frozen=True):
    """What one drain did. `more` says that work is left: out of time, waiting for a retry, or held by another."""

    formed: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()
    more: bool = False
    busy: bool = False


class Formation:
    """The formation worker of all spaces. Safe to share between threads; one drain of a space at a time."""

    def __init__(
        self,
        table: Table,
        queue: Queue,
        clock: Clock,
        entropy: Entropy,
        *,
        spaces: Spaces,
        commits: Commits,
        leases: Leases,
        conversations: Conversations,
        mind: Callable[[], Reader] | None = None,
    ) -> None:
        self.mind = mind
        self.table = table
        self.queue = queue
        self.clock = clock
        self.entropy = entropy
        self.spaces = spaces
        self.commits = commits
        self.leases = leases
        self.conversations = conversations

    # --- hints

    def wake(self, space_id: str) -> None:
        """Hint that a space has conversations to form. Losing the hint does no harm: the sweep finds the row."""
        send_hint(self.queue, self.entropy, space_id, WORK)

    def sweep(self, grace_ms: int = HINT_GRACE_MS) -> list[str]:
        """Hint again for every space whose work has been due for a while; for the tick. Returns their ids.

        Args:
            grace_ms: how long work must have been due; 0 where the hints are known to be lost, as after a
                restart of the embedded queue.
        """
        now, found = self.clock.now(), []
        with reading():
            for sk, row in rows_between(self.table, DUE_PK, *due_rows(WORK)):
                at = row.get("at")
                if isinstance(at, int) and at + grace_ms <= now:
                    found.append(due_space(sk))
        for space_id in found:
            self.wake(space_id)
        return found

    # --- the drain

    def drain(
        self, space_id: str, deadline: Instant, *, give_way: Callable[[int], bool] | None = None
    ) -> Drained:
        """Form what waits, in order, until nothing is left or the deadline is near.

        Args:
            space_id: the space.
            deadline: when to stop beginning new parts (ms).
            give_way: asked after each conversation, by its number, whether to leave the rest for now; something
                else of the space is due that must not run at the same time.

        Raises:
            NoemaError: the store failed; nothing is lost, and the message may be delivered again.
        """
        owner = self.entropy.token(12).hex()
        fence = self.leases.acquire(space_id, WORK, owner, LEASE_MS, apart="maintenance")
        if fence is None:
            return Drained(busy=True, more=self._is_due(space_id))
        run = _Run(self, space_id, fence, deadline, give_way)
        try:
            return run.until_empty()
        except Fenced:
            return run.report(more=True)
        finally:
            self.leases.release(space_id, run.fence)

    def _is_due(self, space_id: str) -> bool:
        with reading():
            return self.table.get(DUE_PK, due_sk(WORK, space_id)) is not None

    # --- a person's hand

    def restart(self, space_id: str, number: int) -> bool:
        """Form from a conversation again that failed or was set aside (contract §4.5).

        Raises:
            NoemaError: `Busy` while formation or maintenance runs, `NotFoundOrNotVisible`, `InvalidInput` if
                nothing is pending there.
        """
        with reading():
            head, now = self.spaces.read_head(space_id), self.clock.now()
            if head.lease_until(WORK) > now or head.lease_until("maintenance") > now:
                raise NoemaError("Busy", "formation or maintenance is running", retry_after_ms=5000)
            record = self.conversations.record(space_id, WORK, number)
            if record.status == "completed":
                raise NoemaError("InvalidInput", f"conversation {number} is formed; nothing is pending there")
            pk = space_pk(space_id)
            again: Row = {
                "status": "submitted",
                "rounds": None,
                "first_failed": None,
                "retry_at": None,
                "updated": now,
                **dict.fromkeys(_ATTEMPTS),
            }
            writes: list[Write] = [
                Update(
                    pk,
                    conversation_sk(WORK, number),
                    assign={**again, "run": record.count("run") + 1},
                    when=When(equals={"status": record.status, "nonce": record.row["nonce"]}),
                ),
                Update(DUE_PK, due_sk(WORK, space_id), assign={"at": now, "mark": self.entropy.token(12)}),
            ]
            if number <= head.number("formed"):
                writes.append(Put(pk, again_sk(number), {"at": now}))
            try:
                self.table.transact(writes)
            except Refused:
                raise NoemaError("Busy", "the conversation changed meanwhile", retry_after_ms=1000) from None
        with suppress(StoreFault):  # the row is the truth: without the hint the sweep finds it
            self.wake(space_id)
        return True


class _Run:
    """One drain of one space under one lease."""

    def __init__(
        self,
        service: Formation,
        space_id: str,
        fence: Fence,
        deadline: Instant,
        give_way: Callable[[int], bool] | None,
    ) -> None:
        self.lease = Kept(service.leases, service.clock, space_id, fence)
        self._service = service
        self._space_id = space_id
        self._deadline = deadline
        self._give_way = give_way
        self._formed: list[int] = []
        self._failed: list[int] = []
        self._cancelled: list[int] = []

    @property
    def fence(self) -> Fence:
        """The lease as it stands."""
        return self.lease.fence

    def report(self, *, more: bool) -> Drained:
        """What has been done so far."""
        return Drained(tuple(self._formed), tuple(self._failed), tuple(self._cancelled), more=more)

    def until_empty(self) -> Drained:
        """One conversation after another."""
        service = self._service
        while service.clock.now() < self._deadline:
            with reading():
                due = service.table.get(DUE_PK, due_sk(WORK, self._space_id))
                head = service.spaces.read_head(self._space_id)
                record = self._next(head)
            if record is None:
                if self._done(due):
                    return self.report(more=False)
                continue
            if record.count("retry_at") > service.clock.now():
                return self.report(more=True)
            self.lease.renew(LEASE_MS)
            if not self._form(record, head):
                return self.report(more=True)
            if self._give_way is not None and self._give_way(record.number):
                return self.report(more=True)
        return self.report(more=True)

    def _next(self, head: Head) -> Record | None:
        """What is to be formed next: first what was asked for again, then what follows the mark."""
        again = self._service.table.query(space_pk(self._space_id), *rows_of("Q"), limit=1)
        number = conversation_number(again[0][0]) if again else head.number("formed") + 1
        record = self._service.conversations.find(self._space_id, number)
        if record is None and again:  # of a conversation that is no more
            self._service.table.transact([Delete(space_pk(self._space_id), again[0][0])])
            return self._next(head)
        return record

    def _done(self, due: Row | None) -> bool:
        """Take the space off the due list, unless something was submitted since the list was read."""
        if due is None:
            return True
        when = When(equals={"mark": due.get("mark")})
        try:
            with reading():
                self._service.table.transact([Delete(DUE_PK, due_sk(WORK, self._space_id), when)])
        except Refused:
            return False
        return True

    def _form(self, record: Record, head: Head) -> bool:
        """Form one conversation; whether the drain may go on with the next.

        Raises:
            Fenced: the lease is lost.
            NoemaError: the store failed.
        """
        try:
            if record.status in ("completed", "cancelled"):
                self._pass_over(record, head)
                return True
            dialogue = self._service.conversations.load_dialogue(record)
            if not self._read(record, head, dialogue):
                return False
        except (Fenced, StoreFault):
            raise
        except RowRefused:
            return True  # the row moved under us: look again
        except NoemaError as error:
            if error.code in _TRANSIENT or error.code == "NotFoundOrNotVisible":
                raise
            return self._fail(record, head, error.code)
        except Exception as error:  # noqa: BLE001 - one conversation that breaks the reader must not stop a space
            return self._fail(record, head, type(error).__name__)
        return True

    def _read(self, record: Record, head: Head, dialogue: Dialogue) -> bool:
        """Form a conversation with the space's model, else without one; whether the drain may go on."""
        mind = self._service.mind
        offline = record.text("reader") == "offline"
        place = Place(
            self._space_id, str(head.instance), record, dialogue, self._ends(head), until=self._deadline
        )
        outcome = None if mind is None or offline else mind().read(place, self.lease)
        if outcome is not None:
            return self._after(record, head, outcome)
        if not offline and record.row.get("captured") is not None:
            self._without_model(record, "no_model")  # it was filed for a model that is no more
            return True
        self._parts(record, head, dialogue)
        self._formed.append(record.number)
        return True

    def _after(self, record: Record, head: Head, outcome: Outcome) -> bool:
        if outcome.reaction in ("complete", "warn"):
            self._formed.append(record.number)
            return True
        if outcome.reaction == "offline":
            self._without_model(record, outcome.reason)
            return True
        return self._fail(record, head, outcome.reason) if outcome.reaction == "again" else False

    def _ends(self, head: Head) -> Callable[[Record], tuple[tuple[Write, ...], Row]]:
        """What ends a conversation besides its row: nobody asks for it again, and the mark is behind it."""
        pk = space_pk(self._space_id)
        return lambda record: ((Delete(pk, again_sk(record.number)),), self._mark(record, head))

    def _without_model(self, record: Record, reason: str) -> None:
        """Let the reader without a model form a conversation that a model could not, and say so on the record."""
        row: Row = {
            **dict.fromkeys((*_ATTEMPTS, *_READ, "rounds", "first_failed", "retry_at", "failed_reason")),
            "status": "submitted",
            "reader": "offline",
            "again": 1,
            "run": record.count("run") + 1,
            "warnings": add_warnings(record, [f"formed_offline: {reason}"]),
            "updated": self._service.clock.now(),
        }
        when = When(equals={"nonce": record.row["nonce"], "run": record.row.get("run")})
        sk = conversation_sk(WORK, record.number)
        self._note(Proposal(None, rows=(Update(space_pk(self._space_id), sk, assign=row, when=when),)))

    def _parts(self, record: Record, head: Head, dialogue: Dialogue) -> None:
        """Commit the parts of a conversation that are not yet in the log."""
        service, start = self._service, record.count("done")
        mode: Reading = "all" if record.count("again") else "new"
        told = Formed(start, record.count("evidence"), record.count("claims"), record.count("commitments"))
        while True:
            now = service.clock.now()
            begun, before = start, told

            def decide(
                state: SpaceState, begun: int = begun, before: Formed = before, now: Instant = now
            ) -> Proposal:
                origin = Origin(record.text("user") or "unknown", record.text("channel") or "rest")
                draft = Draft(state, now=max(now, state.at), origin=origin)
                draft, part, passed = formed_for(form_part, draft, dialogue, begun, mode)
                sums = _plus(before, part)
                last = part.next >= len(dialogue.messages)
                return Proposal(
                    draft.finish({"conversation": record.number, "messages": [begun, part.next], **passed}),
                    outcome=msgspec.to_builtins(sums),
                    rows=self._advance(record, begun, sums, last=last, now=now),
                    head=self._mark(record, head) if last else {},
                )

            digest = str(record.row.get("body_digest"))
            key = f"{head.instance}:{record.number}:{record.count('run')}:{start}"
            committed = service.commits.commit(
                self._space_id,
                decide,
                deadline=now + COMMIT_MS,
                idempotency=Idempotency(WORK, key, digest),
                fence=self.fence,
            )
            told = msgspec.convert(committed.outcome, Formed)
            start = told.next
            if start >= len(dialogue.messages):
                return
            self.lease.renew(LEASE_MS)

    def _advance(
        self, record: Record, begun: int, sums: Formed, *, last: bool, now: Instant
    ) -> tuple[Write, ...]:
        """The conversation's row after a part, on condition that it stands where the part before left it."""
        pk = space_pk(self._space_id)
        row: Row = {
            "status": "completed" if last else "working",
            "done": sums.next,
            "evidence": sums.evidence,
            "claims": sums.claims,
            "commitments": sums.commitments,
            "updated": now,
        }
        if last:
            told = (
                _many(sums.evidence, "message"),
                _many(sums.claims, "claim"),
                _many(sums.commitments, "commitment"),
            )
            answer = f"{told[0]} filed as evidence, {told[1]}, {told[2]}."
            cleared: Row = dict.fromkeys(("failed_reason", "rounds", "first_failed", "retry_at"))
            row |= cleared | {"answer": answer}
        seen: Row = {"nonce": record.row["nonce"], "done": begun or None, "run": record.row.get("run")}
        writes: list[Write] = [
            Update(pk, conversation_sk(WORK, record.number), assign=row, when=When(equals=seen))
        ]
        if last:
            writes.append(Delete(pk, again_sk(record.number)))
        return tuple(writes)

    def _mark(self, record: Record, head: Head) -> Row:
        """HEAD's high-water mark with this conversation behind it; it never goes back."""
        return {"formed": max(record.number, head.number("formed"))}

    def _pass_over(self, record: Record, head: Head) -> None:
        """Move the mark over a conversation that needs no forming."""
        self._note(
            Proposal(
                None,
                rows=(Delete(space_pk(self._space_id), again_sk(record.number)),),
                head=self._mark(record, head),
            )
        )

    def _fail(self, record: Record, head: Head, reason: str) -> bool:
        """Count a failed round, or set the conversation aside; whether the drain may go on."""
        now = self._service.clock.now()
        rounds = record.count("rounds") + 1
        first = record.count("first_failed") or now
        sk = conversation_sk(WORK, record.number)
        row: Row = {"rounds": rounds, "first_failed": first, "updated": now}
        when = When(equals={"nonce": record.row["nonce"], "run": record.row.get("run")})
        pk = space_pk(self._space_id)
        if rounds >= ROUNDS and now - first >= SPAN_MS and self._has_model(record):
            self._without_model(record, reason)
            return True
        if rounds >= ROUNDS and now - first >= SPAN_MS:
            row |= {"status": "cancelled", "failed_reason": f"formation_failed: {reason}", "retry_at": None}
            counted = Update(
                pk,
                counter_sk(WORK),
                assign={"last_cancelled": record.number},
                add={"cancelled": 1},
                when=When(present=True),
            )
            rows = (Update(pk, sk, assign=row, when=when), counted, Delete(pk, again_sk(record.number)))
            self._note(Proposal(None, rows=rows, head=self._mark(record, head)))
            self._cancelled.append(record.number)
            return True
        retry_at = now + (FIRST_PAUSE_MS if rounds == 1 else LATER_PAUSE_MS)
        row |= {"status": "failed", "failed_reason": reason, "retry_at": retry_at}
        due = Update(
            DUE_PK,
            due_sk(WORK, self._space_id),
            assign={"at": retry_at - HINT_GRACE_MS},
            when=When(present=True),
        )
        self._note(Proposal(None, rows=(Update(pk, sk, assign=row, when=when),)))
        try:
            with reading():
                self._service.table.transact([due])
        except Refused:
            pass  # not on the due list: whoever woke us brings us back
        self._failed.append(record.number)
        return False

    def _has_model(self, record: Record) -> bool:
        """Whether it was a model that failed to form a conversation."""
        mind = self._service.mind
        return mind is not None and record.text("reader") != "offline" and mind().serves(self._space_id)

    def _note(self, proposal: Proposal) -> None:
        """Write rows under the lease without a commit of memory."""
        deadline = self._service.clock.now() + COMMIT_MS
        self._service.commits.commit(self._space_id, lambda _: proposal, deadline=deadline, fence=self.fence)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _plus(before: Formed, part: Formed) -> Formed:
    return Formed(
        part.next,
        before.evidence + part.evidence,
        before.claims + part.claims,
        before.commitments + part.commitments,
    )
