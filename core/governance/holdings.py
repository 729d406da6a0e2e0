"""What one principal holds: the records that apply to it, compiled, and what they come to on one profile.

What lives here: deny over allow, attenuation of what was lent, masks of fields. What must never live here: elements
and views (`access`), and records that are not in force.

    protocol invariant  >  explicit deny  >  grant, role, ownership, delegation  >  the policy's default
                                                                                            (KIP §30.2, Governance §42)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from core.governance.control import ANYTHING, EVERYONE, Control, Delegation, Rule
from core.governance.permissions import ALL, BRINGS, PROJECT_UNSEEN, ROLES, WITHOUT
from core.governance.profile import Profile, matches
from core.model.instants import Instant

_NONE: frozenset[str] = frozenset()
_EVERYTHING = ALL - {PROJECT_UNSEEN}  # what an owner holds, and `*` means; the rest is only ever named


class Held(msgspec.Struct, frozen=True):
    """What is held on elements of one profile.

    permissions: those held. by: for each, the ids of the records that give it. hidden: dot paths that stay hidden
    from a reader.
    """

    permissions: frozenset[str]
    by: dict[str, tuple[str, ...]]
    hidden: frozenset[str] = _NONE


class _Applied:
    """A rule with what it comes to, reckoned once."""

    __slots__ = ("allows", "fields", "permissions", "reads", "rule", "takes", "where")

    def __init__(self, rule: Rule, permissions: frozenset[str]) -> None:
        self.rule = rule
        self.where = None if rule.where == ANYTHING else rule.where
        self.permissions = permissions
        self.allows = tuple(_bringing(permissions))
        self.takes = tuple(_taking(permissions))
        self.fields = frozenset(rule.fields)
        self.reads = "read" in permissions


class _Lent(msgspec.Struct, frozen=True):
    delegation: Delegation
    permissions: frozenset[str]
    source: Holdings


def roles_of(control: Control) -> dict[str, tuple[str, ...]]:
    """The roles there are, with their permissions: everybody's, and the space's own."""
    return {**ROLES, **{role.name: role.permissions for role in control.roles}}


def expand(names: Iterable[str], roles: dict[str, tuple[str, ...]]) -> frozenset[str]:
    """Permissions by their names, by roles, or `*` for all but `project_unseen`, which is only ever named."""
    out: set[str] = set()
    for name in names:
        if name == EVERYONE:
            out |= _EVERYTHING
        elif name.startswith("role:"):
            out.update(roles.get(name[5:], ()))
        else:
            out.add(name)
    return frozenset(out)


def _bringing(permissions: frozenset[str]) -> frozenset[str]:
    return permissions.union(*(BRINGS.get(name, _NONE) for name in permissions))


def _taking(permissions: frozenset[str]) -> frozenset[str]:
    return permissions.union(*(WITHOUT.get(name, _NONE) for name in permissions))


class Holdings:
    """What a principal holds by the records in force at one instant.

    Args:
        principal: whose.
        control: the records.
        now: of records with a time.
        bound: what its credential allows at most; None: everything.
        base: what it holds without any record, where the policy's default is its scope.
        lending: principals whose loans are being followed, so that a circle of them gives nothing.
    """

    def __init__(
        self,
        principal: str,
        control: Control,
        now: Instant,
        *,
        bound: frozenset[str] | None = None,
        base: frozenset[str] = _NONE,
        lending: tuple[str, ...] = (),
    ) -> None:
        self.principal = principal
        self._bound = None if bound is None else _bringing(bound)
        party = next((each for each in control.parties if each.id == principal), None)
        self.active = party is None or party.status == "active"
        roles = roles_of(control)
        subjects = {
            EVERYONE,
            f"principal:{principal}",
            *(f"group:{group.name}" for group in control.groups if principal in group.members),
        }
        self.owner = self.active and principal in control.owners
        self._base = _bringing(base) if self.active else _NONE
        applied = [
            _Applied(rule, expand(rule.permissions, roles))
            for rule in control.rules
            if _in_force(rule.since, rule.until, now) and not subjects.isdisjoint(rule.subjects)
        ]
        self._allows = [each for each in applied if each.rule.effect == "allow" and self.active]
        self._denies = [each for each in applied if each.rule.effect == "deny"]
        self._lent = list(self._loans(control, now, roles, lending)) if self.active else []

    def _loans(
        self, control: Control, now: Instant, roles: dict[str, tuple[str, ...]], lending: tuple[str, ...]
    ) -> Iterator[_Lent]:
        chain = (*lending, self.principal)
        for delegation in control.delegations:
            fresh = _in_force(None, delegation.until, now) and delegation.delegator not in chain
            # KIP §28.5: what was lent is lent on only where that was said
            if delegation.delegate != self.principal or not fresh or (lending and not delegation.redelegable):
                continue
            source = Holdings(delegation.delegator, control, now, lending=chain)
            yield _Lent(delegation, expand(delegation.permissions, roles), source)

    # --- on one profile

    def on(self, profile: Profile) -> Held:
        """What is held on elements of a profile."""
        by: dict[str, dict[str, None]] = {}
        masks: list[frozenset[str]] = []
        for names, record, mask in self._given(profile):
            for name in names:
                by.setdefault(name, {})[record] = None
            if mask is not None:
                masks.append(mask)
        hidden = frozenset.intersection(*masks) if masks else _NONE
        for each in self._denies:
            if each.where is not None and not matches(each.where, profile, self.principal):
                continue
            if each.fields:
                hidden |= each.fields
            else:
                for name in each.takes:
                    by.pop(name, None)
        if self._bound is not None:
            by = {name: records for name, records in by.items() if name in self._bound}
        return Held(frozenset(by), {name: tuple(records) for name, records in by.items()}, hidden)

    def _given(self, profile: Profile) -> Iterator[tuple[Iterable[str], str, frozenset[str] | None]]:
        """What each source gives: permissions, the record's id, and of one to read the fields it keeps hidden."""
        if self.owner:
            yield _EVERYTHING, "owner", _NONE
        if self._base:
            yield self._base, "scope", _NONE if "read" in self._base else None
        for each in self._allows:
            if each.where is None or matches(each.where, profile, self.principal):
                yield each.allows, each.rule.id, each.fields if each.reads else None
        for lent in self._lent:
            if matches(lent.delegation.where, profile, self.principal):
                source = lent.source.on(profile)
                given = lent.permissions & source.permissions
                yield _bringing(given), lent.delegation.id, source.hidden if "read" in given else None

    # --- on anything

    @property
    def anywhere(self) -> frozenset[str]:
        """Permissions held on something: what may be asked for at all."""
        held: set[str] = set(self._base)
        if self.owner:
            held |= _EVERYTHING
        for each in self._allows:
            held |= each.permissions
        for lent in self._lent:
            held |= lent.permissions & lent.source.anywhere
        out = _bringing(frozenset(held))
        for each in self._denies:
            if each.rule.where == ANYTHING and not each.rule.fields:
                out -= _taking(each.permissions)
        return out if self._bound is None else out & self._bound

    @property
    def given(self) -> frozenset[str]:
        """Everything that gives the holder something, each as text: with less of it, nobody holds more."""
        given = [[each.rule, sorted(each.permissions)] for each in self._allows]
        lent = [[each.delegation, sorted(each.permissions)] for each in self._lent]
        return frozenset(msgspec.json.encode(each).decode() for each in (*given, *lent))

    @property
    def withheld(self) -> frozenset[str]:
        """Everything that takes something from the holder, each as text."""
        return frozenset(
            msgspec.json.encode([each.rule, sorted(each.permissions)]).decode() for each in self._denies
        )

    def everywhere(self, permission: str) -> bool:
        """Whether a permission is held on everything there is, with no field hidden."""
        if self._bound is not None and permission not in self._bound:
            return False
        for each in self._denies:
            if permission in (each.permissions if each.rule.fields else _taking(each.permissions)):
                return False
        return (
            (self.owner and permission != PROJECT_UNSEEN)
            or permission in self._base
            or any(
                permission in _bringing(each.permissions)
                and each.rule.where == ANYTHING
                and not each.rule.fields
                for each in self._allows
            )
            or any(
                permission in _bringing(lent.permissions)
                and lent.delegation.where == ANYTHING
                and lent.source.everywhere(permission)
                for lent in self._lent
            )
        )

    @property
    def records(self) -> list[Any]:
        """Everything that decides what is held, as values: two holdings with equal records hold the same."""
        return [
            self.principal,
            self.active,
            self.owner,
            sorted(self._base),
            None if self._bound is None else sorted(self._bound),
            [[each.rule, sorted(each.permissions)] for each in self._allows],
            [[each.rule, sorted(each.permissions)] for each in self._denies],
            [[each.delegation, each.source.records] for each in self._lent],
        ]


def _in_force(since: Instant | None, until: Instant | None, now: Instant) -> bool:
    return (since is None or since <= now) and (until is None or now < until)
