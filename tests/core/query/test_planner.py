"""Which index a pattern is found by, and in which order (KQL design §245)."""

from __future__ import annotations

from typing import Any

import pytest

from core.query import plan_json, run
from core.state.space import SpaceState
from tests.core.query.brain import Brain, question


@pytest.fixture(scope="module")
def brain() -> Brain:
    """Three hundred people, thirty projects, one of the people with a key; everybody knows two others."""
    b = Brain()
    people = [b.concept("Person", f"p{i}", key=f"k{i}") for i in range(300)]
    for i in range(30):
        b.concept("Project", f"q{i}")
    for i, person in enumerate(people):
        known = b.says(person, "knows", people[(i + 1) % 300])
        b.says(person, "knows", people[(i + 7) % 300])
        b.claim(known, person)
    b.commit()
    return b


def plan(brain: Brain, where: str, find: str = "FIND(?x)") -> list[dict[str, Any]]:
    """The steps of a query's plan."""
    command = question(f"{find} WHERE {{ {where} }}")
    return list(plan_json(brain.state, command, brain.env, brain.context())["steps"])


@pytest.mark.parametrize(
    ("where", "index"),
    [
        ('?x {id: "C-1"}', "id"),
        ('?x {type: "Person", key: "k1"}', "type+key"),
        ('?x {key: "k1"}', "key"),
        ('?x {name: "p1"}', "name"),
        ('?x {type: "Project", state: "archived"}', "state"),
        ('?x {type: "Project"}', "type"),
        ("?x CONCEPT {attributes: {a: 1}}", "kind"),
        ('?x ASSERTION {mode: "observed"}', "class"),
        ('?x ASSERTION {asserted_by: {id: "C-1"}}', "asserted_by"),
        ('?x ASSERTION {proposition: {id: "P-1"}, mode: "stated"}', "proposition"),
        ('?x EVIDENCE {source: {id: "C-1"}}', "referrers"),
        ('?x ({id: "C-1"}, "knows", {id: "C-2"})', "tuple"),
        ('?x ({id: "C-1"}, "knows", ?o)', "subject+predicate"),
        ('?x (?s, "knows", {id: "C-1"})', "object+predicate"),
        ('?x ({id: "C-1"}, ?p, ?o)', "subject"),
        ('?x (?s, ?p, "text")', "object"),
        ('?x (?s, "knows", ?o)', "predicate"),
        ("?x (?s, ?p, ?o)", "kind"),
        ('?x STRUCTURAL ({id: "C-1"}, "has_step", ?t)', "source"),
        ('?x STRUCTURAL (?s, "has_step", {id: "C-1"})', "target"),
    ],
)
def test_index_of_a_pattern(brain: Brain, where: str, index: str) -> None:
    """A pattern is found by the most selective thing it says; a scan is marked as one."""
    (step,) = plan(brain, where)

    assert step["index"] == index
    assert step["scan"] is (index == "kind")


def test_join_starts_at_the_selective_end(brain: Brain) -> None:
    """Whatever the order written, a two-hop join begins at the key and follows the links."""
    clauses = [
        '(?x, "knows", ?y)',
        '(?y, "knows", ?z)',
        '?x {type: "Person", key: "k5"}',
        '?z {type: "Person"}',
    ]

    for where in (" ".join(clauses), " ".join(reversed(clauses))):
        steps = plan(brain, where)
        assert [step["index"] for step in steps] == [
            "type+key",
            "subject+predicate",
            "subject+predicate",
            "bound",
        ]


def test_filter_is_asked_as_early_as_it_can_be(brain: Brain) -> None:
    """A condition on one variable is not kept for the end of the join."""
    steps = plan(brain, '(?x, "knows", ?y) ?x {key: "k1"} FILTER(?x.name != "a") FILTER(?y.name != "b")')

    assert [step["step"] for step in steps] == ["match", "filter", "match", "filter"]


def test_belief_comes_after_what_narrows_it(brain: Brain) -> None:
    """Projections are made for rows that passed every raw condition."""
    steps = plan(
        brain,
        '?b BELIEF (?p) FILTER(?b.status == "accepted") FILTER(?o.name == "x") ?p ({key: "k1"}, "knows", ?o)',
        "FIND(?b)",
    )

    assert [step["step"] for step in steps] == ["match", "match", "filter", "belief", "filter"]


def test_plan_of_inner_blocks(brain: Brain) -> None:
    """OPTIONAL and NOT are planned with what is bound outside; UNION stands beside."""
    command = question(
        'FIND(?x) WHERE { ?x {key: "k1"} OPTIONAL { (?x, "knows", ?y) } NOT { (?z, "knows", ?x) } UNION { ?x {key: "k2"} } }'
    )
    shown = plan_json(brain.state, command, brain.env, brain.context())

    assert [step["step"] for step in shown["steps"]] == ["match", "optional", "not"]
    assert shown["steps"][1]["plan"]["steps"][0]["index"] == "subject+predicate"
    assert shown["steps"][2]["plan"]["steps"][0]["index"] == "object+predicate"
    assert shown["unions"][0]["steps"][0]["index"] == "key"


class Watched(SpaceState):
    """A state that counts how many elements are looked at."""

    __slots__ = ("gets",)

    def get(self, element_id: str) -> Any:
        self.gets += 1
        return super().get(element_id)


def looked_at(brain: Brain, text: str) -> int:
    """How many elements a query reads."""
    state = brain.state
    watched = Watched(meta=state.meta, ver=state.ver, seq=state.seq, at=state.at, tail=state.tail)
    watched.gets = 0
    run(watched, question(text), brain.env, brain.context())
    return watched.gets


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ('FIND(?x) WHERE { ?x {type: "Person", key: "k5"} }', 2),
        ('FIND(?z.name) WHERE { (?x, "knows", ?y) (?y, "knows", ?z) ?x {key: "k5"} }', 16),
        ('FIND(?x.name) WHERE { ?x {type: "Person"} } LIMIT 10', 22),
        ('FIND(COUNT(?x)) WHERE { ?x {type: "Person"} }', 0),
        ("FIND(COUNT(?x)) WHERE { ?x ASSERTION {} }", 0),
        ('FIND(?a.id) WHERE { ?a ASSERTION {proposition: ({key: "k5"}, "knows", ?y)} }', 6),
        ('FIND(?b.status) WHERE { ?b BELIEF SLOT ({key: "k5"}, "knows") }', 30),
    ],
)
def test_work_is_proportional_to_the_answer(brain: Brain, text: str, most: int) -> None:
    """A selective query reads a handful of elements of a space of twelve hundred."""
    assert looked_at(brain, text) <= most


def test_long_keys_are_rechecked() -> None:
    """An index finds long values by their digest; the value itself decides."""
    b = Brain()
    text = "x" * 500
    b.concept("Person", text, key=text)
    b.commit()

    assert b.rows("FIND(COUNT(?c)) WHERE { ?c {name: :t, key: :t} }", {"t": text}) == [1]
    assert b.rows("FIND(COUNT(?c)) WHERE { ?c {name: :t} }", {"t": text + "y"}) == [0]
