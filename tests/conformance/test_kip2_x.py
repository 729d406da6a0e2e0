"""KIP2-X-001 to 015 in process: the scenarios over the harness's world, with governance in force."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.authority import Principal
from core.errors import NoemaError
from core.governance.commands import AnyCommand
from core.service.vector_upkeep import VectorUpkeep
from core.service.vectors import Vectors
from infra.arrays import load_numpy
from tests.conformance.harness import PERMISSIONS, Reply, World
from tests.conformance.scenarios import SCENARIOS, Driver, Scenario
from tests.doubles import CountingEntropy, HashEmbedder


class Searching(World):
    """A governed world that can also search by meaning, with an index that only catches up when it is told to."""

    def __init__(self) -> None:
        self.embedder = HashEmbedder(local=False)
        super().__init__()
        self.govern(PERMISSIONS)
        self.grant("reader_hidden", "read_history", name="history")  # or nothing of the past would be asked

    def _started(self) -> Any:
        process = super()._started()
        self.vectors = Vectors(process.spaces, self.embedder, load_numpy)
        process.kip._vectors = lambda: self.vectors
        return process

    def catch_up(self) -> None:
        """Bring the index of meaning up to now."""
        process = self._process
        VectorUpkeep(process.spaces, process.upkeep, self.vectors, CountingEntropy(9)).index(
            "test", deadline=self.clock.time + 60_000
        )


class InProcess:
    """The driver over a world."""

    def __init__(self) -> None:
        self.world = Searching()
        self.ref = self.world.ref

    def say(self, principal: str, said: str | dict[str, Any], /, **parameters: Any) -> Reply:
        return self.world.invoke(principal, said, **parameters)

    def lose_answer(self, principal: str, said: dict[str, Any], /) -> None:
        self.world.drop_response(principal, said)
        self.world.restart()

    def command(self, command: AnyCommand, /) -> None:
        self.world.command(command)

    def admit(self, principal: str, /) -> None:
        self.world.principals[principal] = Principal(principal)
        self.world.grant(principal, "discover", "read", "create", name=f"admitted:{principal}")

    def withdraw(self, principal: str, /) -> None:
        self.world.revoke(f"admitted:{principal}")

    @contextlib.contextmanager
    def held_index(self) -> Iterator[str]:
        self.world.catch_up()
        yield "semantic"
        self.world.catch_up()

    def preview_capsule(self, artifact: dict[str, Any], /) -> dict[str, Any]:
        return self.world.preview_capsule(artifact, "importer")

    def import_capsule(self, artifact: dict[str, Any], plan_digest: str, /) -> dict[str, Any]:
        return self.world.import_capsule(artifact, "importer", plan_digest=plan_digest)

    def error_of(self, act: Callable[[], object], /) -> str:
        with pytest.raises(NoemaError) as caught:
            act()
        return caught.value.code


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenario, id=name.lower().replace("-", "_"), marks=pytest.mark.conformance(name, "MUST"))
        for name, scenario in SCENARIOS.items()
    ],
)
def test_scenario(scenario: Scenario) -> None:
    """The scenario holds over the engine, its durable log and governance."""
    driver: Driver = InProcess()
    scenario(driver)
