"""What the caller may not see takes part in nothing (KIP §30.4, §88.5-88.6), and bounds on work."""

from __future__ import annotations

from typing import Any

import pytest

from core.epistemic.trust import TrustRecord, TrustState
from core.errors import NoemaError
from core.model.elements import AnyElement, Governance
from core.query import Limits
from tests.core.query.brain import Brain

SECRET = Governance(classification="secret")


def open_only(element: AnyElement) -> bool:
    """A caller who may not see what is secret."""
    return element.governance.classification != "secret"


@pytest.fixture
def brain() -> Brain:
    """Two open people, one secret one; a secret Proposition; secret Evidence behind an open claim."""
    b = Brain()
    b.alice = b.concept("Person", "Alice", attributes={"pin": 7})
    b.bob = b.concept("Person", "Bob")
    b.eve = b.concept("Person", "Eve", governance=SECRET)
    b.dark = b.concept("Theme", "Dark")
    b.open = b.says(b.alice, "prefers", b.dark)
    b.about_eve = b.says(b.alice, "knows", b.eve)
    b.hidden = b.says(b.bob, "prefers", b.dark)
    b.change(b.hidden, governance=SECRET)
    b.proof = b.evidence("document", "the proof", governance=SECRET)
    b.claimed = b.claim(b.open, b.alice, b.proof, confidence=0.9)
    b.against = b.claim(b.open, b.eve, stance="reject", confidence=0.9, governance=SECRET)
    b.link(b.alice, "about", b.eve)
    b.commit()
    b.options = {"visible": open_only, "authority": "open"}
    return b


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('FIND(COUNT(?c)) WHERE { ?c {type: "Person"} }', [2]),
        ('FIND(?c.name) WHERE { ?c {type: "Person"} } ORDER BY ?c.name', ["Alice", "Bob"]),
        ('FIND(?c.name) WHERE { ?c {type: "Person"} NOT { (?c, "prefers", ?t) } }', ["Bob"]),
        ('FIND(?o) WHERE { ({name: "Alice"}, "knows", ?o) }', []),
        ('FIND(?o) WHERE { ({name: "Alice"}, "knows"{1,3}, ?o) }', []),
        ('FIND(?p) WHERE { ?p ({name: "Alice"}, "knows", {name: "Eve"}) }', []),
        ("FIND(COUNT(?a)) WHERE { ?a ASSERTION {} }", [1]),
        ("FIND(COUNT(?e)) WHERE { ?e EVIDENCE {} }", [0]),
        ("FIND(?e) WHERE { ?a ASSERTION {evidence: ?e} }", []),
        ('FIND(?e) WHERE { STRUCTURAL (?a, "evidence", ?e) }', []),
        ("FIND(?a.evidence) WHERE { ?a ASSERTION {} }", [[]]),
        ('FIND(?t) WHERE { STRUCTURAL ({name: "Alice"}, "about", ?t) }', []),
        ('FIND(?c.structural["about"]) WHERE { ?c {name: "Alice"} }', [[]]),
    ],
)
def test_hidden_elements_take_part_in_nothing(brain: Brain, text: str, rows: list[Any]) -> None:
    """KQL-012: no count, no join, no negation and no reference tells of what is hidden."""
    assert brain.rows(text) == rows


def test_hidden_element_is_as_absent(brain: Brain) -> None:
    """An id that may not be seen and an id that is none give the same answer."""
    text = "FIND(?c) WHERE { ?c {id: :id} }"

    assert brain.rows(text, {"id": brain.eve.id}) == brain.rows(text, {"id": "C-0000000000000000"}) == []
    belief = "FIND(?b) WHERE { ?b BELIEF (id: :id) }"
    assert brain.rows(belief, {"id": brain.hidden.id}) == []


def test_wire_form_names_nothing_hidden(brain: Brain) -> None:
    """References to hidden elements are left out of a whole element."""
    (claim,) = brain.rows("FIND(?a) WHERE { ?a ASSERTION {} }")

    assert claim["evidence"] == []
    assert brain.proof.id not in str(claim)


def test_hidden_field_reads_as_null_and_matches_nothing(brain: Brain) -> None:
    """KQL design §181-182: not by projection, nor by FILTER, ORDER BY or a pattern."""
    brain.options = {"hidden_fields": lambda e: frozenset({"attributes.pin", "_system.origin"})}

    assert brain.rows('FIND(?c.attributes.pin, ?c._system.origin.channel) WHERE { ?c {name: "Alice"} }') == [
        [None, None]
    ]
    assert brain.rows("FIND(?c.name) WHERE { ?c {attributes: {pin: 7}} }") == []
    assert brain.rows('FIND(?c.name) WHERE { ?c {type: "Person"} FILTER(?c.attributes.pin == 7) }') == []
    (whole,) = brain.rows('FIND(?c) WHERE { ?c {name: "Alice"} }')
    assert "pin" not in whole["attributes"]
    assert "origin" not in whole["_system"]


def test_hidden_opposition_does_not_count(brain: Brain) -> None:
    """A belief is formed from what may be used; the rest is not there."""
    text = 'FIND(?b.status) WHERE { ?b BELIEF ({name: "Alice"}, "prefers", {name: "Dark"}) }'

    assert brain.rows(text) == ["accepted"]
    brain.options = {}
    assert brain.rows(text) == ["contested"]


def test_projection_over_what_may_not_be_read_is_redacted(brain: Brain) -> None:
    """KQL-028: the status is given, the Evidence is not named, and the answer says so."""
    brain.options["projectable"] = lambda element: True
    (belief,) = brain.rows(
        'FIND(?b) WHERE { ?b BELIEF ({name: "Alice"}, "prefers", {name: "Dark"}) } WITH EPISTEMIC {explanation: "ledger"}'
    )

    assert belief["status"] == "contested"
    assert belief["explanation_redacted"] is True
    text = str(belief)
    assert all(hidden.id not in text for hidden in (brain.proof, brain.against, brain.eve))


def test_belief_needs_permission(brain: Brain) -> None:
    """KIP §29.4: without `project` nothing is believed, and nothing is said of what there is."""
    for where in ('?b BELIEF SLOT ({name: "Alice"}, "prefers")', '?b BELIEF ({name: "Zoe"}, "prefers", ?o)'):
        with pytest.raises(NoemaError) as refused:
            brain.rows(f"FIND(?b) WHERE {{ {where} }}", may_project=False)
        assert refused.value.code == "ProjectionNotAuthorized"


@pytest.mark.parametrize(
    ("limits", "text", "code"),
    [
        (Limits(rows_examined=3), "FIND(COUNT(?c)) WHERE { ?c {} }", "ResultLimitExceeded"),
        (Limits(solutions=1), "FIND(COUNT(?c)) WHERE { ?c {} }", "ResultLimitExceeded"),
        (
            Limits(projections=0),
            'FIND(?b) WHERE { ?b BELIEF SLOT ({name: "Alice"}, "prefers") }',
            "ResultLimitExceeded",
        ),
        (
            Limits(provenance_nodes=0),
            'FIND(?b) WHERE { ?b BELIEF SLOT ({name: "Alice"}, "prefers") }',
            "ResourceExhausted",
        ),
    ],
)
def test_bounds_are_refused_never_cut(brain: Brain, limits: Limits, text: str, code: str) -> None:
    """A query that passes a bound fails by name."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(text, limits=limits)

    assert refused.value.code == code


def test_deadline(brain: Brain) -> None:
    """KQL design §250: a query that is late fails; it is never half an answer."""
    with pytest.raises(NoemaError) as refused:
        brain.rows("FIND(COUNT(?c)) WHERE { ?c {} }", overdue=lambda: True)

    assert refused.value.code == "ExecutionTimeout"


def test_trust_is_read_from_the_context_alone(brain: Brain) -> None:
    """KIP §22.5: content that speaks of trust changes nothing; the owner's records do."""
    brain.options = {}
    brain.says(brain.alice, "says", "trust Eve completely")
    brain.commit()
    text = (
        'FIND(?b.status) WHERE { ?b BELIEF ({name: "Alice"}, "prefers", {name: "Dark"}) } '
        'WITH EPISTEMIC {policy: "test-deterministic"}'
    )

    assert brain.rows(text) == ["uncertain"]
    trust = TrustState((TrustRecord("actor", brain.eve.id, "trusted"),))
    assert brain.rows(text, trust=trust) == ["rejected"]
