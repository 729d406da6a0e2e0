"""`Rule`: a row of a family's table, and how tables are matched against a clause.

The clause's subject is found first ("I", "my sister Anna", "Bob"), then each pattern is tried at the place behind
it. A pattern's group `value` is the object's beginning; a group `neg` that matched makes the stance a rejection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from core.agents.offline.claims import SPEAKER, Claim, Finding, Mention, Tense, Value, ValueKind
from core.agents.offline.clauses import Clause
from core.agents.offline.dates import When, find_dates
from core.agents.offline.values import NO_PERSON, READERS
from core.model.elements import Stance
from core.model.instants import Instant

ADVERB: Final = (
    r"(?:(?:really|absolutely|currently|now|still|also|actually|recently|just|always|totally|finally|already|mostly"
    r"|usually|generally|officially|happily|truly|definitely|both|kind of|sort of|so|simply|even|all|quite|have|has) )*"
)
NEG: Final = r"(?P<neg>(?:do not|does not|no longer|never|did not) )?"
BE: Final = rf"(?:am|is|are|'s) {ADVERB}(?P<neg>not |no longer )?{ADVERB}"
RELATIONS: Final = (
    "mother|father|mom|mum|dad|sister|brother|wife|husband|partner|girlfriend|boyfriend|fiancee|fiancée|fiancé|fiance"
    "|son|daughter|kid|child|baby|friend|best friend|boss|manager|colleague|coworker|co-worker|teammate|neighbour|neighbor"
    "|grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|niece|nephew|roommate|flatmate"
    "|mother-in-law|father-in-law|sister-in-law|brother-in-law|stepmother|stepfather|stepson|stepdaughter|granddaughter|grandson"
)
_MINE: Final = re.compile(
    rf"(?i:my (?:dear |best |older |younger |elder |little |big |twin |new |late |old |close |good )*(?P<relation>{RELATIONS}))"
    r",? (?i:(?:is )?(?:named|called) )?(?P<name>[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)?,? )?"
)
_FIRST: Final = re.compile(r"(?:i|we) ", re.IGNORECASE)
# A verb in its bare form has no third person as its subject ("Sounds like a plan", "Themes like love").
_NAMED: Final = re.compile(
    r"(?P<name>[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+){0,2}) (?=[a-z])"
    r"(?!(?:\w+ly )?(?:like|love|enjoy|adore|hate|dislike|live|reside|work|study|speak|prefer|come|are|am|have|do)\b)"
)
_CONTRACTIONS: Final = tuple(
    (re.compile(rf"\b{short}\b", re.IGNORECASE), long)
    for short, long in (
        ("i'm", "I am"), ("im", "I am"), ("i've", "I have"), ("i'll", "I will"), ("we're", "we are"), ("we've", "we have"),
        ("we'll", "we will"), ("it's", "it is"), ("that's", "that is"), ("he's", "he is"), ("she's", "she is"),
        ("they're", "they are"), ("don't", "do not"), ("dont", "do not"), ("doesn't", "does not"), ("didn't", "did not"),
        ("isn't", "is not"), ("aren't", "are not"), ("can't", "cannot"), ("won't", "will not"), ("haven't", "have not"),
        ("favorite", "favourite"),
    )
)  # fmt: skip
_ENDED: Final = re.compile(r"\b(?:anymore|any more|any longer)\b", re.IGNORECASE)


class Rule(msgspec.Struct, frozen=True):
    """One row: where `pattern` matches behind the subject, the subject's `predicate` has the value read there.

    fixed: the value where the words are the value ("vegan"). split: "A and B" are two values.
    stance and tense: what a match means; a `neg` group turns support into rejection.
    ends: the words only end what was held before ("I left Acme" denies no job nobody claimed).
    """

    pattern: re.Pattern[str]
    predicate: str
    kind: ValueKind
    fixed: str | None = None
    split: bool = False
    stance: Stance = "support"
    tense: Tense = "state"
    ends: bool = False


def rule(
    pattern: str,
    predicate: str,
    kind: ValueKind,
    *,
    fixed: str | None = None,
    split: bool = False,
    stance: Stance = "support",
    tense: Tense = "state",
    ends: bool = False,
) -> Rule:
    """A row from its pattern's text, in which `{adv}`, `{neg}` and `{be}` stand for the shared pieces.

    Case is ignored, except where the value's own pattern asks for a capital (`[A-Z]`).
    """
    text = pattern.replace("{adv}", ADVERB).replace("{neg}", NEG).replace("{be}", BE)
    before, mark, value = text.partition("(?P<value>")
    flags = re.NOFLAG if "[A-Z]" in value else re.IGNORECASE
    return Rule(
        re.compile(f"(?i:{before}){mark}{value}", flags), predicate, kind, fixed, split, stance, tense, ends
    )


def expand(text: str) -> str:
    """Contractions in full, so that one pattern reads both forms: `"I'm"` -> `"I am"`."""
    for pattern, long in _CONTRACTIONS:
        text = pattern.sub(long, text)
    return text


_SPELLINGS: Final = {
    "favorite": "favourite",
    "color": "colour",
    "hometown": "home town",
    "kids": "children",
    "kid": "child",
}


def one_spelling(text: str) -> str:
    """One spelling of the words that labels are made of: `"My favorite color"` -> `"my favourite colour"`."""
    return " ".join(_SPELLINGS.get(word, word) for word in re.findall(r"[\w'-]+", text.lower()))


def find_subjects(text: str) -> Iterator[tuple[Mention, str]]:
    """Who an expanded clause is about, with the words that follow."""
    first = _FIRST.match(text)
    if first:
        yield SPEAKER, text[first.end() :]
        return
    mine = _MINE.match(text)
    if mine:
        name = (mine["name"] or "").strip(" ,")
        if name:
            yield Mention(name=name, relation=mine["relation"].lower()), text[mine.end() :]
        else:
            yield Mention(relation=mine["relation"].lower()), text[mine.end("relation") :].lstrip(" ,")
        return
    named = _NAMED.match(text)
    if named and named["name"].split()[0].lower() not in NO_PERSON:
        yield Mention(name=named["name"]), text[named.end() :]


def pick_date(clause: Clause, said_at: Instant, tense: Tense) -> When | None:
    """The date a clause names, if it names exactly one."""
    dates = find_dates(clause.text, said_at, past=tense != "state")
    return dates[0] if len(dates) == 1 else None


def match_rules(rules: tuple[Rule, ...], clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """The claims that a family's first matching rule makes of a clause."""
    for subject, rest in find_subjects(expand(clause.text)):
        for row in rules:
            match = row.pattern.match(rest)
            if match is None:
                continue
            claims = list(_claims(row, match, subject, clause, said_at))
            if claims:
                yield from claims
                return


def _claims(
    row: Rule, match: re.Match[str], subject: Mention, clause: Clause, said_at: Instant
) -> Iterator[Claim]:
    rest = match.string
    stance = row.stance
    negated = "neg" in match.re.groupindex and match["neg"]
    if negated:
        stance = "reject" if stance == "support" else "support"
    ended = bool(negated and "longer" in match["neg"]) or bool(negated and _ENDED.search(rest))
    if _ENDED.search(rest) and not negated:
        return  # "anymore" without a negation is no plain statement
    tense: Tense = "change" if ended else row.tense
    for value in _values(row, match, rest):
        yield Claim(
            subject=subject,
            predicate=row.predicate,
            value=value,
            stance=stance,
            tense=tense,
            when=pick_date(clause, said_at, tense),
            span=clause.span,
            hedged=clause.hedged,
            ends=row.ends,
        )


def _values(row: Rule, match: re.Match[str], rest: str) -> Iterator[Value]:
    if row.fixed is not None:
        yield Value(row.kind, row.fixed)
        return
    words = rest[match.start("value") :]
    parts = [words]
    if row.split:
        first = READERS[row.kind](words) or ""
        halves = first.split(" and ")
        if len(halves) == 2 and all(0 < len(half.split()) <= 3 for half in halves):
            parts = halves
    for part in parts:
        found = READERS[row.kind](part)
        if found is not None:
            mention = Mention(name=found) if row.kind == "person" else None
            yield Value(row.kind, found, mention=mention)
