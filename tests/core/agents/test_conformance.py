"""What the offline reader writes is valid under the packages in force: its elements could have been KML's."""

from collections import Counter
from typing import Any

import pytest

from core.agents.vocabulary import PERSON
from core.model.elements import KIND_OF_TYPE, AnyElement, Assertion, Concept, Proposition
from core.model.ids import kind_of
from core.model.literals import Literal
from core.schema.environment import environment_of, initial_environment
from core.schema.validate import (
    check_attributes,
    check_cardinality,
    check_facet,
    check_literal_object,
    check_object,
    check_source,
    check_subject,
    check_target,
)
from tests.core.agents.memory import Memory
from tests.core.agents.test_reader import NOT_STATED, STATED
from tests.core.agents.test_updates import CASES


@pytest.fixture(scope="module")
def memory() -> Memory:
    """Everything the tests say, said by three people in one space."""
    memory = Memory()
    texts = [text for text, _ in STATED] + NOT_STATED
    texts += [
        line for slot, state, change in CASES for line in (state.format(slot.old), change.format(slot.new))
    ]
    texts += [
        "I'll send the report by Friday.",
        "Remind me to call Eve tomorrow.",
        "I have a meeting on Monday.",
    ]
    for number, name in enumerate(("Alice", "Bob", "Carol")):
        memory.say(*texts, by=name, at=f"2026-05-0{number + 1}T10:00:00Z")
    memory.form(
        [
            {"role": "tool", "name": "search", "content": "found"},
            {"role": "assistant", "content": "I'll look again tomorrow."},
        ],
        context={"topic": "t", "source": "s"},
    )
    return memory


def elements(memory: Memory) -> list[AnyElement]:
    """Every element."""
    return [
        element
        for kind in ("concept", "proposition", "assertion", "evidence", "activity")
        for element in memory.all(kind)
    ]


def test_there_is_much_to_check(memory: Memory) -> None:
    """The fixture holds hundreds of claims of most predicates."""
    assert len(memory.all("assertion")) > 150
    assert len({p.predicate_ref for p in memory.all("proposition") if isinstance(p, Proposition)}) > 20


def test_every_element_keeps_its_schema(memory: Memory) -> None:
    """Attributes, facets, tuples and structural references all fit their definitions."""
    meta = memory.state.meta
    environment = environment_of(
        type(meta)(
            **{**{n: getattr(meta, n) for n in meta.__struct_fields__}, "schema": initial_environment()}
        )
    )

    def end(element_id: str) -> tuple[Any, str | None]:
        found = memory.state.get(element_id)
        assert found is not None, element_id
        return kind_of(element_id), found.schema_ref if isinstance(found, Concept) else None

    for element in elements(memory):
        kind = KIND_OF_TYPE[type(element)]
        own = element.schema_ref if isinstance(element, Concept) else None
        for ref, values in element.facets.items():
            check_facet(environment.facet(ref), element, kind, values)
        for name, count in Counter(ref.field for ref in element.structural).items():
            field = environment.structural(name)
            references = [ref for ref in element.structural if ref.field == name]
            assert len({ref.target for ref in references}) == count
            check_source(field, kind, own)
            check_cardinality(field, references)
            for ref in references:
                check_target(field, *end(ref.target))
        if isinstance(element, Concept):
            check_attributes(environment.type(element.schema_ref), element.attributes)
        if isinstance(element, Proposition):
            predicate = environment.predicate(element.predicate_ref)
            check_subject(predicate, *end(element.subject))
            if isinstance(element.object, Literal):
                check_literal_object(predicate, element.object)
            else:
                check_object(predicate, *end(element.object.id))


def test_lineage_is_linked_both_ways_within_one_actor(memory: Memory) -> None:
    """A superseded claim names its successor and is named by it, and both are the same actor's (KIP §14.2)."""
    for claim in memory.all("assertion"):
        assert isinstance(claim, Assertion)
        assert (claim.status == "superseded") == bool(claim.superseded_by)
        for successor in claim.superseded_by:
            later = memory.state.get(successor)
            assert isinstance(later, Assertion)
            assert claim.id in later.supersedes
            assert later.asserted_by == claim.asserted_by
            assert later.asserted_at >= claim.asserted_at


def test_every_claim_has_evidence_and_a_person(memory: Memory) -> None:
    """No claim stands without its Evidence, and only persons claim."""
    for claim in memory.all("assertion"):
        assert isinstance(claim, Assertion)
        actor = memory.state.get(claim.asserted_by)
        assert isinstance(actor, Concept)
        assert actor.schema_ref == PERSON
        assert len(claim.evidence) == 1
        assert memory.state.get(claim.evidence[0].evidence) is not None
