"""Layers: whatever is written in whatever order, every lookup gives what a plain dict gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import core.state.postings as postings
from core.model.elements import AnyElement
from core.state.layer import Empty, Layer
from core.state.postings import Combined
from tests.core.state.oracle import SCRIPTS, Naive, assert_same, make


@pytest.mark.parametrize("short", [0, 256], ids=["lazy", "eager"])
@settings(max_examples=60, deadline=None)
@given(script=SCRIPTS)
def test_a_stack_of_layers_is_a_dict(short: int, script: list) -> None:
    """Puts, changes and drops over layers, merged or not, answer every lookup as the elements alone would."""
    patch = pytest.MonkeyPatch()
    patch.setattr(postings, "_SHORT", short)
    try:
        elements: dict[str, AnyElement] = {}
        stacked, settled = Layer(Empty()), Layer(Empty())
        for operations in script:
            stacked, settled = Layer(stacked), Layer(settled)
            for number, flavour, word in operations:
                element = make(number, flavour or 0, word)
                if flavour is None:
                    elements.pop(element.id, None)
                    stacked.drop(element.id)
                    settled.drop(element.id)
                else:
                    elements[element.id] = element
                    stacked.put(element)
                    settled.put(element)
            settled = settled.settle()

        assert_same(stacked, Naive(elements))
        assert_same(settled, Naive(elements))
    finally:
        patch.undo()


def test_a_layer_that_changes_nothing_of_a_key_passes_the_answer_on() -> None:
    """A lookup of a key that the layer did not touch costs nothing, however many answers it has."""
    below = Layer(Empty())
    for number in range(24):
        below.put(make(number, 0))

    class Counted:
        counts, text_stats = below.counts, below.text_stats
        answer = tuple(below.find("!concept"))

        def __getattr__(self, name: str) -> object:
            return getattr(below, name)

        def find(self, key: str) -> object:
            return self.answer if key == "!concept" else below.find(key)

    layer = Layer(Counted())
    layer.put(make(0, 1, "changed"))  # the same Concept, renamed

    assert layer.find("!concept") is Counted.answer


def test_a_long_answer_is_combined_lazily() -> None:
    """The end of a long answer can be taken without making its beginning."""

    class Long:
        counts, text_stats = Empty.counts, Empty.text_stats

        def find(self, _: str) -> range:
            return Ids(100_000)

        def get(self, _: str) -> None:
            return None

        def text_length(self, _: str) -> int:
            return 0

    taken = []

    class Ids:
        def __init__(self, count: int) -> None:
            self.count = count

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, at: int) -> str:
            taken.append(at)
            return f"C-{at:016d}"

        def __iter__(self) -> object:
            return (self[at] for at in range(self.count))

        def __reversed__(self) -> object:
            return (self[at] for at in reversed(range(self.count)))

    layer = Layer(Long())
    newest = make(20, 0)
    layer.put(
        newest.__class__(
            **{**{f: getattr(newest, f) for f in newest.__struct_fields__}, "id": "C-zzzzzzzz000aaaaa"}
        )
    )
    found = layer.find("!concept")

    assert isinstance(found, Combined)
    assert len(found) == 100_001
    assert found[-1] == "C-zzzzzzzz000aaaaa"
    assert found[99_999] == f"C-{99_999:016d}"
    assert len(taken) < 5


def test_settling_keeps_the_stack_logarithmic() -> None:
    """A thousand small commits leave a handful of layers, so a lookup passes few of them."""
    layer = Layer(Empty())
    for number in range(1000):
        layer = Layer(layer)
        layer.put(make(number, 0, "x"))
        layer = layer.settle()

    depth, below = 0, layer
    while isinstance(below, Layer):
        depth, below = depth + 1, below.below

    assert depth <= 11


@settings(max_examples=40, deadline=None)
@given(script=SCRIPTS)
def test_a_layer_may_be_asked_while_it_is_written(script: list) -> None:
    """A transaction asks between its writes: each answer is of what has been written until then, and stays it."""
    elements: dict[str, AnyElement] = {}
    layer = Layer(Empty())
    for operations in script:
        layer = Layer(layer)
        for number, flavour, word in operations:
            held = layer.find("!concept")
            before = list(held)
            element = make(number, flavour or 0, word)
            if flavour is None:
                elements.pop(element.id, None)
                layer.drop(element.id)
            else:
                elements[element.id] = element
                layer.put(element)
            assert list(held) == before
            assert_same(layer, Naive(elements))


def test_ids_under_a_key_are_put_in_order_once() -> None:
    """Looking again costs nothing, until something more stands under the key."""
    layer = Layer(Empty())
    for number in reversed(range(0, 1200, 4)):
        layer.put(make(number, 0))
    first, again = layer.find("!concept"), layer.find("!concept")
    assert isinstance(first, Combined)
    assert isinstance(again, Combined)
    assert first._own is again._own

    layer.put(make(1200, 0))
    assert (len(first), len(layer.find("!concept"))) == (300, 301)
