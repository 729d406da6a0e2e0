"""The function that works: hints from the queue become formed conversations, answers and folded logs.

A batch is answered in part: the messages that failed are delivered again, and with one also those behind it in
its group, so that a space's messages stay in order. A message that nobody can read, or about a space that is
gone, is dropped: it would fail for ever, and the row it hinted at is the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.model.instants import Instant
from core.protocol.http_types import RecallOutput
from core.service.hints import (
    FACTS,
    FORMATION,
    MAINTENANCE,
    RECALL,
    SHADOW,
    UPKEEP,
    Hint,
    Work,
    read_hint,
    send_hint,
)
from functions.bootstrap import Services, services
from functions.echoing import note
from functions.logs import bug, logger

SPARE_MS: Final = 30_000  # a part that has begun may take this long to commit
DEFAULT_MS: Final = 240_000  # without a Lambda context


def _form(found: Services, space_id: str, deadline: Instant) -> bool:
    # Contract §6.1: looked at after each conversation; formation goes on when the run is over.
    drained = found.formation.drain(
        space_id, deadline, give_way=lambda formed: found.maintenance.is_due(space_id, formed)
    )
    counts = {name: len(getattr(drained, name)) for name in ("formed", "failed", "cancelled")}
    logger().info("formed", extra={"space": space_id, **counts, "more": drained.more, "busy": drained.busy})
    if drained.failed or drained.cancelled:  # their rows say why; GET /v1/{space}/conversations/{id} shows it
        numbers = {"failed": list(drained.failed), "cancelled": list(drained.cancelled)}
        logger().warning("conversations failed", extra={"space": space_id, **numbers})
    if not drained.busy and found.maintenance.after_formation(space_id):
        send_hint(found.queue, found.entropy, space_id, MAINTENANCE)
    if drained.more and not drained.busy and found.clock.now() >= deadline:
        send_hint(found.queue, found.entropy, space_id, FORMATION)  # out of time: go on in another run
    if drained.formed:
        found.caretaking.tend(space_id, deadline)
    return drained.more


def _maintain(found: Services, space_id: str, deadline: Instant) -> bool:
    ran = found.maintenance.run(space_id, deadline)
    facts = {"space": space_id, "run": ran.run, "status": ran.status, "commits": ran.commits}
    logger().info("maintained", extra={**facts, "more": ran.more, "busy": ran.busy})
    if ran.more and not ran.busy:
        send_hint(found.queue, found.entropy, space_id, MAINTENANCE)  # out of time: go on in another turn
    if ran.status == "completed":
        found.caretaking.tend(space_id, deadline)
    return ran.more


def _tend(found: Services, space_id: str, deadline: Instant) -> bool:
    done = found.caretaking.tend(space_id, deadline)
    facts = {"space": space_id, "erased": done.erased, "compactions": done.compactions}
    logger().info("tended", extra={**facts, "embedded": done.indexed.embedded})
    if done.indexed.failed is not None:  # questions say so too, until a later run has made up for it
        logger().warning("embedding failed", extra={"space": space_id, "reason": done.indexed.failed})
    elif done.indexed.more:
        send_hint(found.queue, found.entropy, space_id, UPKEEP)  # out of time: go on in another turn
    return done.indexed.more


def _consolidate(found: Services, space_id: str, deadline: Instant) -> bool:
    done = found.facts.consolidate_due(space_id, deadline)
    if done.ran:
        logger().info("consolidated", extra={"space": space_id, **msgspec.structs.asdict(done)})
    if done.more:
        send_hint(found.queue, found.entropy, space_id, FACTS)  # out of time: go on in another turn
    return done.more


def _answer(found: Services, space_id: str, deadline: Instant) -> bool:
    done = found.later_recalls.work(space_id, deadline)
    for number in done.answered:  # as an answer given at once is noted when it is given
        extra = found.conversations.get(space_id, "recall", number).extra or {}
        if "result" in extra:
            told = msgspec.convert(extra["result"], RecallOutput)
            note(found, space_id, told.answer, told.memories)
    counts = {"answered": len(done.answered), "failed": len(done.failed)}
    logger().info("recalled", extra={"space": space_id, **counts, "more": done.more})
    if done.late:
        send_hint(found.queue, found.entropy, space_id, RECALL)  # out of time: go on in another turn
    return done.more


def _evaluate(found: Services, space_id: str, deadline: Instant) -> bool:
    done = found.shadows.work(space_id, deadline)
    facts = {"replayed": done.replayed, "status": done.status, "more": done.more}
    logger().info("evaluated", extra={"space": space_id, **facts})
    if done.more:
        send_hint(found.queue, found.entropy, space_id, SHADOW)  # out of time: go on in another turn
    return done.more


WORK: Final[Mapping[Work, Callable[[Services, str, Instant], bool]]] = {
    FORMATION: _form,
    MAINTENANCE: _maintain,
    UPKEEP: _tend,
    FACTS: _consolidate,
    RECALL: _answer,
    SHADOW: _evaluate,
}
"""What is done for each kind of hint; True: work is left, and was hinted at."""


def work(event: Mapping[str, Any], context: Any, found: Services) -> dict[str, Any]:  # of SQS and Lambda
    """Do what the messages of a batch hint at, and name those that failed."""
    failures: list[dict[str, str]] = []
    blocked: set[str] = set()
    for record in event["Records"]:
        group = str(record.get("attributes", {}).get("MessageGroupId", record["messageId"]))
        if group in blocked or not _done(record, found, _deadline(context, found)):
            blocked.add(group)
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}


def _done(record: Mapping[str, Any], found: Services, deadline: Instant) -> bool:
    facts: dict[str, str] = {"message_id": record["messageId"]}
    try:
        hint: Hint = read_hint(record["body"])
        facts = {"message_id": record["messageId"], "work": hint.work, "space": hint.space}
        WORK[hint.work](found, hint.space, deadline)
    except msgspec.MsgspecError:
        logger().error("unreadable message dropped", extra=facts)
    except NoemaError as error:
        if error.code == "NotFoundOrNotVisible":
            logger().info("message about a space that is gone", extra=facts)
            return True
        logger().warning("work failed", extra={**facts, "code": error.code})
        return False
    except Exception as error:  # noqa: BLE001 - the edge: one message must not take the others with it
        bug(error, **facts)
        return False
    return True


def _deadline(context: Any, found: Services) -> Instant:  # a Lambda context
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    left = DEFAULT_MS if remaining is None else remaining() - SPARE_MS
    return int(found.clock.now() + max(0, left))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Work one batch of the queue."""
    return work(event, context, services())
