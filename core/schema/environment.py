"""`Environment`: what names mean in one space at one point of its log (KIP §20.6-20.9).

What lives here: the exact set of active packages, resolution of a local name or an exact reference to one
definition, and the alias and dependency rules. What must never live here: checks of values (`validate`).

Resolution never guesses. A local name is looked up in the active packages alone; if it means two things it
means nothing, until the space's protected alias table chooses one. An exact reference means what it says in
every package that is installed, so old data stay readable after an upgrade; writing needs an active package.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.model.ids import Kind
from core.model.log import SchemaEnvironment, SpaceMeta
from core.schema.definitions import (
    SYMBOL_WORDS,
    ConceptType,
    Definition,
    Facet,
    Package,
    PredicateType,
    StructuralField,
    SymbolKind,
    split_ref,
)
from core.schema.library import CORE_REF, CORE_STRUCTURAL, DEFAULT_PACKAGES, builtin, load_package

INSTALLED: Final = "schema_packages"
"""The member of `SpaceMeta.extensions` that holds artifacts installed beside the built-in ones, by reference."""


class Environment:
    """An exact set of packages, with lookups. Immutable; made by `environment_of`.

    Args:
        version: the space's schema environment version.
        active: packages whose local names are in force, in the order of the space's lock.
        readable: installed packages that only exact references of stored data may still name.
        defaults: the space's own choice for local names: name -> exact reference.
    """

    def __init__(
        self,
        version: int,
        active: Iterable[Package],
        readable: Iterable[Package] = (),
        defaults: dict[str, str] | None = None,
    ) -> None:
        self.version = version
        self.active = {package.ref: package for package in active}
        self.readable = {package.ref: package for package in readable}
        self.defaults = dict(defaults or {})
        self._known: dict[SymbolKind, dict[str, Definition]] = {}
        self._writable: dict[SymbolKind, dict[str, Definition]] = {}
        self._local: dict[SymbolKind, dict[str, tuple[str, ...]]] = {}
        for kind in SYMBOL_WORDS:
            self._index(kind)
        self.required_structural = tuple(
            found
            for found in self._writable["structural"].values()
            if isinstance(found, StructuralField) and found.minimum > 0
        )

    def _index(self, kind: SymbolKind) -> None:
        by_ref: dict[str, Definition] = {}
        for package in self.active.values():
            by_ref.update({definition.ref: definition for definition in package.table(kind).values()})
        self._writable[kind] = by_ref
        self._known[kind] = {
            definition.ref: definition
            for package in self.readable.values()
            for definition in package.table(kind).values()
        } | by_ref
        local: dict[str, dict[str, None]] = {}
        for package in self.active.values():
            for name, definition in package.table(kind).items():
                local.setdefault(name, {})[definition.ref] = None
            for name, ref in package.aliases[kind].items():
                local.setdefault(name, {})[ref] = None
        for name, ref in self.defaults.items():
            if ref in by_ref:
                local[name] = {ref: None}
        self._local[kind] = {name: tuple(refs) for name, refs in local.items()}

    # --- names to definitions

    def type(self, name: str, *, write: bool = False) -> ConceptType:
        """The Concept Type a local name or exact reference means; see `resolve`."""
        found = self.resolve("type", name, write=write)
        assert isinstance(found, ConceptType)
        return found

    def predicate(self, name: str, *, write: bool = False) -> PredicateType:
        """The Predicate a local name or exact reference means; see `resolve`."""
        found = self.resolve("predicate", name, write=write)
        assert isinstance(found, PredicateType)
        return found

    def facet(self, name: str, *, write: bool = False) -> Facet:
        """The Facet a local name or exact reference means; see `resolve`."""
        found = self.resolve("facet", name, write=write)
        assert isinstance(found, Facet)
        return found

    def structural(self, name: str, kind: Kind | None = None, *, write: bool = False) -> StructuralField:
        """The Structural Field a name means at a source of a kind; the six Core fields go by kind (KIP §20.13).

        With no kind, a Core name means the Core field, since no package may shadow it.
        """
        core = CORE_STRUCTURAL.get(name.removeprefix(f"{CORE_REF}/"))
        if core is not None:
            if kind is not None and kind not in core.source.kinds:
                raise NoemaError(
                    "StructuralReferenceInvalid",
                    f"{core.name} is a field of {core.source.kinds[0]}, not of {kind}",
                    details={"field": core.name, "kind": kind},
                )
            return core
        found = self.resolve("structural", name, write=write)
        assert isinstance(found, StructuralField)
        return found

    def resolve(self, kind: SymbolKind, name: str, *, write: bool = False) -> Definition:
        """The one definition a local name or an exact reference means here.

        Args:
            kind: which kind of symbol is wanted.
            name: as written in the command.
            write: whether new state will carry it; then its package must be active.

        Raises:
            NoemaError: SchemaSymbolNotFound, SchemaSymbolAmbiguous (with the candidates), or
                SchemaPackageUnavailable for an exact reference into a package that is not available.
        """
        refs = self._local[kind].get(name)
        if refs is not None:
            if len(refs) > 1:
                raise NoemaError(
                    "SchemaSymbolAmbiguous",
                    f"{name} is a {SYMBOL_WORDS[kind]} of more than one active package",
                    details={"symbol": name, "candidates": list(refs)},
                )
            found = self._writable[kind].get(refs[0])
            if found is not None:
                return found
        table = self._writable if write else self._known
        exact = table[kind].get(name)
        return exact if exact is not None else self._refuse(kind, name)

    def _refuse(self, kind: SymbolKind, name: str) -> Definition:
        word = SYMBOL_WORDS[kind]
        parts = split_ref(name)
        if parts is not None and parts[0] not in self.active:
            if parts[0] in self.readable:
                problem = f"{parts[0]} is installed for reading only; new data need an active package"
            else:
                problem = f"{parts[0]} is not a package of this space"
            raise NoemaError("SchemaPackageUnavailable", problem, details={"package": parts[0]})
        near = difflib.get_close_matches(name, list(self._local[kind]), n=3, cutoff=0.6)
        raise NoemaError(
            "SchemaSymbolNotFound",
            f"there is no {word} {name!r} in this space",
            hint=f"Did you mean {' or '.join(near)}?" if near else None,
            details={"symbol": name, "symbol_kind": word, "near": near},
        )

    # --- definitions of stored references

    def known(self, kind: SymbolKind, ref: str) -> Definition | None:
        """The definition of an exact reference found in stored data, or None if it is no longer installed."""
        return self._known[kind].get(ref)

    def names(self, kind: SymbolKind) -> dict[str, tuple[str, ...]]:
        """Every local name in force with what it may mean; more than one meaning makes it unusable."""
        return self._local[kind]

    def definitions(self, kind: SymbolKind) -> Iterator[Definition]:
        """Every definition of the active packages, in the order of the lock."""
        return iter(self._writable[kind].values())


# --- a space's environment and its protected changes


def environment_of(meta: SpaceMeta) -> Environment:
    """The environment that a space's protected state describes.

    Raises:
        NoemaError: SchemaPackageUnavailable for a locked package that is neither built in nor installed.
    """
    installed = meta.extensions.get(INSTALLED) or {}
    schema = meta.schema
    return _build(
        schema.version,
        schema.packages,
        tuple(sorted(schema.aliases.items())),
        _Artifacts(installed),
    )


class _Artifacts:
    """Installed artifacts as a cache key: equal if the same packages with the same content are there."""

    def __init__(self, artifacts: dict[str, Any]) -> None:
        self.artifacts = artifacts
        self._key = tuple(sorted((ref, a["integrity"]["content_digest"]) for ref, a in artifacts.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Artifacts) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=64)
def _build(
    version: int, active: tuple[str, ...], defaults: tuple[tuple[str, str], ...], installed: _Artifacts
) -> Environment:
    packages = dict(builtin())
    for artifact in installed.artifacts.values():
        package = load_package(artifact)
        packages[package.ref] = package
    missing = [ref for ref in active if ref not in packages]
    if missing:
        raise NoemaError(
            "SchemaPackageUnavailable",
            f"the space's schema names packages that are not here: {', '.join(missing)}",
            details={"packages": missing},
        )
    return Environment(
        version,
        [packages[ref] for ref in active],
        [package for ref, package in packages.items() if ref not in active],
        dict(defaults),
    )


def install_package(meta: SpaceMeta, artifact: dict[str, Any]) -> SpaceMeta:
    """A space's protected state with one more package installed, not active. For hosts; no command reaches it.

    Raises:
        NoemaError: what `load_package` raises; IdentityConflict if the reference names another content.
    """
    package = load_package(artifact)
    installed = dict(meta.extensions.get(INSTALLED) or {})
    existing = builtin().get(package.ref)
    if existing is None and package.ref in installed:
        existing = load_package(installed[package.ref])
    if existing is not None:
        if existing.digest != package.digest:
            raise NoemaError("IdentityConflict", f"{package.ref} is installed with another content")
        return meta
    stored = {
        **artifact,
        "integrity": {"content_digest": package.digest, **(artifact.get("integrity") or {})},
    }
    extensions = {**meta.extensions, INSTALLED: {**installed, package.ref: stored}}
    return msgspec.structs.replace(meta, extensions=extensions)


def set_active_packages(
    meta: SpaceMeta, packages: Iterable[str], aliases: dict[str, str] | None = None
) -> SpaceMeta:
    """A space's protected state with exactly these packages active; its environment version moves on.

    Raises:
        NoemaError: SchemaPackageUnavailable for an unknown package or a dependency that is not active,
            DigestMismatch for a dependency of another content, SchemaSymbolNotFound for an alias to nothing.
    """
    schema = SchemaEnvironment(
        meta.schema.version + 1,
        tuple(dict.fromkeys(packages)),
        dict(meta.schema.aliases if aliases is None else aliases),
    )
    changed = msgspec.structs.replace(meta, schema=schema)
    environment = environment_of(changed)
    for package in environment.active.values():
        _check_dependencies(package, environment)
    for name, ref in schema.aliases.items():
        if not any(environment.known(kind, ref) for kind in SYMBOL_WORDS):
            raise NoemaError("SchemaSymbolNotFound", f"the alias {name} names {ref}, which is not active")
    return changed


def _check_dependencies(package: Package, environment: Environment) -> None:
    for needed in package.dependencies:
        if needed.ref == CORE_REF or not needed.required:
            continue
        found = environment.active.get(needed.ref)
        if found is None:
            raise NoemaError(
                "SchemaPackageUnavailable",
                f"{package.ref} needs {needed.ref}, which is not active",
                details={"package": package.ref, "dependency": needed.ref},
            )
        if needed.digest is not None and needed.digest != found.digest:
            raise NoemaError("DigestMismatch", f"{package.ref} needs another content of {needed.ref}")


def initial_environment() -> SchemaEnvironment:
    """The environment of a new space (KIP §20.9)."""
    return SchemaEnvironment(1, DEFAULT_PACKAGES)
