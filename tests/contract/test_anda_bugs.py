"""Bugs and complaints that the Anda Brain contract lists to design against (§10), one test for each that applies here.

The number in a test's name is the entry's number in the list. What has no surface here is not tested: a wiki, previews
of managed changes, in-place migrations of a store.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.models.chat import Capabilities, ModelFault
from core.ports import Put, When
from core.service import formation as module
from core.service.maintenance_marks import DAY_MS
from core.storage.layout import conversation_sk, space_pk
from core.storage.memory import MemoryTable
from functions.bootstrap import Adapters, build
from functions.routing import DEFAULT_DEADLINE_MS
from tests.contract.anda_world import form
from tests.doubles import FailingTable, Faults, FixedModels, ScriptedModel, calls, says
from tests.functions.world import KEYED, Answer, World

ROOT = Path(__file__).resolve().parents[2]
SECRET = "zanzibarite"  # a word that stands nowhere by itself
QUESTION = {"query": "What does Alice love?"}
SURE = '\n<memory_meta>{"found": true, "uncertainty": 0.1}</memory_meta>'


@pytest.fixture
def world() -> World:
    return World().make_space()


def ask(world: World, method: str, path: str, body: Any = None, *, query: str = "", **more: Any) -> Answer:
    return world.ask(
        method, f"/v1/demo/{path}", body, token=more.pop("token", world.token()), query=query, **more
    )


def say(world: World, text: str, **more: Any) -> Any:
    body = {"messages": [{"role": "user", "name": "Alice", "content": text}], **more}
    return ask(world, "POST", "formation", body).result


def thinking(world: World, model: ScriptedModel) -> ScriptedModel:
    """Give every space this model."""
    ports = (world.table, world.objects, world.queue, world.clock, world.entropy)
    world.services = build(KEYED, Adapters(*ports, models=FixedModels(model)))
    return model


def status(world: World) -> Any:
    return ask(world, "GET", "formation_status").result


def conversation(world: World, number: int, collection: str = "formation") -> Any:
    return ask(world, "GET", f"conversations/{number}", query=f"collection={collection}").result


# --- 1


def test_01_a_poison_conversation_does_not_block_the_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits behind it is formed, the mark never goes back, it is seen where it lies, and can be tried again."""
    real, healed = module.form_part, []

    def fake(draft: Any, dialogue: Any, start: int, **more: Any) -> Any:
        if not healed and "poison" in dialogue.messages[0].text:
            raise ValueError
        return real(draft, dialogue, start, **more)

    monkeypatch.setattr(module, "form_part", fake)
    for text in ("poison", "I love tea.", "I love cake."):
        say(world, text)
    marks = []
    for _ in range(120):
        form(world)
        marks.append(status(world)["formation_processed_id"])
        world.clock.advance(30_000)

    assert marks == sorted(marks)
    assert marks[-1] == 3
    assert (status(world)["formation_cancelled"], status(world)["formation_last_cancelled"]) == (1, 1)
    assert conversation(world, 1)["status"] == "cancelled"
    healed.append(True)
    ask(world, "PATCH", "management/restart_formation", {"conversation": 1})
    form(world)
    assert conversation(world, 1)["status"] == "completed"
    assert status(world)["formation_processed_id"] == 3


def test_01_a_resubmission_after_a_timeout_is_the_same_conversation(world: World) -> None:
    """Under one retry key, however often, also once it is formed."""
    body = {"messages": [{"role": "user", "content": "I love tea."}], "timestamp": "2026-05-28T20:00:00Z"}
    numbers = []
    for _ in range(3):
        numbers.append(
            ask(world, "POST", "formation", body, headers={"idempotency-key": "chat-1"}).result[
                "conversation"
            ]
        )
        form(world)

    assert numbers == [1, 1, 1]
    assert status(world)["conversations"] == 1


# --- 2


@pytest.mark.parametrize(("busy", "waits"), [("maintenance", "formation"), ("formation", "maintenance")])
def test_02_formation_and_maintenance_never_write_at_once(world: World, busy: str, waits: str) -> None:
    """While one holds the space the other only queues; it goes on once the space is free."""
    say(world, "I love tea.")
    if waits == "maintenance":
        form(world)
        ask(world, "POST", "maintenance", {})
    fence = world.services.leases.acquire("demo", busy, "somebody else", 60_000)
    assert fence is not None
    version = world.services.spaces.head("demo").ver
    form(world)
    blocked, then = conversation(world, 1, waits)["status"], world.services.spaces.head("demo").ver
    world.services.leases.release("demo", fence)
    world.clock.advance(120_000)
    form(world)
    world.services.maintenance.run("demo", world.clock.now() + 60_000)

    assert blocked in ("submitted", "working")
    assert then == version
    assert conversation(world, 1, waits)["status"] == "completed"


# --- 3


def test_03_a_recall_that_never_ends_is_ended(world: World) -> None:
    """By its rounds: 200 with the reason, what was found, and what it really cost; the record says failed."""
    say(world, "I love tea.")
    form(world)
    model = thinking(world, ScriptedModel(last=calls("search_memory", {"query": "tea"})))

    told = ask(world, "POST", "recall_structured", QUESTION).result

    assert told["failed_reason"]
    assert 1 < len(model.asked) <= 8  # recall_max_rounds is 7
    assert told["usage"]["requests"] == len(model.asked)
    assert told["usage"]["input_tokens"] == 10 * len(model.asked)
    assert conversation(world, told["conversation"], "recall")["status"] == "failed"


def test_03_a_formation_that_never_ends_is_ended(world: World) -> None:
    """By its turns, over however many drains; nothing is lost, and the space goes on."""
    model = thinking(world, ScriptedModel(last=calls("kip_reference", {"topic": "index"})))
    say(world, "I love tea.")
    for _ in range(200):
        form(world)
        world.clock.advance(60_000)
        if conversation(world, 1)["status"] in ("completed", "cancelled"):
            break

    assert len(model.asked) <= 100
    assert conversation(world, 1)["extra"]["warnings"] == ["formed_offline: model_loop"]
    assert conversation(world, 1)["usage"]["requests"] == len(model.asked)
    assert status(world)["formation_processed_id"] == 1


# --- 4


def test_04_what_providers_are_sent_is_plain(world: World) -> None:
    """No combinator in any tool's schema, no forced choice, nothing asked of a provider that it cannot do."""
    model = thinking(world, ScriptedModel(last=says(f"Tea.{SURE}"), capabilities=Capabilities()))
    say(world, "I love tea.")
    form(world)
    ask(world, "POST", "recall", QUESTION)
    assert len(model.asked) >= 2

    for request in model.asked:
        for tool in request.tools:
            shown = json.dumps(tool.parameters)
            assert not any(f'"{word}"' in shown for word in ("oneOf", "anyOf", "allOf", "$ref", "not"))
            assert tool.parameters["type"] == "object"
        assert getattr(request, "tool_choice", "auto") in ("auto", None)


# --- 5


def test_05_tokens_are_no_keys_to_other_things(world: World) -> None:
    """No other text is a credential, a writer mints no `*`, no list shows a value, labels keep out of all memory."""
    for text in ("tier", "byok", "owner", "HEAD", "T#x"):
        assert ask(world, "GET", "info", token=text).status == 401
    writer = world.token(scope="write")
    assert (
        ask(world, "POST", "management/add_space_token", {"scope": "*", "name": "a"}, token=writer).status
        == 403
    )
    value = world.space_token(scope="*")
    assert value not in ask(world, "GET", "management/space_tokens").body.decode()
    labelled = world.space_token(name="labelled", labels=["hr"])
    ask(world, "POST", "recall", QUESTION)
    for method, path, body in (
        ("GET", "conversations", None),
        ("GET", "conversations/1", None),
        ("POST", "recall", QUESTION),
        ("POST", "probe", {"query": "tea"}),
        ("POST", "execute_kip_readonly", "DESCRIBE PRIMER"),
    ):
        assert (
            ask(
                world,
                method,
                path,
                body,
                token=labelled,
                query="collection=recall" if method == "GET" else "",
            ).status
            == 403
        )
    assert repr(vars(world.table)).find(value) == -1  # nor does the store hold it


def test_05_a_spaces_own_key_is_not_readable(world: World) -> None:
    """Not with scope read, and not with any other: it goes in and does not come out."""
    key = "sk-of-the-owner-0123456789"
    wish = {"family": "anthropic", "model": "claude-haiku-4-5", "api_key": key}
    assert ask(world, "PATCH", "management/space_byok", wish).result is True

    assert ask(world, "GET", "management/space_byok", token=world.token(scope="read")).status == 403
    assert key not in ask(world, "GET", "management/space_byok").body.decode()


def test_05_help_prints_no_secret() -> None:
    """Options that take a token from the environment do not show it as their default."""
    env = {**os.environ, "NOEMA_TOKEN": SECRET, "MCP_AUTH_TOKEN": SECRET, "PYTHONPATH": str(ROOT)}  # noqa: TID251
    for command in (["mcp"], ["kip"], ["space", "create"], ["token", "mint"]):
        run = [sys.executable, "-P", "-m", "functions.cli", *command, "--help"]
        told = subprocess.run(run, capture_output=True, env=env, cwd=ROOT, timeout=60, check=False)
        assert SECRET.encode() not in told.stdout + told.stderr, command


# --- 6


def faulty(world: World) -> Faults:
    """A plan by which every call of the table fails once its `at` says so."""
    faults = Faults(reads=True)
    world.table = FailingTable(world.table, faults)
    world.use(KEYED)
    return faults


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "probe", {"query": "tea"}),
        ("POST", "recall_structured", QUESTION),
        ("POST", "memory/forget", {"entities": ["C-00000002000jhaew"], "dry_run": True}),
        ("GET", "conversations/1", None),
        ("GET", "conversations", None),
        ("GET", "info", None),
    ],
)
def test_06_a_read_that_fails_is_not_absence(world: World, method: str, path: str, body: Any) -> None:
    """Wherever the store fails, the answer is a fault, never `found: false`, `existed: false`, 404 or an empty list."""
    say(world, "I love tea.")
    form(world)
    faults = faulty(world)
    before = faults.count
    ask(world, method, path, body)
    needed = faults.count - before

    for at in range(needed + 4):
        world.use(KEYED)  # a cold start
        faults.at = {faults.count + at}
        answer = ask(world, method, path, body)
        if answer.status == 200:
            told = answer.result
            assert told not in ([], {}), at
            assert not isinstance(told, dict) or told.get("found", True), at
        else:
            assert answer.status in (500, 503), (at, answer.body)
            assert answer.code in ("ServiceUnavailable", "OutcomeUnknown"), at


def test_06_a_miss_is_kept_only_while_it_is_true(world: World) -> None:
    """An exhaustive miss is known again at once; a conversation formed in between clears it."""
    probe = {"query": "tea"}
    first = ask(world, "POST", "probe", probe).result
    again = ask(world, "POST", "probe", {"query": "  TEA "}).result
    say(world, "I love tea.")
    form(world)
    then = ask(world, "POST", "probe", probe).result

    assert (first["found"], first["negative_cached"], first["search_exhaustive"]) == (False, False, True)
    assert (again["found"], again["negative_cached"]) == (False, True)
    assert (then["found"], then["negative_cached"]) == (True, False)


# --- 7


def everything(world: World) -> str:
    """All that the stores hold, as text."""
    table: Any = world.table
    assert isinstance(table, MemoryTable)
    return repr(vars(table)) + repr(vars(world.objects))


def test_07_deletion_leaves_no_copy(world: World) -> None:
    """Evidence, claims, transcripts, recalls, their history: after forgetting, the word is in no row and no object."""
    say(world, f"I live in {SECRET.title()}. My cat is called {SECRET}.")
    form(world)
    for path, body in (
        ("recall", {"query": "Where does Alice live?"}),
        ("recall_structured", {"query": "What is Alice's cat called?"}),
        ("recall_structured", {"query": "Where does Alice live?", "budget": {"max_tokens": 2000}}),
        ("probe", {"query": SECRET}),
        ("probe", {"query": f"no {SECRET} at all"}),
    ):
        ask(world, "POST", path, body)
    assert SECRET in everything(world).lower()
    state = world.services.spaces.load("demo")
    entities = [
        each
        for kind in ("concept", "evidence", "assertion", "proposition", "activity")
        for each in state.ids(kind)
    ]
    asked = [each["_id"] for each in ask(world, "GET", "conversations", query="collection=recall").result]

    report = ask(world, "POST", "memory/forget", {"entities": entities[:100], "conversations": [1]}).result

    assert report["deleted_evidence"] >= 1
    for number in asked:
        gone = ask(world, "GET", f"conversations/{number}", query="collection=recall")
        assert gone.status == 404, number
    assert SECRET not in everything(world).lower()


def test_07_a_deleted_space_is_gone_from_every_store(world: World) -> None:
    """Tokens, settings, transcripts, log and objects."""
    say(world, f"My cat is called {SECRET}. " + "word " * 20_000)
    form(world)
    value = world.space_token(name=SECRET)
    receipt = world.ask(
        "POST", "/admin/demo/delete_space", {"space_id": "demo"}, token=world.admin_token()
    ).result

    assert receipt["found"] == []
    assert SECRET not in everything(world).lower()
    assert ask(world, "GET", "info", token=value).status == 401


# --- 8


@pytest.mark.parametrize("path", ["info", "status", "formation_status", "memory_status"])
def test_08_looking_never_scans(world: World, path: str) -> None:
    """As many reads of the table with three hundred conversations and their elements as with three."""
    table = FailingTable(world.table)
    world.table = table
    world.use(KEYED)
    costs = []
    for more in (3, 297):
        for n in range(more):
            say(world, f"I love tea number {n}.")
        for _ in range(40):
            form(world)
        world.use(KEYED)
        ask(world, "GET", path)  # a cold start loads the space
        before = table.reads
        assert ask(world, "GET", path).status == 200
        costs.append(table.reads - before)

    assert costs[0] == costs[1] <= 12


def test_08_a_tick_wakes_only_what_is_due(world: World) -> None:
    """Cold spaces with nothing to do are not opened: the sweep reads the due list alone."""
    for n in range(30):
        world.make_space(f"cold_{n}")
    say(world, "I love tea.")
    world.clock.advance(120_000)
    table = FailingTable(world.table)
    world.table = table
    world.use(KEYED)

    assert world.services.formation.sweep() == ["demo"]
    assert world.services.maintenance.sweep() == []
    assert table.reads <= 4


# --- 9


def test_09_rows_of_another_release_are_read(world: World) -> None:
    """With members that were not written then, and with some that are not known yet."""
    say(world, "I love tea.", context={"source": "thread"})
    form(world)
    pk, sk = space_pk("demo"), conversation_sk("formation", 1)
    row = world.table.get(pk, sk)
    assert row is not None
    needed = ("status", "user", "created", "updated", "instance", "nonce", "body")
    older = {name: row[name] for name in needed if name in row}
    world.table.transact([Put(pk, sk, {**older, "novel": "of a newer release"}, When(present=True))])
    world.use(KEYED)

    found = conversation(world, 1)
    assert (found["status"], found["messages"][0]["role"]) == ("completed", "user")
    assert ask(world, "GET", "info").status == 200
    assert ask(world, "POST", "recall", {"query": "Who loves tea?"}).status == 200


# --- 10


def test_10_a_bad_timestamp_is_told() -> None:
    """Never replaced in silence (the clients' tests have every kind)."""
    world = World().make_space()

    assert say(world, "I love tea.", timestamp="soon")["warnings"]


def test_10_context_as_text_limit_of_nothing_markdown_and_envelopes(world: World) -> None:
    """Each once broke a client: all are taken, a recall follows Accept, and an error has one shape."""
    say(world, "I love tea.", context='{"topic": "tea"}')
    assert len(ask(world, "GET", "conversations", query="limit=0").result) == 1
    plain = ask(world, "POST", "recall", QUESTION, headers={"accept": "text/markdown"})
    error = ask(world, "POST", "recall", {"query": ""}, headers={"accept": "text/markdown"})

    assert plain.headers["content-type"] == "text/markdown; charset=utf-8"
    assert not plain.body.startswith(b"{")
    assert set(error.json) == {"error"}
    assert isinstance(error.json["error"]["message"], str)
    assert not any(
        mark in error.json["error"]["message"] for mark in ("Struct", "Traceback", "core.", "\\n", "Some(")
    )


def test_10_a_nameless_lookup_keeps_the_name(world: World) -> None:
    """Also when formation looks its counterparty up."""
    ask(world, "POST", "get_or_init_user", {"user": "u-1", "name": "Ada"})
    ask(world, "POST", "get_or_init_user", {"user": "u-1"})
    talk = {"messages": [{"role": "user", "content": "I love tea."}], "context": {"counterparty": "u-1"}}
    ask(world, "POST", "formation", talk)
    form(world)

    assert ask(world, "POST", "get_or_init_user", {"user": "u-1"}).result["name"] == "Ada"


def test_10_an_empty_run_wipes_no_history(world: World) -> None:
    """A model that says nothing leaves the submitted input where it is, and no stale reason behind a success."""
    model = thinking(world, ScriptedModel([ModelFault("unavailable", "no")], last=says("")))
    say(world, "I love tea.")
    for _ in range(60):
        form(world)
        world.clock.advance(60_000)
    found = conversation(world, 1)

    assert model.asked
    assert json.loads(found["messages"][0]["content"])["messages"][0]["content"] == "I love tea."
    assert found["status"] == "completed"
    assert "failed_reason" not in found


# --- also


def test_also_an_idle_space_is_maintained_by_the_clock(world: World) -> None:
    """A day after it last formed something; a space that never did is never due."""
    world.make_space("empty")
    say(world, "I love tea.")
    form(world)
    assert world.services.maintenance.sweep() == []
    world.clock.advance(DAY_MS + 1)

    assert world.services.maintenance.sweep() == ["demo"]


def test_also_guests_make_nothing_grow(world: World) -> None:
    """Probes and recalls of anonymous readers of a public space leave no row and no object."""
    say(world, "I love tea.")
    form(world)
    world.make_public()
    before = everything(world)
    for n in range(20):
        assert ask(world, "POST", "probe", {"query": f"nothing {n}"}, token=None).status == 200
        assert ask(world, "POST", "recall", {"query": f"nothing {n}"}, token=None).status == 200
        assert ask(world, "POST", "execute_kip_readonly", "DESCRIBE PRIMER", token=None).status == 200

    assert len(everything(world)) - len(before) < 500  # counts, and no text


def test_also_an_answer_comes_before_anybody_gives_up(world: World) -> None:
    """Within what the gateway waits, with what there is; who can wait longer is answered later instead."""
    say(world, "I love tea.")
    form(world)

    def slow(_: Any) -> Any:
        world.clock.advance(20_000)
        return calls("search_memory", {"query": "tea"})

    thinking(world, ScriptedModel([slow] * 50))
    began = world.clock.time
    told = ask(world, "POST", "recall", QUESTION).result

    assert DEFAULT_DEADLINE_MS < 30_000
    assert told["failed_reason"]
    assert world.clock.time - began <= 60_000
    later = ask(world, "POST", "recall", QUESTION, headers={"prefer": "respond-async"})
    assert later.status == 202
