"""The shape of a Capsule, as values that JSON is checked against (KIP §37.6, Capsule design §5-§78).

What lives here: one struct for each part of the artifact. What must never live here: rules between the parts
(`core.capsule.read`). Structs are closed: a member nobody knows is refused, unless it stands under `extensions` by a
namespaced name. A member that is absent is left out, never null.

    {"format": "KIP-Cognitive-Capsule", "version": "2.0",
     "payload": {"manifest", "source", "schema", "records" | "changes", "external_refs", "blobs", "handling", "extensions"},
     "integrity": {"content_digest", "digest_profile", "proofs"}}
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, field

from core.model.elements import AssertionStatus, EvidenceRole, Json, Mode, Stance
from core.model.ids import Kind

FORMAT: Final = "KIP-Cognitive-Capsule"
VERSION: Final = "2.0"
PLURAL: Final[dict[Kind, str]] = {
    "activity": "activities",
    "assertion": "assertions",
    "concept": "concepts",
    "evidence": "evidence",
    "proposition": "propositions",
}
"""The kinds in the order in which a canonical payload has them, with the names of their lists."""

_Short = Annotated[str, Meta(min_length=1, max_length=512)]
_Ref = Annotated[str, Meta(pattern=r"^[a-z]:[1-9][0-9]{0,8}$")]
_Count = Annotated[int, Meta(ge=0)]
_Exported = Literal["active", "archived", "tombstoned", "merged", "purged"]


class Part(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """An object of a Capsule."""


# --- references


class Pointer(Part, frozen=True, kw_only=True):
    """A reference inside the Capsule: to an included record, or to a declared ExternalRef; one of the two."""

    ref: _Ref | None = field(default=None, name="$ref")
    external: _Ref | None = field(default=None, name="$external")


class LiteralValue(Part, frozen=True, kw_only=True):
    """A Literal as the object of a Proposition."""

    value: str | int | float | bool | None
    datatype: str | None = None
    language: str | None = None


class ObjectTerm(Part, frozen=True, kw_only=True):
    """The object of a Proposition: a pointer or a Literal."""

    ref: _Ref | None = field(default=None, name="$ref")
    external: _Ref | None = field(default=None, name="$external")
    literal: LiteralValue | None = None


ExternalKind = Literal[
    "source_element", "canonical_identity", "semantic_locator", "external_artifact", "redacted", "unavailable"
]


class ExternalRef(Part, frozen=True, kw_only=True):
    """What is referred to and not included, and why (KIP §40.1). `redacted` tells nothing but that."""

    external_ref: _Ref
    kind: ExternalKind
    element_kind: Kind | None = None
    element_id: _Short | None = None
    canonical_id: str | None = None
    schema_ref: _Short | None = None
    key: str | None = None
    name: str | None = None
    digest: _Short | None = None
    location: str | None = None
    reason: _Short | None = None


# --- records


class Ancestor(Part, frozen=True, kw_only=True):
    """What an element was in an earlier space."""

    nexus_id: _Short
    space_ref: _Short
    element_id: _Short


class SourceReceipt(Part, frozen=True, kw_only=True):
    """What the source's engine says of an element: provenance, and no truth of the destination's (design §102)."""

    element_id: _Short
    version: _Count = 1
    created_at: str | None = None
    updated_at: str | None = None
    created_tx: _Short | None = None
    updated_tx: _Short | None = None
    channel: _Short | None = None
    lineage: tuple[Ancestor, ...] = ()


class Structural(Part, frozen=True, kw_only=True):
    """One structural reference, in its order."""

    field: _Short
    target: Pointer
    options: dict[str, Json] = {}


class RetentionHint(Part, frozen=True, kw_only=True):
    """How long the source keeps the element."""

    retention_class: _Short | None = None
    expires_at: str | None = None
    legal_hold: bool = False


class Record(Part, frozen=True, kw_only=True):
    """What the record of every kind has. `classification` is the source's, a hint about handling."""

    ref: _Ref
    source_ref: SourceReceipt | None = None
    state: _Exported = "active"
    facets: dict[str, dict[str, Json]] = {}
    structural: tuple[Structural, ...] = ()
    retention: RetentionHint | None = None
    classification: str | None = None
    client_key: str | None = None
    withheld: tuple[_Short, ...] = ()


class ConceptRecord(Record, frozen=True, kw_only=True):
    """A Concept."""

    schema_ref: _Short
    key: str | None = None
    name: str | None = None
    canonical_id: str | None = None
    aliases: tuple[str, ...] = ()
    attributes: dict[str, Json] = {}
    merged_into: Pointer | None = None


class PropositionRecord(Record, frozen=True, kw_only=True):
    """A Proposition."""

    subject: Pointer
    predicate_ref: _Short
    object: ObjectTerm


class Cited(Part, frozen=True, kw_only=True):
    """One Evidence cited by an Assertion."""

    evidence: Pointer
    role: EvidenceRole = "support"


class ValidPeriod(Part, frozen=True, kw_only=True):
    """When a claim holds in the world."""

    start: str | None = field(default=None, name="from")
    until: str | None = None


class AssertionRecord(Record, frozen=True, kw_only=True):
    """An Assertion: its mode stays what it was at the source (design §100)."""

    proposition: Pointer
    asserted_by: Pointer
    stance: Stance
    mode: Mode
    asserted_at: str
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    valid_time: ValidPeriod | None = None
    evidence: tuple[Cited, ...] = ()
    context_refs: tuple[Pointer, ...] = ()
    status: AssertionStatus = "active"
    supersedes: tuple[Pointer, ...] = ()
    superseded_by: tuple[Pointer, ...] = ()
    retracted_at: str | None = None


class EvidencePayload(Part, frozen=True, kw_only=True):
    """Content of Evidence: in the record, in the blob table, or elsewhere under a reference that nobody follows."""

    inline: Json | msgspec.UnsetType = msgspec.UNSET
    blob: _Ref | None = None
    content_ref: str | None = None


class EvidenceRecord(Record, frozen=True, kw_only=True):
    """An Evidence."""

    evidence_class: _Short
    payload: EvidencePayload
    content_digest: _Short
    media_type: _Short = "text/plain"
    observed_at: str | None = None
    source: tuple[Pointer, ...] = ()
    generated_by: Pointer | None = None
    corrects: tuple[Pointer, ...] = ()
    corrected_by: tuple[Pointer, ...] = ()
    status: Literal["active", "corrected"] = "active"


class ActivityRecord(Record, frozen=True, kw_only=True):
    """An Activity."""

    activity_class: _Short
    status: _Short = "running"
    started_at: str | None = None
    ended_at: str | None = None
    inputs: tuple[Pointer, ...] = ()
    outputs: tuple[Pointer, ...] = ()
    associated_actors: tuple[Pointer, ...] = ()
    parameters_digest: str | None = None


AnyRecord = ConceptRecord | PropositionRecord | AssertionRecord | EvidenceRecord | ActivityRecord

RECORD_OF: Final[dict[Kind, type[Record]]] = {
    "activity": ActivityRecord,
    "assertion": AssertionRecord,
    "concept": ConceptRecord,
    "evidence": EvidenceRecord,
    "proposition": PropositionRecord,
}


class Records(Part, frozen=True, kw_only=True):
    """Included records, each kind in the order of its refs."""

    activities: tuple[ActivityRecord, ...] = ()
    assertions: tuple[AssertionRecord, ...] = ()
    concepts: tuple[ConceptRecord, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    propositions: tuple[PropositionRecord, ...] = ()

    def of(self, kind: Kind) -> tuple[AnyRecord, ...]:
        """The records of one kind."""
        found: tuple[AnyRecord, ...] = getattr(self, PLURAL[kind])
        return found


class SourceChange(Part, frozen=True, kw_only=True):
    """One commit of the source: what it left behind of each element it touched (design §247)."""

    space_seq: _Count
    tx_id: _Short
    committed_at: str
    transaction_class: _Short
    records: Records


# --- manifest, source, schema, blobs


class Closure(Part, frozen=True, kw_only=True):
    """How far references were followed (KIP §40.3)."""

    mode: Literal["closed", "referential", "selective"]
    semantic: Literal["closed", "external"]
    evidence: Literal["closed", "external"]
    structural: Literal["closed", "external"]
    provenance: Literal["full", "bounded", "none"]
    provenance_depth: _Count | None = None


class Manifest(Part, frozen=True, kw_only=True):
    """What the artifact is and how complete (design §13, §23)."""

    kind: Literal["snapshot", "delta"]
    created_at: str
    completeness: Literal["space_complete", "selection_complete", "closure_complete", "partial", "unknown"]
    closure: Closure
    counts: dict[str, _Count]
    canonicalization: dict[str, str] = {}
    selection: dict[str, Json] = {}
    exclusions: tuple[_Short, ...] = ()
    policy: Literal["unfiltered", "filtered"] = "unfiltered"
    derived_from_capsules: tuple[_Short, ...] = ()


class Source(Part, frozen=True, kw_only=True):
    """Which snapshot of which space (design §17). `self` points to the source's own identity, if it is included."""

    nexus_id: _Short
    space_ref: _Short
    snapshot_seq: _Count
    snapshot_tx: _Short
    schema_environment_version: _Count
    base_seq: _Count | None = None
    base_tx: _Short | None = None
    identity: Pointer | None = field(default=None, name="self")


class SchemaDependency(Part, frozen=True, kw_only=True):
    """An exact package that the records need to be understood; `artifact` is the package itself, inert."""

    package: _Short
    version: _Short
    digest: _Short
    artifact: dict[str, Json] | None = None


class Blob(Part, frozen=True, kw_only=True):
    """Content by its digest. `omitted` and `external` blobs have no bytes here; a location is never followed."""

    blob_ref: _Ref
    digest: _Short
    size: _Count
    media_type: _Short
    encoding: Literal["inline-base64", "omitted", "external"]
    data: str | None = None
    location: str | None = None


class Handling(Part, frozen=True, kw_only=True):
    """What the source asks of whoever imports this; it can only ever make the destination stricter."""

    classifications: tuple[str, ...] = ()
    requirements: tuple[dict[str, Json], ...] = ()


class Payload(Part, frozen=True, kw_only=True):
    """What is hashed and signed."""

    manifest: Manifest
    source: Source
    records: Records
    schema: tuple[SchemaDependency, ...] = ()
    changes: tuple[SourceChange, ...] = ()
    external_refs: tuple[ExternalRef, ...] = ()
    blobs: tuple[Blob, ...] = ()
    handling: Handling | None = None
    extensions: dict[str, dict[str, Any]] = {}


class Proof(Part, frozen=True, kw_only=True):
    """A detached signature over the content digest. It stands outside of what is hashed (design §135)."""

    type: Literal["signature"]
    suite: _Short
    verification_method: _Short
    scope: _Short
    signature: _Short
    created_at: str | None = None
    signer: str | None = None


class Integrity(Part, frozen=True, kw_only=True):
    """The digest of the canonical payload, and who signed it."""

    content_digest: _Short
    digest_profile: str = "kip-draft-canonical-json-v1"
    proofs: tuple[Proof, ...] = ()


class Artifact(Part, frozen=True, kw_only=True):
    """A whole Capsule."""

    format: str
    version: str
    payload: Payload
    integrity: Integrity
