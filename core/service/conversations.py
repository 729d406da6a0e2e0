"""Conversations: what was submitted, what was asked, and what became of it; one row each.

What lives here: taking a submission in, and reading back. What must never live here: forming or answering
(`core.service.formation`, `core.service.recall`). A submission never touches HEAD, so any number of callers may
submit while the space commits: it is one transaction of a counter, the conversation, the retry key and the due
row, and it contends only with other submissions of the same space.

Ids count from 1 in each collection without a gap, because the counter and the row are written together. The
counter row also holds the collection's **cursor secret**: 32 random bytes, drawn when the first conversation
arrives. A cursor is signed with it, so it fits one life of one space and one collection, and cannot be made up;
it stands nowhere else, neither in HEAD nor in the log, and is deleted with the space's rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from typing import Final, get_args

import msgspec

from core.agents.dialogue import Dialogue, read_dialogue
from core.errors import NoemaError
from core.model.elements import Json
from core.model.ids import check_space_id
from core.model.instants import Instant
from core.ports import (
    Clock,
    Entropy,
    Objects,
    Put,
    Refused,
    Row,
    Table,
    Unavailable,
    Update,
    Value,
    When,
    Write,
)
from core.protocol import http_types as wire
from core.service.attempt import KEEP_OUTCOMES_MS, is_over
from core.service.callers import check_action, is_whole, standing
from core.service.conversation_cursors import foreign_cursor, read_cursor, write_cursor
from core.service.conversation_record import Record, view_of
from core.service.faults import reading
from core.service.rows import number_in, rows_between
from core.service.spaces import Spaces
from core.service.standings import Shown, Standings, shown_to
from core.service.values import Caller, Idempotency
from core.storage.head import SWEPT, Head
from core.storage.layout import (
    DUE_PK,
    body_key,
    conversation_number,
    conversation_sk,
    counter_sk,
    due_sk,
    idempotency_sk,
    space_pk,
)

INLINE_BYTES: Final = 32 * 1024  # a larger body is an object, and the row holds its key
DEFAULT_LIMIT: Final = 10
MAX_LIMIT: Final = 100
KEEP_RECALLS_MS: Final = 30 * 24 * 3600 * 1000  # contract §3: transcripts of recalls are kept 30 days
_TRIES: Final = 50  # of a submission among other submissions; each waits a random while
_NOTE_TRIES: Final = 5
_LOOKS: Final = 20  # pages of rows looked through for one page of what a caller may see
_PAUSE_S: Final = 0.5
CITES: Final = "cites"  # the attribute of a recall's row that names what its answer rests on
_MAX_ID: Final = 2**63 - 1


class _Body(msgspec.Struct, frozen=True):
    """What was submitted as bytes, and if it is too large for a row, its object and when that was uploaded."""

    raw: bytes
    key: str | None = None
    at: Instant = 0

    def row(self) -> Row:
        """What the conversation's row says of it."""
        return {"body": self.raw} if self.key is None else {"body_key": self.key}


class Conversations:
    """Takes conversations in and reads them back. Safe to share between threads."""

    def __init__(
        self, table: Table, objects: Objects, clock: Clock, entropy: Entropy, spaces: Spaces
    ) -> None:
        self._table = table
        self._objects = objects
        self._clock = clock
        self._entropy = entropy
        self._spaces = spaces
        self._standings = Standings(spaces, clock)

    # --- taking in

    def submit(
        self, caller: Caller, space_id: str, body: wire.FormationInput, *, key: str | None = None
    ) -> wire.AgentOutput:
        """Store a conversation to be formed, and answer with its id.

        Args:
            caller: who submits it; the verified subject is recorded.
            space_id: the space.
            body: what came over the wire.
            key: the caller's retry key. The same key with the same body answers with the same id.

        Raises:
            NoemaError: `InvalidInput`, `PayloadTooLarge`, `SpaceTierExceeded`, `IdempotencyConflict`,
                `NotFoundOrNotVisible`, `ServiceUnavailable`, or `OutcomeUnknown` if the store did not say
                whether it was stored.
        """
        now = self._clock.now()
        dialogue, warnings = read_dialogue(body, now=now)
        asked = None
        if key is not None:
            digest = hashlib.sha256(msgspec.json.encode(body)).hexdigest()
            asked = Idempotency(f"{caller.subject}\x1fformation", key, digest)
        with reading():
            settled = self._settled(space_id, "formation", asked, None)
        if settled is not None:
            return wire.AgentOutput(content="", conversation=settled, warnings=tuple(warnings))
        self._check_tier(space_id, caller)
        raw = msgspec.json.encode(dialogue)
        row: Row = {
            "status": "submitted",
            "user": caller.subject,
            "channel": caller.channel,
            "created": now,
            "updated": now,
            "thread": dialogue.context.source,
            "warnings": msgspec.json.encode(warnings).decode() if warnings else None,
        }
        number = self._add(space_id, "formation", row, raw, asked)
        return wire.AgentOutput(content="", conversation=number, warnings=tuple(warnings))

    def note(
        self,
        caller: Caller,
        space_id: str,
        collection: wire.Collection,
        body: Json,
        row: Row,
        *,
        also: Callable[[int], list[Write]] | None = None,
    ) -> int | None:
        """Keep the record of a run that has ended (a recall), and return its id. It expires (contract §3).

        None if it could not be kept soon: who asked has waited for an answer, not for its record. `also`: as `begin`.
        """
        now = self._clock.now()
        base: Row = {
            "user": caller.subject,
            "channel": caller.channel,
            "created": now,
            "updated": now,
            "until": now + KEEP_RECALLS_MS,
            "ttl": (now + KEEP_RECALLS_MS) // 1000,
        }
        try:
            return self._add(
                space_id,
                collection,
                {**base, **row},
                msgspec.json.encode(body),
                None,
                tries=_NOTE_TRIES,
                also=also,
            )
        except NoemaError as error:
            if error.spec.retry not in ("safe_same_request", "outcome_lookup_required"):
                raise
            return None

    def begin(
        self,
        caller: Caller,
        space_id: str,
        collection: wire.Collection,
        body: Json,
        *,
        row: Row,
        also: Callable[[int], list[Write]],
        key: str | None = None,
    ) -> int:
        """Store a run that is to be made, and return its id.

        Args:
            caller: who asks for it.
            space_id: the space.
            collection: where it is kept.
            body: what was asked for, JSON.
            row: attributes of its row.
            also: other rows of the same transaction, given the id; it may raise, and then nothing is stored.
            key: the caller's retry key.

        Raises:
            NoemaError: as `submit`, or what `also` raises.
        """
        now, raw = self._clock.now(), msgspec.json.encode(body)
        asked = None
        if key is not None:
            digest = hashlib.sha256(raw).hexdigest()
            asked = Idempotency(f"{caller.subject}\x1f{collection}", key, digest)
        base: Row = {"user": caller.subject, "channel": caller.channel, "created": now, "updated": now}
        with reading():
            return self._add(space_id, collection, {**base, **row}, raw, asked, also=also)

    def _check_tier(self, space_id: str, caller: Caller) -> None:
        """Refuse a submission to a space that holds as much as its tier admits (contract §1.5), or by who may not."""
        state = self._spaces.load(space_id)
        who = standing(caller, state, self._clock.now())
        if who is not None:
            check_action(who, "create")
            check_action(who, "assert")
        limit = state.meta.tier.limit
        with reading():
            counter = self._table.get(space_pk(space_id), counter_sk("formation")) or {}
        held = max(state.counts.concept, number_in(counter, "n"))
        if held >= limit:
            held = held if is_whole(who) else limit
            raise NoemaError(
                "SpaceTierExceeded",
                f"the space holds {held} nodes or conversations and its tier admits {limit}",
                details={"held": held, "limit": limit, "tier": state.meta.tier.tier},
            )

    def _add(
        self,
        space_id: str,
        collection: wire.Collection,
        row: Row,
        raw: bytes,
        asked: Idempotency | None,
        *,
        tries: int = _TRIES,
        also: Callable[[int], list[Write]] | None = None,
    ) -> int:
        """Write the next conversation of a collection with its counter and retry key, together."""
        instance = self._spaces.head(space_id).instance
        row = {**row, "instance": instance, "nonce": self._entropy.token(12)}
        row["body_digest"] = hashlib.sha256(raw).hexdigest()
        body, unsure = _Body(raw), False
        for attempt in range(tries):
            try:
                settled = self._settled(space_id, collection, asked, row["nonce"] if unsure else None)
                if settled is not None:
                    return settled
                counter = self._table.get(space_pk(space_id), counter_sk(collection))
                body = self._uploaded(space_id, collection, _of(counter, instance), body)
                number, writes = self._writes(
                    space_id, collection, {**row, **body.row()}, counter, asked=asked, uploaded=body.at
                )
                writes += [] if also is None else also(number)
                self._table.transact(writes)
            except Refused:
                pass
            except Unavailable:
                unsure = True
            else:
                return number
            self._clock.sleep(self._entropy.uniform(0, min(_PAUSE_S, 0.01 * 2**attempt)))
        if unsure:
            raise NoemaError("OutcomeUnknown", "the store did not say whether the conversation was stored")
        raise NoemaError("SerializationConflict", "other submissions of this space always came first")

    def _uploaded(self, space_id: str, collection: str, counter: Row | None, body: _Body) -> _Body:
        """The body, as an object if it is too large for the row; again if the one uploaded may have been collected."""
        if len(body.raw) <= INLINE_BYTES or (
            body.key is not None and body.at > number_in(counter or {}, SWEPT)
        ):
            return body
        at = self._clock.now()
        key = body_key(space_id, collection, number_in(counter or {}, "n") + 1, self._entropy.token(12).hex())
        with reading():
            self._objects.put(key, body.raw)
        return _Body(body.raw, key, at)

    def _writes(
        self,
        space_id: str,
        collection: wire.Collection,
        row: Row,
        counter: Row | None,
        *,
        asked: Idempotency | None,
        uploaded: Instant,
    ) -> tuple[int, list[Write]]:
        pk, instance = space_pk(space_id), row["instance"]
        before, counter = counter, _of(counter, instance)
        last = 0 if counter is None else number_in(counter, "n")
        number = last + 1
        writes: list[Write] = [Put(pk, conversation_sk(collection, number), row, When(absent=True))]
        if counter is None:
            fresh: Row = {"n": 1, "instance": instance, "secret": self._entropy.token(32)}
            other = When(absent=True) if before is None else When(equals={"instance": before["instance"]})
            writes.append(Put(pk, counter_sk(collection), fresh, other))
        else:
            swept = {SWEPT: uploaded} if uploaded else {}
            moved = When(equals={"n": last, "instance": instance}, below=swept)
            writes.append(Update(pk, counter_sk(collection), assign={"n": number}, when=moved))
        if collection == "formation":
            writes.append(
                Update(
                    DUE_PK, due_sk("formation", space_id), assign={"at": row["created"], "mark": row["nonce"]}
                )
            )
        if asked is not None:
            kept = self._table.get(pk, idempotency_sk(asked.scope, asked.key))
            until = self._clock.now() + KEEP_OUTCOMES_MS
            answer: Row = {"request": asked.digest, "number": number, "until": until, "ttl": until // 1000}
            over = When(absent=True) if kept is None else When(equals={"until": kept["until"]})
            writes.append(Put(pk, idempotency_sk(asked.scope, asked.key), answer, over))
        return number, writes

    def _settled(
        self, space_id: str, collection: wire.Collection, asked: Idempotency | None, nonce: Json
    ) -> int | None:
        """The id under which this submission is stored already: by its retry key, or by an unanswered write."""
        if asked is not None:
            row = self._table.get(space_pk(space_id), idempotency_sk(asked.scope, asked.key))
            if row is not None and not is_over(row, self._clock.now()):
                if row["request"] != asked.digest:
                    raise NoemaError("IdempotencyConflict", "the retry key was used for another conversation")
                return number_in(row, "number")
        if nonce is not None:
            for record in self._newest(space_id, collection, _MAX_ID, _TRIES):
                if record.row.get("nonce") == nonce:
                    return record.number
        return None

    # --- reading

    def get(
        self, space_id: str, collection: str, number: int, *, caller: Caller | None = None
    ) -> wire.Conversation:
        """One conversation, as far as it exists for a caller; None is the service itself.

        Raises:
            NoemaError: `InvalidInput` for an unknown collection, `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        record = self.record(space_id, collection, number, caller=caller)
        return view_of(record, _collection(collection))

    def record(self, space_id: str, collection: str, number: int, *, caller: Caller | None = None) -> Record:
        """One conversation's row with its body.

        Raises:
            NoemaError: as `get`.
        """
        name = _collection(collection)
        with reading():
            head = self._spaces.read_head(check_space_id(space_id))
            found = self._find(space_id, name, number, head)
            shown = shown_to(self._standings.of(space_id, caller, head), caller, name)
            found = found if shown is None or found is None else shown(found)
            if found is None:
                raise NoemaError("NotFoundOrNotVisible", f"there is no conversation {number} in {name}")
            return self._loaded(found)

    def delta(
        self,
        space_id: str,
        collection: str,
        number: int,
        *,
        messages_offset: int = 0,
        artifacts_offset: int = 0,
        caller: Caller | None = None,
    ) -> wire.ConversationDelta:
        """What a conversation gained after the offsets; an offset behind the end gives nothing new.

        Raises:
            NoemaError: as `get`.
        """
        found = self.get(space_id, collection, number, caller=caller)
        return wire.ConversationDelta(
            id=found.id,
            messages=found.messages[max(0, messages_offset) :],
            artifacts=found.artifacts[max(0, artifacts_offset) :],
            status=found.status,
            updated_at=found.updated_at,
            usage=found.usage,
            failed_reason=found.failed_reason,
            child=found.child,
        )

    def page(
        self,
        space_id: str,
        collection: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        caller: Caller | None = None,
    ) -> tuple[list[wire.Conversation], str | None]:
        """A page of a collection, the newest page first, oldest first within the page; and the next cursor.

        A body that is not in its row is left out here and `extra.messages_omitted` says so, as `extra.result_omitted`
        does of a structured answer: `get` has them.

        Raises:
            NoemaError: `CursorMismatch` for a cursor that this list did not give; else as `get`.
        """
        name = _collection(collection)
        size = DEFAULT_LIMIT if limit is None else max(1, min(MAX_LIMIT, limit))
        with reading():
            head = self._spaces.read_head(space_id)
            counter = self._table.get(space_pk(space_id), counter_sk(name))
            secret = counter.get("secret") if counter and counter.get("instance") == head.instance else None
            if not isinstance(secret, bytes):
                if cursor:
                    raise foreign_cursor()
                return [], None
            below = _MAX_ID if not cursor else read_cursor(secret, name, cursor)
            shown = shown_to(self._standings.of(space_id, caller, head), caller, name)
            found, last = self._listed(space_id, name, below, size, shown)
        page = [view_of(record, name, whole=False) for record in reversed(found)]
        return page, write_cursor(secret, name, last) if last > 1 else None

    def _listed(
        self, space_id: str, collection: wire.Collection, below: int, size: int, shown: Shown | None
    ) -> tuple[list[Record], int]:
        """The next records that are shown, newest first, and the id to go on below; 0 at the end."""
        now, found = self._clock.now(), list[Record]()
        for _ in range(1 if shown is None else _LOOKS):
            records = self._newest(space_id, collection, below, size)
            below = records[-1].number if len(records) == size else 0
            for record in records:
                there = None if _is_gone(record.row, now) else record if shown is None else shown(record)
                if there is not None and len(found) < size:
                    found.append(there)
                if len(found) == size:
                    return found, record.number
            if not below:
                break
        return found, below

    def load_dialogue(self, record: Record) -> Dialogue:
        """The conversation that a record of the formation collection holds, every message dated.

        Raises:
            ValueError: the body is missing or is no dialogue.
        """
        if record.body is None:
            raise ValueError("the body of the conversation is missing")
        dialogue = msgspec.convert(record.body, Dialogue)
        return dialogue.settled(record.count("created"))

    def newest(self, space_id: str, collection: wire.Collection, limit: int) -> list[Record]:
        """The newest records of a collection, those without their bodies that are objects.

        Raises:
            NoemaError: ServiceUnavailable.
        """
        now = self._clock.now()
        with reading():
            found = self._newest(space_id, collection, _MAX_ID, limit)
        return [record for record in found if not _is_gone(record.row, now)]

    def find(self, space_id: str, number: int) -> Record | None:
        """A formation conversation with its body, or None; the store's faults pass through."""
        found = self._find(space_id, "formation", number, self._spaces.read_head(check_space_id(space_id)))
        return None if found is None else self._loaded(found)

    def _find(self, space_id: str, collection: str, number: int, head: Head) -> Record | None:
        if not 0 < number < 10**16:
            return None
        row = self._table.get(space_pk(space_id), conversation_sk(collection, number))
        mine = row is not None and row.get("instance") == head.instance
        return (
            Record(number, row) if row is not None and mine and not _is_gone(row, self._clock.now()) else None
        )

    def _newest(self, space_id: str, collection: str, below: int, limit: int) -> list[Record]:
        """Rows with a lower id than `below`, newest first, the bodies in the rows decoded."""
        first = conversation_sk(collection, 0)
        last = conversation_sk(collection, min(below, 10**16) - 1)
        rows = self._table.query(space_pk(space_id), first, last, limit=limit, reverse=True)
        return [_decoded(Record(conversation_number(sk), row)) for sk, row in rows]

    def _loaded(self, record: Record) -> Record:
        key = record.text("body_key")
        if key is None:
            return _decoded(record)
        raw = self._objects.get(key)
        body = None if raw is None else msgspec.json.decode(raw)
        return msgspec.structs.replace(record, body=body)


def runs_citing(
    table: Table, space_id: str, elements: Collection[str], collection: wire.Collection = "recall"
) -> list[int]:
    """The runs on record whose answers name any of the elements: what forgetting them must remove too."""
    wanted, found = frozenset(elements), []
    first, last = conversation_sk(collection, 0), conversation_sk(collection, 10**16 - 1)
    for sk, row in rows_between(table, space_pk(space_id), first, last):
        cites = row.get(CITES)
        if isinstance(cites, str) and not wanted.isdisjoint(cites.split()):
            found.append(conversation_number(sk))
    return found


def _decoded(record: Record) -> Record:
    raw = record.row.get("body")
    return (
        record
        if not isinstance(raw, bytes)
        else msgspec.structs.replace(record, body=msgspec.json.decode(raw))
    )


def _collection(name: str) -> wire.Collection:
    if name not in get_args(wire.Collection):
        raise NoemaError(
            "InvalidInput",
            "`collection` must be formation, recall or maintenance",
            details={"member": "collection"},
        )
    found: wire.Collection = msgspec.convert(name, wire.Collection)
    return found


def _of(counter: Row | None, instance: Value) -> Row | None:
    """The counter, if it is of this life of the space and not left over from an earlier one."""
    return counter if counter is not None and counter.get("instance") == instance else None


def _is_gone(row: Row, now: Instant) -> bool:
    """Whether the record's time is over; a table that expires rows by itself does so late."""
    until = row.get("until")
    return isinstance(until, int) and until <= now
