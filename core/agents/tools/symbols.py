"""Declaring vocabulary: types and predicates that memory lacks, in a package of the space's own (contract §4.13).

What lives here: which names may be declared, the package that says what they mean, and the protected state with it.
What must never live here: who may declare, and committing.

Every publication is a new version, `kip://noema/learned/<instance>@1.0.N`, that holds what is new; the versions
before it stay in force beside it. So a name has one exact reference for ever, and what was written with it is found
and revised under it. The instance is in the id, because two spaces may mean two things by one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from core.agents.tools.calls import Named
from core.model.log import SpaceMeta
from core.protocol.canonical import digest_of
from core.schema.environment import (
    INSTALLED,
    Environment,
    environment_of,
    install_package,
    set_active_packages,
)
from core.schema.library import CORE_SYMBOLS

PACKAGES: Final = "kip://noema/learned"
MAX_SYMBOLS: Final = 512  # types and predicates together
MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 500
_TYPE: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
_PREDICATE: Final = re.compile(r"[a-z](?:[a-z0-9_]*[a-z0-9])?\Z")


class Declared(msgspec.Struct, frozen=True):
    """What a declaration came to: the protected state with it (None if nothing is new), and the names by outcome."""

    meta: SpaceMeta | None
    added: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    rejected: tuple[dict[str, str], ...] = ()
    package: str | None = None


def package_id(meta: SpaceMeta) -> str:
    """The id of the space's own package."""
    return f"{PACKAGES}/{meta.instance}"


def declare(meta: SpaceMeta, types: Iterable[Named], predicates: Iterable[Named]) -> Declared:
    """Declare what is well named and new; the rest is left out or rejected by name, and the call succeeds."""
    env = environment_of(meta)
    room = MAX_SYMBOLS - count(meta)
    tables: dict[str, dict[str, Any]] = {"concept_types": {}, "predicates": {}}
    added: list[str] = []
    known: list[str] = []
    rejected: list[dict[str, str]] = []
    wanted = [("concept_types", one) for one in types] + [("predicates", one) for one in predicates]
    for table, one in wanted:
        problem = _problem(table, one.name)
        if problem is not None:
            rejected.append({"name": one.name[:MAX_NAME], "reason": problem})
        elif one.name in tables[table] or _is_known(env, table, one.name):
            known.append(one.name)
        elif len(added) >= room:
            rejected.append({"name": one.name, "reason": f"a space declares at most {MAX_SYMBOLS} names"})
        else:
            tables[table][one.name] = _definition(table, one)
            added.append(one.name)
    if not added:
        return Declared(None, (), tuple(known), tuple(rejected))
    changed, package = _published(meta, tables)
    return Declared(changed, tuple(added), tuple(known), tuple(rejected), package)


def count(meta: SpaceMeta) -> int:
    """How many names the space has declared."""
    installed = meta.extensions.get(INSTALLED) or {}
    own = (artifact for ref, artifact in installed.items() if ref.startswith(f"{package_id(meta)}@"))
    return sum(len(table) for artifact in own for table in artifact["definitions"].values())


def _problem(table: str, name: str) -> str | None:
    if len(name) > MAX_NAME:
        return f"a name is at most {MAX_NAME} characters"
    if name in CORE_SYMBOLS:
        return "the name is reserved"
    if table == "concept_types":
        return None if _TYPE.match(name) else "a type is letters and digits, a capital first"
    return None if _PREDICATE.match(name) else "a predicate is lower case letters, digits and underscores"


def _is_known(env: Environment, table: str, name: str) -> bool:
    return name in env.names("type" if table == "concept_types" else "predicate")


def _definition(table: str, one: Named) -> dict[str, Any]:
    described = " ".join(one.description.split())[:MAX_DESCRIPTION] or f"{one.name}, as conversations use it."
    if table == "concept_types":
        return {"kind": "ConceptType", "description": described, "attributes": {"open": True, "fields": {}}}
    return {
        "kind": "PredicateType",
        "description": described,
        "subject": {"kinds": ["Concept"]},
        "object": {"kinds": ["Concept"]},
        "functional": False,
        "open_world": True,
        "complete": False,
    }


def versions(meta: SpaceMeta) -> list[int]:
    """The N of every version of the space's own package, in force or ever installed."""
    refs = {*(meta.extensions.get(INSTALLED) or {}), *meta.schema.packages}
    own = f"{package_id(meta)}@1.0."
    return sorted(int(ref.removeprefix(own)) for ref in refs if ref.startswith(own))


def _published(meta: SpaceMeta, tables: dict[str, dict[str, Any]]) -> tuple[SpaceMeta, str]:
    number = max(versions(meta), default=0) + 1  # a version names one content for ever
    ref = f"{package_id(meta)}@1.0.{number}"
    artifact: dict[str, Any] = {
        "format": "KIP-Schema-Package",
        "format_version": "2.0-draft",
        "manifest": {
            "package_id": package_id(meta),
            "version": f"1.0.{number}",
            "package_ref": ref,
            "name": "Learned vocabulary",
            "description": "Types and predicates that this space declared while forming memories.",
            "publisher": "urn:noema:space",
            "purpose": "domain",
            "stability": "experimental",
            "executable": False,
        },
        "dependencies": [],
        "definitions": {
            table: {name: {**held, "ref": f"{ref}/{name}"} for name, held in members.items()}
            for table, members in tables.items()
        },
    }
    artifact["integrity"] = {"content_digest": digest_of(artifact)}
    changed = install_package(meta, artifact)
    return set_active_packages(changed, [*meta.schema.packages, ref]), ref
