"""A run with a model: each way it can end, and that only one of them is success."""

from collections.abc import Callable

import pytest

from core.errors import NoemaError
from core.models.budget import Limits, Meter, estimate, price
from core.models.chat import (
    Capabilities,
    ChatReply,
    ChatRequest,
    ModelFault,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    Usage,
)
from core.models.run import Finished, Script, converse, goes_on
from core.service.thinking import Terms, Unlimited, drive
from tests.doubles import FakeClock, ScriptedModel, calls, says

ECHO = ToolSpec("echo", "Says it back.", {"type": "object", "properties": {"text": {"type": "string"}}})
SCRIPT = Script(system="You repeat.", opening=(Turn("user", "Say hello."),), tools=(ECHO,))


def echo(call: ToolCall) -> ToolResult:
    assert call.arguments is not None
    return ToolResult(call.id, call.name, str(call.arguments.get("text")))


def run(
    model: ScriptedModel,
    script: Script = SCRIPT,
    *,
    limits: Limits | None = None,
    use: Callable[[ToolCall], ToolResult] = echo,
    clock: FakeClock | None = None,
    meter: Meter | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Finished:
    clock = clock or FakeClock()
    meter = meter or Meter(limits or Limits())
    until = clock.time + 60_000
    return drive(converse(script, meter), Terms(model, use, clock, until, Unlimited(), cancelled=cancelled))


def test_a_tool_is_used_and_its_result_is_read():
    """A called tool runs, the model sees its result, and the trace has both."""
    model = ScriptedModel([calls("echo", {"text": "hi"}), says("It said hi.")])
    finished = run(model)
    assert finished.ok
    assert finished.text == "It said hi."
    assert [used.result.content for used in finished.trace] == ["hi"]
    assert model.asked[1].turns[-1].results[0].content == "hi"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (calls("nowhere", {}), "There is no tool of that name"),
        (calls("echo", None), "not one JSON object"),
    ],
    ids=["no such tool", "broken JSON"],
)
def test_a_bad_call_is_told_to_the_model_and_never_made(reply: ChatReply, told: str):
    """A call that cannot be made comes back as a failed result, and the run goes on."""
    model = ScriptedModel([reply, says("sorry")])
    finished = run(model)
    result = model.asked[1].turns[-1].results[0]
    assert told in result.content
    assert result.failed
    assert finished.ok
    assert finished.trace == ()


def test_too_many_calls_at_once_are_refused_one_by_one():
    """Of twenty calls in one reply sixteen are made and four are refused, each under its own id."""
    many = tuple(ToolCall(f"c{n}", "echo", {"text": str(n)}, str(n)) for n in range(20))
    model = ScriptedModel([ChatReply("", many, "tools"), says("done")])
    finished = run(model)
    results = model.asked[1].turns[-1].results
    assert [result.failed for result in results] == [False] * 16 + [True] * 4
    assert [result.id for result in results] == [call.id for call in many]
    assert len(finished.trace) == 16


def test_an_error_of_a_tool_is_a_failed_result():
    """A typed error of a tool reaches the model with its code."""

    def refuse(call: ToolCall) -> ToolResult:
        raise NoemaError("NotAuthorized", "you may not")

    model = ScriptedModel([calls("echo", {}), says("I may not.")])
    finished = run(model, use=refuse)
    assert finished.ok
    assert "NotAuthorized" in finished.trace[0].result.content


def test_a_model_that_loops_is_stopped():
    """The same call is refused from the third time on, and ends the run at the sixth."""
    made = []

    def note(call: ToolCall) -> ToolResult:
        made.append(call)
        return echo(call)

    finished = run(ScriptedModel(last=calls("echo", {"text": "again"})), use=note)
    assert finished.ended == "loop"
    assert len(made) == 2


@pytest.mark.parametrize(
    ("limits", "ended", "asked"),
    [
        (Limits(turns=3), "turns", 3),
        (Limits(tokens=40), "tokens", 3),
        (Limits(micros=100), "micros", 4),
    ],
)
def test_a_budget_that_is_spent_ends_the_run(limits: Limits, ended: str, asked: int):
    """Turns, tokens and money end a run when they are gone, and not one request later."""
    prices = Capabilities(price_in=1000, price_out=4000)  # 30 micro-dollars a request
    model = ScriptedModel(calls("echo", {"text": str(n)}) for n in range(20))
    finished = run(model, meter=Meter(limits, prices))
    assert finished.ended == ended
    assert not finished.ok
    assert len(model.asked) == asked


def test_time_ends_a_run_before_the_next_step():
    """After the deadline neither the model nor a tool is asked any more."""
    clock = FakeClock()

    def slow(call: ToolCall) -> ToolResult:
        clock.advance(61_000)
        return echo(call)

    model = ScriptedModel([calls("echo", {"text": "a"})])
    finished = run(model, use=slow, clock=clock)
    assert finished.ended == "time"
    assert finished.trace[0].result.content == "a"


def test_a_request_that_time_broke_off_is_counted():
    """A model that gives no answer before the deadline was asked all the same: the run's usage says what for."""
    clock = FakeClock()

    def late(request: ChatRequest) -> ModelFault:
        clock.advance(61_000)
        return ModelFault("timeout", "no answer before the deadline", usage=Usage(70, 0, 0, 1))

    meter = Meter(Limits(), Capabilities())
    finished = run(ScriptedModel([late]), meter=meter, clock=clock)
    assert finished.ended == "time"
    assert meter.usage == Usage(70, 0, 0, 1)


def test_a_cancelled_run_asks_nobody():
    """A cancelled run ends as such."""
    model = ScriptedModel()
    assert run(model, cancelled=lambda: True).ended == "cancelled"
    assert model.asked == []


def test_a_cut_reply_is_gone_on_with_twice():
    """Text cut at the length limit is put together; after two goes the run ends as cut off."""
    whole = run(ScriptedModel([says("one ", stop="length"), says("two")]))
    assert (whole.ended, whole.text) == ("done", "one two")
    cut = run(ScriptedModel(last=says("x", stop="length")))
    assert (cut.ended, cut.text) == ("length", "xxx")


def test_a_refusal_is_no_success():
    """A model that refuses ends the run as refused."""
    assert run(ScriptedModel([says("I cannot.", stop="refused")])).ended == "refused"


def test_a_fault_ends_the_run_with_what_was_done():
    """A fault keeps the trace, the kind and the tokens it cost."""
    meter = Meter(Limits())
    fault = ModelFault("unavailable", "the provider is down", usage=Usage(7, 0, 0, 1))
    finished = run(ScriptedModel([calls("echo", {"text": "a"}), fault]), meter=meter)
    assert (finished.ended, finished.fault) == ("fault", "unavailable")
    assert len(finished.trace) == 1
    assert meter.usage == Usage(17, 5, 0, 2)


def test_an_empty_answer_is_an_answer():
    """A model that has nothing to say is done."""
    assert run(ScriptedModel([says("")])).ok


def test_a_long_history_is_shortened_by_old_results_first():
    """Results seen long ago are left out, the newest stay, and the opening stays whole."""
    script = Script("s", SCRIPT.opening, SCRIPT.tools, max_tokens=100, context_tokens=8_000)
    big = "word " * 1000
    model = ScriptedModel([*(calls("echo", {"text": f"{n} {big}"}) for n in range(6)), says("done")])
    finished = run(model, script, use=lambda call: ToolResult(call.id, call.name, "ok " * 1000))
    assert finished.ended in {"done", "context"}
    last = model.asked[-1]
    assert last.turns[0] == SCRIPT.opening[0]


def test_a_history_that_cannot_be_shortened_is_handed_off():
    """The model is asked for a hand-off without tools, and goes on from it alone."""
    script = Script("s", SCRIPT.opening, SCRIPT.tools, max_tokens=100, context_tokens=2_000)
    model = ScriptedModel(
        [calls("echo", {"text": "x" * 8_000}), says("Done: 1. Left: 2."), says("finished")],
    )
    finished = run(model, script)
    assert finished.ok
    assert model.asked[1].tools == ()
    assert [turn.text for turn in model.asked[2].turns][1] == "Done: 1. Left: 2."


def test_an_opening_that_does_not_fit_is_said_to():
    """A task larger than the context ends at once, without a request."""
    script = Script("s", (Turn("user", "x" * 100_000),), context_tokens=8_000)
    model = ScriptedModel()
    assert run(model, script).ended == "context"
    assert model.asked == []


def test_a_run_goes_on_from_another_and_shares_its_meter():
    """A review continues the exchange it reviews, within the same budget."""
    meter = Meter(Limits(turns=2))
    model = ScriptedModel([says("first"), says("reviewed")])
    first = run(model, meter=meter)
    second = run(model, goes_on(SCRIPT, first, "Review it."), meter=meter)
    assert second.ok
    assert [turn.text for turn in model.asked[1].turns] == ["Say hello.", "first", "Review it."]
    assert meter.exhausted() == "turns"


def test_prices_count_cached_input_apart():
    """A thousand tokens cost what the table says; a price nobody told is not zero but unknown."""
    prices = Capabilities(price_in=3000, price_out=15000, price_cached=300)
    assert price(Usage(2000, 1000, 1000, 1), prices) == 3000 + 300 + 15000
    assert price(Usage(1, 0, 0, 1), prices) == 3
    assert price(Usage(1, 1, 0, 1), Capabilities()) is None
    assert estimate("abcd") == 1
    assert estimate("") == 0


@pytest.mark.parametrize(
    ("code", "ended"), [("ResourceExhausted", "micros"), ("ServiceUnavailable", "fault")]
)
def test_a_spent_day_is_told_from_a_ledger_that_is_silent(code: str, ended: str):
    """A day's budget that is spent ends the run as such; a ledger that cannot be read is a fault that passes."""

    class Broke(Unlimited):
        def reserve(self, tokens: int, max_output: int) -> None:
            raise NoemaError(code, "no")

    clock = FakeClock()
    terms = Terms(ScriptedModel(), echo, clock, clock.time + 60_000, Broke())
    finished = drive(converse(SCRIPT, Meter(Limits())), terms)
    assert finished.ended == ended
    assert finished.fault == ("unavailable" if ended == "fault" else None)
