"""Captured: the messages of a conversation as they are on record, and what was made of them.

What lives here: lookups by the keys under which a conversation's Evidence and Events are filed, and by what cites
them. What must never live here: filing itself (`core.agents.offline.formation`). Everything is a function of the
state, so a run that begins anew after its worker died sees what the one before it has written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from core.agents.dialogue import Dialogue
from core.agents.offline.formation import part_end
from core.agents.tools.terms import Captured
from core.agents.vocabulary import COMMITMENT, EVENT, TOOL
from core.model.elements import Assertion, Concept, Evidence, Proposition
from core.model.ids import sort_key
from core.model.literals import Ref
from core.state.indexes import client_key, referrers_key
from core.state.view import View
from core.transaction.draft import Draft

READER_KEY: Final = "noema:formation"
READER_NAME: Final = "Noema"


def ensure_reader(draft: Draft) -> Concept:
    """The Concept that a model's own inferences are attributed to: the space's self, else the service as a tool."""
    mine = draft.meta.self_identity
    found = draft.get(mine) if mine is not None else None
    if isinstance(found, Concept):
        return found
    return draft.ensure_concept(TOOL, READER_KEY, name=READER_NAME)


def find_captured(view: View, dialogue: Dialogue) -> list[tuple[int, Captured]]:
    """The messages on record with their indexes, in order; messages that hold nothing are not filed."""
    digest, found = dialogue.digest(), []
    for index, message in enumerate(dialogue.messages):
        pieces = list(_pieces(view, f"msg:{digest}:{index}"))
        if pieces and pieces[0].source:
            rest = tuple(piece.id for piece in pieces[1:])
            said_at = int(message.timestamp or 0)
            found.append((index, Captured(pieces[0].id, pieces[0].source[0], said_at, rest)))
    return found


def _pieces(view: View, key: str) -> Iterator[Evidence]:
    number = 0
    while True:
        piece = _evidence(view, key if number == 0 else f"{key}.{number}")
        if piece is None:
            return
        yield piece
        number += 1


def _evidence(view: View, key: str) -> Evidence | None:
    for element in view.find(client_key("evidence", key)):
        found = view.get(element)
        if isinstance(found, Evidence) and found.client_key == key:
            return found
    return None


def find_events(view: View, dialogue: Dialogue) -> list[Concept]:
    """The Events of the conversation's parts."""
    digest, start, found = dialogue.digest(), 0, []
    while start < len(dialogue.messages):
        for element in view.find(client_key("concept", f"event:{digest}:{start}")):
            event = view.get(element)
            if isinstance(event, Concept) and event.schema_ref == EVENT:
                found.append(event)
        start = part_end(dialogue.messages, start)
    return found


class Products(msgspec.Struct, frozen=True):
    """What rests on a conversation's Evidence: Assertions, Concepts made from it, and the Concepts talked about."""

    claims: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    commitments: int = 0
    touched: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every element that was made."""
        return (*self.claims, *self.concepts)


def find_products(view: View, messages: list[Captured]) -> Products:
    """What has been made of the captured messages so far, in the order in which it was made."""
    referrers = {
        element
        for message in messages
        for evidence in message.all
        for element in view.find(referrers_key(evidence))
    }
    claims: list[str] = []
    concepts: list[str] = []
    touched: dict[str, None] = {}
    commitments = 0
    for element in sorted(referrers, key=sort_key):
        found = view.get(element)
        if isinstance(found, Assertion):
            claims.append(found.id)
            about = view.get(found.proposition)
            if isinstance(about, Proposition):
                ends = (about.subject, about.object.id if isinstance(about.object, Ref) else None)
                touched |= dict.fromkeys(end for end in ends if end is not None and end[0] == "C")
        elif isinstance(found, Concept) and found.schema_ref != EVENT:
            concepts.append(found.id)
            commitments += found.schema_ref == COMMITMENT
    return Products(tuple(claims), tuple(concepts), commitments, tuple(touched))
