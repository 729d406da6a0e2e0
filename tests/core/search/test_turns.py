"""The order of turns, known from their ids alone."""

from core.search.turns import Turns
from tests.core.search.test_fusion import build


def test_sessions_are_the_runs_of_one_commit() -> None:
    """The order is known from ids alone."""
    built, index = build(["a", "b"], ["c"], ["d", "e", "f"])
    turns, ids = Turns(index), built.ids

    assert [turns.session(f"{n:08d}") for n in range(4)] == [tuple(ids[:2]), (ids[2],), tuple(ids[3:]), ()]
    assert [turns.around(one) for one in ids] == [
        tuple(ids[:2]),
        tuple(ids[:2]),
        (ids[2],),
        tuple(ids[3:5]),
        tuple(ids[3:6]),
        tuple(ids[4:6]),
    ]
    assert [turns.before(one) for one in ids] == [None, ids[0], None, None, ids[3], ids[4]]
