"""BM25: rarity, length, visibility and coverage."""

import math

from core.search.bm25 import K1, B, basis_of, inverse_frequency, score, weight
from tests.core.search.test_fusion import Index, build


def search(index: Index, terms: list[str], hidden: str = "") -> list[tuple[str, float]]:
    """Everything that has a term, best first, but what is hidden."""
    found = score(index, terms, basis_of(index), letters="E", admits=lambda element, _: element != hidden)
    return list(found.ranked("E", {}))


def test_a_rare_term_tells_more_than_a_common_one() -> None:
    """The inverse frequency falls with the number of texts and never goes below zero."""
    values = [inverse_frequency(100, n) for n in (0, 1, 10, 50, 100)]

    assert values == sorted(values, reverse=True)
    assert all(value >= 0 for value in values)
    assert inverse_frequency(100, 1) == math.log(1 + 99.5 / 1.5)


def test_repetition_saturates_and_length_costs() -> None:
    """Each further occurrence adds less; the same hit in a longer text earns less."""
    assert weight(2, 10, 10) - weight(1, 10, 10) > weight(3, 10, 10) - weight(2, 10, 10)
    assert weight(1, 20, 10) < weight(1, 10, 10)
    assert weight(10**9, 10, 10) < K1 + 1 + 1e-6
    assert 0 < B < 1


def test_the_best_text_comes_first() -> None:
    """More of the query's terms rank higher."""
    _, index = build(["tea", "green tea"], ["coffee"])

    assert [element[2:13] for element, _ in search(index, ["green", "tea"])] == ["00000000001", "00000000000"]


def test_what_is_not_visible_leaves_no_trace_in_the_scores() -> None:
    """Document frequencies are those of what the caller may see."""
    turns, index = build(["green tea", "tea"], ["tea"])
    hidden = turns.ids[2]
    seen = search(index, ["tea"], hidden)

    assert hidden not in [element for element, _ in seen]
    assert seen[0][1] > search(index, ["tea"])[0][1]


def test_a_miss_is_empty() -> None:
    """No visible text with a term, no hit."""
    turns, index = build(["green tea"])

    assert search(index, ["zebra"]) == []
    assert search(index, []) == []
    assert search(index, ["tea"], turns.ids[0]) == []


def test_a_term_twice_counts_once() -> None:
    """A repeated word in the query changes nothing."""
    _, index = build(["green tea"])

    assert search(index, ["tea", "tea"]) == search(index, ["tea"])
