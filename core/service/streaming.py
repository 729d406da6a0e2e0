"""Answers in frames: a large read page by page, everything else as one (KIP §84, KIP Runtime §207-225, §315-317).

What lives here: which requests have pages, and pulling them one at a time, so that no more than a page is ever held.
What must never live here: the transport, and KIP's meaning: every page is an ordinary request to `core.service.kip`,
which continues the one before by its cursor. So all rows belong to the first page's snapshot, and who may read them is
asked anew for each page.

A write has no pages. Its stream says at most that it is under way, provisionally; only the final frame, which carries
the whole response with its receipt, says what became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET

from core.authority import Principal
from core.errors import NoemaError
from core.language import Command, is_mutation, parse
from core.language.ast import Literal, Parameter
from core.language.ast_kql import Find
from core.language.ast_meta import Changes, History, Search
from core.language.canonical import from_json, to_canonical
from core.model.instants import Instant
from core.ports import Clock
from core.protocol.frames import Framer
from core.protocol.request import Operation, Request
from core.protocol.response import OperationResult, Response
from core.service.kip import Kip

PAGE: Final = 500  # rows; of any size an element may have, so this bounds the memory of one stream
PAGE_MS: Final = 15_000  # for one page, as for any request
_OUTCOMES: Final = {"succeeded": "complete", "partial": "partial", "failed": "error"}
Paged = Find | Search | History | Changes


class Reading(msgspec.Struct, frozen=True):
    """A read that has pages. `rows`: at most so many are asked for; None for all."""

    statement: Paged
    rows: int | None


def reading_of(request: Request) -> Reading | None:
    """The read that a request is, or None where it has no pages: several operations, a write, or what cannot be run."""
    command = _command(request)
    if not isinstance(command, Paged):
        return None
    limit: Any = command.limit
    if isinstance(limit, Parameter):
        limit = {**request.parameters, **request.operations[0].parameters}.get(limit.name)
    elif isinstance(limit, Literal):
        limit = limit.value
    if limit is None:
        return Reading(command, None)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        return None  # the engine says what is wrong with it
    return Reading(command, limit)


def _may_write(request: Request) -> bool:
    if isinstance(request.ingest.evidence, tuple):
        return True
    found = [_parsed(operation) for operation in request.operations]
    return any(command is not None and is_mutation(command) for command in found)


def _command(request: Request) -> Command | None:
    return _parsed(request.operations[0]) if len(request.operations) == 1 else None


def _parsed(operation: Operation) -> Command | None:
    try:
        if isinstance(operation.command, str):
            return parse(operation.command)
        return from_json(operation.ast)
    except NoemaError:
        return None  # the engine says what is wrong with it


class Streams:
    """Streams answers.

    Args:
        kip: answers each page.
        clock: the time.
    """

    def __init__(self, kip: Kip, clock: Clock) -> None:
        self._kip = kip
        self._clock = clock

    def writes(self, request: Request) -> bool:
        """Whether a request could change the space."""
        return _may_write(request)

    def lines(
        self,
        space_id: str,
        request: Request,
        framer: Framer,
        admit: Callable[[], Principal],
        *,
        deadline: Instant,
        readonly: bool = False,
    ) -> Iterator[bytes]:
        """The frames of an answer, as they are made; nothing is done before the first is asked for.

        A reader who takes no more of them ends the work: there is nothing under way between two frames.

        Args:
            space_id: the space the transport resolved.
            request: the checked envelope.
            framer: of this stream.
            admit: the verified caller, asked for each page; what it raises ends the stream.
            deadline: when the whole stream must have ended (ms); a shorter one of the request's own counts.
            readonly: the endpoint that may not write.

        Raises:
            NoemaError: what ends it before it is done, for the transport to write as the last frame.
        """
        wait = request.options.deadline_ms
        until = min(deadline, self._clock.now() + wait) if isinstance(wait, int) else deadline

        def ask(asked: Request) -> Response:
            now = self._clock.now()
            if now >= until:
                raise NoemaError("ExecutionTimeout", "the stream has lasted as long as it may")
            who = admit()
            return self._kip.execute(
                space_id, asked, who, deadline=min(until, now + PAGE_MS), readonly=readonly
            )

        reading = reading_of(request)
        yield framer.line("start", {"paged": reading is not None})
        if reading is None:
            yield from _whole(request, framer, ask)
        else:
            yield from _pages(request, reading, framer, ask)


def _whole(request: Request, framer: Framer, ask: Callable[[Request], Response]) -> Iterator[bytes]:
    """An answer that has no pages: its response, in the final frame."""
    if _may_write(request):
        yield framer.line("progress", {"phase": "executing", "provisional": True})
    response = ask(request)
    outcome = _OUTCOMES.get(response.status, response.status)
    yield framer.line("final", {"outcome": outcome, "response": response, **framer.sent})


def _pages(
    request: Request, reading: Reading, framer: Framer, ask: Callable[[Request], Response]
) -> Iterator[bytes]:
    """A read: a frame for each page, or for each envelope of the change stream."""
    first: OperationResult | None = None
    warned: set[str] = set()
    while True:
        result = _result(ask(_page_of(request, reading, framer)))
        first = first or result
        rows, done = _until_snapshot(reading.statement, result, first)
        fresh = {} if result.warnings is UNSET else {each.code: each for each in result.warnings}
        for code in fresh.keys() - warned:
            yield framer.line("warning", fresh[code])
        warned |= fresh.keys()
        yield from _data(reading.statement, rows, result, framer)
        framer.cursor = None if result.next_cursor is UNSET else result.next_cursor
        full = reading.rows is not None and framer.rows >= reading.rows
        if done or full or framer.cursor is None:
            break
    stream = isinstance(reading.statement, Changes)  # which always has a place to go on from
    if done and not stream:
        framer.cursor = None
    outcome = "complete" if stream or framer.cursor is None else "partial"
    told = {"outcome": outcome, "status": "succeeded", "context": first.context, **framer.sent}
    yield framer.line("final", told)


def _data(statement: Paged, rows: list[Any], result: OperationResult, framer: Framer) -> Iterator[bytes]:
    """A page's rows; one transaction of the change stream is one frame, whatever it holds (KIP §84.3)."""
    place = {} if result.next_cursor is UNSET else {"next_cursor": result.next_cursor}
    if not isinstance(statement, Changes):
        if rows:
            framer.rows += len(rows)
            yield framer.line("data", {"rows": rows, **place})
        return
    for number, envelope in enumerate(rows, start=1):
        framer.rows += 1
        yield framer.line("data", {"envelope": envelope, **(place if number == len(rows) else {})})


def _until_snapshot(
    statement: Paged, result: OperationResult, first: OperationResult
) -> tuple[list[Any], bool]:
    """A page's rows, and whether it reaches the state at which the stream began.

    FIND and SEARCH are held to that state by their cursors. A history and the change stream grow while they are read:
    a history ends at that state, and the change stream with the page that reaches it, or has nothing new.
    """
    rows: list[Any] = result.result
    if first.context is UNSET or first.context.snapshot_seq is UNSET or isinstance(statement, Find | Search):
        return rows, False
    end = first.context.snapshot_seq
    if isinstance(statement, Changes):
        return rows, not rows or rows[-1]["space_seq"] >= end
    kept = [row for row in rows if row["space_seq"] <= end]
    return kept, len(kept) < len(rows)


def _page_of(request: Request, reading: Reading, framer: Framer) -> Request:
    """The request for the next page: the same command, with its LIMIT and its cursor."""
    left = PAGE if reading.rows is None else min(PAGE, reading.rows - framer.rows)
    paging: dict[str, Any] = {"limit": Literal(value=left)}
    if framer.cursor is not None:
        paging["since" if isinstance(reading.statement, Changes) else "cursor"] = Literal(value=framer.cursor)
        if isinstance(reading.statement, Changes):
            paging["after_seq"] = None
    statement = msgspec.structs.replace(reading.statement, **paging)
    operation = msgspec.structs.replace(request.operations[0], command=UNSET, ast=to_canonical(statement))
    return msgspec.structs.replace(request, operations=(operation,))


def _result(response: Response) -> OperationResult:
    """The result of a page.

    Raises:
        NoemaError: what the response says went wrong.
    """
    error = response.error
    if error is UNSET:
        result = response.results[0]
        if result.status == "succeeded":
            return result
        error = result.error
    assert error is not UNSET, "what did not succeed says why"
    raise NoemaError(error["code"], error["message"], hint=error.get("hint"), details=error.get("details"))
