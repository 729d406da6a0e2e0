"""Language models at work on facts: the one that serves a space is asked, or nobody is.

What lives here: which model is asked, until when, and what its faults become. What must never live here: prompts
(`core.facts.asking`), the reading of answers (`core.facts.extract`) and any change of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

from core.errors import NoemaError
from core.facts.asking import extraction_request, summary_request
from core.facts.values import Fact
from core.model.instants import Instant
from core.models.budget import estimate, estimate_request
from core.models.chat import ChatModel, ChatReply, ChatRequest, ModelFault, Usage
from core.service.thinking import Allowance, Unlimited

# Of facts in one request; an answer of a thousand tokens cannot stand in for more.
SHOWN_TOKENS: Final = 12_000
TEXT_TOKENS: Final = 24_000  # of a text that facts are taken from
Role = Literal["formation", "maintenance"]
Allowances = Callable[[str, Role, ChatModel], Allowance]


class FactModel(Protocol):
    """What consolidation and extraction may ask. None always means: no model serves the space."""

    def summarise(self, space_id: str, facts: Sequence[Fact], until: Instant) -> str | None:
        """A model's answer: JSON with `summary` and `consumes`. May raise `NoemaError`."""

    def extract(self, space_id: str, text: str, until: Instant) -> str | None:
        """A model's answer: a JSON array of sentences. May raise `NoemaError`."""


class FactModels:
    """The facts' view of the models of all spaces. Safe to share between threads.

    Args:
        of: which model serves a space in a role, as `core.models.chat.Models.of`.
        allowance: what a space may spend today, by role and model; None: nobody counts.
    """

    def __init__(
        self, of: Callable[[str, Role], ChatModel | None], allowance: Allowances | None = None
    ) -> None:
        self._of = of
        self._allowance = allowance

    def summarise(self, space_id: str, facts: Sequence[Fact], until: Instant) -> str | None:
        """As `FactModel`; of many facts the first that fit are shown."""
        return self._ask(space_id, "maintenance", summary_request(_fitting(facts)), until)

    def extract(self, space_id: str, text: str, until: Instant) -> str | None:
        """As `FactModel`; a text too long for one request is nobody's to read: `PayloadTooLarge`."""
        if self._of(space_id, "formation") is not None and estimate(text) > TEXT_TOKENS:
            raise NoemaError(
                "PayloadTooLarge",
                f"facts are taken from at most {TEXT_TOKENS} estimated tokens at once",
                details={"member": "answer", "limit_tokens": TEXT_TOKENS},
            )
        return self._ask(space_id, "formation", extraction_request(text), until)

    def _ask(
        self,
        space_id: str,
        role: Role,
        request: ChatRequest,
        until: Instant,
    ) -> str | None:
        """The text of a whole reply.

        Raises:
            NoemaError: `ServiceUnavailable` without a whole reply; `ResourceExhausted` if the space has spent what
                it may.
        """
        model = self._of(space_id, role)
        if model is None:
            return None
        allowance = Unlimited() if self._allowance is None else self._allowance(space_id, role, model)
        allowance.reserve(estimate_request(request), request.max_tokens)
        used = Usage()
        try:
            reply = model.chat(request, deadline=until)
            used = reply.usage
        except ModelFault as fault:
            used = fault.usage
            raise NoemaError(
                "ServiceUnavailable",
                f"the model gave no answer: {fault.kind}",
                details={"model": model.name, "fault": fault.kind},
                retry_after_ms=fault.retry_after_ms,
            ) from fault
        finally:
            allowance.settle(used)
        return _whole(reply, model.name)


def _whole(reply: ChatReply, name: str) -> str:
    if reply.stop != "end":
        raise NoemaError(
            "ServiceUnavailable",
            f"the model gave no whole answer: {reply.stop}",
            details={"model": name, "stop": reply.stop},
        )
    return reply.text


def _fitting(facts: Sequence[Fact]) -> list[Fact]:
    """As many of the first facts as one request can hold; at least one."""
    shown: list[Fact] = []
    left = SHOWN_TOKENS
    for fact in facts:
        left -= estimate(fact.text) + 16
        if left < 0 and shown:
            break
        shown.append(fact)
    return shown
