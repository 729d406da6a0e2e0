"""The fact memory's values as JSON shows them: GrayMatter's names, times as RFC 3339, empty members left out.

What lives here: one shape for each value, both ways where it is read too. What must never live here: transports.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.facts.values import Checkpoint, Fact, FactKind, Preference, Ranks, Receipt, Stats
from core.model.elements import Json
from core.model.instants import format_instant


class FactView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fact. `superseded_by` is absent while it is live; `element` is the Concept it stands as in KIP."""

    id: str
    agent_id: str
    text: str
    created_at: str
    accessed_at: str
    access_count: int
    weight: float
    superseded_by: str = ""
    confidence: str = ""
    pinned: bool = False
    pinned_at: str | None = None
    kind: FactKind = "fact"
    alias_source: str = ""
    element: str = ""
    decays_from: str | None = None


def view(fact: Fact) -> FactView:
    """A fact to show."""
    return FactView(
        id=fact.id,
        agent_id=fact.agent_id,
        text=fact.text,
        created_at=format_instant(fact.created_at),
        accessed_at=format_instant(fact.accessed_at),
        access_count=fact.access_count,
        weight=fact.weight,
        superseded_by=fact.superseded_by,
        confidence=fact.confidence,
        pinned=fact.pinned,
        pinned_at=_instant(fact.pinned_at),
        kind=fact.kind,
        alias_source=fact.alias_source,
        element=fact.element,
        decays_from=_instant(fact.decays_from),
    )


class ProvenanceView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a recalled text comes from."""

    fact_id: str
    written_at: str
    superseded_by: str = ""
    confidence: str = ""
    pinned: bool = False
    supersedes: tuple[str, ...] = ()


class ReceiptView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a fact was recalled."""

    text: str
    weight: float
    age_days: float
    ranks: Ranks
    provenance: ProvenanceView
    kg_links: tuple[str, ...] = ()
    ranking: Preference | None = None


def view_receipt(receipt: Receipt) -> ReceiptView:
    """A receipt to show."""
    origin = receipt.provenance
    return ReceiptView(
        text=receipt.text,
        weight=receipt.weight,
        age_days=receipt.age_days,
        ranks=receipt.ranks,
        provenance=ProvenanceView(
            fact_id=origin.fact_id,
            written_at=format_instant(origin.written_at),
            superseded_by=origin.superseded_by,
            confidence=origin.confidence,
            pinned=origin.pinned,
            supersedes=origin.supersedes,
        ),
        kg_links=receipt.kg_links,
        ranking=receipt.ranking,
    )


class StatsView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a namespace holds; times are absent where it is empty."""

    agent_id: str
    fact_count: int
    live: int
    pinned_count: int
    aliases: int
    avg_weight: float
    consolidations: int
    facts_consumed: int
    recalls: int
    oldest_at: str | None = None
    newest_at: str | None = None


def view_stats(stats: Stats) -> StatsView:
    """Statistics to show."""
    return StatsView(
        agent_id=stats.agent_id,
        fact_count=stats.fact_count,
        live=stats.live,
        pinned_count=stats.pinned,
        aliases=stats.aliases,
        avg_weight=stats.avg_weight,
        consolidations=stats.consolidations,
        facts_consumed=stats.facts_consumed,
        recalls=stats.recalls,
        oldest_at=_instant(stats.oldest_at),
        newest_at=_instant(stats.newest_at),
    )


class CheckpointView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A saved state."""

    id: str
    agent_id: str
    created_at: str
    state: dict[str, Json] | None = None
    messages: tuple[dict[str, Json], ...] = ()
    metadata: dict[str, str] = {}


def view_checkpoint(saved: Checkpoint) -> CheckpointView:
    """A checkpoint to show."""
    return CheckpointView(
        id=saved.id,
        agent_id=saved.agent_id,
        created_at=format_instant(saved.created_at),
        state=saved.state,
        messages=saved.messages,
        metadata=saved.metadata,
    )


def _instant(at: int | None) -> str | None:
    return None if at is None else format_instant(at)


def as_json(fact: Fact) -> dict[str, Any]:
    """A fact as JSON values."""
    shown: dict[str, Any] = msgspec.to_builtins(view(fact))
    return shown
