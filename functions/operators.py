"""What an operator asks of one space: how its upkeep stands, whether its log is whole, and history given up.

What lives here: two routes for managers, what they take and what they give. What must never live here: upkeep itself
(`core.service.upkeep`).
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from core.service.owed import OWED
from core.service.upkeep import Trimmed, due
from functions.bootstrap import Services
from functions.routing import Call, Route, Routes

DAY_MS: Final = 24 * 3600 * 1000


class UpkeepQuery(msgspec.Struct, frozen=True, kw_only=True):
    """verify: check every kept commit against its digest and the chain; reads the whole log."""

    verify: bool = False


class ChainView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The log from version `first` to `last`. broken: the first version that does not fit; absent if all do.

    redacted: commits whose bytes an erasure took; the chain holds over them.
    """

    intact: bool
    first: int
    last: int
    redacted: int
    broken: int | None = None


class UpkeepView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a space's upkeep stands. Versions count commits; times are Unix ms.

    version: of the newest commit, made at `at`. floor: the oldest version that AS OF can read. base: what segments
    hold; `log_commits` and `log_bytes` lie above it. due: whether they want folding. erasure_owed: whether bytes
    of a purge are still to go. facts_due_at: when facts are consolidated next; absent if there are none.
    """

    space_id: str
    state: str
    version: int
    at: int
    floor: int
    base: int
    log_commits: int
    log_bytes: int
    due: bool
    erasure_owed: bool
    facts_due_at: int | None = None
    chain: ChainView | None = None


class TrimHistoryInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """History older than `keep_days` is given up for good; the present stays as it is."""

    keep_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)]


def _upkeep(found: Services, call: Call) -> UpkeepView:
    head = found.spaces.head(call.space)
    chain = None
    if call.query.verify:
        seen = found.upkeep.verify_chain(call.space)
        chain = ChainView(intact=seen.broken is None, **msgspec.structs.asdict(seen))
    return UpkeepView(
        space_id=call.space,
        state=head.state,
        version=head.ver,
        at=head.at,
        floor=head.floor,
        base=head.base_ver,
        log_commits=head.log_n,
        log_bytes=head.log_bytes,
        due=due(head, found.clock.now()),
        erasure_owed=bool(head.number(OWED)),
        facts_due_at=found.fact_schedule.due(call.space),
        chain=chain,
    )


def _trim(found: Services, call: Call) -> Trimmed:
    found.spaces.head(call.space)  # raises if there is no such space
    return found.upkeep.trim_history(call.space, keep_ms=call.body.keep_days * DAY_MS)


ROUTES: Final[Routes] = {
    "space_upkeep": Route(
        admit="admin",
        summary="How a space's upkeep stands; with verify, whether its log is whole.",
        call=_upkeep,
        query=UpkeepQuery,
        response=UpkeepView,
    ),
    "trim_history": Route(
        admit="admin",
        summary="Give up a space's history older than some days, for good.",
        call=_trim,
        body=TrimHistoryInput,
        response=Trimmed,
    ),
}
"""Rows of the function that manages."""
