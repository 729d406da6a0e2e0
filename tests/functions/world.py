"""A whole service in memory, asked by API Gateway v2 events: what the tests of `functions` share."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from core.ports import Objects, Queue, Table
from core.storage.memory import MemoryObjects, MemoryTable
from functions import catalog
from functions.adapters import Adapters
from functions.bootstrap import Services, build
from functions.endpoints import ENDPOINTS, find
from functions.keys import PublicKey, parse_public_key
from functions.minting import mint, public_key_of
from functions.routing import respond
from functions.settings import Settings
from infra.local.cipher import AesCipher
from tests.doubles import EPOCH, CountingEntropy, FakeClock
from tests.providers import FakeProviders

TENANT_KEY = base64.urlsafe_b64encode(b"tenant key of the tests, 32 byte").decode().rstrip("=")
ADMIN_KEY = base64.urlsafe_b64encode(b"admin key for the tests, 32 byte").decode().rstrip("=")
OTHER_KEY = base64.urlsafe_b64encode(b"a key that nobody has configured").decode().rstrip("=")
NOW_S = EPOCH // 1000


def public(private_key: str) -> PublicKey:
    return parse_public_key(public_key_of(private_key))


class SentMessages:
    """A queue that keeps what it was given."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        self.sent.append((group, body, dedupe))


class Answer(msgspec.Struct):
    """What a request got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        assert self.status == 200, self.body
        return self.json["result"]

    @property
    def code(self) -> str:
        assert self.headers["content-type"] == "application/json"
        return self.json["error"]["data"]["code"]


KEYED = Settings(
    tenant_keys=(public(TENANT_KEY),),
    admin_keys=(public(ADMIN_KEY),),
    managers=("boss",),
    mcp_hosts=("api.example.org",),
    sharding=0,
)


class World:
    """The service over doubles. `settings` may be changed between requests."""

    def __init__(
        self,
        settings: Settings = KEYED,
        *,
        table: Table | None = None,
        objects: Objects | None = None,
        queue: Queue | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.entropy = CountingEntropy()
        self.table = table or MemoryTable()
        self.objects = objects or MemoryObjects(self.clock)
        self.queue = queue or SentMessages()
        self.cipher = AesCipher([bytes(range(32))], self.entropy)
        self.providers = FakeProviders()
        self.use(settings)

    def use(self, settings: Settings) -> None:
        adapters = Adapters(
            self.table,
            self.objects,
            self.queue,
            self.clock,
            self.entropy,
            cipher=self.cipher,
            providers=self.providers,
        )
        self.services: Services = build(settings, adapters)

    def send(self, event: Mapping[str, Any], context: Any = None) -> Answer:
        out = respond(event, context, catalog.ROUTES, lambda: self.services)
        body = out["body"]
        raw = base64.b64decode(body) if out["isBase64Encoded"] else body.encode()
        return Answer(out["statusCode"], out["headers"], raw)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: str = "",
    ) -> Answer:
        """One request; a `body` that is not bytes is sent as JSON."""
        given = {"host": "api.example.org", "x-forwarded-for": "203.0.113.9", **(headers or {})}
        if token is not None:
            given["authorization"] = f"Bearer {token}"
        raw = None
        if body is not None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            given.setdefault("content-type", "application/json")
        return self.send(event(method, path, raw, given, query))

    def token(self, *, sub: str = "alice", aud: str = "demo", scope: str = "*", **more: Any) -> str:
        """A CWT of this world's tenant key."""
        more = {"now_s": self.clock.time // 1000, **more}
        return mint(more.pop("key", TENANT_KEY), subject=sub, audience=aud, scope=scope, **more)

    def admin_token(self, *, sub: str = "boss", aud: str = "*", scope: str = "write", **more: Any) -> str:
        """A CWT of this world's admin key."""
        return self.token(sub=sub, aud=aud, scope=scope, key=ADMIN_KEY, **more)

    def make_space(self, space: str = "demo", *, user: str = "alice", tier: int = 1) -> "World":
        body = {"user": user, "space_id": space, "tier": tier}
        answer = self.ask("POST", "/admin/create_space", body, token=self.admin_token())
        assert answer.status == 200, answer.body
        return self

    def make_public(self, space: str = "demo") -> "World":
        answer = self.ask(
            "PATCH",
            f"/v1/{space}/management/update_space",
            {"public": True},
            token=self.token(aud=space),
        )
        assert answer.result is True
        return self

    def space_token(self, space: str = "demo", **wish: Any) -> str:
        body = {"scope": "read", "name": "reader", **wish}
        path = f"/v1/{space}/management/add_space_token"
        return self.ask("POST", path, body, token=self.token(aud=space)).result["token"]


def event(
    method: str, path: str, body: bytes | None, headers: Mapping[str, str], query: str = ""
) -> dict[str, Any]:
    """The event that API Gateway v2 (payload 2.0) sends for a request."""
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers),
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abc123",
            "domainName": "abc123.execute-api.eu-central-1.amazonaws.com",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.9",
                "userAgent": "tests",
            },
            "requestId": "gateway-request-1",
            "routeKey": "$default",
            "stage": "$default",
            "time": "28/May/2026:20:26:40 +0000",
            "timeEpoch": EPOCH,
        },
        "isBase64Encoded": False,
    }
    if body is not None:
        try:
            made["body"] = body.decode("utf-8")
        except UnicodeDecodeError:
            made["body"] = base64.b64encode(body).decode()
            made["isBase64Encoded"] = True
    return made


def served() -> list[str]:
    """The names of the endpoints that a function serves."""
    return [name for name, endpoint in ENDPOINTS.items() if endpoint.function is not None]


__all__ = ["EPOCH", "NOW_S", "Answer", "World", "event", "find", "served"]
