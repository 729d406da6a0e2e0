"""Maintenance: runs that settle what time has done to a space, each exactly once, in the background.

What lives here: who may start a run and when one is due, and carrying it out commit by commit. What must never live
here: how a run is made (`core.service.maintenance_run`, `core.agents.maintenance`).

* **One run.** A run is a conversation of the collection `maintenance`, and the space's maintenance row names the one
  that is to be made. It is made under the lease `maintenance`, which is never held while `formation` is.
* **Exactly once.** Each commit carries the lease's epoch and moves the run's row and the space's marks on from where
  the commit before left them, all in one transaction. So whoever dies, sleeps or comes twice changes nothing twice.
* **When.** After formation by how much was formed, and by a clock. The clock's row in `DUE` stands in order of time and
  is moved in the same transaction as the marks, so a tick reads what is due and no other space.

A pass that fails is told in the report and the run goes on without it; its mark stays, and the next run tries again.
A store that does not answer ends the worker's turn, not the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Clock, Delete, Entropy, Queue, Row, StoreFault, Table, Write
from core.protocol.http_types import AgentOutput
from core.protocol.memory_types import MaintenanceInput, MaintenanceScope, MaintenanceTrigger
from core.service.commit import Commits, Fenced
from core.service.conversations import Conversations
from core.service.faults import reading
from core.service.hints import FORMATION, MAINTENANCE, send_hint
from core.service.leases import Leases
from core.service.maintenance_marks import DAY_MS, Marks
from core.service.maintenance_place import ROLE, Maintainer
from core.service.maintenance_run import LEASE_MS, Ran, Tools, Turn
from core.service.spaces import Spaces
from core.service.values import Caller
from core.storage.layout import DUE_PK, clock_of, clock_rows, due_sk, following

WEEK_MS: Final = 7 * DAY_MS
FULL, QUICK, DAYDREAM = 168, 42, 21  # formations after which a run is due (contract §6.1)
REST_MS: Final = 3600 * 1000  # after a failed run, until the number of conversations starts another
_PAGE: Final = 100
_SWEPT: Final = 1_000  # spaces that one tick hints at
_SYSTEM: Final = Caller("maintenance", "schedule", None, kind="system")


def due_scope(formed: int, marks: Row) -> MaintenanceScope | None:
    """The kind of run that is due after so many formations, given up to where each kind has completed."""

    def done(scope: str) -> int:
        value = marks.get(f"m_{scope}")
        return value if isinstance(value, int) else 0

    full, quick = done("full"), max(done("quick"), done("full"))
    if formed >= full + FULL:
        return "full"
    if formed >= quick + QUICK:
        return "quick"
    return "daydream" if formed >= max(quick, done("daydream")) + DAYDREAM else None


class Maintenance:
    """Maintenance of all spaces. Safe to share between threads; one run of a space at a time."""

    def __init__(
        self,
        table: Table,
        queue: Queue,
        clock: Clock,
        entropy: Entropy,
        *,
        spaces: Spaces,
        commits: Commits,
        leases: Leases,
        conversations: Conversations,
        keeper: Callable[[], Maintainer] | None = None,
        paced: bool = True,
    ) -> None:
        self.table = table
        self.queue = queue
        self.clock = clock
        self.entropy = entropy
        self.spaces = spaces
        self.commits = commits
        self.leases = leases
        self.conversations = conversations
        self.keeper = keeper
        self.paced = paced
        self._marks = Marks(table)

    # --- starting

    def submit(
        self, caller: Caller, space_id: str, wish: MaintenanceInput, *, key: str | None = None
    ) -> AgentOutput:
        """Store a run to be made, and answer with its id. While formation works, the run waits.

        Args:
            caller: who asks; recorded.
            space_id: the space.
            wish: scope, trigger and parameters; what only the host may fill is dropped.
            key: the caller's retry key: the same wish under it answers with the same run.

        Raises:
            NoemaError: `Busy` (`maintenance_busy`) while another run waits or works, `IdempotencyConflict`,
                `NotFoundOrNotVisible`, `ServiceUnavailable`, `OutcomeUnknown`.
        """
        body = msgspec.to_builtins(msgspec.structs.replace(wish, assessment=None, formation_id=None))
        kept = _said({**body, "parameters": _said(body["parameters"])})
        row: Row = {"status": "working", "scope": wish.scope, "trigger": wish.trigger}

        def also(number: int) -> list[Write]:
            marks, now = self._marks.read(space_id), self.clock.now()
            if marks.get("run") is not None:
                raise NoemaError(
                    "Busy",
                    "a run of maintenance waits or works already",
                    details={"reason": "maintenance_busy", "conversation": marks["run"]},
                    retry_after_ms=5000,
                )
            return self._marks.moved(space_id, marks, now, {"run": number})

        number = self.conversations.begin(caller, space_id, ROLE, kept, row=row, also=also, key=key)
        return AgentOutput(content="", conversation=number)

    def after_formation(self, space_id: str) -> bool:
        """Wind the space's clock if it has none, and start a run if enough was formed; whether one waits now.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        marks, head = self._marks.read(space_id), self.spaces.head(space_id)
        if marks.get("run") is not None:
            return True
        scope = due_scope(head.number("formed"), marks)
        if scope is not None and self._has_rested(marks):
            return self._start(space_id, MaintenanceInput(trigger="threshold", scope=scope))
        if marks.get("due") is None and head.number("formed"):
            self._marks.wind(space_id, marks, self.clock.now() + DAY_MS)
        return False

    def is_due(self, space_id: str, formed: int) -> bool:
        """Whether a run is to start after so many formed conversations; not where one waits already.

        Raises:
            NoemaError: `ServiceUnavailable`.
        """
        marks = self._marks.read(space_id)
        return marks.get("run") is None and due_scope(formed, marks) is not None and self._has_rested(marks)

    def _has_rested(self, marks: Row) -> bool:
        """Whether a run that failed is long enough ago for the next; each may cost a model's time."""
        failed = marks.get("failed_at")
        return not isinstance(failed, int) or self.clock.now() - failed >= REST_MS

    def wind(self, space_id: str) -> bool:
        """Give a space that remembers anything a clock, if it has none: one of facts, or of KIP commands alone.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        marks = self._marks.read(space_id)
        if marks.get("due") is not None or marks.get("run") is not None or not self.spaces.head(space_id).seq:
            return False
        self._marks.wind(space_id, marks, self.clock.now() + DAY_MS)
        return True

    def _start(self, space_id: str, wish: MaintenanceInput) -> bool:
        """Start a run of the host's own, unless somebody else did."""
        try:
            self.submit(_SYSTEM, space_id, wish)
        except NoemaError as error:
            if error.code != "Busy":
                raise
        return True

    def sweep(self) -> list[str]:
        """Hint at every space whose clock has run out; for the tick. Rows of spaces that are gone are removed."""
        found: list[str] = []
        first, last = clock_rows(self.clock.now())
        with reading():
            while len(found) < _SWEPT:
                page = self.table.query(DUE_PK, first, last, limit=_PAGE)
                for sk, _ in page:
                    at, space_id = clock_of(sk)
                    if self._marks.read(space_id).get("due") == at:
                        send_hint(self.queue, self.entropy, space_id, MAINTENANCE)
                        found.append(space_id)
                    else:
                        self.table.transact([Delete(DUE_PK, sk)])
                if len(page) < _PAGE:
                    break
                first = following(page[-1][0])
        return found

    # --- making a run

    def run(self, space_id: str, deadline: Instant) -> Ran:
        """Make the run that waits, or start the one the clock wants; until it is done or the deadline is near.

        Raises:
            NoemaError: the store failed; nothing is lost, and the message may be delivered again.
        """
        marks, now = self._marks.read(space_id), self.clock.now()
        if marks.get("run") is None:
            head = self.spaces.head(space_id)
            due = marks.get("due")
            scope = due_scope(head.number("formed"), marks) if self._has_rested(marks) else None
            over = isinstance(due, int) and due <= now and head.seq > 0
            if scope is None and not over:
                return Ran()
            trigger: MaintenanceTrigger = "scheduled" if over else "threshold"
            wish = MaintenanceInput(trigger=trigger, scope=scope or _by_clock(marks, now))
            self._start(space_id, wish)
        owner = self.entropy.token(12).hex()
        fence = self.leases.acquire(space_id, ROLE, owner, LEASE_MS, apart="formation")
        if fence is None:
            return Ran(busy=True, more=True)
        tools = Tools(
            self.table,
            self.clock,
            self.spaces,
            self.commits,
            self.leases,
            self.conversations,
            self._marks,
            self.keeper,
            self.paced,
        )
        turn = Turn(tools, space_id, fence, deadline)
        try:
            return turn.until_done()
        except Fenced:
            return Ran(turn.number, "working", turn.commits, more=True)
        finally:
            self.leases.release(space_id, turn.fence)
            self._resume_formation(space_id)

    def _resume_formation(self, space_id: str) -> None:
        """Formation waited for this run: hint at it. A lost hint does no harm, its sweep finds the row."""
        try:
            if self.table.get(DUE_PK, due_sk(FORMATION, space_id)) is not None:
                send_hint(self.queue, self.entropy, space_id, FORMATION)
        except StoreFault:
            return


def _said(members: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def _by_clock(marks: Row, now: Instant) -> MaintenanceScope:
    """What the clock runs: a full run once a week, so that an idle space is swept too, else a daydream."""
    full = marks.get("at_full")
    return "daydream" if isinstance(full, int) and now - full < WEEK_MS else "full"
