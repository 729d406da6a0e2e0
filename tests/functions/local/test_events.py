"""The events made here are the ones that AWS makes."""

import base64

import pytest

from functions.http import decode_event
from functions.local.events import failed_messages, http_answer, http_event, scheduler_event, sqs_event

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def event_of(body=b"", headers=(), path="/v1/demo/info", query=""):
    return http_event(
        method="POST",
        path=path,
        query=query,
        headers=headers,
        body=body,
        source="127.0.0.1",
        request_id="r1",
        now_ms=NOW,
    )


def test_an_event_carries_the_request_as_it_came() -> None:
    """Path and query stay percent-encoded; times are API Gateway's."""
    event = event_of(path="/v1/d%20x/info", query="limit=1&cursor=%3D", headers=[("Host", "h:1")])

    assert event["rawPath"] == "/v1/d%20x/info"
    assert event["rawQueryString"] == "limit=1&cursor=%3D"
    assert event["requestContext"]["http"]["method"] == "POST"
    assert event["requestContext"]["time"] == "01/Jan/2026:00:00:00 +0000"
    assert event["requestContext"]["timeEpoch"] == NOW
    assert "body" not in event


def test_repeated_headers_are_joined_and_cookies_go_apart() -> None:
    """Names are lower case; a repeated header is joined by commas; cookies are a list."""
    event = event_of(headers=[("Accept", "a"), ("ACCEPT", "b"), ("Cookie", "x=1; y=2")])

    assert event["headers"] == {"accept": "a,b"}
    assert event["cookies"] == ["x=1", "y=2"]


@pytest.mark.parametrize(
    ("content_type", "body", "encoded"),
    [
        ("application/json", '{"a": "é"}'.encode(), False),
        ("application/problem+json; charset=utf-8", b"{}", False),
        ("text/markdown", "# 你好".encode(), False),
        ("application/cbor", b"\xa0", True),
        ("application/octet-stream", b"plain", True),
        ("", b"{}", True),
        ("application/json", b"\xff\xfe", True),  # no text, whatever it says
    ],
)
def test_what_is_not_text_travels_in_base64(content_type: str, body: bytes, encoded: bool) -> None:
    """The bytes that reach the handler are the bytes that came, whichever way they travel."""
    event = event_of(body, [("content-type", content_type)])

    assert event["isBase64Encoded"] is encoded
    assert decode_event(event, "r1").body == body


def test_an_answer_is_read_back() -> None:
    """Status, headers, cookies and body, in text or base64."""
    told = {
        "statusCode": 201,
        "headers": {"x-a": 1},
        "cookies": ["k=v"],
        "body": base64.b64encode(b"\xff").decode(),
        "isBase64Encoded": True,
    }

    answer = http_answer(told)

    assert (answer.status, answer.headers, answer.body) == (
        201,
        (("x-a", "1"), ("set-cookie", "k=v")),
        b"\xff",
    )
    assert http_answer({"statusCode": 204}).body == b""


@pytest.mark.parametrize(
    "result",
    [None, "text", {}, {"statusCode": "200"}, {"statusCode": 200, "body": "!", "isBase64Encoded": True},
     {"statusCode": 200, "body": "\ud800"}],
)  # fmt: skip
def test_a_result_of_another_shape_is_no_answer(result: object) -> None:
    """What API Gateway would answer 500 for raises here."""
    with pytest.raises(ValueError):
        http_answer(result)


def test_messages_that_failed_are_named() -> None:
    """Only the ids in `batchItemFailures` go back to the queue."""
    event = sqs_event(group="demo", body="{}", message_id="m1", attempt=2, now_ms=NOW)

    assert event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "2"
    assert event["Records"][0]["attributes"]["MessageGroupId"] == "demo"
    assert failed_messages({"batchItemFailures": [{"itemIdentifier": "m1"}]}) == {"m1"}
    assert failed_messages({"batchItemFailures": []}) == frozenset()
    assert failed_messages(None) == frozenset()


def test_a_tick_is_an_event_of_the_scheduler() -> None:
    """Its time is whole seconds in UTC."""
    event = scheduler_event(event_id="t1", now_ms=NOW + 999)

    assert event["source"] == "aws.scheduler"
    assert event["time"] == "2026-01-01T00:00:00Z"
