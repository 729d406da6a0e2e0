"""The plain oracle of a View: a dict of elements, searched from end to end; and operations to compare by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from core.model.elements import (
    KIND_OF_TYPE,
    AnyElement,
    Assertion,
    Citation,
    Concept,
    Evidence,
    Origin,
    Payload,
    Proposition,
    System,
)
from core.model.ids import KINDS, Kind, element_id, kind_of, sort_key
from core.model.literals import Literal, Ref
from core.search.text import searchable, terms
from core.state.indexes import entries
from core.state.view import Counts, TextStats, View

SALT = "aaaaa"
ORIGIN = Origin("tester", "rest")
WORDS = ("garden", "tomato", "salt", "köln", "東京", "seven", "")


class Naive:
    """The View of a dict."""

    def __init__(self, elements: dict[str, AnyElement]) -> None:
        self.elements = {found: elements[found] for found in sorted(elements, key=sort_key)}

    @property
    def counts(self) -> Counts:
        counts = Counts()
        for found in self.elements:
            counts = counts.plus(kind_of(found), 1)
        return counts

    @property
    def text_stats(self) -> TextStats:
        lengths = [self.text_length(found) for found in self.elements]
        return TextStats(sum(1 for length in lengths if length), sum(lengths))

    def get(self, element: str) -> AnyElement | None:
        return self.elements.get(element)

    def find(self, key: str) -> Sequence[str]:
        return [found for found, one in self.elements.items() if key in entries(one, kind_of(found))]

    def count(self, key: str) -> int:
        return len(self.find(key))

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        floor = "" if after is None else sort_key(after)
        return (found for found in self.elements if kind_of(found) == kind and sort_key(found) > floor)

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        pairs = [(found, terms(searchable(one))[term]) for found, one in self.elements.items()]
        return [(found, times) for found, times in pairs if times]

    def text_length(self, element: str) -> int:
        one = self.elements.get(element)
        return 0 if one is None else terms(searchable(one)).total()


def make(number: int, flavour: int, word: str = "") -> AnyElement:
    """The element of a number: its kind and id never change, the rest follows `flavour` and `word`."""
    kind = KINDS[number % 4]
    new = {
        "id": element_id(kind, 1 + number // 3, number % 3, SALT),
        "system": System(1 + flavour, 1, 1, "tx-1", "tx-1", ORIGIN, "archived" if flavour == 3 else "active"),
        "client_key": f"client {number}" if flavour % 2 else None,
    }
    other = element_id("concept", 1 + (number - number % 4) // 3, (number - number % 4) % 3, SALT)
    if kind == "concept":
        return Concept(**new, schema_ref=f"kip://t/T{flavour % 2}", key=f"k{number}", name=word or None)
    if kind == "proposition":
        thing = Ref(other) if flavour % 2 else Literal(word)
        return Proposition(**new, subject=other, predicate_ref="kip://t/likes", object=thing)
    if kind == "assertion":
        cited = tuple(Citation(f"E-{flavour:016d}") for _ in range(flavour % 2))
        return Assertion(
            **new,
            proposition=other,
            asserted_by=other,
            stance="support",
            mode="stated",
            asserted_at=1,
            evidence=cited,
        )
    text = f"{word} {word} {flavour}"
    return Evidence(
        **new, evidence_class="message", payload=Payload("inline", text), content_digest="sha256:0"
    )


# an operation: put element `number` in some flavour, or drop it (flavour None)
OPERATIONS = st.lists(
    st.tuples(st.integers(0, 23), st.none() | st.integers(0, 3), st.sampled_from(WORDS)), max_size=40
)
SCRIPTS = st.lists(OPERATIONS, min_size=1, max_size=6)  # one list of operations a commit


def assert_same(view: View, oracle: Naive) -> None:
    """Every lookup of a view gives what the oracle gives."""
    assert view.counts == oracle.counts
    assert view.text_stats == oracle.text_stats
    keys = {key for number in range(24) for flavour in range(4) for word in WORDS[:3]
            for one in [make(number, flavour, word)] for key in entries(one, KIND_OF_TYPE[type(one)])}  # fmt: skip
    for key in sorted(keys):
        found = view.find(key)
        assert list(found) == oracle.find(key), key
        assert len(found) == oracle.count(key) <= view.count(key)
        assert list(reversed(found)) == list(reversed(oracle.find(key)))
        assert [found[at] for at in range(-len(found), len(found))] == oracle.find(key) * 2
    for term in {term for word in WORDS for term in terms(word)} | {"0", "1", "2", "3", "nowhere"}:
        assert list(view.word(term)) == oracle.word(term), term
        assert list(reversed(view.word(term))) == list(reversed(oracle.word(term)))
    for kind in KINDS:
        assert list(view.ids(kind)) == list(oracle.ids(kind))
    for number in range(24):
        found_id = make(number, 0).id
        assert view.get(found_id) == oracle.get(found_id)
        assert view.text_length(found_id) == oracle.text_length(found_id)
        kind = kind_of(found_id)
        assert list(view.ids(kind, found_id)) == list(oracle.ids(kind, found_id))
