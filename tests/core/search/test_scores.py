"""Scores before sorting, the passage of a word, and the texts of an element by their fields."""

from core.model.elements import Activity, Concept, Evidence, Origin, Payload, Proposition, System
from core.model.literals import make_literal
from core.search.bm25 import basis_of, inverse_frequency, score, weight
from core.search.text import first_match, searchable, texts_of
from tests.core.search.test_fusion import Index, build

SYSTEM = System(1, 0, 0, "tx", "tx", Origin("t", "t"))


def test_the_ranking_is_that_of_weighing_every_text() -> None:
    """Read lazily, over all kinds, the ranking is that of adding up every term's weight, and bounds are never passed."""
    texts = [
        " ".join(["red"] * (i % 4) + ["tree"] * (i % 3) + ["leaf"] * (i % 7)) or "bare" for i in range(60)
    ]
    _, postings = build(texts)
    scores = score(postings, ["red", "tree", "none"], basis_of(postings), letters="CPAEX")
    ranked = list(scores.ranked("CPAEX", {}))

    expected = weigh_all(postings, ["red", "tree", "none"])
    assert [found for found, _ in ranked] == [found for found, _ in expected]
    assert [round(earned, 9) for _, earned in ranked] == [round(earned, 9) for _, earned in expected]
    assert all(earned <= scores.bounds[found] for found, earned in ranked)


def weigh_all(postings: Index, wanted: list[str]) -> list[tuple[str, float]]:
    """BM25 the long way: every text with a term, best first."""
    stats = postings.text_stats
    earned: dict[str, float] = {}
    for term in wanted:
        found = postings.word(term)
        idf = inverse_frequency(stats.documents, len(found))
        for element, times in found:
            gain = idf * weight(times, postings.text_length(element), stats.terms / stats.documents)
            earned[element] = earned.get(element, 0.0) + gain
    return sorted(earned.items(), key=lambda item: (-item[1], item[0]))


def test_lengths_are_looked_up_as_far_as_the_ranking_is_read() -> None:
    """The first of many hits is found without weighing all of them."""
    _, postings = build(["red tree"] + ["red " + "leaf " * (i % 9) for i in range(400)])
    asked = []
    length = postings.text_length
    postings.text_length = lambda element: asked.append(element) or length(element)

    first, _ = next(score(postings, ["tree", "red"], basis_of(postings), letters="CPAEX").ranked("E", {}))

    assert first == next(iter(postings.texts))
    assert len(asked) < 10


def test_others_are_ranked_among_the_texts() -> None:
    """Elements with a score of their own take their place; kinds that are not wanted do not appear."""
    _, postings = build(["red apple", "red tree", "blue"])
    scores = score(postings, ["red"], basis_of(postings), letters="CPAEX")
    (best, top), *_ = scores.ranked("E", {})

    assert [found for found, _ in scores.ranked("E", {"P-1": top / 2, "P-0": top / 2, "P-9": top * 2})][
        ::4
    ] == ["P-9", "P-1"]
    assert list(scores.ranked("C", {"P-1": 0.5})) == [("P-1", 0.5)]
    assert best.startswith("E-")


def test_what_is_not_admitted_does_not_count() -> None:
    """An element that is not admitted earns nothing and does not make a word more common."""
    _, postings = build(["red apple", "red tree", "blue"])
    basis = basis_of(postings)
    whole = score(postings, ["red"], basis, letters="CPAEX")
    first = next(iter(whole.bounds))
    partial = score(postings, ["red"], basis, letters="E", admits=lambda element, _: element != first)

    assert first not in partial.bounds
    assert partial.weights["red"] > whole.weights["red"]


def test_the_first_match_is_a_place_in_the_text() -> None:
    """The run of characters that has a wanted term, in the text as it was written."""
    text = "She MOVED to Köln, then 東京に"

    assert text[slice(*first_match(text, {"move"}))] == "MOVED"
    assert text[slice(*first_match(text, {"köln"}))] == "Köln"
    assert "東京" in text[slice(*first_match(text, {"東京"}))]
    assert first_match(text, {"berlin"}) is None


def test_texts_by_field_are_what_is_searchable() -> None:
    """Every kind's searchable text is its fields' texts, and a stub has none."""
    concept = Concept(
        id="C-1",
        system=SYSTEM,
        schema_ref="T",
        name="Ann",
        aliases=("Annie",),
        attributes={"a": {"b": ["x", 1]}, "n": 2},
    )
    evidence = Evidence(
        id="E-1", system=SYSTEM, evidence_class="m", payload=Payload("inline", "said so"), content_digest="d"
    )
    activity = Activity(id="X-1", system=SYSTEM, activity_class="reflection")
    literal = Proposition(
        id="P-1", system=SYSTEM, subject="C-1", predicate_ref="p", object=make_literal("Oslo")
    )
    number = Proposition(id="P-2", system=SYSTEM, subject="C-1", predicate_ref="p", object=make_literal(5))
    purged = Concept(
        id="C-2", system=System(2, 0, 0, "tx", "tx", Origin("t", "t"), "purged"), schema_ref="T", name="Bo"
    )

    assert texts_of(concept) == [("name", "Ann"), ("aliases", "Annie"), ("attributes.a", "x")]
    assert searchable(concept) == "Ann\nAnnie\nx"
    assert texts_of(evidence) == [("payload", "said so")]
    assert texts_of(activity) == [("activity_class", "reflection")]
    assert texts_of(literal) == [("object", "Oslo")]
    assert texts_of(number) == texts_of(purged) == []
    assert searchable(purged) == ""
