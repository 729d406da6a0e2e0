"""The request envelope, read strictly."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from core.protocol.request import decode_json, decode_request, read_request
from tests.conformance.packages import wire_schema

ONE = [{"command": "DESCRIBE PROTOCOL"}]
TWO = [{"command": "DESCRIBE PROTOCOL"}, {"command": "SNAPSHOT"}]


def refused(value):
    with pytest.raises(NoemaError) as caught:
        read_request(value)
    return caught.value


def code_of(read, value):
    """The code a reader refuses a value with; None if it reads it."""
    try:
        read(value)
    except NoemaError as error:
        return error.code
    return None


def by_schema(value):
    """Whether the published schema admits a request."""
    return jsonschema.Draft202012Validator(wire_schema("kip-request")).is_valid(value)


def full():
    """A request with every member."""
    return {
        "kip": "2.0",
        "request_id": "req-1",
        "space": {"id": "s", "uri": "urn:noema:space:s"},
        "execution": {"mode": "atomic", "isolation": "serializable", "idempotency_key": "k", "on_error": "stop"},
        "read": {"snapshot_token": "t"},
        "ingest": {"evidence": [{"key": "msg", "evidence_class": "user_statement", "payload": "hi",
                                 "observed_at": "2026-08-14T01:00:00Z", "client_key": "c", "media_type": "text/plain",
                                 "source_actor": "alice"}]},
        "preconditions": {"space_seq": 3, "schema_environment_version": 1},
        "operations": [{"op_id": "a", "language": "META", "command": "DESCRIBE PROTOCOL", "parameters": {"x": [1]},
                        "idempotency_key": "k2", "options": {}}],
        "parameters": {"y": None},
        "context": {"purpose": "p", "risk": "low", "locale": "de", "client": "c"},
        "requires": {"belief_slot": True},
        "options": {"dry_run": True, "deadline_ms": 10},
        "extensions": {"acme.example/x": {"critical": False, "more": 1}},
    }  # fmt: skip


def test_a_full_request_is_read_and_fits_the_schema():
    """Every member of the envelope has its place."""
    request = read_request(full())

    assert by_schema(full())
    assert request.mode == "atomic"
    assert request.ingest.evidence[0].payload == "hi"
    assert request.options.dry_run


def test_a_single_operation_needs_no_mode():
    """One operation without an execution block is a request."""
    assert read_request({"kip": "2.0", "operations": ONE}).mode == "sequence"


@pytest.mark.parametrize(
    "change",
    [
        {"operations": []},
        {"operations": TWO},
        {"operations": TWO, "execution": {"on_error": "stop"}},
        {"execution": {"mode": "atomic", "on_error": "continue"}},
        {"execution": {"mode": "batch"}},
        {"unknown": 1},
        {"request_id": None},
        {"request_id": ""},
        {"space": {}},
        {"space": {"name": "x"}},
        {"operations": [{}]},
        {"operations": [{"command": "SNAPSHOT", "ast": {}}]},
        {"operations": [{"command": None}]},
        {"operations": [{"command": ""}]},
        {"operations": [{"command": "SNAPSHOT", "language": "SQL"}]},
        {"operations": [{"command": "SNAPSHOT", "tx_id": "tx-1"}]},
        {"operations": [{"command": "SNAPSHOT", "parameters": {"1x": 1}}]},
        {"operations": [{"command": "SNAPSHOT", "options": {"dry_run": True}}]},
        {"parameters": {"a-b": 1}},
        {"options": {"deadline_ms": 0}},
        {"options": None},
        {"preconditions": {"space_seq": -1}},
        {"preconditions": {"space_seq": "1"}},
        {"requires": {"": True}},
        {"extensions": {"nonamespace": {}}},
        {"extensions": {"a/b": 5}},
        {"ingest": {"evidence": []}},
        {"ingest": {"evidence": [{"key": "m", "evidence_class": "c"}]}},
        {
            "ingest": {
                "evidence": [{"key": "m", "evidence_class": "c", "payload": 1, "payload_artifact": "x"}]
            }
        },
        {"ingest": {"evidence": [{"key": "1", "evidence_class": "c", "payload": 1}]}},
        {"ingest": {"evidence": [{"key": "m", "payload": 1}]}},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_what_the_schema_refuses_is_refused(change):
    """The published schema and the reader refuse the same envelopes."""
    value = {"kip": "2.0", "operations": ONE, **change}

    assert not by_schema(value)
    assert refused(value).code == "InvalidRequestEnvelope"


@pytest.mark.parametrize(
    "change",
    [
        {"operations": [{"command": "SNAPSHOT", "op_id": "a"}, {"command": "SNAPSHOT", "op_id": "a"}],
         "execution": {"mode": "sequence"}},
        {"operations": [{"command": "SNAPSHOT"}] * 257, "execution": {"mode": "sequence"}},
        {"ingest": {"evidence": [{"key": "m", "evidence_class": "c", "payload": 1}] * 2}},
        {"ingest": {"evidence": [{"key": "m", "evidence_class": "c", "payload": 1}]}, "parameters": {"m": 1}},
        {"ingest": {"evidence": [{"key": "m", "evidence_class": "c", "payload": 1, "observed_at": "today"}]}},
        {"extensions": {"a/b": {"critical": "yes"}}},
    ],
)  # fmt: skip
def test_rules_beyond_the_schema(change):
    """Ids are unique, an ingested key hides no parameter, and a batch is bounded."""
    assert refused({"kip": "2.0", "operations": ONE, **change}).code == "InvalidRequestEnvelope"


def test_another_version_is_refused_as_such():
    """A version that is not spoken is told from a malformed envelope, whatever else is wrong."""
    assert refused({"kip": "9.9", "nonsense": 1}).code == "UnsupportedProtocolVersion"
    assert refused({"operations": ONE}).code == "InvalidRequestEnvelope"
    assert refused({"kip": 2.0, "operations": ONE}).code == "InvalidRequestEnvelope"


def test_what_is_critical_and_unknown_fails():
    """A critical extension or a compatibility profile that is not there is never ignored."""
    critical = {"kip": "2.0", "operations": ONE, "extensions": {"acme/x": {"critical": True}}}

    assert refused(critical).code == "UnsupportedCapability"
    assert (
        refused({"kip": "2.0", "operations": ONE, "compatibility_profile": "kip-1-compat"}).code
        == "UnsupportedCapability"
    )


def test_an_error_names_the_place():
    """A mistake in the envelope is told with its path."""
    error = refused({"kip": "2.0", "operations": [{"command": 5}]})

    assert error.details["at"] == "$.operations[0].command"
    assert error.message == "operations[0].command: expected `str`, got `int`"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b'{"kip":"2.0","kip":"2.0"}', "twice"),
        (b'{"a":{"b":1,"c":2,"b":3}}', "twice"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "Infinity"),
        (b'{"a":1e999}', "too large"),
        (b'{"a":99999999999999999999}', "64 bits"),
        (b'{"a":"\xff"}', "UTF-8"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":}', "JSON"),
        (b"[" * 100_000, "deep"),
        (b"", "JSON"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else value,
)
def test_ambiguous_bytes_are_refused(body, word):
    """Whatever two JSON readers could understand differently is refused before anything runs."""
    with pytest.raises(NoemaError) as caught:
        decode_json(body)

    assert caught.value.code == "InvalidRequestEnvelope"
    assert word in caught.value.message


def test_text_survives_as_it_is():
    """UTF-8, escapes and whole surrogate pairs read back as the same text."""
    assert decode_json('{"a":"日本 é \\ud83d\\ude00"}'.encode()) == {"a": "日本 é 😀"}


def test_a_body_has_a_bound():
    """A request larger than the bound is refused unread."""
    with pytest.raises(NoemaError) as caught:
        decode_request(b" " * (4 * 1024 * 1024 + 1))

    assert caught.value.code == "PayloadTooLarge"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(full())), JSON)
def test_no_value_in_any_member_does_worse_than_an_error(member, value):
    """Any JSON in any member is either a request or a NoemaError."""
    code = code_of(read_request, {**full(), member: value})

    assert code in {None, "InvalidRequestEnvelope", "UnsupportedProtocolVersion", "UnsupportedCapability"}
    assert code is not None or by_schema({**full(), member: value})


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_do_worse_than_an_error(body):
    """Any bytes are either a request or a NoemaError."""
    assert code_of(decode_request, body) in {None, "InvalidRequestEnvelope", "UnsupportedProtocolVersion"}
