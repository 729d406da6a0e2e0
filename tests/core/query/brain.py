"""A small brain for tests: elements written by hand, questions asked as KQL text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from core.language import bind, parse
from core.language.ast_kql import Find
from core.model.elements import (
    Activity,
    Assertion,
    Citation,
    Concept,
    Evidence,
    Origin,
    Payload,
    Proposition,
    StructuralRef,
    ValidTime,
)
from core.model.instants import Instant, parse_instant
from core.model.literals import Ref, Term, make_literal
from core.model.log import Delta, SpaceMeta, Tier
from core.query import QueryContext, QueryResult, run, select
from core.query.context import Bindings
from core.schema.definitions import Package, read_package
from core.schema.environment import Environment, initial_environment
from core.state.space import SpaceState, genesis
from core.transaction.draft import Draft

NOW: Instant = parse_instant("2026-06-01T00:00:00Z")
WORLD = "kip://test/world@1.0.0"
ORIGIN = Origin("tester", "test")

ARTIFACT: dict[str, Any] = {
    "format": "KIP-Schema-Package",
    "manifest": {"package_id": "kip://test/world", "version": "1.0.0"},
    "definitions": {
        "concept_types": {
            name: {"kind": "ConceptType"}
            for name in ("Person", "Project", "Theme", "Place", "Experience", "Step")
        },
        "predicates": {
            "prefers": {"object": {"kinds": ["Concept"]}},
            "knows": {},
            "part_of": {},
            "says": {},
            "timezone": {"object": {"literal_types": ["string"]}, "functional": True},
            "status": {"functional": True},
            "is_vegetarian": {"object": {"literal_types": ["boolean"]}, "functional": True},
        },
        "facets": {
            "Mnemonic": {
                "closed": True,
                "fields": {"salience": {"type": "number"}, "strength": {"type": "number"}},
            }
        },
        "structural_fields": {
            "has_step": {"ordered": True},
            "about": {"ordered": False},
        },
    },
}


def package() -> Package:
    """The test vocabulary, read as any package is."""
    return read_package(ARTIFACT, "sha256:test")


class Brain:
    """A space under construction. Each method writes one element and returns it; `commit` makes a new seq."""

    def __init__(self) -> None:
        meta = SpaceMeta(
            space_id="test",
            instance="one",
            salt="abcde",
            owner="tester",
            created_at=NOW,
            tier=Tier(3, NOW),
            schema=initial_environment(),
        )
        first = Delta(
            ver=1, seq=0, snapshot_seq=0, tx_id="tx-1", at=NOW, origin=ORIGIN, transaction_class="management",
            meta=meta,
        )  # fmt: skip
        self.state: SpaceState = genesis(first)
        self.past: dict[int, SpaceState] = {0: self.state}
        self.env = Environment(1, [package()])
        self.now = NOW
        self.draft = Draft(self.state, now=self.now, origin=ORIGIN)
        self.options: dict[str, Any] = {}

    # --- writing

    def commit(self) -> int:
        """Commit what was written since the last time; the `space_seq` it got."""
        delta = self.draft.finish()
        if delta is not None:
            self.state = self.state.apply(delta)
            self.past[self.state.seq] = self.state
        self.draft = Draft(self.state, now=self.now, origin=ORIGIN)
        return self.state.seq

    def concept(self, kind: str, name: str | None = None, **fields: Any) -> Concept:
        """A Concept of a type of the test vocabulary."""
        return self.draft.create(Concept, schema_ref=f"{WORLD}/{kind}", name=name, **fields)

    def says(self, subject: Any, predicate: str, obj: Any) -> Proposition:
        """The Proposition of a tuple."""
        return self.draft.create(
            Proposition, subject=_id(subject), predicate_ref=f"{WORLD}/{predicate}", object=_term(obj)
        )

    def claim(
        self,
        proposition: Proposition,
        by: Any,
        *evidence: Any,
        stance: Any = "support",
        mode: Any = "stated",
        **fields: Any,
    ) -> Assertion:
        """An Assertion; Evidence is given as elements or as (element, role)."""
        since, until = fields.pop("since", None), fields.pop("until", None)
        citations = tuple(
            Citation(item[0].id, item[1]) if isinstance(item, tuple) else Citation(item.id)
            for item in evidence
        )
        return self.draft.create(
            Assertion,
            proposition=proposition.id,
            asserted_by=_id(by),
            stance=stance,
            mode=mode,
            asserted_at=self.now,
            evidence=citations,
            valid_time=ValidTime(_instant(since), _instant(until)),
            **fields,
        )

    def evidence(self, kind: str = "observation", text: str = "", *source: Any, **fields: Any) -> Evidence:
        """Evidence with an inline text, from these sources."""
        return self.draft.create(
            Evidence,
            evidence_class=kind,
            payload=Payload("inline", text),
            content_digest=fields.pop("digest", f"sha256:{text}"),
            source=tuple(_id(item) for item in source),
            **fields,
        )

    def activity(self, kind: str, inputs: Any = (), outputs: Any = (), **fields: Any) -> Activity:
        """A completed Activity."""
        return self.draft.create(
            Activity,
            activity_class=kind,
            status="completed",
            inputs=tuple(_id(item) for item in inputs),
            outputs=tuple(_id(item) for item in outputs),
            **fields,
        )

    def link(self, source: Any, field: str, *targets: Any) -> None:
        """Structural references added to an element."""
        current = self.draft.get(source.id)
        assert current is not None
        refs = tuple(StructuralRef(f"{WORLD}/{field}", _id(target)) for target in targets)
        self.draft.change(current, structural=current.structural + refs)

    def change(self, element: Any, **fields: Any) -> Any:
        """An element with some fields changed."""
        current = self.draft.get(element.id)
        assert current is not None
        return self.draft.change(current, **fields)

    def merge(self, source: Concept, target: Concept) -> None:
        """One Concept merged into another."""
        self.change(source, merged_into=target.id, state="merged")

    # --- asking

    def context(self, **options: Any) -> QueryContext:
        """What queries of this brain run under."""
        state = options.pop("state", self.state)
        return QueryContext(
            **{
                "space_id": "test",
                "instance": "one",
                "snapshot_seq": state.seq,
                "snapshot_at": state.at,
                "now": self.now,
                "principal": "tester",
                "cursor_key": b"key",
                **self.options,
                **options,
            }
        )

    def find(self, text: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> QueryResult:
        """The answer to a FIND."""
        state = options.pop("state", self.state)
        return run(state, question(text, parameters), self.env, self.context(state=state, **options))

    def rows(self, text: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> list[Any]:
        """The rows of the answer to a FIND."""
        return self.find(text, parameters, **options).rows

    def select(self, block: str, **options: Any) -> list[Bindings]:
        """The solutions of a WHERE block written as text."""
        where = question(f"FIND(?unused_) WHERE {{ {block} }}").where
        return select(self.state, where, self.env, self.context(), **options)


def question(text: str, parameters: Mapping[str, Any] | None = None) -> Find:
    """A bound FIND."""
    command = parse(text)
    assert isinstance(command, Find)
    return bind(command, dict(parameters or {}))


def reference(element: Any) -> dict[str, str]:
    """An element as a parameter."""
    return {"id": _id(element)}


def _id(item: Any) -> str:
    return item if isinstance(item, str) else str(item.id)


def _term(item: Any) -> Term:
    if isinstance(item, msgspec.Struct) and hasattr(item, "id"):
        return Ref(_id(item))
    return item if isinstance(item, msgspec.Struct) else make_literal(item)  # type: ignore[return-value]


def _instant(text: str | None) -> Instant | None:
    return None if text is None else parse_instant(text)
