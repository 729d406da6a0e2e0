"""JSON Schemas of tools, built of few parts so that every provider takes them.

What lives here: builders. An input schema is one flat object: no `$ref`, no combinators, no list of types, every
property typed and described, and no member that a provider refuses (tests/mcp/test_schemas.py has their rules).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def text(about: str, **more: Any) -> Schema:  # further keywords
    """A text."""
    return {"type": "string", "description": about, **more}


def number(about: str, **more: Any) -> Schema:  # further keywords
    """A number."""
    return {"type": "number", "description": about, **more}


def whole(about: str, **more: Any) -> Schema:  # further keywords
    """A whole number."""
    return {"type": "integer", "description": about, **more}


def flag(about: str, **more: Any) -> Schema:  # further keywords
    """True or false."""
    return {"type": "boolean", "description": about, **more}


def choice(about: str, *values: str, **more: Any) -> Schema:  # further keywords
    """One of some words."""
    return {"type": "string", "enum": list(values), "description": about, **more}


def array(items: Schema, about: str) -> Schema:
    """A list."""
    return {"type": "array", "items": items, "description": about}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None, **more: Any) -> Schema:
    """An object of named members; further keywords go beside them."""
    schema: Schema = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        schema["required"] = list(required)
    return {**schema, **more}


def closed(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object that has no other members."""
    return record(required, optional, additionalProperties=False)


CURSOR = text(
    "Goes on with an answer that did not fit: the cursor that it ended with, beside the same arguments."
)
