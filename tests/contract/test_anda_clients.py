"""Clients of the Anda Brain contract with their habits: what they send, and what they need to be able to read.

Each is written from what its public documents say of it, in our own words: the plugin of an agent's shell (fire and
forget, text alone), its predecessor (older spellings), a client of CBOR, a person with curl, one that polls, one that
counts tokens. `test_anda_cli` has the command line.
"""

import json
from typing import Any

import cbor2
import pytest

from tests.contract.anda_world import form
from tests.functions.world import World

SAID = "I moved to Lisbon in May."
ASKED = "Where does Alice live?"


@pytest.fixture
def world() -> World:
    return World().make_space()


# --- the plugin of an agent's shell


class Plugin:
    """Sends every finished exchange, and gives the agent a tool that recalls. It reads `content`, or an error's text."""

    def __init__(
        self, world: World, token: str, defaults: Any = None, *, user_member: str = "counterparty"
    ) -> None:
        self.world, self.token, self.user_member = world, token, user_member
        self.defaults = self.context(defaults)

    def context(self, value: Any) -> dict[str, Any]:
        """What a model gave as context: an object, or its JSON text; blank members are left out."""
        if isinstance(value, str):
            try:
                return self.context(json.loads(value)) if value.strip() else {}
            except ValueError:
                return {}
        found = value if isinstance(value, dict) else {}
        return {name: text.strip() for name, text in found.items() if isinstance(text, str) and text.strip()}

    def post(self, path: str, body: Any) -> dict[str, Any]:
        answer = self.world.ask("POST", path, body, token=self.token, headers={"accept": "application/json"})
        if answer.status != 200:
            return {"error": {"message": f"HTTP {answer.status}: {answer.body.decode()}"}}
        return dict(answer.json)

    def ended(self, *messages: dict[str, Any], agent: str = "main") -> dict[str, Any]:
        """The agent's turn is over: what it and the user said goes to the memory, tools' results do not."""
        kept = []
        for message in messages:
            if message["role"] not in ("user", "assistant"):
                continue
            content = message["content"]
            parts = [content] if isinstance(content, str) else content
            text = "\n".join(part if isinstance(part, str) else part.get("text", "") for part in parts)
            told = {"role": message["role"], "content": text, "timestamp": message.get("timestamp")}
            kept.append({name: value for name, value in told.items() if value is not None})
        body = {
            "messages": kept,
            "context": {**self.defaults, "agent": agent},
            "timestamp": "2026-05-28T20:26:40.000Z",
        }
        return self.post("/v1/demo/formation", body)

    def recall(self, query: str, context: Any = None) -> str:
        told = self.post(
            "/v1/demo/recall", {"query": query, "context": {**self.defaults, **self.context(context)}}
        )
        if "error" in told:
            return f"Error recalling memory: {told['error']['message']}"
        return str(told["result"].get("content", "No relevant memory found."))


def test_the_plugin_remembers_what_was_said_and_recalls_it(world: World) -> None:
    """With the agent in the context, without the tools' results, at the times that the messages bear."""
    plugin = Plugin(world, world.space_token(scope="*"), {"counterparty": " alice ", "topic": ""})
    told = plugin.ended(
        {"role": "user", "content": [{"type": "text", "text": SAID}], "timestamp": 1_779_900_000_000},
        {"role": "toolResult", "content": "42"},
        {"role": "assistant", "content": "Good to know."},
    )
    form(world)

    kept = json.loads(
        world.ask("GET", "/v1/demo/conversations/1", token=world.token()).result["messages"][0]["content"]
    )
    assert told["result"]["conversation"] == 1
    assert kept["context"] == {"counterparty": "alice", "agent": "main"}
    assert [(m["role"], m.get("timestamp")) for m in kept["messages"]] == [
        ("user", 1_779_900_000_000),
        ("assistant", None),
    ]
    for context in (None, "", '{"topic": "moving"}', {"counterparty": "alice"}, "{broken"):
        assert "Lisbon" in plugin.recall("Where does Alice live now? Alice moved.", context)


def test_the_plugin_tells_its_agent_of_errors(world: World) -> None:
    """As text that says what and why, and no memory is made up."""
    plugin = Plugin(world, "ST" + "x" * 43)

    assert plugin.recall(ASKED).startswith("Error recalling memory: HTTP 401: ")
    assert "authentication failed" in plugin.recall(ASKED)
    assert "HTTP 401" in plugin.ended({"role": "user", "content": SAID})["error"]["message"]


def test_two_tokens_of_the_plugin_do_not_mix(world: World) -> None:
    """Scopes are disjoint: one that writes does not recall, and says which scope is missing."""
    writer, reader = (Plugin(world, world.space_token(name=s, scope=s)) for s in ("write", "read"))

    assert "HTTP 403" in writer.recall(ASKED)
    assert "HTTP 403" in reader.ended({"role": "user", "content": SAID})["error"]["message"]
    assert "result" in writer.ended({"role": "user", "content": SAID})
    assert not reader.recall(ASKED).startswith("Error")


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_the_predecessor_spells_the_user_as_user(world: World, levels: int) -> None:
    """`context.user`, as an object, as its JSON text, and as text within text."""
    context: Any = {"user": "bob", "source": "thread 7"}
    for _ in range(levels):
        context = json.dumps(context)
    body = {"messages": [{"role": "user", "content": SAID}], "context": context}

    number = world.ask("POST", "/v1/demo/formation", body, token=world.token()).result["conversation"]

    found = world.ask("GET", f"/v1/demo/conversations/{number}", token=world.token()).result
    kept = json.loads(found["messages"][0]["content"])["context"]
    assert kept == {"counterparty": "bob", "source": "thread 7"}
    assert found["thread"] == "thread 7"
    asked = world.ask("POST", "/v1/demo/recall", {"query": ASKED, "context": context}, token=world.token())
    assert asked.status == 200


@pytest.mark.parametrize("nothing", [None, "", "  ", "null", "{}", '"{}"', '"null"', {}])
def test_no_context_in_all_its_spellings(world: World, nothing: Any) -> None:
    """Each is no context, for remembering and for asking."""
    talk = {"messages": [{"role": "user", "content": SAID}], "context": nothing}
    for path, body in (("formation", talk), ("recall", {"query": ASKED, "context": nothing})):
        answer = world.ask("POST", f"/v1/demo/{path}", body, token=world.token())
        assert answer.status == 200, answer.body


# --- times


@pytest.mark.parametrize(
    "odd",
    [
        "yesterday",
        "2026-13-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "1780000000000",
        -(10**15),
        1e300,
        "28/05/2026",
        "  ",
    ],
)
@pytest.mark.parametrize("where", ["timestamp", "messages[0].timestamp"])
def test_a_time_that_cannot_be_used_is_told(world: World, where: str, odd: Any) -> None:
    """The receipt's time is used, the answer and the record warn, and the original is nowhere turned into a date."""
    message: dict[str, Any] = {"role": "user", "content": SAID}
    body: dict[str, Any] = {"messages": [message]}
    (body if where == "timestamp" else message)["timestamp"] = odd

    told = world.ask("POST", "/v1/demo/formation", body, token=world.token()).result
    form(world)
    kept = world.ask("GET", "/v1/demo/conversations/1", token=world.token()).result

    assert [warning.split(" is not")[0] for warning in told["warnings"]] == [where]
    assert kept["extra"]["warnings"] == told["warnings"]
    assert kept["status"] == "completed"


@pytest.mark.parametrize(
    "good",
    [
        "2026-05-28T20:26:40.000Z",
        "2026-05-28T22:26:40+02:00",
        "2026-05-28T20:26:40Z",
        1_779_999_000_000,
        1.78e12,
        None,
        "",
    ],
)
def test_a_time_that_can_be_used_is_not_warned_of(world: World, good: Any) -> None:
    """RFC 3339 with any offset, milliseconds as a number, and none at all."""
    message = {"role": "user", "content": SAID, "timestamp": good}
    for body in (
        {"messages": [message]},
        {"messages": [{"role": "user", "content": SAID}], "timestamp": good},
    ):
        assert "warnings" not in world.ask("POST", "/v1/demo/formation", body, token=world.token()).result
    begun = world.ask("POST", "/v1/demo/maintenance", {"timestamp": good}, token=world.token()).result
    assert "warnings" not in begun


def test_maintenance_warns_of_a_time_too(world: World) -> None:
    """It goes by its own clock, and says so."""
    told = world.ask("POST", "/v1/demo/maintenance", {"timestamp": "soon"}, token=world.token()).result

    assert told["warnings"] == ["timestamp is not a usable time; the run goes by its own clock"]


# --- other clients


def test_a_client_of_cbor(world: World) -> None:
    """Everything in CBOR, lengths left open and keys in any order; errors come as JSON all the same."""
    headers = {"content-type": "application/cbor", "accept": "application/cbor"}
    message = b"\xbf\x67content\x7f\x67I moved\x72 to Lisbon in May.\xff\x64role\x64user\xff"
    open_ended = b"\xbf\x68messages\x9f" + message + b"\xff\xff"
    assert cbor2.loads(open_ended) == {"messages": [{"content": SAID, "role": "user"}]}

    taken = world.ask("POST", "/v1/demo/formation", open_ended, token=world.token(), headers=headers)
    form(world)
    said = world.ask(
        "POST",
        "/v1/demo/recall_structured",
        cbor2.dumps({"query": "Who moved to Lisbon?"}),
        token=world.token(),
        headers=headers,
    )
    wrong = world.ask(
        "POST", "/v1/demo/recall", cbor2.dumps({"query": ""}), token=world.token(), headers=headers
    )

    assert cbor2.loads(taken.body) == {"result": {"content": "", "conversation": 1}}
    assert cbor2.loads(said.body)["result"]["found"] is True
    assert (wrong.status, wrong.code) == (400, "InvalidInput")


def test_a_person_with_curl(world: World) -> None:
    """`-d` sends a form's media type: the text is taken as it is, and so is JSON that was sent that way."""
    curl = {"content-type": "application/x-www-form-urlencoded", "accept": "*/*", "user-agent": "curl/8"}
    told = world.ask("POST", "/v1/demo/formation", SAID.encode(), token=world.token(), headers=curl)
    as_json = world.ask(
        "POST", "/v1/demo/recall", b'{"query": "Who moved to Lisbon?"}', token=world.token(), headers=curl
    )

    assert told.result["conversation"] == 1
    assert as_json.status == 200


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "",
        "text/html",
        "application/json",
        "APPLICATION/JSON",
        "application/problem+json",
        "text/*",
        "application/json;q=0",
        "image/webp,*/*;q=0.8",
    ],
)
def test_answers_are_json_unless_something_else_is_named(world: World, accept: str) -> None:
    """By substring, whatever the weights; a browser's list is JSON too."""
    answer = world.ask("GET", "/v1/demo/info", token=world.token(), headers={"accept": accept})

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["vary"] == "accept"


def test_headers_that_nobody_asked_for_change_nothing(world: World) -> None:
    """Tracing, proxies, cookies, encodings, an Expect, and a scheme in any case."""
    more = {
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "cookie": "a=b", "expect": "100-continue",
        "x-forwarded-proto": "https", "accept-encoding": "gzip, br", "authorization": f"bEARER  {world.token()}", "te": "trailers",
        "if-none-match": "*", "range": "bytes=0-3",
    }  # fmt: skip
    body = {"query": ASKED}

    plain = world.ask("POST", "/v1/demo/recall_structured", body, token=world.token()).result
    adorned = world.ask("POST", "/v1/demo/recall_structured", body, headers=more).result

    assert {**adorned, "conversation": 0} == {**plain, "conversation": 0}


def test_a_client_that_knows_null_and_missing(world: World) -> None:
    """Optional members sent as null are as good as missing; answers leave out what is unknown, errors included."""
    talk = {
        "messages": [{"role": "user", "content": SAID, "name": None, "user": None, "timestamp": None}],
        "context": None,
        "timestamp": None,
    }
    asked = {"query": ASKED, "context": None, "budget": None}
    for path, body in (
        ("formation", talk),
        ("recall", asked),
        ("recall_structured", asked),
        ("get_or_init_user", {"user": "u", "name": None}),
    ):
        answer = world.ask("POST", f"/v1/demo/{path}", body, token=world.token())
        assert answer.status == 200, answer.body
        assert answer.json.get("error") is None
        if path != "get_or_init_user":  # an element, in KIP's wire
            assert None not in answer.result.values()


@pytest.mark.parametrize(
    ("limit", "count"), [("0", 1), ("-1", 1), ("1", 1), ("100", 3), ("99999999999999", 3)]
)
def test_a_limit_of_nothing_is_not_everything(world: World, limit: str, count: int) -> None:
    """`limit=0` of an uninitialised counter gives a page of one, never an unbounded one."""
    for _ in range(3):
        world.ask(
            "POST",
            "/v1/demo/formation",
            {"messages": [{"role": "user", "content": SAID}]},
            token=world.token(),
        )
    listed = world.ask("GET", "/v1/demo/conversations", token=world.token(), query=f"limit={limit}")
    probe = world.ask("POST", "/v1/demo/probe", {"query": "Lisbon", "limit": int(limit)}, token=world.token())

    assert len(listed.result) == count
    assert ("next_cursor" in listed.json) is (count < 3)
    assert probe.status == 200


def test_a_client_that_polls(world: World) -> None:
    """It knows what it has by counting, and reads offset 0 anew once the status has changed."""
    token = world.space_token(scope="*")
    talk = {"messages": [{"role": "user", "name": "Alice", "content": SAID}]}
    number = world.ask("POST", "/v1/demo/formation", talk, token=token).result["conversation"]
    path = f"/v1/demo/conversations/{number}/delta"
    seen: list[Any] = []
    statuses = []
    for _ in range(3):
        delta = world.ask("GET", path, token=token, query=f"messages_offset={len(seen)}").result
        seen += delta["messages"]
        statuses.append(delta["status"])
        form(world)
    beyond = world.ask("GET", path, token=token, query="messages_offset=99&artifacts_offset=99").result

    assert statuses == ["submitted", "completed", "completed"]
    assert seen == world.ask("GET", f"/v1/demo/conversations/{number}", token=token).result["messages"]
    assert (beyond["messages"], beyond["artifacts"]) == ([], [])


def test_a_client_that_would_rather_not_wait(world: World) -> None:
    """202 and a place to poll; anybody who does not say so is answered at once."""
    token = world.space_token(scope="read")
    later = world.ask(
        "POST", "/v1/demo/recall", {"query": ASKED}, token=token, headers={"prefer": "respond-async, wait=5"}
    )
    path, _, query = later.headers["location"].partition("?")
    assert world.ask("GET", path, token=token, query=query).result["status"] in ("submitted", "working")
    form(world)
    done = world.ask("GET", path, token=token, query=query).result

    assert later.status == 202
    assert later.json["result"]["conversation"] == done["_id"]
    assert done["status"] == "completed"
    assert done["messages"][1]["role"] == "assistant"


@pytest.mark.parametrize("tokenizer", [None, "o200k_base@tiktoken-rs-0.12.0", "o200k_base@tiktoken-rs-0.12"])
def test_a_client_that_counts_tokens(world: World, tokenizer: str | None) -> None:
    """Both spellings of the one tokenizer: a packet within the bound, under a receipt, in every format; nothing beside it."""
    world.ask(
        "POST", "/v1/demo/formation", {"messages": [{"role": "user", "content": SAID}]}, token=world.token()
    )
    form(world)
    budget = {"max_tokens": 700} | ({} if tokenizer is None else {"tokenizer": tokenizer})
    asked = {"query": "Who moved to Lisbon?", "budget": budget}

    told = world.ask("POST", "/v1/demo/recall_structured", asked, token=world.token()).result
    as_text = world.ask(
        "POST", "/v1/demo/recall", asked, token=world.token(), headers={"accept": "text/markdown"}
    )
    tiny = world.ask(
        "POST", "/v1/demo/recall", {**asked, "budget": {"max_tokens": 1}}, token=world.token()
    ).result

    packet = json.loads(told["answer"])
    assert (packet["semantic_complete"], packet["action_ready"]) == (False, False)
    assert told["memory_budget"]["tokens"] <= told["memory_budget"]["token_limit"] == 700
    assert told["recall_receipt"]["scope"]["space_id"] == "demo"
    assert "memories" not in told
    assert json.loads(as_text.body) == packet
    assert tiny["content"] == "null"
