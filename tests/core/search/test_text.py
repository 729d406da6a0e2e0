"""Words become the same terms whoever else is at work."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer

from core.facts.tokens import ascii_stem_tokens
from core.search.text import words

STEMS = (
    "running",
    "national",
    "conditionally",
    "adoption",
    "happiness",
    "generously",
    "relational",
    "vietnamization",
)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that change places as often as the interpreter can."""
    kept = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(kept)


@pytest.mark.parametrize(("analyze", "language"), [(words, "english"), (ascii_stem_tokens, "porter")])
@pytest.mark.usefixtures("eager_threads")
def test_threads_do_not_mix_up_each_others_words(analyze: Callable[[str], list[str]], language: str) -> None:
    """Four threads that analyze texts at once get what one alone gets."""
    # Each word is new to the cache, and long, so that the stemmer is at work for a while.
    texts = [[f"{chr(97 + i % 26) * (i // 26 + 1)}{stem}" for stem in STEMS] for i in range(500)]

    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(analyze, map(" ".join, texts)))

    stemmer = snowballstemmer.stemmer(language)
    assert together == [[stemmer.stemWord(word) for word in text] for text in texts]
