"""A service that commands reach without a socket."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from functions.cli import client as clients
from functions.cli.terminal import Failure
from tests.functions.world import World


def reach(
    world: World, monkeypatch: pytest.MonkeyPatch, token: Callable[[], str], *modules: ModuleType
) -> None:
    """Lets the client of every command, and the one named in these modules, ask a world with a token."""

    class Client:
        def __init__(self, url: str, token: str | None) -> None:
            pass

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def result(self, method: str, path: str, body: Any = None, *, query: Any = None) -> Any:
            text = "&".join(f"{name}={value}" for name, value in (query or {}).items())
            answer = world.ask(method, path, body, token=token(), query=text)
            if answer.status != 200:
                told = answer.json["error"]
                raise Failure(told["message"], told["data"].get("hint"), code=told["data"]["code"])
            return answer.result

    for module in (clients, *modules):
        monkeypatch.setattr(module, "Client", Client)
