"""The trace: records count where their content stands beside their own id."""

import json
from typing import Any

import pytest

from core.agents.recall.trace import ids_in, ids_seen, is_id, mentioned, numbered
from core.models.chat import ToolCall, ToolResult
from core.models.run import Used

E1, E2, C1, P1, A1 = (f"{letter}-0000000{n}000jhaew" for n, letter in enumerate("EECPA", 2))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"id": E1, "text": "tea"}, (E1,)),
        ({"rows": [{"id": E1, "text": "tea"}, {"id": C1, "name": "Alice"}]}, (E1, C1)),
        ({"id": E1}, ()),
        ({"id": C1, "kind": "concept", "schema_ref": "kip://x/Person", "space_id": "home"}, ()),
        ({"id": P1, "subject": C1, "object": E2}, ()),
        ({"id": P1, "subject": {"id": C1}, "predicate_ref": "likes"}, (P1,)),
        ([[C1, "Alice"], [E1, "tea"]], (C1, E1)),
        ([C1, E1], ()),
        ([[C1, E1], [C1, None], [C1, ""]], ()),
        ({"proposition_id": P1, "status": "accepted", "support": {"assertion_ids": [A1]}}, (P1,)),
        ({"id": E1, "payload": {"inline": "tea"}}, (E1,)),
        ({"error": {"id": E1, "message": "no"}}, ()),
        ({"results": [{"status": "failed", "error": {"details": {"id": E1, "why": "x"}}}]}, ()),
        ({"id": f"{E1}x", "text": "tea"}, ()),
        ({"text": f"see {E1}"}, ()),
        ({"snippet": E1, "score": 1}, ()),
        ("tea", ()),
        (None, ()),
    ],
)
def test_a_record_counts_with_its_content(value: Any, found: tuple[str, ...]) -> None:
    """A bare reference, an error and an id within a text show nothing."""
    assert ids_in(json.dumps(value)) == found


def test_what_is_no_json_shows_nothing() -> None:
    """Nor what is nested without end."""
    deep: Any = {"id": E1, "text": "x"}
    for _ in range(100):
        deep = {"a": deep}

    assert (ids_in("plain"), ids_in(json.dumps(deep))) == ((), ())


def test_failed_calls_show_nothing_but_what_went_well_in_them() -> None:
    """Of several commands some may have answered."""
    call = ToolCall("c", "t", {})
    whole = json.dumps({"id": E1, "text": "tea"})
    some = json.dumps(
        {"status": "failed", "results": [{"result": [[E2, "x"]]}, {"error": {"id": C1, "m": "x"}}]}
    )
    trace = [
        Used(call, ToolResult("c", "t", whole, failed=True)),
        Used(call, ToolResult("c", "t", some, failed=True)),
    ]

    assert ids_seen(trace) == (E2,)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"Tea [{E1}].", "Tea [1]."),
        (f"Tea [{E2}, {E1}].", "Tea [1, 2]."),
        (f"Tea [{E1}; {C1}] and [{C1}].", "Tea [1] and."),
        (f"Tea [7] and [{E1}, 9].", "Tea and [1]."),
        (f"Tea ({E1}), see {E2}.", "Tea [1], see [2]."),
        (f"Tea ({C1}).", "Tea ."),
        ("Tea [sic].", "Tea [sic]."),
        ("In [2024] and [1].", "In [2024] and."),
    ],
)
def test_citations_are_numbered_by_what_may_be_cited(text: str, told: str) -> None:
    """Ids that nothing has shown, and numbers that the model made up, are gone."""
    assert numbered(text, [E1, E2]) == told


def test_what_is_an_id_and_what_an_answer_mentions() -> None:
    """Whole ids alone; each once, in order."""
    assert [is_id(each) for each in (E1, C1[:-1], "E-x", 7, None)] == [True, False, False, False, False]
    assert mentioned(f"{C1} [{E1}, {C1}]") == (C1, E1)
