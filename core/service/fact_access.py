"""What is observed of facts beside the log: that they were recalled, and when their namespace was consolidated.

What lives here: three kinds of rows, and their arithmetic over them. What must never live here: anything a fact
is. A recall appends one small row and reads none; a consolidation folds these rows into counts, each exactly
once. The rows name facts by digests and hold numbers only, so whatever is lost, late or written twice, nothing
can be revived, unpinned or overwritten by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from core.facts.decay import Access, counts_for, observed, recalled
from core.facts.learning import Learning
from core.facts.values import Fact
from core.model.instants import Instant
from core.ports import Clock, Delete, Entropy, Put, Refused, Row, StoreFault, Table, Update, When, Write
from core.storage.layout import (
    fact_counts_sk,
    fact_digest,
    fact_learning_sk,
    fact_rows,
    fact_touch_sk,
    fact_upkeep_sk,
    space_pk,
)

BUCKETS: Final = 64  # rows that share a namespace's counts
# Touches folded in one transaction, with the buckets and a count below the bound of 100 writes.
_PORTION: Final = 32
_READ: Final = 1000  # touches that a reader takes into account
_KEPT_S: Final = 90 * 24 * 3600  # how long a touch waits to be folded before the table may let it go
_DIGEST: Final = 8


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of a namespace say: counts by a fact's digest, and the upkeep's own numbers."""

    counts: dict[bytes, Access] = {}
    touches: dict[bytes, tuple[int, Instant]] = {}  # not yet folded: how often, and when last
    consolidated: Instant = 0
    consolidations: int = 0
    consumed: int = 0
    recalls: int = 0

    def of(self, fact: Fact) -> Fact:
        """A fact with its counts and weight as they stand."""
        digest = fact_digest(fact.id)
        access = self.counts.get(digest)
        waiting = self.touches.get(digest)
        counting = counts_for(fact, self.consolidated)
        if waiting is not None:
            access = recalled(fact, access, waiting[0], waiting[1], counting)
        return observed(fact, access, self.consolidated)


class Accesses:
    """Reads and writes what is observed of facts. Safe to share between threads."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy) -> None:
        self._table = table
        self._clock = clock
        self._entropy = entropy

    def note(self, space_id: str, agent_id: str, facts: Sequence[Fact]) -> bool:
        """Say that facts were recalled; False if the store did not take it, which is no error of the recall."""
        if not facts:
            return True
        now = self._clock.now()
        sk = fact_touch_sk(agent_id, now, self._entropy.token(6).hex())
        row: Row = {
            "facts": b"".join(fact_digest(fact.id) for fact in facts),
            "at": now,
            "ttl": now // 1000 + _KEPT_S,
        }
        try:
            self._table.transact([Put(space_pk(space_id), sk, row)])
        except StoreFault:
            return False
        return True

    def read(self, space_id: str, agent_id: str) -> Observed:
        """What is observed of a namespace; the store's faults pass through."""
        pk = space_pk(space_id)
        counts: dict[bytes, Access] = {}
        for _, row in self._table.query(pk, *fact_rows(agent_id, "c"), limit=BUCKETS):
            counts.update(_unpack(row))
        touched = self._table.query(pk, *fact_rows(agent_id, "t"), limit=_READ)
        upkeep = self._table.get(pk, fact_upkeep_sk(agent_id)) or {}
        return Observed(
            counts=counts,
            touches=_tally(row for _, row in touched),
            consolidated=_number(upkeep, "at"),
            consolidations=_number(upkeep, "runs"),
            consumed=_number(upkeep, "consumed"),
            recalls=_number(upkeep, "recalls") + len(touched),
        )

    def fold(self, space_id: str, agent_id: str, facts: Mapping[str, Fact], consolidated: Instant) -> int:
        """Take waiting touches into the counts; how many. Counts of facts that are gone are dropped with it.

        Args:
            space_id: the space.
            agent_id: the namespace.
            facts: all its facts by id.
            consolidated: when it was last consolidated, before this run.
        """
        by_digest = {fact_digest(fact_id): fact for fact_id, fact in facts.items()}
        pk, done = space_pk(space_id), 0
        while page := self._table.query(pk, *fact_rows(agent_id, "t"), limit=_PORTION):
            if not self._fold(pk, agent_id, page, by_digest, consolidated):
                break  # another run folds; what is left waits for the next
            done += len(page)
        return done

    def _fold(
        self,
        pk: str,
        agent_id: str,
        page: Sequence[tuple[str, Row]],
        by_digest: Mapping[bytes, Fact],
        consolidated: Instant,
    ) -> bool:
        """One portion: the touches go and the counts have them, in one transaction."""
        touches = {
            digest: touch for digest, touch in _tally(row for _, row in page).items() if digest in by_digest
        }
        writes: list[Write] = [Delete(pk, sk, When(present=True)) for sk, _ in page]
        writes.append(Update(pk, fact_upkeep_sk(agent_id), add={"recalls": len(page)}))
        for bucket in sorted({digest[0] % BUCKETS for digest in touches}):
            sk = fact_counts_sk(agent_id, bucket)
            row = self._table.get(pk, sk) or {}
            counts = {digest: each for digest, each in _unpack(row).items() if digest in by_digest}
            for digest, (times, at) in touches.items():
                if digest[0] % BUCKETS == bucket:
                    fact = by_digest[digest]
                    counting = counts_for(fact, consolidated)
                    counts[digest] = recalled(fact, counts.get(digest), times, at, counting)
            rev = _number(row, "rev")
            after: Row = {"counts": msgspec.msgpack.encode(counts), "rev": rev + 1}
            writes.append(Put(pk, sk, after, When(equals={"rev": rev or None})))
        try:
            self._table.transact(writes)
        except Refused:
            return False
        return True

    def consolidated(self, space_id: str, agent_id: str, at: Instant) -> bool:
        """Say that the namespace was consolidated at `at`; False if a later time stands there already."""
        sk = fact_upkeep_sk(agent_id)
        write = Update(space_pk(space_id), sk, assign={"at": at}, when=When(below={"at": at}))
        try:
            self._table.transact([write])
        except Refused:
            return False
        return True

    def last_consolidated(self, space_id: str, agent_id: str) -> Instant:
        """When the namespace was last consolidated; 0 for never. The store's faults pass through."""
        return _number(self._table.get(space_pk(space_id), fact_upkeep_sk(agent_id)) or {}, "at")

    def summarised(self, space_id: str, agent_id: str, consumed: int) -> None:
        """Count one summary and the facts it replaced."""
        added = {"runs": 1, "consumed": consumed}
        self._table.transact([Update(space_pk(space_id), fact_upkeep_sk(agent_id), add=added)])

    # --- words

    def learning(self, space_id: str, agent_id: str) -> tuple[Learning, int]:
        """What is pending of the words of an agent's queries, and the row's revision; faults pass through."""
        row = self._table.get(space_pk(space_id), fact_learning_sk(agent_id)) or {}
        packed = row.get("pending")
        pending = msgspec.msgpack.decode(packed, type=Learning) if isinstance(packed, bytes) else Learning()
        return pending, _number(row, "rev")

    def learn(self, space_id: str, agent_id: str, learning: Learning, rev: int) -> bool:
        """Keep what is pending, if the row is as it was read; False otherwise: the observation is lost."""
        now_s = self._clock.now() // 1000
        row: Row = {"pending": msgspec.msgpack.encode(learning), "rev": rev + 1, "ttl": now_s + _KEPT_S}
        write = Put(space_pk(space_id), fact_learning_sk(agent_id), row, When(equals={"rev": rev or None}))
        try:
            self._table.transact([write])
        except StoreFault:
            return False
        return True


def _tally(rows: Iterable[Row]) -> dict[bytes, tuple[int, Instant]]:
    """How often and when last each digest was touched."""
    times: Counter[bytes] = Counter()
    last: dict[bytes, Instant] = {}
    for row in rows:
        packed, at = row.get("facts"), _number(row, "at")
        if not isinstance(packed, bytes):
            continue
        for start in range(0, len(packed) - _DIGEST + 1, _DIGEST):
            digest = packed[start : start + _DIGEST]
            times[digest] += 1
            last[digest] = max(at, last.get(digest, 0))
    return {digest: (count, last[digest]) for digest, count in times.items()}


def _unpack(row: Row) -> dict[bytes, Access]:
    packed = row.get("counts")
    return msgspec.msgpack.decode(packed, type=dict[bytes, Access]) if isinstance(packed, bytes) else {}


def _number(row: Row, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0
