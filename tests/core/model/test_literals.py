"""Literals: which values are one value."""

import pytest

from core.errors import NoemaError
from core.model.literals import Ref, make_literal, term_key


def test_equal_numbers_are_one_literal() -> None:
    """1 and 1.0 are the same object of a tuple (KIP §9)."""
    assert make_literal(1.0) == make_literal(1)
    assert term_key(make_literal(1.0)) == term_key(make_literal(1))


def test_unlike_values_are_told_apart() -> None:
    """true, 1 and "1", null and "null", a reference and a string that looks like one are different objects."""
    values = [make_literal(v) for v in (True, 1, "1", None, "null", "C-1", "r:C-1", 1.5, False, 0, "")]
    keys = {term_key(v) for v in values} | {term_key(Ref("C-1"))}

    assert len(keys) == 12


def test_language_and_datatype_take_part() -> None:
    """A language tag or a datatype makes another literal; the tag's case does not (KIP §9.4)."""
    assert term_key(make_literal("chat", language="fr")) != term_key(make_literal("chat", language="en"))
    assert term_key(make_literal("chat", language="FR")) == term_key(make_literal("chat", language="fr"))
    assert term_key(make_literal("5", "kip://x@1.0.0/Code")) != term_key(make_literal("5"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(value: float) -> None:
    """NaN and the infinities are refused (KIP §9.3)."""
    with pytest.raises(NoemaError) as caught:
        make_literal(value)

    assert caught.value.code == "ConstraintViolation"


@pytest.mark.parametrize("value", [[], {}, [1], {"a": 1}, object()])
def test_structures_are_no_literals(value: object) -> None:
    """Arrays and objects are not Literals (KIP §9.2)."""
    with pytest.raises(NoemaError) as caught:
        make_literal(value)

    assert caught.value.code == "TypeMismatch"
