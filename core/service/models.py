"""Which model serves a space and role: the space's own, or the operator's for the role, or the operator's, or none.

What lives here: that order. What must never live here: building models (`infra.models`) or what they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from core.models.chat import ChatModel, Role
from core.models.choice import Key, ModelChoice, Providers
from core.service.byok import Byok

Configured = Mapping[str, tuple[ModelChoice, Key] | None]
"""What the operator chose, by role, and under "default". A role that is None is offline whatever the default."""


class SpaceModels:
    """Implements `core.models.chat.Models`. Safe to share between threads."""

    def __init__(self, configured: Configured, providers: Providers, byok: Byok | None = None) -> None:
        self._configured = configured
        self._providers = providers
        self._byok = byok
        self._built: dict[str, ChatModel] = {}
        self._lock = Lock()

    def of(self, space_id: str, role: Role) -> ChatModel | None:
        """The model, or None where there is none: the offline provider does the work then.

        Raises:
            NoemaError: `ServiceUnavailable` if the space has a model of its own that cannot be used now.
        """
        own = None if self._byok is None else self._byok.current(space_id)
        if own is not None:
            return own.model
        place = role if role in self._configured else "default"
        chosen = self._configured.get(place)
        if chosen is None:
            return None
        with self._lock:
            if place not in self._built:
                self._built[place] = self._providers.model(*chosen, trusted=True)
            return self._built[place]
