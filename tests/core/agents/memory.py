"""A memory without services: conversations formed through a Draft, straight into a state."""

from __future__ import annotations

from typing import Any

import msgspec

from core.agents.dialogue import read_dialogue
from core.agents.offline.formation import Formed, form_part
from core.agents.vocabulary import local_name
from core.model.elements import AnyElement, Assertion, Concept, Origin, Proposition
from core.model.instants import Instant, parse_instant
from core.model.literals import Literal, Term
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.protocol import http_types as wire
from core.state.layer import Empty
from core.state.space import SpaceState
from core.transaction.draft import Draft

NOW: Instant = parse_instant("2026-06-01T00:00:00Z")


class Memory:
    """What is remembered of conversations formed one after another."""

    def __init__(self) -> None:
        meta = SpaceMeta(
            space_id="home",
            instance="one",
            salt="abcde",
            owner="alice",
            created_at=0,
            tier=Tier(4, 0),
            schema=SchemaEnvironment(1, ()),
        )
        self.state = SpaceState.on(Empty(), meta=meta, ver=0, seq=0, at=0)

    def form(self, messages: list[Any], at: str = "2026-05-01T10:00:00Z", **members: Any) -> Formed:
        """Form a whole conversation in one part; what it became."""
        body = msgspec.convert({"messages": messages, "timestamp": at, **members}, wire.FormationInput)
        dialogue, _ = read_dialogue(body, now=NOW)
        draft = Draft(self.state, now=NOW, origin=Origin("alice", "rest"))
        formed = form_part(draft, dialogue.settled(NOW), 0)
        delta = draft.finish()
        if delta is not None:
            self.state = self.state.apply(delta)
        return formed

    def say(self, *texts: str, by: str = "Alice", at: str = "2026-05-01T10:00:00Z") -> Formed:
        """Form what one person says."""
        return self.form([{"role": "user", "name": by, "content": text} for text in texts], at)

    def all(self, kind: Any) -> list[AnyElement]:
        """Every element of a kind, in order."""
        return [element for found in self.state.ids(kind) if (element := self.state.get(found)) is not None]

    def words(self, term: Term) -> str:
        """An object in words."""
        if isinstance(term, Literal):
            return str(term.value)
        concept = self.state.get(term.id)
        return str(concept.name) if isinstance(concept, Concept) else "?"

    def claims(self, *, status: str | None = "active", predicate: str | None = None) -> list[str]:
        """Claims in short: who says of whom what; denied ones with "not"."""
        out = []
        for claim in self.all("assertion"):
            assert isinstance(claim, Assertion)
            about = self.state.get(claim.proposition)
            assert isinstance(about, Proposition)
            name = local_name(about.predicate_ref)
            if status not in (None, claim.status) or predicate not in (None, name):
                continue
            actor, subject = self.state.get(claim.asserted_by), self.state.get(about.subject)
            assert isinstance(actor, Concept)
            assert isinstance(subject, Concept)
            held = "" if claim.stance == "support" else "not "
            out.append(f"{actor.name}> {subject.name} {held}{name} {self.words(about.object)}")
        return out
