"""What the Anda Brain contract says of remembered things: forgetting, pinning, people, probing, recalling, counting."""

from typing import Any

import msgspec
import pytest

from core.model.ids import Kind
from core.service.values import Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft
from tests.contract import anda_shapes as shapes
from tests.contract.anda_shapes import misfit
from tests.contract.anda_world import form
from tests.functions.world import Answer, World

HOUR_MS = 3600 * 1000
KINDS: dict[Kind, tuple[str, str]] = {  # the first letter of an id, and the count of the report
    "concept": ("C", "deleted_concepts"),
    "proposition": ("P", "deleted_propositions"),
    "assertion": ("A", "deleted_assertions"),
    "evidence": ("E", "deleted_evidence"),
    "activity": ("X", "deleted_activities"),
}


@pytest.fixture
def world() -> World:
    """Alice said that she lives in Lisbon, and it was formed."""
    made = World().make_space()
    said = "I live in Lisbon. I will call Bob tomorrow. I used to live in Paris."
    body = {
        "messages": [{"role": "user", "name": "Alice", "content": said}],
        "context": {"counterparty": "alice"},
    }
    assert made.ask("POST", "/v1/demo/formation", body, token=made.token()).status == 200
    form(made)
    return made


def ask(world: World, method: str, path: str, body: Any = None, **more: Any) -> Answer:
    return world.ask(method, f"/v1/demo/{path}", body, token=more.pop("token", world.token()), **more)


def ids(world: World, kind: Kind) -> list[str]:
    return sorted(world.services.spaces.load("demo").ids(kind))


def activity(world: World) -> str:
    """An activity, made by KIP: a conversation's facts need none."""
    command = 'CREATE ACTIVITY ?a {SET FIELDS {activity_class: "consolidation", status: "completed"}}'
    told = ask(world, "POST", "execute_kip", command).json
    if told["status"] != "succeeded":
        pytest.fail(str(told))
    return ids(world, "activity")[-1]


def version(world: World) -> int:
    return world.services.spaces.head("demo").ver


def hold(world: World, element: str) -> None:
    """Put an element under a legal hold."""

    def decide(state: SpaceState) -> Proposal:
        draft = Draft(state, now=world.clock.now(), origin=state.get(element).system.origin)
        found = draft.get(element)
        draft.change(found, retention=msgspec.structs.replace(found.retention, legal_hold=True))
        return Proposal(draft.finish({}))

    world.services.commits.commit("demo", decide, deadline=world.clock.now() + 10_000)


# --- forgetting


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_can_be_forgotten(world: World, kind: Kind) -> None:
    """A dry run says what would go and changes nothing; then it is gone, with what cannot stand without it."""
    name = activity(world) if kind == "activity" else ids(world, kind)[0]
    letter, count = KINDS[kind]
    assert name.startswith(f"{letter}-")
    before = version(world)

    dry = ask(world, "POST", "memory/forget", {"entities": [name, name], "dry_run": True}).result
    assert (misfit(dry, shapes.FORGET_REPORT), dry["dry_run"], version(world)) == (None, True, before)
    done = ask(world, "POST", "memory/forget", {"entities": [name]}).result
    again = ask(world, "POST", "memory/forget", {"entities": [name]}).result

    assert {**done, "dry_run": True} == dry
    assert done[count] >= 1
    assert done["entities"] == [{"entity": name, "existed": True}]
    assert name not in ids(world, kind)
    assert again["entities"] == [{"entity": name, "existed": False}]
    assert again[count] == 0


def test_what_is_wrong_with_one_stands_in_its_entry(world: World) -> None:
    """A legal hold and an id that is none are errors of theirs alone; the rest is forgotten; order is kept."""
    first, held = ids(world, "evidence")[0], activity(world)
    hold(world, held)
    report = ask(
        world, "POST", "memory/forget", {"entities": ["tea", held, "E-0000000z000zzzzz", first]}
    ).result

    assert [each["entity"] for each in report["entities"]] == ["tea", held, "E-0000000z000zzzzz", first]
    assert [each["existed"] for each in report["entities"]] == [False, True, False, True]
    assert ["error" in each for each in report["entities"]] == [True, True, False, False]
    assert (report["deleted_activities"], report["deleted_evidence"]) == (0, 1)
    assert held in ids(world, "activity")


# --- pinning


def test_a_pin_is_put_once_and_taken_away_once(world: World) -> None:
    """`updated` is false where it stood so already; nothing is written then; without `pinned` it is put."""
    name = ids(world, "concept")[0]
    told = [
        ask(world, "POST", "memory/pin", body).result
        for body in (
            {"entity": name},
            {"entity": name, "pinned": True},
            {"entity": name, "pinned": False},
            {"entity": name, "pinned": False},
        )
    ]

    assert [(each["pinned"], each["updated"]) for each in told] == [
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert {each["entity"] for each in told} == {name}


# --- people


def test_a_person_is_one_and_the_same_however_met(world: World) -> None:
    """By key here, and as counterparty of a conversation; the key never changes, a name does when one is given."""
    met = ask(world, "POST", "get_or_init_user", {"user": "alice"}).result
    assert (misfit(met, shapes.CONCEPT), met["key"], met["name"]) == (None, "alice", "Alice")
    renamed = ask(world, "POST", "get_or_init_user", {"user": "alice", "name": "Alice B."}).result
    after = ask(world, "POST", "get_or_init_user", {"user": "alice"}).result
    new = ask(world, "POST", "get_or_init_user", {"user": "principal-7"}).result

    assert (renamed["id"], renamed["key"], after["name"]) == (met["id"], "alice", "Alice B.")
    assert (new["key"], new["name"]) == ("principal-7", "principal-7")
    before = version(world)
    ask(world, "POST", "get_or_init_user", {"user": "alice", "name": "Alice B."})
    assert version(world) == before


# --- probing


def test_a_miss_is_remembered_for_an_hour_whatever_its_spelling(world: World) -> None:
    """By its words, folded; not if it is longer than 512 characters; never for another caller's eyes."""

    def cached(query: str) -> bool:
        return bool(ask(world, "POST", "probe", {"query": query}).result["negative_cached"])

    assert [cached(query) for query in ("zebra crossing", "  ZEBRA\n crossing ", "zebra")] == [
        False,
        True,
        False,
    ]
    world.clock.advance(HOUR_MS)
    assert cached("zebra crossing") is False
    assert cached("zebra crossing") is True
    long = "zebra " * 90
    assert [cached(long), cached(long)] == [False, False]


def test_a_probe_shows_so_many_and_no_plumbing(world: World) -> None:
    """Hits are citations, as many as asked for at most; what the service keeps for itself is no memory."""
    for limit, most in ((1, 1), (0, 1), (8, 8), (1000, 100)):
        found = ask(world, "POST", "probe", {"query": "Lisbon", "limit": limit}).result
        assert found["found"] is True
        assert 1 <= len(found["hits"]) <= most
        assert misfit(found, shapes.PROBE_OUTPUT) is None
    for plumbing in ("SleepTask", "$system", "kip://noema/core"):
        assert ask(world, "POST", "probe", {"query": plumbing}).result["found"] is False


# --- recalling


def test_reading_changes_nothing_that_is_remembered(world: World) -> None:
    """Recall, probe and KIP that reads raise no strength and write no commit (§7.7)."""
    before = version(world)
    for path, body in (
        ("recall", {"query": "Where does Alice live?"}),
        ("recall_structured", {"query": "Where does Alice live?"}),
        ("probe", {"query": "Lisbon"}),
        ("execute_kip_readonly", {"command": "SEARCH CONCEPT :q LIMIT 3", "parameters": {"q": "Alice"}}),
    ):
        assert ask(world, "POST", path, body).status == 200

    assert version(world) == before


def test_citations_are_elements_and_what_is_not_there_is_not_made_up(world: World) -> None:
    """Every cited id is there; of what nobody said nothing is found, and the answer is not a guess."""
    told = ask(world, "POST", "recall_structured", {"query": "Where does Alice live?"}).result
    nothing = ask(world, "POST", "recall_structured", {"query": "What is Zaphod's shoe size?"}).result
    state = world.services.spaces.load("demo")

    assert "Lisbon" in told["answer"]
    assert told["memories"]
    assert all(state.get(each["entity"]) is not None for each in told["memories"])
    assert nothing["found"] is False
    assert nothing.get("memories", []) == []
    assert "memory_meta" not in told["answer"]


def test_a_policy_holds_every_recall_to_a_budget(world: World) -> None:
    """The space's own budget is enforced; a request may only tighten it (§5.3)."""
    policy = {"recall_budget": {"max_tokens": 600, "context_tokens": 9000}}
    assert ask(world, "PATCH", "management/update_space", {"memory_policy": policy}).result is True
    question = {"query": "Where does Alice live?"}

    plain = ask(world, "POST", "recall_structured", question).result
    tighter = ask(world, "POST", "recall_structured", {**question, "budget": {"max_tokens": 500}}).result
    wider = ask(world, "POST", "recall_structured", {**question, "budget": {"max_tokens": 5000}}).result

    limits = [each["memory_budget"]["token_limit"] for each in (plain, tighter, wider)]
    assert limits == [600, 500, 600]
    assert plain["memory_budget"]["context_token_limit"] == 9000


# --- counting


def test_memory_status_counts_what_was_done(world: World) -> None:
    """Recalls, probes that hit, missed and were known; what was never measured is absent, not 0 of 0."""
    first = ask(world, "GET", "memory_status").result
    assert not {"probe_hit_rate", "groundability", "avg_uncertainty"} & set(first)
    for query in ("Lisbon", "zebra", "zebra"):
        ask(world, "POST", "probe", {"query": query})
    for _ in range(2):
        ask(world, "POST", "recall_structured", {"query": "Where does Alice live?"})
    told = ask(world, "GET", "memory_status").result

    assert misfit(told, shapes.MEMORY_STATUS) is None
    assert (told["metrics"]["recalls_completed"], told["metrics"]["probe_hits"]) == (2, 1)
    assert (told["metrics"]["probe_misses"], told["metrics"]["negative_cache_hits"]) == (1, 1)
    assert told["probe_hit_rate"] == 0.5
    assert told["metrics"]["entities_recalled"] >= 1
    assert told["graph"]["concepts"] == ask(world, "GET", "info").result["concepts"]


# --- trying a policy


def test_a_policy_is_tried_on_a_copy(world: World) -> None:
    """Working, then the contract's report; one at a time; the space itself learns of it in its status alone (§6.8)."""
    for query in ("Where does Alice live?", "Who lives in Lisbon?"):
        ask(world, "POST", "recall", {"query": query})
    before, kept = version(world), ask(world, "GET", "conversations", query="collection=recall").result
    wish = {"policy": {"decay_floor": 0.2}, "replay_sample": 2}

    begun = ask(world, "POST", "management/shadow_eval", wish)
    clash = ask(world, "POST", "management/shadow_eval", {"policy": {"decay_floor": 0.1}})
    for _ in range(5):
        form(world)
        world.clock.advance(60_000)
    report = ask(world, "POST", "management/shadow_eval", wish)

    assert (begun.status, clash.status, clash.code, report.status) == (202, 409, "Busy", 200)
    assert misfit(report.result, shapes.SHADOW_REPORT) is None
    assert report.result["replayed"] == len(report.result["samples"]) == 2
    assert report.result["candidate_policy"]["decay_floor"] == 0.2
    assert version(world) == before
    assert ask(world, "GET", "conversations", query="collection=recall").result == kept
    assert ask(world, "GET", "memory_status").result["last_shadow"] == report.result
