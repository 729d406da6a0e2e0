"""Grounding below the statement: hidden fields, statements about statements, merged ends, bounds."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.meta.grounding import Grounding, Probe
from core.model.elements import Origin
from core.model.ids import KINDS
from core.query.context import Limits
from core.query.world import World
from core.search.text import words
from core.transaction.draft import Draft
from tests.core.query.brain import Brain


def probe(text, *kinds, **more):
    return Probe(tuple(dict.fromkeys(words(text))), frozenset(kinds or KINDS), **more)


def ground(brain, text, *kinds, **context):
    world = World(brain.state, brain.env, brain.context(**context))
    return [hit.element.id for hit in Grounding(world, probe(text, *kinds)).hits(0.0)]


def test_words_of_hidden_fields_find_nothing():
    """An element is not found by a field that the caller may not read, and still by its others."""
    brain = Brain()
    ann = brain.concept("Person", "Ann", attributes={"salary": "enormous", "town": "Oslo"})
    note = brain.evidence("message", "the launch code")
    brain.commit()
    hidden = frozenset({"attributes.salary", "payload"})

    assert ground(brain, "enormous") == [ann.id]
    assert ground(brain, "launch") == [note.id]
    for words_, expected in (("enormous", []), ("launch", []), ("oslo", [ann.id]), ("ann", [ann.id])):
        assert ground(brain, words_, hidden_fields=lambda _: hidden) == expected


def test_hidden_names_do_not_find_statements():
    """Where a Concept's name may not be read, it lends its words to no statement."""
    brain = Brain()
    ann, town = brain.concept("Person", "Ann"), brain.concept("Place", "Oslo")
    said = brain.says(ann, "knows", town)
    brain.commit()

    assert ground(brain, "ann oslo", "proposition") == [said.id]
    hidden = frozenset({"name"})
    assert ground(brain, "ann oslo", "proposition", hidden_fields=lambda _: hidden) == []


def test_a_statement_about_a_statement_has_its_words():
    """The words of a Proposition at an end count, to a bounded depth."""
    brain = Brain()
    ann, bo, town = (
        brain.concept("Person", "Ann"),
        brain.concept("Person", "Bo"),
        brain.concept("Place", "Oslo"),
    )
    inner = brain.says(ann, "knows", town)
    outer = brain.says(bo, "says", inner)
    brain.commit()

    assert ground(brain, "bo oslo", "proposition") == [outer.id, inner.id]


def test_a_merged_end_is_found_by_both_names():
    """A statement whose end was merged is found by the name it was made with and by the survivor's."""
    brain = Brain()
    old, new, town = (
        brain.concept("Person", "Old"),
        brain.concept("Person", "New"),
        brain.concept("Place", "Oslo"),
    )
    said = brain.says(old, "knows", town)
    brain.commit()
    brain.merge(old, new)
    brain.commit()

    assert ground(brain, "old", "proposition") == [said.id]
    assert ground(brain, "new", "proposition") == [said.id]


def test_a_predicate_restricts_statements():
    """Only statements of the predicate are candidates, found by the names of their ends or by the predicate's."""
    brain = Brain()
    ann = brain.concept("Person", "Ann")
    brain.says(ann, "knows", brain.concept("Person", "Bo"))
    zone = brain.says(ann, "timezone", "Europe/Oslo")
    brain.commit()
    ref = zone.predicate_ref
    world = World(brain.state, brain.env, brain.context())

    for text in ("ann", "timezone", "oslo"):
        found = Grounding(world, probe(text, "proposition", predicate_ref=ref)).hits(0.0)
        assert [hit.element.id for hit in found] == [zone.id]


def test_more_statements_than_are_weighed_are_said_to_be_cut():
    """The newest statements of the longest list are weighed, and `cut` says that others were not."""
    brain = Brain()
    ann = brain.concept("Person", "Ann")
    made = [brain.says(ann, "knows", brain.concept("Person", f"Friend{i}")) for i in range(700)]
    brain.commit()
    world = World(brain.state, brain.env, brain.context())
    grounding = Grounding(world, probe("ann", "proposition"))
    found = [hit.element.id for hit in grounding.hits(0.0)]

    assert grounding.cut
    assert len(found) == 500
    assert found[0] == made[200].id
    narrow = Grounding(world, probe("ann friend7", "proposition"))
    assert next(narrow.hits(0.0)).element.id == made[7].id


def test_many_hits_come_in_order():
    """Each element once, best first."""
    brain = Brain()
    for i in range(200):
        brain.concept("Person", "ann " * (i % 9 + 1) + f"word{i}")
    brain.commit()
    world = World(brain.state, brain.env, brain.context())
    hits = list(Grounding(world, probe("ann")).hits(0.0))

    assert len({hit.element.id for hit in hits}) == len(hits) == 200
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 5


def test_a_search_keeps_to_bounds_and_deadline():
    """Looking at more than the bound allows, or past the deadline, is refused."""
    brain = Brain()
    for i in range(50):
        brain.concept("Person", f"ann {i}")
    brain.commit()

    with pytest.raises(NoemaError) as refused:
        ground(brain, "ann", limits=Limits(rows_examined=20))
    assert refused.value.code == "ResultLimitExceeded"
    with pytest.raises(NoemaError) as late:
        ground(brain, "ann", overdue=lambda: True)
    assert late.value.code == "ExecutionTimeout"


def test_a_probe_of_no_words_finds_nothing():
    """Nothing asked, nothing found."""
    brain = Brain()
    brain.concept("Person", "Ann")
    brain.commit()

    assert ground(brain, "the of and") == []


def test_long_logs_are_walked_in_bounded_pages(nexus):
    """A page looks at a bounded number of commits; the next goes on where it ended, and none is lost."""
    state = nexus.state
    for number in range(4_200):
        draft = Draft(state, now=state.at + 1, origin=Origin("t", "t"))
        name = "bob" if number in {0, 4_150} else "dark"
        draft.change(state.get(nexus.id(name)), name=f"n{number}")
        delta = draft.finish()
        state = state.apply(delta)
        nexus.deltas.append(delta)
    nexus.states.append(state)
    nexus.now = state.at

    first = nexus.one("HISTORY ELEMENT :bob")
    assert [row["version"] for row in first["result"]] == [1, 2]
    second = nexus.one("HISTORY ELEMENT :bob CURSOR :c", c=first["next_cursor"])
    assert [row["version"] for row in second["result"]] == [3]
    assert "next_cursor" not in second
