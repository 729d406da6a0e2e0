"""A whole service over doubles: what the tests of the services stand on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from core.model.elements import AnyElement, Concept, Evidence, Origin, Payload
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.ports import Objects, Table
from core.service.commit import Birth, Commits
from core.service.erasure import Erasures
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.service.values import Committed, Decide, Idempotency, Proposal
from core.state.space import SpaceState
from core.storage.codec import Unreadable, expand
from core.storage.layout import ALL_ROWS, space_pk, space_prefix
from core.storage.memory import MemoryObjects, MemoryTable
from core.storage.segment import plain_bytes
from core.transaction.draft import Draft
from tests.doubles import CountingEntropy, FakeClock

SPACE = "garden"
ORIGIN = Origin("tester", "rest")
TYPE = "kip://test@1.0.0/Note"
SECOND = 1000


class World:
    """One process with its own caches over a store; `again()` is another process over the same store."""

    def __init__(
        self,
        table: Table | None = None,
        objects: Objects | None = None,
        clock: FakeClock | None = None,
        seed: int = 0,
    ) -> None:
        self.clock = clock or FakeClock(step_ms=3)
        self.table = table or MemoryTable()
        self.objects = objects or MemoryObjects(self.clock)
        self.entropy = CountingEntropy(seed)
        self.spaces = Spaces(self.table, self.objects, self.clock)
        self.commits = Commits(self.table, self.objects, self.clock, self.entropy, self.spaces)
        self.leases = Leases(self.table, self.clock)
        self.upkeep = Upkeep(self.spaces, self.leases, self.entropy)
        self.erasures = Erasures(self.spaces, self.upkeep, self.entropy)

    def again(self, seed: int = 1000, *, table: Table | None = None, objects: Objects | None = None) -> World:
        """Another process: nothing cached, other random bytes, the same store and time."""
        return World(table or self.table, objects or self.objects, self.clock, seed)

    def create(self, space: str = SPACE) -> Committed:
        """A space that remembers nothing."""
        return self.commits.create(space, describe, origin=ORIGIN, deadline=self.clock.time + 60 * SECOND)

    def commit(self, decide: Decide, key: str | None = None, **options: Any) -> Committed:
        """One commit, under an idempotency key if one is given."""
        asked = None if key is None else Idempotency("tester", key, f"digest of {key}")
        options = {"idempotency": asked, "deadline": self.clock.time + 60 * SECOND} | options
        return self.commits.commit(SPACE, decide, **options)

    def note(self, text: str, key: str | None = None, **options: Any) -> Committed:
        """Commit one new Concept with this name."""
        return self.commit(self.noting(text), key, **options)

    def noting(self, *texts: str) -> Decide:
        """A decision to create Concepts with these names."""

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self.clock.time, origin=ORIGIN)
            ids = [draft.create(Concept, schema_ref=TYPE, name=text).id for text in texts]
            return Proposal(draft.finish({"notes": len(ids)}), outcome={"ids": ids})

        return decide

    def changing(self, element: str, **fields: Any) -> Decide:
        """A decision to change an element."""

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self.clock.time, origin=ORIGIN)
            found = draft.get(element)
            assert found is not None
            draft.change(found, **fields)
            return Proposal(draft.finish(), outcome={"id": element})

        return decide

    def counting(self, element: str) -> Decide:
        """A decision to add one to an element's number: a lost update would show."""

        def decide(state: SpaceState) -> Proposal:
            found = state.get(element)
            assert isinstance(found, Concept)
            number = found.attributes.get("n", 0) + 1
            draft = Draft(state, now=self.clock.time, origin=ORIGIN)
            draft.change(found, attributes={"n": number})
            return Proposal(draft.finish(), outcome={"n": number})

        return decide

    def names(self, state: SpaceState | None = None) -> list[str | None]:
        """The names of all Concepts, in order of creation."""
        state = state or self.spaces.load(SPACE)
        found = [state.get(one) for one in state.ids("concept")]
        return [one.name for one in found if isinstance(one, Concept)]

    def everything(self, space: str = SPACE) -> dict[str, bytes]:
        """All bytes of a space as stored and as unpacked, by row key and object key."""
        out: dict[str, bytes] = {}
        for sk, row in self.table.query(space_pk(space), *ALL_ROWS, limit=100_000):
            out[sk] = b"\0".join(
                [sk.encode(), *(plain for value in row.values() for plain in unpacked(value))]
            )
        for key, _, _ in self.objects.list(space_prefix(space)):
            out[key] = b"\0".join(unpacked(self.objects.get(key)))
        return out


def unpacked(value: object) -> list[bytes]:
    """A value's bytes, as stored and as unpacked: the tests' own way of looking."""
    if isinstance(value, str):
        return [value.encode()]
    if not isinstance(value, bytes):
        return [repr(value).encode()]
    out = [value]
    try:
        out += plain_bytes(value)
    except Unreadable:
        with contextlib.suppress(Unreadable):
            out.append(expand(value[1], value[2:]) if len(value) > 2 else b"")
    return out


def describe(birth: Birth) -> SpaceMeta:
    """The protected state of a test's space."""
    return SpaceMeta(
        space_id=birth.space_id,
        instance=birth.instance,
        salt=birth.salt,
        owner="tester",
        created_at=birth.at,
        tier=Tier(3, birth.at),
        schema=SchemaEnvironment(1, ()),
    )


def dump(state: SpaceState) -> dict[str, AnyElement | None]:
    """Every element of a state, by id."""
    kinds = ("concept", "proposition", "assertion", "evidence", "activity")
    return {found: state.get(found) for kind in kinds for found in state.ids(kind)}


def evidence(text: str) -> dict[str, Any]:
    """The fields of an Evidence that holds a text."""
    return {
        "evidence_class": "message",
        "payload": Payload("inline", text),
        "content_digest": "sha256:" + "0" * 64,
    }


def until_clean(run: Callable[[int], bool], limit: int = 200) -> int:
    """Call `run(0)`, `run(1)`, ... until it says that its fault was never reached; how many were."""
    for at in range(limit):
        if not run(at):
            return at
    raise AssertionError("the run never ended")


__all__ = ["ORIGIN", "SPACE", "TYPE", "Evidence", "World", "describe", "dump", "evidence", "until_clean"]
