"""Anda's nine MCP tools (contract §8): names, parameters, hints, who may, answers, errors; then by the official client.

Every answer that comes through `Mcp.call` has been held against MCP's own types and the tool's output schema.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from functions.mcp import brain
from functions.mcp.handler import TOOLBOX
from tests.e2e.local import Service, serving
from tests.functions.world import KEYED, OTHER_KEY, World
from tests.mcp.world import STATELESS, Mcp, Told, client, text_of

TALK = {"messages": [{"role": "user", "name": "Alice", "content": "I love green tea."}]}
ASKED = {"query": "What does Alice love?"}
TIMEOUT_S = 60


class Nth(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as the contract names it. `public`: whether anybody may call it on a public space."""

    scope: str
    good: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    public: bool = False
    destroys: bool = False
    bad: tuple[dict[str, Any], ...] = ()


NINE: dict[str, Nth] = {
    "remember_conversation": Nth(
        scope="write",
        good=TALK,
        required=("messages",),
        optional=("context", "timestamp"),
        bad=(
            {},
            {"messages": []},
            {"messages": [{"role": "user", "content": " "}]},
            {**TALK, "context": "{broken"},
        ),
    ),
    "recall_memory": Nth(
        scope="read",
        good=ASKED,
        required=("query",),
        optional=("context", "budget"),
        public=True,
        bad=(
            {},
            {"query": "\t"},
            {"query": 7},
            {"query": "x", "budget": {"max_tokens": 0}},
            {"query": "x", "budget": 9},
        ),
    ),
    "run_maintenance": Nth(
        scope="write",
        good={"scope": "quick"},
        optional=("trigger", "scope", "timestamp", "parameters"),
        destroys=True,
        bad=({"scope": "all"}, {"trigger": "whim"}, {"parameters": {"orphan_max_count": 10_001}}),
    ),
    "get_space_info": Nth(scope="read", public=True),
    "get_formation_status": Nth(scope="read"),
    "execute_kip_readonly": Nth(
        scope="read",
        good={"command": "DESCRIBE PROTOCOL"},
        optional=("command", "commands", "parameters", "dry_run"),
        public=True,
        bad=(
            {},
            {"command": "A", "commands": ["B"]},
            {"commands": []},
            {"command": "A", "parameters": "[1]"},
            {"command": 1},
        ),
    ),
    "get_or_init_user": Nth(
        scope="write",
        good={"user": "carol", "name": "Carol"},
        required=("user",),
        optional=("name",),
        bad=({}, {"user": ""}, {"user": "a\u0000b"}, {"user": "a", "name": 1}),
    ),
    "list_conversations": Nth(
        scope="read",
        good={"collection": "formation", "limit": 0},
        optional=("collection", "cursor", "limit"),
        bad=({"collection": "users"}, {"limit": "many"}, {"cursor": "AAAA"}, {"cursor": "\u2603"}),
    ),
    "get_conversation": Nth(
        scope="read",
        good={"conversation_id": 1},
        required=("conversation_id",),
        optional=("collection", "delta", "messages_offset", "artifacts_offset"),
        bad=(
            {},
            {"conversation_id": 0},
            {"conversation_id": 9},
            {"conversation_id": 1, "artifacts_offset": -1},
        ),
    ),
}
NAMES = list(NINE)
LISTED = {tool["name"]: tool for tool in TOOLBOX.listed}


@pytest.fixture(name="mcp")
def _mcp() -> Mcp:
    made = client()
    made.ok("anda_brain_remember_conversation", **TALK)
    return made


def ready(mcp: Mcp, name: str) -> None:
    """Let a run of maintenance that waits be over, as only one may."""
    if name == "run_maintenance":
        mcp.world.services.maintenance.run(mcp.space, mcp.world.clock.now() + 60_000)


# --- what is listed


def test_the_nine_are_there_and_no_other_of_that_prefix() -> None:
    """By name; outcomes and observers are never tools."""
    assert [name for name in LISTED if name.startswith("anda_brain_")] == [
        f"anda_brain_{name}" for name in NAMES
    ]


@pytest.mark.parametrize("name", NAMES)
def test_each_takes_what_the_contract_says(name: str) -> None:
    """Parameters, which are required, hints; no combinator anywhere (§8), and a cursor where an answer may be long."""
    tool, row = LISTED[f"anda_brain_{name}"], NINE[name]
    schema, hints = tool["inputSchema"], tool["annotations"]

    assert set(schema["properties"]) - {"cursor"} == {*row.required, *row.optional} - {"cursor"}
    assert tuple(schema.get("required", ())) == row.required
    assert (hints["readOnlyHint"], hints["destructiveHint"]) == (row.scope == "read", row.destroys)
    for part in (schema, tool.get("outputSchema", {})):
        for word in ("oneOf", "anyOf", "allOf", "$ref", "not"):
            assert f'"{word}"' not in json.dumps(part)
    Draft202012Validator(schema).validate(row.good)


# --- who may


@pytest.mark.parametrize("public", [False, True], ids=["private", "public"])
@pytest.mark.parametrize("name", NAMES)
def test_who_may_call(mcp: Mcp, name: str, public: bool) -> None:
    """Every credential: the scope decides by JSON-RPC (-32600), what is no credential by 401 and a challenge too."""
    world, row = mcp.world, NINE[name]
    world.make_space("other")
    if public:
        world.make_public()
    open_to_all = public and row.public
    shown = {
        **{f"cwt {scope}": world.token(scope=scope) for scope in ("read", "write", "*")},
        **{
            f"st {scope}": world.space_token(name=f"st {scope}", scope=scope)
            for scope in ("read", "write", "*")
        },
    }
    for who, token in shown.items():
        mcp.token = token
        ready(mcp, name)
        if open_to_all or who.split()[1] in (row.scope, "*"):
            assert not mcp.call(f"anda_brain_{name}", **row.good)["isError"], who
            continue
        with pytest.raises(Told) as told:
            mcp.call(f"anda_brain_{name}", **row.good)
        assert (told.value.number, told.value.data["code"]) == (-32600, "NotAuthorized"), who

    strangers = {
        "nobody": None,
        "elsewhere": world.token(aud="other"),
        "elsewhere's": world.space_token("other", scope="*"),
        "expired": world.token(now_s=1),
        "another key": world.token(key=OTHER_KEY),
        "garbage": "ST" + "x" * 43,
    }
    for who, token in strangers.items():
        mcp.token = token
        answer = mcp.send("tools/call", {"name": f"anda_brain_{name}", "arguments": row.good})
        if who == "nobody" and open_to_all:
            assert not answer.json["result"]["isError"]
            continue
        assert answer.status == 401, who
        assert answer.headers["www-authenticate"] == 'Bearer realm="noema"'
        assert (answer.json["error"]["code"], answer.json["error"]["message"]) == (
            -32600,
            "authentication failed",
        )

    mcp.token = world.space_token(name="labelled", labels=["hr"])
    assert mcp.send("tools/call", {"name": f"anda_brain_{name}", "arguments": row.good}).status == 403


# --- answers and errors


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25", STATELESS])
@pytest.mark.parametrize("name", NAMES)
def test_each_answers_in_every_version(mcp: Mcp, name: str, version: str) -> None:
    """Text for a model, the same as an object for a program, and no failure."""
    mcp.version = version

    result = mcp.call(f"anda_brain_{name}", **NINE[name].good)

    assert not result["isError"]
    assert text_of(result)
    assert isinstance(result["structuredContent"], dict)


@pytest.mark.parametrize("name", NAMES)
def test_each_passes_over_what_it_does_not_know(mcp: Mcp, name: str) -> None:
    """A newer client's argument changes nothing."""
    assert not mcp.call(f"anda_brain_{name}", **NINE[name].good, novel=[1])["isError"]


FAULTS = [(name, bad) for name in NAMES for bad in NINE[name].bad]


@pytest.mark.parametrize(("name", "bad"), FAULTS, ids=lambda each: str(each)[:80])
def test_a_callers_mistake_is_an_invalid_parameter(mcp: Mcp, name: str, bad: dict[str, Any]) -> None:
    """By JSON-RPC, never a result; it says what was wrong in plain words, and stores nothing."""
    before = mcp.ok("anda_brain_get_space_info")

    with pytest.raises(Told) as told:
        mcp.call(f"anda_brain_{name}", **bad)

    assert told.value.number == -32602
    assert "Error(" not in told.value.message
    assert mcp.ok("anda_brain_get_space_info") == before


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "cursor" in LISTED[f"anda_brain_{name}"]["inputSchema"]["properties"]]
)
def test_a_cursor_that_was_not_given_here_is_refused(mcp: Mcp, name: str) -> None:
    """Made up, another tool's, or of another call."""
    for cursor in ("AAAA", "x" * 5000, "e30", "\u2603"):
        with pytest.raises(Told) as told:
            mcp.call(f"anda_brain_{name}", **{**NINE[name].good, "cursor": cursor})
        assert told.value.number == -32602, cursor


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_of_ours_is_an_internal_error(mcp: Mcp, name: str) -> None:
    """And nothing else is: the text names no exception and no file."""
    for service in ("admin", "recall", "conversations", "users", "maintenance", "kip", "echoes"):
        setattr(mcp.world.services, service, None)

    with pytest.raises(Told) as told:
        mcp.call(f"anda_brain_{name}", **NINE[name].good)

    assert told.value.number == -32603
    assert "NoneType" not in told.value.message


def test_a_busy_space_is_an_invalid_request(mcp: Mcp) -> None:
    """One run of maintenance at a time (§6.1)."""
    mcp.ok("anda_brain_run_maintenance")
    with pytest.raises(Told) as told:
        mcp.call("anda_brain_run_maintenance", scope="full")

    assert (told.value.number, told.value.data["code"]) == (-32600, "Busy")
    assert told.value.data["details"]["reason"] == "maintenance_busy"


def test_the_contracts_other_tools_are_refused_as_not_there(mcp: Mcp) -> None:
    """By name, as known; a name that nobody knows is only unknown."""
    assert len(brain.ABSENT) == 10
    for name in (*brain.ABSENT, "anda_brain_outcome", "recall_memory"):
        with pytest.raises(Told) as told:
            mcp.request("tools/call", {"name": name, "arguments": {}})
        assert told.value.number == -32602
        assert ("does not have it yet" in told.value.message) is (name in brain.ABSENT)


def test_what_one_tool_takes_in_the_others_show(mcp: Mcp) -> None:
    """A conversation with parts, a context as JSON text, and a time that is none: listed, read, formed, recalled."""
    talk = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "I play the cello."}]}],
        "context": '{"user": "dora"}',
        "timestamp": "whenever",
    }
    taken = mcp.call("anda_brain_remember_conversation", **talk)
    number = taken["structuredContent"]["conversation"]
    assert "Note: timestamp is not a usable time" in text_of(taken)
    status = mcp.ok("anda_brain_get_formation_status")
    assert (status["conversations"], status["formation_waiting"]) == (2, 2)
    mcp.form()

    listed = mcp.ok("anda_brain_list_conversations", limit=1)
    whole = mcp.ok("anda_brain_get_conversation", conversation_id=number)
    recalled = mcp.ok(
        "anda_brain_recall_memory", query="Which instrument does Dora play?", context={"counterparty": "dora"}
    )
    record = mcp.ok(
        "anda_brain_get_conversation", conversation_id=recalled["conversation"], collection="recall"
    )
    kip = mcp.ok(
        "anda_brain_execute_kip_readonly",
        commands=[{"command": "SEARCH CONCEPT :q LIMIT 3", "parameters": {"q": "dora"}}, "DESCRIBE PROTOCOL"],
    )

    assert [each["_id"] for each in listed["conversations"]] == [number]
    assert whole["status"] == "completed"
    assert "cello" in recalled["content"]
    assert record["label"] == "recall"
    assert [each["status"] for each in kip["results"]] == ["succeeded", "succeeded"]


# --- spaces that come to be by a first request (§8)

CREATING = msgspec.structs.replace(KEYED, mcp_create_tier=2)
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def test_a_first_request_makes_the_space_where_that_is_wanted() -> None:
    """By a CWT that may write, which then owns it, in the size class set; once, and a second request finds it."""
    world = World(CREATING)
    made = Mcp(world, token=world.token(sub="olga", aud="fresh", scope="*"), space="fresh")

    made.request("initialize", HELLO)
    made.ok("anda_brain_remember_conversation", **TALK)

    info = made.ok("anda_brain_get_space_info")
    assert (info["owner"], info["tier"]["tier"], info["public"], info["conversations"]) == (
        "olga",
        2,
        False,
        1,
    )


def test_nobody_else_makes_a_space() -> None:
    """Not by default, not who only reads, not a space token, not for another space, not without keys, not over REST."""

    def head(world: World) -> int:
        return world.ask("GET", "/v1/fresh/info", token=world.token(aud="*")).status

    world = World(CREATING).make_space()
    for token in (
        world.token(aud="fresh", scope="read"),
        world.space_token(scope="*"),
        world.token(aud="demo", scope="*"),
        world.token(aud="fresh", scope="*", key=OTHER_KEY),
        None,
    ):
        assert Mcp(world, token=token, space="fresh").send("initialize", HELLO).status in (401, 404)
        assert head(world) == 404
    assert world.ask("POST", "/v1/fresh/formation", TALK, token=world.token(aud="fresh")).status == 404
    for settings in (
        KEYED,
        msgspec.structs.replace(CREATING, tenant_keys=(), insecure_local=True, mcp_hosts=("*",)),
    ):
        other = World(settings)
        keyed = bool(settings.tenant_keys)
        here = Mcp(other, token=other.token(aud="fresh", scope="*") if keyed else None, space="fresh")
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        assert here.post(hello, host="api.example.org" if keyed else "localhost").status == 404
        assert "fresh" not in repr(vars(other.table))


# --- the official client


@pytest.fixture(name="service", scope="module")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("data"), "--quiet") as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        yield service


async def patiently(agent: Client, tool: str, arguments: dict[str, Any]) -> Any:
    """Call, and call again while a run of maintenance is on."""
    for _ in range(50):
        try:
            return await agent.call_tool(tool, arguments)
        except MCPError as error:
            if error.error.code != -32600:
                raise
            await asyncio.sleep(0.1)
    raise AssertionError("maintenance did not end")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_calls_all_nine(service: Service, mode: str) -> None:
    """It validates each answer against the output schema by itself, and gets each mistake as the error it is."""

    async def story() -> None:
        async with Client(streamable_http_client(f"{service.url}/mcp/demo"), mode=mode) as agent:
            await agent.list_tools()
            for name, row in NINE.items():
                result = await patiently(agent, f"anda_brain_{name}", row.good)
                assert isinstance(result, CallToolResult)
                assert not result.is_error, (name, result.content)
                assert result.structured_content
                for bad in row.bad:
                    with pytest.raises(MCPError) as told:
                        await agent.call_tool(f"anda_brain_{name}", bad)
                    assert told.value.error.code == -32602, (name, bad)

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))
