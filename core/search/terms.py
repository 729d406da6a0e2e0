"""Terms of a question: how often turns have them, and what having them is worth.

What lives here: what a question asks of the turns, and the postings behind each of its terms, read only as far as
no memory makes them longer. What must never live here: how terms are added up (`core.search.fusion`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from core.model.ids import sort_key
from core.search.bm25 import inverse_frequency
from core.search.turns import Memory, session_of

ALIKE: Final = 0.6  # what a word of the same meaning counts, against the word itself
UNKNOWN_PAIR: Final = 0.25  # what an unknown pair of characters counts: it may only straddle two words
LONG: Final = 2048  # postings of a word that are read; in longer ones only the turns that rarer words led to are looked up


class Wanted(msgspec.Struct, frozen=True):
    """What a question asks of the turns.

    terms: of the query, each once. alike: for a term, others of the same meaning. dated: for each term that is a
    date's word, the sessions of such a date. spoken: what the only participant named has said, in order of
    creation. light: terms that rank but do not count as held, such as names: being named answers nothing.
    """

    terms: Sequence[str]
    alike: Mapping[str, Collection[str]] = {}
    dated: Mapping[str, Collection[str]] = {}
    spoken: Sequence[str] = ()
    light: Collection[str] = ()


class Term:
    """A term of the query: how often each visible turn has it, and which sessions are of its date.

    postings: of the term and of those alike, each with what an occurrence counts; taken out as they are read.
    """

    def __init__(self, memory: Memory, wanted: Wanted, term: str, hidden: Callable[[str], bool]) -> None:
        self._hidden = hidden
        self.postings = [(memory.word(term), 1.0)]
        self.postings += [(memory.word(other), ALIKE) for other in wanted.alike.get(term, ())]
        self.times: dict[str, float] = {}
        self.dated = frozenset(wanted.dated.get(term, ()))
        self.sessions: dict[str, float] = dict.fromkeys(self.dated, 1.0)
        self.light = term in wanted.light
        self.documents = memory.text_stats.documents
        self.unsure = _is_pair(term)

    def read(self, longest: int) -> None:
        """Read the postings that are no longer than this."""
        for pairs, worth in self.postings:
            if len(pairs) <= longest:
                for element, times in pairs:
                    self._count(element, worth * times)
        self.postings = [item for item in self.postings if len(item[0]) > longest]

    def complete(self, sessions: Iterable[Sequence[str]]) -> None:
        """Look up only the turns of some sessions in the postings that are too long to read: what lies together there."""
        for turns in sessions if self.postings else ():
            for pairs, worth in self.postings if turns else ():
                at = bisect_left(pairs, sort_key(turns[0]), key=_pair_order)
                for element, times in map(pairs.__getitem__, range(at, len(pairs))):
                    if sort_key(element) > sort_key(turns[-1]):
                        break
                    self._count(element, worth * times)

    def _count(self, element: str, worth: float) -> None:
        if element[0] == "E" and not self._hidden(element):
            self.times[element] = self.times.get(element, 0.0) + worth
            commit = session_of(element)
            self.sessions[commit] = self.sessions.get(commit, 0.0) + worth

    @property
    def having(self) -> int:
        """How many turns have it, about: what is too long to read is taken whole."""
        return len(self.times) + len(self.dated) + sum(len(pairs) for pairs, _ in self.postings)

    @property
    def idf(self) -> float:
        """How much it tells."""
        return inverse_frequency(self.documents, self.having)

    @property
    def telling(self) -> float:
        """How much having it answers."""
        known = self.having or not self.unsure
        return 0.0 if self.light else self.idf * (1.0 if known else UNKNOWN_PAIR)


def read_short(terms: Sequence[Term]) -> None:
    """Read the postings up to a length that no memory makes longer; if nothing is that rare, the rarest."""
    for term in terms:
        term.read(LONG)
    if not any(term.sessions for term in terms):
        lengths = [len(pairs) for term in terms for pairs, _ in term.postings]
        for term in terms if lengths else ():
            term.read(min(lengths))


def _pair_order(pair: tuple[str, int]) -> str:
    return sort_key(pair[0])


def _is_pair(term: str) -> bool:
    """Whether a term is two characters of a script without spaces, and so perhaps of two words."""
    return len(term) == 2 and not term.isascii()
