"""KQL: FIND and the WHERE block that KML and META share (KIP §42-50).

What lives here: the public face of the package. What must never live here: parsing (`core.language`), belief
(`core.epistemic`), writing. A query is pure: the same state, text and context give the same answer, whatever plan
is chosen and in whatever order the clauses of a block are written.
"""

from core.query.context import Bindings, Coordinate, Edge, Limits, Projected, QueryContext, QueryResult, Value
from core.query.run import plan_json, run, select, snapshot_needed

__all__ = [
    "Bindings", "Coordinate", "Edge", "Limits", "Projected", "QueryContext", "QueryResult", "Value",
    "plan_json", "run", "select", "snapshot_needed",
]  # fmt: skip
