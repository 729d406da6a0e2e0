"""MCP over standard input and output: one message a line in, one a line out, for one fixed space.

What lives here: the loop, and the two ways to answer a line: by this process's own services, or by a service
elsewhere over HTTP. What must never live here: methods and tools. Nothing but JSON-RPC may be written to the
stream: whoever starts the loop keeps the process's other output away from it.

Lines are answered one after the other. A client may send several at once; each answer bears its request's id.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from core.errors import NoemaError
from core.service.values import Caller
from functions import failures
from functions.bootstrap import Services
from functions.logs import bug
from functions.mcp import protocol, rpc
from functions.mcp.protocol import Server
from functions.mcp.rpc import Message, RpcError
from functions.mcp.toolbox import Toolbox, Turn, rpc_error
from functions.routing import DEFAULT_DEADLINE_MS

MAX_LINE_BYTES: Final = 6_000_000  # as over HTTP
Answerer = Callable[[bytes], bytes | None]  # a line without its end -> the answer, if there is one


class Lines(Protocol):
    """What is read from."""

    def readline(self, size: int = -1, /) -> bytes:
        """A line with its end, at most `size` bytes of it; nothing at the end of the input."""


class Sink(Protocol):
    """What is written to."""

    def write(self, data: bytes, /) -> object:
        """Take some bytes."""

    def flush(self) -> object:
        """Hand them over."""


def run(lines: Lines, sink: Sink, answer: Answerer) -> None:
    """Answer line after line until the input ends."""
    while line := lines.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = lines.readline(MAX_LINE_BYTES)
            told: bytes | None = failed(
                None, RpcError(rpc.INVALID_REQUEST, "Invalid request: the line is too long")
            )
        else:
            told = answer(line.strip()) if line.strip() else None
        if told is not None:
            sink.write(told + b"\n")
            sink.flush()


def failed(message_id: rpc.Id | None, error: RpcError) -> bytes:
    """An error as a line."""
    return rpc.encode(rpc.failure(message_id, error))


# --- by this process


class Here:
    """Answers by this process's own services, as one caller of one space."""

    def __init__(self, services: Services, toolbox: Toolbox, caller: Caller, space: str) -> None:
        self._services = services
        self._toolbox = toolbox
        self._caller = caller
        self._space = space
        self._version = protocol.GREETING_VERSIONS[-1]

    def __call__(self, line: bytes) -> bytes | None:
        """The answer to a line; None for a notification."""
        value: Any = None
        try:
            value = rpc.decode(line)
            message = rpc.read(value)
            if message is None or message.id is None:
                return None
            return rpc.encode(rpc.result(message.id, self._answer(message, message.id)))
        except RpcError as error:
            return failed(rpc.id_of(value), error)
        except NoemaError as error:
            return failed(rpc.id_of(value), rpc_error(error))
        except Exception as error:  # noqa: BLE001 - the edge: the loop must go on
            bug(error, request_id=str(rpc.id_of(value)), route="mcp")
            return failed(rpc.id_of(value), rpc_error(failures.internal(str(rpc.id_of(value)))))

    def _answer(self, message: Message, message_id: rpc.Id) -> dict[str, Any]:
        stateless = protocol.is_stateless(message, None)
        version = protocol.check_stateless(message, None) if stateless else self._version
        turn = Turn(
            services=self._services,
            caller=self._caller,
            space=self._space,
            deadline=self._services.clock.now() + DEFAULT_DEADLINE_MS,
            request_id=str(message_id),
        )
        if message.method != "tools/call":
            self._services.spaces.head(self._space)
        server = Server(self._toolbox.listed, lambda name, given: self._toolbox.call(turn, name, given))
        answer = server.answer(message, version)
        if message.method == "initialize":
            self._version = answer["protocolVersion"]
        return answer


# --- by a service elsewhere


class Reply(Protocol):
    """An HTTP response."""

    @property
    def status_code(self) -> int:
        """The status."""

    @property
    def content(self) -> bytes:
        """The body."""


Post = Callable[[bytes, Mapping[str, str]], Reply]  # (body, headers) -> the response; OSError if out of reach


class There:
    """Hands each line to a service over HTTP, with the headers that its version asks for."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._version: str | None = None

    def __call__(self, line: bytes) -> bytes | None:
        """The service's answer to a line; None for a notification."""
        try:
            value = rpc.decode(line)
            message = rpc.read(value)
        except RpcError as error:
            return failed(None, error)
        if message is None:
            return None
        try:
            reply = self._post(line, self._headers(message))
        except OSError as error:
            return _unless_noted(
                message, RpcError(rpc.INTERNAL_ERROR, f"the service cannot be reached: {error}")
            )
        return self._answer(message, reply)

    def _answer(self, message: Message, reply: Reply) -> bytes | None:
        if reply.status_code == 202:
            return None
        try:
            told = rpc.decode(reply.content)
        except RpcError:
            told = None
        if not isinstance(told, dict) or not ("result" in told or "error" in told):
            error = RpcError(rpc.INTERNAL_ERROR, f"the service answered {reply.status_code}, and no JSON-RPC")
            return _unless_noted(message, error)
        if message.id is None:
            return None
        if message.method == "initialize" and "result" in told:
            self._version = told["result"].get("protocolVersion")
        return rpc.encode({**told, "jsonrpc": "2.0", "id": message.id})

    def _headers(self, message: Message) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        meta = message.params.get("_meta")
        said = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
        if isinstance(said, str) and message.method != "initialize":
            headers |= {"mcp-protocol-version": _spelt(said), "mcp-method": _spelt(message.method)}
            if isinstance(message.params.get("name"), str):
                headers["mcp-name"] = _spelt(message.params["name"])
        elif self._version is not None and message.method != "initialize":
            headers["mcp-protocol-version"] = self._version
        return headers


def _unless_noted(message: Message, error: RpcError) -> bytes | None:
    """An error that answers a request; a notification is answered by nothing."""
    return None if message.id is None else failed(message.id, error)


def _spelt(text: str) -> str:
    """A text as a header carries it: in base64 where it is not plain."""
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?")
    return text if plain else f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode()}?="
