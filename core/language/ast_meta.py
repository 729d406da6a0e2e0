"""The syntax tree of META: introspection, grounding, verification, history, export (KIP §63-69).

What lives here: one node per family. What must never live here: what a described thing is.
"""

from __future__ import annotations

import typing

from core.language.ast import AsOf, Node, Object, Scalar, TargetRef, Where

DescribeTopic = typing.Literal[
    "PRIMER", "PROTOCOL", "EXECUTION CONTEXT", "CAPABILITIES", "SPACE", "SCHEMA ENVIRONMENT", "PACKAGE", "TYPE",
    "PREDICATE", "FACET", "STRUCTURAL FIELD", "COMPATIBILITY", "ERROR", "TRANSACTION", "IDEMPOTENCY KEY",
    "SNAPSHOT", "CAPSULE", "EPISTEMIC POLICY", "PROJECTION CAPABILITY", "TRUST", "ACCESS",
]  # fmt: skip
"""What DESCRIBE is about; `IDEMPOTENCY KEY` is `DESCRIBE TRANSACTION BY IDEMPOTENCY KEY`."""

ListTopic = typing.Literal[
    "SPACES", "SCHEMA PACKAGES", "TYPES", "PREDICATES", "FACETS", "STRUCTURAL FIELDS", "EPISTEMIC POLICIES",
]  # fmt: skip

SearchKind = typing.Literal["concept", "proposition", "assertion", "evidence", "activity", "cognition"]

VerifyTarget = typing.Literal["CAPSULE", "SCHEMA PACKAGE", "RECEIPT", "BLOB", "CHECKPOINT"]

ValidateTarget = typing.Literal["KQL", "KML", "CAPSULE", "SCHEMA PACKAGE", "IMPORT PLAN"]

Operand = Scalar | Object
"""A `meta_value` that may name an artifact: the grammar writes a scalar, a bound parameter may be an object."""


class Describe(Node, frozen=True, kw_only=True):
    """`describe_statement` (KIP §64).

    `subject` is the thing named: the package of PACKAGE, the MODE of PRIMER, the key of IDEMPOTENCY KEY, the
    FROM side of COMPATIBILITY (whose TO side is `to`), and optional for SPACE, EPISTEMIC POLICY and TRUST.
    `as_of` goes with SCHEMA ENVIRONMENT and SNAPSHOT, `options` (WITH) with ACCESS.
    """

    topic: DescribeTopic
    subject: Operand | None = None
    to: Scalar | None = None
    as_of: AsOf | None = None
    options: Object | None = None


class ListStatement(Node, frozen=True, kw_only=True):
    """`list_statement`: what is in force, paged. `status` goes with SCHEMA PACKAGES."""

    topic: ListTopic
    status: Scalar | None = None
    limit: Scalar | None = None
    cursor: Scalar | None = None


class Search(Node, frozen=True, kw_only=True):
    """`search_statement` (KIP §65): grounding, whose score is neither confidence nor belief."""

    kind: SearchKind
    term: Scalar
    type: Scalar | None = None
    predicate: Scalar | None = None
    mode: Scalar | None = None
    threshold: Scalar | None = None
    as_of_seq: Scalar | None = None
    limit: Scalar | None = None
    cursor: Scalar | None = None


class Verify(Node, frozen=True, kw_only=True):
    """`verify_statement`: the integrity of an artifact."""

    target: VerifyTarget
    artifact: Operand


class Validate(Node, frozen=True, kw_only=True):
    """`validate_statement`: the legality of a command or an artifact; `options` is the object of WITH."""

    target: ValidateTarget
    subject: Operand
    options: Object | None = None


class PreviewKml(Node, frozen=True, kw_only=True):
    """`preview_kml`: the effect a KML command would have."""

    command: Scalar


class PreviewImport(Node, frozen=True, kw_only=True):
    """`preview_import_capsule`: the effect an import would have."""

    capsule: Operand
    into: Scalar


class History(Node, frozen=True, kw_only=True):
    """`history_element` (with an element) and `history_space` (without): chronology between two commits."""

    element: Scalar | None = None
    from_seq: Scalar | None = None
    to_seq: Scalar | None = None
    limit: Scalar | None = None
    cursor: Scalar | None = None


class Changes(Node, frozen=True, kw_only=True):
    """`changes_statement`: the stream of commits, `since` a change cursor or `after_seq` a number."""

    since: Scalar | None = None
    after_seq: Scalar | None = None
    limit: Scalar | None = None


class Snapshot(Node, frozen=True, kw_only=True):
    """`snapshot_statement`: a pinned coordinate of history."""

    as_of: AsOf | None = None


class ExportCapsule(Node, frozen=True, kw_only=True):
    """`export_capsule_statement`: the roots, what selects them, the options of WITH, and when."""

    target: TargetRef
    where: Where
    options: Object | None = None
    as_of: AsOf | None = None


MetaStatement = (
    Describe
    | ListStatement
    | Search
    | Verify
    | Validate
    | PreviewKml
    | PreviewImport
    | History
    | Changes
    | Snapshot
    | ExportCapsule
)
"""`meta_statement`."""
