"""The row of a space's shadow evaluation: how far it is, and what it says.

What lives here: the row's value, and the report it makes. What must never live here: evaluating (`core.service.shadow`), which
brings far more with it than whoever only shows the last report needs.
"""

from __future__ import annotations

import msgspec

from core.agents.maintenance.judging import OFFLINE_JUDGE
from core.model.instants import Instant
from core.ports import Row, Table
from core.protocol.http_types import Usage
from core.protocol.memory_types import ShadowInput, ShadowReport, ShadowSample, ShadowStatus
from core.service.values import Caller
from core.storage.layout import notes_sk, space_pk


def shadow_sk() -> str:
    """The key of the row. It goes as agents' notes go: any erasure in the space removes it."""
    return notes_sk("shadow")


class State(msgspec.Struct, kw_only=True):
    """An evaluation as its row keeps it."""

    status: ShadowStatus
    wish: ShadowInput
    caller: Caller
    began: Instant
    done: int = 0
    goes: int = 0
    samples: list[ShadowSample] = []
    usage: Usage = Usage()
    judge: str = OFFLINE_JUDGE
    failed: str | None = None
    ended: Instant = 0


def report_of(state: State) -> ShadowReport:
    """An evaluation as it is told."""
    winners = [sample.winner for sample in state.samples]
    return ShadowReport(
        status=state.status,
        compared_at=state.ended or state.began,
        replayed=state.done,
        baseline_wins=winners.count("baseline"),
        candidate_wins=winners.count("candidate"),
        ties=winners.count("tie"),
        judge_errors=winners.count("error"),
        candidate_policy=msgspec.to_builtins(state.wish.policy),
        usage=state.usage,
        samples=tuple(state.samples),
        judge=state.judge,
        failed_reason=state.failed,
    )


def state_of(row: Row) -> State | None:
    """The evaluation that a row holds."""
    text = row.get("state")
    return msgspec.json.decode(text, type=State) if isinstance(text, str) else None


def text_of(state: State) -> str:
    """An evaluation as its row holds it."""
    return msgspec.json.encode(state).decode()


def last_report(table: Table, space_id: str) -> ShadowReport | None:
    """The newest evaluation of a space, by one read; None if there is none. The store's faults pass through."""
    state = state_of(table.get(space_pk(space_id), shadow_sk()) or {})
    return None if state is None else report_of(state)
