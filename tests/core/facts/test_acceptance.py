"""The ten acceptance tests of the fact memory's contract (GrayMatter v0.20, section 12), the pure ones of them.

(a) (b) (c) (d) (i) (j) are here; (e) (h) need a log and are in tests/core/service/test_facts.py under the same
names; (f) (g) are the MCP tools'.
"""

import pytest

from core.facts.merging import merge_namespaces, merge_queries
from core.facts.recalling import Tuning, receipt, resolve
from core.facts.values import RecallOptions
from tests.core.facts.made import NOW, fact, find, ids, namespace

QUERY = "payments Postgres backups"
TEXTS = {
    "F1": ("Deploys run through GitHub Actions every Friday", 40),
    "F2": ("The payments service uses Postgres for storage", 10),
    "F3": ("Postgres backups run nightly on the payments cluster", 2),
    "F4": ("User prefers dark theme", 1),
}
VECTOR = ("F3", "F2", "F1")


def worked(**labels):
    return namespace(*(fact(name, *rest, confidence=labels.get(name, "")) for name, rest in TEXTS.items()))


def scores(found):
    return {each.fact.id: each.score for each in found.scored}


def near(expected):
    return pytest.approx(expected, abs=5e-9)


def test_a_the_worked_example_holds_to_eight_decimals():
    """(a) Ranks, fused scores and order of section 2.15."""
    space = worked()
    found = find(space, QUERY, vector=VECTOR)
    assert ids(found) == ["F3", "F2", "F1", "F4"]
    assert scores(found) == {
        "F3": near(0.04085140),
        "F2": near(0.04019457),
        "F1": near(0.02368552),
        "F4": near(0.00819672),
    }
    ranks = {each.fact.id: each.ranks for each in found.scored}
    shown = {name: (r.vector_rank, r.keyword_rank, r.recency_rank) for name, r in ranks.items()}
    assert shown == {"F3": (1, 1, 2), "F2": (2, 2, 3), "F1": (3, 0, 4), "F4": (0, 0, 1)}
    keyword = dict(space.corpus().best(["payments", "postgres", "backups"], 9))
    assert keyword == {"F3": pytest.approx(0.276849, abs=5e-7), "F2": pytest.approx(0.170275, abs=5e-7)}


def test_a_the_floor_of_the_worked_example_cuts_the_last():
    """(a) With MinRelevance 0.5 the floor is half the best score, and F4 is below it."""
    found = find(worked(), QUERY, vector=VECTOR, tuning=Tuning(min_relevance=0.5))
    assert ids(found) == ["F3", "F2", "F1"]


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0.02, {"F2": 0.04099846, "F3": 0.04003437}),
        (0.2, {"F2": 0.04823349, "F3": 0.03268112, "F1": 0.02368552}),
        (0.5, {"F3": 0.02042570}),
    ],
)
def test_a_confidence_moves_the_worked_example_as_published(weight, expected):
    """(a) F2 verified and F3 unverified: F2 leads from a weight of 0.02 on; at 0.5 F3 falls below F1."""
    found = find(worked(F2="verified", F3="unverified"), QUERY, vector=VECTOR, confidence_weight=weight)
    assert scores(found) == scores(found) | {name: near(score) for name, score in expected.items()}
    assert ids(found)[0] == "F2"
    assert (ids(found).index("F3") > ids(found).index("F1")) == (weight == 0.5)


def test_b_namespaces_merge_by_rank():
    """(b) One text in both lists beats any in one; equal ranks give the agent's first; shared texts are not starved."""
    own = [f"own {place}" for place in range(1, 9)]
    shared = [f"shared {place}" for place in range(1, 9)]
    merged = merge_namespaces(own, shared, 8)
    assert merged == [f"{whose} {place}" for place in range(1, 5) for whose in ("own", "shared")]
    both = merge_namespaces([*own[:7], "both"], ["both", *shared[:7]], 3)
    assert both == ["both", "own 1", "own 2"]


def test_b_queries_merge_by_best_rank():
    """(b) Best rank, then more queries, then first appearance; nothing is cut."""
    assert merge_queries([["a", "b", "c"], ["d", "b"], ["b", "e"]]) == ["b", "a", "d", "e", "c"]
    assert merge_queries([["x"], ["y"], ["y"]]) == ["y", "x"]
    assert merge_queries([[], []]) == []


def test_c_the_filter_stands_before_the_statistics():
    """(c) min_confidence drops F3 before anything is counted: n, idf, every rank and score are of the rest."""
    space = worked(F3="unverified")
    found = find(space, QUERY, vector=("F2", "F1"), min_confidence="inferred")
    assert scores(found) == {"F2": near(0.04085140), "F1": near(0.02406554), "F4": near(0.00819672)}
    keyword = dict(space.corpus(1).best(["payments", "postgres", "backups"], 9))
    assert keyword == {"F2": pytest.approx(0.231049, abs=5e-7)}
    assert [each.ranks.recency_rank for each in found.scored] == [2, 3, 1]


def test_d_an_explicit_weight_of_zero_is_not_an_omitted_one():
    """(d) Omitted takes the space's default; an explicit 0 overrides it, keeps the filter, and is told."""
    space = worked(F2="verified", F3="unverified")
    tuned = Tuning(confidence_weight=0.2)
    omitted = find(space, QUERY, vector=VECTOR, tuning=tuned)
    zero = find(space, QUERY, vector=VECTOR, tuning=tuned, confidence_weight=0)
    assert ids(omitted)[:2] == ["F2", "F3"]
    assert ids(zero)[:2] == ["F3", "F2"]

    told = resolve(RecallOptions(confidence_weight=0, min_confidence="inferred"), tuned).retrieval
    assert (told.confidence_weight, told.min_confidence, told.kg) == (
        0,
        "inferred",
        "suppressed_min_confidence",
    )
    assert resolve(RecallOptions(), tuned).retrieval.confidence_weight == 0.2
    assert resolve(RecallOptions(), Tuning()).retrieval is None


def test_i_a_single_fact_is_given_without_a_keyword_rank():
    """(i) In a namespace of one fact idf is ln(2/2) = 0: it is found by recency alone, at 0.5/61."""
    found = find(namespace(fact("only", "Postgres backups run nightly")), "Postgres backups")
    assert ids(found) == ["only"]
    assert found.scored[0].ranks.keyword_rank == 0
    assert found.scored[0].score == near(0.5 / 61)


def test_j_duplicates_never_shorten_an_answer():
    """(j) A text that stands many times takes one place; the walk goes on to other texts."""
    copies = [fact(f"c{n:02d}", "Postgres backups run nightly", n) for n in range(30)]
    others = [fact(f"o{n}", f"note {n}", 100 + n) for n in range(9)]
    found = find(namespace(*copies, *others), "Postgres backups", top_k=8)
    assert len(found.texts) == len(set(found.texts)) == 8


def test_receipts_reproduce_the_scores():
    """A receipt's ranks and k give its fused score; with a weight, final = base x factor."""
    space = worked(F2="verified")
    resolved = resolve(RecallOptions(explain=True, confidence_weight=0.5), Tuning())
    found = find(space, QUERY, vector=VECTOR, confidence_weight=0.5)
    shown = receipt(space, found.scored[0], resolved, NOW)
    ranks = shown.ranks
    again = 1 / (ranks.k + ranks.vector_rank) + 1 / (ranks.k + ranks.keyword_rank)
    again += 0.5 / (ranks.k + ranks.recency_rank)
    assert ranks.fused_score == near(again)
    assert shown.ranking.final_score == near(again * 1.5)
    assert (shown.ranking.effective_confidence, shown.age_days) == ("verified", 10.0)
