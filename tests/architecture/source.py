"""The project's own source as parsed modules, for the rules in this folder."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "functions", "infra")


class Import(NamedTuple):
    """One imported module, where it stands, whether inside a function, and whether only for type checkers."""

    target: str
    line: int
    local: bool
    typing: bool


class Module(NamedTuple):
    """One file: its dotted name, its path, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    def at(self, line: int) -> str:
        """A place as an editor opens it."""
        return f"{self.path.relative_to(ROOT)}:{line}"


@cache
def modules() -> dict[str, Module]:
    """Every module of the three packages, by dotted name."""
    return {module.name: module for module in map(_parse, _files())}


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _parse(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text("utf-8")
    return Module(name, path, text, ast.parse(text, str(path)))


def imports(module: Module, known: frozenset[str]) -> list[Import]:
    """What a module imports; `from a import b` is `a.b` where that is one of the `known` modules."""
    found = []
    for node, local, typing in _walk(module.tree, local=False, typing=False):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, local, typing) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.name.split(".")
                is_package = module.path.name == "__init__.py"
                package = package[: len(package) - node.level + is_package]
                base = ".".join([*package, base] if base else package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.append(Import(inner if inner in known else base, node.lineno, local, typing))
    return found


def _walk(node: ast.AST, *, local: bool, typing: bool) -> Iterator[tuple[ast.AST, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        yield child, local, typing
        deeper = local or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        checking = typing or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
        yield from _walk(child, local=deeper, typing=checking)


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module, methods and nested ones too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
