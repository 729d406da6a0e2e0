"""GrayMatter's own REST paths, below `/v1/{space}/graymatter`: for clients that speak to its server.

What lives here: its words, in and out. Answers are bare (`{"results": [...]}`, `{"status": "ok"}`), errors are
`{"error": "text"}` (`functions.failures.bare`), confidence is legacy: no preference. What must never live here:
anything that `functions.facts` does not offer too.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.facts.values import TOP_K, RecallOptions
from core.facts.wire import view
from core.ports import Unavailable
from core.storage.layout import HEAD, space_pk
from functions.bootstrap import Services
from functions.facts import facts_of, keep
from functions.http import HttpResponse
from functions.routing import Call, Route, Routes

_METERED: Final = 200  # agents in one answer


class GrayRememberInput(msgspec.Struct, frozen=True, kw_only=True):
    """A fact to keep, in GrayMatter's words."""

    agent: str
    text: str


class GrayAgentInput(msgspec.Struct, frozen=True, kw_only=True):
    """One namespace, in GrayMatter's words."""

    agent: str


class GrayForgetInput(msgspec.Struct, frozen=True, kw_only=True):
    """The best match of `query` is deleted, if `confirm` is true."""

    agent: str
    query: str
    confirm: bool = False


class GrayRecallQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`k` is read leniently: what is no number above 0 is 8."""

    agent: str
    q: str
    k: str = ""


class GrayFactsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose facts, and how many (50)."""

    agent: str
    limit: str = ""


class GrayAgentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose fact."""

    agent: str


class GrayStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of it: `ok`, `not_found` or `busy`."""

    status: str
    deleted_id: str | None = None


class GrayResults(msgspec.Struct, frozen=True, kw_only=True):
    """Texts, best first."""

    results: tuple[str, ...]


class GrayFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact, in short."""

    id: str
    text: str
    weight: float
    created_at: str


class GrayFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts, newest first."""

    facts: tuple[GrayFact, ...]


class GrayMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Of this space alone, by agent: stored facts, and recalls that found something."""

    facts_total: dict[str, int]
    recall_total: dict[str, int]


def _bare(value: Any) -> HttpResponse:  # anything msgspec encodes
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return HttpResponse(status=200, headers=headers, body=msgspec.json.encode(value))


def _number(text: str, default: int, most: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    return min(number, most) if number > 0 else default


def _gray_remember(found: Services, call: Call) -> HttpResponse:
    body: GrayRememberInput = call.body
    keep(found, call, body.agent, body.text)
    return _bare(GrayStatus(status="ok"))


def _gray_recall(found: Services, call: Call) -> HttpResponse:
    query: GrayRecallQuery = call.query
    options = RecallOptions(top_k=_number(query.k, TOP_K, 1000), confidence_weight=0.0)
    recalled = facts_of(found, call).recall(call.caller, call.space, query.agent, query.q, options)
    return _bare(GrayResults(results=recalled.texts))


def _gray_consolidate(found: Services, call: Call) -> HttpResponse:
    done = facts_of(found, call).consolidate(call.caller, call.space, call.body.agent, deadline=call.deadline)
    return _bare(GrayStatus(status="ok" if done.ran else "busy"))


def _gray_facts(found: Services, call: Call) -> HttpResponse:
    query: GrayFactsQuery = call.query
    facts = facts_of(found, call).facts(call.space, query.agent, limit=_number(query.limit, 50, 1000))
    shown = (view(fact) for fact in facts)
    return _bare(
        GrayFacts(
            facts=tuple(
                GrayFact(id=each.id, text=each.text, weight=each.weight, created_at=each.created_at)
                for each in shown
            )
        )
    )


def _gray_forget(found: Services, call: Call) -> HttpResponse:
    body: GrayForgetInput = call.body
    deleted = facts_of(found, call).delete_best(
        call.caller, call.space, body.agent, body.query, confirm=body.confirm
    )
    return _bare(GrayStatus(status="not_found" if deleted is None else "ok", deleted_id=deleted))


def _gray_delete(found: Services, call: Call) -> HttpResponse:
    fact_id = call.params["fact_id"]
    gone = facts_of(found, call).delete(call.caller, call.space, call.query.agent, fact_id)
    return _bare(GrayStatus(status="ok" if gone else "not_found", deleted_id=fact_id if gone else None))


def _gray_metrics(found: Services, call: Call) -> HttpResponse:
    agents = facts_of(found, call).agents(call.space)
    if len(agents) > _METERED:
        raise NoemaError(
            "ResourceExhausted",
            f"the space has {len(agents)} agents; metrics tell of at most {_METERED}",
            hint="Ask GET /v1/{space}/facts/stats for one agent at a time.",
            details={"agents": len(agents), "limit": _METERED},
        )
    stats = {agent: facts_of(found, call).stats(call.space, agent) for agent in agents}
    return _bare(
        GrayMetrics(
            facts_total={agent: each.fact_count for agent, each in stats.items()},
            recall_total={agent: each.recalls for agent, each in stats.items()},
        )
    )


def _gray_health(found: Services, call: Call) -> HttpResponse:
    """A round trip to the store. The same for a space that does not exist, so that it tells nothing of it."""
    try:
        found.table.get(space_pk(call.space), HEAD)
    except Unavailable:
        raise NoemaError("ServiceUnavailable", "the store does not answer") from None
    return _bare(GrayStatus(status="ok"))


READS: Final[Routes] = {
    "graymatter_recall": Route(
        admit="read",
        summary="GrayMatter: the texts that fit a query best.",
        call=_gray_recall,
        query=GrayRecallQuery,
        response=GrayResults,
        media_type="application/json",
    ),
    "graymatter_facts": Route(
        admit="read",
        summary="GrayMatter: an agent's facts, newest first.",
        call=_gray_facts,
        query=GrayFactsQuery,
        response=GrayFacts,
        media_type="application/json",
    ),
    "graymatter_metrics": Route(
        admit="read",
        summary="GrayMatter: facts and recalls by agent, of this space alone.",
        call=_gray_metrics,
        response=GrayMetrics,
        media_type="application/json",
    ),
    "graymatter_healthz": Route(
        admit="open",
        summary="GrayMatter: whether the store answers.",
        call=_gray_health,
        response=GrayStatus,
        media_type="application/json",
    ),
}
"""Rows of the function that reads."""

WRITES: Final[Routes] = {
    "graymatter_remember": Route(
        admit="write",
        summary="GrayMatter: keep a text.",
        call=_gray_remember,
        body=GrayRememberInput,
        response=GrayStatus,
        media_type="application/json",
    ),
    "graymatter_consolidate": Route(
        admit="write",
        summary="GrayMatter: consolidate an agent's facts.",
        call=_gray_consolidate,
        body=GrayAgentInput,
        response=GrayStatus,
        media_type="application/json",
    ),
    "graymatter_forget": Route(
        admit="write",
        summary="GrayMatter: erase the best match of a query.",
        call=_gray_forget,
        body=GrayForgetInput,
        response=GrayStatus,
        media_type="application/json",
    ),
    "graymatter_delete": Route(
        admit="write",
        summary="GrayMatter: erase one fact.",
        call=_gray_delete,
        query=GrayAgentQuery,
        response=GrayStatus,
        media_type="application/json",
    ),
}
"""Rows of the function that writes."""
