"""The control plane over HTTP: who reaches it, what it does, and that nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from functions import catalog
from functions.mcp.handler import TOOLBOX
from tests.functions.world import Answer, World

BASE = "/host/v1/demo/governance"
DENY = {"command": "set_policy", "policy": {"default": "deny"}}


@pytest.fixture
def world() -> World:
    """A space of alice's without records."""
    return World().make_space()


def send(world: World, body: Any, sub: str = "alice", **more: Any) -> Answer:
    """One command of the control plane."""
    return world.ask("POST", f"{BASE}/commands", body, token=world.token(sub=sub), **more)


def rule(name: str, subject: str, *permissions: str, effect: str = "allow", **more: Any) -> dict[str, Any]:
    made = {"id": name, "effect": effect, "subjects": [subject], "permissions": list(permissions), **more}
    return {"command": "put_rule", "rule": made}


def get(world: World, path: str = "", query: str = "", sub: str = "alice") -> Answer:
    return world.ask("GET", BASE + path, token=world.token(sub=sub), query=query)


def test_the_owner_governs_from_the_first_command(world: World) -> None:
    """An ungoverned space has no records; its owner's first command gives it some, and says so."""
    before = get(world).result
    made = send(world, DENY).result
    after = get(world).result

    assert (before["governed"], before["version"], before["owners"]) == (False, 0, ["alice"])
    assert before["policy"]["default"] == "scopes"
    assert (made["operation"], made["version"], made["effect"]) == ("set_policy", 1, True)
    assert (after["governed"], after["version"], after["policy"]["default"]) == (True, 1, "deny")


def test_a_stranger_governs_nothing_and_is_counted(world: World) -> None:
    """A token of scope * that holds no grant is refused by permission, and the refusal can be read by an auditor."""
    send(world, DENY)
    for _ in range(3):
        assert send(world, rule("r", "principal:eve", "*"), sub="eve").code == "NotAuthorized"
    assert get(world, "/refusals", sub="eve").code == "NotAuthorized"

    listed = {
        (each["principal"], each["permission"]): each["times"] for each in get(world, "/refusals").result
    }

    assert listed["eve", "manage_grants"] == 3
    assert listed["eve", "read_audit"] == 1


def test_refusals_over_kip_are_counted_too_and_pages_go_on(world: World) -> None:
    """What KIP refuses in a governed space is listed; pages of one give the same as one page."""
    send(world, DENY)
    for name in ("eve", "mallory"):
        token = world.token(sub=name)
        world.ask("POST", "/v1/demo/execute_kip", 'CREATE CONCEPT ?c {TYPE "Person" NAME "x"}', token=token)
        world.ask("POST", "/v1/demo/execute_kip", "FIND(?c) WHERE {?c CONCEPT {}}", token=token)
    whole = get(world, "/refusals").result
    paged, query = [], "limit=1"
    while True:
        answer = get(world, "/refusals", query)
        paged += answer.result
        if "next_cursor" not in answer.json:
            break
        query = f"limit=1&cursor={answer.json['next_cursor']}"

    assert {each["principal"] for each in whole} == {"eve", "mallory"}
    assert paged == whole
    assert get(world, "/refusals", "cursor=~~~~").status in {200, 400}


def test_the_hosts_operator_may_step_in_and_the_audit_says_so(world: World) -> None:
    """An admin credential acts as the operator; nobody else's does, and the entry bears the mark."""
    send(world, DENY)
    answer = world.ask(
        "POST",
        f"{BASE}/commands",
        {"command": "set_owners", "owners": ["bob"]},
        token=world.admin_token(),
    )
    assert answer.result["version"] == 2
    assert world.ask("GET", BASE, token=world.admin_token(sub="alice")).status == 401
    assert world.ask("GET", BASE, token=world.admin_token(scope="read")).status == 401
    assert world.ask("GET", BASE, token=world.token(sub="boss", aud="*")).code == "NotAuthorized"

    entries = get(world, "/audit", "control_only=true", sub="bob").result

    assert [(each["principal"], each.get("operator", False)) for each in entries] == [
        ("alice", False),
        ("boss", True),
    ]


def test_a_command_is_done_once_under_its_key_and_only_at_its_version(world: World) -> None:
    """A retry is answered as the first; another body under the key, and an old version, are conflicts."""
    key = {"idempotency-key": "k"}
    first = send(world, DENY, headers=key)
    again = send(world, DENY, headers=key)
    other = send(world, rule("r", "*", "read"), headers=key)
    stale = send(world, rule("r", "*", "read"), headers={"if-match": '"0"'})
    fits = send(world, rule("r", "*", "read"), headers={"if-match": '"1"'})
    wrong = send(world, rule("r", "*", "read"), headers={"if-match": "yesterday"})

    assert first.result == again.result
    assert (other.status, other.code) == (409, "IdempotencyConflict")
    assert (stale.status, stale.code) == (409, "VersionConflict")
    assert stale.json["error"]["data"]["details"] == {"version": 1, "expected": 0}
    assert fits.result["version"] == 2
    assert (wrong.status, wrong.code) == (400, "InvalidInput")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"x"',
        b"{",
        b"{}",
        b'{"command": "become_owner"}',
        b'{"command": "set_owners", "owners": []}',
        b'{"command": "set_owners", "owners": ["x"], "more": 1}',
        b'{"command": "put_rule", "rule": {"id": "r", "effect": "allow", "subjects": ["bob"], "permissions": ["read"]}}',
        b'{"command": "classify", "ids": ["C-0"], "label": "secret"}',
        b'{"command": "set_owners", "command": "approve", "id": "x"}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_command_is_refused_and_changes_nothing(world: World, body: bytes) -> None:
    """Bodies of another shape, unknown members, twice the same member and unknown elements are 400s and 404s."""
    answer = send(world, body)

    assert answer.status in {400, 404}, answer.body
    assert get(world).result["governed"] is False


def test_records_are_listed_by_pages_and_as_of_then(world: World) -> None:
    """Each kind by pages; a cursor ends when the records move; a point of the past has its own."""
    send(world, DENY)
    for number in range(5):
        send(world, rule(f"r{number}", "principal:bob", "read"))
    first = get(world, "/records/rules", "limit=2")
    cursor = first.json["next_cursor"]
    rest = get(world, "/records/rules", f"limit=3&cursor={cursor}")
    then = get(world, "/records/rules", "version=3").result
    send(world, {"command": "remove_rule", "id": "r0"})

    assert [each["id"] for each in first.result + rest.result] == ["r0", "r1", "r2", "r3", "r4"]
    assert "next_cursor" not in rest.json
    assert len(then) == 1
    assert get(world, "/records/rules", f"cursor={cursor}").code == "CursorInvalidated"
    assert get(world, "/records/groups", f"cursor={cursor}").code == "CursorMismatch"
    assert get(world, "/records/secrets").code == "InvalidInput"
    assert get(world, "", "version=3&seq=1").code == "InvalidInput"
    assert get(world, "/records/rules", "version=99").status == 400


def test_the_audit_is_paged_and_whole(world: World) -> None:
    """Pages of two give every entry once, in the order of the log."""
    send(world, DENY)
    for number in range(4):
        send(world, rule(f"r{number}", "principal:bob", "read"))
    entries, query = [], "limit=2"
    while True:
        answer = get(world, "/audit", query)
        entries += answer.result
        if "next_cursor" not in answer.json:
            break
        query = f"limit=2&cursor={answer.json['next_cursor']}"

    assert [each["policy_version"] for each in entries] == [1, 2, 3, 4, 5]


def test_anybody_learns_what_they_may_do_and_an_auditor_of_others(world: World) -> None:
    """`effective` of oneself is for every token of the space; of others, and `decide`, for auditors."""
    send(world, DENY)
    send(world, rule("r", "principal:bob", "role:reader"))

    mine = get(world, "/effective", sub="bob").result
    assert mine["permissions"] == ["discover", "project", "read", "search"]
    assert get(world, "/effective", "subject=alice", sub="bob").code == "NotAuthorized"
    assert get(world, "/effective", "subject=bob").result == mine

    def decide(body: Any, sub: str = "alice") -> Answer:
        return world.ask("POST", f"{BASE}/decide", body, token=world.token(sub=sub))

    assert decide({"subject": "bob", "action": "read"}).result["decision"] == "allow"
    assert decide({"subject": "bob", "action": "read", "scope": "write"}).result["decision"] == "deny"
    assert decide({"subject": "bob", "action": "purge"}).result["decision"] == "deny"
    assert decide({"subject": "bob", "action": "fly"}).code == "ConstraintViolation"
    assert decide({"subject": "bob", "action": "read", "element": "C-0"}).code == "NotFoundOrNotVisible"
    assert decide({"subject": "bob", "action": "read"}, sub="bob").code == "NotAuthorized"


@pytest.mark.parametrize("scope", ["read", "write"])
def test_a_narrow_scope_holds_nothing_of_the_control_plane(world: World, scope: str) -> None:
    """The owner's own token of scope read or write sends no command and reads no records."""
    send(world, DENY)
    token = world.token(scope=scope)

    assert world.ask("POST", f"{BASE}/commands", DENY, token=token).code == "NotAuthorized"
    assert world.ask("GET", BASE, token=token).code == "NotAuthorized"


COMMANDS = (
    "set_policy", "set_owners", "put_party", "put_group", "put_role", "put_rule", "put_delegation", "put_binding",
    "set_trust", "declassify", "approve", "governance", "manage_grants",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_no_kip_command_reaches_the_control_plane(world: World, name: str) -> None:
    """The owner's commands of the control plane, written as KIP in any plausible way, are refused and change nothing."""
    words = name.upper().replace("_", " ")
    for text in (
        f'{words} "bob"',
        f'EXECUTE {words} {{principal: "bob"}}',
        f'CREATE CONCEPT ?c {{TYPE "Person" NAME "x" GOVERNANCE {{{name}: "bob"}}}}',
        f'CREATE CONCEPT ?c {{TYPE "Person" NAME "x" SET FACET "governance" {{{name}: "bob"}}}}',
        f'UPDATE SPACE SET {name} = "bob"',
        f'{{"command": "{name}"}}',
    ):
        answer = world.ask("POST", "/v1/demo/execute_kip", text.encode(), token=world.token(),
                           headers={"content-type": "text/plain"})  # fmt: skip
        assert answer.json.get("status", "failed") != "succeeded", text
    assert get(world).result["governed"] is False


def test_no_tool_of_a_model_and_no_other_route_reaches_the_control_plane() -> None:
    """Of the tools of MCP and of models none bears its name, and only the host's routes are of the class `host`."""
    tools = [tool["name"] for tool in TOOLBOX.listed]
    hosts = {name for name, route in catalog.ROUTES.items() if route.admit == "host"}

    assert not [
        name for name in tools if any(word in name for word in ("govern", "grant", "policy", "classif"))
    ]
    assert {name.partition("_")[0] for name in hosts} == {"governance"}
    assert len(hosts) == 7
