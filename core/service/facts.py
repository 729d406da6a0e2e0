"""The fact memory's use cases: everything GrayMatter's users may do, on the log of a space.

What lives here: the one class that transports call. What must never live here: how facts are ranked
(`core.facts`) and how they stand on the log (`core.service.fact_writing`, `fact_upkeep`, `fact_reading`).
Every change is a KIP transaction on the space's log. A read never writes the log: that facts were recalled is
noted beside it, in rows that may be lost and can change nothing but a count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.facts import labels, records, writing
from core.facts.corpus import Arrays
from core.facts.extract import facts_of, is_extracted
from core.facts.recalling import Tuning, resolve, search
from core.facts.tokens import TokenizerName
from core.facts.values import (
    SHARED,
    Consolidated,
    Fact,
    FactKind,
    ImportReport,
    RecallOptions,
    Revised,
    Stats,
)
from core.facts.vocabulary import alias_text
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Clock, Entropy, Table
from core.protocol.http_types import ForgetInput
from core.service.commit import Commits
from core.service.echoes import Echoes, plain
from core.service.erasure import Erasures
from core.service.fact_access import Accesses
from core.service.fact_checkpoints import Appending
from core.service.fact_models import FactModel
from core.service.fact_reading import Namespaces
from core.service.fact_recall import FactRecall, Meanings
from core.service.fact_rounds import FactRound, FactRounds
from core.service.fact_schedule import FactSchedule
from core.service.fact_settings import SETTINGS
from core.service.fact_upkeep import Consolidation
from core.service.fact_writing import MAX_TARGETS, Writer, as_answer, check_room, facts_from
from core.service.forgetting import Forgetting
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.values import Caller
from core.transaction.draft import Draft

__all__ = ["Consolidated", "Facts", "ImportReport", "Revised"]

_ECHOED: Final = 16  # facts among which the one that a text comes from is looked for


class Facts(FactRecall, Appending):
    """Facts of all spaces. Safe to share between threads.

    Every method takes the verified caller and the space; `deadline` (ms) bounds how long a write may try. Common
    errors: `InvalidInput` (an empty or overlong text, an unknown label, a weight outside 0 to 0.5),
    `PayloadTooLarge`, `NotFoundOrNotVisible` (no such space, or no live fact of that text), `ServiceUnavailable`,
    `SerializationConflict`, `OutcomeUnknown`. All input is checked before any effect.

    Args:
        table, clock, entropy: the ports.
        spaces, commits, leases, erasures, forgetting: how spaces are read, written and erased from.
        model: for consolidation and extraction; None: nothing is ever summarised, and a text is kept whole.
        meanings: an index of vectors; None: words and age alone rank.
        echoes: knows what was served lately; None: nobody notes, and nothing is an echo.
        schedule: when facts are consolidated by themselves; None: only when asked.
        tokenizer: how texts become tokens; `ascii` reproduces GrayMatter's published numbers.
        arrays: loads numpy, for namespaces of many facts; None: they are ranked without, only slower.
    """

    def __init__(
        self,
        table: Table,
        clock: Clock,
        entropy: Entropy,
        *,
        spaces: Spaces,
        commits: Commits,
        leases: Leases,
        erasures: Erasures,
        forgetting: Forgetting,
        model: FactModel | None = None,
        meanings: Meanings | None = None,
        echoes: Echoes | None = None,
        schedule: FactSchedule | None = None,
        tokenizer: TokenizerName = "unicode",
        arrays: Arrays | None = None,
    ) -> None:
        namespaces = Namespaces(spaces, tokenizer, arrays=arrays)
        accesses = Accesses(table, clock, entropy)
        writer = Writer(clock, entropy, commits=commits, namespaces=namespaces)
        FactRecall.__init__(
            self,
            clock,
            namespaces,
            accesses,
            meanings=meanings,
            echoes=echoes,
        )
        Appending.__init__(self, namespaces, writer, schedule)
        self._entropy = entropy
        self._forgetting = forgetting
        self._model = model
        self._consolidation = Consolidation(
            clock,
            entropy,
            leases=leases,
            erasures=erasures,
            namespaces=namespaces,
            accesses=accesses,
            writer=writer,
            model=model,
        )
        self._rounds = None
        if schedule is not None:
            self._rounds = FactRounds(
                clock,
                namespaces=namespaces,
                accesses=accesses,
                schedule=schedule,
                consolidation=self._consolidation,
            )

    def seen_by(self, caller: Caller) -> Facts:
        """The same facts as one caller may see them; every transport asks this one."""
        seen = copy(self)
        seen._namespaces = self._namespaces.seen_by(caller, self._clock)  # noqa: SLF001 - a copy of this very object
        seen._writer = self._writer.over(seen._namespaces)  # noqa: SLF001
        return seen

    # --- writing

    def remember(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        text: str,
        *,
        deadline: Instant,
        confidence: str | None = None,
        key: str | None = None,
    ) -> Fact:
        """Keep a text verbatim as a new fact, even if there is one like it; the exact fact committed.

        Args:
            caller: who asks.
            space_id: the space.
            deadline: as for every method.
            agent_id: the namespace; `values.SHARED` for the one that all agents share.
            text: the fact.
            confidence: a label; None stores none, which counts as inferred. An empty text is an unknown label.
            key: retry key: the same call again answers with the same fact and writes nothing.
        """
        label = "" if confidence is None else labels.check_label(confidence)
        return self._add(
            caller, space_id, agent_id, [labels.check_text(text)], deadline=deadline, key=key, label=label
        )[0]

    def remember_news(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        text: str,
        *,
        deadline: Instant,
        confidence: str | None = None,
        key: str | None = None,
    ) -> Fact | None:
        """As `remember`, but for a text that this memory served lately it writes nothing and answers None.

        An agent that recalls a text and remembers it again would make the memory confirm itself. A text that was
        forgotten since it was served is news again.
        """
        label = "" if confidence is None else labels.check_label(confidence)
        labels.check_agent(agent_id)
        texts = [labels.check_text(text)]
        echoes = self._echoes_among(space_id, agent_id, texts)
        request = {"do": "add", "news": True, "agent": agent_id, "text": text, "label": label}
        made = self._add(
            caller,
            space_id,
            agent_id,
            texts,
            deadline=deadline,
            key=key,
            label=label,
            but=echoes,
            request=request,
        )
        return made[0] if made else None

    def standing(self, space_id: str, agent_id: str, text: str) -> Fact | None:
        """The live fact that a text is, but for what quoting and layout add; the agent's own or a shared one."""
        wanted, resolved = plain(text), resolve(RecallOptions(top_k=_ECHOED), Tuning())
        for namespace_id in dict.fromkeys((agent_id, SHARED)):
            with self._namespaces.current(space_id, namespace_id) as (_, namespace):
                exact = namespace.of_text(text)
                found = exact or [each.fact for each in search(namespace, text, resolved).scored]
            for fact in found:
                if plain(fact.text) == wanted:
                    return fact
        return None

    def _echoes_among(self, space_id: str, agent_id: str, texts: Sequence[str]) -> frozenset[str]:
        """Those of the texts that were served lately and still stand, or came out of conversations."""
        if self._echoes is None:
            return frozenset()
        served = self._echoes.known_from(space_id, texts, ("", agent_id, SHARED))
        if not served or not self._namespaces.is_whole(space_id):
            return frozenset()  # what was served may have been served to somebody else
        return frozenset(
            text
            for text, scopes in served.items()
            if "" in scopes or self.standing(space_id, agent_id, text) is not None
        )

    def remember_extracted(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        answer: str,
        *,
        deadline: Instant,
        key: str | None = None,
    ) -> tuple[Fact, ...]:
        """Keep up to five facts from a text, as unverified; what this memory served lately is left out.

        A JSON array of sentences is what a model has extracted already. Of any other text the space's model is
        asked; without one, or where its answer is no such array, the text is kept whole as one fact.

        Raises:
            NoemaError: `ServiceUnavailable` if there is a model and it does not answer; nothing is kept then.
        """
        labels.check_agent(agent_id)
        labels.check_text(answer, "answer")
        asked = None
        if self._model is not None and not is_extracted(answer):
            asked = self._model.extract(space_id, answer, deadline)
        texts = [labels.check_text(text) for text in facts_of(answer, asked)]
        echoes = self._echoes_among(space_id, agent_id, texts)
        request = {"do": "extract", "agent": agent_id, "answer": answer}
        return self._add(
            caller,
            space_id,
            agent_id,
            texts,
            deadline=deadline,
            key=key,
            label="unverified",
            but=echoes,
            request=request,
        )

    def alias(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        term: str,
        equivalents: Sequence[str],
        *,
        deadline: Instant,
        key: str | None = None,
    ) -> Fact:
        """Teach the namespace that a term and its equivalents mean the same to a query."""
        text = labels.check_text(alias_text(term, equivalents), "equivalents")
        return self._add(caller, space_id, agent_id, [text], deadline=deadline, key=key, kind="alias")[0]

    def _add(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        texts: Sequence[str],
        *,
        deadline: Instant,
        key: str | None,
        label: str = "",
        kind: FactKind = "fact",
        but: Collection[str] = (),
        request: dict[str, Any] | None = None,
    ) -> tuple[Fact, ...]:
        """New facts in one commit, of all texts but some. `request` tells one use of the retry key from another."""
        labels.check_agent(agent_id)
        chance = self._writer.chance()
        fresh = [text for text in texts if text not in but]

        def decide(draft: Draft) -> Json:
            check_room(draft, len(fresh))
            return as_answer(writing.remember(draft, agent_id, fresh, chance, confidence=label, kind=kind))

        asked = {"do": "add", "agent": agent_id, "texts": list(texts), "label": label, "kind": kind}
        made = facts_from(self._writer.commit(caller, space_id, deadline, request or asked, decide, key=key))
        if made:
            self._written(space_id)
        return made

    def revise(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        target: str,
        text: str,
        *,
        deadline: Instant,
        confidence: str | None = None,
        key: str | None = None,
    ) -> Revised:
        """Replace every live fact whose text is exactly `target` by one new fact.

        Without a label the new one gets the lowest of its targets' labels, and at most inferred. It is not pinned.

        Raises:
            NoemaError: `NotFoundOrNotVisible` if no live fact has that text. If the replacement was committed
                but not everything could be retired: the failure's own code, with `details.fact_id` (the
                replacement), `details.retired` and `details.live` (what still is).
        """
        labels.check_agent(agent_id)
        labels.check_text(target, "target")
        labels.check_text(text)
        label = None if confidence is None else labels.check_label(confidence)
        chance = self._writer.chance()

        def decide(draft: Draft) -> Json:
            found = self._writer.matching(draft, space_id, agent_id, target)
            chosen = labels.conservative(fact.confidence for fact in found) if label is None else label
            made = writing.remember(draft, agent_id, [text], chance, confidence=chosen, kind=found[0].kind)[0]
            for fact in found[:MAX_TARGETS]:
                writing.retire(draft, fact.element, made.element)
            return as_answer([made, *found])

        request = {"do": "revise", "agent": agent_id, "target": target, "text": text, "label": label}
        made, *found = facts_from(self._writer.commit(caller, space_id, deadline, request, decide, key=key))
        self._written(space_id)
        done = [fact.id for fact in found[:MAX_TARGETS]]
        try:
            for rest in _portions(found[MAX_TARGETS:]):
                self._retire(caller, space_id, agent_id, rest, deadline, replacement=made.element)
                done += [fact.id for fact in rest]
        except NoemaError as error:
            live = [fact.id for fact in found if fact.id not in done]
            raise NoemaError(
                error.code,
                f"the replacement {made.id} is committed, but {len(live)} old facts are still live: {error.message}",
                hint="Forget the old text; do not send the revision again.",
                details={"fact_id": made.id, "retired": done, "live": live},
                retry_after_ms=error.retry_after_ms,
            ) from error
        return Revised(fact=made, retired=tuple(done))

    def forget(
        self, caller: Caller, space_id: str, agent_id: str, target: str, *, deadline: Instant
    ) -> tuple[str, ...]:
        """Retire every live fact whose text is exactly `target`; their ids. History keeps them.

        Raises:
            NoemaError: `NotFoundOrNotVisible` if there is none.
        """
        labels.check_agent(agent_id)
        labels.check_text(target, "target")

        def decide(draft: Draft) -> Json:
            found = self._writer.matching(draft, space_id, agent_id, target)[:MAX_TARGETS]
            for fact in found:
                writing.retire(draft, fact.element, None)
            return as_answer(found)

        request = {"do": "forget", "agent": agent_id, "target": target}
        done: list[str] = []
        while True:
            try:
                found = facts_from(self._writer.commit(caller, space_id, deadline, request, decide))
            except NoemaError as error:
                if done and error.code == "NotFoundOrNotVisible":
                    return tuple(done)
                raise
            done += [fact.id for fact in found]
            if len(found) < MAX_TARGETS:
                return tuple(done)

    def _retire(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        facts: Sequence[Fact],
        deadline: Instant,
        *,
        replacement: str,
    ) -> None:
        """Retire what is still live of some facts, in one commit."""

        def decide(draft: Draft) -> Json:
            return [fact.id for fact in facts if writing.retire(draft, fact.element, replacement)]

        request = {"do": "retire", "agent": agent_id}
        self._writer.commit(caller, space_id, deadline, request, decide)

    def delete(self, caller: Caller, space_id: str, agent_id: str, fact_id: str) -> bool:
        """Erase one fact physically, from the present and from all history. False if there is none: no error."""
        labels.check_agent(agent_id)
        fact = self.get(space_id, agent_id, fact_id)
        if fact is None:
            return False
        return self._erase(caller, space_id, fact.element)

    def delete_checkpoint(self, caller: Caller, space_id: str, agent_id: str, checkpoint_id: str) -> bool:
        """Erase one checkpoint physically, from the present and from all history. False if there is none: no error."""
        found = self._checkpoint(space_id, agent_id, checkpoint_id)
        return found is not None and self._erase(caller, space_id, found.id)

    def _erase(self, caller: Caller, space_id: str, element_id: str) -> bool:
        owner = self._entropy.token(12).hex()
        wish = ForgetInput(entities=[element_id])
        report = self._forgetting.forget(caller, space_id, wish, owner=owner).entities[0]
        if report.error is not None:
            raise NoemaError("LegalHoldConflict", f"it stays: {report.error}")
        return report.existed

    def delete_best(
        self, caller: Caller, space_id: str, agent_id: str, query: str, *, confirm: bool
    ) -> str | None:
        """Erase the best match of a query; its id, or None if the namespace is empty.

        Raises:
            NoemaError: `InvalidInput` without `confirm`: the nearest match is not always the one meant.
        """
        if not confirm:
            raise NoemaError(
                "InvalidInput",
                "deleting the best match needs confirm: true",
                hint="Recall first, and delete by id.",
                details={"member": "confirm"},
            )
        found = self._recall(space_id, agent_id, query, resolve(RecallOptions(top_k=1), Tuning()))[0].facts
        if not found or not self.delete(caller, space_id, agent_id, found[0].id):
            return None
        return found[0].id

    def pin(
        self, caller: Caller, space_id: str, agent_id: str, target: str, *, deadline: Instant
    ) -> tuple[str, ...]:
        """Keep every live fact of exactly this text from decay and pruning; their ids."""
        return self._mark(caller, space_id, agent_id, target, deadline, pinned=True)

    def unpin(
        self, caller: Caller, space_id: str, agent_id: str, target: str, *, deadline: Instant
    ) -> tuple[str, ...]:
        """Let every fact of exactly this text, retired ones included, decay again; their ids."""
        return self._mark(caller, space_id, agent_id, target, deadline, pinned=False)

    def _mark(
        self, caller: Caller, space_id: str, agent_id: str, target: str, deadline: Instant, *, pinned: bool
    ) -> tuple[str, ...]:
        """Pin or unpin every fact of a text."""
        labels.check_agent(agent_id)
        labels.check_text(target, "target")
        observed = self._observe(space_id, agent_id)

        def decide(draft: Draft) -> Json:
            found = self._writer.matching(draft, space_id, agent_id, target, retired=not pinned)
            for fact in found[:MAX_TARGETS]:
                if pinned:
                    writing.pin(draft, observed.of(fact))
                else:
                    writing.unpin(draft, fact.element)
            return [fact.id for fact in found[:MAX_TARGETS]]

        request = {"do": "pin" if pinned else "unpin", "agent": agent_id, "target": target}
        done = self._writer.commit(caller, space_id, deadline, request, decide)
        return msgspec.convert(done, tuple[str, ...])

    def link(
        self, caller: Caller, space_id: str, agent_id: str, source: str, target: str, *, deadline: Instant
    ) -> str:
        """Link two things by name in the knowledge graph; the id of the Proposition. Linking again changes nothing."""
        labels.check_agent(agent_id)
        labels.check_text(source)
        labels.check_text(target, "target")

        def decide(draft: Draft) -> Json:
            return writing.link(draft, source, target)

        request = {"do": "link", "agent": agent_id, "source": source, "target": target}
        return str(self._writer.commit(caller, space_id, deadline, request, decide))

    # --- reading (recalls: `FactRecall`)

    def facts(
        self, space_id: str, agent_id: str, *, retired: bool = True, limit: int | None = None
    ) -> tuple[Fact, ...]:
        """Every fact and alias of a namespace, newest first, ties by id; empty if there is no such namespace."""
        labels.check_agent(agent_id)
        with self._namespaces.current(space_id, agent_id) as (_, namespace):
            found = [fact for fact in namespace.newest_first() if retired or fact.live]
        observed = self._observe(space_id, agent_id)
        return tuple(observed.of(fact) for fact in found[:limit])

    def get(self, space_id: str, agent_id: str, fact_id: str) -> Fact | None:
        """One fact by its id, retired or not; None if the namespace has none."""
        labels.check_agent(agent_id)
        with self._namespaces.current(space_id, agent_id) as (_, namespace):
            found = namespace.facts.get(fact_id)
        return None if found is None else self._observe(space_id, agent_id).of(found)

    def agents(self, space_id: str) -> tuple[str, ...]:
        """Every namespace that was ever written to, in order."""
        return tuple(records.namespaces(self._namespaces.view(space_id)))

    def stats(self, space_id: str, agent_id: str) -> Stats:
        """What a namespace holds; who may not see all of the space is told of what they see alone."""
        whole = self._namespaces.is_whole(space_id)
        facts = self.facts(space_id, agent_id)
        observed = self._observe(space_id, agent_id)
        times = [fact.created_at for fact in facts]
        live = [fact for fact in facts if fact.live]
        return Stats(
            agent_id=agent_id,
            fact_count=len(facts),
            oldest_at=min(times, default=None),
            newest_at=max(times, default=None),
            avg_weight=sum(fact.weight for fact in facts) / len(facts) if facts else 0.0,
            live=len(live),
            pinned=sum(fact.pinned for fact in live),
            aliases=sum(fact.kind == "alias" for fact in live),
            consolidations=observed.consolidations if whole else 0,
            facts_consumed=observed.consumed if whole else 0,
            recalls=observed.recalls if whole else 0,
        )

    # --- the space's settings

    def tune(self, caller: Caller, space_id: str, tuning: Tuning, *, deadline: Instant) -> Tuning:
        """Set it, with a management commit.

        Raises:
            NoemaError: `InvalidInput` for a weight or floor out of range.
        """
        for name in ("consolidate_from", "consolidate_above"):
            labels.check_count(getattr(tuning, name), name)
        labels.check_prefix(tuning.learn_prefix)
        labels.check_weight(tuning.confidence_weight)
        labels.check_share(tuning.min_relevance, "min_relevance")
        for name in ("vector", "keyword", "recency"):
            labels.check_share(getattr(tuning.signals, name), f"signals.{name}", most=10.0)
        self._namespaces.check_whole(space_id, "manage_policy")
        self._writer.set_extension(caller, space_id, deadline, SETTINGS, msgspec.to_builtins(tuning))
        return tuning

    # --- upkeep

    def consolidate(self, caller: Caller, space_id: str, agent_id: str, *, deadline: Instant) -> Consolidated:
        """Decay, summarise (only with a model), prune. At most one runs in a space at a time."""
        labels.check_agent(agent_id)
        self._namespaces.check_whole(space_id, "maintain")
        return self._consolidation.run(caller, space_id, agent_id, deadline)

    def consolidate_due(self, space_id: str, deadline: Instant) -> FactRound:
        """Consolidate the namespaces of a space that are due, if its clock has run out; for the worker.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`, or as `Commits.commit`.
        """
        return FactRound(ran=False) if self._rounds is None else self._rounds.run(space_id, deadline)


def _portions(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    for start in range(0, len(facts), MAX_TARGETS):
        yield facts[start : start + MAX_TARGETS]
