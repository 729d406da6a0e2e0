"""A small nexus to ask about: people, themes, a message, claims, in the conformance test schema."""

from __future__ import annotations

import jsonschema
import pytest

from core.authority import Principal
from core.errors import NoemaError
from core.transaction.needs import Deltas
from tests.conformance.packages import CORE_DOMAIN, package, wire_schema
from tests.conformance.world import World

SETUP = """MUTATE {
  CREATE CONCEPT ?alice { TYPE "Person" NAME "Alice Chen"
    SET FIELDS {key: "alice", aliases: ["Ali"]}
    SET ATTRIBUTES {description: "climbs mountains in Norway"} }
  CREATE CONCEPT ?bob { TYPE "Person" NAME "Bob" SET FIELDS {key: "bob"} }
  CREATE CONCEPT ?dark { TYPE "Theme" NAME "Dark Mode" SET FIELDS {key: "dark"} }
  CREATE EVIDENCE ?message { SET FIELDS {evidence_class: "message",
    payload: "Alice said that she prefers the dark mode in the evening"} }
  CREATE ACTIVITY ?activity { SET FIELDS {activity_class: "semantic_consolidation", status: "completed"} }
  ENSURE PROPOSITION ?likes (?alice, "prefers", ?dark)
  ASSERT ?claim (?alice, "prefers", ?dark) { by: ?bob, mode: "stated", evidence: [?message] }
  ASSERT ?zone (?alice, "timezone", "Europe/Oslo") { by: ?alice, mode: "stated" }
}"""

READER = Principal("reader", permissions=frozenset({"read"}))
VALIDATOR = jsonschema.Draft202012Validator(wire_schema("kip-response"))


class Nexus(World):
    """A world whose setup's handles are at hand: `ref["alice"]` is `{"id": ...}`, `id("alice")` its id.

    `kept_from`: the first log version whose commit is still kept. Every response is held against the wire schema.
    """

    def __init__(self) -> None:
        super().__init__(packages=[package(CORE_DOMAIN)], only=True)
        self.kept_from = 1
        made = self.ok(SETUP)["handles"]
        self.ref = {name: {"id": handle["id"]} for name, handle in made.items()}

    def send(self, request, **options):
        response = super().send(request, **options)
        VALIDATOR.validate(response)
        return response

    def id(self, name):
        return self.ref[name]["id"]

    def one(self, command, **more):
        """The only operation's result, whatever became of it. Options: principal, readonly; the rest: parameters."""
        options = {name: more.pop(name) for name in ("principal", "readonly") if name in more}
        return self.run(command, {**self.ref, **more}, **options)["results"][0]

    def get(self, command, **more):
        """The value of a command that must succeed."""
        result = self.one(command, **more)
        assert result["status"] == "succeeded", result
        return result["result"]

    def do(self, command, **more):
        """The result of a mutation that must change something."""
        before = len(self.deltas)
        result = self.ok(command, {**self.ref, **more})
        assert len(self.deltas) > before
        return result

    def refused(self, command, **more):
        """The error of a command that must fail."""
        result = self.one(command, **more)
        assert result["status"] == "failed", result
        return result["error"]

    def code(self, command, **more):
        return self.refused(command, **more)["code"]

    def forget_before(self, version):
        """Trim the log, as upkeep does."""
        self.kept_from = version

    def _answer(self, need):
        if isinstance(need, Deltas) and need.after + 1 < self.kept_from:
            return NoemaError(
                "HistoricalSnapshotUnavailable", "no longer kept", details={"floor": self.kept_from}
            )
        return super()._answer(need)


def hiding(classification, **permissions):
    """A caller from whom everything of a classification is hidden."""
    return Principal("guest", hidden=frozenset({classification}), **permissions)


@pytest.fixture
def nexus() -> Nexus:
    """The nexus, fresh."""
    return Nexus()
