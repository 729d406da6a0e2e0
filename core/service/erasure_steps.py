"""The steps of an erasure. Each finds what is still to be done by looking, so each can be run again.

What lives here: rewriting and removing. What must never live here: when a space may be erased from, or the end
(`core.service.erasure`). Every write goes together with a count on the job's row, on condition that the job is
still this run's: a run that was overtaken can change nothing, and the counts survive a crash.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.model.elements import AnyElement
from core.ports import Delete, Entropy, Put, Row, Unavailable, Update, When, Write
from core.service.conversations import runs_citing
from core.service.faults import settled
from core.service.rows import rows_between
from core.service.spaces import Spaces
from core.service.upkeep import BATCH, Upkeep
from core.storage.blocks import Cache, Pieces
from core.storage.codec import decode_delta, encode_delta, encode_json, unpack
from core.storage.compaction import assemble, rewrite
from core.storage.keyfilter import unweave
from core.storage.layout import (
    ALL_ROWS,
    HEAD,
    conversation_sk,
    delta_key,
    delta_version,
    is_fact_learning,
    manifest_sk,
    purge_sk,
    rows_of,
    segment_key,
    segment_prefix,
    space_pk,
    space_prefix,
    vector_segment,
)
from core.storage.log import INLINE_BYTES, entry_of
from core.storage.log import row_of as log_row
from core.storage.manifest import decode_manifest
from core.storage.redaction import Erased, redact_delta, redact_element
from core.storage.segment import Segment, SegmentRef
from core.storage.segments import SegmentsView

_RUNS: Final = ("recall", "maintenance")  # collections whose records name what they rest on
JOB_MS: Final = 15 * 60_000  # how long a job is its runner's without a sign of life
COUNTERS: Final = ("deltas", "segments", "manifests", "outcomes", "conversations", "objects", "rows")
_PIECES_BYTES: Final = 32 * 1024 * 1024


class Overtaken(Exception):  # noqa: N818 - another run has the job
    """Another run has taken this erasure over."""


class Order(msgspec.Struct, frozen=True):
    """What an erasure job is to do, as its row keeps it until the end."""

    erased: Erased = Erased()
    needles: tuple[bytes, ...] = ()
    conversations: tuple[tuple[str, int], ...] = ()


class Job(msgspec.Struct, frozen=True):
    """A running erasure: the space, its purge generation, this run's epoch, and the order."""

    space_id: str
    pgen: int
    epoch: int
    order: Order

    @property
    def pk(self) -> str:
        """The space's partition."""
        return space_pk(self.space_id)

    @property
    def sk(self) -> str:
        """The job's row, later its receipt's."""
        return purge_sk(self.pgen)


class ErasureSteps:
    """One run of an erasure."""

    def __init__(self, spaces: Spaces, upkeep: Upkeep, entropy: Entropy, job: Job) -> None:
        self._table = spaces.table
        self._objects = spaces.objects
        self._clock = spaces.clock
        self._spaces = spaces
        self._upkeep = upkeep
        self._entropy = entropy
        self._job = job
        # Not the shared cache: it must not survive.
        self._pieces = Pieces(spaces.objects, Cache(_PIECES_BYTES))
        self._rewritten: dict[str, list[tuple[SegmentRef, bytes]] | None] = {}

    # --- the log

    def redact_log(self) -> None:
        """Rewrite every commit that mentions the elements; its digest and its place in the chain stay."""
        erased = self._job.order.erased
        reader = self._spaces.reader(self._job.space_id)
        for sk, row in self._upkeep.log_rows(self._job.space_id):
            entry = entry_of(delta_version(sk), row)
            body = reader.body(entry)
            if not erased.touches(unpack("delta", body)):
                continue
            delta = decode_delta(body)
            kept = redact_delta(delta, erased)
            if kept == delta:
                continue
            fresh = encode_delta(kept)
            key = None
            if len(fresh) > INLINE_BYTES:
                key = delta_key(self._job.space_id, entry.ver, self._entropy.token(8).hex())
                self._objects.put(key, fresh)
            redacted = msgspec.structs.replace(
                entry,
                body=fresh if key is None else None,
                key=key,
                size=len(fresh),
                salt=None,
                redacted=self._job.pgen,
            )
            seen: Row = {"nonce": entry.nonce, "key": entry.key, "salt": entry.salt}
            self._write({"deltas": 1}, Put(self._job.pk, sk, log_row(redacted), When(equals=seen)))

    # --- manifests and segments

    def rewrite_manifests(self) -> None:
        """Give every retained manifest segments that do not mention the elements."""
        head = self._spaces.read_head(self._job.space_id)
        for ver, row in self._upkeep.manifests(self._job.space_id, head):
            old_key = str(row["key"])
            body = self._objects.get(old_key)
            if body is None:  # thinned between our look at the rows and now; the next run finds fewer rows
                raise Unavailable(f"the manifest {old_key} is gone")
            view = SegmentsView(decode_manifest(body), self._pieces)
            fresh = {
                index: parts
                for index, segment in enumerate(view.segments)
                if (parts := self._rewrite_segment(segment, view.manifest.seed)) is not None
            }
            if not fresh:
                continue
            plan = assemble(view.manifest, self._parts(view, fresh))
            new_key, _ = self._upkeep.store(self._job.space_id, plan)
            writes: list[Write] = [
                Put(self._job.pk, manifest_sk(ver), {**row, "key": new_key}, When(equals={"key": old_key}))
            ]
            if head.base_key == old_key:
                when = When(equals={"base_key": old_key, "pgen": self._job.pgen, "state": "purging"})
                writes.append(Update(self._job.pk, HEAD, assign={"base_key": new_key}, when=when))
            self._write({"manifests": 1}, *writes)

    def _parts(
        self, view: SegmentsView, fresh: dict[int, list[tuple[SegmentRef, bytes]]]
    ) -> list[tuple[SegmentRef, bytes]]:
        """A manifest's segments in order, the rewritten ones in the place of the old ones."""
        count = len(view.segments)
        woven = self._upkeep.read_filter(view) if len(fresh) < count else b""
        parts: list[tuple[SegmentRef, bytes]] = []
        for index, segment in enumerate(view.segments):
            if index in fresh:
                parts += fresh[index]
            else:
                parts.append((segment.ref, unweave(woven, count, index, segment.ref.filter_blocks)))
        return parts

    def _rewrite_segment(self, segment: Segment, seed: bytes) -> list[tuple[SegmentRef, bytes]] | None:
        """What stands for a segment now, stored; None if it may stay. Manifests that share it share this."""
        key = segment.ref.key
        if key not in self._rewritten:
            self._rewritten[key] = self._store_rewritten(segment, seed) if self._mentions(segment) else None
        return self._rewritten[key]

    def _mentions(self, segment: Segment) -> bool:
        erased = self._job.order.erased
        for records in segment.record_blocks():
            for record in records:
                if any(found.encode() in bytes(record) for found in erased.removed):
                    return True
        return any(
            element is not None and element != stub
            for found, stub in erased.stubs.items()
            for element in [segment.get(found)]
        )

    def _store_rewritten(self, segment: Segment, seed: bytes) -> list[tuple[SegmentRef, bytes]]:
        erased = self._job.order.erased

        def change(element: AnyElement) -> AnyElement | None:
            return redact_element(element, erased)

        parts = []
        for built in rewrite(segment.elements(), change, seed):
            key = segment_key(self._job.space_id, built.ref.digest, self._entropy.token(8).hex())
            self._objects.put(key, built.body)
            parts.append((msgspec.structs.replace(built.ref, key=key), built.key_filter))
        self._write({"segments": 1})
        return parts

    # --- what was derived

    def remove_vectors(self) -> None:
        """Remove every vector that may be of a text of the elements, or of one that has a name of theirs in it.

        The rows of the newest commits go whole. Beside segments that were rewritten lies nothing; beside those that
        were kept, the vectors go where an element refers to an erased one. All of them are built again.
        """
        rows = [sk for sk, _ in self._rows(*rows_of("V"))]
        for start in range(0, len(rows), BATCH - 1):
            part = rows[start : start + BATCH - 1]
            self._write({"rows": len(part)}, *(Delete(self._job.pk, sk) for sk in part))
        beside: dict[str, list[str]] = {}
        for key, _, _ in self._objects.list(segment_prefix(self._job.space_id)):
            segment = vector_segment(key)
            if segment is not None:
                beside.setdefault(segment, []).append(key)
        if not beside:
            return
        head = self._spaces.read_head(self._job.space_id)
        for _, row in self._upkeep.manifests(self._job.space_id, head):
            body = self._objects.get(str(row["key"]))
            for ref in () if body is None else decode_manifest(body).segments:
                if ref.key in beside and not self._refers(Segment(ref, self._pieces)):
                    del beside[ref.key]
        gone = [key for keys in beside.values() for key in keys]
        self._write({"objects": len(gone)})
        self._objects.delete(gone)

    def _refers(self, segment: Segment) -> bool:
        """Whether a segment has a record in which an erased element is named."""
        erased = self._job.order.erased
        names = [found.encode() for found in (*erased.removed, *erased.stubs)]
        return any(
            name in bytes(record)
            for records in segment.record_blocks()
            for record in records
            for name in names
        )

    def redact_outcomes(self) -> None:
        """Empty the retained outcomes of rewritten commits and of requests that mention what is erased.

        The rows stay, so a late retry is still recognised and carries out nothing twice.
        """
        order = self._job.order
        redacted = {
            delta_version(sk)
            for sk, row in self._upkeep.log_rows(self._job.space_id)
            if row.get("redacted") == self._job.pgen
        }
        words = [found.encode() for found in order.erased.removed] + list(order.needles)
        nothing = encode_json(None)
        for sk, row in self._rows(*rows_of("I")):
            outcome = row.get("outcome")
            if not isinstance(outcome, bytes):
                continue  # of a submission: it holds a conversation's number and a digest, no text
            plain = unpack("json", outcome)
            if outcome != nothing and (row["ver"] in redacted or any(word in plain for word in words)):
                when = When(equals={"nonce": row["nonce"]})
                emptied = Update(self._job.pk, sk, assign={"outcome": nothing}, when=when)
                self._write({"outcomes": 1}, emptied)

    def remove_conversations(self) -> None:
        """Remove the conversations that were named and the runs that cite an element, with their objects, and notes.

        A note is an agent's own words about anything, and so are words that queries taught; none outlasts an erasure.
        """
        notes = [sk for sk, _ in self._rows(*rows_of("AN"))]
        notes += [sk for sk, _ in self._rows(*rows_of("F")) if is_fact_learning(sk)]
        for sk in notes:
            self._write({"rows": 1}, Delete(self._job.pk, sk))
        erased = self._job.order.erased
        elements = frozenset((*erased.removed, *erased.stubs))
        citing = [
            (collection, run)
            for collection in _RUNS
            for run in runs_citing(self._table, self._job.space_id, elements, collection)
        ]
        for collection, number in dict.fromkeys((*self._job.order.conversations, *citing)):
            sk = conversation_sk(collection, number)
            row = self._table.get(self._job.pk, sk)
            if row is None:
                continue
            body = row.get("body_key")  # no other text of a row, for most of them are a caller's
            self._objects.delete([body] if isinstance(body, str) else [])
            self._write({"conversations": 1}, Delete(self._job.pk, sk))

    def remove_garbage(self) -> None:
        """Delete every object of the log that nothing refers to any more: all in flight is fenced."""
        collected = self._upkeep.collect_garbage(
            self._job.space_id, age_ms=0, still_mine=lambda: self._write({})
        )
        self._write({"objects": len(collected.removed)})

    # --- a whole space

    def remove_everything(self) -> None:
        """Remove every row but HEAD and this job, and every object."""
        kept = (HEAD, self._job.sk)
        while gone := [
            sk for sk, _ in self._table.query(self._job.pk, *ALL_ROWS, limit=BATCH) if sk not in kept
        ]:
            deletes = [Delete(self._job.pk, sk) for sk in gone[: BATCH - 1]]  # one place is the job's row
            self._write({"rows": len(deletes)}, *deletes)
        keys = [key for key, _, _ in self._objects.list(space_prefix(self._job.space_id))]
        # The job is still this run's after the listing, so nothing listed belongs to a next life of the space.
        self._write({"objects": len(keys)})
        for start in range(0, len(keys), BATCH):
            self._objects.delete(keys[start : start + BATCH])

    # --- reading and writing

    def _rows(self, first: str, last: str) -> list[tuple[str, Row]]:
        """All rows between two keys, before any of them is touched."""
        return list(rows_between(self._table, self._job.pk, first, last))

    def _write(self, counts: dict[str, int], *writes: Write) -> None:
        """Write, and count it on the job's row, if the job is still this run's.

        Raises:
            Overtaken: it is not.
        """
        mark = self._entropy.token(8)
        counted = Update(
            self._job.pk,
            self._job.sk,
            assign={"until": self._clock.now() + JOB_MS, "mark": mark},
            add=counts,
            when=When(equals={"ep": self._job.epoch, "stage": "running"}),
        )
        if not settled(self._table, [*writes, counted], lambda: self._marked(mark)):
            raise Overtaken(self._job.sk)

    def _marked(self, mark: bytes) -> bool:
        row = self._table.get(self._job.pk, self._job.sk)
        return row is not None and row.get("mark") == mark
