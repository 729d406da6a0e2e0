"""Provenance to its roots: what a claim really rests on (KIP §23).

What lives here: the walk upstream from an Assertion, and the keys by which two roots are one origin. What must
never live here: how much a root is worth.

Upstream of an Assertion are the Evidence it cites in support and the inputs of the Activities that produced it;
upstream of Evidence are its source Evidence and the inputs of the Activities that made it. Whatever has nothing
upstream is a root: an observation, a document, or the bare word of an actor. So a summary, a translation and an
inference are worth the root they came from, and a circle, in which everything has something upstream, has no root
and is worth nothing (KIP §23.5). What has been withdrawn, or is
only supposed, carries nothing further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.epistemic.sight import Sight
from core.epistemic.trust import TrustScope
from core.errors import NoemaError
from core.model.elements import Activity, AnyElement, Assertion, Evidence
from core.state.indexes import made_key

# Kinds of Evidence where equal bytes are one thing: the artifact is what was seen, not the seeing (KIP §15.4).
_ARTIFACTS: Final = frozenset({"document", "web_resource", "external_assertion"})
# Kinds, by how their ids begin, that a claim can rest on: records, claims and processes, not what they are about.
_EVIDENTIAL: Final = ("E-", "A-", "X-")
# Kinds of Evidence in which somebody says something: said twice by one person, it is one source.
_STATEMENTS: Final = frozenset({"user_statement", "agent_statement", "message", "human_feedback"})


Subject = tuple[TrustScope, str]


class Root(msgspec.Struct, frozen=True):
    """One origin. `element` is the Evidence, or the Assertion where nothing but a word stands behind a claim.

    keys: roots that share one are one origin (KIP §23.4). trust: the subjects whose trust is the root's. via: who
    reported it on the way to the claim; they can make it less trusted, never more, so that nothing gains by being
    passed on (KIP §23.2, §88.9).
    """

    element: str
    keys: tuple[str, ...]
    trust: tuple[Subject, ...]
    via: tuple[Subject, ...] = ()


class Provenance(msgspec.Struct, frozen=True):
    """What stands behind one Assertion.

    roots: none for a circle, or where every premise has been withdrawn. upstream: how many elements were traversed.
    first_hand: it is its own root, or a record that is one is reached with nothing between. gaps: something on the way is not there, may not
    carry anything, or has lost its bytes. corrected: some Evidence has been corrected by other Evidence.
    """

    roots: tuple[Root, ...]
    upstream: int
    first_hand: bool = True
    gaps: bool = False
    corrected: bool = False


class Roots:
    """Finds roots in one state. Remembers what it has seen, within one projection or several."""

    def __init__(
        self, sight: Sight, limit: int, carries: Callable[[Assertion], bool], *, silent: bool = False
    ) -> None:
        self.sight = sight
        self._carries = carries  # whether an Assertion may stand behind another
        self.silent = silent  # no trust is recorded at all, so nobody need be named for it
        self._limit = limit
        self._left = limit
        self._known: dict[str, tuple[str, ...]] = {}  # element -> what is upstream of it

    def behind(self, assertion: Assertion) -> Provenance:
        """The provenance of an Assertion.

        Raises:
            NoemaError: ResourceExhausted beyond the bound on traversed elements.
        """
        parent: dict[str, str | None] = {assertion.id: None}  # each element by the way it was first reached
        order = [assertion.id]
        citer: dict[str, Assertion] = {}
        ends: list[AnyElement] = []
        gaps = corrected = resting = False
        for found in order:  # grows while it is walked
            element = assertion if found == assertion.id else self.sight.get(found)
            if element is None:
                gaps = gaps or self.sight.absent(found)  # what is only hidden leaves no gap to be told of
                continue
            resting = resting or element is not assertion
            if isinstance(element, Assertion):
                if element is not assertion and not self._carries(element):
                    gaps = True
                    continue
                for cited in element.evidence:
                    citer.setdefault(cited.evidence, element)
            elif isinstance(element, Evidence):
                corrected = corrected or element.status == "corrected"
            above = self.upstream(element)
            for upper in above:
                if upper not in parent:
                    parent[upper] = found
                    order.append(upper)
            if not above and element is not assertion:
                gaps = gaps or element.system.state == "purged"
                ends.append(element)
        if not resting:  # nothing stands behind it but who says it
            inferred = assertion.mode == "inferred"
            if not (
                inferred and assertion.id in self.upstream(assertion)
            ):  # its own premise: the smallest circle
                ends.append(assertion)
            gaps = gaps or inferred  # an inference that does not say from what
        roots = [self._root(end, citer.get(end.id, assertion), self._via(end.id, parent)) for end in ends]
        first_hand = any(
            end is assertion or (parent[end.id] == assertion.id and not isinstance(end, Assertion))
            for end in ends
        )
        return Provenance(tuple(roots), len(order) - 1, first_hand, gaps, corrected)

    def _via(self, end: str, parent: dict[str, str | None]) -> tuple[Subject, ...]:
        """Who asserted what on the way from a root to the claim, the claim itself included."""
        if self.silent:
            return ()
        out: list[Subject] = []
        step: str | None = end
        while step is not None:
            element = self.sight.get(step)
            if isinstance(element, Assertion):
                out += self._reporter(element)
            step = parent[step]
        return tuple(out)

    def _reporter(self, assertion: Assertion) -> tuple[Subject, ...]:
        return (*named(self.sight, "actor", assertion.asserted_by), *_recorded(assertion))

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
            found = self._upstream(element)
            if not self.sight.open:
                found = [each for each in found if self._is_told(each)]
            known = self._known[element.id] = tuple(found)
        return known

    def _is_told(self, element_id: str) -> bool:
        """Whether an input may be told of: one that is hidden is none, so what has no other is a root (KIP §30.4)."""
        return self.sight.get(element_id) is not None or self.sight.absent(element_id)

    def _upstream(self, element: AnyElement) -> list[str]:
        out: list[str] = []
        if isinstance(element, Assertion):
            out = [cited.evidence for cited in element.evidence if cited.role == "support"]
        elif isinstance(element, Evidence):
            out = [source for source in element.source if source.startswith(_EVIDENTIAL)]
            if element.generated_by is not None:
                out += self._inputs(element.generated_by)
        elif isinstance(element, Activity):
            return [used for used in element.inputs if used.startswith(_EVIDENTIAL)]
        if self.sight.activities:
            key = made_key(element.id)
            if self.sight.count(key):
                for found in self.sight.find(key):
                    out += self._inputs(found, making=element.id)
        return out

    def _inputs(self, activity: str, making: str | None = None) -> list[str]:
        """What an Activity took in that a claim can rest on; of one that made something, where that is asked."""
        maker = self.sight.get(activity)
        if not isinstance(maker, Activity) or (making is not None and making not in maker.outputs):
            return []
        return [used for used in maker.inputs if used.startswith(_EVIDENTIAL)]

    # --- what makes two roots one

    def _root(self, element: AnyElement, citer: Assertion, via: tuple[Subject, ...]) -> Root:
        if isinstance(element, Evidence):
            maker = None if element.generated_by is None else self.sight.get(element.generated_by)
            keys = self._evidence_keys(element, citer, maker)
            trust = () if self.silent else self._evidence_trust(element, citer, maker)
        elif isinstance(element, Assertion):
            keys = (f"source:{self.sight.canonical(element.asserted_by)}",)
            trust = self._reporter(element)
        else:
            assert isinstance(element, Activity)  # `_EVIDENTIAL` lets nothing else through
            keys = (f"activity:{element.id}",)
            trust = self._process(element)
        imported = element.system.origin.import_id
        if imported is not None:
            keys = (*keys, f"import:{imported}")
        return Root(element.id, keys, trust, via)

    def _process(self, activity: Activity) -> tuple[Subject, ...]:
        found: list[Subject] = [
            ("tool", activity.id),
            ("tool", activity.activity_class),
            *_recorded(activity),
        ]
        for actor in activity.associated_actors:
            found += named(self.sight, "actor", actor)
        return tuple(found)

    def _evidence_keys(
        self, evidence: Evidence, citer: Assertion, maker: AnyElement | None
    ) -> tuple[str, ...]:
        keys = [f"evidence:{evidence.id}"]
        keys += [f"source:{self.sight.canonical(source)}" for source in evidence.source]
        if not evidence.source and (citer.mode == "stated" or evidence.evidence_class in _STATEMENTS):
            keys.append(f"source:{self.sight.canonical(citer.asserted_by)}")
        if evidence.evidence_class in _ARTIFACTS:
            keys.append(f"content:{evidence.content_digest}")
        if isinstance(maker, Activity) and maker.activity_class == "tool_execution":
            keys.append(f"activity:{maker.id}")  # what one run gives, it gives once
        return tuple(keys)

    def _evidence_trust(
        self, evidence: Evidence, citer: Assertion, maker: AnyElement | None
    ) -> tuple[Subject, ...]:
        """Whose trust is that of Evidence: where it names nobody, and nobody took part in making it, who cites it."""
        trust: list[Subject] = [("source", evidence.id), *_recorded(evidence)]
        for source in evidence.source:
            trust += (*named(self.sight, "source", source), *named(self.sight, "actor", source))
        if isinstance(maker, Activity):
            trust += self._process(maker)
        if not evidence.source and not (isinstance(maker, Activity) and maker.associated_actors):
            trust += named(self.sight, "actor", citer.asserted_by)
        return tuple(trust)


def _recorded(element: AnyElement) -> tuple[Subject, ...]:
    """By whom and by which way an element came in, as the engine authenticated it (KIP §6.2)."""
    origin = element.system.origin
    found: tuple[Subject, ...] = (("origin", origin.principal), ("channel", origin.channel))
    return found if origin.import_id is None else (*found, ("import", origin.import_id))


def named(sight: Sight, scope: TrustScope, element_id: str) -> tuple[Subject, ...]:
    """An element as a subject of trust: under the id it is referred to by, and under what a merge made of it."""
    survivor = sight.canonical(element_id)
    return ((scope, element_id),) if survivor == element_id else ((scope, element_id), (scope, survivor))
