"""Hints from the knowledge graph: what is linked with what a text names. Labels only, never facts.

What lives here: the names in a text (capitalised runs, handles, quoted words; no model), and one step along the
nexus from the Concepts that bear them. What must never live here: ranking; a hint never displaces a fact. The
knowledge graph is the nexus itself, so what formation or KML wrote is found as well as what agents linked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from core.facts import records
from core.model.elements import Concept, Proposition
from core.model.literals import Ref
from core.state.indexes import concept_key, name_key, subject_key
from core.state.view import View

MAX_HINTS: Final = 3
_MAX_NAMES: Final = 20
_MAX_STEPS: Final = 50
_RUN: Final = re.compile(r"[^\W\d_][\w'’-]*(?:[ \t]+[^\W\d_][\w'’-]*)*")
_HANDLE: Final = re.compile(r"@([A-Za-z0-9_]{2,40})")
_QUOTED: Final = re.compile(r"[\"“]([^\"“”]{3,60})[\"”]")
_DETERMINERS: Final = frozenset(["the", "a", "an", "and", "or"])


def names_in(text: str) -> list[str]:
    """The names a text seems to hold, in order, each once: `"The Acme Corp hired Ann"` -> `["Acme Corp", "Ann"]`."""
    found: dict[str, None] = {}
    for run in _RUN.findall(text):
        for name in _capitalised(run.split()):
            found[name] = None
    found.update(dict.fromkeys(_HANDLE.findall(text)))
    found.update(dict.fromkeys(_QUOTED.findall(text)))
    return list(islice(found, _MAX_NAMES))


def _capitalised(words: list[str]) -> Iterator[str]:
    """The runs of capitalised words, without determiners at their ends."""
    run: list[str] = []
    for word in [*words, ""]:
        if word[:1].isupper():
            run.append(word)
            continue
        while run and run[0].lower() in _DETERMINERS:
            run.pop(0)
        while run and run[-1].lower() in _DETERMINERS:
            run.pop()
        if len(run) > 1 or (run and len(run[0]) >= 3):
            yield " ".join(run)
        run = []


def concepts_in(view: View, text: str) -> list[Concept]:
    """The Concepts that a text names, in the order of the names, oldest first; facts and their kin left out."""
    found: dict[str, Concept] = {}
    for name in names_in(text):
        keys = (name_key(name), name_key(name.lower()), concept_key(records.ENTITY, name.lower()))
        for key in keys:
            for element_id in islice(view.find(key), _MAX_STEPS):
                element = view.get(element_id)
                if isinstance(element, Concept) and records.standing(element) and _names(element, name):
                    found[element.id] = element
    return list(found.values())


def _names(element: Concept, name: str) -> bool:
    own = {element.name, element.key, *element.aliases}
    return name in own or name.lower() in own


def links_in(view: View, text: str) -> tuple[str, ...]:
    """The ids of the Concepts that a text names."""
    return tuple(concept.id for concept in concepts_in(view, text))


def hints(view: View, text: str, without: Collection[str]) -> tuple[str, ...]:
    """At most three labels of what is one step from what a text names, none of them in `without`."""
    out: dict[str, None] = {}
    for concept in concepts_in(view, text):
        for element_id in islice(view.find(subject_key(concept.id)), _MAX_STEPS):
            label = _label(view, element_id, concept.id)
            if label is not None and label not in without:
                out[label] = None
    return tuple(islice(sorted(out), MAX_HINTS))


def _label(view: View, element_id: str, subject: str) -> str | None:
    """What a Proposition of a subject leads to, by name."""
    element = view.get(element_id)
    if not isinstance(element, Proposition) or element.subject != subject or not records.standing(element):
        return None
    if not isinstance(element.object, Ref):
        return None
    target = view.get(element.object.id)
    return target.name if isinstance(target, Concept) and records.standing(target) else None
