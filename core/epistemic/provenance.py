"""Provenance to its roots: what a claim really rests on (KIP §23).

What lives here: the walk upstream from an Assertion, and the keys by which two roots are one origin. What must
never live here: how much a root is worth.

Upstream of an Assertion are the Evidence it cites in support and the inputs of the Activities that produced it;
upstream of Evidence are its source Evidence and the inputs of the Activities that made it. Whatever has nothing
upstream is a root: an observation, a document, or the bare word of an actor. So a summary, a translation and an
inference are worth the root they came from, and a circle, in which everything has something upstream, has no root
and is worth nothing (KIP §23.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from core.epistemic.sight import Sight
from core.epistemic.trust import TrustScope
from core.errors import NoemaError
from core.model.elements import Activity, AnyElement, Assertion, Evidence
from core.model.ids import is_element_id, kind_of
from core.state.indexes import made_key

# Kinds of Evidence where equal bytes are one thing: the artifact is what was seen, not the seeing (KIP §15.4).
_ARTIFACTS: Final = frozenset({"document", "web_resource", "external_assertion"})
# Kinds of Evidence in which somebody says something: said twice by one person, it is one source.
_STATEMENTS: Final = frozenset({"user_statement", "agent_statement", "message", "human_feedback"})


class Root(msgspec.Struct, frozen=True):
    """One origin. `element` is the Evidence, or the Assertion where nothing but a word stands behind a claim.

    keys: roots that share one are one origin (KIP §23.4). trust: the subjects whose trust decides about it.
    """

    element: str
    keys: tuple[str, ...]
    trust: tuple[tuple[TrustScope, str], ...]


class Provenance(msgspec.Struct, frozen=True):
    """What stands behind one Assertion.

    roots: none for a circle. upstream: how many elements were traversed. gaps: something cited is not there, or
    its bytes have been purged. corrected: some Evidence on the way has been corrected by other Evidence.
    """

    roots: tuple[Root, ...]
    upstream: int
    gaps: bool = False
    corrected: bool = False


class Roots:
    """Finds roots in one state. Remembers what it has seen, within one projection or several."""

    def __init__(self, sight: Sight, limit: int) -> None:
        self.sight = sight
        self._limit = limit
        self._left = limit
        self._known: dict[str, tuple[str, ...]] = {}  # element -> what is upstream of it

    def behind(self, assertion: Assertion) -> Provenance:
        """The provenance of an Assertion.

        Raises:
            NoemaError: ResourceExhausted beyond the bound on traversed elements.
        """
        order, seen = [assertion.id], {assertion.id}
        roots: list[Root] = []
        gaps, resting, corrected = False, False, False
        for found in order:  # grows while it is walked
            element = assertion if found == assertion.id else self.sight.get(found)
            if element is None:
                gaps = True
                continue
            resting = resting or element is not assertion
            corrected = corrected or (isinstance(element, Evidence) and element.status == "corrected")
            above = self.upstream(element)
            if above:
                for upper in above:
                    if upper not in seen:
                        seen.add(upper)
                        order.append(upper)
            elif element is not assertion:
                gaps = gaps or element.system.state == "purged"
                roots.append(self._root(element, assertion))
        if not resting:  # nothing stands behind it but who says it
            inferred = assertion.mode == "inferred"
            if not (
                inferred and assertion.id in self.upstream(assertion)
            ):  # its own premise: the smallest circle
                roots.append(self._testimony(assertion))
            gaps = gaps or inferred  # an inference that does not say from what
        return Provenance(tuple(roots), len(order) - 1, gaps, corrected)

    def upstream(self, element: AnyElement) -> tuple[str, ...]:
        """Ids of the Evidence, Assertions and Activities that an element came from."""
        known = self._known.get(element.id)
        if known is None:
            self._left -= 1
            if self._left < 0:
                raise NoemaError(
                    "ResourceExhausted",
                    f"the belief rests on more than {self._limit} records",
                    hint="Ask about fewer claims, or at a world time that fewer of them cover.",
                    details={"limit": self._limit},
                )
            known = tuple(self._upstream(element))
            self._known[element.id] = known
        return known

    def _upstream(self, element: AnyElement) -> Iterator[str]:
        if isinstance(element, Assertion):
            yield from (cited.evidence for cited in element.evidence if cited.role == "support")
        elif isinstance(element, Evidence):
            yield from (source for source in element.source if _carries(source))
            maker = None if element.generated_by is None else self.sight.get(element.generated_by)
            if isinstance(maker, Activity):
                yield from filter(_carries, maker.inputs)
        elif isinstance(element, Activity):
            yield from filter(_carries, element.inputs)
            return
        key = made_key(element.id)
        if self.sight.activities and self.sight.count(key):
            for found in self.sight.find(key):
                maker = self.sight.get(found)
                if isinstance(maker, Activity) and element.id in maker.outputs:
                    yield from filter(_carries, maker.inputs)

    # --- what makes two roots one

    def _root(self, element: AnyElement, assertion: Assertion) -> Root:
        if isinstance(element, Evidence):
            return self._evidence_root(element, assertion)
        if isinstance(element, Assertion):
            return self._testimony(element)
        assert isinstance(element, Activity)  # `_carries` lets nothing else through
        return Root(element.id, (f"activity:{element.id}",), self._process_trust(element))

    def _process_trust(self, activity: Activity) -> tuple[tuple[TrustScope, str], ...]:
        found: list[tuple[TrustScope, str]] = [("tool", activity.id), ("tool", activity.activity_class)]
        for actor in activity.associated_actors:
            found += named(self.sight, "actor", actor)
        return tuple(found)

    def _evidence_root(self, evidence: Evidence, assertion: Assertion) -> Root:
        sources = tuple(dict.fromkeys(self.sight.canonical(source) for source in evidence.source))
        keys = [f"evidence:{evidence.id}", *(f"source:{source}" for source in sources)]
        trust: list[tuple[TrustScope, str]] = [("source", evidence.id)]
        for source in evidence.source:
            trust += (*named(self.sight, "source", source), *named(self.sight, "actor", source))
        if not sources and (assertion.mode == "stated" or evidence.evidence_class in _STATEMENTS):
            keys.append(f"source:{self.sight.canonical(assertion.asserted_by)}")
        if evidence.evidence_class in _ARTIFACTS:
            keys.append(f"content:{evidence.content_digest}")
        maker = None if evidence.generated_by is None else self.sight.get(evidence.generated_by)
        if isinstance(maker, Activity):
            trust += self._process_trust(maker)
            if maker.activity_class == "tool_execution":  # what one run gives, it gives once
                keys.append(f"activity:{maker.id}")
        return self._with_import(Root(evidence.id, tuple(keys), tuple(trust)), evidence)

    def _testimony(self, assertion: Assertion) -> Root:
        actor = self.sight.canonical(assertion.asserted_by)
        root = Root(assertion.id, (f"source:{actor}",), named(self.sight, "actor", assertion.asserted_by))
        return self._with_import(root, assertion)

    @staticmethod
    def _with_import(root: Root, element: AnyElement) -> Root:
        imported = element.system.origin.import_id
        if imported is None:
            return root
        return Root(root.element, (*root.keys, f"import:{imported}"), (*root.trust, ("import", imported)))


def named(sight: Sight, scope: TrustScope, element_id: str) -> tuple[tuple[TrustScope, str], ...]:
    """An element as a subject of trust: under the id it is referred to by, and under what a merge made of it."""
    survivor = sight.canonical(element_id)
    return ((scope, element_id),) if survivor == element_id else ((scope, element_id), (scope, survivor))


def _carries(element_id: str) -> bool:
    """Whether a claim can rest on an element: on Evidence, Assertions and Activities, not on what they are about."""
    return is_element_id(element_id) and kind_of(element_id) in {"evidence", "assertion", "activity"}
