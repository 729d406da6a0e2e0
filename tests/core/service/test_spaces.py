"""Loading spaces: always the newest state, every kept point of the past, and never what was erased."""

from __future__ import annotations

import random

import pytest

from core.errors import NoemaError
from core.service.spaces import Spaces
from core.state.space import SpaceState
from core.storage.layout import delta_sk, space_pk
from tests.core.service.world import SPACE, World, dump
from tests.doubles import FailingObjects, FailingTable, Faults


def test_a_warm_read_is_one_small_read() -> None:
    """When nothing was committed since, a load reads HEAD and nothing else."""
    world = World()
    world.create()
    world.note("one")
    table = FailingTable(world.table)
    process = world.again(table=table)
    first = process.spaces.load(SPACE)
    before = table.reads

    second = process.spaces.load(SPACE)

    assert second is first
    assert table.reads - before == 1


def test_a_commit_of_this_process_is_not_read_back() -> None:
    """What a process has just committed it holds; another process reads it from the log, and both see the same."""
    world = World()
    world.create()
    table = FailingTable(world.table)
    process = world.again(table=table)
    process.note("one")
    process.note("two")
    before = table.reads

    mine = process.spaces.load(SPACE)

    assert table.reads - before == 1
    assert dump(mine) == dump(world.again().spaces.load(SPACE))


def test_a_warm_cache_catches_up() -> None:
    """A cache that is behind reads the newer commits only, and a read after a write always sees it."""
    world = World()
    world.create()
    reader = world.again()
    for number in range(20):
        world.note(f"note {number}")

        assert reader.names()[-1] == f"note {number}"


def test_at_least_pins_a_version() -> None:
    """A version that was seen elsewhere is there; one that never was is refused."""
    world = World()
    world.create()
    ver = world.note("one").ver

    assert world.again().spaces.load(SPACE, at_least=ver).ver == ver
    with pytest.raises(NoemaError) as failure:
        world.spaces.load(SPACE, at_least=ver + 1)
    assert failure.value.code == "PreconditionFailed"


@pytest.mark.parametrize("space", ["nowhere", "x" * 64])
def test_an_unknown_space(space: str) -> None:
    """Every way of reading an unknown space says that it is not there."""
    world = World()
    for read in (world.spaces.head, world.spaces.load, lambda one: world.spaces.deltas(one, 0, 1)):
        with pytest.raises(NoemaError) as failure:
            read(space)

        assert failure.value.code == "NotFoundOrNotVisible"


def history() -> tuple[World, list[SpaceState]]:
    """A space with a long history, compacted now and then; and its state after each version, from version 1."""
    world = World()
    rng = random.Random(7)
    world.create()
    states = [world.spaces.load(SPACE)]
    for number in range(60):
        ids = list(states[-1].ids("concept"))
        if ids and rng.random() < 0.4:
            world.commit(world.changing(rng.choice(ids), name=f"changed {number}"))
        else:
            world.note(f"note {number}")
        states.append(world.spaces.load(SPACE))
        if number % 17 == 5:
            assert world.upkeep.compact(SPACE, f"run {number}") is not None
        world.clock.advance(rng.randrange(1, 5000))
    return world, states


def test_as_of_is_exact_at_every_version() -> None:
    """A version, its space_seq, its time and its transaction all name the same state, element by element."""
    world, states = history()
    fresh = world.again()
    for state in random.Random(3).sample(states, 12):
        past = fresh.spaces.load_at(SPACE, version=state.ver)

        assert (past.ver, past.seq, past.at) == (state.ver, state.seq, state.at)
        assert dump(past) == dump(state)
        assert past.counts == state.counts
        assert fresh.spaces.load_at(SPACE, seq=state.seq).ver == state.ver
        assert fresh.spaces.load_at(SPACE, time=state.at).ver == state.ver
        assert fresh.spaces.load_at(SPACE, time=state.at + 1).ver == state.ver
        delta = fresh.spaces.deltas(SPACE, state.ver - 1, 1)[0]
        assert fresh.spaces.load_at(SPACE, tx=delta.tx_id).ver == state.ver


def test_the_future_is_refused() -> None:
    """What has not happened has no state."""
    world, states = history()
    now = states[-1]
    for point in ({"version": now.ver + 1}, {"seq": now.seq + 1}, {"time": world.clock.time + 10_000}):
        with pytest.raises(NoemaError) as failure:
            world.spaces.load_at(SPACE, **point)

        assert failure.value.code == "InvalidInput"


@pytest.mark.parametrize("point", [{"version": 0}, {"version": -3}, {"time": 5}, {"seq": -1}])
def test_before_the_beginning(point: dict[str, int]) -> None:
    """There is no state before the first commit."""
    world = World()
    world.create()

    with pytest.raises(NoemaError) as failure:
        world.spaces.load_at(SPACE, **point)

    assert failure.value.code == "HistoricalSnapshotUnavailable"
    assert failure.value.details == {"floor": 1}


@pytest.mark.parametrize("tx", ["", "tx-", "tx-00000001aaaaa", "tx-0000000zzzzzz", "nonsense"])
def test_an_unknown_transaction(tx: str) -> None:
    """An id of another space, or of no transaction, is unknown."""
    world = World()
    world.create()

    with pytest.raises(NoemaError) as failure:
        world.spaces.load_at(SPACE, tx=tx)

    assert failure.value.code == "TransactionUnknown"


def test_a_point_is_named_once() -> None:
    """Two names for a point, or none, are a mistake of the program."""
    world = World()
    world.create()
    for points in ({}, {"version": 1, "seq": 0}):
        with pytest.raises(ValueError, match="one of them"):
            world.spaces.load_at(SPACE, **points)


def test_deltas_are_the_log() -> None:
    """The commits after a version, oldest first, a page at a time, to the end."""
    world, states = history()
    seen, after = [], 0
    while page := world.spaces.deltas(SPACE, after, 7):
        seen += page
        after = page[-1].ver

    assert [delta.ver for delta in seen] == [state.ver for state in states]


def test_a_hole_in_the_log_is_never_read_over() -> None:
    """A missing commit is not skipped: the space is unavailable rather than wrong."""
    world = World()
    world.create()
    for number in range(5):
        world.note(f"note {number}")
    world.table._set(space_pk(SPACE), delta_sk(3), None)

    with pytest.raises(NoemaError) as failure:
        world.again().spaces.load(SPACE)

    assert failure.value.code == "ServiceUnavailable"


def test_a_store_that_does_not_answer() -> None:
    """A read that gets no answer is an error that is safe to try again."""
    world = World()
    world.create()
    faults = Faults(range(100), reads=True)
    process = world.again(
        table=FailingTable(world.table, faults), objects=FailingObjects(world.objects, faults)
    )

    with pytest.raises(NoemaError) as failure:
        process.spaces.load(SPACE)

    assert failure.value.spec.retry == "safe_same_request"


def test_the_cache_is_bounded() -> None:
    """However many spaces are read, only some stay open; the others open again when they are asked for."""
    world = World()
    spaces = Spaces(world.table, world.objects, world.clock, cache_bytes=1_000_000)
    for number in range(30):
        world.create(f"space_{number}")
        spaces.load(f"space_{number}")

    assert len(spaces._open) < 10
    assert spaces.load("space_0").ver == 1


def test_listing_spaces() -> None:
    """The directory lists the spaces that exist, a page at a time, in order."""
    world = World()
    for name in ("b", "a", "c", "a_1"):
        world.create(name)

    assert world.spaces.ids(limit=2) == ["a", "a_1"]
    assert world.spaces.ids("a_1") == ["b", "c"]


@pytest.mark.parametrize("read", ["deltas", "version", "time"])
def test_a_hole_in_the_past_is_never_read_over(read: str) -> None:
    """History with a missing commit is unavailable, whichever way it is asked for."""
    world = World()
    world.create()
    for number in range(6):
        world.note(f"note {number}")
    at = world.spaces.deltas(SPACE, 3, 1)[0].at
    world.spaces.load(SPACE)
    world.table._set(space_pk(SPACE), delta_sk(4), None)

    reads = {
        "deltas": lambda: world.spaces.deltas(SPACE, 0, 10),
        "version": lambda: world.spaces.load_at(SPACE, version=5),
        "time": lambda: world.spaces.load_at(SPACE, time=at),
    }

    with pytest.raises(NoemaError) as failure:
        reads[read]()

    assert failure.value.code == "ServiceUnavailable"


def test_a_reader_that_is_behind_its_own_cache_looks_again() -> None:
    """A HEAD that was read before another thread caught up does not take the state back."""
    world = World()
    world.create()
    world.note("one")
    once = iter([True])

    class Slow(FailingTable):
        def get(self, pk: str, sk: str) -> object:
            row = super().get(pk, sk)
            if next(once, False):
                world.note("two")
                process.spaces.load(SPACE)  # another thread of the same process
            return row

    process = world.again(table=Slow(world.table))

    assert process.names() == ["one", "two"]


def test_a_base_that_is_replaced_while_it_is_opened() -> None:
    """A reader whose manifest vanished looks at HEAD again and opens the next one."""
    world = World()
    world.create()
    world.note("one")
    world.upkeep.compact(SPACE, "first")
    old = world.spaces.head(SPACE).base_key
    once = iter([True])

    class Slow(FailingObjects):
        def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
            if next(once, False):
                world.note("two")
                world.upkeep.compact(SPACE, "second")
                world.objects.delete([old])
            return super().get(key, first, length)

    process = world.again(objects=Slow(world.objects))

    assert process.names() == ["one", "two"]
