"""Messages as lines: the loop, and a service elsewhere that misbehaves."""

import io
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from functions.identity import LOCAL
from functions.mcp import stdio
from functions.mcp.handler import TOOLBOX
from tests.functions.world import KEYED, World
from tests.mcp.world import META, STATELESS

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def here(space: str = "demo") -> stdio.Here:
    world = World(KEYED).make_space()
    return stdio.Here(world.services, TOOLBOX, msgspec.structs.replace(LOCAL, channel="mcp"), space)


def spoken(answer: stdio.Answerer, *lines: bytes) -> list[Any]:
    out = io.BytesIO()
    stdio.run(io.BytesIO(b"\n".join(lines) + b"\n"), out, answer)
    assert out.getvalue() == b"" or out.getvalue().endswith(b"\n")
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_each_request_is_a_line_and_its_answer_another() -> None:
    """In order; blank lines and notifications are answered by nothing, nonsense by an error."""
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    two = b'{"jsonrpc":"2.0","id":"two","method":"tools/list"}'

    told = spoken(
        here(), PING, b"", note, b"nonsense", b"[]", two, b'  {"jsonrpc":"2.0","id":3,"method":"x"} \r'
    )

    assert [(each["id"], each.get("error", {}).get("code")) for each in told] == [
        (1, None), (None, -32700), (None, -32600), ("two", None), (3, -32601),
    ]  # fmt: skip


def test_a_line_over_the_bound_is_refused_and_the_next_is_answered() -> None:
    """6 MB; the rest of the line is thrown away, not read as another message."""
    told = spoken(here(), b'"' + b"x" * (stdio.MAX_LINE_BYTES * 2) + b'"', PING)

    assert [each.get("error", {}).get("code") for each in told] == [-32600, None]


def test_an_end_without_a_line_end_is_a_line_too() -> None:
    """A client that closes its side right after a message gets its answer."""
    out = io.BytesIO()
    stdio.run(io.BytesIO(PING), out, here())

    assert json.loads(out.getvalue()) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_both_eras_may_be_spoken_on_one_connection() -> None:
    """Each stateless request says so itself; the greeting's version holds for the others."""
    greet = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    discover = {"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": META}}
    bad = {**discover, "params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}}

    told = spoken(here(), *(json.dumps(each).encode() for each in (discover, greet, bad)), PING)

    assert told[0]["result"]["resultType"] == "complete"
    assert told[1]["result"]["protocolVersion"] == "2025-06-18"
    assert told[2]["error"]["code"] == -32022
    assert told[3]["result"] == {}


def test_a_space_that_is_not_there_is_told() -> None:
    """In the words of the service, with its code."""
    told = spoken(here("nowhere"), PING)

    assert told[0]["error"]["data"]["code"] == "NotFoundOrNotVisible"


def test_a_bug_does_not_end_the_loop() -> None:
    """It is told as an internal error without its words, and the next line is answered."""
    world = World(KEYED).make_space()
    answer = stdio.Here(world.services, TOOLBOX, LOCAL, "demo")

    def broken(space: str) -> None:
        raise RuntimeError("secret")

    world.services.admin.info = broken
    call = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"anda_brain_get_space_info"}}'

    told = spoken(answer, call, PING)

    assert told[0]["error"]["code"] == -32603
    assert "secret" not in json.dumps(told)
    assert told[1]["result"] == {}


# --- a service elsewhere


class Reply(msgspec.Struct):
    status_code: int
    content: bytes


class Elsewhere:
    """A service that answers as it is told, and keeps what it was asked."""

    def __init__(self, status: int = 200, body: Any = None, *, down: bool = False) -> None:
        self.reply = Reply(status, body if isinstance(body, bytes) else json.dumps(body).encode())
        self.down = down
        self.asked: list[tuple[bytes, Mapping[str, str]]] = []

    def __call__(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        self.asked.append((body, headers))
        if self.down:
            raise OSError("no route")
        return self.reply


@pytest.mark.parametrize(
    "elsewhere",
    [
        Elsewhere(down=True),
        Elsewhere(502, b"<html>bad gateway</html>"),
        Elsewhere(200, b""),
        Elsewhere(200, []),
        Elsewhere(500, {"message": "Internal Server Error"}),
    ],
)
def test_a_service_that_does_not_speak_jsonrpc_is_an_error_of_the_request(elsewhere: Elsewhere) -> None:
    """A request gets -32603 with its own id; a notification gets nothing, whatever happened to it."""
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

    told = spoken(stdio.There(elsewhere), note, PING)

    assert [(each["id"], each["error"]["code"]) for each in told] == [(1, -32603)]


def test_what_never_reaches_the_service_is_answered_here() -> None:
    """Nonsense is no request to hand on."""
    elsewhere = Elsewhere(200, {"result": {}})

    told = spoken(stdio.There(elsewhere), b"nonsense", b'{"jsonrpc":"2.0","id":1,"result":{}}')

    assert [each["error"]["code"] for each in told] == [-32700]
    assert elsewhere.asked == []


def test_an_error_of_the_service_comes_back_under_the_requests_id() -> None:
    """Also one that was refused before its id was read."""
    elsewhere = Elsewhere(401, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}})

    assert spoken(stdio.There(elsewhere), PING)[0]["id"] == 1


def test_headers_follow_the_version() -> None:
    """None while greeting, the agreed version after it, the three of 2026-07-28 where a request says so."""
    elsewhere = Elsewhere(200, {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}})
    greet = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "naïve", "_meta": META}}

    spoken(stdio.There(elsewhere), greet, PING, json.dumps(call).encode())

    first, second, third = (headers for _, headers in elsewhere.asked)
    assert "mcp-protocol-version" not in first
    assert second["mcp-protocol-version"] == "2025-06-18"
    assert (third["mcp-protocol-version"], third["mcp-method"]) == (STATELESS, "tools/call")
    assert third["mcp-name"] == "=?base64?bmHDr3Zl?="
