"""Keeping the vectors of a space up: of its segments, beside them, and of its newest commits, in rows.

What lives here: what is missing and in which order it is built. What must never live here: searching
(`core.service.vector_search`) and how one segment's vectors are made (`core.service.vector_build`). Every run looks
for what is still to be done, so it can be run again, at the same time as itself, as a compaction and as an erasure:

* An object is written once; two builders of the same one waste work, and nothing else.
* After an object is written, HEAD is read: if the purge generation moved meanwhile, the object goes again. Rows are
  written on condition that it has not. A builder that dies between the two leaves an object that garbage collection
  removes, for nothing refers to its segment any more.
* The row that says "all of this base has vectors" is written last, and is only a hint for who looks what to do:
  a search believes the objects themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from core.model.instants import Instant
from core.model.log import Delta
from core.ports import Delete, Entropy, Put, Row
from core.search.dense import Degraded
from core.search.wording import WORDED, fingerprint, wording
from core.service.embedding import Embedding
from core.service.faults import reading
from core.service.rows import number_in
from core.service.spaces import Spaces
from core.service.upkeep import BATCH, DAY, Upkeep
from core.service.vector_build import Builder, Fence, Target, Text, Texts, vectors_beside
from core.service.vector_search import Entry, seed_of, worded
from core.service.vectors import Vectors
from core.storage.head import Head
from core.storage.layout import (
    MAX_VERSION,
    model_digest,
    rows_of,
    space_pk,
    vector_model,
    vector_row_sk,
    vector_rows,
    vectors_sk,
)
from core.storage.manifest import decode_manifest
from core.storage.reader import Moved
from core.storage.segment import SegmentRef
from core.storage.vectors import Quantized, encode_pack, stack_of

EARLIER: Final = 4  # older manifests whose vectors are looked through for what can be taken over
PACK_BYTES: Final = 300_000  # of one row
PACKS: Final = 8  # rows of one transaction
_AROUND: Final = 64  # bytes a vector takes in a pack besides its numbers


class Indexed(msgspec.Struct, frozen=True):
    """What a run did. segments: built; embedded: texts; packed: texts stored of the newest commits.

    more: the time was up. failed: why the embedder gave nothing more, if so.
    """

    segments: int = 0
    embedded: int = 0
    packed: int = 0
    more: bool = False
    failed: Degraded | None = None


class IndexStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far the vectors of a space have come, without looking at any.

    model: the configured one; None without an embedder. complete: whether the segments all have vectors.
    ver: the newest commits up to here have; None where queries embed them. failed: why not further, if so.
    """

    model: str | None
    complete: bool = False
    ver: int | None = None
    failed: str | None = None


class VectorUpkeep:
    """Builds and clears vectors. Safe to share between threads."""

    def __init__(self, spaces: Spaces, upkeep: Upkeep, vectors: Vectors, entropy: Entropy) -> None:
        self._spaces = spaces
        self._upkeep = upkeep
        self._vectors = vectors
        self._entropy = entropy

    def index(self, space_id: str, *, deadline: Instant) -> Indexed:
        """Build what is missing, as far as the time goes. Without an embedder, nothing.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        embedding = self._vectors.embedding
        if not isinstance(embedding, Embedding):
            return Indexed()
        with reading():
            target = Target(*self._spaces.read_current(space_id))
            texts = Texts(self._spaces, embedding, deadline)
            builder = Builder(texts, self._entropy, target)
            try:
                return _Run(self._upkeep, builder, target).run()
            except Moved:
                return Indexed(more=True)  # compacted or erased meanwhile; the next run sees what is there

    def lags(self, space_id: str, head: Head) -> bool:
        """Whether there is something to build, by one small row; the store's faults pass through."""
        embedding = self._vectors.embedding
        if not isinstance(embedding, Embedding) or head.state != "active":
            return False
        row = self._spaces.table.get(space_pk(space_id), vectors_sk(embedding.model)) or {}
        if head.base_key is not None and row.get("base_key") != head.base_key:
            return True
        return not embedding.local and number_in(row, "ver") < head.ver

    def status(self, space_id: str) -> IndexStatus:
        """How far the vectors have come.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        model, embedding = self._vectors.model, self._vectors.embedding
        if model is None or not isinstance(embedding, Embedding):
            return IndexStatus(model=model, failed=None if isinstance(embedding, Embedding) else embedding)
        with reading():
            head = self._spaces.read_head(space_id)
            row = self._spaces.table.get(space_pk(space_id), vectors_sk(model)) or {}
        failed = row.get("failed")
        return IndexStatus(
            model=model,
            complete=head.base_key is None or row.get("base_key") == head.base_key,
            ver=None if embedding.local else number_in(row, "ver"),
            failed=failed if isinstance(failed, str) else None,
        )


class _Run:
    """One run over one space."""

    def __init__(self, upkeep: Upkeep, builder: Builder, target: Target) -> None:
        self._spaces = builder.spaces
        self._upkeep = upkeep
        self._embedding = builder.embedding
        self._target = target
        self._texts = builder.texts
        self._builder = builder
        self._fence = Fence(builder.spaces, target)
        self._pk = space_pk(target.space_id)

    def run(self) -> Indexed:
        """Build the segments' vectors, then the newest commits'; say how far it went; clear what is no use."""
        head, texts = self._target.head, self._texts
        before = self._spaces.table.get(self._pk, vectors_sk(self._embedding.model)) or {}
        complete, built = True, 0
        if head.base_key is not None:
            complete, built = self._segments()
        packed, ver = 0, number_in(before, "ver")
        if not self._embedding.local and complete:
            packed, ver = self._newest(max(ver, head.base_ver))
        after: Row = {
            "base_key": head.base_key if complete else before.get("base_key"),
            "ver": ver,
            "failed": texts.failed,
        }
        if any(before.get(name) != value for name, value in after.items()):
            kept: Row = {name: value for name, value in after.items() if value is not None}
            self._fence.rows(Put(self._pk, vectors_sk(self._embedding.model), kept))
        if complete and built:
            self._clear()
        more = not complete or (not self._embedding.local and ver < head.ver)
        return Indexed(built, texts.embedded, packed, more, texts.failed)

    def _segments(self) -> tuple[bool, int]:
        """Build the vectors that segments lack: whether all have theirs now, and how many were built."""
        base, built = stack_of(self._target.state).base, 0
        segments = [segment for segment in (() if base is None else base.segments) if worded(segment.ref)]
        has = self._builder.have([segment.ref for segment in segments])
        lacking = [segment for segment, there in zip(segments, has, strict=True) if not there]
        earlier = self._earlier() if lacking else []
        for segment in reversed(lacking):  # what is newest is asked for most
            if not self._texts.on_time or not self._builder.build(segment, earlier):
                return False, built
            built += 1
        return True, built

    def _earlier(self) -> list[SegmentRef]:
        """The segments of the newest manifests, newest first, each once."""
        refs: dict[str, SegmentRef] = {}
        rows = self._upkeep.manifests(self._target.space_id, self._target.head)
        for _, row in reversed(rows[-EARLIER:]):
            body = self._spaces.objects.get(str(row["key"]))
            for ref in () if body is None else decode_manifest(body).segments:
                refs.setdefault(ref.key, ref)
        return list(refs.values())

    # --- the newest commits

    def _newest(self, after: int) -> tuple[int, int]:
        """Store vectors of the commits after a version: how many texts, and the last version that has its own."""
        head, packed = self._target.head, 0
        deltas = self._spaces.reader(self._target.space_id).deltas(after + 1, head.ver)
        for portion in self._portions(deltas):
            known = self._builder.packed()
            lacking = [one for one in self._worded(portion) if known.get(one.id, _NONE)[0] != one.print]
            found = dict(self._texts.entries(lacking))
            if len(found) < len(lacking):
                break
            self._store(after + 1, portion[-1], lacking, found)
            known.update(found)
            after, packed = portion[-1].ver, packed + len(lacking)
        return packed, after

    def _portions(self, deltas: Iterator[Delta]) -> Iterator[list[Delta]]:
        """Commits, as many together as the rows of one transaction have room for; at least one."""
        room = PACKS * PACK_BYTES // (self._embedding.dimension + _AROUND)
        portion: list[Delta] = []
        count = 0
        for delta in deltas:
            if portion and count + len(delta.puts) > room:
                yield portion
                portion, count = [], 0
            portion.append(delta)
            count += len(delta.puts)
        if portion:
            yield portion

    def _worded(self, portion: Sequence[Delta]) -> Iterator[Text]:
        """The texts of what some commits wrote, as it stands now."""
        state, seed = self._target.state, seed_of(self._target.state)
        for element_id in {element.id: None for delta in portion for element in delta.puts}:
            element = state.get(element_id) if element_id[0] in WORDED else None
            text = "" if element is None else wording(element, state)
            if text:
                yield Text(element_id, text, fingerprint(text, seed))

    def _store(self, first: int, last: Delta, texts: Sequence[Text], entries: dict[str, Entry]) -> None:
        """Rows with some texts' vectors; the one that says that no other is missing comes in the last transaction."""
        told = [one for one in texts if entries[one.id][2]]
        each = max(1, PACK_BYTES // (self._embedding.dimension + _AROUND))
        bodies = [self._pack(told[start : start + each], entries) for start in range(0, len(told), each)]
        model = self._embedding.model
        for start in range(0, max(1, len(bodies)), PACKS):
            ends = start + PACKS >= len(bodies)
            self._fence.rows(
                *(
                    Put(
                        self._pk,
                        vector_row_sk(model, last.ver, start + place),
                        {
                            "first": first if ends else MAX_VERSION,
                            "last": last.ver,
                            "seq": last.seq,
                            "body": body,
                        },
                    )
                    for place, body in enumerate(bodies[start : start + PACKS] or [self._pack([], entries)])
                )
            )

    def _pack(self, texts: Sequence[Text], entries: dict[str, Entry]) -> bytes:
        np = self._embedding.np
        rows = np.frombuffer(b"".join(entries[one.id][2] for one in texts), dtype=np.int8)
        found = Quantized(
            np.asarray([entries[one.id][1] for one in texts], dtype=np.float32),
            rows.reshape(len(texts), self._embedding.dimension),
        )
        return encode_pack(np, [one.id for one in texts], [one.print for one in texts], found)

    # --- clearing

    def _clear(self) -> None:
        """Remove rows that the segments' vectors have replaced, and what another model left a day ago or earlier."""
        model, head = self._embedding.model, self._target.head
        self._remove(*vector_rows(model, -1, head.base_ver))
        mine, long_ago = model_digest(model), self._spaces.clock.now() - DAY
        others = [
            key
            for key, at in vectors_beside(self._spaces, self._target.space_id)
            if vector_model(key) != mine and at <= long_ago
        ]
        if others:
            self._spaces.objects.delete(others)
            first, last = rows_of("V")
            own = vectors_sk(model)
            self._remove(first, own)
            self._remove(f"{own}#{MAX_VERSION}~", last)

    def _remove(self, first: str, last: str) -> None:
        own = vectors_sk(self._embedding.model)
        while True:
            page = self._spaces.table.query(self._pk, first, last, limit=BATCH - 1)
            gone = [Delete(self._pk, sk) for sk, _ in page if sk != own]
            if gone:
                self._fence.rows(*gone)
            if len(page) < BATCH - 1:
                return


_NONE: Final[Entry] = (-1, 0.0, b"")
