"""Arguments of calls, read strictly; what models often write otherwise is understood."""

import pytest

from core.agents.tools.calls import NoteCall, read_arguments, read_kip
from core.errors import NoemaError
from core.models.chat import ToolCall


def call(**arguments: object) -> ToolCall:
    """A call of execute_kip."""
    return ToolCall("c1", "execute_kip", arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"commands": ["LIST TYPES"]},
        {"command": "LIST TYPES"},
        {"commands": "LIST TYPES"},
        {"commands": ["LIST TYPES"], "parameters": None},
    ],
)
def test_one_command_may_be_written_in_several_ways(arguments: dict):
    """A lone command is a list of one; parameters may be null."""
    assert read_kip(call(**arguments)).commands == ("LIST TYPES",)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"commands": []},
        {"commands": [""]},
        {"commands": [1]},
        {"commands": ["x"] * 17},
        {"commands": ["x" * 64_001]},
        {"commands": ["x"], "parameters": {"a": "x" * 130_000}},
        {"commands": ["x"], "space": "other"},
        {"commands": ["x"], "parameters": []},
    ],
)
def test_bad_arguments_are_refused_with_a_hint(arguments: dict):
    """A missing, empty, oversized or unknown member is InvalidInput."""
    with pytest.raises(NoemaError) as caught:
        read_kip(call(**arguments))
    assert caught.value.code == "InvalidInput"
    assert "schema" in str(caught.value.hint)


def test_other_tools_are_read_as_strictly():
    """An unknown member of a note is refused."""
    with pytest.raises(NoemaError):
        read_arguments(call(action="list", force=True), NoteCall)
