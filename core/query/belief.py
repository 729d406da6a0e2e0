"""BELIEF and BELIEF SLOT: query rows into projections and back (KIP §46-49).

What lives here: the request that WITH EPISTEMIC, FOR TIME and AS OF make, the grounding of targets, and the
bindings a projection gives. What must never live here: how belief is formed (`core.epistemic`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

from core.epistemic.case import Session
from core.epistemic.policy import find_policy
from core.epistemic.project import Materialized, Projection, project, project_slot, slot_targets
from core.epistemic.sight import EXPLANATIONS, Request, Target
from core.epistemic.trust import Trust
from core.errors import NoemaError
from core.language.ast import Array, Node, Object
from core.language.ast import Literal as Written
from core.language.ast_kql import Find
from core.model.elements import AnyElement, Concept, Json, Proposition
from core.model.ids import is_element_id, kind_of
from core.model.instants import Instant, format_instant
from core.model.literals import Literal, Ref, Term, term_key
from core.query.context import Projected
from core.query.logic import Belief, BeliefSlot, Row, Virtual, known_value
from core.query.match import Extend, bind
from core.query.world import World
from core.schema.validate import check_literal_object, check_object, check_subject
from core.state.memo import Memo
from core.state.space import SpaceState

_NONE: Final[frozenset[str]] = frozenset()
_NAMED: Final = frozenset({"stance", "evidence_class", "activity_class"})
"""Fields that naming a record in an explanation would tell."""

_MEMBERS: Final = frozenset({
    "purpose", "risk", "policy", "include_historical", "include_hypothetical", "explanation", "context",
})  # fmt: skip

MATERIALIZED: Final = "noema/materialized_projection"
"""The member of a result context's extensions that tells of beliefs that were not formed anew (KIP §50)."""


def projection_request(find: Find, world: World, valid_at: Instant) -> Request:
    """What WITH EPISTEMIC asks for (KIP §49), with the request's own purpose and risk where it is silent.

    Raises:
        NoemaError: ProjectionPolicyUnavailable; TypeMismatch or ConstraintViolation for a member that is none.
    """
    context = world.context
    written = find.epistemic or Object()
    for member in written.members:
        if member.name not in _MEMBERS:
            raise NoemaError(
                "ConstraintViolation",
                f"WITH EPISTEMIC has no member {member.name}",
                hint=f"Its members are {', '.join(sorted(_MEMBERS))}.",
                details={"member": member.name},
            )
    policy = _text(written, "policy")
    explanation = _text(written, "explanation") or "none"
    if explanation not in EXPLANATIONS:
        raise NoemaError(
            "ConstraintViolation",
            f"explanation is one of {', '.join(EXPLANATIONS)}",
            details={"member": "explanation"},
        )
    purpose = _text(written, "purpose") or context.purpose
    return Request(
        policy=find_policy(policy),
        valid_at=valid_at,
        as_of_seq=context.snapshot_seq,
        trust=Trust(context.trust, purpose),
        purpose=purpose,
        risk=_text(written, "risk") or context.risk,
        include_historical=_flag(written, "include_historical"),
        include_hypothetical=_flag(written, "include_hypothetical"),
        explanation=explanation,
        context=_contexts(written),
        provenance_nodes=context.limits.provenance_nodes,
    )


def _member(written: Object, name: str) -> Any:  # a JSON scalar, or a node that is none
    node = written.get(name)
    return node.value if isinstance(node, Written) else node


def _text(written: Object, name: str) -> str | None:
    value = _member(written, name)
    if value is None or isinstance(value, str):
        return value
    raise NoemaError("TypeMismatch", f"{name} of WITH EPISTEMIC is a string", details={"member": name})


def _flag(written: Object, name: str) -> bool:
    value = _member(written, name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise NoemaError("TypeMismatch", f"{name} of WITH EPISTEMIC is true or false", details={"member": name})


def _contexts(written: Object) -> frozenset[str] | None:
    node = written.get("context")
    if node is None:
        return None
    items: Sequence[Node] = node.items if isinstance(node, Array) else (node,)
    found = set()
    for item in items:
        identity = item.get("id") if isinstance(item, Object) else item
        if not isinstance(identity, Written) or not isinstance(identity.value, str):
            raise NoemaError(
                "TypeMismatch",
                "context of WITH EPISTEMIC is an element id or several",
                details={"member": "context"},
            )
        found.add(identity.value)
    return frozenset(found)


class _Sight:
    """A `World` as projections look at it: what may be used is more than what may be read (KIP §49.2)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._usable = world.context.projectable
        self.canonical = world.canonical
        self.aliases = world.aliases
        self.find = world.find
        self.count = world.view.count
        self.activities = world.view.counts.activity
        self.open = world.open

    def get(self, element_id: str) -> AnyElement | None:
        element = self._world.get(element_id) if self._usable is None else self._used(element_id)
        if isinstance(element, Proposition) and not self._world.tells(element):
            return None
        return element

    def _used(self, element_id: str) -> AnyElement | None:
        element = self._world.stored(element_id)
        assert self._usable is not None
        return element if element is not None and self._usable(element) else None

    def absent(self, element_id: str) -> bool:
        return self._world.stored(element_id) is None

    def readable(self, element: AnyElement) -> bool:
        seen = self._world.get(element.id) is not None
        return seen and not (self._world.hidden(element) or _NONE) & _NAMED

    def functional(self, predicate_ref: str) -> bool:
        definition = self._world.env.known("predicate", predicate_ref)
        return bool(getattr(definition, "functional", False))

    def closed_by(self, predicate_ref: str) -> str | None:
        return getattr(self._world.env.known("predicate", predicate_ref), "closed_by", None)


class Believer:
    """Projects for one query. The session is made when the first projection is asked for."""

    def __init__(self, world: World, find: Find | None = None, valid_at: Instant = 0) -> None:
        self.world = world
        self._find = find
        self._valid_at = valid_at
        self._session: Session | None = None
        self._done: dict[tuple[str, ...], Projected] = {}
        self._count = 0
        self._memo = _memo_of(world)
        self._served: list[Instant] = []  # for what world time each belief taken from the memo was formed

    def authorize(self) -> None:
        """Refuse a caller who may not project, before any row is looked at (KIP §29.4).

        Raises:
            NoemaError: ProjectionNotAuthorized.
        """
        if not self.world.context.may_project:
            raise NoemaError("ProjectionNotAuthorized", "you may not ask what is believed here")

    @property
    def session(self) -> Session:
        """What all projections of the query share.

        Raises:
            NoemaError: what `projection_request` raises.
        """
        if self._session is None:
            assert self._find is not None
            request = projection_request(self._find, self.world, self._valid_at)
            self._session = Session(_Sight(self.world), request)
        return self._session

    def result_context(self) -> dict[str, Json]:
        """The members of the result context that say how belief was formed (KIP §50)."""
        request = self.session.request
        out: dict[str, Json] = {
            "epistemic_policy": request.policy.identity,
            "valid_at": format_instant(request.valid_at),
        }
        if self._served:  # KIP §21.9: under which policy, from which state and about when they were formed
            basis = {
                "beliefs": len(self._served),
                "epistemic_policy": request.policy.identity,
                "snapshot_seq": request.as_of_seq,
                "valid_at": [format_instant(min(self._served)), format_instant(max(self._served))],
            }
            out["extensions"] = {MATERIALIZED: basis}
        return out

    def extend(self, pattern: Virtual) -> Extend:
        """The function that extends a row by the projections of a pattern."""
        if isinstance(pattern, BeliefSlot):
            return self._slot(pattern)
        return self._known(pattern) if pattern.target is not None else self._triple(pattern)

    # --- by a bound variable or an id

    def _known(self, pattern: Belief) -> Extend:
        target = pattern.target
        assert target is not None

        def extend(row: Row) -> Iterator[Row]:
            value = known_value(target, row)
            element = self.world.get(value.id) if isinstance(value, Ref) else None
            usable = self.world.context.projectable
            asked = isinstance(element, Proposition) and self.world.tells(element)
            if isinstance(element, Proposition) and asked and (usable is None or usable(element)):
                about = Target(element.subject, element.predicate_ref, element.object, element.id)
                yield from self._bound(row, pattern, about)

        return extend

    # --- by subject, predicate and object

    def _triple(self, pattern: Belief) -> Extend:
        assert pattern.subject is not None
        assert pattern.predicate is not None
        subject, predicate, obj = pattern.subject, pattern.predicate, pattern.object

        def extend(row: Row) -> Iterator[Row]:
            about = self._slot_of(row, subject, predicate)
            if about is None or obj is None:
                return
            value = known_value(obj, row)
            if pattern.enumerates:
                for target in slot_targets(self.session, *about):
                    if self._may_show(target.object):
                        yield from self._bound(row, pattern, target)
            elif isinstance(value, (Ref, Literal)) and self._may_show(value):
                constant = value is obj
                if self._admitted(*about, value, constant=constant):
                    yield from self._bound(row, pattern, Target(*about, value))

        return extend

    def _slot_of(self, row: Row, subject: Any, predicate: Any) -> tuple[str, str] | None:
        """Subject and predicate of a row; None where they are nothing that can be asked about."""
        about = known_value(subject, row)
        named = predicate if isinstance(predicate, str) else known_value(predicate, row)
        ref = named.value if isinstance(named, Literal) else named
        if not isinstance(about, Ref) or not isinstance(ref, str):
            return None
        return None if self.world.get(about.id) is None else (about.id, ref)

    def _may_show(self, term: Term) -> bool:
        return not isinstance(term, Ref) or self.world.get(term.id) is not None

    def _admitted(self, subject: str, predicate_ref: str, obj: Term, *, constant: bool) -> bool:
        """Whether the schema admits the tuple; a constant that it does not is told, not answered (KIP §46.4).

        Raises:
            NoemaError: TypeMismatch or ConstraintViolation for a constant object.
        """
        predicate = self.world.env.known("predicate", predicate_ref)
        if predicate is None:
            return True  # stored under a package that is no longer installed: nothing to check it by
        try:
            check_subject(predicate, *self._kind(subject))  # type: ignore[arg-type]  # a predicate by its table
            if isinstance(obj, Ref):
                check_object(predicate, *self._kind(obj.id))  # type: ignore[arg-type]
            else:
                check_literal_object(predicate, obj)  # type: ignore[arg-type]
        except NoemaError:
            if constant:
                raise
            return False
        return True

    def _kind(self, element_id: str) -> tuple[Any, str | None]:
        element = self.world.get(element_id)
        kind = kind_of(element_id) if is_element_id(element_id) else "concept"
        return kind, element.schema_ref if isinstance(element, Concept) else None

    def _bound(self, row: Row, pattern: Belief, target: Target) -> Iterator[Row]:
        key = (
            "belief",
            target.subject,
            target.predicate_ref,
            term_key(target.object),
            target.proposition or "",
        )
        extended = bind(row, pattern.var.slot, self._projected(key, lambda: project(self.session, target)))
        if extended is not None and pattern.enumerates and pattern.object is not None:
            extended = bind(extended, pattern.object.slot, target.object)  # type: ignore[union-attr]  # a variable
        if extended is not None:
            yield extended

    # --- BELIEF SLOT

    def _slot(self, pattern: BeliefSlot) -> Extend:
        def extend(row: Row) -> Iterator[Row]:
            about = self._slot_of(row, pattern.subject, pattern.predicate)
            if about is not None:
                key = ("slot", *about)
                value = self._projected(key, lambda: project_slot(self.session, *about))
                extended = bind(row, pattern.var.slot, value)
                if extended is not None:
                    yield extended

        return extend

    def _projected(self, key: tuple[str, ...], make: Callable[[], Projection]) -> Projected:
        """A projection of this query, made once.

        Raises:
            NoemaError: ResultLimitExceeded for too many different ones.
        """
        known = self._done.get(key)
        if known is None:
            self._count += 1
            limit = self.world.context.limits.projections
            if self._count > limit:
                raise NoemaError(
                    "ResultLimitExceeded",
                    f"one query projects at most {limit} beliefs",
                    hint="Bind fewer statements before BELIEF.",
                    details={"limit": limit},
                )
            known = self._done[key] = Projected("\x1f".join(key), self._value(key, make))
        return known

    def _value(self, key: tuple[str, ...], make: Callable[[], Projection]) -> dict[str, Json]:
        """A projection out of the state's memo, or a new one, which is then kept there (KIP §21.9)."""
        if self._memo is None:
            return make().value
        request, identity = self.session.request, self._identity(key)
        kept: Materialized | None = self._memo.get(identity)
        known = None if kept is None else kept.about(request)
        if kept is not None and known is not None:
            self._served.append(kept.valid_at)
            return known
        made = make()
        keeping = made.materialized(request)
        self._memo.put(identity, keeping, len(keeping.body))
        return made.value

    def _identity(self, key: tuple[str, ...]) -> Hashable:
        """Everything a projection from one state depends on but the world time."""
        request = self.session.request
        return (
            key,
            (request.policy.id, request.policy.version),
            self.world.context.trust,
            (request.purpose, request.risk, request.context),
            (request.include_historical, request.include_hypothetical, request.explanation),
            (request.as_of_seq, self.world.env.version),
        )


def _memo_of(world: World) -> Memo | None:
    """Where projections are kept: with a committed state, for callers from whom nothing at all is hidden."""
    context = world.context
    plain = world.open and context.projectable is None and context.hidden_fields is None
    return world.view.memo if plain and isinstance(world.view, SpaceState) else None
