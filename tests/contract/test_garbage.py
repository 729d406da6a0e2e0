"""Garbage collection over every store: what sleeps between its upload and its write can refer to nothing that is gone."""

from __future__ import annotations

from collections.abc import Sequence

from core.ports import Objects, Table, Write
from core.service.leases import Leases
from core.service.upkeep import Upkeep
from infra.system import SystemClock
from tests.concurrency.ledger import Ledger
from tests.doubles import FailingTable, FakeClock

LARGE = 60_000
TWO_HOURS_MS = 7_200_000


def upkeep_of(ledger: Ledger) -> Upkeep:
    """Upkeep in the same process."""
    return Upkeep(ledger.spaces, Leases(ledger.spaces.table, ledger.clock), ledger.entropy)


def asleep(table: Table, objects: Objects, clock: FakeClock) -> FailingTable:
    """A table whose process is suspended for two hours before its first transaction, while garbage is collected."""
    slept: list[int] = []

    def before(_: Sequence[Write]) -> None:
        if not slept:
            clock.advance(TWO_HOURS_MS)
            slept.append(
                len(upkeep_of(Ledger(table, objects, clock, seed=77)).collect_garbage("ledger").removed)
            )
            assert slept[0] > 0, "nothing was collected: the test shows nothing"

    return FailingTable(table, before_transact=before)


def test_a_commit_that_overslept_the_collector_uploads_again(table: Table, objects: Objects) -> None:
    """Its object is gone when it wakes; it does not land with it, but is decided and uploaded again."""
    clock = FakeClock(SystemClock().now(), step_ms=1)
    Ledger(table, objects, clock).create()
    sleeper = Ledger(asleep(table, objects, clock), objects, clock, seed=1)

    committed = sleeper.write("a", bytes_of_text=LARGE, patience_ms=2 * TWO_HOURS_MS)

    assert committed.ver == 2
    assert Ledger(table, objects, clock, seed=2).audit().entries == {"a": 1}


def test_a_compaction_that_overslept_the_collector_does_not_land(table: Table, objects: Objects) -> None:
    """A compactor that wakes after the collector does not move the base to what is gone."""
    clock = FakeClock(SystemClock().now(), step_ms=1)
    writer = Ledger(table, objects, clock)
    writer.create()
    for number in range(5):
        writer.write(f"e{number}")
    sleeper = Ledger(asleep(table, objects, clock), objects, clock, seed=1)
    fence = Leases(table, clock).acquire("ledger", "compaction", "sleeper", 60_000)
    assert fence is not None

    assert upkeep_of(sleeper).compact_under("ledger", fence) is None

    reader = Ledger(table, objects, clock, seed=2)
    assert reader.audit().value == 5
    assert reader.spaces.head("ledger").base_key is None
    assert upkeep_of(reader).compact("ledger", "next") is not None
    assert Ledger(table, objects, clock, seed=3).audit().value == 5


def test_only_what_nothing_refers_to_is_collected(table: Table, objects: Objects) -> None:
    """Deltas in objects, old manifests and the base stay readable; objects of lost attempts go."""
    clock = FakeClock(SystemClock().now(), step_ms=1)
    ledger = Ledger(table, objects, clock)
    ledger.create()
    upkeep = upkeep_of(ledger)
    for number in range(6):
        ledger.write(f"e{number}", bytes_of_text=LARGE if number % 2 else 10)
        if number in (2, 4):
            assert upkeep.compact("ledger", f"run {number}") is not None
    objects.put("ledger/d/000000000009-lost", b"an attempt that lost")
    objects.put("ledger/seg/lost", b"a compaction that lost")

    young = upkeep.collect_garbage("ledger")
    clock.advance(TWO_HOURS_MS)
    old = upkeep.collect_garbage("ledger")

    assert young.removed == ()
    assert set(old.removed) == {"ledger/d/000000000009-lost", "ledger/seg/lost"}
    reader = Ledger(table, objects, clock, seed=1)
    for version in range(1, 8):
        assert reader.audit(version).faults() == []
        assert reader.audit(version).ver == version
