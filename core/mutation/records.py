"""Creation: Concepts by CREATE and UPSERT, and the records Evidence, Assertion and Activity (KIP §54, §56).

What lives here: which element a creating clause is about (a new one, or the one its key or client key names) and
the fields it gets. What must never live here: tuples (`tuples`) and changes of what exists (`changes`).

A `client_key` makes a creation safe to retry (KIP §7.5): the same key with the same immutable content is the
element that is already there, and with another content it is ClientKeyConflict.
"""

from __future__ import annotations

from typing import Any, Final

from core.authority import authorize
from core.errors import NoemaError
from core.language import ast
from core.language.ast_kml import CreateConcept, CreateRecord, UpsertConcept
from core.language.plain import plain_value
from core.model.elements import AnyElement, Citation, Json, Payload, ValidTime
from core.model.ids import Kind
from core.mutation.content import ContentWriter, symbol
from core.mutation.edit import Edit
from core.mutation.expressions import Reader
from core.mutation.fields import CREATED, EXTRA, check_period, optional_text, refuse_created, text
from core.mutation.work import Handle, Work, check_selector
from core.protocol.canonical import digest_of, digest_of_bytes
from core.state.indexes import canonical_key, client_key, concept_key

_ROLES: Final = ("support", "challenge", "context")
_TOPOLOGY: Final[dict[Kind, dict[str, bool]]] = {
    # field: whether it holds several references
    "evidence": {"source": True, "generated_by": False},
    "activity": {"inputs": True, "outputs": True, "associated_actors": True},
}
_REQUIRED: Final[dict[Kind, tuple[str, ...]]] = {
    "assertion": ("proposition", "asserted_by", "stance", "mode"),
    "evidence": ("evidence_class", "payload"),
    "activity": ("activity_class",),
}
_IDENTITY: Final[dict[Kind, tuple[str, ...]]] = {
    # what a retry under the same client key must repeat
    "concept": ("schema_ref", "key"),
    "assertion": (
        "proposition", "asserted_by", "stance", "mode", "confidence", "asserted_at", "valid_time", "evidence",
        "context_refs",
    ),
    "evidence": (
        "evidence_class", "payload", "content_digest", "media_type", "observed_at", "source", "generated_by",
    ),
    "activity": ("activity_class", "started_at", "parameters_digest"),
}  # fmt: skip

_UNSAID: Final[dict[str, Any]] = {
    "key": None, "confidence": None, "valid_time": ValidTime(), "evidence": (), "context_refs": (),
    "media_type": "text/plain", "observed_at": None, "source": (), "generated_by": None,
}  # fmt: skip
"""What a field is where a creation leaves it out; a field not listed is then not compared (its default is a
time, or it may have changed since)."""


# --- Concepts


def declare_concept(work: Work, clause: CreateConcept) -> Edit | None:
    """Settle which element a CREATE CONCEPT is about; None where a retry finds it there."""
    definition = work.env.type(symbol(clause.type), write=True)
    key = _client_key(clause.client_key)
    existing = _retried(work, "concept", key)
    if existing is not None:
        work.bind(clause.handle, Handle(existing.id, "concept", created=False))
        check_retry(existing, "concept", {"schema_ref": definition.ref, **_given_key(clause)})
        return None
    edit = work.new("concept", "create")
    edit.fields["schema_ref"] = definition.ref
    _claim_client_key(work, edit, key)
    work.declare(clause.handle, edit)
    return edit


def _given_key(clause: CreateConcept) -> dict[str, Json]:
    value = None if clause.content.fields is None else clause.content.fields.get("key")
    return {} if value is None else {"key": plain_value(value)}


def write_concept(work: Work, clause: CreateConcept, edit: Edit) -> None:
    """Give a new Concept its content; its key and canonical id must be free (KIP §7.3-7.4)."""
    reader = Reader(work.env, None, None, work.reference)
    if clause.name is not None:
        edit.set_field("name", optional_text("NAME", plain_value(clause.name)))
    ContentWriter(work, edit, reader).write(clause.content)
    key = edit.fields.get("key")
    if key is not None:
        _take_key(work, edit, str(edit.fields["schema_ref"]), str(key))
    canonical = edit.fields.get("canonical_id")
    if canonical is not None:
        _take_canonical(work, edit, str(canonical))


def _take_key(work: Work, edit: Edit, schema_ref: str, key: str) -> None:
    work.check_free(schema_ref, key)
    found = work.draft.find_concept(schema_ref, key)
    if found is not None and found.system.state != "purged":
        raise NoemaError(
            "IdentityConflict",
            f"a Concept of this type already has the key {key[:80]}",
            hint="UPSERT CONCEPT resolves it instead of creating another.",
            details={"key": key, "type": schema_ref},
        )
    work.claim(
        concept_key(schema_ref, key), edit.id, f"two Concepts of the statement take the key {key[:80]}"
    )


def _take_canonical(work: Work, edit: Edit, canonical: str) -> None:
    authorize(work.principal, "bind_canonical_identity")
    if work.concepts({"canonical_id": canonical}):
        raise NoemaError("IdentityConflict", "another Concept has this canonical id")
    work.claim(canonical_key(canonical), edit.id, "two Concepts of the statement take one canonical id")


def declare_upsert(work: Work, clause: UpsertConcept) -> Edit:
    """Settle which Concept an UPSERT is about: the one its MATCH names, or a new one of MATCH's type (KIP §54.4)."""
    members = {member.name: plain_value(member.value) for member in clause.match.members}
    check_selector(members, allow_name=True)
    if "name" in members:
        work.warnings.append(
            ("MatchMemberUnused", "MATCH selects by type, key and id; its name was not used")
        )
    definition = work.env.type(members["type"], write=True) if "type" in members else None
    selector: dict[str, str] = {
        name: members[name] for name in ("type", "key", "canonical_id") if name in members
    }
    if "id" in members:
        found = work.identified({name: members[name] for name in ("id", "type") if name in members})
        edit = work.editable(found, "update")
        if edit.kind != "concept" or ("key" in members and getattr(edit.base, "key", None) != members["key"]):
            raise NoemaError("NotFoundOrNotVisible", "there is no such Concept, or you may not see it")
        work.declare(clause.handle, edit)
        return edit
    candidates = work.concepts(selector)
    if candidates:
        edit = work.editable(candidates[0], "update")
    elif "key" not in members:
        raise NoemaError("NotFoundOrNotVisible", "no Concept has this canonical id; a key could create one")
    elif definition is None:
        raise NoemaError(
            "SchemaSymbolNotFound",
            "no Concept has this key, and MATCH names no type for a new one",
            hint='Write MATCH {type: "...", key: "..."}.',
        )
    else:
        work.check_free(definition.ref, members["key"])
        known = work.keys.get(concept_key(definition.ref, members["key"]))
        edit = work.edits[known] if known is not None else work.new("concept", "create")
        edit.fields.update(schema_ref=definition.ref, key=members["key"])
        work.keys[concept_key(definition.ref, members["key"])] = edit.id
    work.declare(clause.handle, edit)
    return edit


def write_upsert(work: Work, clause: UpsertConcept, edit: Edit) -> None:
    """Apply an UPSERT's mutable state, if its EXPECT VERSION holds."""
    expect_version(work, edit, clause.expect_version)
    reader = Reader(work.env, edit.base, clause.handle, work.reference)
    ContentWriter(work, edit, reader).write(clause.content)
    if edit.base is None and "canonical_id" in edit.fields:
        _take_canonical(work, edit, str(edit.fields["canonical_id"]))


def expect_version(work: Work, edit: Edit, expected: ast.Scalar | None) -> None:
    """`EXPECT VERSION` against the state the transaction commits onto; 0 means create-only (KIP §35).

    Raises:
        NoemaError: VersionConflict.
    """
    if expected is None:
        return
    wanted = plain_value(expected)
    stood = work.draft.before(edit.id) or edit.base
    actual = 0 if stood is None else stood.system.version
    if wanted != actual:
        raise NoemaError(
            "VersionConflict",
            f"the element is at version {actual}, not {wanted}",
            details={"element": edit.id, "expected": wanted, "actual": actual},
        )


# --- records


def declare_record(work: Work, clause: CreateRecord) -> Edit | None:
    """Settle which element a CREATE EVIDENCE, ASSERTION or ACTIVITY is about; None where a retry finds it."""
    key = _client_key(clause.client_key)
    existing = _retried(work, clause.kind, key)
    if existing is not None:
        work.bind(clause.handle, Handle(existing.id, clause.kind, created=False))
        return None
    edit = work.new(clause.kind, "assert" if clause.kind == "assertion" else "create")
    _claim_client_key(work, edit, key)
    work.declare(clause.handle, edit)
    return edit


def write_record(work: Work, clause: CreateRecord, edit: Edit | None) -> None:
    """Give a new record its fields, or compare them with those of the record a retry found."""
    fields = _record_fields(work, clause)
    if edit is None:
        existing = work.existing(work.handles[clause.handle].id)
        check_retry(existing, clause.kind, fields)
        return
    for name in _REQUIRED[clause.kind]:
        if name not in fields:
            raise NoemaError(
                "ConstraintViolation",
                f"{clause.kind} needs the field {name}",
                details={"field": name, "constraint": "required"},
            )
    if clause.kind == "assertion":
        fields.setdefault("asserted_at", work.draft.now)
    edit.fields.update(fields)
    ContentWriter(work, edit, Reader(work.env, None, None, work.reference)).facets(clause.content)


def _record_fields(work: Work, clause: CreateRecord) -> dict[str, Any]:
    kind, content = clause.kind, clause.content
    fields: dict[str, Any] = {}
    reader = Reader(work.env, None, None, work.reference)
    for member in content.fields.members if content.fields is not None else ():
        check = CREATED[kind].get(member.name)
        if check is not None:
            fields[member.name] = check(member.name, reader.json(member.value))
        elif member.name in EXTRA.get(kind, ()):
            fields[member.name] = _extra(work, reader, member)
        else:
            raise refuse_created(kind, member.name)
    _topology(work, clause, fields, reader)
    if kind == "evidence" and "payload" in fields:
        _digest(fields)
    if kind == "activity":
        check_period(fields.get("started_at"), fields.get("ended_at"))
    return fields


def _extra(work: Work, reader: Reader, member: ast.Member) -> Any:  # an id, ids or a Payload
    if member.name == "payload":
        return read_payload(reader.json(member.value))
    if member.name == "context_refs":
        if not isinstance(member.value, ast.Array):
            raise NoemaError("TypeMismatch", "context_refs is an array of references")
        return tuple(dict.fromkeys(work.target(item) for item in member.value.items))
    if isinstance(member.value, ast.Array):
        raise NoemaError("ConstraintViolation", f"an Assertion has exactly one {member.name}")
    return work.target(member.value)


def read_payload(value: Json) -> Payload:
    """Evidence's payload: `{mode, inline | content_ref}`, or any JSON value, which is then inline (KIP §15.3)."""
    if isinstance(value, dict) and value.get("mode") in {"inline", "external"} and value.keys() <= {
        "mode", "inline", "content_ref",
    }:  # fmt: skip
        if value["mode"] == "external":
            if value.get("inline") is not None:
                raise NoemaError("ConstraintViolation", "an external payload has no inline content")
            return Payload("external", None, text("payload.content_ref", value.get("content_ref")))
        if value.get("content_ref") is not None or value.get("inline") is None:
            raise NoemaError("ConstraintViolation", "an inline payload has inline content and no content_ref")
        return Payload("inline", value["inline"])
    if value is None:
        raise NoemaError("TypeMismatch", "a payload is a value, not null", details={"field": "payload"})
    return Payload("inline", value)


def payload_digest(inline: Json) -> str:
    """The digest of inline content: of a text's UTF-8 bytes, of anything else's canonical JSON."""
    return digest_of_bytes(inline.encode("utf-8")) if isinstance(inline, str) else digest_of(inline)


def _digest(fields: dict[str, Any]) -> None:
    payload: Payload = fields["payload"]
    if payload.mode == "external":
        if "content_digest" not in fields:
            raise NoemaError("ConstraintViolation", "an external payload needs its content_digest")
        return
    actual = payload_digest(payload.inline)
    if fields.setdefault("content_digest", actual) != actual:
        raise NoemaError(
            "DigestMismatch",
            "content_digest is not the digest of the payload",
            details={"expected": fields["content_digest"], "actual": actual},
        )
    if not isinstance(payload.inline, str):
        fields.setdefault("media_type", "application/json")


def _topology(work: Work, clause: CreateRecord, fields: dict[str, Any], reader: Reader) -> None:
    """The Core structural references of a record, into the fields that hold them (KIP §20.13)."""
    citations: dict[tuple[str, str], Citation] = {}
    for assignment in clause.content.structural:
        field = work.env.structural(symbol(assignment.field), clause.kind, write=True)
        if not field.core:
            raise NoemaError(
                "StructuralReferenceInvalid",
                f"{field.name} is not a field of {clause.kind}",
                details={"field": field.ref, "kind": clause.kind},
            )
        target = work.target(assignment.target)
        options = {} if assignment.options is None else reader.json(assignment.options)
        if field.name == "evidence":
            role = options.pop("role", "support")
            if role not in _ROLES:
                raise NoemaError("ConstraintViolation", f"a role is one of {', '.join(_ROLES)}")
            citations[target, role] = Citation(target, role)
        elif _TOPOLOGY[clause.kind][field.name]:
            fields[field.name] = tuple(dict.fromkeys((*fields.get(field.name, ()), target)))
        elif fields.setdefault(field.name, target) != target:
            raise NoemaError("ConstraintViolation", f"{field.name} takes one reference")
        if options:
            raise NoemaError("ConstraintViolation", f"{field.name} has no option {next(iter(options))}")
    if citations:
        fields["evidence"] = tuple(citations.values())


# --- client keys


def _client_key(node: ast.Scalar | None) -> str | None:
    return None if node is None else text("CLIENT KEY", plain_value(node))


def _retried(work: Work, kind: Kind, key: str | None) -> AnyElement | None:
    return None if key is None else work.by_client_key(kind, key)


def _claim_client_key(work: Work, edit: Edit, key: str | None) -> None:
    if key is not None:
        edit.fields["client_key"] = key
        problem = f"two clauses of the statement create under the client key {key[:80]}"
        work.claim(client_key(edit.kind, key), edit.id, problem)


def check_retry(existing: AnyElement, kind: Kind, fields: dict[str, Any]) -> None:
    """Whether what a retry would create is what there is (KIP §7.5).

    Raises:
        NoemaError: ClientKeyConflict.
    """
    different = [
        name
        for name in _IDENTITY[kind]
        if (name in fields or name in _UNSAID)
        and fields.get(name, _UNSAID.get(name)) != getattr(existing, name)
    ]
    if different:
        raise NoemaError(
            "ClientKeyConflict",
            f"the client key names an element with another {different[0]}",
            details={"element": existing.id, "fields": different},
        )
