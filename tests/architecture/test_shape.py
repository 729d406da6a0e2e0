"""The size of files and functions, and that what is public says what it means."""

import ast
from collections.abc import Iterator

from tests.architecture.source import functions, modules

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60


def test_files_are_short() -> None:
    """No file of core, functions or infra is over 600 lines."""
    long = {name: lines for name, m in modules().items() if (lines := m.text.count("\n")) > MAX_FILE_LINES}
    assert not long


def test_functions_are_short() -> None:
    """No function is over 60 lines, its decorators and docstring counted."""
    long = []
    for module in modules().values():
        for function in functions(module):
            first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
            lines = (function.end_lineno or first) - first + 1
            if lines > MAX_FUNCTION_LINES:
                long.append(f"{module.at(function.lineno)} {function.name}: {lines}")
    assert not long


def test_modules_say_what_lives_in_them() -> None:
    """Every module that holds code opens with a docstring."""
    silent = [name for name, m in modules().items() if m.tree.body and not ast.get_docstring(m.tree)]
    assert not silent


def test_public_things_are_documented() -> None:
    """Every public class, and every public function and method of one, has a docstring."""
    silent = [
        f"{module.at(node.lineno)} {node.name}"
        for module in modules().values()
        for node in _public(module.tree)
        if not ast.get_docstring(node)
    ]
    assert not silent


def _public(owner: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.iter_child_nodes(owner):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_") or any(_is_override(each) for each in node.decorator_list):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _public(node)


def _is_override(decorator: ast.expr) -> bool:
    """An overload or override is documented where it is first defined; so is a property's setter."""
    name = decorator.id if isinstance(decorator, ast.Name) else getattr(decorator, "attr", "")
    return name in {"overload", "override", "setter"}


def test_every_function_is_annotated() -> None:
    """Every parameter and result has a type, so that mypy checks all of it."""
    bare = []
    for module in modules().values():
        bare += [f"{module.at(f.lineno)} {f.name}" for f in functions(module) if not _annotated(f)]
    assert not bare


def _annotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    typed = [each for each in arguments if each.arg not in {"self", "cls"}]
    return function.returns is not None and all(each.annotation is not None for each in typed)
