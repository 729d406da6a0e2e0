"""Cues: which words ask for which predicate, and how a claim of it is said.

One row a predicate; nothing else decides how questions and claims meet. To teach recall a predicate, add a row.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from core.search.text import words


class Cue(msgspec.Struct, frozen=True):
    """One predicate: the words that ask for it, and its sentence for a claim that holds, is denied, or has ended."""

    asks: re.Pattern[str]
    holds: str
    denied: str
    ended: str


def _cue(asks: str, holds: str, denied: str, ended: str) -> Cue:
    return Cue(re.compile(rf"\b(?:{asks})\b", re.IGNORECASE), holds, denied, ended)


# One family: whoever asks what somebody likes, enjoys, drinks or would rather have is told of likings and preferences.
_TASTE: Final = (
    r"(?<!look )(?<!looks )(?<!is )(?<!was )(?<!sound )likes?|loves?|enjoys?|adores?|fond of|keen on|hobb(?:y|ies)|pastimes?|interests?|interested in"
    r"|fan|into|prefer(?:ence)?s?|favou?rites?|go-to|passions?|passionate about|for fun|free time|spare time|drinks?"
)
CUES: Final[dict[str, Cue]] = {
    "name": _cue(r"name|called", "{s} is called {o}", "{s} is not called {o}", "{s} was called {o}"),
    "age": _cue(r"how old|age", "{s} is {o} years old", "{s} is not {o} years old", "{s} was {o} years old"),
    "birthday": _cue(r"birthday|date of birth|born", "{s}'s birthday is {o}", "{s}'s birthday is not {o}", "{s}'s birthday was given as {o}"),
    "timezone": _cue(r"time ?zone|what time is it", "{s}'s time zone is {o}", "{s}'s time zone is not {o}", "{s}'s time zone was {o}"),
    "lives_in": _cue(r"lives?|living|lived|reside[sd]?|home|moved?|located|based|city|country", "{s} lives in {o}", "{s} does not live in {o}", "{s} lived in {o}"),
    "comes_from": _cue(r"from|originally|born|home ?town|grew up|raised|roots", "{s} comes from {o}", "{s} does not come from {o}", "{s} came from {o}"),
    "visited": _cue(r"visit(?:ed|s)?|been to|travel(?:led|ed)?|trips?|went|vacation|holiday", "{s} visited {o}", "{s} did not visit {o}", "{s} visited {o}"),
    "job": _cue(r"jobs?|occupation|profession|career|for a living|works? as|work|what (?:does|do) [\w' -]{1,40} do\b(?! with| on| in| at| to| for (?!a living))", "{s}'s job is {o}", "{s} no longer works as {o}", "{s}'s job was {o}"),
    "works_for": _cue(r"works?|employer|company|jobs?|working", "{s} works for {o}", "{s} does not work for {o}", "{s} worked for {o}"),
    "studies_at": _cue(r"stud(?:y|ies|ying)|school|university|college", "{s} studies at {o}", "{s} does not study at {o}", "{s} studied at {o}"),
    "relationship_status": _cue(r"married|single|relationship|divorced|engaged|dating", "{s} is {o}", "{s} is not {o}", "{s} was {o}"),
    "diet": _cue(r"diet|vegetarian|vegan|eats?|food", "{s} is {o}", "{s} is not {o}", "{s} was {o}"),
    "allergic_to": _cue(r"allerg(?:y|ies|ic)", "{s} is allergic to {o}", "{s} is not allergic to {o}", "{s} was allergic to {o}"),
    "likes": _cue(_TASTE, "{s} likes {o}", "{s} does not like {o}", "{s} liked {o}"),
    "dislikes": _cue(r"dislikes?|hates?|not like|n't like|avoids?|detests?|loathes?|cannot stand|can't [\w ]{0,30}?stand", "{s} dislikes {o}", "{s} does not dislike {o}", "{s} disliked {o}"),
    "prefers": _cue(rf"{_TASTE}|rather", "{s} prefers {o}", "{s} does not prefer {o}", "{s} preferred {o}"),
    "speaks": _cue(r"speaks?|languages?|fluent", "{s} speaks {o}", "{s} does not speak {o}", "{s} spoke {o}"),
    "has_partner": _cue(r"wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|married|engaged|dating", "{o} is {s}'s partner", "{o} is not {s}'s partner", "{o} was {s}'s partner"),
    "has_child": _cue(r"child|children|kids?|sons?|daughters?", "{o} is {s}'s child", "{o} is not {s}'s child", "{o} was {s}'s child"),
    "has_parent": _cue(r"mother|father|parents?|mom|mum|dad", "{o} is {s}'s parent", "{o} is not {s}'s parent", "{o} was {s}'s parent"),
    "has_sibling": _cue(r"sisters?|brothers?|siblings?", "{o} is {s}'s sibling", "{o} is not {s}'s sibling", "{o} was {s}'s sibling"),
    "has_relative": _cue(r"relatives?|family|aunt|uncle|cousins?|grand\w+|niece|nephew|\w+-in-law", "{o} is {s}'s relative", "{o} is not {s}'s relative", "{o} was {s}'s relative"),
    "has_friend": _cue(r"friends?", "{o} is {s}'s friend", "{o} is not {s}'s friend", "{o} was {s}'s friend"),
    "works_with": _cue(r"colleagues?|co-?workers?|work with|teammates?", "{o} works with {s}", "{o} does not work with {s}", "{o} worked with {s}"),
    "reports_to": _cue(r"boss|manager|reports? to|supervisor", "{o} is {s}'s boss", "{o} is not {s}'s boss", "{o} was {s}'s boss"),
    "knows": _cue(r"knows|acquaintances?|neighbou?rs?|roommates?|flatmates?", "{s} knows {o}", "{s} does not know {o}", "{s} knew {o}"),
    "owns_pet": _cue(r"pets?|dogs?|cats?|animals?|pupp(?:y|ies)|kittens?", "{o} is {s}'s pet", "{o} is not {s}'s pet", "{o} was {s}'s pet"),
    "value": _cue(r"(?!)", "{s} is {o}", "{s} is not {o}", "{s} was {o}"),
}  # fmt: skip

# Predicates between people: of these the person named may be the object ("Eve is Alice's boss").
RELATIONAL: Final = frozenset(name for name, cue in CUES.items() if cue.holds.startswith("{o}"))
# What else bears on a question that asks for a predicate: "Do I like sushi?" is answered by "I hate sushi".
ALSO: Final = {
    "likes": ("dislikes", "prefers"),
    "dislikes": ("likes",),
    "job": ("works_for",),
    "works_for": ("job",),
}

# A claim of these says one of many things, so a question that names a kind of thing wants one of that kind.
LISTED: Final = frozenset(["likes", "dislikes", "prefers"])
# Words for kinds of things, with words that belong to the kind. A question for a drink is not answered by a sport.
KINDS: Final[dict[str, frozenset[str]]] = {
    kind: frozenset(words(members))
    for kinds, members in (
        (("drink", "beverage"), ("tea coffee espresso latte cappuccino water juice milk beer wine cider soda lemonade cola cocoa smoothie"
         " cocktail whisky whiskey gin rum vodka sake mate kombucha")),
        (("food", "eat", "dish", "meal", "cuisine", "snack"), ("sushi pizza pasta noodles rice bread cheese soup salad curry tacos burger"
         " sandwich meat steak chicken fish seafood fruit vegetables chocolate cake cookies ice-cream pancakes eggs tofu ramen dumplings")),
        (("fruit",), "apples bananas oranges pears grapes cherries strawberries blueberries raspberries mango pineapple peaches plums kiwi melon"),
        (("colour", "color"), "red blue green yellow orange purple violet pink black white grey gray brown turquoise teal"),
        (("sport",), ("football soccer tennis basketball volleyball baseball swimming running cycling skiing climbing rowing golf hockey rugby"
         " boxing surfing badminton cricket")),
        (("animal", "pet"), "dogs cats birds horses rabbits turtles hamsters parrots fish snakes lizards puppies kittens"),
        (("music", "genre"), "jazz rock pop classical techno blues folk metal rap hip-hop opera country punk soul reggae"),
        (("language",), ("english german french spanish italian portuguese dutch polish russian chinese japanese korean arabic hindi python"
         " java rust javascript typescript")),
    )
    for kind in words(" ".join(kinds))
}  # fmt: skip
# "What does she like?" asks for no kind; "which things" and "what activities" ask for any.
KIND_ASKED: Final = re.compile(
    r"\b(?:(?:what|which)(?: (?:kind|sort|type)s? of)?|favou?rite) (?!(?:do|does|did|is|are|was|were|has|have|had|would|will|can|could|should|else|things?|stuff"
    r"|activit(?:y|ies)|hobb(?:y|ies)|interests?|kind|sort|type)\b)(?P<kind>[\w-]+)"
    r"|\b(?P<verb>drink|eat)s?\b",
    re.IGNORECASE,
)

PAST: Final = re.compile(
    r"\b(?:used to|before|previously|previous|formerly|former|earlier|in the past|originally|history|changed|old|ever|at first"
    r"|did .{1,40}? (?:live|work|have|like)|was|were)\b",
    re.IGNORECASE,
)
COMMITMENTS: Final = re.compile(
    r"\b(?:remind(?:er|ers|ed)?|remember to|forget to|promise[ds]?|appointments?|deadlines?|due|to-?dos?|to-?do list|tasks?|obligations?"
    r"|commit(?:ment|ments|ted)|scheduled?|upcoming|agenda|owe[sd]?|supposed to|planned|plans?|planning to|agreed to"
    r"|(?:need|needs|needed|have|has|had|got|going|expected|obliged) to|must|by when|left to do|ought to)\b",
    re.IGNORECASE,
)
# "Tell me about Bob" and "I wonder where Bob lives" are not about who asks.
FIRST_PERSON: Final = re.compile(
    r"(?<!tell )(?<!give )(?<!show )(?<!remind )"
    r"\b(?:i|i'm|i've|me|my|mine|we|our|us)\b(?! (?:wonder|want to know|need to know|forgot)\b)",
    re.IGNORECASE,
)
