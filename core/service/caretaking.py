"""Caretaking: which spaces want upkeep, and what is done for one of them.

What lives here: the order of upkeep for one space, and the slow round over all spaces that finds what nobody
hinted at (an erasure whose run died or that a purge still owes, a log that nobody folded). What must never live here: the upkeep itself
(`core.service.upkeep`, `core.service.erasure`). Everything is safe to run again and at the same time as itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.instants import Instant
from core.ports import Entropy, Put, Queue, Table
from core.service.bodies import collect_bodies
from core.service.erasure import Erasures
from core.service.faults import reading
from core.service.hints import UPKEEP, send_hint
from core.service.owed import OWED, settle
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep, due
from core.service.vector_upkeep import Indexed, VectorUpkeep
from core.storage.layout import DUE_PK, ROUND_SK

ROUND: Final = 100  # spaces that one tick looks at: one small read each
EMBED_MS: Final = 60_000  # of one turn, where nobody says how long
_FOLDS: Final = 8  # compactions in one go; a longer log waits for the next hint


class Tended(msgspec.Struct, frozen=True):
    """What was done for a space."""

    erased: bool = False
    compactions: int = 0
    indexed: Indexed = Indexed()


class Caretaking:
    """Upkeep of all spaces, as the worker and the tick ask for it."""

    def __init__(
        self,
        table: Table,
        queue: Queue,
        entropy: Entropy,
        *,
        spaces: Spaces,
        upkeep: Upkeep,
        erasures: Erasures,
        vectors: VectorUpkeep | None = None,
        wind: Callable[[str], object] | None = None,
    ) -> None:
        self._table = table
        self._queue = queue
        self._entropy = entropy
        self._spaces = spaces
        self._upkeep = upkeep
        self._erasures = erasures
        self._vectors = vectors
        self._wind = wind  # gives a space that never formed a conversation the clock of maintenance

    def tend(self, space_id: str, deadline: Instant | None = None) -> Tended:
        """Finish erasures that were left or are owed, fold the log if it is due, embed, and clear what is not needed.

        Args:
            space_id: the space.
            deadline: until when texts may be embedded (ms); by default a minute.

        Raises:
            NoemaError: the store failed, or the space is gone; a later run starts over.
        """
        owner = self._entropy.token(12).hex()
        erased = self._erasures.resume(space_id, owner) is not None
        erased = bool(settle(self._spaces, self._erasures, space_id, owner)) or erased
        compactions = 0
        while compactions < _FOLDS and due(self._spaces.head(space_id), self._spaces.clock.now()):
            if self._upkeep.compact(space_id, owner) is None:
                break
            compactions += 1
        indexed = Indexed()
        if self._vectors is not None:
            until = self._spaces.clock.now() + EMBED_MS if deadline is None else deadline
            indexed = self._vectors.index(space_id, deadline=until)
        if compactions:
            self._upkeep.thin_manifests(space_id)
            self._upkeep.collect_garbage(space_id)
            collect_bodies(self._spaces, space_id)
        return Tended(erased=erased, compactions=compactions, indexed=indexed)

    def round(self, limit: int = ROUND) -> list[str]:
        """Look at the next spaces of the directory and hint for those that want upkeep; returns these.

        Where the round stands is a row, so that ticks go on where the last one ended. Two ticks at once look at
        the same spaces, which does no harm.
        """
        with reading():
            row = self._table.get(DUE_PK, ROUND_SK) or {}
            page = self._spaces.ids(str(row.get("after", "")), limit)
            found = [space_id for space_id in page if self._wants(space_id)]
            self._wind_clocks(page)
            for space_id in found:
                send_hint(self._queue, self._entropy, space_id, UPKEEP)
            after = page[-1] if len(page) == limit else ""
            self._table.transact([Put(DUE_PK, ROUND_SK, {"after": after})])
        return found

    def _wind_clocks(self, page: list[str]) -> None:
        for space_id in page:
            if self._wind is not None:
                with suppress(NoemaError):  # listed, and gone since
                    self._wind(space_id)

    def _wants(self, space_id: str) -> bool:
        try:
            head = self._spaces.read_head(space_id, deleted=True)
        except NoemaError:
            return False  # listed, and gone since
        owes = head.state == "active" and bool(head.number(OWED))
        if owes or head.state == "purging" or due(head, self._spaces.clock.now()):
            return True
        return self._vectors is not None and self._vectors.lags(space_id, head)
