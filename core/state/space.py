"""`SpaceState`: one space at one version of its log, immutable; and the fold that leads from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.model.elements import AnyElement
from core.model.ids import Kind
from core.model.instants import Instant
from core.model.log import Delta, SpaceMeta
from core.state.layer import Empty, Layer
from core.state.memo import Memo
from core.state.view import Counts, TextStats, View


class SpaceState:
    """What a space remembers after commit `ver`. Implements `View`.

    ver: the log version; seq: the KIP `space_seq`; at: when that commit was made (ms); meta: protected state.
    `tail` is the topmost of the layers that lie over the segments; `memo` keeps what was derived from this state.
    """

    __slots__ = ("at", "memo", "meta", "seq", "tail", "ver")

    def __init__(self, *, meta: SpaceMeta, ver: int, seq: int, at: Instant, tail: Layer) -> None:
        self.meta = meta
        self.ver = ver
        self.seq = seq
        self.at = at
        self.tail = tail
        self.memo = Memo()

    @staticmethod
    def on(below: View, *, meta: SpaceMeta, ver: int, seq: int, at: Instant) -> SpaceState:
        """The state that is exactly `below`, with nothing newer."""
        return SpaceState(meta=meta, ver=ver, seq=seq, at=at, tail=Layer(below))

    def apply(self, *deltas: Delta) -> SpaceState:
        """The state after these commits, which must follow this one without a gap.

        Raises:
            ValueError: a delta does not continue the log; the caller must load again.
        """
        if not deltas:
            return self
        tail = Layer(self.tail)
        meta, ver = self.meta, self.ver
        for delta in deltas:
            if delta.ver != ver + 1:
                raise ValueError(f"commit {delta.ver} does not follow {ver}")
            ver = delta.ver
            meta = delta.meta or meta
            for element in delta.puts:
                tail.put(element)
            for gone in delta.gone:
                tail.drop(gone)
        return SpaceState(meta=meta, ver=ver, seq=deltas[-1].seq, at=deltas[-1].at, tail=tail.settle())

    # --- View, through the tail

    @property
    def counts(self) -> Counts:
        """Elements by kind."""
        return self.tail.counts

    @property
    def text_stats(self) -> TextStats:
        """Size of the text index."""
        return self.tail.text_stats

    def get(self, element_id: str) -> AnyElement | None:
        """The element, or None."""
        return self.tail.get(element_id)

    def find(self, key: str) -> Sequence[str]:
        """Ids under an index key, in order of creation."""
        return self.tail.find(key)

    def count(self, key: str) -> int:
        """An upper bound of what `find` returns."""
        return self.tail.count(key)

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        """Every id of a kind, lazily."""
        return self.tail.ids(kind, after)

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Elements whose text has a term."""
        return self.tail.word(term)

    def text_length(self, element_id: str) -> int:
        """How many terms an element's text has."""
        return self.tail.text_length(element_id)


def genesis(delta: Delta) -> SpaceState:
    """The state after a space's first commit, which must carry its protected state.

    The first version is 1, or higher where the space id had an earlier life: versions are never used twice.
    """
    if delta.meta is None:
        raise ValueError("a log begins with the space's protected state")
    empty = SpaceState.on(Empty(), meta=delta.meta, ver=delta.ver - 1, seq=0, at=delta.at)
    return empty.apply(delta)
