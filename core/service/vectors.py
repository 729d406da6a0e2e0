"""Dense search over durable spaces: one question compared with everything a state remembers.

What lives here: the entrance, and what is kept between questions. What must never live here: the comparison
(`core.service.vector_search`), building what is stored (`core.service.vector_upkeep`), the meaning of a score.

Whatever was not compared is said: `Dense.coverage`. Nothing is read for who does not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from weakref import WeakKeyDictionary

from core.model.instants import Instant
from core.ports import Embedder, EmbedderFault
from core.search.dense import Arrays, Coverage, Degraded, Dense, nothing
from core.service.embedding import Embedding, embedding_of, reason_of
from core.service.faults import reading
from core.service.spaces import Spaces
from core.service.vector_search import Body, Search
from core.state.layer import Layer
from core.state.view import View
from core.storage.vectors import stack_of


class Vectors:
    """Dense search. Safe to share between threads.

    Args:
        spaces: reads.
        embedder: the configured one; None for none.
        arrays: gives numpy, or None where it is not installed.
    """

    def __init__(
        self, spaces: Spaces, embedder: Embedder | None, arrays: Callable[[], Arrays | None]
    ) -> None:
        self._spaces = spaces
        self._embedder = embedder
        self._arrays = arrays
        self._embedding: Embedding | Degraded | None = None
        self._bodies: WeakKeyDictionary[Layer, Body] = WeakKeyDictionary()
        self._lock = Lock()

    @property
    def model(self) -> str | None:
        """The model whose vectors are searched; None without an embedder."""
        return None if self._embedder is None else self._embedder.model

    @property
    def embedding(self) -> Embedding | Degraded:
        """The embedder ready for use, or why there is none; numpy is loaded by the first who asks."""
        if self._embedding is None:
            self._embedding = embedding_of(self._embedder, self._arrays)
        return self._embedding

    def nearest(self, view: View, text: str, *, deadline: Instant) -> Dense:
        """How near a state's elements lie to a text.

        Args:
            view: a state, or layers over one.
            text: what is asked; cut it to what bears on the meaning first.
            deadline: when to give up embedding (ms).

        Raises:
            NoemaError: `ServiceUnavailable` if the store does not answer. An embedder that fails is `degraded`.
        """
        return self.nearest_each(view, [text], deadline=deadline)[0]

    def nearest_each(self, view: View, texts: Sequence[str], *, deadline: Instant) -> list[Dense]:
        """As `nearest` for several texts, which are embedded and compared together."""
        embedding, stack = self.embedding, stack_of(view)
        seq = 0 if stack.state is None else stack.state.seq
        if not isinstance(embedding, Embedding):
            return [nothing(Coverage(model=self.model, state_seq=seq, degraded=embedding))] * len(texts)
        try:
            questions = embedding.questions(texts, deadline)
        except EmbedderFault as fault:
            coverage = Coverage(model=embedding.model, state_seq=seq, degraded=reason_of(fault))
            return [nothing(coverage)] * len(texts)
        with reading():
            return Search(self._spaces, embedding, view, self._kept, deadline).compare(questions)

    def _kept(self, layer: Layer, make: Callable[[Layer], Body]) -> Body:
        """The vectors of a layer, made once and kept as long as it lives; those that lack some are made anew."""
        with self._lock:
            kept = self._bodies.get(layer)
        if kept is None or kept.missing:
            kept = make(layer)
            with self._lock:
                self._bodies[layer] = kept
        return kept
