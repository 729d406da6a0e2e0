"""One recall as values: what is asked of which state, what answers, and under which budget; and the offline answer.

What lives here: what the ways of answering share. What must never live here: a model (`recall_thinking`), a packet
(`recall_packets`), and any write: reading never strengthens, weakens or adds a memory. A process whose spaces have no
model imports this and neither of the two, which bring the whole engine.
"""

from __future__ import annotations

import msgspec

from core.agents.dialogue import Question
from core.agents.offline import MODEL
from core.agents.offline.answers import Answer, answer
from core.agents.offline.lines import Line
from core.agents.recall.looking import Nearest
from core.agents.recall.records import receipted
from core.agents.recall.sight import seen_by
from core.authority import Principal
from core.model.elements import Json
from core.model.instants import Instant
from core.models.budget import Limits, Meter
from core.models.chat import ChatModel
from core.models.tokens import O200K, check_tokenizer
from core.protocol import http_types as wire
from core.service.thinking import Allowance, Unlimited
from core.state.space import SpaceState
from core.state.view import View
from core.storage.head import Head


class Ask(msgspec.Struct, frozen=True):
    """What is asked, by whom, of which state.

    principal: as admitted to this state. earlier: the exchange before this one. rounds: how many requests a model may
    be sent. until: when the answer must be there (ms). nearest: finds what is near in meaning, where there is an
    embedder.
    """

    space_id: str
    question: Question
    principal: Principal
    head: Head
    state: SpaceState
    now: Instant
    until: Instant
    rounds: int = 7
    earlier: tuple[str, str] | None = None
    nearest: Nearest | None = None

    @property
    def view(self) -> View:
        """The state as the caller may see it."""
        return seen_by(self.state, self.principal)


class Funded(msgspec.Struct, frozen=True):
    """A model, what its space may still spend today, and what one run may spend."""

    model: ChatModel
    allowance: Allowance = Unlimited()
    limits: Limits = Limits()

    def meter(self, turns: int) -> Meter:
        """The meter of a run of at most so many requests."""
        bounded = msgspec.structs.replace(self.limits, turns=min(turns, self.limits.turns))
        return Meter(bounded, self.model.capabilities)


class Recalled(msgspec.Struct, frozen=True):
    """An answer. cited: its receipts. touched: every element that it may hold words of. failed: why it is not whole.

    degraded: why nearness in meaning did not rank, or not everything.
    """

    text: str
    found: bool
    model: str
    uncertainty: float | None = None
    cited: tuple[Line, ...] = ()
    touched: frozenset[str] = frozenset()
    usage: wire.Usage = wire.Usage()
    failed: str | None = None
    degraded: str | None = None


class Delivered(msgspec.Struct, frozen=True):
    """A packet as it is answered, and its receipt."""

    recalled: Recalled
    budget: wire.MemoryBudget
    receipt: dict[str, Json]


def effective(
    asked: wire.RecallBudget | None, enforced: wire.RecallBudget | None
) -> wire.RecallBudget | None:
    """The budget that holds: a request may only tighten what the space's policy enforces; None for none.

    Raises:
        NoemaError: InvalidInput for another tokenizer.
    """
    given = [each for each in (asked, enforced) if each is not None]
    for each in given:
        check_tokenizer(each.tokenizer, "budget.tokenizer")
    if not given:
        return None
    return wire.RecallBudget(
        tokenizer=O200K,
        max_tokens=min(each.max_tokens for each in given),
        context_tokens=min(each.context_tokens for each in given),
    )


def quoted(ask: Ask) -> Answer:
    """What the offline provider answers, with receipts that the caller may see."""
    view = ask.view
    found = answer(view, ask.question, ask.now, ask.nearest)
    return msgspec.structs.replace(found, cited=tuple(receipted(view, line) for line in found.cited))


def extracted(found: Answer) -> Recalled:
    """The offline provider's answer as one of a recall."""
    touched = frozenset(name for line in found.cited for name in (line.entity, line.source) if name)
    return Recalled(
        found.text, found.found, MODEL, found.uncertainty, found.cited, touched, degraded=found.degraded
    )
