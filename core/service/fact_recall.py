"""Recalls of facts: one namespace, an agent's with the shared one, several queries at once.

What lives here: from a namespace in memory to what a caller gets, and the note that it was recalled. What must
never live here: the arithmetic (`core.facts`), and any write to the log: a note is one small row beside it, and
a recall that could not be noted is a recall all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from core.errors import NoemaError
from core.facts import graph, labels
from core.facts.learning import observe
from core.facts.merging import merge_namespaces, merge_queries
from core.facts.namespace import Namespace
from core.facts.recalling import Found, Resolved, Tuning, answer, effective_query, resolve, search
from core.facts.tokens import TOKENIZERS
from core.facts.values import MAX_QUERIES, SHARED, Answered, Batch, Recalled, RecallOptions, Receipt
from core.governance.control import is_governed
from core.model.instants import Instant
from core.ports import Clock
from core.search.dense import Dense
from core.service.echoes import Echoes
from core.service.fact_access import Accesses, Observed
from core.service.fact_reading import Namespaces
from core.service.fact_settings import tuning_of
from core.service.faults import reading
from core.service.values import Caller
from core.state.view import View

# How long a recall waits for an embedder; then words and age alone rank, and the answer says so.
EMBED_MS: Final = 5_000


class Meanings(Protocol):
    """What a recall needs of `core.service.vectors.Vectors`. An embedder's faults are told in what comes back."""

    def nearest(self, view: View, text: str, *, deadline: Instant) -> Dense:
        """How near the elements lie to a text."""

    def nearest_each(self, view: View, texts: Sequence[str], *, deadline: Instant) -> Sequence[Dense]:
        """The same for several texts, embedded together."""


class FactRecall:
    """Recalls facts. Safe to share between threads; `core.service.facts.Facts` adds everything else.

    Args:
        clock: for ages.
        namespaces: the facts in memory.
        accesses: where recalls are noted.
        meanings: an index of vectors; None: words and age alone rank.
        echoes: notes what was served, so that it is known when it comes back; None: nobody notes.
    """

    def __init__(
        self,
        clock: Clock,
        namespaces: Namespaces,
        accesses: Accesses,
        *,
        meanings: Meanings | None = None,
        echoes: Echoes | None = None,
    ) -> None:
        self._clock = clock
        self._namespaces = namespaces
        self._accesses = accesses
        self._meanings = meanings
        self._echoes = echoes

    def tuning(self, space_id: str) -> Tuning:
        """What the space sets for all its recalls."""
        return tuning_of(self._namespaces.state(space_id))

    def recall(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        query: str,
        options: RecallOptions = RecallOptions(),  # noqa: B008 - frozen
    ) -> Recalled:
        """The facts of a namespace that fit a query best; `values.SHARED` recalls the shared ones."""
        _check_reader(caller)
        resolved = self._resolve(space_id, options)
        recalled, found = self._recall(space_id, agent_id, query, resolved)
        if resolved.explain:
            recalled = self._weighed(space_id, agent_id, recalled)
        self._note(space_id, agent_id, recalled)
        if resolved.learn_prefix and not is_governed(self._namespaces.state(space_id).meta):
            self._learn(space_id, agent_id, query, found, resolved.learn_prefix)
        return recalled

    def _resolve(self, space_id: str, options: RecallOptions) -> Resolved:
        labels.check_options(options)
        return resolve(options, self.tuning(space_id))

    def _recall(self, space_id: str, agent_id: str, query: str, resolved: Resolved) -> tuple[Recalled, Found]:
        """One namespace's answer, all of one moment; nothing is noted."""
        return self._recall_each(space_id, agent_id, [query], resolved)[0]

    def _recall_each(
        self, space_id: str, agent_id: str, queries: Sequence[str], resolved: Resolved
    ) -> list[tuple[Recalled, Found]]:
        """The answers to several queries, all of one moment."""
        labels.check_agent(agent_id)
        for query in queries:
            labels.check_query(query)
        dense = self._meant(space_id, agent_id, queries, resolved)
        with self._namespaces.current(space_id, agent_id) as (state, namespace):
            out = []
            for query, near in zip(queries, dense, strict=True):
                found = search(namespace, query, resolved, dense=near)
                recalled = answer(namespace, found, resolved, self._clock.now())
                recalled = msgspec.structs.replace(recalled, degraded=self._degraded(near))
                out.append((_with_graph(namespace.view or state, namespace, recalled, resolved), found))
        return out

    def _meant(
        self, space_id: str, agent_id: str, queries: Sequence[str], resolved: Resolved
    ) -> Sequence[Dense | None]:
        """What the index says of the queries as the aliases widen them; outside the lock, since it may ask a service.

        An alias that is taught in this very moment counts for words and not yet for meaning.
        """
        if self._meanings is None or not resolved.policy.signals.vector:
            return [None] * len(queries)
        with self._namespaces.current(space_id, agent_id) as (state, namespace):
            texts = [effective_query(namespace, query) for query in queries]
        deadline = self._clock.now() + EMBED_MS
        if len(texts) == 1:
            return [self._meanings.nearest(state, texts[0], deadline=deadline)]
        return self._meanings.nearest_each(state, texts, deadline=deadline)

    def _degraded(self, near: Dense | None) -> str | None:
        """Why meaning did not rank, or not everything; None if it did, or if the space wants none of it."""
        if self._meanings is None:
            return "no_embedder"
        return None if near is None else near.degraded

    def _note(self, space_id: str, agent_id: str, recalled: Recalled) -> None:
        """That these facts were given: counted, and known if they come back. Best effort."""
        self._accesses.note(space_id, agent_id, recalled.facts)
        if self._echoes is not None:
            self._echoes.served(space_id, recalled.texts, agent_id)

    def _weighed(self, space_id: str, agent_id: str, recalled: Recalled) -> Recalled:
        """The receipts with the weights as they stand."""
        observed = self._observe(space_id, agent_id)
        facts = tuple(observed.of(fact) for fact in recalled.facts)
        receipts = tuple(
            msgspec.structs.replace(each, weight=fact.weight)
            for each, fact in zip(recalled.receipts, facts, strict=True)
        )
        return msgspec.structs.replace(recalled, facts=facts, receipts=receipts)

    def _learn(self, space_id: str, agent_id: str, query: str, found: Found, prefix: int) -> None:
        """Keep what the query teaches of the agent's words, if the store takes it."""
        with reading():
            learning, rev = self._accesses.learning(space_id, agent_id)
        tokens = TOKENIZERS[self._namespaces.tokenizer](query)
        after = observe(learning, tokens, found.match, self._clock.now(), prefix)
        if after != learning:
            self._accesses.learn(space_id, agent_id, after, rev)

    def recall_all(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        query: str,
        options: RecallOptions = RecallOptions(),  # noqa: B008 - frozen
    ) -> Recalled:
        """The agent's facts and the shared ones, each ranked by itself and the two merged by rank."""
        _check_reader(caller)
        resolved = self._resolve(space_id, options)
        own, _ = self._recall(space_id, agent_id, query, resolved)
        shared, _ = self._recall(space_id, SHARED, query, resolved)
        if resolved.explain:
            own = self._weighed(space_id, agent_id, own)
            shared = self._weighed(space_id, SHARED, shared)
        self._note(space_id, agent_id, own)
        self._note(space_id, SHARED, shared)
        texts = merge_namespaces(own.texts, shared.texts, resolved.top_k)
        facts = {fact.text: fact for each in (shared, own) for fact in each.facts}
        receipts: dict[str, Receipt] = {
            each.text: each for recalled in (shared, own) for each in recalled.receipts
        }
        return Recalled(
            texts=tuple(texts),
            facts=tuple(facts[text] for text in texts),
            receipts=tuple(receipts[text] for text in texts) if resolved.explain else (),
            retrieval=resolved.retrieval,
            feedback=own.feedback,
            hints=own.hints,
            degraded=own.degraded or shared.degraded,
        )

    def recall_batch(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        queries: Sequence[str],
        options: RecallOptions = RecallOptions(),  # noqa: B008 - frozen
    ) -> Batch:
        """Several queries under one policy, each as by itself, and merged. Blank queries are skipped."""
        _check_reader(caller)
        labels.check_agent(agent_id)
        asked = [query for query in queries if not isinstance(query, str) or query.strip()]
        if not asked or len(queries) > MAX_QUERIES:
            raise NoemaError(
                "InvalidInput",
                f"queries must be 1 to {MAX_QUERIES} texts, not all of them blank",
                details={"member": "queries"},
            )
        resolved = self._resolve(space_id, options)  # once: one policy for all of them and the merged view
        answers: list[Answered] = []
        good, degraded = [], None
        for query in asked:
            try:
                labels.check_query(query)
            except NoemaError as error:
                shown = query if isinstance(query, str) else ""
                answers.append(Answered(query=shown, error=f"{error.code}: {error.message}"))
                continue
            good.append(len(answers))
            answers.append(Answered(query=query))
        each = self._recall_each(space_id, agent_id, [answers[place].query for place in good], resolved)
        for place, (recalled, _) in zip(good, each, strict=True):
            self._accesses.note(space_id, agent_id, recalled.facts)
            answers[place] = Answered(query=answers[place].query, facts=recalled.texts)
            degraded = recalled.degraded or degraded
        merged = merge_queries([each.facts for each in answers])
        if self._echoes is not None:
            self._echoes.served(space_id, merged, agent_id)
        return Batch(
            merged=tuple(merged),
            per_query=tuple(answers),
            retrieval=resolved.retrieval,
            degraded=degraded,
        )

    def _observe(self, space_id: str, agent_id: str) -> Observed:
        with reading():
            return self._accesses.read(space_id, agent_id)


def _check_reader(caller: Caller) -> None:
    """A token restricted by labels may read no memory: facts bear none."""
    if caller.labels is not None:
        raise NoemaError("NotAuthorized", "a token restricted by labels may not do this")


def _with_graph(state: View, namespace: Namespace, recalled: Recalled, resolved: Resolved) -> Recalled:
    """The recall with what the knowledge graph adds: links in receipts, or hints where they were asked for."""
    if resolved.explain:
        receipts = tuple(
            msgspec.structs.replace(each, kg_links=graph.links_in(state, each.text))
            for each in recalled.receipts
        )
        return msgspec.structs.replace(recalled, receipts=receipts)
    if not resolved.hints or not recalled.texts:
        return recalled
    retired = {fact.text for fact in namespace.facts.values() if not fact.live}
    found = graph.hints(state, recalled.texts[0], {*recalled.texts, *retired})
    return msgspec.structs.replace(recalled, hints=found)
