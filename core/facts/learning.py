"""Aliases learnt from use: a query that missed, and the next one that found, tell which words mean the same.

What lives here: the bookkeeping of misses and pairs, pure. What must never live here: promotion itself (a
consolidation does it; a read never writes the log). Off unless a space asks for it.

A weak match leaves its unknown words as the agent's one pending miss. If a strong match follows within half an
hour, each unknown word is paired with the known new word that shares its longest beginning, if that is long
enough. A pair seen twice, in two separate observations, becomes an alias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from core.facts.vocabulary import Match
from core.model.instants import Instant

MISS_MS: Final = 30 * 60 * 1000
PAIR_MS: Final = 30 * 24 * 3600 * 1000
THRESHOLD: Final = 2
MAX_PAIRS: Final = 500
SOURCE: Final = "usage"


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """An unknown word, the known one it seems to mean, how often that was seen, and when last."""

    unknown: str
    known: str
    seen: int
    at: Instant


class Learning(msgspec.Struct, frozen=True, array_like=True):
    """What is pending of one agent."""

    missed: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()  # the words of the query that missed
    missed_at: Instant = 0
    pairs: tuple[Pair, ...] = ()


def observe(learning: Learning, tokens: Sequence[str], match: Match, now: Instant, prefix: int) -> Learning:
    """What is pending after a query.

    Args:
        learning: what was pending before.
        tokens: of the query as it was asked, without aliases.
        match: how well its words are known.
        now: the time (ms).
        prefix: how many characters two words must share at their beginning.
    """
    if match.weak and match.unknown:
        return msgspec.structs.replace(
            learning, missed=match.unknown[:20], asked=tuple(tokens[:50]), missed_at=now
        )
    if not learning.missed or match.weak or now - learning.missed_at > MISS_MS:
        return learning
    fresh = [token for token in match.known if token not in learning.asked]
    pairs = {(pair.unknown, pair.known): pair for pair in learning.pairs if now - pair.at <= PAIR_MS}
    for unknown in learning.missed:
        known = max(fresh, key=lambda token: (_shared(unknown, token), token), default=None)
        if known is not None and _shared(unknown, known) >= prefix:
            before = pairs.get((unknown, known))
            pairs[unknown, known] = Pair(unknown, known, 1 if before is None else before.seen + 1, now)
    kept = sorted(pairs.values(), key=lambda pair: -pair.at)[:MAX_PAIRS]
    return Learning(pairs=tuple(kept))


def promotable(learning: Learning, now: Instant) -> list[Pair]:
    """The pairs that have become aliases, in order of their words."""
    ripe = (pair for pair in learning.pairs if pair.seen >= THRESHOLD and now - pair.at <= PAIR_MS)
    return sorted(ripe, key=lambda pair: (pair.unknown, pair.known))


def without(learning: Learning, promoted: Sequence[Pair]) -> Learning:
    """What is pending once these pairs are aliases."""
    done = {(pair.unknown, pair.known) for pair in promoted}
    left = tuple(pair for pair in learning.pairs if (pair.unknown, pair.known) not in done)
    return msgspec.structs.replace(learning, pairs=left)


def _shared(left: str, right: str) -> int:
    """How many characters two words share at their beginning."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
