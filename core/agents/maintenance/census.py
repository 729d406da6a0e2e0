"""The census: how many statements there are of each predicate, counted from the index and never by reading them."""

from __future__ import annotations

from typing import Final

from core.schema.environment import Environment
from core.state.indexes import predicate_key
from core.state.view import View

MOST: Final = 300  # predicates


def census(view: View, env: Environment) -> dict[str, int]:
    """Statements of each predicate in force that has any; an upper bound, as the index gives it without reading."""
    out: dict[str, int] = {}
    for definition in env.definitions("predicate"):
        count = view.count(predicate_key(definition.ref))
        if count and len(out) < MOST:
            out[definition.ref] = count
    return out
