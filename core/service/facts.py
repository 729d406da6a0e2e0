"""The fact memory's use cases: everything GrayMatter's users may do, on the log of a space.

What lives here: the one class that transports call. What must never live here: how facts are ranked
(`core.facts`) and how they stand on the log (`core.service.fact_writing`, `fact_upkeep`, `fact_reading`).
Every change is a KIP transaction on the space's log. A read never writes the log: that facts were recalled is
noted beside it, in rows that may be lost and can change nothing but a count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from core.errors import NoemaError
from core.facts.values import Batch, Checkpoint, Fact, RecallOptions, Recalled, Stats
from core.model.elements import Json
from core.model.instants import Instant
from core.service.values import Caller


class Revised(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement, and the ids of what it replaces."""

    fact: Fact
    retired: tuple[str, ...]


class Consolidated(msgspec.Struct, frozen=True, kw_only=True):
    """What a consolidation did; `ran` is False if another one was running, and then nothing was done."""

    ran: bool
    decayed: int = 0
    consumed: int = 0
    pruned: int = 0
    summary: Fact | None = None
    problem: str | None = None  # why there is no summary although one was wanted


class Facts:
    """Facts of all spaces. Safe to share between threads.

    Every method takes the verified caller and the space; `deadline` (ms) bounds how long a write may try. Common
    errors: `InvalidInput` (an empty or overlong text, an unknown label, a weight outside 0 to 0.5),
    `PayloadTooLarge`, `NotFoundOrNotVisible` (no such space, or no live fact of that text), `ServiceUnavailable`,
    `SerializationConflict`, `OutcomeUnknown`. All input is checked before any effect.
    """

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
            caller, space_id, deadline: as for every method.
            agent_id: the namespace; `values.SHARED` for the one that all agents share.
            text: the fact.
            confidence: a label; None stores none, which counts as inferred. An empty text is an unknown label.
            key: retry key: the same call again answers with the same fact and writes nothing.
        """
        raise _missing()

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
        """Keep up to five facts from a model's answer (a JSON array of sentences), as unverified.

        An answer that is no such array is kept whole as one fact.
        """
        raise _missing()

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
        raise _missing()

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
        raise _missing()

    def forget(
        self, caller: Caller, space_id: str, agent_id: str, target: str, *, deadline: Instant
    ) -> tuple[str, ...]:
        """Retire every live fact whose text is exactly `target`; their ids. History keeps them.

        Raises:
            NoemaError: `NotFoundOrNotVisible` if there is none.
        """
        raise _missing()

    def delete(self, caller: Caller, space_id: str, agent_id: str, fact_id: str) -> bool:
        """Erase one fact physically, from the present and from all history. False if there is none: no error."""
        raise _missing()

    def delete_best(
        self, caller: Caller, space_id: str, agent_id: str, query: str, *, confirm: bool
    ) -> str | None:
        """Erase the best match of a query; its id, or None if the namespace is empty.

        Raises:
            NoemaError: `InvalidInput` without `confirm`: the nearest match is not always the one meant.
        """
        raise _missing()

    def pin(
        self, caller: Caller, space_id: str, agent_id: str, target: str, *, deadline: Instant
    ) -> tuple[str, ...]:
        """Keep every live fact of exactly this text from decay and pruning; their ids."""
        raise _missing()

    def unpin(
        self, caller: Caller, space_id: str, agent_id: str, target: str, *, deadline: Instant
    ) -> tuple[str, ...]:
        """Let every fact of exactly this text, retired ones included, decay again; their ids."""
        raise _missing()

    def link(
        self, caller: Caller, space_id: str, agent_id: str, source: str, target: str, *, deadline: Instant
    ) -> str:
        """Link two things by name in the knowledge graph; the id of the Proposition. Linking again changes nothing."""
        raise _missing()

    # --- reading

    def recall(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        query: str,
        options: RecallOptions = RecallOptions(),  # noqa: B008 - frozen
    ) -> Recalled:
        """The facts of a namespace that fit a query best; `values.SHARED` recalls the shared ones."""
        raise _missing()

    def recall_all(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        query: str,
        options: RecallOptions = RecallOptions(),  # noqa: B008 - frozen
    ) -> Recalled:
        """The agent's facts and the shared ones, each ranked by itself and the two merged by rank."""
        raise _missing()

    def recall_batch(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        queries: Sequence[str],
        options: RecallOptions = RecallOptions(),  # noqa: B008 - frozen
    ) -> Batch:
        """Several queries under one policy, each as by itself, and merged. Blank queries are skipped."""
        raise _missing()

    def facts(
        self, space_id: str, agent_id: str, *, retired: bool = True, limit: int | None = None
    ) -> tuple[Fact, ...]:
        """Every fact and alias of a namespace, newest first, ties by id; empty if there is no such namespace."""
        raise _missing()

    def get(self, space_id: str, agent_id: str, fact_id: str) -> Fact | None:
        """One fact by its id, retired or not; None if the namespace has none."""
        raise _missing()

    def agents(self, space_id: str) -> tuple[str, ...]:
        """Every namespace that was ever written to, in order."""
        raise _missing()

    def stats(self, space_id: str, agent_id: str) -> Stats:
        """What a namespace holds."""
        raise _missing()

    # --- upkeep

    def consolidate(self, caller: Caller, space_id: str, agent_id: str, *, deadline: Instant) -> Consolidated:
        """Decay, summarise (only with a summarizer), prune. At most one runs in a space at a time."""
        raise _missing()

    # --- checkpoints

    def save_checkpoint(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        *,
        deadline: Instant,
        state: Mapping[str, Json] | None = None,
        messages: Sequence[Mapping[str, Json]] = (),
        metadata: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Checkpoint:
        """Save a session's state."""
        raise _missing()

    def latest_checkpoint(self, space_id: str, agent_id: str) -> Checkpoint | None:
        """The checkpoint saved last; None if there is none."""
        raise _missing()

    def checkpoints(self, space_id: str, agent_id: str, *, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Checkpoints, the newest first."""
        raise _missing()


def _missing() -> NoemaError:
    return NoemaError("NotImplementedYet", "the fact memory is being built")
