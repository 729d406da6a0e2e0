"""`noema kip`: run KIP commands against a space, and tools for the language that need no service."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from functions.cli.client import Client, service_command
from functions.cli.tables import response_text
from functions.cli.terminal import Failure, json_option

if TYPE_CHECKING:
    from functions.cli.fixtures import Case

_EXAMPLE: Final = """noema kip demo 'FIND(?c.name) WHERE {?c CONCEPT {type: "Person"}}'"""


class _Group(click.Group):
    """A group in which what is no command's name is a space: `noema kip demo ...` is `noema kip run demo ...`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with."""
        named = bool(args) and (args[0] in self.commands or args[0].startswith("-"))
        return super().resolve_command(ctx, args if named else ["run", *args])


@click.group(cls=_Group)
def kip() -> None:
    """Run KIP 2.0 commands.

    \b
    noema kip demo 'DESCRIBE PRIMER'
    noema kip demo -f plan.kip -p key='"alice"'
    noema kip parse < commands.json
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is


@kip.command()
@click.argument("space_id")
@click.argument("command", required=False)
@click.option(
    "-f",
    "--file",
    type=click.File("r", encoding="utf-8"),
    help="One command, or a request if *.json; - is stdin.",
)
@click.option(
    "-p",
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="What :NAME stands for: JSON, else text.",
)
@click.option("--dry-run", is_flag=True, help="Compute it and commit nothing.")
@click.option("--key", help="An idempotency key: the same request under it is done once.")
@service_command
def run(
    space_id: str,
    command: str | None,
    *,
    file: Any,  # a text file
    parameters: tuple[str, ...],
    key: str | None,
    client: Client,
    dry_run: bool,
) -> tuple[str, object]:  # fmt: skip
    """Run COMMAND (or a file) against SPACE_ID and print a table.

    A query goes to the endpoint that may not write, so a token of scope `read` is enough for it.
    """
    body = _body(command, file)
    if parameters:
        body["parameters"] = {**body.get("parameters", {}), **dict(map(_parameter, parameters))}
    if dry_run:
        body["options"] = {**body.get("options", {}), "dry_run": True}
    columns, writes = _read_commands(body)
    path = f"/v1/{space_id}/{'execute_kip' if writes else 'execute_kip_readonly'}"
    response: dict[str, Any] = client.call("POST", path, body, key=key)
    answer = response_text(response, columns), response
    if response["status"] == "succeeded":
        return answer
    errors = [response.get("error"), *(each.get("error") for each in response["results"])]
    error = next((each for each in errors if each), {"code": "?", "message": response["status"]})
    shown = answer if response["status"] == "partial" or len(response["results"]) > 1 else ("", response)
    raise Failure(
        f"{error['code']}: {error.get('message', '')}", error.get("hint"), code=error["code"], answer=shown
    )


def _body(command: str | None, file: Any) -> dict[str, Any]:  # a text file
    """The request, in the envelope's short form or as a file has it."""
    if (command is None) == (file is None):
        raise Failure("give one command, or a file with -f", f"Such as: {_EXAMPLE}")
    if file is None:
        return {"operations": [{"command": command}]}
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise Failure(f"{file.name} is not UTF-8 text") from error
    if not file.name.endswith(".json"):
        return {"operations": [{"command": text}]}
    try:
        body = json.loads(text)
    except ValueError as error:
        raise Failure(f"{file.name} is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Failure(
            f"{file.name} holds no request", 'A request is an object: {"command": "DESCRIBE PRIMER"}'
        )
    return body


def _parameter(text: str) -> tuple[str, Any]:  # a JSON value
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Failure(f"{text} is no NAME=VALUE", 'Such as: -p key=alice -p n=3 -p ref=\'{"id": "C-..."}\'')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _read_commands(body: dict[str, Any]) -> tuple[list[list[str] | None], bool]:
    """The columns of each operation that is a query, and whether anything in the request may write.

    What does not parse here is left to the service, which says why.
    """
    from core.errors import NoemaError  # noqa: PLC0415 - the grammar takes time to build
    from core.language import from_json, is_mutation, parse  # noqa: PLC0415
    from core.language.ast_kql import Find  # noqa: PLC0415
    from core.language.format import column_names  # noqa: PLC0415

    operations = [body["command"]] if "command" in body else body.get("operations")
    columns: list[list[str] | None] = []
    writes = "ingest" in body
    for each in operations if isinstance(operations, list) else ():
        operation = {"command": each} if isinstance(each, str) else each if isinstance(each, dict) else {}
        try:
            parsed = (
                from_json(operation["ast"])
                if "ast" in operation
                else parse(str(operation.get("command", "")))
            )
        except NoemaError:
            columns.append(None)
            continue
        columns.append(column_names(parsed) if isinstance(parsed, Find) else None)
        writes = writes or is_mutation(parsed)
    return columns, writes


# --- the language


@kip.command()
@click.option(
    "--ast", "trees", is_flag=True, help="Give the tree of what parses, as an operation's `ast` takes it."
)
def parse(*, trees: bool) -> None:
    """Tell of each command in a JSON array (standard input) whether it parses.

    \b
    ["FIND(?x) WHERE { ?x {type: \\"Person\\"} }", "FIND("]
    answers with an array of the same length:
    [{"accepts": true, "language": "KQL"}, {"accepts": false, "error": "InvalidSyntax"}]
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is
    from core.language import parse as read  # noqa: PLC0415 - the grammar takes time to build
    from core.language import to_canonical, verdict  # noqa: PLC0415

    try:
        commands: Any = json.load(sys.stdin)
    except ValueError as error:
        raise _usage("standard input is not JSON") from error
    if not isinstance(commands, list) or not all(isinstance(each, str) for each in commands):
        raise _usage("standard input must be a JSON array of texts")
    verdicts = [(each, verdict(each)) for each in commands]
    out = [
        {**said, "ast": to_canonical(read(text))} if trees and said["accepts"] else said
        for text, said in verdicts
    ]
    click.echo(json.dumps(out, ensure_ascii=False))


def _usage(message: str) -> click.ClickException:
    hint = """Try: echo '["DESCRIBE PRIMER"]' | noema kip parse"""
    return click.ClickException(str(Failure(f"{message}. {hint}")))


# --- fixtures


@kip.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
def fixtures(paths: tuple[Path, ...]) -> tuple[str, object]:
    """Run fixture files (or folders of them) in this process, each over a fresh space in memory.

    A fixture is {"name", "packages"?, "setup"?: [command], "cases": [{"name", "command", "params"?, "ordered"?,
    "expect": {"result"} or {"error"}}]}. Ends with `N passed, N failed`; exit code 1 if any failed.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    cases = [case for file in files for case in _cases(file)]
    failed = [case for case in cases if case.problem is not None]
    lines = [f"FAILED {case.file}: {case.name}: {case.problem}" for case in failed]
    counted = f"{len(cases) - len(failed)} passed, {len(failed)} failed"
    value = {
        "passed": len(cases) - len(failed),
        "failed": [{"file": case.file, "name": case.name, "problem": case.problem} for case in failed],
    }
    answer = "\n".join([*lines, counted]), value
    if failed:
        raise Failure(f"{len(failed)} of {len(cases)} cases failed", answer=answer)
    return answer


def _cases(file: Path) -> list[Case]:
    from core.errors import NoemaError  # noqa: PLC0415 - the whole engine
    from functions.cli.fixtures import run_fixture  # noqa: PLC0415

    try:
        return list(run_fixture(json.loads(file.read_text("utf-8"))))
    except (ValueError, KeyError, TypeError, AttributeError, NoemaError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise Failure(f"{file} is not a fixture that can be run ({problem})") from error
