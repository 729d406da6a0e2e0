"""The clients of the Anda Brain contract over real HTTP, against a service with keys in a process of its own."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import cbor2
import pytest

from functions.minting import generate_key, mint
from tests.contract import anda_shapes as shapes
from tests.contract.anda_shapes import misfit
from tests.contract.test_anda_cli import (
    ASKED,
    SAID,
    Cli,
    CliConversation,
    CliFailed,
    CliOutput,
    CliSpace,
    CliToken,
)
from tests.contract.test_anda_clients import Plugin
from tests.e2e.local import FORM_S, Service, serving
from tests.functions.world import Answer


class Wire:
    """What the clients ask of a world, over the network."""

    def __init__(self, service: Service, private_key: str) -> None:
        self.service = service
        self.private_key = private_key

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
        given = {**(headers or {}), **({} if token is None else {"authorization": f"Bearer {token}"})}
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if raw is not None:
            given.setdefault("content-type", "application/json")
        told = self.service.http.request(
            method, f"{path}?{query}" if query else path, content=raw, headers=given
        )
        return Answer(told.status_code, dict(told.headers), told.content)

    def token(self, aud: str = "demo", scope: str = "*", sub: str = "alice") -> str:
        now_s = int(time.time())  # noqa: TID251 - the service is another process, with the real time
        return mint(self.private_key, subject=sub, audience=aud, scope=scope, now_s=now_s)


@pytest.fixture(name="wire", scope="module")
def _wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    private, public = generate_key()
    keys = {"ED25519_PUBKEYS": public, "NOEMA_ADMIN_PUBKEYS": public, "MANAGERS": "boss"}
    with serving(tmp_path_factory.mktemp("data"), "--quiet", **keys) as service:
        made = Wire(service, private)
        admin = Cli(made, made.token("*", "write", "boss"))
        wish = {"user": "alice", "space_id": "demo", "tier": 1}
        assert admin.result(CliSpace, "POST", "/admin/create_space", wish).owner == "alice"
        yield made


def formed(wire: Any, number: int) -> CliConversation:
    """The conversation, once formation is through with it."""
    cli, deadline = Cli(wire, wire.token(scope="read")), time.monotonic() + FORM_S
    while True:
        found = cli.result(CliConversation, "GET", f"/v1/{{s}}/conversations/{number}")
        if found.status in ("completed", "cancelled"):
            return found
        assert time.monotonic() < deadline
        time.sleep(0.05)  # noqa: TID251 - another process is at work


def test_the_command_line_and_the_plugin_share_a_memory(wire: Any) -> None:
    """The owner mints a token; the plugin remembers with it; the command line reads and asks; nobody else may."""
    owner = Cli(wire, wire.token())
    minted = owner.result(
        CliToken, "POST", "/v1/{s}/management/add_space_token", {"scope": "*", "name": "bot"}
    )
    plugin = Plugin(wire, minted.token, {"counterparty": "alice"})

    number = plugin.ended({"role": "user", "content": SAID}, {"role": "assistant", "content": "Noted."})[
        "result"
    ]["conversation"]
    kept = formed(wire, number)
    said = owner.result(
        CliOutput, "POST", "/v1/{s}/recall", {"query": ASKED, "context": {"counterparty": "alice"}}
    )

    assert (kept.status, kept.user) == ("completed", "token:bot")
    assert "Lisbon" in said.content
    assert "Lisbon" in plugin.recall(ASKED, '{"user": "alice"}')
    with pytest.raises(CliFailed, match=r"HTTP 401: .*authentication failed"):
        Cli(wire, wire.token("other")).run("GET", "/v1/{s}/info")


def test_formats_arrive_byte_for_byte(wire: Any) -> None:
    """CBOR in and out, text in and Markdown out, an icon, a page; one shape of error."""
    token = wire.token()
    both = {"content-type": "application/cbor", "accept": "application/cbor"}
    cbor = wire.ask("POST", "/v1/demo/probe", cbor2.dumps({"query": "Lisbon"}), token=token, headers=both)
    plain = {"content-type": "text/plain", "accept": "text/markdown"}
    text = wire.ask("POST", "/v1/demo/recall", "Wohin zog Müller?".encode(), token=token, headers=plain)
    icon = wire.ask("GET", "/apple-touch-icon.webp")
    error = wire.ask("POST", "/v1/demo/recall", b"\xa1", token=token, headers=both)

    assert misfit(cbor2.loads(cbor.body)["result"], shapes.PROBE_OUTPUT) is None
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert text.body
    assert icon.body[:4] + icon.body[8:12] == b"RIFFWEBP"
    assert icon.headers["content-type"] == "image/webp"
    assert (error.status, misfit(error.json, shapes.RPC_ERROR, "body")) == (400, None)


def test_http_as_clients_speak_it(wire: Any) -> None:
    """A percent-encoded space, HEAD without a body, a preflight, compressed and oversized bodies, an unknown length."""
    token = wire.token()
    assert wire.ask("GET", "/v1/%64emo/info", token=token).json["result"]["id"] == "demo"
    head = wire.ask("HEAD", "/info")
    assert (head.status, head.body, head.headers["allow"]) == (405, b"", "GET")
    assert wire.ask("OPTIONS", "/v1/demo/recall", headers={"origin": "https://app.example"}).status == 204
    packed = {"content-encoding": "gzip", "content-type": "application/json"}
    assert wire.ask("POST", "/v1/demo/recall", b"\x1f\x8b\x08\x00", token=token, headers=packed).status == 400
    assert wire.ask("POST", "/v1/demo/recall", b" " * 6_000_001, token=token).status == 413
    chunks = wire.service.http.post(
        "/v1/demo/recall",
        content=iter([b'{"query": ', b'"Where does Alice live?"}']),
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    assert chunks.status_code == 200
    assert misfit(chunks.json()["result"], shapes.AGENT_OUTPUT) is None
