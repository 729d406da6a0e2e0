"""How a change of facts becomes one commit: the package in force, the retry key, the facts that a text names.

What lives here: the one way from a use case of `core.service.facts` to the log. What must never live here: what
a change means (`core.facts.writing`). Facts of an exact text are found in the namespace in memory and looked at
again inside the transaction, so a fact that was retired or erased meanwhile is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.facts import writing
from core.facts.ulid import CHANCE_BYTES
from core.facts.values import Fact
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Clock, Entropy
from core.protocol.canonical import digest_of
from core.schema.environment import set_active_packages
from core.schema.library import FACTS_REF
from core.service.callers import check_draft, shows, standing
from core.service.commit import Commits
from core.service.fact_reading import Namespaces
from core.service.values import Caller, Fence, Idempotency, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft

MAX_TARGETS: Final = 500  # facts changed in one commit; of more copies of a text the rest follows in others


class Writer:
    """Commits changes of facts. Safe to share between threads."""

    def __init__(self, clock: Clock, entropy: Entropy, *, commits: Commits, namespaces: Namespaces) -> None:
        self._clock = clock
        self._entropy = entropy
        self._commits = commits
        self._namespaces = namespaces

    def over(self, namespaces: Namespaces) -> Writer:
        """The same over other namespaces."""
        return Writer(self._clock, self._entropy, commits=self._commits, namespaces=namespaces)

    def chance(self) -> bytes:
        """Random bytes for the ids of one request."""
        return self._entropy.token(CHANCE_BYTES)

    def commit(
        self,
        caller: Caller,
        space_id: str,
        deadline: Instant,
        request: dict[str, Any],
        decide: Callable[[Draft], Json],
        *,
        key: str | None = None,
        fence: Fence | None = None,
    ) -> Json:
        """Commit what `decide` writes; its answer, or the first one's where the retry key was used before.

        Args:
            caller: who asks.
            space_id: the space.
            deadline: how long to try (ms).
            request: what was asked, as JSON: its operation is recorded, and its digest tells one use of a key
                from another.
            decide: writes into the draft and returns the answer as a JSON value; runs again after a conflict.
            key: the retry key.
            fence: the lease the work is done under.

        Raises:
            NoemaError: what `decide` raises, or as `Commits.commit`.
        """
        self._ensure_package(caller, space_id, deadline)

        def attempt(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self._clock.now(), origin=caller.origin)
            answer = decide(draft)
            passed = check_draft(caller, draft, draft.now)
            return Proposal(draft.finish({"operation": f"facts.{request['do']}", **passed}), answer)

        done = self._commits.commit(
            space_id, attempt, deadline=deadline, idempotency=_retry(caller, key, request), fence=fence
        )
        if done.replayed and done.outcome is None:
            raise NoemaError("NotFoundOrNotVisible", "what this request wrote has been erased since")
        if done.replayed:
            self._check_shown(caller, space_id, done.outcome)
        return done.outcome

    def _check_shown(self, caller: Caller, space_id: str, outcome: Json) -> None:
        """A key is no capability: what was answered then is answered again only while it may be seen."""
        state = self._namespaces.state(space_id)
        who = standing(caller, state, self._clock.now())
        told = outcome if who is not None and isinstance(outcome, list) else []
        elements = [each["element"] for each in told if isinstance(each, dict) and "element" in each]
        if not all(shows(who, state, str(element)) for element in elements):
            raise NoemaError("NotFoundOrNotVisible", "what this request wrote has been erased since")

    def _ensure_package(self, caller: Caller, space_id: str, deadline: Instant) -> None:
        """A space made before the fact memory gets its package with a management commit, once."""

        def attempt(state: SpaceState) -> Proposal:
            if FACTS_REF in state.meta.schema.packages:
                return Proposal(None)
            draft = Draft(state, now=self._clock.now(), origin=caller.origin, transaction_class="management")
            after = set_active_packages(state.meta, [*state.meta.schema.packages, FACTS_REF])
            draft.set_meta(schema=after.schema)
            return Proposal(draft.finish({"activated": [FACTS_REF]}))

        if FACTS_REF not in self._namespaces.state(space_id).meta.schema.packages:
            self._commits.commit(space_id, attempt, deadline=deadline)

    def set_extension(self, caller: Caller, space_id: str, deadline: Instant, name: str, value: Json) -> None:
        """Change one extension of the space's protected state, with a management commit."""

        def attempt(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self._clock.now(), origin=caller.origin, transaction_class="management")
            draft.set_meta(extensions={**state.meta.extensions, name: value})
            return Proposal(draft.finish({"changed": [f"extensions.{name}"]}))

        self._commits.commit(space_id, attempt, deadline=deadline)

    # --- facts of a text

    def matching(
        self, draft: Draft, space_id: str, agent_id: str, text: str, *, retired: bool = False
    ) -> list[Fact]:
        """The facts of exactly this text as the transaction sees them, oldest first.

        Raises:
            NoemaError: `NotFoundOrNotVisible` if there is none.
        """
        with self._namespaces.current(space_id, agent_id) as (_, namespace):
            named = namespace.of_text(text, retired=retired)
        found = [fact for fact in named if retired or writing.live(draft, fact.element) is not None]
        if not found:
            raise NoemaError(
                "NotFoundOrNotVisible",
                "no live fact has exactly this text",
                hint="Recall first and give the text back byte for byte.",
                details={"member": "target"},
            )
        return found


def check_room(draft: Draft, count: int) -> None:
    """Refuse facts for which the space's tier has no room.

    Raises:
        NoemaError: `SpaceTierExceeded`, with both numbers.
    """
    held, limit = draft.state.counts.concept, draft.meta.tier.limit
    if held + count > limit:
        raise NoemaError(
            "SpaceTierExceeded",
            f"the space holds {held} nodes and its tier admits {limit}",
            details={"held": held, "limit": limit, "tier": draft.meta.tier.tier},
        )


def facts_from(answer: Json) -> tuple[Fact, ...]:
    """The facts in a commit's answer."""
    return msgspec.convert(answer, tuple[Fact, ...])


def as_answer(facts: Sequence[Fact]) -> Json:
    """Facts as a commit's answer."""
    return msgspec.to_builtins(facts)


def _retry(caller: Caller, key: str | None, request: dict[str, Any]) -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(f"facts:{caller.subject}", key, digest_of(request))
