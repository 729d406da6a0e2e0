"""Relations: family, friends, colleagues and pets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.agents.offline.claims import SPEAKER, Claim, Finding, Mention, Value
from core.agents.offline.clauses import Clause
from core.agents.offline.rules.rule import RELATIONS, expand, pick_date
from core.agents.offline.values import NO_PERSON, cut, read_person
from core.model.instants import Instant

# What "my <word>" makes of the person named: the predicate from the speaker to them.
PREDICATES: Final = {
    **dict.fromkeys(("mother", "father", "mom", "mum", "dad"), "has_parent"),
    **dict.fromkeys(("sister", "brother"), "has_sibling"),
    **dict.fromkeys(
        ("wife", "husband", "partner", "girlfriend", "boyfriend", "fiancee", "fiancée", "fiancé", "fiance"),
        "has_partner",
    ),
    **dict.fromkeys(("son", "daughter", "kid", "child", "baby"), "has_child"),
    **dict.fromkeys(("friend", "best friend"), "has_friend"),
    **dict.fromkeys(("boss", "manager"), "reports_to"),
    **dict.fromkeys(("colleague", "coworker", "co-worker", "teammate"), "works_with"),
    **dict.fromkeys(("neighbour", "neighbor", "roommate", "flatmate"), "knows"),
}  # every other word of RELATIONS: has_relative
PETS: Final = "dog|cat|puppy|kitten|parrot|hamster|rabbit|bunny|horse|goldfish|turtle|guinea pig|bird|pet|snake|lizard|ferret|pup"
_N: Final = r"(?P<name>[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)?)"
_ADJECTIVE: Final = r"(?:(?:dear|best|older|younger|elder|little|big|twin|new|late|old|close|good|eldest|youngest|oldest|lovely|beautiful|amazing) )*"

# "My sister Anna ...", "my sister's name is Anna", "my sister is called Anna", "my boss is Eve".
_NAMED: Final = re.compile(
    rf"(?i:\b(?:my|our) {_ADJECTIVE}(?P<relation>{RELATIONS}))(?:,? (?i:(?:is )?(?:named|called) )?|(?i:'s name is )|(?i: is )){_N}(?P<after>'s\b)?"
)
_IS_MY: Final = re.compile(rf"{_N} (?i:is|'s) (?i:my|our) {_ADJECTIVE}(?i:(?P<relation>{RELATIONS}))\b")
_OF_OTHER: Final = re.compile(
    rf"{_N} is (?P<owner>[A-ZÀ-Þ][\w-]+)'s {_ADJECTIVE}(?i:(?P<relation>{RELATIONS}))\b"
)
_HAVE: Final = re.compile(
    rf"(?i:\b(?:i|we) (?:have|got|had)(?: got)? (?:a|an|one) {_ADJECTIVE}(?P<relation>{RELATIONS}),? (?:named|called|whose name is) ){_N}"
)
_MARRIED_TO: Final = re.compile(
    rf"(?i:\bi (?:am|got) (?:happily )?(?:married|engaged) to )(?:(?i:my \w+ ))?{_N}"
)
_PET: Final = re.compile(
    rf"(?i:\b(?:my|our) (?:\w+ )?(?P<species>{PETS}))(?:,? (?i:(?:is )?(?:named|called) )?|(?i:'s name is )|(?i: is )){_N}(?P<after>'s\b)?"
)
_PET_HAVE: Final = re.compile(
    rf"(?i:\b(?:i|we) (?:just |recently |finally )?(?:have|got|adopted|bought|own|rescued)(?: got)? (?:a|an|one)(?: \w+){{0,2}}? (?P<species>{PETS}),? "
    rf"(?:named|called|and (?:his|her|its|their) name is|whose name is) ){_N}"
)
_KIDS: Final = re.compile(
    r"(?i)\b(?:i|we) (?:have|got)(?: got)? (?P<n>\d|one|two|three|four|five|six|seven|eight) (?:\w+ )?(?P<what>kids|children|kid|child|sons|daughters|boys|girls|siblings|brothers|sisters|cats|dogs|pets)\b"
)
_COUNT: Final = {
    word: str(i) for i, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"), 1)
}


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """Relations and pets stated in a clause."""
    text = expand(clause.text)
    for pattern in (_NAMED, _IS_MY, _HAVE):
        for hit in pattern.finditer(text):
            yield from _relation(hit, SPEAKER, clause)
    for hit in _OF_OTHER.finditer(text):
        yield from _relation(hit, Mention(name=hit["owner"]), clause)
    if (wed := _MARRIED_TO.search(text)) and (name := read_person(wed["name"])):
        person = Value("person", name, mention=Mention(name=name))
        yield Claim(
            SPEAKER, "has_partner", person, when=pick_date(clause, said_at, "change"), span=clause.span
        )
    for pattern in (_PET, _PET_HAVE):
        for pet_hit in pattern.finditer(text):
            pet_name = read_person(pet_hit["name"])
            if pet_name:
                pet = Value("animal", pet_name, note=pet_hit["species"].lower())
                yield Claim(SPEAKER, "owns_pet", pet, span=clause.span)
    if kids := _KIDS.search(text):
        number = _COUNT.get(kids["n"].lower(), kids["n"])
        what = {"kid": "children", "child": "children", "kids": "children"}.get(
            kids["what"].lower(), kids["what"].lower()
        )
        yield Claim(SPEAKER, "value", Value("number", number), label=f"number of {what}", span=clause.span)


def _relation(hit: re.Match[str], owner: Mention, clause: Clause) -> Iterator[Finding]:
    relation = hit["relation"].lower()
    name = read_person(hit["name"])
    if name is None or cut(name).lower() in NO_PERSON:
        return
    person = Value(
        "person",
        name,
        note=relation,
        mention=Mention(name=name, relation=relation if owner.is_speaker else None),
    )
    yield Claim(owner, PREDICATES.get(relation, "has_relative"), person, span=clause.span)
