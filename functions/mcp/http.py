"""MCP over Streamable HTTP, stateless and in JSON: one POST, one answer, nothing kept between them.

What lives here: what HTTP adds to the protocol: who may come from where, media types, versions in headers,
batches, statuses. What must never live here: a method (`protocol`) or a tool (`toolbox`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from functions import failures
from functions.bootstrap import Services
from functions.http import HttpRequest, HttpResponse
from functions.logs import bug
from functions.mcp import protocol, rpc
from functions.mcp.creating import make_missing
from functions.mcp.protocol import Server
from functions.mcp.rpc import RpcError
from functions.mcp.toolbox import Toolbox, Turn, rpc_error
from functions.routing import Call
from functions.settings import is_loopback

_JSON: Final = {"content-type": "application/json", "cache-control": "no-store"}
_STATUS: Final = {
    rpc.PARSE_ERROR: 400,
    rpc.INVALID_REQUEST: 400,
    rpc.INVALID_PARAMS: 400,
    rpc.HEADER_MISMATCH: 400,
    rpc.UNSUPPORTED_VERSION: 400,
    rpc.METHOD_NOT_FOUND: 404,
}
"""Statuses of 2026-07-28. Before it, an error that answers a request is a 200: clients of that time take another
status for a broken connection."""
_UNAUTHENTICATED: Final = "Unauthenticated"


class Endpoint:
    """Answers the POSTs of one set of tools."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def serve(self, services: Services, call: Call) -> HttpResponse:
        """Answer one admitted POST.

        Raises:
            NoemaError: `NotAuthorized` for a host or an origin that is not allowed; `NotFoundOrNotVisible` and
                `ServiceUnavailable` of the space.
        """
        request = call.request
        check_sender(request, services.settings.mcp_hosts, services.settings.mcp_origins)
        make_missing(services, call)
        turn = Turn(
            services=services,
            caller=msgspec.structs.replace(call.caller, channel="mcp"),
            space=call.space,
            deadline=call.deadline,
            key=call.idempotency_key,
            request_id=request.request_id,
        )
        try:
            check_media(request)
            value = rpc.decode(request.body)
            if isinstance(value, list):
                return self._batch(turn, request, value)
            return self._one(turn, request, value)
        except RpcError as error:
            return _failed(None, error, 406 if error.code == _NOT_ACCEPTABLE else 400)

    def _one(self, turn: Turn, request: HttpRequest, value: Any) -> HttpResponse:  # a JSON value
        header = request.headers.get("mcp-protocol-version")
        stateless = header in protocol.STATELESS_VERSIONS
        try:
            message = rpc.read(value)
            if message is None or message.id is None:
                return _noted(message, header)
            stateless = protocol.is_stateless(message, header)
            version = version_of(message, header, request.headers) if stateless else _greeting_version(header)
            if message.method != "tools/call":
                turn.services.spaces.head(turn.space)  # a tool finds out by itself that a space is not there
            server = Server(self._toolbox.listed, lambda n, a: self._toolbox.call(turn, n, a))
            answer = rpc.result(message.id, server.answer(message, version))
            return HttpResponse(status=200, headers=_JSON, body=rpc.encode(answer))
        except RpcError as error:
            named = rpc.id_of(value)
            plain = 200 if named is not None and error.code != rpc.UNSUPPORTED_VERSION else 400
            return _failed(named, error, _STATUS.get(error.code, 200) if stateless else plain)
        except NoemaError:
            raise  # of the space, not of the message
        except Exception as error:  # noqa: BLE001 - the edge: the answer must bear the request's id
            bug(error, request_id=turn.request_id, route="mcp")
            fault = rpc_error(failures.internal(turn.request_id))
            return _failed(rpc.id_of(value), fault, 500 if stateless else 200)

    def _batch(self, turn: Turn, request: HttpRequest, values: list[Any]) -> HttpResponse:
        """Several messages at once, where the version has that."""
        version = _greeting_version(request.headers.get("mcp-protocol-version"))
        if version not in protocol.BATCHING:
            raise RpcError(rpc.INVALID_REQUEST, f"Invalid request: {version} has no batches")
        if not 0 < len(values) <= protocol.MAX_BATCH:
            raise RpcError(
                rpc.INVALID_REQUEST, f"Invalid request: a batch holds 1 to {protocol.MAX_BATCH} messages"
            )
        if any(isinstance(each, dict) and each.get("method") == "initialize" for each in values):
            raise RpcError(rpc.INVALID_REQUEST, "Invalid request: initialize comes alone")
        answers = [self._one(turn, request, each) for each in values]
        for each in answers:
            if each.status == 401:
                return each
        bodies = [each.body for each in answers if each.body]
        if not bodies:
            return HttpResponse(status=202, headers=_JSON, body=b"")
        return HttpResponse(status=200, headers=_JSON, body=b"[" + b",".join(bodies) + b"]")


def _noted(message: rpc.Message | None, header: str | None) -> HttpResponse:
    """The answer to a notification, or to a response, of which there is none to await: taken, and nothing said."""
    if header is not None and header not in protocol.VERSIONS:
        raise protocol.unsupported(header)
    if message is None and header in protocol.STATELESS_VERSIONS:
        raise RpcError(rpc.INVALID_REQUEST, "Invalid request: a client sends no responses")
    return HttpResponse(status=202, headers=_JSON, body=b"")


_NOT_ACCEPTABLE: Final = -32010  # in the band that JSON-RPC leaves to us


def version_of(message: rpc.Message, header: str | None, headers: Mapping[str, str]) -> str:
    """The version of a stateless request; the header must be there and agree with the body."""
    if header is not None and header not in protocol.VERSIONS:
        raise protocol.unsupported(header)
    return protocol.check_stateless(message, headers)


def _greeting_version(header: str | None) -> str:
    if header is None:
        return protocol.ASSUMED
    if header not in protocol.VERSIONS:
        raise protocol.unsupported(header)
    return header


def check_media(request: HttpRequest) -> None:
    """JSON in and JSON out. It also keeps out what a page may send without asking first (text, forms).

    Raises:
        RpcError: another media type.
    """
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json":
        raise RpcError(rpc.INVALID_REQUEST, "Invalid request: Content-Type must be application/json")
    accept = request.headers.get("accept", "*/*").lower()
    if not any(each in accept for each in ("application/json", "application/*", "*/*")):
        raise RpcError(_NOT_ACCEPTABLE, "the answer is application/json, which Accept does not take")


def check_sender(request: HttpRequest, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
    """Refuse names that are not ours and pages that are not listed: a name can be rebound to this address.

    Args:
        request: its `Host` and `Origin` are looked at.
        hosts: names this endpoint is called by, with or without port; empty is loopback alone, `*` any.
        origins: origins of pages that may call it; `*` any. A request without `Origin` comes from no page.

    Raises:
        NoemaError: `NotAuthorized`.
    """
    host = request.headers.get("host", "").lower()
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    allowed = "*" in hosts or host in hosts or name in hosts or (not hosts and is_loopback(name))
    if not allowed:
        raise NoemaError(
            "NotAuthorized",
            "this host name is not one that MCP is served under",
            hint="The operator adds it to MCP_HTTP_ALLOWED_HOSTS.",
        )
    origin = request.headers.get("origin")
    if origin is not None and not ("*" in origins or origin.lower() in origins):
        raise NoemaError(
            "NotAuthorized",
            "a web page of this origin may not call MCP",
            hint="The operator adds it to MCP_HTTP_ALLOWED_ORIGINS.",
        )


def refused(error: NoemaError) -> HttpResponse:
    """What a refusal before any message looks like: the status and headers of REST, in JSON-RPC's words too."""
    response = failures.to_response(error)
    number = rpc_error(error).code
    told = {"code": number, **failures.error_body(error)["error"]}
    body = rpc.encode({"jsonrpc": "2.0", "id": None, "error": told})
    return msgspec.structs.replace(response, body=body)


def _failed(message_id: rpc.Id | None, error: RpcError, status: int) -> HttpResponse:
    headers: Mapping[str, str] = _JSON
    if error.data is not None and error.data.get("code") == _UNAUTHENTICATED:
        status, headers = 401, {**_JSON, "www-authenticate": failures.CHALLENGE}
    return HttpResponse(status=status, headers=headers, body=rpc.encode(rpc.failure(message_id, error)))
