"""Recalling: from a query and its options to the facts, receipts and words that answer it. Pure.

What lives here: the order of the steps (GrayMatter v0.20 §2.1): split off aliases, widen the query, drop what is
retired, drop what is below the wanted confidence, and only then count, rank, fuse and cut. What must never live
here: notes of what was recalled (`core.service.fact_access`) and the knowledge graph (`graph`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from core.facts import labels
from core.facts.namespace import Namespace
from core.facts.nearness import nearest_facts
from core.facts.ranking import Policy, Scored, rank
from core.facts.tokens import question_tokens
from core.facts.values import (
    Kg,
    Preference,
    Provenance,
    Recalled,
    RecallOptions,
    Receipt,
    Retrieval,
    Signals,
)
from core.facts.vocabulary import Match, feedback, match_of
from core.model.instants import Instant
from core.search.dense import Dense

_DAY_MS = 86_400_000
VECTOR_DEPTH = 2  # times `top_k` facts get a vector rank


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment or a space sets for all its facts.

    confidence_weight: where a caller gives none. min_relevance: 0 to 1; facts below this share of the best score
    are cut; 0 cuts none. consolidate_from: a namespace of so many rows is consolidated by itself when it was
    written to; 0: no namespace ever is. consolidate_above: a model may summarise where more facts are live.
    learn_prefix: how many characters two words must share for usage to pair them as an alias; 0 learns nothing.
    """

    confidence_weight: float = 0.0
    min_relevance: float = 0.0
    signals: Signals = Signals()
    consolidate_from: int = 20
    consolidate_above: int = 20
    learn_prefix: int = 0


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a recall with nothing left open; the same for all queries of a batch."""

    top_k: int
    level: int
    weight: float
    explain: bool
    hints: bool
    retrieval: Retrieval | None
    policy: Policy
    learn_prefix: int = 0


def resolve(options: RecallOptions, tuning: Tuning) -> Resolved:
    """The policy that options and defaults make.

    Raises:
        NoemaError: `InvalidInput`.
    """
    labels.check_options(options)
    stated, wanted = options.confidence_weight, options.min_confidence
    weight = tuning.confidence_weight if stated is None else float(stated)
    kg: Kg = "hints_without_confidence_receipts" if wanted is None else "suppressed_min_confidence"
    told = stated is not None or wanted is not None or weight != 0
    return Resolved(
        top_k=options.count,
        level=0 if wanted is None else labels.level(wanted),
        weight=weight,
        explain=options.explain,
        hints=options.hints and wanted is None and not options.explain,
        retrieval=Retrieval(min_confidence=wanted, confidence_weight=weight, kg=kg) if told else None,
        policy=Policy(
            top_k=options.count,
            weight=weight,
            signals=tuning.signals,
            min_relevance=tuning.min_relevance,
        ),
        learn_prefix=0 if told else tuning.learn_prefix,
    )


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one query found, before receipts; `match` tells how well its words are known."""

    scored: tuple[Scored, ...]
    match: Match
    feedback: str | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, best first."""
        return tuple(each.fact.text for each in self.scored)


def effective_query(namespace: Namespace, query: str) -> str:
    """The text whose meaning is looked for: the query, and behind it what the aliases add to its words."""
    tokens, effective = namespace.expanded(query)
    return " ".join([query, *effective[len(tokens) :]])


def search(
    namespace: Namespace,
    query: str,
    resolved: Resolved,
    *,
    vector: Sequence[str] = (),
    dense: Dense | None = None,
) -> Found:
    """The facts of a namespace that fit a query best.

    Args:
        namespace: the agent's facts.
        query: the text.
        resolved: the policy.
        vector: ids of eligible facts by similarity; empty where there is no such signal.
        dense: what an index says of the effective query, instead of `vector`.
    """
    _, effective = namespace.expanded(query)
    corpus = namespace.corpus(resolved.level)
    if dense is not None and resolved.policy.signals.vector:
        vector = nearest_facts(dense, namespace, corpus, VECTOR_DEPTH * resolved.top_k)
    scored = rank(corpus, effective, resolved.policy, vector=vector)
    match = match_of(effective, corpus, question_tokens(namespace.tokenizer))
    said = feedback(match, corpus, [each.fact.id for each in scored], query)
    return Found(scored=tuple(scored), match=match, feedback=said)


def receipt(namespace: Namespace, scored: Scored, resolved: Resolved, now: Instant) -> Receipt:
    """Why a fact was recalled; its weight is as on the log until the counts beside it are added."""
    fact = scored.fact
    preference = None
    if resolved.retrieval is not None:
        preference = Preference(
            base_score=scored.ranks.fused_score,
            final_score=scored.score,
            factor=labels.factor(fact.confidence, resolved.weight),
            effective_confidence=labels.effective(fact.confidence),
            confidence_weight=resolved.weight,
        )
    return Receipt(
        text=fact.text,
        weight=fact.weight,
        age_days=round((now - fact.created_at) / _DAY_MS, 2),
        ranks=scored.ranks,
        provenance=Provenance(
            fact_id=fact.id,
            written_at=fact.created_at,
            superseded_by=fact.superseded_by,
            confidence=fact.confidence,
            pinned=fact.pinned,
            supersedes=namespace.supersedes(fact),
        ),
        ranking=preference,
    )


def answer(namespace: Namespace, found: Found, resolved: Resolved, now: Instant) -> Recalled:
    """What a recall of one namespace gives."""
    receipts: tuple[Receipt, ...] = ()
    if resolved.explain:
        receipts = tuple(receipt(namespace, each, resolved, now) for each in found.scored)
    return Recalled(
        texts=found.texts,
        facts=tuple(each.fact for each in found.scored),
        receipts=receipts,
        retrieval=resolved.retrieval,
        feedback=found.feedback,
    )
