"""How facts stand in the nexus: Concepts of the package `kip://noema/fact-memory`, read and written.

What lives here: the one mapping between a `Fact` or a `Checkpoint` and its Concept, and how the Concepts of a
namespace are found. What must never live here: which change a caller may make (`writing`). The text is the
Concept's only attribute, so that a search finds a fact by its words alone; everything else stands in a facet.
Whether a fact is live is told by `retired`, never by the reference to its replacement: that one may be erased.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from core.facts.values import RETIRED_BY_AGENT, Checkpoint, Fact
from core.model.elements import AnyElement, Concept, Element, StructuralRef
from core.model.instants import format_instant, parse_instant
from core.schema.library import FACTS_REF
from core.state.indexes import concept_key, referrers_key, type_key
from core.state.view import View

FACT: Final = f"{FACTS_REF}/Fact"
NAMESPACE: Final = f"{FACTS_REF}/FactNamespace"
ENTITY: Final = f"{FACTS_REF}/FactEntity"
CHECKPOINT: Final = f"{FACTS_REF}/Checkpoint"
SERIES: Final = f"{FACTS_REF}/CheckpointSeries"
FACT_STATE: Final = f"{FACTS_REF}/FactState"
CHECKPOINT_STATE: Final = f"{FACTS_REF}/CheckpointState"
IN_NAMESPACE: Final = f"{FACTS_REF}/in_namespace"
IN_SERIES: Final = f"{FACTS_REF}/in_series"
SUPERSEDED_BY: Final = f"{FACTS_REF}/superseded_by"
AGENT_LINK: Final = f"{FACTS_REF}/agent_link"


# --- finding


def find(view: View, schema_ref: str, key: str) -> Concept | None:
    """The Concept with this key within its type, unless it is purged or tombstoned."""
    for found in view.find(concept_key(schema_ref, key)):
        element = view.get(found)
        if isinstance(element, Concept) and element.schema_ref == schema_ref and element.key == key:
            return element if standing(element) else None
    return None


def standing(element: Element | None) -> bool:
    """Whether an element is there to be used."""
    return element is not None and element.system.state == "active"


def members(view: View, namespace: str) -> Iterator[Concept]:
    """The facts of a namespace (by its Concept's id), oldest first."""
    for found in view.find(referrers_key(namespace)):
        element = view.get(found)
        if (
            isinstance(element, Concept)
            and element.schema_ref == FACT
            and standing(element)
            and namespace_of(element) == namespace
        ):
            yield element


def series(view: View, concept: str) -> Iterator[Concept]:
    """The checkpoints of a series (by its Concept's id), the one written last first."""
    for found in reversed(view.find(referrers_key(concept))):
        element = view.get(found)
        if isinstance(element, Concept) and element.schema_ref == CHECKPOINT and standing(element):
            yield element


def namespaces(view: View) -> list[str]:
    """The agents' ids of all namespaces, in order."""
    found = (view.get(element_id) for element_id in view.find(type_key(NAMESPACE)))
    return sorted(
        element.key
        for element in found
        if isinstance(element, Concept)
        and element.schema_ref == NAMESPACE
        and standing(element)
        and element.key
    )


def namespace_of(element: AnyElement) -> str | None:
    """The id of the Concept of the namespace that a fact stands in."""
    return next((ref.target for ref in element.structural if ref.field == IN_NAMESPACE), None)


# --- reading


def read_fact(element: Concept, agent_id: str, keys: dict[str, str]) -> Fact:
    """The fact a Concept is.

    Args:
        element: of the type `Fact`.
        agent_id: the key of its namespace.
        keys: element id -> fact id, for the replacement; one that is gone is told as `agent`.
    """
    state = element.facets.get(FACT_STATE, {})
    created = _instant(state.get("created_at")) or element.system.created_at
    return Fact(
        id=element.key or element.id,
        element=element.id,
        agent_id=agent_id,
        text=str(element.attributes.get("text", "")),
        created_at=created,
        accessed_at=_instant(state.get("accessed_at")) or created,
        access_count=int(state.get("access_count", 0)),
        weight=float(state.get("weight", 1.0)),
        superseded_by=_superseded_by(element, state, keys),
        confidence=str(state.get("confidence", "")),
        pinned_at=_instant(state.get("pinned_at")),
        kind="alias" if state.get("kind") == "alias" else "fact",
        alias_source=str(state.get("alias_source", "")),
        decays_from=_instant(state.get("decays_from")),
    )


def _superseded_by(element: Concept, state: dict[str, Any], keys: dict[str, str]) -> str:
    if not state.get("retired"):
        return ""
    target = next((ref.target for ref in element.structural if ref.field == SUPERSEDED_BY), None)
    return RETIRED_BY_AGENT if target is None else keys.get(target, RETIRED_BY_AGENT)


def replacement(element: Concept) -> str | None:
    """The id of the Concept that replaces a fact's."""
    return next((ref.target for ref in element.structural if ref.field == SUPERSEDED_BY), None)


def read_checkpoint(element: Concept, agent_id: str) -> Checkpoint:
    """The checkpoint a Concept is."""
    state = element.facets.get(CHECKPOINT_STATE, {})
    return Checkpoint(
        id=element.key or element.id,
        agent_id=agent_id,
        created_at=_instant(state.get("created_at")) or element.system.created_at,
        state=state.get("state"),
        messages=tuple(state.get("messages", ())),
        metadata=dict(state.get("metadata", {})),
    )


def _instant(text: Any) -> int | None:  # a facet's value
    return parse_instant(text) if isinstance(text, str) else None


# --- writing


def fact_fields(fact: Fact, namespace: str, superseded_by: str | None = None) -> dict[str, Any]:
    """The fields of a new fact's Concept; what is as by default is left out.

    Args:
        fact: what to write; its `element` is not read.
        namespace: the id of the namespace's Concept.
        superseded_by: the id of the Concept of its replacement, for an imported fact.
    """
    state: dict[str, Any] = {"created_at": format_instant(fact.created_at)}
    if fact.kind != "fact":
        state["kind"] = fact.kind
    if fact.confidence:
        state["confidence"] = fact.confidence
    if fact.alias_source:
        state["alias_source"] = fact.alias_source
    if fact.pinned_at is not None:
        state["pinned_at"] = format_instant(fact.pinned_at)
    if fact.decays_from is not None:
        state["decays_from"] = format_instant(fact.decays_from)
    if fact.weight != 1.0:
        state["weight"] = fact.weight
    if fact.accessed_at != fact.created_at:
        state["accessed_at"] = format_instant(fact.accessed_at)
    if fact.access_count:
        state["access_count"] = fact.access_count
    if fact.superseded_by:
        state["retired"] = "agent" if superseded_by is None else "replaced"
    refs = [StructuralRef(IN_NAMESPACE, namespace)]
    if superseded_by is not None:
        refs.append(StructuralRef(SUPERSEDED_BY, superseded_by))
    return {
        "schema_ref": FACT,
        "key": fact.id,
        "attributes": {"text": fact.text},
        "facets": {FACT_STATE: state},
        "structural": tuple(refs),
    }


def with_state(element: Concept, **members: Any) -> dict[str, dict[str, Any]]:
    """A fact's facets with some members of its state changed; None takes a member out."""
    state = {**element.facets.get(FACT_STATE, {}), **members}
    kept = {name: value for name, value in state.items() if value is not None}
    return {**element.facets, FACT_STATE: kept}


def checkpoint_fields(checkpoint: Checkpoint, series_id: str) -> dict[str, Any]:
    """The fields of a new checkpoint's Concept."""
    state: dict[str, Any] = {"created_at": format_instant(checkpoint.created_at)}
    if checkpoint.state:
        state["state"] = checkpoint.state
    if checkpoint.messages:
        state["messages"] = list(checkpoint.messages)
    if checkpoint.metadata:
        state["metadata"] = checkpoint.metadata
    return {
        "schema_ref": CHECKPOINT,
        "key": checkpoint.id,
        "facets": {CHECKPOINT_STATE: state},
        "structural": (StructuralRef(IN_SERIES, series_id),),
    }
