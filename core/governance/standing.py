"""Whether a principal may send a command of the control plane: authority about authority (Governance §221).

What lives here: the permission, the approval, and that nobody raises their own authority. What must never live here:
the carrying out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import NoemaError
from core.governance.commands import (
    AnyCommand,
    PutDelegation,
    PutRule,
    RemoveDelegation,
    RequestApproval,
    SetOwners,
    WithdrawApproval,
    digest_of_command,
    permission_of,
)
from core.governance.control import Approval, Binding, Control
from core.governance.holdings import Holdings, expand, roles_of
from core.model.instants import Instant


class Permit(msgspec.Struct, frozen=True):
    """By what a command was let pass: its permission, the approval it used up, and whether the host stepped in."""

    permission: str
    approval: Approval | None = None
    operator: bool = False


def permit(
    control: Control,
    command: AnyCommand,
    principal: str,
    now: Instant,
    *,
    bound: frozenset[str] | None = None,
    strong: bool = True,
    operator: bool = False,
) -> Permit:
    """Let a command pass, or refuse it.

    Args:
        control: the records in force.
        command: what is asked for.
        principal: who asks.
        now: when.
        bound: what the caller's credential allows at most.
        strong: the credential counts as strong authentication.
        operator: the host vouches for the caller: break glass. Nothing but the shape of the records is then checked,
            and the audit says so (Governance §171).

    Raises:
        NoemaError: NotAuthorized, RequiresApproval, RequiresStrongerAuthentication.
    """
    permission = permission_of(command, control)
    if operator:
        return Permit(permission, operator=True)
    held = Holdings(principal, control, now, bound=bound)
    if not _is_own(command, control, principal) and permission not in held.anywhere:
        raise NoemaError(
            "NotAuthorized", f"this takes the permission {permission}", details={"permissions": [permission]}
        )
    if permission in control.policy.strong and not strong:
        raise NoemaError(
            "RequiresStrongerAuthentication",
            "this takes stronger authentication here",
            details={"permission": permission},
        )
    _check_giving(control, command, principal, held)
    if isinstance(command, (RequestApproval, WithdrawApproval)):
        return Permit(permission)
    return Permit(permission, _approval(control, command, principal, permission, now))


def _is_own(command: AnyCommand, control: Control, principal: str) -> bool:
    """Whether a command only takes back what the caller gave or asked for."""
    if isinstance(command, RemoveDelegation):
        return any(each.id == command.id and each.delegator == principal for each in control.delegations)
    if isinstance(command, WithdrawApproval):
        return any(each.id == command.id and each.requested_by == principal for each in control.approvals)
    return False


def _check_giving(control: Control, command: AnyCommand, principal: str, held: Holdings) -> None:
    """Nobody gives what they do not hold, save an owner, who holds everything (Governance §31)."""
    if held.owner and held.active:
        return
    roles = roles_of(control)
    if isinstance(command, SetOwners):
        raise NoemaError("NotAuthorized", "only an owner says who owns the space")
    if isinstance(command, PutRule) and command.rule.effect == "allow":
        _check_held(expand(command.rule.permissions, roles), held)
    if isinstance(command, PutDelegation):
        if command.delegation.delegator != principal:
            raise NoemaError("NotAuthorized", "only an owner lends somebody else's authority")
        missing = expand(command.delegation.permissions, roles) - held.anywhere
        if missing:
            raise _not_held(missing)


def _check_held(permissions: frozenset[str], held: Holdings) -> None:
    missing = {name for name in permissions if not held.everywhere(name)}
    if missing:
        raise _not_held(missing)


def _not_held(missing: Any) -> NoemaError:  # a set of names
    return NoemaError(
        "NotAuthorized",
        "you may not give what you do not hold yourself",
        details={"permissions": sorted(missing)},
    )


def check_gain(before: Control, after: Control, principal: str, now: Instant) -> None:
    """Refuse a change by which who makes it would hold more than before (Governance §221-222).

    Raises:
        NoemaError: NotAuthorized.
    """
    was, is_now = Holdings(principal, before, now), Holdings(principal, after, now)
    if was.owner:
        return
    gained = is_now.anywhere - was.anywhere
    wider = {name for name in is_now.anywhere if is_now.everywhere(name) and not was.everywhere(name)}
    more = not is_now.given <= was.given or not was.withheld <= is_now.withheld
    voices = _bindings(after, principal) - _bindings(before, principal)
    looser = after.policy.default != before.policy.default or after.policy.strong != before.policy.strong
    if gained or wider or more or voices or looser:
        raise NoemaError(
            "NotAuthorized",
            "nobody raises their own authority; somebody else must do this",
            details={"permissions": sorted(gained | wider)},
        )


def _bindings(control: Control, principal: str) -> frozenset[Binding]:
    return frozenset(each for each in control.bindings if each.principal == principal)


def _approval(
    control: Control, command: AnyCommand, principal: str, permission: str, now: Instant
) -> Approval | None:
    needed = control.policy.approvals.get(permission, 0)
    if not needed:
        return None
    digest = digest_of_command(command)
    for each in control.approvals:
        fits = each.digest == digest and each.requested_by == principal and each.operation == permission
        if fits and now < each.until and len(each.approved_by) >= needed:
            return each
    raise NoemaError(
        "RequiresApproval",
        f"this must be approved by {needed} others first",
        hint="Send request_approval with this command as its `request`; then send it again, once approved.",
        details={"permission": permission, "approvals_needed": needed},
    )
