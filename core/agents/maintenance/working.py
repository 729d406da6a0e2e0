"""Working sleep tasks off: who has one, for how long, and those that rules alone can end.

What lives here: the lease of a task, and what ends a task without anybody's judgement. What must never live here: what
a model makes of one (`core.agents.maintenance.rules` says what it may). Whoever works a task holds it for five minutes,
taken on the version that they read; a task whose holder died is free again when that time is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from core.agents.maintenance.decay import SLEEP_TASK
from core.agents.maintenance.selftest import is_findable
from core.agents.maintenance.tasks import ABOUT, conflicting
from core.errors import NoemaError
from core.model.elements import Activity, Assertion, Concept
from core.model.instants import Instant, format_instant, parse_instant
from core.schema.environment import Environment
from core.state.indexes import made_key, type_key
from core.state.view import View
from core.transaction.draft import Draft

LEASE_MS: Final = 5 * 60 * 1000  # contract §6.4
LOOKED_AT: Final = 300  # the newest tasks, read for one look
OWNER: Final = "lease_owner"
UNTIL: Final = "lease_until"
ENDS: Final = frozenset({"completed", "cancelled", "failed", "blocked"})
"""States in which nobody works a task; a blocked one waits for something and may be taken up again."""
_FREE: Final = frozenset({"pending", "blocked"})


class Closed(msgspec.Struct, frozen=True):
    """What a look over the tasks came to: those that were ended, and how many wait for somebody."""

    closed: tuple[str, ...]
    waiting: int


def open_tasks(view: View, now: Instant) -> Iterator[Concept]:
    """Tasks that may be taken up now, the newest first."""
    for element in islice(reversed(view.find(type_key(SLEEP_TASK))), LOOKED_AT):
        task = view.get(element)
        if isinstance(task, Concept) and task.system.state == "active" and is_free(task, now):
            yield task


def is_free(task: Concept, now: Instant) -> bool:
    """Whether nobody works a task, it has not ended, and its time has come."""
    status = task.attributes.get("status")
    if status == "running":
        return _instant(task, UNTIL) <= now
    return status in _FREE and max(_instant(task, "not_before"), _instant(task, "review_after")) <= now


def holds(task: Concept, owner: str, now: Instant) -> bool:
    """Whether a run holds a task."""
    mine = task.attributes.get("status") == "running" and task.attributes.get(OWNER) == owner
    return mine and _instant(task, UNTIL) > now


def lease(draft: Draft, element_id: str, version: int, owner: str) -> Concept:
    """Take a task up for five minutes; the task as it is then. Who holds it already may take it again.

    Raises:
        NoemaError: `NotFoundOrNotVisible` for what is no task, `VersionConflict` for another version than the current
            one, `Busy` if somebody else works it, `PreconditionFailed` if it has ended or is not due.
    """
    task = draft.get(element_id)
    if not isinstance(task, Concept) or task.schema_ref != SLEEP_TASK or task.system.state != "active":
        raise NoemaError("NotFoundOrNotVisible", f"there is no SleepTask {element_id[:40]}")
    current = task.system.version
    if version != current:
        raise NoemaError(
            "VersionConflict",
            f"the task is at version {current}",
            details={"expected": version, "actual": current},
        )
    if not holds(task, owner, draft.now) and not is_free(task, draft.now):
        if task.attributes.get("status") == "running":
            raise NoemaError("Busy", "somebody else works this task", retry_after_ms=LEASE_MS)
        raise NoemaError("PreconditionFailed", "the task has ended, or its time has not come")
    until = format_instant(draft.now + LEASE_MS)
    taken = {**task.attributes, "status": "running", OWNER: owner, UNTIL: until}
    return draft.change(task, attributes=taken)


def close_tasks(draft: Draft, env: Environment) -> Closed:
    """End the tasks that have nothing left to do; all others wait, and can be seen to."""
    closed: list[str] = []
    waiting = 0
    for task in list(open_tasks(draft.view, draft.now)):
        reason = _over(draft, task, env)
        if reason is None:
            waiting += 1
            continue
        ended = {
            "status": "completed",
            "completed_at": format_instant(draft.now),
            "outcome": reason,
            OWNER: None,
            UNTIL: None,
        }
        draft.change(task, attributes={**task.attributes, **ended})
        closed.append(task.id)
    return Closed(tuple(closed), waiting)


def _over(draft: Draft, task: Concept, env: Environment) -> str | None:
    """Why nothing is left to do, or None."""
    about = [ref.target for ref in task.structural if ref.field == ABOUT]
    if about and not any(_is_there(draft.view, each) for each in about):
        return "what it was about is no more"
    kind = task.attributes.get("task_class")
    if kind == "review_conflict":
        claims = list(_claims_of(draft.view, task.id))
        if claims and not any(conflicting(draft.view, env, claim.proposition) for claim in claims):
            return "the claims no longer contradict each other"
    if kind == "consolidate" and task.attributes.get("source") == "memory_self_test":
        concepts = [found for each in about if isinstance(found := draft.get(each), Concept)]
        if concepts and all(is_findable(draft.view, each) for each in concepts):
            return "it is found now"
    if kind == "resolve_identity" and len(about) > 1 and len(set(map(draft.canonical, about))) == 1:
        return "they are one already"
    return None


def _is_there(view: View, element_id: str) -> bool:
    found = view.get(element_id)
    return found is not None and found.system.state in ("active", "merged")


def _claims_of(view: View, task_id: str) -> Iterable[Assertion]:
    """The claims that a task was filed about, by the Activity that filed it."""
    for element in view.find(made_key(task_id)):
        filed = view.get(element)
        for claim in filed.inputs if isinstance(filed, Activity) else ():
            found = view.get(claim)
            if isinstance(found, Assertion):
                yield found


def _instant(task: Concept, name: str) -> Instant:
    """A time of a task; 0 where it says none that can be read."""
    text = task.attributes.get(name)
    try:
        return parse_instant(text) if isinstance(text, str) else 0
    except ValueError:
        return 0
