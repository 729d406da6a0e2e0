"""Consolidation of a namespace of facts: counts folded, weights faded, weak facts summarised, faded ones pruned.

What lives here: the order of the steps, under the space's maintenance lease. What must never live here: the
arithmetic of decay (`core.facts.decay`), and any model: a `FactModel` is handed in, or nothing is summarised.
A fact is retired in a commit before it is erased, and that commit looks at it once more: what was pinned in the
meantime stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from core.errors import NoemaError
from core.facts import labels, records, writing
from core.facts.decay import PRUNED_BELOW
from core.facts.extract import Summary, summary_of
from core.facts.learning import SOURCE, Pair, promotable, without
from core.facts.values import MAX_TEXT_BYTES, Consolidated, Fact
from core.facts.vocabulary import alias_text
from core.model.elements import Concept, Json
from core.model.instants import Instant
from core.ports import Clock, Entropy
from core.service.erasure import Erasures
from core.service.fact_access import Accesses, Observed
from core.service.fact_models import FactModel
from core.service.fact_reading import Namespaces
from core.service.fact_settings import tuning_of
from core.service.fact_writing import Writer, as_answer, facts_from
from core.service.faults import reading
from core.service.leases import Fenced, Leases
from core.service.values import Caller, Fence
from core.transaction.draft import Draft

SPARE_MS: Final = 15_000  # of the lease, for what follows a model's answer
LEASE_MS: Final = 120_000
MAX_BATCH: Final = 100  # facts shown to a summarizer at once
MAX_NOTES: Final = 10  # contradictions that a run tells of,
MAX_NOTE: Final = 300  # and characters of each
MAX_PRUNED: Final = 200  # facts erased by one run; the rest follows with the next


class Consolidation:
    """Consolidates namespaces; at most one run in a space at a time. Safe to share between threads."""

    def __init__(
        self,
        clock: Clock,
        entropy: Entropy,
        *,
        leases: Leases,
        erasures: Erasures,
        namespaces: Namespaces,
        accesses: Accesses,
        writer: Writer,
        model: FactModel | None,
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._leases = leases
        self._erasures = erasures
        self._namespaces = namespaces
        self._accesses = accesses
        self._writer = writer
        self._model = model

    def run(self, caller: Caller, space_id: str, agent_id: str, deadline: Instant) -> Consolidated:
        """One consolidation.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`, or as `Commits.commit`.
        """
        self._namespaces.state(space_id)  # raises if there is no such space
        owner = self._entropy.token(12).hex()
        fence = self._leases.acquire(space_id, "maintenance", owner, LEASE_MS)
        if fence is None:
            return Consolidated(ran=False)
        job = _Job(caller, space_id, agent_id, deadline, fence)
        try:
            done, faded = self._under_lease(job)
        except Fenced:
            return Consolidated(ran=False)  # an erasure or a change by hand came first; nothing is half done
        finally:
            self._leases.release(space_id, fence)
        if not faded:
            return done
        self._erasures.erase(space_id, faded, caller.subject, owner=owner)
        return msgspec.structs.replace(done, pruned=len(faded))

    def _under_lease(self, job: _Job) -> tuple[Consolidated, list[str]]:
        """Everything but the erasing: what was done, and the elements to erase."""
        now = self._clock.now()
        before = self._observe(job)
        facts = self._facts(job)
        with reading():
            self._accesses.fold(job.space_id, job.agent_id, facts, before.consolidated)
            self._accesses.consolidated(job.space_id, job.agent_id, now)
        after = self._observe(job)
        decayed = sum(after.of(fact).weight < before.of(fact).weight for fact in facts.values())
        summed = self._summarise(job, after)
        learnt = self._promote(job)
        faded = self._retire_faded(job, after)
        done = Consolidated(
            ran=True,
            decayed=decayed,
            consumed=summed.consumed,
            learnt=learnt,
            summary=summed.fact,
            problem=summed.problem,
            contradictions=summed.contradictions,
        )
        return done, faded

    def _observe(self, job: _Job) -> Observed:
        with reading():
            return self._accesses.read(job.space_id, job.agent_id)

    def _facts(self, job: _Job) -> dict[str, Fact]:
        with self._namespaces.current(job.space_id, job.agent_id) as (_, namespace):
            return dict(namespace.facts)

    # --- summary

    def _summarise(self, job: _Job, observed: Observed) -> _Summed:
        """The summary, what it replaced, and why there is none."""
        state = self._namespaces.state(job.space_id)
        facts = [observed.of(fact) for fact in self._facts(job).values()]
        live = [fact for fact in facts if fact.live and fact.kind == "fact"]
        loose = [fact for fact in live if not fact.pinned]
        if self._model is None or len(live) <= tuning_of(state).consolidate_above:
            return _Summed()
        weakest = sorted(loose, key=lambda fact: (fact.weight, fact.created_at, fact.id))
        batch = weakest[: min(len(weakest) // 2, MAX_BATCH)]
        if not batch:
            return _Summed()
        until = min(job.deadline, job.fence.until - SPARE_MS)
        try:
            answer = self._model.summarise(job.space_id, batch, until)
        except NoemaError as error:
            return _Summed(problem=f"{error.code}: {error.message}")
        if answer is None:
            return _Summed()
        found = summary_of(answer, {fact.id for fact in batch})
        if found is None:
            return _Summed(problem="the model's answer is no summary")
        if len(found.text.encode()) > MAX_TEXT_BYTES:
            return _Summed(problem="the model's summary is longer than a fact may be")
        made, consumed = self._apply(job, found, {fact.id: fact for fact in batch})
        with reading():
            self._accesses.summarised(job.space_id, job.agent_id, consumed)
        return _Summed(made, consumed, contradictions=_told(found.contradictions))

    def _apply(self, job: _Job, summary: Summary, batch: dict[str, Fact]) -> tuple[Fact | None, int]:
        """The summary written and what it consumes retired, in one commit."""
        chance = self._writer.chance()

        def decide(draft: Draft) -> Json:
            named = [batch[fact_id] for fact_id in summary.consumes]
            standing = [fact for fact in named if _loose(writing.live(draft, fact.element))]
            if not standing:
                return []
            label = labels.conservative(fact.confidence for fact in standing)
            made = writing.remember(draft, job.agent_id, [summary.text], chance, confidence=label)
            for fact in standing:
                writing.retire(draft, fact.element, made[0].element)
            return as_answer([*made, *standing])

        request = {"do": "summarise", "agent": job.agent_id}
        written = facts_from(
            self._writer.commit(job.caller, job.space_id, job.deadline, request, decide, fence=job.fence)
        )
        return (written[0], len(written) - 1) if written else (None, 0)

    # --- aliases

    def _promote(self, job: _Job) -> int:
        """Pairs of words that were seen often enough become aliases."""
        with reading():
            learning, rev = self._accesses.learning(job.space_id, job.agent_id)
        ripe = promotable(learning, self._clock.now())
        if not ripe:
            return 0
        chance = self._writer.chance()

        def decide(draft: Draft) -> Json:
            texts = [_alias(pair) for pair in ripe]
            return as_answer(
                writing.remember(draft, job.agent_id, texts, chance, kind="alias", source=SOURCE)
            )

        request = {"do": "learn", "agent": job.agent_id}
        self._writer.commit(job.caller, job.space_id, job.deadline, request, decide, fence=job.fence)
        self._accesses.learn(job.space_id, job.agent_id, without(learning, ripe), rev)
        return len(ripe)

    # --- pruning

    def _retire_faded(self, job: _Job, observed: Observed) -> list[str]:
        """The elements of the facts to erase: faded, not pinned, and retired from now on."""
        faded = [
            fact
            for fact in (observed.of(each) for each in self._facts(job).values())
            if not fact.pinned and fact.weight < PRUNED_BELOW
        ][:MAX_PRUNED]
        if not faded:
            return []

        def decide(draft: Draft) -> Json:
            going = [fact.element for fact in faded if _loose(draft.get(fact.element))]
            for element in going:
                writing.retire(draft, element, None)
            return going

        request = {"do": "prune", "agent": job.agent_id}
        answer = self._writer.commit(job.caller, job.space_id, job.deadline, request, decide, fence=job.fence)
        return msgspec.convert(answer, list[str])


class _Job(msgspec.Struct, frozen=True):
    """One run."""

    caller: Caller
    space_id: str
    agent_id: str
    deadline: Instant
    fence: Fence


class _Summed(msgspec.Struct, frozen=True):
    """What came of summarising."""

    fact: Fact | None = None
    consumed: int = 0
    problem: str | None = None
    contradictions: tuple[str, ...] = ()


def _told(contradictions: Sequence[str]) -> tuple[str, ...]:
    """What a model noticed, as far as an answer tells it."""
    return tuple(each[:MAX_NOTE] for each in contradictions[:MAX_NOTES])


def _loose(element: object) -> bool:
    """Whether a Concept is there and neither pinned nor held."""
    return (
        isinstance(element, Concept)
        and records.standing(element)
        and not element.retention.legal_hold
        and not element.facets.get(records.FACT_STATE, {}).get("pinned_at")
    )


def _alias(pair: Pair) -> str:
    return alias_text(pair.unknown, [pair.known])
