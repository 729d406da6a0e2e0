"""From bytes to a checked Capsule: untrusted input, refused as early as possible (design §197-§205).

What lives here: size and depth bounds, the shape, the content digest, and rules between the parts that need neither
a schema nor a destination. What must never live here: the schema's rules (`check`), the destination's (`plan`).
Nothing here recurses over what it is given, and nothing is fetched from anywhere.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from core.capsule.format import (
    FORMAT,
    PLURAL,
    VERSION,
    ActivityRecord,
    AnyRecord,
    Artifact,
    AssertionRecord,
    Blob,
    ConceptRecord,
    EvidenceRecord,
    ExternalRef,
    ObjectTerm,
    Pointer,
    PropositionRecord,
    ValidPeriod,
)
from core.errors import NoemaError
from core.model.elements import Json
from core.model.ids import KINDS, Kind
from core.model.instants import parse_instant
from core.mutation.records import payload_digest
from core.protocol.canonical import PROFILE, digest_of, digest_of_bytes
from core.protocol.request import decode_json

MAX_DEPTH: Final = 64
MAX_BYTES: Final = 64 * 1024 * 1024  # of one artifact that is read whole
MAX_RECORDS: Final = 20_000  # of one transaction (`core.service.attempt`): an import is one
MAX_CHANGES: Final = 10_000  # commits in a delta

_ANY: Final[tuple[Kind, ...]] = KINDS
_CONCEPT: Final[tuple[Kind, ...]] = ("concept",)
_EVIDENCE: Final[tuple[Kind, ...]] = ("evidence",)


class Capsule(msgspec.Struct, frozen=True, kw_only=True):
    """A Capsule whose shape, digest and internal references hold.

    records: the latest record of each ref, with its kind, in the artifact's order.
    """

    artifact: Artifact
    digest: str
    records: dict[str, tuple[Kind, AnyRecord]]
    externals: dict[str, ExternalRef]
    blobs: dict[str, Blob]

    @property
    def is_delta(self) -> bool:
        """Whether it carries changes after a base and no state."""
        return self.artifact.payload.manifest.kind == "delta"


def decode_artifact(body: bytes, *, limit: int = MAX_BYTES) -> dict[str, Any]:
    """The JSON object in bytes, read strictly and within bounds.

    Raises:
        NoemaError: ArtifactTooLarge, ArtifactParseError.
    """
    if len(body) > limit:
        raise NoemaError(
            "ArtifactTooLarge",
            f"the Capsule has {len(body)} bytes; at most {limit} are read here",
            hint="Restore large backups with the command line: noema capsule import.",
            details={"limit_bytes": limit, "bytes": len(body)},
        )
    try:
        value = decode_json(body, limit=limit)
    except NoemaError as error:
        raise NoemaError(
            "ArtifactParseError", error.message.replace("the body", "the Capsule"), details=error.details
        ) from error
    return check_object(value)


def check_object(value: Any) -> dict[str, Any]:  # a JSON value
    """The value, if it is an object that is not nested too deep."""
    if not isinstance(value, dict):
        raise NoemaError("ArtifactParseError", "a Capsule is a JSON object")
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level = [item for item in inner if isinstance(item, (dict, list))]
        if not level:
            return value
    raise NoemaError("ArtifactParseError", f"the Capsule is nested deeper than {MAX_DEPTH} levels")


def read_shape(artifact: dict[str, Any]) -> Artifact:
    """The artifact as values, its content not yet looked at.

    Raises:
        NoemaError: ArtifactParseError, with the place in `details.at`.
    """
    if artifact.get("format") != FORMAT:
        raise NoemaError("ArtifactParseError", f"this is no Capsule: its format is not {FORMAT}")
    version = artifact.get("version")
    if version != VERSION:
        raise NoemaError(
            "ArtifactParseError",
            f"Capsules of version {str(version)[:40]} are not read here",
            details={"supported": [VERSION]},
        )
    try:
        return msgspec.convert(artifact, Artifact, strict=True)
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `")
        place = at.rstrip("`") or "$"
        raise NoemaError(
            "ArtifactParseError", f"the Capsule's shape is wrong: {problem[:200]}", details={"at": place}
        ) from error
    except RecursionError as error:
        raise NoemaError("ArtifactParseError", "the Capsule is nested too deep") from error


def check_digest(artifact: dict[str, Any], shape: Artifact) -> str:
    """The digest of the canonical payload, which must be the one the artifact names.

    Raises:
        NoemaError: DigestMismatch; UnsupportedCapability for another digest profile; ArtifactParseError for a
            payload that has no canonical form.
    """
    profile = shape.integrity.digest_profile
    if profile != PROFILE:
        raise NoemaError(
            "UnsupportedCapability",
            f"the digest profile {profile[:80]} is not known here",
            details={"supported": [PROFILE]},
        )
    try:
        actual = digest_of(artifact["payload"])
    except (ValueError, RecursionError) as error:
        raise NoemaError("ArtifactParseError", "the payload has no canonical form") from error
    claimed = shape.integrity.content_digest
    if claimed != actual:
        raise NoemaError(
            "DigestMismatch",
            "the Capsule's content is not what its digest names",
            details={"expected": claimed[:200], "actual": actual},
        )
    return actual


def read_capsule(artifact: dict[str, Any]) -> Capsule:
    """A Capsule that is whole: shape, digest, blobs, references.

    Raises:
        NoemaError: ArtifactParseError, DigestMismatch, UnsupportedCapability, CapsuleValidationFailed.
    """
    shape = read_shape(artifact)
    return assemble(shape, check_digest(artifact, shape))


def assemble(shape: Artifact, digest: str) -> Capsule:
    """A Capsule from values whose digest has been checked; see `read_capsule` for errors."""
    payload = shape.payload
    _check_extensions(payload.extensions)
    externals = _distinct([(each.external_ref, each) for each in payload.external_refs], "external_refs")
    blobs = _distinct([(each.blob_ref, each) for each in payload.blobs], "blobs")
    for blob in payload.blobs:
        check_blob(blob)
    records = _fold(shape)
    capsule = Capsule(artifact=shape, digest=digest, records=records, externals=externals, blobs=blobs)
    clash = records.keys() & externals.keys()
    if clash:
        raise _invalid(f"the ref {min(clash)} names a record and an ExternalRef", "external_refs")
    _check_counts(shape)
    for ref, (kind, record) in records.items():
        _check_pointers(capsule, ref, record)
        check_content(record, kind, capsule.blobs, delta=capsule.is_delta)
    _check_merges(records)
    identity = payload.source.identity
    if identity is not None:
        _check_pointer(capsule, "source.self", identity, _CONCEPT)
    return capsule


def _distinct(items: list[tuple[str, Any]], at: str) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        raise _invalid("a ref stands twice", at)
    return found


def _check_extensions(extensions: dict[str, dict[str, Any]]) -> None:
    for name, value in extensions.items():
        if "/" not in name:
            raise _invalid(f"the extension {name[:40]!r} has no namespace", "extensions")
        if value.get("critical") is True:
            raise NoemaError(
                "UnsupportedCapability",
                f"the extension {name[:80]} is critical and not known here",
                details={"extension": name[:200]},
            )


# --- records


def _fold(shape: Artifact) -> dict[str, tuple[Kind, AnyRecord]]:
    """The latest record of each ref. A delta names an element again in every commit that touched it."""
    payload = shape.payload
    delta = payload.manifest.kind == "delta"
    if delta != bool(payload.changes) and payload.changes:
        raise _invalid("a snapshot has no changes", "changes")
    if delta:
        _check_chain(shape)
    found: dict[str, tuple[Kind, AnyRecord]] = {}
    for records in [payload.records, *(change.records for change in payload.changes)]:
        fresh: set[str] = set()
        for kind in PLURAL:
            for record in records.of(kind):
                if record.ref in fresh:
                    raise _invalid(f"the ref {record.ref} stands twice", PLURAL[kind])
                fresh.add(record.ref)
                _check_same(found.get(record.ref), kind, record)
                found[record.ref] = (kind, record)
    if len(found) > MAX_RECORDS:
        raise NoemaError(
            "ArtifactTooLarge",
            f"the Capsule has {len(found)} records; one import takes {MAX_RECORDS}",
            hint="Export a smaller selection, or restore a backup into a new space.",
            details={"limit": MAX_RECORDS, "records": len(found)},
        )
    return found


def _check_same(known: tuple[Kind, AnyRecord] | None, kind: Kind, record: AnyRecord) -> None:
    if known is None:
        return
    before = known[1].source_ref
    now = record.source_ref
    one = (before.element_id if before else None) == (now.element_id if now else None)
    if known[0] != kind or not one:
        raise _invalid(f"the ref {record.ref} names two elements", PLURAL[kind])


def _check_chain(shape: Artifact) -> None:
    """A delta says from where to where, and its commits stand in that order (design §243-§246)."""
    source = shape.payload.source
    records = shape.payload.records
    if any(records.of(kind) for kind in PLURAL):
        raise _invalid("a delta has its records under changes", "records")
    if source.base_seq is None or source.base_tx is None:
        raise _invalid("a delta names its base", "source.base_seq")
    if len(shape.payload.changes) > MAX_CHANGES:
        raise NoemaError("ArtifactTooLarge", f"a delta has at most {MAX_CHANGES} commits")
    last = source.base_seq
    for change in shape.payload.changes:
        _instant(change.committed_at, "committed_at")
        if not last < change.space_seq <= source.snapshot_seq:
            raise _invalid("the commits of a delta stand in the order of their space_seq", "changes")
        last = change.space_seq


def _check_counts(shape: Artifact) -> None:
    counts = dict.fromkeys(PLURAL.values(), 0)
    for records in [shape.payload.records, *(change.records for change in shape.payload.changes)]:
        for kind, name in PLURAL.items():
            counts[name] += len(records.of(kind))
    claimed = {name: shape.payload.manifest.counts.get(name, 0) for name in counts}
    if claimed != counts:
        raise _invalid("the manifest counts other records than there are", "manifest.counts", actual=counts)


# --- references


def pointers(record: AnyRecord) -> Iterator[tuple[str, Pointer | ObjectTerm, tuple[Kind, ...]]]:
    """Every reference of a record: the field, where it points, and which kinds may stand there."""
    yield from (("structural", item.target, _ANY) for item in record.structural)
    if isinstance(record, ConceptRecord):
        if record.merged_into is not None:
            yield "merged_into", record.merged_into, _CONCEPT
    elif isinstance(record, PropositionRecord):
        yield "subject", record.subject, _ANY
        if record.object.literal is None:
            yield "object", record.object, _ANY
    elif isinstance(record, AssertionRecord):
        yield "proposition", record.proposition, ("proposition",)
        yield "asserted_by", record.asserted_by, _CONCEPT
        yield from (("evidence", cited.evidence, _EVIDENCE) for cited in record.evidence)
        yield from (("context_refs", target, _ANY) for target in record.context_refs)
        yield from (("supersedes", target, ("assertion",)) for target in record.supersedes)
        yield from (("superseded_by", target, ("assertion",)) for target in record.superseded_by)
    elif isinstance(record, EvidenceRecord):
        yield from (("source", target, ("concept", "evidence")) for target in record.source)
        if record.generated_by is not None:
            yield "generated_by", record.generated_by, ("activity",)
        yield from (("corrects", target, _EVIDENCE) for target in record.corrects)
        yield from (("corrected_by", target, _EVIDENCE) for target in record.corrected_by)
    elif isinstance(record, ActivityRecord):
        yield from (("inputs", target, _ANY) for target in record.inputs)
        yield from (("outputs", target, _ANY) for target in record.outputs)
        yield from (("associated_actors", target, _CONCEPT) for target in record.associated_actors)


def _check_pointers(capsule: Capsule, ref: str, record: AnyRecord) -> None:
    for name, pointer, kinds in pointers(record):
        _check_pointer(capsule, f"{ref}.{name}", pointer, kinds)


def _check_pointer(capsule: Capsule, at: str, pointer: Pointer | ObjectTerm, kinds: tuple[Kind, ...]) -> None:
    if (pointer.ref is None) == (pointer.external is None):
        raise _invalid("a reference is a $ref or an $external", at)
    if pointer.external is not None:
        external = capsule.externals.get(pointer.external)
        if external is None:
            raise _invalid(f"there is no ExternalRef {pointer.external}", at)
        kind = external.element_kind
    else:
        found = capsule.records.get(str(pointer.ref))
        if found is None:
            raise _invalid(f"there is no record {pointer.ref}", at)
        kind = found[0]
    if kind is not None and kind not in kinds:
        raise _invalid(f"{' or '.join(kinds)} may stand here, not {kind}", at)


def _check_merges(records: dict[str, tuple[Kind, AnyRecord]]) -> None:
    """`merged_into` never leads in a circle (KIP §11.1)."""
    done: set[str] = set()
    for ref in records:
        trail: list[str] = []
        step: str | None = ref
        while step is not None and step not in done:
            if step in trail:
                raise _invalid("merged_into leads in a circle", f"{step}.merged_into")
            trail.append(step)
            found = records.get(step)
            record = found[1] if found else None
            into = record.merged_into if isinstance(record, ConceptRecord) else None
            step = into.ref if into is not None else None
        done.update(trail)


# --- content


def check_content(record: AnyRecord, kind: Kind, blobs: dict[str, Blob], *, delta: bool) -> None:
    """Refuse a record whose times, payload or object are not well formed.

    Raises:
        NoemaError: CapsuleValidationFailed, DigestMismatch.
    """
    ref = record.ref
    if record.retention is not None and record.retention.expires_at is not None:
        _instant(record.retention.expires_at, f"{ref}.retention")
    if isinstance(record, AssertionRecord):
        _instant(record.asserted_at, f"{ref}.asserted_at")
        period = record.valid_time or ValidPeriod()
        for text in (record.retracted_at, period.start, period.until):
            if text is not None:
                _instant(text, ref)
    elif isinstance(record, EvidenceRecord):
        _check_evidence(blobs, ref, record)
    elif isinstance(record, ActivityRecord):
        for text in (record.started_at, record.ended_at):
            if text is not None:
                _instant(text, ref)
    elif isinstance(record, PropositionRecord):
        term = record.object
        if term.literal is not None and (term.ref is not None or term.external is not None):
            raise _invalid("an object is a reference or a Literal", f"{ref}.object")
    if record.state == "purged" and not delta:
        raise _invalid(f"a snapshot has no purged {kind}", ref)


def _check_evidence(blobs: dict[str, Blob], ref: str, record: EvidenceRecord) -> None:
    payload = record.payload
    given = [payload.inline is not msgspec.UNSET, payload.blob is not None, payload.content_ref is not None]
    if sum(given) != 1 and record.state != "purged":
        raise _invalid("a payload is inline, a blob or a content_ref, one of them", f"{ref}.payload")
    if payload.inline is not msgspec.UNSET:
        _same_digest(payload_digest(payload.inline), record.content_digest, ref)
    elif payload.blob is not None:
        blob = blobs.get(payload.blob)
        if blob is None:
            raise _invalid(f"there is no blob {payload.blob}", f"{ref}.payload")
        _same_digest(blob.digest, record.content_digest, ref)
    if record.observed_at is not None:
        _instant(record.observed_at, f"{ref}.observed_at")


def _same_digest(actual: str, claimed: str, ref: str) -> None:
    if actual != claimed:
        raise NoemaError(
            "DigestMismatch",
            "the content of an Evidence is not what its digest names",
            details={"ref": ref, "expected": claimed[:200], "actual": actual},
        )


def check_blob(blob: Blob) -> None:
    """The bytes of a blob that is here, against its digest and size.

    Raises:
        NoemaError: DigestMismatch, CapsuleValidationFailed.
    """
    if (blob.data is not None) != (blob.encoding == "inline-base64"):
        raise _invalid("inline-base64 has data, and nothing else has", blob.blob_ref)
    if blob.data is None:
        return
    try:
        body = base64.b64decode(blob.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid("the data is not base64", blob.blob_ref) from error
    if len(body) != blob.size or digest_of_bytes(body) != blob.digest:
        raise NoemaError(
            "DigestMismatch",
            "a blob is not what its digest and size say",
            details={"blob": blob.blob_ref, "expected": blob.digest, "actual": digest_of_bytes(body)},
        )


def blob_text(blob: Blob) -> str | None:
    """The text in a blob that is here; None for one that is not, or is no text."""
    if blob.data is None:
        return None
    try:
        return base64.b64decode(blob.data).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _instant(text: str, at: str) -> None:
    try:
        parse_instant(text)
    except ValueError as error:
        raise _invalid(f"a time is {error}", at) from error


def _invalid(problem: str, at: str, **details: Json) -> NoemaError:
    return NoemaError("CapsuleValidationFailed", f"{at}: {problem}", details={"at": at, **details})
