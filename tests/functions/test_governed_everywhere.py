"""In a governed space every way in obeys the records: REST, facts, conversations, status, MCP, and what is written."""

from __future__ import annotations

from typing import Any

import pytest

from functions.mcp.handler import TOOLBOX
from tests.functions.governed import OPEN, SECRET, Governed

FACTS = "/v1/demo/facts"
GRAY = "/v1/demo/graymatter"
ABOUT = "the house of Ann, and what Alice loves"
READS: dict[str, tuple[str, str, Any, str]] = {
    "info": ("GET", "/v1/demo/info", None, ""),
    "status": ("GET", "/v1/demo/status", None, ""),
    "formation_status": ("GET", "/v1/demo/formation_status", None, ""),
    "memory_status": ("GET", "/v1/demo/memory_status", None, ""),
    "recall": ("POST", "/v1/demo/recall", {"query": ABOUT}, ""),
    "recall_structured": ("POST", "/v1/demo/recall_structured", {"query": ABOUT}, ""),
    "probe": ("POST", "/v1/demo/probe", {"query": "house keeps love"}, ""),
    "conversations": ("GET", "/v1/demo/conversations", None, "limit=100"),
    "recalls": ("GET", "/v1/demo/conversations", None, "limit=100&collection=recall"),
    "maintenances": ("GET", "/v1/demo/conversations", None, "collection=maintenance"),
    "conversation": ("GET", "/v1/demo/conversations/1", None, ""),
    "delta": ("GET", "/v1/demo/conversations/1/delta", None, ""),
    "facts": ("GET", FACTS, None, "agent_id=ann"),
    "facts_recall": ("POST", f"{FACTS}/recall", {"agent_id": "ann", "query": "house", "explain": True}, ""),
    "facts_batch": ("POST", f"{FACTS}/recall_batch", {"agent_id": "ann", "queries": ["house", "keeps"]}, ""),
    "facts_stats": ("GET", f"{FACTS}/stats", None, "agent_id=ann"),
    "facts_agents": ("GET", f"{FACTS}/agents", None, ""),
    "facts_export": ("GET", f"{FACTS}/export", None, "format=json"),
    "facts_obsidian": ("GET", f"{FACTS}/export", None, "format=obsidian&graph=true"),
    "checkpoints": ("GET", f"{FACTS}/checkpoints", None, "agent_id=ann"),
    "gray_recall": ("GET", f"{GRAY}/recall", None, "agent=ann&q=house"),
    "gray_facts": ("GET", f"{GRAY}/facts", None, "agent=ann"),
    "gray_metrics": ("GET", f"{GRAY}/metrics", None, ""),
    "kip": ("POST", "/v1/demo/execute_kip_readonly", "FIND(?c) WHERE {?c CONCEPT {}}", ""),
    "kip_evidence": ("POST", "/v1/demo/execute_kip_readonly", "FIND(?e) WHERE {?e EVIDENCE {}}", ""),
    "kip_search": ("POST", "/v1/demo/execute_kip_readonly", 'SEARCH COGNITION "house love" LIMIT 100', ""),
    "primer": ("POST", "/v1/demo/execute_kip_readonly", "DESCRIBE PRIMER", ""),
}
TOOLS: dict[str, dict[str, Any]] = {
    "anda_brain_recall_memory": {"query": ABOUT},
    "anda_brain_list_conversations": {"limit": 100},
    "anda_brain_get_conversation": {"conversation_id": 1},
    "anda_brain_get_space_info": {},
    "anda_brain_get_formation_status": {},
    "memory_search": {"agent_id": "ann", "query": "house"},
    "memory_search_batch": {"agent_id": "ann", "queries": ["house", "keeps"]},
}


@pytest.fixture(scope="module")
def reading() -> Governed:
    """A governed space that these tests only read."""
    return Governed()


@pytest.fixture
def world() -> Governed:
    """A governed space to change."""
    return Governed()


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("who", ["bob", "eve"])
def test_nothing_hidden_stands_in_any_answer(reading: Governed, name: str, who: str) -> None:
    """Of a reader of some classes, and of one who holds nothing: no text, id, count or body of what is hidden."""
    method, path, body, query = READS[name]
    for scope in ("*", "read"):
        answer = reading.as_(who, method, path, body, query=query, scope=scope)

        assert answer.status < 500
        assert not reading.leaks(answer), answer.body


LOUD = ("conversations", "conversation", "delta", "facts", "facts_recall", "facts_batch", "facts_export", "gray_facts",
        "gray_recall", "kip", "kip_evidence", "kip_search", "facts_obsidian", "recalls")  # fmt: skip


@pytest.mark.parametrize("name", LOUD)
def test_the_owner_sees_there_what_others_do_not(reading: Governed, name: str) -> None:
    """The same requests give the owner what is hidden from the others, so that the test before says something."""
    method, path, body, query = READS[name]

    assert reading.leaks(reading.as_("alice", method, path, body, query=query))


@pytest.mark.parametrize("name", TOOLS)
def test_nothing_hidden_stands_in_a_tools_answer(reading: Governed, name: str) -> None:
    """The same over MCP."""
    names = {tool["name"] for tool in TOOLBOX.listed}
    assert name in names, sorted(names)
    answer = reading.tool("bob", name, TOOLS[name])

    assert answer.status == 200
    assert not reading.leaks(answer), answer.body


def test_counts_are_those_of_what_is_seen(reading: Governed) -> None:
    """Concepts in info and status, facts in stats, and what KIP counts, are one number for a reader."""
    info = reading.as_("bob", "GET", "/v1/demo/info").result
    status = reading.as_("bob", "GET", "/v1/demo/formation_status").result
    memory = reading.as_("bob", "GET", "/v1/demo/memory_status").result
    counted = reading.kip("bob", "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}")["result"]
    stats = reading.as_("bob", "GET", f"{FACTS}/stats", query="agent_id=ann").result
    everything = reading.as_("alice", "GET", "/v1/demo/info").result

    assert info["concepts"] == status["concepts"] == memory["graph"]["concepts"]
    assert str(info["concepts"]) in str(counted)
    assert info["concepts"] < everything["concepts"]
    assert (info["conversations"], status["conversations"], memory["metrics"]) == (0, 0, {})
    assert (stats["fact_count"], stats["recalls"]) == (1, 0)


def test_bob_sees_his_part(reading: Governed) -> None:
    """What he may see is there, by every way."""
    for name in ("facts", "facts_recall", "facts_export", "gray_facts", "kip", "kip_search"):
        method, path, body, query = READS[name]
        assert OPEN in reading.as_("bob", method, path, body, query=query).body.decode().lower(), name
    found = reading.tool("bob", "memory_search", {"agent_id": "ann", "query": "house"})
    assert OPEN in found.body.decode()


# --- refusals are absence


def same(one: Any, other: Any, *names: str) -> bool:
    """Whether two answers are alike but for the name asked for."""
    texts = [each.body.decode().replace(name, "*") for each, name in zip((one, other), names, strict=True)]
    return (one.status, texts[0]) == (other.status, texts[1])


@pytest.mark.parametrize("who", ["bob", "eve"])
def test_a_hidden_element_is_answered_as_one_that_is_not_there(world: Governed, who: str) -> None:
    """Pin, forget, KIP by id, a fact by id and its deletion: the same body, byte for byte."""
    absent, hidden = "C-0000zzzz000jhaew", world.hidden[0]
    fact, none = world.hidden_facts[0], "01KSR49200AAAAAAAAAAAAAAAA"
    asked: list[tuple[str, str, Any, str, tuple[str, str]]] = [
        ("POST", "/v1/demo/memory/pin", {"entity": "*"}, "", (hidden, absent)),
        ("POST", "/v1/demo/memory/forget", {"entities": ["*"]}, "", (hidden, absent)),
        ("POST", "/v1/demo/memory/forget", {"entities": ["*"], "dry_run": True}, "", (hidden, absent)),
        ("POST", "/v1/demo/execute_kip", 'FIND(?c) WHERE {?c CONCEPT {id: "*"}}', "", (hidden, absent)),
        ("POST", "/v1/demo/execute_kip", 'UPDATE {id: "*"} SET name = "x"', "", (hidden, absent)),
        ("GET", f"{FACTS}/*", None, "agent_id=ann", (fact, none)),
        ("DELETE", f"{FACTS}/*", None, "agent_id=ann", (fact, none)),
        ("DELETE", f"{GRAY}/forget/*", None, "agent=ann", (fact, none)),
        ("GET", "/v1/demo/conversations/*", None, "", ("1", "7")),
        ("GET", "/v1/demo/conversations/*/delta", None, "", ("1", "7")),
    ]
    for method, path, body, query, names in asked:
        answers = [
            world.as_(who, method, path.replace("*", name), _filled(body, name), query=query)
            for name in names
        ]
        assert same(*answers, *names), (method, path, answers)
    assert world.as_("alice", "GET", f"{FACTS}/{fact}", query="agent_id=ann").status == 200


def _filled(body: Any, name: str) -> Any:
    if isinstance(body, str):
        return body.replace("*", name)
    if isinstance(body, dict):
        return {key: _filled(value, name) for key, value in body.items()}
    return [_filled(each, name) for each in body] if isinstance(body, list) else body


def test_facts_of_a_hidden_text_are_not_there(world: Governed) -> None:
    """Revising, forgetting and pinning by text find nothing that is hidden, and change nothing."""
    text = f"Ann keeps a {SECRET} in the {SECRET} house"
    for what, more in (("revise", {"text": "x"}), ("forget", {}), ("pin", {}), ("unpin", {})):
        hidden = world.as_("bob", "POST", f"{FACTS}/{what}", {"agent_id": "ann", "target": text, **more})
        absent = world.as_("bob", "POST", f"{FACTS}/{what}", {"agent_id": "ann", "target": "no", **more})
        assert (hidden.status, hidden.body) == (absent.status, absent.body)
        assert hidden.code == "NotFoundOrNotVisible"
    assert world.as_("alice", "GET", f"{FACTS}/stats", query="agent_id=ann").result["live"] == 2


# --- writing


def test_who_may_not_write_writes_nothing(world: Governed) -> None:
    """With a token of scope * and no grant: formation, facts, users, pins, maintenance and management are refused."""
    before = world.as_("alice", "GET", "/v1/demo/info").result["db_stats"]["version"]
    said = {"messages": [{"role": "user", "content": "I love tea."}]}
    manage = "/v1/demo/management"
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/v1/demo/formation", said),
        ("POST", "/v1/demo/maintenance", {"scope": "full"}),
        ("POST", "/v1/demo/get_or_init_user", {"user": "eve"}),
        ("POST", FACTS, {"agent_id": "ann", "text": "new"}),
        ("POST", f"{FACTS}/alias", {"agent_id": "ann", "term": "db", "equivalents": ["postgres"]}),
        ("POST", f"{FACTS}/link", {"agent_id": "ann", "source": "a", "target": "b"}),
        ("POST", f"{FACTS}/checkpoints", {"agent_id": "ann", "state": {}}),
        ("POST", f"{FACTS}/consolidate", {"agent_id": "ann"}),
        ("PATCH", f"{manage}/facts", {"confidence_weight": 0.1}),
        ("PATCH", f"{manage}/update_space", {"public": True}),
        ("POST", f"{manage}/add_space_token", {"scope": "*", "name": "mine"}),
        ("GET", f"{manage}/space_tokens", None),
        ("PATCH", f"{manage}/restart_formation", {"conversation": 1}),
        ("POST", f"{manage}/migrate", {"source": "old", "concepts": [{"type": "City", "name": "Rome"}]}),
        ("GET", f"{manage}/space_byok", None),
        ("POST", f"{manage}/log_checkpoint", {}),
        ("POST", "/host/v1/demo/capsules/export", {}),
    ]
    for method, path, body in asked:
        answer = world.as_("eve", method, path, body)
        assert (answer.status, answer.code) == (403, "NotAuthorized"), (path, answer.body)
    assert world.as_("alice", "GET", "/v1/demo/info").result["db_stats"]["version"] == before


def test_a_writer_is_formed_and_a_revoked_one_is_not(world: Governed) -> None:
    """What bob says is filed in his name; revoked before it is formed, nothing of it is, and the space goes on."""
    said = {"messages": [{"role": "user", "name": "Bob", "content": "I love tea."}]}
    first = world.as_("bob", "POST", "/v1/demo/formation", said).result["conversation"]
    world.form()
    done = world.as_("bob", "GET", f"/v1/demo/conversations/{first}").result
    said["messages"][0]["content"] = "I love coffee."
    later = world.as_("bob", "POST", "/v1/demo/formation", said).result["conversation"]
    world.command({"command": "remove_rule", "id": "bob-writes"})
    world.form()

    assert done["status"] == "completed"
    assert "1 message filed" in done["messages"][1]["content"]
    refused = world.as_("alice", "GET", f"/v1/demo/conversations/{later}").result
    assert (refused["status"], refused["failed_reason"]) == ("failed", "NotAuthorized")
    assert "coffee" not in str(world.kip("alice", "FIND(?e) WHERE {?e EVIDENCE {}}"))
    audit = world.as_("alice", "GET", "/host/v1/demo/governance/audit", query="limit=1000").result
    assert any(each["principal"] == "bob" and "bob-writes" in each.get("records", []) for each in audit)


def test_claims_that_may_not_be_made_leave_what_was_said(world: Governed) -> None:
    """Who may create and record but not change has words filed even where reading them would change something."""
    world.command({"command": "remove_rule", "id": "bob-writes"})
    world.allow("bob-files", "bob", "create", "record_attributed_assertion")
    for text in ("My name is Bob.", "Call me Bobby.", "I live in Rome.", "I live in Oslo now."):
        said = {"messages": [{"role": "user", "name": "Bob", "content": text}]}
        world.as_("bob", "POST", "/v1/demo/formation", said).result
    world.form()

    listed = world.as_("bob", "GET", "/v1/demo/conversations").result
    assert [each["status"] for each in listed] == ["completed"] * 4
    assert "Oslo now" in str(world.kip("bob", "FIND(?e) WHERE {?e EVIDENCE {}}"))


def test_an_answer_is_not_shown_again_under_other_records(world: Governed) -> None:
    """A recall is its asker's to read back, until the records change; a stranger never sees it."""
    world.as_("bob", "POST", "/v1/demo/recall", {"query": "harbour"}).result
    path = "/v1/demo/conversations/2"
    mine = world.as_("bob", "GET", path, query="collection=recall")
    theirs = world.as_("eve", "GET", path, query="collection=recall")
    listed = world.as_("bob", "GET", "/v1/demo/conversations", query="collection=recall").result
    world.command({"command": "put_group", "group": {"name": "team", "members": ["bob"]}})
    after = world.as_("bob", "GET", path, query="collection=recall")

    assert (mine.status, theirs.status, after.status) == (200, 404, 404)
    assert [each["_id"] for each in listed] == [2]


def test_a_retry_shows_no_fact_that_may_no_longer_be_seen(world: Governed) -> None:
    """The key of a write is no way to read what became hidden since."""
    body = {"agent_id": "ann", "text": "Bob keeps a boat"}
    key = {"idempotency-key": "boat"}
    made = world.as_("bob", "POST", FACTS, body, headers=key).result
    again = world.as_("bob", "POST", FACTS, body, headers=key)
    world.command({"command": "classify", "ids": [made["element"]], "label": "secret"})
    hidden = world.as_("bob", "POST", FACTS, body, headers=key)

    assert again.result == made
    assert (hidden.status, hidden.code) == (404, "NotFoundOrNotVisible")


def test_what_takes_a_secrets_place_is_as_secret(world: Governed) -> None:
    """A fact that replaces a secret one has its label, though no statement said so."""
    text = f"Ann keeps a {SECRET} in the {SECRET} house"
    made = world.as_(
        "alice",
        "POST",
        f"{FACTS}/revise",
        {"agent_id": "ann", "target": text, "text": "Ann keeps it elsewhere"},
    ).result["fact"]

    assert "elsewhere" in world.as_("alice", "GET", FACTS, query="agent_id=ann").body.decode()
    assert "elsewhere" not in world.as_("bob", "GET", FACTS, query="agent_id=ann").body.decode()
    assert world.as_("bob", "GET", f"{FACTS}/{made['id']}", query="agent_id=ann").status == 404


def test_a_space_token_is_a_principal_of_its_own(world: Governed) -> None:
    """A token that the owner mints holds nothing until a rule names it, and then that and no more."""
    minted = world.as_(
        "alice", "POST", "/v1/demo/management/add_space_token", {"scope": "read", "name": "ci"}
    )
    token = minted.result["token"]
    before = world.ask("GET", FACTS, token=token, query="agent_id=ann").result
    world.allow("ci-reads", "token:ci", "role:reader", classifications=["internal"])
    after = world.ask("GET", FACTS, token=token, query="agent_id=ann")

    assert before == []
    assert OPEN in after.body.decode()
    assert not world.leaks(after)


def test_a_public_space_shows_its_guests_what_the_records_say(world: Governed) -> None:
    """Anybody may ask, and is told what `principal:anonymous` may know."""
    world.as_("alice", "PATCH", "/v1/demo/management/update_space", {"public": True}).result
    count = {"command": "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}"}

    def guest() -> str:
        asked = world.ask("POST", "/v1/demo/execute_kip_readonly", count)
        info = world.ask("GET", "/v1/demo/info")
        assert not world.leaks(asked)
        assert not world.leaks(info)
        return f"{asked.json['results'][0].get('result')} {info.result['concepts']}"

    before = guest()
    world.allow("guests", "anonymous", "role:reader", types=["kip://noema/fact-memory@1.0.0/FactNamespace"])

    assert before.endswith(" 0")
    assert guest().endswith(" 1")


def test_the_notes_of_runs_are_kept_apart(world: Governed) -> None:
    """What a run notes while it works for one principal, no run for another reads."""
    notes, now = world.services.formation_mind.notes, world.clock.now()
    fence = world.services.leases.acquire("demo", "formation", "me", 60_000)
    assert fence is not None
    notes.of("alice").write("demo", "seen", f"the {SECRET}", fence=fence, deadline=now + 1000)

    assert notes.of("alice").read("demo", "seen") == f"the {SECRET}"
    assert notes.of("bob").index("demo") == []
    assert notes.index("demo") == []


def test_a_deferred_answer_is_its_askers_alone(world: Governed) -> None:
    """A question answered later is polled by who asked it, found under their rights, and by nobody else."""
    prefers = {"prefer": "respond-async"}
    told = world.as_("bob", "POST", "/v1/demo/recall", {"query": "Who loves what?"}, headers=prefers)
    assert told.status == 202
    number = told.json["result"]["conversation"]
    world.services.later_recalls.work("demo", world.clock.now() + 100_000)
    path, query = f"/v1/demo/conversations/{number}", "collection=recall"

    mine = world.as_("bob", "GET", path, query=query)
    assert mine.result["status"] == "completed"
    assert not world.leaks(mine)
    assert world.as_("eve", "GET", path, query=query).status == 404
    assert world.as_("alice", "GET", path, query=query).status == 200


def test_a_migration_brings_names_only_for_who_may_change_the_schema() -> None:
    """Who may import and create may not install a package of types by it, not even to see what it would come to."""
    world = Governed()
    world.allow("mover", "bob", "import", "create", "read", "search", "update", "derive")
    before = world.services.spaces.load("demo").meta.schema
    page = {"source": "old", "concepts": [{"type": "Zebra", "name": "Stripe"}]}

    for dry in (True, False):
        asked = world.as_("bob", "POST", "/v1/demo/management/migrate", {**page, "dry_run": dry})
        assert (asked.status, asked.code) == (403, "NotAuthorized")

    assert world.services.spaces.load("demo").meta.schema == before
    assert world.as_("alice", "POST", "/v1/demo/management/migrate", page).status == 200
