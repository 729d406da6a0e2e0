"""Leases: one holder at a time, and a lost lease stays lost."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.ports import Unavailable
from core.service.leases import Fenced, Leases
from tests.core.service.world import SPACE, World, until_clean
from tests.doubles import FailingTable, Faults


def test_a_lease_is_held_by_one() -> None:
    """While a lease lasts, nobody else gets it, under whatever name."""
    world = World()
    world.create()

    fence = world.leases.acquire(SPACE, "formation", "first", 60_000)

    assert fence is not None
    assert fence.epoch == 1
    assert world.leases.acquire(SPACE, "formation", "second", 60_000) is None
    assert world.leases.acquire(SPACE, "formation", "first", 60_000) is None
    assert world.leases.acquire(SPACE, "learning", "second", 60_000) is not None


def test_a_lease_that_ran_out_is_taken_over() -> None:
    """The next holder gets a higher epoch, and the old one cannot renew."""
    world = World()
    world.create()
    old = world.leases.acquire(SPACE, "formation", "first", 1000)
    world.clock.advance(1001)

    new = world.leases.acquire(SPACE, "formation", "second", 1000)

    assert (old.epoch, new.epoch) == (1, 2)
    with pytest.raises(Fenced):
        world.leases.renew(SPACE, old, 1000)
    assert world.leases.renew(SPACE, new, 5000).until > new.until


def test_releasing_lets_the_next_begin() -> None:
    """A released lease can be taken at once; releasing a lost one does nothing."""
    world = World()
    world.create()
    old = world.leases.acquire(SPACE, "formation", "first", 60_000)
    world.leases.release(SPACE, old)
    new = world.leases.acquire(SPACE, "formation", "second", 60_000)

    world.leases.release(SPACE, old)

    assert new.epoch == 2
    assert world.leases.acquire(SPACE, "formation", "third", 1000) is None


def test_raising_epochs_fences_what_runs() -> None:
    """After a person's change nothing begun before it can land, and new work may begin at once."""
    world = World()
    world.create()
    fence = world.leases.acquire(SPACE, "formation", "first", 60_000)

    world.leases.raise_epochs(SPACE, ["formation"])

    with pytest.raises(Fenced):
        world.note("zombie", fence=fence)
    fresh = world.leases.acquire(SPACE, "formation", "second", 60_000)
    assert fresh.epoch == 3
    world.note("fresh", fence=fresh)
    assert world.names() == ["fresh"]


def test_no_space_no_lease() -> None:
    """A space that is not there has nothing to lease."""
    world = World()

    assert world.leases.acquire(SPACE, "formation", "first", 1000) is None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_lease_is_known_without_an_answer(after: bool) -> None:
    """When the store does not answer a write, a look settles whether the lease is held."""

    def run(at: int) -> bool:
        world = World()
        world.create()
        faults = Faults([at], after=after)
        leases = Leases(FailingTable(world.table, faults), world.clock)

        fence = leases.acquire(SPACE, "formation", "first", 60_000)

        assert world.spaces.head(SPACE).epoch("formation") == fence.epoch == 1
        assert leases.renew(SPACE, fence, 1000).until == world.spaces.head(SPACE).lease_until("formation")
        leases.release(SPACE, fence)
        assert world.leases.acquire(SPACE, "formation", "second", 1000).epoch == 2
        return faults.count > at

    assert until_clean(run) == 3


def test_a_store_that_never_answers_is_said_so() -> None:
    """Without an answer there is no lease, only an error that is safe to try again."""
    world = World()
    world.create()
    leases = Leases(FailingTable(world.table, Faults(range(100))), world.clock)

    with pytest.raises(NoemaError) as failure:
        leases.acquire(SPACE, "formation", "first", 1000)

    assert failure.value.code == "ServiceUnavailable"


def test_raising_epochs_of_no_space_does_nothing() -> None:
    """There is nothing to fence where nothing is."""
    world = World()

    world.leases.raise_epochs(SPACE)

    assert world.everything() == {}


def test_raising_epochs_wins_against_those_who_move_them() -> None:
    """When leases change hands at the same time, the epochs are raised over what they are then."""
    world = World()
    world.create()
    others = iter(range(2))

    def interfere(_: object) -> None:
        number = next(others, None)
        if number is not None:
            world.clock.advance(2000)
            assert world.leases.acquire(SPACE, "formation", f"other {number}", 1000)

    Leases(FailingTable(world.table, before_transact=interfere), world.clock).raise_epochs(SPACE)

    assert world.spaces.head(SPACE).epoch("formation") == 3
    assert world.spaces.head(SPACE).epoch("learning") == 1


def test_raising_epochs_gives_up_by_name() -> None:
    """When they never stop moving, the caller is told to try again."""
    world = World()
    world.create()

    def interfere(_: object) -> None:
        world.clock.advance(2000)
        world.leases.acquire(SPACE, "formation", f"other {world.clock.time}", 1000)

    leases = Leases(FailingTable(world.table, before_transact=interfere), world.clock)

    with pytest.raises(NoemaError) as failure:
        leases.raise_epochs(SPACE)

    assert failure.value.code == "ServiceUnavailable"


def test_a_refusal_that_is_ones_own_effect() -> None:
    """A write that lands late, and refuses its own repetition, is still one's own."""
    world = World()
    world.create()
    held: list[object] = []

    class Late(FailingTable):
        def transact(self, writes: object) -> None:
            if not held:
                held.append(writes)
                raise Unavailable("no answer yet")
            if len(held) == 1:
                held.append(writes)
                self.table.transact(held[0])
            super().transact(writes)

    fence = Leases(Late(world.table), world.clock).acquire(SPACE, "formation", "mine", 60_000)

    assert fence is not None
    assert world.spaces.head(SPACE).epoch("formation") == fence.epoch == 1
