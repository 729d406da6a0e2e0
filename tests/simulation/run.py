"""One simulation: writers, readers, compactors, collectors and an eraser over one space and a store that fails.

Everything is drawn from the seed: who runs next, which call fails and whether it took effect, who dies and comes
back with empty caches, how the time passes. At the end everybody stops where they stand, as in a power cut, and
what the store holds must be right: every acknowledged commit exactly once, the log unbroken, every kept point of
history equal to a plain replay, nothing referred to that is missing, nothing erased that can be found.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections import Counter
from collections.abc import Callable

import msgspec

import core.storage.compaction as compaction
from core.errors import NoemaError
from core.model.elements import Concept, Evidence
from core.ports import Unavailable
from core.service.erasure import Overtaken
from core.service.erasure_steps import JOB_MS
from core.service.upkeep import HOUR
from core.service.values import Committed, Decide, Proposal
from core.state.space import SpaceState, genesis
from core.storage.layout import space_prefix
from core.storage.memory import MemoryObjects, MemoryTable
from core.transaction.draft import Draft
from tests.core.service.world import ORIGIN, SPACE, World, dump, evidence
from tests.doubles import Crash, FakeClock
from tests.simulation.store import Scheduler, SteppedObjects, SteppedTable

RETRY = {"SerializationConflict", "OutcomeUnknown", "ServiceUnavailable"}
SECRET = "the combination is twelve thirty-four"


class Report(msgspec.Struct, frozen=True):
    """What a run did; two runs of one seed give equal reports."""

    seed: int
    steps: int
    faults: int
    crashes: int
    version: int
    floor: int
    acknowledged: int
    replays: int
    compactions: int
    overtaken: int
    erased: bool
    digest: str


class Simulation:
    """One seed's run."""

    def __init__(self, seed: int, *, fault_rate: float = 0.06) -> None:
        self.seed = seed
        self.clock = FakeClock()
        self.scheduler = Scheduler(seed, self.clock, fault_rate=fault_rate)
        self.rng = self.scheduler.rng
        self.real = World(MemoryTable(), MemoryObjects(self.clock), self.clock)
        self.table = SteppedTable(self.real.table, self.scheduler)
        self.objects = SteppedObjects(self.real.objects, self.scheduler)
        self.births = 0
        self.counts: Counter[str] = Counter()
        self.acknowledged: dict[str, Committed] = {}
        self.asked: dict[str, str] = {}  # idempotency key -> what it was for
        self.erased = False

    def process(self) -> World:
        """A new process: nothing cached, its own random bytes."""
        self.births += 1
        return World(self.table, self.objects, self.clock, self.seed * 1000 + self.births)

    # --- actors

    def writer(self, name: str) -> None:
        """Notes, counts and changes, each asked for until it is acknowledged."""
        world = self.process()
        for number in range(1000):
            key = f"{name} {number}"
            what = self.rng.choice(("note", "note", "count", "large"))
            self.asked[key] = what
            while key not in self.acknowledged:
                try:
                    committed = world.commit(
                        self.deciding(world, what, key), key, deadline=self.clock.time + 2000
                    )
                except Crash:
                    self.counts["crashes"] += 1
                    world = self.process()
                except NoemaError as error:
                    expect(error, RETRY)
                else:
                    self.counts["replays"] += committed.replayed
                    self.acknowledged[key] = committed

    def deciding(self, world: World, what: str, key: str) -> Decide:
        """The decision for an operation; a note bears its key as its name, so twice would show."""
        if what == "count":
            return world.counting(self.counter)
        if what == "note":
            return world.noting(key)
        noise = random.Random(key).randbytes(5000).hex()

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self.clock.time, origin=ORIGIN)
            draft.create(Concept, schema_ref="kip://test@1.0.0/Note", name=key, attributes={"noise": noise})
            return Proposal(draft.finish())

        return decide

    def reader(self) -> None:
        """Reads now and then; what it sees never goes back, and is whole."""
        world, seen = self.process(), 0
        while True:
            try:
                erased = self.erased
                state = world.spaces.load(SPACE)
                assert state.ver >= seen, "a reader went back in time"
                seen = state.ver
                names = world.names(state)
                assert len(names) == state.counts.concept
                assert len(set(names)) == len(names), "something was written twice"
                assert not (erased and state.get(self.secret)), "an erased element was served"
                head = world.spaces.head(SPACE)
                past = world.spaces.load_at(SPACE, version=self.rng.randint(head.floor, head.ver))
                assert len(world.names(past)) == past.counts.concept
            except Crash:
                world = self.process()
            except NoemaError as error:
                expect(error, {"ServiceUnavailable", "HistoricalSnapshotUnavailable"})

    def compactor(self, name: str) -> None:
        """Compacts under leases so short that it often oversleeps."""
        world = self.process()
        for number in range(1000):
            try:
                fence = world.leases.acquire(
                    SPACE, "compaction", f"{name} {number}", self.rng.choice((50, 500, 5000))
                )
                if fence is not None:
                    done = world.upkeep.compact_under(SPACE, fence)
                    self.counts["compactions" if done else "overtaken"] += 1
            except Crash:
                world = self.process()
            except NoemaError as error:
                expect(error, {"ServiceUnavailable"})

    def collector(self) -> None:
        """Removes garbage much too early, thins and trims."""
        world = self.process()
        while True:
            try:
                world.upkeep.collect_garbage(SPACE, age_ms=self.rng.choice((1, 50, 1000)))
                if self.rng.random() < 0.3:
                    world.upkeep.thin_manifests(SPACE)
                if self.rng.random() < 0.2:
                    world.upkeep.trim_history(SPACE, keep_ms=self.rng.choice((500, 3000)))
            except Crash:
                world = self.process()
            except NoemaError as error:
                expect(error, {"ServiceUnavailable"})

    def eraser(self) -> None:
        """Erases the secret after a while, and comes back if it dies over it."""
        world = self.process()
        for _ in range(self.rng.randrange(40)):
            self.attempt(lambda: world.spaces.head(SPACE))
        number = 0
        while not self.erased:
            number += 1
            try:
                receipt = world.erasures.resume(SPACE, f"again {number}")
                if receipt is None and world.spaces.read_head(SPACE, deleted=True).state == "active":
                    receipt = world.erasures.receipt(SPACE, 1) or world.erasures.erase(
                        SPACE, [self.secret], "owner", owner=f"first {number}", needles=[SECRET]
                    )
                self.erased = receipt is not None
                assert receipt is None or receipt.clean, receipt.found
            except Crash:
                world = self.process()
                self.clock.advance(JOB_MS + 1)
            except (Overtaken, Unavailable):
                self.clock.advance(JOB_MS + 1)
            except NoemaError as error:
                expect(error, {"ServiceUnavailable"})
                self.clock.advance(JOB_MS + 1)

    @staticmethod
    def attempt(act: Callable[[], object]) -> None:
        with contextlib.suppress(Crash, NoemaError):
            act()

    # --- the run

    def run(self, steps: int) -> Report:
        """Set the stage, let everybody run, stop them all, and check what is left."""
        old = compaction.MAX_ELEMENTS
        compaction.MAX_ELEMENTS = 8
        try:
            self.real.create()
            self.counter = self.real.note("counter").outcome["ids"][0]
            self.secret = self.real.commit(self.telling).outcome
            for number in range(4):
                self.scheduler.add(f"writer {number}", lambda number=number: self.writer(f"w{number}"))
            self.scheduler.add("reader 0", self.reader)
            self.scheduler.add("reader 1", self.reader)
            self.scheduler.add("compactor 0", lambda: self.compactor("c0"))
            self.scheduler.add("compactor 1", lambda: self.compactor("c1"))
            self.scheduler.add("collector", self.collector)
            self.scheduler.add("eraser", self.eraser)
            self.scheduler.run(steps)
            return self.check()
        finally:
            compaction.MAX_ELEMENTS = old

    def telling(self, state: SpaceState) -> Proposal:
        """The decision to remember the secret."""
        draft = Draft(state, now=self.clock.time, origin=ORIGIN)
        told = draft.create(Evidence, **evidence(SECRET))
        return Proposal(draft.finish(), outcome=told.id)

    def check(self) -> Report:
        """Everything that must be true of the store after the power cut."""
        world = self.real.again(2_000_000_000)
        self.clock.advance(JOB_MS + HOUR)
        world.erasures.resume(SPACE, "the end")
        self.clock.advance(1)  # what is uploaded in the millisecond of a collection counts as collected
        head, state = world.spaces.head(SPACE), world.spaces.load(SPACE)
        assert state.ver == head.ver
        assert head.log_n == head.ver - head.base_ver
        assert world.upkeep.verify_chain(SPACE).broken is None
        self.check_acknowledged(world, state)
        self.check_history(world)
        world.upkeep.compact(SPACE, "the end")
        assert dump(self.real.again().spaces.load(SPACE)) == dump(state)
        world.upkeep.collect_garbage(SPACE)
        assert dump(self.real.again().spaces.load(SPACE)) == dump(state)
        kept = {key for key, _, _ in self.real.objects.list(space_prefix(SPACE))}
        assert kept == world.upkeep.roots(SPACE, world.spaces.head(SPACE), sorted(kept)), (
            "garbage is left, or something is missing"
        )
        if self.erased:
            found = [place for place, plain in world.everything().items() if SECRET.encode() in plain]
            assert found == [], "erased bytes were found"
        body = msgspec.msgpack.encode([dump(state), head.ver, head.pgen, self.scheduler.trace])
        return Report(
            seed=self.seed,
            steps=self.scheduler.steps,
            faults=self.scheduler.faults,
            crashes=self.counts["crashes"],
            version=head.ver,
            floor=head.floor,
            acknowledged=len(self.acknowledged),
            replays=self.counts["replays"],
            compactions=self.counts["compactions"],
            overtaken=self.counts["overtaken"],
            erased=self.erased,
            digest=hashlib.sha256(body).hexdigest(),
        )

    def check_acknowledged(self, world: World, state: SpaceState) -> None:
        """Each acknowledged operation happened once; each one that was only asked for, at most once."""
        names = Counter(world.names(state))
        assert max(names.values()) == 1, "something was written twice"
        counted, may = 0, 0
        for key, what in self.asked.items():
            acknowledged = key in self.acknowledged
            if what == "count":
                counted += acknowledged
                may += not acknowledged
            else:
                assert names[key] == 1 or not acknowledged, f"{key} was lost"
        counter = state.get(self.counter)
        assert isinstance(counter, Concept)
        number = counter.attributes.get("n", 0)
        assert counted <= number <= counted + may, (counted, number, may)
        versions = [one.ver for one in self.acknowledged.values()]
        assert len(set(versions)) == len(versions), "two commits share a version"

    def check_history(self, world: World) -> None:
        """Each kept version is what a plain replay of the log gives, where the log reaches back to the start."""
        head = world.spaces.head(SPACE)
        deltas = world.spaces.deltas(SPACE, head.min_delta - 1, 10**6)
        assert [delta.ver for delta in deltas] == list(range(head.min_delta, head.ver + 1))
        state = (
            genesis(deltas[0]) if head.min_delta == 1 else world.spaces.load_at(SPACE, version=head.min_delta)
        )
        states = {state.ver: state}
        for delta in deltas[1:]:
            state = state.apply(delta)
            states[state.ver] = state
        for ver in self.rng.sample(sorted(states), min(12, len(states))):
            if ver >= head.floor:
                assert dump(world.spaces.load_at(SPACE, version=ver)) == dump(states[ver]), ver


def expect(error: NoemaError, codes: set[str]) -> None:
    """An actor may meet these errors; any other ends the run."""
    if error.code not in codes:
        raise error


def simulate(seed: int, steps: int = 2500) -> Report:
    """Run one seed; a failure names the seed and how to run it again.

    Raises:
        AssertionError: something was not right at the end, or an actor saw what it must not.
    """
    try:
        return Simulation(seed).run(steps)
    except BaseException as failure:
        again = f"python -m tests.simulation --seed {seed} --steps {steps}"
        raise AssertionError(f"seed {seed} failed: {failure!r}; run it again with: {again}") from failure
