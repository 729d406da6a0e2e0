"""People: which Concept speaks, and whom a mention means.

A person's key says how they are known: the caller's own identifier for a user, else `name:<name>`, else the role,
else their relation to somebody ("Alice's sister"). A name is grounding, not identity (KIP §7.2): a mention is
taken for somebody only where exactly one person of that name is known, and a claim about an ambiguous name is
not made at all.
"""

from __future__ import annotations

from typing import Final

from core.agents.dialogue import Context, Message
from core.agents.offline.claims import Mention
from core.agents.vocabulary import PERSON, TOOL
from core.model.elements import Concept
from core.search.text import normalize
from core.state.indexes import name_key
from core.state.view import View
from core.transaction.draft import Draft

_MACHINES: Final = frozenset(["tool", "system"])


def fold(text: str) -> str:
    """One spelling for what differs only in case, width or spacing; the key of things named by words."""
    return " ".join(normalize(text).split())


def find_named(view: View, name: str) -> list[Concept]:
    """The persons known by exactly this name or alias, merged ones left out."""
    found = (view.get(element) for element in view.find(name_key(name)))
    return [
        person
        for person in found
        if isinstance(person, Concept) and person.schema_ref == PERSON and person.system.state == "active"
    ]


class People:
    """The people of one conversation, found or made in `draft`."""

    def __init__(self, draft: Draft, context: Context, messages: tuple[Message, ...]) -> None:
        self.draft = draft
        self.context = context
        names = {message.name for message in messages if message.role == "user"}
        # With one user speaking, the counterparty is that user and the name is how they are called.
        self._one_user = len(names) == 1

    def speaker(self, message: Message) -> Concept:
        """Who says a message: its user, its name, the context's counterparty or agent, else its role."""
        if message.role in _MACHINES:
            label = message.name or message.role
            return self.draft.ensure_concept(TOOL, f"{message.role}:{fold(label)}", name=label)
        if message.user is not None:
            return self.known(message.user, message.name)
        counterparty = self.context.counterparty if message.role == "user" else None
        if counterparty is not None and (message.name is None or self._one_user):
            return self.known(counterparty, message.name)
        if message.name is not None:
            return self.called(message.name)
        if message.role == "assistant":
            if self.context.agent is not None:
                return self.known(self.context.agent, None)
            mine = self.draft.meta.self_identity
            found = self.draft.get(mine) if mine is not None else None
            if isinstance(found, Concept):
                return found
        return self.draft.ensure_concept(PERSON, f"role:{message.role}", name=message.role)

    def known(self, key: str, name: str | None) -> Concept:
        """The person under the caller's own key; a name given replaces the stored one (contract §4.12)."""
        person = self.draft.ensure_concept(PERSON, key, name=name or key)
        if name is not None and person.name != name:
            aliases = tuple(a for a in (*person.aliases, person.name) if a and a not in (name, key))
            person = self.draft.change(person, name=name, aliases=tuple(dict.fromkeys(aliases)))
        return person

    def called(self, name: str) -> Concept:
        """The speaker of this name: who is already known by it alone, else a person of their own."""
        key = f"name:{fold(name)}"
        own = self.draft.find_concept(PERSON, key)
        if own is None:
            found = find_named(self.draft.view, name)
            if len(found) == 1:
                return found[0]
        return self.draft.ensure_concept(PERSON, key, name=name)

    def resolve(self, mention: Mention, speaker: Concept) -> Concept | None:
        """Whom a mention means, or None where more than one person is known by the name."""
        if mention.is_speaker:
            return speaker
        relation = f"{speaker.name}'s {mention.relation}" if mention.relation else None
        if mention.name is None:
            return self._related(str(relation), speaker, str(mention.relation))
        found = find_named(self.draft.view, mention.name)
        if len(found) > 1:
            return None
        person = found[0] if found else self._first_met(mention, relation)
        if relation is not None and relation != person.name and relation not in person.aliases:
            person = self.draft.change(person, aliases=(*person.aliases, relation))
        return person

    def _related(self, name: str, speaker: Concept, relation: str) -> Concept | None:
        """Somebody known only by their relation: `"my sister"` of Alice is `Alice's sister`."""
        found = find_named(self.draft.view, name)
        if len(found) > 1:
            return None
        return (
            found[0] if found else self.draft.ensure_concept(PERSON, f"of:{speaker.id}/{relation}", name=name)
        )

    def _first_met(self, mention: Mention, relation: str | None) -> Concept:
        """A person named for the first time; who was known only by the relation gets the name."""
        name = str(mention.name)
        nameless = find_named(self.draft.view, relation) if relation is not None else []
        if len(nameless) == 1 and nameless[0].name == relation:
            return self.draft.change(nameless[0], name=name, aliases=(*nameless[0].aliases, str(relation)))
        return self.draft.ensure_concept(PERSON, f"name:{fold(name)}", name=name)

    def introduce(self, speaker: Concept, name: str) -> Concept:
        """The speaker said what they are called: a name of their own replaces a stand-in, else is an alias."""
        key = speaker.key or ""
        if speaker.name == name or name in speaker.aliases:
            return speaker
        if speaker.name is None or speaker.name == key or key.startswith("role:"):
            return self.draft.change(speaker, name=name)
        return self.draft.change(speaker, aliases=(*speaker.aliases, name))
