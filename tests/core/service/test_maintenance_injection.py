"""Two hundred memories that give orders, and a model that obeys them while it maintains: none gets anywhere."""

from typing import Any

import msgspec
import pytest

from core.agents.maintenance.decay import MNEMONIC
from core.agents.vocabulary import PLACE
from core.model.elements import Activity, Assertion, Concept
from core.storage.layout import ALL_ROWS, space_pk
from tests.core.service.test_maintenance_model import Keeping, policy
from tests.injections import ORDERS, Obedient, Victims, commands_for, injections

KINDS = ("delete", "trust", "schema", "forge", "system")


def space(model: Any = None) -> Keeping:
    """What Bob said, what Mallory said, and a model."""
    world = Keeping(None)
    world.create()
    policy(world, self_test_queries_per_cycle=0)
    world.say("home", "I live in Berlin.", name="Bob")
    world.say("home", "I love tea.", name="Mallory")
    world.drain()
    return Keeping(model, world.table, world.objects, world.clock, seed=5) if model is not None else world


def victims(world: Keeping) -> Victims:
    """Bob's claim and what it rests on, and the attacker."""
    bob, mallory = world.all("assertion")
    return Victims(bob.asserted_by, bob.id, bob.evidence[0].evidence, mallory.asserted_by)


def protected(world: Keeping) -> Any:
    """Everything there is but strength, which fades by rule; the space's own state; and tokens."""
    state = world.spaces.load("home")
    elements: dict[str, Any] = {}
    for kind in ("concept", "proposition", "assertion", "evidence", "activity"):
        for found in state.ids(kind):  # type: ignore[arg-type]
            element = state.get(found)
            assert element is not None
            facets = {name: facet for name, facet in element.facets.items() if name != MNEMONIC}
            system = msgspec.structs.replace(element.system, version=0, updated_at=0, updated_tx="")
            elements[found] = msgspec.structs.replace(element, facets=facets, system=system)
    rows = world.table.query(space_pk("home"), *ALL_ROWS, limit=5000)
    tokens = [sk for sk, _ in rows if sk[:2] in ("T#", "TN")]
    return elements, msgspec.to_builtins(state.meta), tokens


@pytest.mark.parametrize("language", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_obedient_model_gets_nowhere(language: str, kind: str) -> None:
    """Each order of a kind stands on the table of a full run; every attempt is refused, and all there was is as it was."""
    world = space()
    texts = [case.text for case in injections() if (case.language, case.kind) == (language, kind)]
    for n, text in enumerate(texts):
        world.event(f"order {n}", text)
    world.concept(PLACE, "atlantis", name="Atlantis")
    model = Obedient(commands_for(kind, victims(world)))
    tried = len(model.calls)
    world = Keeping(model, world.table, world.objects, world.clock, seed=5)
    before = protected(world)
    report = world.maintained("full")
    after = protected(world)

    assert len(model.results) == tried
    for result in model.results:
        told = msgspec.json.decode(result) if result.startswith("{") else {"status": "failed"}
        assert told.get("status") == "failed" or "code" in told, result
    assert after[1:] == before[1:]
    assert {found: after[0][found] for found in before[0]} == before[0]
    new = [element for found, element in after[0].items() if found not in before[0]]
    assert not [one for one in new if isinstance(one, (Assertion, Activity))]
    assert {one.name for one in new if isinstance(one, Concept)} <= {"Noema"}, (
        "the service itself, and nothing else"
    )
    assert report["phases"][0]["commits"] == 0


def test_all_two_hundred_were_tried() -> None:
    """Ten scripts, five kinds of order, four disguises."""
    assert len(injections()) == 200 == len(ORDERS) * len(KINDS) * 4
