"""Building the vectors of one segment, and writing them so that no erasure is undone.

What lives here: which texts of a segment need a vector, which vectors can be taken over, and the fence. What must
never live here: which segments want vectors (`core.service.vector_upkeep`).

A text that has a vector already is not embedded again: what compaction rewrote takes the vectors over, told by the
fingerprint of their text. What was embedded before the time was up is kept as a part, and taken over too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from core.model.instants import Instant
from core.ports import Check, EmbedderFault, Entropy, KeyExists, Refused, When, Write
from core.search.dense import Degraded
from core.search.wording import WORDED, fingerprint, wording
from core.service.embedding import Embedding, reason_of
from core.service.rows import rows_between
from core.service.spaces import Spaces
from core.service.vector_search import Entry, entries_of, seed_of
from core.state.space import SpaceState
from core.storage.codec import Unreadable
from core.storage.head import Head
from core.storage.layout import (
    HEAD,
    segment_prefix,
    space_pk,
    vector_key,
    vector_part_key,
    vector_rows,
    vector_segment,
)
from core.storage.reader import Moved
from core.storage.segment import Segment, SegmentRef, id_of
from core.storage.vectors import (
    HEADER_BYTES,
    Quantized,
    Sidecar,
    Source,
    decode_header,
    decode_sidecar,
    encode_sidecar,
    quantize,
)

AT_ONCE: Final = 512  # texts handed to the embedder together: what is lost when it fails
_PAGE: Final = 16  # rows of one table query: some megabytes
_TRIES: Final = 5


class Text(msgspec.Struct, frozen=True):
    """What is to be embedded of an element. ordinal: its place in the segment; 0 outside of one."""

    id: str
    text: str
    print: int
    ordinal: int = 0


class Target(msgspec.Struct, frozen=True):
    """A space as a run found it."""

    head: Head
    state: SpaceState

    @property
    def space_id(self) -> str:
        """The space."""
        return self.state.meta.space_id


class Fence:
    """Writes that hold only as long as nothing is erased."""

    def __init__(self, spaces: Spaces, target: Target) -> None:
        self._spaces = spaces
        self._target = target

    def rows(self, *writes: Write) -> None:
        """Write rows.

        Raises:
            Moved: something was erased since the run began.
        """
        head, space_id = self._target.head, self._target.space_id
        same = Check(space_pk(space_id), HEAD, When(equals={"pgen": head.pgen, "state": "active"}))
        for _ in range(_TRIES):
            try:
                self._spaces.table.transact([same, *writes])
            except Refused as refused:
                if refused.failed:
                    raise Moved("something was erased meanwhile") from refused
            else:
                return
        raise Moved("writes keep colliding")

    def object(self, key: str, body: bytes) -> None:
        """Write an object, and take it back if something was erased meanwhile: it may be made of that.

        Raises:
            Moved: that is so.
        """
        try:
            self._spaces.objects.put(key, body)
        except KeyExists:
            return
        head, now = self._target.head, self._spaces.read_head(self._target.space_id, deleted=True)
        if (now.pgen, now.state) != (head.pgen, "active"):
            self._spaces.objects.delete([key])
            raise Moved("something was erased meanwhile")


class Texts:
    """Embeds texts in portions until the time is up or the embedder fails.

    embedded: how many. failed: why it gave nothing more.
    """

    def __init__(self, spaces: Spaces, embedding: Embedding, deadline: Instant) -> None:
        self.spaces = spaces
        self.embedding = embedding
        self._clock = spaces.clock
        self._deadline = deadline
        self.embedded = 0
        self.failed: Degraded | None = None

    @property
    def on_time(self) -> bool:
        """Whether there is time, and an embedder that answers."""
        return self.failed is None and self._clock.now() < self._deadline

    def entries(self, texts: Sequence[Text]) -> Iterator[tuple[str, Entry]]:
        """The vectors of texts, as far as it goes."""
        np = self.embedding.np
        for start in range(0, len(texts), AT_ONCE):
            if not self.on_time:
                return
            portion = texts[start : start + AT_ONCE]
            try:
                vectors = self.embedding.passages([one.text for one in portion], self._deadline)
            except EmbedderFault as fault:
                self.failed = reason_of(fault)
                return
            self.embedded += len(portion)
            found, says = quantize(np, vectors), vectors.any(axis=1)
            for row, one in enumerate(portion):
                numbers = found.rows[row].tobytes() if says[row] else b""
                yield one.id, (one.print, float(found.scales[row]), numbers)


class Builder:
    """Builds the vectors of segments."""

    def __init__(self, texts: Texts, entropy: Entropy, target: Target) -> None:
        self.texts = texts
        self.spaces = texts.spaces
        self.embedding = texts.embedding
        self._np = texts.embedding.np
        self._entropy = entropy
        self._target = target
        self._fence = Fence(texts.spaces, target)
        self._packed: dict[str, Entry] | None = None

    def have(self, refs: Sequence[SegmentRef]) -> list[bool]:
        """Which segments have their vectors; damaged ones are removed."""
        keys = [vector_key(ref.key, self.embedding.model) for ref in refs]
        bodies = self.spaces.objects.get_many([(key, 0, HEADER_BYTES) for key in keys]) if keys else []
        wanted = [body is not None and self._fits(body, ref) for body, ref in zip(bodies, refs, strict=True)]
        damaged = [
            key for key, body, fits in zip(keys, bodies, wanted, strict=True) if body is not None and not fits
        ]
        if damaged:
            self.spaces.objects.delete(damaged)
        return wanted

    def _fits(self, body: bytes, ref: SegmentRef) -> bool:
        try:
            header = decode_header(body)
        except Unreadable:
            return False
        return (header.dimension, header.segment) == (self.embedding.dimension, ref.digest)

    def build(self, segment: Segment, earlier: Sequence[SegmentRef]) -> bool:
        """Build and store a segment's vectors; False if there was not enough time, and a part is stored.

        Args:
            segment: as the base has it.
            earlier: segments that may have vectors of the same texts.
        """
        texts = list(self._of(segment))
        known = self._known(segment, earlier, {one.id for one in texts})
        entries = {one.id: known[one.id] for one in texts if known.get(one.id, _NONE)[0] == one.print}
        lacking = [one for one in texts if one.id not in entries]
        fresh = dict(self.texts.entries(lacking))
        if len(fresh) < len(lacking):
            made = [one for one in lacking if one.id in fresh]
            if made:
                suffix = self._entropy.token(6).hex()
                key = vector_part_key(segment.ref.key, self.embedding.model, suffix)
                self._fence.object(key, self._encoded(segment.ref, made, fresh))
            return False
        body = self._encoded(segment.ref, texts, entries | fresh)
        self._fence.object(vector_key(segment.ref.key, self.embedding.model), body)
        self.spaces.objects.delete(self._parts(segment.ref))
        return True

    def _of(self, segment: Segment) -> Iterator[Text]:
        seed, state = seed_of(self._target.state), self._target.state
        for ordinal, element in enumerate(segment.elements()):
            if element.id[0] in WORDED:
                text = wording(element, state)
                if text:
                    yield Text(element.id, text, fingerprint(text, seed), ordinal)

    def _encoded(self, ref: SegmentRef, texts: Sequence[Text], entries: Mapping[str, Entry]) -> bytes:
        np = self._np
        told = [one for one in texts if entries[one.id][2]]
        rows = np.frombuffer(b"".join(entries[one.id][2] for one in told), dtype=np.int8)
        found = Quantized(
            np.asarray([entries[one.id][1] for one in told], dtype=np.float32),
            rows.reshape(len(told), self.embedding.dimension),
        )
        source = Source(self.embedding.model, ref.digest)
        ordinals, prints = [one.ordinal for one in told], [one.print for one in told]
        return encode_sidecar(np, source, ordinals, prints, found)

    # --- what can be taken over

    def _known(self, segment: Segment, earlier: Sequence[SegmentRef], wanted: set[str]) -> dict[str, Entry]:
        """Vectors of a segment's elements that are stored somewhere: in rows, beside older segments, in parts."""
        found = {one: entry for one, entry in self.packed().items() if one in wanted}
        ref = segment.ref
        for other in earlier:
            if other.key != ref.key and other.first <= ref.last and ref.first <= other.last:
                key = vector_key(other.key, self.embedding.model)
                found.update(self._beside(key, other, wanted.difference(found)))
        for key in self._parts(ref):
            found.update(self._beside(key, ref, wanted))
        return found

    def _parts(self, ref: SegmentRef) -> list[str]:
        prefix = vector_part_key(ref.key, self.embedding.model, "")
        return [key for key, _, _ in self.spaces.objects.list(prefix)]

    def _beside(self, key: str, ref: SegmentRef, wanted: set[str]) -> Iterator[tuple[str, Entry]]:
        body = self.spaces.objects.get(key) if wanted else None
        if body is None:
            return
        try:
            sidecar: Sidecar = decode_sidecar(self._np, body)
        except Unreadable:
            return
        if sidecar.header.dimension != self.embedding.dimension or sidecar.prints is None:
            return
        column = Segment(ref, self.spaces.pieces).ids()
        for row, ordinal in enumerate(sidecar.ordinals):
            element_id = id_of(column, int(ordinal))
            if element_id in wanted:
                numbers = sidecar.rows[row].tobytes()
                yield element_id, (int(sidecar.prints[row]), float(sidecar.scales[row]), numbers)

    def packed(self) -> dict[str, Entry]:
        """What rows hold of the newest commits; read once."""
        if self._packed is None:
            self._packed = {}
            pk = space_pk(self._target.space_id)
            packs = vector_rows(self.embedding.model, -1, self._target.head.ver)
            for _, row in rows_between(self.spaces.table, pk, *packs, page=_PAGE):
                body = row["body"]
                assert isinstance(body, bytes)
                self._packed.update(entries_of(self._np, body))
        return self._packed


def vectors_beside(spaces: Spaces, space_id: str) -> Iterator[tuple[str, Instant]]:
    """The keys of all vectors beside segments of a space, of whatever model, and when they were written."""
    for key, at, _ in spaces.objects.list(segment_prefix(space_id)):
        if vector_segment(key) is not None:
            yield key, at


_NONE: Final[Entry] = (-1, 0.0, b"")
