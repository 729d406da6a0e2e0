"""The syntax tree of KML: the eighteen families of mutation (KIP §51-61).

What lives here: one node per family (the three record creations share one) and the clauses of their bodies.
What must never live here: what a mutation does.

The clauses of a body have no order that means anything (KIP §53.4), so a body is one `Content` with a place
for each. `None` and the empty tuple mean that the clause was not written.
"""

from __future__ import annotations

import typing

from core.language.ast import (
    DataValue,
    Node,
    Object,
    ObjectPattern,
    Scalar,
    Symbol,
    TargetRef,
    Triple,
    Where,
)


class SetFacet(Node, frozen=True, kw_only=True):
    """`set_facet_clause`: `SET FACET "name" {...}`; members merge into the facet."""

    facet: Symbol
    values: Object


class UnsetFacet(Node, frozen=True, kw_only=True):
    """`unset_facet_clause`: `UNSET FACET "name" {field, ...}`."""

    facet: Symbol
    fields: tuple[str, ...] = ()


class StructuralAssignment(Node, frozen=True, kw_only=True):
    """`structural_assignment`: `("field", target) {role: ..., index: ...}` (KIP §17)."""

    field: Symbol
    target: DataValue
    options: Object | None = None


class StructuralRemoval(Node, frozen=True, kw_only=True):
    """`structural_removal`: `("field", target)`."""

    field: Symbol
    target: DataValue


class Content(Node, frozen=True, kw_only=True):
    """The SET and UNSET clauses of a CREATE, UPSERT or UPDATE, each at most once (facets once per facet)."""

    fields: Object | None = None
    attributes: Object | None = None
    facets: tuple[SetFacet, ...] = ()
    structural: tuple[StructuralAssignment, ...] = ()
    unset_attributes: tuple[str, ...] | None = None
    unset_facets: tuple[UnsetFacet, ...] = ()
    unset_structural: tuple[StructuralRemoval, ...] = ()


class CreateConcept(Node, frozen=True, kw_only=True):
    """`create_concept` (KIP §54.1). The content has no UNSET clause."""

    handle: str
    type: Symbol
    client_key: Scalar | None = None
    name: Scalar | None = None
    content: Content = Content()


class CreateRecord(Node, frozen=True, kw_only=True):
    """`create_evidence`, `create_assertion`, `create_activity` (KIP §56): fields, facets and structure only."""

    kind: typing.Literal["evidence", "assertion", "activity"]
    handle: str
    client_key: Scalar | None = None
    content: Content = Content()


class UpsertConcept(Node, frozen=True, kw_only=True):
    """`upsert_concept` (KIP §54.2-54.4): MATCH has `id` or `key`, may have `type`, and holds no variable."""

    handle: str
    match: ObjectPattern
    expect_version: Scalar | None = None
    content: Content = Content()


class EnsureProposition(Node, frozen=True, kw_only=True):
    """`ensure_proposition` (KIP §55). Endpoints may be matches `{...}` and nested tuples."""

    handle: str | None = None
    tuple: Triple
    expect_version: Scalar | None = None


class Assert(Node, frozen=True, kw_only=True):
    """`assert_statement` (KIP §55.1): its members by name; `handle` names the Assertion created."""

    handle: str | None = None
    tuple: Triple
    by: DataValue
    mode: DataValue
    stance: DataValue | None = None
    confidence: DataValue | None = None
    at: DataValue | None = None
    valid: DataValue | None = None
    evidence: DataValue | None = None
    key: DataValue | None = None
    superseding: TargetRef | None = None


class Update(Node, frozen=True, kw_only=True):
    """`update_statement` (KIP §58): at least one action; `limit` caps how many elements change."""

    target: TargetRef
    expect_version: Scalar | None = None
    content: Content
    where: Where | None = None
    limit: Scalar | None = None


class RetractAssertion(Node, frozen=True, kw_only=True):
    """`retract_assertion`."""

    target: TargetRef
    where: Where | None = None
    limit: Scalar | None = None
    expect_state: Scalar | None = None


class SupersedeAssertion(Node, frozen=True, kw_only=True):
    """`supersede_assertion`: `SUPERSEDE ASSERTION target BY by`."""

    target: TargetRef
    by: TargetRef
    expect_state: Scalar | None = None


class CorrectEvidence(Node, frozen=True, kw_only=True):
    """`correct_evidence`: `CORRECT EVIDENCE target BY by`."""

    target: TargetRef
    by: TargetRef
    expect_state: Scalar | None = None


class TransitionActivity(Node, frozen=True, kw_only=True):
    """`transition_activity`: `TRANSITION ACTIVITY target TO to`, with what the last step finalizes."""

    target: TargetRef
    to: Scalar
    fields: Object | None = None
    structural: tuple[StructuralAssignment, ...] = ()
    expect_state: Scalar | None = None


class SetRetention(Node, frozen=True, kw_only=True):
    """`set_retention`: `SET RETENTION target {retention_class, expires_at, legal_hold}`."""

    target: TargetRef
    values: Object
    where: Where | None = None
    limit: Scalar | None = None
    expect_version: Scalar | None = None


class Archive(Node, frozen=True, kw_only=True):
    """`archive_statement`."""

    target: TargetRef
    where: Where | None = None
    limit: Scalar | None = None
    expect_state: Scalar | None = None


class Tombstone(Node, frozen=True, kw_only=True):
    """`tombstone_statement`."""

    target: TargetRef
    where: Where | None = None
    limit: Scalar | None = None
    expect_state: Scalar | None = None


class Purge(Node, frozen=True, kw_only=True):
    """`purge_statement`: its `CONFIRM "PURGE"` was read, or there would be no node."""

    target: TargetRef
    where: Where | None = None
    limit: Scalar | None = None
    reference_policy: Scalar | None = None


class MergeConcept(Node, frozen=True, kw_only=True):
    """`merge_concept`: `MERGE CONCEPT source INTO target`; WHERE binds or guards (KIP §11, §61)."""

    source: TargetRef
    target: TargetRef
    where: Where | None = None
    expect_version: Scalar | None = None


MutationClause = (
    CreateConcept
    | CreateRecord
    | UpsertConcept
    | EnsureProposition
    | Assert
    | Update
    | RetractAssertion
    | SupersedeAssertion
    | CorrectEvidence
    | TransitionActivity
    | SetRetention
    | Archive
    | Tombstone
    | Purge
    | MergeConcept
)
"""`mutation_clause`: a KML statement that may stand alone or in MUTATE."""


class Mutate(Node, frozen=True, kw_only=True):
    """`mutate_statement`: one or more clauses that commit together (KIP §53)."""

    clauses: tuple[MutationClause, ...]


KmlStatement = Mutate | MutationClause
"""`kml_statement`."""
