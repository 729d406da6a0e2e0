"""`noema migrate`: a file of a KIP 1.x graph, over a service."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from functions.cli import migrate as command
from functions.cli.terminal import Failure
from tests.functions.cli.service import reach
from tests.functions.world import World

GRAPH = [
    {"subject": "l1", "predicate": "said_by", "object": "Person:Alice"},
    {"id": "l1", "subject": "Person:Alice", "predicate": "lives_in_city", "object": "City:Berlin",
     "metadata": {"confidence": 0.9, "source": "message-12", "author": "Alice"}},
    {"type": "Person", "name": "Alice"},
    {"type": "City", "name": "Berlin", "metadata": {"access_level": "team"}},
]  # fmt: skip


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A service that the command's client reaches without a socket."""
    made = World().make_space()
    reach(made, monkeypatch, made.token)
    return made


def run(file: Path, *args: str) -> Any:
    return CliRunner().invoke(
        command.migrate, [str(file), "--space", "demo", "--source", "old", *args], env={"NOEMA_URL": None}
    )


def facts(world: World) -> list[Any]:
    """What the space believes Alice's city to be."""
    body = {
        "kip": "2.0",
        "operations": [
            {
                "command": 'FIND(?b.status) WHERE {?s CONCEPT {name: "Alice"} ?o CONCEPT {name: "Berlin"} '
                '?b BELIEF (?s, "lives_in_city", ?o)}'
            }
        ],
    }
    answer = world.ask("POST", "/v1/demo/execute_kip_readonly", body, token=world.token()).json
    return list(answer["results"][0].get("result") or ())


@pytest.mark.parametrize("page", [2, 500])
def test_a_graph_goes_in_page_by_page(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Links before their ends in the file, links about links, several pages: all is there, and once."""
    monkeypatch.setattr(command, "PAGE", page)
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(GRAPH), "utf-8")
    done = run(file, "--access", "team=internal", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["mapping"]["assertions"] == 2
    assert report["unresolved"] == []
    assert "1 elements are classified internal" in report["governance_changes"]
    again = run(file, "--access", "team=internal")
    assert "Written: nothing; 4 were there already." in again.output
    assert facts(world) == ["accepted"]


def test_a_dry_run_writes_nothing(world: World, tmp_path: Path) -> None:
    """A dry run reports what a real one does, and the space stays as it is."""
    file = tmp_path / "graph.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in GRAPH), "utf-8")
    done = run(file, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "Would write: 2 concepts, 2 propositions, 2 assertions, 1 evidence" in done.output
    assert "legacy_access_level_ambiguous" in done.output
    assert run(file).exit_code == 0
    assert "0 were there already" in done.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"type": "Person"}', "record 1 is neither"),
        ("{broken", "line 1 cannot be read"),
        ("[]", "holds no records"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(text: str, told: str) -> None:
    """The place of the mistake is told."""
    with pytest.raises(Failure, match=told):
        command.read(text, "graph.json")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"source": "Old Graph"}, "InvalidInput"),
        ({"source": ""}, "InvalidInput"),
        ({"source": "old", "concepts": [{"type": " ", "name": "x"}]}, "InvalidInput"),
        ({"source": "old", "concepts": [{"name": "x"}]}, "InvalidInput"),
        (
            {"source": "old", "propositions": [{"subject": "a", "predicate": "", "object": "b"}]},
            "InvalidInput",
        ),
        (
            {"source": "old", "concepts": [{"type": "T", "name": str(n)} for n in range(1001)]},
            "PayloadTooLarge",
        ),
        ({"source": "old", "confidence": "maybe"}, "InvalidInput"),
        ({"source": "old", "surprise": 1}, "InvalidInput"),
    ],
)
def test_a_page_that_is_none_is_refused_by_name(world: World, body: dict[str, Any], code: str) -> None:
    """Every malformed page has a typed error, and nothing is written."""
    answer = world.ask("POST", "/v1/demo/management/migrate", body, token=world.token())
    assert 400 <= answer.status < 500
    assert answer.code == code


@pytest.mark.parametrize(
    "record",
    [
        {"type": "Person", "name": "A" * 5000},
        {"type": "Weird type!/\u0000", "name": "\ud83d\ude00", "attributes": {"x": [None, {"y": 1e308}]}},
        {"type": "Insight", "name": "no summary"},
        {"type": "SleepTask", "name": "task", "attributes": {"task_class": "unheard of"}},
        {
            "type": "Person",
            "name": "B",
            "metadata": {"confidence": "high", "valid_from": "yesterday", "_version": 3},
        },
        {"type": "$ConceptType", "name": "Drug", "attributes": {"instance_schema": {}}},
    ],
)
def test_odd_records_are_kept_and_never_guessed_at(world: World, record: dict[str, Any]) -> None:
    """Whatever a record holds, the page is taken, and what does not fit is in the legacy facet or the report."""
    body = {"source": "old", "concepts": [record]}
    answer = world.ask("POST", "/v1/demo/management/migrate", body, token=world.token())
    assert answer.status == 200, answer.body
    mapping = answer.result["mapping"]
    assert mapping["concepts"] + mapping["schema_nodes"] == 1


def test_a_reader_may_not_migrate(world: World) -> None:
    """Migration is the owner's."""
    answer = world.ask(
        "POST", "/v1/demo/management/migrate", {"source": "old"}, token=world.token(scope="read")
    )
    assert answer.status in {401, 403}
