"""Upkeep: whatever is compacted, thinned, trimmed or collected, the state and the kept history stay what they were."""

from __future__ import annotations

import contextlib

import msgspec
import pytest

import core.storage.compaction as compaction
from core.errors import NoemaError
from core.service.upkeep import DAY, HOUR, LEASE_MS, MINUTE, due
from core.storage.layout import delta_sk, manifest_sk, space_pk
from core.storage.segment import Segment
from tests.core.service.world import SPACE, World, dump, until_clean
from tests.doubles import Crash, FailingObjects, FailingTable, Faults


def grown(commits: int = 12) -> World:
    """A space with some commits, one of them large."""
    world = World()
    world.create()
    for number in range(commits - 1):
        world.note(f"note {number}")
    world.note(world.entropy.token(9000).hex())
    return world


def keys(world: World, part: str = "") -> list[str]:
    return [key for key, _, _ in world.objects.list(f"{SPACE}/{part}")]


def test_compaction_changes_nothing_that_is_read() -> None:
    """The same elements, versions and history before and after; the log's tail is empty."""
    world = grown()
    before = world.spaces.load(SPACE)

    done = world.upkeep.compact(SPACE, "run")

    head, after = world.spaces.head(SPACE), world.again().spaces.load(SPACE)
    assert (done.base, done.ver, done.segments) == (0, before.ver, 1)
    assert (head.base_ver, head.log_n, head.log_bytes) == (before.ver, 0, 0)
    assert (after.ver, after.seq, after.at, after.meta) == (before.ver, before.seq, before.at, before.meta)
    assert dump(after) == dump(before)
    assert dump(world.spaces.load(SPACE)) == dump(before)


def test_compaction_with_nothing_to_do() -> None:
    """A space whose log is folded already is left alone."""
    world = grown()
    world.upkeep.compact(SPACE, "first")
    objects = keys(world)

    assert world.upkeep.compact(SPACE, "second") is None
    assert keys(world) == objects


def test_commits_during_a_compaction_are_kept() -> None:
    """What is committed while a compactor works stays in the tail, and the tail's counters are exact."""
    world = grown()
    once = iter([True])

    class Busy(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            if next(once, False):
                world.note("meanwhile")
            super().put(key, body)

    compactor = world.again(objects=Busy(world.objects))
    assert compactor.upkeep.compact(SPACE, "run") is not None

    head = world.spaces.head(SPACE)
    assert (head.ver - head.base_ver, head.log_n) == (1, 1)
    assert head.log_bytes > 0
    assert world.again().names()[-1] == "meanwhile"


def test_a_long_log_is_folded_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run folds a bounded number of bytes; the next goes on."""
    monkeypatch.setattr("core.service.upkeep.RUN_BYTES", 1000)
    world = grown()
    runs = 0
    while world.upkeep.compact(SPACE, f"run {runs}") is not None:
        runs += 1

    assert runs > 2
    assert world.spaces.head(SPACE).log_n == 0
    assert len(world.again().names()) == 12


def test_a_zombie_compactor_moves_nothing() -> None:
    """A compactor that slept past its lease is refused, and the newer base stays."""
    world = grown()
    zombie_fence = world.leases.acquire(SPACE, "compaction", "zombie", 1000)
    once = iter([True])

    class Sleeps(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if next(once, False):
                world.clock.advance(2000)
                world.note("later")
                assert world.upkeep.compact(SPACE, "second") is not None

    zombie = world.again(objects=Sleeps(world.objects))

    assert zombie.upkeep.compact_under(SPACE, zombie_fence) is None
    head = world.spaces.head(SPACE)
    assert head.base_ver == head.ver
    assert (head.log_n, head.log_bytes) == (0, 0)
    assert world.again().names()[-1] == "later"


def test_a_lost_lease_is_enough_to_lose() -> None:
    """A compactor whose lease was taken moves nothing, even if its successor has done nothing yet."""
    world = grown()
    fence = world.leases.acquire(SPACE, "compaction", "zombie", 1000)
    once = iter([True])

    class Sleeps(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if next(once, False):
                world.clock.advance(2000)
                assert world.leases.acquire(SPACE, "compaction", "successor", 1000)

    zombie = world.again(objects=Sleeps(world.objects))

    assert zombie.upkeep.compact_under(SPACE, fence) is None
    assert world.spaces.head(SPACE).base_ver == 0


def test_a_moved_base_is_enough_to_lose() -> None:
    """Two runs under one lease: the one that comes second moves nothing, so nothing is counted twice."""
    world = grown()
    fence = world.leases.acquire(SPACE, "compaction", "one", 10**6)
    once = iter([True])

    class Overtaken(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if next(once, False):
                world.note("later")
                assert world.upkeep.compact_under(SPACE, fence) is not None

    second = world.again(objects=Overtaken(world.objects))

    assert second.upkeep.compact_under(SPACE, fence) is None
    head = world.spaces.head(SPACE)
    assert (head.base_ver, head.log_n, head.log_bytes) == (head.ver, 0, 0)


def test_a_compactor_that_took_too_long_gives_up() -> None:
    """Its uploads may have been collected, so it does not refer to them, even with its lease intact."""
    world = grown()
    fence = world.leases.acquire(SPACE, "compaction", "slow", 10 * HOUR)
    once = iter([True])

    class Sleeps(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if next(once, False):
                world.clock.advance(2 * HOUR)
                world.upkeep.collect_garbage(SPACE)

    slow = world.again(objects=Sleeps(world.objects))

    assert slow.upkeep.compact_under(SPACE, fence) is None
    assert world.spaces.head(SPACE).base_ver == 0


@pytest.mark.parametrize("error", [Crash, None], ids=["crash", "no answer"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_compaction_survives_a_fault_at_any_call(error: type[BaseException] | None, after: bool) -> None:
    """After a fault at any call the state is whole, and a later run and a collection leave no garbage."""

    def run(at: int) -> bool:
        world = grown(5)
        before = dump(world.spaces.load(SPACE))
        faults = Faults([at], after=after, reads=True, **({"error": error} if error else {}))
        process = world.again(
            table=FailingTable(world.table, faults), objects=FailingObjects(world.objects, faults)
        )
        with contextlib.suppress(Crash, NoemaError):
            process.upkeep.compact(SPACE, "unlucky")
        assert dump(world.again().spaces.load(SPACE)) == before

        world.clock.advance(LEASE_MS + HOUR)
        world.upkeep.compact(SPACE, "lucky")
        world.upkeep.collect_garbage(SPACE)

        head = world.spaces.head(SPACE)
        assert (head.base_ver, head.log_n, head.log_bytes) == (head.ver, 0, 0)
        assert dump(world.again().spaces.load(SPACE)) == before
        assert len(keys(world, "m/")) == 1
        assert len(keys(world, "seg/")) == 1
        return faults.count > at

    assert until_clean(run) > 8


def test_garbage_is_what_nothing_refers_to() -> None:
    """An orphan goes after an hour; everything that HEAD, the log or a manifest needs stays."""
    world = grown()
    world.upkeep.compact(SPACE, "run")
    needed = keys(world)
    orphans = [f"{SPACE}/d/000000000099-x", f"{SPACE}/seg/x", f"{SPACE}/m/x", f"{SPACE}/f/x"]
    for key in orphans:
        world.objects.put(key, b"orphan")

    young = world.upkeep.collect_garbage(SPACE)
    world.clock.advance(HOUR + 1)
    old = world.upkeep.collect_garbage(SPACE)

    assert young.removed == ()
    assert sorted(old.removed) == sorted(orphans)
    assert keys(world) == needed


def test_garbage_collection_leaves_what_is_not_the_logs() -> None:
    """Bodies that other services keep below the space's prefix are theirs."""
    world = grown()
    world.objects.put(f"{SPACE}/c/formation/1", b"a conversation")
    world.clock.advance(10 * HOUR)

    world.upkeep.collect_garbage(SPACE)

    assert f"{SPACE}/c/formation/1" in keys(world)


def test_roots_are_read_after_the_listing() -> None:
    """An object that a commit refers to between the listing and the roots is not taken for garbage."""
    world = grown()

    class Committing(FailingObjects):
        def list(self, prefix: str) -> object:
            found = list(super().list(prefix))
            if prefix.endswith("/d/"):
                world.clock.advance(5 * HOUR)
                world.upkeep.compact(SPACE, "meanwhile")
            return iter(found)

    collector = world.again(objects=Committing(world.objects))
    before = dump(world.spaces.load(SPACE))

    collector.upkeep.collect_garbage(SPACE)

    assert dump(world.again().spaces.load(SPACE)) == before
    assert dump(world.again().spaces.load_at(SPACE, version=13)) == before


def test_manifests_are_thinned_by_age() -> None:
    """All of a day, one an hour for a week, one a day for ninety days; AS OF stays exact at every version."""
    world = World()
    world.create()
    states = {}
    for number in range(40):
        states[world.note(f"note {number}").ver] = None
        states[number + 2] = dump(world.spaces.load(SPACE))
        world.upkeep.compact(SPACE, f"run {number}")
        world.clock.advance(20 * MINUTE if number < 20 else 5 * HOUR)

    assert world.upkeep.thin_manifests(SPACE) > 0
    first = len(world.upkeep.manifests(SPACE, world.spaces.head(SPACE)))
    world.clock.advance(10 * DAY)
    assert world.upkeep.thin_manifests(SPACE) > 0
    rest = world.upkeep.manifests(SPACE, world.spaces.head(SPACE))
    world.upkeep.collect_garbage(SPACE)

    assert first < 40
    assert len(rest) < first
    assert len({int(row["made"]) // DAY for _, row in rest}) == len(rest)
    fresh = world.again()
    for ver, state in states.items():
        assert dump(fresh.spaces.load_at(SPACE, version=ver)) == state


def test_trimming_moves_the_floor() -> None:
    """Below the floor history is refused by name, at and above it exact; nothing of the present changes."""
    world = grown(6)
    world.upkeep.compact(SPACE, "old")
    floor = world.spaces.head(SPACE).ver
    old = dump(world.spaces.load(SPACE))
    world.clock.advance(100 * DAY)
    world.note("young")
    world.upkeep.compact(SPACE, "young")
    now = dump(world.spaces.load(SPACE))

    trimmed = world.upkeep.trim_history(SPACE, keep_ms=30 * DAY)
    world.clock.advance(2 * HOUR)
    world.upkeep.collect_garbage(SPACE)

    fresh = world.again()
    assert (trimmed.floor, trimmed.deltas) == (floor, floor - 1)
    assert dump(fresh.spaces.load(SPACE)) == now
    assert dump(fresh.spaces.load_at(SPACE, version=floor)) == old
    with pytest.raises(NoemaError) as failure:
        fresh.spaces.load_at(SPACE, version=floor - 1)
    assert (failure.value.code, failure.value.details) == ("HistoricalSnapshotUnavailable", {"floor": floor})
    with pytest.raises(NoemaError):
        fresh.spaces.deltas(SPACE, 0, 5)
    assert world.table.get(space_pk(SPACE), delta_sk(floor - 1)) is None
    assert world.table.get(space_pk(SPACE), manifest_sk(floor)) is not None
    assert world.upkeep.verify_chain(SPACE).broken is None


def test_trimming_without_a_manifest_does_nothing() -> None:
    """History that only the log holds stays, however old."""
    world = grown()
    world.clock.advance(1000 * DAY)

    assert world.upkeep.trim_history(SPACE, keep_ms=DAY).floor == 1
    assert world.spaces.load_at(SPACE, version=2).ver == 2


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_trimming_survives_a_crash_at_any_call(after: bool) -> None:
    """A crash leaves at worst rows below the floor, which the next run removes."""

    def run(at: int) -> bool:
        world = grown(4)
        world.upkeep.compact(SPACE, "old")
        world.clock.advance(100 * DAY)
        world.note("young")
        faults = Faults([at], after=after, error=Crash)
        process = world.again(table=FailingTable(world.table, faults))
        with contextlib.suppress(Crash):
            process.upkeep.trim_history(SPACE, keep_ms=DAY)
        assert len(world.again().names()) == 5
        world.upkeep.trim_history(SPACE, keep_ms=DAY)

        assert world.spaces.head(SPACE).floor == 5
        assert world.table.get(space_pk(SPACE), delta_sk(4)) is None
        return faults.count > at

    assert until_clean(run) > 1


def test_when_compaction_is_due() -> None:
    """Many commits, many bytes, or a quiet space with some commits; an empty log never is."""
    world = grown(20)
    head = world.spaces.head(SPACE)

    assert not due(head, head.at)
    assert due(head, head.at + 11 * MINUTE)
    assert due(msgspec.structs.replace(head, log_n=257), head.at)
    assert due(msgspec.structs.replace(head, log_bytes=2**20 + 1), head.at)
    assert not due(msgspec.structs.replace(head, log_n=0), head.at + DAY)
    assert not due(msgspec.structs.replace(head, log_n=999, state="deleted"), head.at)


def test_the_chain_holds() -> None:
    """Every commit fits its digest and the one before it, up to HEAD."""
    world = grown()

    report = world.upkeep.verify_chain(SPACE)

    assert (report.first, report.last, report.redacted, report.broken) == (1, 13, 0, None)


@pytest.mark.parametrize("attribute", ["body", "digest", "prev", "chain", "salt"])
def test_a_changed_commit_breaks_the_chain(attribute: str) -> None:
    """Whoever changes a row of the log, in whichever part, is found out, with the version."""
    world = grown()
    pk, sk = space_pk(SPACE), delta_sk(5)
    row = world.table.get(pk, sk)
    row[attribute] = bytes([row[attribute][0] ^ 1]) + row[attribute][1:]
    world.table._set(pk, sk, row)

    assert world.upkeep.verify_chain(SPACE).broken == 5


def test_a_missing_commit_breaks_the_chain() -> None:
    """A hole is found, with the version."""
    world = grown()
    world.table._set(space_pk(SPACE), delta_sk(7), None)

    assert world.upkeep.verify_chain(SPACE).broken == 7


def test_reads_go_on_while_segments_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that was loaded before a compaction answers as it did, for its objects stay while they are roots."""
    monkeypatch.setattr(compaction, "MAX_ELEMENTS", 4)
    world = grown()
    world.upkeep.compact(SPACE, "first")
    state = world.again().spaces.load(SPACE)
    world.note("new")
    world.upkeep.compact(SPACE, "second")
    world.clock.advance(5 * HOUR)

    world.upkeep.collect_garbage(SPACE)

    assert isinstance(state.tail.below.segments[0], Segment)
    assert len(dump(state)) == 12


def test_garbage_of_a_deleted_space() -> None:
    """Where a space was deleted, everything that a late writer left is garbage."""
    world = grown()
    world.erasures.delete_space(SPACE, "owner", owner="run")
    world.objects.put(f"{SPACE}/d/000000000099-late", b"late")
    world.clock.advance(2 * HOUR)

    assert world.upkeep.collect_garbage(SPACE).removed == (f"{SPACE}/d/000000000099-late",)
    assert keys(world) == []


def test_more_manifests_than_a_page() -> None:
    """However many manifests are retained, all of them are roots."""
    world = World()
    world.create()
    for number in range(130):
        world.note(f"note {number}")
        world.upkeep.compact(SPACE, f"run {number}")
    world.clock.advance(2 * HOUR)
    removed = world.upkeep.collect_garbage(SPACE).removed

    assert len(world.upkeep.manifests(SPACE, world.spaces.head(SPACE))) == 130
    assert removed == ()
    assert len(world.again().names(world.spaces.load_at(SPACE, version=3))) == 2
