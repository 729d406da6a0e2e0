"""The Anda Brain contract's table of endpoints (§1.5), walked: who may, what goes in, what comes out, what fails."""

import json
from typing import Any

import cbor2
import msgspec
import pytest

from core.protocol.http_types import MemoryPolicy
from functions.endpoints import ENDPOINTS
from tests.contract import anda_shapes as shapes
from tests.contract.anda_rows import (
    ABSENT,
    BODIED,
    INVALID,
    NAMES,
    OUR_FOLDERS,
    OURS,
    TABLE,
    TENANTS,
    Asking,
    Bad,
    Row,
)
from tests.contract.anda_shapes import misfit
from tests.functions.world import KEYED, OTHER_KEY, World


@pytest.fixture
def asking() -> Asking:
    return Asking()


# --- the table itself


def test_every_line_of_the_contract_has_its_endpoint_and_every_endpoint_a_line() -> None:
    """An endpoint is a line of the contract's table, known to be absent, or known to be our own."""
    theirs = {name for name, each in ENDPOINTS.items() if not each.path.startswith(OUR_FOLDERS)} - OURS

    assert theirs == {*TABLE, *ABSENT}
    for name, row in TABLE.items():
        pattern = row.path.replace("{s}", "{space}").replace("/conversations/1", "/conversations/{id}")
        assert (ENDPOINTS[name].method, ENDPOINTS[name].path) == (row.method, pattern)


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_not_there_yet_says_so_by_name(asking: Asking, name: str) -> None:
    """501 for everybody, with the endpoint's name, whatever the body: never a 404, and never an empty success."""
    method, path = ABSENT[name]
    for token in (None, asking.world.token()):
        answer = asking.world.ask(method, path.replace("{s}", "demo"), {"kip_memory": "2.0"}, token=token)
        assert (answer.status, answer.code) == (501, "NotImplementedYet")
        assert answer.json["error"]["data"]["details"] == {"endpoint": name}


# --- who may


def credentials(world: World) -> dict[str, str | None]:
    """Everything that a caller can show, by what it is."""
    world.make_space("other")
    second = 24 * 3600
    short = world.space_token(name="short", scope="*", expires_at=world.clock.time + 1000)
    revoked = world.space_token(name="revoked", scope="*")
    world.ask("POST", "/v1/demo/management/revoke_space_token", {"name": "revoked"}, token=world.token())
    found: dict[str, str | None] = {
        **{f"cwt {scope}": world.token(scope=scope) for scope in shapes.SCOPE},
        **{f"st {scope}": world.space_token(name=f"st {scope}", scope=scope) for scope in shapes.SCOPE},
        "cwt everywhere": world.token(aud="*"),
        "labelled": world.space_token(name="labelled", labels=["hr"]),
        "nothing": None,
        "cwt expired": world.token(now_s=world.clock.time // 1000 - 2 * second),
        "st expired": short,
        "st revoked": revoked,
        "cwt elsewhere": world.token(aud="other"),
        "st elsewhere": world.space_token("other", scope="*"),
        "cwt of another key": world.token(key=OTHER_KEY),
        "cwt of the admin key": world.admin_token(aud="demo"),
        "garbage": "x" * 80,
        "short garbage": "x",
        "st garbage": "ST" + "x" * 43,
        "tier": "tier",
    }
    world.clock.advance(1000)
    return found


def expected(row: Row, who: str, *, public: bool) -> int:
    """The status by the contract: 401 for what is no credential of this space, 403 for one that may not do this."""
    if who == "nothing":
        anybody = row.auth in ("public", "any")
        return row.ok if public and anybody else 403 if public else 401
    known = who.startswith(("cwt read", "cwt write", "cwt *", "cwt every", "st read", "st write", "st *"))
    if not known and who != "labelled":
        return 401
    if who == "labelled":
        return row.ok if row.labelled else 403
    if row.auth == "any" or (row.auth == "public" and public):
        return row.ok
    scope = who.split()[1].replace("everywhere", "*")
    needed = "read" if row.auth in ("public", "read") else "write"
    if row.auth == "manage" and who.startswith("st"):
        return 403
    return row.ok if scope in (needed, "*") else 403


@pytest.mark.parametrize("public", [False, True], ids=["private", "public"])
@pytest.mark.parametrize("name", TENANTS)
def test_who_may(asking: Asking, name: str, public: bool) -> None:
    """Every credential against every route of a space, on a private space and on a public one."""
    world = asking.world
    shown = credentials(world)
    if public:
        world.make_public()
    row = TABLE[name]

    got = {who: asking.ask(name, token) for who, token in shown.items()}

    wanted = {who: expected(row, who, public=public) for who in shown}
    assert {who: answer.status for who, answer in got.items()} == wanted
    for answer in got.values():
        if answer.status == 401:
            assert answer.json["error"]["message"] == "authentication failed"
            assert answer.headers["www-authenticate"] == 'Bearer realm="noema"'


@pytest.mark.parametrize("name", [name for name in NAMES if TABLE[name].auth == "admin"])
def test_only_a_managers_cwt_for_every_space_administers(asking: Asking, name: str) -> None:
    """Audience `*`, the admin key, scope write, and a manager's name: each alone does not do."""
    world = asking.world
    manager = {"cwt of the admin key": 401}
    for who, token in credentials(world).items():
        assert asking.ask(name, token).status == manager.get(who, 401), who
    refused = {world.admin_token(sub="alice"): 403, world.admin_token(scope="read"): 403}
    refused |= {world.token(sub="boss", aud="*"): 401, world.admin_token(now_s=1): 401}
    for token, status in refused.items():
        assert asking.ask(name, token).status == status
    assert asking.ask(name, world.admin_token()).status == 200


@pytest.mark.parametrize("name", TENANTS)
def test_a_space_that_is_not_there_is_a_404_only_for_who_may_see_it(asking: Asking, name: str) -> None:
    """Else it looks like any other space; an id that is none is a 400."""
    world = asking.world
    assert asking.ask(name, world.token(), space="nowhere").status == 401
    missing = asking.ask(name, world.token(aud="*"), space="nowhere")
    assert (missing.status, misfit(missing.json["error"], shapes.RPC_ERROR["error"])) == (404, None)
    for bad in ("Demo", "a-b", "x" * 65, "%20"):
        assert asking.ask(name, world.token(aud="*"), space=bad).status == 400


# --- what goes in and comes out


def checked(row: Row, value: Any) -> Any:
    """The result in an answer, which must have the contract's shape."""
    if row.bare:
        found = value
    else:
        assert set(value) <= {"result", "next_cursor"}
        found = value["result"]
    assert misfit(found, row.shape) is None
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if TABLE[name].shape is not None])
def test_json_in_and_out(asking: Asking, name: str) -> None:
    """The answer has every member that the contract names, of its type, and leaves out what is unknown."""
    answer = asking.ask(name, asking.best(name))

    wanted = (TABLE[name].ok, "application/json")
    assert (answer.status, answer.headers["content-type"]) == wanted, answer.body
    assert answer.headers["x-request-id"]
    checked(TABLE[name], answer.json)


@pytest.mark.parametrize("name", ["favicon", "touch_icon", "skill"])
def test_documents(asking: Asking, name: str) -> None:
    """Icons and the page for agents, whatever is sent along."""
    kinds = {"favicon": "image/", "touch_icon": "image/webp", "skill": "text/markdown"}
    answer = asking.ask(name, "nonsense", headers={"accept": "application/cbor"})

    assert answer.status == 200
    assert answer.headers["content-type"].startswith(kinds[name])
    assert answer.body


NEGOTIATED = [name for name in NAMES if TABLE[name].shape is not None and name not in ("service_info", "mcp")]


@pytest.mark.parametrize("name", NEGOTIATED)
def test_cbor_in_and_out(asking: Asking, name: str) -> None:
    """A body and an answer in CBOR say the same as in JSON; Accept with weights and both names means CBOR."""
    body = asking.body(name)
    headers = {
        "content-type": "application/cbor",
        "accept": "text/markdown;q=1, application/json, application/cbor;q=0",
    }
    raw = None if body is None else cbor2.dumps(body)

    answer = asking.ask(name, asking.best(name), body=raw, headers=headers)

    assert (answer.status, answer.headers["content-type"]) == (TABLE[name].ok, "application/cbor")
    value = cbor2.loads(answer.body)
    assert cbor2.dumps(value, canonical=True) == answer.body
    checked(TABLE[name], value)


@pytest.mark.parametrize("name", NEGOTIATED)
def test_markdown_out(asking: Asking, name: str) -> None:
    """The prose alone where there is prose, else the whole envelope as indented JSON."""
    row = TABLE[name]

    answer = asking.ask(name, asking.best(name), headers={"accept": "text/markdown"})

    assert (answer.status, answer.headers["content-type"]) == (row.ok, "text/markdown; charset=utf-8")
    text = answer.body.decode()
    if row.prose is None:
        assert text.startswith("{\n  ")
        checked(row, json.loads(text))
    else:
        assert not text.startswith("{")
        assert (text == "") is (name == "formation")


@pytest.mark.parametrize("name", [name for name in BODIED if name != "mcp"])
@pytest.mark.parametrize("kind", ["text/plain", "text/markdown", "application/x-www-form-urlencoded"])
def test_text_in(asking: Asking, name: str, kind: str) -> None:
    """Text is taken where the contract says so; JSON in a body of another type is still JSON; bytes are a 400."""
    row, token = TABLE[name], asking.best(name)
    headers = {"content-type": kind}
    plain = asking.ask(name, token, body=row.text or b"some words", headers=headers)
    as_json = asking.ask(name, token, body=json.dumps(asking.body(name)).encode(), headers=headers)
    broken = asking.ask(name, token, body=b"\xff\xfe words", headers=headers)

    assert as_json.status == row.ok
    checked(row, as_json.json)
    if row.text is not None:
        assert plain.status == 200
        checked(row, plain.json)
    else:
        assert (plain.status, plain.code) == INVALID
        assert "invalid input" in plain.json["error"]["message"]
    if name == "execute_kip_readonly":
        assert (broken.status, broken.json["status"]) == (200, "failed")
    else:
        assert (broken.status, broken.code) == INVALID


@pytest.mark.parametrize("name", BODIED)
def test_members_that_nobody_knows(asking: Asking, name: str) -> None:
    """Passed over where agents send, so that newer clients work; refused where a misspelling would change nothing."""
    body = asking.body(name)
    if name in ("mcp", "execute_kip_readonly"):
        return  # JSON-RPC's and KIP's own envelopes
    answer = asking.ask(name, asking.best(name), body={**body, "novel": {"a": [1]}})

    if TABLE[name].strict:
        assert (answer.status, answer.code) == INVALID
        assert "novel" in answer.json["error"]["message"]
    else:
        assert answer.status == TABLE[name].ok


# --- what fails

FAULTS = [(name, bad) for name in NAMES for bad in TABLE[name].bad]


@pytest.mark.parametrize(("name", "bad"), FAULTS, ids=lambda each: str(each)[:90])
def test_errors(asking: Asking, name: str, bad: Bad) -> None:
    """Each named fault has its status and its code, in JSON whatever Accept says, and changes nothing."""
    world = asking.world
    world.space_token()
    before = world.ask("GET", "/v1/demo/info", token=world.token()).result
    query = bad.query or None

    answer = asking.ask(
        name,
        asking.best(name),
        body=bad.body,
        query=query,
        headers={"accept": "application/cbor, text/markdown"},
    )

    assert (answer.status, answer.code) == (bad.status, bad.code), answer.body
    assert misfit(answer.json, shapes.RPC_ERROR, "body") is None
    assert "Error(" not in answer.json["error"]["message"]
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result == before


BROKEN = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'{"a": 1, "a": 2}',
    b'{"a": NaN}',
    b'{"a": "\\ud800"}',
    b"\x1f\x8b\x08\x00",
    b"[" * 500,
)


@pytest.mark.parametrize("name", [name for name in BODIED if name != "mcp"])
def test_bodies_that_are_none(asking: Asking, name: str) -> None:
    """Nothing, half of something, something twice, compressed bytes: a 400; KIP says so in its own body."""
    for body in BROKEN:
        answer = asking.ask(name, asking.best(name), body=body)
        if name == "execute_kip_readonly":
            assert (answer.status, answer.json["status"]) == (200, "failed"), body
        else:
            assert (answer.status, answer.code) == INVALID, body


@pytest.mark.parametrize("name", BODIED)
def test_a_body_beyond_the_bound_is_a_413(asking: Asking, name: str) -> None:
    """Six megabytes, before anything is read, and before it is known who asks."""
    answer = asking.ask(name, None, body=b" " * 6_000_001)

    assert (answer.status, answer.code) == (413, "PayloadTooLarge")


@pytest.mark.parametrize("name", NAMES)
def test_other_methods_and_the_shard(asking: Asking, name: str) -> None:
    """405 with Allow for a method that the path does not take, HEAD among them; 400 for another shard, 404 with a slash."""
    row, token = TABLE[name], asking.best(name)
    taken = {each.method for each in TABLE.values() if each.path == row.path}
    for method in {"PUT", "HEAD", "TRACE", "GET", "POST", "PATCH", "DELETE"} - taken:
        answer = asking.ask(name, token, method=method)
        assert (answer.status, answer.code) == (405, "MethodNotAllowed"), method
        assert row.method in answer.headers["allow"]
    for header in ("shard-id", "x-shard"):
        for value in ("1", "x", "-1", "4294967296", ""):
            answer = asking.ask(name, token, headers={header: value})
            assert answer.status == 400, value
        assert asking.ask(name, token, headers={header: "0"}).status == row.ok
    slash = asking.world.ask(row.method, row.path.replace("{s}", "demo") + "/", token=token)
    assert slash.status in (404, 405)


# --- pages of other sites (§1.4)


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_other_sites(name: str) -> None:
    """Without origins no header; with them the listed origin alone, fixed methods, and never with credentials."""
    row = TABLE[name]
    here = {"origin": "https://app.example"}
    path = row.path.replace("{s}", "demo")
    closed = World().ask("OPTIONS", path, headers=here)
    assert closed.status == 204
    assert not [each for each in closed.headers if each.startswith("access-control-")]

    asking = Asking(msgspec.structs.replace(KEYED, cors_origins=("https://app.example",), mcp_origins=("*",)))
    asked = {
        **here,
        "access-control-request-method": row.method,
        "access-control-request-headers": "authorization",
    }
    preflight = asking.world.ask("OPTIONS", path, headers=asked)
    real = asking.ask(name, asking.best(name), headers=here)
    refused = asking.ask(name, "garbage", headers=here)
    foreign = asking.ask(name, asking.best(name), headers={"origin": "https://evil.example"})

    assert preflight.status == 204
    assert row.method in preflight.headers["access-control-allow-methods"]
    for header in ("authorization", "content-type", "accept", "shard-id", "mcp-protocol-version"):
        assert header in preflight.headers["access-control-allow-headers"]
    assert preflight.headers["access-control-max-age"] == "86400"
    for answer in (preflight, real, refused):
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
    for answer in (preflight, real, refused, foreign):
        assert "access-control-allow-credentials" not in answer.headers
    assert "access-control-allow-origin" not in foreign.headers


def test_the_policy_is_the_contracts() -> None:
    """Members and defaults of §6.7; what we add is named here."""
    told = {name: getattr(MemoryPolicy(), name) for name in MemoryPolicy.__struct_fields__}
    ours = {"daily_token_budget", "daily_micros_budget"}

    assert {name: value for name, value in told.items() if name not in ours} == {
        "version": 1, "memory_strength_decay_factor": 0.95, "decay_floor": 0.3, "recall_reinforcement": 0.1,
        "correction_penalty": 0.5, "stale_event_threshold_days": 7, "unconsolidated_max_backlog": 20,
        "orphan_max_count": 10, "self_test_queries_per_cycle": 4, "self_test_token_budget": 20_000,
        "recall_search_threshold": 0.35, "recall_max_rounds": 7, "recall_budget": None, "shadow_replay_sample": 4,
    }  # fmt: skip
