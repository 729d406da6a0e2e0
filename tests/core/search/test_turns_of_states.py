"""The order of turns over real states: in layers, in segments, and in both at once."""

from core.model.ids import KINDS
from core.search.turns import Turns, is_among, session_of
from core.service.upkeep import Upkeep
from core.state.indexes import kind_key
from tests.services import World


def grown() -> World:
    """A space with ten conversations: six in segments, four in the log."""
    world = World()
    world.create()
    upkeep = Upkeep(world.spaces, world.leases, world.entropy)
    for number in range(10):
        texts = [f"I live in Town{number}.", "My dog is called Rex.", "And so on."][: 1 + number % 3]
        world.say("home", *texts, at=f"2026-05-{number + 1:02d}T10:00:00Z")
        world.drain()
        if number in (2, 5):
            assert upkeep.compact("home", f"run {number}") is not None
    return world


def test_a_session_is_what_one_commit_filed_wherever_it_is_stored() -> None:
    """Looked up one by one, the sessions are those of all turns in order."""
    world = grown()
    for state in (
        world.spaces.load("home"),
        World(world.table, world.objects, world.clock).spaces.load("home"),
    ):
        everything = list(state.ids("evidence"))
        sessions: dict[str, list[str]] = {}
        for element in everything:
            sessions.setdefault(session_of(element), []).append(element)
        turns = Turns(state)

        assert [len(ids) for ids in sessions.values()] == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]
        assert all(turns.session(commit) == tuple(ids) for commit, ids in sessions.items())
        assert turns.session("zzzzzzzz") == ()


def test_ids_after_any_id_are_the_rest() -> None:
    """After an id of its own kind, of another kind, of none, or the beginning of one, the ids that follow come."""
    state = grown().spaces.load("home")
    for kind in KINDS:
        everything = list(state.ids(kind))
        for other in KINDS:
            for after in [*state.ids(other), "E-", "E-00000003", "E-zzzzzzzz", "C-0000000500z"]:
                assert list(state.ids(kind, after)) == [one for one in everything if one[2:] > after[2:]]
        assert all(is_among(state.find(kind_key(kind)), one) for one in everything)
        assert not is_among(state.find(kind_key(kind)), "E-000000000000zzzz")
