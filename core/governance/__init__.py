"""KIP 2.0 Governance: the control plane of a space, and the decisions that follow from it (KIP §28-31).

What lives here: the public face of the package. What must never live here: I/O, tokens and transports; a caller has
been verified before it comes here, and what it is allowed at most stands in its `Principal`.
"""

from core.governance.access import Access, admit
from core.governance.control import (
    Approval,
    Binding,
    Control,
    Delegation,
    Group,
    Party,
    Policy,
    Role,
    Rule,
    Selector,
    control_of,
    with_control,
)
from core.governance.lineage import authority_lineage, is_derived, join, material_inputs, rank

__all__ = [
    "Access",
    "Approval",
    "Binding",
    "Control",
    "Delegation",
    "Group",
    "Party",
    "Policy",
    "Role",
    "Rule",
    "Selector",
    "admit",
    "authority_lineage",
    "control_of",
    "is_derived",
    "join",
    "material_inputs",
    "rank",
    "with_control",
]
