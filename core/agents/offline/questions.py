"""Questions: what one asks for, as far as its words and the names known in the space show it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from core.agents.dialogue import Question
from core.agents.offline.clauses import plain_apostrophes
from core.agents.offline.cues import COMMITMENTS, CUES, FIRST_PERSON, KIND_ASKED, KINDS, PAST, RELATIONAL
from core.agents.offline.dates import MONTHS, WEEKDAYS, When, find_dates
from core.agents.offline.kin import Kin, find_kin
from core.agents.offline.people import find_named
from core.agents.offline.rules.rule import one_spelling
from core.agents.offline.values import NO_PERSON
from core.agents.vocabulary import PERSON
from core.model.elements import Concept
from core.model.instants import Instant
from core.search.text import words
from core.state.indexes import concept_key, name_key
from core.state.view import View

_WORD: Final = re.compile(r"[^\W_][\w'-]*")
DAY: Final = "@day"  # a term that stands for the day a question names; no text has it
# Words that ask without saying what for: "Tell me what you know about Bob".
_IDLE: Final = frozenset(
    words(
        "tell know anything everything something remember about summary happened currently nowadays today days right still"
        " thing stuff person people say said mention give show list please activity hobby interest pastime"
        " open outstanding pending"
    )
)
# Words that so many questions share that having them answers none.
_WEAK: Final = frozenset(
    words("favourite favorite kind type sort thing many much often name get got go going went gone come came")
)
# Where a question names whom it is about: behind the verb that asks, before a possessive, behind "about".
_AUXILIARY: Final = r"do|does|did|is|are|was|were|has|have|had|will|would|can|could|should|must|might"
_SUBJECT: Final = re.compile(
    rf"\b(?i:(?:{_AUXILIARY})(?:n't)?|about|remind|who's|whether|if|where|what|when) (?P<name>[^\W\d_a-z][\w-]+)"
    rf"|(?P<owner>[^\W\d_a-z][\w-]+)'s\b"
)
_LOWER_SUBJECT: Final = re.compile(
    r"\b(?:do|does|did) (?P<name>[a-z][\w-]*) (?=[a-z])|(?<!my )(?<!our )(?<!the )(?<!your )(?<!\ba )(?<!his )(?<!her )(?<!their )\b(?P<owner>[a-z][\w-]+)'s\b"
)
_NO_SUBJECT: Final = (
    NO_PERSON
    | frozenset(WEEKDAYS)
    | frozenset(
        [
            "me",
            "us",
            "i",
            "him",
            "them",
            "mine",
            "theirs",
            "people",
            "everyone",
            "anyone",
            "anybody",
            "who",
            "what",
            "that's",
            "let",
        ]
    )
)
MAX_READ: Final = 2_000
"""Characters of a question that are read for what it asks; of the rest, the words count. Patterns try again from every
place, and whoever asks may have made a question for that."""
_YES_NO: Final = re.compile(rf"\W*(?:(?:and|so|but|hey),? )?(?:{_AUXILIARY})\b", re.IGNORECASE)
_WHEN: Final = re.compile(r"\W*(?:and |so |but )?(?:when|since when|how long)\b", re.IGNORECASE)
_WHY: Final = re.compile(r"\W*(?:and |so |but )?(?:why|how come|for what reason)\b", re.IGNORECASE)
_WHO: Final = re.compile(r"\W*(?:and |so |but )?(?:who|whom)\b", re.IGNORECASE)
_ME: Final = re.compile(
    r"(?<!tell )(?<!give )(?<!show )(?<!remind )\b(?:i|my|me|mine)\b(?! wonder)", re.IGNORECASE
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_MONTH: Final = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True):
    """A question read: its terms, whom it is about, which predicates it asks for, and of what time.

    named: persons whom the words name. focus: those, or who asks, or the asker's relative: whose claims may
    answer. day: the one day it names. names: the terms that are those persons' names. light: those, and words that
    answer nothing. past: it asks for what was. broad: it asks for all there is.
    strangers: terms that name somebody whom nobody here is known by. kin: whose relatives it is about.
    kind: the kind of thing it wants ("drink"). rest: terms that neither name anybody nor ask for a predicate.
    closed: it can be answered with yes or no. dating: it asks when. who: it asks who it is that a
    claim holds of. reason: it asks why. lost: it asks about who
    asks, and nobody knows who that is.
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
    strangers: frozenset[str] = frozenset()
    kin: Kin | None = None
    kind: str | None = None
    rest: frozenset[str] = frozenset()
    closed: bool = False
    dating: bool = False
    reason: bool = False
    lost: bool = False
    who: bool = False


def read_asked(view: View, question: Question, now: Instant) -> Asked:
    """Read a question against what the space knows."""
    whole = plain_apostrophes(question.query)
    text = whole[:MAX_READ]
    predicates = frozenset(name for name, cue in CUES.items() if cue.asks.search(text))
    named = _named(view, text)
    asker = find_asker(view, question.context.counterparty)
    kin = find_kin(view, text, named, asker)
    if kin is not None:
        predicates -= {"name"}
    focus = _focus(text, named, asker, kin, predicates)
    dates = find_dates(text, now, past=True)
    day = _day(dates)
    # The day stands for its words: turns are found by when they were said, not by naming the date.
    telling = words(whole) if day is None else [*words(whole.replace(day.words, " ")), DAY]
    terms = tuple(dict.fromkeys(telling))
    names = frozenset(term for person in named for term in name_terms(person))
    strangers = _strangers(view, text) - names
    broad = False
    bare = not predicates and COMMITMENTS.search(text) is None
    if focus and bare and not set(terms) - names - _IDLE:  # all that is known of somebody
        predicates, names, broad = frozenset(CUES), frozenset(), True
    light = names | _WEAK | strangers
    if not set(terms) - light:  # "Who is Bob?" asks for whatever says his name
        light -= strangers
    kind = _kind(text)
    return Asked(
        text=text,
        terms=terms,
        named=tuple(named),
        focus=tuple({person.id: person for person in focus}.values()),
        names=names,
        light=light,
        predicates=predicates,
        broad=broad,
        past=PAST.search(text) is not None,
        when=dates[0] if len(dates) == 1 else None,
        day=day,
        months=tuple({MONTHS[match.lower()] for match in _MONTH.findall(text) if match != "may"}),
        years=tuple({int(year) for year in _YEAR.findall(text)}),
        strangers=strangers,
        kin=kin,
        kind=kind,
        rest=_rest(text, () if broad else predicates) - names - strangers - ({kind} & KINDS.keys()),
        closed=_YES_NO.match(text) is not None,
        dating=_WHEN.match(text) is not None,
        reason=_WHY.match(text) is not None,
        who=not focus and _WHO.match(text) is not None,
        lost=asker is None and _ME.search(text) is not None,
    )


def _focus(
    text: str, named: list[Concept], asker: Concept | None, kin: Kin | None, predicates: frozenset[str]
) -> list[Concept]:
    """Whose claims may answer. "Where does my sister live?" is not about who asks; "Who is my sister?" is."""
    focus = list(named)
    relational = predicates <= RELATIONAL
    if kin is not None:
        focus += kin.people
        if not relational and kin.owner is not None:
            focus = [person for person in focus if person.id != kin.owner.id]
    about_asker = kin is None or relational or kin.owner is None or asker is None or kin.owner.id != asker.id
    if asker is not None and FIRST_PERSON.search(text) and about_asker:
        focus.append(asker)
    return focus


def _strangers(view: View, text: str) -> frozenset[str]:
    """Terms of names in a naming place that nobody and nothing here is known by."""
    pattern = _SUBJECT if any(char.isupper() for char in text[1:]) else _LOWER_SUBJECT
    found: set[str] = set()
    for match in pattern.finditer(text):
        name = (match["name"] or match["owner"]).removesuffix("'s")
        lower = name.lower()
        plain = lower in _NO_SUBJECT or lower in MONTHS or lower in CUES
        if not plain and not any(view.find(name_key(spelling)) for spelling in (name, name.title())):
            found.update(words(name))
    return frozenset(found)


def _day(dates: list[When]) -> When | None:
    """The one time that a question names by day, or as "last week" or "last month"; named months are words."""
    found = [
        when for when in dates if when.precision in ("day", "week") or when.words.lower().endswith(" month")
    ]
    return found[0] if len(found) == 1 else None


def _kind(text: str) -> str | None:
    """The kind of thing a question wants, as a term: `"Which drinks does she like?"` -> `"drink"`."""
    match = KIND_ASKED.search(text)
    return None if match is None else next(iter(words(one_spelling(match["kind"] or match["verb"]))), None)


def _rest(text: str, predicates: Collection[str]) -> frozenset[str]:
    """The telling terms of a question without the words that ask for its predicates, dates or commitments."""
    text = COMMITMENTS.sub(" ", text)
    for name in predicates:
        text = CUES[name].asks.sub(" ", text)
    return frozenset(words(one_spelling(text))) - _IDLE - _WEAK


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
            # "alice" asks for Alice, and "Alice" for who is known by the key alice alone.
            other = name.title() if name.islower() else name.lower() if name.istitle() else name
            people = find_named(view, name) or find_named(view, other)
            for person in people:
                found[person.id] = person
                taken |= places
    return list(found.values())


def unnamed(asked: Asked) -> str:
    """A question without the names of persons known here: who is meant is known; what is left is what is asked.

    `"What did Caroline paint?"` -> `"What did paint?"`. A question of nothing but names stays as it is.
    """
    names = sorted(
        {name for person in asked.named for name in (person.name, *person.aliases) if name},
        key=lambda name: (-len(name), name),
    )
    if not names:
        return asked.text
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?:'s?)?(?!\w)"
    left = " ".join(re.sub(pattern, " ", asked.text, flags=re.IGNORECASE).split())
    return left if words(left) else asked.text


def name_terms(person: Concept) -> frozenset[str]:
    """The terms of what a person is called; "Ada's sister" is how Anna is known, but no name of hers."""
    names = (
        name for name in (person.name, *person.aliases) if name and ("'s " not in name or name == person.name)
    )
    return frozenset(term for name in names for term in words(name))
