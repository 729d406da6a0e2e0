"""What a query is run under, and what it gives back: values only.

What lives here: `QueryContext`, `Limits`, `QueryResult` and the values a variable can be bound to. What must never
live here: evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from core.epistemic.trust import TrustState
from core.model.elements import AnyElement, Json
from core.model.instants import Instant
from core.model.literals import Literal, Ref


class Edge(msgspec.Struct, frozen=True):
    """One structural reference as a query sees it: virtual, without identity or truth (KIP §43.7).

    `index` is the place in an ordered field; None in an unordered one, which has no order to show (KIP §17.4).
    """

    source: str
    field: str
    target: str
    ordinal: int  # tells several references of one source and field apart
    index: int | None = None
    role: str | None = None
    options: dict[str, Json] = {}


class Projected(msgspec.Struct, frozen=True):
    """A virtual belief or belief slot (KIP §46.2): `key` says of what, `value` is its JSON form."""

    key: str
    value: dict[str, Json]


Value = Ref | Literal | Edge | Projected | list[Any] | dict[str, Any] | None
"""What a variable is bound to: an element (`Ref`), a scalar (`Literal`), a list or object out of an open
attribute, a virtual object, or None where an OPTIONAL or another branch of a UNION left it without a match."""

Bindings = dict[str, Value]
"""One solution of a WHERE block: variable name without its question mark -> value."""


class Coordinate(msgspec.Struct, frozen=True):
    """A point of the space's log that a query reads instead of the present: exactly one is set (KIP §48.1)."""

    seq: int | None = None
    tx: str | None = None
    time: Instant | None = None


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one query; what passes them is refused, never cut silently (KIP Runtime, KQL design §245-250)."""

    patterns: int = 128  # of one query, inline ones and inner blocks counted; and members of one match object
    rows_examined: int = 2_000_000
    solutions: int = 500_000
    page: int = 1_000  # rows of one answer; the rest is behind `next_cursor`
    path_hops: int = 32
    projections: int = 2_000
    provenance_nodes: int = 20_000
    cursor_ttl_ms: int = 3_600_000


def _never() -> bool:
    return False


class QueryContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a query may depend on besides its text, the state and the schema. The engine fills it.

    space_id, instance: which space, and which life of that id.
    snapshot_seq, snapshot_at: the `space_seq` of the state given, and when that commit was made.
    now: the request's time; belief is about now unless FOR TIME or AS OF says otherwise.
    principal: the authenticated caller, for cursors.
    authority: a text that differs whenever what the caller may see differs; a cursor does not outlive it.
    visible: whether an element exists for the caller at all; None: everything does. Asked before matching,
        counting and ranking (KIP §88.6).
    hidden_fields: which fields of a visible element the caller may not read, as dot paths in wire names
        ("payload", "_system.origin"); None: none are hidden. A hidden field reads as null and matches nothing.
    projectable: whether an element may be used in a projection although it may not be read; None: as `visible`.
    may_project: whether the caller may ask for belief at all (KIP §29.4).
    cursor_key: the secret that signs cursors.
    overdue: says True once the request's deadline has passed.
    """

    space_id: str
    snapshot_seq: int
    now: Instant
    instance: str = ""
    snapshot_at: Instant = 0
    principal: str = ""
    authority: str = ""
    visible: Callable[[AnyElement], bool] | None = None
    hidden_fields: Callable[[AnyElement], frozenset[str]] | None = None
    projectable: Callable[[AnyElement], bool] | None = None
    may_project: bool = True
    purpose: str | None = None
    risk: str | None = None
    trust: TrustState = TrustState()
    cursor_key: bytes = b""
    limits: Limits = Limits()
    overdue: Callable[[], bool] = _never


class QueryResult(msgspec.Struct, frozen=True):
    """The answer to a FIND: rows, the result context (KIP §50), and where the next page begins.

    rows: one value a row for one projection, one array a row for several. JSON values.
    """

    rows: list[Json]
    context: dict[str, Json]
    next_cursor: str | None = None
    warnings: tuple[str, ...] = ()
