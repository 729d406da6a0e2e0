"""The services over the memory store, wired as the composition root wires them, with a caller and short hands."""

from __future__ import annotations

from typing import Any

import msgspec

from core.ports import Objects, Table
from core.protocol import http_types as wire
from core.service.admin import Admin
from core.service.commit import Commits
from core.service.conversations import Conversations
from core.service.formation import Drained, Formation
from core.service.leases import Leases
from core.service.maintenance import Maintenance
from core.service.recall import Recall
from core.service.spaces import Spaces
from core.service.values import Caller
from core.storage.memory import MemoryObjects, MemoryTable
from tests.doubles import CountingEntropy, FakeClock

MINUTE = 60_000


class RecordingQueue:
    """A queue that keeps what is sent and delivers nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        """Keep a hint."""
        self.sent.append((group, body))


class World:
    """One process: its services over a table and objects that other processes may share."""

    def __init__(
        self,
        table: Table | None = None,
        objects: Objects | None = None,
        clock: FakeClock | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.clock = clock or FakeClock()
        self.entropy = CountingEntropy(seed)
        self.table: Table = table if table is not None else MemoryTable()
        self.objects: Objects = objects if objects is not None else MemoryObjects(self.clock)
        self.queue = RecordingQueue()
        self.spaces = Spaces(self.table, self.objects, self.clock)
        self.commits = Commits(self.table, self.objects, self.clock, self.entropy, self.spaces)
        self.leases = Leases(self.table, self.clock)
        self.admin = Admin(self.table, self.clock, self.spaces, self.commits)
        self.conversations = Conversations(self.table, self.objects, self.clock, self.entropy, self.spaces)
        self.formation = Formation(
            self.table,
            self.queue,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            commits=self.commits,
            leases=self.leases,
            conversations=self.conversations,
        )
        self.maintenance = Maintenance(
            self.table,
            self.queue,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            commits=self.commits,
            leases=self.leases,
            conversations=self.conversations,
        )
        self.recall = Recall(self.clock, self.spaces, self.conversations)
        self.caller = Caller("alice", "rest", "*")

    def create(self, space: str = "home", *, tier: int = 4) -> None:
        """Make a space."""
        wish = wire.CreateSpaceInput(user="alice", space_id=space, tier=tier)
        self.admin.create_space(self.caller, wish, self.clock.now() + MINUTE)

    def submit(self, space: str, messages: list[Any], *, key: str | None = None, **members: Any) -> int:
        """Submit a conversation, as decoded from JSON; its id."""
        return int(self.submitted(space, messages, key=key, **members).conversation or 0)

    def submitted(
        self, space: str, messages: list[Any], *, key: str | None = None, **members: Any
    ) -> wire.AgentOutput:
        """Submit a conversation; the whole answer."""
        body = msgspec.convert({"messages": messages, **members}, wire.FormationInput)
        return self.conversations.submit(self.caller, space, body, key=key)

    def say(
        self, space: str, *texts: str, at: str = "2026-05-01T10:00:00Z", name: str | None = "Alice"
    ) -> int:
        """Submit what one person says."""
        message = {"role": "user"} | ({"name": name} if name else {})
        return self.submit(space, [{**message, "content": text} for text in texts], timestamp=at)

    def drain(self, space: str = "home") -> Drained:
        """Form what waits."""
        return self.formation.drain(space, self.clock.now() + 10 * MINUTE)

    def ask(self, question: str, space: str = "home", **context: str) -> wire.RecallOutput:
        """Ask a question."""
        body = wire.RecallInput(query=question, context=wire.InputContext(**context) if context else None)
        return self.recall.recall_structured(self.caller, space, body)
