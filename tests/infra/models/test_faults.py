"""What can go wrong between us and a provider, and what each of it is called."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from core.models.chat import ModelFault
from infra.models.http import MAX_REPLY_BYTES
from infra.models.refusals import fault_of, retry_after
from infra.system import SystemClock
from tests.doubles import EPOCH
from tests.infra.models.wire import HELLO, KEY, Wire, said, streamed

MODEL = "openai:m@https://models.example/v1"
GOOD = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}

STATUSES: dict[str, tuple[int, Any, str, int]] = {
    # status, body, kind, how often it is asked
    "a request that is wrong": (400, {"error": {"message": "x", "code": "invalid_value"}}, "bad_request", 1),
    "a prompt too long for OpenAI": (
        400, {"error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}},
        "context_overflow", 1,
    ),
    "for Anthropic": (
        400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}},
        "context_overflow", 1,
    ),
    "for llama.cpp": (
        400, {"error": {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}},
        "context_overflow", 1,
    ),
    "for Gemini": (
        400, [{"error": {"status": "INVALID_ARGUMENT", "message": "The input token count (9) exceeds the maximum"}}],
        "context_overflow", 1,
    ),
    "for anybody": (413, "too large", "context_overflow", 1),
    "a key that is none": (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "unauthorized", 1),
    "no credit": (402, {"error": {"message": "Insufficient Balance"}}, "unauthorized", 1),
    "a quota used up, which no waiting changes": (
        429, {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}, "unauthorized", 1,
    ),
    "no right": (403, {}, "unauthorized", 1),
    "no such model": (404, {"error": {"code": "model_not_found"}}, "bad_request", 1),
    "a timeout of theirs": (408, "", "unavailable", 5),
    "a conflict": (409, "", "unavailable", 5),
    "too early": (425, "", "unavailable", 5),
    "too many": (429, {"error": {"type": "rate_limit_error"}}, "rate_limited", 6),
    "a fault of theirs": (500, "<html><body>Internal Server Error</body></html>", "unavailable", 5),
    "a gateway": (502, "<html>Bad Gateway</html>", "unavailable", 5),
    "busy": (503, "", "unavailable", 5),
    "their gateway's timeout": (504, "", "unavailable", 5),
    "overloaded": (529, {"type": "error", "error": {"type": "overloaded_error"}}, "unavailable", 5),
    "a redirect, which would carry the key along": (302, "", "bad_request", 1),
    "a status of their own": (418, "teapot", "bad_request", 1),
    "a success that is none": (204, "", "bad_request", 1),
}  # fmt: skip


def answered(status: int, body: Any) -> httpx.Response:
    if isinstance(body, str):
        return httpx.Response(status, text=body, headers={"location": "http://169.254.169.254/"})
    return httpx.Response(status, json=body)


@pytest.mark.parametrize("name", STATUSES)
def test_a_status_is_a_fault_and_passing_ones_are_tried_again(name: str) -> None:
    """Whatever the body holds, no word of it and no key comes out but a code that looks like one."""
    status, body, kind, tries = STATUSES[name]
    wire = Wire(MODEL, *[answered(status, body) for _ in range(10)])

    with pytest.raises(ModelFault) as caught:
        wire.ask(patience_ms=600_000)

    assert caught.value.kind == kind
    assert len(wire.provider.requests) == tries
    assert caught.value.usage.requests == tries
    assert KEY not in str(caught.value)
    assert "html" not in str(caught.value)
    assert f"HTTP {status}" in caught.value.message


BODIES: dict[str, httpx.Response] = {
    "an HTML page called a success": httpx.Response(200, text="<html>Log in to the Wi-Fi</html>"),
    "nothing": httpx.Response(200, text=""),
    "half of it": httpx.Response(200, text='{"choices": [{"mess'),
    "no UTF-8": httpx.Response(200, content=b'{"choices": "\xff\xfe"}'),
    "a well without a bottom": httpx.Response(200, text="[" * 100_000),
    "packed wrongly": httpx.Response(200, content=b"not gzip", headers={"content-encoding": "identity"}),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_json_is_a_bad_reply(name: str) -> None:
    """It is asked for once more, as that may help, and not for ever."""
    wire = Wire(MODEL, *[BODIES[name]] * 5)

    with pytest.raises(ModelFault) as caught:
        wire.ask()

    assert (caught.value.kind, len(wire.provider.requests)) == ("bad_reply", 2)


def test_a_reply_larger_than_the_bound_is_not_read_to_its_end() -> None:
    """Not even where its length is not announced."""
    read: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            read.append(1)
            yield b"x" * 1_000_000

    wire = Wire(MODEL, *[httpx.Response(200, stream=_Stream(endless())) for _ in range(2)])

    with pytest.raises(ModelFault, match="larger"):
        wire.ask()

    assert len(read) == 2 * (MAX_REPLY_BYTES // 1_000_000 + 1)


class _Stream(httpx.SyncByteStream):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


RAISED: dict[str, tuple[Exception, str, int]] = {
    "nobody listens": (httpx.ConnectError("refused"), "unavailable", 5),
    "the connection takes too long": (httpx.ConnectTimeout("slow"), "unavailable", 5),
    "it is reset": (httpx.ReadError("reset"), "unavailable", 5),
    "it is closed before the answer": (httpx.RemoteProtocolError("closed"), "unavailable", 5),
    "nothing comes": (httpx.ReadTimeout("slow"), "timeout", 2),
    "it cannot be unpacked": (httpx.DecodingError("gzip"), "bad_reply", 2),
}


@pytest.mark.parametrize("name", RAISED)
def test_a_connection_that_fails_is_a_fault(name: str) -> None:
    """Each is tried again while there is time."""
    error, kind, tries = RAISED[name]
    wire = Wire(MODEL, *[error] * 8)

    with pytest.raises(ModelFault) as caught:
        wire.ask(patience_ms=600_000)

    assert (caught.value.kind, len(wire.provider.requests)) == (kind, tries)


def test_it_may_work_the_second_time() -> None:
    """Then the usage counts both requests."""
    wire = Wire(MODEL, httpx.Response(503), said(GOOD))

    reply = wire.ask()

    assert (reply.text, reply.usage.requests) == ("Hi.", 2)


def test_the_provider_says_how_long_to_wait() -> None:
    """Never less than it asks, and not at all if that is past the deadline."""
    wire = Wire(MODEL, httpx.Response(429, headers={"retry-after": "7"}), said(GOOD))

    wire.ask()

    assert 7_000 <= wire.clock.time - EPOCH <= 7_700
    late = Wire(MODEL, httpx.Response(429, headers={"retry-after": "90"}))
    with pytest.raises(ModelFault) as caught:
        late.ask(patience_ms=60_000)
    assert caught.value.retry_after_ms == 90_000
    assert late.clock.time == EPOCH


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3_000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after-ms": "250", "retry-after": "1"}, 250),
        ({"retry-after": "Thu, 28 May 2026 20:27:00 GMT"}, 100_000),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "99999999"}, 3_600_000),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
    ],
)
def test_retry_after_comes_in_seconds_milliseconds_and_dates(
    headers: dict[str, str], wait: int | None
) -> None:
    """What cannot be read is as if it were not there; no provider holds us longer than an hour."""
    assert EPOCH == 1_780_000_000_000  # 2026-05-28T20:26:40Z
    assert (
        retry_after(headers, EPOCH - EPOCH % 1000 if wait != 100_000 else 1_780_000_000_000 - 80_000) == wait
    )


def test_a_code_that_might_be_a_key_is_not_told() -> None:
    """A server that echoes the key as its error's code gets it no further."""
    fault = fault_of(
        400, {}, b'{"error": {"code": "%s", "type": "invalid_request_error"}}' % KEY.encode(), EPOCH
    )

    assert KEY not in fault.message
    assert "invalid_request_error" in fault.message


def test_no_utf8_in_a_stream_is_a_bad_reply() -> None:
    """It is no text of anybody."""
    body = b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'
    wire = Wire(MODEL, streamed(body), streamed(body))

    with pytest.raises(ModelFault, match="UTF-8"):
        wire.ask(on_text=lambda _: None)


def test_an_answer_to_a_stream_that_is_none_is_a_bad_reply() -> None:
    """A proxy may answer with a page."""
    wire = Wire(MODEL, *[httpx.Response(200, text="<html>")] * 2)

    with pytest.raises(ModelFault, match="no stream"):
        wire.ask(on_text=lambda _: None)


# --- over a real socket


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on loopback that reads a request and lets `answer` do as it likes with the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                connection.recv(65_536)
                answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"openai:m@http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
PIECE = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\n'


def over_the_wire(choice: str) -> Wire:
    wire = Wire(choice)
    wire.provider.handle_request = httpx.HTTPTransport(trust_env=False).handle_request  # type: ignore[method-assign]
    return wire


def test_a_stream_cut_in_the_middle_is_unavailable() -> None:
    """The length was announced, and less came."""

    def cut(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-length: 5000\r\n\r\n" + PIECE)

    heard: list[str] = []
    with serving(cut) as choice, pytest.raises(ModelFault) as caught:
        over_the_wire(choice).ask(on_text=heard.append)

    assert (caught.value.kind, heard) == ("unavailable", ["Hi"])


def test_a_connection_that_is_reset_is_unavailable() -> None:
    """Nothing came at all, so it was tried again."""
    seen: list[int] = []

    def reset(connection: socket.socket) -> None:
        seen.append(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with serving(reset) as choice, pytest.raises(ModelFault) as caught:
        over_the_wire(choice).ask()

    assert (caught.value.kind, len(seen)) == ("unavailable", 5)


def test_a_server_that_says_nothing_is_a_timeout() -> None:
    """Within the deadline of the request, not the server's idea of time."""
    until = threading.Event()

    with serving(lambda _: until.wait(5) and None) as choice:
        wire = over_the_wire(choice)
        wire.model._http._clock = SystemClock()  # type: ignore[attr-defined]
        with pytest.raises(ModelFault) as caught:
            wire.model.chat(HELLO, deadline=SystemClock().now() + 300)
        until.set()

    assert caught.value.kind == "timeout"


def test_nobody_listening_is_unavailable() -> None:
    """A port that is closed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(ModelFault) as caught:
        over_the_wire(f"openai:m@http://127.0.0.1:{port}/v1").ask()

    assert caught.value.kind == "unavailable"
