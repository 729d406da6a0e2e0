"""Redaction: what is named goes, everything else stays byte for byte, and twice is once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.ids import is_element_id, kind_of
from core.model.log import Delta
from core.storage.codec import encode_delta, unpack
from core.storage.redaction import Erased, nothing_id, redact_delta, redact_element
from core.storage.segment import encode_element
from tests.core.state.oracle import ORIGIN, make

ELEMENTS = st.builds(make, st.integers(0, 40), st.integers(0, 3), st.sampled_from(("a", "b")))


@settings(max_examples=80, deadline=None)
@given(
    elements=st.lists(ELEMENTS, max_size=12, unique_by=lambda one: one.id),
    victims=st.sets(st.integers(0, 40)),
)
def test_no_removed_id_is_left(elements: list, victims: set[int]) -> None:
    """After a redaction no removed id stands in the commit, and what did not mention one is as it was."""
    removed = tuple(make(number, 0).id for number in victims)
    erased = Erased(removed)
    record = {"wrote": [one.id for one in elements]}
    delta = Delta(1, 1, 0, "tx", 1, ORIGIN, "cognitive", tuple(elements), removed[:2], None, record)

    kept = redact_delta(delta, erased)

    payload = unpack("delta", encode_delta(kept))
    assert not any(found.encode() in payload for found in removed)
    assert redact_delta(kept, erased) == kept
    for element in elements:
        mentions = any(found.encode() in encode_element(element) for found in removed)
        assert mentions or element in kept.puts


def test_a_stub_takes_the_elements_place() -> None:
    """Where an element has a stub, every older version of it becomes the stub, and references stay."""
    old, stub, other = make(3, 0, "secret"), make(3, 3), make(4, 1)
    delta = Delta(1, 1, 0, "tx", 1, ORIGIN, "cognitive", (old, other))

    kept = redact_delta(delta, Erased((), {old.id: stub}))

    assert kept.puts == (stub, other)
    assert redact_element(stub, Erased((), {old.id: stub})) is stub


def test_the_id_of_nothing_is_an_id() -> None:
    """A reference to what was removed has the shape of an id, of the same kind and length, and names no element."""
    for number in range(5):
        found = make(number, 0).id
        nothing = nothing_id(found)

        assert is_element_id(nothing)
        assert (len(nothing), kind_of(nothing)) == (len(found), kind_of(found))


def test_a_cheap_look_misses_nothing() -> None:
    """Bytes that mention an id, removed or with a stub, are looked into."""
    element = make(3, 0)

    assert Erased((element.id,)).touches(encode_element(element))
    assert Erased((), {element.id: element}).touches(encode_element(element))
    assert not Erased((make(9, 0).id,)).touches(encode_element(element))
    assert not Erased().touches(encode_element(element))
