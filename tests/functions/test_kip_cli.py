"""`noema kip`: commands and requests against a service on a real socket, parameters, tables, failures, fixtures."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from functions import catalog
from functions.cli.tables import response_text, table
from functions.local.gateway import Gateway, Server
from functions.routing import respond
from functions.settings import Settings
from infra.system import SystemClock
from tests.functions.cli.test_commands import run
from tests.functions.world import World

CREATE = 'CREATE CONCEPT ?p {TYPE "Person" NAME :n}'
NAMES = 'FIND(?p.name, COUNT(?p)) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.name'


@pytest.fixture(name="served", scope="module")
def _served() -> Iterator[tuple[str, list[World]]]:
    """The URL of a gateway, and a list whose only member is the service that answers there."""
    worlds: list[World] = []

    def handle(event: Any, context: Any) -> Any:
        return respond(event, context, catalog.ROUTES, lambda: worlds[0].services)

    gateway = Gateway(lambda _, __: ("all", handle), clock=SystemClock(), log=lambda _: None)
    server = Server(gateway, "127.0.0.1", 0)

    def serve() -> None:
        with contextlib.suppress(OSError):  # the socket is closed under it when the tests are over
            server.run()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.port}", worlds
    server.close()


@pytest.fixture(name="kip")
def _kip(served: tuple[str, list[World]]) -> Any:
    """Runs `noema kip ...` against a service without keys that has the space `demo`."""
    url, worlds = served
    worlds[:] = [World(Settings(insecure_local=True))]
    wish = {"user": "me", "space_id": "demo", "tier": 2}
    assert worlds[0].ask("POST", "/admin/create_space", wish, headers={"host": "localhost"}).status == 200
    return lambda *args, **more: run("kip", *args, "--url", url, **more)


def test_a_command_is_run_and_shown_as_a_table(kip) -> None:
    """A mutation prints its handles and its receipt; a query its columns by name and the number of rows."""
    made: Result = kip("demo", CREATE, "-p", "n=Łukasz", "--key", "k")
    again: Result = kip("demo", CREATE, "-p", 'n="Łukasz"', "--key", "k")
    found: Result = kip("demo", NAMES)

    assert made.exit_code == 0, made.stderr
    assert made.stdout.splitlines()[-1].startswith("committed tx-")
    assert made.stdout.splitlines()[-1].endswith("at seq 1: 1 created")
    assert again.stdout == made.stdout
    assert found.stdout.splitlines() == ["?p.name  COUNT(?p)", "-------  ---------", "Łukasz   1", "(1 row)"]


def test_files_and_standard_input(kip, tmp_path: Path) -> None:
    """A file is one command; a .json file a request; - is standard input; parameters come on top."""
    plan, request = tmp_path / "plan.kip", tmp_path / "request.json"
    plan.write_text('MUTATE {\n  CREATE CONCEPT ?a { TYPE "Person" NAME :n }\n}', "utf-8")
    request.write_text(
        json.dumps({"execution": {"mode": "sequence"}, "operations": [CREATE, {"command": NAMES}]}), "utf-8"
    )

    assert kip("demo", "-f", str(plan), "-p", "n=Ann").exit_code == 0
    both = kip("demo", "-f", str(request), "-p", "n=Ben", "--json")
    piped = kip("demo", "-f", "-", stdin=NAMES)

    assert json.loads(both.stdout)["results"][1]["result"] == [["Ann", 1], ["Ben", 1]]
    assert piped.stdout.splitlines()[-1] == "(2 rows)"


def test_a_dry_run_commits_nothing(kip) -> None:
    """It warns that it was one, and the space stays empty."""
    assert "DryRun" in kip("demo", CREATE, "-p", "n=x", "--dry-run").stdout
    assert kip("demo", NAMES).stdout.splitlines()[-1] == "(0 rows)"


def test_a_failure_is_an_exit_code_and_a_hint(kip) -> None:
    """The error's code, message and hint on standard error; with --json the whole response."""
    plain, coded = kip("demo", "FIND("), kip("demo", "FIND(", "--json")

    assert (plain.exit_code, plain.stdout) == (1, "")
    assert plain.stderr.startswith("noema: InvalidSyntax: line 1")
    assert coded.exit_code == 1
    assert json.loads(coded.stdout)["results"][0]["error"]["code"] == "InvalidSyntax"


def test_a_partial_success_shows_both(kip, tmp_path: Path) -> None:
    """What succeeded is printed, and the exit code tells that not all did."""
    request = tmp_path / "r.json"
    request.write_text(
        json.dumps({"execution": {"mode": "independent"}, "operations": ["DESCRIBE PROTOCOL", "FIND("]}),
        "utf-8",
    )
    result = kip("demo", "-f", str(request))

    assert result.exit_code == 1
    assert "[1] succeeded" in result.stdout
    assert "[2] failed\nInvalidSyntax: " in result.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("demo",), "give one command"),
        (("demo", "x", "-p", "novalue"), "NAME=VALUE"),
        (("nowhere", "DESCRIBE PRIMER"), "nowhere"),
        (("Not A Space!", "DESCRIBE PRIMER"), "space"),
    ],
)
def test_wrong_use_says_what_to_do(kip, args: tuple[str, ...], said: str) -> None:
    """A line on standard error and exit code 1."""
    result = kip(*args)

    assert result.exit_code == 1
    assert said in result.stderr


@pytest.mark.parametrize("content", ["{", "[]", "7"])
def test_a_json_file_that_is_no_request_is_refused(kip, tmp_path: Path, content: str) -> None:
    """Before anything is sent."""
    file = tmp_path / "r.json"
    file.write_text(content, "utf-8")

    assert str(file) in kip("demo", "-f", str(file)).stderr


def test_cells_are_lined_up_and_cut() -> None:
    """Wide characters take two columns, control characters none of the terminal's power, long texts 60."""
    lines = table(["a", "b"], [["名前", 1], ["x\x1b[31m\n", None], ["y" * 80, {"k": [True]}]])

    assert lines[2] == "名前" + " " * 58 + "1"
    assert "\x1b" not in "".join(lines)
    assert lines[4] == "y" * 59 + '…  {"k": [true]}'


def test_other_results_are_readable() -> None:
    """Objects of one shape are a table; anything else is indented JSON; a cursor and warnings are named."""
    results: list[dict[str, Any]] = [
        {"status": "succeeded", "result": [{"id": "C-1", "score": 0.5}, {"id": "C-2", "kind": "concept"}], "next_cursor": "abc"},
        {"status": "succeeded", "result": {"protocol": "KIP"}, "warnings": [{"code": "W", "message": "m"}]},
        {"status": "no_effect", "result": {"handles": {"c": {"id": "C-1", "created": False}}}},
    ]  # fmt: skip
    text = response_text({"results": results, "receipt": {"status": "no_effect"}}, [None, None, None])

    assert "id   score  kind" in text
    assert 'there is more: CURSOR "abc"' in text
    assert '  "protocol": "KIP"' in text
    assert "warning: W: m" in text
    assert "?c      C-1  was there" in text
    assert text.endswith("no_effect: nothing was changed")


FIXTURE: dict[str, Any] = {
    "name": "f",
    "setup": ['CREATE CONCEPT ?p {TYPE "Person" NAME "A"}'],
    "cases": [{"name": "finds", "command": NAMES, "expect": {"result": [["A", 1]]}}],
}


def test_fixtures_are_counted_and_a_failing_one_fails_the_run(tmp_path: Path) -> None:
    """The last line counts; a wrong answer is named, and the exit code is 1."""
    (tmp_path / "good.json").write_text(json.dumps(FIXTURE), "utf-8")
    good = run("kip", "fixtures", str(tmp_path))
    wrong = {
        **FIXTURE,
        "cases": [*FIXTURE["cases"], {"name": "lies", "command": NAMES, "expect": {"result": []}}],
    }
    (tmp_path / "bad.json").write_text(json.dumps(wrong), "utf-8")
    bad = run("kip", "fixtures", str(tmp_path / "bad.json"), str(tmp_path / "good.json"))

    assert (good.exit_code, good.stdout) == (0, "1 passed, 0 failed\n")
    assert bad.exit_code == 1
    assert bad.stdout.splitlines()[-1] == "2 passed, 1 failed"
    assert bad.stdout.startswith("FAILED f: lies: expected []")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"name": "x", "packages": [{}], "cases": []}'])
def test_a_file_that_is_no_fixture_is_named(tmp_path: Path, content: str) -> None:
    """Not a trace, but the file and what is wrong with it."""
    (tmp_path / "f.json").write_text(content, "utf-8")
    result = run("kip", "fixtures", str(tmp_path / "f.json"))

    assert result.exit_code == 1
    assert "f.json" in result.stderr
    assert "Traceback" not in result.output
