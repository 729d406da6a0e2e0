"""`noema doctor --space` and `noema space trim-history`, over a service."""

from typing import Any

import pytest
from click.testing import CliRunner

from core.ports import Put
from core.storage.layout import delta_sk, space_pk
from functions.cli import doctor as checks
from functions.cli import space as spaces
from tests.functions.cli.service import reach
from tests.functions.world import World

DAY = 24 * 3600 * 1000


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A service that the commands' client reaches without a socket, as a manager."""
    made = World().make_space()
    for n in range(4):
        made.ask("POST", "/v1/demo/facts", {"agent_id": "ann", "text": f"Fact {n}."}, token=made.token())
    # the wall clock and the world's are the same for the command
    monkeypatch.setattr(checks, "now_s", lambda: made.clock.time // 1000)
    reach(made, monkeypatch, made.admin_token, checks)
    return made


def found(space: str = "demo") -> dict[str, str]:
    return {each.check: each.verdict for each in checks._space(space, "http://x", None)}


def test_a_healthy_space_is_found_healthy(world: World) -> None:
    """Its log fits and its upkeep is not behind."""
    assert found() == {"log": "ok", "upkeep": "ok"}


def test_a_log_that_was_tampered_with_fails(world: World) -> None:
    """The commit is named, and the remedy."""
    row = world.table.get(space_pk("demo"), delta_sk(3))
    assert row is not None
    world.table.transact([Put(space_pk("demo"), delta_sk(3), {**row, "body": b"other"})])

    finding = next(each for each in checks._space("demo", "http://x", None) if each.check == "log")

    assert finding.verdict == "fail"
    assert "commit 3" in finding.saw
    assert finding.do


def test_work_that_nobody_does_is_told(world: World) -> None:
    """Facts that are due for hours, and a log that is due for hours: is the worker running?"""
    for n in range(300):
        world.services.facts.remember(
            _caller(), "demo", "ann", f"more {n}", deadline=world.clock.now() + 60_000
        )
    world.clock.advance(2 * DAY)
    assert found() == {"log": "ok", "upkeep": "warn", "facts": "warn"}


def _caller() -> Any:
    from core.service.values import Caller  # noqa: PLC0415

    return Caller("alice", "rest", "*")


def test_a_space_that_is_not_there_is_a_failure(world: World) -> None:
    """With the service's own words."""
    assert found("nope") == {"space": "fail"}


def test_history_is_trimmed_only_when_it_is_meant(world: World) -> None:
    """Without --yes nothing happens and the exit code is 1; with it the new beginning is told."""
    world.services.upkeep.compact("demo", "test")
    world.clock.advance(40 * DAY)

    def run(*more: str) -> Any:
        return CliRunner().invoke(spaces.space, ["trim-history", "demo", "--keep-days", "30", *more])

    asked = run()
    assert (asked.exit_code, "--yes" in asked.output) == (1, True)
    assert world.services.spaces.head("demo").floor == 1
    done = run("--yes")
    assert done.exit_code == 0, done.output
    assert f"begins at version {world.services.spaces.head('demo').floor}" in done.output
    assert world.services.spaces.head("demo").floor > 1
