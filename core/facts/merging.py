"""Merging: several rankings made into one. The arithmetic is fixed, and so is every tie.

What lives here: an agent's facts with the shared ones, and the queries of a batch. What must never live here:
ranking within one namespace (`ranking`).
"""

from __future__ import annotations

from collections.abc import Sequence

from core.facts.values import K


def merge_namespaces(own: Sequence[str], shared: Sequence[str], top_k: int) -> list[str]:
    """The texts of two rankings by the sum of 1 / (60 + rank), at most `top_k`.

    Ties: what the agent has before what only is shared, then by place in the agent's list, in the shared one, and
    by text.
    """
    own_ranks = _ranks(own)
    shared_ranks = _ranks(shared)
    last = len(own) + len(shared) + 1

    def order(text: str) -> tuple[float, bool, int, int, str]:
        ranks = [ranks[text] for ranks in (own_ranks, shared_ranks) if text in ranks]
        score = sum(1 / (K + place) for place in ranks)
        return (
            -score,
            text not in own_ranks,
            own_ranks.get(text, last),
            shared_ranks.get(text, last),
            text,
        )

    return sorted({*own, *shared}, key=order)[:top_k]


def merge_queries(results: Sequence[Sequence[str]]) -> list[str]:
    """The distinct texts of several queries' answers: the best rank first, then more queries, then first seen.

    Nothing is cut off: what one query found is in it.
    """
    best: dict[str, int] = {}
    hits: dict[str, int] = {}
    for texts in results:
        for text, place in _ranks(texts).items():
            best[text] = min(place, best.get(text, place))
            hits[text] = hits.get(text, 0) + 1
    seen = {text: place for place, text in enumerate(best)}
    return sorted(best, key=lambda text: (best[text], -hits[text], seen[text]))


def _ranks(texts: Sequence[str]) -> dict[str, int]:
    """The first place of each text, from 1."""
    out: dict[str, int] = {}
    for place, text in enumerate(texts, 1):
        out.setdefault(text, place)
    return out
