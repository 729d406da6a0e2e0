"""How values compare, order and read as JSON: one set of rules for patterns, FILTER, grouping and ORDER BY.

What lives here: pure functions over the values a query meets. What must never live here: access to elements.

The rules (KIP §9, §44): `true` and 1 are two values, 1 and 1.0 are one, "5" and 5 are two. Two strings that are
both RFC 3339 instants compare as the instants they name, so an offset or missing milliseconds never decide. A
comparison of unlike values decides nothing: it is false, whichever way it is asked.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from core.model.ids import sort_key
from core.model.instants import Instant, format_instant, parse_instant
from core.model.literals import Literal, Ref, make_literal
from core.query.context import Edge, Projected, Value

Scalar = str | int | float | bool | None


class IdText(str):  # a name that may be shown only to who may see what it names
    """An id that is written as plain text in the wire form, not as `{"id": ...}`."""

    __slots__ = ()


def scalar(value: Any) -> Any:  # a JSON value or a bound value
    """A literal as the JSON scalar it holds; anything else as it is."""
    return value.value if isinstance(value, Literal) else value


def as_value(found: Any) -> Value:  # a JSON value or a Ref, read from an element
    """What a variable is bound to when a pattern reads this from an element."""
    if found is None or isinstance(found, (str, int, float, bool)):
        return make_literal(found)
    return found  # type: ignore[no-any-return]  # a Ref, a list or a dict


def plain(value: Any) -> Any:  # a bound value or a JSON value with Refs inside -> JSON
    """A value as JSON: a reference is `{"id": ...}`, a literal its scalar unless a datatype or language adds to it."""
    if isinstance(value, Ref):
        return {"id": value.id}
    if isinstance(value, Literal):
        if value.datatype is None and value.language is None:
            return value.value
        return {"value": value.value, "datatype": value.datatype, "language": value.language}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Projected):
        return value.value
    if isinstance(value, Edge):
        return edge_json(value)
    return str(value) if isinstance(value, IdText) else value


def edge_json(edge: Edge) -> dict[str, Any]:
    """The descriptor of a structural reference (KQL design §47)."""
    return {
        "source": {"id": edge.source},
        "field_ref": edge.field,
        "target": {"id": edge.target},
        "index": edge.index,
        "role": edge.role,
        "attributes": edge.options,
    }


def instant_of(text: str) -> Instant | None:
    """The instant a string names if it is RFC 3339 in full; None for any other string."""
    if len(text) < 20 or text[4] != "-" or text[10] not in "Tt ":
        return None
    try:
        return parse_instant(text)
    except ValueError:
        return None


def same(left: Any, right: Any) -> bool:  # JSON values or bound values
    """Whether two values are one value; false for unlike types. Missing (None) equals only missing."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        if left.datatype != right.datatype or left.language != right.language:
            return False
        return _same_scalar(left.value, right.value)
    if isinstance(left, Literal):
        left = left.value if left.datatype is None and left.language is None else left
    if isinstance(right, Literal):
        right = right.value if right.datatype is None and right.language is None else right
    if isinstance(left, Ref) or isinstance(right, Ref):
        return isinstance(left, Ref) and isinstance(right, Ref) and left.id == right.id
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(same(one, other) for one, other in zip(left, right, strict=True))
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(item, right[name]) for name, item in left.items())
        )
    if isinstance(left, (Edge, Projected)) or isinstance(right, (Edge, Projected)):
        return identity(left) == identity(right)
    if isinstance(left, Literal) or isinstance(right, (Literal, list, dict)):
        return False
    return _same_scalar(left, right)


def _same_scalar(left: Scalar, right: Scalar) -> bool:
    if isinstance(left, str):
        if not isinstance(right, str):
            return False
        if left == right:
            return True
        instant = instant_of(left)
        return instant is not None and instant == instant_of(right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if left is None or right is None:
        return left is right
    return not isinstance(right, str) and left == right


def joins(left: Value, right: Value) -> bool:
    """Whether two patterns mean the same thing by one variable. A missing value joins with nothing (KIP §44.4).

    Stricter than `same` for strings: only equal text is one Literal (KIP §9).
    """
    if type(left) is Ref and type(right) is Ref:  # by far the most frequent
        return left.id == right.id
    if left is None or right is None:
        return False
    return identity(left) == identity(right)


def less(left: Any, right: Any) -> bool | None:  # JSON values or bound values
    """Whether left is before right; None if the two are unlike or have no order."""
    left, right = scalar(left), scalar(right)
    if isinstance(left, bool) or isinstance(right, bool):
        both = isinstance(left, bool) and isinstance(right, bool)
        return (not left and right) if both else None
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left < right
    if isinstance(left, str) and isinstance(right, str):
        one, other = instant_of(left), instant_of(right)
        return left < right if one is None or other is None else one < other
    return None


_MISSING: Final = ("",)


def identity(value: Any) -> Hashable:  # a bound value or a JSON value
    """A hashable that two values share exactly when they are one value (grouping, joins, DISTINCT, duplicates)."""
    if isinstance(value, Ref):
        return value.id
    if isinstance(value, Literal):
        if value.datatype is not None or value.language is not None:
            return ("t", value.datatype, value.language, identity(value.value))
        value = value.value
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return ("b", value)
    if isinstance(value, str):
        return ("s", value)
    if isinstance(value, (int, float)):
        return ("n", value)
    if isinstance(value, Edge):
        return ("e", value.source, value.field, value.ordinal)
    if isinstance(value, Projected):
        return ("p", value.key)
    if isinstance(value, dict):
        return ("o", tuple(sorted((name, identity(item)) for name, item in value.items())))
    if isinstance(value, (list, tuple)):
        return ("a", tuple(identity(item) for item in value))
    raise TypeError(f"{type(value).__name__} is no value of a query")


def binding_identity(value: Value) -> Hashable:
    """As `identity`, but a null Literal is told from no match: they are two solutions."""
    if value is None:
        return None
    return identity(value)


def order_key(value: Any) -> tuple[Any, ...]:  # a bound value or a JSON value
    """A sort key that is total over all values: booleans, numbers, strings, elements, the rest. Not for null."""
    value = scalar(value)
    if isinstance(value, Ref):
        return (3, sort_key(value.id), value.id)
    if isinstance(value, bool):
        return (0, value)
    if isinstance(value, (int, float)):
        return (1, value)
    if isinstance(value, str):
        instant = instant_of(value)
        return (2, value if instant is None else format_instant(instant))
    if isinstance(value, Edge):
        index = value.ordinal if value.index is None else value.index
        return (4, sort_key(value.source), value.field, index)
    if isinstance(value, Projected):
        return (5, value.key)
    return (6, msgspec.json.encode(plain(value), order="sorted").decode())
