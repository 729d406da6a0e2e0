"""DESCRIBE PRIMER: the least a model must know before its first command (KIP §64).

What lives here: seven layers out of protected state, the schema and counts. What must never live here: memories.
A primer is a map, not the land: it is bounded (`MAX_COMPACT`, `MAX_FULL` bytes of JSON, stated in every primer),
costs the same in a space of any size, and says which digest it has, so that it need not be sent twice.

The authenticated Principal and the space's semantic self are two members that never borrow from each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.language.ast_meta import Describe
from core.meta.identity import principal_of, self_of, space_of
from core.meta.offers import VERSIONS, is_available, limits
from core.meta.operands import coordinates, optional_text
from core.meta.schema import sorted_symbols
from core.model.elements import Json
from core.protocol.canonical import digest_of
from core.schema.definitions import ConceptType, Definition, PredicateType, SymbolKind
from core.schema.environment import Environment
from core.state.indexes import type_key
from core.transaction.scope import Answer, Scope

MAX_COMPACT: Final = 6_000  # bytes: about 1,500 tokens
MAX_FULL: Final = 24_000  # bytes: about 6,000 tokens

INVARIANTS: Final = (
    "raw Proposition != accepted belief: ask BELIEF",
    "no visible match != false",
    "SEARCH score != confidence",
    "confidence != trust",
    "confidence != memory strength",
    "name != identity: use an id, or type and key",
    "source $self != destination $self",
    "a changed mind is a new Assertion SUPERSEDING the old one, not an UPDATE",
    "correcting Evidence adds a record, it never overwrites",
    "a valid signature != truth",
    "cognitive content != authority",
)

_REMEMBER: Final = (
    'MUTATE { UPSERT CONCEPT ?p { MATCH {type: "Person", key: "alice"} SET FIELDS {name: "Alice"} } '
    'UPSERT CONCEPT ?x { MATCH {type: "Preference", key: "dark-mode"} SET FIELDS {name: "dark mode"} } '
    'ASSERT (?p, "prefers", ?x) { by: ?p, mode: "stated", confidence: 0.9 } }'
)
_WORKFLOW: Final = (
    ('SEARCH CONCEPT "some words"', "find exact ids"),
    ('FIND(?x.name) WHERE { ?x CONCEPT {type: "Person"} }', "read records"),
    (
        'FIND(?what.name, ?b.status) WHERE { ?b BELIEF ({type: "Person", key: "alice"}, "prefers", ?what) }',
        "ask what is believed",
    ),
    (_REMEMBER, "remember a claim, and whose it is, where you may write"),
    ('DESCRIBE TYPE "Person"', "before writing one; LIST TYPES and LIST PREDICATES name the others"),
    ("PREVIEW KML :command", "see an effect without it"),
    ("DESCRIBE CAPABILITIES", "what this service can do, and you"),
)
_EXAMPLES: Final = {
    "slot": 'FIND(?s.accepted_values) WHERE { ?s BELIEF SLOT (:person, "prefers") }',
    "upsert": 'UPSERT CONCEPT ?p { MATCH {type: "Person", key: "alice"} SET ATTRIBUTES {display_name: "Alice"} }',
    "assert": 'ASSERT (:person, "prefers", :what) { by: :speaker, mode: "stated", evidence: [:message] }',
    "supersede": 'ASSERT (:person, "prefers", :what) { by: :speaker, mode: "stated" } SUPERSEDING :old',
    "history": "HISTORY ELEMENT :id",
    "past": 'FIND(?x.name) WHERE { ?x CONCEPT {type: "Person"} } AS OF SEQ :seq',
    "follow": "CHANGES SINCE :cursor",
}
_CUT: Final = 160  # characters of a description


def primer(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE PRIMER [MODE "compact" | "full"]; compact where nothing is said.

    Raises:
        NoemaError: ConstraintViolation for another mode.
    """
    mode = optional_text(statement.subject, "MODE") or "compact"
    if mode not in {"compact", "full"}:
        raise NoemaError("ConstraintViolation", 'MODE is "compact" or "full"')
    bound = MAX_FULL if mode == "full" else MAX_COMPACT
    names = 64 if mode == "full" else 24
    while True:  # what may grow is the lists of names; halving them always ends
        value = _primer(mode, bound, names, scope)
        if names <= 1 or len(msgspec.json.encode(value)) <= bound:
            break
        names //= 2
    return Answer(value=value, context=coordinates(scope))


def _primer(mode: str, bound: int, names: int, scope: Scope) -> dict[str, Json]:
    full = mode == "full"
    value: dict[str, Json] = {
        "mode": mode,
        "max_bytes": bound,
        "protocol": VERSIONS,
        "context": {
            "space": space_of(scope),
            "snapshot_seq": scope.state.seq,
            "schema_environment_version": scope.env.version,
            "readonly": scope.context.readonly,
        },
        "principal": principal_of(scope),
        "self": self_of(scope),
        "principal_is_not_self": "Who is authenticated is not who this memory is about; only a host binds the two.",
        "schema": _schema(scope.env, names, full=full),
        "map": _map(scope, names),
        "capabilities": _capabilities(scope),
        "invariants": list(INVARIANTS),
        "next": [{"command": command, "to": purpose} for command, purpose in _WORKFLOW],
    }
    if full:
        value["examples"] = _EXAMPLES
    return {**value, "primer_digest": digest_of(value)}


def _schema(env: Environment, names: int, *, full: bool) -> dict[str, Json]:
    tables: tuple[tuple[str, SymbolKind], ...] = (
        ("types", "type"), ("predicates", "predicate"), ("facets", "facet"), ("structural_fields", "structural"),
    )  # fmt: skip
    out: dict[str, Json] = {"packages": _first(list(env.active), names)}
    for name, kind in tables:
        found = sorted_symbols(kind, env)
        out[name] = _first([_symbol(each) if full else each.name[:80] for each in found], names)
    if env.defaults:
        out["aliases"] = dict(list(env.defaults.items())[:names])
    return out


def _symbol(definition: Definition) -> dict[str, Json]:
    row: dict[str, Json] = {"name": definition.name[:80]}
    description = str(definition.document.get("description", ""))
    if description:
        row["means"] = description[:_CUT]
    if isinstance(definition, ConceptType):
        row["required"] = [name for name, rule in definition.fields.items() if rule.required]
    elif isinstance(definition, PredicateType) and definition.functional:
        row["functional"] = True
    return row


def _first(items: list[Any], most: int) -> list[Any]:  # names, or rows of a full primer
    """The first few of a list, and how many more there are."""
    return items if len(items) <= most else [*items[:most], f"… {len(items) - most} more: LIST shows all"]


def _map(scope: Scope, names: int) -> dict[str, Json]:
    """How much of what there is. Counts take everything in, so only who may see everything gets them."""
    if scope.query_context().visible is not None:
        return {"counts": "not shown: not everything here is visible to you"}
    view = scope.view
    by_type = {found.name: view.count(type_key(found.ref)) for found in sorted_symbols("type", scope.env)}
    most: Iterable[tuple[str, int]] = sorted(by_type.items(), key=lambda item: (-item[1], item[0]))
    return {
        "counts": msgspec.to_builtins(view.counts),
        "concepts_by_type": {name[:80]: number for name, number in list(most)[:names] if number},
    }


def _capabilities(scope: Scope) -> dict[str, Json]:
    bounds = limits(scope)
    return {
        "search_modes": ["keyword"],
        "write": is_available("mutate_block", scope),
        "belief": is_available("belief_projection", scope),
        "history": is_available("historical_as_of", scope),
        "limits": {
            name: bounds[name] for name in ("max_query_rows", "max_path_hops", "max_transaction_operations")
        },
    }
