"""The command line of the Anda Brain contract's public client, as its documents describe it, in our own words.

It is written in a typed language, so a member of another type than it declares is a failed command; members that it
does not know are passed over. It sends JSON, leaves out what is empty, and names its shard where that is not 0.
"""

import json
from typing import Any

import msgspec
import pytest

from tests.contract.anda_world import form
from tests.functions.world import KEYED, Answer, World

SAID = "I moved to Lisbon in May."
ASKED = "Where does Alice live?"


@pytest.fixture
def world() -> World:
    return World().make_space()


class Lax(msgspec.Struct, kw_only=True):
    """What a typed client knows of an answer: members it knows have their type, others are passed over."""


class CliUsage(Lax):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0


class CliOutput(Lax):
    content: str = ""
    conversation: int | None = None
    failed_reason: str = ""
    usage: CliUsage | None = None
    model: str = ""


class CliTier(Lax):
    tier: int = 0
    updated_at: int = 0


class CliAt(Lax):
    daydream: int = 0
    full: int = 0
    quick: int = 0


class CliStatus(Lax):
    id: str = ""
    concepts: int = 0
    propositions: int = 0
    conversations: int = 0
    formation_processing: bool = False
    maintenance_processing: bool = False
    formation_processed_id: int = 0
    maintenance_processed_id: int = 0
    maintenance_at: CliAt = msgspec.field(default_factory=CliAt)


class CliSpace(CliStatus):
    name: str = ""
    description: str = ""
    owner: str = ""
    db_stats: dict[str, Any] = {}
    public: bool = False
    tier: CliTier = msgspec.field(default_factory=CliTier)
    formation_usage: CliUsage = msgspec.field(default_factory=CliUsage)
    recall_usage: CliUsage = msgspec.field(default_factory=CliUsage)
    maintenance_usage: CliUsage = msgspec.field(default_factory=CliUsage)


class CliMessage(Lax):
    role: str = ""
    content: str | list[str | dict[str, Any]] = ""
    name: str = ""
    user: str = ""
    timestamp: int | None = None


class CliConversation(Lax):
    id: int = msgspec.field(name="_id", default=0)
    user: str = ""
    label: str | None = None
    thread: str = ""
    messages: list[CliMessage] = []
    resources: list[Any] = []
    artifacts: list[Any] = []
    status: str = ""
    failed_reason: str | None = None
    period: int = 0
    created_at: int = 0
    updated_at: int = 0
    usage: CliUsage = msgspec.field(default_factory=CliUsage)
    steering_messages: list[str] = []
    follow_up_messages: list[str] = []
    ancestors: list[int] = []


class CliDelta(Lax):
    id: int = msgspec.field(name="_id", default=0)
    messages: list[Any] = []
    artifacts: list[Any] = []
    status: str = ""
    usage: CliUsage = msgspec.field(default_factory=CliUsage)
    failed_reason: str | None = None
    updated_at: int = 0
    child: int | None = None


class CliToken(Lax):
    name: str = ""
    token: str = ""
    scope: str = ""
    usage: int = 0  # not counted here, so it reads as nothing
    created_at: int = 0
    updated_at: int = 0
    expires_at: int | None = None


class CliModel(Lax):
    family: str = ""
    model: str = ""
    api_base: str = ""
    api_key: str = ""
    disabled: bool | None = None


class CliConcept(Lax):
    id: str = ""
    type: str = ""
    name: str = ""
    attributes: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class CliInfo(Lax):
    name: str = ""
    version: str = ""
    sharding: int = 0
    description: str = ""


class CliFailed(Exception):
    """The command ended with an error: what it prints."""


class Cli:
    """The command line: JSON in and out, the shard only where it is not 0, empty members left out.

    `wrapped`: whether it reads errors inside their envelope, as it has since 0.13.1.
    """

    def __init__(
        self, world: World, token: str, *, space: str = "demo", shard: int = 0, wrapped: bool = False
    ) -> None:
        self.world, self.token, self.space, self.shard, self.wrapped = world, token, space, shard, wrapped

    def run(self, method: str, path: str, body: Any = None, query: str = "") -> Answer:
        headers = {
            "accept": "application/json",
            "user-agent": "Go-http-client/1.1",
            "accept-encoding": "gzip",
        }
        if self.shard:
            headers["shard-id"] = str(self.shard)
        path = path.replace("{s}", self.space)
        answer = self.world.ask(method, path, body, token=self.token or None, headers=headers, query=query)
        if answer.status >= 400:
            told = answer.json.get("error", {}) if self.wrapped else answer.json
            raise CliFailed(f"HTTP {answer.status}: {told.get('message') or answer.body.decode()}")
        return answer

    def result[T](self, kind: type[T], method: str, path: str, body: Any = None, query: str = "") -> T:
        """`result` as the type that the command declares for it."""
        envelope = self.run(method, path, body, query).json
        assert set(envelope) <= {"result", "error", "next_cursor"}
        return msgspec.convert(envelope["result"], kind)


def test_the_command_line_remembers_and_recalls(world: World) -> None:
    """Parts with a capital Text, a timestamp of whole seconds, no context where there is none; then a question."""
    cli = Cli(world, world.space_token(scope="*"))
    parts = [{"type": "Text", "text": SAID}]
    talk = {
        "messages": [{"role": "user", "content": parts, "name": "Alice"}],
        "timestamp": "2026-05-28T20:00:00Z",
    }

    taken = cli.result(CliOutput, "POST", "/v1/{s}/formation", talk)
    form(world)
    said = cli.result(
        CliOutput, "POST", "/v1/{s}/recall", {"query": ASKED, "context": {"counterparty": "alice"}}
    )
    kept = cli.result(CliConversation, "GET", "/v1/{s}/conversations/1")

    assert taken.conversation == 1
    assert "Lisbon" in said.content
    assert (
        json.loads(str(kept.messages[0].content))["messages"][0]["content"] == SAID
    )  # as if sent as plain text
    assert (kept.label, kept.status, kept.user) == ("formation", "completed", "token:reader")


def test_the_command_line_looks_around(world: World) -> None:
    """Service, space, status, lists, one conversation and what it gained, each as its declared type."""
    cli = Cli(world, world.space_token(scope="*"))
    for n in range(12):
        cli.run(
            "POST",
            "/v1/{s}/formation",
            {"messages": [{"role": "user", "content": f"{n}: {SAID}"}], "timestamp": ""},
        )
    info = msgspec.convert(cli.run("GET", "/info").json, CliInfo)
    space = cli.result(CliSpace, "GET", "/v1/{s}/info")
    status = cli.result(CliStatus, "GET", "/v1/{s}/formation_status")
    listed = cli.run("GET", "/v1/{s}/conversations").json
    page = msgspec.convert(listed["result"], list[CliConversation])
    older = cli.run("GET", "/v1/{s}/conversations", query=f"cursor={listed['next_cursor']}&limit=10").json
    delta = cli.result(
        CliDelta, "GET", "/v1/{s}/conversations/3/delta", query="artifacts_offset=2&messages_offset=1"
    )

    assert (info.name, info.sharding) == ("noema", 0)
    assert (space.id, space.owner, space.tier.tier, space.conversations) == ("demo", "alice", 1, 12)
    assert (status.conversations, status.formation_processed_id) == (12, 0)
    assert [each.id for each in page] == list(range(3, 13))
    assert [each["_id"] for each in older["result"]] == [1, 2]
    assert "next_cursor" not in older
    assert (delta.id, delta.messages, delta.artifacts) == (3, [], [])


def test_the_command_line_maintains_and_reads_the_graph(world: World) -> None:
    """A run with a timestamp and empty words left out; a command of KIP; a person by a key."""
    cli = Cli(world, world.space_token(scope="*"))
    begun = cli.result(CliOutput, "POST", "/v1/{s}/maintenance", {"timestamp": "2026-05-28T20:26:40Z"})
    kip = cli.run("POST", "/v1/{s}/execute_kip_readonly", {"command": "DESCRIBE PRIMER"}).json
    person = cli.result(
        CliConcept, "POST", "/v1/{s}/get_or_init_user", {"user": "principal_123", "name": "Alice"}
    )
    run = cli.result(CliConversation, "GET", "/v1/{s}/conversations/1", query="collection=maintenance")

    assert (begun.conversation, run.label, run.status) == (1, "maintenance", "working")
    assert kip["status"] == "succeeded"
    assert person.id.startswith("C-")
    assert person.name == "Alice"


def test_commands_of_the_first_protocol_are_refused_and_not_run(world: World) -> None:
    """`commands` lives on in the MCP tool alone (§1.5); over REST the body says so, and its error is readable."""
    cli = Cli(world, world.space_token())
    told = cli.run("POST", "/v1/{s}/execute_kip_readonly", {"commands": ["DESCRIBE PRIMER"]}).json

    assert (told["status"], told["results"]) == ("failed", [])
    assert "commands" in told["error"]["message"]


def test_the_command_line_manages(world: World) -> None:
    """Spaces, tiers, tokens, names and the space's own model, by CWTs; each command ends as it expects."""
    admin = Cli(world, world.admin_token())
    made = admin.result(
        CliSpace, "POST", "/admin/create_space", {"user": "olga", "space_id": "two", "tier": 1}
    )
    tier = admin.result(
        CliTier, "POST", "/admin/two/update_space_tier", {"user": "olga", "space_id": "two", "tier": 2}
    )
    cli = Cli(world, world.token(aud="two", sub="olga"), space="two")
    manage = "/v1/{s}/management"
    minted = cli.result(CliToken, "POST", f"{manage}/add_space_token", {"scope": "*", "name": "bot"})
    listed = cli.result(list[CliToken], "GET", f"{manage}/space_tokens")
    model = {
        "family": "anthropic",
        "model": "claude-haiku-4-5",
        "api_base": "https://api.anthropic.com",
        "api_key": "sk-of-the-owner-0123456789",
    }
    assert cli.result(bool, "PATCH", f"{manage}/space_byok", model)
    shown = cli.result(CliModel, "GET", f"{manage}/space_byok")
    assert cli.result(bool, "PATCH", f"{manage}/update_space", {"name": "Two", "public": True})
    named = cli.result(CliSpace, "GET", "/v1/{s}/info")
    bot = Cli(world, minted.token, space="two")
    bot.run("POST", "/v1/{s}/formation", {"messages": [{"role": "user", "content": SAID}], "timestamp": ""})
    assert cli.result(bool, "PATCH", f"{manage}/restart_formation", {"conversation": 1})
    assert cli.result(bool, "POST", f"{manage}/revoke_space_token", {"token": minted.token})

    assert (made.id, made.owner, tier.tier) == ("two", "olga", 2)
    assert (minted.scope, minted.usage, listed[0].name) == ("*", 0, "bot")
    assert (shown.family, shown.api_base, shown.api_key) == ("anthropic", "https://api.anthropic.com", "")
    assert (named.name, named.public) == ("Two", True)
    with pytest.raises(CliFailed, match="HTTP 401: "):
        bot.run("POST", "/v1/{s}/formation", {"messages": [{"role": "user", "content": SAID}]})


@pytest.mark.parametrize("wrapped", [False, True], ids=["before 0.13.1", "since 0.13.1"])
def test_the_command_line_shows_what_went_wrong(world: World, wrapped: bool) -> None:
    """The older one looks for the message a level too high, finds none, and prints the body, which has it."""
    cli = Cli(world, world.token(), wrapped=wrapped)
    with pytest.raises(CliFailed, match="must be a question that is not blank"):
        cli.run("POST", "/v1/{s}/recall", {"query": " "})
    with pytest.raises(CliFailed, match="there is no conversation 42"):
        cli.run("GET", "/v1/{s}/conversations/42")
    with pytest.raises(CliFailed, match=r"HTTP 401: .*authentication failed"):
        Cli(world, "", wrapped=wrapped).run("GET", "/v1/{s}/info")


def test_the_command_line_names_its_shard() -> None:
    """Sent where it is not 0, and refused by a server of another number."""
    world = World(msgspec.structs.replace(KEYED, sharding=3))
    third = Cli(world, world.admin_token(), shard=3)
    assert (
        third.result(CliSpace, "POST", "/admin/create_space", {"user": "a", "space_id": "demo", "tier": 0}).id
        == "demo"
    )

    for shard in (0, 2):
        with pytest.raises(CliFailed, match=r"HTTP 400: .*Shard-Id"):
            Cli(world, world.admin_token(), shard=shard).run("GET", "/v1/{s}/info")
