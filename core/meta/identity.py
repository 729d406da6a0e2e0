"""Where and as whom a request runs: the space, the Principal, the semantic self (KIP §5.6, §28, §64.2).

What lives here: DESCRIBE EXECUTION CONTEXT, DESCRIBE SPACE and LIST SPACES, and the parts they share with the
primer. What must never live here: any step from one identity to another; a Principal is authenticated by the
transport, a self is a Concept that the host designates, and neither says anything of the other.
"""

from __future__ import annotations

import msgspec

from core.authority import Principal
from core.errors import NoemaError
from core.language.ast_meta import Describe, ListStatement
from core.meta.operands import coordinates, optional_text, world_of
from core.meta.paging import page_of
from core.model.elements import Concept, Json
from core.model.instants import format_instant
from core.transaction.scope import Answer, Scope, space_uri


def space_of(scope: Scope) -> dict[str, Json]:
    """The space's identity: what a request selects it by, and its name for people."""
    meta = scope.state.meta
    return {"id": meta.space_id, "uri": space_uri(meta.space_id), "name": meta.name and meta.name[:200]}


def principal_of(scope: Scope) -> dict[str, Json]:
    """The authenticated caller, as the transport verified it."""
    who = scope.context.principal
    return {"id": who.id, "channel": who.channel, "may": _may(who)}


def _may(who: Principal) -> Json:
    if who.access is not None:
        return sorted(who.access.anywhere)
    return "everything" if who.permissions is None else sorted(who.permissions)


def _actors(who: Principal) -> Json:
    voices = who.actors if who.access is None else who.access.voices
    return "any" if voices is None else sorted(voices)


def self_of(scope: Scope) -> Json:
    """The Concept that the space designates as its self, or null; its name is cognitive state, not authority."""
    designated = scope.state.meta.self_identity
    if designated is None:
        return None
    world = world_of(scope)
    element = world.get(world.canonical(designated))
    if not isinstance(element, Concept):
        return None
    name = world.field(element, ("name",))
    return {
        "id": element.id,
        "schema_ref": element.schema_ref,
        "name": name[:200] if isinstance(name, str) else None,
        "as_of_seq": scope.state.seq,
    }


def execution_context(_: Describe, scope: Scope) -> Answer:
    """DESCRIBE EXECUTION CONTEXT: the coordinates of this very request."""
    context, request = scope.context, scope.request
    who = context.principal
    declared = {
        name: said
        for name in ("purpose", "risk", "locale", "client")
        if isinstance(said := getattr(request.context, name), str)
    }
    value: dict[str, Json] = {
        "space": space_of(scope),
        "principal": principal_of(scope),
        "actor_binding": {
            "actors": _actors(who),
            "note": "Who a claim is attributed to with `by`; recording another's words needs no binding.",
        },
        "self": self_of(scope),
        "snapshot_seq": scope.state.seq,
        "schema_environment_version": scope.env.version,
        "now": format_instant(context.now),
        "endpoint": {"class": context.endpoint, "readonly": context.readonly},
        "execution_mode": request.mode,
        "declared": declared,  # by the client; it grants nothing (KIP §88.1)
    }
    return Answer(value=value, context=coordinates(scope))


def space(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE SPACE: the one this request is bound to.

    Raises:
        NoemaError: NotFoundOrNotVisible for any other, existing or not.
    """
    named = optional_text(statement.subject, "DESCRIBE SPACE")
    meta = scope.state.meta
    if named not in {None, meta.space_id, space_uri(meta.space_id)}:
        raise NoemaError(
            "NotFoundOrNotVisible",
            "there is no such space, or you may not see it from here",
            hint="A request reads the space it is addressed to; address the other one.",
        )
    value: dict[str, Json] = {
        **space_of(scope),
        "description": meta.description,
        "status": "active",
        "created_at": format_instant(meta.created_at),
        "space_seq": scope.state.seq,
        "last_commit_at": format_instant(scope.state.at),
        "schema_environment": {"version": scope.env.version, "packages": list(scope.env.active)},
        "self": self_of(scope),
        "public": meta.public,
        "tier": {"tier": meta.tier.tier, "limit": meta.tier.limit},
    }
    if scope.query_context().visible is None:
        value["counts"] = msgspec.to_builtins(scope.view.counts)
    return Answer(value=value, context=coordinates(scope))


def spaces(statement: ListStatement, scope: Scope) -> Answer:
    """LIST SPACES: those the Principal may discover: the one the request is bound to, or all (META §45-46).

    Of the others the id is all that is told; what stands in one is asked for at its own address.

    Raises:
        Missing: the directory must be handed in.
    """
    page = page_of("list", statement, scope, usual=100, most=1_000)
    here: dict[str, Json] = {
        **space_of(scope), "status": "active", "space_seq": scope.state.seq, "current": True,
    }  # fmt: skip
    if not scope.context.principal.everywhere or page.size == 0:
        return Answer(value=[here][: page.size], context=coordinates(scope))
    found = scope.context.given.directory(str(page.at.get("after", "")), page.size + 1)
    rows = [
        here
        if each == here["id"]
        else {"id": each, "uri": space_uri(each), "status": "active", "current": False}
        for each in found[: page.size]
    ]
    more = len(found) > page.size
    return Answer(
        value=rows,
        context=coordinates(scope),
        next_cursor=page.cursor(after=found[page.size - 1]) if more else None,
    )
