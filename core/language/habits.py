"""Hints for what other query languages, or haste, let one write: which words of KIP say it.

What lives here: hints by the word that was found, and by the word before the place. What must never live here:
any decision about what is legal; these words only help after a refusal.
"""

from __future__ import annotations

from typing import Final

_REMOVE: Final = (
    "RETRACT ASSERTION withdraws a claim, ARCHIVE hides, TOMBSTONE deletes and keeps the trace, PURGE erases."
)
_PAGE: Final = "LIMIT bounds a page; CURSOR, with the next_cursor of the answer, goes on."
_RECORD: Final = "ASSERT records a claim, UPSERT CONCEPT what has a key, CREATE CONCEPT what has none."

FOUND: Final[dict[str, str]] = {
    "AND": "Combine conditions with &&.",
    "OR": "Combine conditions with ||.",
    "SELECT": 'A query is FIND(?x.name) WHERE { ?x {type: "Person"} }.',
    "RETURN": "What is wanted stands first: FIND(?x.name) WHERE { ... }.",
    "DISTINCT": "COUNT(DISTINCT ?x) counts distinct values; equal bindings are one row already.",
    "AS": "Columns have no names of their own; AS OF stands after WHERE { ... }.",
    "GROUP": "No clause is needed: beside an aggregate, FIND groups by its other columns.",
    "HAVING": "Counts are not filtered: ORDER BY COUNT(?x) DESC brings the largest first.",
    "OFFSET": _PAGE,
    "SKIP": _PAGE,
    "DELETE": _REMOVE,
    "REMOVE": _REMOVE,
    "FORGET": _REMOVE,
    "INSERT": _RECORD,
    "ADD": _RECORD,
    "REMEMBER": _RECORD,
}

AFTER: Final[dict[str, str]] = {
    "FIND": "Write FIND(?x) WHERE { ... }.",
    "FILTER": 'Write FILTER(?x.name == "Alice").',
    "NOT": "Write NOT { ... }, with patterns in it.",
    "OPTIONAL": "Write OPTIONAL { ... }, with patterns in it.",
    "UNION": "Write UNION { ... }, with patterns in it.",
    "OF": 'Write AS OF SEQ 3, AS OF TX "..." or AS OF TIME "2026-05-08T13:56:00Z".',
    "UPSERT": 'Write UPSERT CONCEPT ?x { MATCH {type: "Person", key: "alice"} }.',
    "UPDATE": 'Write UPDATE :id SET ..., or UPDATE ?x SET ... WHERE { ?x {type: "Person", key: "alice"} }.',
    "RETRACT": "Write RETRACT ASSERTION :id.",
    "LIST": "LIST names spaces and what the schema has; memories are found with FIND and SEARCH.",
    "DESCRIBE": 'Such as DESCRIBE TYPE "Person"; memories are read with FIND.',
    "SEARCH": 'Write SEARCH CONCEPT "some words"; WITH TYPE "Person" narrows it.',
    "HISTORY": "Write HISTORY ELEMENT :id, or HISTORY SPACE.",
    "CHANGES": "Write CHANGES AFTER SEQ 0, or CHANGES SINCE :cursor.",
}


def hint_for(before: str | None, found: str) -> str | None:
    """The hint for a token that may not stand after another; both as the lexer's keys."""
    return FOUND.get(found) or (AFTER.get(before) if before is not None else None)
