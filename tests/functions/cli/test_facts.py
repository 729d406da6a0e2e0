"""`noema facts`: files out and in, over a service."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from functions.cli import facts as command
from tests.functions.cli.service import reach
from tests.functions.world import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A service that the command's client reaches without a socket."""
    made = World().make_space()
    reach(made, monkeypatch, made.token)
    return made


def run(*args: str) -> Any:
    return CliRunner().invoke(command.facts, [*args, "--space", "demo"], env={"NOEMA_URL": None})


def test_files_go_in_and_come_out(world: World, tmp_path: Path) -> None:
    """An mcp-memory file is imported, told what was passed over, and written out in each format."""
    source = tmp_path / "memory.jsonl"
    lines = [
        {"type": "entity", "name": "Acme", "entityType": "company", "observations": ["founded in 1990"]},
        {"type": "relation", "from": "Acme", "to": "Bob", "relationType": "employs"},
        {"type": "what?"},
    ]
    source.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    done = run("import", str(source), "--format", "mcp-memory", "--agent", "ann")
    assert done.exit_code == 0, done.output
    assert "Added 2 facts" in done.output
    assert "neither an entity nor a relation" in done.output
    for form, name in (("json", "memories.json"), ("markdown", "ann.md"), ("obsidian", "_index.md")):
        out = tmp_path / form
        assert run("export", str(out), "--format", form).exit_code == 0
        assert (out / name).read_text("utf-8")


def test_a_file_that_is_no_text_is_refused(world: World, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are told as such."""
    source = tmp_path / "x.json"
    source.write_bytes(b"\xff\xfe")
    done = run("import", str(source))
    assert done.exit_code == 1
    assert "UTF-8" in done.output


def test_facts_are_kept_recalled_listed_and_consolidated(world: World) -> None:
    """Each command says what became of it, in words and as JSON."""
    kept = run("remember", "ann", "Deploys run on Friday.", "--confidence", "verified")
    assert kept.exit_code == 0, kept.output
    assert "Deploys run on Friday." in run("recall", "ann", "deploy").output
    explained = run("recall", "ann", "deploy", "--explain")
    assert "0/0/1" in explained.output
    again = run("remember", "ann", "Deploys run on Friday.")
    assert again.output.split()[0] == kept.output.split()[0]
    listed = json.loads(run("list", "ann", "--json").output)
    assert [each["confidence"] for each in listed] == ["verified"]
    assert "0 erased" in run("consolidate", "ann").output
    assert run("recall", "bob", "deploy").output == "Nothing is kept there.\n"
    assert run("remember", "ann", "x", "--confidence", "sure").exit_code == 2
