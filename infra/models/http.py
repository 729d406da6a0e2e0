"""One request over HTTP: sent within its time, read within its bounds, its failure told as a `ModelFault`.

What lives here: sending, reading, and server-sent events. What must never live here: a provider's shapes, and what a
refusal means (`infra.models.refusals`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Final

import httpx
import msgspec

from core.model.instants import Instant
from core.models.chat import ModelFault, Usage
from core.ports import Clock
from infra.models.refusals import fault_of

MAX_REPLY_BYTES: Final = 8 * 1024 * 1024  # a reply of 128,000 tokens is about half a megabyte
MAX_ERROR_BYTES: Final = 64 * 1024
CONNECT_S: Final = 5.0
_WRITE_S: Final = 30.0
_ONE: Final = Usage(requests=1)


class Http:
    """Sends requests of one model. Safe to share between threads.

    Args:
        transport: how; see `infra.models.reach`.
        clock: the time.
    """

    def __init__(self, transport: httpx.BaseTransport, clock: Clock) -> None:
        self._clock = clock
        self._client = httpx.Client(transport=transport, follow_redirects=False, trust_env=False)

    def ask(self, url: str, headers: Mapping[str, str], body: bytes, deadline: Instant) -> Any:  # JSON values
        """The JSON of the answer.

        Raises:
            ModelFault: there is none.
        """
        with _told(), self._send(url, headers, body, deadline) as response:
            text = self._all(response, deadline, MAX_REPLY_BYTES)
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise ModelFault("bad_reply", "the provider's answer is no JSON", usage=_ONE) from error

    def events(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadline: Instant,
        check: Callable[[], None],
    ) -> Generator[Any]:
        """The data of each server-sent event, as JSON, until the stream ends or says [DONE].

        Args:
            url: where to.
            headers: of the request.
            body: likewise.
            deadline: when to give up.
            check: called between pieces; raises to give up.
        """
        with _told(), self._send(url, headers, body, deadline) as response:
            if "event-stream" not in response.headers.get("content-type", ""):
                raise ModelFault("bad_reply", "the provider's answer is no stream of events", usage=_ONE)
            for data in _events(self._pieces(response, deadline, MAX_REPLY_BYTES, check)):
                if data == "[DONE]":
                    return
                try:
                    yield msgspec.json.decode(data)
                except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                    raise ModelFault("bad_reply", "an event of the reply is no JSON", usage=_ONE) from error

    def _send(self, url: str, headers: Mapping[str, str], body: bytes, deadline: Instant) -> _Answer:
        left = max(0.05, (deadline - self._clock.now()) / 1000)
        timeout = httpx.Timeout(
            left, connect=min(CONNECT_S, left), write=min(_WRITE_S, left), pool=min(CONNECT_S, left)
        )
        request = self._client.build_request("POST", url, headers=headers, content=body, timeout=timeout)
        response = self._client.send(request, stream=True)
        if response.status_code != 200:
            try:
                text = self._all(response, deadline, MAX_ERROR_BYTES, cut=True)
            finally:
                response.close()
            raise fault_of(response.status_code, response.headers, text, self._clock.now())
        return _Answer(response)

    def _all(self, response: httpx.Response, deadline: Instant, limit: int, *, cut: bool = False) -> bytes:
        out = bytearray()
        for piece in self._pieces(response, deadline, None if cut else limit):
            out += piece
            if cut and len(out) >= limit:
                break
        return bytes(out)

    def _pieces(
        self,
        response: httpx.Response,
        deadline: Instant,
        limit: int | None,
        check: Callable[[], None] | None = None,
    ) -> Iterator[bytes]:
        """The body as it comes. A server that trickles is held to the deadline, an endless one to the limit."""
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if limit is not None and size > limit:
                raise ModelFault("bad_reply", f"the reply is larger than {limit} bytes", usage=_ONE)
            if self._clock.now() >= deadline:
                raise ModelFault("timeout", "the reply did not end before the deadline", usage=_ONE)
            if check is not None:
                check()
            yield piece


class _Answer:
    """A response that is closed when it is done with."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def __enter__(self) -> httpx.Response:
        return self._response

    def __exit__(self, *_: object) -> None:
        self._response.close()


class _told:  # noqa: N801 - used as a function
    """Around a request: what httpx raises leaves as a `ModelFault`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ConnectError):
            raise ModelFault(
                "unavailable", f"the model cannot be reached ({type(error).__name__})"
            ) from error
        if isinstance(error, httpx.TimeoutException):
            raise ModelFault("timeout", "the model did not answer in time", usage=_ONE) from error
        if isinstance(error, httpx.DecodingError):
            raise ModelFault("bad_reply", "the reply cannot be unpacked", usage=_ONE) from error
        if isinstance(error, httpx.TransportError):
            said = f"the connection broke off ({type(error).__name__})"
            raise ModelFault("unavailable", said, usage=_ONE) from error
        if isinstance(error, httpx.HTTPError | httpx.InvalidURL):
            raise ModelFault("bad_request", f"the request cannot be sent ({type(error).__name__})") from error


def _events(pieces: Iterator[bytes]) -> Iterator[str]:
    """The data of server-sent events, whatever the pieces they come in. One without its blank line is dropped."""
    rest, data = b"", list[str]()
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            bare = line.rstrip(b"\r")
            if not bare:
                if data:
                    yield "\n".join(data)
                data = []
            elif bare.startswith(b"data:"):
                try:
                    data.append(bare[5:].removeprefix(b" ").decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise ModelFault("bad_reply", "the reply is no UTF-8", usage=_ONE) from error
