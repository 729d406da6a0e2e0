"""Which format a body is in and which one an answer gets: JSON, CBOR or Markdown (contract §1.2, exactly).

`Content-Type` alone decides how a request is read and `Accept` alone how an answer is written. Both are matched
by substring in the order cbor, json, markdown; weights are ignored. No `Content-Type` is JSON, one we do not
know is Markdown, read leniently; no `Accept`, or one we do not know, is JSON. Errors are always JSON.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import msgspec

from core.errors import NoemaError
from functions.http import HttpRequest, HttpResponse
from functions.plain import bad, decode_cbor, decode_json, decode_text

Format = Literal["cbor", "json", "markdown"]

_ORDER: Final[tuple[Format, ...]] = ("cbor", "json", "markdown")
MEDIA_TYPES: Final[dict[Format, str]] = {
    "cbor": "application/cbor",
    "json": "application/json",
    "markdown": "text/markdown; charset=utf-8",
}


def request_format(content_type: str | None) -> Format:
    """How a body is read: `application/cbor` -> cbor, None -> json, `text/plain` -> markdown."""
    if not content_type or not content_type.strip():
        return "json"
    return _match(content_type) or "markdown"


def response_format(accept: str | None) -> Format:
    """How an answer is written: `text/markdown, application/cbor` -> cbor, None or `*/*` -> json."""
    return _match(accept or "") or "json"


def _match(header: str) -> Format | None:
    lowered = header.lower()
    return next((name for name in _ORDER if name in lowered), None)


def decode_body[T](request: HttpRequest, kind: type[T], text_member: str | None) -> T:
    """The body as a value of `kind`.

    Args:
        request: the request; its `Content-Type` decides.
        kind: a msgspec type.
        text_member: how raw text becomes such a value, where the route takes any: `query` puts it into that
            member, `messages` makes it one user message; None refuses it.

    Raises:
        NoemaError: `InvalidInput`, naming the place.
    """
    form = request_format(request.headers.get("content-type"))
    if form == "markdown":
        return _from_text(request.body, kind, text_member)
    value = decode_cbor(request.body) if form == "cbor" else decode_json(request.body)
    return _convert(value, kind)


def _from_text[T](body: bytes, kind: type[T], text_member: str | None) -> T:
    """Markdown is tried as JSON of the expected type first; only what is not that is text."""
    text = decode_text(body)
    try:
        return _convert(decode_json(body), kind)
    except NoemaError:
        if text_member is None:
            bad("invalid input: this route takes JSON or CBOR, not text")
    if not text.strip():
        bad("the body is empty")
    raw: Any = [{"role": "user", "content": text}] if text_member == "messages" else text
    return _convert({text_member: raw}, kind)


def _convert[T](value: Any, kind: type[T]) -> T:  # any plain value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        bad(f"the body does not fit: {error}")


def encode_result(request: HttpRequest, answer: dict[str, Any], text_member: str | None) -> HttpResponse:
    """The answer `{"result": ..., "next_cursor"?: ...}` in the format that `Accept` asks for.

    Args:
        request: the request; its `Accept` decides.
        answer: the envelope; values msgspec can encode.
        text_member: the member of the result that alone is the Markdown answer; None serves the whole
            envelope as indented JSON.
    """
    form = response_format(request.headers.get("accept"))
    headers = {"content-type": MEDIA_TYPES[form], "cache-control": "no-store", "vary": "accept"}
    if form == "cbor":
        body = encode_cbor(answer)
    elif form == "json":
        body = msgspec.json.encode(answer)
    elif text_member is not None:
        body = str(getattr(answer["result"], text_member)).encode("utf-8")
    else:
        body = json.dumps(msgspec.to_builtins(answer), indent=2, ensure_ascii=False).encode("utf-8")
    return HttpResponse(status=200, headers=headers, body=body)


def encode_cbor(answer: Any) -> bytes:  # any value msgspec can encode
    """A value as canonical CBOR."""
    import cbor2  # noqa: PLC0415 - few callers ask for it, and it costs every cold start

    encoded: bytes = cbor2.dumps(msgspec.to_builtins(answer), canonical=True)
    return encoded


def decode_query[T](request: HttpRequest, kind: type[T]) -> T:
    """The query string as a value of `kind`; numbers are read from their text."""
    try:
        return msgspec.convert(dict(request.query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise NoemaError(
            "InvalidInput",
            f"the query string does not fit: {error}",
            hint="Correct the named parameter and send it again.",
        ) from error
