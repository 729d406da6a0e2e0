"""Values: where the object of a statement ends, and whether it can be one.

Each kind has one reader, `text -> value or None`. A reader takes what follows the verb and cuts it where the
object ends; what does not look like its kind is no value, so the statement makes no claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from core.agents.offline.claims import ValueKind

_UP: Final = r"[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]"
_NAME: Final = re.compile(
    rf"{_UP}[\w'.&-]*(?:[ ,]{{1,2}}(?:of|de|da|del|la|le|el|the|upon|van|von|and|&)?[ ]?{_UP}[\w'.&-]*)*"
)
_PERSON: Final = re.compile(rf"{_UP}[\w'-]+(?: {_UP}[\w'-]+){{0,2}}")
_TIMEZONE: Final = re.compile(
    r"(?:utc|gmt)(?: ?[+\-−±] ?\d{1,2}(?::?\d{2})?)?(?![\w:])"
    r"|(?:africa|america|asia|atlantic|australia|europe|indian|pacific)/[a-z_]+(?:/[a-z_]+)?"
    r"|(?:us )?(?:pacific|eastern|central|mountain)(?: (?:standard|daylight))? time\b"
    r"|(?:cet|cest|eet|eest|wet|bst|est|edt|cst|cdt|mst|mdt|pst|pdt|jst|kst|ist|aest|aedt|hkt|sgt|msk)\b",
    re.IGNORECASE,
)
_END: Final = re.compile(
    r"\s+(?:but|because|so|since|when|while|though|although|as|that|which|who|where|until|till|after|before|if"
    r"|especially|even|than|for (?:a|an|the|about|over|more|\d|many|years|ages|work|now|me|us)|from|due|thanks|except|with"
    r"|and (?:i|my|we|it|that|have|am|now|she|he|they|then|also))\b|[,;:()\[\]\n]|\s[-–—]+\s|\s*[\U0001f300-\U0001faff\u2600-\u27bf]",
    re.IGNORECASE,
)
_TAIL: Final = re.compile(
    r"(?:[\s,]+(?:now|too|as well|these days|nowadays|at the moment|right now|currently|anymore|any more|any longer"
    r"|a lot|a bit|so much|very much|the most|though|actually|really|again|already|of course|by now|lately|recently"
    r"|instead|best|haha|lol|btw|by the way|today|for sure))+$",
    re.IGNORECASE,
)
_PRONOUNS: Final = frozenset(
    ["it", "that", "this", "these", "those", "you", "him", "her", "them", "us", "me", "how", "what", "when", "where",
     "why", "who", "everything", "something", "anything", "nothing", "everyone", "someone", "one", "there", "here",
     "your", "his", "their", "its", "our", "being", "seeing", "hearing", "having", "knowing", "both", "all", "every",
     "each", "some", "any", "such", "another", "which", "whatever", "more", "much", "many", "too", "to", "not"]
)  # fmt: skip
_POINTING: Final = frozenset(
    ["this", "these", "those", "that", "it", "them", "him", "her", "you", "your", "his", "their", "its"]
)
_PARTICLES: Final = frozenset(
    ["to", "up", "down", "out", "off", "at", "in", "on", "of", "for", "into", "about", "a", "an", "the", "my"]
)
_WITH: Final = re.compile(r" with ")
_JOINED: Final = "\u2060with\u2060"  # keeps "animals with fur" together while the object's end is looked for
_RESTRICTED: Final = re.compile(r"\s*(?:that|which|who|where|when|than)\b")
_NO_PLACE: Final = frozenset(
    ["fear", "hope", "peace", "harmony", "sin", "poverty", "luxury", "denial", "town", "bed", "work", "school", "home",
     "class", "court", "jail", "prison", "hospital", "college", "church", "general", "particular", "love", "pain",
     "silence", "person", "public", "private", "front", "time", "style", "fact", "comfort", "chaos", "there", "here",
     "constant", "close", "my", "your", "the", "a", "an", "this", "that", "his", "her", "their", "our", "with", "it",
     "i", "we", "you"]
)  # fmt: skip
_NO_ORGANIZATION: Final = _NO_PLACE | {
    "night", "nights", "day", "days", "weekends", "least", "last", "first", "noon", "dawn", "myself", "free", "fun",
    "money", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "full-time", "part-time",
}  # fmt: skip
NO_PERSON: Final = frozenset(
    ["the", "this", "that", "these", "those", "it", "he", "she", "they", "we", "you", "my", "your", "our", "his", "her", "their",
     "a", "an", "and", "but", "so", "if", "when", "what", "who", "how", "why", "where", "there", "here", "yes", "no", "not", "oh", "well",
     "today", "tomorrow", "yesterday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
     "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
     "mom", "mum", "dad", "everyone", "everybody", "someone", "somebody", "nobody", "people", "everything", "something", "nothing",
     "life", "love", "work", "god", "then", "now", "just", "also", "still", "actually", "maybe", "thanks", "thank", "please", "sorry",
     "hey", "hi", "hello", "wow", "yeah", "ok", "okay", "one", "some", "all", "any", "each", "both", "most", "many", "never", "always",
     "after", "before", "since", "while", "as", "at", "in", "on", "by", "for", "from", "to", "of", "with", "about", "i", "english", "french",
     "german", "spanish", "sounds", "looks", "feels", "seems", "such", "its", "things", "having", "being", "chinese", "japanese", "american", "british", "christmas", "easter", "mr", "mrs", "ms", "dr", "good", "great"]
)  # fmt: skip


def cut(text: str) -> str:
    """The object's words: what stands before the clause goes on, without trailing adverbs."""
    end = _END.search(text)
    head = text[: end.start()] if end else text
    return _TAIL.sub("", head.strip(" .!,\"'")).strip(" .!,\"'")


def read_place(text: str) -> str | None:
    """A place: capitalised words, or in careless writing one or two plain words that end the clause."""
    bare = re.sub(r"^the (?=[A-Z])", "", text.strip())
    match = _NAME.match(bare)
    if match:
        found = match[0].rstrip(" ,.'")
        found = found.removesuffix(" and").rstrip(" ,")
        return found if found.split()[0].lower() not in _NO_PLACE else None
    return _plain(cut(bare), _NO_PLACE, 2)


def read_organization(text: str) -> str | None:
    """An organization: capitalised words, or one plain word that ends the clause."""
    bare = re.sub(r"^(?:the|a company called|a startup called|a firm called) (?=[A-Z])", "", text.strip())
    match = _NAME.match(bare)
    if match:
        found = re.split(r",| and (?=I\b)", match[0])[0].rstrip(" .'")
        return found if found.split()[0].lower() not in _NO_ORGANIZATION else None
    return _plain(cut(bare), _NO_ORGANIZATION, 1)


def _plain(text: str, excluded: frozenset[str], most: int) -> str | None:
    parts = text.split()
    if (
        not parts
        or len(parts) > most
        or any(part.lower() in excluded or not part.isalpha() for part in parts)
    ):
        return None
    return text


def read_topic(text: str) -> str | None:
    """A thing or an activity: up to six words that stand for themselves.

    "the colour" and "holding them" mean something only where they were said, so they are no topic.
    """
    whole = cut(_WITH.sub(_JOINED, text))
    if _RESTRICTED.match(text.strip()[len(whole) :]):
        return None  # "stories that scare me" is not stories
    found = re.sub(r"^(?:my|an?|the (?=[A-Z])) ", "", whole.replace(_JOINED, " with ")).strip()
    parts = found.split()
    if not parts or len(parts) > 6 or not any(char.isalpha() for char in found):
        return None
    lower = [part.lower() for part in parts]
    if lower[0].split("'")[0] in _PRONOUNS - {"to"} or lower[0] == "the" or _POINTING & set(lower):
        return None
    if lower[0] == "to" and (len(parts) < 2 or lower[1] in ("be", "see", "hear", "know", "say", "have")):
        return None
    cut_short = lower[-1] in _PARTICLES or (len(parts) > 1 and lower[-2] in ("a", "an"))
    goes_on = text.strip()[len(whole) :].lstrip().startswith(",")
    return None if lower[-1] in _PARTICLES or (cut_short and goes_on) else found


def read_person(text: str) -> str | None:
    """A person's name: one to three capitalised words."""
    match = _PERSON.match(text.strip())
    if match is None:
        return None
    found = match[0].removesuffix("'s").rstrip("'-")
    return None if found.lower().split()[0] in NO_PERSON else found


def read_timezone(text: str) -> str | None:
    """A time zone: an offset, a zone of the tz database, an abbreviation or an American zone's name."""
    match = _TIMEZONE.match(text.strip())
    if match is None:
        return None
    found = match[0].strip()
    if re.match(r"(?i)utc|gmt", found):
        return found.upper().replace(" ", "").replace("−", "-")
    return found.upper() if len(found) <= 4 else found


def read_text(text: str) -> str | None:
    """Any short value, as it was written."""
    found = cut(text)
    if not found or len(found) > 80 or len(found.split()) > 8:
        return None
    return None if found.split()[0].lower() in _PRONOUNS | {"like", "so", "very", "really", "not"} else found


def read_number(text: str) -> str | None:
    """A whole number in digits."""
    match = re.match(r"\d{1,6}\b", text.strip())
    return match[0] if match else None


READERS: Final[dict[ValueKind, Callable[[str], str | None]]] = {
    "place": read_place,
    "organization": read_organization,
    "topic": read_topic,
    "animal": read_person,
    "person": read_person,
    "text": read_text,
    "number": read_number,
}
