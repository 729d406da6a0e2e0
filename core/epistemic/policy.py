"""Projection policies: named, versioned rules by which material becomes a belief status (KIP §21, §27).

What lives here: the policies as data, and how one is found by name. What must never live here: the steps that
apply them (`stages`). A policy is never changed in place: another rule is another version.

* `kip:policy:baseline` is the default. It weighs: an Assertion's confidence (0.5 where none is stated) times how
  far its source is trusted; the strongest claim of a group of claims with one origin speaks for the group; groups
  add up as independent reasons, 1 - (1 - a)(1 - b). Its score is a normalized strength, not a probability.
* `kip:policy:forecast` is the same arithmetic over predictions and inferences.
* `kip:policy:closed-world` is the baseline and one rule more: see `core.epistemic.closed`.
* `test-deterministic` is the portable policy of the conformance suite: no weights, only the presence of trusted
  independent roots on either side.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.epistemic.trust import TrustClass
from core.errors import NoemaError
from core.model.elements import Json, Mode

Method = Literal["graded-independent-roots", "root-presence"]
ORDINARY: Final[frozenset[Mode]] = frozenset({"observed", "stated", "inferred", "imported"})

DISCOUNT: Final[dict[TrustClass, float]] = {
    "trusted": 1.0,
    "unknown": 1.0,  # a memory of one's own: what nothing is known against counts as it was said
    "weak": 0.5,
    "low_trust": 0.3,
    "untrusted": 0.0,
}
"""How much of its confidence a claim keeps, by the trust of its best root."""


class Policy(msgspec.Struct, frozen=True):
    """One version of a policy.

    modes: which Assertion modes count when the request asks for nothing more.
    imported_needs_trust: imported claims count only where their source is trusted (KIP §26.3).
    accept, material: the scores from which a side decides, and from which it matters at all.
    unstated: the confidence assumed where an Assertion states none.
    imported_at_most: what an imported claim of no trusted source can weigh at most: never enough to be accepted.
    expand_conflicts: whether support for another value of a functional predicate counts against this one.
    closed_world: whether what a complete record leaves out is rejected (KIP §24.2); never so by default.
    """

    id: str
    version: int
    method: Method
    description: str
    modes: frozenset[Mode] = ORDINARY
    imported_needs_trust: bool = False
    accept: float = 0.7
    material: float = 0.3
    unstated: float = 0.5
    imported_at_most: float = 0.5
    expand_conflicts: bool = True
    closed_world: bool = False
    score_semantics: str | None = "normalized_support_not_probability"

    @property
    def identity(self) -> dict[str, Json]:
        """What every result says of the policy it was made under (KIP §27.2, §50)."""
        return {"id": self.id, "version": str(self.version)}


BASELINE: Final = Policy(
    id="kip:policy:baseline",
    version=1,
    method="graded-independent-roots",
    description="Weighs claims by confidence and trust; origins, not repetitions, add up.",
)
FORECAST: Final = Policy(
    id="kip:policy:forecast",
    version=1,
    method="graded-independent-roots",
    description="As the baseline, over predictions and inferences: what is expected, not what is.",
    modes=frozenset({"predicted", "inferred"}),
)
CLOSED_WORLD: Final = Policy(
    id="kip:policy:closed-world",
    version=1,
    method="graded-independent-roots",
    description="As the baseline; and rejects what a trusted record, complete by the schema, leaves out.",
    closed_world=True,
)
DETERMINISTIC: Final = Policy(
    id="test-deterministic",
    version=1,
    method="root-presence",
    description="The conformance suite's policy: trusted independent roots on either side, no scores.",
    imported_needs_trust=True,
    expand_conflicts=False,
    score_semantics=None,
)

POLICIES: Final[dict[str, Policy]] = {
    policy.id: policy for policy in (BASELINE, FORECAST, CLOSED_WORLD, DETERMINISTIC)
}
"""Every policy of this engine by id; the first is the default."""


def find_policy(name: str | None) -> Policy:
    """The policy of an id, or of `id@version`; the default for None.

    Raises:
        NoemaError: ProjectionPolicyUnavailable.
    """
    if name is None:
        return BASELINE
    identity, _, version = name.partition("@")
    policy = POLICIES.get(identity)
    if policy is None or (version and version != str(policy.version)):
        raise NoemaError(
            "ProjectionPolicyUnavailable",
            f"there is no epistemic policy {name[:80]!r} here",
            details={"policy": name[:200], "available": list(POLICIES)},
        )
    return policy
