"""Events and HTTP values."""

import base64
from typing import Any

import pytest

from core.errors import NoemaError
from functions.http import HttpRequest, HttpResponse, decode_event, encode_event, request_id_of
from tests.functions.world import event


def decoded(
    method: str = "POST", path: str = "/x", body: bytes | None = b"", query: str = "", **h: str
) -> HttpRequest:
    return decode_event(event(method, path, body, h, query), "r")


def test_a_request_is_read_from_its_event() -> None:
    """Method, path, headers in lower case, query and body bytes."""
    made = event("patch", "/v1/demo/info", "naïve".encode(), {"X-Thing": "A, B"}, "a=1&b=x+y%2Fz&c=")

    request = decode_event(made, "r-1")

    assert (request.method, request.path, request.request_id) == ("PATCH", "/v1/demo/info", "r-1")
    assert request.headers == {"x-thing": "A, B"}
    assert request.query == {"a": "1", "b": "x y/z", "c": ""}
    assert request.body == "naïve".encode()


def test_bytes_that_are_no_text_come_in_base64() -> None:
    """What a gateway encodes is decoded; a missing body is empty."""
    assert decoded(body=b"\xff\x00\xfe").body == b"\xff\x00\xfe"
    assert decoded(body=None).body == b""


@pytest.mark.parametrize(
    ("raw", "path"), [("/v1/a%5Fb/info", "/v1/a_b/info"), ("/caf%C3%A9", "/café"), ("/a+b", "/a+b")]
)
def test_a_path_is_percent_decoded(raw: str, path: str) -> None:
    """A plus stays a plus in a path."""
    assert decoded(path=raw).path == path


def test_a_path_that_is_no_text_is_refused() -> None:
    """Percent-encoded bytes must be UTF-8."""
    with pytest.raises(NoemaError) as caught:
        decoded(path="/%ff")
    assert caught.value.code == "InvalidInput"


def test_a_body_with_half_a_character_is_refused() -> None:
    """A lone surrogate in the event's own text is no bytes."""
    with pytest.raises(NoemaError):
        decode_event({**event("POST", "/", b"", {}), "body": "\ud800"}, "r")


@pytest.mark.parametrize("body", [b"", b"text", "käse".encode(), b"\xff\xfe", b"\xa1aa\x01"])
def test_every_body_survives_the_answer(body: bytes) -> None:
    """Text stays text, anything else goes as base64."""
    out = encode_event(HttpResponse(status=201, headers={"a": "b"}, body=body))

    raw = base64.b64decode(out["body"]) if out["isBase64Encoded"] else out["body"].encode()
    assert (out["statusCode"], out["headers"], raw) == (201, {"a": "b"}, body)


class Context:
    """A Lambda context."""

    aws_request_id = "lambda-1"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ({"headers": {"X-REQUEST-ID": "mine"}, "requestContext": {"requestId": "g"}}, "mine"),
        ({"headers": {"x-request-id": "two words"}, "requestContext": {"requestId": "g"}}, "g"),
        ({"headers": None, "requestContext": {"requestId": "g"}}, "g"),
        ({"requestContext": {}}, "lambda-1"),
        ({}, "lambda-1"),
    ],
)
def test_where_a_request_id_comes_from(made: dict[str, Any], expected: str) -> None:
    """The caller's, else the gateway's, else the invocation's."""
    assert request_id_of(made, Context()) == expected
    assert request_id_of({}, None) == "unknown"
