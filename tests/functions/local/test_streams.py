"""Frames over a real socket: sent as they are made, at the reader's pace, and over when the reader is."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from core.errors import NoemaError
from core.service import streaming
from functions import catalog
from functions.local import gateway as module
from functions.local.gateway import Gateway, Server
from functions.routing import respond
from tests.functions.world import World

NDJSON = "application/x-ndjson"
READ, WRITE = "/v1/demo/execute_kip_readonly", "/v1/demo/execute_kip"
CREATE = 'CREATE CONCEPT ?c {TYPE "Person" NAME :n SET ATTRIBUTES {text: :t}}'
ALL = 'FIND(?c.name, ?c.attributes.text) WHERE {?c CONCEPT {type: "Person"}}'
HEAVY = 200_000  # bytes of a row; a hundred of them are far more than sockets buffer
ROWS = 100
PAGE = 4


class Served:
    """A world behind a gateway on a socket, in which every page that is pulled is counted."""

    def __init__(self) -> None:
        self.world = World().make_space()
        self.world.services.sends_frames = True
        self.lines: list[str] = []
        self.pages = 0
        kip = self.world.services.kip
        execute = kip.execute

        def counted(*args: Any, **more: Any) -> Any:
            self.pages += 1
            return execute(*args, **more)

        kip.execute = counted  # type: ignore[method-assign]
        gateway = Gateway(lambda *_: ("kip", self._handle), clock=self.world.clock, log=self.lines.append)
        self.server = Server(gateway, "127.0.0.1", 0)
        threading.Thread(target=self.server.run, daemon=True).start()

    def _handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        return respond(event, context, catalog.ROUTES, lambda: self.world.services)

    def fill(self, rows: int = ROWS, weight: int = HEAVY) -> None:
        for number in range(rows):
            self.say(CREATE, n=f"p{number:03}", t="x" * weight)

    def say(self, command: str, **parameters: Any) -> Any:
        body = {"command": command, "parameters": parameters}
        answer = self.world.ask("POST", WRITE, body, token=self.world.token()).json
        assert answer["status"] == "succeeded", answer
        return answer["results"][0]["result"]

    @contextlib.contextmanager
    def stream(self, command: str, *, path: str = READ, token: str | None = None) -> Iterator[Any]:
        """A streamed answer, being read by an ordinary client."""
        headers = {"authorization": f"Bearer {token or self.world.token()}", "accept": NDJSON}
        url = f"http://127.0.0.1:{self.server.port}{path}"
        with (
            httpx.Client(trust_env=False, timeout=30) as client,
            client.stream("POST", url, json={"command": command}, headers=headers) as answer,
        ):
            yield answer

    def frames(self, command: str, **options: Any) -> list[dict[str, Any]]:
        with self.stream(command, **options) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == NDJSON
            return [json.loads(line) for line in answer.iter_lines()]

    def connect(self, command: str) -> socket.socket:
        """A reader with a small buffer, who has sent the request and read nothing."""
        body = json.dumps({"command": command}).encode()
        head = (
            f"POST {READ} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self.world.token()}\r\n"
            f"accept: {NDJSON}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        made.settimeout(20)
        made.connect(("127.0.0.1", self.server.port))
        made.sendall(head.encode() + body)
        return made

    def settled(self) -> int:
        """How many pages have been pulled, once no more are."""
        seen, same = -1, 0
        deadline = time.monotonic() + 20
        while same < 5:
            assert time.monotonic() < deadline
            time.sleep(0.1)  # noqa: TID251 - other threads are at work
            same = same + 1 if self.pages == seen else 0
            seen = self.pages
        return seen

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)  # noqa: TID251 - other threads are at work


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(streaming, "PAGE", PAGE)
    made = Served()
    yield made
    made.server.close()


def rows_of(frames: list[dict[str, Any]]) -> list[Any]:
    return [row for frame in frames if frame["kind"] == "data" for row in frame["data"]["rows"]]


def test_frames_arrive_and_the_last_says_how_it_ended(served: Served) -> None:
    """A whole stream: numbered lines of JSON, every row once, one end, and one line in the log."""
    served.fill(10, 10)
    frames = served.frames(ALL)

    assert [frame["frame_seq"] for frame in frames] == list(range(len(frames)))
    assert [frame["kind"] for frame in frames] == ["start", "data", "data", "data", "final"]
    assert [name for name, _ in rows_of(frames)] == [f"p{n:03}" for n in range(10)]
    assert frames[-1]["data"]["outcome"] == "complete"
    served.until(lambda: bool(served.lines))
    assert served.lines == [f"POST {READ} 200 {served.lines[0].split()[3]} ms, 5 frames"]


def test_a_frame_is_sent_when_it_is_made(served: Served) -> None:
    """The first page is read by the client before the last has been pulled."""
    served.fill()
    before = served.pages
    with served.stream(ALL) as answer:
        lines = answer.iter_lines()
        assert json.loads(next(lines))["kind"] == "start"
        assert json.loads(next(lines))["kind"] == "data"
        assert served.pages - before < ROWS // PAGE


def test_a_slow_reader_holds_the_work_and_not_the_memory(served: Served) -> None:
    """Pages are pulled at the reader's pace: while nothing is read, a few stand ready and no more are made."""
    served.fill()
    before = served.pages
    with served.connect(ALL) as reader:
        pulled = served.settled() - before
        assert pulled < ROWS // PAGE // 2
        raw = bytearray()
        while not raw.endswith(b"\r\n0\r\n\r\n"):
            piece = reader.recv(1 << 20)
            assert piece
            raw += piece
    assert served.pages - before == ROWS // PAGE
    assert raw.count(b'"kind":"final"') == 1


def test_a_reader_who_leaves_ends_the_work(served: Served) -> None:
    """After a disconnect no page is pulled, the place is free for others, and what was read has no end."""
    served.fill()
    before = served.pages
    with served.connect(ALL) as reader:
        served.settled()
        told = reader.recv(1 << 16)
    served.until(lambda: any("frames" in line for line in served.lines))

    pulled = served.settled() - before
    assert pulled < ROWS // PAGE
    assert b'"kind":"start"' in told
    assert b'"final"' not in told  # by which a reader knows that it broke
    for _ in range(module._STREAMS + 1):
        assert served.frames("FIND(COUNT(?c)) WHERE {?c CONCEPT {}}")[-1]["kind"] == "final"


def test_readers_who_stall_leave_room_for_others(served: Served) -> None:
    """Beyond the streams that there may be at once a stream is refused, and everything else is answered."""
    served.fill()
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(served.connect(ALL)) for _ in range(module._STREAMS)]
        served.settled()
        with served.stream(ALL) as refused:
            assert refused.status_code == 503
            assert json.loads(refused.read())["error"]["data"]["code"] == "ServiceUnavailable"
        plain = httpx.get(f"http://127.0.0.1:{served.server.port}/info", trust_env=False, timeout=20)
        assert plain.status_code == 200
        assert len(stalled) == module._STREAMS
    served.until(lambda: sum("frames" in line for line in served.lines) == module._STREAMS)
    assert served.frames(f"{ALL} LIMIT 1")[-1]["data"]["outcome"] == "partial"


def test_a_write_races_a_stream(served: Served) -> None:
    """What is committed while a stream is read is not in it, and is in the next."""
    served.fill(12, 10)
    with served.stream(ALL) as answer:
        lines = answer.iter_lines()
        frames = [json.loads(next(lines)) for _ in range(2)]
        served.say(CREATE, n="late", t="")
        served.say('UPDATE ?c SET FIELDS {name: "changed"} WHERE {?c CONCEPT {type: "Person"}}')
        frames += [json.loads(line) for line in lines]

    assert [name for name, _ in rows_of(frames)] == [f"p{n:03}" for n in range(12)]
    assert [name for name, _ in rows_of(served.frames(ALL))] == ["changed"] * 13


def test_a_token_revoked_while_it_reads_reads_no_more(served: Served) -> None:
    """A credential that ends ends its stream with an error, at the next page."""
    served.fill()
    token = served.world.space_token()
    with served.stream(ALL, token=token) as answer:
        lines = answer.iter_lines()
        frames = [json.loads(next(lines)) for _ in range(2)]
        path = "/v1/demo/management/revoke_space_token"
        served.world.ask("POST", path, {"name": "reader"}, token=served.world.token())
        frames += [json.loads(line) for line in lines]

    last = frames[-1]
    assert (last["kind"], last["data"]["error"]["code"]) == ("error", "Unauthenticated")
    assert last["data"]["rows"] == len(rows_of(frames)) < ROWS
    assert last["data"]["next_cursor"]


def test_a_fault_in_the_middle_is_a_frame(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug on the third page is the last frame, with an id in place of its words."""
    served.fill(12, 10)
    kip = served.world.services.kip
    execute, calls = kip.execute, iter(range(9))

    def failing(*args: Any, **more: Any) -> Any:
        if next(calls) == 2:
            raise RuntimeError("p007 lives in Lisbon")
        return execute(*args, **more)

    monkeypatch.setattr(kip, "execute", failing)
    frames = served.frames(ALL)

    assert [frame["kind"] for frame in frames] == ["start", "data", "data", "error"]
    assert frames[-1]["data"]["error"]["code"] == "InternalError"
    assert "Lisbon" not in json.dumps(frames)


def test_a_write_is_streamed_with_its_receipt_last(served: Served) -> None:
    """Progress is provisional; the receipt comes once, in the final frame."""
    frames = served.frames('CREATE CONCEPT ?c {TYPE "Person" NAME "Ada"}', path=WRITE)

    assert [frame["kind"] for frame in frames] == ["start", "progress", "final"]
    assert frames[1]["data"]["provisional"] is True
    assert frames[2]["data"]["response"]["receipt"]["status"] == "committed"
    refused = served.frames('CREATE CONCEPT ?c {TYPE "Person"}', path=READ)
    assert refused[-1]["data"]["response"]["results"][0]["error"]["code"] == "ReadonlyViolation"


def test_who_may_not_is_refused_before_a_frame(served: Served) -> None:
    """A credential, a space that is not there and a body that is none are told as everywhere."""
    with served.stream(ALL, token="STnothing") as answer:
        assert answer.status_code == 401
    with served.stream(
        ALL, path="/v1/nowhere/execute_kip", token=served.world.token(aud="nowhere")
    ) as answer:
        assert answer.status_code == 404
    headers = {"authorization": f"Bearer {served.world.token()}", "accept": NDJSON}
    url = f"http://127.0.0.1:{served.server.port}{READ}"
    broken = httpx.post(url, content=b"{", headers=headers, trust_env=False)
    assert broken.headers["content-type"] == "application/json"
    assert broken.json()["error"]["code"] == "InvalidRequestEnvelope"


def test_where_an_answer_is_gathered_frames_are_refused_by_name() -> None:
    """Behind API Gateway there is no streaming: it is said, and nothing runs; `requires` says the same."""
    world = World().make_space()
    body = {"command": 'CREATE CONCEPT ?c {TYPE "Person"}'}
    refused = world.ask("POST", WRITE, body, token=world.token(), headers={"accept": NDJSON})

    assert (refused.status, refused.headers["content-type"]) == (200, "application/json")
    assert refused.json["error"]["code"] == "UnsupportedCapability"
    assert refused.json["error"]["details"] == {"missing": ["streaming"]}
    required = world.ask("POST", WRITE, {**body, "requires": {"streaming": True}}, token=world.token())
    assert required.json["error"]["code"] == "UnsupportedCapability"
    described = world.ask("POST", READ, {"command": "DESCRIBE CAPABILITIES"}, token=world.token())
    assert described.json["results"][0]["result"]["supported"]["streaming"] is False
    counted = world.ask(
        "POST", READ, {"command": "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}"}, token=world.token()
    )
    assert counted.json["results"][0]["result"] == [0]


def test_a_stream_that_never_began_is_ended_once() -> None:
    """Its place is given back also where the server closes it before the first frame, or closes it twice."""
    ended: list[int] = []

    def pieces() -> Iterator[bytes]:
        raise NoemaError("InternalError", "nobody asks")
        yield b""

    streamed = module._Streamed(pieces(), ended.append)
    streamed.close()
    streamed.close()
    assert ended == [0]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no TCP_USER_TIMEOUT")
def test_a_reader_who_reads_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection on which nothing is taken any more is ended by the system, and its place is free again."""
    monkeypatch.setattr(streaming, "PAGE", PAGE)
    monkeypatch.setattr(module, "_STALLED_MS", 1_000)
    served = Served()
    try:
        served.fill()
        with served.connect(ALL):
            served.until(lambda: any("frames" in line for line in served.lines))
        assert served.pages < ROWS // PAGE + ROWS
    finally:
        served.server.close()
