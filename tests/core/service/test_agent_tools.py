"""The tools of agents, carried out over a real space: reading, writing once, vocabulary, notes."""

import json
from typing import Any

import pytest

from core.agents.tools.cognition import Rules
from core.agents.tools.terms import Captured
from core.authority import Principal
from core.errors import NoemaError
from core.governance.commands import decode_command
from core.models.chat import ToolCall
from core.service.agent_tools import MAX_RESULT, Toolbox, Writing
from core.service.formation_authority import RIGHTS
from core.service.governance import GovernanceService
from core.service.notes import MAX_NOTE, MAX_NOTES
from core.service.values import Fence
from core.state.space import SpaceState
from tests.mind import Thinking
from tests.services import MINUTE


@pytest.fixture
def world() -> Thinking:
    """A space in which Alice has said where she lives."""
    world = Thinking(None)
    world.create()
    world.say("home", "I live in Berlin.")
    world.drain()
    return world


def ask(box: Toolbox, name: str, **arguments: Any) -> Any:
    """A call's result, decoded."""
    return json.loads(box.use(ToolCall("c1", name, arguments)).content)


def reading(world: Thinking, **options: Any) -> Toolbox:
    """The tools of an agent that only reads."""
    return Toolbox(
        world.kip, "home", Principal("alice"), clock=world.clock, until=world.clock.time + MINUTE, **options
    )


def writing(world: Thinking) -> Toolbox:
    """The tools of an agent that writes, under a lease."""
    fence = world.leases.acquire("home", "formation", "me", 10 * MINUTE)
    assert fence is not None
    state: SpaceState = world.spaces.load("home")
    [alice] = [one for one in state.ids("concept") if getattr(state.get(one), "name", "") == "Alice"]
    [heard] = state.ids("evidence")
    rules = Rules((Captured(heard, alice, 1_777_000_000_000),), alice, 1_777_000_000_000, "seal")
    given: Fence = fence
    return reading(world, writing=Writing(lambda: given, rules, "s", world.commits, world.notes))


def test_a_reader_reads(world: Thinking):
    """FIND, SEARCH and DESCRIBE answer; parameters and what the host binds may be used."""
    box = reading(world, parameters={"who": "name:alice"})
    command = 'FIND(?o.name) WHERE { ?p {type: "Person", key: :who} ?x (?p, "lives_in", ?o) FILTER(?o.name == :town) }'
    told = ask(
        box, "execute_kip_readonly", commands=[command, "LIST TYPES LIMIT 2"], parameters={"town": "Berlin"}
    )
    assert told["status"] == "succeeded"
    assert "Berlin" in str(told["results"][0]["result"])
    assert len(told["results"]) == 2


@pytest.mark.parametrize(
    "command",
    ['ENSURE PROPOSITION ({id: "C-1"}, "timezone", "UTC")', 'PURGE "C-1" CONFIRM "PURGE"', 'ARCHIVE "C-1"'],
)
def test_a_reader_cannot_write(world: Thinking, command: str):
    """What changes memory is refused by what it parses to, and no writing tool is there."""
    before = world.spaces.head("home").ver
    told = ask(reading(world), "execute_kip_readonly", commands=[command])
    assert (told["status"], told["results"][0]["error"]["code"]) == ("failed", "ReadonlyViolation")
    for name in ("execute_kip", "declare_memory_symbols", "notes"):
        with pytest.raises(NoemaError) as caught:
            ask(reading(world), name, commands=["LIST TYPES"])
        assert caught.value.code == "NotAuthorized"
    assert world.spaces.head("home").ver == before


def test_a_failing_command_stops_the_rest(world: Thinking):
    """The first error is told with its hint; how many were not run is told too."""
    told = ask(
        reading(world), "execute_kip_readonly", commands=["LIST TYPES LIMIT 1", "NONSENSE", "LIST TYPES"]
    )
    assert [one["status"] for one in told["results"]] == ["succeeded", "failed"]
    assert told["not_run"] == 1
    assert told["results"][1]["error"]["code"]


def test_a_bound_parameter_cannot_be_given(world: Thinking):
    """A reader's host values are as safe as a writer's."""
    with pytest.raises(NoemaError, match=":who is bound already"):
        ask(
            reading(world, parameters={"who": "x"}),
            "execute_kip_readonly",
            commands=["LIST TYPES"],
            parameters={"who": 1},
        )


def test_a_large_result_fits(world: Thinking):
    """A result that is too long is shortened and says so."""
    world.say("home", *[f"{n} {'x' * 3000}" for n in range(60)], at="2026-05-02T10:00:00Z")
    world.drain()
    result = reading(world).use(
        ToolCall("c1", "execute_kip_readonly", {"commands": ["FIND(?e) WHERE { ?e EVIDENCE {} }"]})
    )
    assert len(result.content) <= MAX_RESULT
    assert "more" in result.content


def test_the_same_command_commits_once(world: Thinking):
    """Sent again by another worker of the same run it finds its commit there."""
    command = 'ASSERT (:who1, "timezone", "UTC+1") {by: :who1, mode: "stated", evidence: :msg1}'
    box = writing(world)
    first = ask(box, "execute_kip", commands=[command])
    ver = world.spaces.head("home").ver
    assert first["status"] == "succeeded"
    assert box.commits == 1
    again = ask(box, "execute_kip", commands=[command])
    assert again["results"][0]["status"] == "no_effect"
    assert again["results"][0]["on_record"] == [first["results"][0]["result"]["assertion"]]
    place = 'UPSERT CONCEPT ?p { MATCH {type: "Place", key: "rome"} SET FIELDS {name: "Rome"} }'
    one, two = ask(box, "execute_kip", commands=[place]), ask(box, "execute_kip", commands=[place])
    assert one["results"][0]["result"] == two["results"][0]["result"]
    assert world.spaces.head("home").ver == ver + 1


def test_vocabulary_is_declared_and_used(world: Thinking):
    """A declared type can be written at once; a repeated declaration publishes nothing."""
    box = writing(world)
    told = ask(box, "declare_memory_symbols", types=[{"name": "Recipe"}, {"name": "bad one"}])
    assert (told["declared"], [one["name"] for one in told["rejected"]]) == (["Recipe"], ["bad one"])
    ver = world.spaces.head("home").ver
    assert ask(box, "declare_memory_symbols", types=[{"name": "Recipe"}])["known"] == ["Recipe"]
    assert world.spaces.head("home").ver == ver
    made = ask(box, "execute_kip", commands=['CREATE CONCEPT ?r { TYPE "Recipe" NAME "Soup" }'])
    assert made["status"] == "succeeded"
    assert "Recipe" in box.use(ToolCall("c1", "kip_reference", {"topic": "schema"})).content


def test_a_run_declares_only_what_its_submitter_may(world: Thinking):
    """In a governed space vocabulary takes the right to change the schema: an owner has it, a writer by grant has not."""
    governance = GovernanceService(world.spaces, world.commits, world.clock)
    until = world.clock.time + MINUTE
    rule = {
        "id": "w",
        "effect": "allow",
        "subjects": ["principal:bob"],
        "permissions": ["create", "read", "search"],
    }
    for command in (
        {"command": "put_rule", "rule": rule},
        {"command": "set_policy", "policy": {"default": "deny"}},
    ):
        governance.execute("home", decode_command(command), Principal("alice"), deadline=until, operator=True)
    box = writing(world)
    ver = world.spaces.head("home").ver

    box._principal = Principal("bob", "formation", RIGHTS)
    with pytest.raises(NoemaError) as refused:
        ask(box, "declare_memory_symbols", types=[{"name": "Recipe"}])

    assert (refused.value.code, world.spaces.head("home").ver) == ("NotAuthorized", ver)
    box._principal = Principal("alice", "formation", RIGHTS)
    assert ask(box, "declare_memory_symbols", types=[{"name": "Recipe"}])["declared"] == ["Recipe"]


def test_the_reference_has_its_topics(world: Thinking):
    """A section is plain text; another topic is refused with those there are."""
    assert "SUPERSEDING" in reading(world).use(ToolCall("c1", "kip_reference", {"topic": "changes"})).content
    with pytest.raises(NoemaError, match="elements"):
        reading(world).use(ToolCall("c1", "kip_reference", {"topic": "secrets"}))


def test_notes_are_kept_listed_and_removed(world: Thinking):
    """A note is read back, listed by how it begins, and gone when written empty."""
    box = writing(world)
    assert ask(box, "notes", action="list") == {"notes": []}
    ask(box, "notes", action="write", id="style", text="Keys are lower case.")
    assert ask(box, "notes", action="read", id="style")["text"] == "Keys are lower case."
    assert ask(box, "notes", action="list")["notes"][0]["begins"] == "Keys are lower case."
    ask(box, "notes", action="write", id="style", text=" ")
    with pytest.raises(NoemaError, match="no note"):
        ask(box, "notes", action="read", id="style")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"action": "write", "id": "Bad Id", "text": "x"}, "InvalidInput"),
        ({"action": "write", "id": "a", "text": "x" * (MAX_NOTE + 1)}, "ResourceExhausted"),
        ({"action": "erase"}, "InvalidInput"),
    ],
)
def test_bad_notes_are_refused(world: Thinking, arguments: dict[str, Any], code: str):
    """An id, a length or an action that is wrong is named."""
    with pytest.raises(NoemaError) as caught:
        ask(writing(world), "notes", **arguments)
    assert caught.value.code == code


def test_notes_are_few_and_small(world: Thinking):
    """Their number and their size together are bounded, and so is their list."""
    box = writing(world)
    for n in range(MAX_NOTES):
        ask(box, "notes", action="write", id=f"n{n}", text="x" * 100)
    with pytest.raises(NoemaError) as caught:
        ask(box, "notes", action="write", id="one-more", text="x")
    assert caught.value.code == "ResourceExhausted"
    assert len(json.dumps(world.notes.index("home"))) <= 9 * 1024


def test_an_erasure_removes_all_notes(world: Thinking):
    """A note is an agent's own words about anything, so none outlasts an erasure."""
    ask(writing(world), "notes", action="write", id="a", text="Alice lives in Berlin.")
    [heard] = world.spaces.load("home").ids("evidence")
    world.erasures.erase("home", [heard], "alice", owner="me")
    assert world.notes.index("home") == []


def test_a_claim_in_the_long_form_is_dated_too(world: Thinking):
    """CREATE ASSERTION keeps the rules of ASSERT; the engine takes it with the message's time."""
    command = (
        'MUTATE { ENSURE PROPOSITION ?p (:who1, "timezone", "UTC+1") CREATE ASSERTION ?a { '
        'SET FIELDS {proposition: ?p, asserted_by: :who1, stance: "support", mode: "stated", asserted_at: "1999-01-01T00:00:00Z"} '
        'SET STRUCTURAL { ("evidence", :msg1) {role: "support"} } } }'
    )
    told = ask(writing(world), "execute_kip", commands=[command])
    made = world.spaces.load("home").get(told["results"][0]["result"]["handles"]["a"]["id"])
    assert getattr(made, "asserted_at", None) == 1_777_000_000_000


def test_two_notes_at_once_do_not_lose_one(world: Thinking, monkeypatch: pytest.MonkeyPatch):
    """A note that another run wrote meanwhile is not written over: the call says that they changed."""
    box, load = writing(world), world.notes._load

    def stale(space: str) -> Any:
        found = load(space)
        monkeypatch.undo()
        ask(box, "notes", action="write", id="theirs", text="x")
        return found

    monkeypatch.setattr(world.notes, "_load", stale)
    with pytest.raises(NoemaError, match="changed meanwhile"):
        ask(box, "notes", action="write", id="mine", text="y")
    assert [note["id"] for note in world.notes.index("home")] == ["theirs"]


def test_the_next_page_of_a_result_can_be_asked_for(world: Thinking):
    """A cursor and the caveats of a result are told."""
    told = ask(reading(world), "execute_kip_readonly", commands=["LIST TYPES LIMIT 1"])
    cursor = told["results"][0]["next_cursor"]
    more = ask(
        reading(world),
        "execute_kip_readonly",
        commands=["LIST TYPES LIMIT 1 CURSOR :c"],
        parameters={"c": cursor},
    )
    assert more["status"] == "succeeded"
    assert more["results"][0]["result"] != told["results"][0]["result"]
