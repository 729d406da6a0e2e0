"""Kin: whose relatives or pets a question is about, and who they are.

"Where does Ada's sister live?" is about the sister, so nothing that is known of Ada answers it. One table says
which words mean the same relation.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from core.agents.offline.people import find_named
from core.agents.offline.rules.relations import PETS, PREDICATES
from core.agents.offline.rules.rule import RELATIONS
from core.agents.vocabulary import predicate
from core.model.elements import Concept, Proposition
from core.model.literals import Ref
from core.search.text import words
from core.state.indexes import subject_key
from core.state.view import View

_KIN: Final = rf"(?P<kin>(?:{RELATIONS}|{PETS}|sibling|parent|spouse|relative)(?:s|es)?|children|wives|families|family|puppies)"
_OF_NAMED: Final = re.compile(rf"\b(?P<owner>[^\W\d_][\w-]*)'s (?:[\w-]+ )?{_KIN}\b", re.IGNORECASE)
_MINE: Final = re.compile(rf"\b(?:my|our) (?:[\w-]+ )?{_KIN}\b", re.IGNORECASE)
_SINGULAR: Final = {"children": "child", "wives": "wife", "families": "family", "puppies": "puppy"}

# Words by which somebody asked for under the first word may be known.
SAME: Final[dict[str, tuple[str, ...]]] = {
    "mother": ("mom", "mum"),
    "mom": ("mother", "mum"),
    "mum": ("mother", "mom"),
    "father": ("dad",),
    "dad": ("father",),
    "parent": ("mother", "father", "mom", "mum", "dad"),
    "sibling": ("sister", "brother"),
    "child": ("kid", "son", "daughter", "baby"),
    "kid": ("child", "son", "daughter", "baby"),
    "spouse": ("wife", "husband"),
    "partner": ("wife", "husband", "girlfriend", "boyfriend", "fiance", "fiancé", "fiancee", "fiancée"),
    "boss": ("manager",),
    "manager": ("boss",),
    "colleague": ("coworker", "co-worker", "teammate"),
    "coworker": ("colleague", "co-worker", "teammate"),
    "grandmother": ("grandma",),
    "grandma": ("grandmother",),
    "grandfather": ("grandpa",),
    "grandpa": ("grandfather",),
    "roommate": ("flatmate",),
    "flatmate": ("roommate",),
    "pet": ("dog", "cat", "puppy", "kitten"),
    "dog": ("puppy",),
    "cat": ("kitten",),
}
_ANY_OF: Final = {"child", "kid", "sibling", "parent", "partner", "spouse", "friend", "colleague", "coworker"}
_PREDICATES: Final = PREDICATES | {"sibling": "has_sibling", "parent": "has_parent", "spouse": "has_partner"}


class Kin(msgspec.Struct, frozen=True):
    """A relation asked about: whose, who is known to be in it, and the terms that name it in a text."""

    owner: Concept | None
    people: tuple[Concept, ...]
    terms: frozenset[str]


def find_kin(view: View, text: str, named: list[Concept], asker: Concept | None) -> Kin | None:
    """Whose relatives a question is about: those of a person it names, or of who asks; None if of nobody."""
    owned = _OF_NAMED.search(text)
    match = owned or _MINE.search(text)
    if match is None:
        return None
    owner = asker if owned is None else _owner(owned["owner"], named)
    word = match["kin"].lower()
    singular = _SINGULAR.get(word) or (
        word if re.fullmatch(rf"{RELATIONS}|{PETS}", word) else word.removesuffix("s")
    )
    known = (singular, *SAME.get(singular, ()))
    terms = frozenset(
        term for name in (word, *known, "children" if "child" in known else "") for term in words(name)
    )
    people = _people(view, owner, singular, known) if owner is not None else []
    return Kin(owner, tuple({person.id: person for person in people}.values()), terms)


def _owner(name: str, named: list[Concept]) -> Concept | None:
    wanted = name.lower()
    for person in named:
        if any(wanted in text.lower().split() for text in (person.name, *person.aliases) if text):
            return person
    return None


def _people(view: View, owner: Concept, relation: str, known: tuple[str, ...]) -> list[Concept]:
    """Who is known in a relation to somebody: under its name ("Ada's sister"), or by a claim of it."""
    names = [name for name in (owner.name, *owner.aliases) if name]
    found = [person for name in names for word in known for person in find_named(view, f"{name}'s {word}")]
    if relation in _ANY_OF:
        for element in view.find(subject_key(owner.id, predicate(_PREDICATES[relation]))):
            about = view.get(element)
            target = (
                view.get(about.object.id)
                if isinstance(about, Proposition) and isinstance(about.object, Ref)
                else None
            )
            found += [target] if isinstance(target, Concept) else []
    return found
