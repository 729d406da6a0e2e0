"""The registered functions of the language and how many arguments each takes.

What lives here: names and arities. What must never live here: what a function computes. The grammar leaves
function names open; a name that is not here is refused when a command is parsed, so that a misspelt filter
never silently selects nothing.
"""

from __future__ import annotations

from typing import Final

FILTER_FUNCTIONS: Final[dict[str, int]] = {
    "IN": 2, "CONTAINS": 2, "STARTS_WITH": 2, "ENDS_WITH": 2, "REGEX": 2,
    "IS_NULL": 1, "IS_NOT_NULL": 1, "IS_LITERAL": 1, "IS_ELEMENT": 1, "IS_KIND": 2, "LITERAL_TYPE": 1,
}  # fmt: skip
"""KIP §44.2: usable in FILTER and in the argument of an aggregate."""

UPDATE_FUNCTIONS: Final[dict[str, int]] = {"ADD": 2, "MUL": 2, "CLAMP": 3, "COALESCE": 2}
"""KIP §58: usable in the values a mutation assigns."""

AGGREGATES: Final = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
"""KIP §44.6: usable in FIND(...) and ORDER BY only."""
