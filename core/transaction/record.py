"""What a transaction leaves behind: its Commit Record, its Receipt and its Change Envelope (KIP §33, §36).

What lives here: how each is derived from a draft or a delta, so that they never disagree. What must never live
here: anything that decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from core.model.elements import KIND_OF_TYPE, AnyElement
from core.model.instants import format_instant
from core.model.log import Change, Delta, SpaceMeta
from core.protocol.response import Receipt
from core.state.space import SpaceState
from core.transaction.draft import Draft

_LISTED: Final = 200  # changes that a receipt lists; the change stream has them all


def record_of(
    draft: Draft, *, request_digest: str, result_digest: str, transaction_class: str
) -> dict[str, Any]:
    """The fields of the Commit Record that the delta itself does not say (KIP §33.1)."""
    return {
        "request_digest": request_digest,
        "result_digest": result_digest,
        "semantic_plan_digest": _plan_digest(draft),
        "schema_environment_version": draft.meta.schema.version,
        "schema_packages": list(draft.meta.schema.packages),
        "change_summary": summary(draft.changes(), listed=0),
        "transaction_class": transaction_class,
    }


def _plan_digest(draft: Draft) -> str:
    """A digest of what was resolved: every element as it will stand, in the schema that gave it meaning."""
    body = hashlib.sha256(msgspec.msgpack.encode((draft.meta.schema.version, draft.meta.schema.packages)))
    for change in draft.changes():
        body.update(msgspec.msgpack.encode(draft.get(change.id)))
    return f"sha256:{body.hexdigest()}"


def summary(changes: Sequence[Change], *, listed: int = _LISTED) -> dict[str, Any]:
    """How much changed, and the first `listed` changes one by one."""
    out: dict[str, Any] = dict.fromkeys(("created", "updated", "purged"), 0)
    for change in changes:
        out[change.op] += 1
    if listed:
        out["changes"] = [msgspec.to_builtins(change) for change in changes[:listed]]
        if len(changes) > listed:
            out["truncated"] = True
    return out


def committed_receipt(space_id: str, delta: Delta) -> Receipt:
    """The Receipt of a commit, also of one read back from the log."""
    record = delta.record
    return Receipt(
        status="committed",
        tx_id=delta.tx_id,
        space_id=space_id,
        snapshot_seq=delta.snapshot_seq,
        space_seq=delta.seq,
        committed_at=format_instant(delta.at),
        transaction_class=delta.transaction_class,
        request_digest=record.get("request_digest", msgspec.UNSET),
        semantic_plan_digest=record.get("semantic_plan_digest", msgspec.UNSET),
        result_digest=record.get("result_digest", msgspec.UNSET),
        schema_environment_version=record.get("schema_environment_version", msgspec.UNSET),
        change_summary=summary(changes_of(delta)),
    )


def no_effect_receipt(state: SpaceState, request_digest: str, result_digest: str) -> Receipt:
    """The Receipt of a transaction that changed nothing: no `space_seq`, and no `tx_id`, for there is no commit."""
    return Receipt(
        status="no_effect",
        space_id=state.meta.space_id,
        snapshot_seq=state.seq,
        transaction_class="cognitive",
        request_digest=request_digest,
        result_digest=result_digest,
        schema_environment_version=state.meta.schema.version,
    )


def changes_of(delta: Delta) -> list[Change]:
    """What a commit did to each element, in the order of the delta."""
    return [
        Change(id=element.id, op=_op(element, delta.tx_id), version=element.system.version)
        for element in delta.puts
    ] + [Change(id=gone, op="purged", version=0) for gone in delta.gone]


def _op(element: AnyElement, tx_id: str) -> Any:  # one of Change's three words
    if element.system.state == "purged":
        return "purged"
    return "created" if element.system.created_tx == tx_id else "updated"


def change_envelope(meta: SpaceMeta, delta: Delta) -> dict[str, Any]:
    """The one Change Envelope of a commit (KIP §36.1); deduplicated by space_id, space_seq and tx_id."""
    kinds = {element.id: KIND_OF_TYPE[type(element)] for element in delta.puts}
    return {
        "space_id": meta.space_id,
        "space_seq": delta.seq,
        "tx_id": delta.tx_id,
        "committed_at": format_instant(delta.at),
        "transaction_class": delta.transaction_class,
        "changes": [
            {"id": change.id, "kind": kinds.get(change.id, ""), "op": change.op, "version": change.version}
            for change in changes_of(delta)
        ],
    }
