"""HTTP as values: an API Gateway v2 event in, a response event out, and nothing that knows what they mean."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from core.errors import NoemaError

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}\Z")


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Header names are lower case; a repeated header is joined by commas, as HTTP has it."""

    method: str
    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    request_id: str


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One response. `stream`: its body in pieces as they are made, in place of `body`, where the gateway can send that."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: Iterator[bytes] | None = None


def request_id_of(event: Mapping[str, Any], context: Any) -> str:  # an event and a Lambda context
    """The caller's `x-request-id` if it is one, else the gateway's, else the invocation's."""
    headers = event.get("headers")
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if name.lower() == "x-request-id" and _REQUEST_ID.match(value):
            return str(value)
    gateway = event.get("requestContext")
    given = gateway.get("requestId") if isinstance(gateway, Mapping) else None
    return str(given or getattr(context, "aws_request_id", "") or "unknown")


def decode_event(event: Mapping[str, Any], request_id: str) -> HttpRequest:  # JSON made by API Gateway
    """The request in an API Gateway v2 event.

    Raises:
        NoemaError: `InvalidInput`, when the path, the query or the body's base64 is malformed.
    """
    body = event.get("body") or ""
    try:
        raw = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode("utf-8")
    except (binascii.Error, UnicodeEncodeError) as error:
        raise NoemaError("InvalidInput", "the body cannot be read as bytes") from error
    http = event["requestContext"]["http"]
    return HttpRequest(
        method=http["method"].upper(),
        path=_path(event.get("rawPath") or http["path"]),
        headers={name.lower(): value for name, value in (event.get("headers") or {}).items()},
        query=_query(event.get("rawQueryString") or ""),
        body=raw,
        request_id=request_id,
    )


def _path(raw: str) -> str:
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError as error:
        raise NoemaError("InvalidInput", "the path is not percent-encoded UTF-8") from error


def _query(raw: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=32)
    except ValueError as error:  # also not UTF-8
        raise NoemaError("InvalidInput", "the query string cannot be read") from error
    query = dict(pairs)
    if len(query) != len(pairs):
        raise NoemaError("InvalidInput", "a parameter is given twice in the query string")
    return query


def encode_event(response: HttpResponse) -> dict[str, Any]:  # JSON for API Gateway
    """The event that API Gateway turns into the response; what is not text goes as base64."""
    out: dict[str, Any] = {"statusCode": response.status, "headers": dict(response.headers)}
    if response.stream is not None:
        return {**out, "stream": response.stream}  # no JSON: only a gateway in this process takes it
    try:
        return {**out, "body": response.body.decode("utf-8"), "isBase64Encoded": False}
    except UnicodeDecodeError:
        return {**out, "body": base64.b64encode(response.body).decode("ascii"), "isBase64Encoded": True}
