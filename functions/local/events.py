"""The events that AWS would send, made from what a local process has; and the answers, read back.

What lives here: the shapes of API Gateway v2 (payload 2.0), SQS and EventBridge Scheduler, as pure functions.
What must never live here: sockets, threads, and any meaning of a request. A handler cannot tell these events
from AWS's own; `tests/runtime` and `tests/e2e` hold them against it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

Event = dict[str, Any]  # the JSON object that a handler is called with

REGION: Final = "local-1"
_ACCOUNT: Final = "000000000000"
# What API Gateway hands over as text; every other body comes in base64.
_TEXT_TYPES: Final = ("text/", "application/json", "application/xml", "application/javascript")


class Answer(msgspec.Struct, frozen=True):
    """A response to write: the status, headers in order, and the body as bytes or, in its place, in pieces."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    stream: Iterator[bytes] | None = None


def http_event(
    *,
    method: str,
    path: str,
    query: str,
    headers: Iterable[tuple[str, str]],
    body: bytes,
    source: str,
    request_id: str,
    now_ms: int,
) -> Event:
    """An API Gateway v2 event for one request.

    Args:
        method: GET, POST and so on.
        path: as it stood in the request line, still percent-encoded.
        query: the raw query string, without the question mark.
        headers: names in any case; a repeated one is joined by commas, as HTTP has it. Cookies go apart.
        body: the bytes received.
        source: the peer's address.
        request_id: what the gateway calls this request.
        now_ms: when the request came.
    """
    joined, cookies = _join(headers)
    text, encoded = _body(body, joined.get("content-type", ""))
    event: Event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": joined,
        "requestContext": {
            "accountId": _ACCOUNT,
            "apiId": "local",
            "domainName": joined.get("host", "localhost"),
            "domainPrefix": "local",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": source,
                "userAgent": joined.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": now_ms,
        },
        "isBase64Encoded": encoded,
    }
    if cookies:
        event["cookies"] = cookies
    if body:
        event["body"] = text
    return event


def _join(headers: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Headers under lower-case names, repeated ones joined; and the cookies, which go apart."""
    joined: dict[str, str] = {}
    cookies: list[str] = []
    for name, value in headers:
        lower = name.lower()
        if lower == "cookie":
            cookies += [each.strip() for each in value.split(";")]
        else:
            joined[lower] = f"{joined[lower]},{value}" if lower in joined else value
    return joined, cookies


def _body(body: bytes, content_type: str) -> tuple[str, bool]:
    """The body as the event carries it, and whether that is base64."""
    media = content_type.partition(";")[0].strip().lower()
    if media.startswith(_TEXT_TYPES) or media.endswith(("+json", "+xml")):
        try:
            return body.decode("utf-8"), False
        except UnicodeDecodeError:
            pass  # bytes that are no text cannot travel as text
    return base64.b64encode(body).decode("ascii"), True


def http_answer(result: object) -> Answer:
    """What API Gateway would send for a handler's result (payload 2.0); a `stream` is this gateway's own.

    Raises:
        ValueError: the result has no shape that API Gateway takes; it would answer 500.
    """
    if not isinstance(result, Mapping) or not isinstance(result.get("statusCode"), int):
        raise ValueError("the handler's result has no statusCode")  # noqa: TRY004 - one kind of fault for the caller
    body = result.get("body") or ""
    try:
        raw = base64.b64decode(body, validate=True) if result.get("isBase64Encoded") else body.encode("utf-8")
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("the handler's body cannot be read") from error
    headers = [(name, str(value)) for name, value in (result.get("headers") or {}).items()]
    headers += [("set-cookie", each) for each in result.get("cookies") or ()]
    return Answer(result["statusCode"], tuple(headers), raw, result.get("stream"))


def sqs_event(*, group: str, body: str, message_id: str, attempt: int, now_ms: int) -> Event:
    """A batch of one message from a FIFO queue."""
    return {
        "Records": [
            {
                "messageId": message_id,
                "receiptHandle": message_id,
                "body": body,
                "attributes": {
                    "ApproximateReceiveCount": str(attempt),
                    "SentTimestamp": str(now_ms),
                    "ApproximateFirstReceiveTimestamp": str(now_ms),
                    "MessageGroupId": group,
                    "SenderId": _ACCOUNT,
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:{_ACCOUNT}:noema.fifo",
                "awsRegion": REGION,
            }
        ]
    }


def failed_messages(result: object) -> frozenset[str]:
    """The message ids that a handler with `ReportBatchItemFailures` gives back to the queue."""
    failures = result.get("batchItemFailures") if isinstance(result, Mapping) else None
    return frozenset(each["itemIdentifier"] for each in failures or ())


def scheduler_event(*, event_id: str, now_ms: int) -> Event:
    """One tick of EventBridge Scheduler."""
    return {
        "version": "0",
        "id": event_id,
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": _ACCOUNT,
        "time": datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:scheduler:{REGION}:{_ACCOUNT}:schedule/default/noema-tick"],
        "detail": "{}",
    }
