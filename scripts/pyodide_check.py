"""What `pyodide_check.mjs` runs inside Pyodide; it runs the same under any Python with msgspec.

Imports every module of core. Then lets a space remember and answer with nothing but core: the use cases of
`core.service` over the reference store, with a clock and a source of chance that are arguments. Then runs KIP
commands as pure calls, and the fixture files of KIP 2.0 where they are at hand. Prints one line of JSON.
"""

import importlib
import json
import pkgutil
import platform
import sys
from pathlib import Path

import msgspec

import core
from core.authority import Principal
from core.engine import Context, execute
from core.protocol import http_types as wire
from core.protocol.request import read_request
from core.service.admin import Admin
from core.service.commit import Commits
from core.service.conversations import Conversations
from core.service.formation import Formation
from core.service.leases import Leases
from core.service.recall import Recall
from core.service.spaces import Spaces
from core.service.values import Caller
from core.storage.memory import MemoryObjects, MemoryTable

NOW = 1_780_000_000_000
LATER = NOW + 60_000
SAID = ("I moved to Lisbon in May 2024.", "I prefer green tea. 你好 🙂")
CREATE = 'CREATE CONCEPT ?c {TYPE "Topic" NAME "Pyodide"}'
FIND = 'FIND(?c.name) WHERE {?c CONCEPT {type: "Topic"}}'


class World:
    """A clock that stands still, chance that counts, and a queue that notes."""

    def __init__(self) -> None:
        self.count = 0
        self.sent: list[str] = []

    def now(self) -> int:
        return NOW

    def sleep(self, seconds: float) -> None:
        del seconds

    def token(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def uniform(self, low: float, high: float) -> float:
        del high
        return low

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        del body, dedupe
        self.sent.append(group)


def modules() -> list[str]:
    """The name of every module of core, imported."""
    names = [each.name for each in pkgutil.walk_packages(core.__path__, "core.")]
    for name in names:
        importlib.import_module(name)
    return names


def remember() -> tuple[Spaces, wire.RecallOutput, int]:
    """Make a space, submit a conversation, form it, and ask."""
    world = World()
    table, objects = MemoryTable(), MemoryObjects(world)
    spaces = Spaces(table, objects, world)
    commits = Commits(table, objects, world, world, spaces)
    conversations = Conversations(table, objects, world, world, spaces)
    formation = Formation(
        table,
        world,
        world,
        world,
        spaces=spaces,
        commits=commits,
        leases=Leases(table, world),
        conversations=conversations,
    )
    ada = Caller(subject="ada", channel="rest", scope="*", manager=True)
    wish = wire.CreateSpaceInput(user="ada", space_id="home", tier=2)
    Admin(table, world, spaces, commits).create_space(ada, wish, LATER)
    messages = [{"role": "user", "name": "Ada", "content": each} for each in SAID]
    body = msgspec.convert({"messages": messages}, wire.FormationInput)
    conversations.submit(ada, "home", body, key="once")
    drained = formation.drain("home", LATER)
    question = wire.RecallInput(query="What does Ada prefer to drink?")
    found = Recall(world, spaces, conversations).recall_structured(ada, "home", question)
    return spaces, found, len(drained.formed)


def ask_in_kip(spaces: Spaces) -> list[object]:
    """Write a Concept and find it, each as one pure call; what FIND answers."""
    state = spaces.load("home")
    answers: list[object] = []
    for command in (CREATE, FIND):
        request = read_request({"kip": "2.0", "operations": [{"command": command}]})
        outcome = execute(state, request, Context(principal=Principal(id="ada"), now=LATER))
        assert outcome.response is not None, outcome.need
        assert outcome.state is not None
        state = outcome.state
        told = msgspec.to_builtins(outcome.response)
        answers.append(told["results"][0].get("result", told))
    return answers


def run_fixtures() -> dict[str, int] | None:
    """How many fixture cases passed and failed; None where the files are not there."""
    try:
        from kip_fixtures import run_fixture  # noqa: PLC0415 - as Pyodide is given it
    except ImportError:
        from functions.cli.fixtures import run_fixture  # noqa: PLC0415
    root = (
        Path("/noema")
        if sys.platform == "emscripten"
        else Path(__file__).resolve().parents[2] / "shared" / "kip"
    )
    cases = [
        case
        for file in sorted((root / "fixtures").glob("*.json"))
        for case in run_fixture(json.loads(file.read_text("utf-8")))
    ]
    failed = [case for case in cases if case.problem is not None]
    for case in failed:
        print(f"{case.file}: {case.name}: {case.problem}", file=sys.stderr)
    return {"passed": len(cases) - len(failed), "failed": len(failed)} if cases else None


if __name__ == "__main__":
    names = modules()
    spaces, found, formed = remember()
    facts = {
        "python": platform.python_version(),
        "platform": sys.platform,
        "msgspec": msgspec.__version__,
        "numpy": "numpy" in sys.modules,
        "modules": len(names),
        "formed": formed,
        "answer": found.answer,
        "found": found.found,
        "kip": ask_in_kip(spaces)[1],
        "fixtures": run_fixtures(),
    }
    print(json.dumps(facts, ensure_ascii=False))
    fixtures = facts["fixtures"]
    if isinstance(fixtures, dict) and fixtures["failed"]:
        sys.exit(1)
