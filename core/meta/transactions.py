"""DESCRIBE TRANSACTION: what became of a transaction, by its id or by the caller's idempotency key (KIP §68, §80).

What lives here: looking an outcome up, after a lost answer above all. What must never live here: a guess. An id or
a key of which nothing is kept is `TransactionUnknown`; that is not an abort, and nothing here ever says so.
"""

from __future__ import annotations

import msgspec

from core.authority import authorize, holds
from core.errors import NoemaError
from core.language.ast_meta import Describe
from core.meta.log import is_shown, one, seen_changes
from core.meta.operands import coordinates, text_of, world_of
from core.model.elements import Json
from core.model.ids import version_of_transaction
from core.model.log import Change, Delta
from core.transaction.record import committed_receipt, summary
from core.transaction.scope import Answer, Scope


def by_id(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE TRANSACTION :tx_id.

    Raises:
        NoemaError: TransactionUnknown.
        Missing: the commit must be handed in.
    """
    authorize(scope.context.principal, "read")
    tx_id = text_of(statement.subject, "DESCRIBE TRANSACTION")
    delta = shown_commit(tx_id, scope)
    if delta is None:
        raise _unknown()
    seen = seen_changes(delta, world_of(scope))
    return Answer(value=_described(delta, seen, scope), context=coordinates(scope))


def shown_commit(tx_id: str, scope: Scope) -> Delta | None:
    """The commit that a transaction id names, if it exists for the caller; one of hidden elements alone does not.

    Raises:
        Missing: the commit must be handed in.
    """
    delta = find_commit(tx_id, scope)
    if delta is None or not is_shown(delta, scope, seen_changes(delta, world_of(scope))):
        return None
    return delta


def _unknown() -> NoemaError:
    return NoemaError(
        "TransactionUnknown",
        "the space knows no transaction of this id, or keeps it no longer; that does not mean it was aborted",
        details={"status": "unknown"},
    )


def find_commit(tx_id: str, scope: Scope) -> Delta | None:
    """The commit that a transaction id names, or None if there is none or it is no longer kept.

    Raises:
        Missing: the commit must be handed in.
    """
    version = version_of_transaction(tx_id, scope.state.meta.salt)
    if version is None or not 1 <= version <= scope.state.ver:
        return None
    delta = one(scope, version)
    return delta if delta is not None and delta.tx_id == tx_id else None


def _described(delta: Delta, seen: list[Change], scope: Scope) -> dict[str, Json]:
    """A commit as its receipt, with who made it; the changes are those that the caller may know of."""
    who = scope.context.principal
    receipt = committed_receipt(scope.state.meta.space_id, delta)
    shown = msgspec.structs.replace(receipt, change_summary=summary(seen))
    value: dict[str, Json] = msgspec.to_builtins(shown)
    if holds(who, "read_raw_origin"):
        value["origin"] = {"principal_id": delta.origin.principal, "channel": delta.origin.channel}
    if holds(who, "read_audit") and "authority" in delta.record:
        value["authority"] = delta.record["authority"]
    packages = delta.record.get("schema_packages")
    if packages is not None:
        value["schema_packages"] = packages
    return value


def by_key(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE TRANSACTION BY IDEMPOTENCY KEY: the retained outcome of one of the caller's own keys.

    Of a request that was several transactions under one key, that of each that was done.

    Raises:
        NoemaError: TransactionUnknown.
        Missing: the retained outcome must be handed in.
    """
    key = text_of(statement.subject, "BY IDEMPOTENCY KEY")
    kept = scope.context.given.retained(scope.context.idempotency_scope, key)
    if kept is not None:
        return Answer(value=_retained(key, kept), context=coordinates(scope))
    parts = scope.context.given.retained_parts(scope.context.idempotency_scope, key)
    if not parts:
        raise NoemaError(
            "TransactionUnknown",
            "nothing is kept under this key; that does not mean that the request was aborted",
            hint="Send the request again with the same key: it is run once at most.",
            details={"status": "unknown"},
        )
    value: dict[str, Json] = {
        "idempotency": {"key": key, "replayable": True},
        "transactions": [{"operation": place, **_retained(key, parts[place])} for place in sorted(parts)],
        "note": "An operation that is not here has failed, was skipped, only read, or is not known.",
    }
    return Answer(value=value, context=coordinates(scope))


def _retained(key: str, kept: Json) -> dict[str, Json]:
    """A retained outcome as its receipt, with the key and what became of each operation."""
    return {
        **(kept["outcome"].get("receipt") or {}),
        "idempotency": {"key": key, "request_digest": kept["digest"], "replayable": True},
        "operations": [result.get("status") for result in kept["outcome"].get("results", ())],
    }
