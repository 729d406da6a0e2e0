"""Formation with a model through the front door: submitted over HTTP, worked from the queue, read back."""

from typing import Any

import msgspec
import pytest

from core.models.chat import ModelFault
from functions.adapters import Adapters
from functions.bootstrap import SettingsError, build
from functions.worker import work
from tests.doubles import FixedModels, ScriptedModel, says
from tests.functions.test_worker import Context, batch, hint
from tests.functions.world import World
from tests.mind import kip, lives_in


def forming(model: ScriptedModel) -> World:
    """A service whose spaces have a model, with one space."""
    world = World()
    world.services = build(
        world.services.settings,
        Adapters(
            world.table, world.objects, world.queue, world.clock, world.entropy, models=FixedModels(model)
        ),
    )
    world.make_space()
    return world


def submit(world: World, text: str) -> int:
    """Submit one message of Alice's."""
    body = {"messages": [{"role": "user", "name": "Alice", "content": text}]}
    return world.ask("POST", "/v1/demo/formation", body, token=world.token()).result["conversation"]


def read(world: World, number: int) -> Any:
    """A conversation as a caller sees it."""
    return world.ask("GET", f"/v1/demo/conversations/{number}", token=world.token()).result


def test_a_submission_is_formed_by_the_spaces_model():
    """The worker lets the model form it; the record names the model, the prompt and the tokens."""
    world = forming(ScriptedModel([kip(lives_in("Berlin")), says("Alice lives in Berlin.")]))
    number = submit(world, "I live in Berlin.")
    assert work(batch(hint("demo")), Context(600_000), world.services) == {"batchItemFailures": []}

    found = read(world, number)
    assert found["status"] == "completed"
    assert found["extra"]["model"] == "scripted-1"
    assert found["usage"] == {"input_tokens": 20, "output_tokens": 10, "cached_tokens": 0, "requests": 2}
    rows = world.ask(
        "POST",
        "/v1/demo/execute_kip_readonly",
        {"kip": "2.0", "operations": [{"command": 'FIND(?o.name) WHERE { ?p (?s, "lives_in", ?o) }'}]},
        token=world.token(),
    ).json
    assert "Berlin" in str(rows)


def test_a_passing_fault_is_seen_and_tried_again():
    """A model that is down leaves the conversation waiting, visibly; the next round forms it."""
    world = forming(
        ScriptedModel([ModelFault("unavailable", "down"), kip(lives_in("Berlin")), says("Done.")])
    )
    number = submit(world, "I live in Berlin.")
    work(batch(hint("demo")), Context(600_000), world.services)
    assert (read(world, number)["status"], read(world, number)["failed_reason"]) == (
        "failed",
        "model_fault: unavailable",
    )
    world.clock.advance(120_000)
    work(batch(hint("demo")), Context(600_000), world.services)
    assert read(world, number)["status"] == "completed"


def test_a_section_that_is_a_file_must_be_there():
    """A deployment whose section of the prompt cannot be read is told which variable is wrong."""
    world = forming(ScriptedModel())
    settings = msgspec.structs.replace(world.services.settings, formation_section="@/no/such/file")
    broken = build(settings, Adapters(world.table, world.objects, world.queue, world.clock, world.entropy))
    with pytest.raises(SettingsError, match="NOEMA_FORMATION_SECTION"):
        assert broken.formation_mind
