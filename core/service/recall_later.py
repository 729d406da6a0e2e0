"""Recalls that are answered later: taken in at once, answered by whoever works, polled as a conversation.

What lives here: the row of a question that waits, whose turn it is to answer it, and what becomes of one that cannot
be answered. What must never live here: how an answer is found (`core.service.recall`).

The worker and the container call the same `work`. The row is the truth and a message a hint. Who answers first claims
the row for a while; should that process die, another claims it after. An answer lands only on the claim it was made
under and only if nothing was erased since, together with the end of the row in `DUE`, so there is one answer, however
often the hint comes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.agents.dialogue import read_question
from core.errors import NoemaError
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Clock, Delete, Entropy, Put, Refused, Row, StoreFault, Table, Update, When, Write
from core.protocol import http_types as wire
from core.service.conversation_record import Record
from core.service.conversations import KEEP_RECALLS_MS, Conversations
from core.service.faults import reading, settled
from core.service.recall import Asked, Ended, Erased, Recall, structured_of
from core.service.rows import rows_between
from core.service.values import Caller
from core.storage.layout import (
    DUE_PK,
    conversation_sk,
    due_rows,
    recall_due_of,
    recall_due_rows,
    recall_due_sk,
    space_pk,
)

TOTAL_MS: Final = 180_000  # contract §5.1: of one answer
LEAST_MS: Final = 60_000  # with less, a question is left to another run
CLAIM_MS: Final = 200_000
TRIES: Final = 3  # claims of one question; what has then not been answered has failed
GRACE_MS: Final = 30_000  # how long a hint may take before the sweep sends another
MAX_WAITING: Final = 100  # questions of one space; who asks faster than is answered is told to wait
_PAGE: Final = 100
_RESULT_BYTES: Final = 120_000
_GAVE_UP: Final = "no answer could be found; ask again"
_OVER: Final = frozenset({"completed", "failed", "cancelled"})


class Worked(msgspec.Struct, frozen=True):
    """What one run did: the questions that were answered or failed.

    more: some are left. late: for want of time, so another run should begin; else another process has them.
    """

    answered: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    more: bool = False
    late: bool = False


class LaterRecalls:
    """Takes questions in and answers them later. Safe to share between threads."""

    def __init__(
        self, table: Table, clock: Clock, entropy: Entropy, *, conversations: Conversations, recall: Recall
    ) -> None:
        self._table = table
        self._clock = clock
        self._entropy = entropy
        self._conversations = conversations
        self._recall = recall

    def submit(
        self, caller: Caller, space_id: str, body: wire.RecallInput, *, key: str | None = None
    ) -> wire.AgentOutput:
        """Take a question in, to be answered later; its conversation in the collection `recall` is what to poll.

        Raises:
            NoemaError: `InvalidInput`, `PayloadTooLarge`, `RateLimited` where many wait already, `IdempotencyConflict`,
                `NotFoundOrNotVisible`, `ServiceUnavailable`, `OutcomeUnknown`.
        """
        asked, now = Asked(read_question(body), body.budget), self._clock.now()
        with reading():
            waiting = self._table.query(DUE_PK, *recall_due_rows(space_id), limit=MAX_WAITING)
        if len(waiting) >= MAX_WAITING:
            raise NoemaError(
                "RateLimited",
                f"{MAX_WAITING} questions of this space wait for their answers",
                hint="Ask again when some of them are answered.",
                retry_after_ms=GRACE_MS,
            )
        until = now + KEEP_RECALLS_MS
        row: Row = {
            "status": "submitted",
            "thread": asked.question.context.source,
            "who": msgspec.json.encode(caller).decode(),
            "until": until,
            "ttl": until // 1000,
        }

        def due(number: int) -> list[Write]:
            return [Put(DUE_PK, recall_due_sk(space_id, number), {"at": now})]

        whole = asked.record(len(asked.question.query))
        number = self._conversations.begin(caller, space_id, "recall", whole, row=row, also=due, key=key)
        return wire.AgentOutput(content="", conversation=number)

    def sweep(self, grace_ms: int = GRACE_MS) -> list[str]:
        """The spaces with a question that has waited for a while, for the tick to hint at."""
        now, found = self._clock.now(), dict[str, None]()
        with reading():
            for sk, row in rows_between(self._table, DUE_PK, *due_rows("recall")):
                at = row.get("at")
                if isinstance(at, int) and at + grace_ms <= now:
                    found[recall_due_of(sk)[0]] = None
        return list(found)

    def work(self, space_id: str, deadline: Instant) -> Worked:
        """Answer what waits in a space, in order, until the deadline is near.

        Args:
            space_id: the space.
            deadline: when the last answer must be there (ms).

        Raises:
            NoemaError: the store failed, or the space is gone; nothing is lost.
        """
        answered: list[int] = []
        failed: list[int] = []
        with reading():
            waiting = self._table.query(DUE_PK, *recall_due_rows(space_id), limit=_PAGE)
        late = len(waiting) == _PAGE
        more = late
        for place, (sk, _) in enumerate(waiting):
            left = deadline - self._clock.now()
            if left <= 0 or (place and left < LEAST_MS):
                more = late = True
                break
            number = recall_due_of(sk)[1]
            ended = self._one(space_id, number, deadline)
            if ended is None:
                more = True  # another process answers it
            elif ended:
                answered.append(number)
            else:
                failed.append(number)
        return Worked(tuple(answered), tuple(failed), more, late)

    def _one(self, space_id: str, number: int, deadline: Instant) -> bool | None:
        """Whether a question was answered; None if it is another's to answer."""
        try:
            record = self._conversations.record(space_id, "recall", number)
        except NoemaError as error:
            if error.code != "NotFoundOrNotVisible":
                raise
            self._drop(space_id, number)  # the record or its space is gone
            return False
        if record.status in _OVER:
            self._drop(space_id, number)
            return record.status == "completed"
        claimed = self._claim(space_id, record)
        if claimed is None:
            return None
        if record.count("tries") >= TRIES:
            return self._fail(space_id, record, claimed, _GAVE_UP)
        caller, asked = msgspec.json.decode(record.text("who") or "", type=Caller), Asked.of(record.body)
        until = min(deadline, self._clock.now() + TOTAL_MS)
        try:
            ended = self._recall.answer(caller, space_id, asked, until)
        except NoemaError as error:
            if error.spec.retry == "safe_same_request":
                self._release(space_id, record, claimed)
                raise
            return self._fail(space_id, record, claimed, error.message)
        return self._finish(space_id, record, claimed, ended)

    def _claim(self, space_id: str, record: Record) -> str | None:
        """Take the question; the claim, or None if somebody has it."""
        now = self._clock.now()
        if record.count("claimed_until") > now:
            return None
        claim = self._entropy.token(9).hex()
        row: Row = {
            "status": "working",
            "claim": claim,
            "claimed_until": now + CLAIM_MS,
            "tries": record.count("tries") + 1,
            "updated": now,
        }
        when = When(equals={"nonce": record.row["nonce"], "claim": record.row.get("claim")})
        write = Update(space_pk(space_id), conversation_sk("recall", record.number), assign=row, when=when)
        with reading():
            mine = settled(self._table, [write], lambda: self._holds(space_id, record.number, claim))
        return claim if mine else None

    def _holds(self, space_id: str, number: int, claim: str) -> bool:
        row = self._table.get(space_pk(space_id), conversation_sk("recall", number))
        return row is not None and row.get("claim") == claim

    def _finish(self, space_id: str, record: Record, claim: str, ended: Ended) -> bool | None:
        try:
            done = self._land(space_id, record, claim, ended, [self._recall.guard(space_id, ended.epoch)])
        except Erased:
            done = False
        if not done:
            if not self._holds(space_id, record.number, claim):
                return None
            ended = ended.withheld()
            self._land(space_id, record, claim, ended, [])
        self._recall.count(space_id, ended)
        return ended.recalled.failed is None

    def _fail(self, space_id: str, record: Record, claim: str, reason: str) -> bool:
        with reading():
            self._end(space_id, record, claim, {"status": "failed", "failed_reason": reason}, [])
        return False

    def _land(self, space_id: str, record: Record, claim: str, ended: Ended, guard: list[Write]) -> bool:
        result = structured_of(ended, record.number, space_id)
        told: Json = msgspec.json.encode(result).decode()
        row = {**ended.row(), "result": told if len(told) <= _RESULT_BYTES else None}
        with reading():
            return self._end(space_id, record, claim, row, guard)

    def _end(self, space_id: str, record: Record, claim: str, row: Row, guard: list[Write]) -> bool:
        """Write the end of a question on its claim; False if the claim or the guard does not hold."""
        sk = conversation_sk("recall", record.number)
        over: Row = {"claim": None, "claimed_until": None, "who": None, "updated": self._clock.now()}
        writes: list[Write] = [
            Update(space_pk(space_id), sk, assign={**row, **over}, when=When(equals={"claim": claim})),
            Delete(DUE_PK, recall_due_sk(space_id, record.number)),
            *guard,
        ]

        def landed() -> bool:
            found = self._table.get(space_pk(space_id), sk)
            return found is not None and found.get("status") == row["status"]

        return settled(self._table, writes, landed)

    def _release(self, space_id: str, record: Record, claim: str) -> None:
        """Give the question back at once, so that another try need not wait; the claim would run out anyway."""
        row: Row = {"claim": None, "claimed_until": None, "status": "submitted"}
        sk = conversation_sk("recall", record.number)
        try:
            self._table.transact(
                [Update(space_pk(space_id), sk, assign=row, when=When(equals={"claim": claim}))]
            )
        except (Refused, StoreFault):
            return

    def _drop(self, space_id: str, number: int) -> None:
        with reading():
            self._table.transact([Delete(DUE_PK, recall_due_sk(space_id, number))])
