"""JSON-RPC 2.0 as MCP uses it: bytes to messages, results and errors to bytes. Pure.

What lives here: framing and its faults. What must never live here: what a method means (`protocol`) and how a
message travels (`http`, `stdio`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from functions.plain import decode_json

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020  # MCP 2026-07-28
UNSUPPORTED_VERSION: Final = -32022  # MCP 2026-07-28

Id = str | int


class RpcError(Exception):
    """A request that ends with a JSON-RPC error.

    Args:
        code: one of the numbers above.
        message: what was wrong, for the reader of the error.
        data: more for a program, as JSON values.
    """

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(message)


class Message(msgspec.Struct, frozen=True):
    """A request, or a notification if `id` is None."""

    method: str
    params: dict[str, Any]
    id: Id | None = None


def decode(body: bytes) -> Any:  # any JSON value
    """The JSON of a body, read strictly: no member twice, no NaN, no half characters.

    Raises:
        RpcError: `PARSE_ERROR`.
    """
    try:
        return decode_json(body)
    except NoemaError as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error.message}") from error


def read(value: Any) -> Message | None:  # any JSON value
    """The message in a value; None for a response, which answers no question of ours.

    Raises:
        RpcError: `INVALID_REQUEST`: it is no JSON-RPC 2.0 message that MCP allows.
    """
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Invalid request: a message is a JSON object")
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'Invalid request: jsonrpc must be "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return None
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not method:
        raise RpcError(INVALID_REQUEST, "Invalid request: method must be a text")
    if "id" in value and id_of(value) is None:
        raise RpcError(INVALID_REQUEST, "Invalid request: id must be a text or a whole number")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "Invalid request: params must be an object")
    return Message(method, params or {}, id_of(value))


def id_of(value: Any) -> Id | None:  # any JSON value
    """The id that an answer to this value must bear; None where none can be read."""
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def result(message_id: Id, value: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": message_id, "result": value}


def failure(message_id: Id | None, error: RpcError) -> dict[str, Any]:
    """The error that answers a request; the id is null where none could be read."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": message_id, "error": told}


def encode(answer: Any) -> bytes:  # any value msgspec can encode
    """An answer, or a list of them, as one line of JSON."""
    return msgspec.json.encode(answer)
