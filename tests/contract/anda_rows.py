"""The lines of the Anda Brain contract's table of endpoints (§1.5), and requests by them.

What lives here: what the contract says of each line, with the deviations that docs/api.md names and no others. What
must never live here: the tests that walk them (`test_anda_table`), and anything read from our own tables.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from core.protocol.memory_types import UserInput
from core.service.values import Caller
from functions.settings import Settings
from tests.contract import anda_shapes as shapes
from tests.contract.anda_shapes import Shape
from tests.functions.world import KEYED, Answer, World

TALK = {"messages": [{"role": "user", "name": "Alice", "content": "I love tea."}]}
QUESTION = {"query": "What does Alice love?"}
BYOK = {"family": "anthropic", "model": "claude-haiku-4-5", "api_key": "a-key-of-the-tests"}
NEW = {"user": "bob", "space_id": "new", "tier": 0}
TIER = {"user": "alice", "space_id": "demo", "tier": 2}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
MANAGE, LONG = "/v1/{s}/management", "word " * 200_000
Body = Any  # JSON, or what makes it: a function of the world and of how often it was asked

Auth = Literal["open", "public", "read", "write", "manage", "admin", "any"]


class Bad(msgspec.Struct, frozen=True):
    """A request that a route refuses, and how; `body` or `query` replaces the row's."""

    status: int
    code: str
    body: Any = None
    query: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the contract's table.

    auth: the class that admits. labelled: whether a token with labels may. shape: of `result`; None where the answer
    is a document. text: what a text body stands for, if one is taken. prose: the member that is the Markdown answer.
    strict: whether members that nobody knows are refused. bare: whether the answer is not in an envelope. ok: the
    status of success.
    """

    method: str
    path: str
    auth: Auth
    shape: Shape = None
    body: Body = None
    query: str = ""
    labelled: bool = False
    text: bytes | None = None
    prose: str | None = None
    strict: bool = False
    bare: bool = False
    ok: int = 200
    bad: tuple[Bad, ...] = ()


def somebody(world: World, _: int) -> Any:
    """A body that names an element that is there."""
    owner = Caller("alice", "rest", "*")
    found = world.services.users.get_or_init_user(
        owner, "demo", UserInput(user="somebody"), world.clock.now() + 1000
    )
    return {"entity": found["id"]}


def rested(world: World, _: int) -> Any:
    """A wish for maintenance, of which only one runs at a time."""
    world.services.maintenance.run("demo", world.clock.now() + 60_000)
    return {"scope": "full"}


def numbered(world: World, n: int) -> Any:
    """A token of a name that is not taken."""
    return {"scope": "read", "name": f"token {n}"}


def fresh(world: World, n: int) -> Any:
    """A space whose id is not taken."""
    return {**NEW, "space_id": f"new_{n}"}


INVALID = (400, "InvalidInput")
PAGED = tuple(Bad(*INVALID, query=q) for q in ("limit=ten", "limit=1.5", "collection=users"))
FORGED = (
    Bad(400, "CursorMismatch", query="cursor=AAAA"),
    Bad(400, "CursorMismatch", query="cursor=%F0%9F%91%9F"),
)
NONE = tuple(Bad(*INVALID, body=body) for body in ({}, [], "x", 7))
ASKED = (
    Bad(*INVALID, body={"query": " "}),
    Bad(*INVALID, body={"query": 7}),
    Bad(*INVALID, body={}),
    Bad(*INVALID, body={"query": "x", "context": "{broken"}),
    Bad(*INVALID, body={"query": "x", "budget": {"max_tokens": 0}}),
    Bad(*INVALID, body={"query": "x", "budget": {"max_tokens": 65_537}}),
    Bad(*INVALID, body={"query": "x", "budget": {"context_tokens": 131_073}}),
    Bad(*INVALID, body={"query": "x", "budget": {"tokenizer": "cl100k_base"}}),
    Bad(413, "PayloadTooLarge", body={"query": LONG}),
)

TABLE: dict[str, Row] = {
    "favicon": Row(method="GET", path="/favicon.ico", auth="open", bare=True),
    "touch_icon": Row(method="GET", path="/apple-touch-icon.webp", auth="open", bare=True),
    "service_info": Row(method="GET", path="/info", auth="open", shape=shapes.SERVICE_INFO, bare=True),
    "skill": Row(method="GET", path="/SKILL.md", auth="open", bare=True),
    "space_info": Row(
        method="GET", path="/v1/{s}/info", auth="public", shape=shapes.SPACE_INFO, labelled=True
    ),
    "space_status": Row(
        method="GET", path="/v1/{s}/status", auth="public", shape=shapes.SPACE_INFO, labelled=True
    ),
    "formation_status": Row(
        method="GET",
        path="/v1/{s}/formation_status",
        auth="read",
        shape=shapes.FORMATION_STATUS,
        labelled=True,
    ),
    "formation": Row(
        method="POST",
        path="/v1/{s}/formation",
        auth="write",
        shape=shapes.BEGUN,
        body=TALK,
        text=b"I love tea.",
        prose="content",
        bad=(
            Bad(*INVALID, body={"messages": []}),
            Bad(*INVALID, body={"messages": [{"role": "user", "content": " "}]}),
            Bad(*INVALID, body={"messages": [{"content": "x"}]}),
            Bad(*INVALID, body={"messages": [{"role": "user", "content": None}]}),
            Bad(*INVALID, body={**TALK, "context": 7}),
            Bad(*INVALID, body={**TALK, "context": "{broken"}),
            Bad(413, "PayloadTooLarge", body={"messages": [{"role": "user", "content": LONG}]}),
        ),
    ),
    "recall": Row(
        method="POST",
        path="/v1/{s}/recall",
        auth="public",
        shape=shapes.AGENT_OUTPUT,
        body=QUESTION,
        text=b"What does Alice love?",
        prose="content",
        bad=ASKED,
    ),
    "recall_structured": Row(
        method="POST",
        path="/v1/{s}/recall_structured",
        auth="public",
        shape=shapes.RECALL_OUTPUT,
        body=QUESTION,
        text=b"What does Alice love?",
        prose="answer",
        bad=ASKED,
    ),
    "probe": Row(
        method="POST",
        path="/v1/{s}/probe",
        auth="public",
        shape=shapes.PROBE_OUTPUT,
        body={"query": "tea", "limit": 8},
        bad=(
            Bad(*INVALID, body={"query": "\n"}),
            Bad(*INVALID, body={"query": "x", "limit": "8"}),
            Bad(413, "PayloadTooLarge", body={"query": LONG}),
        ),
    ),
    "maintenance": Row(
        method="POST",
        path="/v1/{s}/maintenance",
        auth="write",
        shape=shapes.BEGUN,
        body=rested,
        bad=(
            Bad(*INVALID, body={"trigger": "whim"}),
            Bad(*INVALID, body={"scope": "all"}),
            Bad(*INVALID, body={"parameters": {"stale_event_threshold_days": 0}}),
            Bad(*INVALID, body={"parameters": {"stale_event_threshold_days": 366}}),
            Bad(*INVALID, body={"parameters": {"memory_strength_decay_factor": 0}}),
            Bad(*INVALID, body={"parameters": {"confidence_decay_factor": 1.01}}),
            Bad(*INVALID, body={"parameters": {"unconsolidated_max_backlog": 10_001}}),
            Bad(*INVALID, body={"parameters": {"unsorted_max_backlog": 0}}),
            Bad(*INVALID, body={"parameters": {"orphan_max_count": 0}}),
        ),
    ),
    "pin": Row(
        method="POST",
        path="/v1/{s}/memory/pin",
        auth="write",
        shape=shapes.PIN_OUTPUT,
        body=somebody,
        bad=(
            Bad(*INVALID, body={}),
            Bad(*INVALID, body={"entity": "tea"}),
            Bad(*INVALID, body={"entity": "C-00000002000jhaew", "pinned": "yes"}),
            Bad(404, "NotFoundOrNotVisible", body={"entity": "C-0000000z000jhaew"}),
        ),
    ),
    "forget": Row(
        method="POST",
        path="/v1/{s}/memory/forget",
        auth="write",
        shape=shapes.FORGET_REPORT,
        body={"entities": ["C-0", "P-0", "A-0", "E-0", "X-0", "nonsense"], "dry_run": True},
        strict=True,
        bad=(
            *NONE,
            Bad(*INVALID, body={"entities": []}),
            Bad(*INVALID, body={"entities": ["C-0"] * 101}),
            Bad(*INVALID, body={"entities": ["C-0"], "dry_run": "yes"}),
        ),
    ),
    "memory_status": Row(
        method="GET", path="/v1/{s}/memory_status", auth="public", shape=shapes.MEMORY_STATUS
    ),
    "execute_kip_readonly": Row(
        method="POST",
        path="/v1/{s}/execute_kip_readonly",
        auth="public",
        shape=shapes.KIP_RESPONSE,
        body={"command": "DESCRIBE PROTOCOL"},
        text=b"DESCRIBE PROTOCOL",
        bare=True,
    ),
    "get_or_init_user": Row(
        method="POST",
        path="/v1/{s}/get_or_init_user",
        auth="write",
        shape=shapes.CONCEPT,
        body={"user": "carol", "name": "Carol"},
        bad=(
            *NONE,
            Bad(*INVALID, body={"user": ""}),
            Bad(*INVALID, body={"user": "a\nb"}),
            Bad(*INVALID, body={"user": "a" * 129}),
        ),
    ),
    "list_conversations": Row(
        method="GET",
        path="/v1/{s}/conversations",
        auth="read",
        shape=[shapes.CONVERSATION],
        query="collection=formation&limit=0",
        bad=(*PAGED, *FORGED),
    ),
    "get_conversation": Row(
        method="GET",
        path="/v1/{s}/conversations/1",
        auth="read",
        shape=shapes.CONVERSATION,
        query="collection=formation",
        bad=(
            Bad(404, "NotFoundOrNotVisible", query="collection=recall"),
            Bad(*INVALID, query="collection=conversations"),
        ),
    ),
    "get_conversation_delta": Row(
        method="GET",
        path="/v1/{s}/conversations/1/delta",
        auth="read",
        shape=shapes.DELTA,
        query="collection=formation&messages_offset=0&artifacts_offset=0",
        bad=(
            Bad(404, "NotFoundOrNotVisible", query="collection=maintenance"),
            Bad(*INVALID, query="messages_offset=-1"),
            Bad(*INVALID, query="artifacts_offset=x"),
        ),
    ),
    "list_space_tokens": Row(
        method="GET", path=f"{MANAGE}/space_tokens", auth="manage", shape=[shapes.SPACE_TOKEN]
    ),
    "add_space_token": Row(
        method="POST",
        path=f"{MANAGE}/add_space_token",
        auth="manage",
        shape=shapes.SPACE_TOKEN,
        body=numbered,
        strict=True,
        bad=(
            *NONE,
            Bad(*INVALID, body={"scope": "read"}),
            Bad(*INVALID, body={"scope": "admin", "name": "a"}),
            Bad(*INVALID, body={"scope": "read", "name": " "}),
            Bad(*INVALID, body={"scope": "write", "name": "a", "labels": ["hr"]}),
            Bad(*INVALID, body={"scope": "read", "name": "a", "labels": [" "]}),
            Bad(*INVALID, body={"scope": "read", "name": "a", "expires_at": 1}),
            Bad(409, "IdentityConflict", body={"scope": "read", "name": "reader"}),
        ),
    ),
    "revoke_space_token": Row(
        method="POST",
        path=f"{MANAGE}/revoke_space_token",
        auth="manage",
        shape=bool,
        body={"name": "nobody's"},
        strict=True,
        bad=(*NONE, Bad(*INVALID, body={"name": "a", "token": "STx"})),
    ),
    "update_space": Row(
        method="PATCH",
        path=f"{MANAGE}/update_space",
        auth="manage",
        shape=(True,),
        body={"name": "Demo", "description": "Of tests.", "memory_policy": {"decay_floor": 0.2}},
        strict=True,
        bad=(
            *NONE,
            Bad(*INVALID, body={"public": "yes"}),
            Bad(*INVALID, body={"memory_policy": {"decay_floor": 1}}),
            Bad(*INVALID, body={"memory_policy": {"novel": 1}}),
            Bad(501, "NotImplementedYet", body={"wiki_digest": True}),
            Bad(501, "NotImplementedYet", body={"wiki_audit_reads": True}),
            Bad(501, "NotImplementedYet", body={"wiki_acl_defaults": {}}),
        ),
    ),
    "restart_formation": Row(
        method="PATCH",
        path=f"{MANAGE}/restart_formation",
        auth="manage",
        shape=(True,),
        body={"conversation": 1},
        strict=True,
        bad=(
            *NONE,
            Bad(*INVALID, body={"conversation": 0}),
            Bad(404, "NotFoundOrNotVisible", body={"conversation": 99}),
        ),
    ),
    "shadow_eval": Row(
    method="POST",
    path=f"{MANAGE}/shadow_eval",
    auth="manage",
    shape=shapes.SHADOW_REPORT,
    body={"policy": {}, "replay_sample": 1},
    strict=True,
    ok=202,  # it is made in the background; who asks again sees how far it is
    bad=(*NONE, Bad(*INVALID, body={"policy": {}, "replay_sample": 17})),
),
    "get_space_byok": Row(
        method="GET", path=f"{MANAGE}/space_byok", auth="manage", shape=shapes.MODEL_CONFIG
    ),
    "update_space_byok": Row(
        method="PATCH",
        path=f"{MANAGE}/space_byok",
        auth="manage",
        shape=(True,),
        body=BYOK,
        strict=True,
        bad=(
            *NONE,
            Bad(*INVALID, body={**BYOK, "family": "parrot"}),
            Bad(*INVALID, body={**BYOK, "api_base": "http://127.0.0.1"}),
            Bad(501, "NotImplementedYet", body={**BYOK, "effort": "max"}),
            Bad(501, "NotImplementedYet", body={**BYOK, "stream": True}),
        ),
    ),
    "create_space": Row(
        method="POST",
        path="/admin/create_space",
        auth="admin",
        shape=shapes.SPACE_INFO,
        body=fresh,
        strict=True,
        bad=(
            *NONE,
            Bad(*INVALID, body={**NEW, "space_id": "Demo"}),
            Bad(*INVALID, body={**NEW, "space_id": ""}),
            Bad(*INVALID, body={**NEW, "space_id": "a" * 65}),
            Bad(*INVALID, body={**NEW, "space_id": "a-b"}),
            Bad(*INVALID, body={**NEW, "tier": -1}),
            Bad(*INVALID, body={**NEW, "user": ""}),
            Bad(409, "IdentityConflict", body={**NEW, "space_id": "demo"}),
        ),
    ),
    "update_space_tier": Row(
        method="POST",
        path="/admin/{s}/update_space_tier",
        auth="admin",
        shape=shapes.TIER,
        body=TIER,
        strict=True,
        bad=(*NONE, Bad(*INVALID, body={**TIER, "space_id": "other"}), Bad(*INVALID, body={**TIER, "tier": 1.5})),
    ),
    "mcp": Row(method="POST", path="/mcp/{s}", auth="any", shape={"jsonrpc": ("2.0",)}, body=PING, bare=True),
}  # fmt: skip

ABSENT: dict[
    str, tuple[str, str]
] = {  # of the table and of §1.6, by endpoint; each is a 501 that says its name
    "attention": ("GET", "/v1/{s}/attention"),
    "respond_attention": ("POST", "/v1/{s}/attention/a-1/responses"),
    "outcomes": ("POST", "/v1/{s}/outcomes"),
    "runtime_status": ("GET", "/v1/{s}/runtime/status"),
    "memory_interface": ("POST", "/v1/{s}/memory"),
    "stage_memory_source": ("POST", "/v1/{s}/memory/sources"),
    "memory_source": ("GET", "/v1/{s}/memory/sources/r-1"),
    "memory_receipt": ("GET", "/v1/{s}/memory/receipts/r-1"),
    "memory_plan": ("GET", "/v1/{s}/memory/plans/r-1"),
    "wiki_read": ("GET", "/v1/{s}/wiki/docs"),
    "wiki_write": ("POST", "/v1/{s}/wiki/search"),
}
OURS = {  # endpoints beside the contract; whole folders of them are told by their path
    "openapi", "execute_kip", "log_checkpoint", "migrate", "delete_space", "space_upkeep", "trim_history",
    "restore_capsule", "tune_facts",
}  # fmt: skip
OUR_FOLDERS = ("/host/", "/v1/{space}/facts", "/v1/{space}/graymatter")

NAMES = list(TABLE)
TENANTS = [name for name in NAMES if TABLE[name].auth not in ("open", "admin")]
BODIED = [name for name in NAMES if TABLE[name].body is not None]


class Asking:
    """A world with one conversation, and requests to it by row."""

    def __init__(self, settings: Settings = KEYED) -> None:
        self.world = World(settings).make_space()
        self.asked = 0
        token = self.world.token()
        assert self.world.ask("POST", "/v1/demo/formation", TALK, token=token).status == 200

    def best(self, name: str) -> str | None:
        """A credential that the row admits."""
        auth = TABLE[name].auth
        return None if auth == "open" else self.world.admin_token() if auth == "admin" else self.world.token()

    def body(self, name: str) -> Any:
        row = TABLE[name]
        self.asked += 1
        return row.body(self.world, self.asked) if isinstance(row.body, Callable) else row.body  # type: ignore[arg-type]

    def ask(
        self, name: str, token: str | None, *, body: Any = None, query: str | None = None, **more: Any
    ) -> Answer:
        row = TABLE[name]
        body = self.body(name) if body is None else body
        query = row.query if query is None else query
        return self.world.ask(
            more.pop("method", row.method),
            row.path.replace("{s}", more.pop("space", "demo")),
            body,
            token=token,
            query=query,
            **more,
        )
