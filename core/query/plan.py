"""Plans: plain steps in the order they are done, and their JSON form.

What lives here: the values the planner makes and the matcher follows. What must never live here: decisions.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from core.language.format_terms import format_term
from core.model.elements import Json
from core.model.ids import Kind
from core.query.logic import (
    Belief,
    BeliefSlot,
    Condition,
    Edges,
    Elements,
    Known,
    Raw,
    Term,
    Tuples,
    Var,
    Walk,
)

Index = Literal[
    "bound", "id", "type+key", "key", "name", "canonical_id", "client_key", "type", "class", "state", "facet",
    "proposition", "asserted_by", "referrers", "tuple", "subject+predicate", "object+predicate", "subject",
    "object", "predicate", "source", "target", "path", "kind",
]  # fmt: skip
"""By what the candidates of a pattern are found. `kind` is a scan of every element of a kind; `bound` is none at
all: the variable already has its value."""


class Access(msgspec.Struct, frozen=True):
    """How candidates are found: the index, what is looked up in it, and about how many it gives.

    parts: terms and exact names, in the order the index's key takes them.
    """

    index: Index
    parts: tuple[Term | str, ...] = ()
    expected: int = 1


class Match(msgspec.Struct, frozen=True):
    """Extend each row by every match of a raw pattern."""

    pattern: Raw
    access: Access


class Keep(msgspec.Struct, frozen=True):
    """Keep the rows for which a condition holds."""

    condition: Condition


class Believe(msgspec.Struct, frozen=True):
    """Extend each row by a projection."""

    pattern: Belief | BeliefSlot


class Maybe(msgspec.Struct, frozen=True):
    """OPTIONAL: extend each row by the matches of a plan, or leave its new variables without one."""

    plan: Plan
    fills: tuple[int, ...]


class Without(msgspec.Struct, frozen=True):
    """NOT: keep the rows for which a plan has no match."""

    plan: Plan


Step = Match | Keep | Believe | Maybe | Without


class Plan(msgspec.Struct, frozen=True):
    """A block's main branch as steps, and its UNION branches beside it.

    main: False for a block that has no branch of its own: its steps then filter what the branches give.
    fills: slots that are set to "no match" in a solution that leaves them unbound.
    """

    steps: tuple[Step, ...]
    unions: tuple[Plan, ...] = ()
    main: bool = True
    fills: tuple[int, ...] = ()


# --- as JSON, for VALIDATE KQL ... WITH {plan: true} (KIP §69.2)

_ENGLISH: Final[dict[type, str]] = {
    Elements: "match",
    Tuples: "match",
    Known: "match",
    Walk: "walk",
    Edges: "structural",
}


def plan_to_json(plan: Plan) -> dict[str, Json]:
    """A plan for a reader: what is done in which order, by which index, over about how many candidates."""
    out: dict[str, Json] = {"steps": [_step(step) for step in plan.steps]}
    if plan.unions:
        out["unions"] = [plan_to_json(branch) for branch in plan.unions]
    return out


def _step(step: Step) -> dict[str, Json]:
    if isinstance(step, Match):
        return {
            "step": _ENGLISH[type(step.pattern)],
            **_pattern(step.pattern),
            "index": step.access.index,
            "expected": step.access.expected,
            "scan": step.access.index == "kind",
        }
    if isinstance(step, Keep):
        return {"step": "filter", "condition": format_term(step.condition.node)}
    if isinstance(step, Believe):
        kind = "belief_slot" if isinstance(step.pattern, BeliefSlot) else "belief"
        return {"step": kind, "variable": step.pattern.var.name}
    if isinstance(step, Maybe):
        return {"step": "optional", "plan": plan_to_json(step.plan)}
    return {"step": "not", "plan": plan_to_json(step.plan)}


def _pattern(pattern: Raw) -> dict[str, Json]:
    if isinstance(pattern, Elements):
        kind: Kind = pattern.kind
        tests = [".".join(test.path) for test in pattern.tests]
        return {"kind": kind, "variable": pattern.var.name, "tests": tests}
    if isinstance(pattern, Known):
        return {"kind": "proposition", "variable": _name(pattern.var)}
    if isinstance(pattern, Edges):
        return {"field": pattern.field.ref, "variable": _name(pattern.var)}
    if isinstance(pattern, Walk):
        return {"predicates": [hop.predicate for hop in pattern.hops]}
    predicates: Any = pattern.predicates
    named = f"?{predicates.name}" if isinstance(predicates, Var) else list(predicates)
    return {"kind": "proposition", "variable": _name(pattern.var), "predicates": named}


def _name(var: Var | None) -> str | None:
    return None if var is None else var.name
