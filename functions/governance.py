"""The control plane over HTTP, for hosts: who may do what in a space, said and read back (docs/governance.md).

What lives here: the routes below `/host/v1/{space}/governance`. What must never live here: decisions
(`core.governance`) and any way to them from KIP, a model's tool or MCP: these routes are the only door.

A caller acts as the subject of its CWT, under the records; one with an admin credential is the host's operator, who may
step in where the records have locked everybody out, and the audit says so.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from core.authority import PERMISSIONS, Principal
from core.errors import NoemaError
from core.governance.audit import Entry
from core.governance.commands import AnyCommand, decode_command
from core.governance.control import Policy
from core.protocol.canonical import digest_of
from core.protocol.request import decode_json
from core.service.callers import principal_of
from core.service.governance import Outcome
from core.service.refusals import Refusal
from core.service.values import Idempotency, Scope
from functions.bootstrap import Services
from functions.routing import Call, Page, Route, Routes

Document = dict[str, Any]
KINDS: Final = ("parties", "groups", "roles", "rules", "delegations", "bindings", "approvals")
_TRUST: Final = "trust"
_POLICY: Final[Document] = {name: getattr(Policy(), name) for name in Policy.__struct_fields__}
_IF_MATCH: Final = re.compile(r'(?:W/)?"?(\d{1,15})"?\Z')
_PLACE: Final = re.compile(r"(\d{1,15}):(\d{1,15})\Z")
_USUAL: Final = 100

Limit = Annotated[int, Meta(ge=1, le=1000)]


class AtQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which point of the log, by one of the three; none is now."""

    seq: Annotated[int, Meta(ge=0)] | None = None
    time: Annotated[int, Meta(ge=0)] | None = None
    version: Annotated[int, Meta(ge=0)] | None = None


class RecordsQuery(AtQuery, frozen=True, kw_only=True):
    """A page of records of one kind."""

    cursor: str | None = None
    limit: Limit = _USUAL


class SubjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose authority; one's own if absent."""

    subject: str | None = None


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the audit, oldest first; with `control_only`, of changes of the control plane alone."""

    cursor: str | None = None
    limit: Limit = _USUAL
    control_only: bool = False


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page."""

    cursor: str | None = None
    limit: Limit = _USUAL


class DecideInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a subject with a credential of a scope would be let through, on an element or on the space."""

    subject: Annotated[str, Meta(min_length=1, max_length=256)]
    action: str
    scope: Scope = "*"
    element: str | None = None


def caller_of(call: Call) -> Principal:
    """The caller of the control plane: its scope is an upper bound, and only `*` reaches these permissions."""
    return principal_of(call.caller, readonly=call.caller.scope == "read")


# --- commands


def _command(found: Services, call: Call) -> Outcome:
    body = decode_json(call.request.body)
    command = decode_command(body)
    who, key = caller_of(call), call.idempotency_key
    retry = None
    if key is not None:
        asked = digest_of(["governance", body, call.request.headers.get("if-match")])
        retry = Idempotency(f"{who.id}\x1fgovernance", key, asked)
    return found.governance.execute(
        call.space,
        command,
        who,
        deadline=call.deadline,
        operator=call.caller.operator,
        idempotency=retry,
        expected=_expected(call),
    )


def _expected(call: Call) -> int | None:
    text = call.request.headers.get("if-match")
    if text is None or text.strip() == "*":
        return None
    match = _IF_MATCH.match(text.strip())
    if match is None:
        raise NoemaError(
            "InvalidInput", "If-Match takes the policy's version, such as 7", details={"header": "If-Match"}
        )
    return int(match[1])


# --- reading


def _at(found: Services, call: Call, query: AtQuery) -> Document:
    who, operator = caller_of(call), call.caller.operator
    given = {name: getattr(query, name) for name in ("seq", "time", "version")}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) > 1:
        raise NoemaError("InvalidInput", "a point of the log is named by one of seq, time and version")
    if not named:
        return found.governance.describe(call.space, who, operator=operator)
    return found.governance.as_of(call.space, who, operator=operator, **named)


def _describe(found: Services, call: Call) -> Document:
    told = _at(found, call, call.query)
    records = told["records"] or {}
    return {
        "governed": told["governed"],
        "version": records.get("version", 0),
        "owners": told["owners"],
        # Without records it is the scopes of tokens that decide; what an omitted member means begins with the records.
        "policy": {
            **_POLICY,
            **records.get("policy", {}),
            **({} if told["governed"] else {"default": "scopes"}),
        },
        "self": told["self"],
        "quarantined": records.get("quarantined", 0),
        "counts": {
            **{kind: len(records.get(kind, ())) for kind in KINDS},
            _TRUST: len(told["trust"]["records"]),
        },
    }


def _records(found: Services, call: Call) -> Page:
    kind, query = call.params["kind"], call.query
    if kind not in (*KINDS, _TRUST):
        kinds = [*KINDS, _TRUST]
        raise NoemaError(
            "InvalidInput",
            "there are no such records",
            hint=f"The kinds are {', '.join(kinds)}.",
            details={"kinds": kinds},
        )
    told = _at(found, call, query)
    records = told["records"] or {}
    listed = told["trust"]["records"] if kind == _TRUST else records.get(kind, [])
    version = told["trust"]["version"] if kind == _TRUST else records.get("version", 0)
    start = 0
    if query.cursor is not None:
        was, start = _read_cursor(query.cursor, f"{kind}:")
        if was != version:
            raise NoemaError("CursorInvalidated", "the records have changed since this page's list was begun")
    end = start + query.limit
    more = _cursor(f"{kind}:{version}:{end}") if end < len(listed) else None
    return Page(list(listed[start:end]), more)


def _effective(found: Services, call: Call) -> Document:
    return found.governance.effective(
        call.space, caller_of(call), call.query.subject, operator=call.caller.operator
    )


def _decide(found: Services, call: Call) -> Document:
    body: DecideInput = call.body
    if body.action not in PERMISSIONS:
        raise NoemaError(
            "ConstraintViolation", "there is no such action", details={"actions": list(PERMISSIONS)}
        )
    as_if = msgspec.structs.replace(call.caller, subject=body.subject, scope=body.scope, everywhere=False)
    return found.governance.decide(
        call.space,
        caller_of(call),
        principal_of(as_if, readonly=body.scope == "read"),
        body.action,
        body.element,
        operator=call.caller.operator,
    )


def _audit(found: Services, call: Call) -> Page:
    query: AuditQuery = call.query
    after = None if query.cursor is None else _read_cursor(query.cursor, "audit:")[1]
    entries, last = found.governance.audit(
        call.space,
        caller_of(call),
        after=after,
        limit=query.limit,
        control_only=query.control_only,
        operator=call.caller.operator,
    )
    return Page(entries, _cursor(f"audit:0:{last}") if len(entries) == query.limit else None)


def _refusals(found: Services, call: Call) -> Page:
    query: PageQuery = call.query
    found.governance.check_auditor(call.space, caller_of(call), operator=call.caller.operator)
    return Page(*found.refusals.page(call.space, cursor=query.cursor, limit=query.limit))


def _cursor(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_cursor(cursor: str, start: str) -> tuple[int, int]:
    """The two numbers in a cursor. It is no secret: whoever may list may list from anywhere."""
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except ValueError:
        text = ""
    match = _PLACE.match(text.removeprefix(start))
    if match is None or not text.startswith(start):
        raise NoemaError(
            "CursorMismatch", "the cursor does not continue this list", details={"member": "cursor"}
        )
    return int(match[1]), int(match[2])


def _route(call: Any, summary: str, **more: Any) -> Route:  # members of Route
    return Route(admit="host", call=call, summary=summary, **more)


HOSTS: Final[Routes] = {
    "governance_command": _route(
        _command,
        "Change who may do what in a space, by one command of its control plane.",
        body=AnyCommand,
        own_body=True,
        response=Outcome,
    ),
    "governance": _route(
        _describe,
        "How a space is governed: owners, policy, and how many records there are.",
        query=AtQuery,
        response=Document,
    ),
    "governance_records": _route(
        _records, "Records of one kind, page by page, now or as of then.", query=RecordsQuery, response=list[Document]
    ),
    "governance_effective": _route(
        _effective, "What a principal may do in the space.", query=SubjectQuery, response=Document
    ),
    "governance_decide": _route(
        _decide, "Whether somebody would be let through, and by which records.", body=DecideInput, response=Document
    ),
    "governance_audit": _route(
        _audit, "What was let through, and every change of the control plane.", query=AuditQuery, response=list[Entry]
    ),
    "governance_refusals": _route(
        _refusals, "What was refused, counted by day.", query=PageQuery, response=list[Refusal]
    ),
}  # fmt: skip
"""Rows of the function of owners and managers."""
