"""A ledger in a space: a memory whose every commit can be audited.

Each commit moves one counter and adds one entry that says who wrote it and what the counter became. So a lost
commit leaves a hole in the counter, a doubled one an entry too many, a torn one an entry without its step; and
what the state was at any version is known without asking.
"""

from __future__ import annotations

import msgspec

from core.model.elements import Concept, Origin
from core.model.instants import Instant
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.ports import Clock, Objects, Table
from core.service.commit import Birth, Commits
from core.service.spaces import Spaces
from core.service.values import Committed, Decide, Idempotency, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft
from tests.doubles import CountingEntropy

COUNTER = "kip://test/ledger@1.0.0/Counter"
ENTRY = "kip://test/ledger@1.0.0/Entry"
ORIGIN = Origin(principal="ledger", channel="test")


class Ledger:
    """One process's view of the ledger in `space`: its own services, its own cache."""

    def __init__(
        self, table: Table, objects: Objects, clock: Clock, *, space: str = "ledger", seed: int = 0
    ) -> None:
        self.space = space
        self.clock = clock
        self.entropy = CountingEntropy(seed)
        self.spaces = Spaces(table, objects, clock)
        self.commits = Commits(table, objects, clock, self.entropy, self.spaces)

    def create(self, *, patience_ms: int = 10_000) -> Committed:
        """The ledger's space, empty."""
        return self.commits.create(
            self.space, self._describe, origin=ORIGIN, deadline=self.clock.now() + patience_ms
        )

    def _describe(self, birth: Birth) -> SpaceMeta:
        return SpaceMeta(
            space_id=birth.space_id,
            instance=birth.instance,
            salt=birth.salt,
            owner="ledger",
            created_at=birth.at,
            tier=Tier(tier=0, updated_at=birth.at),
            schema=SchemaEnvironment(version=1, packages=()),
        )

    def write(
        self, name: str, *, bytes_of_text: int = 0, patience_ms: int = 10_000, keyed: bool = True
    ) -> Committed:
        """Commit one entry, under its name as the retry key."""
        return self.commits.commit(
            self.space,
            entry(name, self.clock.now(), bytes_of_text),
            deadline=self.clock.now() + patience_ms,
            idempotency=Idempotency("ledger", name, f"digest of {name}") if keyed else None,
        )

    def audit(self, version: int | None = None) -> Audit:
        """What the ledger holds now, or as of a version."""
        state = (
            self.spaces.load(self.space)
            if version is None
            else self.spaces.load_at(self.space, version=version)
        )
        return audit(state)


def entry(name: str, now: Instant, bytes_of_text: int) -> Decide:
    """The decision to add one entry; pure, whatever state it meets. The text is hard to compress."""

    def decide(state: SpaceState) -> Proposal:
        draft = Draft(state, now=max(now, state.at), origin=ORIGIN)
        counter = draft.ensure_concept(COUNTER, "counter", attributes={"value": 0})
        value = int(counter.attributes["value"]) + 1
        draft.change(counter, attributes={"value": value})
        text = CountingEntropy(value).token(bytes_of_text // 2).hex()
        draft.create(Concept, schema_ref=ENTRY, key=name, attributes={"value": value, "text": text})
        return Proposal(draft.finish(), outcome={"value": value, "name": name})

    return decide


class Audit(msgspec.Struct, frozen=True):
    """A state as the ledger's rules see it."""

    ver: int
    value: int
    entries: dict[str, int]  # name -> the counter's value when it was written

    def faults(self, first_version: int = 1) -> list[str]:
        """What is wrong with it; nothing, if commits are whole and happened once each."""
        wrong = []
        if self.value != self.ver - first_version:
            wrong.append(f"version {self.ver} has counter {self.value}")
        if sorted(self.entries.values()) != list(range(1, self.value + 1)):
            wrong.append(f"version {self.ver} has entries that do not number 1 to {self.value}")
        return wrong


def audit(state: SpaceState) -> Audit:
    """Read the whole ledger."""
    value, entries = 0, {}
    for found in state.ids("concept"):
        element = state.get(found)
        if not isinstance(element, Concept):
            continue
        if element.schema_ref == COUNTER:
            value = int(element.attributes["value"])
        else:
            assert element.key is not None
            assert element.key not in entries, f"two entries are named {element.key}"
            entries[element.key] = int(element.attributes["value"])
    return Audit(state.ver, value, entries)
