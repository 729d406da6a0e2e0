"""What the log tells of authority: changes of the control plane, and what let each commit pass (Governance §172-178).

What lives here: the member of a Commit Record that a change of the control plane leaves, and entries read back from
commits. What must never live here: a store of its own; the log is append-only and chained, and so is its audit.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.governance.commands import AnyCommand
from core.governance.standing import Permit
from core.model.elements import Json
from core.model.instants import format_instant
from core.model.log import Delta

CONTROL: Final = "governance"  # the member of a record for a change of the control plane
DECISION: Final = "authority"  # and for what let a commit of memory pass


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision that had an effect.

    version: of the log. operation: a command's name, or `commit`. permit: the permission, and whether the host
    stepped in. before, policy_version: of the records. records: ids of what let it pass.
    """

    version: int
    space_seq: int
    tx_id: str
    time: str
    principal: str
    channel: str
    operation: str
    decision: str = "allow"
    policy_version: int = 0
    before: int = 0
    permission: str | None = None
    operator: bool = False
    acting_as: str | None = None
    command: dict[str, Json] | None = None
    approval: dict[str, Json] | None = None
    records: list[str] = []


def record_of(command: AnyCommand, permit: Permit, before: int, after: int) -> dict[str, Any]:
    """The Commit Record's member for a command."""
    told: dict[str, Json] = {
        "command": msgspec.to_builtins(command),
        "permission": permit.permission,
        "before": before,
        "policy_version": after,
        "operator": permit.operator,
    }
    if permit.approval is not None:
        told["approval"] = msgspec.to_builtins(permit.approval)
    return {CONTROL: told}


def entry_of(delta: Delta) -> Entry | None:
    """The entry of a commit; None for one of a space that had no records."""
    control, decision = delta.record.get(CONTROL), delta.record.get(DECISION)
    told = control if control is not None else decision
    if told is None:
        return None
    return Entry(
        version=delta.ver,
        space_seq=delta.seq,
        tx_id=delta.tx_id,
        time=format_instant(delta.at),
        principal=delta.origin.principal,
        channel=delta.origin.channel,
        operation="commit" if control is None else str(control["command"]["command"]),
        policy_version=told["policy_version"],
        before=told.get("before", 0),
        permission=told.get("permission"),
        operator=told.get("operator", False),
        acting_as=told.get("acting_as"),
        command=told.get("command"),
        approval=told.get("approval"),
        records=list(told.get("records", ())),
    )
