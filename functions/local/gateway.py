"""API Gateway's part on a laptop: HTTP in, an event to the handler that Lambda would run, HTTP out.

What lives here: a WSGI application and the server around it. What must never live here: a route or an answer
of its own, but for what API Gateway itself would refuse (a body over its limit), for a handler that failed, and for
more streams than it has threads for. Unlike API Gateway it can send a body in pieces, as a handler's `stream` gives them.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final, Self

import waitress.server

from core.errors import NoemaError
from core.ports import Clock
from functions import failures
from functions.http import HttpResponse
from functions.local.context import LocalContext
from functions.local.events import Answer, Event, http_answer, http_event

Handler = Callable[[Event, Any], Any]  # a Lambda handler: (event, context) -> JSON value
Log = Callable[[str], None]

MAX_BODY_BYTES: Final = 10 * 1024 * 1024  # API Gateway's limit on a request
TIMEOUT_MS: Final = 29_000  # API Gateway waits no longer for a function
_THREADS: Final = 8
_STREAMS: Final = 4  # of the threads; a slow reader of a stream keeps one, and the others stay for everybody
_BUFFER: Final = 256 * 1024  # of an answer that is not taken as fast as it is made
_STALLED_MS: Final = 30_000  # a reader who takes nothing for so long is gone
_HEADER_SLACK: Final = 64 * 1024


class Gateway:
    """The WSGI application.

    Args:
        handler_for: the function's name and handler for a method and a path, as the template's routes have it.
        clock: when a request came, and how long it may take.
        log: takes one line for each request: method, path, status, milliseconds; never a body or a query.
    """

    def __init__(
        self, handler_for: Callable[[str, str], tuple[str, Handler]], *, clock: Clock, log: Log
    ) -> None:
        self._handler_for = handler_for
        self._clock = clock
        self._log = log
        self._streams = threading.BoundedSemaphore(_STREAMS)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        """Serve one request (PEP 3333)."""
        began = self._clock.now()
        method = environ["REQUEST_METHOD"]
        path, _, query = _target(environ).partition("?")
        if int(environ.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
            answer = _refusal(too_large(), secrets.token_hex(8))
        else:
            event = http_event(
                method=method,
                path=path,
                query=query,
                headers=_headers(environ),
                body=environ["wsgi.input"].read(),
                source=environ.get("REMOTE_ADDR", ""),
                request_id=secrets.token_hex(8),
                now_ms=began,
            )
            answer = self._invoke(event, method, path, began)
        streamed = answer.stream
        if streamed is not None and not self._streams.acquire(blocking=False):
            streamed, answer = None, _refusal(_too_many_streams(), secrets.token_hex(8))
        if streamed is None:
            self._log(f"{method} {path} {answer.status} {self._clock.now() - began} ms")
        headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
        phrase = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else "Unknown"
        if streamed is not None:
            start_response(f"{answer.status} {phrase}", headers)
            return _Streamed(streamed, lambda n: self._ended(f"{method} {path} {answer.status}", n, began))
        start_response(f"{answer.status} {phrase}", [*headers, ("content-length", str(len(answer.body)))])
        return [] if method == "HEAD" else [answer.body]

    def _ended(self, what: str, pieces: int, began: int) -> None:
        self._streams.release()
        self._log(f"{what} {self._clock.now() - began} ms, {pieces} frames")

    def _invoke(self, event: Event, method: str, path: str, began: int) -> Answer:
        request_id: str = event["requestContext"]["requestId"]
        try:
            name, handler = self._handler_for(method, path)
            context = LocalContext(
                function_name=name,
                aws_request_id=request_id,
                clock=self._clock,
                deadline_ms=began + TIMEOUT_MS,
            )
            return http_answer(handler(event, context))
        except Exception as error:  # noqa: BLE001 - the edge: a function that failed answers 500, as on AWS
            self._log(describe(error, f"{method} {path} ({request_id})"))
            return _refusal(failures.internal(request_id), request_id)


class _Streamed:
    """A body that is taken piece by piece, and ended once however that ends: read to the last, left, or never begun."""

    def __init__(self, pieces: Iterator[bytes], ended: Callable[[int], None]) -> None:
        self._pieces = pieces
        self._ended: Callable[[int], None] | None = ended
        self._count = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._count += 1
        return piece

    def close(self) -> None:
        """End the work behind it; the server calls this in every case (PEP 3333)."""
        ended, self._ended = self._ended, None
        if ended is None:
            return
        try:
            if isinstance(self._pieces, Generator):
                self._pieces.close()
        finally:
            ended(self._count)


def describe(error: Exception, where: str) -> str:
    """An unexpected error for the log: its type and its places in the code. Its message may hold memory text."""
    return f"{where}: {type(error).__name__}\n" + "".join(traceback.format_tb(error.__traceback__)).rstrip()


def too_large() -> NoemaError:
    """What a body over the gateway's limit is told."""
    return NoemaError(
        "PayloadTooLarge",
        f"a request may take at most {MAX_BODY_BYTES} bytes",
        details={"limit_bytes": MAX_BODY_BYTES},
    )


def _too_many_streams() -> NoemaError:
    return NoemaError(
        "ServiceUnavailable",
        f"{_STREAMS} streams are being read, and there are no more at once",
        hint="Try again, or ask for application/json.",
        retry_after_ms=1_000,
    )


def _refusal(error: NoemaError, request_id: str) -> Answer:
    response: HttpResponse = failures.to_response(error)
    return Answer(response.status, (*response.headers.items(), ("x-request-id", request_id)), response.body)


def _target(environ: dict[str, Any]) -> str:
    """The request's target as it came, percent-encoded; of an absolute one, the part after the host."""
    target: str = environ["REQUEST_URI"]
    if "://" in target.partition("?")[0]:
        target = "/" + target.partition("://")[2].partition("/")[2]
    return target


def _headers(environ: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if name.startswith("HTTP_"):
            yield name[5:].replace("_", "-").lower(), value
    if environ.get("CONTENT_TYPE"):
        yield "content-type", environ["CONTENT_TYPE"]
    if environ.get("CONTENT_LENGTH"):
        yield "content-length", environ["CONTENT_LENGTH"]


def _socket_options() -> list[tuple[int, int, int]]:
    """No delay for small frames; and, where the system has it, an end for who reads nothing more."""
    options = [(socket.SOL_TCP, socket.TCP_NODELAY, 1)]
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        options.append((socket.SOL_TCP, socket.TCP_USER_TIMEOUT, _STALLED_MS))
    return options


class Server:
    """The gateway on a socket.

    Raises:
        OSError: the address is taken or not ours.
    """

    def __init__(self, gateway: Gateway, host: str, port: int) -> None:
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a full queue is no news on a laptop
        self._server = waitress.server.create_server(
            gateway,
            host=host,
            port=port,
            threads=_THREADS,
            ident="noema",
            clear_untrusted_proxy_headers=True,
            # A body a little over the limit is read and refused with our own words; far over, by waitress.
            max_request_body_size=MAX_BODY_BYTES * 2,
            inbuf_overflow=MAX_BODY_BYTES * 2,
            max_request_header_size=_HEADER_SLACK,
            channel_timeout=60,
            outbuf_high_watermark=_BUFFER,
        )
        self._closed = False
        self._server.adj.socket_options = _socket_options()  # of each connection; create_server takes none

    @property
    def port(self) -> int:
        """The port that is listened on; of use when 0 was asked for."""
        return int(self._server.effective_port)

    def run(self) -> None:
        """Serve until SystemExit or KeyboardInterrupt reaches the loop; requests under way are finished."""
        try:
            self._server.run()
        except OSError:
            if not self._closed:  # closed by another thread, whose socket the loop was waiting for
                raise

    def close(self) -> None:
        """Stop listening; a loop that runs in another thread ends."""
        self._closed = True
        self._server.close()
