"""Facts for the tests, without a log: an agent's namespace made of texts and ages."""

from core.facts import records
from core.facts.namespace import Namespace
from core.facts.recalling import Found, Tuning, resolve, search
from core.facts.values import Fact, RecallOptions
from core.model.elements import Concept, Origin, System

NOW = 1_780_000_000_000
DAY = 86_400_000
HOME = "C-0000000100000home"


def fact(name: str, text: str, age_days: float = 0, **more) -> Fact:
    at = NOW - round(age_days * DAY)
    return Fact(
        id=name,
        element=f"C-{name}",
        agent_id="ann",
        text=text,
        created_at=at,
        accessed_at=more.pop("accessed_at", at),
        **more,
    )


def element(made: Fact, replaced_by: str | None = None) -> Concept:
    system = System(1, made.created_at, made.created_at, "tx", "tx", Origin("ann", "test"))
    return Concept(id=made.element, system=system, **records.fact_fields(made, HOME, replaced_by))


def namespace(*facts: Fact, tokenizer: str = "ascii") -> Namespace:
    made = Namespace("ann", tokenizer, HOME)
    made.fill(element(each) for each in facts)
    return made


def find(space: Namespace, query: str, *, vector=(), tuning: Tuning = Tuning(), **options) -> Found:
    return search(space, query, resolve(RecallOptions(**options), tuning), vector=vector)


def ids(found: Found) -> list[str]:
    return [each.fact.id for each in found.scored]
