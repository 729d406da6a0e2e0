"""Commands of the control plane, and what each does to a space's records (Governance §5, §83, §172).

What lives here: the commands as values with a strict JSON form, the permission each takes, and the pure step from
records to records. What must never live here: memory. KML has no clause for any of this and no model tool sends one;
they come through the host's API alone (Governance §264).

Commands about elements (classification, quarantine, influence) are checked here and carried out by the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.governance.control import (
    EVERYONE,
    Approval,
    Binding,
    Ceiling,
    Control,
    Delegation,
    Group,
    Party,
    Policy,
    Record,
    Role,
    Rule,
)
from core.governance.permissions import ALL, ROLES
from core.model.elements import Json
from core.model.instants import Instant


def _spoken(name: str) -> str:
    """`PutRule` -> `put_rule`."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


class Command(Record, frozen=True, tag_field="command", tag=_spoken):
    """One command; `command` names it in JSON."""


class SetPolicy(Command, frozen=True):
    """Put another policy in force."""

    policy: Policy


class SetOwners(Command, frozen=True):
    """Say who owns the space. Only an owner may, and somebody must."""

    owners: tuple[str, ...]


class SetSelf(Command, frozen=True):
    """Designate the Concept that is the space's self, or none (KIP §5.6). It gives no authority."""

    concept: str | None = None


class PutParty(Command, frozen=True):
    """Record a principal's class and standing; one that is suspended or revoked may do nothing."""

    party: Party


class PutGroup(Command, frozen=True):
    """Make a group, or change its members."""

    group: Group


class RemoveGroup(Command, frozen=True):
    """Remove a group; what was granted to it is granted to nobody."""

    name: str


class PutRole(Command, frozen=True):
    """Make a role, or change what it stands for."""

    role: Role


class RemoveRole(Command, frozen=True):
    """Remove a role; it then stands for nothing."""

    name: str


class PutRule(Command, frozen=True):
    """Grant or deny, or change what was granted or denied under an id."""

    rule: Rule


class RemoveRule(Command, frozen=True):
    """Revoke a grant or lift a deny."""

    id: str


class PutDelegation(Command, frozen=True):
    """Lend some of one's own authority."""

    delegation: Delegation


class RemoveDelegation(Command, frozen=True):
    """Take back what was lent; so may who lent it."""

    id: str


class PutBinding(Command, frozen=True):
    """Let a principal speak as a semantic actor."""

    binding: Binding


class RemoveBinding(Command, frozen=True):
    """No longer let a principal speak as an actor."""

    id: str


class SetTrust(Command, frozen=True):
    """Put another trust state in force: the whole of it, as `core.epistemic.trust.TrustState` is written."""

    records: tuple[dict[str, Json], ...]
    default: str = "unknown"


class Classify(Command, frozen=True):
    """Put a more restricted label on elements."""

    ids: tuple[str, ...]
    label: str


class Declassify(Command, frozen=True):
    """Put a less restricted label on elements, or none; what they were made from keeps its own."""

    ids: tuple[str, ...]
    label: str | None = None


class Quarantine(Command, frozen=True):
    """Take elements out of ordinary use. That withdraws nothing that anybody said (Governance §134)."""

    ids: tuple[str, ...]


class Release(Command, frozen=True):
    """End a quarantine."""

    ids: tuple[str, ...]


class SetInfluence(Command, frozen=True):
    """Set how strongly elements may influence action (KIP §31.3). It is no tool permission."""

    ids: tuple[str, ...]
    ceiling: Ceiling


class RequestApproval(Command, frozen=True):
    """Ask for approval: of a command, or of an operation on elements by its permission's name."""

    until: Instant
    request: dict[str, Json] | None = None
    operation: str | None = None
    ids: tuple[str, ...] = ()


class Approve(Command, frozen=True):
    """Approve what somebody else asked for."""

    id: str


class WithdrawApproval(Command, frozen=True):
    """Take a request for approval away; so may who asked."""

    id: str


AnyCommand = (
    SetPolicy | SetOwners | SetSelf | PutParty | PutGroup | RemoveGroup | PutRole | RemoveRole | PutRule | RemoveRule
    | PutDelegation | RemoveDelegation | PutBinding | RemoveBinding | SetTrust | Classify | Declassify | Quarantine
    | Release | SetInfluence | RequestApproval | Approve | WithdrawApproval
)  # fmt: skip

TAKES: Final[dict[type[Command], str]] = {
    SetPolicy: "manage_policy", SetOwners: "manage_membership", SetSelf: "manage_policy",
    PutParty: "manage_membership", PutGroup: "manage_membership", RemoveGroup: "manage_membership",
    PutRole: "manage_policy", RemoveRole: "manage_policy", PutDelegation: "manage_delegation",
    RemoveDelegation: "manage_delegation", PutBinding: "manage_actor_binding",
    RemoveBinding: "manage_actor_binding", SetTrust: "manage_trust", Classify: "classify",
    Declassify: "declassify", Quarantine: "quarantine", Release: "quarantine", SetInfluence: "elevate_authority",
    Approve: "approve_high_risk",
}  # fmt: skip
"""The permission that a command takes; of the others it depends on what they are about."""


def decode_command(value: Any) -> AnyCommand:  # a JSON value
    """A command from its JSON form.

    Raises:
        NoemaError: InvalidRequestEnvelope.
    """
    try:
        found: AnyCommand = msgspec.convert(value, AnyCommand)
    except msgspec.ValidationError as error:
        raise NoemaError("InvalidRequestEnvelope", f"this is no command of governance: {error}") from error
    return found


def name_of(command: Command) -> str:
    """The name of a command, as in JSON."""
    return _spoken(type(command).__name__)


def permission_of(command: AnyCommand, control: Control) -> str:
    """The permission that a command takes."""
    if isinstance(command, PutRule):
        return _ruling(command.rule)
    if isinstance(command, RemoveRule):
        rule = _found(control.rules, lambda each: each.id == command.id)
        return _ruling(rule)
    if isinstance(command, RequestApproval):
        return _requested(command, control)
    if isinstance(command, WithdrawApproval):
        return "approve_high_risk"
    return TAKES[type(command)]


def _ruling(rule: Rule | None) -> str:
    """Granting is for who manages grants; denying is policy."""
    return "manage_policy" if rule is not None and rule.effect == "deny" else "manage_grants"


def _requested(command: RequestApproval, control: Control) -> str:
    if (command.request is None) == (command.operation is None):
        raise NoemaError("InvalidRequestEnvelope", "ask for approval of a `request` or of an `operation`")
    if command.operation is not None:
        if command.operation not in ALL or not command.ids:
            raise NoemaError("InvalidRequestEnvelope", "an operation is a permission's name, with `ids`")
        return command.operation
    inner = decode_command(command.request)
    if isinstance(inner, (RequestApproval, Approve, WithdrawApproval)):
        raise NoemaError("InvalidRequestEnvelope", "approvals are not themselves approved")
    return permission_of(inner, control)


# --- from records to records


def apply(control: Control, command: AnyCommand, principal: str, now: Instant, approval_id: str) -> Control:
    """The records after a command; the same value where it changes none. Authority is the caller's to check.

    Raises:
        NoemaError: ConstraintViolation, NotFoundOrNotVisible or IdentityConflict for a record that cannot be.
    """
    step = _STEPS.get(type(command))
    changed = control if step is None else step(control, command)
    if isinstance(command, RequestApproval):
        changed = _asked(control, command, principal, now, approval_id)
    elif isinstance(command, Approve):
        changed = _approved(control, command, principal, now)
    return changed


def bumped(before: Control, after: Control) -> Control:
    """The next version of the records, or the same value if nothing differs."""
    return before if after == before else msgspec.structs.replace(after, version=before.version + 1)


Step = Callable[[Control, Any], Control]


def _with(control: Control, **lists: Any) -> Control:
    return msgspec.structs.replace(control, **lists)


def _found[T](records: Iterable[T], test: Callable[[T], bool]) -> T | None:
    return next((each for each in records if test(each)), None)


def _put[T](records: tuple[T, ...], record: T, key: Callable[[T], str]) -> tuple[T, ...]:
    kept = [each for each in records if key(each) != key(record)]
    return (*kept, record)


def _without[T](records: tuple[T, ...], name: str, key: Callable[[T], str], what: str) -> tuple[T, ...]:
    kept = tuple(each for each in records if key(each) != name)
    if len(kept) == len(records):
        raise NoemaError("NotFoundOrNotVisible", f"there is no {what} {name[:80]!r}")
    return kept


def _policy(control: Control, command: SetPolicy) -> Control:
    policy = command.policy
    if len(set(policy.classifications)) < len(policy.classifications):
        raise NoemaError("ConstraintViolation", "a label stands once in the order of classifications")
    if policy.default_classification not in policy.classifications:
        raise NoemaError("ConstraintViolation", "the default classification is one of the order")
    if any(name not in ALL for name in (*policy.approvals, *policy.strong)):
        raise NoemaError("ConstraintViolation", "approvals and strong name permissions")
    if any(needed < 1 for needed in policy.approvals.values()):
        raise NoemaError("ConstraintViolation", "an operation needs at least one approval, or is not listed")
    return _with(control, policy=policy)


def _owners(control: Control, command: SetOwners) -> Control:
    if not command.owners:
        raise NoemaError("ConstraintViolation", "a space has at least one owner")
    return _with(control, owners=tuple(dict.fromkeys(command.owners)))


def _rule(control: Control, command: PutRule) -> Control:
    rule = command.rule
    if not rule.subjects or not rule.permissions:
        raise NoemaError("ConstraintViolation", "a rule names subjects and permissions")
    for subject in rule.subjects:
        if subject != EVERYONE and not subject.startswith(("principal:", "group:")):
            raise NoemaError("ConstraintViolation", f"{subject[:80]!r} is no principal:, no group: and not *")
    _check_permissions(rule.permissions, control)
    if rule.fields and "read" not in rule.permissions:
        raise NoemaError("ConstraintViolation", "fields are hidden from readers: name the permission read")
    return _with(control, rules=_put(control.rules, rule, lambda each: each.id))


def _check_permissions(names: Iterable[str], control: Control) -> None:
    roles = {*ROLES, *(role.name for role in control.roles)}
    for name in names:
        known = name == EVERYONE or name in ALL or (name.startswith("role:") and name[5:] in roles)
        if not known:
            raise NoemaError(
                "ConstraintViolation",
                f"there is no permission {name[:80]!r}",
                hint=f"They are {', '.join(sorted(ALL))}; or role: with one of {', '.join(sorted(roles))}.",
                details={"permissions": sorted(ALL), "roles": sorted(roles)},
            )


def _role(control: Control, command: PutRole) -> Control:
    if command.role.name in ROLES:
        raise NoemaError("IdentityConflict", f"every space has a role {command.role.name}")
    if any(name not in ALL for name in command.role.permissions):
        raise NoemaError("ConstraintViolation", "a role stands for permissions by their names")
    return _with(control, roles=_put(control.roles, command.role, lambda each: each.name))


def _delegate(control: Control, command: PutDelegation) -> Control:
    lent = command.delegation
    if lent.delegator == lent.delegate:
        raise NoemaError("ConstraintViolation", "nobody lends authority to themselves")
    _check_permissions(lent.permissions, control)
    return _with(control, delegations=_put(control.delegations, lent, lambda each: each.id))


def _asked(
    control: Control, command: RequestApproval, principal: str, now: Instant, approval_id: str
) -> Control:
    if command.until <= now:
        raise NoemaError("ConstraintViolation", "an approval is asked for until a time to come")
    asked = Approval(
        id=approval_id,
        operation=_requested(command, control),
        requested_by=principal,
        digest="" if command.request is None else digest_of_command(decode_command(command.request)),
        until=command.until,
        ids=command.ids,
    )
    standing = [each for each in control.approvals if each.until > now]
    return _with(control, approvals=(*standing, asked))


def _approved(control: Control, command: Approve, principal: str, now: Instant) -> Control:
    asked = _found(control.approvals, lambda each: each.id == command.id)
    if asked is None or asked.until <= now:
        raise NoemaError("NotFoundOrNotVisible", "there is no such request for approval, or it is over")
    if asked.requested_by == principal:
        raise NoemaError("NotAuthorized", "nobody approves what they asked for themselves")
    if principal in asked.approved_by:
        return control
    approved = msgspec.structs.replace(asked, approved_by=(*asked.approved_by, principal))
    return _with(control, approvals=_put(control.approvals, approved, lambda each: each.id))


def digest_of_command(command: Command) -> str:
    """What an approval of a command is bound to."""
    return msgspec.json.encode(command, order="deterministic").decode()


_STEPS: Final[dict[type[Command], Step]] = {
    SetPolicy: _policy,
    SetOwners: _owners,
    PutParty: lambda control, c: _with(control, parties=_put(control.parties, c.party, lambda each: each.id)),
    PutGroup: lambda control, c: _with(control, groups=_put(control.groups, c.group, lambda each: each.name)),
    RemoveGroup: lambda control, c: _with(
        control, groups=_without(control.groups, c.name, lambda each: each.name, "group")
    ),
    PutRole: _role,
    RemoveRole: lambda control, c: _with(
        control, roles=_without(control.roles, c.name, lambda each: each.name, "role")
    ),
    PutRule: _rule,
    RemoveRule: lambda control, c: _with(
        control, rules=_without(control.rules, c.id, lambda each: each.id, "rule")
    ),
    PutDelegation: _delegate,
    RemoveDelegation: lambda control, c: _with(
        control, delegations=_without(control.delegations, c.id, lambda each: each.id, "delegation")
    ),
    PutBinding: lambda control, c: _with(
        control, bindings=_put(control.bindings, c.binding, lambda each: each.id)
    ),
    RemoveBinding: lambda control, c: _with(
        control, bindings=_without(control.bindings, c.id, lambda each: each.id, "binding")
    ),
    WithdrawApproval: lambda control, c: _with(
        control, approvals=_without(control.approvals, c.id, lambda each: each.id, "request for approval")
    ),
}
"""The commands that change records by themselves; the rest need who asks and when, or change elements."""
