"""Labels of what a transaction writes: at least as restricted as what it is made from (KIP §29.6, §31.2).

What lives here: the join over a transaction's own writes, whichever way they came. What must never live here: a lower
label; only a host declassifies, by a command that no statement has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from core.errors import NoemaError
from core.governance.control import Policy
from core.governance.lineage import join, material_inputs, rank
from core.model.elements import Activity, AnyElement

Written = tuple[str, AnyElement | None]
"""The id of an element that was written, and what it was before, if it was."""


class Writing(Protocol):
    """A transaction, as far as labels need one."""

    def get(self, element: str) -> AnyElement | None:
        """The element as the transaction sees it."""

    def before(self, element: str) -> AnyElement | None:
        """The element as it was when the transaction began."""

    def change(self, element: Any, **fields: Any) -> Any:  # an element of the same kind
        """Write an element with some fields changed."""


def raise_labels(writing: Writing, written: Iterable[Written], policy: Policy) -> None:
    """Give every new element the label that its inputs have together, and check what else was made from them.

    A later element may be made from an earlier one, whatever their order, so this goes on until nothing moves: labels
    only rise, and there are few.

    Raises:
        NoemaError: NotAuthorized where an element that stood before would get a new input it does not cover, or where
            no label covers all inputs.
    """
    listed = list(written)
    moved = True
    while moved:
        moved = False
        for element_id, base in listed:
            moved = _settled(writing, element_id, base, policy) or moved


def cover(writing: Writing, element: AnyElement, source: AnyElement, policy: Policy) -> None:
    """Give an element at least the label of what it takes the place of, also where it stood before.

    Raises:
        NoemaError: NotAuthorized where no label covers both.
    """
    order, default = policy.classifications, policy.default_classification
    has = element.governance.classification
    wanted = join((has, source.governance.classification), order, default)
    if wanted is not None and rank(wanted, order, default) > rank(has, order, default):
        writing.change(element, governance=msgspec.structs.replace(element.governance, classification=wanted))


def _settled(writing: Writing, element_id: str, base: AnyElement | None, policy: Policy) -> bool:
    """Whether the label of an element, or of what it put out, had to be raised."""
    element = writing.get(element_id)
    if element is None:
        return False
    labels = [
        found.governance.classification
        for each in _added(element, base)
        if (found := writing.get(each)) is not None
    ]
    if not any(labels):
        return False
    wanted = join(labels, policy.classifications, policy.default_classification)
    moved = _raise(writing, element, wanted, policy)
    for output in element.outputs if isinstance(element, Activity) else ():
        made = writing.get(output)
        moved = (made is not None and _raise(writing, made, wanted, policy)) or moved
    return moved


def _added(element: AnyElement, base: AnyElement | None) -> set[str]:
    """The inputs that the transaction gave an element; what it had before was looked at then."""
    inputs = set(material_inputs(element))
    if base is None or (isinstance(element, Activity) and element.outputs != getattr(base, "outputs", ())):
        return inputs
    return inputs - set(material_inputs(base))


def _raise(writing: Writing, element: AnyElement, wanted: str | None, policy: Policy) -> bool:
    order, default = policy.classifications, policy.default_classification
    has = element.governance.classification
    if wanted is None or rank(has, order, default) >= rank(wanted, order, default):
        return False
    if writing.before(element.id) is not None:
        raise NoemaError(
            "NotAuthorized",
            "what is made from restricted material is as restricted; this element is not",
            hint="Make a new element of it, or let a host classify this one or declassify the input.",
            details={"permissions": ["declassify"]},
        )
    raised = msgspec.structs.replace(element.governance, classification=wanted)
    writing.change(element, governance=raised)
    return True
