"""The two gates: every write passes `authorize`, every read passes `visible` (KIP §28-31).

What lives here: who is asking, as the transport verified it, and the decision on one action or one element. What
must never live here: policies and grants themselves (`core.governance` compiles them into the caller's `access`).
Nothing an author can write reaches this module: authority comes from the verified caller and from protected state
alone (KIP §2.11, §88.1).

An owner may do everything and see everything: every field left at its default means no restriction.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol

import msgspec

from core.errors import NoemaError
from core.model.elements import AnyElement, Assertion, Concept, Origin, Proposition

Action = Literal[
    "read", "read_history", "search", "project", "export", "create", "update", "ensure", "assert", "retract",
    "supersede", "correct", "transition", "derive", "manage_retention", "legal_hold", "archive", "tombstone",
    "purge", "merge_identity", "bind_canonical_identity", "import",
]  # fmt: skip
"""What is done; each kind of deed asks for a permission of its own."""

PERMISSIONS: Final[dict[Action, tuple[str, ...]]] = {
    "read": ("read",),
    "read_history": ("read_history",),
    "search": ("search",),
    "project": ("project",),
    "export": ("export",),
    "create": ("create",),
    "update": ("update", "maintain"),
    "ensure": ("create",),
    "assert": ("assert", "record_attributed_assertion", "assert_as_actor"),
    "retract": ("retract_own",),
    "supersede": ("supersede_own",),
    "correct": ("update",),
    "transition": ("update", "maintain"),
    "derive": ("derive",),
    "manage_retention": ("manage_retention",),
    "legal_hold": ("legal_hold",),
    "archive": ("archive",),
    "tombstone": ("tombstone",),
    "purge": ("purge",),
    "merge_identity": ("merge_identity",),
    "bind_canonical_identity": ("bind_canonical_identity",),
    "import": ("import",),
}
"""The permissions, by their names in KIP §29, of which a caller needs one for a deed."""

RECORDING: Final = ("assert", "record_attributed_assertion")
"""Permissions to record what somebody said; speaking as them is `assert_as_actor` (KIP §28.4)."""


class Access(Protocol):
    """What the records of a space allow one caller; `core.governance.access` has the one implementation."""

    policy: Any  # core.governance's Policy
    version: int
    open: bool
    unmasked: bool
    projects_all: bool
    searches_all: bool
    anywhere: frozenset[str]

    @property
    def digest(self) -> str:
        """A text that differs whenever what the caller may do by the records differs."""

    def may(self, permission: str) -> bool:
        """Whether a permission is held on anything."""

    def can(self, permission: str, element: AnyElement) -> bool:
        """Whether a permission is held on an element."""

    def use(self, permission: str, element: AnyElement | None) -> None:
        """Note that a deed was let pass by a permission."""

    @property
    def used(self) -> list[str]:
        """The ids of the records that deeds were let pass by."""

    def sees(self, element: AnyElement) -> bool:
        """Whether an element exists for the caller."""

    def hidden(self, element: AnyElement) -> frozenset[str]:
        """Dot paths of the fields of an element that the caller may not read."""

    def finds(self, element: AnyElement) -> bool:
        """Whether an element may take part in a search."""

    def counts(self, element: AnyElement) -> bool:
        """Whether an element may count in a projection."""

    def represents(self, actor: str, claim: Assertion | None = None) -> bool:
        """Whether the caller may speak as an actor, about a claim."""

    @property
    def voices(self) -> frozenset[str] | None:
        """The actors that the caller may speak as; None for any."""

    def check(self, action: Action, permission: str, element: AnyElement | None, *, strong: bool) -> None:
        """Refuse a deed that takes stronger authentication or an approval."""


class Principal(msgspec.Struct, frozen=True):
    """The authenticated caller, never taken from a request body (KIP §28.2).

    id: the verified subject; channel: the way it came; permissions: those its credential allows at most (KIP §29),
    None for all; actors: ids of the Concepts it may speak for (ActorBinding, KIP §28.3), None for any;
    hidden: classifications whose elements it may not discover; projected: those that it may not discover either,
    and whose claims and Evidence count all the same in what it asks to be projected (KIP §29.4, §49.2);
    everywhere: the credential is good for every space of the service, so that their ids are no secret to it.
    strong: the credential counts as strong authentication. acting_as: the actor it says it speaks as in this
    request, which it must be bound to. access: what the space's records allow it, once they have been asked.
    """

    id: str
    channel: str = "kip"
    permissions: frozenset[str] | None = None
    actors: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()
    projected: frozenset[str] = frozenset()
    everywhere: bool = False
    strong: bool = True
    acting_as: str | None = None
    access: Access | None = None

    @property
    def origin(self) -> Origin:
        """What the engine records as the origin of a write (KIP §6.2)."""
        return Origin(principal=self.id, channel=self.channel)

    @property
    def unlimited(self) -> bool:
        """Whether nothing limits the caller at all."""
        return self.permissions is None and self.access is None and not (self.hidden or self.projected)


_BROUGHT: Final = frozenset({"discover", "read_history", "read_raw_origin"})
"""What a scope that reads has always included; records tell them apart."""


def holds(principal: Principal, permission: str) -> bool:
    """Whether the caller holds a permission on anything here."""
    if principal.access is not None:
        return principal.access.may(permission)
    held = principal.permissions
    if held is None or permission in held:
        return True
    return permission in _BROUGHT and "read" in held  # one scope, where scopes decide


def allows(principal: Principal, action: Action) -> bool:
    """Whether the caller holds a permission for an action."""
    return any(holds(principal, permission) for permission in PERMISSIONS[action])


def authorize(principal: Principal, action: Action, element: AnyElement | None = None) -> None:
    """Let an action pass, on one element or on the space, or refuse it.

    Raises:
        NoemaError: NotFoundOrNotVisible for an element the caller may not discover (existence-neutral, KIP
            §30.4), else NotAuthorized, RequiresApproval or RequiresStrongerAuthentication; where the caller may not
            speak for the assertor, RetractionNotAuthorized or ActorBindingRequired.
    """
    if element is not None and not visible(principal, element):
        raise NoemaError("NotFoundOrNotVisible", "there is no such element, or you may not see it")
    _permit(principal, action, element)
    if isinstance(element, Assertion) and action in {"retract", "supersede"}:
        _check_standing(principal, action, element)


def authorize_new(principal: Principal, action: Action, element: AnyElement) -> None:
    """Let the creation of an element pass, now that all of it is known; it need not exist for its maker.

    Raises:
        NoemaError: as `authorize`; ActorBindingRequired for who would speak as an actor without being bound to it.
    """
    _permit(principal, action, element)
    if isinstance(element, Assertion):
        _check_attribution(principal, element)


def _permit(principal: Principal, action: Action, element: AnyElement | None) -> None:
    names, access = PERMISSIONS[action], principal.access
    if access is None or element is None:
        held = next((name for name in names if holds(principal, name)), None)
    else:
        held = next((name for name in names if access.can(name, element)), None)
    if held is None:
        raise NoemaError(
            "NotAuthorized",
            f"you may not {action.replace('_', ' ')} here",
            details={"permissions": list(names)},
        )
    if access is not None:
        access.check(action, held, element, strong=principal.strong)
        access.use(held, element)


def _check_standing(principal: Principal, action: Action, claim: Assertion) -> None:
    """Only who made a claim, or a representative, takes it back or puts another in its place (KIP §14.1, §57.4)."""
    if represents(principal, claim.asserted_by, claim):
        return
    if action == "retract":
        raise NoemaError(
            "RetractionNotAuthorized",
            "only who made an Assertion, or a representative, may withdraw it",
            details={"assertion": claim.id},
        )
    raise NoemaError(
        "ActorBindingRequired",
        "only who made an Assertion, or a representative, may put another in its place",
        details={"assertion": claim.id},
    )


def _check_attribution(principal: Principal, claim: Assertion) -> None:
    """Recording what somebody said needs no binding; speaking as them does (KIP §28.4)."""
    speaking = principal.acting_as is not None and principal.acting_as == claim.asserted_by
    access = principal.access
    may_record = any(
        holds(principal, name) if access is None else access.can(name, claim) for name in RECORDING
    )
    if may_record and not speaking:
        return
    may_speak = (
        holds(principal, "assert_as_actor") if access is None else access.can("assert_as_actor", claim)
    )
    if not may_speak or not represents(principal, claim.asserted_by, claim):
        raise NoemaError(
            "ActorBindingRequired",
            "you may not speak as this actor",
            hint="Record what the actor said, with its Evidence; or ask the host for an ActorBinding.",
            details={"actor": claim.asserted_by, "permissions": ["assert_as_actor"]},
        )


def represents(principal: Principal, actor: str, claim: Assertion | None = None) -> bool:
    """Whether the caller may act as a semantic actor (KIP §28.4); recording what an actor said needs no binding."""
    if principal.access is not None:
        return principal.access.represents(actor, claim)
    return principal.actors is None or actor in principal.actors


def visible(principal: Principal, element: AnyElement) -> bool:
    """Whether the caller may know that an element exists. Asked before matching, counting and ranking (KIP §88.6)."""
    if principal.access is not None:
        return principal.access.sees(element)
    if not principal.hidden and not principal.projected:
        return True
    return element.governance.classification not in principal.hidden | principal.projected


def projectable(principal: Principal, element: AnyElement) -> bool:
    """Whether an element may count in a projection for the caller, who may be shown nothing of it (KIP §29.4).

    Claims and their grounds may; what a statement says, and about whom, must be visible: a status about it would
    show it.
    """
    if principal.access is not None:
        return principal.access.counts(element)
    if isinstance(element, (Concept, Proposition)):
        return visible(principal, element)
    return element.governance.classification not in principal.hidden
