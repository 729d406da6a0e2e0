"""Literals: the scalar values a Proposition may have as its object, and when two of them are one value.

Identity is by value, datatype and language (KIP §9): 1 and 1.0 are one number, `true` and 1 are two values,
"5" and 5 are two values, and a language tag takes part. Arrays and objects are not Literals (KIP §9.2).
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from core.errors import NoemaError

Scalar = str | int | float | bool | None


class Literal(msgspec.Struct, frozen=True, array_like=True, tag="l"):
    """One literal value. `datatype` is None for plain JSON scalars; `language` only goes with strings."""

    value: Scalar
    datatype: str | None = None
    language: str | None = None


class Ref(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """A reference to an element of the same space by id (KIP §8.1)."""

    id: str


Term = Ref | Literal


def literal_type(value: Scalar) -> str:
    """The baseline scalar type of a value: string, number, boolean or null (KIP §9.2)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "number"


def make_literal(value: Any, datatype: str | None = None, language: str | None = None) -> Literal:
    """A checked Literal: equal numbers get one spelling, what is not a finite scalar is refused (KIP §9.2-9.3).

    `value` is Any because it arrives from JSON.
    """
    if isinstance(value, (list, dict)):
        raise NoemaError("TypeMismatch", "an array or an object is not a Literal; use a Concept")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoemaError("ConstraintViolation", "a number must be finite")
        if value.is_integer() and abs(value) < 2**53:
            value = int(value)  # 1.0 and 1 are one Literal
    if not (value is None or isinstance(value, (str, int, float, bool))):
        raise NoemaError("TypeMismatch", f"{type(value).__name__} is not a Literal")
    if language is not None and not isinstance(value, str):
        raise NoemaError("ConstraintViolation", "only a string may carry a language tag")
    if datatype == literal_type(value):
        datatype = None  # {value: "x", datatype: "string"} is "x" written out (KIP §9.1)
    return Literal(value, datatype, language.lower() if language else None)


def term_key(term: Term) -> str:
    """A text that two terms share exactly when they are the same object of a tuple (KIP §12.3)."""
    if isinstance(term, Ref):
        return f"r:{term.id}"
    kind = literal_type(term.value)
    text = term.value if isinstance(term.value, str) else msgspec.json.encode(term.value).decode()
    return f"l:{kind[0]}:{term.datatype or ''}:{term.language or ''}:{text}"
