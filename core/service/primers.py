"""Primers: the map of a space that a model is shown first, made seldom and kept.

What lives here: the cache, and what of DESCRIBE PRIMER a model that answers needs. What must never live here: how a
primer is made (`core.meta.primer`). A primer is kept for a while under the schema it describes and the caller who may
see it; its counts may be a few minutes old, and an erasure drops it.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from core.authority import Principal
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Clock
from core.protocol.request import Operation, Request
from core.service.kip import Kip
from core.state.space import SpaceState
from core.storage.head import Head

KEEP_MS: Final = 300_000  # contract §5.1
MAX_KEPT: Final = 256
MAKE_MS: Final = 5_000
_TOLD: Final = ("self", "schema", "map")
_Key = tuple[str | int | frozenset[str], ...]


class Primers:
    """Makes and keeps primers. Safe to share between threads."""

    def __init__(self, kip: Kip, clock: Clock) -> None:
        self._kip = kip
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[Instant, Json]] = OrderedDict()
        self._lock = Lock()

    def primer(self, head: Head, state: SpaceState, principal: Principal) -> Json:
        """The map of a space for a caller, or None where it cannot be made now: an answer does not fail for it."""
        now = self._clock.now()
        meta = state.meta
        seen = (principal.id, principal.hidden, principal.projected)
        allowed = "" if principal.access is None else principal.access.digest
        key: _Key = (meta.space_id, head.instance, head.pgen, meta.schema.version, allowed, *seen)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] + KEEP_MS > now:
            return kept[1]
        made = self._make(state.meta.space_id, principal, now + MAKE_MS)
        if made is not None:
            with self._lock:
                self._kept[key] = (now, made)
                self._kept.move_to_end(key)
                while len(self._kept) > MAX_KEPT:
                    self._kept.popitem(last=False)
        return made

    def _make(self, space_id: str, principal: Principal, until: Instant) -> Json:
        request = Request(kip="2.0", operations=(Operation(command="DESCRIBE PRIMER"),))
        response = self._kip.execute(space_id, request, principal, deadline=until, readonly=True)
        result = response.results[0].result if response.results else None
        if response.status != "succeeded" or not isinstance(result, dict):
            return None
        return {name: result[name] for name in _TOLD if result.get(name) is not None}
