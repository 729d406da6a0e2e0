"""The fact memory over the memory store, with a clock and chance that the test moves."""

from typing import Any

from core.facts.recalling import Tuning
from core.ports import Table
from core.service.erasure import Erasures
from core.service.facts import Facts
from core.service.forgetting import Forgetting
from core.service.upkeep import Upkeep
from tests.doubles import FakeClock
from tests.services import MINUTE, World

DAY = 86_400_000


class FactWorld:
    """One process with a space `home` and short hands for the use cases."""

    def __init__(self, table: Table | None = None, clock: FakeClock | None = None, **options: Any) -> None:
        objects = options.pop("objects", None)
        self.world = World(table, objects, clock or FakeClock(), seed=options.pop("seed", 0))
        create, learn = options.pop("create", True), options.pop("learn_prefix", 0)
        world = self.world
        self.upkeep = Upkeep(world.spaces, world.leases, world.entropy)
        self.erasures = Erasures(world.spaces, self.upkeep, world.entropy)
        self.facts = Facts(
            world.table,
            world.clock,
            world.entropy,
            spaces=world.spaces,
            commits=world.commits,
            leases=world.leases,
            erasures=self.erasures,
            forgetting=Forgetting(world.spaces, self.erasures),
            **options,
        )
        self.clock = world.clock
        self.caller = world.caller
        if create:
            world.create("home")
        if learn:
            self.facts.tune(self.caller, "home", Tuning(learn_prefix=learn), deadline=self.deadline)

    @property
    def deadline(self) -> int:
        return self.clock.time + MINUTE

    def remember(self, text: str, agent: str = "ann", space: str = "home", **more: Any):
        self.clock.advance(1000)
        return self.facts.remember(self.caller, space, agent, text, deadline=self.deadline, **more)

    def call(self, name: str, *args: Any, agent: str = "ann", space: str = "home", **more: Any):
        """A write by its name: `call("pin", "text")`."""
        return getattr(self.facts, name)(self.caller, space, agent, *args, deadline=self.deadline, **more)

    def recall(self, query: str = "", agent: str = "ann", space: str = "home", options=None):
        args = (self.caller, space, agent, query, *([options] if options else []))
        return self.facts.recall(*args)

    def texts(self, query: str = "", agent: str = "ann", space: str = "home") -> list[str]:
        return list(self.recall(query, agent, space).texts)

    def version(self, space: str = "home") -> int:
        return self.world.spaces.head(space).ver
