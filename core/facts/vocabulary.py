"""Vocabulary: aliases that widen a query, and the words about a weak match that help to ask better.

What lives here: the text form of an alias, the map that aliases make, one hop of expansion, and the feedback
block. What must never live here: ranking; feedback never changes it.

An alias is stored as the text `alias: <term> = <equivalent>, <equivalent>`. Between two single tokens it works
both ways; with a phrase on either side only from the term to the equivalents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from core.errors import NoemaError
from core.facts.corpus import Corpus
from core.facts.tokens import Tokenizer, words_of
from core.facts.values import MAX_EQUIVALENTS

_PREFIX: Final = "alias:"
COVERED: Final = 0.5  # below this share of known words a match is weak
_NEARBY: Final = 8
_NAMED: Final = 12  # unknown words that feedback names,
_LONGEST: Final = 48  # and characters of each
_LOOKED_AT: Final = 64  # facts whose words are proposed


def alias_text(term: str, equivalents: Sequence[str]) -> str:
    """How an alias is stored: `("db", ["postgres", "pg"])` -> `alias: db = postgres, pg`.

    Raises:
        NoemaError: `InvalidInput` without a term or without an equivalent that is not blank.
    """
    term = term.strip()
    kept = [each.strip() for each in equivalents if each.strip()]
    if not term:
        raise NoemaError("InvalidInput", "term must not be blank", details={"member": "term"})
    if not kept or len(kept) > MAX_EQUIVALENTS:
        raise NoemaError(
            "InvalidInput",
            f"equivalents must be 1 to {MAX_EQUIVALENTS} texts that are not blank",
            details={"member": "equivalents"},
        )
    return f"{_PREFIX} {term} = {', '.join(kept)}"


def parse_alias(text: str) -> tuple[str, list[str]] | None:
    """The term and equivalents of an alias's text; None if it is malformed."""
    if not text.startswith(_PREFIX):
        return None
    term, found, rest = text.removeprefix(_PREFIX).partition("=")
    equivalents = [each.strip() for each in rest.split(",") if each.strip()]
    return (term.strip(), equivalents) if found and term.strip() and equivalents else None


def alias_map(texts: Iterable[str], tokenize: Tokenizer) -> dict[str, list[str]]:
    """What each token of a query also means, in the order the aliases were given. Malformed ones are passed over."""
    out: dict[str, dict[str, None]] = {}
    for text in texts:
        parsed = parse_alias(text)
        if parsed is None:
            continue
        left = tokenize(parsed[0])
        for equivalent in parsed[1]:
            right = tokenize(equivalent)
            pairs = [(one, other) for one in left for other in right]
            if len(left) == len(right) == 1:
                pairs += [(other, one) for one, other in pairs]
            for one, other in pairs:
                if one != other:
                    out.setdefault(one, {})[other] = None
    return {token: list(found) for token, found in out.items()}


def expand(tokens: Sequence[str], aliases: Mapping[str, Sequence[str]]) -> list[str]:
    """The tokens, and behind them what they also mean: one hop, nothing twice."""
    out = list(tokens)
    present = set(out)
    for token in tokens:
        for also in aliases.get(token, ()):
            if also not in present:
                present.add(also)
                out.append(also)
    return out


class Match(msgspec.Struct, frozen=True):
    """How well a query's words are known: which are, which are not, and the share that is."""

    known: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def coverage(self) -> float:
        """The share of the query's distinct words that some fact has; 1 for a query without words."""
        total = len(self.known) + len(self.unknown)
        return len(self.known) / total if total else 1.0

    @property
    def weak(self) -> bool:
        """Whether fewer words are known than a good match has."""
        return self.coverage < COVERED


def match_of(tokens: Sequence[str], corpus: Corpus, asking: frozenset[str]) -> Match:
    """Which of a query's words the corpus has; words that only ask do not count unless there are no others."""
    distinct = list(dict.fromkeys(tokens))
    telling = [token for token in distinct if token not in asking] or distinct
    known = tuple(token for token in telling if corpus.frequency(token))
    return Match(known, tuple(token for token in telling if not corpus.frequency(token)))


def feedback(match: Match, corpus: Corpus, given: Sequence[str], query: str = "") -> str | None:
    """What to say of a weak match; None where there is nothing to say. Words stand as they were written, not as stems.

    Args:
        match: of the effective query.
        corpus: the facts that were ranked.
        given: ids of the facts that were found, best first.
        query: as it was asked.
    """
    if not match.weak or not given:
        return None
    near, tokens = nearby(match, corpus, given)
    asked = words_of([query], corpus.tokenize)
    unknown = [asked.get(token, token) for token in match.unknown[:_NAMED]]
    written = words_of((corpus.facts[fact_id].text for fact_id in near), corpus.tokenize) if tokens else {}
    words = [written.get(token, token) for token in tokens]
    more = len(match.unknown) - _NAMED
    unknown_words = _listed(unknown) + (f" and {more} more" if more > 0 else "")
    said = f"Weak match by words: no fact here has the words {unknown_words}."
    if words:
        said += f" Words that stand nearby: {_listed(words)}."
    return said + " Ask again in these words, or teach them with memory_alias."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…" for word in words)


def nearby(match: Match, corpus: Corpus, given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Facts that have the query's known words and the best ones found; and the rarest tokens of these."""
    near: dict[str, None] = {}
    for token in match.known:
        near.update(dict.fromkeys(corpus.having(token, _LOOKED_AT)))
    near.update(dict.fromkeys(given))
    asked = {*match.known, *match.unknown}
    looked_at = list(islice(near, _LOOKED_AT))
    found = {token for fact_id in looked_at for token in corpus.tokens_of(fact_id) if token not in asked}
    return looked_at, sorted(found, key=lambda token: (-corpus.rarity(token), token))[:_NEARBY]
