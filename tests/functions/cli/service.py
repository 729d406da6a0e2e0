"""A service that commands reach without a socket."""

from collections.abc import Callable
from types import ModuleType

import httpx
import pytest

from functions.cli import client as clients
from tests.functions.world import World


def reach(
    world: World, monkeypatch: pytest.MonkeyPatch, token: Callable[[], str], *modules: ModuleType
) -> None:
    """Lets the client of every command, and the one named in these modules, ask a world with a token."""

    def answered(request: httpx.Request) -> httpx.Response:
        found = world.ask(
            request.method,
            request.url.path,
            request.content or None,
            headers=dict(request.headers),
            query=request.url.query.decode(),
        )
        return httpx.Response(found.status, headers=found.headers, content=found.body)

    class Client(clients.Client):
        def __init__(self, url: str, _: str | None) -> None:
            super().__init__(url, token(), httpx.MockTransport(answered))

    for module in (clients, *modules):
        monkeypatch.setattr(module, "Client", Client)
