"""What an operator asks of a space: its upkeep, its log, and less history."""

import pytest

from core.ports import Put
from core.storage.layout import delta_sk, space_pk
from tests.functions.world import World

DAY = 24 * 3600 * 1000


@pytest.fixture
def world() -> World:
    """A space with a few commits."""
    made = World().make_space()
    for n in range(5):
        body = {"agent_id": "ann", "text": f"Fact {n}."}
        assert made.ask("POST", "/v1/demo/facts", body, token=made.token()).status == 200
        made.clock.advance(1000)
    return made


def upkeep(world: World, query: str = "verify=true") -> dict:
    return world.ask("GET", "/admin/demo/upkeep", token=world.admin_token(), query=query).result


def test_a_sound_log_is_said_to_be_sound(world: World) -> None:
    """Every version from the first to the last fits; without verify nobody looks."""
    seen = upkeep(world)
    assert seen["chain"] == {"intact": True, "first": seen["floor"], "last": seen["version"], "redacted": 0}
    assert seen["log_commits"] == seen["version"] - seen["base"]
    assert seen["facts_due_at"] > world.clock.time
    assert "chain" not in upkeep(world, "")


def test_a_commit_that_was_tampered_with_is_named(world: World) -> None:
    """A changed byte in the middle of the log breaks the chain at that version."""
    middle = upkeep(world)["version"] - 2
    row = world.table.get(space_pk("demo"), delta_sk(middle))
    assert row is not None
    body = row["body"]
    assert isinstance(body, bytes)
    world.table.transact([Put(space_pk("demo"), delta_sk(middle), {**row, "body": body[:-1] + b"\0"})])

    chain = upkeep(world)["chain"]

    assert (chain["intact"], chain["broken"]) == (False, middle)


def test_history_is_given_up_and_the_present_stays(world: World) -> None:
    """What is older than the days goes as far as a snapshot allows; the facts are all there, and the log still fits."""
    world.services.upkeep.compact("demo", "test")
    world.clock.advance(40 * DAY)
    before = upkeep(world)

    done = world.ask("POST", "/admin/demo/trim_history", {"keep_days": 30}, token=world.admin_token()).result

    assert done["floor"] == before["base"] > before["floor"]
    assert done["deltas"] == before["base"] - before["floor"]
    after = upkeep(world)
    assert (after["floor"], after["chain"]["intact"]) == (done["floor"], True)
    listed = world.ask("GET", "/v1/demo/facts", token=world.token(), query="agent_id=ann").result
    assert len(listed) == 5


@pytest.mark.parametrize(
    "body", [{}, {"keep_days": 0}, {"keep_days": -1}, {"keep_days": "all"}, {"keep_days": 3, "x": 1}]
)
def test_days_that_make_no_sense_are_refused(world: World, body: dict) -> None:
    """At least one day stays, and nothing else may be said."""
    before = upkeep(world)
    assert world.ask("POST", "/admin/demo/trim_history", body, token=world.admin_token()).status == 400
    assert upkeep(world) == before


@pytest.mark.parametrize(
    ("method", "path", "body"), [("GET", "upkeep", None), ("POST", "trim_history", {"keep_days": 9})]
)
def test_only_managers_may(world: World, method: str, path: str, body: dict | None) -> None:
    """The space's owner is refused, and a space that is not there is not found."""
    assert world.ask(method, f"/admin/demo/{path}", body, token=world.token()).status in (401, 403)
    assert world.ask(method, f"/admin/none/{path}", body, token=world.admin_token()).status == 404
