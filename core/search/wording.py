"""Wording: the text an element is compared by in dense search.

What lives here: one function from an element to its text. What must never live here: vectors, and who may see the
text. An element's own words are those of the word index (`core.search.text`); a Proposition has none, so it is
worded from the names of its ends. Only one step is taken: whoever erases an element finds every wording that holds
its name among the elements that refer to it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, Protocol

from core.model.elements import Activity, AnyElement, Assertion, Concept, Proposition
from core.model.literals import Ref
from core.search.text import searchable, texts_of

WORDED: Final = "CPEX"
"""The letters of the kinds that have a wording; an Assertion is as near as its Proposition."""

MAX_CHARS: Final = 2000  # of a wording: about 500 tokens; what follows is found by its words
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")  # worksFor, works_for -> works for
_PRINT: Final = 8  # bytes


class Memory(Protocol):
    """What is asked of a View (`core.state.view`)."""

    def get(self, element_id: str) -> AnyElement | None:
        """An element."""


def wording(element: AnyElement, memory: Memory) -> str:
    """The text to embed; empty for an element that is not compared by meaning.

    Args:
        element: as it stands.
        memory: where the ends of a Proposition are looked up.
    """
    if element.system.state == "purged" or isinstance(element, Assertion):
        return ""
    if isinstance(element, Proposition):
        return _statement(element, memory)[:MAX_CHARS].strip()
    return searchable(element)[:MAX_CHARS].strip()


def fields(element: AnyElement) -> frozenset[str]:
    """The dot paths of the fields whose words are in the wording: who may not read one may not find by it."""
    if isinstance(element, Proposition):
        return frozenset({"subject", "predicate_ref", "object"})
    return frozenset(path for path, _ in texts_of(element))


def ends(element: Proposition) -> tuple[str, ...]:
    """The elements whose names are in a Proposition's wording."""
    return (element.subject, element.object.id) if isinstance(element.object, Ref) else (element.subject,)


def fingerprint(text: str, seed: bytes) -> int:
    """Tells whether a vector is of this very text; keyed, so that it tells nothing to who has no key."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_PRINT, key=seed[:64])
    return int.from_bytes(digest.digest(), "little")


def _statement(element: Proposition, memory: Memory) -> str:
    target = element.object
    told = _name(target.id, memory) if isinstance(target, Ref) else str(target.value)
    name = element.predicate_ref.rpartition("/")[2]
    parts = (_name(element.subject, memory), _HUMPS.sub(" ", name).lower(), told)
    return " ".join(part for part in parts if part)


def _name(element_id: str, memory: Memory) -> str:
    """What an end is called: a Concept's name or first own text; another kind has none."""
    element = memory.get(element_id)
    if not isinstance(element, (Concept, Activity)):
        return ""
    if isinstance(element, Concept) and element.name:
        return element.name
    return next((text for _, text in texts_of(element)), "")[:200]
