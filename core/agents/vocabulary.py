"""Exact references of the schema symbols the product writes: the Cognitive Memory Profile and our own package.

Only names live here. What they mean is said by the packages in `core/schema/packages`; the tests hold this
list and those files together.
"""

from __future__ import annotations

from typing import Final

PROFILE: Final = "kip://profiles/cognitive-memory@2.0.0"
PACKAGE: Final = "kip://noema/memory@1.0.0"

PERSON: Final = f"{PROFILE}/Person"
EVENT: Final = f"{PROFILE}/Event"
COMMITMENT: Final = f"{PROFILE}/Commitment"
PREFERS: Final = f"{PROFILE}/prefers"
INVOLVES: Final = f"{PROFILE}/involves"
MENTIONS: Final = f"{PROFILE}/mentions"
DERIVED_FROM: Final = f"{PROFILE}/derived_from"
COMMITTED_TO: Final = f"{PROFILE}/committed_to"
OWED_TO: Final = f"{PROFILE}/owed_to"

PLACE: Final = f"{PACKAGE}/Place"
ORGANIZATION: Final = f"{PACKAGE}/Organization"
ANIMAL: Final = f"{PACKAGE}/Animal"
TOPIC: Final = f"{PACKAGE}/Topic"
DETAIL: Final = f"{PACKAGE}/Detail"
TOOL: Final = f"{PACKAGE}/Tool"
HAS_TURN: Final = f"{PACKAGE}/has_turn"
DETAIL_OF: Final = f"{PACKAGE}/detail_of"
WORDING: Final = f"{PACKAGE}/Wording"

# Predicates of which an actor states one current value: a new value replaces the actor's old one.
FUNCTIONAL: Final = frozenset(
    f"{PACKAGE}/{name}"
    for name in (
        "name", "age", "birthday", "timezone", "lives_in", "job", "works_for",
        "relationship_status", "diet", "has_partner", "value",
    )
)  # fmt: skip

# A claim of one of these ends the actor's claim of the other about the same object.
OPPOSITE: Final = {f"{PACKAGE}/likes": f"{PACKAGE}/dislikes", f"{PACKAGE}/dislikes": f"{PACKAGE}/likes"}


def predicate(name: str) -> str:
    """The exact reference of a predicate of our package, or of the profile's `prefers`."""
    return PREFERS if name == "prefers" else f"{PACKAGE}/{name}"


def local_name(reference: str) -> str:
    """The last part of a reference: `kip://noema/memory@1.0.0/lives_in` -> `lives_in`."""
    return reference.rpartition("/")[2]
