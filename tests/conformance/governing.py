"""The hands of a host on a world's control plane (conformance paper §5: set policy, per-Principal authority).

What lives here: grants, denies, delegations, bindings and approvals, as commands of the real service. Canonical
principals (§10) come from the transport without any limit of their own once the world is governed: what they may do
is then decided by the space's records alone.
"""

from __future__ import annotations

from typing import Any, Final

from core.authority import Principal
from core.errors import NoemaError
from core.governance.audit import Entry
from core.governance.commands import (
    AnyCommand,
    Classify,
    Declassify,
    PutBinding,
    PutDelegation,
    PutGroup,
    PutRule,
    RemoveRule,
    SetPolicy,
)
from core.governance.control import Binding, Delegation, Group, Policy, Rule, Selector, control_of
from core.service.governance import GovernanceService, Outcome
from core.state.space import SpaceState

_MINUTE: Final = 60_000


class Governing:
    """What a `World` can do to its control plane; mixed into it."""

    principals: dict[str, Principal]
    ref: dict[str, dict[str, str]]
    clock: Any
    _process: Any

    def state(self) -> SpaceState:
        """The newest state; the world's own."""
        raise NotImplementedError

    @property
    def governance(self) -> GovernanceService:
        """The use case of the control plane, in the process that is running."""
        return GovernanceService(self._process.spaces, self._process.commits, self.clock)

    def govern(self, permissions: dict[str, frozenset[str] | None], **policy: Any) -> None:
        """Put records in force that give the canonical principals what §10 says, and nobody anything else.

        `alice_writer` is bound to Alice; `reader_hidden` may not discover what is `secret`.
        """
        self.command(SetPolicy(policy=Policy(**policy)))
        for name, held in permissions.items():
            self.principals[name] = Principal(name, "kip")
            if held is not None:
                self.grant(name, *sorted(held), name=f"canon:{name}")
        self.bind_actor("alice_writer", "alice")
        self.deny("reader_hidden", "discover", name="canon:secrets", classifications=("secret",))

    def command(
        self, command: AnyCommand, by: str | Principal = "owner", *, operator: bool = False
    ) -> Outcome:
        """Send a command of governance."""
        who = self.principals[by] if isinstance(by, str) else by
        self.clock.advance(1000)
        return self.governance.execute(
            "test", command, who, deadline=self.clock.time + _MINUTE, operator=operator
        )

    def command_refused(self, command: AnyCommand, by: str | Principal = "owner") -> str:
        """The code with which a command must be refused."""
        try:
            self.command(command, by)
        except NoemaError as error:
            return error.code
        raise AssertionError("the command was carried out")

    def grant(
        self,
        principal: str,
        *permissions: str,
        name: str | None = None,
        fields: tuple[str, ...] = (),
        **where: Any,
    ) -> str:
        """Allow a principal (or `group:...`, or `*`) permissions on what a selector takes in; the rule's id."""
        return self._rule("allow", principal, permissions, name, fields, where)

    def deny(
        self,
        principal: str,
        *permissions: str,
        name: str | None = None,
        fields: tuple[str, ...] = (),
        **where: Any,
    ) -> str:
        """Deny as `grant` allows; a deny overrides."""
        return self._rule("deny", principal, permissions, name, fields, where)

    def _rule(
        self,
        effect: Any,
        principal: str,
        permissions: tuple[str, ...],
        name: str | None,
        fields: tuple[str, ...],
        where: dict[str, Any],
    ) -> str:
        subject = principal if principal == "*" or ":" in principal else f"principal:{principal}"
        found = name or f"{effect}:{principal}:{'+'.join(permissions)}"
        rule = Rule(
            id=found, effect=effect, subjects=(subject,), permissions=permissions, fields=fields,
            where=Selector(**where),
        )  # fmt: skip
        self.command(PutRule(rule=rule))
        return found

    def revoke(self, rule: str) -> None:
        """Revoke a grant or lift a deny by its id."""
        self.command(RemoveRule(id=rule))

    def group(self, name: str, *members: str) -> None:
        """Make a group of principals."""
        self.command(PutGroup(group=Group(name=name, members=members)))

    def delegate(
        self, delegator: str, delegate: str, *permissions: str, by: str = "owner", **more: Any
    ) -> str:
        """Lend part of one principal's authority to another; the delegation's id."""
        name = f"delegation:{delegator}:{delegate}"
        lent = Delegation(id=name, delegator=delegator, delegate=delegate, permissions=permissions, **more)
        self.command(PutDelegation(delegation=lent), by)
        return name

    def bind_actor(self, principal: str, actor: str, **more: Any) -> str:
        """Let a principal speak as one of the canonical actors; the binding's id."""
        name = f"binding:{principal}:{actor}"
        bound = Binding(id=name, principal=principal, actor=self.ref[actor]["id"], **more)
        self.command(PutBinding(binding=bound))
        return name

    def mark(self, *found: dict[str, str], label: str = "secret") -> None:
        """Put a more restricted label on elements, as the control plane does it."""
        self.command(Classify(ids=tuple(each["id"] for each in found), label=label))

    def declassify(self, *found: dict[str, str], label: str | None = None, by: str = "owner") -> None:
        """Lower the label of elements."""
        self.command(Declassify(ids=tuple(each["id"] for each in found), label=label), by)

    def audit(self, by: str = "owner") -> list[Entry]:
        """Everything the audit tells."""
        return self.governance.audit("test", self.principals[by], limit=1_000)[0]

    def policy_version(self) -> int:
        """The version of the records in force; 0 without any."""
        control = control_of(self.state().meta)
        return 0 if control is None else control.version
