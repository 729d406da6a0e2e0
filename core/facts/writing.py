"""Changes of facts, as what they write into a transaction. Pure: a Draft in, a Draft written.

What lives here: what adding, replacing, retiring, pinning, linking and saving mean for the nexus. What must
never live here: finding what a caller means, idempotency and retries (`core.service.fact_writing`). A fact that
is retired stays retired: nothing here takes `retired` away, and nothing writes a fact whose Concept is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from core.errors import NoemaError
from core.facts import records
from core.facts.ulid import ulids
from core.facts.values import Checkpoint, Fact, FactKind
from core.governance.control import control_of
from core.governance.labelling import cover
from core.model.elements import Concept, StructuralRef
from core.model.instants import format_instant
from core.model.literals import Ref
from core.transaction.draft import Draft

MAX_NAME_CHARS = 512


def namespace(draft: Draft, agent_id: str) -> str:
    """The id of the Concept of an agent's namespace, made if it is not there."""
    found = records.find(draft.view, records.NAMESPACE, agent_id)
    if found is None:
        found = draft.create(Concept, schema_ref=records.NAMESPACE, key=agent_id)
    return found.id


def add(draft: Draft, fact: Fact, *, superseded_by: str | None = None) -> Fact:
    """Write a new fact; the fact as committed, with its element.

    Args:
        draft: the transaction.
        fact: what to write.
        superseded_by: the id of the Concept of what replaces it, for an imported fact.
    """
    home = namespace(draft, fact.agent_id)
    made = draft.create(Concept, **records.fact_fields(fact, home, superseded_by))
    return msgspec.structs.replace(fact, element=made.id)


def remember(
    draft: Draft,
    agent_id: str,
    texts: Sequence[str],
    chance: bytes,
    *,
    confidence: str = "",
    kind: FactKind = "fact",
    source: str = "",
) -> list[Fact]:
    """Write new facts of these texts, in order, all of the transaction's instant.

    Args:
        draft: the transaction.
        agent_id: the namespace.
        texts: verbatim.
        chance: ten random bytes, the same however often the transaction is tried.
        confidence: their label; empty for none.
        kind: what they are.
        source: of an alias that was learnt.
    """
    return [
        add(
            draft,
            Fact(
                id=fact_id,
                element="",
                agent_id=agent_id,
                text=text,
                created_at=draft.now,
                accessed_at=draft.now,
                confidence=confidence,
                kind=kind,
                alias_source=source,
            ),
        )
        for fact_id, text in zip(ulids(draft.now, chance, len(texts)), texts, strict=True)
    ]


def live(draft: Draft, element_id: str) -> Concept | None:
    """The Concept of a fact that is there and not retired, as this transaction sees it."""
    found = draft.get(element_id)
    if not isinstance(found, Concept) or found.schema_ref != records.FACT or not records.standing(found):
        return None
    return None if found.facets.get(records.FACT_STATE, {}).get("retired") else found


def retire(draft: Draft, element_id: str, replacement: str | None) -> bool:
    """Retire a fact for good; False if it is not live any more.

    Args:
        draft: the transaction.
        element_id: of the fact.
        replacement: the id of the Concept that replaces it; None: nothing does.
    """
    found = live(draft, element_id)
    if found is None:
        return False
    facets = records.with_state(found, retired="agent" if replacement is None else "replaced")
    structural = found.structural
    if replacement is not None:
        structural = (*structural, StructuralRef(records.SUPERSEDED_BY, replacement))
        _keep_label(draft, found, replacement)
    draft.change(found, facets=facets, structural=structural)
    return True


def _keep_label(draft: Draft, found: Concept, replacement: str) -> None:
    """What takes a fact's place is as restricted as the fact, in a space that has labels (KIP §31.2)."""
    control = control_of(draft.meta)
    successor = draft.get(replacement)
    if control is not None and successor is not None:
        cover(draft, successor, found, control.policy)


def pin(draft: Draft, fact: Fact) -> bool:
    """Pin a live fact, keeping the weight it has; False if it is not live any more."""
    found = live(draft, fact.element)
    if found is None:
        return False
    members: dict[str, Any] = {"pinned_at": format_instant(draft.now)}
    if fact.weight != 1.0:
        members["weight"] = fact.weight
    draft.change(found, facets=records.with_state(found, **members))
    return True


def unpin(draft: Draft, element_id: str) -> bool:
    """Let a fact decay again from now on, retired or not; False if it is not there or not pinned."""
    found = draft.get(element_id)
    if not isinstance(found, Concept) or not records.standing(found):
        return False
    if not found.facets.get(records.FACT_STATE, {}).get("pinned_at"):
        return False
    facets = records.with_state(found, pinned_at=None, decays_from=format_instant(draft.now))
    draft.change(found, facets=facets)
    return True


def link(draft: Draft, source: str, target: str) -> str:
    """Link two things by name, in lower case and trimmed; the id of the Proposition.

    Raises:
        NoemaError: `InvalidInput` for a blank name.
    """
    ends = [_entity(draft, name, member) for name, member in ((source, "text"), (target, "target"))]
    return draft.ensure_proposition(ends[0], records.AGENT_LINK, Ref(ends[1])).id


def _entity(draft: Draft, name: str, member: str) -> str:
    key = name.strip().lower()
    if not key or len(key) > MAX_NAME_CHARS:
        raise NoemaError(
            "InvalidInput",
            f"{member} must be a name of 1 to {MAX_NAME_CHARS} characters",
            details={"member": member},
        )
    return draft.ensure_concept(records.ENTITY, key, name=key).id


def save(draft: Draft, checkpoint: Checkpoint) -> None:
    """Write a checkpoint."""
    series = records.find(draft.view, records.SERIES, checkpoint.agent_id)
    if series is None:
        series = draft.create(Concept, schema_ref=records.SERIES, key=checkpoint.agent_id)
    draft.create(Concept, **records.checkpoint_fields(checkpoint, series.id))


def add_all(draft: Draft, facts: Sequence[Fact]) -> list[Fact]:
    """Write imported facts, replacements among them pointing at each other; those whose id stands are passed over.

    Where a replacement is neither among them nor there, the fact is retired by the agent.
    """
    elements: dict[str, str] = {}
    fresh: list[Fact] = []
    for fact in facts:
        standing = records.find(draft.view, records.FACT, fact.id)
        if standing is None and fact.id not in elements:
            fresh.append(fact)
            elements[fact.id] = draft.reserve("concept")
        elif standing is not None:
            elements[fact.id] = standing.id
    out = []
    for fact in fresh:
        home = namespace(draft, fact.agent_id)
        target = elements.get(fact.superseded_by) or _standing(draft, fact.superseded_by)
        fields = records.fact_fields(fact, home, target)
        out.append(
            msgspec.structs.replace(fact, element=draft.create_as(elements[fact.id], Concept, **fields).id)
        )
    return out


def _standing(draft: Draft, fact_id: str) -> str | None:
    found = records.find(draft.view, records.FACT, fact_id) if fact_id else None
    return None if found is None else found.id
