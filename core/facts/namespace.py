"""`Namespace`: all facts of one agent in memory, with the corpora and the vocabulary that recalls need.

What lives here: which facts may be ranked (live, no aliases, at or above a level of confidence), what aliases
mean, and which facts a fact replaces. What must never live here: loading (`core.service.fact_reading`). It is
brought up to date element by element, and its owner holds a lock while it is read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from core.facts import labels, records
from core.facts.corpus import Arrays, Corpus, Source
from core.facts.tokens import TOKENIZERS, TokenizerName
from core.facts.values import RETIRED_BY_AGENT, Fact
from core.facts.vocabulary import alias_map, expand
from core.model.elements import AnyElement, Concept
from core.state.view import View


class Namespace:
    """The facts of one agent.

    Args:
        agent_id: whose.
        tokenizer: how texts become tokens.
        concept: the id of the namespace's Concept; None as long as nothing was written to it.
        arrays: as `Corpus` takes it.
    """

    def __init__(
        self,
        agent_id: str,
        tokenizer: TokenizerName,
        concept: str | None = None,
        arrays: Arrays | None = None,
    ) -> None:
        self._arrays = arrays
        self.view: View | None = None  # the state it stands at, set by its owner; its text index is used
        self.agent_id = agent_id
        self.tokenizer: TokenizerName = tokenizer
        self.concept = concept
        self.facts: dict[str, Fact] = {}
        self._ids: dict[str, str] = {}  # element id -> fact id
        self._replaced: dict[str, set[str]] = {}  # element id of a fact -> fact ids that it replaces
        self._replacement: dict[str, str] = {}  # fact id -> element id of its replacement
        self._corpora: dict[int, Corpus] = {}
        self._aliases: dict[str, list[str]] | None = None

    # --- keeping up

    def fill(self, elements: Iterable[Concept]) -> None:
        """Take in all facts at once."""
        listed = list(elements)
        self._ids.update((element.id, element.key or element.id) for element in listed)
        for element in listed:
            self._take(element)

    def update(self, elements: Iterable[AnyElement]) -> None:
        """Take in elements as they now are; those that are no facts of this namespace are passed over."""
        ours = [
            element
            for element in elements
            if isinstance(element, Concept) and (element.id in self._ids or self._mine(element))
        ]
        for element in ours:
            self.drop(element.id)
        standing = [element for element in ours if self._mine(element)]
        self._ids.update((element.id, element.key or element.id) for element in standing)
        for element in standing:
            fact = self._take(element)
            if fact.kind == "fact" and fact.live:
                for level, corpus in self._corpora.items():
                    if labels.level(fact.confidence) >= level:
                        corpus.add(fact)

    def drop(self, element_id: str) -> None:
        """Forget an element."""
        fact_id = self._ids.pop(element_id, None)
        if fact_id is None:
            return
        fact = self.facts.pop(fact_id)
        if fact.kind == "alias":
            self._aliases = None
        for corpus in self._corpora.values():
            corpus.remove(fact_id)
        target = self._replacement.pop(fact_id, None)
        if target is not None:
            self._replaced[target].discard(fact_id)
        for replaced in self._replaced.get(element_id, ()):
            gone = msgspec.structs.replace(self.facts[replaced], superseded_by=RETIRED_BY_AGENT)
            self.facts[replaced] = gone

    def _mine(self, element: Concept) -> bool:
        return (
            element.schema_ref == records.FACT
            and records.standing(element)
            and records.namespace_of(element) == self.concept
        )

    def _take(self, element: Concept) -> Fact:
        fact = records.read_fact(element, self.agent_id, self._ids)
        self.facts[fact.id] = fact
        if fact.kind == "alias":
            self._aliases = None
        target = records.replacement(element)
        if target is not None:
            self._replaced.setdefault(target, set()).add(fact.id)
            self._replacement[fact.id] = target
        return fact

    # --- looking

    def corpus(self, level: int = 0) -> Corpus:
        """The facts that may be ranked: live, no aliases, of at least a level of confidence."""
        found = self._corpora.get(level)
        if found is None:
            found = self._corpora[level] = Corpus(TOKENIZERS[self.tokenizer], self._arrays, self._source())
            found.fill(
                fact
                for fact in self.facts.values()
                if fact.kind == "fact" and fact.live and labels.level(fact.confidence) >= level
            )
        return found

    def _source(self) -> Source | None:
        """The state's own text index, where it speaks the same tokens."""
        return _Index(self) if self.tokenizer == "unicode" and self.view is not None else None

    def id_of(self, element_id: str) -> str | None:
        """The fact that an element is, or None."""
        return self._ids.get(element_id)

    def expanded(self, query: str) -> tuple[list[str], list[str]]:
        """A query's tokens, and the same widened by the live aliases."""
        tokenize = TOKENIZERS[self.tokenizer]
        if self._aliases is None:
            live = (fact for fact in self.facts.values() if fact.kind == "alias" and fact.live)
            ordered = sorted(live, key=lambda fact: (fact.created_at, fact.id))
            self._aliases = alias_map((fact.text for fact in ordered), tokenize)
        tokens = tokenize(query)
        return tokens, expand(tokens, self._aliases)

    def supersedes(self, fact: Fact) -> tuple[str, ...]:
        """The ids of all facts that a fact replaces, through any number of steps."""
        found: dict[str, None] = {}
        waiting = [fact.element]
        while waiting:
            for fact_id in sorted(self._replaced.get(waiting.pop(), ())):
                if fact_id not in found and fact_id != fact.id:
                    found[fact_id] = None
                    waiting.append(self.facts[fact_id].element)
        return tuple(found)

    def newest_first(self) -> list[Fact]:
        """Every fact and alias, newest first, ties by id."""
        return sorted(self.facts.values(), key=lambda fact: (-fact.created_at, fact.id))

    def of_text(self, text: str, *, retired: bool = False) -> Sequence[Fact]:
        """The facts of exactly this text, oldest first; retired ones only if asked for."""
        found = [fact for fact in self.facts.values() if fact.text == text and (retired or fact.live)]
        return sorted(found, key=lambda fact: (fact.created_at, fact.id))


class _Index:
    """The text index of the state that a namespace stands at."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def having(self, token: str) -> Iterable[tuple[str, int]]:
        """The elements that have a token, and how often."""
        view = self._namespace.view
        return () if view is None else view.word(token)

    def length(self, element_id: str) -> int:
        """How many tokens an element has."""
        view = self._namespace.view
        return 0 if view is None else view.text_length(element_id)
