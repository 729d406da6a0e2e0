"""A store whose every call is a point where another actor may run, and where the call may fail.

Actors are plain code in threads that run strictly one at a time: each waits for its turn before every call of the
store, and the scheduler, drawing from the seed, says whose turn is next. So an interleaving is a list of numbers,
and the same seed gives the same one.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence

from core.model.instants import Instant
from core.ports import Objects, Range, Row, Table, Unavailable, Write
from tests.doubles import Crash, FakeClock


class Stop(BaseException):
    """The simulation is over; the actor ends where it stands, like a process that is killed."""


class Actor(threading.Thread):
    """One actor: code that runs only while it has the turn."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._run_actor = run
        self._turn = threading.Semaphore(0)
        self._yielded = threading.Semaphore(0)
        self.stopping = False
        self.failure: BaseException | None = None
        self.ended = False

    def run(self) -> None:
        """As threads do; what is raised is kept for the scheduler."""
        self._turn.acquire()
        try:
            if not self.stopping:
                self._run_actor()
        except Stop:
            pass
        except BaseException as failure:
            self.failure = failure
        finally:
            self.ended = True
            self._yielded.release()

    def step(self) -> None:
        """Let it run to its next call of the store. Called by the scheduler."""
        self._turn.release()
        self._yielded.acquire()

    def wait(self) -> None:
        """Give the turn back and wait for the next. Called by the actor."""
        self._yielded.release()
        self._turn.acquire()
        if self.stopping:
            raise Stop


class Scheduler:
    """Draws who runs next, whether a call fails, and how the time passes; everything from one seed."""

    def __init__(self, seed: int, clock: FakeClock, *, fault_rate: float) -> None:
        self.rng = random.Random(seed)
        self.clock = clock
        self.fault_rate = fault_rate
        self.actors: list[Actor] = []
        self.steps = 0
        self.faults = 0
        self.trace: list[str] = []

    def add(self, name: str, run: Callable[[], None]) -> None:
        """An actor that joins in; it starts when it is first drawn."""
        self.actors.append(Actor(name, run))

    def run(self, steps: int) -> None:
        """Let the actors run for some steps; the first failure of one ends it and is raised."""
        for actor in self.actors:
            actor.start()
        try:
            for _ in range(steps):
                living = [actor for actor in self.actors if not actor.ended]
                if not living:
                    break
                self.steps += 1
                self.clock.advance(self.rng.choice((0, 0, 1, 5, 20)))
                actor = self.rng.choice(living)
                actor.step()
                if actor.failure is not None:
                    raise actor.failure
        finally:
            for actor in self.actors:
                actor.stopping = True
                if not actor.ended:
                    actor.step()
                actor.join(timeout=10)

    def call[R](self, name: str, do: Callable[[], R], *, write: bool) -> R:
        """Wait for a turn, then do a store's call, or fail before or after it."""
        current = threading.current_thread()
        if not isinstance(current, Actor):
            return do()  # the test itself looks
        current.wait()
        self.trace.append(f"{current.name}:{name}")
        fate = self.rng.random()
        if fate >= self.fault_rate:
            return do()
        self.faults += 1
        error = Crash if self.rng.random() < 0.4 else Unavailable
        if write and fate < self.fault_rate / 2:
            do()
        raise error("a drawn fault")


class SteppedTable:
    """A Table that asks the scheduler before every call."""

    def __init__(self, table: Table, scheduler: Scheduler) -> None:
        self.table = table
        self.scheduler = scheduler

    def get(self, pk: str, sk: str) -> Row | None:
        """As the table's."""
        return self.scheduler.call(f"get {sk}", lambda: self.table.get(pk, sk), write=False)

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """As the table's."""
        return self.scheduler.call(
            f"query {first}",
            lambda: self.table.query(pk, first, last, limit=limit, reverse=reverse),
            write=False,
        )

    def transact(self, writes: Sequence[Write]) -> None:
        """As the table's."""
        names = " ".join(write.sk for write in writes)
        self.scheduler.call(f"write {names}", lambda: self.table.transact(writes), write=True)


class SteppedObjects:
    """Objects that ask the scheduler before every call."""

    def __init__(self, objects: Objects, scheduler: Scheduler) -> None:
        self.objects = objects
        self.scheduler = scheduler

    def put(self, key: str, body: bytes) -> None:
        """As the objects'."""
        self.scheduler.call(f"put {key}", lambda: self.objects.put(key, body), write=True)

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """As the objects'."""
        return self.scheduler.call(f"read {key}", lambda: self.objects.get(key, first, length), write=False)

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """As the objects'."""
        return self.scheduler.call(f"read {len(ranges)}", lambda: self.objects.get_many(ranges), write=False)

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """As the objects'."""
        return self.scheduler.call(f"list {prefix}", lambda: self.objects.list(prefix), write=False)

    def delete(self, keys: Sequence[str]) -> None:
        """As the objects'."""
        self.scheduler.call(f"delete {len(keys)}", lambda: self.objects.delete(keys), write=True)
