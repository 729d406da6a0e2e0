"""Candidates by meaning below the statement: hidden fields and ends, predicates, and the fusion of two rankings."""

from __future__ import annotations

import random

import numpy as np

from core.meta.grounding import Grounding, Probe
from core.meta.meaning import Meaning, fused
from core.model.ids import KINDS
from core.query.world import World
from core.search.dense import Coverage, Dense, Scored
from tests.core.query.brain import Brain


def near(scores):
    """A dense search that gives these similarities."""
    ids = list(scores)
    one = Scored(
        np.asarray(list(scores.values()), dtype=np.float32),
        np.frombuffer("".join(each[0] for each in ids).encode(), dtype=np.uint8),
        ids.__getitem__,
        {each: row for row, each in enumerate(ids)}.get,
    )
    return Dense(Coverage(model="m", vectors=len(ids)), [one], np)


def ground(brain, scores, *kinds, predicate=None, by_words=False, terms=(), **context):
    world = World(brain.state, brain.env, brain.context(**context))
    probe = Probe(terms, frozenset(kinds or KINDS), predicate_ref=predicate)
    meaning = Meaning(world, near(scores), probe.kinds, predicate)
    return [hit.element.id for hit in Grounding(world, probe, meaning, by_words=by_words).hits(0.0)]


def test_an_element_with_a_hidden_field_is_not_found_by_its_meaning():
    """Its vector is of all of its words; where the caller may not read one, it tells the caller nothing."""
    brain = Brain()
    ann = brain.concept("Person", "Ann", attributes={"salary": "enormous"})
    bo = brain.concept("Person", "Bo")
    note = brain.evidence("message", "the launch code")
    brain.commit()
    scores = {ann.id: 0.9, note.id: 0.8, bo.id: 0.7}

    assert ground(brain, scores) == [ann.id, note.id, bo.id]
    for hidden, expected in (
        ({"attributes.salary"}, [note.id, bo.id]),
        ({"attributes"}, [note.id, bo.id]),
        ({"payload.inline"}, [ann.id, bo.id]),
        ({"payload"}, [ann.id, bo.id]),
        ({"name"}, [note.id]),
        ({"_system.origin"}, [ann.id, note.id, bo.id]),
    ):
        found = ground(brain, scores, hidden_fields=lambda _, hidden=hidden: frozenset(hidden))
        assert found == expected, hidden


def test_a_statement_is_found_only_by_who_sees_its_ends():
    """It is worded by their names, and so are the claims about it."""
    brain = Brain()
    ann, town = brain.concept("Person", "Ann"), brain.concept("Place", "Oslo")
    said = brain.says(ann, "knows", town)
    brain.commit()
    scores = {said.id: 0.9}

    assert ground(brain, scores, "proposition") == [said.id]
    assert ground(brain, scores, "proposition", visible=lambda one: one.id != town.id) == []
    assert ground(brain, scores, "proposition", hidden_fields=lambda _: frozenset({"name"})) == []


def test_a_predicate_restricts_what_is_near():
    """Statements of another one are passed over."""
    brain = Brain()
    ann, town = brain.concept("Person", "Ann"), brain.concept("Place", "Oslo")
    said = brain.says(ann, "knows", town)
    brain.commit()
    ref = brain.state.get(said.id).predicate_ref

    assert ground(brain, {said.id: 0.9}, "proposition", predicate=ref) == [said.id]
    assert ground(brain, {said.id: 0.9}, "proposition", predicate="kip://other@1.0.0/knows") == []


def test_what_is_far_or_gone_is_no_hit():
    """A similarity of 0 or below, and an id that is not there any more."""
    brain = Brain()
    ann, bo = brain.concept("Person", "Ann"), brain.concept("Person", "Bo")
    brain.commit()
    assert ground(brain, {ann.id: 0.5, "C-0000000000000000": 0.4, bo.id: -0.2}) == [ann.id]


def test_fusion_is_the_exact_order_of_the_sums():
    """Whatever the two rankings, and however little of them is read, as a sort of all sums would give it."""
    rng = random.Random(5)
    for _ in range(200):
        names = [f"E-{number:03d}" for number in range(rng.randint(0, 30))]
        by_words = {name: round(rng.random(), 1) for name in names if rng.random() < 0.6}
        by_meaning = {name: round(rng.random(), 1) for name in names if rng.random() < 0.6}

        def score(name, by_words=by_words, by_meaning=by_meaning):
            return 0.5 * by_words.get(name, 0.0) + 0.5 * by_meaning.get(name, 0.0)

        def ranked(scores):
            return iter(
                sorted(((n, s) for n, s in scores.items() if s > 0), key=lambda pair: (-pair[1], pair[0]))
            )

        found = [one for one, _ in fused(ranked(by_words), ranked(by_meaning), score)]
        wanted = sorted(
            (name for name in names if by_words.get(name, 0) > 0 or by_meaning.get(name, 0) > 0),
            key=lambda name: -score(name),
        )
        assert sorted(found) == sorted(wanted)
        assert [round(score(name), 6) for name in found] == [round(score(name), 6) for name in wanted]


def test_fusion_reads_no_more_than_it_must():
    """The first hit of a long pair of rankings costs a few steps, not all."""
    read = []

    def ranking(letter):
        for number in range(10_000):
            read.append(number)
            yield f"{letter}-{number:05d}", 1 - number / 10_000

    score = {"E-00000": 0.9, "C-00000": 0.2}
    first = next(fused(ranking("E"), ranking("C"), lambda name: score.get(name, 0.1)))
    assert first[0] == "E-00000"
    assert len(read) < 2500
