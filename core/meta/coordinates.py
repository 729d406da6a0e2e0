"""SNAPSHOT and DESCRIBE SNAPSHOT: a point of the log, named so that later requests can read it (KIP §68, §78).

What lives here: coordinates and the tokens that pin them. What must never live here: authority; a token is worth
nothing without permission to read, asked again each time.
"""

from __future__ import annotations

from typing import Final

from core.authority import authorize
from core.language.ast_meta import Describe, Snapshot
from core.meta.operands import coordinates, past_scope, state_at
from core.model.elements import Json
from core.model.ids import transaction_id
from core.model.instants import format_instant
from core.protocol.tokens import seal
from core.state.space import SpaceState
from core.transaction.scope import Answer, Scope

SNAPSHOT_FAMILY: Final = "snap"
"""The family of snapshot tokens (`core.protocol.tokens`); their value is [instance, space_seq]."""


def snapshot(statement: Snapshot, scope: Scope) -> Answer:
    """SNAPSHOT [AS OF]: the coordinates of a state, and an opaque token that `read.snapshot_token` takes.

    Raises:
        NoemaError: HistoricalSnapshotUnavailable, TransactionUnknown, TypeMismatch.
        Missing: an older state must be handed in.
    """
    authorize(scope.context.principal, "read")
    state = state_at(scope, statement.as_of)
    value = _coordinates(state, scope)
    value["snapshot_token"] = seal(SNAPSHOT_FAMILY, [state.meta.instance, state.seq], scope.context.secret)
    value["expires_at"] = None  # it can be read as long as history is kept that far back
    return Answer(value=value, context=coordinates(past_scope(scope, state)))


def describe_snapshot(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE SNAPSHOT [AS OF]: the same coordinates without a token. See `snapshot` for errors."""
    authorize(scope.context.principal, "read")
    state = state_at(scope, statement.as_of)
    value = {**_coordinates(state, scope), "readable": True, "current": state.ver == scope.state.ver}
    return Answer(value=value, context=coordinates(past_scope(scope, state)))


def _coordinates(state: SpaceState, scope: Scope) -> dict[str, Json]:
    return {
        "space_id": state.meta.space_id,
        "snapshot_seq": state.seq,
        "committed_at": format_instant(state.at),
        "tx_id": transaction_id(state.ver, scope.state.meta.salt),
        "schema_environment_version": state.meta.schema.version,
    }
