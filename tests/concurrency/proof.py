"""The proof of concurrency: many writers on one space, crashes, zombies and a garbage collector, then an audit.

Every writer is a process of its own as far as memory goes: it shares the store with the others and nothing else,
and when it crashes it comes back with an empty cache and sends the same request again, as a client would. What
was acknowledged is written down outside; afterwards the ledger must hold exactly that, at every version.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

import msgspec

from core.errors import NoemaError
from core.ports import Clock, Objects, Refused, Row, Table, Unavailable, Update, Write
from core.service.commit import Fenced
from core.service.leases import Leases
from core.service.upkeep import Upkeep
from core.service.values import Fence
from core.storage.layout import HEAD
from tests.concurrency.ledger import Ledger
from tests.doubles import Crash

SPACE = "ledger"
RETRYABLE = {"SerializationConflict", "OutcomeUnknown", "ServiceUnavailable"}
LARGE_TEXT = 40_000  # goes to an object
PATIENCE_MS = 4_000  # of one request, before the client sends it again
LEASE_MS = 300  # short, so that compactors oversleep within the test
GARBAGE_AGE_MS = 3_000  # of the order of an upload and its commit here: the sweep fences what is late
AS_OF_POINTS = 12


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How hard to try. Chances are of each transaction of a writer."""

    writers: int = 64
    commits: int = 4
    seed: int = 1
    crash_before: float = 0.03
    crash_after: float = 0.15
    lost_answer: float = 0.10
    large: float = 0.15
    seconds: float = 40.0  # after which writers stop wherever they are


class Report(msgspec.Struct, kw_only=True):
    """What happened, and everything that should not have."""

    plan: Plan
    seconds: float
    acknowledged: int
    versions: int
    counts: dict[str, int]
    as_of: list[int]
    faults: list[str]

    def lines(self) -> list[str]:
        """For a person."""
        counted = [f"  {name:38} {number:7}" for name, number in sorted(self.counts.items())]
        return [
            (
                f"writers {self.plan.writers}, commits each {self.plan.commits}, seed {self.plan.seed}: "
                f"{self.acknowledged} acknowledged, {self.versions} versions, {self.seconds:.1f} s"
            ),
            *counted,
            f"  AS OF exact at versions {', '.join(map(str, self.as_of))}",
            *(f"  FAULT: {fault}" for fault in self.faults),
            "  0 lost, 0 duplicated, 0 torn" if not self.faults else f"  {len(self.faults)} faults",
        ]


class Tally:
    """Counts that threads share."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, number: int = 1) -> None:
        """Count something that happened."""
        with self._lock:
            self._counts[name] += number

    def as_dict(self) -> dict[str, int]:
        """All counts."""
        with self._lock:
            return dict(self._counts)


class UnrulyTable:
    """A table whose process may die before or after a transaction, and whose answers may be lost."""

    def __init__(self, table: Table, plan: Plan, chance: random.Random, tally: Tally) -> None:
        self._table = table
        self._plan = plan
        self._chance = chance
        self._tally = tally

    def get(self, pk: str, sk: str) -> Row | None:
        """As the table's."""
        return self._table.get(pk, sk)

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """As the table's."""
        return self._table.query(pk, first, last, limit=limit, reverse=reverse)

    def transact(self, writes: Sequence[Write]) -> None:
        """The table's, or a crash around it. Crashes after count only where the transaction landed."""
        draw, plan = self._chance.random(), self._plan
        if draw < plan.crash_before:
            self._tally.add("writers crashed before a commit")
            raise Crash("before")
        try:
            self._table.transact(writes)
        except Refused as refused:
            self._tally.add("transactions refused" if refused.failed else "transactions collided")
            raise
        if draw < plan.crash_before + plan.crash_after:
            self._tally.add("writers crashed after a commit")
            raise Crash("after")
        if draw < plan.crash_before + plan.crash_after + plan.lost_answer:
            self._tally.add("answers lost after a commit")
            raise Unavailable("the answer was lost")


class SleepyTable(UnrulyTable):
    """A compactor's table: before the base moves, `before_move` may make it oversleep; outcomes are counted."""

    def __init__(
        self, table: Table, tally: Tally, before_move: Callable[[], bool], faults: list[str]
    ) -> None:
        super().__init__(table, Plan(), random.Random(0), tally)
        self._before_move = before_move
        self._faults = faults

    def transact(self, writes: Sequence[Write]) -> None:
        """The table's, after a sleep; a move of the base that lands too late is a fault."""
        moves = any(isinstance(w, Update) and w.sk == HEAD and "base_key" in w.assign for w in writes)
        if not moves:
            self._table.transact(writes)
            return
        late = self._before_move()
        try:
            self._table.transact(writes)
        except Refused:
            self._tally.add("compactions rejected, overslept" if late else "compactions rejected, overtaken")
            raise
        self._tally.add("compactions landed")
        if late:
            self._faults.append("a compaction landed after its lease had gone to another")


class Proof:
    """One run over one store."""

    def __init__(self, table: Table, objects: Objects, clock: Clock, plan: Plan) -> None:
        self.table = table
        self.objects = objects
        self.clock = clock
        self.plan = plan
        self.tally = Tally()
        self.faults: list[str] = []
        self.acknowledged: dict[str, tuple[int, int]] = {}  # name -> version, value
        self.unsettled: dict[str, int] = {}  # name -> bytes of text, of requests cut off by the time
        self._written = Lock()
        self._over = Event()
        self._deadline = clock.now() + round(plan.seconds * 1000)

    def run(self) -> Report:
        """Create the space, let everybody loose, wait, audit."""
        started = self.clock.now()
        Ledger(self.table, self.objects, self.clock).create()
        writers = [Thread(target=self._guard(self._write), args=(each,)) for each in range(self.plan.writers)]
        upkeep = [
            Thread(target=self._guard(self._compact), args=(0,)),
            Thread(target=self._guard(self._compact), args=(1,)),
            Thread(target=self._guard(self._collect), args=()),
        ]
        for thread in [*writers, *upkeep]:
            thread.start()
        for thread in writers:
            thread.join(self.plan.seconds + 20)
        self._over.set()
        for thread in upkeep:
            thread.join(20)
        if any(thread.is_alive() for thread in [*writers, *upkeep]):
            self.faults.append("a thread did not come to its end")
        self._settle()
        as_of = self._audit()
        return Report(
            plan=self.plan,
            seconds=(self.clock.now() - started) / 1000,
            acknowledged=len(self.acknowledged),
            versions=Ledger(self.table, self.objects, self.clock).spaces.head(SPACE).ver,
            counts=self.tally.as_dict(),
            as_of=as_of,
            faults=self.faults,
        )

    def _guard(self, work: Callable[..., None]) -> Callable[..., None]:
        def guarded(*args: int) -> None:
            try:
                work(*args)
            except BaseException as error:  # a thread's death must be seen
                self.faults.append(f"{work.__name__} {args} ended with {type(error).__name__}: {error}")
                raise

        return guarded

    # --- writers

    def _write(self, writer: int) -> None:
        chance = random.Random(f"{self.plan.seed}:{writer}")
        table = UnrulyTable(self.table, self.plan, chance, self.tally)
        lives = 0
        ledger = Ledger(table, self.objects, self.clock, seed=writer * 1000)
        for number in range(self.plan.commits):
            name = f"w{writer:03}-{number}"
            size = LARGE_TEXT if chance.random() < self.plan.large else 100
            while self.clock.now() < self._deadline:
                try:
                    committed = ledger.write(name, bytes_of_text=size, patience_ms=PATIENCE_MS)
                except Crash:
                    lives += 1
                    ledger = Ledger(table, self.objects, self.clock, seed=writer * 1000 + lives)
                except NoemaError as error:
                    if error.code not in RETRYABLE:
                        raise
                    self.tally.add(f"requests sent again after {error.code}")
                else:
                    self.tally.add("outcomes replayed", int(committed.replayed))
                    with self._written:
                        self.acknowledged[name] = (committed.ver, int(committed.outcome["value"]))
                    break
            else:
                with self._written:
                    self.unsettled[name] = size
                return

    def _settle(self) -> None:
        """What a client does whose time ran out: later, when it is calm, it sends the same request again."""
        ledger = Ledger(self.table, self.objects, self.clock, seed=980_000)
        for name, size in sorted(self.unsettled.items()):
            committed = ledger.write(name, bytes_of_text=size)
            self.tally.add("requests settled when it was calm")
            self.tally.add("outcomes replayed", int(committed.replayed))
            self.acknowledged[name] = (committed.ver, int(committed.outcome["value"]))

    # --- upkeep

    def _upkeep(self, table: Table, seed: int) -> Upkeep:
        ledger = Ledger(table, self.objects, self.clock, seed=seed)
        leases = Leases(table, self.clock)
        return Upkeep(ledger.spaces, leases, ledger.entropy)

    def _compact(self, compactor: int) -> None:
        """Compact again and again; every other time sleep past the lease until another holds it."""
        chance = random.Random(f"{self.plan.seed}:compactor:{compactor}")
        held: list[Fence] = []
        leases = Leases(self.table, self.clock)
        spaces = Ledger(self.table, self.objects, self.clock).spaces

        def oversleep() -> bool:
            if chance.random() < 0.5:
                return False
            until = self.clock.now() + 4000
            while self.clock.now() < until and not self._over.is_set():
                if spaces.head(SPACE).epoch("compaction") != held[-1].epoch:
                    self.tally.add("compactors woke after their lease")
                    return True
                self.clock.sleep(0.05)
            return False  # nobody came to take the lease over: not late

        upkeep = self._upkeep(
            SleepyTable(self.table, self.tally, oversleep, self.faults), 900_000 + compactor
        )
        run = 0
        while not self._over.is_set():
            run += 1
            fence = leases.acquire(SPACE, "compaction", f"compactor {compactor} run {run}", LEASE_MS)
            if fence is None:
                self.clock.sleep(0.1)
                continue
            held.append(fence)
            try:
                upkeep.compact_under(SPACE, fence)
            except Fenced:
                self.tally.add("compactions fenced")
            except NoemaError as error:
                if error.code not in RETRYABLE:
                    raise
                self.tally.add(f"compactions given up after {error.code}")
            self.clock.sleep(0.3)

    def _collect(self) -> None:
        upkeep = self._upkeep(self.table, 990_000)
        while not self._over.wait(1):
            try:
                collected = upkeep.collect_garbage(SPACE, age_ms=GARBAGE_AGE_MS)
            except NoemaError as error:
                if error.code not in RETRYABLE:
                    raise
                continue
            self.tally.add("objects removed while writers wrote", len(collected.removed))

    # --- the audit

    def _audit(self) -> list[int]:
        """Compare the ledger with what was acknowledged: now, and as of a dozen versions; twice around a last GC."""
        upkeep = self._upkeep(self.table, 995_000)
        ledger = Ledger(self.table, self.objects, self.clock)
        last = ledger.spaces.head(SPACE).ver
        chance = random.Random(f"{self.plan.seed}:audit")
        points = sorted({1, last, *chance.sample(range(1, last + 1), min(AS_OF_POINTS, last))})
        self._check(last, points)
        removed = upkeep.collect_garbage(SPACE, age_ms=0).removed  # nobody writes any more
        self.tally.add("objects removed at the end", len(removed))
        self._check(last, points)
        chain = upkeep.verify_chain(SPACE)
        if chain.broken is not None:
            self.faults.append(f"the hash chain breaks at version {chain.broken}")
        return points

    def _check(self, last: int, points: list[int]) -> None:
        ledger = Ledger(self.table, self.objects, self.clock)
        versions = sorted(version for version, _ in self.acknowledged.values())
        if versions != list(range(2, last + 1)):
            self.faults.append(f"{len(versions)} acknowledged versions are not 2 to {last}")
        for version in [None, *points]:
            held = ledger.audit(version)
            expected = {
                name: value
                for name, (at, value) in self.acknowledged.items()
                if version is None or at <= version
            }
            self.faults += held.faults()
            self.faults += [f"as of {version}: {n} is missing" for n in expected.keys() - held.entries.keys()]
            self.faults += [
                f"as of {version}: {n} is too much" for n in held.entries.keys() - expected.keys()
            ]
            self.faults += [
                f"as of {version}: {n} differs" for n, v in expected.items() if held.entries.get(n, v) != v
            ]
