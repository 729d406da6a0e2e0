"""Migration from KIP 1.x: a page of an old graph into a space, or the report of what that would be (KIP §103).

What lives here: the use case. What must never live here: what an old field means (`core.migration`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.migration.legacy import MigrationInput, check_input
from core.migration.report import Report
from core.migration.write import migrate
from core.model.instants import Instant
from core.ports import Clock
from core.service.callers import check_draft, check_held, standing
from core.service.commit import Commits
from core.service.spaces import Spaces
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft


class Migration:
    """Takes over graphs of KIP 1.x. Safe to share between threads."""

    def __init__(self, clock: Clock, spaces: Spaces, commits: Commits) -> None:
        self._clock = clock
        self._spaces = spaces
        self._commits = commits

    def migrate(self, caller: Caller, space_id: str, body: MigrationInput, deadline: Instant) -> Report:
        """Take over one page in one commit, or with `dry_run` say what it would come to.

        Sending a page again changes nothing: every record is filed under its source and old identity.

        Raises:
            NoemaError: InvalidInput, PayloadTooLarge, NotFoundOrNotVisible, or as `Commits.commit`.
        """
        check_input(body)
        if body.dry_run:
            draft = self._draft(caller, self._spaces.load(space_id))
            report = migrate(draft, body)
            _check(caller, draft)
            return report

        def decide(state: SpaceState) -> Proposal:
            draft = self._draft(caller, state)
            report = migrate(draft, body)
            passed = _check(caller, draft)
            delta = draft.finish({"migration": body.source, **passed})
            return Proposal(delta, msgspec.to_builtins(report))

        outcome = self._commits.commit(space_id, decide, deadline=deadline).outcome
        return msgspec.convert(outcome, Report)

    def _draft(self, caller: Caller, state: SpaceState) -> Draft:
        now = max(self._clock.now(), state.at)
        return Draft(state, now=now, origin=caller.origin, transaction_class="import")


def _check(caller: Caller, draft: Draft) -> dict[str, Any]:
    """Let a page pass, or refuse it: what it writes, and the names it brings, which are a change of the schema."""
    passed = check_draft(caller, draft, draft.now)
    if draft.meta.schema != draft.state.meta.schema:
        check_held(standing(caller, draft.state, draft.now), "manage_schema")
    return passed
