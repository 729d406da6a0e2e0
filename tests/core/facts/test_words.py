"""Vocabulary, feedback, extraction, names, learnt pairs, ids: the small pure parts."""

import json

import pytest

from core.facts.corpus import Corpus
from core.facts.decay import Access, faded, observed, recalled
from core.facts.extract import MAX_EXTRACTED, facts_of, summary_of
from core.facts.graph import names_in
from core.facts.labels import conservative, effective, factor, level
from core.facts.learning import MISS_MS, PAIR_MS, Learning, observe, promotable, without
from core.facts.tokens import ascii_tokens
from core.facts.ulid import ulid, ulids
from core.facts.vocabulary import Match, alias_map, alias_text, expand, feedback, match_of, parse_alias
from tests.core.facts.made import DAY, NOW, fact, find, namespace


def test_single_words_map_both_ways_and_phrases_one_way():
    """A phrase on either side maps from the term to the equivalents only; one hop, nothing twice."""
    aliases = alias_map(
        ["alias: db = postgres, pg", "alias: green tea = sencha", "broken", "alias: = x"], ascii_tokens
    )
    assert aliases["postgres"] == ["db"]
    assert aliases["green"] == ["sencha"]
    assert "sencha" not in aliases
    assert expand(["db"], aliases) == ["db", "postgres", "pg"]
    assert expand(["pg"], aliases) == ["pg", "db"]  # no second hop to postgres
    assert expand(["db", "pg"], aliases) == ["db", "pg", "postgres"]


def test_an_alias_is_text_and_reads_back():
    """Trimmed, blanks left out; what is malformed is none."""
    assert alias_text(" db ", ["postgres", " ", " pg "]) == "alias: db = postgres, pg"
    assert parse_alias("alias: db = postgres, pg") == ("db", ["postgres", "pg"])
    for text in ("db = pg", "alias: db", "alias: = pg", "alias: db = ,"):
        assert parse_alias(text) is None


def test_feedback_names_unknown_words_and_what_stands_near():
    """Below half coverage; words that only ask do not count unless there are no others."""
    corpus = Corpus(ascii_tokens)
    corpus.fill([fact("a", "payments use postgres storage"), fact("b", "deploys on friday")])
    weak = match_of(["how", "database", "engine", "payments"], corpus, frozenset(["how"]))
    assert (weak.known, weak.unknown) == (("payments",), ("database", "engine"))
    assert "database, engine" in feedback(weak, corpus, ["a"])
    assert "postgres" in feedback(weak, corpus, ["a"])
    assert feedback(weak, corpus, []) is None
    assert match_of(["how"], corpus, frozenset(["how"])).unknown == ("how",)
    assert Match((), ()).coverage == 1
    half = match_of(["payments", "engine"], corpus, frozenset())
    assert feedback(half, corpus, ["a"]) is None


def test_filtered_feedback_leaks_no_excluded_words():
    """With a filter, the words of facts below it are neither known nor near."""
    space = namespace(
        fact("a", "zanzibar secret payments", confidence="unverified"),
        fact("b", "payments run nightly", confidence="verified"),
        fact("c", "theme is dark", confidence="verified"),
    )
    said = find(space, "zanzibar cluster payments", min_confidence="inferred").feedback
    assert "zanzibar" in said.split("Words that stand nearby")[0]  # what was asked is told back
    assert "secret" not in said


def test_labels_count_as_they_say():
    """None counts as inferred, unknown words as unverified."""
    assert [level(label) for label in ("verified", "inferred", "", "unverified", "sure")] == [2, 1, 1, 0, 0]
    assert (effective(""), effective("sure")) == ("inferred", "unverified")
    assert (factor("verified", 0.5), factor("", 0.5), factor("sure", 0.5)) == (1.5, 1.0, 0.5)
    assert conservative([]) == conservative(["verified"]) == "inferred"
    assert conservative(["verified", "sure"]) == "unverified"


def test_answers_are_read_and_never_trusted():
    """Fences come off; what is no array of texts is one fact; at most five, each once."""
    assert facts_of('```json\n["a", "b"]\n```') == ["a", "b"]
    assert facts_of('["a", "a", " "]') == ["a"]
    assert len(facts_of(json.dumps([f"s{n}" for n in range(9)]))) == MAX_EXTRACTED
    assert facts_of("[1]") == ["[1]"]
    shown = {"a", "b"}
    good = summary_of('{"summary": " s ", "consumes": ["a", "a", "x"], "contradictions": ["c"]}', shown)
    assert (good.text, good.consumes, good.contradictions) == ("s", ("a",), ("c",))
    assert summary_of('{"summary": "s", "consumes": "a"}', shown) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The Acme Corp hired Ann Lee", ["Acme Corp", "Ann Lee"]),
        ("ask @bob_x about “green tea”", ["bob_x", "green tea"]),
        ("we met The Ann And", ["Ann"]),
        ("nothing here", []),
        ("Zoë und Łukasz", ["Zoë", "Łukasz"]),
    ],
)
def test_names_are_found_by_their_shape(text, names):
    """Capitalised runs without determiners at their ends, handles, quoted words."""
    assert names_in(text) == names


def test_pairs_are_learnt_in_two_observations():
    """Not from what follows late, not from short likeness; a pair grows old and is then none."""
    hit = Match(("postgres",), ())
    miss = Match((), ("postgrez",))
    learning = observe(Learning(), ["postgrez"], miss, NOW, 4)
    assert promotable(observe(learning, ["postgres"], hit, NOW, 4), NOW) == []
    for _ in range(2):
        learning = observe(learning, ["postgrez"], miss, NOW, 4)
        learning = observe(learning, ["postgres"], hit, NOW + MISS_MS, 4)
    (pair,) = promotable(learning, NOW)
    assert (pair.unknown, pair.known, pair.seen) == ("postgrez", "postgres", 2)
    assert promotable(learning, NOW + MISS_MS + PAIR_MS + 1) == []
    assert promotable(without(learning, [pair]), NOW) == []
    late = observe(observe(Learning(), ["postgrez"], miss, NOW, 4), ["postgres"], hit, NOW + MISS_MS + 1, 4)
    assert late.pairs == ()
    unlike = observe(observe(Learning(), ["x"], Match((), ("pony",)), NOW, 4), ["postgres"], hit, NOW, 4)
    assert unlike.pairs == ()


def test_weights_halve_in_thirty_days():
    """2^-(hours/720), never above 1, and what a recall keeps is never more than what was left."""
    assert faded(0) == faded(-5) == 1
    assert faded(720) == 0.5
    old = fact("a", "x", 30)
    assert observed(old, None, NOW).weight == pytest.approx(0.5)
    assert observed(old, None, 0).weight == 1
    assert observed(fact("a", "x", 30, pinned_at=NOW), None, NOW).weight == 1
    kept = recalled(old, None, 2, NOW, NOW)
    assert (kept.count, kept.at, kept.weight) == (2, NOW, pytest.approx(0.5))
    assert observed(old, kept, NOW + DAY).weight == pytest.approx(0.5)
    assert observed(old, Access(1, NOW, 0.1), NOW).weight == pytest.approx(0.1)


def test_ids_sort_by_time_and_by_place():
    """26 characters; several of one moment keep their order, whatever the random bytes."""
    assert len(ulid(NOW, b"\xff" * 10)) == 26
    assert ulid(NOW, b"\xff" * 10) < ulid(NOW + 1, b"\x00" * 10)
    made = ulids(NOW, b"\xff" * 10, 1000)
    assert made == sorted(set(made))


def test_feedback_speaks_in_words_as_they_were_written():
    """No stems: the caller's own words and those of the facts; pairs of characters stay what they are."""
    space = namespace(fact("a", "Deployments happen on Fridays, says 東京", 1), tokenizer="unicode")
    said = find(space, "releases running quickly").feedback
    assert "releases, running, quickly" in said
    assert "deployments" in said
    assert "fridays" in said
    assert "東京" in said
