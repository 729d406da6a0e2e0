"""Whatever META statement is sent, with whatever values, the answer is an answer or an error of the registry."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import REGISTRY
from core.language import format_command, parameter_names
from tests.core.language.strategies import metas
from tests.core.meta.conftest import READER, Nexus, hiding

LEAVES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats(0, 2) | st.sampled_from([
    "", "alice", "Person", "prefers", "kip://core@2.0.0", "kip://test/core-domain@1.0.0", "active", "compact",
    "keyword", "2026-05-28T20:26:42Z", "tx-00000002abcde", "C-00000002000abcde", "FIND(?x) WHERE {}",
    'CREATE CONCEPT ?x { TYPE "Person" NAME "X" }', "{", "test-deterministic", "\ud7ff", "a" * 300,
])  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "format", "tx_id", "operation", "plan"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@cache
def shared() -> Nexus:
    return Nexus()


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(command=metas, data=st.data())
def test_any_statement_has_an_answer(command, data):
    """No META statement, with any values, gives anything but an answer or a registered error; none writes."""
    nexus = shared()
    given_values = {name: data.draw(VALUES) for name in sorted(parameter_names(command))}
    who = data.draw(
        st.sampled_from([{}, {"principal": READER}, {"principal": hiding("secret")}, {"readonly": True}])
    )
    before = len(nexus.deltas)

    response = nexus.run(format_command(command), given_values, **who)

    result = response["results"][0] if response["results"] else response
    if response["status"] != "succeeded":
        assert result["error"]["code"] in REGISTRY
        assert result["error"]["code"] != "InternalError"
    assert len(nexus.deltas) == before


@pytest.mark.parametrize("family", ["SEARCH COGNITION", "LIST TYPES", "HISTORY SPACE", "CHANGES SINCE"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(text=st.text(max_size=60) | st.binary(max_size=40).map(lambda b: b.hex()))
def test_no_cursor_can_be_made_up(family, text):
    """A cursor that this service did not give continues nothing."""
    nexus = shared()
    command = {
        "SEARCH COGNITION": 'SEARCH COGNITION "alice" CURSOR :c',
        "LIST TYPES": "LIST TYPES CURSOR :c",
        "HISTORY SPACE": "HISTORY SPACE CURSOR :c",
        "CHANGES SINCE": "CHANGES SINCE :c",
    }[family]

    assert nexus.code(command, c=text) in {
        "CursorInvalidated", "CursorTypeMismatch", "ChangeCursorInvalid", "TypeMismatch",
    }  # fmt: skip
