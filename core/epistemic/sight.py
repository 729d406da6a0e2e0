"""What a projection is made of: what it asks of the state, and what it is asked for.

What lives here: the `Sight` protocol and the request. What must never live here: how visibility is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

from core.epistemic.policy import Policy
from core.epistemic.trust import Trust
from core.model.elements import AnyElement
from core.model.instants import Instant
from core.model.literals import Ref, Term, term_key

Explanation = Literal["none", "summary", "ledger"]
EXPLANATIONS: Final[tuple[Explanation, ...]] = ("none", "summary", "ledger")


class Sight(Protocol):
    """The state as one caller may project from it. What may not be used is simply not there (KIP §30.4)."""

    def get(self, element_id: str) -> AnyElement | None:
        """An element that may be used in a projection, or None."""

    def absent(self, element_id: str) -> bool:
        """Whether there is no such element, for anybody; what may not be used here is not absent (KIP §30.4)."""

    def find(self, key: str) -> Sequence[str]:
        """Ids under an index key, to be looked at one by one."""

    def count(self, key: str) -> int:
        """About how many ids stand under a key, never too few; cheaper than `find`."""

    @property
    def open(self) -> bool:
        """Whether nothing at all is hidden from the caller."""

    @property
    def activities(self) -> int:
        """How many Activities there are; with none, nothing was made by one."""

    def readable(self, element: AnyElement) -> bool:
        """Whether an element that is used may also be named in the answer."""

    def canonical(self, element_id: str) -> str:
        """The id a Concept resolves to after merges; any other id is itself."""

    def aliases(self, element_id: str) -> Sequence[str]:
        """Every id that resolves to the same element, itself included."""

    def functional(self, predicate_ref: str) -> bool:
        """Whether the schema allows one value of a predicate at a time (KIP §25.1)."""

    def closed_by(self, predicate_ref: str) -> str | None:
        """The class of Evidence that the schema declares complete for a predicate (KIP §24.2), or None."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a projection (KIP §27.1).

    valid_at: the world time the belief is about. as_of_seq: the cognitive state it is made from.
    context: ids of the contexts asked about; None: contexts do not matter (KIP §25.3).
    provenance_nodes: how many elements may be traversed upstream in one projection.
    """

    policy: Policy
    valid_at: Instant
    as_of_seq: int
    trust: Trust
    purpose: str | None = None
    risk: str | None = None
    include_historical: bool = False
    include_hypothetical: bool = False
    explanation: Explanation = "none"
    context: frozenset[str] | None = None
    provenance_nodes: int = 20_000


class Target(msgspec.Struct, frozen=True):
    """The statement a belief is about, and the Proposition it was named by, if it was."""

    subject: str
    predicate_ref: str
    object: Term
    proposition: str | None = None


def canonical_term_key(sight: Sight, term: Term) -> str:
    """A text that two objects share exactly when they are one value after merges."""
    return term_key(Ref(sight.canonical(term.id)) if isinstance(term, Ref) else term)
