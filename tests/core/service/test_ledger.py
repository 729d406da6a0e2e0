"""What spaces spend on models, and how they are held to it."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.models.budget import Limits
from core.models.chat import Capabilities, ModelFault, Usage
from core.models.choice import Budgets
from core.ports import Unavailable
from core.protocol.http_types import CreateSpaceInput, MemoryPolicy, UpdateSpaceInput
from core.service.erasure import Erasures
from core.service.ledger import DAY_MS, DayLimits, Ledger
from core.service.memory_status import MemoryStatuses
from core.service.reading_counts import count
from core.service.spaces import Spaces
from core.service.thinking import Allowance
from core.service.upkeep import Upkeep
from core.storage.layout import HEAD, ledger_sk, ledger_total_sk, space_pk
from tests.doubles import FailingTable, Faults, ScriptedModel
from tests.services import MINUTE, World

PRICED = Capabilities(
    price_in=1_000, price_out=5_000, price_cached=100
)  # micro-dollars for a thousand tokens
MODEL = ScriptedModel(capabilities=PRICED)
FREE = ScriptedModel()


@pytest.fixture
def world() -> World:
    made = World()
    made.create()
    return made


def ledger(world: World, *, table: Any = None, own: bool = False, **budgets: Any) -> Ledger:
    return Ledger(table or world.table, world.clock, world.spaces, Budgets(**budgets), own_key=lambda _: own)


def set_policy(world: World, **members: Any) -> None:
    wish = UpdateSpaceInput(memory_policy=MemoryPolicy(**members))
    world.admin.update_space(world.caller, "home", wish, world.clock.now() + MINUTE)


def test_what_is_used_is_counted_by_day_and_role(world: World) -> None:
    """Cached tokens are priced as such; the next day begins at nothing, and the total goes on."""
    books = ledger(world)
    recall, formation = books.allowance("home", "recall", MODEL), books.allowance("home", "formation", MODEL)

    recall.reserve(1000, 500)
    recall.settle(Usage(1000, 100, 400, 1))
    formation.settle(Usage(10, 10, 0, 2))
    today = books.today("home")
    world.clock.advance(DAY_MS)
    recall.settle(Usage(5, 5, 0, 1))

    assert today.usage["recall"] == Usage(1000, 100, 400, 1)
    assert today.usage["formation"] == Usage(10, 10, 0, 2)
    assert today.usage["maintenance"] == Usage()
    assert (today.tokens, today.micros) == (1120, (600 * 1000 + 400 * 100 + 100 * 5000) // 1000 + 60)
    assert books.today("home").usage["recall"] == Usage(5, 5, 0, 1)
    assert books.totals("home")["recall"] == Usage(1005, 105, 400, 2)
    info = world.admin.info("home")
    assert msgspec.structs.asdict(info.recall_usage) == msgspec.structs.asdict(Usage(1005, 105, 400, 2))


def test_a_request_must_fit_at_what_it_may_cost_at_most(world: World) -> None:
    """And what it did not use is free for the next."""
    books = ledger(world, day_tokens=((0, 1000),))
    first, second = books.allowance("home", "recall", FREE), books.allowance("home", "recall", FREE)

    first.reserve(300, 300)
    with pytest.raises(NoemaError) as caught:
        second.reserve(300, 300)
    first.settle(Usage(300, 10, 0, 1))
    second.reserve(300, 300)

    assert caught.value.code == "ResourceExhausted"
    assert caught.value.details["tokens"] == 1000
    assert caught.value.details["resets_at"] % DAY_MS == 0
    assert "00:00 UTC" in caught.value.hint
    assert books.today("home").tokens == 910


def test_exactly_what_is_left_may_be_spent(world: World) -> None:
    """And one token more may not."""
    books = ledger(world, day_tokens=((0, 1000),))
    books.allowance("home", "recall", FREE).reserve(600, 400)
    fresh = ledger(world, day_tokens=((0, 1001),)).allowance("home", "recall", FREE)

    with pytest.raises(NoemaError):
        fresh.reserve(1, 1)
    fresh.reserve(1, 0)

    assert books.today("home").tokens == 1001


def test_more_than_a_whole_day_is_refused_at_once(world: World) -> None:
    """Nothing is written for it."""
    books = ledger(world, day_tokens=((0, 1000),))

    with pytest.raises(NoemaError):
        books.allowance("home", "recall", FREE).reserve(900, 200)

    assert world.table.get(space_pk("home"), ledger_sk(books.day())) is None


def test_money_is_a_budget_of_its_own(world: World) -> None:
    """At the price of the model; where nobody said it, nothing may be spent against such a budget."""
    books = ledger(world, day_micros=((0, 2_000),))
    allowance = books.allowance("home", "judge", MODEL)

    allowance.reserve(1000, 100)  # 1500 micro-dollars
    with pytest.raises(NoemaError, match="spent for today"):
        books.allowance("home", "judge", MODEL).reserve(1000, 100)
    with pytest.raises(NoemaError) as caught:
        books.allowance("home", "judge", FREE)

    assert caught.value.code == "ResourceExhausted"
    assert "NOEMA_PRICES" in caught.value.hint


def test_a_midnight_renews_it(world: World) -> None:
    """What was reserved yesterday is settled on yesterday's account."""
    books = ledger(world, day_tokens=((0, 1000),))
    allowance = books.allowance("home", "recall", FREE)
    allowance.reserve(500, 500)
    yesterday = books.day()
    world.clock.advance(DAY_MS)
    books.allowance("home", "recall", FREE).reserve(500, 500)

    allowance.settle(Usage(10, 10, 0, 1))

    row = world.table.get(space_pk("home"), ledger_sk(yesterday))
    assert row is not None
    assert row["tokens"] == 20
    assert books.today("home").tokens == 1000


@pytest.mark.parametrize(
    ("tier", "policy", "own", "limits"),
    [
        (0, {}, False, DayLimits(1000, 50)),
        (3, {}, False, DayLimits(9000, 50)),
        (3, {"daily_token_budget": 10}, False, DayLimits(10, 50)),
        (0, {"daily_token_budget": 5000, "daily_micros_budget": 7}, False, DayLimits(1000, 7)),
        (0, {}, True, DayLimits(None, None)),
        (0, {"daily_token_budget": 5000}, True, DayLimits(5000, None)),
        (0, {"daily_token_budget": 0}, False, DayLimits(0, 50)),
    ],
)
def test_whose_word_counts(tier: int, policy: dict[str, Any], own: bool, limits: DayLimits) -> None:
    """The operator's by tier, tightened by the owner's policy; of a space that pays itself, the owner's alone."""
    world = World()
    world.create(tier=tier)
    set_policy(world, **policy)
    books = ledger(world, own=own, day_tokens=((0, 1000), (2, 9000)), day_micros=((0, 50),))

    assert books.today("home").limits == limits


def test_without_limits_a_request_costs_one_write(world: World) -> None:
    """Nothing is reserved, and what was used is written once."""
    counted = FailingTable(world.table)
    books = ledger(world, table=counted)
    allowance = books.allowance("home", "recall", FREE)
    allowance.reserve(10, 10)
    assert counted.transactions == 0

    allowance.settle(Usage(10, 1, 0, 1))  # opens the rows
    before = counted.transactions
    allowance.reserve(10, 10)
    allowance.settle(Usage(10, 1, 0, 1))

    assert counted.transactions == before + 1


def test_a_run_has_limits_of_its_own(world: World) -> None:
    """In turns and tokens always; in money where the operator pays and knows the price."""
    bound = {"run_turns": 9, "run_tokens": 1000, "run_micros": 50}

    assert ledger(world, **bound).run_limits("home", MODEL) == Limits(9, 1000, 50)
    assert ledger(world, own=True, **bound).run_limits("home", FREE) == Limits(9, 1000, None)
    with pytest.raises(NoemaError, match="costs"):
        ledger(world, **bound).run_limits("home", FREE)
    assert ledger(world).run_limits("home", FREE) == Limits()


def test_threads_never_spend_the_same_rest_twice(world: World) -> None:
    """Sixteen want a tenth of the budget each: ten get it."""
    books = ledger(world, day_tokens=((0, 1000),))
    got: list[bool] = []

    def want() -> None:
        try:
            books.allowance("home", "recall", FREE).reserve(50, 50)
        except NoemaError:
            got.append(False)
        else:
            got.append(True)

    threads = [threading.Thread(target=want) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert (got.count(True), books.today("home").tokens) == (10, 1000)


@pytest.mark.parametrize("after", [False, True])
def test_a_store_that_does_not_answer(world: World, after: bool) -> None:
    """A reservation that is not certain stops the request; a settling that fails leaves the reservation counted."""
    books = ledger(world, day_tokens=((0, 1000),))
    books.allowance("home", "recall", FREE).settle(Usage(1, 0, 0, 1))  # so that the rows are there
    failing = FailingTable(world.table, Faults([0, 2], after=after, error=Unavailable))
    doubtful = ledger(world, table=failing, day_tokens=((0, 1000),)).allowance("home", "recall", FREE)

    with pytest.raises(NoemaError) as caught:
        doubtful.reserve(100, 100)
    doubtful.reserve(100, 100)
    doubtful.settle(Usage(10, 10, 0, 1))

    assert caught.value.code == "ServiceUnavailable"
    assert books.today("home").tokens == (1 + 200 + 20 if after else 1 + 200)


def test_a_space_that_is_gone_gets_no_row(world: World) -> None:
    """A run that outlives its space notes nothing, neither in the grave nor in the space's next life."""
    books = ledger(world, day_tokens=((0, 1000),))
    allowance = books.allowance("home", "formation", FREE)
    allowance.reserve(10, 10)
    erasures = Erasures(world.spaces, Upkeep(world.spaces, world.leases, world.entropy), world.entropy)
    receipt = erasures.delete_space("home", "alice", owner="run")

    allowance.settle(Usage(10, 10, 0, 1))
    with pytest.raises(NoemaError) as caught:
        allowance.reserve(10, 10)

    assert receipt.clean
    assert caught.value.code == "NotFoundOrNotVisible"
    pk = space_pk("home")
    assert [sk for sk, _ in world.table.query(pk, "L#", "L#z", limit=9)] == []
    world.admin.create_space(
        world.caller, CreateSpaceInput(user="bob", space_id="home", tier=0), world.clock.now() + MINUTE
    )
    allowance.settle(Usage(10, 10, 0, 1))
    assert world.table.get(pk, ledger_total_sk()) is None
    assert books.totals("home")["formation"] == Usage()


def test_a_days_row_is_dropped_when_nobody_asks_any_more(world: World) -> None:
    """Its time to live is more than a year; the total has none."""
    books = ledger(world)
    books.allowance("home", "recall", FREE).settle(Usage(1, 1, 0, 1))
    pk = space_pk("home")

    row, total = world.table.get(pk, ledger_sk(books.day())), world.table.get(pk, ledger_total_sk())

    assert row is not None
    assert row["ttl"] * 1000 > world.clock.time + 366 * DAY_MS
    assert total is not None
    assert "ttl" not in total


def test_tokens_of_maintenance_for_each_recall(world: World) -> None:
    """Nothing where no recall was made: a rate of nothing is no rate."""
    ledger(world).allowance("home", "maintenance", FREE).settle(Usage(90, 10, 0, 1))
    statuses, instance = MemoryStatuses(world.table, world.spaces), world.spaces.read_head("home").instance

    before = statuses.status("home").maintenance_tokens_per_recall
    count(world.table, "home", instance, world.clock.now(), {"recalls": 4})

    assert before is None
    assert statuses.status("home").maintenance_tokens_per_recall == 25.0


def test_the_head_stays_as_it_is(world: World) -> None:
    """So that counting never makes a commit of the space try again."""
    books = ledger(world, day_tokens=((0, 1000),))
    before = world.table.get(space_pk("home"), HEAD)

    allowance: Allowance = books.allowance("home", "recall", FREE)
    allowance.reserve(1, 1)
    allowance.settle(Usage(1, 1, 0, 1))

    assert world.table.get(space_pk("home"), HEAD) == before


def test_a_space_that_is_not_there() -> None:
    """It has no allowance and no usage."""
    world = World()
    books = Ledger(world.table, world.clock, Spaces(world.table, world.objects, world.clock))

    for ask in (lambda: books.allowance("none", "recall", FREE), lambda: books.today("none")):
        with pytest.raises(NoemaError) as caught:
            ask()
        assert caught.value.code == "NotFoundOrNotVisible"


def test_a_fault_settles_at_what_it_cost(world: World) -> None:
    """A request that failed is paid as far as the provider said."""
    books = ledger(world, day_tokens=((0, 1000),))
    allowance = books.allowance("home", "recall", FREE)
    fault = ModelFault("unavailable", "broke off", usage=Usage(30, 0, 0, 2))
    allowance.reserve(100, 100)

    allowance.settle(fault.usage)

    assert books.today("home").usage["recall"] == Usage(30, 0, 0, 2)
    assert books.today("home").tokens == 30
