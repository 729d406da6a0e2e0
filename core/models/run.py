"""One run with a model: ask, use the tools it calls, ask again, until it is done or something has run out.

What lives here: the loop, as a generator that does nothing itself. It yields `AskModel` and `UseTools`; whoever
drives it does that and sends back what came of it. What must never live here: prompts, tools, time, I/O.

Every way a model can misbehave has one outcome, and none of them is success: calls to tools that are not there and
arguments that are no JSON are answered as failed results; a cut reply is gone on with, twice; the same call over
and over is refused and then ends the run; a history that no longer fits is shortened, first by leaving out old
results, then by asking the model for a hand-off. `Finished.ended` says which; only "done" is success.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, Literal

import msgspec

from core.model.elements import Json
from core.models.budget import Meter, estimate_request, estimate_turn
from core.models.chat import (
    ChatReply,
    ChatRequest,
    FaultKind,
    ModelFault,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    Usage,
)

MAX_CALLS: Final = 16  # in one reply; the others are refused
MAX_RESULT: Final = 24_000  # characters of one result that the model gets to see
SAME_CALL: Final = 3  # the same call this often in a row is refused from then on,
LOOPING: Final = 6  # and this often ends the run
CONTINUED: Final = 2  # times a cut reply is gone on with
_FULL: Final = 0.8  # of the context: from here the history is shortened
_KEPT_TURNS: Final = 6  # the newest ones, whose results stay

_GO_ON: Final = "Your reply was cut off at the length limit. Go on exactly where it ended."
_HAND_OFF: Final = (
    "The conversation is about to exceed what fits. Write a hand-off for yourself: what has been done, with the ids "
    "of what was written; what is left to do; what must not be done again. Call no tool. You go on from it alone."
)

Ended = Literal[
    "done", "length", "refused", "loop", "context", "fault", "turns", "tokens", "micros", "time", "cancelled"
]  # fmt: skip


class Halt(msgspec.Struct, frozen=True):
    """Sent into a run instead of a reply: it must end now. `reason`: "time", "cancelled", "micros" or "tokens".

    usage: what the request that was broken off cost all the same.
    """

    reason: Ended
    message: str = ""
    usage: Usage = Usage()


class AskModel(msgspec.Struct, frozen=True):
    """The run wants a reply. Answer with a `ChatReply`, a `ModelFault`, or a `Halt`."""

    request: ChatRequest


class UseTools(msgspec.Struct, frozen=True):
    """The run wants tools used, in this order. Answer with a result for each, or a `Halt`."""

    calls: tuple[ToolCall, ...]


Answer = ChatReply | ModelFault | Halt | tuple[ToolResult, ...]


class Script(msgspec.Struct, frozen=True):
    """What a run is to do.

    system, tools, schema, choice, max_tokens: as of `ChatRequest`; choice is of the first request, later ones are
    "auto". opening: the turns it starts from; they are never shortened. context_tokens: what fits.
    """

    system: str
    opening: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: dict[str, Json] | None = None
    choice: str = "auto"
    max_tokens: int = 4096
    context_tokens: int = 128_000


class Used(msgspec.Struct, frozen=True):
    """A tool call and what came of it; the trace that citations may come from."""

    call: ToolCall
    result: ToolResult


class Finished(msgspec.Struct, frozen=True):
    """How a run ended.

    text: the last text of the model, whole or as far as it came. turns: the exchange after the opening, to go on
    from. trace: every call that was really made, in order. reason: why it did not end well, in a sentence.
    fault: the kind, if a fault of the model ended it. model: the name that the last reply gave.
    """

    ended: Ended
    text: str
    turns: tuple[Turn, ...] = ()
    trace: tuple[Used, ...] = ()
    reason: str = ""
    fault: FaultKind | None = None
    model: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model said it was done."""
        return self.ended == "done"


Run = Generator[AskModel | UseTools, Answer, Finished]


def converse(script: Script, meter: Meter) -> Run:
    """Run a script to its end, within what the meter has left.

    Args:
        script: what to do.
        meter: what may be spent; counts on over several runs of one task.
    """
    return (yield from _Exchange(script, meter).go())


def goes_on(script: Script, finished: Finished, text: str) -> Script:
    """The script of a run that goes on from where another ended, with something more asked."""
    turns = (*script.opening, *finished.turns, Turn("user", text))
    return msgspec.structs.replace(script, opening=turns)


class _Exchange:
    """The state of one run."""

    def __init__(self, script: Script, meter: Meter) -> None:
        self.script = script
        self.meter = meter
        self.turns: list[Turn] = []
        self.trace: list[Used] = []
        self.text = ""
        self.model = ""
        self.cut = 0
        self._last: tuple[tuple[str, str], ...] = ()
        self._repeats = 0
        self._names = {tool.name for tool in script.tools}

    def go(self) -> Run:
        choice = self.script.choice
        while True:
            spent = self.meter.exhausted()
            if spent is not None:
                return self.end(_limit(spent), f"the run's budget of {spent} is spent")
            unfit = yield from self._shorten()
            if unfit is not None:
                return unfit
            answer = yield AskModel(self._request(choice))
            choice = "auto"
            if not isinstance(answer, ChatReply):
                return self._stopped(answer)
            ended = self._take(answer)
            if ended is not None:
                return ended
            if answer.calls:
                stopped = yield from self._use(answer.calls)
                if stopped is not None:
                    return stopped

    def end(self, ended: Ended, reason: str = "", fault: FaultKind | None = None) -> Finished:
        return Finished(
            ended, self.text, tuple(self.turns), tuple(self.trace), reason, fault=fault, model=self.model
        )

    def _request(self, choice: str, *, tools: bool = True) -> ChatRequest:
        script = self.script
        return ChatRequest(
            system=script.system,
            turns=(*script.opening, *self.turns),
            tools=script.tools if tools else (),
            choice=choice if script.tools and tools else "none",
            schema=script.schema if tools else None,
            max_tokens=script.max_tokens,
        )

    def _stopped(self, answer: Answer) -> Finished:
        if isinstance(answer, Halt):
            if answer.usage.requests:
                self.meter.spend(answer.usage)
            return self.end(answer.reason, answer.message)
        if isinstance(answer, ModelFault):
            self.meter.spend(answer.usage)
            ended: Ended = "cancelled" if answer.kind == "cancelled" else "fault"
            return self.end(ended, answer.message, answer.kind)
        raise TypeError("a run was answered with what it had not asked for")

    def _take(self, reply: ChatReply) -> Finished | None:
        """Note a reply; the end of the run, if it is one."""
        self.meter.spend(reply.usage)
        self.model = reply.model or self.model
        self.text = self.text + reply.text if self.cut else reply.text
        self.turns.append(Turn("assistant", reply.text, reply.calls))
        if reply.stop == "refused":
            return self.end("refused", "the model or its provider refused to answer")
        if reply.calls:
            self.cut = 0
            return None
        if reply.stop != "length":
            return self.end("done")
        self.cut += 1
        if self.cut > CONTINUED:
            return self.end("length", "the reply was cut off again and again")
        self.turns.append(Turn("user", _GO_ON))
        return None

    def _use(self, calls: tuple[ToolCall, ...]) -> Generator[UseTools, Answer, Finished | None]:
        self._note(calls)
        refusals = [self._refuse(place, call) for place, call in enumerate(calls)]
        wanted = tuple(call for call, reason in zip(calls, refusals, strict=True) if reason is None)
        done: tuple[ToolResult, ...] = ()
        if wanted:
            answer = yield UseTools(wanted)
            if not isinstance(answer, tuple):
                return self._stopped(answer)
            done = answer
            self.trace += [Used(call, result) for call, result in zip(wanted, done, strict=True)]
        given = iter(done)
        results = tuple(
            _bounded(next(given)) if reason is None else ToolResult(call.id, call.name, reason, failed=True)
            for call, reason in zip(calls, refusals, strict=True)
        )
        self.turns.append(Turn("tool", results=results))
        if self._repeats >= LOOPING:
            return self.end("loop", "the model makes the same call over and over")
        return None

    def _note(self, calls: tuple[ToolCall, ...]) -> None:
        made = tuple((call.name, call.raw) for call in calls)
        self._repeats = self._repeats + 1 if made == self._last else 1
        self._last = made

    def _refuse(self, place: int, call: ToolCall) -> str | None:
        """Why a call is not made, in words to the model."""
        if call.name not in self._names:
            return f"There is no tool of that name. The tools are: {', '.join(sorted(self._names))}."
        if call.arguments is None:
            return "The arguments are not one JSON object (they may have been cut off). Call again, shorter."
        if place >= MAX_CALLS:
            return f"At most {MAX_CALLS} calls at once. Make this one in the next turn."
        if self._repeats >= SAME_CALL:
            return "You have made this very call several times. Its result does not change: go on without it."
        return None

    def _shorten(self) -> Generator[AskModel, Answer, Finished | None]:
        """Make the history fit; the end of the run if it cannot be made to."""
        room = int(self.script.context_tokens * _FULL) - self.script.max_tokens
        size = estimate_request(self._request("auto"))
        if size <= room:
            return None
        for place, turn in enumerate(self.turns[:-_KEPT_TURNS]):
            if turn.results:
                shorter = msgspec.structs.replace(turn, results=tuple(map(_elided, turn.results)))
                size -= estimate_turn(turn) - estimate_turn(shorter)
                self.turns[place] = shorter
        if size <= room:
            return None
        if not self.turns:
            return self.end("context", "the task does not fit into what the model can read")
        return (yield from self._hand_off(room))

    def _hand_off(self, room: int) -> Generator[AskModel, Answer, Finished | None]:
        request = self._request("none", tools=False)
        asked = msgspec.structs.replace(request, turns=(*request.turns, Turn("user", _HAND_OFF)))
        answer = yield AskModel(asked)
        if not isinstance(answer, ChatReply):
            return self._stopped(answer)
        self.meter.spend(answer.usage)
        self.turns = [Turn("assistant", answer.text), Turn("user", "Go on from your hand-off.")]
        if answer.text and estimate_request(self._request("auto")) <= room:
            return None
        return self.end("context", "what was done so far does not fit into what the model can read")


def _limit(spent: str) -> Ended:
    return "turns" if spent == "turns" else "tokens" if spent == "tokens" else "micros"


def _bounded(result: ToolResult) -> ToolResult:
    if len(result.content) <= MAX_RESULT:
        return result
    left = len(result.content) - MAX_RESULT
    text = f"{result.content[:MAX_RESULT]}\n[cut here: {left} more characters; ask for less]"
    return msgspec.structs.replace(result, content=text)


def _elided(result: ToolResult) -> ToolResult:
    return msgspec.structs.replace(
        result, content=f"[left out: {len(result.content)} characters seen before]"
    )
