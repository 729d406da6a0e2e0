"""Who is admitted: every kind of credential against every class of routes (docs/security.md is this table)."""

from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest

from core.errors import NoemaError
from core.service.values import Caller
from functions.failures import STATUS
from functions.http import HttpRequest
from functions.identity import Admission
from functions.settings import Settings
from tests.functions.world import ADMIN_KEY, KEYED, OTHER_KEY, TENANT_KEY, World

CLASSES: tuple[Admission, ...] = get_args(Admission)


@pytest.fixture
def world() -> World:
    """Two spaces, one of them public; alice owns both."""
    return World().make_space("demo").make_space("open").make_public("open")


def admit(world: World, admission: Admission, space: str | None, token: str | None, **headers: str) -> Caller:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    request = HttpRequest(method="GET", path="/", headers=given, query={}, body=b"", request_id="r")
    return world.services.gate.admit(admission, request, None if admission == "admin" else space)


def status(world: World, admission: Admission, space: str, token: str | None, **headers: str) -> int:
    try:
        admit(world, admission, space, token, **headers)
    except NoemaError as error:
        return STATUS[error.code]
    return 200


Token = Callable[[World, str], str | None]

CREDENTIALS: dict[str, Token] = {
    "none": lambda w, s: None,
    "read": lambda w, s: w.token(aud=s, scope="read"),
    "write": lambda w, s: w.token(aud=s, scope="write"),
    "all": lambda w, s: w.token(aud=s, scope="*"),
    "every space, read": lambda w, s: w.token(aud="*", scope="read"),
    "every space, all": lambda w, s: w.token(aud="*", scope="*", sub="boss"),
    "manager": lambda w, s: w.admin_token(),
    "manager, read": lambda w, s: w.admin_token(scope="read"),
    "admin key, no manager": lambda w, s: w.admin_token(sub="alice"),
    "admin key, one space": lambda w, s: w.admin_token(aud=s, scope="*"),
    "another space": lambda w, s: w.token(aud="elsewhere"),
    "forged": lambda w, s: w.token(aud=s, key=OTHER_KEY),
    "expired": lambda w, s: w.token(aud=s, now_s=w.clock.time // 1000 - 7200),
    "garbage": lambda w, s: "garbage",
    "no such space token": lambda w, s: "ST" + "A" * 43,
    "half a space token": lambda w, s: "ST" + "A" * 20,
}
# Per credential: what the classes public, read, write, manage and admin answer; open is 200 for all.
PRIVATE = {
    "none": (401, 401, 401, 401, 401),
    "read": (200, 200, 403, 403, 401),
    "write": (403, 403, 200, 200, 401),
    "all": (200, 200, 200, 200, 401),
    "every space, read": (200, 200, 403, 403, 401),
    "every space, all": (200, 200, 200, 200, 401),
    "manager": (401, 401, 401, 401, 200),
    "manager, read": (401, 401, 401, 401, 403),
    "admin key, no manager": (401, 401, 401, 401, 403),
    "admin key, one space": (401, 401, 401, 401, 401),
    "another space": (401, 401, 401, 401, 401),
    "forged": (401, 401, 401, 401, 401),
    "expired": (401, 401, 401, 401, 401),
    "garbage": (401, 401, 401, 401, 401),
    "no such space token": (401, 401, 401, 401, 401),
    "half a space token": (401, 401, 401, 401, 401),
}
# On a public space two things differ: nobody may read publicly, and whoever may only write may do that too.
PUBLIC = {**PRIVATE, "none": (200, 403, 403, 403, 401), "write": (200, 403, 200, 200, 401)}


def answers(world: World, space: str, credential: str) -> tuple[int, ...]:
    token = CREDENTIALS[credential](world, space)
    assert status(world, "open", space, token) == 200
    return tuple(status(world, admission, space, token) for admission in CLASSES[2:7])


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_the_table_of_admission(world: World, credential: str) -> None:
    """Each credential gets from each class exactly what the table says."""
    assert CLASSES == ("open", "any", "public", "read", "write", "manage", "admin", "host")
    assert answers(world, "demo", credential) == PRIVATE[credential]
    assert answers(world, "open", credential) == PUBLIC[credential]


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_any_credential_of_the_space_admits_to_what_asks_for_more_later(
    world: World, credential: str
) -> None:
    """The class `any` takes what is good for the space for some other class; on a public space anybody."""
    good = any(code in (200, 403) for code in PRIVATE[credential][:4])
    nobody = credential == "none"

    token = {space: CREDENTIALS[credential](world, space) for space in ("demo", "open")}

    assert status(world, "any", "demo", token["demo"]) == (200 if good else 401)
    assert status(world, "any", "open", token["open"]) == (200 if good or nobody else 401)


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_a_space_that_does_not_exist_looks_like_a_private_one(world: World, credential: str) -> None:
    """No refusal tells whether a space is there."""
    assert answers(world, "nowhere", credential) == PRIVATE[credential]


SPACE_TOKENS = {
    "read": ({"scope": "read"}, (200, 200, 403, 403, 401)),
    "write": ({"scope": "write"}, (403, 403, 200, 403, 401)),
    "all": ({"scope": "*"}, (200, 200, 200, 403, 401)),
}


@pytest.mark.parametrize("name", SPACE_TOKENS)
def test_space_tokens_admit_to_their_space_but_never_manage_it(world: World, name: str) -> None:
    """A space token has its scope in its own space, and nothing anywhere else."""
    wish, expected = SPACE_TOKENS[name]
    token = world.space_token(**wish)

    assert status(world, "any", "demo", token) == 200
    assert tuple(status(world, admission, "demo", token) for admission in CLASSES[2:7]) == expected
    for other in ("open", "nowhere"):
        assert {status(world, admission, other, token) for admission in CLASSES[1:]} == {401}


def test_a_space_token_ends_when_it_expires_or_is_revoked(world: World) -> None:
    """Expiry is checked against the clock at each use, and revocation counts at once."""
    short = world.space_token(expires_at=world.clock.time + 1000)
    kept = world.space_token(name="other")
    assert status(world, "read", "demo", short) == 200
    world.clock.advance(1000)
    assert status(world, "read", "demo", short) == 401
    assert status(world, "read", "demo", kept) == 200

    path = "/v1/demo/management/revoke_space_token"
    assert world.ask("POST", path, {"token": kept}, token=world.token()).result is True
    assert status(world, "read", "demo", kept) == 401


def test_who_the_caller_is_comes_from_the_credential(world: World) -> None:
    """The subject of the CWT, the name of the space token, or our names for nobody and for this machine."""
    cwt = admit(world, "read", "demo", world.token(sub="bob", scope="read"))
    token = admit(world, "read", "demo", world.space_token(labels=["hr"], name="ci"))
    nobody = admit(world, "public", "open", None)
    boss = admit(world, "admin", None, world.admin_token())

    assert (cwt.subject, cwt.kind, cwt.scope, cwt.manager) == ("bob", "cwt", "read", False)
    assert (token.subject, token.kind, token.labels) == ("token:ci", "space_token", ("hr",))
    assert (nobody.subject, nobody.kind, nobody.scope) == ("anonymous", "anonymous", "read")
    assert boss.manager


HEADERS = {
    "bearer x": 401,
    "Bearer": 401,
    "Bearer ": 401,
    "Basic YWxpY2U6eA==": 401,
    "": 401,
    "Bearer {good} {good}": 401,
    "Bearer {good}, Bearer {good}": 401,
    "Bearer Bearer {good}": 401,
    "{good}": 401,
    "Bearer {good}": 200,
    "bearer {good}": 200,
    "BEARER   {good}  ": 200,
}


@pytest.mark.parametrize("header", HEADERS)
def test_the_scheme_is_read_once_and_in_any_case(world: World, header: str) -> None:
    """`Bearer` stands once before one credential; anything else is a 401, also on a public space."""
    value = header.replace("{good}", world.token(aud="open", scope="read"))

    assert status(world, "public", "open", None, authorization=value) == HEADERS[header]


def test_without_keys_only_the_service_documents_are_served() -> None:
    """A deployment that nobody configured admits nobody, and says so to its operator."""
    world = World(Settings())
    for token in (None, world.token(), world.admin_token(), "ST" + "A" * 43):
        for admission in CLASSES[1:]:
            assert status(world, admission, "demo", token) == 503
    answer = world.ask("GET", "/v1/demo/info")
    assert (answer.status, answer.code) == (503, "ServiceUnavailable")
    assert answer.headers["retry-after"] == "60"
    assert "ED25519_PUBKEYS" in answer.json["error"]["data"]["hint"]
    for path in ("/info", "/SKILL.md", "/openapi.json", "/favicon.ico"):
        assert world.ask("GET", path).status == 200


def test_with_admin_keys_alone_no_cwt_opens_a_space(world: World) -> None:
    """The two lists of keys are separate; space tokens go on working."""
    token = world.space_token()
    world.use(msgspec.structs.replace(KEYED, tenant_keys=()))

    assert status(world, "read", "demo", world.token()) == 401
    assert status(world, "read", "demo", token) == 200
    assert status(world, "admin", "demo", world.admin_token()) == 200


LOCAL = Settings(insecure_local=True, cors_origins=("http://localhost:3000",))


def test_on_this_machine_everything_is_allowed_without_a_token() -> None:
    """The local mode makes a caller without a credential the manager of everything."""
    world = World(LOCAL)

    caller = admit(world, "admin", None, None, host="127.0.0.1:8042")

    assert (caller.subject, caller.scope, caller.manager) == ("local", "*", True)
    assert status(world, "manage", "demo", None, host="localhost") == 200
    assert status(world, "write", "demo", None, host="[::1]:8042") == 200
    assert status(world, "write", "demo", None, host="[::1]") == 200


def test_a_presented_credential_is_verified_on_this_machine_too() -> None:
    """A token that cannot be verified is a 401 even where none is needed."""
    world = World(LOCAL)

    assert status(world, "read", "demo", world.token(), host="localhost") == 401
    assert status(world, "read", "demo", "ST" + "A" * 43, host="localhost") == 401


WEB: dict[str, tuple[dict[str, str], int]] = {
    "a page of another site": ({"origin": "https://evil.example"}, 403),
    "a page of another port": ({"origin": "http://localhost:9999"}, 403),
    "a page without an origin": ({"origin": "null"}, 403),
    "a form of another site": ({"sec_fetch_site": "cross-site"}, 403),
    "a name bound to this machine": ({"host": "evil.example:8042"}, 403),
    "a name that looks local": ({"host": "localhost.evil.example"}, 403),
    "a page that was allowed": ({"origin": "http://localhost:3000"}, 200),
    "no page at all": ({}, 200),
}


@pytest.mark.parametrize("name", WEB)
def test_no_web_page_can_use_the_open_local_service(name: str) -> None:
    """Without tokens a browser is the hole: other sites' requests are refused, simple ones too."""
    headers, expected = WEB[name]
    host = {"host": "127.0.0.1:8042", **headers}

    assert status(World(LOCAL), "write", "demo", None, **host) == expected


def test_keys_are_not_exchanged(world: World) -> None:
    """A tenant key cannot make an admin, whatever it writes into a token, nor an admin key a reader."""
    forged = world.token(sub="boss", aud="*", scope="*", key=TENANT_KEY)
    nosy = world.token(sub="boss", aud="demo", scope="*", key=ADMIN_KEY)

    assert status(world, "admin", "demo", forged) == 401
    assert status(world, "read", "demo", nosy) == 401


def test_one_key_may_be_listed_in_both_places() -> None:
    """An operator who wants one key for everything lists it twice."""
    key: Any = KEYED.tenant_keys
    world = World(msgspec.structs.replace(KEYED, admin_keys=key))

    assert status(world, "admin", "x", world.token(sub="boss", aud="*")) == 200
    assert status(world, "read", "x", world.token(sub="boss", aud="*")) == 200
