"""WordPiece: cutting English text into the pieces that BERT's models know.

What lives here: the cutting. What must never live here: what is done with the pieces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

_UNKNOWN: Final = "[UNK]"
_LONGEST: Final = 100  # characters of a word; a longer one is unknown
_WORDS_KEPT: Final = 65_536


class WordPiece:
    """Lower-cases, strips accents, splits at spaces and punctuation, and cuts each word greedily from its beginning."""

    def __init__(self, vocab: Mapping[str, int]) -> None:
        self._vocab = vocab
        self._cut = lru_cache(maxsize=_WORDS_KEPT)(self._cut_word)

    def ids(self, text: str, most: int) -> list[int]:
        """The pieces of a text, at most so many, between the marks for its beginning and its end."""
        out = [self._vocab["[CLS]"]]
        for word in _split(text):
            out += self._cut(word)
            if len(out) >= most:
                break
        return [*out[: most - 1], self._vocab["[SEP]"]]

    def _cut_word(self, word: str) -> tuple[int, ...]:
        unknown = (self._vocab[_UNKNOWN],)
        if len(word) > _LONGEST:
            return unknown
        out, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                found = self._vocab.get(("##" if start else "") + word[start:end])
                if found is not None:
                    out.append(found)
                    start = end
                    break
            else:
                return unknown
        return tuple(out)


def _split(text: str) -> list[str]:
    lowered = unicodedata.normalize("NFD", _cleaned(text).lower())
    out: list[str] = []
    current: list[str] = []
    for character in lowered:
        if unicodedata.category(character) == "Mn":
            continue
        if character.isspace():
            _close(out, current)
        elif _is_punctuation(character) or _is_han(character):
            _close(out, current)
            out.append(character)
        else:
            current.append(character)
    _close(out, current)
    return out


def _cleaned(text: str) -> str:
    """Without control characters; tabs and line breaks are spaces."""
    return "".join(
        " " if one in "\t\n\r" else one
        for one in text
        if one in "\t\n\r" or (one not in "\0\ufffd" and unicodedata.category(one)[0] != "C")
    )


def _close(out: list[str], current: list[str]) -> None:
    if current:
        out.append("".join(current))
        current.clear()


def _is_punctuation(character: str) -> bool:
    code = ord(character)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(character)[0] == "P"


def _is_han(character: str) -> bool:
    code = ord(character)
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
    )
