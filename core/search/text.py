"""Text analysis: how words become terms, the same way when a memory is written and when it is asked for.

Unicode throughout: NFKC and case folding; letters and digits form words; Latin-script words lose their English
inflection (Snowball) and stop words drop out; scripts written without spaces (Han, kana, Hangul, Thai) become
overlapping pairs of characters, which find any substring of two or more. The analyzer has a name; an index
built by another one is rebuilt, never mixed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from typing import Final

import snowballstemmer

from core.model.elements import Activity, AnyElement, Assertion, Concept, Evidence
from core.model.literals import Ref

ANALYZER: Final = "noema-words-1"

# Scripts without spaces between words: kana, Han and its extensions, Hangul, Thai, Lao, Khmer, Burmese.
_DENSE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
_RUNS: Final = re.compile(rf"([{_DENSE}]+)|([^\W_{_DENSE}]+(?:['’][^\W_{_DENSE}]+)*)")

STOP_WORDS: Final = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "down",
        "during",
        "each",
        "for",
        "from",
        "further",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "me",
        "more",
        "most",
        "my",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "ours",
        "out",
        "over",
        "own",
        "s",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
        "im",
        "ive",
        "id",
        "ill",
        "youre",
        "youve",
        "dont",
        "doesnt",
        "didnt",
        "isnt",
        "arent",
        "wasnt",
        "werent",
        "thats",
        "whats",
        "lets",
    ]
)

_MAX_TERM: Final = 64  # characters; a longer "word" is data, and its beginning is enough to find it


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    # A stemmer holds the word it works on, so one shared by threads mixes their words up. A new one costs 0.2 µs.
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem


def normalize(text: str) -> str:
    """NFKC and case folding, so that width, ligatures and case do not tell words apart."""
    return unicodedata.normalize("NFKC", text).casefold()


def words(text: str) -> list[str]:
    """The terms of a text in order, stop words left out: `"Moved to Köln!"` -> `["move", "köln"]`."""
    out: list[str] = []
    for dense, word in _RUNS.findall(normalize(text)):
        if dense:
            out.extend([dense] if len(dense) == 1 else [dense[i : i + 2] for i in range(len(dense) - 1)])
            continue
        plain = word.replace("’", "'").removesuffix("'s").replace("'", "")
        if plain and plain not in STOP_WORDS:
            out.append(_stem(plain[:_MAX_TERM]) if plain.isascii() else plain[:_MAX_TERM])
    return out


def terms(text: str) -> Counter[str]:
    """How often each term stands in a text."""
    return Counter(words(text))


def first_match(text: str, wanted: Collection[str]) -> tuple[int, int] | None:
    """Where the first run of characters stands that has one of some terms: its beginning and end, or None."""
    for run in _RUNS.finditer(text):
        if any(term in wanted for term in words(run.group())):
            return run.span()
    return None


def texts_of(element: AnyElement) -> list[tuple[str, str]]:
    """The texts an element has of its own, each with the dot path of the field it stands in; none of a stub."""
    if element.system.state == "purged":
        return []
    if isinstance(element, Concept):
        found = [("name", element.name)] if element.name else []
        found.extend(("aliases", alias) for alias in element.aliases)
        for name, value in element.attributes.items():
            found.extend((f"attributes.{name}", text) for text in _strings(value))
        return found
    if isinstance(element, Evidence):
        return [("payload", text) for text in _strings(element.payload.inline)]
    if isinstance(element, Activity):
        return [("activity_class", element.activity_class)]
    if isinstance(element, Assertion) or isinstance(element.object, Ref):
        return []
    return [("object", element.object.value)] if isinstance(element.object.value, str) else []


def searchable(element: AnyElement) -> str:
    """The text an element is found by; empty for elements that are found only through others."""
    return "\n".join(text for _, text in texts_of(element) if text)


def _strings(value: object) -> list[str]:
    """Every string inside a JSON value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _strings(item)]
    return []
