"""A small world to change: three people, two themes, in the conformance test schema."""

from __future__ import annotations

import pytest

from tests.conformance.packages import CORE_DOMAIN, package
from tests.conformance.world import World

SETUP = """MUTATE {
  CREATE CONCEPT ?alice { TYPE "Person" NAME "Alice" SET FIELDS {key: "alice"} }
  CREATE CONCEPT ?bob { TYPE "Person" NAME "Bob" SET FIELDS {key: "bob"} }
  CREATE CONCEPT ?carol { TYPE "Person" NAME "Carol" SET FIELDS {key: "carol"} }
  CREATE CONCEPT ?dark { TYPE "Theme" NAME "Dark" SET FIELDS {key: "dark"} }
  CREATE CONCEPT ?light { TYPE "Theme" NAME "Light" SET FIELDS {key: "light"} }
}"""


class People(World):
    """A world whose setup's handles are at hand as parameters: `ref["alice"]` is `{"id": ...}`."""

    def __init__(self) -> None:
        super().__init__(packages=[package(CORE_DOMAIN)], only=True)
        self.ref = self.handles(SETUP)

    def handles(self, command, parameters=None):
        """The handles of a command that must succeed, as parameters."""
        result = self.ok(command, parameters)
        return {name: {"id": handle["id"]} for name, handle in result["handles"].items()}

    def do(self, command, **more):
        """The result of a command that may use every person and theme as a parameter."""
        return self.ok(command, {**self.ref, **more})

    def no(self, command, **more):
        """The code with which such a command fails."""
        return self.error(command, {**self.ref, **more})

    def status(self, command, **more):
        """The status of the only operation."""
        return self.run(command, {**self.ref, **more})["results"][0]["status"]

    def get(self, ref):
        """The element as it is stored now."""
        return self.state.get(ref["id"] if isinstance(ref, dict) else ref)


@pytest.fixture
def people() -> People:
    """The world, fresh."""
    return People()
