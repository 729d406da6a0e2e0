"""Recall: questions answered from a space, by extraction, with receipts; and probes.

What lives here: loading the state, and the record of what was asked. What must never
live here: what bears on a question (`core.agents.offline`). A recall never writes the log; it leaves one row in
the collection `recall`, which expires (contract §3).
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.agents.dialogue import Question, check_query, read_question, text_of
from core.agents.maintenance.decay import SLEEP_TASK
from core.agents.offline import MODEL
from core.agents.offline.answers import Answer, answer
from core.agents.offline.lines import Line, hidden_ids
from core.agents.offline.quotation import best_passage
from core.agents.vocabulary import local_name
from core.model.elements import AnyElement, Concept, Evidence, Proposition
from core.model.ids import kind_of
from core.model.instants import format_instant
from core.model.literals import Literal
from core.ports import Clock, Row
from core.protocol import http_types as wire
from core.search.bm25 import basis_of, score
from core.search.text import words
from core.service.conversations import CITES, Conversations
from core.service.spaces import Spaces
from core.service.values import Caller
from core.service.vectors import Vectors
from core.state.indexes import type_key

MAX_PROBE: Final = 100
EMBEDDING_MS: Final = 2000  # for embedding a question; after that words alone rank, and the answer says so
_KEPT_QUERY: Final = (
    4000  # characters of a question on record, so that the record is one row and expires whole
)


class Recall:
    """Answers questions. Safe to share between threads."""

    def __init__(
        self,
        clock: Clock,
        spaces: Spaces,
        conversations: Conversations,
        vectors: Vectors | None = None,
    ) -> None:
        self._clock = clock
        self._spaces = spaces
        self._conversations = conversations
        self._vectors = vectors

    def recall(self, caller: Caller, space_id: str, body: wire.RecallInput) -> wire.AgentOutput:
        """Answer a question in prose.

        Raises:
            NoemaError: `InvalidInput`, `PayloadTooLarge`, `NotImplementedYet` for a budget,
                `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        question = read_question(body)
        found = self._answer(space_id, question)
        number = self._note(caller, space_id, question, found)
        warnings = () if found.degraded is None else (f"dense: {found.degraded}",)
        return wire.AgentOutput(content=found.text, conversation=number, model=MODEL, warnings=warnings)

    def recall_structured(self, caller: Caller, space_id: str, body: wire.RecallInput) -> wire.RecallOutput:
        """Answer a question with its citations.

        Raises:
            NoemaError: as `recall`.
        """
        question = read_question(body)
        found = self._answer(space_id, question)
        number = self._note(caller, space_id, question, found)
        return wire.RecallOutput(
            answer=found.text,
            found=found.found,
            uncertainty=found.uncertainty,
            memories=tuple(_citation(line) for line in found.cited),
            conversation=number,
            usage=wire.Usage(),
            model=MODEL,
            degraded=found.degraded,
        )

    def probe(self, space_id: str, body: wire.ProbeInput) -> wire.ProbeOutput:
        """Whether anything visible has a word of the query, without answering.

        Nothing is cut off while searching, so a miss is exhaustive. `search_exhaustive` is false where there are
        more hits than the limit shows.

        Raises:
            NoemaError: `InvalidInput`, `PayloadTooLarge`, `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        terms = words(check_query(body.query))
        limit = max(1, min(MAX_PROBE, body.limit))
        state = self._spaces.load(space_id)
        hidden = hidden_ids(state) | frozenset(
            state.find(type_key(SLEEP_TASK))
        )  # notes to ourselves are no memory
        found = score(
            state, terms, basis_of(state), letters="CEP", admits=lambda element, _: element not in hidden
        )
        hits = [element for element, _ in found.ranked("CEP", {})]
        shown = (state.get(element) for element in hits[:limit])
        return wire.ProbeOutput(
            found=bool(hits),
            negative_cached=False,
            search_exhaustive=len(hits) <= limit,
            hits=tuple(_hit(element, terms) for element in shown if element is not None),
        )

    def _answer(self, space_id: str, question: Question) -> Answer:
        state, now = self._spaces.load(space_id), self._clock.now()
        vectors = self._vectors
        if vectors is None or vectors.model is None:
            return answer(state, question, now)
        return answer(
            state, question, now, lambda text: vectors.nearest(state, text, deadline=now + EMBEDDING_MS)
        )

    def _note(self, caller: Caller, space_id: str, question: Question, found: Answer) -> int | None:
        """Keep the question and its answer as a conversation of the collection `recall`.

        An anonymous reader of a public space writes nothing, this record included: reading must not cost the owner
        a row, and nobody could be asked about it.
        """
        if caller.kind == "anonymous":
            return None
        cited = {name for line in found.cited for name in (line.entity, line.source) if name}
        row: Row = {"status": "completed", "answer": found.text, CITES: " ".join(sorted(cited)) or None}
        if len(question.query) > _KEPT_QUERY:
            question = msgspec.structs.replace(question, query=question.query[:_KEPT_QUERY] + "…")
        return self._conversations.note(caller, space_id, "recall", msgspec.to_builtins(question), row)


def _citation(line: Line) -> wire.Memory:
    return wire.Memory(
        entity=line.entity,
        type=line.kind,
        name=f"{line.speaker}: {line.text}",
        confidence=line.confidence,
        source=line.source,
        created_at=format_instant(line.at),
    )


def _hit(element: AnyElement, terms: list[str]) -> wire.Memory:
    """A probe's hit in the citation's shape."""
    text, kind = "", kind_of(element.id)
    source = None
    at = element.system.created_at
    if isinstance(element, Evidence):
        text, kind_name = best_passage(text_of(element.payload.inline), tuple(terms)), element.evidence_class
        at = element.observed_at or at
        source = next(iter(element.source), None)
    elif isinstance(element, Concept):
        text, kind_name = (
            element.name or str(element.attributes.get("summary", "")),
            local_name(element.schema_ref),
        )
    elif isinstance(element, Proposition) and isinstance(element.object, Literal):
        text, kind_name = str(element.object.value), local_name(element.predicate_ref)
    else:
        kind_name = kind
    return wire.Memory(
        entity=element.id, type=kind_name, name=text or None, source=source, created_at=format_instant(at)
    )
