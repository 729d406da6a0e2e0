"""Who is who: which element here a record of a Capsule stands for (KIP §38).

What lives here: the conservative order of resolution, each step with its basis, and what contradicts it. What must
never live here: writing. A name never decides, and neither does a key of another space: two Alices stay two until a
prior import, a trusted canonical identity or an approved mapping says that they are one.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from core.authority import Principal, allows, visible
from core.capsule.export import nexus_of
from core.capsule.format import (
    ActivityRecord,
    AnyRecord,
    AssertionRecord,
    ConceptRecord,
    EvidenceRecord,
    ExternalRef,
    PropositionRecord,
)
from core.capsule.lineage import Imports, alias_name, imports_of, source_name
from core.capsule.read import Capsule
from core.model.elements import KIND_OF_TYPE, AnyElement, Assertion, Concept, Evidence, Json, SourceRef
from core.model.ids import Kind
from core.model.instants import parse_instant
from core.protocol.capsule_types import ImportWish
from core.state.indexes import canonical_key, source_key
from core.transaction.draft import Draft
from core.transaction.scope import space_uri

Act = Literal["create", "map", "reuse", "update", "release", "skip", "unresolved", "conflict"]


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of one record: the act, why, and the element here if there is one already."""

    ref: str
    kind: Kind
    act: Act
    basis: str
    local: str | None = None
    problem: str | None = None


class Found(msgspec.Struct, frozen=True):
    """An element here for a record, and why it is the one; or a problem in its place."""

    local: str | None
    basis: str
    problem: str | None = None


class Identities:
    """Resolves the records of one Capsule against one state.

    Args:
        draft: the destination.
        capsule: the source.
        wish: mappings and trust.
        principal: the importer.
        signers: ids of the keys whose signatures over this Capsule are good.
    """

    def __init__(
        self, draft: Draft, capsule: Capsule, wish: ImportWish, principal: Principal, signers: frozenset[str]
    ) -> None:
        self._draft = draft
        self._capsule = capsule
        self._wish = wish
        self._principal = principal
        source = capsule.artifact.payload.source
        self._source = source
        self.signers = signers
        self._imports: Imports = imports_of(draft.meta)
        lineage = self._imports.sources.get(source_name(source.nexus_id, source.space_ref))
        # A mapping of before counts for those who made it: what was signed once must be signed by the same again.
        self._verified = lineage is None or not lineage.signers or bool(signers & set(lineage.signers))

    def sources(self, record: AnyRecord) -> tuple[SourceRef, ...]:
        """What the element was elsewhere, nearest first; where the source hides its ids, this very artifact."""
        receipt = record.source_ref
        if receipt is None:
            return (SourceRef("urn:kip:capsule", self._capsule.digest, record.ref),)
        own = SourceRef(self._source.nexus_id, self._source.space_ref, receipt.element_id)
        return (own, *(SourceRef(a.nexus_id, a.space_ref, a.element_id) for a in receipt.lineage))

    def find(self, kind: Kind, record: AnyRecord) -> Found | None:
        """The element here that a record stands for; None if it must be created (KIP §38.2)."""
        prior = self._prior(kind, self.sources(record))
        approved = self._approved(record.ref, kind, record)
        if approved is not None and approved.problem is None and prior is not None:
            if prior.local != approved.local:
                return Found(
                    prior.local, "approved_mapping", "an earlier import found it to be another element"
                )
            return prior
        found = prior or approved or self._canonical(record)
        if found is None or found.problem is not None or found.local is None:
            return found
        return self._compared(found, record)

    def external(self, external: ExternalRef) -> Found | None:
        """The element here that an ExternalRef means; None for what stays outside. Redacted ones always do."""
        approved = self._approved(external.external_ref, external.element_kind, None)
        if approved is not None:
            return approved
        if external.kind in {"redacted", "unavailable", "external_artifact", "semantic_locator"}:
            return None
        if external.element_id is not None:
            source = SourceRef(self._source.nexus_id, self._source.space_ref, external.element_id)
            found = self._prior(external.element_kind, (source,))
            if found is not None:
                return found
        if external.canonical_id is not None and external.element_kind == "concept":
            return self._by_canonical(external.canonical_id, external.schema_ref)
        return None

    # --- 1. an earlier import

    def _prior(self, kind: Kind | None, sources: tuple[SourceRef, ...]) -> Found | None:
        if not self._verified:
            return None
        here = (nexus_of(self._draft.meta), space_uri(self._draft.meta.space_id))
        for source in sources:
            own = (source.nexus, source.space) == here
            local = source.element if own else self._imported(source)
            element = None if local is None else self._draft.get(local)
            basis = "same_space" if own else "import_mapping"
            if element is None or not visible(self._principal, element):
                continue
            if kind is None or KIND_OF_TYPE[type(element)] == kind:
                return Found(self._standing(element), basis)
        return None

    def _imported(self, source: SourceRef) -> str | None:
        for found in self._draft.view.find(source_key(source)):
            element = self._draft.get(found)
            if element is not None and source in element.system.origin.sources:
                return found
        return self._imports.aliases.get(alias_name(source))

    def _standing(self, element: AnyElement) -> str:
        return self._draft.canonical(element.id) if isinstance(element, Concept) else element.id

    # --- 2. an approved mapping, 3. a trusted canonical identity

    def _approved(self, ref: str, kind: Kind | None, record: AnyRecord | None) -> Found | None:
        local = self._wish.mappings.get(ref)
        if local is None:
            return None
        element = self._draft.get(local)
        if element is None or not visible(self._principal, element):
            return Found(None, "approved_mapping", "the mapping names no element here that you may see")
        if kind is not None and KIND_OF_TYPE[type(element)] != kind:
            return Found(local, "approved_mapping", "the mapping names an element of another kind")
        if isinstance(record, ConceptRecord) and getattr(element, "schema_ref", None) != record.schema_ref:
            return Found(local, "approved_mapping", "the mapping names a Concept of another type")
        return Found(self._standing(element), "approved_mapping")

    def _canonical(self, record: AnyRecord) -> Found | None:
        if not isinstance(record, ConceptRecord) or record.canonical_id is None:
            return None
        return self._by_canonical(record.canonical_id, record.schema_ref)

    def _by_canonical(self, canonical_id: str, schema_ref: str | None) -> Found | None:
        """A claimed canonical id joins nothing by itself; only one that the importer trusts does (KIP §38.2)."""
        if not self.trusts_canonical:
            return None
        for found in self._draft.view.find(canonical_key(canonical_id)):
            element = self._draft.get(found)
            if not isinstance(element, Concept) or element.canonical_id != canonical_id:
                continue
            if not visible(self._principal, element):
                continue
            if schema_ref is not None and element.schema_ref != schema_ref:
                return Found(found, "canonical_id", "a Concept of another type has this canonical id here")
            return Found(self._standing(element), "canonical_id")
        return None

    @property
    def trusts_canonical(self) -> bool:
        """Whether canonical ids of this Capsule may bind: a restore, or a wish with the permission for it."""
        if self._wish.mode == "restore":
            return True
        return self._wish.trust_canonical_ids and allows(self._principal, "bind_canonical_identity")

    # --- what must agree

    def _compared(self, found: Found, record: AnyRecord) -> Found:
        """A prior element must be what the record says in everything that can never change."""
        element = self._draft.get(str(found.local))
        if element is None or found.basis == "approved_mapping" or element.system.state == "purged":
            return found
        for name, here, there in _fixed(element, record):
            if here != there:
                return Found(
                    found.local, found.basis, f"its {name} is another one than at the earlier import"
                )
        return found


def _fixed(element: AnyElement, record: AnyRecord) -> list[tuple[str, Any, Any]]:
    """What can never change in an element of a kind: here and in the record."""
    if isinstance(element, Concept) and isinstance(record, ConceptRecord):
        return [("type", element.schema_ref, record.schema_ref)] if element.merged_into is None else []
    if isinstance(element, Assertion) and isinstance(record, AssertionRecord):
        return [
            ("stance", element.stance, record.stance),
            ("mode", element.mode, record.mode),
            ("confidence", element.confidence, record.confidence),
            ("asserted_at", element.asserted_at, parse_instant(record.asserted_at)),
        ]
    if isinstance(element, Evidence) and isinstance(record, EvidenceRecord):
        return [
            ("evidence_class", element.evidence_class, record.evidence_class),
            ("content", element.content_digest, record.content_digest),
        ]
    if isinstance(record, ActivityRecord):
        return [("activity_class", getattr(element, "activity_class", None), record.activity_class)]
    if isinstance(record, PropositionRecord):
        return [("predicate", getattr(element, "predicate_ref", None), record.predicate_ref)]
    return []


def decision_json(decision: Decision) -> dict[str, Json]:
    """A decision as JSON."""
    told: dict[str, Json] = msgspec.to_builtins(decision)
    return told
