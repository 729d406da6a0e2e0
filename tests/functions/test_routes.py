"""Every route: who may, what it takes, what it gives; and what each refuses."""

import json
from typing import Any

import msgspec
import pytest

from core.ports import Unavailable
from core.protocol.memory_types import UserInput
from core.service.values import Caller
from functions import catalog
from functions.endpoints import ENDPOINTS
from functions.worker import work
from tests.functions.capsule_cases import CAPSULE, RESTORE
from tests.functions.fact_cases import FACT_CASES
from tests.functions.world import ADMIN_KEY, World, served

MESSAGE = {"role": "user", "name": "Alice", "content": "I love tea.", "timestamp": 1_779_999_000_000}
TALK = {"messages": [MESSAGE], "context": {"counterparty": "alice"}}


class Case(msgspec.Struct):
    """One request to one endpoint, and the scopes that it takes."""

    path: str
    scopes: tuple[str, ...]
    body: Any = None
    space_token: bool = True


READ, WRITE = ("read", "*"), ("write", "*")
PINNED = {"entity": "C-of-someone"}  # stands for the id of a person of the space
SOMEONE = Caller("alice", "rest", "*")
CASES: dict[str, Case] = {
    "space_info": Case("/v1/demo/info", READ),
    "space_status": Case("/v1/demo/status", READ),
    "formation_status": Case("/v1/demo/formation_status", READ),
    "recall": Case("/v1/demo/recall", READ, {"query": "What does Alice love?"}),
    "recall_structured": Case("/v1/demo/recall_structured", READ, {"query": "What does Alice love?"}),
    "probe": Case("/v1/demo/probe", READ, {"query": "tea"}),
    "execute_kip_readonly": Case("/v1/demo/execute_kip_readonly", READ, "DESCRIBE PROTOCOL"),
    "execute_kip": Case("/v1/demo/execute_kip", WRITE, 'CREATE CONCEPT ?c {TYPE "Person"}'),
    "list_conversations": Case("/v1/demo/conversations", READ),
    "get_conversation": Case("/v1/demo/conversations/1", READ),
    "get_conversation_delta": Case("/v1/demo/conversations/1/delta", READ),
    "formation": Case("/v1/demo/formation", WRITE, TALK),
    "mcp": Case("/mcp/demo", ("read", "write", "*"), {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    "forget": Case("/v1/demo/memory/forget", WRITE, {"entities": ["C-0"], "dry_run": True}),
    "maintenance": Case("/v1/demo/maintenance", WRITE, {"scope": "full"}),
    "memory_status": Case("/v1/demo/memory_status", READ),
    "pin": Case("/v1/demo/memory/pin", WRITE, PINNED),
    "get_or_init_user": Case("/v1/demo/get_or_init_user", WRITE, {"user": "carol"}),
    "restart_formation": Case("/v1/demo/management/restart_formation", WRITE, {"conversation": 1}, False),
    "list_space_tokens": Case("/v1/demo/management/space_tokens", WRITE, None, False),
    "add_space_token": Case(
        "/v1/demo/management/add_space_token", WRITE, {"scope": "read", "name": "x"}, False
    ),
    "revoke_space_token": Case("/v1/demo/management/revoke_space_token", WRITE, {"name": "x"}, False),
    "get_space_byok": Case("/v1/demo/management/space_byok", WRITE, None, False),
    "update_space_byok": Case(
        "/v1/demo/management/space_byok",
        WRITE,
        {"family": "anthropic", "model": "claude-haiku-4-5", "api_key": "a-key-of-the-tests"},
        False,
    ),
    "update_space": Case("/v1/demo/management/update_space", WRITE, {"name": "x"}, False),
    "shadow_eval": Case("/v1/demo/management/shadow_eval", WRITE, {"policy": {}}, False),
    "log_checkpoint": Case("/v1/demo/management/log_checkpoint", WRITE, {}, False),
    "migrate": Case("/v1/demo/management/migrate", WRITE, {"source": "old", "dry_run": True}, False),
    "export_capsule": Case("/host/v1/demo/capsules/export", ("*",), {}, False),
    "verify_capsule": Case("/host/v1/demo/capsules/verify", WRITE, {"capsule": CAPSULE}, False),
    "preview_capsule": Case("/host/v1/demo/capsules/preview", WRITE, {"capsule": CAPSULE}, False),
    "import_capsule": Case("/host/v1/demo/capsules/import", WRITE, {"capsule": CAPSULE}, False),
    "governance": Case("/host/v1/demo/governance", ("*",), None, False),
    "governance_command": Case(
        "/host/v1/demo/governance/commands",
        ("*",),
        {"command": "put_group", "group": {"name": "team", "members": ["bob"]}},
        False,
    ),
    "governance_records": Case("/host/v1/demo/governance/records/rules", ("*",), None, False),
    "governance_effective": Case("/host/v1/demo/governance/effective", ("read", "write", "*"), None, False),
    "governance_decide": Case(
        "/host/v1/demo/governance/decide", ("*",), {"subject": "bob", "action": "read"}, False
    ),
    "governance_audit": Case("/host/v1/demo/governance/audit", ("*",), None, False),
    "governance_refusals": Case("/host/v1/demo/governance/refusals", ("*",), None, False),
}
NAMING = {"export_capsule", *(name for name in CASES if name.startswith("governance"))}
"""Routes whose refusal names a permission and no scope."""
ADMIN_CASES: dict[str, Case] = {
    "create_space": Case("/admin/create_space", WRITE, {"user": "bob", "space_id": "new", "tier": 0}),
    "update_space_tier": Case(
        "/admin/demo/update_space_tier", WRITE, {"user": "alice", "space_id": "demo", "tier": 2}
    ),
    "space_upkeep": Case("/admin/demo/upkeep", WRITE),
    "trim_history": Case("/admin/demo/trim_history", WRITE, {"keep_days": 30}),
    "restore_capsule": Case("/admin/restored/restore_capsule", WRITE, RESTORE),
    "delete_space": Case("/admin/demo/delete_space", WRITE, {"space_id": "demo"}),
}
OPEN = ("service_info", "skill", "openapi", "favicon", "touch_icon")
PUBLIC = {
    "mcp",
    "space_info",
    "space_status",
    "recall",
    "recall_structured",
    "probe",
    "execute_kip_readonly",
    "memory_status",
}


@pytest.fixture
def world() -> World:
    """A space with one conversation that waits to be formed."""
    made = World().make_space()
    assert made.ask("POST", "/v1/demo/formation", TALK, token=made.token()).status == 200
    return made


def ask(world: World, name: str, case: Case, token: str | None) -> Any:
    body = case.body
    if name == "maintenance":  # one run at a time: end the one before
        world.services.maintenance.run("demo", world.clock.now() + 60_000)
    if body == PINNED:
        person = world.services.users.get_or_init_user(
            SOMEONE, "demo", UserInput(user="someone"), world.clock.now() + 1000
        )
        body = {"entity": person["id"]}
    answer = world.ask(ENDPOINTS[name].method, case.path, body, token=token)
    if answer.status == 202:  # it works: let it end, and ask again
        world.services.shadows.work("demo", world.clock.now() + 600_000)
        answer = world.ask(ENDPOINTS[name].method, case.path, body, token=token)
    return answer


def test_every_route_is_tested() -> None:
    """The tables of this file name every endpoint that is served."""
    assert {*CASES, *ADMIN_CASES, *OPEN, *FACT_CASES} == set(served())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scope", ["read", "write", "*"])
def test_scopes_of_space_routes(world: World, name: str, scope: str) -> None:
    """A CWT and a space token with a scope that the route takes are served; another is a 403 that says which."""
    case = CASES[name]
    allowed = scope in case.scopes

    answer = ask(world, name, case, world.token(scope=scope))
    assert answer.status == (200 if allowed else 403), answer.body
    if not allowed and name not in NAMING:
        assert answer.json["error"]["data"]["details"] == {"needed": case.scopes[0], "scope": scope}

    token = world.space_token(scope=scope, name=f"token {scope}")
    answer = ask(world, name, case, token)
    if allowed and case.space_token:
        assert answer.status == 200, answer.body
    else:
        assert (answer.status, answer.code) == (403, "NotAuthorized")


@pytest.mark.parametrize("name", CASES)
def test_every_space_route_hides_the_space(world: World, name: str) -> None:
    """Without rights a space that is there and one that is not answer the same; with rights the second is a 404."""
    case = CASES[name]
    elsewhere = Case(case.path.replace("demo", "nowhere"), case.scopes, case.body)
    for token in (None, world.token(aud="other"), "ST" + "x" * 43):
        here, there = ask(world, name, case, token), ask(world, name, elsewhere, token)
        assert (here.status, here.body) == (there.status, there.body)
        assert here.status == 401

    answer = ask(world, name, elsewhere, world.token(aud="nowhere"))

    assert (answer.status, answer.code) == (404, "NotFoundOrNotVisible")


@pytest.mark.parametrize("name", CASES)
def test_labelled_tokens_read_no_memory(world: World, name: str) -> None:
    """A token restricted by labels gets the space's info and status, and nothing else."""
    token = world.space_token(labels=["hr"])

    status = ask(world, name, CASES[name], token).status

    assert status == (200 if name in {"space_info", "space_status", "formation_status"} else 403)


@pytest.mark.parametrize("name", CASES)
def test_of_a_public_space_only_reading_is_public(world: World, name: str) -> None:
    """Without a credential, a public space gives its info (and recall); the rest is a 403."""
    world.make_public()

    status = ask(world, name, CASES[name], None).status

    assert status == (200 if name in PUBLIC else 403)


@pytest.mark.parametrize("name", ADMIN_CASES)
def test_admin_routes_take_a_managers_cwt_for_every_space(world: World, name: str) -> None:
    """Each other credential is refused, and changes nothing."""
    case = ADMIN_CASES[name]
    tokens = {
        None: 401,
        world.token(): 401,
        world.token(sub="boss", aud="*"): 401,
        world.space_token(scope="*"): 401,
        world.admin_token(aud="demo"): 401,
        world.admin_token(sub="alice"): 403,
        world.admin_token(scope="read"): 403,
        world.admin_token(now_s=world.clock.time // 1000 - 4000): 401,
    }
    for token, status in tokens.items():
        assert ask(world, name, case, token).status == status
    before = world.ask("GET", "/v1/demo/info", token=world.token()).result
    assert (before["tier"]["tier"], before["owner"]) == (1, "alice")

    assert ask(world, name, case, world.admin_token()).status == 200


@pytest.mark.parametrize("name", [*CASES, *ADMIN_CASES])
def test_every_route_with_a_body_refuses_another_body(world: World, name: str) -> None:
    """No body, another type and broken JSON are 400s on every route that takes a body."""
    case = {**CASES, **ADMIN_CASES}[name]
    if case.body is None or catalog.ROUTES[name].own_body:
        return
    token = world.admin_token() if name in ADMIN_CASES else world.token()
    for body in (b"", b"[]", b"null", b"7", b'"text"', b"{", b"\xff", b'{"a": "\\ud800"}'):
        answer = world.ask(ENDPOINTS[name].method, case.path, body, token=token)
        assert (answer.status, answer.code) == (400, "InvalidInput"), body


@pytest.mark.parametrize("name", OPEN)
def test_open_documents(name: str) -> None:
    """Anybody reads them, whatever they send along."""
    world = World()
    for token in (None, "nonsense"):
        answer = world.ask("GET", ENDPOINTS[name].path, token=token, headers={"accept": "application/cbor"})
        assert answer.status == 200
        media_type = catalog.ROUTES[name].media_type
        assert media_type is not None
        assert answer.headers["content-type"].startswith(media_type)
        assert len(answer.body) > 50


def test_the_service_says_what_it_is() -> None:
    """Name, version, shard, description, models and embedder, and nothing else about the deployment."""
    told = {"name", "version", "sharding", "description", "models", "embedder"}
    assert set(World().ask("GET", "/info").json) == told


# --- spaces and tokens over HTTP


def test_the_life_of_a_space() -> None:
    """Created, described, resized, deleted; then it is gone, and the id starts a new life."""
    world = World().make_space("demo")
    token, admin = world.token(), world.admin_token()
    assert world.ask("GET", "/v1/demo/info", token=token).result["owner"] == "alice"
    again = {"user": "mallory", "space_id": "demo", "tier": 9}
    assert world.ask("POST", "/admin/create_space", again, token=admin).code == "IdentityConflict"
    other = {"user": "alice", "space_id": "other", "tier": 2}
    assert world.ask("POST", "/admin/demo/update_space_tier", other, token=admin).code == "InvalidInput"
    assert world.ask("POST", "/admin/demo/delete_space", {"space_id": "other"}, token=admin).status == 400
    world.make_public()
    left = world.space_token()

    gone = world.ask("POST", "/admin/demo/delete_space", {"space_id": "demo"}, token=admin)

    assert gone.result["found"] == []
    assert world.ask("GET", "/v1/demo/info", token=token).status == 404
    assert world.ask("GET", "/v1/demo/info").status == 401
    world.make_space("demo", user="bob")
    assert world.ask("GET", "/v1/demo/info").status == 401  # not public any more
    assert world.ask("GET", "/v1/demo/info", token=left).status == 401  # nor open to old tokens
    info = world.ask("GET", "/v1/demo/info", token=token).result
    assert (info["owner"], info["conversations"], info["concepts"]) == ("bob", 0, 0)


def test_a_token_is_shown_once() -> None:
    """Minting shows the value, listing its beginning; revoking by value or name ends it."""
    world = World().make_space()
    minted = world.ask(
        "POST",
        "/v1/demo/management/add_space_token",
        {"scope": "read", "name": "ci", "labels": []},
        token=world.token(sub="olga"),
    ).result
    listed = world.ask("GET", "/v1/demo/management/space_tokens", token=world.token())

    assert minted["labels"] == []
    assert minted["token"] not in listed.body.decode()
    assert listed.result[0] == {**minted, "token": minted["token"][:8] + "…"}
    assert listed.result[0]["created_by"] == "olga"


def test_a_writer_cannot_mint_more_than_it_may() -> None:
    """A `write` CWT mints no `*` token."""
    world = World().make_space()
    wish = {"scope": "*", "name": "all"}

    answer = world.ask("POST", "/v1/demo/management/add_space_token", wish, token=world.token(scope="write"))

    assert (answer.status, answer.code) == (403, "NotAuthorized")


# --- formation and conversations over HTTP


def form(world: World) -> None:
    """Let the worker do what the queue hints at."""
    queue: Any = world.queue
    records = [
        {"messageId": f"m{n}", "body": body, "attributes": {"MessageGroupId": group}}
        for n, (group, body, _) in enumerate(queue.sent)
    ]
    queue.sent.clear()
    assert work({"Records": records}, None, world.services) == {"batchItemFailures": []}


def test_a_conversation_is_taken_in_formed_and_readable(world: World) -> None:
    """Submitted at once, completed by the worker, and shown with who submitted it."""
    submitted = world.ask("GET", "/v1/demo/conversations/1", token=world.token()).result
    assert (submitted["status"], submitted["user"], submitted["label"]) == ("submitted", "alice", "formation")

    form(world)

    formed = world.ask("GET", "/v1/demo/conversations/1", token=world.token()).result
    assert formed["status"] == "completed"
    status = world.ask("GET", "/v1/demo/formation_status", token=world.token()).result
    assert (status["conversations"], status["formation_processed_id"]) == (1, 1)
    assert status["concepts"] > 0
    delta = world.ask(
        "GET", "/v1/demo/conversations/1/delta", token=world.token(), query="messages_offset=1"
    ).result
    assert delta["messages"] == formed["messages"][1:]


def test_a_retry_key_makes_one_conversation(world: World) -> None:
    """The same key and body give the same id; another body is a 409; no key makes another conversation."""
    headers = {"idempotency-key": "k"}
    path, token = "/v1/demo/formation", world.token()
    first = world.ask("POST", path, TALK, token=token, headers=headers).result
    again = world.ask("POST", path, TALK, token=token, headers=headers).result
    other = {"messages": [{"role": "user", "content": "Something else."}]}
    clash = world.ask("POST", path, other, token=token, headers=headers)
    someone = world.ask("POST", path, TALK, token=world.token(sub="bob"), headers=headers).result

    assert first == again == {"content": "", "conversation": 2}
    assert (clash.status, clash.code) == (409, "IdempotencyConflict")
    assert someone["conversation"] == 3
    assert world.ask("POST", path, TALK, token=token).result["conversation"] == 4


def test_raw_text_is_a_message_and_markdown_an_answer(world: World) -> None:
    """A Markdown body is one user message; a Markdown answer of formation is empty, as nothing is said yet."""
    answer = world.ask(
        "POST",
        "/v1/demo/formation",
        "I live in Köln.".encode(),
        token=world.token(),
        headers={"content-type": "text/markdown", "accept": "text/markdown"},
    )

    assert (answer.status, answer.body) == (200, b"")
    stored = world.ask("GET", "/v1/demo/conversations/2", token=world.token()).result
    assert json.loads(stored["messages"][0]["content"])["messages"][0] == {
        "role": "user",
        "content": "I live in Köln.",
    }


BAD_TALKS: dict[str, Any] = {
    "no messages": {"messages": []},
    "an empty message": {"messages": [{"role": "user", "content": ""}]},
    "blank messages": {"messages": [{"role": "user", "content": "  \n"}]},
    "no role": {"messages": [{"content": "x"}]},
    "content of a wrong type": {"messages": [{"role": "user", "content": 7}]},
    "messages in a string": {"messages": "hello"},
    "context that is no JSON": {**TALK, "context": "{not json"},
    "context three deep": {**TALK, "context": json.dumps(json.dumps(json.dumps({"topic": "x"})))},
}


@pytest.mark.parametrize("name", BAD_TALKS)
def test_a_bad_conversation_is_a_400(world: World, name: str) -> None:
    """What cannot be remembered is refused, and no conversation is made of it."""
    answer = world.ask("POST", "/v1/demo/formation", BAD_TALKS[name], token=world.token())

    assert (answer.status, answer.code) == (400, "InvalidInput")
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result["conversations"] == 1


GOOD_TALKS: dict[str, Any] = {
    "a role of another kind": {"messages": [{"role": "constructor", "content": "x"}]},
    "context as text": {**TALK, "context": json.dumps({"topic": "x"})},
    "context as text in text": {**TALK, "context": json.dumps(json.dumps({"user": "bob"}))},
    "no context as text": {**TALK, "context": ""},
    "no context": {**TALK, "context": None},
    "a timestamp that is none": {**TALK, "timestamp": "yesterday"},
    "a timestamp in the far future": {**TALK, "timestamp": "9999-12-31T23:59:59Z"},
    "a message's timestamp that lies": {"messages": [{**MESSAGE, "timestamp": -1}]},
    "parts": {"messages": [{"role": "user", "content": ["a", {"type": "text", "text": "b"}]}]},
    "scripts": {
        "messages": [{"role": "user", "content": "e\u0301 \u202eאבג\u202c 👩‍👩‍👧 zero\u200bwidth 東京"}]
    },
    "a member nobody knows": {**TALK, "novel": 1},
}


@pytest.mark.parametrize("name", GOOD_TALKS)
def test_an_odd_conversation_is_taken_in_and_formed(world: World, name: str) -> None:
    """What can be remembered is, and the worker gets over it."""
    answer = world.ask("POST", "/v1/demo/formation", GOOD_TALKS[name], token=world.token())
    assert answer.status == 200, answer.body

    form(world)

    status = world.ask("GET", "/v1/demo/formation_status", token=world.token()).result
    assert status["formation_processed_id"] == answer.result["conversation"]


def test_a_conversation_over_the_token_bound_is_a_413(world: World) -> None:
    """1 MB of text is more than 100,000 estimated tokens."""
    body = {"messages": [{"role": "user", "content": "word " * 200_000}]}

    answer = world.ask("POST", "/v1/demo/formation", body, token=world.token())

    assert (answer.status, answer.code) == (413, "PayloadTooLarge")


def test_a_full_space_takes_no_more() -> None:
    """Tier 0 admits 100 conversations; the 101st is a 400 whose text gives both numbers."""
    world = World().make_space(tier=0)
    token = world.token()
    for _ in range(100):
        assert world.ask("POST", "/v1/demo/formation", TALK, token=token).status == 200

    answer = world.ask("POST", "/v1/demo/formation", TALK, token=token)

    assert (answer.status, answer.code) == (400, "SpaceTierExceeded")
    assert answer.json["error"]["message"].count("100") == 2


def pages(world: World, space: str = "demo", **query: Any) -> Any:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return world.ask("GET", f"/v1/{space}/conversations", token=world.token(aud=space), query=text)


def test_lists_are_paged_backwards(world: World) -> None:
    """Newest page first, ascending within a page, a cursor while there is more, and nothing twice."""
    for _ in range(6):
        world.ask("POST", "/v1/demo/formation", TALK, token=world.token())
    seen, cursor = [], None
    while True:
        page = pages(world, limit=3, **({"cursor": cursor} if cursor else {}))
        seen.append([each["_id"] for each in page.result])
        cursor = page.json.get("next_cursor")
        if cursor is None:
            break

    assert seen == [[5, 6, 7], [2, 3, 4], [1]]


@pytest.mark.parametrize(
    ("limit", "count"), [(0, 1), (-5, 1), (1, 1), (3, 3), (101, 12), (10**18, 12), ("", 10)]
)
def test_a_limit_is_clamped(world: World, limit: Any, count: int) -> None:
    """1 to 100, and 10 where none is given; 0 is not unbounded."""
    for _ in range(11):
        world.ask("POST", "/v1/demo/formation", TALK, token=world.token())

    answer = pages(world) if limit == "" else pages(world, limit=limit)

    assert len(answer.result) == count


@pytest.mark.parametrize("query", ["limit=", "limit=ten", "limit=1.5", "collection=users", "collection="])
def test_a_bad_query_is_a_400(world: World, query: str) -> None:
    """A number that is none and a collection that does not exist are refused."""
    answer = world.ask("GET", "/v1/demo/conversations", token=world.token(), query=query)

    assert (answer.status, answer.code) == (400, "InvalidInput")


def test_a_cursor_fits_only_its_list(world: World) -> None:
    """Not another space's, not another collection's, not one that was made up or changed."""
    world.make_space("other")
    for _ in range(4):
        world.ask("POST", "/v1/demo/formation", TALK, token=world.token())
        world.ask("POST", "/v1/other/formation", TALK, token=world.token(aud="other"))
    cursor = pages(world, limit=2).json["next_cursor"]
    assert pages(world, cursor=cursor).status == 200

    for answer in (
        pages(world, "other", cursor=cursor),
        pages(world, cursor=cursor, collection="recall"),
        pages(world, cursor=cursor[:-2]),
        pages(world, cursor="B" + cursor[1:]),
        pages(world, cursor="AAAAAAAAAAM"),
        pages(world, cursor="%00"),
        pages(world, cursor="x" * 5000),
    ):
        assert (answer.status, answer.code) == (400, "CursorMismatch")


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.0", "1e3", "٣", "9" * 17, "%20"])
def test_a_conversation_is_named_by_a_number(world: World, number: str) -> None:
    """Anything else in its place is a 400."""
    answer = world.ask("GET", f"/v1/demo/conversations/{number}", token=world.token())

    assert (answer.status, answer.code) == (400, "InvalidInput")


def test_a_conversation_that_is_not_there_is_a_404(world: World) -> None:
    """Another number, another collection, another space."""
    for path, query in [("7", ""), ("1", "collection=recall"), ("7/delta", ""), ("9" * 16, "")]:
        answer = world.ask("GET", f"/v1/demo/conversations/{path}", token=world.token(), query=query)
        assert (answer.status, answer.code) == (404, "NotFoundOrNotVisible")
    answer = world.ask(
        "GET", "/v1/demo/conversations/1/delta", token=world.token(), query="messages_offset=-1"
    )
    assert answer.status == 400


def test_a_lost_hint_does_not_lose_the_conversation(world: World) -> None:
    """When the queue does not answer, the submission stands, and the tick's sweep hints again."""

    class Dead:
        def send(self, group: str, body: str, *, dedupe: str) -> None:
            raise Unavailable("no queue")

    alive, world.services.queue = world.queue, Dead()
    answer = world.ask("POST", "/v1/demo/formation", TALK, token=world.token())
    world.services.queue = alive

    assert answer.status == 200
    world.clock.advance(10 * 60_000)
    assert world.services.formation.sweep() == ["demo"]


def test_a_question_is_answered_with_receipts(world: World) -> None:
    """In prose, structured, as text and as CBOR; every answer leaves a record with who asked."""
    form(world)
    question = {"query": "What does Alice love?"}
    token = world.token(sub="bob", scope="read")
    prose = world.ask("POST", "/v1/demo/recall", question, token=token).result
    structured = world.ask("POST", "/v1/demo/recall_structured", question, token=token).result
    text = world.ask(
        "POST",
        "/v1/demo/recall_structured",
        b"What does Alice love?",
        token=token,
        headers={"content-type": "text/plain", "accept": "text/markdown"},
    )
    probe = world.ask("POST", "/v1/demo/probe", {"query": "tea"}, token=token).result

    assert "tea" in prose["content"]
    assert structured["found"] is True
    assert any(memory["entity"].startswith("E-") for memory in structured["memories"])
    assert text.body.decode() == structured["answer"]
    assert probe["found"] is True
    records = world.ask("GET", "/v1/demo/conversations", token=token, query="collection=recall").result
    assert [(each["_id"], each["user"], each["label"]) for each in records] == [
        (1, "bob", "recall"),
        (2, "bob", "recall"),
        (3, "bob", "recall"),
    ]


def test_what_is_not_there_is_not_made_up(world: World) -> None:
    """An empty space and a strange question have no answer, and say so."""
    for query in ("What is Zaphod's shoe size?", "זאפוד", "👟👟👟"):
        answer = world.ask("POST", "/v1/demo/recall_structured", {"query": query}, token=world.token())
        assert answer.result["found"] is False
        assert answer.result.get("memories", []) == []


BAD_QUESTIONS: dict[str, tuple[Any, int, str]] = {
    "blank": ({"query": " \n"}, 400, "InvalidInput"),
    "empty": ({"query": ""}, 400, "InvalidInput"),
    "a list": ({"query": ["x"]}, 400, "InvalidInput"),
    "too long": ({"query": "word " * 100_000}, 413, "PayloadTooLarge"),
    "another tokenizer": ({"query": "x", "budget": {"tokenizer": "chars/4"}}, 400, "InvalidInput"),
    "a budget out of bounds": ({"query": "x", "budget": {"max_tokens": 0}}, 400, "InvalidInput"),
}


@pytest.mark.parametrize("name", BAD_QUESTIONS)
@pytest.mark.parametrize("path", ["recall", "recall_structured"])
def test_a_bad_question_is_refused(world: World, name: str, path: str) -> None:
    """What is no question is a 400, what is too long a 413, a budget a 501."""
    body, status, code = BAD_QUESTIONS[name]

    answer = world.ask("POST", f"/v1/demo/{path}", body, token=world.token())

    assert (answer.status, answer.code) == (status, code)


def test_restart_takes_a_pending_conversation(world: World) -> None:
    """A conversation that waits is restarted, one that is formed or missing is not."""
    path, token = "/v1/demo/management/restart_formation", world.token(scope="write")
    assert world.ask("PATCH", path, {"conversation": 1}, token=token).result is True
    form(world)

    assert world.ask("PATCH", path, {"conversation": 1}, token=token).status == 400
    assert world.ask("PATCH", path, {"conversation": 99}, token=token).status == 404
    for bad in (0, -1, "1", 1.5, 2**60):
        assert world.ask("PATCH", path, {"conversation": bad}, token=token).status == 400


def test_admin_keys_are_not_in_the_tenant_list() -> None:
    """The two keys of these tests differ, or half of them would prove nothing."""
    world = World()

    assert world.services.settings.admin_keys != world.services.settings.tenant_keys
    assert ADMIN_KEY
