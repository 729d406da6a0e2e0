"""Embedding: texts into arrays of vectors that are known to be what they should be.

What lives here: the checks that stand between an embedder and the index, and the last questions' vectors. What
must never live here: a provider (`infra.embedders`), and what the vectors are for. An answer of another count or
dimension, or with something in it that is no number, never gets further than this.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

from core.model.instants import Instant
from core.ports import (
    Embedder,
    EmbedderFault,
    EmbedderGarbled,
    EmbedderRefused,
    EmbedderUnavailable,
    EmbedKind,
)
from core.search.dense import Arrays, Degraded

_QUESTIONS: Final = 256  # whose vectors are kept: the same is asked again and again
_TINY: Final = 1e-9


class Embedding:
    """An embedder, checked. Safe to share between threads.

    Args:
        embedder: the provider's.
        arrays: gives numpy.
    """

    def __init__(self, embedder: Embedder, arrays: Arrays) -> None:
        self.np = arrays
        self.model = embedder.model
        self.dimension = embedder.dimension
        self.local = embedder.local
        self._embedder = embedder
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = Lock()

    def passages(self, texts: Sequence[str], deadline: Instant) -> Any:
        """Vectors of what is remembered: float32, of length 1, a row each; zeros for a text that says nothing.

        Raises:
            EmbedderFault: the embedder failed, or what it gave is not what it should be.
        """
        return self._embed(texts, "passage", deadline)

    def questions(self, texts: Sequence[str], deadline: Instant) -> Any:
        """Vectors of what is asked, as `passages`."""
        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        asked = [text for text in dict.fromkeys(texts) if text not in known]
        if asked:
            known |= dict(zip(asked, self._embed(asked, "query", deadline), strict=True))
            with self._lock:
                self._kept.update((text, known[text]) for text in asked)
                while len(self._kept) > _QUESTIONS:
                    self._kept.popitem(last=False)
        return self.np.stack([known[text] for text in texts])

    def _embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Any:
        """Each distinct text once, checked and brought to length 1."""
        np = self.np
        places: dict[str, int] = {}
        for text in texts:
            places.setdefault(text, len(places))
        try:
            answer = self._embedder.embed(list(places), kind, deadline)
            found = np.asarray(answer, dtype=np.float32)
        except EmbedderFault:
            raise
        except (TypeError, ValueError) as fault:
            raise EmbedderGarbled("the embedder's answer is not an array of numbers") from fault
        if found.shape != (len(places), self.dimension):
            wanted = f"{len(places)} vectors of {self.dimension} numbers"
            raise EmbedderGarbled(f"the embedder gave an array of shape {found.shape} for {wanted}")
        if not np.isfinite(found).all():
            raise EmbedderGarbled("the embedder's answer has something in it that is no number")
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit = np.where(lengths > _TINY, found / np.maximum(lengths, _TINY), np.float32(0))
        return unit[[places[text] for text in texts]]


def embedding_of(embedder: Embedder | None, arrays: Callable[[], Arrays | None]) -> Embedding | Degraded:
    """The embedder ready for use, or why there is none."""
    if embedder is None:
        return "no_embedder"
    np = arrays()
    return "no_arrays" if np is None else Embedding(embedder, np)


def reason_of(fault: EmbedderFault) -> Degraded:
    """What a fault is called where an answer says why it does not cover everything."""
    if isinstance(fault, EmbedderUnavailable):
        return "embedder_unavailable"
    return "embedder_refused" if isinstance(fault, EmbedderRefused) else "embedder_garbled"
