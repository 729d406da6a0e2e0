"""Scores before sorting, the passage of a word, and the texts of an element by their fields."""

from core.model.elements import Activity, Concept, Evidence, Origin, Payload, Proposition, System
from core.model.literals import make_literal
from core.search.bm25 import basis_of, score, search
from core.search.text import first_match, searchable, texts_of
from tests.core.search.test_turns import build

SYSTEM = System(1, 0, 0, "tx", "tx", Origin("t", "t"))


def test_scores_are_those_of_search() -> None:
    """Unsorted scores over all kinds are exactly what `search` sorts."""
    _, postings = build(["red apple", "green apple tree", "red tree red"])
    scores = score(postings, ["red", "tree"], basis_of(postings), letters="CPAEX")

    assert {hit.id: round(hit.score, 9) for hit in search(postings, ["red", "tree"], lambda _: True)} == {
        found: round(earned, 9) for found, earned in scores.by_id.items()
    }
    assert all(earned < scores.best_possible for earned in scores.by_id.values())


def test_what_is_not_admitted_does_not_count() -> None:
    """An element that is not admitted earns nothing and does not make a word more common."""
    _, postings = build(["red apple", "red tree", "blue"])
    basis = basis_of(postings)
    (first, *_) = score(postings, ["red"], basis, letters="CPAEX").by_id

    whole = score(postings, ["red"], basis, letters="CPAEX")
    partial = score(postings, ["red"], basis, letters="CPAEX", admits=lambda element, _: element != first)

    assert first not in partial.by_id
    assert partial.weights["red"] > whole.weights["red"]
    assert score(postings, ["red"], basis, letters="").by_id == {}


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
