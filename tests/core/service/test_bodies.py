"""Bodies of conversations: collected only where no row refers to them, and never under a submission on its way."""

from contextlib import suppress

import pytest

from core.errors import NoemaError
from core.ports import Objects
from core.service.bodies import collect_bodies
from core.service.conversations import INLINE_BYTES
from core.service.upkeep import HOUR
from core.storage.layout import body_place
from tests.doubles import Crash, FailingObjects, FailingTable, Faults
from tests.services import World

LONG = "long " * INLINE_BYTES


def keys(world: World) -> list[str]:
    """The bodies that are there."""
    return [key for key, _, _ in world.objects.list("home/c/")]


@pytest.fixture
def world() -> World:
    """A space with a short conversation and a long one."""
    world = World()
    world.create()
    world.say("home", "short")
    world.say("home", LONG)
    return world


def die_before_the_row(world: World) -> str:
    """A submission that uploads its body and gets no further; the body's key."""
    before = set(keys(world))
    dying = World(FailingTable(world.table, Faults([0], error=Crash)), world.objects, world.clock, seed=7)
    with pytest.raises(Crash):
        dying.say("home", LONG)
    (key,) = set(keys(world)) - before
    return key


def test_a_body_whose_row_never_came_goes_after_an_hour(world: World) -> None:
    """The orphan is removed once it is old enough, and what is referred to stays and is read."""
    key = die_before_the_row(world)
    world.say("home", LONG + "again")

    assert collect_bodies(world.spaces, "home") == ()
    world.clock.advance(HOUR + 2000)
    assert collect_bodies(world.spaces, "home") == (key,)
    assert len(keys(world)) == 2
    for number in (2, 3):
        assert world.conversations.get("home", "formation", number).messages
    assert collect_bodies(world.spaces, "home") == ()


def test_a_row_far_behind_its_body_is_found(world: World) -> None:
    """Other submissions that came in between do not make a body look forgotten."""

    class Slow(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            for number in range(30):
                world.say("home", f"meanwhile {number}")

    slow = World(world.table, Slow(world.objects), world.clock, seed=8)
    number = slow.say("home", LONG + "late")
    world.clock.advance(HOUR + 2000)

    assert number == 33
    assert body_place("home", keys(world)[-1]) == ("formation", 3)
    assert collect_bodies(world.spaces, "home") == ()
    assert len(keys(world)) == 2


def test_a_submission_that_slept_uploads_again(world: World) -> None:
    """A body collected between its upload and its row does not leave a row that refers to nothing."""
    collected: list[tuple[str, ...]] = []

    class Sleepy(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if not collected:
                world.clock.advance(2 * HOUR)
                collected.append(collect_bodies(world.spaces, "home"))

    sleepy = World(world.table, Sleepy(world.objects), world.clock, seed=8)
    number = sleepy.say("home", LONG + "slept")

    assert [len(found) for found in collected] == [1]
    assert "slept" in str(world.conversations.get("home", "formation", number).messages[0])


def test_nothing_is_collected_where_no_sweep_can_be_announced() -> None:
    """Before the first conversation of a space there is no counter, so its body is left alone; and so is what is not ours."""
    world = World()
    world.create()
    world.objects.put("home/c/by-hand", b"x")
    dying = World(FailingTable(world.table, Faults([0], error=Crash)), world.objects, world.clock, seed=7)
    with pytest.raises(Crash):
        dying.say("home", LONG)
    world.clock.advance(2 * HOUR)

    assert collect_bodies(world.spaces, "home") == ()
    world.say("home", "first")
    assert len(collect_bodies(world.spaces, "home")) == 1
    assert keys(world) == ["home/c/by-hand"]


@pytest.mark.parametrize("after", [False, True])
def test_a_fault_at_any_step_is_made_good_by_the_next_run(after: bool) -> None:
    """Wherever a run stops, the next one removes the orphan and nothing else."""
    for step in range(8):
        world = World()
        world.create()
        world.say("home", LONG)
        key = die_before_the_row(world)
        world.clock.advance(HOUR + 2000)
        faults = Faults([step], after=after, error=Crash, reads=True)
        objects: Objects = FailingObjects(world.objects, faults)
        failing = World(FailingTable(world.table, faults), objects, world.clock, seed=9)
        with suppress(Crash, NoemaError):
            collect_bodies(failing.spaces, "home")
        collect_bodies(world.spaces, "home")

        assert key not in keys(world)
        assert world.conversations.get("home", "formation", 1).messages
