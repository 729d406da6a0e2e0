"""The pipeline: what every request goes through, whatever it asks for."""

import base64
import json
import logging
from typing import Any

import cbor2
import msgspec
import pytest

from core.errors import REGISTRY, NoemaError
from core.model.ids import check_space_id
from core.ports import Unavailable
from core.storage.memory import MemoryTable
from functions import catalog, failures
from functions.endpoints import ENDPOINTS, FALLBACK, find, function_for
from functions.logs import logger
from functions.routing import MAX_BODY_BYTES, respond
from functions.settings import SettingsError
from tests.doubles import FailingTable, Faults
from tests.functions.world import KEYED, World, event, served

# --- endpoints


def test_every_served_endpoint_has_one_row_and_one_function() -> None:
    """The list of endpoints and the functions' tables name the same things, each in its own function."""
    assert set(catalog.ROUTES) == set(served())
    tables = {"reads": catalog.reads, "writes": catalog.writes, "management": catalog.management}
    for function, module in tables.items():
        assert set(module.ROUTES) == {name for name in served() if ENDPOINTS[name].function == function}


def test_every_endpoint_is_found_by_its_own_path() -> None:
    """No endpoint hides another; those that are not there yet are refused by name."""
    for name, endpoint in ENDPOINTS.items():
        path = endpoint.path.replace("{space}", "demo").replace("{id}", "7").replace("{rest+}", "docs/1")
        if endpoint.function is not None:
            assert find(endpoint.method, path)[0] == name
            assert function_for(endpoint.method, path) == endpoint.function
            continue
        with pytest.raises(NoemaError) as caught:
            find(endpoint.method, path)
        assert (caught.value.code, caught.value.details) == ("NotImplementedYet", {"endpoint": name})
        assert function_for(endpoint.method, path) == FALLBACK


@pytest.mark.parametrize(
    "path",
    ["", "/", "/nothing", "/v1", "/v1/", "/v1//info", "/v1/demo", "/v1/demo/", "/v1/demo/info/", "/v1/demo/info/x",
     "//v1/demo/info", "/V1/demo/info", "/v1/demo/INFO", "/v2/demo/info", "/admin", "/v1/a/b/info",
     "/v1/demo/../demo/info", "/v1/demo/wiki/", "/info/", "/mcp/", "/skill.md"],
)  # fmt: skip
def test_what_is_no_path_is_not_found(path: str) -> None:
    """Paths are exact: no trailing slash, no empty segment, no other case."""
    answer = World().ask("GET", path or "/")

    assert (answer.status, answer.code) in {(404, "RouteNotFound"), (501, "NotImplementedYet")}
    assert path == "/v1/demo/wiki/" or answer.status == 404


def test_a_known_path_names_its_methods() -> None:
    """A method that a path does not take is a 405 with Allow."""
    answer = World().ask("DELETE", "/v1/demo/info")

    assert (answer.status, answer.code) == (405, "MethodNotAllowed")
    assert answer.headers["allow"] == "GET"
    assert answer.json["error"]["data"]["details"]["allow"] == ["GET"]


def test_a_capability_that_is_missing_is_refused_by_name() -> None:
    """A route of the contract that is not built is a 501 that says which."""
    answer = World().ask("POST", "/v1/demo/wiki/docs", {})

    assert (answer.status, answer.code) == (501, "NotImplementedYet")
    assert "/wiki/" in answer.json["error"]["message"]


# --- errors


def test_every_code_has_a_status_of_failure() -> None:
    """One table gives each code of the registry a status, and no code is left out."""
    assert set(failures.STATUS) == set(REGISTRY)
    assert all(400 <= status < 600 for status in failures.STATUS.values())


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InvalidInput", 400), ("InvalidSyntax", 400), ("SpaceTierExceeded", 400), ("Unauthenticated", 401),
        ("NotAuthorized", 403), ("NotFoundOrNotVisible", 404), ("RouteNotFound", 404), ("MethodNotAllowed", 405),
        ("IdentityConflict", 409), ("IdempotencyConflict", 409), ("Busy", 409), ("SerializationConflict", 409),
        ("PayloadTooLarge", 413), ("TransactionTooLarge", 413), ("RateLimited", 429), ("InternalError", 500),
        ("NotImplementedYet", 501), ("ServiceUnavailable", 503), ("OutcomeUnknown", 503),
    ],
)  # fmt: skip
def test_codes_and_statuses(code: str, status: int) -> None:
    """The statuses of the contract (§1.3)."""
    assert failures.STATUS[code] == status


def test_an_error_says_what_to_do() -> None:
    """Message, code, hint, retry class and details; Retry-After in whole seconds, rounded up."""
    error = NoemaError("RateLimited", "too fast", details={"limit": 3}, retry_after_ms=1500)

    response = failures.to_response(error)

    assert response.status == 429
    assert response.headers["retry-after"] == "2"
    assert json.loads(response.body) == {
        "error": {
            "message": "too fast",
            "data": {
                "code": "RateLimited",
                "category": "resource",
                "hint": REGISTRY["RateLimited"].hint,
                "retry": {"class": "safe_same_request", "after_ms": 1500},
                "details": {"limit": 3},
            },
        }
    }


def test_errors_are_json_whatever_is_accepted() -> None:
    """A client that asks for CBOR or Markdown still gets its error in JSON."""
    for accept in ("application/cbor", "text/markdown", "text/html"):
        answer = World().ask("GET", "/v1/demo/info", headers={"accept": accept})
        assert (answer.status, answer.code) == (401, "Unauthenticated")


def test_every_401_is_the_same() -> None:
    """The reason of a refusal is not in it: not the token's, not the space's."""
    world = World().make_space()
    tokens = [None, "x", world.token(aud="other"), world.token(now_s=1), "ST" + "a" * 43, world.admin_token()]
    answers = [
        world.ask("GET", f"/v1/{space}/info", token=t) for t in tokens for space in ("demo", "nowhere")
    ]

    assert {answer.status for answer in answers} == {401}
    assert len({answer.body for answer in answers}) == 1
    assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer realm="noema"'}
    assert answers[0].json["error"]["message"] == "authentication failed"


def test_a_store_that_does_not_answer_is_a_503() -> None:
    """The caller is told to wait, not that the space is missing."""
    faults = Faults(range(1000), reads=True, error=Unavailable)
    world = World(table=FailingTable(MemoryTable(), faults))

    answer = world.ask("GET", "/v1/demo/info", token=world.token())

    assert (answer.status, answer.code) == (503, "ServiceUnavailable")
    assert answer.headers["retry-after"] == "1"


def test_a_bug_is_told_by_its_id_alone(log: list[dict[str, Any]]) -> None:
    """What is no NoemaError is logged with the request's id; the caller learns nothing else."""
    world = World().make_space()

    class Broken:
        def info(self, space: str, caller: Any) -> None:
            raise RuntimeError(f"the secret of {space}")

    world.services.__dict__["admin"] = Broken()
    answer = world.ask("GET", "/v1/demo/info", token=world.token(), headers={"x-request-id": "mine-1"})

    assert (answer.status, answer.code) == (500, "InternalError")
    assert b"secret" not in answer.body
    assert answer.json["error"]["data"]["details"] == {"request_id": "mine-1"}
    bug = next(line for line in log if line["message"] == "bug")
    assert bug["request_id"] == "mine-1"
    assert bug["error"] == "RuntimeError"
    assert "info" in bug["places"][-1]
    assert "secret" not in json.dumps(log)  # an exception may quote somebody's memory


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/v1/demo/info", "ServiceUnavailable"),
        ("PATCH", "/v1/demo/management/update_space", "OutcomeUnknown"),
    ],
)
def test_a_fault_that_a_service_let_through_is_a_503(method: str, path: str, code: str) -> None:
    """A read may be repeated; of a write nothing is known."""
    world = World().make_space()

    class Broken:
        def info(self, space: str, caller: Any) -> None:
            raise Unavailable("no answer")

        def update_space(self, *args: Any) -> None:
            raise Unavailable("no answer")

    world.services.__dict__["admin"] = Broken()

    answer = world.ask(method, path, {"name": "x"}, token=world.token())

    assert (answer.status, answer.code) == (503, code)


def test_no_answer_may_be_taken_for_another_type() -> None:
    """A browser must not guess at what a memory says."""
    for path in ("/info", "/SKILL.md", "/v1/demo/info", "/nothing"):
        assert World().ask("GET", path).headers["x-content-type-options"] == "nosniff"


def test_settings_that_cannot_be_used_are_a_500_with_a_log_line(log: list[dict[str, Any]]) -> None:
    """A deployment with a bad variable answers in JSON, and its log names the variable."""

    def broken() -> Any:
        raise SettingsError("SHARDING_IDX must be a whole number")

    out = respond(event("GET", "/info", None, {}), None, catalog.ROUTES, broken)

    assert out["statusCode"] == 500
    assert json.loads(out["body"])["error"]["data"]["code"] == "InternalError"
    assert "SHARDING_IDX" in json.dumps(log)


# --- ids, shards, bodies


@pytest.fixture
def log() -> Any:
    """The lines that are logged, as JSON."""
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(logger().registered_formatter.format(record)))

    handler, level = Keep(), logger().level
    logger().addHandler(handler)
    logger().setLevel("INFO")
    yield lines
    logger().setLevel(level)
    logger().removeHandler(handler)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("abc-123", True),
        ("Root=1-67891233-abcdef012345678912345678", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("with blank", False),
        ("line\nbreak", False),
        ("ünicode", False),
        ('"><script>', False),
    ],
)
def test_a_request_id_comes_back(sent: str, kept: bool) -> None:
    """The caller's id if it is one, else the gateway's."""
    answer = World().ask("GET", "/info", headers={"X-Request-Id": sent})

    assert answer.headers["x-request-id"] == (sent if kept else "gateway-request-1")


def test_one_line_is_logged_for_a_request_and_holds_nothing_private(log: list[dict[str, Any]]) -> None:
    """Route, status, code, kind of caller and id; no token, no body, no query, no space's text."""
    world = World().make_space()
    token = world.token(sub="alice-subject")
    log.clear()
    world.ask(
        "PATCH",
        "/v1/demo/management/update_space",
        {"name": "private name"},
        token=token,
        query="q=private",
        headers={"x-request-id": "r-1"},
    )

    assert len(log) == 1
    line = log[0]
    expected = {
        "route": "/v1/{space}/management/update_space",
        "status": 200,
        "space": "demo",
        "caller": "cwt",
    }
    assert expected.items() <= line.items()
    assert line["request_id"] == "r-1"
    for secret in (token, "private", "alice-subject"):
        assert secret not in json.dumps(log)


@pytest.mark.parametrize(
    ("headers", "sharding", "status"),
    [
        ({}, 0, 200), ({"shard-id": "0"}, 0, 200), ({"Shard-Id": "7"}, 7, 200), ({"x-shard": "7"}, 7, 200),
        ({"shard-id": " 7 "}, 7, 200), ({"shard-id": str(2**32 - 1)}, 2**32 - 1, 200),
        ({}, 7, 400), ({"shard-id": "1"}, 0, 400), ({"shard-id": "x"}, 0, 400), ({"shard-id": ""}, 0, 400),
        ({"shard-id": "-0"}, 0, 400), ({"shard-id": "0.0"}, 0, 400), ({"shard-id": "٠"}, 0, 400),
        ({"shard-id": str(2**32)}, 0, 400), ({"shard-id": "9" * 5000}, 0, 400),
        ({"shard-id": "7", "x-shard": "0"}, 7, 200),
    ],
)  # fmt: skip
def test_the_shard_must_be_this_servers(headers: dict[str, str], sharding: int, status: int) -> None:
    """A u32, 0 if absent; another shard, and garbage, is a 400 (contract §1.1)."""
    world = World(msgspec.structs.replace(KEYED, sharding=sharding))

    assert world.ask("GET", "/info", headers=headers).status == status


PATCH = "/v1/demo/management/update_space"


def test_bodies_in_json_and_cbor_and_base64_are_one() -> None:
    """A gateway that hands over text and one that hands over base64 make no difference."""
    world = World().make_space()
    token = world.token()
    for name, content_type, body in [
        ("one", "application/json", b'{"name": "one"}'),
        ("zw\u00f6lf", "application/json", '{"name": "zw\u00f6lf"}'.encode()),
        ("drei", "application/cbor", cbor2.dumps({"name": "drei"})),
    ]:
        headers = {"content-type": content_type, "authorization": f"Bearer {token}"}
        plain = event("PATCH", PATCH, body, headers)
        encoded = {**plain, "body": base64.b64encode(body).decode(), "isBase64Encoded": True}
        assert world.send(plain).result is True
        assert world.send(encoded).result is True
        assert world.ask("GET", "/v1/demo/info", token=token).result["name"] == name


MALFORMED = {
    "no body": None,
    "empty": b"",
    "cut": b'{"name": "x',
    "not UTF-8": b'{"name": "\xff"}',
    "a lone surrogate": b'{"name": "\\ud800"}',
    "a member twice": b'{"name": "x", "name": "y"}',
    "NaN": b'{"memory_policy": {"decay_floor": NaN}}',
    "deep": b'{"name": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a list": b"[]",
    "null": b"null",
    "text": b'"name"',
    "an unknown member": b'{"nmae": "x"}',
    "a wrong type": b'{"name": {"$ne": null}}',
    "the prototype": b'{"__proto__": {"public": true}, "constructor": 1}',
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_body_is_a_400_and_changes_nothing(name: str) -> None:
    """Each is InvalidInput with a hint, and the space stays as it was."""
    world = World().make_space()
    before = world.ask("GET", "/v1/demo/info", token=world.token()).result

    answer = world.ask("PATCH", PATCH, MALFORMED[name], token=world.token())

    assert (answer.status, answer.code) == (400, "InvalidInput")
    assert answer.json["error"]["data"]["hint"]
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result == before


def test_a_body_over_the_bound_is_a_413_before_anything_else() -> None:
    """1 MB is read (and judged by its content), 10 MB is refused without a look at token or text."""
    world = World().make_space()
    big = b'{"name": "' + b"x" * 1_000_000 + b'"}'
    huge = b"x" * 10_000_000

    assert world.ask("PATCH", PATCH, big, token=world.token()).status == 400
    answer = world.ask("PATCH", PATCH, huge)

    assert (answer.status, answer.code) == (413, "PayloadTooLarge")
    assert answer.json["error"]["data"]["details"] == {"limit_bytes": MAX_BODY_BYTES, "bytes": 10_000_000}


def test_base64_that_is_none_is_a_400() -> None:
    """An event whose body cannot be decoded is the caller's to correct."""
    made = {**event("PATCH", PATCH, b"x", {}), "body": "%%%", "isBase64Encoded": True}

    assert World().send(made).status == 400


@pytest.mark.parametrize(
    "query", ["a=1&a=2", "%ff=1", "&".join(f"p{n}=1" for n in range(40))], ids=["twice", "not UTF-8", "many"]
)
def test_a_query_string_that_cannot_be_read_is_a_400(query: str) -> None:
    """A parameter given twice, or bytes that are no text, are refused."""
    answer = World().ask("GET", "/info", query=query)

    assert (answer.status, answer.code) == (400, "InvalidInput")


@pytest.mark.parametrize(
    "space", ["Demo", "a-b", "x" * 65, "%2e%2e", "d%C3%A9mo", "a%2Fb", "HEAD%23", "a%00"]
)
def test_a_path_with_a_bad_space_id_is_refused(space: str) -> None:
    """An id that no space can have is a 400, or no path at all; never a look into the store."""
    world = World()
    answer = world.ask("GET", f"/v1/{space}/info", token=world.token())

    assert answer.status in {400, 404}
    with pytest.raises(NoemaError):
        check_space_id(space)


def test_an_idempotency_key_is_printable_ascii() -> None:
    """A key is 1 to 128 printable characters; another is a 400."""
    world = World().make_space()
    for key, status in [("k", 200), ("k" * 128, 200), ("", 400), ("k" * 129, 400), ("a b", 400), ("é", 400)]:
        answer = world.ask("GET", "/v1/demo/info", token=world.token(), headers={"idempotency-key": key})
        assert answer.status == status


# --- CORS

SITE = "https://app.example.org"


def cors(origins: tuple[str, ...], method: str = "GET", origin: str | None = SITE) -> dict[str, str]:
    world = World(msgspec.structs.replace(KEYED, cors_origins=origins))
    headers = {} if origin is None else {"origin": origin}
    answer = world.ask(method, "/info", headers=headers)
    assert answer.status == (204 if method == "OPTIONS" else 200)
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def test_without_origins_there_is_no_cors() -> None:
    """The default tells no browser anything."""
    assert cors(()) == {}
    assert cors((), "OPTIONS") == {}


def test_a_listed_origin_may_read_and_ask() -> None:
    """The origin itself, fixed methods and headers, a day, and never credentials."""
    assert cors((SITE,))["access-control-allow-origin"] == SITE
    preflight = cors((SITE,), "OPTIONS")
    assert preflight["access-control-allow-methods"] == "GET, POST, PATCH, DELETE, OPTIONS"
    assert "authorization" in preflight["access-control-allow-headers"]
    assert preflight["access-control-max-age"] == "86400"
    assert "access-control-allow-credentials" not in preflight


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", f"{SITE}.evil.example", SITE + ":8443"]
)
def test_another_origin_gets_nothing(origin: str | None) -> None:
    """Origins are compared whole."""
    assert cors((SITE,), origin=origin) == {}
    assert cors((SITE,), "OPTIONS", origin) == {}


def test_every_origin_is_a_star_without_credentials() -> None:
    """`*` mirrors nobody."""
    assert cors(("*",))["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in cors(("*",), "OPTIONS")


def test_a_listed_origin_reads_errors_too() -> None:
    """A failure bears the same CORS headers, or a page could not read why."""
    world = World(msgspec.structs.replace(KEYED, cors_origins=(SITE,)))

    answer = world.ask("GET", "/v1/demo/info", headers={"origin": SITE})

    assert answer.status == 401
    assert answer.headers["access-control-allow-origin"] == SITE
    assert answer.headers["vary"] == "accept, origin"
