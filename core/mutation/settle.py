"""The end of a statement: edits are written, and every element is checked as it finally stands (KIP §53.3).

What lives here: writing each edited element once, and the checks that need the whole graph to be there. What
must never live here: decisions about what to write.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.authority import authorize_new
from core.errors import NoemaError
from core.governance import is_derived
from core.model.elements import Activity, AnyElement, Assertion, Concept, Evidence
from core.model.ids import Kind
from core.mutation.edit import Edit
from core.mutation.labels import label
from core.mutation.structural import Addition, Removal
from core.mutation.work import CLASSES, Work
from core.schema.definitions import ConceptType, StructuralField
from core.schema.validate import (
    check_attributes,
    check_cardinality,
    check_facet,
    check_source,
    check_target,
)


def settle(work: Work) -> None:
    """Write every edit, then check every element written.

    Raises:
        NoemaError: whatever a Schema or Core rule is broken by; the caller drops the draft.
    """
    written = [(edit, _write(work, edit)) for edit in work.edits.values()]
    label(work)
    for edit, element in written:
        if element is not None:
            _check(work, edit, element)
            if edit.base is None:
                _authorize(work, edit)


def _authorize(work: Work, edit: Edit) -> None:
    """Let a new element pass, as it finally stands: of which type, about what, under which label."""
    element = work.draft.get(edit.id)
    assert element is not None, "it has just been written"
    assert edit.action is not None, "whatever is new was made by a deed"
    authorize_new(work.principal, edit.action, element)
    if is_derived(element):
        authorize_new(work.principal, "derive", element)


def _write(work: Work, edit: Edit) -> AnyElement | None:
    fields = edit.result()
    if edit.base is None:
        state = fields.pop("state", None)
        created: AnyElement = work.draft.create_as(edit.id, CLASSES[edit.kind], **fields)
        return work.draft.change(created, state=state) if state is not None else created
    return work.draft.change(edit.base, **fields) if fields else None


def _check(work: Work, edit: Edit, element: AnyElement) -> None:
    for facet, _ in edit.facets.values():
        values = element.facets.get(facet.ref)
        if values is not None:
            before = None if edit.base is None else edit.base.facets.get(facet.ref)
            check_facet(facet, element, edit.kind, values, before)
    if isinstance(element, Concept):
        _check_concept(work, edit, element)
    elif isinstance(element, Assertion):
        if edit.base is None:
            _check_kind(work, "proposition", (element.proposition,), ("proposition",))
            _check_kind(work, "asserted_by", (element.asserted_by,), ("concept",))
            _check_kind(work, "evidence", (item.evidence for item in element.evidence), ("evidence",))
            _check_kind(work, "context_refs", element.context_refs, None)
    elif isinstance(element, Evidence):
        if edit.base is None:
            _check_kind(work, "source", element.source, ("concept", "evidence"))
            _check_kind(work, "generated_by", _given(element.generated_by), ("activity",))
    elif isinstance(element, Activity):
        _check_kind(work, "inputs", element.inputs, None)
        _check_kind(work, "outputs", element.outputs, None)
        _check_kind(work, "associated_actors", element.associated_actors, ("concept",))


def _given(element_id: str | None) -> tuple[str, ...]:
    return () if element_id is None else (element_id,)


def _check_kind(work: Work, field: str, targets: Iterable[str], kinds: tuple[Kind, ...] | None) -> None:
    for target in targets:
        kind, _ = work.kind_and_type(target)
        if kinds is not None and kind not in kinds:
            raise NoemaError(
                "StructuralReferenceInvalid",
                f"{field} must name {' or '.join(kinds)}, not {kind}",
                details={"field": field, "target": target, "expected": list(kinds), "actual": kind},
            )


def _check_concept(work: Work, edit: Edit, concept: Concept) -> None:
    base = edit.base
    if base is None or edit.attributes:
        definition = work.env.known("type", concept.schema_ref)
        if isinstance(definition, ConceptType):
            check_attributes(
                definition, concept.attributes, base.attributes if isinstance(base, Concept) else None
            )
    changes: tuple[Addition | Removal, ...] = (*edit.additions, *edit.removals)
    touched = {change.field.ref: change.field for change in changes}
    for addition in edit.additions:
        check_source(addition.field, "concept", concept.schema_ref)
        check_target(addition.field, *work.kind_and_type(addition.target))
    if base is None:
        touched.update(_required(work, concept))
    for field in touched.values():
        check_cardinality(field, [ref for ref in concept.structural if ref.field == field.ref])


def _required(work: Work, concept: Concept) -> dict[str, StructuralField]:
    """The structural fields without which a Concept of its type may not stand."""
    return {
        field.ref: field for field in work.env.required_structural if concept.schema_ref in field.source.types
    }
