"""The gateway on a real socket: what the handler is given is what was sent, and what it answers is what arrives."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from functions.http import decode_event
from functions.local.gateway import MAX_BODY_BYTES, Gateway, Server


class Clock:
    """A clock that stands still."""

    def now(self) -> int:
        return 1_767_225_600_000

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nothing here waits {seconds} s")


def echo(event, context):
    """Tells what it was given."""
    request = decode_event(event, context.aws_request_id)
    told = {
        "function": context.function_name,
        "remaining": context.get_remaining_time_in_millis(),
        "method": request.method,
        "path": event["rawPath"],
        "query": event["rawQueryString"],
        "body": request.body.hex(),
        "type": request.headers.get("content-type"),
        "agent": request.headers.get("user-agent"),
        "source": event["requestContext"]["http"]["sourceIp"],
    }
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(told)}


def broken(event, context):
    raise RuntimeError("secret " + event["rawPath"])


HANDLERS = {"/broken": broken, "/shapeless": lambda event, context: {"no": "status"}, "/empty": lambda e, c: {"statusCode": 204}}  # fmt: skip


@pytest.fixture(name="served", scope="module")
def _served() -> Iterator[tuple[str, list[str]]]:
    lines: list[str] = []
    gateway = Gateway(lambda _, path: ("echo", HANDLERS.get(path, echo)), clock=Clock(), log=lines.append)
    server = Server(gateway, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}", lines
    server.close()


def post(url: str, body: bytes, content_type: str) -> dict:
    response = httpx.post(url, content=body, headers={"content-type": content_type}, trust_env=False)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"a": 1}'),
        ("application/cbor", bytes(range(256))),
        ("text/plain", b"\xff\x00\xfe"),
    ],
)
def test_every_byte_arrives(served, content_type: str, body: bytes) -> None:
    """JSON, binary, and text that is no text reach the handler byte for byte."""
    told = post(served[0] + "/v1/demo/formation", body, content_type)

    assert bytes.fromhex(told["body"]) == body
    assert told["type"] == content_type
    assert told["remaining"] == 29_000


def test_the_target_stays_as_it_was_sent(served) -> None:
    """Percent-encoding, double slashes and dots in the path are the handler's to judge."""
    told = post(served[0] + "/v1/a%2Fb//c/%E4%BD%A0?x=%20&y=1", b"", "application/json")

    assert told["path"] == "/v1/a%2Fb//c/%E4%BD%A0"
    assert told["query"] == "x=%20&y=1"


def test_a_body_over_the_limit_is_refused(served) -> None:
    """API Gateway takes 10 MB; one byte more is a 413 that says so, and the connection's next request works."""
    response = httpx.post(served[0] + "/x", content=b"x" * (MAX_BODY_BYTES + 1), trust_env=False)

    assert response.status_code == 413
    assert response.json()["error"]["data"]["code"] == "PayloadTooLarge"
    assert response.headers["x-request-id"]
    assert post(served[0] + "/x", b"x" * MAX_BODY_BYTES, "text/plain")["body"][:4] == "7878"


@pytest.mark.parametrize("path", ["/broken", "/shapeless"])
def test_a_handler_that_fails_is_a_500_without_its_words(served, path: str) -> None:
    """The caller learns a request id; neither the answer nor the log repeats the exception's message."""
    response = httpx.get(served[0] + path, trust_env=False)

    assert response.status_code == 500
    assert response.json()["error"]["data"]["code"] == "InternalError"
    assert "secret /" not in response.text + "\n".join(served[1])


def test_an_answer_without_a_body_has_none(served) -> None:
    """204 has no body, and HEAD gets the headers of the answer alone."""
    assert httpx.get(served[0] + "/empty", trust_env=False).content == b""
    head = httpx.head(served[0] + "/v1/demo/info", trust_env=False)

    assert (head.status_code, head.content) == (200, b"")


def test_the_log_has_no_query_and_no_body(served) -> None:
    """One line for each request: method, path, status and time."""
    post(served[0] + "/v1/demo/recall?q=secret", b"secret", "text/plain")

    line = served[1][-1]

    assert line == "POST /v1/demo/recall 200 0 ms"


@pytest.mark.parametrize(
    "raw",
    [b"NONSENSE\r\n\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
     b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzzz\r\n\r\n"],
)  # fmt: skip
def test_what_is_no_http_does_not_reach_a_handler(served, raw: bytes) -> None:
    """A malformed request gets a 4xx of the server, or a closed connection."""
    host, port = served[0].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(raw)
        response = http.client.HTTPResponse(connection)
        response.begin()

    assert 400 <= response.status < 500


def test_a_chunked_body_arrives_whole(served) -> None:
    """A body of unknown length is a body."""
    response = httpx.post(served[0] + "/x", content=iter([b"ab", b"cd"]), trust_env=False)

    assert response.json()["body"] == b"abcd".hex()


def test_a_port_in_use_is_an_error(served) -> None:
    """A second server on the same port fails to start."""
    port = int(served[0].rsplit(":", 1)[1])

    with pytest.raises(OSError):
        Server(Gateway(lambda *_: ("x", echo), clock=Clock(), log=print), "127.0.0.1", port)
