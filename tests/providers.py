"""A double of `core.models.choice.Providers`: it builds scripted models, and keeps what it was asked to build."""

from __future__ import annotations

from core.models.chat import ChatModel
from core.models.choice import Key, ModelChoice
from infra.models.reach import reach_of
from tests.doubles import ScriptedModel


class FakeProviders:
    """Builds a `ScriptedModel` of the choice's name; refuses the addresses that the real providers refuse."""

    def __init__(self) -> None:
        self.built: list[tuple[ModelChoice, bool]] = []
        self.keys: dict[str, Key] = {}

    def model(self, choice: ModelChoice, key: Key, *, trusted: bool) -> ChatModel:
        """As the port says."""
        if choice.base_url:
            reach_of(choice.base_url, trusted=trusted)
        self.built.append((choice, trusted))
        self.keys[choice.name] = key
        return ScriptedModel(name=choice.name)
