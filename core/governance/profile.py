"""What a rule may look at in an element: trusted properties, never content (Governance §47, §90).

What lives here: the profile of an element and the match of a selector. What must never live here: an attribute, a
name or a tag; whoever can write one would decide who may read it.
"""

from __future__ import annotations

from typing import NamedTuple

from core.governance.control import Selector
from core.model.ids import Kind


class Profile(NamedTuple):
    """The properties of one element that decide about it; elements with equal profiles are treated alike.

    type_ref: of a Concept. predicate_ref: of a Proposition, and of an Assertion's Proposition. label: its
    classification, the default where it has none. element: its id, where some record names it.
    """

    kind: Kind
    type_ref: str | None
    predicate_ref: str | None
    label: str
    origin: str | None
    imported: bool
    element: str | None


def matches(where: Selector, profile: Profile, caller: str) -> bool:
    """Whether a selector takes in an element, for who asks."""
    return (
        (not where.kinds or profile.kind in where.kinds)
        and (not where.types or _is_of_type(where.types, profile.type_ref))
        and (not where.predicates or profile.predicate_ref in where.predicates)
        and (not where.classifications or profile.label in where.classifications)
        and (not where.ids or profile.element in where.ids)
        and (not where.origins or profile.origin in where.origins)
        and (where.own is None or where.own == (profile.origin == caller))
        and (where.imported is None or where.imported == profile.imported)
    )


def _is_of_type(types: tuple[str, ...], type_ref: str | None) -> bool:
    return type_ref is not None and (type_ref in types or type_ref.rpartition("/")[0] in types)
