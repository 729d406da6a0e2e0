"""Recalls with a budget: a packet of items, within exact tokens, and the receipt of what was delivered.

What lives here: which budget holds, what may go into the packet, the model that orders it, and the receipt. What must
never live here: what a packet looks like (`core.agents.recall.packet`).

Without a model the order is the host's own. With one, the model is shown candidates and chooses ids; no word of its
own is delivered. All that it is sent is counted before it is sent, request by request, the whole prompt each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.agents.offline.lines import Line
from core.agents.recall import packet
from core.agents.recall.asking import Setting, fitting, planning
from core.agents.recall.looking import look, open_commitments
from core.agents.recall.packet import Contents, Item, Packed, lane_of, pack, warnings_of
from core.agents.recall.records import record_of
from core.model.elements import Evidence, Json
from core.model.instants import Instant
from core.models.chat import Capabilities, ChatModel, ChatReply, ChatRequest, ModelFault, Usage
from core.models.run import Finished, converse
from core.models.tokens import O200K, Tokenizer
from core.ports import Clock
from core.protocol import http_types as wire
from core.protocol.canonical import digest_of, digest_of_bytes
from core.service.recall_run import Ask, Delivered, Funded, Recalled
from core.service.recall_tools import RecallTools
from core.service.thinking import Terms, drive
from core.state.view import View

CANDIDATES: Final = 64  # that the host finds itself
PLANNER_ROUNDS: Final = 4
MODEL: Final = "host-packet-1"  # what packed where no model chose
_OVERFLOW: Final = "the planner's context budget is spent"
_CODES: Final = {"time": packet.DEADLINE_REACHED, "fault": packet.MODEL_UNAVAILABLE}


class Packing:
    """Answers questions with packets. Safe to share between threads."""

    def __init__(self, clock: Clock, tokenizer: Tokenizer) -> None:
        self._clock = clock
        self._tokenizer = tokenizer

    def deliver(self, ask: Ask, budget: wire.RecallBudget, funded: Funded | None) -> Delivered:
        """The packet that answers a question; in the host's own order without a model."""
        count, view = self._tokenizer.count, ask.view
        required, missing = _required(view)
        taken = {item.line.entity for item in required}
        found = tuple(
            line
            for line in look(view, ask.question, ask.now, CANDIDATES, ask.nearest)
            if line.entity not in taken
        )
        plan = _Plan(found)
        if funded is not None:
            counted = Counted(funded.model, count, budget.context_tokens)
            plan = self._plan(ask, found, counted, funded)
        optional = _items(view, plan.lines, taken)
        codes = plan.codes + ((packet.REQUIRED_INCOMPLETE,) if missing else ())
        contents = Contents(
            required=required,
            optional=optional,
            missing=missing,
            codes=codes,
            warnings=(*warnings_of(required, optional), *codes),
            failed_reason=plan.failed,
        )
        packed = pack(contents, budget.max_tokens, count)
        return self._delivered(ask, budget, packed, plan)

    def _plan(self, ask: Ask, found: tuple[Line, ...], model: Counted, funded: Funded) -> _Plan:
        """The candidates in the order a model gives them; in the host's own where it does not come to an end."""
        shown = fitting(found)
        tools = RecallTools(ask.view, ask.space_id, ask.question, ask.now, nearest=ask.nearest)
        tools.found.update((line.entity, line) for line in found)
        rounds = max(1, min(PLANNER_ROUNDS, ask.rounds))
        setting = Setting(ask.question, ask.now, rounds, look=shown)
        meter = funded.meter(rounds)
        script = planning(setting, model.capabilities.context_tokens)
        finished = drive(
            converse(script, meter), Terms(model, tools.use, self._clock, ask.until, funded.allowance)
        )
        usage = wire.Usage(**msgspec.structs.asdict(meter.usage))
        said = _Plan(tuple(tools.found.values()), usage=usage, model=finished.model or model.name)
        if tools.selected is not None:
            said = msgspec.structs.replace(said, lines=tuple(tools.found[each] for each in tools.selected))
        return _ended(said, finished, chosen=tools.selected is not None)

    def _delivered(self, ask: Ask, budget: wire.RecallBudget, packed: Packed, plan: _Plan) -> Delivered:
        told = wire.MemoryBudget(
            tokenizer=O200K,
            token_limit=budget.max_tokens,
            tokens=packed.tokens,
            context_token_limit=budget.context_tokens,
        )
        receipt = _receipt(ask, packed, told)
        touched = {name for item in packed.delivered for name in (item.line.entity, item.line.source) if name}
        recalled = Recalled(
            text=packed.text,
            found=bool(packed.delivered),
            model=plan.model,
            touched=frozenset(touched),
            usage=plan.usage,
            failed=plan.failed,
        )
        return Delivered(recalled, told, receipt)


class _Plan(msgspec.Struct, frozen=True):
    """What is to be packed, in this order, and how that was found."""

    lines: tuple[Line, ...]
    codes: tuple[str, ...] = ()
    failed: str | None = None
    usage: wire.Usage = wire.Usage()
    model: str = MODEL


def _ended(plan: _Plan, finished: Finished, *, chosen: bool) -> _Plan:
    """A plan with what the end of the planner's run has to be told."""
    if finished.ended == "fault" and finished.reason == _OVERFLOW:
        return msgspec.structs.replace(plan, codes=(packet.CONTEXT_EXHAUSTED,))
    code = _CODES.get(finished.ended)
    if code == packet.MODEL_UNAVAILABLE or (code is None and finished.ended in ("refused", "cancelled")):
        return msgspec.structs.replace(
            plan, codes=(packet.MODEL_UNAVAILABLE,), failed=packet.MODEL_UNAVAILABLE
        )
    if chosen:
        return plan
    return msgspec.structs.replace(plan, codes=(code or packet.PLANNER_INCOMPLETE,))


def _required(view: View) -> tuple[tuple[Item, ...], int]:
    """What no packet may leave out: open commitments; and how many of them could not be read."""
    found = open_commitments(view)
    lines = [record_of(view, each) for each in found[: packet.MAX_REQUIRED]]
    return _items(view, [line for line in lines if line is not None], set()), len(found) - len(lines)


def _items(view: View, lines: list[Line] | tuple[Line, ...], taken: set[str]) -> tuple[Item, ...]:
    items = []
    for line in lines:
        element = view.get(line.entity)
        if element is not None and line.entity not in taken:
            items.append(Item(lane_of(line), line, element.system.version))
    return tuple(items)


def _receipt(ask: Ask, packed: Packed, told: wire.MemoryBudget) -> dict[str, Json]:
    """What was delivered, without a word of it: digests, versions, and what was left out."""
    items: list[Json] = []
    for item in packed.delivered:
        element = ask.view.get(item.line.entity)
        pin = element.content_digest if isinstance(element, Evidence) else None
        items.append(
            {
                "ref": item.line.entity,
                "version": item.version,
                "lane": item.lane,
                "digest": digest_of(item.row()),
                **({} if pin is None else {"content": pin}),
            }
        )
    return {
        "schema_version": 1,
        "delivery": "packet",
        "packet_digest": digest_of_bytes(packed.text.encode()),
        "items": items,
        "coverage": packed.coverage,
        "codes": list(packed.codes),
        "basis": {"space_seq": ask.state.seq, "version": ask.state.ver},
        "budget": msgspec.to_builtins(told),
    }


class Counted:
    """A model that is only sent what fits into a budget of exact tokens, all its requests together."""

    def __init__(self, model: ChatModel, count: Callable[[str], int], limit: int) -> None:
        self.model = model
        self.left = limit
        self._count = count

    @property
    def name(self) -> str:
        """As the model's."""
        return self.model.name

    @property
    def capabilities(self) -> Capabilities:
        """As the model's."""
        return self.model.capabilities

    def chat(
        self,
        request: ChatRequest,
        *,
        deadline: Instant,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ChatReply:
        """As the model's, if the request still fits.

        Raises:
            ModelFault: context_overflow, and nothing was sent; or as the model's.
        """
        size = self._count(msgspec.json.encode(request).decode())
        if size > self.left:
            raise ModelFault("context_overflow", _OVERFLOW, usage=Usage())
        self.left -= size
        return self.model.chat(request, deadline=deadline, on_text=on_text, cancelled=cancelled)
