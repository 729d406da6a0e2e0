"""Raw paths: quantifiers and alternatives (KIP §45)."""

from __future__ import annotations

import itertools

import pytest

from core.errors import NoemaError
from core.query import Limits
from tests.core.query.brain import Brain


@pytest.fixture
def brain() -> Brain:
    """A -> b -> c -> d by part_of, c -> a closing a circle, a -> z by knows, d says "end"."""
    b = Brain()
    node = {name: b.concept("Place", name) for name in "abcdz"}
    for source, target in ("ab", "bc", "cd", "ca"):
        b.says(node[source], "part_of", node[target])
    b.says(node["a"], "knows", node["z"])
    b.says(node["d"], "says", "end")
    b.commit()
    return b


def ends(brain: Brain, path: str, start: str = "a") -> str:
    """The names a path leads to."""
    rows = brain.rows(f'FIND(?y.name) WHERE {{ ({{name: "{start}"}}, {path}, ?y) }} ORDER BY ?y.name')
    return "".join(str(row) for row in rows)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ('"part_of"', "b"),
        ('"part_of"{1}', "b"),
        ('"part_of"{2}', "c"),
        ('"part_of"{3}', "ad"),
        ('"part_of"{4}', "b"),
        ('"part_of"{1,2}', "bc"),
        ('"part_of"{0,1}', "ab"),
        ('"part_of"{0}', "a"),
        ('"part_of"{1,}', "abcd"),
        ('"part_of"{5,}', "abcd"),
        ('"part_of" | "knows"', "bz"),
        ('"part_of"{2} | "knows"{1,3}', "cz"),
    ],
)
def test_path(brain: Brain, path: str, found: str) -> None:
    """A path reaches what so many hops reach, through circles too."""
    assert ends(brain, path) == found


def test_path_backward_and_between(brain: Brain) -> None:
    """A path is walked from whichever end is known."""
    back = brain.rows('FIND(?x.name) WHERE { (?x, "part_of"{1,2}, {name: "d"}) } ORDER BY ?x.name')
    both = brain.rows('FIND(COUNT(?x)) WHERE { ?x {name: "a"} ?y {name: "d"} (?x, "part_of"{3}, ?y) }')
    free = brain.rows('FIND(?x.name, ?y.name) WHERE { (?x, "part_of"{3}, ?y) } ORDER BY ?x.name, ?y.name')

    assert back == ["b", "c"]
    assert both == [1]
    assert free == [["a", "a"], ["a", "d"], ["b", "b"], ["c", "c"]]


def test_path_may_end_at_a_literal(brain: Brain) -> None:
    """A literal ends a chain; nothing leads on from it."""
    assert brain.rows('FIND(?y) WHERE { ({name: "d"}, "says"{1,3}, ?y) }') == ["end"]
    assert brain.rows('FIND(?x.name) WHERE { (?x, "says"{1,2}, "end") }') == ["d"]


def test_path_is_raw(brain: Brain) -> None:
    """KQL-023: a path of Propositions that nobody asserts is still a path, and no belief."""
    where = '?x {name: "a"} ?y {name: "d"} (?x, "part_of"{3}, ?y) ?b BELIEF (?x, "part_of", ?y)'

    assert brain.rows(f"FIND(?b.status, ?b.proposition_id) WHERE {{ {where} }}") == [["insufficient", None]]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ('?p ({name: "a"}, "part_of"{1,2}, ?y)', "InvalidSyntax"),
        ('({name: "a"}, "part_of"{1,99}, ?y)', "ResourceExhausted"),
        ('({name: "a"}, ?p{1,2}, ?y)', "UnsupportedCapability"),
    ],
)
def test_paths_that_are_refused(brain: Brain, where: str, code: str) -> None:
    """A path is not one Proposition, has bounded hops, and names its predicates."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f"FIND(?y) WHERE {{ {where} }}")

    assert refused.value.code == code


def test_unbounded_path_is_bounded_by_the_service() -> None:
    """A chain longer than the bound is refused, never cut."""
    b = Brain()
    nodes = [b.concept("Place", f"n{i}") for i in range(8)]
    for source, target in itertools.pairwise(nodes):
        b.says(source, "part_of", target)
    b.commit()
    text = 'FIND(COUNT(?y)) WHERE { ({name: "n0"}, "part_of"{1,}, ?y) }'

    assert b.rows(text) == [7]
    with pytest.raises(NoemaError) as refused:
        b.rows(text, limits=Limits(path_hops=5))
    assert refused.value.code == "ResourceExhausted"


def test_archived_link_breaks_a_path(brain: Brain) -> None:
    """A path runs over active Propositions."""
    (link,) = brain.select('?p ({name: "b"}, "part_of", ?o)')
    brain.change(brain.state.get(link["p"].id), state="archived")  # type: ignore[union-attr]
    brain.commit()

    assert ends(brain, '"part_of"{1,}') == "b"
