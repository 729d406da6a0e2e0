"""A model that is asked under a lease.

What lives here: that wrapping. What must never live here: what it is asked, and what the lease is for.
"""

from __future__ import annotations

from collections.abc import Callable

from core.model.instants import Instant
from core.models.chat import Capabilities, ChatModel, ChatReply, ChatRequest
from core.ports import Clock
from core.service.formation_place import CALL_MS, Kept


class Watched:
    """A model that is only asked while the lease holds, and never for longer than it does."""

    def __init__(self, model: ChatModel, lease: Kept, clock: Clock) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._lease = lease
        self._clock = clock

    def chat(
        self,
        request: ChatRequest,
        *,
        deadline: Instant,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ChatReply:
        """As the model's."""
        self._lease()
        until = min(deadline, self._clock.now() + CALL_MS)
        return self._model.chat(request, deadline=until, on_text=on_text, cancelled=cancelled)
