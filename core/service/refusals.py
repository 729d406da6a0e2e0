"""Refusals: what the records of a space did not let through, counted beside its log (Governance §172-178).

What lives here: one small row for each day, principal, permission and code, with how often and when. What must never
live here: an entry in the log, which anybody with a bad credential could otherwise fill; what was asked about, which
the reader may not be allowed to know; and refusals that hide existence, which nothing tells from absence. The rows
are bounded by who can be admitted, and expire. A count that is lost is no error of the request.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.authority import Principal
from core.errors import NoemaError
from core.governance.control import control_of
from core.model.instants import Instant, format_instant
from core.ports import Clock, Row, StoreFault, Table, Update
from core.service.faults import reading
from core.service.spaces import Spaces
from core.storage.layout import following, refusal_rows, refusal_sk, space_pk

KEPT_MS: Final = 30 * 24 * 3600 * 1000
_DAY_MS: Final = 24 * 3600 * 1000
_LONGEST: Final = 256  # characters of a principal's name that are kept

REFUSED: Final = frozenset({
    "NotAuthorized", "RequiresApproval", "RequiresStrongerAuthentication", "ActorBindingRequired",
    "RetractionNotAuthorized", "ProjectionNotAuthorized",
})  # fmt: skip
"""Codes that say that somebody was refused; `NotFoundOrNotVisible` is none, since it may be true."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """How often a principal was refused for one reason on one day (UTC). permission: what would have been needed."""

    day: str
    principal: str
    channel: str
    code: str
    permission: str
    times: int
    last_at: str


class Refusals:
    """Counts refusals and lists them. Safe to share between threads."""

    def __init__(self, table: Table, spaces: Spaces, clock: Clock) -> None:
        self._table = table
        self._spaces = spaces
        self._clock = clock

    def note(self, space_id: str, principal: Principal, code: str, details: dict[str, Any] | None) -> None:
        """Count a refusal, if the space is governed. Best effort: it never fails what it counts."""
        if code not in REFUSED:
            return
        now = self._clock.now()
        named = (details or {}).get("permissions") or (details or {}).get("permission") or ""
        permission = named if isinstance(named, str) else ",".join(map(str, named))
        who = principal.id[:_LONGEST]
        told: Row = {
            "principal": who,
            "channel": principal.channel,
            "code": code,
            "permission": permission[:_LONGEST],
            "at": now,
            "ttl": (now + KEPT_MS) // 1000,
        }
        sk = refusal_sk(_day(now), who, principal.channel, code, permission)
        try:
            if control_of(self._spaces.load(space_id).meta) is not None:
                self._table.transact([Update(space_pk(space_id), sk, assign=told, add={"times": 1})])
        except (StoreFault, NoemaError):
            return

    def page(
        self, space_id: str, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[Refusal], str | None]:
        """Refusals of the days kept, oldest day first, and the cursor that goes on.

        Raises:
            NoemaError: `CursorMismatch`, `ServiceUnavailable`.
        """
        first, last = refusal_rows(_day(max(0, self._clock.now() - KEPT_MS)))
        start = first
        if cursor is not None:
            start = following(refusal_rows("")[0] + cursor)
            if not cursor.isascii() or len(cursor) > _LONGEST or not start <= last:
                raise NoemaError("CursorMismatch", "the cursor does not continue this list")
        with reading():
            rows = self._table.query(space_pk(space_id), max(first, start), last, limit=limit)
        found = [_refusal(sk, row) for sk, row in rows]
        return found, rows[-1][0].partition("#")[2] if len(rows) == limit else None


def _day(at: Instant) -> str:
    return format_instant(at - at % _DAY_MS)[:10]


def _refusal(sk: str, row: Row) -> Refusal:
    at, times = row.get("at"), row.get("times")
    return Refusal(
        day=sk.split("#")[1],
        principal=str(row.get("principal")),
        channel=str(row.get("channel")),
        code=str(row.get("code")),
        permission=str(row.get("permission") or ""),
        times=times if isinstance(times, int) else 0,
        last_at=format_instant(at if isinstance(at, int) else 0),
    )
