"""One dense search: the vectors of a state's segments and layers, read as far as a question needs them.

What lives here: where vectors are found, and the comparison. What must never live here: writing any.

* Segments have their vectors in an object beside them (`core.storage.vectors`). Up to `EXACT_BYTES` everything is
  read and compared exactly; in a larger memory only one bit a number is, and the nearest of those exactly.
* The newest commits: a local embedder embeds what nobody has, up to `MAX_FRESH` texts a question; another one's
  vectors stand in rows that the worker wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from core.model.ids import sort_key
from core.model.instants import Instant
from core.ports import EmbedderFault
from core.search.dense import Coverage, Degraded, Dense, Scored
from core.search.wording import WORDED, fingerprint, wording
from core.service.embedding import Embedding, reason_of
from core.service.rows import rows_between
from core.service.spaces import Spaces
from core.state.layer import Layer
from core.state.view import View
from core.storage.codec import Unreadable
from core.storage.layout import (
    space_pk,
    space_prefix,
    vector_key,
    vector_rows,
)
from core.storage.segment import ID_WIDTH, Segment, SegmentRef, id_of
from core.storage.vectors import (
    Quantized,
    Sidecar,
    decode_pack,
    decode_sidecar,
    quantize,
    rows_at,
    size_of,
    stack_of,
)

EXACT_BYTES: Final = 48 * 1024 * 1024  # what one question reads at most of a memory that is compared exactly
SIGNS_BYTES: Final = 48 * 1024 * 1024  # and of the signs of a larger one; what is older is not compared
NEAREST: Final = 128  # of a larger one: how many are compared exactly
MAX_FRESH: Final = 4096  # texts that one question has embedded
_CHUNK: Final = 1024  # rows turned into floats at once: so few that no library calls other threads for them
_PAGE: Final = 16  # rows of one table query: some megabytes
_ENTRY_BYTES: Final = 400  # of a kept vector, without its numbers
_SIGN_SHARE: Final = math.sqrt(2 / math.pi)  # what the signs of a vector's numbers keep of it

Entry = tuple[int, float, bytes]  # of one text: its fingerprint, its scale, its numbers


class Body(msgspec.Struct, frozen=True):
    """The vectors of one layer. replaced: elements of the segments below that it says something newer of.

    missing: how many texts have none.
    """

    ids: tuple[str, ...]
    rows: dict[str, int]
    letters: Any
    found: Quantized
    replaced: tuple[str, ...]
    missing: int


Keep = Callable[[Layer, Callable[[Layer], Body]], Body]


class Part(msgspec.Struct, frozen=True):
    """Some rows, compared. scores: one column for each question."""

    scores: Any
    letters: Any
    id_of: Callable[[int], str]
    row_of: Callable[[str], int | None]


class Search:
    """One search over one state.

    Args:
        spaces: where pieces of segments are read and kept.
        embedding: the embedder.
        view: what is searched.
        keep: keeps what was made of a layer that changes no more.
        deadline: when to give up embedding (ms).
    """

    def __init__(
        self, spaces: Spaces, embedding: Embedding, view: View, keep: Keep, deadline: Instant
    ) -> None:
        self._spaces = spaces
        self._embedding = embedding
        self._np = embedding.np
        self._view = view
        self._stack = stack_of(view)
        self._keep = keep
        self._deadline = deadline
        self._why: Degraded = "lagging"
        self._fresh = MAX_FRESH
        self._packs: dict[str, Entry] | None = None
        self._packed_seq = 0
        meta = None if self._stack.state is None else self._stack.state.meta
        self._space = "" if meta is None else meta.space_id
        self._seed = seed_of(self._stack.state)

    def compare(self, questions: Any) -> list[Dense]:
        """What lies how near to each question (a row each)."""
        bodies = self._bodies()
        missing = sum(body.missing for body in bodies)
        found, exact, whole = self._sidecars()
        hidden = {element for body in bodies for element in body.replaced}
        parts = self._layer_parts(bodies, questions)
        segments = [self._segment_part(segment, sidecar, questions, hidden) for segment, sidecar in found]
        if not exact:
            self._sharpen(found, segments, questions)
        parts += segments
        old: Degraded | None = None if whole else "partly_indexed" if found else "not_indexed"
        coverage = Coverage(
            model=self._embedding.model,
            vectors=sum(len(part.letters) for part in parts),
            missing=missing,
            index_seq=self._index_seq(missing) if whole else 0,
            state_seq=0 if self._stack.state is None else self._stack.state.seq,
            degraded=old or (self._why if missing else None),
            bounded=not exact,
        )
        return [
            Dense(
                coverage,
                [Scored(part.scores[:, place], part.letters, part.id_of, part.row_of) for part in parts],
                self._np,
            )
            for place in range(len(questions))
        ]

    def _index_seq(self, missing: int) -> int:
        """Up to which `space_seq` everything was compared, where the segments were."""
        if not missing:
            return 0 if self._stack.state is None else self._stack.state.seq
        base = 0 if self._stack.base is None else self._stack.base.manifest.seq
        return max(base, self._packed_seq)

    # --- layers

    def _bodies(self) -> list[Body]:
        """The vectors of all layers, topmost first. A layer that may still be written to is never kept."""
        own = [self._make(layer) for layer in self._stack.own]
        return own + [self._keep(layer, self._make) for layer in self._stack.tail]

    def _make(self, layer: Layer) -> Body:
        np = self._np
        texts = {
            element_id: text
            for element_id, element in layer.elements.items()
            if element_id[0] in WORDED and element is not None and (text := wording(element, self._view))
        }
        entries = self._entries(texts)
        ids = tuple(element_id for element_id in texts if entries.get(element_id, _NONE)[2])
        rows = np.frombuffer(b"".join(entries[one][2] for one in ids), dtype=np.int8)
        return Body(
            ids=ids,
            rows={element_id: row for row, element_id in enumerate(ids)},
            letters=np.frombuffer("".join(one[0] for one in ids).encode("ascii"), dtype=np.uint8),
            found=Quantized(
                np.asarray([entries[one][1] for one in ids], dtype=np.float32),
                rows.reshape(len(ids), self._embedding.dimension),
            ),
            replaced=tuple(self._below(layer.elements)),
            missing=len(texts) - len(entries),
        )

    def _below(self, elements: Iterable[str]) -> Iterable[str]:
        """Those that the segments may have."""
        base = self._stack.base
        if base is not None and base.segments:
            last = base.segments[-1].ref.last
            yield from (one for one in elements if one[0] in WORDED and sort_key(one) <= last)

    def _entries(self, texts: Mapping[str, str]) -> dict[str, Entry]:
        """The vectors of some elements' texts: those kept, those stored, those embedded now."""
        held, place = self._spaces.pieces.held, f"{space_prefix(self._space)}v/{self._embedding.model}"
        prints = {element_id: fingerprint(text, self._seed) for element_id, text in texts.items()}
        out: dict[str, Entry] = {}
        for element_id, told in prints.items():
            entry = held((place, element_id)) or self._stored().get(element_id)
            if entry is not None and entry[0] == told:
                out[element_id] = entry
        lacking = [one for one in texts if one not in out]
        if lacking and self._embedding.local and self._fresh > 0:
            lacking = lacking[: self._fresh]
            self._fresh -= len(lacking)
            fresh = self._embedded([texts[one] for one in lacking])
            for element_id, (scale, row) in zip(lacking, fresh, strict=False):
                entry = out[element_id] = (prints[element_id], scale, row)
                self._spaces.pieces.hold((place, element_id), entry, _ENTRY_BYTES + len(row))
        return out

    def _embedded(self, texts: list[str]) -> list[tuple[float, bytes]]:
        """Scale and numbers of each text; nothing if the embedder fails, which is then said."""
        try:
            vectors = self._embedding.passages(texts, self._deadline)
        except EmbedderFault as fault:
            self._why, self._fresh = reason_of(fault), 0
            return []
        found, says = quantize(self._np, vectors), vectors.any(axis=1)
        return [
            (float(found.scales[row]), found.rows[row].tobytes() if says[row] else b"")
            for row in range(len(texts))
        ]

    def _stored(self) -> dict[str, Entry]:
        """What the worker stored of the newest commits; read once."""
        if self._packs is None:
            self._packs = {}
            if self._stack.state is not None and not self._embedding.local:
                self._read_packs(self._stack.state.ver)
        return self._packs

    def _read_packs(self, ver: int) -> None:
        assert self._packs is not None
        base = 0 if self._stack.base is None else self._stack.base.manifest.ver
        covered = base
        packs = vector_rows(self._embedding.model, base, ver)
        for _, row in rows_between(self._spaces.table, space_pk(self._space), *packs, page=_PAGE):
            body, since, until, seq = row["body"], row["first"], row["last"], row["seq"]
            assert isinstance(body, bytes) and isinstance(since, int)  # noqa: PT018
            assert isinstance(until, int) and isinstance(seq, int)  # noqa: PT018
            self._packs.update(entries_of(self._np, body))
            if since <= covered + 1 or until == covered:
                covered, self._packed_seq = max(covered, until), max(self._packed_seq, seq)

    def _layer_parts(self, bodies: list[Body], questions: Any) -> list[Part]:
        np, parts, newer = self._np, [], set[str]()
        layers = (*self._stack.own, *self._stack.tail)
        for layer, body in zip(layers, bodies, strict=True):
            scores = exact_scores(np, body.found, questions)
            for element_id in newer.intersection(body.rows):
                scores[body.rows[element_id]] = np.nan
            parts.append(Part(scores, body.letters, body.ids.__getitem__, body.rows.get))
            newer.update(layer.elements)
        return parts

    # --- segments

    def _sidecars(self) -> tuple[list[tuple[Segment, Sidecar]], bool, bool]:
        """The segments that have vectors, with them; whether the rows were read; whether none is missing."""
        base = self._stack.base
        segments = [] if base is None else [segment for segment in base.segments if worded(segment.ref)]
        dimension = self._embedding.dimension
        sizes = [size_of(worded(segment.ref), dimension, rows=True) for segment in segments]
        exact = sum(sizes) <= EXACT_BYTES
        if not exact:
            sizes = [size_of(worded(segment.ref), dimension, rows=False) for segment in segments]
        taken, size = len(segments), 0
        while taken and size + sizes[taken - 1] <= (EXACT_BYTES if exact else SIGNS_BYTES):
            taken -= 1
            size += sizes[taken]
        read = self._read(segments[taken:], sizes[taken:], "rows" if exact else "signs")
        found = [
            (segment, sidecar) for segment, sidecar in zip(segments[taken:], read, strict=True) if sidecar
        ]
        return found, exact, len(found) == len(segments)

    def _read(self, segments: list[Segment], sizes: list[int], what: str) -> list[Sidecar | None]:
        pieces = self._spaces.pieces
        keys = [vector_key(segment.ref.key, self._embedding.model) for segment in segments]
        held: list[Sidecar | None] = [pieces.held((key, what)) for key in keys]
        lacking = [place for place, sidecar in enumerate(held) if sidecar is None]
        ranges = [(keys[place], 0, sizes[place]) for place in lacking]
        bodies = self._spaces.objects.get_many(ranges) if ranges else []
        for place, body in zip(lacking, bodies, strict=True):
            sidecar = None if body is None else self._decoded(body, segments[place].ref)
            if sidecar is not None:
                pieces.hold((keys[place], what), sidecar, sidecar.cost)
                held[place] = sidecar
        return held

    def _decoded(self, body: bytes, ref: SegmentRef) -> Sidecar | None:
        """What was read, if it is what it should be; damaged vectors are as good as none, and built again."""
        try:
            sidecar = decode_sidecar(self._np, body)
        except Unreadable:
            return None
        header = sidecar.header
        fits = (header.model, header.dimension, header.segment) == (
            self._embedding.model,
            self._embedding.dimension,
            ref.digest,
        )
        return sidecar if fits else None

    def _segment_part(self, segment: Segment, sidecar: Sidecar, questions: Any, hidden: set[str]) -> Part:
        np = self._np
        column = segment.ids()
        if sidecar.rows is None:
            scores = signed_scores(np, sidecar.signs, questions)
        else:
            scores = exact_scores(np, Quantized(sidecar.scales, sidecar.rows), questions)
        letters = np.frombuffer(column, dtype=np.uint8).reshape(-1, ID_WIDTH)[sidecar.ordinals, ID_WIDTH - 1]

        def id_at(row: int) -> str:
            return id_of(column, int(sidecar.ordinals[row]))

        def row_of(element_id: str) -> int | None:
            if not segment.ref.first <= sort_key(element_id) <= segment.ref.last:
                return None
            ordinal = segment.ordinal(element_id)
            row = (
                len(sidecar.ordinals) if ordinal is None else int(np.searchsorted(sidecar.ordinals, ordinal))
            )
            return row if row < len(sidecar.ordinals) and sidecar.ordinals[row] == ordinal else None

        for element_id in hidden:
            row = row_of(element_id)
            if row is not None:
                scores[row] = np.nan
        return Part(scores, letters, id_at, row_of)

    def _sharpen(self, found: list[tuple[Segment, Sidecar]], parts: list[Part], questions: Any) -> None:
        """Compare the nearest by their signs exactly, and let no other one stand before them."""
        np = self._np
        if not parts:
            return
        starts = np.cumsum([0, *(len(part.letters) for part in parts)])
        for place, question in enumerate(questions):
            estimates = np.concatenate([part.scores[:, place] for part in parts])
            best = np.argsort(np.where(np.isnan(estimates), -np.inf, estimates))[::-1][:NEAREST]
            where = [(int(np.searchsorted(starts, one, side="right")) - 1, int(one)) for one in best]
            wanted = [(part, one - int(starts[part])) for part, one in where if not np.isnan(estimates[one])]
            exact = self._exactly(found, wanted, question)
            floor = min(exact, default=0.0)
            for part in parts:
                np.minimum(part.scores[:, place], np.float32(floor), out=part.scores[:, place])
            for (part_at, row), score in zip(wanted, exact, strict=True):
                parts[part_at].scores[row, place] = score

    def _exactly(
        self, found: list[tuple[Segment, Sidecar]], wanted: list[tuple[int, int]], question: Any
    ) -> list[float]:
        """The similarities of single rows, each read by itself."""
        np, pieces = self._np, self._spaces.pieces
        places = [
            (vector_key(found[part][0].ref.key, self._embedding.model), found[part][1], row)
            for part, row in wanted
        ]
        lacking = [one for one in places if pieces.held((one[0], f"row {one[2]}")) is None]
        bodies = self._spaces.objects.get_many(
            [(key, *rows_at(sidecar.header, row, 1)) for key, sidecar, row in lacking]
        )
        read = dict(zip([(key, row) for key, _, row in lacking], bodies, strict=True))
        out = []
        for key, sidecar, row in places:
            body = pieces.held((key, f"row {row}")) or read.get((key, row)) or b""
            if len(body) == self._embedding.dimension:
                pieces.hold((key, f"row {row}"), body, _ENTRY_BYTES)
                numbers = np.frombuffer(body, dtype=np.int8).astype(np.float32)
                out.append(float(numbers @ question) * float(sidecar.scales[row]))
            else:  # the object was replaced meanwhile; its estimate must do
                out.append(0.0)
        return out


_NONE: Final[Entry] = (0, 0.0, b"")


def seed_of(state: Any) -> bytes:  # a SpaceState or None
    """What keys the fingerprints of a space's texts: of this life of the space and no other."""
    return b"" if state is None else f"{state.meta.instance}{state.meta.salt}".encode()


def worded(ref: SegmentRef) -> int:
    """At most how many elements of a segment have a vector."""
    return ref.count - ref.counts.assertion


def entries_of(np: Any, body: bytes) -> dict[str, Entry]:
    """The vectors in a pack by their elements; none of a damaged one, which counts as not there."""
    try:
        pack, prints, found = decode_pack(np, body)
    except Unreadable:
        return {}
    return {
        element_id: (int(prints[row]), float(found.scales[row]), found.rows[row].tobytes())
        for row, element_id in enumerate(pack.ids)
    }


def exact_scores(np: Any, found: Quantized, questions: Any) -> Any:
    """Similarities: a row each, a column for each question."""
    out = np.empty((len(found), len(questions)), dtype=np.float32)
    for start in range(0, len(found), _CHUNK):
        rows = found.rows[start : start + _CHUNK].astype(np.float32)
        out[start : start + _CHUNK] = rows @ questions.T
    out *= found.scales[:, None]
    return out


def signed_scores(np: Any, signs: Any, questions: Any) -> Any:
    """What the signs alone say of the similarities: eight numbers at once, out of a table for each question."""
    count, width = signs.shape
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
    out = np.zeros((count, len(questions)), dtype=np.float32)
    for place, question in enumerate(questions):
        padded = np.zeros(8 * width, dtype=np.float32)
        padded[: len(question)] = question
        tables = padded.reshape(width, 8) @ bits.T
        for at in range(width):
            out[:, place] += tables[at][signs[:, at]]
        out[:, place] *= _SIGN_SHARE / math.sqrt(len(question))
    return out
