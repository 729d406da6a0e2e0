"""Identity and profile facts: name, age, birthday, time zone, family status, diet, languages, named details."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.agents.offline.claims import SPEAKER, Claim, Finding, Mention, Retirement, Value
from core.agents.offline.clauses import Clause
from core.agents.offline.dates import MONTHS, When
from core.agents.offline.rules.rule import (
    BE,
    RELATIONS,
    Rule,
    expand,
    match_rules,
    one_spelling,
    pick_date,
    rule,
)
from core.agents.offline.values import NO_PERSON, read_person, read_text, read_timezone
from core.model.instants import Instant, to_datetime

_STATUS: Final = {
    "single": "single", "married": "married", "divorced": "divorced", "engaged": "engaged", "widowed": "widowed",
    "separated": "separated", "in a relationship": "in a relationship", "not married": "single",
}  # fmt: skip
_DIETS: Final = ("vegetarian", "vegan", "pescatarian", "gluten-free", "kosher", "halal")
_LANGUAGES: Final = (
    "english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hebrew|hindi|urdu"
    "|bengali|chinese|mandarin|cantonese|japanese|korean|vietnamese|thai|swedish|norwegian|danish|finnish|greek|czech"
)

RULES: Final[tuple[Rule, ...]] = (
    *(rule(rf"{BE}{words}(?![\w-])(?! (?:parent|mom|mum|dad|mother|father|person|out|in)\b)", "relationship_status", "text", fixed=status)
      for words, status in _STATUS.items() if status != "married" and words != "not married"),
    rule(r"{be}(?:happily )?married\b(?! to (?:the|my|a)\b)", "relationship_status", "text", fixed="married"),
    rule(r"{adv}(?:got|gotten|getting) married\b", "relationship_status", "text", fixed="married", tense="change"),
    rule(r"{adv}(?:got|gotten|getting) divorced\b", "relationship_status", "text", fixed="divorced", tense="change"),
    rule(r"{adv}(?:got|gotten) engaged\b", "relationship_status", "text", fixed="engaged", tense="change"),
    *(rule(rf"{BE}(?:a |an )?(?:strict |lifelong )?{diet}\b", "diet", "text", fixed=diet) for diet in _DIETS),
    *(rule(rf"{{adv}}(?:became|went|turned) (?:a )?{diet}\b", "diet", "text", fixed=diet, tense="change") for diet in _DIETS),
    rule(r"{be}(?:severely |very |deadly )?allergic to (?P<value>.+)", "allergic_to", "topic", split=True),
    rule(rf"{{adv}}{{neg}}speaks? (?:fluent |some |a little )?(?P<value>(?:{_LANGUAGES})\b.*)", "speaks", "topic", split=True),
    rule(rf"{{be}}fluent in (?P<value>(?:{_LANGUAGES})\b.*)", "speaks", "topic", split=True),
    rule(r"{be}(?P<value>\d{1,3})(?: years? old| years of age)?(?=$|[,.!]| now\b| today\b)", "age", "number"),
    rule(r"{adv}(?:turned|turn) (?P<value>\d{1,3})\b(?! (?:minutes|hours|people|times|percent|degrees|pages))", "age", "number", tense="change"),
)  # fmt: skip

_NAME: Final = re.compile(
    r"(?:my (?:full |first |real )?name is|i am called|(?:you can |please |just )?call me|i go by)(?: now)? (?P<value>.+)",
    re.IGNORECASE,
)
_BORN: Final = re.compile(r"i was born (?:on )?(?P<value>.+)", re.IGNORECASE)
_BIRTHDAY: Final = re.compile(
    rf"my (?:(?P<relation>{RELATIONS})(?P<name> [A-Z]\w+)?'s )?(?:birthday|date of birth|birth date) (?:is|falls) (?:on )?(?P<value>.+)",
    re.IGNORECASE,
)
_ZONE: Final = re.compile(
    r"(?:(?:my (?:current |new )?time ?zone (?:is|has changed to|changed to|was changed to)|i am (?:\w+ )?(?:in|on)|i live in|i work (?:in|on)|my time is) (?:now )?(?:the )?)(?P<value>.+)",
    re.IGNORECASE,
)
_FAVOURITE: Final = (
    r"favou?rite (?!(?:one|thing|part|bit|of|to)\b)[a-z][a-z-]*(?: (?!to\b|of\b)[a-z-]+){0,2}?"
)
_DETAIL: Final = re.compile(
    rf"my (?P<label>{_FAVOURITE}|go-to [a-z]+|hometown|home town|nickname|middle name|last name|surname|blood type|shoe size|star sign"
    r"|zodiac sign|major|pronouns|nationality|religion"
    r"|(?P<coded>(?:phone|mobile|account|membership|licen[cs]e|passport|flight|room|seat) number|(?:licen[cs]e )?plate|e-?mail(?: address)?|address))"
    r" (?:is|are) (?:now |currently |still |definitely )?(?P<value>.+)",
    re.IGNORECASE,
)
_OWNED: Final = re.compile(
    r"(?P<owner>[A-ZÀ-Þ][\w-]+)'s (?P<label>favou?rite [a-z]+(?: [a-z]+)?|hometown|nickname|birthday) (?:is|are) (?:on )?(?P<value>.+)"
)
_DAY: Final = re.compile(
    r"(?:the )?(?:(?P<d1>\d{1,2})(?:st|nd|rd|th)?(?: of)? (?P<m1>[a-z]+)|(?P<m2>[a-z]+)\.? (?:the )?(?P<d2>\d{1,2})(?:st|nd|rd|th)?)"
    r"(?:,? (?:of )?(?P<y>(?:19|20)\d\d))?\b",
    re.IGNORECASE,
)
_ISO: Final = re.compile(r"(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)-(?P<d>\d\d)\b")
_SINGLE_AGAIN: Final = re.compile(
    r"(?:i|we) (?:just |recently |finally )?(?:broke up|split up)\b", re.IGNORECASE
)


def read_day_of_year(text: str) -> str | None:
    """A day of birth: `"May 5th, 1990"` -> `1990-05-05`, without a year `--05-05`."""
    iso = _ISO.match(text)
    if iso:
        return iso[0]
    match = _DAY.match(text)
    if match is None:
        return None
    word = (match["m1"] or match["m2"]).lower()
    months = [
        number
        for name, number in MONTHS.items()
        if name == word or (len(word) >= 3 and name.startswith(word))
    ]
    day = int(match["d1"] or match["d2"])
    if len(months) != 1 or not 1 <= day <= 31:
        return None
    return f"{match['y'] or '-'}-{months[0]:02d}-{day:02d}"


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """Identity claims of a clause."""
    text = expand(clause.text)
    found = list(_own(clause, text, said_at))
    if found:
        yield from found
        return
    for claim in match_rules(RULES, clause, said_at):
        if isinstance(claim, Claim) and claim.predicate == "age" and not 0 < int(claim.value.text) < 125:
            continue
        yield claim


def _own(clause: Clause, text: str, said_at: Instant) -> Iterator[Finding]:
    """Statements of the form "my X is Y"."""

    def claim(
        predicate: str,
        value: str,
        label: str | None = None,
        subject: Mention = SPEAKER,
        when: When | None = None,
    ) -> Claim:
        return Claim(
            subject,
            predicate,
            Value("text", value),
            label=label,
            span=clause.span,
            hedged=clause.hedged,
            when=when,
        )

    if (hit := _NAME.match(text)) and (name := read_person(hit["value"])):
        yield claim("name", name)
    elif hit := _BIRTHDAY.match(text):
        day = read_day_of_year(hit["value"])
        if day is not None:
            yield claim("birthday", day, subject=_relative(hit))
    elif hit := _BORN.match(text):
        day = read_day_of_year(hit["value"])
        year = re.match(r"in ((?:19|20)\d\d)\b", hit["value"])
        if day is not None:
            yield claim("birthday", day)
        elif year and int(year[1]) <= to_datetime(said_at).year:
            yield claim("value", year[1], "birth year")
    elif (hit := _ZONE.match(text)) and (zone := read_timezone(hit["value"])):
        yield claim("timezone", zone)
    elif (hit := _DETAIL.match(text)) and (value := _detail(hit)) is not None:
        yield claim("value", value, _label(hit["label"]))
    elif (
        (hit := _OWNED.match(text))
        and hit["owner"].lower() not in NO_PERSON
        and (value := read_text(hit["value"]))
    ):
        if hit["label"] == "birthday":
            if day := read_day_of_year(hit["value"]):
                yield claim("birthday", day, subject=Mention(name=hit["owner"]))
        else:
            yield claim("value", value, _label(hit["label"]), subject=Mention(name=hit["owner"]))
    elif _SINGLE_AGAIN.match(text):
        yield Retirement(
            SPEAKER,
            ("has_partner", "relationship_status"),
            pick_date(clause, said_at, "change"),
            clause.span,
        )


def _detail(hit: re.Match[str]) -> str | None:
    """The value of a detail; a number, a plate or an address must hold a digit or an @ to be one."""
    value = read_text(hit["value"])
    if value is None or (hit["coded"] and not re.search(r"[\d@]", value)):
        return None
    return value


def _relative(hit: re.Match[str]) -> Mention:
    if not hit["relation"]:
        return SPEAKER
    name = (hit["name"] or "").strip()
    return Mention(name=name if name[:1].isupper() else None, relation=hit["relation"].lower())


def _label(text: str) -> str:
    return one_spelling(text)
