"""A service in memory, spoken to by MCP messages: what the tests of `functions.mcp` share.

Every result that a test gets through here has been held against the tool's output schema and MCP's own types.
"""

import json
from collections.abc import Mapping
from typing import Any

import mcp_types
from jsonschema import Draft202012Validator
from mcp_types import methods

from functions.mcp.handler import TOOLBOX
from functions.mcp.paging import BUDGET, estimate_tokens
from functions.worker import work
from tests.functions.world import KEYED, Answer, World

OUTPUTS = {tool["name"]: tool.get("outputSchema") for tool in TOOLBOX.listed}
INPUTS = {tool["name"]: tool["inputSchema"] for tool in TOOLBOX.listed}
OWN_WORDS = 500  # estimated tokens around what was recalled: marks, names of members, the cursor, ids
STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


class Told(Exception):
    """The service answered with a JSON-RPC error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.number = error["code"]
        self.message = error["message"]
        self.data = error.get("data", {})
        super().__init__(str(error))


class Mcp:
    """A client of one space, in both eras; the token may be changed between calls."""

    def __init__(self, world: World, *, token: str | None = None, space: str = "demo") -> None:
        self.world = world
        self.token = token
        self.space = space
        self.version: str | None = "2025-11-25"

    def post(self, body: Any, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.world.ask("POST", f"/mcp/{self.space}", body, token=self.token, headers=given)

    def send(self, method: str, params: Mapping[str, Any] | None = None, *, message_id: Any = 1) -> Answer:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": message_id, "method": method}
        if params is not None:
            message["params"] = params
        if self.version != STATELESS:
            return self.post(message, **({"mcp_protocol_version": self.version} if self.version else {}))
        message["params"] = {"_meta": META, **(params or {})}
        headers = {"mcp_protocol_version": STATELESS, "mcp_method": method}
        if "name" in message["params"]:
            headers["mcp_name"] = message["params"]["name"]
        return self.post(message, **headers)

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request, valid by the types of its version."""
        answer = self.send(method, params)
        told = answer.json
        assert (told["jsonrpc"], told["id"]) == ("2.0", 1)
        if "error" in told:
            raise Told(told["error"])
        assert answer.status == 200
        if method != "ping":
            methods.validate_server_result(method, self.version or "2025-03-26", told["result"])
        return told["result"]

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """A CallToolResult whose structured content fits the tool's output schema."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        check(tool, result)
        return result

    def ok(self, tool: str, /, **arguments: Any) -> Any:
        """The structured content of a call that must succeed."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result["content"]
        return result.get("structuredContent")

    def failed(self, tool: str, /, **arguments: Any) -> str:
        """The text of a call that must end as a result with isError, in text alone."""
        result = self.call(tool, **arguments)
        assert result["isError"]
        assert set(result) <= {"content", "isError", "resultType", "_meta"}
        return text_of(result)

    def form(self) -> None:
        """Let the worker do what the queue hints at."""
        queue: Any = self.world.queue
        records = [
            {"messageId": f"m{n}", "body": body, "attributes": {"MessageGroupId": group}}
            for n, (group, body, _) in enumerate(queue.sent)
        ]
        queue.sent.clear()
        assert work({"Records": records}, None, self.world.services) == {"batchItemFailures": []}


def text_of(result: Mapping[str, Any]) -> str:
    assert [each["type"] for each in result["content"]] == ["text"]
    return str(result["content"][0]["text"])


def check(tool: str, result: Mapping[str, Any]) -> None:
    """What a strict client asks: valid types, and structured content exactly where the schema promises it."""
    mcp_types.CallToolResult.model_validate(result)
    structured = json.dumps(result.get("structuredContent", {}), ensure_ascii=False, allow_nan=False)
    for told in (text_of(result), structured):
        assert estimate_tokens(told) <= BUDGET + OWN_WORDS, told[:200]
    schema = OUTPUTS[tool]
    if result["isError"]:
        assert "structuredContent" not in result
        return
    if schema is None:
        return
    Draft202012Validator(schema).validate(result["structuredContent"])


def client(*, settings: Any = KEYED, scope: str = "*") -> Mcp:
    """A client with a token for a fresh space."""
    world = World(settings).make_space()
    return Mcp(world, token=world.token(scope=scope))
