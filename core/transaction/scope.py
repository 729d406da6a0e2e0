"""`Scope`: everything one operation may look at while it runs.

What lives here: the bundle that the engine hands to META and that a query's context is made from. What must
never live here: behaviour beyond that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from core.authority import Principal, allows, projectable, visible
from core.epistemic.trust import TrustState, trust_of
from core.errors import NoemaError
from core.governance import admit
from core.model.elements import AnyElement
from core.model.instants import Instant
from core.protocol.canonical import digest_of
from core.protocol.request import Request
from core.protocol.response import ResultContext, Warning  # noqa: A004 - the protocol's word
from core.query import Limits, QueryContext
from core.schema.environment import Environment
from core.state.space import SpaceState
from core.state.view import View
from core.transaction.needs import Given


def space_uri(space_id: str) -> str:
    """The URI of a space, the other way to select it."""
    return f"urn:noema:space:{space_id}"


def _never() -> bool:
    return False


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What surrounds a request and is not in it: who asks, when, by which way, and what was handed in.

    principal: the verified caller. now: the time of the request (ms).
    readonly: the endpoint that may not write (KIP §76). endpoint: its class, part of an idempotency scope.
    given: answers to earlier needs of this same request. secret: the key that signs cursors and tokens.
    semantic: whether the deployment can search by meaning. streaming: whether its transport can send frames.
    trust: stands in for the space's protected trust state. overdue: says True once the deadline has passed.
    """

    principal: Principal
    now: Instant
    readonly: bool = False
    endpoint: str = "kip"
    given: Given = Given()
    secret: bytes = b""
    semantic: bool = False
    streaming: bool = False
    trust: TrustState | None = None
    limits: Limits = Limits()
    overdue: Callable[[], bool] = _never

    @property
    def idempotency_scope(self) -> str:
        """Whose keys these are: the caller and the endpoint class (KIP §34.2); the space is the table's."""
        return f"{self.principal.id}\x1f{self.endpoint}"

    @property
    def authority(self) -> str:
        """A text that differs whenever what the caller may see differs."""
        who = self.principal
        return digest_of(
            [
                who.id,
                None if who.access is None else who.access.digest,
                sorted(who.hidden),
                sorted(who.projected),
                None if who.permissions is None else sorted(who.permissions),
                who.everywhere,
            ]
        )


ACT_AS: Final = "noema/act_as"
"""The extension of a request that says whose voice its claims are made in: `{"id": "C-..."}` (KIP §28.4)."""


def governed(context: Context, request: Request, state: SpaceState, view: View | None = None) -> Context:
    """A request's surroundings with what its caller may do in a space now (KIP §28.6).

    Asked for every attempt at a unit, on the state it runs on, so that the authority of a commit is that of the
    state it commits onto. `view` is the transaction's own, where there is one: what it has made is looked at too.

    Raises:
        NoemaError: InvalidRequestEnvelope for an ACT_AS that names nobody.
    """
    principal = admit(context.principal, state.meta, state if view is None else view, context.now)
    named = request.extensions.get(ACT_AS)
    if named is not None:
        actor = named.get("id")
        if not isinstance(actor, str) or not actor:
            raise NoemaError(
                "InvalidRequestEnvelope", f'{ACT_AS} takes {{"id": "..."}}', details={"at": "$.extensions"}
            )
        principal = msgspec.structs.replace(principal, acting_as=actor)
    return msgspec.structs.replace(context, principal=principal)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """One operation's surroundings.

    view: what it reads: the start state, or the transaction's own view of it. state: the committed state the
    request started from. env: the schema in force. request: the envelope it stands in. parameters: what the
    operation was given, for commands within a command (VALIDATE, PREVIEW). present: the newest state, where `view`
    is of the past; who may see an element is decided by what it is now (KIP §48.5). search: it is a search's, in which
    only what may be searched takes part.
    """

    view: View
    state: SpaceState
    env: Environment
    context: Context
    request: Request
    parameters: dict[str, Any] = {}
    present: View | None = None
    search: bool = False

    @property
    def trust(self) -> TrustState:
        """Whom the space trusts, by its protected state."""
        return self.trust_at(self.state)

    def trust_at(self, state: SpaceState) -> TrustState:
        """Whom the space trusted at a state: what was believed then, it believed by that (KIP §48.4)."""
        given = self.context.trust
        return trust_of(state.meta) if given is None else given

    def query_context(self, state: SpaceState | None = None) -> QueryContext:
        """A query's context at the present state, or at an older one."""
        at = state or self.state
        context = self.context
        principal = context.principal
        said = self.request.context
        return QueryContext(
            space_id=at.meta.space_id,
            instance=at.meta.instance,
            snapshot_seq=at.seq,
            snapshot_at=at.at,
            now=context.now,
            principal=principal.id,
            authority=principal.id if principal.unlimited else context.authority,
            visible=self._sight(at),
            hidden_fields=self._fields(at),
            projectable=self._asked(projectable, at) if _projects_apart(principal) else None,
            may_project=allows(principal, "project"),
            purpose=said.purpose if isinstance(said.purpose, str) else None,
            risk=said.risk if isinstance(said.risk, str) else None,
            trust=self.trust_at(at),
            cursor_key=context.secret,
            limits=context.limits,
            overdue=context.overdue,
        )

    def _asked[T](
        self, gate: Callable[[Principal, AnyElement], T], at: SpaceState
    ) -> Callable[[AnyElement], T]:
        """A gate for this caller; it is asked about what an element is now, whatever it was (KIP §48.5)."""
        principal, now = self.context.principal, self.present or self.view
        if now is self.view and at is self.state:  # then what is asked about is what it is now
            return lambda element: gate(principal, element)
        return lambda element: gate(principal, now.get(element.id) or element)

    def _fields(self, at: SpaceState) -> Callable[[AnyElement], frozenset[str]] | None:
        access = self.context.principal.access
        return None if access is None or access.unmasked else self._asked(lambda _, e: access.hidden(e), at)

    def _sight(self, at: SpaceState) -> Callable[[AnyElement], bool] | None:
        principal = self.context.principal
        access = principal.access
        if access is None:
            limited = bool(principal.hidden or principal.projected)
            return self._asked(visible, at) if limited else None
        if self.search:
            return None if access.searches_all else self._asked(lambda _, e: access.finds(e), at)
        return None if access.open else self._asked(visible, at)

    def searching(self) -> Scope:
        """The same surroundings for a search: what may not be searched takes no part in one (KIP §29.3)."""
        return msgspec.structs.replace(self, search=True)


def _projects_apart(principal: Principal) -> bool:
    """Whether what counts in a projection is not simply what is visible."""
    access = principal.access
    return bool(principal.projected) if access is None else not access.projects_all


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a read gives back: its value, its coordinates, its caveats, and where the next page begins."""

    value: Any
    context: ResultContext
    warnings: tuple[Warning, ...] = ()
    next_cursor: str | None = None
