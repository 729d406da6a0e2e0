"""Labels of what a statement makes: at least as restricted as what it is made from (KIP §29.6, §31.2).

What lives here: the join over a statement's own writes. What must never live here: a lower label; only a host
declassifies, by a command that no statement has.
"""

from __future__ import annotations

import msgspec

from core.errors import NoemaError
from core.governance import Policy, join, material_inputs, rank
from core.model.elements import Activity, AnyElement
from core.mutation.edit import Edit
from core.mutation.work import Work


def label(work: Work) -> None:
    """Give every new element the label that its inputs have together, and check what else was made from them.

    A later element of the statement may be made from an earlier one, whatever the order of its clauses, so this goes
    on until nothing moves: labels only rise, and there are few.

    Raises:
        NoemaError: NotAuthorized where an element that stood before would get a new input it does not cover, or where
            no label covers all inputs.
    """
    policy = Policy() if work.principal.access is None else work.principal.access.policy
    moved = True
    while moved:
        moved = False
        for edit in work.edits.values():
            moved = _settled(work, edit, policy) or moved


def _settled(work: Work, edit: Edit, policy: Policy) -> bool:
    """Whether the label of an element, or of what it put out, had to be raised."""
    element = work.draft.get(edit.id)
    if element is None:
        return False
    labels = [
        found.governance.classification
        for each in _added(element, edit.base)
        if (found := work.draft.get(each)) is not None
    ]
    if not any(labels):
        return False
    wanted = join(labels, policy.classifications, policy.default_classification)
    moved = _raise(work, element, wanted, policy)
    for output in element.outputs if isinstance(element, Activity) else ():
        made = work.draft.get(output)
        moved = (made is not None and _raise(work, made, wanted, policy)) or moved
    return moved


def _added(element: AnyElement, base: AnyElement | None) -> set[str]:
    """The inputs that the statement gave an element; what it had before was looked at then."""
    inputs = set(material_inputs(element))
    if base is None or (isinstance(element, Activity) and element.outputs != getattr(base, "outputs", ())):
        return inputs
    return inputs - set(material_inputs(base))


def _raise(work: Work, element: AnyElement, wanted: str | None, policy: Policy) -> bool:
    order, default = policy.classifications, policy.default_classification
    has = element.governance.classification
    if wanted is None or rank(has, order, default) >= rank(wanted, order, default):
        return False
    if work.draft.before(element.id) is not None:
        raise NoemaError(
            "NotAuthorized",
            "what is made from restricted material is as restricted; this element is not",
            hint="Make a new element of it, or let a host classify this one or declassify the input.",
            details={"permissions": ["declassify"]},
        )
    raised = msgspec.structs.replace(element.governance, classification=wanted)
    work.draft.change(element, governance=raised)
    return True
