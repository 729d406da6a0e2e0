"""The fields of the five kinds by their wire names, and dot paths into them (KIP §6.2, §10-16, §44.1).

What lives here: one table per kind, name -> how it is read, which the matcher, FILTER, projections and the wire
form (`wire`) share; and the check that a path can exist. What must never live here: evaluation of expressions.

Instants read as RFC 3339 text, references as `Ref` (written `{"id": ...}`), so that a path can be compared with
an element. A field of another kind reads as null; a name that no kind has is refused (KQL design §58).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final

from core.errors import NoemaError
from core.governance import authority_lineage
from core.model.elements import (
    KIND_OF_TYPE,
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Evidence,
    Json,
    Origin,
    Proposition,
)
from core.model.instants import Instant, format_instant
from core.model.literals import Literal, Ref
from core.query.values import IdText
from core.schema.environment import Environment

Path = tuple[str, ...]
Getter = Callable[[Any], Any]  # an element of the table's kind -> a JSON value, Refs inside


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else format_instant(instant)


def _refs(ids: tuple[str, ...]) -> list[Ref]:
    return [Ref(found) for found in ids]


def _origin(origin: Origin) -> dict[str, Json]:
    found: dict[str, Json] = {
        "principal_id": origin.principal,
        "channel": origin.channel,
        "import_id": origin.import_id,
    }
    if origin.sources:
        found["sources"] = [
            {"nexus_id": source.nexus, "space_ref": source.space, "element_id": source.element}
            for source in origin.sources
        ]
    return found


def _system(element: AnyElement) -> dict[str, Json]:
    system = element.system
    return {
        "version": system.version,
        "created_at": _time(system.created_at),
        "updated_at": _time(system.updated_at),
        "created_tx": system.created_tx,
        "updated_tx": system.updated_tx,
        "state": system.state,
        "origin": _origin(system.origin),
    }


def _governance(element: AnyElement) -> dict[str, Json]:
    governance = element.governance
    out: dict[str, Json] = {
        "classification": governance.classification,
        "policy_ref": governance.policy_ref,
    }
    lineage = authority_lineage(element)
    if lineage:
        out["authority_lineage"] = [IdText(found) for found in lineage]
    if governance.authority is not None:
        out["max_influence_authority"] = governance.authority
    if governance.quarantined:
        out["quarantined"] = True
    if element.system.state == "purged":
        out["purged"] = True
    return out


def _retention(element: AnyElement) -> dict[str, Json]:
    retention = element.retention
    return {
        "retention_class": retention.retention_class,
        "expires_at": _time(retention.expires_at),
        "legal_hold": retention.legal_hold,
    }


def structural_of(element: AnyElement) -> dict[str, list[dict[str, Json]]]:
    """An element's structural references by exact field, each with its options, in order (KIP §17)."""
    out: dict[str, list[dict[str, Json]]] = {}
    for ref in element.structural:
        out.setdefault(ref.field, []).append({"id": ref.target, **ref.options})
    return out


def _object(proposition: Proposition) -> Any:
    term = proposition.object
    if isinstance(term, Literal) and term.datatype is None and term.language is None:
        return term.value
    return term


def _assertion_lifecycle(element: Assertion) -> dict[str, Json]:
    return {
        "status": element.status,
        "supersedes": _refs(element.supersedes),
        "superseded_by": _refs(element.superseded_by),
        "retracted_at": _time(element.retracted_at),
    }


def _evidence_lifecycle(element: Evidence) -> dict[str, Json]:
    return {
        "status": element.status,
        "corrects": _refs(element.corrects),
        "corrected_by": _refs(element.corrected_by),
    }


def _payload(element: Evidence) -> dict[str, Json]:
    payload = element.payload
    return {"mode": payload.mode, "inline": payload.inline, "content_ref": payload.content_ref}


_COMMON: Final[dict[str, Getter]] = {
    "id": lambda e: e.id,
    "kind": lambda e: KIND_OF_TYPE[type(e)],
    "governance": _governance,
    "retention": _retention,
    "facets": lambda e: e.facets,
    "structural": structural_of,
    "client_key": lambda e: e.client_key,
    "_system": _system,
}

FIELDS: Final[dict[type, dict[str, Getter]]] = {
    Concept: {
        **_COMMON,
        "schema_ref": lambda e: e.schema_ref,
        "key": lambda e: e.key,
        "name": lambda e: e.name,
        "canonical_id": lambda e: e.canonical_id,
        "aliases": lambda e: list(e.aliases),
        "attributes": lambda e: e.attributes,
        "merged_into": lambda e: None if e.merged_into is None else Ref(e.merged_into),
    },
    Proposition: {
        **_COMMON,
        "subject": lambda e: Ref(e.subject),
        "predicate_ref": lambda e: e.predicate_ref,
        "object": _object,
    },
    Assertion: {
        **_COMMON,
        "proposition": lambda e: Ref(e.proposition),
        "asserted_by": lambda e: Ref(e.asserted_by),
        "stance": lambda e: e.stance,
        "mode": lambda e: e.mode,
        "confidence": lambda e: e.confidence,
        "asserted_at": lambda e: _time(e.asserted_at),
        "valid_time": lambda e: {"from": _time(e.valid_time.start), "until": _time(e.valid_time.until)},
        "evidence": lambda e: [{"id": c.evidence, "role": c.role} for c in e.evidence],
        "context_refs": lambda e: _refs(e.context_refs),
        "lifecycle": _assertion_lifecycle,
    },
    Evidence: {
        **_COMMON,
        "evidence_class": lambda e: e.evidence_class,
        "payload": _payload,
        "content_digest": lambda e: e.content_digest,
        "media_type": lambda e: e.media_type,
        "observed_at": lambda e: _time(e.observed_at),
        "source": lambda e: _refs(e.source),
        "generated_by": lambda e: None if e.generated_by is None else Ref(e.generated_by),
        "lifecycle": _evidence_lifecycle,
    },
    Activity: {
        **_COMMON,
        "activity_class": lambda e: e.activity_class,
        "status": lambda e: e.status,
        "started_at": lambda e: _time(e.started_at),
        "ended_at": lambda e: _time(e.ended_at),
        "inputs": lambda e: _refs(e.inputs),
        "outputs": lambda e: _refs(e.outputs),
        "associated_actors": lambda e: _refs(e.associated_actors),
        "parameters_digest": lambda e: e.parameters_digest,
    },
}
"""Wire name -> reader, for each kind. `space_id` is missing: no element holds it, the query's context does."""

KIND_FIELDS: Final = {KIND_OF_TYPE[cls]: frozenset(table) | {"space_id"} for cls, table in FIELDS.items()}
ALL_FIELDS: Final = frozenset().union(*KIND_FIELDS.values())

SINGLE_REFS: Final[dict[str, Getter]] = {
    "proposition": lambda e: e.proposition,
    "asserted_by": lambda e: e.asserted_by,
    "generated_by": lambda e: e.generated_by,
    "merged_into": lambda e: e.merged_into,
    "subject": lambda e: e.subject,
}
"""Fields that refer to one element, read as its id or None."""

MANY_REFS: Final[dict[str, Getter]] = {
    "evidence": lambda e: [c.evidence for c in e.evidence],
    "context_refs": lambda e: e.context_refs,
    "source": lambda e: e.source,
    "inputs": lambda e: e.inputs,
    "outputs": lambda e: e.outputs,
    "associated_actors": lambda e: e.associated_actors,
    "supersedes": lambda e: e.supersedes,
    "superseded_by": lambda e: e.superseded_by,
    "corrects": lambda e: e.corrects,
    "corrected_by": lambda e: e.corrected_by,
}
"""Fields (and members of `lifecycle`) that refer to several elements, read as their ids."""

_Shape = dict[str, Any]  # member -> its own members, of the same kind; empty for what is open or a scalar


def _shape(*names: str, **inner: _Shape) -> _Shape:
    return {name: {} for name in names} | inner


_SHAPES: Final[dict[str, _Shape]] = {
    "governance": _shape(
        "classification", "policy_ref", "authority_lineage", "max_influence_authority", "quarantined", "purged"
    ),
    "retention": _shape("retention_class", "expires_at", "legal_hold"),
    "_system": _shape(
        "version", "created_at", "updated_at", "created_tx", "updated_tx", "state",
        origin=_shape("principal_id", "channel", "import_id", "sources"),
    ),
    "lifecycle": _shape("status", "supersedes", "superseded_by", "retracted_at", "corrects", "corrected_by"),
    "valid_time": _shape("from", "until"),
    **{name: _shape("id") for name in SINGLE_REFS},
}  # fmt: skip
"""The members of fields whose shape is closed."""

_BELIEF: Final = frozenset({
    "proposition_id", "proposition", "status", "support", "opposition", "uncertainty", "temporal", "policy",
    "explanation", "explanation_redacted",
})  # fmt: skip
_SLOT: Final = frozenset({
    "subject", "predicate_ref", "status", "accepted_values", "candidate_projections", "uncertainty", "temporal",
    "policy", "explanation", "explanation_redacted",
})  # fmt: skip
_EDGE: Final = frozenset({"source", "field_ref", "target", "index", "role", "attributes"})
_LITERAL: Final = frozenset({"value", "datatype", "language"})
VIRTUAL_FIELDS: Final = {"belief": _BELIEF, "slot": _SLOT, "edge": _EDGE}
"""First steps of a path into a virtual object (KQL design §47, §98, §113)."""

_SIDE: Final = _shape("score", "score_semantics", "assertion_ids", "root_groups")
_VIRTUAL_SHAPES: Final[dict[str, _Shape]] = {
    "support": _SIDE,
    "opposition": _SIDE,
    "uncertainty": _shape("level", "reasons"),
    "temporal": _shape("valid_at", "as_of_seq"),
    "policy": _shape("id", "version"),
    "proposition": _shape("predicate_ref", "object", subject=_shape("id")),
    "subject": _shape("id"),
    "source": _shape("id"),
    "target": _shape("id"),
}


def check_path(path: Path, env: Environment, sort: str = "element") -> Path:
    """A path with facet and structural names made exact, after the check that it can exist.

    Args:
        path: the steps behind the variable, as written.
        env: where facet and structural names are looked up.
        sort: what the variable stands for: element, one of the five kinds, object (an element or a literal),
            belief, slot, edge, or value (an open JSON value, in which any path may be asked for).

    Raises:
        NoemaError: SchemaFieldNotFound, SchemaSymbolNotFound, SchemaSymbolAmbiguous.
    """
    if sort == "value":
        return path
    virtual = VIRTUAL_FIELDS.get(sort)
    if virtual is not None:
        _require(path[0], virtual, path)
        return _within(path, _VIRTUAL_SHAPES.get(path[0]))
    if sort == "object" and path[0] in _LITERAL:  # an object of a tuple may be a typed literal
        return path
    _require(path[0], ALL_FIELDS, path)
    if path[0] == "facets" and len(path) > 1:
        facet = env.facet(path[1])
        if facet.closed and len(path) > 2:
            _require(path[2], frozenset(facet.fields), path)
        return ("facets", facet.ref, *path[2:])
    if path[0] == "structural" and len(path) > 1:
        return ("structural", env.structural(path[1]).ref, *path[2:])
    return _within(path, _SHAPES.get(path[0]))


def _within(path: Path, shape: _Shape | None) -> Path:
    """The path, after the check that its further steps are members of the shape that the first one has."""
    for step in path[1:]:
        if not shape:  # open, or as deep as the shape is known
            break
        _require(step, shape.keys(), path)
        shape = shape[step]
    return path


def _require(name: str, known: Any, path: Path) -> None:  # a set of names
    if name in known:
        return
    aliases = {"type": "schema_ref", "state": "_system.state", "predicate": "predicate_ref"}
    near = [aliases[name]] if name in aliases else difflib.get_close_matches(name, sorted(known), n=3)
    raise NoemaError(
        "SchemaFieldNotFound",
        f"there is no field .{'.'.join(path)}",
        hint=f"Did you mean {' or '.join(near)}?" if near else None,
        details={"field": name, "path": list(path), "near": near},
    )


def read_path(start: Any, path: Path) -> Any:  # a JSON value, Refs inside
    """Follow the rest of a path through JSON; null where it leads nowhere."""
    for step in path:
        if isinstance(start, dict):
            start = start.get(step)
        elif isinstance(start, Ref) and step == "id":
            start = start.id
        elif isinstance(start, Literal) and step in _LITERAL:
            start = getattr(start, step)
        else:
            return None
    return start


def read_field(element: AnyElement, path: Path, space_id: str, hidden: frozenset[str] | None = None) -> Any:
    """The value at a checked path of an element: JSON with Refs inside, null where there is nothing to see."""
    if path[0] == "space_id":
        return space_id
    getter = FIELDS[type(element)].get(path[0])
    if getter is None:
        return None
    if not hidden:
        return read_path(getter(element), path[1:])
    if any(".".join(path[:length]) in hidden for length in range(1, len(path) + 1)):
        return None
    return without(read_path(getter(element), path[1:]), ".".join(path), hidden)


def without(value: Any, at: str, hidden: frozenset[str]) -> Any:
    """A value with the hidden fields inside it left out."""
    if not isinstance(value, dict):
        return value
    return {
        name: without(item, f"{at}.{name}", hidden)
        for name, item in value.items()
        if f"{at}.{name}" not in hidden
    }
