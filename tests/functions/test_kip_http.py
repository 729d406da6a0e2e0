"""KIP over HTTP: bodies in every form, answers that always fit the schema, scopes, retries and deadlines."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import cbor2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from core.errors import REGISTRY
from core.ports import Unavailable
from core.service.signing import signing_key
from core.storage.memory import MemoryTable
from tests.doubles import CountingEntropy, FailingTable, Faults
from tests.functions.world import Answer, World

READ, WRITE = "/v1/demo/execute_kip_readonly", "/v1/demo/execute_kip"
CREATE = 'CREATE CONCEPT ?c {TYPE "Person" NAME :n SET FIELDS {key: :n}}'
NAMES = 'FIND(?c.name) WHERE {?c CONCEPT {type: "Person"}}'
SCHEMA = Path(__file__).parents[1] / "fixtures" / "kip" / "schemas" / "kip-response.schema.json"


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


@pytest.fixture
def world() -> World:
    """A space that knows Alice."""
    made = World().make_space()
    assert said(made, WRITE, {"command": CREATE, "parameters": {"n": "Alice"}})["status"] == "succeeded"
    return made


def said(world: World, path: str, body: Any, **options: Any) -> dict[str, Any]:
    """The KIP response to a body, which must come with status 200 and fit the schema."""
    answer = world.ask("POST", path, body, **{"token": world.token(), **options})
    assert answer.status == 200, answer.body
    value: dict[str, Any] = answer.json
    validator().validate(value)
    return value


def code(response: dict[str, Any]) -> str | None:
    errors = [response.get("error"), *(each.get("error") for each in response["results"])]
    return next((each["code"] for each in errors if each), None)


BODIES: dict[str, Any] = {
    "an envelope": {"kip": "2.0", "operations": [{"command": NAMES}]},
    "the short form": {"command": NAMES},
    "operations without kip": {"operations": [NAMES]},
    "a JSON text": NAMES,
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("form", ["json", "cbor", "markdown"])
def test_every_form_of_a_body_is_the_same_request(world: World, name: str, form: str) -> None:
    """An envelope, its short form and a bare command are read from JSON, CBOR and text."""
    body = cbor2.dumps(BODIES[name]) if form == "cbor" else json.dumps(BODIES[name]).encode()
    headers = {
        "content-type": {"json": "application/json", "cbor": "application/cbor"}.get(form, "text/markdown")
    }

    assert said(world, READ, body, headers=headers)["results"][0]["result"] == ["Alice"]


def test_raw_text_is_a_command(world: World) -> None:
    """A text body is one command, and its characters reach the parser as they are."""
    headers = {"content-type": "text/plain; charset=utf-8"}
    find = 'FIND(?c.id) WHERE {?c CONCEPT {name: "Łukasz 🙂"}}'.encode()

    assert said(world, READ, find, headers=headers)["results"][0]["result"] == []


def test_a_bare_command_labelled_as_json_is_told_how_to_send_it(world: World) -> None:
    """It is no JSON, and the hint says what to do; a body that merely is broken JSON has another hint."""
    bare, broken = said(world, READ, b"DESCRIBE PRIMER"), said(world, READ, b"{")

    assert "text/plain" in bare["error"]["hint"]
    assert "text/plain" not in broken["error"]["hint"]


def test_the_answer_is_written_as_accept_asks(world: World) -> None:
    """CBOR holds the same value as JSON; Markdown is the JSON for the eye."""
    token = world.token()
    answers = {
        form: world.ask("POST", READ, NAMES, token=token, headers={"accept": form})
        for form in ("application/json", "application/cbor", "text/markdown")
    }

    value = answers["application/json"].json
    assert cbor2.loads(answers["application/cbor"].body) == value
    assert json.loads(answers["text/markdown"].body) == value
    assert answers["text/markdown"].headers["content-type"].startswith("text/markdown")


BAD: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "InvalidRequestEnvelope"),
    "no JSON": (b"{", "InvalidRequestEnvelope"),
    "no UTF-8": (b"\xff", "InvalidRequestEnvelope"),
    "a list": (["FIND"], "InvalidRequestEnvelope"),
    "null": (b"null", "InvalidRequestEnvelope"),
    "a key twice": (b'{"kip": "2.0", "kip": "2.0", "operations": [{"command": "x"}]}', "InvalidRequestEnvelope"),
    "not finite": (b'{"command": "DESCRIBE PRIMER", "parameters": {"a": NaN}}', "InvalidRequestEnvelope"),
    "half a character": (b'"\\ud800"', "InvalidRequestEnvelope"),
    "both forms": ({"command": "x", "operations": ["y"]}, "InvalidRequestEnvelope"),
    "options that are none": ({"command": "x", "dry_run": True, "options": 7}, "InvalidRequestEnvelope"),
    "a surplus member": ({"command": "x", "principal": "owner"}, "InvalidRequestEnvelope"),
    "several without a mode": ({"operations": [NAMES, NAMES]}, "InvalidRequestEnvelope"),
    "another version": ({"kip": "1.0", "operations": [{"command": "x"}]}, "UnsupportedProtocolVersion"),
    "no command": ("", "InvalidRequestEnvelope"),
    "bad syntax": ("FIND(", "InvalidSyntax"),
    "another space": (
        {"kip": "2.0", "space": {"id": "other"}, "operations": [{"command": NAMES}]}, "NotFoundOrNotVisible",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("path", [READ, WRITE])
def test_what_cannot_be_run_is_a_kip_failure(world: World, name: str, path: str) -> None:
    """Whatever stands in the body, the answer is 200 with a KIP response that says what was wrong."""
    body, expected = BAD[name]
    response = said(world, path, body)

    assert (response["status"], code(response)) == ("failed", expected)


@pytest.mark.parametrize("body", [b"\xff", b"", b"\xa1\x01\x02", cbor2.dumps({"command": float("nan")}),
                                  cbor2.dumps({"command": "x", "parameters": {"n": 2**64 - 1}})])  # fmt: skip
def test_bad_cbor_is_a_kip_failure(world: World, body: bytes) -> None:
    """CBOR is held to the rules of JSON, 64 bits included."""
    response = said(world, READ, body, headers={"content-type": "application/cbor"})

    assert code(response) == "InvalidRequestEnvelope"


NEAR = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=8) | st.sampled_from([NAMES, "2.0", "atomic"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["kip", "operations", "command", "execution", "mode", "parameters", "options", "dry_run", "read", "ingest",
             "evidence", "snapshot_token", "preconditions", "space_seq", "ast", "kind", "x", "space", "id"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
"""JSON values that look like requests and mostly are none."""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=NEAR, form=st.sampled_from(["json", "cbor", "plain"]), noise=st.binary(max_size=20))
def test_no_body_breaks_the_endpoint(world: World, value: Any, form: str, noise: bytes) -> None:
    """Whatever is sent, the answer is a KIP response with an error of the registry, or one that succeeded."""
    body = cbor2.dumps(value) if form == "cbor" else json.dumps(value).encode()
    headers = {"content-type": f"application/{form}"}
    for sent in (body, noise, body[: len(body) // 2] + noise):
        response = said(world, WRITE, sent, headers=headers)
        assert code(response) in {None, *REGISTRY}
        assert code(response) != "InternalError"


@pytest.mark.parametrize(
    "body",
    [
        CREATE,
        {"command": "MUTATE {" + CREATE + "}", "parameters": {"n": "x"}},
        {"operations": [{"language": "KQL", "command": CREATE}], "parameters": {"n": "x"}},
        {"kip": "2.0", "execution": {"mode": "atomic"}, "operations": [{"command": NAMES}, {"command": CREATE}],
         "parameters": {"n": "x"}},
        {"command": CREATE, "parameters": {"n": "x"}, "dry_run": True},
    ],
)  # fmt: skip
def test_the_readonly_endpoint_writes_nothing(world: World, body: Any) -> None:
    """What parses as a mutation is refused, whatever it is labelled, for the owner too; nothing changes."""
    before = world.services.spaces.load("demo").ver
    response = said(world, READ, body)

    assert code(response) in {"ReadonlyViolation", "LanguageMismatch"}
    assert world.services.spaces.load("demo").ver == before


def test_a_scope_is_what_kip_is_allowed(world: World) -> None:
    """A writing token changes the space and reads nothing; a guest of a public space reads."""
    writer = world.token(scope="write")
    made = said(world, WRITE, {"command": CREATE, "parameters": {"n": "Bob"}}, token=writer)
    peeked = said(world, WRITE, NAMES, token=writer)
    counted = {
        "command": "UPDATE ?c SET ATTRIBUTES {n: 1} WHERE {?c CONCEPT {key: :n}}",
        "parameters": {"n": "Bob"},
    }

    assert made["receipt"]["status"] == "committed"
    assert code(peeked) == "NotAuthorized"
    assert code(said(world, WRITE, counted, token=writer)) == "NotAuthorized"  # what it counts, it tells
    for command in ("HISTORY SPACE", "CHANGES AFTER SEQ 0", 'SEARCH CONCEPT "Bob"'):
        assert code(said(world, WRITE, {"command": command}, token=writer)) == "NotAuthorized"
    world.make_public()
    assert said(world, READ, NAMES, token=None)["results"][0]["result"] == ["Alice", "Bob"]
    assert said(world, READ, NAMES, token=writer)["results"][0]["result"] == ["Alice", "Bob"]


def test_who_writes_is_the_verified_caller(world: World) -> None:
    """The origin of an element is the token's subject and the channel, never anything in the body."""
    found = said(world, READ, 'FIND(?c) WHERE {?c CONCEPT {name: "Alice"}}')["results"][0]["result"][0]

    origin = found["_system"]["origin"]
    assert (origin["principal_id"], origin["channel"]) == ("alice", "rest")


def test_the_retry_header_makes_a_write_happen_once(world: World) -> None:
    """A repeated request has the first receipt, another one conflicts, and a key of the body's own counts more."""
    body = {"command": 'CREATE CONCEPT ?c {TYPE "Person" NAME "Twin"}'}
    headers = {"idempotency-key": "k"}
    first, again = said(world, WRITE, body, headers=headers), said(world, WRITE, body, headers=headers)
    several = {"operations": [CREATE, NAMES], "execution": {"mode": "sequence"}, "parameters": {"n": "S"}}
    once, twice = said(world, WRITE, several, headers=headers), said(world, WRITE, several, headers=headers)
    other = said(world, WRITE, {"command": CREATE, "parameters": {"n": "Else"}}, headers=headers)
    own = {"operations": [{"command": CREATE, "parameters": {"n": "Own"}, "idempotency_key": "mine"}]}

    assert first["receipt"] == again["receipt"]
    assert once["results"][0]["result"]["receipt"] == twice["results"][0]["result"]["receipt"]
    assert code(other) == "IdempotencyConflict"
    assert said(world, WRITE, own, headers=headers)["receipt"]["status"] == "committed"
    names = said(world, READ, NAMES)["results"][0]["result"]
    assert sorted(names) == ["Alice", "Own", "S", "Twin"]


def test_time_is_up_after_fifteen_seconds(world: World) -> None:
    """A request that takes longer is ended with ExecutionTimeout and leaves nothing behind."""
    world.clock.step_ms = 8_000
    late = said(world, WRITE, {"command": CREATE, "parameters": {"n": "Late"}}, token=world.token())
    world.clock.step_ms = 0

    assert code(late) == "ExecutionTimeout"
    assert said(world, READ, NAMES)["results"][0]["result"] == ["Alice"]


def test_a_space_that_is_not_there_is_a_404(world: World) -> None:
    """The transport, not KIP, says that a path names nothing."""
    answer: Answer = world.ask("POST", "/v1/nowhere/execute_kip", NAMES, token=world.token(aud="nowhere"))

    assert (answer.status, answer.code) == (404, "NotFoundOrNotVisible")


def test_cursors_are_good_in_every_process(world: World) -> None:
    """A page that one process began is continued by another: they sign with the same key."""
    said(world, WRITE, {"command": CREATE, "parameters": {"n": "Bob"}})
    first = said(world, READ, NAMES + " LIMIT 1")["results"][0]
    world.use(world.services.settings)
    more = {"command": NAMES + " LIMIT 1 CURSOR :c", "parameters": {"c": first["next_cursor"]}}
    second = said(world, READ, more)["results"][0]

    assert (first["result"], second["result"]) == (["Alice"], ["Bob"])


def test_a_deployment_has_one_signing_key() -> None:
    """Of two processes that make it at the same moment one wins, and both use the winner's key."""
    table = MemoryTable()
    seen: list[bytes] = []

    def first(_: Any) -> None:
        if not seen:
            seen.append(signing_key(table, CountingEntropy(1)))

    late = signing_key(FailingTable(table, before_transact=first), CountingEntropy(2))

    assert [late] == seen
    assert signing_key(table, CountingEntropy(3)) == late
    assert len(late) == 32


def test_a_signing_key_is_never_invented_while_the_store_is_silent() -> None:
    """An unknown outcome is told; it is not replaced by a key that no other process has."""
    with pytest.raises(Exception, match="did not answer") as refused:
        signing_key(FailingTable(MemoryTable(), Faults([0], error=Unavailable)), CountingEntropy())

    assert getattr(refused.value, "code", None) == "ServiceUnavailable"


def test_a_caller_sees_the_spaces_that_the_credential_is_good_for(world: World) -> None:
    """A token for every space lists all; one for this space, a space token and a guest list this one."""
    world.make_space("other").make_public()

    def spaces(**options: Any) -> list[str]:
        result = said(world, READ, "LIST SPACES", **options)["results"][0]["result"]
        return [row["id"] for row in result]

    assert spaces(token=world.token(aud="*", scope="read")) == ["demo", "other"]
    assert spaces(token=world.token(scope="read")) == ["demo"]
    assert spaces(token=world.space_token()) == ["demo"]
    assert spaces(token=None) == ["demo"]
