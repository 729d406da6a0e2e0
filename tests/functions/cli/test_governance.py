"""`noema governance`, over a service."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from functions.cli import governance as commands
from tests.functions.cli.service import reach
from tests.functions.world import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A service that the commands' client reaches without a socket, as the space's owner."""
    made = World().make_space()
    reach(made, monkeypatch, made.token, commands)
    return made


def run(*words: str) -> Any:
    """What a command prints for a program."""
    done = CliRunner().invoke(commands.governance, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads("".join(line for line in done.output.splitlines() if '"level":' not in line))


def test_records_are_made_listed_and_explained(world: World) -> None:
    """A command is sent, its record listed, a decision asked for, and all of it stands in the audit."""
    rule = {"id": "r", "effect": "allow", "subjects": ["principal:bob"], "permissions": ["role:reader"]}
    made = run("send", "demo", json.dumps({"command": "put_rule", "rule": rule}), "--if-match", "0")

    assert made["version"] == 1
    assert run("show", "demo")["counts"]["rules"] == 1
    assert [each["id"] for each in run("list", "demo", "rules")] == ["r"]
    assert run("may", "demo", "bob", "read")["decision"] == "allow"
    assert [each["operation"] for each in run("audit", "demo", "--control-only")] == ["put_rule"]
    assert run("audit", "demo", "--refusals") == []


def test_what_is_wrong_is_told(world: World) -> None:
    """A command that is no JSON, and one at an old version, end with a failure that says so."""
    bad = CliRunner().invoke(commands.governance, ["send", "demo", "{"])
    stale = CliRunner().invoke(
        commands.governance, ["send", "demo", '{"command": "set_owners", "owners": ["x"]}', "--if-match", "7"]
    )

    assert (bad.exit_code, stale.exit_code) == (1, 1)
    assert "not JSON" in bad.output
    assert "version 0" in stale.output
