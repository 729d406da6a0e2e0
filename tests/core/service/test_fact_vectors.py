"""The vector signal of facts' recall: what it ranks, what it never ranks, and what is said where it is not whole."""

from collections.abc import Sequence
from typing import Any

import pytest

from core.facts import nearness
from core.facts.recalling import Tuning
from core.facts.values import RecallOptions, Signals
from core.ports import EmbedderRefused, EmbedderUnavailable
from core.service.vectors import Vectors
from infra.arrays import load_numpy
from tests.core.service.fact_world import FactWorld
from tests.doubles import HashEmbedder

ALIKE = {"car": "vehicle", "automobil": "vehicle", "doctor": "physician"}


class Meant(FactWorld):
    """A process with an embedder for which some words mean the same."""

    def __init__(self, embedder: Any = None, **options: Any) -> None:
        self.embedder = HashEmbedder(alike=ALIKE) if embedder is None else embedder
        super().__init__(meanings=_Late(self), **options)
        self.vectors = Vectors(self.world.spaces, self.embedder, load_numpy)

    def receipts(self, query: str, **options: Any) -> dict[str, Any]:
        found = self.recall(query, options=RecallOptions(explain=True, **options))
        return {each.text: each for each in found.receipts}


class _Late:
    """The vectors of a world that is being made."""

    def __init__(self, world: Meant) -> None:
        self.world = world

    def nearest(self, view: Any, text: str, *, deadline: int) -> Any:
        return self.world.vectors.nearest(view, text, deadline=deadline)

    def nearest_each(self, view: Any, texts: Sequence[str], *, deadline: int) -> Any:
        return self.world.vectors.nearest_each(view, texts, deadline=deadline)


def vector_ranks(found: dict[str, Any]) -> dict[str, int]:
    return {text: each.ranks.vector_rank for text, each in found.items()}


def test_meaning_finds_what_words_do_not():
    """A fact without one word of the query is nearest, its receipt says so, and its score follows from its ranks."""
    world = Meant()
    world.remember("Ann bought an automobile")
    for n in range(12):
        world.remember(f"note {n} on gardens")
    found = world.recall("car", options=RecallOptions(explain=True))
    ranks = {each.text: each.ranks for each in found.receipts}["Ann bought an automobile"]
    assert (ranks.vector_rank, ranks.keyword_rank, ranks.recency_rank) == (1, 0, 13)
    assert ranks.fused_score == pytest.approx(1 / 61 + 0.5 / 73)
    assert "Ann bought an automobile" not in FactWorld(world.world.table, create=False).texts("car")
    assert found.degraded is None


def test_only_eligible_facts_take_a_vector_rank():
    """Retired and erased facts, aliases, other namespaces and filtered ones leave no gap in the ranks."""
    world = Meant()
    for text in ("car one", "car two", "car three", "car four"):
        world.remember(text, confidence="unverified" if text == "car two" else "verified")
    world.remember("car five", agent="bob")
    world.call("alias", "truck", ["lorry"])
    world.call("forget", "car one")
    assert sorted(vector_ranks(world.receipts("car")).values()) == [1, 2, 3]
    assert sorted(vector_ranks(world.receipts("car", min_confidence="inferred")).values()) == [1, 2]
    world.call("revise", "car three", "physician three")
    assert vector_ranks(world.receipts("doctor"))["physician three"] == 1
    assert "car three" not in world.receipts("car")


def test_ties_of_meaning_come_by_id_and_depth_is_twice_top_k():
    """Equal texts are equally near; of more than 2 x top_k facts the others have vector rank 0."""
    world = Meant()
    first = [world.remember("the same car", agent="ann") for _ in range(3)]
    space = world.receipts("car", top_k=3)
    assert space["the same car"].provenance.fact_id == min(fact.id for fact in first)
    for n in range(9):
        world.remember(f"car number {n}")
    ranks = sorted(vector_ranks(world.receipts("car", top_k=2)).values())
    assert ranks[-1] <= 4
    everything = world.receipts("car", top_k=10)
    assert max(vector_ranks(everything).values()) <= 12


def test_walking_the_index_gives_what_looking_each_one_up_gives(monkeypatch):
    """Both ways to the nearest facts have the same ranks, ties included."""
    world = Meant()
    for n in range(40):
        world.remember(f"car {'red' if n % 3 else 'blue'} {n % 7}")
        world.remember(f"automobile {n}", agent="bob")
    few = vector_ranks(world.receipts("red car", top_k=8))
    monkeypatch.setattr(nearness, "_FEW", 0)
    assert vector_ranks(world.receipts("red car", top_k=8)) == few


def test_aliases_widen_the_meaning_too():
    """What a taught word adds to the query is embedded with it."""
    world = Meant()
    world.remember("the physician is in")
    for n in range(12):
        world.remember(f"note {n} on gardens")
    world.call("alias", "medic", ["doctor"])
    assert vector_ranks(world.receipts("medic"))["the physician is in"] == 1
    assert "medic doctor" in {text for asked in world.embedder.asked for text in asked}


def test_a_batch_is_embedded_at_once():
    """One call for all queries, whatever their number; each ranks as by itself."""
    world = Meant()
    for n in range(6):
        world.remember(f"car {n}")
        world.remember(f"physician {n}")
    alone = [world.texts("automobile"), world.texts("doctor")]
    before = len(world.embedder.asked)
    batch = world.facts.recall_batch(world.caller, "home", "ann", ["an automobile", "my doctor", "my doctor"])
    assert len(world.embedder.asked) == before + 1
    assert [each.facts[0].split()[0] for each in batch.per_query] == ["car", "physician", "physician"]
    assert [each[0].split()[0] for each in alone] == ["car", "physician"]
    assert batch.degraded is None


class Wrong(HashEmbedder):
    """An embedder that answers with another dimension than it says."""

    def embed(self, texts: Sequence[str], kind: Any, deadline: int) -> Any:
        return [[*vector, 1.0] for vector in super().embed(texts, kind, deadline)]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda world: setattr(world.embedder, "fault", EmbedderUnavailable("down")), "embedder_unavailable"),
        (lambda world: setattr(world.embedder, "fault", EmbedderRefused("no key")), "embedder_refused"),
        (lambda world: _swap(world, Wrong(alike=ALIKE)), "embedder_garbled"),
        (lambda world: _swap(world, None), "no_embedder"),
    ],
    ids=["down", "refused", "another dimension", "none"],
)
def test_without_vectors_words_and_age_rank_and_it_is_said(spoil, reason):
    """Every receipt has vector rank 0, the answer names the reason, and the order is that of no vectors at all."""
    world, plain = Meant(), FactWorld()
    for each in (world, plain):
        each.remember("Ann bought a car")
        each.remember("gardens are green")
    spoil(world)
    for query in ("a bought car", "automobile"):
        found = world.recall(query, options=RecallOptions(explain=True))
        assert found.degraded == reason
        assert {each.ranks.vector_rank for each in found.receipts} == {0}
        assert found.texts == plain.recall(query).texts
    batch = world.facts.recall_batch(world.caller, "home", "ann", ["car", "tree"])
    both = world.facts.recall_all(world.caller, "home", "ann", "car")
    assert batch.degraded == both.degraded == reason


def _swap(world: Meant, embedder: Any) -> None:
    world.vectors = Vectors(world.world.spaces, embedder, load_numpy)


def test_a_query_or_fact_that_says_nothing_to_the_model_has_no_vector_rank():
    """All zeros is no direction: the signal is absent, with no error."""
    world = Meant()
    world.remember("Ann bought a car")
    world.remember("!!!")
    assert set(vector_ranks(world.receipts("the of and")).values()) == {0}
    assert vector_ranks(world.receipts("car")) == {"Ann bought a car": 1, "!!!": 0}


def test_a_signal_that_is_switched_off_asks_nobody():
    """With a weight of 0 for vectors the embedder is not called."""
    world = Meant()
    world.remember("Ann bought a car")
    signals = Signals(vector=0.0)
    world.facts.tune(world.caller, "home", Tuning(signals=signals), deadline=world.deadline)
    before = len(world.embedder.asked)
    assert vector_ranks(world.receipts("automobile")) == {"Ann bought a car": 0}
    assert len(world.embedder.asked) == before
