"""The protocol over one POST: versions, headers, batches, errors, and who may come from where."""

import json
from typing import Any

import mcp_types
import msgspec
import pytest

from functions.endpoints import ENDPOINTS, function_for
from functions.mcp import brain, facts, protocol
from functions.mcp.handler import TOOLBOX
from functions.mcp.protocol import GREETING_VERSIONS, VERSIONS, Server
from functions.mcp.rpc import Message, RpcError
from functions.mcp.toolbox import Toolbox
from tests.functions.world import KEYED, World
from tests.mcp.world import META, STATELESS, Mcp, Told, client

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = {"name": "anda_brain_get_space_info"}


def error_of(answer: Any) -> tuple[int, int, Any]:
    """Status, error number and id; the body must be a JSON-RPC error."""
    told = mcp_types.JSONRPCError.model_validate(answer.json)
    return answer.status, told.error.code, told.id


# --- greeting


@pytest.mark.parametrize("version", GREETING_VERSIONS)
def test_a_client_is_greeted_in_its_version(mcp: Mcp, version: str) -> None:
    """The version asked for comes back, with the tools capability, our name and instructions."""
    mcp.version = None
    told = mcp.request(
        "initialize",
        {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    )

    assert told["protocolVersion"] == version
    assert set(told["capabilities"]) == {"tools"}
    assert told["serverInfo"]["name"] == "noema"
    assert "anda_brain_recall_memory" in told["instructions"]


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "1999-01-01", "", "zzz"])
def test_another_version_is_answered_with_the_newest_that_greets(mcp: Mcp, version: str) -> None:
    """The client decides whether it can go on."""
    told = mcp.post(
        {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": version}}
    )

    assert told.json["result"]["protocolVersion"] == GREETING_VERSIONS[-1]
    assert told.json["id"] == "a"


def test_a_greeting_without_a_version_is_invalid(mcp: Mcp) -> None:
    """ProtocolVersion is required."""
    for params in ({}, {"protocolVersion": 7}):
        with pytest.raises(Told) as told:
            mcp.request("initialize", params)
        assert told.value.number == -32602


def test_discovery_needs_no_greeting(mcp: Mcp) -> None:
    """2026-07-28: server/discover names every version; the result bears our name, its type and how long it holds."""
    mcp.version = STATELESS

    told = mcp.request("server/discover")

    assert told["supportedVersions"] == list(VERSIONS)
    assert told["resultType"] == "complete"
    assert told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "noema"
    assert (told["cacheScope"], told["ttlMs"] > 0) == ("public", True)


@pytest.mark.parametrize("version", [*VERSIONS, None])
def test_tools_are_listed_and_called_in_every_version(mcp: Mcp, version: str | None) -> None:
    """No request depends on another one; a request without a version is taken for one of 2025-03-26."""
    mcp.version = version

    names = [tool["name"] for tool in mcp.request("tools/list")["tools"]]
    info = mcp.ok("anda_brain_get_space_info")

    assert names == [tool["name"] for tool in TOOLBOX.listed]
    assert info["owner"] == "alice"


def test_ping_belongs_to_versions_that_greet(mcp: Mcp) -> None:
    """It is answered with nothing until 2025-11-25, and unknown in 2026-07-28; discovery is the other way round."""
    assert mcp.request("ping") == {}
    assert error_of(mcp.send("server/discover")) == (200, -32601, 1)
    mcp.version = STATELESS
    assert error_of(mcp.send("ping")) == (404, -32601, 1)
    assert error_of(mcp.send("initialize", {"protocolVersion": STATELESS})) == (404, -32601, 1)


# --- what 2026-07-28 asks of a request


def stateless(mcp: Mcp, message: dict[str, Any], **headers: str | None) -> Any:
    given = {"mcp_protocol_version": STATELESS, "mcp_method": message["method"], **headers}
    return mcp.post(message, **{name: value for name, value in given.items() if value is not None})


def called(**meta: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CALL, "_meta": {**META, **meta}}}


def test_headers_must_repeat_the_body(mcp: Mcp) -> None:
    """A header that is missing or says something else is -32020; Mcp-Name may be spelt in base64."""
    name = CALL["name"]
    good = stateless(mcp, called(), mcp_name=name)
    coded = stateless(mcp, called(), mcp_name="=?base64?YW5kYV9icmFpbl9nZXRfc3BhY2VfaW5mbw==?=")

    assert (good.status, coded.status) == (200, 200)
    for headers in (
        {"mcp_name": None},
        {"mcp_name": "memory_search"},
        {"mcp_name": "=?base64?!?="},
        {"mcp_name": name, "mcp_method": "tools/list"},
        {"mcp_name": name, "mcp_method": None},
        {"mcp_name": name, "mcp_protocol_version": None},
        {"mcp_name": name, "mcp_protocol_version": "2025-11-25"},
        {"mcp_name": name, "mcp_method": "tools/call,tools/call"},
    ):
        assert error_of(stateless(mcp, called(), **headers)) == (400, -32020, 1), headers


def test_meta_must_say_who_asks_and_in_which_version(mcp: Mcp) -> None:
    """A missing member of _meta, or one of the wrong type, is an invalid parameter."""
    key = "io.modelcontextprotocol/protocolVersion"
    capabilities = "io.modelcontextprotocol/clientCapabilities"
    for meta in (None, 7, {}, {key: STATELESS}, {capabilities: {}}, {key: STATELESS, capabilities: 1}):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        assert error_of(stateless(mcp, message)) == (400, -32602, 1), meta


@pytest.mark.parametrize("version", ["2027-01-01", "2024-11-05", "x", " 2025-11-25", "2025-11-25,2025-11-25"])
def test_a_version_that_is_not_spoken_is_told_with_those_that_are(mcp: Mcp, version: str) -> None:
    """-32022 with `supported` and `requested`, status 400, in every era and for notifications too."""
    answer = mcp.post(PING, mcp_protocol_version=version)

    assert error_of(answer) == (400, -32022, 1)
    assert answer.json["error"]["data"] == {"supported": list(VERSIONS), "requested": version}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert mcp.post(note, mcp_protocol_version=version).status == 400


# --- messages that are none


@pytest.mark.parametrize(
    "body", [b"", b"{", b"nonsense", b"\xff", b'{"a":NaN}', b'{"a":1,"a":2}', b"[" * 10_000]
)
def test_what_is_not_json_is_a_parse_error(mcp: Mcp, body: bytes) -> None:
    """-32700 with a null id and status 400."""
    assert error_of(mcp.post(body)) == (400, -32700, None)


BAD: list[tuple[Any, Any]] = [
    (None, None), (7, None), ("ping", None), ({}, None), ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 1),
    ({"id": 1, "method": "ping"}, 1), ({"jsonrpc": "2.0", "id": 1}, 1), ({"jsonrpc": "2.0", "id": 1, "method": 7}, 1),
    ({"jsonrpc": "2.0", "id": 1, "method": ""}, 1), ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
    ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None), ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
    ({"jsonrpc": "2.0", "id": [], "method": "ping"}, None), ({"jsonrpc": "2.0", "id": "q", "method": "ping", "params": []}, "q"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message_id"), BAD)
def test_what_is_no_message_is_an_invalid_request(mcp: Mcp, body: Any, message_id: Any) -> None:
    """-32600, with the id where one can be read."""
    answer = mcp.post(json.dumps(body).encode())

    assert error_of(answer) == (200 if message_id is not None else 400, -32600, message_id)


def test_an_unknown_method_is_told(mcp: Mcp) -> None:
    """-32601: what other servers have (resources, prompts, sampling), this one has not."""
    for method in ("resources/list", "prompts/list", "tools/Call", "rpc.discover", "logging/setLevel"):
        assert error_of(mcp.send(method)) == (200, -32601, 1)


def test_notifications_and_responses_are_taken_without_a_word(mcp: Mcp) -> None:
    """202 and an empty body; a notification changes nothing, not even one that names a tool."""
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "memory_add", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ):
        answer = mcp.post(message)
        assert (answer.status, answer.body) == (202, b"")
    response = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert mcp.post(response, mcp_protocol_version=STATELESS).status == 400


# --- batches


def test_batches_are_of_one_version_only(mcp: Mcp) -> None:
    """2025-03-26 (also where no version is named) has them; the next version took them away."""
    batch = [
        PING,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {**PING, "id": 2, "method": "no"},
    ]
    for headers in ({}, {"mcp_protocol_version": "2025-03-26"}):
        answers = mcp.post(batch, **headers).json
        assert [each["id"] for each in answers] == [1, 2]
        assert (answers[0]["result"], answers[1]["error"]["code"]) == ({}, -32601)
    for version in VERSIONS[1:]:
        assert error_of(mcp.post(batch, mcp_protocol_version=version)) == (400, -32600, None)


def test_a_batch_has_bounds(mcp: Mcp) -> None:
    """Not empty, not over 20, no greeting in it; notifications alone are a 202; a bad entry fails alone."""
    greeting = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-03-26"},
    }
    for batch in ([], [PING] * 21, [greeting, PING]):
        assert error_of(mcp.post(batch)) == (400, -32600, None)
    assert mcp.post([{"jsonrpc": "2.0", "method": "notifications/initialized"}]).status == 202
    answers = mcp.post([PING, 7, [PING]]).json
    assert [each.get("error", {}).get("code") for each in answers] == [None, -32600, -32600]


# --- HTTP


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
def test_other_methods_are_a_405(mcp: Mcp, method: str) -> None:
    """There is no stream to open and no session to end; the answer names POST."""
    answer = mcp.world.ask(method, "/mcp/demo", token=mcp.token)

    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert function_for(method, "/mcp/demo") == "reads"
    assert ENDPOINTS["mcp"].function == "mcp"


def test_json_goes_in_and_out(mcp: Mcp) -> None:
    """Another Content-Type is a 400 (a page may send text and forms unasked); an Accept without JSON is a 406."""
    raw = json.dumps(PING).encode()
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/cbor",
    ):
        assert error_of(mcp.post(raw, content_type=kind)) == (400, -32600, None)
    assert mcp.post(raw, content_type="application/json; charset=utf-8").status == 200
    for accept in ("application/json, text/event-stream", "*/*", "application/*"):
        answer = mcp.post(raw, accept=accept)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert mcp.post(raw, accept="text/event-stream").status == 406


def test_without_a_credential_the_answer_is_a_challenge(mcp: Mcp) -> None:
    """401 with WWW-Authenticate, and a body that both JSON-RPC and our REST clients can read."""
    for token in (None, "nonsense", mcp.world.token(aud="other")):
        mcp.token = token
        answer = mcp.post(PING)
        assert error_of(answer) == (401, -32600, None)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json["error"]["data"]["code"] == "Unauthenticated"


def test_a_space_that_is_not_there_is_told_to_who_may_know() -> None:
    """404 for a credential of that space; a challenge for everybody else."""
    world = World()
    mcp = Mcp(world, token=world.token(aud="nowhere"), space="nowhere")

    assert error_of(mcp.post(PING))[:2] == (404, -32602)
    mcp.version = "2025-11-25"
    with pytest.raises(Told) as told:
        mcp.call("anda_brain_get_space_info")
    assert told.value.data["code"] == "NotFoundOrNotVisible"


ALLOWED = msgspec.structs.replace(
    KEYED, mcp_hosts=("api.example.org", "localhost:8042"), mcp_origins=("https://app.example.org",)
)


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("api.example.org", None, 200),
        ("API.Example.org:443", None, 200),
        ("localhost:8042", None, 200),
        ("localhost:9", None, 403),
        ("evil.example", None, 403),
        ("api.example.org.evil.example", None, 403),
        ("", None, 403),
        ("127.0.0.1", None, 403),
        ("api.example.org", "https://app.example.org", 200),
        ("api.example.org", "https://evil.example", 403),
        ("api.example.org", "null", 403),
        ("api.example.org", "https://api.example.org", 403),
    ],
)
def test_hosts_and_origins_are_those_listed(host: str, origin: str | None, status: int) -> None:
    """A name that was rebound to our address, and a page that nobody listed, get a 403, valid token or not."""
    mcp = client(settings=ALLOWED)
    headers = {"host": host} | ({"origin": origin} if origin else {})

    answer = mcp.post(PING, **headers)

    assert answer.status == status
    if status == 403:
        assert error_of(answer)[1] == -32600
        assert "MCP_HTTP_ALLOWED" in answer.json["error"]["data"]["hint"]


def test_without_a_list_only_loopback_is_a_host() -> None:
    """The default of a machine of one's own; `*` switches the checks off."""
    none = client(settings=msgspec.structs.replace(KEYED, mcp_hosts=()))
    for host in ("127.0.0.1:8042", "localhost", "[::1]:8042"):
        assert none.post(PING, host=host).status == 200
    assert none.post(PING, host="10.0.0.1").status == 403
    any_name = client(settings=msgspec.structs.replace(KEYED, mcp_hosts=("*",), mcp_origins=("*",)))
    assert any_name.post(PING, host="whatever", origin="https://evil.example").status == 200


# --- pages of tools


def test_the_list_is_paged() -> None:
    """Every tool once over all pages; a cursor that the list did not give is an invalid parameter."""
    server = Server(TOOLBOX.listed, lambda *_: {}, page=3)
    seen: list[str] = []
    params: dict[str, Any] = {}
    while True:
        page = server.answer(Message("tools/list", params, 1), "2025-11-25")
        assert len(page["tools"]) <= 3
        seen += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert seen == [tool["name"] for tool in TOOLBOX.listed]
    for cursor in (
        "",
        "x",
        7,
        [],
        "dG9vbHM6MA",
        "dG9vbHM6OTk",
        "dG9vbHM6LTE",
        "tools:3",
        "é" * 9,
        "A" * 9999,
    ):
        with pytest.raises(RpcError) as told:
            server.answer(Message("tools/list", {"cursor": cursor}, 1), "2025-11-25")
        assert told.value.code == -32602


# --- calling


def test_a_call_must_be_one(mcp: Mcp) -> None:
    """No name, a name of another type, and arguments that are no object are invalid parameters."""
    for params in ({}, {"name": 7}, {"name": None}, {**CALL, "arguments": []}, {**CALL, "arguments": "x"}):
        with pytest.raises(Told) as told:
            mcp.request("tools/call", params)
        assert told.value.number == -32602


def test_an_unknown_tool_is_told_as_such(mcp: Mcp) -> None:
    """-32602 with the name, and where to look."""
    listed = {tool["name"] for tool in TOOLBOX.listed}
    for name in ("nope", "anda_brain_wiki_search", "x" * 5000):
        assert name not in listed
        with pytest.raises(Told) as told:
            mcp.request("tools/call", {"name": name, "arguments": {}})
        assert told.value.number == -32602
        assert told.value.message.startswith(f"Unknown tool: {name[:100]}")


def test_a_tool_of_the_contract_that_is_not_there_says_so(mcp: Mcp) -> None:
    """It is not in the list, and calling it tells that the deployment does not have it yet."""
    box = Toolbox(facts.TOOLS, ["anda_brain_run_maintenance"])
    turn: Any = None  # an unknown tool is refused before anything is looked at

    with pytest.raises(RpcError) as told:
        box.call(turn, "anda_brain_run_maintenance", {})

    assert told.value.code == -32602
    assert "does not have it yet" in told.value.message


SCOPES = {"read": ("read", "*"), "write": ("write", "*"), "public": ("read", "*")}


@pytest.mark.parametrize("scope", ["read", "write", "*"])
def test_each_tool_asks_for_its_scope(scope: str) -> None:
    """A token of another scope is told which one is needed, by JSON-RPC, and no tool runs."""
    mcp = client(scope=scope)
    for tool in (*brain.TOOLS, *facts.TOOLS):
        answer = mcp.send("tools/call", {"name": tool.definition.name, "arguments": {}})
        error = answer.json.get("error", {})
        if scope in SCOPES[tool.definition.admit]:
            assert error.get("data", {}).get("code") != "NotAuthorized", tool.definition.name
        else:
            assert error_of(answer) == (200, -32600, 1)
            assert error["data"]["details"]["needed"] in SCOPES[tool.definition.admit]


def test_of_a_public_space_anybody_may_read() -> None:
    """Without a token the public tools answer; another one is a challenge, in both eras."""
    world = World(KEYED).make_space().make_public()
    mcp = Mcp(world)
    for version in ("2025-11-25", STATELESS):
        mcp.version = version
        assert mcp.request("tools/list")["tools"]
        assert mcp.ok("anda_brain_get_space_info")["public"] is True
        for name in ("anda_brain_remember_conversation", "anda_brain_list_conversations", "memory_add"):
            answer = mcp.send("tools/call", {"name": name, "arguments": {}})
            assert error_of(answer) == (401, -32600, 1)
            assert "www-authenticate" in answer.headers


def test_a_token_with_labels_may_not_speak_mcp(mcp: Mcp) -> None:
    """No element of memory bears labels, so such a token may read none."""
    mcp.token = mcp.world.space_token(labels=["hr"])

    assert error_of(mcp.post(PING))[:2] == (403, -32600)


def test_what_is_written_bears_the_callers_name_and_channel(mcp: Mcp) -> None:
    """The conversation's row says who submitted it, and that it came by MCP."""
    seen = []
    submit = mcp.world.services.conversations.submit
    mcp.world.services.conversations.submit = lambda caller, *a, **k: (
        seen.append(caller),
        submit(caller, *a, **k),
    )[1]

    mcp.ok("anda_brain_remember_conversation", messages=[{"role": "user", "content": "I live in Porto."}])

    assert [(each.subject, each.channel) for each in seen] == [("alice", "mcp")]


def test_a_bug_is_told_by_its_request_id_alone(mcp: Mcp) -> None:
    """-32603 with the request's own id; the exception's words stay here. Statuses are those of the era."""

    def broken(space: str) -> None:
        raise RuntimeError(f"secret of {space}")

    mcp.world.services.admin.info = broken
    for version, status in (("2025-11-25", 200), (STATELESS, 500)):
        mcp.version = version
        answer = mcp.send("tools/call", CALL)
        assert error_of(answer) == (status, -32603, 1)
        assert b"secret" not in answer.body
        assert answer.json["error"]["data"]["details"]["request_id"] == "gateway-request-1"


def test_the_instructions_name_tools_that_exist() -> None:
    """What the model is told to call is there."""
    listed = {tool["name"] for tool in TOOLBOX.listed}
    words = {word.strip(".,:;") for word in protocol.INSTRUCTIONS.split()}
    named = {word for word in words if word.startswith(("anda_brain_", "memory_"))}

    assert named
    assert named <= listed
