"""Conversations, formation's status and what owners and managers may change, by the Anda Brain contract (§1.5, §2, §3)."""

import json
from typing import Any

import pytest

from core.service import formation as module
from tests.contract import anda_shapes as shapes
from tests.contract.anda_shapes import misfit
from tests.contract.anda_world import form
from tests.functions.world import Answer, World

DAY_MS = 24 * 3600 * 1000
COLLECTIONS = ("formation", "recall", "maintenance")
MANAGE = "/v1/demo/management"
TALK = {
    "messages": [{"role": "user", "name": "Alice", "content": "I love tea."}],
    "context": {"source": "thread 7"},
}


@pytest.fixture
def world() -> World:
    return World().make_space()


def say(world: World, text: str = "I love tea.", token: str | None = None) -> int:
    body = {"messages": [{"role": "user", "name": "Alice", "content": text}]}
    answer = world.ask("POST", "/v1/demo/formation", body, token=token or world.token())
    return int(answer.result["conversation"])


def get(world: World, number: int, collection: str = "formation", **query: Any) -> Answer:
    text = "&".join(f"{name}={value}" for name, value in {"collection": collection, **query}.items())
    tail = "/delta" if query else ""
    return world.ask("GET", f"/v1/demo/conversations/{number}{tail}", token=world.token(), query=text)


def listed(world: World, collection: str = "formation", **query: Any) -> Answer:
    text = "&".join(f"{name}={value}" for name, value in {"collection": collection, **query}.items())
    return world.ask("GET", "/v1/demo/conversations", token=world.token(), query=text)


def one_of_each(world: World) -> None:
    """A conversation in every collection."""
    token = world.token()
    assert world.ask("POST", "/v1/demo/formation", TALK, token=token).result["conversation"] == 1
    asked = world.ask("POST", "/v1/demo/recall", {"query": "Who loves tea?"}, token=token)
    assert asked.result["conversation"] == 1
    assert world.ask("POST", "/v1/demo/maintenance", {}, token=token).result["conversation"] == 1


def poison(monkeypatch: pytest.MonkeyPatch, word: str, healed: list[bool]) -> None:
    """Make forming fail for conversations that hold the word, until healed."""
    real = module.form_part

    def fake(draft: Any, dialogue: Any, start: int, **more: Any) -> Any:
        if not healed and any(word in message.text for message in dialogue.messages):
            raise ValueError("secret text of a user")
        return real(draft, dialogue, start, **more)

    monkeypatch.setattr(module, "form_part", fake)


# --- conversations (§3)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_each_collection_counts_from_one_and_has_the_whole_record(world: World, collection: str) -> None:
    """Label, who asked, the input as JSON text first, times, usage; a name that is no collection is a 400."""
    one_of_each(world)
    found = get(world, 1, collection).result

    assert misfit(found, shapes.CONVERSATION) is None
    assert (found["_id"], found["user"], found["label"]) == (1, "alice", collection)
    assert found["period"] == found["created_at"] // 3_600_000
    assert isinstance(json.loads(found["messages"][0]["content"]), dict)
    assert [each["_id"] for each in listed(world, collection).result] == [1]
    assert get(world, 1, "conversations").code == "InvalidInput"


def test_statuses_on_the_way(world: World) -> None:
    """Formation is submitted and completed; maintenance works at once; a recall is answered when it is seen."""
    one_of_each(world)
    before = {name: get(world, 1, name).result["status"] for name in COLLECTIONS}
    form(world)
    form(world)
    after = {name: get(world, 1, name).result["status"] for name in COLLECTIONS}

    assert before == {"formation": "submitted", "recall": "completed", "maintenance": "working"}
    assert after == dict.fromkeys(COLLECTIONS, "completed")


def test_a_failure_a_retry_and_a_success_that_clears_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed is not the end; nothing of the user's text is in the reason; a success clears it."""
    healed: list[bool] = []
    poison(monkeypatch, "bad", healed)
    number = say(world, "bad")
    form(world)
    failed = get(world, number).result
    healed.append(True)
    assert (
        world.ask(
            "PATCH", f"{MANAGE}/restart_formation", {"conversation": number}, token=world.token()
        ).result
        is True
    )
    form(world)
    cured = get(world, number).result

    assert (failed["status"], "secret" in failed["failed_reason"]) == ("failed", False)
    assert cured["status"] == "completed"
    assert "failed_reason" not in cured
    assert cured["messages"][:1] == failed["messages"]


def test_deltas_say_what_is_new(world: World) -> None:
    """Messages and artifacts after the offsets, with status, usage and time; nothing behind the end; no collection mixes."""
    number = say(world)
    whole = get(world, number).result
    first = get(world, number, messages_offset=0, artifacts_offset=0).result
    none = get(world, number, messages_offset=1, artifacts_offset=10**15).result

    assert misfit(first, shapes.DELTA) is None
    assert (first["messages"], none["messages"], none["artifacts"]) == (whole["messages"], [], [])
    assert {name: first[name] for name in ("_id", "status", "usage", "updated_at")} == {
        name: whole[name] for name in ("_id", "status", "usage", "updated_at")
    }
    for bad in ("-1", "x", "1.5", "9" * 30, ""):
        assert get(world, number, messages_offset=bad).status == 400
        assert get(world, number, artifacts_offset=bad).status == 400
    assert get(world, number, "recall", messages_offset=0).status == 404


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_cursor_is_good_for_its_list_alone(world: World, collection: str) -> None:
    """Not for another collection or another life of the space; not cut, changed or made up; it never ages."""

    def make() -> None:
        if collection == "maintenance":  # one run at a time: end the one before
            world.services.maintenance.run("demo", world.clock.now() + 60_000)
        body = {"formation": TALK, "recall": {"query": "tea?"}, "maintenance": {}}[collection]
        assert world.ask("POST", f"/v1/demo/{collection}", body, token=world.token()).status == 200

    for _ in range(3):
        make()
    page = listed(world, collection, limit=2)
    cursor = page.json["next_cursor"]
    assert [each["_id"] for each in page.result] == [2, 3]

    make()  # what comes later does not move a page
    assert [each["_id"] for each in listed(world, collection, cursor=cursor, limit=2).result] == [1]
    others = [name for name in COLLECTIONS if name != collection]
    for name in others:
        assert listed(world, name, cursor=cursor).code == "CursorMismatch"
    for bad in (cursor[:-1], cursor[1:], cursor + "A", cursor.swapcase(), "AAAA", "%00", "1"):
        assert listed(world, collection, cursor=bad).code == "CursorMismatch", bad
    world.clock.advance(29 * DAY_MS)
    assert [each["_id"] for each in listed(world, collection, cursor=cursor).result] == [1]

    world.ask("POST", "/admin/demo/delete_space", {"space_id": "demo"}, token=world.admin_token())
    world.make_space()
    for _ in range(3):
        make()
    assert listed(world, collection, cursor=cursor).code == "CursorMismatch"


def test_only_a_full_page_with_more_behind_it_has_a_cursor(world: World) -> None:
    """A page that ends the list has none, also where it is exactly full."""
    assert listed(world).json == {"result": []}
    for _ in range(4):
        say(world)

    assert "next_cursor" not in listed(world, limit=4).json
    assert "next_cursor" not in listed(world, limit=5).json
    second = listed(world, limit=2, cursor=listed(world, limit=2).json["next_cursor"])
    assert [each["_id"] for each in second.result] == [1, 2]
    assert "next_cursor" not in second.json


def test_recalls_are_kept_a_month_and_the_rest_as_long_as_it_is_wanted(world: World) -> None:
    """By the clock at reading, however late a table removes what is over."""
    one_of_each(world)
    world.clock.advance(30 * DAY_MS - 1)
    assert get(world, 1, "recall").status == 200
    world.clock.advance(1)

    assert get(world, 1, "recall").status == 404
    assert listed(world, "recall").result == []
    assert get(world, 1, "formation").status == 200
    assert get(world, 1, "maintenance").status == 200


def test_who_asked_stands_on_the_record(world: World) -> None:
    """The verified subject or the token's name, never what a body says (§2.5); a guest leaves no record."""
    token = world.space_token(name="bot", scope="*")
    for caller in (world.token(sub="olga"), token):
        say(world, token=caller)
        world.ask("POST", "/v1/demo/recall", {"query": "tea?", "context": {"user": "mallory"}}, token=caller)
    world.make_public()
    world.ask("POST", "/v1/demo/recall", {"query": "tea?"})

    assert [each["user"] for each in listed(world).result] == ["olga", "token:bot"]
    assert [each["user"] for each in listed(world, "recall").result] == ["olga", "token:bot"]


def test_transcripts_outlive_what_is_forgotten_but_not_recalls_of_it(world: World) -> None:
    """Forgetting erases elements; a transcript goes when it is named; an answer that cites what is gone goes with it."""
    say(world)
    form(world)
    recalled = world.ask(
        "POST", "/v1/demo/recall_structured", {"query": "Who loves tea?"}, token=world.token()
    ).result
    cited = [each["entity"] for each in recalled["memories"]]
    report = world.ask("POST", "/v1/demo/memory/forget", {"entities": cited}, token=world.token()).result

    assert all(each["existed"] and "error" not in each for each in report["entities"])
    assert get(world, 1).status == 200
    assert get(world, recalled["conversation"], "recall").status == 404
    world.ask(
        "POST", "/v1/demo/memory/forget", {"entities": ["C-0"], "conversations": [1]}, token=world.token()
    )
    assert get(world, 1).status == 404


# --- formation's status


def test_formation_status_counts_what_waits_and_what_was_set_aside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submitted, formed, processing while a lease is held, and the one that could not be formed."""

    def status() -> Any:
        found = world.ask("GET", "/v1/demo/formation_status", token=world.token()).result
        assert misfit(found, shapes.FORMATION_STATUS) is None
        return found

    assert (status()["conversations"], status()["formation_waiting"], status()["formation_processed_id"]) == (
        0,
        0,
        0,
    )
    poison(monkeypatch, "bad", [])
    for text in ("good", "bad", "better"):
        say(world, text)
    assert (status()["conversations"], status()["formation_waiting"]) == (3, 3)
    for role in ("formation", "maintenance"):
        fence = world.services.leases.acquire("demo", role, "somebody", 60_000)
        assert fence is not None
        assert status()[f"{role}_processing"] is True
        world.services.leases.release("demo", fence)
        assert status()[f"{role}_processing"] is False
    for _ in range(60):
        form(world)
        world.clock.advance(60_000)

    told = status()
    assert (told["formation_processed_id"], told["formation_waiting"]) == (3, 0)
    assert (told["formation_cancelled"], told["formation_last_cancelled"]) == (1, 2)
    assert get(world, 2).result["failed_reason"].startswith("formation_failed:")


@pytest.mark.parametrize("role", ["formation", "maintenance"])
def test_restarting_is_refused_while_somebody_works(world: World, role: str) -> None:
    """Formation or maintenance: the caller is told to come again."""
    say(world)
    fence = world.services.leases.acquire("demo", role, "somebody", 60_000)
    assert fence is not None

    answer = world.ask("PATCH", f"{MANAGE}/restart_formation", {"conversation": 1}, token=world.token())

    assert (answer.status, answer.code) == (409, "Busy")
    assert answer.json["error"]["data"]["retry"]["class"] == "safe_same_request"


def test_forgetting_is_refused_while_maintenance_runs(world: World) -> None:
    """Whole, before anything is erased."""
    fence = world.services.leases.acquire("demo", "maintenance", "somebody", 60_000)
    assert fence is not None

    answer = world.ask("POST", "/v1/demo/memory/forget", {"entities": ["C-0"]}, token=world.token())

    assert (answer.status, answer.code) == (409, "Busy")


# --- update_space


def update(world: World, **fields: Any) -> Answer:
    return world.ask("PATCH", f"{MANAGE}/update_space", fields, token=world.token(scope="write"))


def policy(world: World) -> Any:
    return world.services.spaces.load("demo").meta.memory_policy


def test_a_policy_is_replaced_whole(world: World) -> None:
    """Members that are left out take their defaults again; a bad member leaves all as it was."""
    assert update(world, memory_policy={"recall_max_rounds": 3, "decay_floor": 0.1}).result is True
    assert (policy(world)["recall_max_rounds"], policy(world)["decay_floor"]) == (3, 0.1)
    assert update(world, memory_policy={"orphan_max_count": 7}).result is True

    assert (policy(world)["recall_max_rounds"], policy(world)["decay_floor"]) == (7, 0.3)
    assert policy(world)["orphan_max_count"] == 7
    before = policy(world)
    for bad in (
        {"recall_max_rounds": 0},
        {"recall_max_rounds": 51},
        {"decay_floor": -0.1},
        {"self_test_token_budget": 999},
        {"self_test_queries_per_cycle": 101},
        {"shadow_replay_sample": 17},
        {"recall_budget": {"max_tokens": 65_537}},
        {"recall_budget": {"tokenizer": "chars/4"}},
        {"version": 0},
        {"memory_strength_decay_factor": 1.1},
        {"correction_penalty": 0},
        {"recall_search_threshold": 0},
        {"recall_reinforcement": -1},
        {"unknown": 1},
    ):
        assert update(world, memory_policy=bad).code == "InvalidInput", bad
        assert update(world, name="x", memory_policy=bad).status == 400, bad
    assert policy(world) == before
    assert "name" not in world.ask("GET", "/v1/demo/info", token=world.token()).result


def test_what_is_left_out_stays_and_null_clears(world: World) -> None:
    """Name and description; publicity is on or off and nothing else."""
    update(world, name="Demo", description="Of tests.")
    update(world, public=True)
    info = world.ask("GET", "/v1/demo/info").result
    assert (info["name"], info["description"], info["public"]) == ("Demo", "Of tests.", True)

    update(world, name=None)
    info = world.ask("GET", "/v1/demo/info").result
    assert "name" not in info
    assert info["description"] == "Of tests."
    update(world, public=False)
    assert world.ask("GET", "/v1/demo/info").status == 401
    for bad in ({"name": "x" * 129}, {"description": "x" * 4097}, {"public": 1}, {"nmae": "x"}, {}):
        assert update(world, **bad).code == "InvalidInput", bad


# --- tokens (§2.2)


def mint(world: World, caller: str | None = None, **wish: Any) -> Answer:
    body = {"scope": "read", "name": "ci", **wish}
    return world.ask("POST", f"{MANAGE}/add_space_token", body, token=caller or world.token())


def test_a_token_is_long_named_once_and_shown_once(world: World) -> None:
    """ST and 256 bits; the list has its beginning alone; a taken name is a 409 and may be used again once revoked."""
    made = mint(world).result
    assert made["token"].startswith("ST")
    assert len(made["token"]) == 45
    shown = world.ask("GET", f"{MANAGE}/space_tokens", token=world.token()).result
    assert [each["token"] for each in shown] == [made["token"][:8] + "…"]
    assert mint(world).code == "IdentityConflict"
    assert (
        world.ask(
            "POST", f"{MANAGE}/revoke_space_token", {"token": made["token"]}, token=world.token()
        ).result
        is True
    )
    assert (
        world.ask("POST", f"{MANAGE}/revoke_space_token", {"name": "ci"}, token=world.token()).result is False
    )

    assert mint(world).result["token"] != made["token"]
    assert world.ask("GET", "/v1/demo/info", token=made["token"]).status == 401


def test_tokens_by_scope_labels_and_number(world: World) -> None:
    """`*` needs a `*` CWT; labels are for reading; at most a hundred; only a CWT manages them."""
    writer = world.token(scope="write")
    assert mint(world, writer, scope="*").code == "NotAuthorized"
    assert mint(world, writer, scope="write", name="w").status == 200
    assert mint(world, scope="*", name="all").status == 200
    assert mint(world, world.space_token(name="st", scope="*"), name="x").code == "NotAuthorized"
    for n in range(97):
        assert mint(world, name=f"n{n}").status == 200

    over = mint(world, name="one too many")

    assert over.status == 400
    assert "100" in over.json["error"]["message"]


@pytest.mark.parametrize(
    "text", ["tier", "owner", "byok", "memory_policy", "T#", "ST", "ST/../tier", "HEAD", "ST" + "é" * 43]
)
def test_no_other_text_is_a_token(world: World, text: str) -> None:
    """What does not look like a token addresses nothing, as a credential or to be revoked (§2.2)."""
    headers = {"authorization": f"Bearer {text}"}
    assert world.ask("GET", "/v1/demo/info", headers=headers).status == 401
    gone = world.ask("POST", f"{MANAGE}/revoke_space_token", {"token": text}, token=world.token())

    assert gone.result is False
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result["tier"]["tier"] == 1


# --- tiers (§1.5)


def test_a_tier_is_a_number_of_nodes(world: World) -> None:
    """10^(tier+2): held against on taking in, as a 400 with both numbers; a larger one lets more in, reading goes on."""
    small = {"user": "alice", "space_id": "demo", "tier": 0}
    told = world.ask("POST", "/admin/demo/update_space_tier", small, token=world.admin_token()).result
    assert (misfit(told, shapes.TIER), told["tier"]) == (None, 0)
    for n in range(100):
        say(world, f"number {n}")
    over = world.ask("POST", "/v1/demo/formation", TALK, token=world.token())
    assert (over.status, over.code) == (400, "SpaceTierExceeded")
    assert over.json["error"]["message"].count("100") == 2
    for method, path, body in (
        ("POST", "recall", {"query": "tea?"}),
        ("POST", "get_or_init_user", {"user": "carol"}),
        ("GET", "info", None),
    ):
        assert world.ask(method, f"/v1/demo/{path}", body, token=world.token()).status == 200

    world.ask("POST", "/admin/demo/update_space_tier", {**small, "tier": 1}, token=world.admin_token())

    assert say(world) == 101
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result["tier"]["tier"] == 1
    for bad in (
        {**small, "tier": -1},
        {**small, "tier": 15},
        {**small, "tier": "1"},
        {**small, "space_id": "other"},
    ):
        answer = world.ask("POST", "/admin/demo/update_space_tier", bad, token=world.admin_token())
        assert answer.code == "InvalidInput"
