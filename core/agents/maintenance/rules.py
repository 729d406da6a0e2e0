"""What a model that maintains a memory may write: decided on the tree of a command, and on what the host selected.

What lives here: the families that maintenance may use, and what may stand in each. What must never live here: execution
(`core.service.agent_tools`), and what formation may write (`core.agents.tools.cognition`).

A memory may hold an order to delete everything, and a model may obey it. So it holds whatever a model says: nothing is
purged, tombstoned or retained differently; no schema, trust or policy is touched; claims are its own inferences, citing
what they rest on; nobody's claim is taken back; and what takes something out of ordinary use (ARCHIVE, MERGE CONCEPT, the
end of a task) reaches only what the host put on the table for this phase, one by its id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from core.agents.maintenance.decay import MNEMONIC, SLEEP_TASK
from core.agents.maintenance.material import MOST, Material
from core.agents.maintenance.working import ENDS, holds
from core.agents.tools.cognition import Settled, clauses_of
from core.agents.tools.terms import Block, refuse, text_of
from core.agents.vocabulary import PROFILE, TOPIC
from core.language import ast, bind
from core.language.ast_kml import (
    Archive,
    Assert,
    Content,
    CreateConcept,
    CreateRecord,
    EnsureProposition,
    KmlStatement,
    MergeConcept,
    Mutate,
    MutationClause,
    RetractAssertion,
    Update,
    UpsertConcept,
)
from core.model.elements import AnyElement, Assertion, Concept, Evidence, Json
from core.model.instants import Instant, format_instant
from core.schema.environment import Environment
from core.state.view import View

ALLOWED: Final = (
    "CREATE CONCEPT", "UPSERT CONCEPT", "ENSURE PROPOSITION", "ASSERT", "RETRACT ASSERTION", "UPDATE", "ARCHIVE",
    "MERGE CONCEPT", "MUTATE",
)  # fmt: skip
"""The families a model may write."""

INSIGHT: Final = f"{PROFILE}/Insight"
SKILL: Final = f"{PROFILE}/Skill"
SELF_MODEL: Final = f"{PROFILE}/SelfModel"
SOURCES: Final = frozenset({f"{PROFILE}/derived_from", f"{PROFILE}/compiled_from"})
DERIVED: Final = frozenset({INSIGHT, SKILL, SELF_MODEL})
"""Types that say what follows from other memories, and must say from which."""
_MAKES: Final = DERIVED | {SLEEP_TASK, TOPIC}
_THOUGHT: Final = ("inferred", "predicted", "hypothetical")
_SKILL_STATES: Final = frozenset({"candidate", "needs_review", "deprecated"})
_SAME: Final = f"{PROFILE}/same_as"
_TASK_FIELDS: Final = frozenset({
    "status", "outcome", "outputs", "not_before", "review_after", "blocked_by", "completed_at",
})  # fmt: skip
_FIELDS: Final = frozenset({"name", "aliases"})


class Custody(msgspec.Struct, frozen=True):
    """What holds for the commands of one phase of one run.

    keeper: the Concept that infers. owner: the name under which this run holds tasks. now: tells the time, for a task is held only for a while.
    seal: goes before keys that the model gives. material: what the host put on the table.
    """

    keeper: str
    owner: str
    now: Callable[[], Instant]
    seal: str
    material: Material

    @property
    def reserved(self) -> dict[str, Json]:
        """The parameters the host binds; no call may give them."""
        return {"self": {"id": self.keeper}}

    def settle(
        self,
        statement: KmlStatement,
        parameters: dict[str, Any],
        view: View,
        env: Environment,
        *,
        sees: Callable[[AnyElement], bool],
    ) -> Settled:
        """A model's statement as it may run, parameters bound and checked, with what only the host knows filled in.

        Raises:
            NoemaError: NotAuthorized, in words that tell the model what to do instead.
        """
        bound = bind(statement, {**parameters, **self.reserved})
        block = Block.of(bound, view, env, sees)
        kept = tuple(self._clause(clause, block) for clause in clauses_of(bound))
        return Settled(Mutate(clauses=kept) if isinstance(bound, Mutate) else kept[0])

    def _clause(self, clause: MutationClause, block: Block) -> Any:  # a clause of the same family
        check = _CHECKS.get(type(clause))
        if check is None:
            words = "".join(f" {c}" if c.isupper() else c for c in type(clause).__name__).strip().upper()
            raise refuse(f"{words} is not for maintenance", allowed=ALLOWED)
        return check(clause, self, block)

    def sealed[T: (Assert, CreateConcept)](self, clause: T, member: str) -> T:
        """A clause whose key is of this run and phase alone."""
        key = getattr(clause, member)
        if not isinstance(key, ast.Literal):
            return clause
        own = msgspec.structs.replace(key, value=f"{self.seal}:{key.value}")
        return msgspec.structs.replace(clause, **{member: own})


# --- what is made


def _create(clause: CreateConcept, rules: Custody, block: Block) -> CreateConcept:
    name = text_of(clause.type)
    ref = None if name is None else block.ref("type", name)
    if ref is not None and ref not in _MAKES:
        raise refuse(
            f"maintenance makes no {name}", allowed=sorted(each.rpartition("/")[2] for each in _MAKES)
        )
    _check_content(clause.content, block, fields=_FIELDS)
    attributes = clause.content.attributes
    status = None if attributes is None else text_of(attributes.get("status"))
    if ref == SLEEP_TASK and status != "pending":
        raise refuse('a SleepTask begins as "pending"')
    if ref == SKILL and status != "candidate":
        raise refuse('a Skill begins as a "candidate"; only trials make it more')
    if ref in DERIVED and not _sources(clause.content, block):
        raise refuse('what is derived names its sources: SET STRUCTURAL {("derived_from", "<id>") ...}')
    return rules.sealed(clause, "client_key")


def _sources(content: Content, block: Block) -> list[str]:
    """The existing elements that something is derived from."""
    named = [
        block.element(item.target)
        for item in content.structural
        if block.ref("structural", str(text_of(item.field))) in SOURCES
    ]
    return [each for each in named if each is not None and block.get(each) is not None]


def _upsert(clause: UpsertConcept, rules: Custody, block: Block) -> UpsertConcept:
    del rules
    found = block.concept(clause.match)
    if found is None or found.schema_ref not in DERIVED:
        raise refuse("UPSERT is for an Insight, a Skill or a SelfModel that is there; else CREATE CONCEPT")
    _check_derived(found, clause.content, clause.expect_version, block)
    return clause


def _ensure(clause: EnsureProposition, rules: Custody, block: Block) -> EnsureProposition:
    del rules, block
    return clause


def _assert(clause: Assert, rules: Custody, block: Block) -> Assert:
    mode = text_of(clause.mode)
    if mode not in _THOUGHT or block.element(clause.by) != rules.keeper:
        raise refuse(
            "maintenance says what follows, and nothing else: `by: :self` and a mode", allowed=_THOUGHT
        )
    cited = clause.evidence.items if isinstance(clause.evidence, ast.Array) else (clause.evidence,)
    evidence = [block.element(node) for node in cited if node is not None]
    known = [each for each in evidence if each and isinstance(block.get(each), Evidence)]
    suspicion = block.ref("predicate", str(text_of(clause.tuple.predicate))) == _SAME
    if not suspicion and (not known or len(known) < len(evidence)):
        raise refuse('cite the Evidence that it rests on, as the sources cite it: `evidence: ["E-..."]`')
    dated = msgspec.structs.replace(clause, at=ast.Literal(value=format_instant(rules.now())))
    return rules.sealed(dated, "key")


def _retract(clause: RetractAssertion, rules: Custody, block: Block) -> RetractAssertion:
    found = _one(clause.target, block, where=clause.where)
    if not isinstance(found, Assertion) or found.asserted_by != rules.keeper:
        raise refuse(
            "only what maintenance or formation inferred is yours to retract; others may be mistaken"
        )
    return clause


# --- what is changed


def _update(clause: Update, rules: Custody, block: Block) -> Update:
    content = clause.content
    only_weight = not (
        content.fields or content.attributes or content.structural or content.unset_attributes is not None
        or content.unset_facets or content.unset_structural
    )  # fmt: skip
    if only_weight:
        _check_content(content, block)
        _bounded(clause, rules, block)
        return clause
    found = _one(clause.target, block, where=clause.where)
    if isinstance(found, Concept) and found.schema_ref == SLEEP_TASK:
        _check_task(found, clause, rules)
        return clause
    if not isinstance(found, Concept) or found.schema_ref not in DERIVED:
        raise refuse("only an Insight, a Skill, a SelfModel or a task that you hold may be changed")
    _check_derived(found, content, clause.expect_version, block)
    return clause


def _bounded(clause: Update, rules: Custody, block: Block) -> None:
    """Weight may be given to what is on the table, or to a selection of at most twenty."""
    if clause.where is None:
        if block.element(clause.target) not in rules.material.offered:
            raise refuse("this phase does not weigh that memory")
        return
    limit = clause.limit.value if isinstance(clause.limit, ast.Literal) else None
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit <= MOST:
        raise refuse(f"what is selected by WHERE takes LIMIT 1 to {MOST}")


def _check_task(task: Concept, clause: Update, rules: Custody) -> None:
    if not holds(task, rules.owner, rules.now()) or task.id not in rules.material.tasks:
        raise refuse("take the task up with lease_task first")
    if clause.expect_version is None:
        raise refuse("a task is changed under EXPECT VERSION, as lease_task gave it")
    content = clause.content
    given = {member.name for member in content.attributes.members} if content.attributes else set()
    status = None if content.attributes is None else text_of(content.attributes.get("status"))
    other = content.fields or content.facets or content.unset_attributes is not None or content.structural
    if not given <= _TASK_FIELDS or other or status not in ENDS:
        raise refuse("a task you hold ends with a status, and may say how", allowed=sorted(ENDS))


def _check_derived(found: Concept, content: Content, expected: object, block: Block) -> None:
    if expected is None:
        raise refuse("what is there already is changed under EXPECT VERSION, as it was shown")
    if content.unset_attributes is not None or content.unset_facets or content.unset_structural:
        raise refuse("add and replace, and UNSET nothing")
    _check_content(content, block, fields=_FIELDS)
    status = None if content.attributes is None else text_of(content.attributes.get("status"))
    if found.schema_ref == SKILL and status not in {None, *_SKILL_STATES}:
        raise refuse("maintenance validates no Skill", allowed=sorted(_SKILL_STATES))


def _check_content(content: Content, block: Block, fields: frozenset[str] = frozenset()) -> None:
    """Refuse facets and fields that are not maintenance's."""
    for facet in content.facets:
        named = block.ref("facet", str(text_of(facet.facet)))
        if named != MNEMONIC or {member.name for member in facet.values.members} != {"salience"}:
            raise refuse('of the facets only "MnemonicState" {salience} is yours; strength fades by rule')
    given = {member.name for member in content.fields.members} if content.fields else set()
    if not given <= fields:
        raise refuse(f"the field {min(given - fields)} is not yours to set")


# --- what leaves ordinary use


def _archive(clause: Archive, rules: Custody, block: Block) -> Archive:
    found = _one(clause.target, block, where=clause.where)
    if found is None or found.id not in rules.material.offered:
        raise refuse("ARCHIVE reaches what the host listed as worn out, one by its id, and nothing else")
    return clause


def _merge(clause: MergeConcept, rules: Custody, block: Block) -> MergeConcept:
    ends = (block.element(clause.source), block.element(clause.target))
    if clause.where is not None or ends not in rules.material.pairs:
        raise refuse(
            "only pairs listed under `may_be_one` may be merged",
            hint='Of others ASSERT ({id: "C-1"}, "same_as", {id: "C-2"}) {by: :self, mode: "inferred"}; people decide.',
        )
    return clause


def _one(target: object, block: Block, *, where: object) -> AnyElement | None:
    """The one element that is named by its id."""
    if where is not None or not isinstance(target, (ast.Literal, ast.Object)):
        raise refuse("name one element by its id, without WHERE")
    element = block.element(target)
    return None if element is None else block.get(element)


def _create_record(clause: CreateRecord, rules: Custody, block: Block) -> CreateRecord:
    del rules, block
    if clause.kind == "assertion":
        raise refuse("make claims with ASSERT")
    raise refuse("the host records what was done, from which sources and with which outcome")


_CHECKS: Final[dict[type[Any], Callable[[Any, Custody, Block], Any]]] = {
    CreateConcept: _create,
    UpsertConcept: _upsert,
    EnsureProposition: _ensure,
    Assert: _assert,
    RetractAssertion: _retract,
    Update: _update,
    Archive: _archive,
    MergeConcept: _merge,
    CreateRecord: _create_record,
}
