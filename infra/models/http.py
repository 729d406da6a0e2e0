"""One request over HTTP: sent within its time, read within its bounds, its failure told as a `ModelFault`.

What lives here: sending, reading, server-sent events, and what statuses mean. What must never live here: a
provider's shapes, and any text of a provider in a message: it may quote the prompt or the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx
import msgspec

from core.model.instants import Instant
from core.models.chat import FaultKind, ModelFault, Usage
from core.ports import Clock

MAX_REPLY_BYTES: Final = 8 * 1024 * 1024  # a reply of 128,000 tokens is about half a megabyte
MAX_ERROR_BYTES: Final = 64 * 1024
CONNECT_S: Final = 5.0
_WRITE_S: Final = 30.0
_LONGEST_RETRY_MS: Final = 3_600_000
_CODE: Final = re.compile(r"[A-Za-z_]{1,48}\Z")  # no digits: a server might echo a key
_ONE: Final = Usage(requests=1)

_BY_STATUS: Final[dict[int, tuple[FaultKind, str]]] = {
    401: ("unauthorized", "the provider does not accept the key"),
    402: ("unauthorized", "the provider's account has no credit"),
    403: ("unauthorized", "the key may not use this model"),
    404: ("bad_request", "the provider knows no such model or path"),
    408: ("unavailable", "the provider gave up waiting for the request"),
    409: ("unavailable", "the provider asks to try again"),
    413: ("context_overflow", "the request is larger than the provider takes"),
    425: ("unavailable", "the provider asks to try again later"),
    429: ("rate_limited", "the provider limits how much may be asked"),
    529: ("unavailable", "the provider is overloaded"),
}
OVERFLOW: Final = re.compile(
    r"context[_ ]length|context[_ ]size|context[_ ]window|maximum context|prompt is too long|too many (input )?tokens"
    r"|input is too long|token count .{0,40}exceeds|exceeds? the (available|maximum) context|input length and",
    re.IGNORECASE,
)
_NO_CREDIT: Final = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)


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


def fault_of(status: int, headers: Mapping[str, str], body: bytes, now: Instant) -> ModelFault:
    """The fault that an answer other than 200 is."""
    code, text = _error(body)
    kind, said = _BY_STATUS.get(status, ("bad_request", "the provider refuses the request"))
    if status >= 500 and status not in _BY_STATUS:
        kind, said = "unavailable", "the provider failed"
    elif 300 <= status < 400:
        said = "the provider redirects, which is not followed"
    if status in (400, 413, 422, 500) and OVERFLOW.search(text):  # llama.cpp has answered 500 for it
        kind, said = "context_overflow", "the request does not fit into the model's context"
    elif status in (400, 402, 403, 429) and _NO_CREDIT.search(text):
        kind, said = "unauthorized", "the provider's account has no credit"
    named = f" {code}" if code else ""
    return ModelFault(
        kind,
        f"{said} (HTTP {status}{named})",
        retry_after_ms=retry_after(headers, now),
        usage=_ONE,
    )


def _error(body: bytes) -> tuple[str, str]:
    """The error's code, if it looks like one, and everything to search for what it means."""
    text = body.decode("utf-8", "replace")
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return "", text
    if isinstance(found, list) and found:  # Gemini's
        found = found[0]
    error = found.get("error", found) if isinstance(found, dict) else None
    if isinstance(error, dict):
        for name in ("code", "type", "status"):
            value = error.get(name)
            if isinstance(value, str) and _CODE.match(value):
                return value, text
    return "", text


def retry_after(headers: Mapping[str, str], now: Instant) -> int | None:
    """Milliseconds that the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, scale in (("retry-after-ms", 1), ("retry-after", 1000)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            return min(_LONGEST_RETRY_MS, int(float(text) * scale))
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0, min(_LONGEST_RETRY_MS, int(at.timestamp() * 1000) - now))
