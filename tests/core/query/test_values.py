"""Equality, order and identity of values; REGEX; the wire form of the five kinds."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from core.model.elements import Governance, Retention
from core.model.literals import Ref, make_literal
from core.query.regex import compile_regex
from core.query.values import identity, joins, less, order_key, plain, same
from core.query.wire import to_wire
from tests.core.query.brain import WORLD, Brain

VALUES: list[Any] = [
    None, True, False, 0, 1, 1.5, "1", "true", "", "2026-05-01T00:00:00Z", "2026-05-01T02:00:00+02:00",
    [], [1], [True], {}, {"a": 1}, {"a": True}, Ref("C-1"), Ref("C-2"), make_literal("x"), make_literal("x", "t"),
    make_literal("x", language="fr"), make_literal(1.0), make_literal(None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right"), list(itertools.combinations_with_replacement(range(len(VALUES)), 2))
)
def test_equality_is_symmetric_and_typed(left: int, right: int) -> None:
    """Each value equals itself; of different ones only 1 and 1.0, and two spellings of an instant, are equal."""
    one, other = VALUES[left], VALUES[right]
    equal = {(4, 22), (9, 10), (0, 23)}

    assert same(one, other) is same(other, one)
    assert same(one, other) is (left == right or (left, right) in equal)


def test_literal_identity_is_text_not_instant() -> None:
    """FILTER sees one instant in two spellings; as objects of tuples they are two Literals."""
    one, other = make_literal("2026-05-01T00:00:00Z"), make_literal("2026-05-01T00:00:00.000Z")

    assert same(one, other)
    assert not joins(one, other)
    assert joins(make_literal(1), make_literal(1.0))
    assert not joins(make_literal(1), make_literal(True))
    assert not joins(None, None)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(1, 2, True), (2, 1, False), (1, 1.5, True), ("a", "b", True), (False, True, True), (1, "2", None),
     (True, 2, None), (None, 1, None), ([1], [2], None), (Ref("C-1"), Ref("C-2"), None),
     ("2026-05-01T00:00:00Z", "2026-05-01T00:00:00.001Z", True), ("2026-05-01T01:00:00+02:00", "2026-05-01T00:00:00Z", True)],
)  # fmt: skip
def test_less(left: Any, right: Any, expected: bool | None) -> None:
    """Only alike values have an order between them."""
    assert less(left, right) is expected


def test_order_is_total() -> None:
    """Every pair of sort keys compares, and equal values have equal keys."""
    keys = [order_key(value) for value in VALUES if plain(value) is not None]
    for one, other in itertools.product(keys, repeat=2):
        assert (one < other) + (other < one) + (one == other) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(json_values, json_values)
def test_identity_is_equality(left: Any, right: Any) -> None:
    """Two JSON values without instants group together exactly when they are equal."""
    assert (identity(left) == identity(right)) is same(left, right)


# --- REGEX

pieces = st.sampled_from(["a", "b", ".", r"\d", r"\w", "[ab]", "[^a]", "1", "^", "$", "[a-b1]", r"\."])
patterns = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "{2}", "{0,}", "*?"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(patterns, st.text("ab1_. ", max_size=6))
def test_regex_agrees_with_the_standard_library(pattern: str, text: str) -> None:
    """Within the language, a match is what Python's own engine finds."""
    assert compile_regex(pattern).search(text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(?i)KÖLN", "nach köln"), ("(?i)[A-C]x", "bX"), ("日.語", "日本語"), ("a{3}", "aaa")],
)
def test_regex_beyond_ascii_and_case(pattern: str, text: str) -> None:
    """Unicode text, and matching without regard to case."""
    assert compile_regex(pattern).search(text)


def test_regex_is_linear() -> None:
    """A pattern that makes backtracking engines explode is answered at once; the bound is on work, not time."""
    regex = compile_regex("(a*)*(a*)*(a|aa)+b")

    assert not regex.search("a" * 20_000)
    assert len(regex._moves) < 100


def test_regex_counts_its_work() -> None:
    """What a pattern costs is told as it is spent, so that a query's bounds and deadline hold for it."""
    spent: list[int] = []
    compile_regex("(a|b)*c").search("ab" * 5_000, spent.append)
    compile_regex("((a|b)*c(d|e)*f){1,90}").search("abdecf" * 300, spent.append)

    assert 0 < sum(spent) < 20_000


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a)",
        "[a",
        "*",
        "+a",
        "a{x}",
        "a{2,1}",
        "a{",
        r"\1",
        r"\b",
        "(?=a)",
        "(?P<n>a)",
        "[b-a]",
        "a{9999}",
        "\\",
    ],
)
def test_regex_that_is_not_in_the_language(pattern: str) -> None:
    """What a finite automaton cannot do, and what is badly written, is refused with its place."""
    with pytest.raises(NoemaError) as refused:
        compile_regex(pattern)

    assert refused.value.code in {"InvalidSyntax", "ResourceExhausted"}


def test_regex_has_bounds() -> None:
    """Neither a long pattern nor nested counts are expanded without end."""
    for pattern in ("a" * 600, "(((a{60}){60}){60})"):
        with pytest.raises(NoemaError) as refused:
            compile_regex(pattern)
        assert refused.value.code == "ResourceExhausted"


# --- wire


def test_wire_form_of_each_kind() -> None:
    """KIP §6.2 and the shape of each kind: references as {id}, instants as RFC 3339."""
    b = Brain()
    alice = b.concept("Person", "Alice", client_key="c", retention=Retention("keep", b.now, legal_hold=True))
    dark = b.concept("Theme", "Dark", governance=Governance("public"))
    b.link(alice, "has_step", dark)
    b.merge(dark, alice)
    p = b.says(alice, "prefers", dark)
    zone = b.says(alice, "timezone", make_literal("x", "tz"))
    e = b.evidence("document", "text", alice, observed_at=b.now)
    x = b.activity("inference", [e], [p], started_at=b.now)
    a = b.claim(p, alice, (e, "challenge"), confidence=0.5, until="2027-01-01T00:00:00Z")

    def wire(element: Any) -> dict[str, Any]:
        known = b.draft.get(element.id)
        assert known is not None
        return to_wire(known, "space")

    common = {"id", "kind", "space_id", "governance", "retention", "facets", "_system"}
    kinds = {element.id: wire(element) for element in (alice, dark, p, zone, e, x, a)}
    assert all(common <= set(shown) for shown in kinds.values())
    assert wire(alice)["retention"] == {
        "retention_class": "keep", "expires_at": "2026-06-01T00:00:00.000Z", "legal_hold": True,
    }  # fmt: skip
    assert (wire(alice)["client_key"], wire(alice)["structural"]) == (
        "c",
        {f"{WORLD}/has_step": [{"id": dark.id}]},
    )
    assert (wire(dark)["merged_into"], wire(dark)["_system"]["state"]) == ({"id": alice.id}, "merged")
    assert wire(p)["object"] == {"id": dark.id}
    assert wire(zone)["object"] == {"value": "x", "datatype": "tz", "language": None}
    assert wire(e)["payload"] == {"mode": "inline", "inline": "text", "content_ref": None}
    assert wire(e)["lifecycle"] == {"status": "active", "corrects": [], "corrected_by": []}
    assert (wire(x)["inputs"], wire(x)["started_at"]) == ([{"id": e.id}], "2026-06-01T00:00:00.000Z")
    assert wire(a)["evidence"] == [{"id": e.id, "role": "challenge"}]
    assert wire(a)["valid_time"] == {"from": None, "until": "2027-01-01T00:00:00.000Z"}
    assert wire(a)["governance"] == {"classification": None, "policy_ref": None, "authority_lineage": [e.id]}


def test_wire_form_of_a_stub() -> None:
    """A purged element says that it is one."""
    b = Brain()
    gone = b.change(b.concept("Person", "Alice"), name=None, state="purged")

    assert to_wire(gone, "space")["governance"]["purged"] is True
