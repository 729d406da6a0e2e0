"""Checks of values against the definitions of a Schema Environment (KIP §20, Schema Packages §91-97).

What lives here: one function per place where a definition constrains data. What must never live here: reading
of state (targets are handed in with their kind and type), and any repair of a value: a value fits or is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, Final

from core.errors import NoemaError
from core.model.elements import AnyElement, Concept, StructuralRef
from core.model.ids import Kind
from core.model.instants import parse_instant
from core.model.literals import Literal, literal_type
from core.schema.definitions import ConceptType, Ends, Facet, PredicateType, Rule, StructuralField

_DURATION: Final = re.compile(
    r"P(?!\Z)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?\Z"
)
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+\Z")

Json = Any  # a JSON value


# --- single values


def is_number(value: Json) -> bool:
    """Whether a JSON value is a finite number; booleans are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_instant(value: Json) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parse_instant(value)
    except ValueError:
        return False
    return True


def _is_date(value: Json) -> bool:
    if not isinstance(value, str):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return len(value) == len("2026-01-01")


_IS: Final[dict[str, Callable[[Json], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and float(value).is_integer(),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "json_array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "json_object": lambda value: isinstance(value, dict),
    "json_scalar": lambda value: isinstance(value, (str, bool)) or is_number(value),
    "any": lambda value: value is not None,
    "timestamp": _is_instant,
    "datetime": _is_instant,
    "date": _is_date,
    "duration": lambda value: isinstance(value, str) and _DURATION.match(value) is not None,
    "uri": lambda value: isinstance(value, str) and _URI.match(value) is not None,
}


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def same_json(left: Json, right: Json) -> bool:
    """Equality of JSON values in which `true` and 1 are two values and 1 and 1.0 are one."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def check_value(value: Json, rule: Rule, place: str) -> None:
    """Refuse a value that a field rule does not admit.

    Raises:
        NoemaError: TypeMismatch or ConstraintViolation, with the place in `details.field`.
    """
    if value is None:
        if not rule.nullable:
            raise _mismatch(place, " or ".join(rule.types) or "a value", value)
        return
    if rule.types and not any(_IS[name](value) for name in rule.types):
        raise _mismatch(place, " or ".join(rule.types), value)
    if rule.enum and not any(same_json(value, allowed) for allowed in rule.enum):
        allowed = ", ".join(str(item) for item in rule.enum)
        raise _violation(place, f"must be one of {allowed}", allowed=list(rule.enum))
    if is_number(value):
        if rule.minimum is not None and value < rule.minimum:
            raise _violation(place, f"must be at least {rule.minimum}", minimum=rule.minimum)
        if rule.maximum is not None and value > rule.maximum:
            raise _violation(place, f"must be at most {rule.maximum}", maximum=rule.maximum)
    if isinstance(value, (str, list)):
        if rule.min_length is not None and len(value) < rule.min_length:
            raise _violation(place, f"must have at least {rule.min_length} items or characters")
        if rule.max_length is not None and len(value) > rule.max_length:
            raise _violation(place, f"may have at most {rule.max_length} items or characters")
    if isinstance(value, str) and rule.pattern is not None and not _compiled(rule.pattern).search(value):
        raise _violation(place, f"must match {rule.pattern}")


def _mismatch(place: str, expected: str, value: Json) -> NoemaError:
    actual = (
        "array" if isinstance(value, list) else "object" if isinstance(value, dict) else literal_type(value)
    )
    return NoemaError(
        "TypeMismatch",
        f"{place} must be {expected}, not {actual}",
        details={"field": place, "expected": expected, "actual": actual},
    )


def _violation(place: str, problem: str, **details: Json) -> NoemaError:
    return NoemaError("ConstraintViolation", f"{place} {problem}", details={"field": place, **details})


# --- attributes and facets


def check_attributes(
    definition: ConceptType, attributes: Mapping[str, Json], before: Mapping[str, Json] | None = None
) -> None:
    """Refuse the attributes of a Concept as it would stand: types, ranges, required, closed, immutable.

    Args:
        definition: the Concept's type.
        attributes: all its attributes after the change.
        before: its attributes when the transaction began; None for a new Concept.
    """
    for name, value in attributes.items():
        rule = definition.fields.get(name)
        if rule is not None:
            check_value(value, rule, f"attribute {name}")
        elif not definition.open:
            raise NoemaError(
                "SchemaFieldNotFound",
                f"{definition.name} has no attribute {name}",
                details={"field": name, "type": definition.ref, "fields": sorted(definition.fields)},
            )
    _check_required(definition.fields, attributes, f"{definition.name} needs the attribute")
    if before is not None:
        _check_immutable(definition.fields, attributes, before, "attribute")


def _check_required(fields: Mapping[str, Rule], values: Mapping[str, Json], problem: str) -> None:
    for name, rule in fields.items():
        if rule.required and name not in values:
            raise NoemaError(
                "ConstraintViolation", f"{problem} {name}", details={"field": name, "constraint": "required"}
            )


def _check_immutable(
    fields: Mapping[str, Rule], values: Mapping[str, Json], before: Mapping[str, Json], word: str
) -> None:
    for name, rule in fields.items():
        if not rule.mutable and name in before and not same_json(values.get(name), before[name]):
            raise NoemaError(
                "ImmutableField",
                f"the {word} {name} is fixed once it is set",
                details={"field": name},
            )


def check_facet(
    definition: Facet,
    element: AnyElement,
    kind: Kind,
    values: Mapping[str, Json],
    before: Mapping[str, Json] | None = None,
) -> None:
    """Refuse a facet of an element as it would stand, or a facet that does not apply to it (KIP §18.1)."""
    if not admits(
        definition.applicable_to, kind, element.schema_ref if isinstance(element, Concept) else None
    ):
        raise NoemaError(
            "ConstraintViolation",
            f"the Facet {definition.name} does not apply to this {kind}",
            details={"facet": definition.ref, "kind": kind},
        )
    for name, value in values.items():
        rule = definition.fields.get(name)
        if rule is not None:
            check_value(value, rule, f"{definition.name}.{name}")
        elif definition.closed:
            raise NoemaError(
                "SchemaFieldNotFound",
                f"the Facet {definition.name} has no field {name}",
                details={"field": name, "facet": definition.ref, "fields": sorted(definition.fields)},
            )
    _check_required(definition.fields, values, f"the Facet {definition.name} needs the field")
    if before is not None:
        _check_immutable(definition.fields, values, before, f"{definition.name} field")


# --- ends of tuples and references


def admits(ends: Ends, kind: Kind, schema_ref: str | None) -> bool:
    """Whether an element of a kind (and, for a Concept, of a type) may stand at an end."""
    if ends.anything:
        return True
    return kind in ends.kinds or (schema_ref is not None and schema_ref in ends.types)


def _ends_text(ends: Ends) -> str:
    names = [ref.rpartition("/")[2] for ref in ends.types] + list(ends.kinds) + list(ends.literals)
    return " or ".join(names)


_NAME_AN_ELEMENT: Final = 'Name an element: in one MUTATE, UPSERT CONCEPT ?x { MATCH {type: "Topic", key: "tea"} }, and ?x as the object.'


def check_subject(predicate: PredicateType, kind: Kind, schema_ref: str | None) -> None:
    """Refuse a subject whose kind or type the Predicate does not admit (KIP §12, Schema Packages §42)."""
    if not admits(predicate.subject, kind, schema_ref):
        raise _end_mismatch(predicate, "subject", predicate.subject, kind, schema_ref)


def check_object(predicate: PredicateType, kind: Kind, schema_ref: str | None) -> None:
    """Refuse an object element whose kind or type the Predicate does not admit."""
    if not admits(predicate.object, kind, schema_ref):
        raise _end_mismatch(predicate, "object", predicate.object, kind, schema_ref)


def _end_mismatch(
    predicate: PredicateType,
    end: str,
    ends: Ends,
    kind: str,
    schema_ref: str | None,
    *,
    hint: str | None = None,
) -> NoemaError:
    actual = schema_ref.rpartition("/")[2] if schema_ref else kind
    return NoemaError(
        "TypeMismatch",
        f"the {end} of {predicate.name} must be {_ends_text(ends)}, not {actual}",
        hint=hint,
        details={"predicate": predicate.ref, "end": end, "expected": _ends_text(ends), "actual": actual},
    )


def check_literal_object(predicate: PredicateType, literal: Literal) -> None:
    """Refuse a Literal object the Predicate does not admit; null needs an explicit permission (KIP §9.5)."""
    ends = predicate.object
    kind = literal_type(literal.value)
    names = {kind, literal.datatype} if literal.datatype else {kind}
    if kind == "number" and is_number(literal.value) and float(literal.value or 0).is_integer():
        names.add("integer")
    typed = {name for name in ends.literals if name in _IS and _IS[name](literal.value)}
    if kind == "null" and "null" not in ends.literals:
        raise _end_mismatch(predicate, "object", ends, "null", None)
    if not ends.anything and not (names | typed) & set(ends.literals):
        hint = None if ends.literals else _NAME_AN_ELEMENT
        raise _end_mismatch(predicate, "object", ends, f"a {kind}", None, hint=hint)
    if ends.rule is not None:
        check_value(literal.value, ends.rule, f"the object of {predicate.name}")


# --- structural references


def check_source(field: StructuralField, kind: Kind, schema_ref: str | None) -> None:
    """Refuse a structural field on a source that may not have it (KIP §17)."""
    if not admits(field.source, kind, schema_ref):
        raise _structural_mismatch(field, "source", field.source, kind, schema_ref)


def check_target(field: StructuralField, kind: Kind, schema_ref: str | None) -> None:
    """Refuse a structural reference to an element that the field may not name."""
    if not admits(field.target, kind, schema_ref):
        raise _structural_mismatch(field, "target", field.target, kind, schema_ref)


def _structural_mismatch(
    field: StructuralField, end: str, ends: Ends, kind: str, schema_ref: str | None
) -> NoemaError:
    actual = schema_ref.rpartition("/")[2] if schema_ref else kind
    return NoemaError(
        "StructuralReferenceInvalid",
        f"the {end} of {field.name} must be {_ends_text(ends)}, not {actual}",
        details={"field": field.ref, "end": end, "expected": _ends_text(ends), "actual": actual},
    )


def check_cardinality(field: StructuralField, references: Sequence[StructuralRef]) -> None:
    """Refuse too few or too many references in one structural field of one source (KIP §17.5)."""
    count = len(references)
    if count < field.minimum:
        raise _violation(field.name, f"needs at least {field.minimum} references", constraint="cardinality")
    if field.maximum is not None and count > field.maximum:
        raise _violation(field.name, f"takes at most {field.maximum} references", constraint="cardinality")
