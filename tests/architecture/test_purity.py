"""Core takes values and returns values: no clock, no chance, no environment, no files, no sockets, no logging."""

import ast

from tests.architecture.source import Module, functions, imports, modules

# Modules of the standard library whose whole purpose is the world outside.
BANNED_MODULES = {
    "asyncio", "concurrent", "ctypes", "getpass", "glob", "http", "io", "logging", "multiprocessing", "os",
    "pathlib", "random", "secrets", "select", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess",
    "sys", "tempfile", "time", "urllib", "uuid",
}  # fmt: skip
BANNED_NAMES = {"open", "input", "print", "exec", "eval", "__import__", "breakpoint"}
BANNED_ATTRIBUTES = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
# module -> the banned modules it may import all the same, with the reason beside it.
ALLOWED: dict[str, set[str]] = {
    "core.storage.blocks": {"sys"},  # the machine's byte order, a constant
}
LOCKS = {"Lock", "RLock"}  # what core may use of threading: caches are shared, threads are started elsewhere


def core_modules() -> list[Module]:
    return [module for name, module in modules().items() if name.split(".")[0] == "core"]


def test_core_imports_nothing_of_the_world() -> None:
    """No module of core imports a part of the standard library that reaches outside."""
    known = frozenset(modules())
    wrong = [
        f"{module.at(each.line)} imports {each.target}"
        for module in core_modules()
        for each in imports(module, known)
        if each.target.split(".")[0] in BANNED_MODULES - ALLOWED.get(module.name, set())
    ]
    assert not wrong


def test_core_starts_no_thread() -> None:
    """Of threading, core uses locks and nothing else."""
    wrong = []
    for module in core_modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import) and any(each.name == "threading" for each in node.names):
                wrong.append(f"{module.at(node.lineno)} imports all of threading")
            elif isinstance(node, ast.ImportFrom) and node.module == "threading":
                wrong += [
                    f"{module.at(node.lineno)} {each.name}" for each in node.names if each.name not in LOCKS
                ]
    assert not wrong


def test_core_calls_no_clock_and_opens_nothing() -> None:
    """No module of core names `open`, `print` or the current time."""
    wrong = []
    for module in core_modules():
        own = {function.name for function in functions(module)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in BANNED_NAMES - own:
                    wrong.append(f"{module.at(node.lineno)} calls {node.func.id}")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                value = node.value
                owner = value.id if isinstance(value, ast.Name) else value.attr
                if (owner, node.attr) in BANNED_ATTRIBUTES:
                    wrong.append(f"{module.at(node.lineno)} uses {owner}.{node.attr}")
    assert not wrong


def test_the_exceptions_are_needed() -> None:
    """The exceptions above name modules that still need them, so that the list cannot rot."""
    stale = [name for name in ALLOWED if name in modules() and not _needs(name)]
    assert not stale


def _needs(name: str) -> bool:
    found = imports(modules()[name], frozenset(modules()))
    return any(each.target.split(".")[0] in ALLOWED[name] for each in found)


def test_the_environment_is_read_in_one_place() -> None:
    """Only functions/settings.py and the command line read environment variables."""
    readers = {
        name
        for name, module in modules().items()
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"})
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    }
    outside = {name for name in readers if not name.startswith(("functions.settings", "functions.cli"))}
    assert not outside
