"""Labels of what a statement makes, before it is shown and judged (KIP §29.6, §31.2).

What lives here: the step from a statement's edits to `core.governance.labelling`, which has the rule.
"""

from __future__ import annotations

from core.governance import Policy
from core.governance.labelling import raise_labels
from core.mutation.work import Work


def label(work: Work) -> None:
    """Give every new element of the statement the label that its inputs have together.

    Raises:
        NoemaError: NotAuthorized, as `raise_labels`.
    """
    policy = Policy() if work.principal.access is None else work.principal.access.policy
    raise_labels(work.draft, [(edit.id, edit.base) for edit in work.edits.values()], policy)
