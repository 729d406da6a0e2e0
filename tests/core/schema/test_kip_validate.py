"""Values against the rules of a package."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.model.literals import make_literal
from core.schema.definitions import Ends, PredicateType, Rule
from core.schema.validate import check_literal_object, check_value, same_json


def code_of(value, rule):
    try:
        check_value(value, rule, "x")
    except NoemaError as error:
        return error.code
    return None


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("string", ["", "a"], [1, True, [], {}]),
        ("number", [0, 1.5, -2], ["1", True, float("nan")]),
        ("integer", [3, 3.0], [3.5, True, "3"]),
        ("boolean", [True, False], [1, 0, "true"]),
        ("array", [[], [1]], [{}, "a"]),
        ("object", [{}], [[], "a"]),
        ("timestamp", ["2026-01-01T00:00:00Z", "2026-01-01T08:00:00+08:00"], ["2026-01-01", 5, "tomorrow"]),
        ("date", ["2026-02-28"], ["2026-02-30", "20260228", 5]),
        ("duration", ["P1D", "PT1H30M", "P2W"], ["P", "1D", "PT"]),
        ("uri", ["https://x.y/z", "urn:a:b"], ["x", "a b:c"]),
        ("json_scalar", ["a", 1, True], [[], {}]),
    ],
)
def test_value_types(name, good, bad):
    """Each type of a rule admits its own values and no others."""
    rule = Rule(types=(name,))

    assert [code_of(value, rule) for value in good] == [None] * len(good)
    assert [code_of(value, rule) for value in bad] == ["TypeMismatch"] * len(bad)


def test_null_needs_permission():
    """Null is a value only where a rule says so."""
    assert code_of(None, Rule(types=("string",))) == "TypeMismatch"
    assert code_of(None, Rule(types=("string",), nullable=True)) is None


@pytest.mark.parametrize(
    ("rule", "value", "code"),
    [
        (Rule(enum=("a", 1)), "a", None),
        (Rule(enum=("a", 1)), 1.0, None),
        (Rule(enum=("a", 1)), True, "ConstraintViolation"),
        (Rule(enum=("a", 1)), "b", "ConstraintViolation"),
        (Rule(minimum=0, maximum=1), 0, None),
        (Rule(minimum=0, maximum=1), 1.01, "ConstraintViolation"),
        (Rule(minimum=0, maximum=1), -0.01, "ConstraintViolation"),
        (Rule(min_length=2, max_length=3), "ab", None),
        (Rule(min_length=2, max_length=3), "a", "ConstraintViolation"),
        (Rule(max_length=1), [1, 2], "ConstraintViolation"),
        (Rule(pattern=r"^\d+$"), "12", None),
        (Rule(pattern=r"^\d+$"), "1x", "ConstraintViolation"),
    ],
)
def test_constraints(rule, value, code):
    """Enumerations, ranges, lengths and patterns are kept, at their edges too."""
    assert code_of(value, rule) == code


def test_json_equality_tells_truth_from_one():
    """1 and 1.0 are one value, true and 1 are two."""
    assert same_json(1, 1.0)
    assert not same_json(True, 1)
    assert not same_json(0, False)
    assert same_json(True, True)


@pytest.mark.parametrize(
    ("ends", "value", "datatype", "fits"),
    [
        (Ends(literals=("string",)), "x", None, True),
        (Ends(literals=("string",)), True, None, False),
        (Ends(literals=("integer",)), 3, None, True),
        (Ends(literals=("integer",)), 3.5, None, False),
        (Ends(literals=("number",)), 3.5, None, True),
        (Ends(literals=("date",)), "2026-01-01", None, True),
        (Ends(literals=("date",)), "someday", None, False),
        (Ends(literals=("xsd:token",)), "x", "xsd:token", True),
        (Ends(literals=("string", "null")), None, None, True),
        (Ends(literals=("string",)), None, None, False),
        (Ends(), "anything", None, True),
        (Ends(), None, None, False),
        (Ends(kinds=("concept",)), "x", None, False),
        (Ends(literals=("number",), rule=Rule(minimum=0)), -1, None, False),
    ],
)
def test_literal_objects(ends, value, datatype, fits):
    """A Literal object fits by scalar type or datatype; null only where it is named."""
    predicate = PredicateType(ref="kip://t@1.0.0/p", name="p", object=ends)
    literal = make_literal(value, datatype)

    if fits:
        check_literal_object(predicate, literal)
    else:
        with pytest.raises(NoemaError) as caught:
            check_literal_object(predicate, literal)
        assert caught.value.code in {"TypeMismatch", "ConstraintViolation"}
        assert ("UPSERT CONCEPT" in caught.value.hint) == (ends.kinds == ("concept",))
