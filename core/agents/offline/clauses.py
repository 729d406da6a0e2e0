"""Clauses: a message cut into plain statements, with everything that is no statement left out.

What lives here: sentence and clause boundaries, and the guards. A question, a supposition, somebody else's words
or a joke makes no claim, and when in doubt a sentence is left out: its words stay findable as Evidence all the
same. What must never live here: what a statement means.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED: Final = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|‘[^’\n]{12,}’|(?<!\w)'[^'\n]{12,}'(?!\w)")
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_SENTENCE: Final = re.compile(r"(?:[^.!?\n;…。！？]|\.(?=\w))+[.!?;…。！？]*")
_ABBREVIATION: Final = re.compile(
    r"\b(mr|mrs|ms|dr|st|prof|inc|ltd|co|jr|sr|vs|e\.g|i\.e|a\.m|p\.m)\.", re.IGNORECASE
)
MAX_SENTENCE: Final = 1_000
"""Characters; a longer one is no plain statement. It also bounds what patterns cost, which try again from every place:
whoever sends a message may have made it so."""
_MARK: Final = "\u2024"  # a one-dot leader stands in for the dot of an abbreviation

# Any of these anywhere in a sentence makes it no plain statement.
_SUPPOSED: Final = re.compile(
    r"\b(?:if|unless|whether|would|wouldn't|could|couldn't|should|might|maybe|perhaps|possibly|probably"
    r"|wish|wished|hope to|hoping to|imagine|suppose|supposing|pretend|pretending|hypothetically|hypothetical"
    r"|let's say|say that|for example|for instance|what about|as though|were to|not sure|unsure|no idea"
    r"|don't know|do not know|wonder|wondering|dream of|dreamed|dreamt|considering|thinking (?:of|about)"
    r"|(?:i|we|he|she|they) may|i'd|we'd|he'd|she'd|they'd|you'd|almost|nearly"
    r"|in (?:the|this|that|a|my) (?:novel|book|movie|film|game|story|song|play|dream|show|series))\b",
    re.IGNORECASE,
)
_REPORTED: Final = re.compile(
    r"\b(?:said|says|saying|told|tells|asked|asks|claimed|claims|according to|heard|reads|wrote|writes|quoted?"
    r"|replied|joked|lied|mentioned that|thinks|thought|believes"
    r"|they say|people say|rumou?r)\b",
    re.IGNORECASE,
)
_JOKE: Final = re.compile(
    r"(?:\s/s\b|\bjk\b|\bjust kidding\b|\bkidding\b|\bjoking\b|\bsarcas|\byeah,? right\b|\bironic|\bas if\b|\bnot!|\boh sure\b|\blol,? not\b|🙃|\bnot really\b)",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"^(?:(?:and|but|so|well|hey|oh|hi),? )*(?:who|whom|whose|what|when|where|why|how|which|do|does|did|is|are|am|was|were|can"
    r"|will|shall|have|has|had|isn't|aren't|don't|didn't|won't)\b(?!n't)(?! (?:a lot|fun)\b)",
    re.IGNORECASE,
)
_SPLIT: Final = re.compile(
    r"(?:,\s*|\s+)(?:and|but|so|because|though|although|while|whereas|plus)\s+(?=(?:i|i'm|i've|i'll|my|we)\b)"
    r"|,\s*(?=(?:i|i'm|i've|i'll|my)\b)|\s+[-–—]+\s+|\s*\((?=i\b)|:\s+",
    re.IGNORECASE,
)
# "I left Acme and joined Globex": who did the one did the other.
_IMPLIED: Final = re.compile(
    r"(?<=\w)(?P<and>,? and )(?=(?:joined|moved to|relocated to|became|started (?:working|at)|now (?:live|work))\b)"
)
_SPEAKER: Final = re.compile(r"(?:i|we|i've|we've)\b", re.IGNORECASE)
_OPENER: Final = re.compile(
    r"^(?:(?:actually|well|oh|hey|hi|hello|yeah|yes|yep|no|nope|ok|okay|so|and|but|also|by the way|btw|fyi|honestly"
    r"|to be honest|tbh|in fact|anyway|sure|thanks|thank you|please|wow|great|cool|nice|right|look|listen"
    r"|sorry|oops|just so you know|for the record|as you know|update|correction|good news|sadly|luckily"
    r"|unfortunately|fortunately|obviously|of course|btw|also|then|now|currently|recently|lately|personally"
    r"|i think|i guess|i mean|i believe|you know)(?:[ ,!:]+(?:[A-Z]\w+[,!] *)?|$))+",
    re.IGNORECASE,
)
_CALL: Final = re.compile(r"^(?:hey|hi|hello|thanks|wow)?[ ,]*[A-Z]\w+[,!]\s+(?=[A-Z])")


class Clause(msgspec.Struct, frozen=True):
    """One plain statement. `text` has no opener; `span` is where in the message its sentence stands.

    opener: the words before the statement, lower case ("actually"). hedged: the speaker said "I think".
    """

    text: str
    span: tuple[int, int] = (0, 0)
    opener: str = ""
    hedged: bool = False


def plain_apostrophes(text: str) -> str:
    """Typographic apostrophes as plain ones, so that one pattern reads both; lengths stay."""
    return text.replace("’", "'").replace("ʼ", "'")


def find_clauses(text: str) -> list[Clause]:
    """The plain statements of a message, in order; empty for a message that states nothing plainly."""
    bare = plain_apostrophes(text)
    for pattern in (_CODE, _QUOTED, _QUOTED_LINE):
        bare = pattern.sub(lambda match: "\ufffc" * len(match[0]), bare)
    bare = _ABBREVIATION.sub(lambda match: match[0][:-1] + _MARK, bare)
    return [
        clause for match in _SENTENCE.finditer(bare) for clause in _clauses_of(match[0].strip(), _span(match))
    ]


def _span(match: re.Match[str]) -> tuple[int, int]:
    """Where a sentence begins and ends, the space around it left out. Every step above keeps each character's place."""
    first = match.start() + len(match[0]) - len(match[0].lstrip())
    return first, first + len(match[0].strip())


def _clauses_of(sentence: str, span: tuple[int, int]) -> list[Clause]:
    """The clauses of one sentence, or none if the sentence states nothing."""
    if (
        len(sentence) > MAX_SENTENCE
        or not sentence
        or "?" in sentence[-3:]
        or "？" in sentence
        or _QUESTION.match(sentence)
    ):
        return []
    if _SUPPOSED.search(sentence) or _REPORTED.search(sentence) or _JOKE.search(sentence):
        return []
    clauses: list[Clause] = []
    before = ""  # an opener that stands alone ("Sorry, I meant ...") goes with what follows
    if _SPEAKER.match(sentence):
        sentence = _IMPLIED.sub(r"\g<and>I ", sentence)
    for part in _SPLIT.split(sentence):
        rest = part.strip(" ,").replace(_MARK, ".").rstrip(".!?;…。！ ")
        call = _CALL.match(rest)
        if call:
            rest = rest[call.end() :]
        opener = _OPENER.match(rest)
        words = f"{before} {opener[0].lower()}" if opener else before
        rest = rest[opener.end() :].strip() if opener else rest
        before = "" if rest else words
        if rest and "\ufffc" not in rest:
            hedged = "i think" in words or "i guess" in words or "i believe" in words
            clauses.append(Clause(rest, span, words.strip(" ,!:"), hedged))
    return clauses
