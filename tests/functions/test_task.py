"""The container's entry: the worker's work under its own deadline, an exit code, and giving back when told to stop."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.agents.vocabulary import EVENT
from core.model.elements import Concept, Origin
from core.service.hints import read_hint
from core.service.values import Proposal
from core.transaction.draft import Draft
from functions import task, worker
from functions.task import DONE, FAILED, LEFT, USAGE, main
from tests.doubles import FixedModels, ScriptedModel, says
from tests.functions.world import World

ROOT = Path(__file__).resolve().parents[2]
TALK = {"messages": [{"role": "user", "content": "I love tea.", "name": "Alice"}]}


@pytest.fixture
def world() -> World:
    """A space with a conversation that waits."""
    made = World().make_space()
    assert made.ask("POST", "/v1/demo/formation", TALK, token=made.token()).status == 200
    made.queue.sent.clear()  # type: ignore[attr-defined]
    return made


def run(world: World, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    """One task; its exit code and what it says."""
    capsys.readouterr()
    code = main(argv, world.services)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith('{"task"')]
    return code, json.loads(lines[-1])


def hints(world: World) -> list[str]:
    queue: Any = world.queue
    return [read_hint(body).work for _, body, _ in queue.sent]


def event(world: World, key: str, summary: str) -> None:
    def decide(state: Any) -> Proposal:
        draft = Draft(state, now=max(world.clock.now(), state.at), origin=Origin("x", "rest"))
        told = {"summary": summary, "event_class": "conversation", "started_at": "2026-05-01T10:00:00Z"}
        draft.create(Concept, schema_ref=EVENT, key=key, attributes=told)
        return Proposal(draft.finish())

    world.services.commits.commit("demo", decide, deadline=world.clock.now() + 10_000)


def test_a_task_is_what_the_worker_does(world: World) -> None:
    """Each task that works is one of the worker's own functions, under the name of its hint."""
    assert set(task._WORKS.values()) <= set(worker.WORK)


def test_formation(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """What waits is formed, and the task is done."""
    code, told = run(world, capsys, "formation", "--space", "demo")

    assert (code, told) == (DONE, {"task": "formation", "space": "demo", "status": "done"})
    assert world.services.spaces.head("demo").number("formed") == 1


def test_formation_makes_the_runs_it_gives_way_to(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A long queue is formed to its end by one task, with the maintenance that falls due on the way."""
    for n in range(44):
        talk = {"messages": [{"role": "user", "content": f"I love tea {n}."}]}
        assert world.ask("POST", "/v1/demo/formation", talk, token=world.token()).status == 200
    assert run(world, capsys, "formation", "--space", "demo")[0] == DONE

    assert world.services.spaces.head("demo").number("formed") == 45
    records = world.services.conversations.newest("demo", "maintenance", 10)
    assert [(record.text("scope"), record.status) for record in records] == [
        ("quick", "completed"),
        ("daydream", "completed"),
    ]


def test_maintenance_of_its_own_and_one_that_waits(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """With a scope it starts a run; without, it makes the one that waits, or nothing."""
    code, told = run(world, capsys, "maintenance", "--space", "demo", "--scope", "full")
    assert (code, told["run"]) == (DONE, 1)
    assert world.services.conversations.get("demo", "maintenance", 1).status == "completed"

    assert run(world, capsys, "maintenance", "--space", "demo")[0] == DONE
    assert world.ask("POST", "/v1/demo/maintenance", {}, token=world.token()).status == 200
    assert run(world, capsys, "maintenance", "--space", "demo", "--scope", "quick")[0] == FAILED
    assert run(world, capsys, "maintenance", "--space", "demo")[0] == DONE
    assert world.services.conversations.get("demo", "maintenance", 2).status == "completed"


def test_a_run_that_fails_is_an_exit_code(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Its reason is said; without time left it is handed back instead."""
    event(world, "a", "tea")
    event(world, "b", "tea")
    world.services.models = FixedModels(ScriptedModel(last=says("x", stop="length")))
    world.services.maintenance_keeper.limits_of = lambda space, model: _limits(1)
    code, told = run(world, capsys, "maintenance", "--space", "demo", "--scope", "daydream")

    assert (code, told["reason"]) == (FAILED, "model_turns")


def _limits(turns: int) -> Any:
    from core.models.budget import Limits  # noqa: PLC0415 - one use

    return Limits(turns=turns)


def test_recall(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Questions that wait are answered."""
    run(world, capsys, "formation", "--space", "demo")
    asked = world.ask(
        "POST", "/v1/demo/recall", {"query": "What does Alice love?"}, token=world.token(),
        headers={"prefer": "respond-async"},
    )  # fmt: skip
    assert asked.status == 202

    assert run(world, capsys, "recall", "--space", "demo")[0] == DONE
    assert "tea" in str(world.services.conversations.get("demo", "recall", 1).messages)


def test_shadow_evaluation(world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A policy as JSON or from a file is tried; the report is the task's answer and the status's."""
    run(world, capsys, "formation", "--space", "demo")
    question = {"query": "What does Alice love?"}
    assert world.ask("POST", "/v1/demo/recall", question, token=world.token()).status == 200
    file = tmp_path / "policy.json"
    file.write_text('{"decay_floor": 0.1}')
    code, told = run(
        world, capsys, "shadow-eval", "--space", "demo", "--policy", f"@{file}", "--replay-sample", "3"
    )

    assert (code, told["report"]["status"], told["report"]["replayed"], told["report"]["ties"]) == (
        DONE, "completed", 1, 1,
    )  # fmt: skip
    status = world.ask("GET", "/v1/demo/memory_status", token=world.token()).result
    assert status["last_shadow"] == told["report"]
    info = world.ask("GET", "/v1/demo/info", token=world.token()).result
    assert "decay_floor" not in json.dumps(info)


def test_export_and_restore(world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A space is written into a file, the same bytes for the same state, and restored under another id."""
    run(world, capsys, "formation", "--space", "demo")
    file = tmp_path / "demo.capsule.gz"
    assert run(world, capsys, "export", "--space", "demo", "--file", str(file))[0] == DONE
    first = file.read_bytes()
    assert run(world, capsys, "export", "--space", "demo", "--file", str(file))[0] == DONE
    assert file.read_bytes() == first
    assert gzip.decompress(first).count(b"\n") > 5
    assert [each.name for each in tmp_path.iterdir()] == ["demo.capsule.gz"]

    code, _ = run(
        world,
        capsys,
        "import",
        "--space",
        "copy",
        "--file",
        str(file),
        "--mode",
        "restore",
        "--owner",
        "alice",
    )
    assert code == DONE
    copy, whole = world.services.spaces.load("copy"), world.services.spaces.load("demo")
    assert copy.counts == whole.counts


def test_an_import_of_a_delta(world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A Capsule that is one JSON value is merged into a space that is there."""
    run(world, capsys, "formation", "--space", "demo")
    world.make_space("other")
    made = world.ask("POST", "/host/v1/demo/capsules/export", {}, token=world.token()).result
    file = tmp_path / "demo.json"
    file.write_text(json.dumps(made))

    code, told = run(world, capsys, "import", "--space", "other", "--file", str(file))

    assert (code, "report" in told) == (DONE, True)
    assert world.services.spaces.load("other").counts.evidence == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["shadow-eval", "--space", "demo", "--policy", '{"decay_floor": 2}'],
        ["shadow-eval", "--space", "demo", "--policy", "{"],
        ["shadow-eval", "--space", "demo", "--policy", "@/no/such/file"],
        ["shadow-eval", "--space", "demo", "--policy", "{}", "--replay-sample", "17"],
        ["import", "--space", "demo", "--file", "/no/such/file"],
        ["export", "--space", "demo", "--file", "/no/such/folder/file"],
    ],
)
def test_what_cannot_be_used_is_exit_code_two(
    world: World, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """An argument that somebody must correct; nothing is begun."""
    assert run(world, capsys, *argv)[0] == USAGE


@pytest.mark.parametrize(
    "argv", [[], ["dance"], ["formation"], ["formation", "--space", "x", "--seconds", "0"]]
)
def test_arguments_that_are_none(argv: list[str]) -> None:
    """As argparse ends: with 2 and a word on stderr."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2


def test_a_space_that_is_not_there(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Failed, by code."""
    code, told = run(world, capsys, "maintenance", "--space", "nowhere")
    assert (code, told["code"]) == (FAILED, "NotFoundOrNotVisible")


def test_a_bug_says_no_text(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody expected is logged by type and place, never with what it was about."""

    def broken(*_: object) -> bool:
        raise ValueError("I love tea")

    monkeypatch.setitem(worker.WORK, "formation", broken)  # type: ignore[arg-type]
    capsys.readouterr()
    code = main(["formation", "--space", "demo"], world.services)

    assert code == FAILED
    assert "I love tea" not in capsys.readouterr().out


def test_out_of_time_is_left_and_hinted_at(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """The deadline is the argument's; what is left goes back to the queue."""
    event(world, "a", "tea")
    event(world, "b", "tea")

    def slow(_: object) -> Any:
        world.clock.advance(61_000)
        return says("Nothing.")

    world.services.models = FixedModels(ScriptedModel([slow]))
    code, told = run(
        world, capsys, "maintenance", "--space", "demo", "--scope", "daydream", "--seconds", "60"
    )

    assert (code, told["status"]) == (LEFT, "left")
    assert hints(world).count("maintenance") == 1
    world.services.models.model.last = says("Nothing.")  # type: ignore[attr-defined]
    assert run(world, capsys, "maintenance", "--space", "demo")[0] == DONE


def test_sigterm_gives_the_work_back(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """In the middle of a phase: the lease is given back, the work is hinted at, and the next one makes the run."""
    event(world, "a", "tea")
    event(world, "b", "tea")

    def stopped(_: object) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return says("never read")

    world.services.models = FixedModels(ScriptedModel([stopped], last=says("Nothing.")))
    before = signal.getsignal(signal.SIGTERM)
    code, told = run(world, capsys, "maintenance", "--space", "demo", "--scope", "daydream")

    assert (code, told["reason"]) == (LEFT, "stopped")
    assert "maintenance" in hints(world)
    assert world.services.spaces.head("demo").lease_until("maintenance") == 0
    assert signal.getsignal(signal.SIGTERM) == before
    assert run(world, capsys, "maintenance", "--space", "demo")[0] == DONE
    assert world.services.conversations.get("demo", "maintenance", 1).status == "completed"


def test_it_runs_as_a_module_over_a_folder(tmp_path: Path) -> None:
    """`python -m functions.task`, with the embedded store, as the container runs it."""
    env = {"PATH": "/usr/bin:/bin", "NOEMA_STORE": "embedded", "NOEMA_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "functions.task", "maintenance", "--space", "nowhere"],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == FAILED
    assert json.loads(done.stdout.splitlines()[-1])["code"] == "NotFoundOrNotVisible"


# --- the container


def test_the_dockerfile_copies_what_there_is() -> None:
    """Every COPY names a path of the repository that the ignore file lets through, and the entry can be imported."""
    text = (ROOT / "infra/container/Dockerfile").read_text("utf-8")
    let = (ROOT / "infra/container/Dockerfile.dockerignore").read_text("utf-8").splitlines()
    copied = [line.split()[1] for line in text.splitlines() if line.startswith("COPY ")]

    assert copied == ["requirements/lambda.lock", "core", "functions", "infra"]
    for path in copied:
        assert (ROOT / path).exists()
        assert f"!{path}" in let
    assert 'ENTRYPOINT ["python", "-m", "functions.task"]' in text
    assert not re.search(r"^(ARG|ENV).*(KEY|SECRET|TOKEN)", text, re.MULTILINE)
    assert text.index("USER noema") < text.index("ENTRYPOINT")


def test_the_entry_needs_nothing_that_the_package_lacks() -> None:
    """The container has the functions' locked dependencies and no others: neither click nor a local server."""
    lacking = {"click", "waitress", "pytest", "moto", "mcp"}
    script = f"import sys, functions.task; print(sorted(set(sys.modules) & {lacking!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
