"""The vocabulary in force, a line each, for a model to read."""

from __future__ import annotations

from typing import Final

from core.schema.definitions import PredicateType
from core.schema.environment import Environment

MAX_SYMBOLS: Final = 200  # shown of a kind; LIST pages through all
_LENGTH: Final = 110


def schema_text(env: Environment) -> str:
    """The types and predicates, in the order of the lock, each with what it means."""
    types = list(env.definitions("type"))
    predicates = [found for found in env.definitions("predicate") if isinstance(found, PredicateType)]
    lines = [
        "## Types",
        *(_line(found.name, found.document.get("description")) for found in types[:MAX_SYMBOLS]),
    ]
    lines += ["## Predicates (* one current value for each person who says so)"]
    for found in predicates[:MAX_SYMBOLS]:
        mark = "*" if found.functional else ""
        lines.append(_line(found.name + mark, found.document.get("description")))
    if len(types) > MAX_SYMBOLS or len(predicates) > MAX_SYMBOLS:
        lines.append("There are more: LIST TYPES and LIST PREDICATES page through all.")
    return "\n".join(lines)


def _line(name: str, description: object) -> str:
    text = " ".join(str(description or "").split())
    return f"- {name}: {text[:_LENGTH]}" if text else f"- {name}"
