"""The five kinds of cognitive element, as frozen values (KIP §6-17).

What lives here: shapes and nothing else. How an element may change is `core.mutation`'s business, how it is
found is `core.state`'s, how it is written down is `core.storage`'s. Structs are array-like to keep stored
bytes small, so a field is only ever **appended** to a kind, with a default, and never removed or moved: old
bytes must decode for ever. (The shared `Element` part comes first in the array, so it is closed: what a new
version wants every kind to carry is appended to each kind.)
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from core.model.ids import Kind
from core.model.instants import Instant
from core.model.literals import Term

State = Literal["active", "archived", "tombstoned", "merged", "purged"]
Stance = Literal["support", "reject", "uncertain"]
Mode = Literal["observed", "stated", "inferred", "predicted", "hypothetical", "imported"]
AssertionStatus = Literal["active", "retracted", "superseded", "expired"]
EvidenceRole = Literal["support", "challenge", "context"]

Json = Any  # a JSON value: None, bool, int, float, str, list or dict of the same


class SourceRef(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an imported element was where it came from: provenance, and never a name of anything here (KIP §38.1)."""

    nexus: str
    space: str
    element: str


class Origin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Engine-authenticated origin: who the transport verified, and by which way it came (KIP §6.2).

    sources: what an imported element was elsewhere, the nearest first; empty for what was written here.
    """

    principal: str
    channel: str
    import_id: str | None = None
    sources: tuple[SourceRef, ...] = ()


class System(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`_system`: what the engine maintains and no author may write (KIP §6.3)."""

    version: int
    created_at: Instant
    updated_at: Instant
    created_tx: str
    updated_tx: str
    origin: Origin
    state: State = "active"


class Retention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Storage lifecycle, which says nothing about truth or world time (KIP §19)."""

    retention_class: str = "standard"
    expires_at: Instant | None = None
    legal_hold: bool = False


class Governance(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Protected state of one element, which no author writes (KIP §6.2, §31).

    quarantined: kept, and out of ordinary use; that withdraws nothing (Governance §133-134). authority: how strongly
    it may influence action, if a host has raised it above `descriptive` (KIP §31.3).
    """

    classification: str | None = None
    policy_ref: str | None = None
    quarantined: bool = False
    authority: str | None = None


class StructuralRef(msgspec.Struct, frozen=True, array_like=True):
    """Record topology: one reference in a structural field, at its place in the tuple (KIP §17).

    `field` is the exact schema reference. Order is the order in the element's `structural` tuple.
    """

    field: str
    target: str
    options: dict[str, Json] = {}


class Citation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One Evidence cited by an Assertion, and in which role (KIP §15.6)."""

    evidence: str
    role: EvidenceRole = "support"


class ValidTime(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When a claim holds in the world: from (inclusive) until (exclusive); None is unbounded."""

    start: Instant | None = None
    until: Instant | None = None


class Element(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What every element carries (KIP §6.2). `space_id` is not stored: the log it stands in says it."""

    id: str
    system: System
    facets: dict[str, dict[str, Json]] = {}
    structural: tuple[StructuralRef, ...] = ()
    retention: Retention = Retention()
    governance: Governance = Governance()
    client_key: str | None = None


class Concept(Element, frozen=True, array_like=True, kw_only=True, tag="C"):
    """A referable entity or typed object (KIP §10). `schema_ref` is exact and fixed at creation."""

    schema_ref: str
    key: str | None = None
    name: str | None = None
    canonical_id: str | None = None
    aliases: tuple[str, ...] = ()
    attributes: dict[str, Json] = {}
    merged_into: str | None = None


class Proposition(Element, frozen=True, array_like=True, kw_only=True, tag="P"):
    """An immutable, truth-neutral statement (KIP §12). The subject is always a reference."""

    subject: str
    predicate_ref: str
    object: Term


class Assertion(Element, frozen=True, array_like=True, kw_only=True, tag="A"):
    """Somebody's commitment toward one Proposition (KIP §13); its payload never changes."""

    proposition: str
    asserted_by: str
    stance: Stance
    mode: Mode
    asserted_at: Instant
    confidence: float | None = None
    valid_time: ValidTime = ValidTime()
    evidence: tuple[Citation, ...] = ()
    context_refs: tuple[str, ...] = ()
    status: AssertionStatus = "active"
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    retracted_at: Instant | None = None


class Payload(msgspec.Struct, frozen=True, array_like=True):
    """Evidence bytes: inline JSON (usually text), or the reference of an external blob (KIP §15.3)."""

    mode: Literal["inline", "external", "purged"]
    inline: Json = None
    content_ref: str | None = None


class Evidence(Element, frozen=True, array_like=True, kw_only=True, tag="E"):
    """An addressable artifact that claims cite (KIP §15). Equal digests do not make two records one."""

    evidence_class: str
    payload: Payload
    content_digest: str
    media_type: str = "text/plain"
    observed_at: Instant | None = None
    source: tuple[str, ...] = ()
    generated_by: str | None = None
    corrects: tuple[str, ...] = ()
    corrected_by: tuple[str, ...] = ()
    status: Literal["active", "corrected"] = "active"


class Activity(Element, frozen=True, array_like=True, kw_only=True, tag="X"):
    """A process that produced or changed cognition (KIP §16). Terminal ones keep their topology."""

    activity_class: str
    status: str = "running"
    started_at: Instant | None = None
    ended_at: Instant | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    associated_actors: tuple[str, ...] = ()
    parameters_digest: str | None = None


AnyElement = Concept | Proposition | Assertion | Evidence | Activity

KIND_OF_TYPE: dict[type[Element], Kind] = {
    Concept: "concept",
    Proposition: "proposition",
    Assertion: "assertion",
    Evidence: "evidence",
    Activity: "activity",
}
