"""The reader: one message in, what it plainly states out. Pure and stateless.

The families run in order over every clause; within one clause the same claim is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from core.agents.offline.claims import Finding
from core.agents.offline.clauses import Clause, find_clauses
from core.agents.offline.rules import commitments, corrections, identity, places, preferences, relations, work
from core.model.instants import Instant

Family = Callable[[Clause, Instant], Iterator[Finding]]

FAMILIES: Final[tuple[Family, ...]] = (
    identity.match,
    places.match,
    work.match,
    relations.match,
    preferences.match,
    commitments.match,
    corrections.match,
)
MAX_TEXT: Final = 20_000  # characters; a longer message is a document, and a document is not a statement
MAX_FINDINGS: Final = 200  # of one message


def read_message(text: str, said_at: Instant, families: tuple[Family, ...] = FAMILIES) -> list[Finding]:
    """What a message states, in order, seen from when it was said (ms)."""
    if len(text) > MAX_TEXT:
        return []
    found: dict[Finding, None] = {}
    for clause in find_clauses(text):
        for family in families:
            for finding in family(clause, said_at):
                found.setdefault(finding)
    return list(found)[:MAX_FINDINGS]
