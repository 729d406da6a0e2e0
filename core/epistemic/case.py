"""`Case`: one belief in the making, which the stages fill in turn.

What lives here: the working values of a projection. What must never live here: rules.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from core.epistemic.eligibility import Reason, carries
from core.epistemic.provenance import Provenance, Roots
from core.epistemic.sight import Request, Sight, Target
from core.epistemic.trust import TrustClass
from core.model.elements import Assertion, Proposition

Status = Literal["accepted", "rejected", "contested", "uncertain", "insufficient"]
Side = Literal["support", "opposition", "uncertain"]

Doubt = Literal[
    "insufficient_evidence", "conflicting_evidence", "low_source_trust", "missing_provenance", "identity_ambiguity",
    "temporal_staleness", "validity_ambiguity", "context_ambiguity", "schema_ambiguity", "correlated_sources",
    "coverage_gap", "derived_only",
]  # fmt: skip
"""Why a belief is less than certain (Epistemic Model §139)."""


class Judged(msgspec.Struct, frozen=True):
    """One Assertion on its own: whether it counts, and if so what it rests on and what it weighs.

    trust: of its best root. weight: 0 where the policy knows no weights. keys: see `Root.keys`.
    """

    assertion: Assertion
    excluded: Reason | None = None
    provenance: Provenance | None = None
    trust: TrustClass = "unknown"
    weight: float = 0.0

    @property
    def keys(self) -> tuple[str, ...]:
        """By what it is one origin with another."""
        return (
            () if self.provenance is None else tuple(k for root in self.provenance.roots for k in root.keys)
        )


class Material(msgspec.Struct, frozen=True):
    """A counting Assertion on its side of one belief. `rival`: it supports another value of the same slot."""

    judged: Judged
    side: Side
    rival: bool = False


class Group(msgspec.Struct, frozen=True):
    """Claims of one origin, which together count once (KIP §23.4). `label` is the first root's element."""

    label: str
    roots: tuple[str, ...]
    members: tuple[Judged, ...]
    trust: TrustClass
    weight: float

    @property
    def strong(self) -> bool:
        """Whether a trusted root stands behind it."""
        return self.trust == "trusted"


class Session:
    """What the projections of one query share: the request, provenance already walked, claims already judged."""

    def __init__(self, sight: Sight, request: Request) -> None:
        self.sight = sight
        self.request = request
        self.roots = Roots(
            sight,
            request.provenance_nodes,
            lambda premise: carries(premise, request),
            silent=request.trust.silent,
        )
        self.judged: dict[str, Judged] = {}


class Case:
    """One target and what the stages have found of it so far."""

    def __init__(self, session: Session, target: Target) -> None:
        self.session = session
        self.sight = session.sight
        self.request = session.request
        self.target = target
        self.propositions: list[Proposition] = []
        self.rivals: list[Proposition] = []
        self.judged: list[tuple[Judged, bool]] = []  # every Assertion found, and whether it is about a rival
        self.material: list[Material] = []
        self.groups: dict[Side, list[Group]] = {"support": [], "opposition": [], "uncertain": []}
        self.scores: dict[Side, float | None] = {"support": None, "opposition": None}
        self.doubts: list[Doubt] = []
        self.status: Status = "insufficient"
        self.consulted: list[Judged] = []  # claims about other values, read for what the world is closed by
        self.snapshots: tuple[str, ...] = ()  # the complete records that leave the target out: it is rejected
        self.uncovered = False  # the world was to be closed, and nothing closes it

    @property
    def strong_support(self) -> bool:
        """Whether a trusted independent root supports the target."""
        return any(group.strong for group in self.groups["support"])
