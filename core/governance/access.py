"""`Access`: what one caller may do and see, compiled once per unit and asked once per element (KIP §29-31, §88.6).

What lives here: from a principal and the records of a space to decisions about elements. What must never live here:
anything an author can write. The decision depends on an element's profile alone and is made once for each
profile, so that governing a hundred thousand elements costs a hundred thousand dictionary look-ups.

An element exists for a caller only if everything that it is about exists for them: the ends of a Proposition, the
Proposition and the actor of an Assertion (KIP §30.4). What it merely refers to is left out of it instead.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, Final

import msgspec

from core.authority import Action, Principal
from core.errors import NoemaError
from core.governance.control import Control, Policy, Rule, Selector, control_of
from core.governance.holdings import Held, Holdings
from core.governance.permissions import ALL, CONTROL, PROJECT_UNSEEN
from core.governance.profile import Profile, matches
from core.model.elements import KIND_OF_TYPE, AnyElement, Assertion, Concept, Proposition
from core.model.instants import Instant
from core.model.literals import Ref
from core.model.log import SpaceMeta
from core.state.view import View

UNREADABLE: Final = frozenset({
    "governance", "retention", "facets", "structural", "client_key", "_system", "schema_ref", "key", "name",
    "canonical_id", "aliases", "attributes", "merged_into", "subject", "predicate_ref", "object", "proposition",
    "asserted_by", "stance", "mode", "confidence", "asserted_at", "valid_time", "evidence", "context_refs",
    "lifecycle", "evidence_class", "payload", "content_digest", "media_type", "observed_at", "source",
    "generated_by", "activity_class", "status", "started_at", "ended_at", "inputs", "outputs",
    "associated_actors", "parameters_digest",
})  # fmt: skip
"""The fields of all kinds by their wire names, but for what says that an element is there: id, kind, space."""

ORIGIN: Final = frozenset({"_system.origin"})
"""What takes `read_raw_origin` (Governance §110)."""

_NONE: Final[frozenset[str]] = frozenset()


def admit(principal: Principal, meta: SpaceMeta, view: View, now: Instant) -> Principal:
    """A verified caller with what it may do in a space at this moment.

    Called for every unit on the newest committed state, so authority is that of the commit and never an older
    one's (KIP §28.6). A caller from whom nothing is withheld stays as it is, and costs nothing.

    Args:
        principal: as the transport verified it; its permissions are an upper bound.
        meta: protected state of the space, at its newest.
        view: the same state, for what an Assertion is about.
        now: the request's time.
    """
    control = control_of(meta)
    if control is None:
        if not principal.hidden and not principal.projected:
            return principal
        control = _of_classes(principal)
    return msgspec.structs.replace(principal, access=Access(principal, control, view, now))


def _of_classes(principal: Principal) -> Control:
    """The records that a transport's own list of hidden labels stands for."""
    hidden = tuple(sorted(principal.hidden | principal.projected))
    who = (f"principal:{principal.id}",)
    away = Rule(
        id="hidden", effect="deny", subjects=who, permissions=("discover",), where=Selector(classifications=hidden)
    )  # fmt: skip
    rules: tuple[Rule, ...] = (away,)
    if principal.projected:
        counted = Selector(classifications=tuple(sorted(principal.projected - principal.hidden)))
        rules = (
            away,
            Rule(id="projected", effect="allow", subjects=who, permissions=(PROJECT_UNSEEN,), where=counted),
        )
    return Control(version=0, policy=Policy(default="scopes"), rules=rules)


class Access:
    """The decisions of one unit for one caller. Made on one state and thrown away with the unit."""

    def __init__(self, principal: Principal, control: Control, view: View, now: Instant) -> None:
        policy = control.policy
        limit = principal.permissions
        if limit is not None and "read" in limit:  # a token that reads has always read history and origins
            limit |= {"read_history", "read_raw_origin"}
        scopes = policy.default == "scopes"
        # a scope is no office: what concerns the control plane is held by ownership and grants alone
        everything = ALL - {PROJECT_UNSEEN, *CONTROL} if limit is None else limit
        bound = None if limit is None else limit | {PROJECT_UNSEEN}
        self.version = control.version
        self.policy = policy
        self.principal = principal.id
        self._holdings = Holdings(
            principal.id, control, now, bound=bound, base=everything if scopes else _NONE
        )
        self._view = view
        self._now = now
        self._control = control
        self._limited_actors = principal.actors
        self._any_actor = scopes and principal.actors is None
        self._named, self._by_predicate = _looked_at(control)
        self._held: dict[tuple[Any, ...], Held] = {}
        self._seen: dict[str, bool] = {}
        self._used: dict[str, None] = {}
        everywhere = self._holdings.everywhere
        calm = control.quarantined == 0
        self.open = everywhere("discover") and calm
        self.unmasked = everywhere("read") and everywhere("read_raw_origin")
        self.projects_all = self.open and everywhere("project")
        self.searches_all = self.open and everywhere("search") and everywhere("read")
        self.anywhere = self._holdings.anywhere

    @cached_property
    def digest(self) -> str:
        """A text that differs whenever what the caller may do by the records differs."""
        told = [self._holdings.records, self._control.quarantined > 0, self.policy.default_classification]
        return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()

    # --- what is held

    def may(self, permission: str) -> bool:
        """Whether a permission is held on anything at all."""
        return permission in self.anywhere

    def can(self, permission: str, element: AnyElement) -> bool:
        """Whether a permission is held on an element, leaving aside whether it exists for the caller."""
        return permission in self._on(element).permissions

    def use(self, permission: str, element: AnyElement | None) -> None:
        """Note the records that let a deed pass, for the Commit Record (Governance §178)."""
        if element is not None:
            self._used.update(dict.fromkeys(self._on(element).by.get(permission, ())))

    @property
    def used(self) -> list[str]:
        """The ids of the records that deeds were let pass by."""
        return sorted(self._used)

    def _on(self, element: AnyElement) -> Held:
        system, label = element.system, element.governance.classification
        origin = system.origin
        what: str | None = None
        if isinstance(element, Concept):
            what = element.schema_ref
        elif isinstance(element, Proposition):
            what = element.predicate_ref
        elif isinstance(element, Assertion) and self._by_predicate:
            about = self._view.get(element.proposition)
            what = about.predicate_ref if isinstance(about, Proposition) else None
        named = element.id if element.id in self._named else None
        key = type(element), what, label, origin.principal, origin.import_id is None, named
        held = self._held.get(key)
        if held is None:
            concept = isinstance(element, Concept)
            held = self._held[key] = self._holdings.on(
                Profile(
                    kind=KIND_OF_TYPE[type(element)],
                    type_ref=what if concept else None,
                    predicate_ref=None if concept else what,
                    label=label or self._control.policy.default_classification,
                    origin=origin.principal,
                    imported=origin.import_id is not None,
                    element=named,
                )
            )
        return held

    # --- what exists

    def sees(self, element: AnyElement) -> bool:
        """Whether an element exists for the caller."""
        if self.open:
            return True
        if not isinstance(element, (Proposition, Assertion)):
            return self._discovers(element)
        known = self._seen.get(element.id)
        return self._sees_statement(element) if known is None else known

    def _discovers(self, element: AnyElement) -> bool:
        held = self._on(element).permissions
        return "discover" in held and (not element.governance.quarantined or "quarantine" in held)

    def _sees_statement(self, element: AnyElement) -> bool:
        """Whether a statement and everything it is about exist for the caller; without recursion, for it may be deep."""
        met: dict[str, bool] = {}
        pending = [element]
        while pending:
            found = pending.pop()
            known = self._seen.get(found.id)
            if known is False or (known is None and not self._discovers(found)):
                self._seen[element.id] = False
                return False
            if known is None and found.id not in met:
                met[found.id] = True
                ends = (self._view.get(end) for end in _about(found))
                pending.extend(end for end in ends if end is not None)
        self._seen.update(met)
        return True

    # --- what may be read, searched, projected

    def hidden(self, element: AnyElement) -> frozenset[str]:
        """Dot paths of the fields that the caller may not read, of an element that exists for it."""
        held = self._on(element)
        if "read" not in held.permissions:
            return UNREADABLE
        return held.hidden if "read_raw_origin" in held.permissions else held.hidden | ORIGIN

    def finds(self, element: AnyElement) -> bool:
        """Whether an element may take part in a search."""
        held = self._on(element).permissions
        return "search" in held and "read" in held and self.sees(element)

    def counts(self, element: AnyElement) -> bool:
        """Whether an element may count in a projection (KIP §29.4).

        What a statement says, and about whom, must be visible, or a status about it would show it; its claims and
        their grounds need not be, for a caller whom the policy allows that.
        """
        if element.governance.quarantined:
            return False
        held = self._on(element).permissions
        statement = isinstance(element, (Concept, Proposition))
        if not statement and PROJECT_UNSEEN in held:
            return True
        return self.sees(element) and (not isinstance(element, (Proposition, Assertion)) or "project" in held)

    # --- whom the caller may speak for

    def represents(self, actor: str, claim: Assertion | None = None) -> bool:
        """Whether a binding lets the caller speak as an actor, about a claim (KIP §28.3-28.4)."""
        known = self._canonical(actor)
        limited = self._limited_actors
        if limited is not None and known not in {self._canonical(each) for each in limited}:
            return False
        if self._any_actor:
            return True
        mine = [each for each in self._control.bindings if each.principal == self.principal]
        if not mine and limited is not None and self._control.policy.default == "scopes":
            return True
        return self._holdings.active and any(
            self._canonical(each.actor) == known
            and (each.until is None or self._now < each.until)
            and (claim is None or matches(each.where, self._profile(claim), self.principal))
            for each in mine
        )

    def _profile(self, claim: Assertion) -> Profile:
        about = self._view.get(claim.proposition)
        predicate = about.predicate_ref if isinstance(about, Proposition) else None
        label = claim.governance.classification or self._control.policy.default_classification
        return Profile("assertion", None, predicate, label, self.principal, imported=False, element=claim.id)

    def _canonical(self, element_id: str) -> str:
        known = element_id
        while True:  # merges never form a circle (KIP §11.1)
            found = self._view.get(known)
            if not isinstance(found, Concept) or found.merged_into is None:
                return known
            known = found.merged_into

    @property
    def voices(self) -> frozenset[str] | None:
        """The actors that the caller may speak as, about some claims at least; None for any."""
        if self._any_actor:
            return None
        bound = {each.actor for each in self._control.bindings if each.principal == self.principal}
        known = bound or (self._limited_actors or frozenset())
        return frozenset(actor for actor in known if self.represents(actor))

    # --- what else a deed takes

    def check(self, action: Action, permission: str, element: AnyElement | None, *, strong: bool) -> None:
        """Refuse a deed that takes stronger authentication, or an approval that is not there.

        Raises:
            NoemaError: RequiresStrongerAuthentication, RequiresApproval.
        """
        policy = self._control.policy
        if permission in policy.strong and not strong:
            raise NoemaError(
                "RequiresStrongerAuthentication",
                f"{action.replace('_', ' ')} takes stronger authentication here",
                details={"permission": permission},
            )
        needed = policy.approvals.get(permission, 0)
        if needed and element is not None and not self._is_approved(permission, element.id, needed):
            raise NoemaError(
                "RequiresApproval",
                f"{action.replace('_', ' ')} of this element must be approved first",
                hint="Ask for approval through the host; the operation stays as it is.",
                details={"permission": permission, "approvals_needed": needed},
            )

    def _is_approved(self, permission: str, element_id: str, needed: int) -> bool:
        return any(
            each.operation == permission
            and each.requested_by == self.principal
            and element_id in each.ids
            and len(each.approved_by) >= needed
            and self._now < each.until
            for each in self._control.approvals
        )


def _about(element: AnyElement) -> tuple[str, ...]:
    """Ids of what a statement cannot be without."""
    if isinstance(element, Assertion):
        return element.proposition, element.asserted_by
    if isinstance(element, Proposition):
        obj = element.object
        return (element.subject, obj.id) if isinstance(obj, Ref) else (element.subject,)
    return ()


def _looked_at(control: Control) -> tuple[frozenset[str], bool]:
    """Which ids some record names, and whether one looks at predicates."""
    places = [each.where for each in control.rules]
    places += [each.where for each in control.delegations]
    places += [each.where for each in control.bindings]
    return frozenset(found for where in places for found in where.ids), any(w.predicates for w in places)
