"""The arithmetic and the total order of a recall, against scoring everything by hand."""

import itertools
import math
import random

import numpy as np
import pytest

from core.errors import NoemaError
from core.facts import labels
from core.facts.corpus import Corpus
from core.facts.ranking import Policy, fuse, rank
from core.facts.recalling import Tuning, resolve
from core.facts.tokens import ascii_stem_tokens, ascii_tokens
from core.facts.values import RecallOptions, Signals
from tests.core.facts.made import DAY, NOW, element, fact, find, ids, namespace


def by_hand(facts, tokens, policy):
    """Every fact scored, as the contract says it, with no index and no shortcut."""
    n = len(facts)
    texts = {each.id: ascii_tokens(each.text) for each in facts}
    df = {token: sum(token in found for found in texts.values()) for token in tokens}
    scores = {}
    for each in facts:
        found = texts[each.id]
        total = sum(found.count(token) * math.log((n + 1) / (df[token] + 1)) for token in tokens)
        if total / (len(found) + 1) > 0:
            scores[each.id] = total / (len(found) + 1)
    known = {each.id: each for each in facts}
    keyword = sorted(scores, key=lambda i: (-round(scores[i] * 1e12), known[i].created_at, i))
    recency = sorted(known, key=lambda i: (-known[i].created_at, i))
    out = []
    for each in facts:
        rk = keyword.index(each.id) + 1 if each.id in scores else 0
        ranks = fuse(0, rk, recency.index(each.id) + 1, signals=policy.signals)
        final = ranks.fused_score * labels.factor(each.confidence, policy.weight)
        out.append((-final, each.created_at, each.id, each.text, ranks))
    out.sort()
    floor = -out[0][0] * policy.min_relevance if out else 0
    given, seen = [], set()
    for negative, _, name, text, ranks in out:
        if len(given) == policy.top_k or (policy.min_relevance > 0 and -negative < floor):
            break
        if text not in seen:
            seen.add(text)
            given.append((name, ranks))
    return given


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Here numpy is used, where it is given, for any number of facts."""
    monkeypatch.setattr("core.facts.corpus.MANY", 0)


def corpus_of(facts, arrays=None):
    corpus = Corpus(ascii_tokens, arrays)
    corpus.fill(facts)
    return corpus


WORDS = ["tea", "green", "payments", "deploy", "friday", "dark", "theme", "cat", "boat", "lisbon"]


@pytest.mark.parametrize("arrays", [lambda: np, None])
@pytest.mark.parametrize("seed", range(8))
def test_the_index_gives_what_scoring_everything_gives(seed, arrays):
    """Over many facts with ties, duplicates and labels, the shortcut changes no rank, no score and no order."""
    chance = random.Random(seed)
    facts = [
        fact(
            f"f{number:03d}",
            " ".join(chance.choices(WORDS, weights=range(1, 11), k=chance.randint(1, 6))),
            age_days=chance.randint(0, 40),
            confidence=chance.choice(["", "verified", "unverified", "odd"]),
        )
        for number in range(300)
    ]
    corpus = corpus_of(facts, arrays)
    for top_k, weight, floor in itertools.product((1, 8, 40), (0.0, 0.5), (0.0, 0.6)):
        policy = Policy(top_k=top_k, weight=weight, min_relevance=floor)
        tokens = chance.choices([*WORDS, "unknown"], k=3)
        got = [(each.fact.id, each.ranks) for each in rank(corpus, tokens, policy)]
        assert got == by_hand(facts, tokens, policy)


@pytest.mark.parametrize("arrays", [lambda: np, None])
def test_an_index_kept_up_is_the_same_as_one_made_anew(arrays):
    """Adding, replacing and removing facts leaves what filling an empty index with the rest gives."""
    chance = random.Random(5)
    facts = {f"f{n}": fact(f"f{n}", " ".join(chance.choices(WORDS, k=4)), n % 9) for n in range(80)}
    kept = corpus_of(facts.values(), arrays)
    policy = Policy(top_k=20)
    rank(kept, WORDS, policy)
    for step in range(120):
        name = f"f{chance.randint(0, 99)}"
        if name in facts and step % 3 == 0:
            kept.remove(name)
            del facts[name]
        else:
            facts[name] = fact(name, " ".join(chance.choices(WORDS, k=3)), step % 7)
            kept.add(facts[name])
        tokens = chance.choices(WORDS, k=2)
        assert rank(kept, tokens, policy) == rank(corpus_of(facts.values()), tokens, policy)


def test_one_instant_still_has_one_order():
    """Facts of one instant and one score come by id, in every order of arrival."""
    facts = [fact(name, f"note {name}") for name in ("d", "a", "c", "b", "f", "e")]
    for order in itertools.permutations(facts, 6):
        assert ids(find(namespace(*order), "nothing here fits")) == ["a", "b", "c", "d", "e", "f"]


def test_a_word_typed_twice_counts_twice():
    """The query's tokens are not made distinct."""
    corpus = corpus_of([fact("a", "tea"), fact("b", "boat"), fact("c", "cat")])
    once = dict(corpus.best(["tea"], 5))["a"]
    assert dict(corpus.best(["tea", "tea"], 5))["a"] == pytest.approx(2 * once)


def test_signals_off_rank_nothing():
    """A weight of 0 switches a signal off and reports rank 0; all weight on recency is a sliding window."""
    space = namespace(fact("old", "tea tea", 9), fact("mid", "boat", 5), fact("new", "cat", 1))
    only = Tuning(signals=Signals(vector=0, keyword=0, recency=1))
    found = find(space, "tea", tuning=only)
    assert ids(found) == ["new", "mid", "old"]
    assert found.scored[2].ranks.keyword_rank == 0
    none = find(space, "tea", tuning=Tuning(signals=Signals(0, 0, 0)))
    assert ids(none) == ["old", "mid", "new"]


def test_no_signal_of_vectors_is_no_rank_and_no_error():
    """Without vectors their rank is 0 and the other signals rank as they would."""
    found = find(namespace(fact("a", "tea", 2), fact("b", "boat", 1)), "tea")
    assert [(each.ranks.vector_rank, each.ranks.keyword_rank) for each in found.scored] == [(0, 1), (0, 0)]


def test_a_query_of_stop_words_ranks_by_age():
    """A query without tokens, or none at all, gives the newest and no words about a weak match."""
    space = namespace(fact("a", "tea", 2), fact("b", "boat", 1))
    for query in ("", "the of and", "¿?", "我"):
        found = find(space, query)
        assert ids(found) == ["b", "a"]
        assert found.feedback is None


def test_an_empty_namespace_gives_an_empty_list():
    """There is nothing, and no error."""
    found = find(namespace(), "tea")
    assert found.texts == ()
    assert found.feedback is None


def test_porter_stems_follow_the_stop_words():
    """`ascii-stem` cuts what is left to its stem."""
    assert ascii_stem_tokens("The deployments were running") == ["deploy", "were", "run"]
    assert ascii_tokens("Müller moved to Köln!") == ["ller", "moved", "ln"]


@pytest.mark.parametrize(
    "bad",
    [
        {"min_confidence": "Verified"},
        {"min_confidence": ""},
        {"min_confidence": 2},
        {"confidence_weight": math.nan},
        {"confidence_weight": math.inf},
        {"confidence_weight": -0.01},
        {"confidence_weight": 0.51},
        {"confidence_weight": True},
        {"confidence_weight": "0.2"},
        {"top_k": 10_000},
    ],
)
def test_options_that_make_no_sense_are_refused(bad):
    """Unknown labels, weights that are no number from 0 to 0.5 and huge counts are InvalidInput."""
    with pytest.raises(NoemaError) as refused:
        resolve(RecallOptions(**bad), Tuning())
    assert refused.value.code == "InvalidInput"


def test_a_count_of_nothing_is_the_default():
    """0 and less ask for 8."""
    space = namespace(*(fact(f"f{n}", f"note {n}", n) for n in range(12)))
    assert len(ids(find(space, "x", top_k=0))) == len(ids(find(space, "x", top_k=-3))) == 8


def test_lineage_is_followed_and_survives_circles():
    """`supersedes` lists everything a fact replaces, through any number of steps, even in a circle."""
    space = namespace()
    first, second, third = (fact(name, f"v {name}", superseded_by="x") for name in ("f1", "f2", "f3"))
    last = fact("f4", "v f4")
    space.update(
        [
            element(first, second.element),
            element(second, third.element),
            element(third, last.element),
            element(last),
        ]
    )
    assert space.supersedes(last) == ("f3", "f2", "f1")
    assert space.facts["f1"].superseded_by == "f2"
    space.update([element(fact("f4", "v f4", superseded_by="x"), first.element)])
    assert set(space.supersedes(space.facts["f4"])) == {"f1", "f2", "f3"}


def test_ages_are_whole_milliseconds():
    """The helper of these tests makes what it says."""
    assert fact("a", "x", 2).created_at == NOW - 2 * DAY
