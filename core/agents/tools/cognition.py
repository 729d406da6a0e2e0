"""What a model that forms memory may write: decided on the tree of a command, never on its text.

What lives here: the families of KML that are cognition, and what may stand in each (contract §4.9). What must never
live here: what an Assertion must be like (`core.agents.tools.claims`), execution, authority of callers.

A conversation may ask for anything, and a model may obey. So it is decided here, whatever the words were: nothing
is deleted, archived, merged or edited; a claim is attributed to who said what it cites; the captured messages are
cited, not re-typed; what other parts of the product keep in memory (facts, skills' standing, retention) is not
touched. A refusal says what is allowed, so that the model can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from core.agents.tools.claims import OnRecord, settle_assert, settle_record
from core.agents.tools.terms import Block, Captured, refuse, text_of
from core.agents.vocabulary import PERSON, PROFILE
from core.language import bind
from core.language.ast import Literal, Node, Variable
from core.language.ast_kml import (
    Assert,
    Content,
    CorrectEvidence,
    CreateConcept,
    CreateRecord,
    EnsureProposition,
    KmlStatement,
    Mutate,
    MutationClause,
    RetractAssertion,
    SupersedeAssertion,
    TransitionActivity,
    UpsertConcept,
)
from core.model.elements import AnyElement, Concept, Evidence, Json
from core.schema.environment import Environment
from core.schema.library import FACTS_REF
from core.state.indexes import name_key
from core.state.view import View

ALLOWED: Final = (
    "CREATE CONCEPT", "UPSERT CONCEPT", "ENSURE PROPOSITION", "CREATE EVIDENCE", "CREATE ASSERTION",
    "CREATE ACTIVITY", "ASSERT", "SUPERSEDE ASSERTION", "RETRACT ASSERTION", "CORRECT EVIDENCE",
    "TRANSITION ACTIVITY", "MUTATE",
)  # fmt: skip
"""The families a model may write."""

FACET: Final = f"{PROFILE}/MnemonicState"
FACET_FIELDS: Final = frozenset({"memory_strength", "salience"})
OWN_EVIDENCE: Final = frozenset({"observation", "document", "measurement", "human_feedback", "artifact"})
"""Classes of Evidence a model may write itself; the messages are captured before it is asked."""
_NOT_MADE: Final = frozenset(f"{PROFILE}/{name}" for name in ("SleepTask", "SkillTrial"))
_MANY: Final = frozenset(
    f"{PROFILE}/{name}"
    for name in ("Event", "Experience", "ExperienceStep", "Insight", "Commitment", "Preference", "Skill")
)
"""Types of which several may well have one name."""
_STATES: Final = frozenset({"running", "completed", "failed", "cancelled"})


class Settled(msgspec.Struct, frozen=True):
    """A statement as it may run; None if all it says is on record. `on_record`: Assertions left out as such."""

    statement: KmlStatement | None
    on_record: tuple[str, ...] = ()


class Rules(msgspec.Struct, frozen=True):
    """What holds for the commands of one conversation.

    messages: what was captured, in order. reader: the Concept that infers. said_at: when the conversation took
    place. seal: goes before the client keys a model gives, so that they are of this conversation alone.
    """

    messages: tuple[Captured, ...]
    reader: str
    said_at: int
    seal: str
    given: dict[str, Json] = {}

    @property
    def reserved(self) -> dict[str, Json]:
        """The parameters the host binds; no call may give them (contract §4.9)."""
        speakers = list(dict.fromkeys(message.speaker for message in self.messages))
        names: dict[str, Json] = {
            f"msg{n}": {"id": message.evidence} for n, message in enumerate(self.messages, 1)
        }
        names |= {f"who{n}": {"id": speaker} for n, speaker in enumerate(speakers, 1)}
        return {**names, **self.given, "self": {"id": self.reader}}

    def settle(
        self,
        statement: KmlStatement,
        parameters: dict[str, Any],
        view: View,
        env: Environment,
        *,
        sees: Callable[[AnyElement], bool] = lambda _: True,
    ) -> Settled:
        """A model's statement as it may run: parameters bound, checked, and with what only the host knows filled in.

        Args:
            statement: as it was parsed.
            parameters: that came with the call.
            view: the state it will run on.
            env: the schema in force.
            sees: whether an element exists for whoever the run is made for.

        Raises:
            NoemaError: NotAuthorized or InvalidInput, in words that tell the model what to do instead.
        """
        taken = sorted(parameters.keys() & self.reserved.keys())
        if taken:
            raise refuse(f"the parameter :{taken[0]} is bound already; leave it out of `parameters`")
        bound = bind(statement, {**parameters, **self.reserved})
        block = Block.of(bound, view, env, sees)
        kept: list[MutationClause] = []
        known: list[str] = []
        for clause in clauses_of(bound):
            try:
                kept.append(_clause(clause, self, block))
            except OnRecord as found:
                handle = getattr(clause, "handle", None)
                if handle is not None and any(
                    _names(other, handle) for other in clauses_of(bound) if other is not clause
                ):
                    raise refuse(
                        f"the claim ?{handle} is on record already from this message: write {found.element} for it",
                        code="IdentityConflict",
                        id=found.element,
                    ) from None
                known.append(found.element)
        if not kept:
            return Settled(None, tuple(known))
        single = not isinstance(bound, Mutate)
        return Settled(kept[0] if single else Mutate(clauses=tuple(kept)), tuple(known))


def _names(node: object, handle: str) -> bool:
    """Whether a clause uses a handle."""
    if isinstance(node, Variable):
        return node.name == handle
    if isinstance(node, Node):
        return any(_names(getattr(node, name), handle) for name in node.__struct_fields__)
    return isinstance(node, tuple) and any(_names(item, handle) for item in node)


def _clause(clause: MutationClause, rules: Rules, block: Block) -> Any:  # a clause of the same family
    check = _CHECKS.get(type(clause))
    if check is None:
        words = "".join(f" {c}" if c.isupper() else c for c in type(clause).__name__).strip().upper()
        raise refuse(f"{words} is not for you", allowed=ALLOWED)
    return check(clause, rules, block)


def _ensure(clause: EnsureProposition, rules: Rules, block: Block) -> EnsureProposition:  # noqa: ARG001
    return clause


def _assert(clause: Assert, rules: Rules, block: Block) -> Assert:
    settled = settle_assert(clause, rules.messages, rules.reader, rules.said_at, block)
    return _sealed(settled, "key", rules)


def _sealed[T: (Assert, CreateConcept, CreateRecord)](clause: T, member: str, rules: Rules) -> T:
    key = getattr(clause, member)
    if not isinstance(key, Literal):
        return clause
    sealed = msgspec.structs.replace(key, value=f"{rules.seal}:{key.value}")
    return msgspec.structs.replace(clause, **{member: sealed})


# --- Concepts


def _create_concept(clause: CreateConcept, rules: Rules, block: Block) -> CreateConcept:
    ref = _type(text_of(clause.type), block)
    _content(clause.content, ref, block)
    name = text_of(clause.name)
    if name is not None and clause.client_key is None and ref not in _MANY:
        _new_name(name, ref, block)
    return _sealed(clause, "client_key", rules)


def _upsert(clause: UpsertConcept, rules: Rules, block: Block) -> UpsertConcept:
    content = clause.content
    if content.unset_attributes is not None or content.unset_facets or content.unset_structural:
        raise refuse("an UPSERT may add and replace, not UNSET", allowed=ALLOWED)
    found = block.concept(clause.match)
    ref = found.schema_ref if found is not None else _type(text_of(clause.match.get("type")), block)
    _content(content, ref, block)
    name = None if content.fields is None else text_of(content.fields.get("name"))
    if name is None:
        return clause
    if found is None and ref == PERSON:
        _new_name(name, ref, block)
    speakers = {message.speaker for message in rules.messages}
    renamed = found is not None and found.name not in (None, name, found.key)
    if renamed and ref == PERSON and found is not None and found.id not in speakers:
        raise refuse(
            f'somebody who is not speaking here keeps the name on record; ASSERT ({found.id}, "name", ...) instead'
        )
    return clause


def _type(name: str | None, block: Block) -> str | None:
    """The exact type of a new Concept, if it may be made; None where the engine will say what is wrong."""
    ref = None if name is None else block.ref("type", name)
    if ref is not None and (ref in _NOT_MADE or ref.startswith(f"{FACTS_REF}/")):
        raise refuse(f"{name} is kept by another part of the service; use a type of your own kind")
    return ref


def _new_name(name: str, ref: str | None, block: Block) -> None:
    """Refuse a second Concept of a type and a name, and say which there is (SEARCH before CREATE)."""
    if ref is None:
        return
    for element in block.view.find(name_key(name)):
        found = block.get(element)
        if isinstance(found, Concept) and found.schema_ref == ref and found.system.state == "active":
            raise refuse(
                f"there is a Concept of this type called {name[:80]} already: use its id {found.id}",
                code="IdentityConflict",
                hint="If it is another one of the same name, CREATE CONCEPT with a CLIENT KEY of its own.",
                id=found.id,
            )


def _content(content: Content, ref: str | None, block: Block) -> None:
    for facet in content.facets:
        named = block.ref("facet", str(text_of(facet.facet)))
        fields = {member.name for member in facet.values.members}
        if named is not None and (named != FACET or not fields <= FACET_FIELDS):
            raise refuse('of the facets only "MnemonicState" {salience, memory_strength} is yours to set')
    if content.attributes is not None and ref == PERSON:
        raise refuse(
            "what is said of somebody is no attribute: ASSERT it, so that it has a speaker and a source"
        )
    if content.attributes is not None and ref == f"{PROFILE}/Skill":
        status = text_of(content.attributes.get("status"))
        if status not in (None, "candidate"):
            raise refuse('a Skill begins as a "candidate"; only trials make it more')
    for name in ("canonical_id", "retention", "governance", "classification", "legal_hold"):
        if content.fields is not None and content.fields.get(name) is not None:
            raise refuse(f"the field {name} is not yours to set")


# --- records and their lifecycles


def _create_record(clause: CreateRecord, rules: Rules, block: Block) -> CreateRecord:
    _content(clause.content, None, block)
    if clause.kind == "assertion":
        clause = settle_record(clause, rules.messages, rules.reader, rules.said_at, block)
    elif clause.kind == "evidence":
        fields = clause.content.fields
        named = None if fields is None else text_of(fields.get("evidence_class"))
        if named not in OWN_EVIDENCE:
            raise refuse(
                "the messages are captured already: cite them as :msg1, :msg2 and so on",
                allowed=sorted(OWN_EVIDENCE),
            )
    return _sealed(clause, "client_key", rules)


def _retract(clause: RetractAssertion, rules: Rules, block: Block) -> RetractAssertion:  # noqa: ARG001
    if clause.where is not None or not isinstance(clause.target, Literal):
        raise refuse("RETRACT ASSERTION takes one Assertion by its id, without WHERE")
    return clause


def _supersede(clause: SupersedeAssertion, rules: Rules, block: Block) -> SupersedeAssertion:  # noqa: ARG001
    if not isinstance(clause.by, Variable) or clause.by.name not in block.made:
        raise refuse(
            "an Assertion is superseded by one that the same statement makes: ASSERT (...) {...} SUPERSEDING id"
        )
    return clause


def _correct(clause: CorrectEvidence, rules: Rules, block: Block) -> CorrectEvidence:
    captured = {element for message in rules.messages for element in message.all}
    target = text_of(clause.target)
    found = None if target is None else block.get(target)
    if target in captured or not isinstance(found, Evidence) or found.evidence_class not in OWN_EVIDENCE:
        raise refuse("what was received stands as it came; only Evidence that you wrote is yours to correct")
    return clause


def _transition(clause: TransitionActivity, rules: Rules, block: Block) -> TransitionActivity:  # noqa: ARG001
    if text_of(clause.to) not in _STATES:
        raise refuse("an Activity moves to a state of its own", allowed=sorted(_STATES))
    return clause


_CHECKS: Final[dict[type[Any], Callable[[Any, Rules, Block], Any]]] = {
    CreateConcept: _create_concept,
    UpsertConcept: _upsert,
    EnsureProposition: _ensure,
    CreateRecord: _create_record,
    Assert: _assert,
    SupersedeAssertion: _supersede,
    RetractAssertion: _retract,
    CorrectEvidence: _correct,
    TransitionActivity: _transition,
}


def clauses_of(statement: KmlStatement) -> Iterator[MutationClause]:
    """The clauses of a statement."""
    yield from statement.clauses if isinstance(statement, Mutate) else (statement,)
