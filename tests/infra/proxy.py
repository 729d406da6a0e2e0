"""A bad network: an HTTP proxy in front of a local AWS that loses requests, loses answers, or answers itself."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Literal
from urllib.parse import urlsplit

import boto3
import msgspec

from infra.aws.clients import Clients

Loss = Literal["forward", "lose request", "lose answer"]


class Answer(msgspec.Struct, frozen=True):
    """What the proxy says by itself instead of asking."""

    status: int
    body: bytes = b""

    @staticmethod
    def dynamodb(status: int, code: str, **more: object) -> Answer:
        """A DynamoDB error."""
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "secret text", **more}
        return Answer(status, msgspec.json.encode(body))

    @staticmethod
    def s3(status: int, code: str) -> Answer:
        """An S3 error."""
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>secret text</Message></Error>"
        return Answer(status, body.encode())


class BadNetwork:
    """Stands between clients and `upstream` (a URL; none if every request is answered here).

    `plan` holds what happens to the next requests, one each; when it is used up, all are forwarded.
    `seen` holds what was asked, by operation.
    """

    def __init__(self, upstream: str | None = None) -> None:
        self.plan: list[Loss | Answer] = []
        self.seen: list[str] = []
        handler = _handler(self, upstream)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where clients call."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def clients(self) -> Clients:
        """The product's own clients, through this network."""
        session = boto3.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
        )
        return Clients(session, endpoint=self.url)

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def _handler(network: BadNetwork, upstream: str | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = _read_body(self.headers, self.rfile.read, self.rfile.readline)
            network.seen.append(self.headers.get("X-Amz-Target", self.command).split(".")[-1])
            action = network.plan.pop(0) if network.plan else "forward"
            if isinstance(action, Answer):
                self._answer(action.status, {}, action.body)
                return
            if action == "lose request":
                self.close_connection = True
                return
            assert upstream is not None, "nothing stands behind this network"
            answer = _forward(upstream, self.command, self.path, dict(self.headers), body)
            if action == "lose answer":
                self.close_connection = True
                return
            self._answer(*answer)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def _read_body(headers: object, read: Callable[[int], bytes], readline: Callable[[], bytes]) -> bytes:
    get = headers.get  # type: ignore[attr-defined]
    if "chunked" not in get("Transfer-Encoding", ""):
        return read(int(get("Content-Length", 0)))
    body = b""
    while size := int(readline().split(b";")[0], 16):
        body += read(size)
        readline()
    readline()
    return body


def _forward(
    upstream: str, method: str, path: str, headers: dict[str, str], body: bytes
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=10)
    kept = {
        n: v for n, v in headers.items() if n.lower() not in ("transfer-encoding", "connection", "expect")
    }
    connection.request(method, path, body, {**kept, "Content-Length": str(len(body))})
    answer = connection.getresponse()
    try:
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
