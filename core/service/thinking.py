"""Driving a run: the model is asked, tools are used, time and money are watched.

What lives here: the one loop between a run (`core.models.run`) and the world. What must never live here: what a
run is for. A fence that has fallen (`Fenced`) passes through: work that lost its lease stops at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from core.errors import NoemaError
from core.model.instants import Instant
from core.models.budget import Limits, estimate_request
from core.models.chat import ChatModel, ModelFault, ToolCall, ToolResult, Usage
from core.models.run import Answer, AskModel, Finished, Halt, Run
from core.ports import Clock

UseTool = Callable[[ToolCall], ToolResult]
"""Uses a tool. A `NoemaError` it raises becomes a failed result the model can read."""


class Allowance(Protocol):
    """What a space may still spend today, across all its runs."""

    def reserve(self, tokens: int, max_output: int) -> None:
        """Set aside what a request may cost before it is made.

        Raises:
            NoemaError: ResourceExhausted, if that is more than is left.
        """

    def settle(self, usage: Usage) -> None:
        """Replace what was set aside by what was really used; called once after each reservation."""


class Unlimited:
    """An allowance that does not count; for tests and models that cost nothing."""

    def reserve(self, tokens: int, max_output: int) -> None:
        """Anything goes."""

    def settle(self, usage: Usage) -> None:
        """Nothing to note."""


RUN_LIMITS: Final = Limits(turns=200, tokens=3_000_000)
"""Contract §4.6 and §6.1, and a bound on what one run may cost."""


def unlimited(space_id: str, model: ChatModel) -> Allowance:  # noqa: ARG001 - as a ledger's
    """An allowance for deployments and tests without a ledger."""
    return Unlimited()


def usual_limits(space_id: str, model: ChatModel) -> Limits:  # noqa: ARG001 - as a ledger's
    """The limits of a run where no ledger says otherwise."""
    return RUN_LIMITS


class Terms(msgspec.Struct, frozen=True):
    """On what terms a run is driven.

    model: who is asked. use_tool: how its calls are carried out. clock and until: when it must end (unix ms).
    allowance: what the space may spend. cancelled: asked before each step. on_text: gets text as it comes.
    """

    model: ChatModel
    use_tool: UseTool
    clock: Clock
    until: Instant
    allowance: Allowance
    cancelled: Callable[[], bool] | None = None
    on_text: Callable[[str], None] | None = None


def drive(run: Run, terms: Terms) -> Finished:
    """Drive a run to its end. Faults of the model end the run, they are not raised; `Finished.ended` tells.

    Raises:
        Fenced: the lease under which a tool writes was lost.
    """
    answer: Answer | None = None
    while True:
        try:
            step = next(run) if answer is None else run.send(answer)
        except StopIteration as stop:
            finished: Finished = stop.value
            return finished
        halt = _halt(terms)
        if halt is not None:
            answer = halt
        elif isinstance(step, AskModel):
            answer = _ask(step, terms)
        else:
            answer = tuple(_use(call, terms) for call in step.calls)


def _halt(terms: Terms) -> Halt | None:
    if terms.cancelled is not None and terms.cancelled():
        return Halt("cancelled", "the run was cancelled")
    if terms.clock.now() >= terms.until:
        return Halt("time", "the run's time is over")
    return None


def _ask(step: AskModel, terms: Terms) -> Answer:
    try:
        terms.allowance.reserve(estimate_request(step.request), step.request.max_tokens)
    except NoemaError as error:
        if error.code == "ResourceExhausted":
            return Halt("micros", error.message)
        # The ledger did not answer: nothing is known of the budget.
        return ModelFault("unavailable", error.message)
    usage = Usage()
    try:
        reply = terms.model.chat(
            step.request, deadline=terms.until, on_text=terms.on_text, cancelled=terms.cancelled
        )
        usage = reply.usage
    except ModelFault as fault:
        usage = fault.usage
        late = fault.kind == "timeout" and terms.clock.now() >= terms.until
        return Halt("time", fault.message, usage) if late else fault
    finally:
        terms.allowance.settle(usage)
    return reply


def _use(call: ToolCall, terms: Terms) -> ToolResult:
    try:
        return terms.use_tool(call)
    except NoemaError as error:
        wire = msgspec.json.encode(error.to_wire()).decode()
        return ToolResult(call.id, call.name, wire, failed=True)
