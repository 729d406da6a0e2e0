"""The Core fields of the five kinds: which a command may write, when, and what values they take (KIP §6-16, §58).

What lives here: the table of fields with their checks, and the code with which every other field is refused.
What must never live here: attributes, facets and structural fields; packages define those.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from core.errors import NoemaError
from core.model.elements import Activity, AnyElement, Json, Mode, Stance, ValidTime
from core.model.ids import Kind
from core.model.instants import Instant, parse_instant
from core.mutation.lifecycle import ACTIVITY_STATES, TERMINAL_ACTIVITY
from core.schema.validate import is_number

_SYSTEM: Final = frozenset({
    "_system", "id", "kind", "space_id", "space_seq", "version", "created_at", "updated_at", "created_tx",
    "updated_tx", "state", "origin", "tx_id",
})  # fmt: skip
_GOVERNANCE: Final = frozenset({
    "governance", "classification", "policy_ref", "authority", "authority_lineage", "max_influence_authority",
    "quarantine", "trust",
})  # fmt: skip
_SCHEMA: Final = frozenset(
    {"schema_environment", "schema_environment_version", "schema_lock", "schema_packages"}
)
_RETENTION: Final = frozenset({"retention", "retention_class", "expires_at", "legal_hold"})
_PLANES: Final = {
    "attributes": "SET ATTRIBUTES",
    "facets": 'SET FACET "Name"',
    "structural": "SET STRUCTURAL",
}
_STRUCTURAL_OF: Final[dict[Kind, frozenset[str]]] = {
    "assertion": frozenset({"evidence"}),
    "evidence": frozenset({"source", "generated_by"}),
    "activity": frozenset({"inputs", "outputs", "associated_actors"}),
}
_DIGEST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*:.+\Z")


# --- checks of values


def _wrong(name: str, expected: str) -> NoemaError:
    return NoemaError(
        "TypeMismatch", f"{name} must be {expected}", details={"field": name, "expected": expected}
    )


def text(name: str, value: Json) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise _wrong(name, "a string")
    return value


def optional_text(name: str, value: Json) -> str | None:
    """A string, or null for none."""
    return None if value is None else text(name, value)


def instant(name: str, value: Json) -> Instant:
    """An RFC 3339 instant."""
    if not isinstance(value, str):
        raise _wrong(name, "an RFC 3339 instant")
    try:
        return parse_instant(value)
    except ValueError as error:
        raise NoemaError("TypeMismatch", f"{name} is {error}", details={"field": name}) from error


def optional_instant(name: str, value: Json) -> Instant | None:
    """An instant, or null for none."""
    return None if value is None else instant(name, value)


def _names(name: str, value: Json) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _wrong(name, "an array of strings")
    return tuple(dict.fromkeys(value))


def _one_of(name: str, value: Json, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a string")
    if value not in allowed:
        raise NoemaError(
            "ConstraintViolation",
            f"{name} must be one of {', '.join(allowed)}",
            details={"field": name, "allowed": list(allowed)},
        )
    return value


def _stance(name: str, value: Json) -> str:
    return _one_of(name, value, get_args(Stance))


def _mode(name: str, value: Json) -> str:
    return _one_of(name, value, get_args(Mode))


def _status(name: str, value: Json) -> str:
    return _one_of(name, value, tuple(ACTIVITY_STATES))


def _confidence(name: str, value: Json) -> float | None:
    if value is None:
        return None
    if not is_number(value):
        raise _wrong(name, "a number from 0 to 1")
    if not 0 <= value <= 1:
        raise NoemaError("ConstraintViolation", f"{name} is from 0 to 1", details={"field": name})
    return float(value)


def _valid_time(name: str, value: Json) -> ValidTime:
    if value is None:
        return ValidTime()
    if not isinstance(value, dict):
        raise _wrong(name, "an object {from, until}")
    unknown = sorted(value.keys() - {"from", "until"})
    if unknown:
        raise NoemaError(
            "SchemaFieldNotFound", f"{name} has no member {unknown[0]}", details={"fields": ["from", "until"]}
        )
    start = optional_instant(f"{name}.from", value.get("from"))
    until = optional_instant(f"{name}.until", value.get("until"))
    if start is not None and until is not None and start >= until:
        raise NoemaError("ConstraintViolation", f"{name} ends before it begins", details={"field": name})
    return ValidTime(start, until)


def check_period(started: Instant | None, ended: Instant | None) -> None:
    """Refuse an Activity that ends before it begins."""
    if started is not None and ended is not None and started > ended:
        raise NoemaError("ConstraintViolation", "the Activity ends before it begins")


def _digest(name: str, value: Json) -> str:
    found = text(name, value)
    if _DIGEST.match(found) is None:
        raise NoemaError("ConstraintViolation", f"{name} is written algorithm:value", details={"field": name})
    return found


Check = Callable[[str, Json], Any]

CREATED: Final[dict[Kind, dict[str, Check]]] = {
    "concept": {
        "name": optional_text, "key": text, "aliases": _names, "canonical_id": text,
    },
    "assertion": {
        "stance": _stance, "mode": _mode, "confidence": _confidence, "asserted_at": instant,
        "valid_time": _valid_time,
    },
    "evidence": {
        "evidence_class": text, "content_digest": _digest, "media_type": text, "observed_at": optional_instant,
    },
    "activity": {
        "activity_class": text, "status": _status, "started_at": optional_instant, "ended_at": optional_instant,
        "parameters_digest": _digest,
    },
}  # fmt: skip
"""Plain fields that a CREATE may give, by kind. References and the payload of Evidence are `records`' business."""

UPDATED: Final[dict[Kind, dict[str, Check]]] = {
    "concept": {"name": optional_text, "aliases": _names},
    "activity": {"started_at": optional_instant, "ended_at": optional_instant, "parameters_digest": _digest},
}
"""Fields that stay mutable: a Concept's grounding, and what a running Activity does not know yet."""


# --- refusals


def check_protected(name: str) -> None:
    """Refuse a field that no author writes, in whatever kind and plane it is tried (KIP §58.1).

    Raises:
        NoemaError: ProtectedSystemField, ProtectedGovernanceField or ProtectedSchemaState.
    """
    if name in _SYSTEM:
        raise NoemaError("ProtectedSystemField", f"{name} is written by the engine", details={"field": name})
    if name in _GOVERNANCE:
        raise NoemaError("ProtectedGovernanceField", f"{name} is protected", details={"field": name})
    if name in _SCHEMA:
        raise NoemaError("ProtectedSchemaState", f"{name} is protected", details={"field": name})
    if name in _RETENTION:
        raise NoemaError(
            "ProtectedGovernanceField",
            f"{name} is retention, not content",
            hint="Use SET RETENTION.",
            details={"field": name},
        )


def check_plane_member(name: str) -> None:
    """Refuse an attribute or facet member that poses as the engine's or the host's (KIP §18.2)."""
    if name in {"_system", "governance", "space_id", "space_seq"}:
        check_protected(name)


def refuse_created(kind: Kind, name: str) -> NoemaError:
    """Why a CREATE of a kind may not give a field."""
    check_protected(name)
    if name in _PLANES or name in _STRUCTURAL_OF.get(kind, ()):
        clause = _PLANES.get(name, "SET STRUCTURAL")
        return NoemaError(
            "SchemaFieldNotFound", f"{name} is not a plain field", hint=f"Write it with {clause}."
        )
    if name in {"supersedes", "superseded_by", "corrects", "corrected_by", "lifecycle", "merged_into"} or (
        name == "status" and kind != "activity"
    ):
        return NoemaError(
            "InvalidLifecycleTransition",
            f"{name} is moved by lifecycle commands",
            hint="Use SUPERSEDE, CORRECT EVIDENCE, RETRACT or MERGE.",
            details={"field": name},
        )
    if name in {"type", "schema_ref"}:
        return NoemaError("ImmutableField", "the type is given by TYPE or MATCH", details={"field": name})
    fields = sorted({*CREATED.get(kind, {}), *EXTRA.get(kind, ())})
    return NoemaError(
        "SchemaFieldNotFound", f"{kind} has no field {name}", details={"field": name, "fields": fields}
    )


EXTRA: Final[dict[Kind, tuple[str, ...]]] = {
    "assertion": ("proposition", "asserted_by", "context_refs"),
    "evidence": ("payload",),
}
"""Fields of a CREATE whose values are references or payloads."""

_PAYLOAD_CODES: Final[dict[Kind, tuple[str, str]]] = {
    "proposition": ("ImmutableField", "a Proposition's tuple never changes"),
    "assertion": ("EpistemicRevisionRequired", "what an Assertion claims never changes"),
    "evidence": ("EvidenceCorrectionRequired", "what Evidence holds never changes"),
}


def refuse_updated(element: AnyElement, kind: Kind, name: str) -> NoemaError:
    """Why an UPDATE may not set a field of an element that exists (KIP §58.1-58.2)."""
    check_protected(name)
    if kind in _PAYLOAD_CODES:
        code, message = _PAYLOAD_CODES[kind]
        return NoemaError(code, message, details={"element": element.id, "field": name})
    if isinstance(element, Activity):
        return refuse_activity(element, name)
    if name in _PLANES:
        return NoemaError(
            "SchemaFieldNotFound", f"{name} is not a plain field", hint=f"Write it with {_PLANES[name]}."
        )
    if name in {"key", "schema_ref", "type", "canonical_id", "client_key", "merged_into"}:
        return NoemaError(
            "ImmutableField",
            f"{name} is part of a Concept's identity",
            details={"element": element.id, "field": name},
        )
    return NoemaError(
        "SchemaFieldNotFound",
        f"a Concept has no field {name}",
        hint="Other data of a Concept is written with SET ATTRIBUTES.",
        details={"field": name, "fields": sorted(UPDATED["concept"])},
    )


def refuse_activity(activity: Activity, name: str) -> NoemaError:
    """Why a field or reference of an Activity may not be set by UPDATE."""
    details = {"element": activity.id, "field": name, "status": activity.status}
    if activity.status in TERMINAL_ACTIVITY:
        return NoemaError("ActivityTerminal", f"the Activity is {activity.status}", details=details)
    return NoemaError(
        "ImmutableField",
        f"{name} of an Activity is settled when it ends",
        hint="TRANSITION ACTIVITY finalizes fields and references.",
        details=details,
    )
