"""The two gates: every write passes `authorize`, every read passes `visible` (KIP §28-31).

What lives here: who is asking, as the transport verified it, and the decision on one action or one element. What
must never live here: policies and grants themselves; whoever builds the `Principal` turns them into it. Nothing
an author can write reaches this module: authority comes from the verified caller alone (KIP §2.11, §88.1).

An owner may do everything and see everything: every field left at its default means no restriction.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.errors import NoemaError
from core.model.elements import AnyElement, Assertion, Concept, Origin, Proposition

Action = Literal[
    "read", "search", "project", "export", "create", "update", "ensure", "assert", "retract", "supersede",
    "correct", "transition", "derive", "manage_retention", "archive", "tombstone", "purge", "merge_identity",
    "bind_canonical_identity", "import", "restore",
]  # fmt: skip
"""What is done; each kind of deed asks for a permission of its own."""

PERMISSIONS: Final[dict[Action, tuple[str, ...]]] = {
    "read": ("read",),
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
    "archive": ("archive",),
    "tombstone": ("tombstone",),
    "purge": ("purge",),
    "merge_identity": ("merge_identity",),
    "bind_canonical_identity": ("bind_canonical_identity",),
    "import": ("import",),
    "restore": ("restore",),
}
"""The permissions, by their names in KIP §29, of which a caller needs one for a deed."""


class Principal(msgspec.Struct, frozen=True):
    """The authenticated caller, never taken from a request body (KIP §28.2).

    id: the verified subject; channel: the way it came; permissions: those held (KIP §29), None for all;
    actors: ids of the Concepts it may speak for (ActorBinding, KIP §28.3), None for any;
    hidden: classifications whose elements it may not discover; projected: those that it may not discover either,
    and whose claims and Evidence count all the same in what it asks to be projected (KIP §29.4, §49.2);
    everywhere: the credential is good for every space of the service, so that their ids are no secret to it.
    """

    id: str
    channel: str = "kip"
    permissions: frozenset[str] | None = None
    actors: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()
    projected: frozenset[str] = frozenset()
    everywhere: bool = False

    @property
    def origin(self) -> Origin:
        """What the engine records as the origin of a write (KIP §6.2)."""
        return Origin(principal=self.id, channel=self.channel)


def allows(principal: Principal, action: Action) -> bool:
    """Whether the caller holds a permission for an action."""
    held = principal.permissions
    return held is None or any(permission in held for permission in PERMISSIONS[action])


def authorize(principal: Principal, action: Action, element: AnyElement | None = None) -> None:
    """Let an action pass, on one element or on the space, or refuse it.

    Raises:
        NoemaError: NotFoundOrNotVisible for an element the caller may not discover (existence-neutral, KIP
            §30.4), else NotAuthorized; RetractionNotAuthorized where the caller may not speak for the assertor.
    """
    if element is not None and not visible(principal, element):
        raise NoemaError("NotFoundOrNotVisible", "there is no such element, or you may not see it")
    if not allows(principal, action):
        raise NoemaError(
            "NotAuthorized",
            f"you may not {action.replace('_', ' ')} here",
            details={"permissions": list(PERMISSIONS[action])},
        )
    if (
        action == "retract"
        and isinstance(element, Assertion)
        and not represents(principal, element.asserted_by)
    ):
        raise NoemaError(
            "RetractionNotAuthorized",
            "only who made an Assertion, or a representative, may withdraw it",
            details={"assertion": element.id},
        )


def represents(principal: Principal, actor: str) -> bool:
    """Whether the caller may act as a semantic actor (KIP §28.4); recording what an actor said needs no binding."""
    return principal.actors is None or actor in principal.actors


def visible(principal: Principal, element: AnyElement) -> bool:
    """Whether the caller may know that an element exists. Asked before matching, counting and ranking (KIP §88.6)."""
    if not principal.hidden and not principal.projected:
        return True
    return element.governance.classification not in principal.hidden | principal.projected


def projectable(principal: Principal, element: AnyElement) -> bool:
    """Whether an element may count in a projection for the caller, who may be shown nothing of it (KIP §29.4).

    Claims and their grounds may; what a statement says, and about whom, must be visible: a status about it would
    show it.
    """
    if isinstance(element, (Concept, Proposition)):
        return visible(principal, element)
    return element.governance.classification not in principal.hidden
