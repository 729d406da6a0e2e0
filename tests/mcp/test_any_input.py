"""Whatever is sent, the answer is a JSON-RPC message, and no input is a fault of ours."""

import json
from typing import Any

import mcp_types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.mcp.handler import TOOLBOX
from tests.mcp.world import META, STATELESS, Mcp, check, client

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
LISTED = {tool["name"]: tool for tool in TOOLBOX.listed}
FAULTS = (-32603,)


@pytest.fixture(name="mcp", scope="module")
def _mcp() -> Mcp:
    return client()


def is_fine(mcp: Mcp, answer: Any) -> None:
    """An answer that MCP allows, and no internal error."""
    assert answer.status in (200, 202, 400, 404, 406)
    if answer.status == 202:
        assert answer.body == b""
        return
    for told in answer.json if isinstance(answer.json, list) else [answer.json]:
        if "error" in told:
            mcp_types.JSONRPCError.model_validate(told)
            assert told["error"]["code"] not in FAULTS, told
        else:
            mcp_types.JSONRPCResponse.model_validate(told)


@FEW
@given(VALUES)
def test_any_json(mcp: Mcp, value: Any) -> None:
    """Also what is no message at all."""
    is_fine(mcp, mcp.post(json.dumps(value).encode()))


@FEW
@given(st.binary(max_size=200))
def test_any_bytes(mcp: Mcp, body: bytes) -> None:
    """Also what is no text."""
    is_fine(mcp, mcp.post(body))


METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "server/discover",
    "notifications/initialized",
    "x",
]


@FEW
@given(
    st.sampled_from(METHODS),
    VALUES,
    VALUES,
    st.sampled_from([None, "2025-03-26", "2025-11-25", STATELESS, "x"]),
    st.booleans(),
)
def test_any_parameters(
    mcp: Mcp, method: str, message_id: Any, params: Any, version: str | None, meta: bool
) -> None:
    """Of any method, in any version, with any id."""
    given_params = {**params, "_meta": META} if meta and isinstance(params, dict) else params
    message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": given_params}
    headers = {"mcp_method": method} | ({"mcp_protocol_version": version} if version else {})

    is_fine(mcp, mcp.post(json.dumps(message).encode(), **headers))


@pytest.mark.parametrize("name", LISTED)
def test_any_arguments(mcp: Mcp, name: str) -> None:
    """Of any tool: known names with odd values, good values beside them, and names that nobody knows."""
    schema = LISTED[name]["inputSchema"]
    good = {
        "agent_id": st.just("a"),
        "query": st.just("tea"),
        "action": st.sampled_from(["add", "update", "link"]),
    }
    members = {member: good.get(member, st.nothing()) | VALUES for member in schema["properties"]}
    needed = {member: members.pop(member) for member in schema.get("required", [])}

    @settings(max_examples=40, deadline=None)
    @given(
        st.fixed_dictionaries(needed, optional=members)
        | st.dictionaries(st.text(max_size=9), VALUES, max_size=3)
    )
    def holds(arguments: dict[str, Any]) -> None:
        answer = mcp.send("tools/call", {"name": name, "arguments": arguments})
        is_fine(mcp, answer)
        if "result" in answer.json:
            check(name, answer.json["result"])
            text = answer.json["result"]["content"][0]["text"]
            assert not text.startswith("InternalError"), text

    holds()
