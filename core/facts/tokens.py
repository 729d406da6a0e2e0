"""Tokenizers: how a fact's or a query's text becomes the tokens that keyword ranking counts.

What lives here: the two ways, by name. `unicode` is the product's own (`core.search.text`): words of any script,
English stems, pairs of characters for scripts without spaces. `ascii` reproduces GrayMatter's published
arithmetic: letters a-z and digits, 37 stop words, with or without Porter's stems. An index is built by one of
them and never mixes two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Literal

import snowballstemmer

from core.search.text import words

Tokenizer = Callable[[str], list[str]]
TokenizerName = Literal["unicode", "ascii", "ascii-stem"]

STOP_WORDS: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "is",
        "it",
        "in",
        "on",
        "at",
        "to",
        "for",
        "of",
        "and",
        "or",
        "but",
        "not",
        "with",
        "this",
        "that",
        "was",
        "are",
        "be",
        "by",
        "as",
        "from",
        "up",
        "has",
        "had",
        "have",
        "its",
        "my",
        "me",
        "we",
        "he",
        "she",
        "they",
        "you",
        "i",
    ]
)
QUESTION_WORDS: Final = frozenset(
    [
        "how",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "does",
        "do",
        "did",
        "can",
        "could",
        "should",
        "would",
        "will",
        "shall",
        "must",
        "may",
        "might",
        "long",
        "much",
        "many",
        "often",
        "soon",
        "our",
        "your",
        "their",
    ]
)
"""Words that ask, and tell nothing of what is asked for."""

_READ: Final = 4_000  # characters of a text whose words are told back
_ASCII: Final = re.compile(r"[a-z0-9]+")


def ascii_tokens(text: str) -> list[str]:
    """`"Müller moved to Köln!"` -> `["ller", "moved", "ln"]`: what GrayMatter makes of a text."""
    found = _ASCII.findall(text.lower())
    return [token for token in found if len(token) > 1 and token not in STOP_WORDS]


@lru_cache(maxsize=65536)
def _porter(word: str) -> str:
    stem: str = snowballstemmer.stemmer("porter").stemWord(word)  # holds the word: never shared by threads
    return stem


def ascii_stem_tokens(text: str) -> list[str]:
    """The same, each token cut to its stem after the stop words are out."""
    return [_porter(token) for token in ascii_tokens(text)]


TOKENIZERS: Final[dict[TokenizerName, Tokenizer]] = {
    "unicode": words,
    "ascii": ascii_tokens,
    "ascii-stem": ascii_stem_tokens,
}


@lru_cache(maxsize=8)
def question_tokens(name: TokenizerName) -> frozenset[str]:
    """The question words as a tokenizer writes them."""
    tokenize = TOKENIZERS[name]
    return frozenset(token for word in QUESTION_WORDS for token in tokenize(word))


_WORD: Final = re.compile(r"\w+")


def words_of(texts: Iterable[str], tokenize: Tokenizer) -> dict[str, str]:
    """What each token was before it was cut to its stem, as it first stands: `"Deploys run"` -> `{"deploy": "deploys", ...}`.

    Only for words that are one token; those of scripts without spaces stay the pairs they are.
    """
    out: dict[str, str] = {}
    for text in texts:
        for word in _WORD.findall(text[:_READ]):
            tokens = tokenize(word)
            if len(tokens) == 1:
                out.setdefault(tokens[0], word.lower())
    return out
