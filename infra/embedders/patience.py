"""Asking an embedder again: what is worth another try, and until when.

What lives here: the one loop of all services, and cutting many texts into what a service takes at once. What must
never live here: a wire. Waits are drawn at random up to a bound that doubles; none goes beyond the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from core.model.instants import Instant
from core.models.chat import PASSING, ModelFault
from core.ports import (
    Clock,
    EmbedderFault,
    EmbedderGarbled,
    EmbedderRefused,
    EmbedderUnavailable,
    Entropy,
)
from infra.models.patience import TRIES, wait_ms

Rows = Sequence[Sequence[float]]


class Repeater:
    """Repeats requests. Time and chance are its arguments."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def each(
        self, deadline: Instant, batches: Iterable[Sequence[str]], ask: Callable[[Sequence[str]], Rows]
    ) -> Rows:
        """The rows of all batches, one request after the other.

        Raises:
            EmbedderFault: the last fault of the batch that gave nothing.
        """
        return [row for batch in batches for row in self.rows(deadline, partial(ask, batch))]

    def rows(self, deadline: Instant, attempt: Callable[[], Rows]) -> Rows:
        """What the first attempt gives that gives something.

        Raises:
            EmbedderFault: the last fault.
        """
        tries = 0
        while True:
            if self._clock.now() >= deadline:
                raise EmbedderUnavailable("the embedder did not answer before the deadline")
            tries += 1
            try:
                return attempt()
            except ModelFault as fault:
                wait = wait_ms(fault, tries, self._entropy)
                if tries >= TRIES.get(fault.kind, 1) or self._clock.now() + wait >= deadline:
                    raise fault_of(fault) from fault
                self._clock.sleep(wait / 1000)


def fault_of(fault: ModelFault) -> EmbedderFault:
    """A fault of a request, as the port tells it; it quotes nothing that was sent or received."""
    if fault.kind == "bad_reply":
        return EmbedderGarbled(fault.message)
    return (EmbedderUnavailable if fault.kind in PASSING else EmbedderRefused)(fault.message)


def batches(texts: Sequence[str], most: int, most_chars: int) -> list[Sequence[str]]:
    """Texts in order, cut where a service takes no more at once; at least one in each."""
    out: list[list[str]] = []
    size = 0
    for text in texts:
        if not out or len(out[-1]) >= most or size + len(text) > most_chars:
            out.append([])
            size = 0
        out[-1].append(text)
        size += len(text)
    return list(out)


def rows_of(found: object, count: int) -> Rows:
    """A list of lists, as many as texts; what is in them is checked by whoever uses them.

    Raises:
        ModelFault: "bad_reply": it is none.
    """
    if not isinstance(found, list) or len(found) != count or not all(isinstance(row, list) for row in found):
        raise ModelFault("bad_reply", "the reply does not have a vector for each text")
    return found
