"""What an element was made from, and what that means for its label (KIP §31.2, §31.5, §88.9).

What lives here: lineage and the join of labels. What must never live here: who may lower one.

A derived element bears a label at least as restrictive as each of its material inputs. The join is the higher of two
labels of the policy's order; a label that the order does not have stands above all that it has, and two such
labels have no join: no one label would keep both secrets, so such an element is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from core.errors import NoemaError
from core.model.elements import Activity, AnyElement, Assertion, Evidence

_DERIVATION: Final = frozenset({"derived_from", "compiled_from", "compiled_by"})


def authority_lineage(element: AnyElement) -> list[str]:
    """Ids of what an element was made from; its influence may never pass theirs (KIP §31.5, §88.9)."""
    if isinstance(element, Assertion):
        return [citation.evidence for citation in element.evidence]
    if isinstance(element, Evidence):
        generated = () if element.generated_by is None else (element.generated_by,)
        return [*element.source, *generated, *element.corrects]
    return [ref.target for ref in element.structural if is_derivation(ref.field)]


def is_derivation(field: str) -> bool:
    """Whether a structural field says that its source was made from its target."""
    return field.rpartition("/")[2] in _DERIVATION


def is_derived(element: AnyElement) -> bool:
    """Whether creating an element is deriving (KIP §29.6): inferred, generated or compiled from what there is."""
    if isinstance(element, Assertion):
        return element.mode == "inferred"
    if isinstance(element, Evidence):
        return element.generated_by is not None
    return any(is_derivation(ref.field) for ref in element.structural)


def material_inputs(element: AnyElement) -> Iterator[str]:
    """Ids of everything whose content may stand in an element.

    A Proposition takes nothing from its ends: whoever may not know of an end may not know of it (`access`), and once
    they may, its tuple tells nothing more.
    """
    yield from authority_lineage(element)
    if isinstance(element, Assertion):
        yield element.proposition
        yield from element.context_refs
    elif isinstance(element, Activity):
        yield from element.inputs


def rank(label: str | None, order: Sequence[str], default: str) -> int:
    """Where a label stands; higher is more restricted. None stands where the default does."""
    name = default if label is None else label
    return order.index(name) if name in order else len(order)


def join(labels: Iterable[str | None], order: Sequence[str], default: str) -> str | None:
    """The least label that is as restricted as all of these; None stays where nothing is above the default.

    Raises:
        NoemaError: NotAuthorized where no one label covers them.
    """
    known = {label for label in labels if label is not None}
    beyond = sorted(label for label in known if label not in order)
    if len(beyond) > 1:
        raise NoemaError(
            "NotAuthorized",
            "no classification covers everything this is made from",
            hint="A host may declassify an input, or put these labels in the policy's order.",
            details={"permissions": ["declassify"]},
        )
    if beyond:
        return beyond[0]
    top = max(known, key=lambda label: rank(label, order, default), default=None)
    return top if top is not None and rank(top, order, default) > rank(None, order, default) else None
