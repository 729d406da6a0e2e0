"""Questions: what one asks for, as far as its words and the names known in the space show it."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from core.agents.dialogue import Question
from core.agents.offline.clauses import plain_apostrophes
from core.agents.offline.cues import CUES, FIRST_PERSON, PAST, RELATIONAL
from core.agents.offline.dates import MONTHS, When, find_dates
from core.agents.offline.people import find_named
from core.agents.offline.rules.rule import RELATIONS
from core.agents.vocabulary import PERSON
from core.model.elements import Concept
from core.model.instants import Instant
from core.search.text import words
from core.state.indexes import concept_key
from core.state.view import View

_WORD: Final = re.compile(r"[^\W_][\w'-]*")
_MY_RELATION: Final = re.compile(rf"\b(?:my|our) (?:\w+ )?(?P<relation>{RELATIONS})\b", re.IGNORECASE)
DAY: Final = "@day"  # a term that stands for the day a question names; no text has it
# Words that ask without saying what for: "Tell me what you know about Bob".
_IDLE: Final = frozenset(words("tell know anything everything something remember about summary happened"))
# Words that so many questions share that having them answers none.
_WEAK: Final = frozenset(
    words("favourite favorite kind type sort thing many much often name get go going come")
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_MONTH: Final = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True):
    """A question read: its terms, whom it is about, which predicates it asks for, and of what time.

    named: persons whom the words name. focus: those, or who asks, or the asker's relative: whose claims may
    answer. day: the one day it names. names: the terms that are those persons' names. light: those, and words that answer nothing. past: it asks for what was. broad: it asks for all there is.
    """

    text: str
    terms: tuple[str, ...]
    named: tuple[Concept, ...] = ()
    focus: tuple[Concept, ...] = ()
    names: frozenset[str] = frozenset()
    light: frozenset[str] = frozenset()
    predicates: frozenset[str] = frozenset()
    past: bool = False
    broad: bool = False
    when: When | None = None
    day: When | None = None
    months: tuple[int, ...] = ()
    years: tuple[int, ...] = ()


def read_asked(view: View, question: Question, now: Instant) -> Asked:
    """Read a question against what the space knows."""
    text = plain_apostrophes(question.query)
    predicates = frozenset(name for name, cue in CUES.items() if cue.asks.search(text))
    named = _named(view, text)
    focus = list(named)
    asker = find_asker(view, question.context.counterparty)
    if asker is not None:
        relatives = [
            person
            for match in _MY_RELATION.finditer(text)
            for person in find_named(view, f"{asker.name}'s {match['relation'].lower()}")
        ]
        focus += relatives
        # "Where does my sister live?" is not about who asks; "Who is my sister?" is.
        if FIRST_PERSON.search(text) and (not relatives or predicates <= RELATIONAL):
            focus.append(asker)
    dates = find_dates(text, now, past=True)
    days = [when for when in dates if when.precision == "day"]
    day = days[0] if len(days) == 1 else None
    # The day stands for its words: turns are found by when they were said, not by naming the date.
    telling = words(text) if day is None else [*words(text.replace(day.words, " ")), DAY]
    terms = tuple(dict.fromkeys(telling))
    names = frozenset(term for person in named for name in _names(person) for term in words(name))
    broad = False
    if focus and not predicates and not set(terms) - names - _IDLE:  # all that is known of somebody
        predicates, names, broad = frozenset(CUES), frozenset(), True
    return Asked(
        text=text,
        terms=terms,
        named=tuple(named),
        focus=tuple({person.id: person for person in focus}.values()),
        names=names,
        light=names | _WEAK,
        predicates=predicates,
        broad=broad,
        past=PAST.search(text) is not None,
        when=dates[0] if len(dates) == 1 else None,
        day=day,
        months=tuple({MONTHS[match.lower()] for match in _MONTH.findall(text) if match != "may"}),
        years=tuple({int(year) for year in _YEAR.findall(text)}),
    )


def find_asker(view: View, counterparty: str | None) -> Concept | None:
    """The person who asks: the counterparty, else the one nameless user of the space."""
    for key in (counterparty, "role:user") if counterparty is None else (counterparty,):
        for element in view.find(concept_key(PERSON, key)) if key else ():
            found = view.get(element)
            if isinstance(found, Concept) and found.key == key and found.system.state == "active":
                return found
    known = find_named(view, counterparty) if counterparty else []
    return known[0] if len(known) == 1 else None


def _named(view: View, text: str) -> list[Concept]:
    """Persons whom the words name, in any spelling of case, two-word names first."""
    tokens = [token.removesuffix("'s").rstrip("'-") for token in _WORD.findall(text)]
    found: dict[str, Concept] = {}
    taken: set[int] = set()
    for size in (3, 2, 1):
        for i in range(len(tokens) - size + 1):
            places = set(range(i, i + size))
            name = " ".join(tokens[i : i + size])
            if places & taken or len(name) < 2:
                continue
            people = find_named(view, name) or (find_named(view, name.title()) if name.islower() else [])
            for person in people:
                found[person.id] = person
                taken |= places
    return list(found.values())


def _names(person: Concept) -> tuple[str, ...]:
    return tuple(name for name in (person.name, *person.aliases) if name)
