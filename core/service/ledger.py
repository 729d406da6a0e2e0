"""What a space spends on models: counted by day and role, and held to its budget.

What lives here: the rows of the ledger and the allowance that runs draw on. What must never live here: what a run
may spend by itself (`core.models.budget`) and any model.

A day is a UTC day, and one row of the space: what was used, by role, and what it counts against the budget. A
request is first **reserved** at what it may cost at most, under the condition that this still fits, and then
**settled** at what it did cost. So requests at the same time cannot spend the same rest twice. A process that dies
in between leaves its reservation counted until midnight: that errs on the side of the purse.

The first entry of a day opens its row, and only while the space is active; each later one is a condition on that
row, so that nothing is written into a space that is gone, and no commit of the space is disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.log import SpaceMeta
from core.models.budget import Limits, price
from core.models.chat import ROLES, Capabilities, ChatModel, Role, Usage
from core.models.choice import Budgets, for_tier
from core.ports import Check, Clock, Put, Refused, Row, StoreFault, Table, Unavailable, Update, When, Write
from core.service.faults import RETRY_AFTER_MS, reading
from core.service.memory_policy import policy_of
from core.service.rows import number_in
from core.service.spaces import Spaces
from core.storage.layout import HEAD, ledger_sk, ledger_total_sk, space_pk

DAY_MS: Final = 86_400_000
KEEP_DAYS: Final = 400  # that a day's row is kept: more than a year of bills can be looked up
_TRIES: Final = 5  # of a write that collided
_PAUSE_S: Final = 0.02


class DayLimits(msgspec.Struct, frozen=True):
    """What a space may spend in a day; None for no bound."""

    tokens: int | None = None
    micros: int | None = None


class DayUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One day of a space. tokens and micros count against the limits, open reservations included."""

    day: int
    usage: dict[str, Usage]
    tokens: int
    micros: int
    limits: DayLimits


class Ledger:
    """The ledgers of all spaces. Safe to share between threads.

    Args:
        table: the port.
        clock: the time.
        spaces: to see a space's tier and policy.
        budgets: what the operator allows.
        own_key: whether a space pays its model itself; the operator's day budgets do not hold for it then.
    """

    def __init__(
        self,
        table: Table,
        clock: Clock,
        spaces: Spaces,
        budgets: Budgets | None = None,
        *,
        own_key: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._table = table
        self._clock = clock
        self._spaces = spaces
        self._budgets = budgets or Budgets()
        self._own_key = own_key

    # --- spending

    def run_limits(self, space_id: str, model: ChatModel) -> Limits:
        """What one run may spend, for its `Meter`. A bound in money does not hold for a space's own key."""
        budgets = self._budgets
        micros = None if self._own_key(space_id) else budgets.run_micros
        if micros is not None:
            _check_priced(model.name, model.capabilities)
        return Limits(turns=budgets.run_turns, tokens=budgets.run_tokens, micros=micros)

    def allowance(self, space_id: str, role: Role, model: ChatModel) -> SpaceAllowance:
        """What a run may draw on; one for each run, used by one thread.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`; `ResourceExhausted` where there is a budget
                in money and nobody said what the model costs.
        """
        with reading():
            head, state = self._spaces.read_current(space_id)
        limits = self._limits(state.meta, own_key=self._own_key(space_id))
        if limits.micros is not None:
            _check_priced(model.name, model.capabilities)
        life = (space_id, head.instance)
        return SpaceAllowance(self, life, role, prices=model.capabilities, limits=limits)

    def _limits(self, meta: SpaceMeta, *, own_key: bool) -> DayLimits:
        policy = policy_of(meta)
        tier = meta.tier.tier
        tokens = None if own_key else for_tier(self._budgets.day_tokens, tier)
        micros = None if own_key else for_tier(self._budgets.day_micros, tier)
        return DayLimits(
            _least(tokens, policy.daily_token_budget), _least(micros, policy.daily_micros_budget)
        )

    # --- reading

    def today(self, space_id: str) -> DayUsage:
        """What the space spent since midnight UTC.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        with reading():
            _, state = self._spaces.read_current(space_id)
            row = self._table.get(space_pk(space_id), ledger_sk(self.day())) or {}
        return DayUsage(
            day=self.day(),
            usage=usage_of(row),
            tokens=number_in(row, "tokens"),
            micros=number_in(row, "micros"),
            limits=self._limits(state.meta, own_key=self._own_key(space_id)),
        )

    def totals(self, space_id: str) -> dict[str, Usage]:
        """What the space spent since it began, by role."""
        with reading():
            return usage_of(self._table.get(space_pk(space_id), ledger_total_sk()) or {})

    # --- writing

    def day(self) -> int:
        """Days since 1970, UTC."""
        return self._clock.now() // DAY_MS

    def write(self, space_id: str, instance: str, day: int, writes: Sequence[Update]) -> bool:
        """Write entries; False if one does not fit under its condition.

        Raises:
            NoemaError: `NotFoundOrNotVisible` if this life of the space is over.
            Unavailable: the outcome is not known.
        """
        opened = False
        for tries in range(_TRIES):
            try:
                self._table.transact(writes)
            except Refused as refused:
                if not refused.failed:
                    self._clock.sleep(_PAUSE_S * (tries + 1))
                    continue
                if opened or all(_is_of(row, instance) for row in refused.failed.values()):
                    return False
                self._open(space_id, instance, day)
                opened = True
            else:
                return True
        raise Unavailable("the ledger is written by too many at once")

    def _open(self, space_id: str, instance: str, day: int) -> None:
        """Make the rows that are missing, if the space is there."""
        pk = space_pk(space_id)
        alive = Check(pk, HEAD, When(equals={"state": "active", "instance": instance}))
        rows: dict[str, Row] = {
            ledger_sk(day): {"instance": instance, "ttl": (day + KEEP_DAYS) * (DAY_MS // 1000)},
            ledger_total_sk(): {"instance": instance},
        }
        for sk, row in rows.items():
            writes: list[Write] = [alive, Put(pk, sk, row, When(absent=True))]
            try:
                self._table.transact(writes)
            except Refused as gone:
                if 0 in gone.failed:
                    raise NoemaError("NotFoundOrNotVisible", "there is no such space") from gone


class SpaceAllowance:
    """What one run of a space may still spend today: implements `core.service.thinking.Allowance`."""

    def __init__(
        self,
        ledger: Ledger,
        life: tuple[str, str],
        role: Role,
        *,
        prices: Capabilities,
        limits: DayLimits,
    ) -> None:
        self._ledger = ledger
        self._space, self._instance = life
        self._role = role
        self._prices = prices
        self._limits = limits
        self._held: tuple[int, int, int] | None = None  # day, tokens, micros

    def reserve(self, tokens: int, max_output: int) -> None:
        """Set aside what a request may cost before it is made.

        Raises:
            NoemaError: `ResourceExhausted`, if that is more than is left of the day's budget; `ServiceUnavailable`
                if that cannot be found out; `NotFoundOrNotVisible`.
        """
        day, limits = self._ledger.day(), self._limits
        if limits.tokens is None and limits.micros is None:
            return
        wanted = tokens + max_output
        cost = price(Usage(tokens, max_output), self._prices) or 0
        below: dict[str, int] = {}
        if limits.tokens is not None:
            below["tokens"] = limits.tokens - wanted + 1
        if limits.micros is not None:
            below["micros"] = limits.micros - cost + 1
        entry = Update(
            space_pk(self._space),
            ledger_sk(day),
            add={"tokens": wanted, "micros": cost},
            when=When(equals={"instance": self._instance}, below=below),
        )
        if min(below.values()) < 1 or not self._write(day, [entry]):
            raise _exhausted(limits, day)
        self._held = (day, wanted, cost)

    def _write(self, day: int, writes: Sequence[Update]) -> bool:
        try:
            return self._ledger.write(self._space, self._instance, day, writes)
        except Unavailable as fault:
            raise NoemaError(
                "ServiceUnavailable",
                "the ledger of what is spent did not answer",
                retry_after_ms=RETRY_AFTER_MS,
            ) from fault

    def settle(self, usage: Usage) -> None:
        """Replace what was set aside by what was really used. Never raises: what cannot be noted stays reserved."""
        day, tokens, micros = self._held or (self._ledger.day(), 0, 0)
        self._held = None
        used = {
            f"{self._role}_in": usage.input_tokens,
            f"{self._role}_out": usage.output_tokens,
            f"{self._role}_cached": usage.cached_tokens,
            f"{self._role}_requests": usage.requests,
        }
        counted = {
            "tokens": usage.input_tokens + usage.output_tokens - tokens,
            "micros": (price(usage, self._prices) or 0) - micros,
        }
        when = When(equals={"instance": self._instance})
        pk = space_pk(self._space)
        entries = [
            Update(pk, ledger_sk(day), add=_some({**used, **counted}), when=when),
            Update(pk, ledger_total_sk(), add=_some(used), when=when),
        ]
        try:
            if any(entry.add for entry in entries):
                self._ledger.write(self._space, self._instance, day, [each for each in entries if each.add])
        except (NoemaError, StoreFault):
            return


def usage_of(row: Row) -> dict[str, Usage]:
    """What a row of the ledger says was used, by role."""
    return {
        role: Usage(
            number_in(row, f"{role}_in"),
            number_in(row, f"{role}_out"),
            number_in(row, f"{role}_cached"),
            number_in(row, f"{role}_requests"),
        )
        for role in ROLES
    }


def _check_priced(name: str, prices: Capabilities) -> None:
    if prices.price_in is None or prices.price_out is None:
        raise NoemaError(
            "ResourceExhausted",
            f"there is a budget in money, but nobody has said what {name} costs",
            hint="The operator names its price in NOEMA_PRICES, or sets the budget in tokens.",
        )


def _exhausted(limits: DayLimits, day: int) -> NoemaError:
    resets = (day + 1) * DAY_MS
    return NoemaError(
        "ResourceExhausted",
        "the space's budget for models is spent for today",
        hint="It is renewed at 00:00 UTC; the operator or the space's owner may raise it, or ask for less.",
        details={"budget": "day", "tokens": limits.tokens, "micros": limits.micros, "resets_at": resets},
    )


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in counts.items() if amount}


def _is_of(row: Row | None, instance: str) -> bool:
    return row is not None and row.get("instance") == instance
