"""Formats of bodies and answers: the table of the contract (§1.2)."""

import json
from typing import Any

import cbor2
import msgspec
import pytest

from core.errors import NoemaError
from core.protocol.http_types import FormationInput, ProbeInput, RecallInput, UpdateSpaceInput
from functions.http import HttpRequest
from functions.negotiate import decode_body, decode_query, encode_result, request_format, response_format


def request(body: bytes = b"", query: dict[str, str] | None = None, **headers: str) -> HttpRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest(method="POST", path="/", headers=named, query=query or {}, body=body, request_id="r")


@pytest.mark.parametrize(
    ("content_type", "form"),
    [
        (None, "json"),
        ("", "json"),
        ("  ", "json"),
        ("application/json", "json"),
        ("APPLICATION/JSON; charset=utf-8", "json"),
        ("application/vnd.api+json", "json"),
        ("application/cbor", "cbor"),
        ("application/json, application/cbor", "cbor"),
        ("text/markdown", "markdown"),
        ("text/markdown; charset=utf-8", "markdown"),
        ("text/plain", "markdown"),
        ("application/octet-stream", "markdown"),
        ("*/*", "markdown"),
        ("multipart/form-data; boundary=x", "markdown"),
    ],
)
def test_content_type_alone_decides_how_a_body_is_read(content_type: str | None, form: str) -> None:
    """By substring, in the order cbor, json, markdown; none is JSON; an unknown one is lenient Markdown."""
    assert request_format(content_type) == form


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "json"),
        ("", "json"),
        ("*/*", "json"),
        ("text/html", "json"),
        ("application/json", "json"),
        ("application/cbor", "cbor"),
        ("Application/CBOR", "cbor"),
        ("application/json, application/cbor", "cbor"),
        ("text/markdown, application/cbor;q=0.1", "cbor"),
        ("text/markdown, application/json", "json"),
        ("text/markdown", "markdown"),
        ("text/markdown;q=0.1, */*", "markdown"),
    ],
)
def test_accept_alone_decides_how_an_answer_is_written(accept: str | None, form: str) -> None:
    """CBOR wins over JSON over Markdown, weights count for nothing, and JSON is the rest."""
    assert response_format(accept) == form


QUESTION = {"query": "where?"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", json.dumps(QUESTION).encode()),
        ("application/cbor", cbor2.dumps(QUESTION)),
        ("text/markdown", json.dumps(QUESTION).encode()),
        ("text/markdown", b"where?"),
        ("text/plain", b"where?"),
    ],
)
def test_one_question_in_every_format(content_type: str, body: bytes) -> None:
    """The same question comes out, whatever it came in."""
    decoded = decode_body(request(body, content_type=content_type), RecallInput, "query")

    assert decoded == RecallInput(query="where?")


def test_text_becomes_one_user_message() -> None:
    """A raw text is one message of the user, unchanged to the byte."""
    text = "# Title\n\n  caf\u00e9 e\u0301 \u202e \U0001f600\n"
    decoded = decode_body(request(text.encode(), content_type="text/markdown"), FormationInput, "messages")

    assert [(message.role, message.content) for message in decoded.messages] == [("user", text)]


def test_json_that_is_something_else_is_text_for_a_markdown_body() -> None:
    """JSON of another shape, sent as text, is text."""
    decoded = decode_body(request(b'{"a": 1}', content_type="text/plain"), RecallInput, "query")

    assert decoded.query == '{"a": 1}'


BAD_BODIES = {
    "text where none is taken": (b"make it public", "text/markdown", UpdateSpaceInput, None),
    "text not UTF-8": (b"\xff\xfe", "text/markdown", RecallInput, "query"),
    "blank text": (b" \n", "text/markdown", RecallInput, "query"),
    "no body": (b"", "application/json", RecallInput, "query"),
    "JSON of another type": (b"[1]", "application/json", RecallInput, "query"),
    "a member missing": (b"{}", "application/json", RecallInput, "query"),
    "a member of another type": (b'{"query": 7}', "application/json", RecallInput, "query"),
    "no messages": (b'{"messages": []}', "application/json", FormationInput, "messages"),
    "text for JSON": (b"where?", "application/json", RecallInput, "query"),
    "JSON for CBOR": (b'{"query": "x"}', "application/cbor", RecallInput, "query"),
    "a member misspelt where none may be": (b'{"publc": true}', "application/json", UpdateSpaceInput, None),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_by_type(name: str) -> None:
    """What does not fit the route is InvalidInput."""
    body, content_type, kind, text_member = BAD_BODIES[name]
    with pytest.raises(NoemaError) as caught:
        decode_body(request(body, content_type=content_type), kind, text_member)

    assert caught.value.code == "InvalidInput"


def test_members_nobody_knows_do_not_break_an_agent() -> None:
    """A newer client's extra members are passed over on data routes."""
    body = b'{"query": "x", "novel": {"a": 1}}'

    assert decode_body(request(body), RecallInput, "query") == RecallInput(query="x")


class Said(msgspec.Struct, omit_defaults=True):
    """A result for the tests."""

    content: str
    model: str | None = None


ANSWER = {"result": Said("Zürich ✓"), "next_cursor": "abc"}
PLAIN: dict[str, Any] = {"result": {"content": "Zürich ✓"}, "next_cursor": "abc"}


def test_answers_in_every_format() -> None:
    """JSON and canonical CBOR carry the envelope; Markdown the one member, or the envelope as text."""
    as_json = encode_result(request(), ANSWER, "content")
    as_cbor = encode_result(request(accept="application/cbor"), ANSWER, "content")
    as_text = encode_result(request(accept="text/markdown"), ANSWER, "content")
    as_document = encode_result(request(accept="text/markdown"), ANSWER, None)

    assert json.loads(as_json.body) == PLAIN
    assert as_json.headers["content-type"] == "application/json"
    assert as_cbor.body == cbor2.dumps(PLAIN, canonical=True)
    assert as_cbor.headers["content-type"] == "application/cbor"
    assert as_text.body.decode() == "Zürich ✓"
    assert as_document.body.decode() == json.dumps(PLAIN, indent=2, ensure_ascii=False)
    assert as_text.headers["content-type"] == "text/markdown; charset=utf-8"


def test_numbers_in_a_query_string() -> None:
    """Text of a number is a number; what is none, and what two texts give, is refused."""
    assert decode_query(request(query={"query": "x", "limit": "-5"}), ProbeInput).limit == -5
    for bad in ("", "ten", "1e3x", "0x10"):
        with pytest.raises(NoemaError) as caught:
            decode_query(request(query={"query": "x", "limit": bad}), ProbeInput)
        assert caught.value.code == "InvalidInput"
