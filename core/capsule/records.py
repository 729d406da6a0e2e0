"""Between stored elements and Capsule records, in both directions.

What lives here: element -> record given where each reference points, and record -> the fields of a new element given
what each pointer became. What must never live here: which elements are included, and what happens to what cannot be
resolved: a function that is handed in says so.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import UNSET

from core.capsule.format import (
    ActivityRecord,
    Ancestor,
    AnyRecord,
    AssertionRecord,
    Blob,
    Cited,
    ConceptRecord,
    EvidencePayload,
    EvidenceRecord,
    LiteralValue,
    ObjectTerm,
    Pointer,
    PropositionRecord,
    RetentionHint,
    SourceReceipt,
    Structural,
    ValidPeriod,
)
from core.capsule.read import blob_text
from core.model.elements import (
    AnyElement,
    Assertion,
    Citation,
    Concept,
    Evidence,
    Payload,
    Proposition,
    Retention,
    StructuralRef,
    ValidTime,
)
from core.model.instants import Instant, format_instant, parse_instant
from core.model.literals import Literal, Ref, Term, make_literal
from core.protocol.canonical import digest_of_bytes

BLOB_BYTES: Final = 4_096  # a longer text stands in the blob table, once however often it is cited

Point = Callable[[str], Pointer | None]  # an element id -> where it points; None: it may not be mentioned
Blobs = Callable[[str, str], str]  # a long text and its media type -> the ref of its blob


# --- element -> record


def record_of(
    element: AnyElement, token: str, point: Point, blobs: Blobs | None, *, origin: bool = True
) -> AnyRecord:
    """An element as a record under a local ref. References that `point` denies are left out.

    Args:
        element: of any kind.
        token: its ref.
        point: where each reference points.
        blobs: takes long texts; without it they stay in the record.
        origin: whether it is told by which way the element came, and from where before.
    """
    common = _common(element, token, point, origin=origin)
    if isinstance(element, Concept):
        into = None if element.merged_into is None else point(element.merged_into)
        return ConceptRecord(
            **common, schema_ref=element.schema_ref, key=element.key, name=element.name,
            canonical_id=element.canonical_id, aliases=element.aliases, attributes=element.attributes,
            merged_into=into,
        )  # fmt: skip
    if isinstance(element, Proposition):
        return PropositionRecord(
            **common,
            subject=_required(point, element.subject),
            predicate_ref=element.predicate_ref,
            object=_term(element.object, point),
        )
    if isinstance(element, Assertion):
        return _assertion(element, common, point)
    if isinstance(element, Evidence):
        return _evidence(element, common, point, blobs)
    return ActivityRecord(
        **common, activity_class=element.activity_class, status=element.status,
        started_at=_text(element.started_at), ended_at=_text(element.ended_at),
        inputs=_each(element.inputs, point), outputs=_each(element.outputs, point),
        associated_actors=_each(element.associated_actors, point),
        parameters_digest=element.parameters_digest,
    )  # fmt: skip


def _common(element: AnyElement, token: str, point: Point, *, origin: bool) -> dict[str, Any]:
    retention = element.retention
    hint = RetentionHint(
        retention_class=None if retention.retention_class == "standard" else retention.retention_class,
        expires_at=_text(retention.expires_at),
        legal_hold=retention.legal_hold,
    )
    return {
        "ref": token,
        "source_ref": _receipt(element, origin=origin),
        "state": element.system.state,
        "facets": element.facets,
        "structural": tuple(
            Structural(field=ref.field, target=target, options=ref.options)
            for ref in element.structural
            if (target := point(ref.target)) is not None
        ),
        "retention": None if hint == RetentionHint() else hint,
        "classification": element.governance.classification,
        "client_key": element.client_key,
    }


def _receipt(element: AnyElement, *, origin: bool) -> SourceReceipt:
    system = element.system
    return SourceReceipt(
        element_id=element.id,
        version=system.version,
        created_at=format_instant(system.created_at),
        updated_at=None if system.version == 1 else format_instant(system.updated_at),
        created_tx=system.created_tx,
        updated_tx=None if system.version == 1 else system.updated_tx,
        channel=system.origin.channel if origin else None,
        lineage=tuple(
            Ancestor(nexus_id=source.nexus, space_ref=source.space, element_id=source.element)
            for source in (system.origin.sources if origin else ())
        ),
    )


def _assertion(element: Assertion, common: dict[str, Any], point: Point) -> AssertionRecord:
    period = ValidPeriod(start=_text(element.valid_time.start), until=_text(element.valid_time.until))
    return AssertionRecord(
        **common,
        proposition=_required(point, element.proposition),
        asserted_by=_required(point, element.asserted_by),
        stance=element.stance,
        mode=element.mode,
        asserted_at=format_instant(element.asserted_at),
        confidence=element.confidence,
        valid_time=None if period == ValidPeriod() else period,
        evidence=tuple(
            Cited(evidence=target, role=cited.role)
            for cited in element.evidence
            if (target := point(cited.evidence)) is not None
        ),
        context_refs=_each(element.context_refs, point),
        status=element.status,
        supersedes=_each(element.supersedes, point),
        superseded_by=_each(element.superseded_by, point),
        retracted_at=_text(element.retracted_at),
    )


def _evidence(element: Evidence, common: dict[str, Any], point: Point, blobs: Blobs | None) -> EvidenceRecord:
    payload = EvidencePayload()
    if element.payload.mode == "inline":
        value = element.payload.inline
        if blobs is not None and isinstance(value, str) and len(value.encode()) > BLOB_BYTES:
            payload = EvidencePayload(blob=blobs(value, element.media_type))
        else:
            payload = EvidencePayload(inline=value)
    elif element.payload.mode == "external":
        payload = EvidencePayload(content_ref=element.payload.content_ref or element.content_digest)
    return EvidenceRecord(
        **common,
        evidence_class=element.evidence_class,
        payload=payload,
        content_digest=element.content_digest,
        media_type=element.media_type,
        observed_at=_text(element.observed_at),
        source=_each(element.source, point),
        generated_by=None if element.generated_by is None else point(element.generated_by),
        corrects=_each(element.corrects, point),
        corrected_by=_each(element.corrected_by, point),
        status=element.status,
    )


def _required(point: Point, target: str) -> Pointer:
    found = point(target)
    assert found is not None, "an element whose ends may not be mentioned is not exported"
    return found


def _each(targets: Iterable[str], point: Point) -> tuple[Pointer, ...]:
    return tuple(found for target in targets if (found := point(target)) is not None)


def _term(term: Term, point: Point) -> ObjectTerm:
    if isinstance(term, Ref):
        pointer = _required(point, term.id)
        return ObjectTerm(ref=pointer.ref, external=pointer.external)
    return ObjectTerm(literal=LiteralValue(value=term.value, datatype=term.datatype, language=term.language))


def _text(instant: Instant | None) -> str | None:
    return None if instant is None else format_instant(instant)


def blob_of(token: str, text: str, media_type: str, *, included: bool) -> Blob:
    """A long text as an entry of the blob table, with or without its bytes."""
    body = text.encode()
    return Blob(
        blob_ref=token,
        digest=digest_of_bytes(body),
        size=len(body),
        media_type=media_type,
        encoding="inline-base64" if included else "omitted",
        data=base64.b64encode(body).decode() if included else None,
    )


# --- record -> the fields of an element


class Landing:
    """Where a record's pointers land: `local` gives an id here, or None for what is not here."""

    def __init__(self, local: Callable[[Pointer | ObjectTerm], str | None], blobs: dict[str, Blob]) -> None:
        self._local = local
        self._blobs = blobs

    def fields(self, record: AnyRecord) -> dict[str, Any]:
        """The struct fields of the element that a record stands for. Required ends must have landed."""
        out = {
            "facets": record.facets,
            "structural": tuple(
                StructuralRef(item.field, target, item.options)
                for item in record.structural
                if (target := self._local(item.target)) is not None
            ),
        }
        if isinstance(record, ConceptRecord):
            return out | self._concept(record)
        if isinstance(record, PropositionRecord):
            return out | {
                "subject": self._local(record.subject),
                "predicate_ref": record.predicate_ref,
                "object": self.term(record.object),
            }
        if isinstance(record, AssertionRecord):
            return out | self._assertion(record)
        if isinstance(record, EvidenceRecord):
            return out | self._evidence(record)
        return out | {
            "activity_class": record.activity_class,
            "status": record.status,
            "started_at": _instant(record.started_at),
            "ended_at": _instant(record.ended_at),
            "inputs": self._each(record.inputs),
            "outputs": self._each(record.outputs),
            "associated_actors": self._each(record.associated_actors),
            "parameters_digest": record.parameters_digest,
        }

    def _concept(self, record: ConceptRecord) -> dict[str, Any]:
        return {
            "schema_ref": record.schema_ref,
            "name": record.name,
            "aliases": record.aliases,
            "attributes": record.attributes,
            "merged_into": None if record.merged_into is None else self._local(record.merged_into),
        }

    def term(self, term: ObjectTerm) -> Term | None:
        """The object of a Proposition, or None for a reference that did not land."""
        if term.literal is not None:
            return make_literal(term.literal.value, term.literal.datatype, term.literal.language)
        found = self._local(term)
        return None if found is None else Ref(found)

    def _assertion(self, record: AssertionRecord) -> dict[str, Any]:
        period = record.valid_time or ValidPeriod()
        return {
            "proposition": self._local(record.proposition),
            "asserted_by": self._local(record.asserted_by),
            "stance": record.stance,
            "mode": record.mode,
            "asserted_at": parse_instant(record.asserted_at),
            "confidence": record.confidence,
            "valid_time": ValidTime(_instant(period.start), _instant(period.until)),
            "evidence": tuple(
                Citation(target, cited.role)
                for cited in record.evidence
                if (target := self._local(cited.evidence)) is not None
            ),
            "context_refs": self._each(record.context_refs),
            "status": record.status,
            "supersedes": self._each(record.supersedes),
            "superseded_by": self._each(record.superseded_by),
            "retracted_at": _instant(record.retracted_at),
        }

    def _evidence(self, record: EvidenceRecord) -> dict[str, Any]:
        return {
            "evidence_class": record.evidence_class,
            "payload": self._payload(record),
            "content_digest": record.content_digest,
            "media_type": record.media_type,
            "observed_at": _instant(record.observed_at),
            "source": self._each(record.source),
            "generated_by": None if record.generated_by is None else self._local(record.generated_by),
            "corrects": self._each(record.corrects),
            "corrected_by": self._each(record.corrected_by),
            "status": record.status,
        }

    def _payload(self, record: EvidenceRecord) -> Payload:
        """Content that is here is kept; what is not stays a reference, and nobody follows it."""
        payload = record.payload
        if payload.inline is not UNSET:
            return Payload("inline", payload.inline)
        blob = None if payload.blob is None else self._blobs[payload.blob]
        text = None if blob is None else blob_text(blob)
        if text is not None:
            return Payload("inline", text)
        return Payload("external", content_ref=payload.content_ref or record.content_digest)

    def _each(self, targets: tuple[Pointer, ...]) -> tuple[str, ...]:
        return tuple(found for target in targets if (found := self._local(target)) is not None)


def retention_of(hint: RetentionHint | None, *, holds: bool) -> Retention:
    """Retention here: the source's class and expiry; a legal hold binds only in the source's own restored space."""
    if hint is None:
        return Retention()
    return Retention(
        hint.retention_class or "standard", _instant(hint.expires_at), hint.legal_hold if holds else False
    )


def literal_of(term: ObjectTerm) -> Literal | None:
    """The Literal an object is, or None for a reference."""
    if term.literal is None:
        return None
    return make_literal(term.literal.value, term.literal.datatype, term.literal.language)


def _instant(text: str | None) -> Instant | None:
    return None if text is None else parse_instant(text)
