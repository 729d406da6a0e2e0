"""Cases of memory that changes: what is said over time, and what must be believed and on record in the end.

Generated from a seed: families of changes, corrections, returns, repeats, ends, negations, disagreements, words that
change nothing, and clocks of several time zones. Each case says what it means apart from its words, so that a
scripted model can write the right commands through the real tools, and says what must hold apart from both.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from core.agents.vocabulary import FUNCTIONAL, OPPOSITE, predicate
from core.model.elements import Assertion, Concept, Proposition
from core.model.instants import Instant, parse_instant
from core.models.chat import ChatRequest
from core.state.space import SpaceState
from tests.mind import Reading, Thinking, known_of, lines_of

NOW: Final = "2026-05-28T00:00:00Z"  # the clock of the doubles


class Means(msgspec.Struct, frozen=True):
    """What one statement means: a claim by its speaker, of themselves or of `of`."""

    predicate: str
    value: str
    of: str | None = None
    stance: str = "support"
    start: str | None = None
    until: str | None = None
    ends: bool = False  # replaces the open claims of the slot (or of the value, where the slot holds many)


class Said(msgspec.Struct, frozen=True):
    """Somebody says something at a time; `means` is empty where it claims nothing."""

    by: str
    text: str
    at: str
    means: tuple[Means, ...] = ()


class Case(msgspec.Struct, frozen=True):
    """What is said, each in a conversation of its own, in the order in which it arrives.

    current: what is held in the end of the case's predicates, exactly. record: what must be on record, with any
    status; `intervals` how often with different times. ever: a question and the word that its answer must hold.
    """

    family: str
    name: str
    said: tuple[Said, ...]
    predicates: frozenset[str]
    current: frozenset[str]
    record: frozenset[str] = frozenset()
    intervals: tuple[tuple[str, int], ...] = ()
    ever: tuple[str, str] | None = None


class Slot(msgspec.Struct, frozen=True):
    """A slot with one current value, how it is stated and how it changes."""

    predicate: str
    values: tuple[str, ...]
    states: tuple[str, ...]
    changes: tuple[str, ...]
    corrections: tuple[str, ...] = ()
    backs: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


SLOTS: Final = (
    Slot("lives_in", ("Berlin", "Munich", "Lisbon", "Osaka", "Toronto", "Nairobi", "Porto", "Oslo"),
         ("I live in {}.", "I'm based in {}.", "My home is in {}."),
         ("I moved to {}.", "I live in {} now.", "I relocated to {} last week.", "We've just moved to {}!"),
         ("Actually, I live in {new}, not {old}.", "It's {new}, not {old}.", "I meant {new}, not {old}."),
         ("I moved back to {}.", "I'm living in {} again."),
         ("I no longer live in {}.", "I don't live in {} anymore.")),
    Slot("works_for", ("Acme", "Globex", "Initech", "Umbrella", "Hooli", "Siemens", "Airbus"),
         ("I work for {}.", "I work at {}.", "My employer is {}."),
         ("I work for {} now.", "I joined {} last month.", "I got a new job at {}.", "I started working at {}."),
         ("It's {new}, not {old}.", "Sorry, I work for {new}, not {old}."),
         ("I work for {} again.", "I'm working at {} again."),
         ("I left {}.", "I quit my job at {}.", "I no longer work for {}.")),
    Slot("timezone", ("UTC+1", "UTC+2", "UTC-5", "UTC+9", "UTC-8"),
         ("My timezone is {}.", "My time zone is {}."),
         ("My time zone is {} now.", "I'm in {} now.", "My timezone changed to {}."),
         ("It's {new}, not {old}.", "Actually, it's {new}, not {old}.")),
    Slot("job", ("nurse", "teacher", "baker", "pilot", "architect", "plumber"),
         ("I'm a {}.", "I work as a {}.", "My job is {}."),
         ("I'm a {} now.", "I became a {}.", "I work as a {} now."),
         (),
         (),
         ("I'm no longer a {}.", "I don't work as a {} anymore.")),
    Slot("diet", ("vegetarian", "vegan", "pescatarian"),
         ("I'm {}.", "I am {}."),
         ("I'm {} now.", "I became {}.", "I turned {}.")),
    Slot("relationship_status", ("single", "engaged", "married", "divorced"),
         ("I'm {}.",), ("I'm {} now.", "I got {}.", "We are {} now.")),
)  # fmt: skip
LIKES: Final = ("sushi", "opera", "jazz", "camping", "chess", "coffee", "horror movies", "running")
TOWNS: Final = ("Rome", "Paris", "Kyoto", "Vienna", "Lima", "Cairo")
NAMES: Final = ("Alice", "Bob", "Chen", "Dara", "Emeka", "Farid")
IDLE: Final = (
    "If I moved to {}, I'd miss my friends.", "I might move to {}.", "Should I move to {}?",
    'My colleague said: "I live in {}."', "I wish I lived in {}.", "Imagine living in {}!",
    "I almost moved to {} once.", "I dreamed that I lived in {}.",
)  # fmt: skip


def day(month: int, date: int, hour: int = 10, offset: str = "Z") -> str:
    """A time in 2026."""
    return f"2026-{month:02d}-{date:02d}T{hour:02d}:00:00{offset}"


def told(who: str, name: str, value: str, *, of: str | None = None, held: bool = True) -> str:
    """A claim in short."""
    return f"{who}> {of or who} {'' if held else 'not '}{name} {value}"


Family = Callable[[random.Random], Iterator[Case]]


def _change(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS:
        for state in slot.states:
            for change in chance.sample(slot.changes, min(2, len(slot.changes))):
                who, (old, new) = chance.choice(NAMES), chance.sample(slot.values, 2)
                if slot.predicate == "relationship_status":
                    new = "married" if old != "married" else "divorced"
                yield Case(
                    "change",
                    f"{state}|{change}",
                    (
                        Said(who, state.format(old), day(3, 1), (Means(slot.predicate, old),)),
                        Said(who, change.format(new), day(5, 2), (Means(slot.predicate, new, ends=True),)),
                    ),
                    frozenset([slot.predicate]),
                    frozenset([told(who, slot.predicate, new)]),
                    frozenset([told(who, slot.predicate, old), told(who, slot.predicate, new)]),
                )


def _correction(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS:
        for correction in slot.corrections:
            for state in slot.states[:2]:
                who, (old, new) = chance.choice(NAMES), chance.sample(slot.values, 2)
                words = correction.format(old=old, new=new)
                yield Case(
                    "correction",
                    f"{state}|{correction}",
                    (
                        Said(who, state.format(old), day(3, 1), (Means(slot.predicate, old),)),
                        Said(who, words, day(3, 2), (Means(slot.predicate, new, ends=True),)),
                    ),
                    frozenset([slot.predicate]),
                    frozenset([told(who, slot.predicate, new)]),
                    frozenset([told(who, slot.predicate, old)]),
                )


def _chain(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS[:4]:
        for _ in range(3):
            who, values = chance.choice(NAMES), chance.sample(slot.values, 4)
            texts = [chance.choice(slot.states), *(chance.choice(slot.changes) for _ in range(3))]
            said = tuple(
                Said(who, text.format(value), day(i + 1, 5), (Means(slot.predicate, value, ends=i > 0),))
                for i, (text, value) in enumerate(zip(texts, values, strict=True))
            )
            yield Case(
                "chain",
                f"{slot.predicate}: {' > '.join(values)}",
                said,
                frozenset([slot.predicate]),
                frozenset([told(who, slot.predicate, values[-1])]),
                frozenset(told(who, slot.predicate, value) for value in values),
            )


def _return(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS:
        for back in slot.backs:
            for change in chance.sample(slot.changes, 2):
                who, (old, new) = chance.choice(NAMES), chance.sample(slot.values, 2)
                mine = told(who, slot.predicate, old)
                yield Case(
                    "return",
                    f"{change}|{back}",
                    (
                        Said(who, slot.states[0].format(old), day(1, 5), (Means(slot.predicate, old),)),
                        Said(who, change.format(new), day(3, 5), (Means(slot.predicate, new, ends=True),)),
                        Said(who, back.format(old), day(5, 5), (Means(slot.predicate, old, ends=True),)),
                    ),
                    frozenset([slot.predicate]),
                    frozenset([mine]),
                    frozenset([mine, told(who, slot.predicate, new)]),
                    intervals=((mine, 2),),
                )


def _again(chance: random.Random) -> Iterator[Case]:
    forms = (
        ("I visited {} in {}.", "I visited {} again in {}."),
        ("I went on a trip to {} in {}.", "I went to {} again in {}."),
        ("I travelled to {} in {}.", "I travelled to {} in {} again."),
    )
    spans = (
        ("March 2024", "2024-03", "2024-04"),
        ("May 2025", "2025-05", "2025-06"),
        ("January 2026", "2026-01", "2026-02"),
    )
    for first, second in forms:
        for town in chance.sample(TOWNS, 4):
            who, (one, two) = chance.choice(NAMES), sorted(chance.sample(spans, 2), key=lambda span: span[1])
            claim = told(who, "visited", town)
            said = tuple(
                Said(who, text.format(town, span[0]), day(month, 9), (Means("visited", town, start=f"{span[1]}-01T00:00:00Z", until=f"{span[2]}-01T00:00:00Z"),))
                for text, span, month in ((first, one, 3), (second, two, 4))
            )  # fmt: skip
            yield Case(
                "again", f"{first}|{second}", said, frozenset(["visited"]), frozenset(), frozenset([claim]),
                intervals=((claim, 2),),
                ever=(f"Has {who} ever been to {town}?", town),
            )  # fmt: skip
    for years in (("2015", "2019"), ("2012", "2020"), ("2017", "2021")):
        who, town = chance.choice(NAMES), chance.choice(SLOTS[0].values)
        claim = told(who, "lives_in", town)
        said = tuple(
            Said(who, text.format(town, year), day(month, 9), (Means("lives_in", town, start=f"{year}-01-01T00:00:00Z", until=f"{int(year) + 1}-01-01T00:00:00Z"),))
            for text, year, month in (("I lived in {} in {}.", years[0], 3), ("I lived in {} again in {}.", years[1], 4))
        )  # fmt: skip
        yield Case(
            "again", f"lived in {years}", said, frozenset(["lives_in"]), frozenset(), frozenset([claim]),
            intervals=((claim, 2),), ever=(f"Did {who} ever live in {town}?", town),
        )  # fmt: skip


def _past(chance: random.Random) -> Iterator[Case]:
    forms = (
        ("lives_in", "I used to live in {}.", "I live in {}.", "Did {} ever live in {}?"),
        ("lives_in", "I lived in {} for years.", "I'm based in {}.", "Has {} ever lived in {}?"),
        ("works_for", "I used to work for {}.", "I work for {}.", "Did {} ever work for {}?"),
        ("job", "I used to be a {}.", "I'm a {}.", "Was {} ever a {}?"),
        ("job", "I used to work as a {}.", "I work as a {}.", "Was {} ever a {}?"),
    )
    slots = {slot.predicate: slot for slot in SLOTS}
    for name, past, present, question in forms:
        for first in (True, False):
            who, (old, new) = chance.choice(NAMES), chance.sample(slots[name].values, 2)
            then, now = (day(3, 1), day(4, 1)) if first else (day(4, 1), day(3, 1))
            said = (
                Said(who, past.format(old), then, (Means(name, old, until=then),)),
                Said(who, present.format(new), now, (Means(name, new),)),
            )
            yield Case(
                "past", f"{past}|{'first' if first else 'later'}", said if first else said[::-1],
                frozenset([name]), frozenset([told(who, name, new)]), frozenset([told(who, name, old)]),
                ever=(question.format(who, old), old),
            )  # fmt: skip


def _end(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS:
        for end in slot.ends:
            for state in slot.states[:2]:
                who, value = chance.choice(NAMES), chance.choice(slot.values)
                yield Case(
                    "end",
                    f"{state}|{end}",
                    (
                        Said(who, state.format(value), day(3, 1), (Means(slot.predicate, value),)),
                        Said(who, end.format(value), day(5, 2), (Means(slot.predicate, value, stance="reject", start=day(5, 2), ends=True),)),
                    ),
                    frozenset([slot.predicate]),
                    frozenset([told(who, slot.predicate, value, held=False)]),
                    frozenset([told(who, slot.predicate, value)]),
                )  # fmt: skip


def _taste(chance: random.Random) -> Iterator[Case]:
    forms = (
        ("I love {}.", "likes", "I hate {} now.", "dislikes", True),
        ("I like {}.", "likes", "I don't like {} anymore.", "likes", False),
        ("I hate {}.", "dislikes", "I love {} now.", "likes", True),
        ("I enjoy {}.", "likes", "I no longer enjoy {}.", "likes", False),
        ("I can't stand {}.", "dislikes", "I really like {} now.", "likes", True),
        ("I'm a fan of {}.", "likes", "I don't like {} any more.", "likes", False),
    )
    for first, one, second, two, held in forms:
        for thing in chance.sample(LIKES, 3):
            who, other = chance.choice(NAMES), chance.choice([t for t in LIKES if t != thing])
            kept = told(who, "likes", other)
            yield Case(
                "taste",
                f"{first}|{second}",
                (
                    Said(who, f"I like {other}.", day(2, 1), (Means("likes", other),)),
                    Said(who, first.format(thing), day(3, 1), (Means(one, thing),)),
                    Said(who, second.format(thing), day(5, 1), (Means(two, thing, stance="support" if held else "reject", ends=True),)),
                ),
                frozenset(["likes", "dislikes"]),
                frozenset([kept, told(who, two, thing, held=held)]),
                frozenset([told(who, one, thing)]),
            )  # fmt: skip


def _negation(chance: random.Random) -> Iterator[Case]:
    forms = (
        ("I don't like {}.", "dislikes", LIKES, ("likes", False)),
        ("I don't live in {}.", "lives_in", SLOTS[0].values, ("lives_in", False)),
        ("I don't work for {}.", "works_for", SLOTS[1].values, ("works_for", False)),
        ("I'm not a {}.", "job", SLOTS[3].values, ("job", False)),
    )
    for text, _, values, (name, held) in forms:
        for value in chance.sample(values, 3):
            who = chance.choice(NAMES)
            claim = told(who, name, value, held=held)
            predicates = frozenset(["likes", "dislikes"]) if name == "likes" else frozenset([name])
            yield Case(
                "negation", f"{text}|{value}", (Said(who, text.format(value), day(4, 1), (Means(name, value, stance="reject"),)),),
                predicates, frozenset([claim]), frozenset([claim]),
            )  # fmt: skip


def _people(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS[:3]:
        for _ in range(3):
            (one, two), values = chance.sample(NAMES, 2), chance.sample(slot.values, 3)
            state, change = slot.states[0], slot.changes[0]
            yield Case(
                "people", f"{slot.predicate}: {one} changes, {two} does not",
                (
                    Said(one, state.format(values[0]), day(3, 1), (Means(slot.predicate, values[0]),)),
                    Said(two, state.format(values[1]), day(3, 2), (Means(slot.predicate, values[1]),)),
                    Said(one, change.format(values[2]), day(5, 1), (Means(slot.predicate, values[2], ends=True),)),
                ),
                frozenset([slot.predicate]),
                frozenset([told(one, slot.predicate, values[2]), told(two, slot.predicate, values[1])]),
                frozenset([told(one, slot.predicate, values[0])]),
            )  # fmt: skip
    for text, name, values in (
        ("{} lives in {}.", "lives_in", SLOTS[0].values), ("{} works for {}.", "works_for", SLOTS[1].values),
        ("{} works as a {}.", "job", SLOTS[3].values),
    ):  # fmt: skip
        for _ in range(3):
            (one, two), (mine, theirs) = chance.sample(NAMES, 2), chance.sample(values, 2)
            own = {"lives_in": "I live in {}.", "works_for": "I work for {}.", "job": "I work as a {}."}[name]
            yield Case(
                "dispute", f"{text}: {two} of {one}",
                (
                    Said(one, own.format(mine), day(3, 1), (Means(name, mine),)),
                    Said(two, text.format(one, theirs), day(5, 1), (Means(name, theirs, of=one),)),
                ),
                frozenset([name]),
                frozenset([told(one, name, mine), told(two, name, theirs, of=one)]),
            )  # fmt: skip


def _order(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS[:4]:
        for kind in ("late", "zones", "zones"):
            who, (old, new) = chance.choice(NAMES), chance.sample(slot.values, 2)
            first, second = Means(slot.predicate, old), Means(slot.predicate, new, ends=True)
            # 01:00 at UTC+9 on the 2nd is 16:00 UTC on the 1st, before 20:00 at UTC-8 on the 1st: 04:00 UTC on the 2nd
            earlier, later = (
                (day(3, 1), day(4, 1))
                if kind == "late"
                else (day(4, 2, 1, "+09:00"), day(4, 1, 20, "-08:00"))
            )
            arrived_early = (
                Said(who, slot.changes[0].format(new), later, (msgspec.structs.replace(second, ends=True),)),
                Said(who, slot.states[0].format(old), earlier, (first,)),
            )
            said = arrived_early if kind == "late" or chance.random() < 0.5 else arrived_early[::-1]
            yield Case(
                "order", f"{slot.predicate}: {kind}", said, frozenset([slot.predicate]),
                frozenset([told(who, slot.predicate, new)]), frozenset([told(who, slot.predicate, old)]),
            )  # fmt: skip


def _idle(chance: random.Random) -> Iterator[Case]:
    for text in IDLE:
        for _ in range(2):
            who, (home, other) = chance.choice(NAMES), chance.sample(SLOTS[0].values, 2)
            yield Case(
                "idle", text,
                (
                    Said(who, f"I live in {home}.", day(3, 1), (Means("lives_in", home),)),
                    Said(who, text.format(other), day(5, 1)),
                ),
                frozenset(["lives_in"]), frozenset([told(who, "lives_in", home)]),
            )  # fmt: skip


def _same(chance: random.Random) -> Iterator[Case]:
    for slot in SLOTS:
        who, value = chance.choice(NAMES), chance.choice(slot.values)
        said = tuple(
            Said(who, slot.states[0].format(value), day(month, 1), (Means(slot.predicate, value),) if month == 3 else ())
            for month in (3, 4, 5)
        )  # fmt: skip
        claim = told(who, slot.predicate, value)
        yield Case(
            "same", slot.predicate, said, frozenset([slot.predicate]), frozenset([claim]), frozenset([claim]),
            intervals=((claim, 1),),
        )  # fmt: skip


def _more(chance: random.Random) -> Iterator[Case]:
    """Ends and beginnings in one breath, relatives, dates that lie back, words taken back."""

    def case(family: str, name: str, said: tuple[Said, ...], current: str, *record: str) -> Case:
        return Case(
            family,
            said[-1].text,
            said,
            frozenset([name]),
            frozenset([current] if current else []),
            frozenset(record),
        )

    places, firms, jobs = (slot.values for slot in (SLOTS[0], SLOTS[1], SLOTS[3]))
    for text, name, values in (
        ("I moved from {old} to {new}.", "lives_in", places), ("I left {old} and joined {new}.", "works_for", firms),
        ("I quit {old}, I work for {new} now.", "works_for", firms),
        ("I'm not a {old} anymore, I'm a {new}.", "job", jobs),
        ("I don't live in {old} anymore. I live in {new}.", "lives_in", places),
        ("I no longer live in {old}, I moved to {new}.", "lives_in", places),
    ):  # fmt: skip
        for _ in range(2):
            who, (old, new) = chance.choice(NAMES), chance.sample(values, 2)
            slot = next(slot for slot in SLOTS if slot.predicate == name)
            yield case("breath", name, (
                Said(who, slot.states[0].format(old), day(3, 1), (Means(name, old),)),
                Said(who, text.format(old=old, new=new), day(5, 2), (Means(name, new, ends=True),)),
            ), told(who, name, new), told(who, name, old))  # fmt: skip
    for text, name, values in (
        ("That was wrong, I don't live in {}.", "lives_in", places),
        ("I was mistaken: I don't work for {}.", "works_for", firms),
        ("Forget what I said. I don't live in {}.", "lives_in", places),
        ("Sorry, I don't work for {}.", "works_for", firms),
    ):
        for _ in range(2):
            who, value = chance.choice(NAMES), chance.choice(values)
            slot = next(slot for slot in SLOTS if slot.predicate == name)
            yield case("retraction", name, (
                Said(who, slot.states[0].format(value), day(3, 1), (Means(name, value),)),
                Said(who, text.format(value), day(3, 2), (Means(name, value, stance="reject", ends=True),)),
            ), told(who, name, value, held=False), told(who, name, value))  # fmt: skip
    for text in (
        "I moved to {} in January.",
        "I moved to {} two months ago.",
        "I relocated to {} last year.",
    ):
        for _ in range(2):
            who, (old, new) = chance.choice(NAMES), chance.sample(places, 2)
            yield case("dated", "lives_in", (
                Said(who, f"I live in {old}.", "2025-06-01T10:00:00Z", (Means("lives_in", old),)),
                Said(who, text.format(new), day(5, 2), (Means("lives_in", new, ends=True),)),
            ), told(who, "lives_in", new), told(who, "lives_in", old))  # fmt: skip
    for first, second, name, values in (
        ("My sister Greta lives in {}.", "Greta moved to {}.", "lives_in", places),
        ("My friend Hugo works for {}.", "Hugo works for {} now.", "works_for", firms),
        ("My brother Ivan is a {}.", "Ivan is a {} now.", "job", jobs),
        ("My mother Jana lives in {}.", "My mother moved to {}.", "lives_in", places),
    ):
        other = next(word for word in first.split() if word in ("Greta", "Hugo", "Ivan", "Jana"))
        for _ in range(2):
            who, (old, new) = chance.choice(NAMES), chance.sample(values, 2)
            yield case("relative", name, (
                Said(who, first.format(old), day(3, 1), (Means(name, old, of=other),)),
                Said(who, second.format(new), day(5, 1), (Means(name, new, of=other, ends=True),)),
            ), told(who, name, new, of=other), told(who, name, old, of=other))  # fmt: skip


def _free(chance: random.Random) -> Iterator[Case]:
    """Changes in words that no table of rules foresees: what a reader without a model is not made for."""
    for text, name, values in (
        ("These days {new} is home, {old} is behind me.", "lives_in", SLOTS[0].values),
        ("We've traded {old} for {new} and love it.", "lives_in", SLOTS[0].values),
        ("Scratch that, {new} it is.", "lives_in", SLOTS[0].values),
        ("Turns out the boxes are unpacked and I'm settled in {new}.", "lives_in", SLOTS[0].values),
        ("As of Monday {new} pays my salary.", "works_for", SLOTS[1].values),
        ("{new} made me an offer and I signed, so goodbye {old}.", "works_for", SLOTS[1].values),
        ("After the exam they let me call myself a {new}.", "job", SLOTS[3].values),
        ("Set my calendar to {new} from here on.", "timezone", SLOTS[2].values),
        ("Cheese is back on my plate, so just {new} now.", "diet", ("vegetarian",)),
        ("He put a ring on it, so I'm spoken for: {new}.", "relationship_status", ("engaged",)),
    ):
        slot = next(slot for slot in SLOTS if slot.predicate == name)
        for _ in range(2):
            who, new = chance.choice(NAMES), chance.choice(values)
            old = {"diet": "vegan", "relationship_status": "single"}.get(name) or chance.choice(
                [v for v in values if v != new]
            )
            yield Case(
                "free", text,
                (
                    Said(who, slot.states[0].format(old), day(3, 1), (Means(name, old),)),
                    Said(who, text.format(old=old, new=new), day(5, 2), (Means(name, new, ends=True),)),
                ),
                frozenset([name]), frozenset([told(who, name, new)]), frozenset([told(who, name, old), told(who, name, new)]),
            )  # fmt: skip


FAMILIES: Final[tuple[Family, ...]] = (
    _change, _correction, _chain, _return, _again, _past, _end, _taste, _negation, _people, _order, _idle, _same, _more, _free,
)  # fmt: skip


def cases(seed: int = 5) -> list[Case]:
    """All cases of a seed."""
    chance = random.Random(seed)
    return [case for family in FAMILIES for case in family(chance)]


# --- the scripted model


def reader_of(case: Case) -> Callable[[ChatRequest], list[str]]:
    """What a model that understands the case writes when it is shown one of its messages."""
    meanings = {(said.text, parse_instant(said.at)): said for said in case.said}

    def read(request: ChatRequest) -> list[str]:
        out: list[str] = []
        for line in lines_of(request):
            said = meanings[line["text"], parse_instant(line["at"])]
            for means in said.means:
                out.append(_command(means, line, known_of(request), said))
        return out

    return read


def _command(means: Means, line: dict[str, Any], known: list[dict[str, Any]], said: Said) -> str:
    who = line["by"]
    kind = {
        "lives_in": "Place",
        "visited": "Place",
        "works_for": "Organization",
        "likes": "Topic",
        "dislikes": "Topic",
    }
    creates, subject, obj = [], f":{who}", f'"{means.value}"'
    if means.predicate in kind:
        key = means.value.lower()
        creates.append(
            f'UPSERT CONCEPT ?o {{ MATCH {{type: "{kind[means.predicate]}", key: "{key}"}} SET FIELDS {{name: "{means.value}"}} }}'
        )
        obj = "?o"
    if means.of is not None:
        key = f"name:{means.of.lower()}"
        creates.append(
            f'UPSERT CONCEPT ?s {{ MATCH {{type: "Person", key: "{key}"}} SET FIELDS {{name: "{means.of}"}} }}'
        )
        subject = "?s"
    later = [
        one["id"]
        for one in known
        if _replaces(means, one) and parse_instant(one["at"]) > parse_instant(said.at)
    ]
    old = [one["id"] for one in known if _replaces(means, one) and one["id"] not in later]
    ends = [(name, end) for name, end in (("from", means.start), ("until", means.until)) if end]
    valid = f", valid: {{{', '.join(f'{name}: "{end}"' for name, end in ends)}}}" if ends else ""
    tail = f' SUPERSEDING "{old[-1]}"' if means.ends and old else ""
    closed = ""
    if later and not means.ends and means.until is None:  # said before what is known already: it ended then
        closed = f', valid: {{until: "{said.at}"}}'
    stance = f', stance: "{means.stance}"' if means.stance != "support" else ""
    claim = (
        f'ASSERT ({subject}, "{means.predicate}", {obj}) '
        f'{{by: :{who}, mode: "stated", confidence: 0.9, evidence: :msg{line["msg"]}{stance}{valid or closed}}}{tail}'
    )
    return f"MUTATE {{ {' '.join([*creates, claim])} }}"


def _replaces(means: Means, one: dict[str, Any]) -> bool:
    """Whether a known claim is of the slot that a statement speaks of, and open."""
    _, name, value = one["claim"]
    value = str(value).rpartition(" (C-")[0] or str(value)
    if "valid" in one and "until" in one["valid"]:
        return False
    if predicate(means.predicate) in FUNCTIONAL:
        return bool(name == means.predicate)
    opposite = OPPOSITE.get(predicate(means.predicate), "").rpartition("/")[2]
    return name in (means.predicate, opposite) and value == means.value


# --- judging


class Verdict(msgspec.Struct, frozen=True):
    """Whether a case ended right: what is believed now, and what is on record."""

    current: bool
    history: bool
    found: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Both."""
        return self.current and self.history


def judge(state: SpaceState, case: Case, *, now: Instant | None = None) -> Verdict:
    """Compare a space with what a case says must hold in it."""
    at = parse_instant(NOW) if now is None else now
    current: set[str] = set()
    record: dict[str, set[tuple[Any, ...]]] = {}
    for element in state.ids("assertion"):
        claim = state.get(element)
        about = state.get(claim.proposition) if isinstance(claim, Assertion) else None
        if not isinstance(claim, Assertion) or not isinstance(about, Proposition):
            continue
        name = about.predicate_ref.rpartition("/")[2]
        words = getattr(about.object, "value", None)
        value = _name(state, about.object.id) if words is None else str(words)  # type: ignore[union-attr]
        text = told(
            _name(state, claim.asserted_by),
            name,
            value,
            of=_name(state, about.subject),
            held=claim.stance == "support",
        )
        if name not in case.predicates:
            continue
        record.setdefault(text, set()).add(
            (claim.valid_time.start, claim.valid_time.until, claim.asserted_at)
        )
        valid = claim.valid_time
        open_now = (valid.start is None or valid.start <= at) and (valid.until is None or valid.until > at)
        if claim.status == "active" and open_now:
            current.add(text)
    current = {_same_denial(text) for text in current}
    supported = {text for text in current if " not " not in text}
    if case.family == "breath":  # that the old one is denied beside the new one is right as well
        current = supported
    wanted = {_same_denial(text) for text in case.current}
    history = all(text in record or _same_denial(text) in map(_same_denial, record) for text in case.record)
    history &= all(len(record.get(text, ())) == times for text, times in case.intervals)
    return Verdict(current == wanted, history, tuple(sorted(current)))


def _same_denial(text: str) -> str:
    """Not liking and disliking are one belief to this measure."""
    return text.replace(" not likes ", " dislikes ")


def _name(state: SpaceState, element: str) -> str:
    found = state.get(element)
    return str(found.name) if isinstance(found, Concept) else "?"


class Share(msgspec.Struct, frozen=True):
    """How many cases of a family ended right, and with which of the two wrong."""

    family: str
    cases: int
    current: int
    history: int
    right: int


def form_case(case: Case, *, model: bool) -> Thinking:
    """A space that has formed what a case says, by the offline reader or by a scripted model."""
    world = Thinking(Reading(reader_of(case)) if model else None)
    world.create()
    for said in case.said:
        message = {"role": "user", "name": said.by, "content": said.text}
        world.submit("home", [message], timestamp=said.at)
    drained = world.drain()
    assert len(drained.formed) == len(case.said), drained
    return world


def measure(found: list[Case], *, model: bool) -> list[Share]:
    """The shares of each family, and last of all of them."""
    counts: dict[str, Counter[str]] = {}
    for case in found:
        verdict = judge(form_case(case, model=model).spaces.load("home"), case)
        told_by = {
            "cases": True,
            "current": verdict.current,
            "history": verdict.history,
            "right": verdict.right,
        }
        for family in (case.family, "all"):
            counts.setdefault(family, Counter()).update(name for name, held in told_by.items() if held)
    every = counts.pop("all")
    rows = [*counts.items(), ("all", every)]
    return [
        Share(name, *(row[part] for part in ("cases", "current", "history", "right"))) for name, row in rows
    ]
