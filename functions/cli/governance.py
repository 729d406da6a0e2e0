"""`noema governance`: who may do what in a space, over HTTP.

What lives here: the commands and how their answers look. What must never live here: what a record means, and a way past
the host's routes.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

import click

from functions.cli.client import Client, service_command
from functions.cli.terminal import Failure

_PAGE: Final = 500
Told = tuple[str, object]

space_argument = click.argument("space")


@click.group()
def governance() -> None:
    """Say who may know and do what in a space, and read it back. See docs/governance.md."""


def _path(space: str, rest: str = "") -> str:
    return f"/host/v1/{space}/governance{rest}"


def _shown(value: Any) -> Told:  # JSON
    return json.dumps(value, indent=2, ensure_ascii=False), value


def _pages(client: Client, path: str, query: dict[str, str | int]) -> list[Any]:
    found: list[Any] = []
    while True:
        answer = client.call("GET", path, query={**query, "limit": _PAGE}, patient=True)
        found.extend(answer["result"])
        if "next_cursor" not in answer:
            return found
        query = {**query, "cursor": answer["next_cursor"]}


@governance.command()
@space_argument
@service_command
def show(space: str, client: Client) -> Told:
    """Show how SPACE is governed."""
    return _shown(client.result("GET", _path(space), patient=True))


@governance.command()
@space_argument
@click.argument("command")
@click.option("--if-match", type=int, help="Only if the records are still at this version.")
@service_command
def send(space: str, command: str, if_match: int | None, client: Client) -> Told:
    """Send COMMAND, in JSON, to the control plane of SPACE."""
    try:
        body = json.loads(command)
    except ValueError as error:
        raise Failure("the command is not JSON", 'Such as {"command": "put_group", ...}') from error
    told = client.result(
        "POST",
        _path(space, "/commands"),
        body,
        key=secrets.token_hex(16),
        patient=True,
        if_match=if_match,
    )
    return _shown(told)


@governance.command("list")
@space_argument
@click.argument("kind")
@service_command
def list_records(space: str, kind: str, client: Client) -> Told:
    """List the records of KIND in SPACE: rules, groups, parties, roles, delegations, bindings, approvals, trust."""
    return _shown(_pages(client, _path(space, f"/records/{kind}"), {}))


@governance.command()
@space_argument
@click.argument("subject")
@click.argument("action")
@click.argument("element", required=False)
@service_command
def may(
    space: str,
    *,
    subject: str,
    action: str,
    element: str | None,
    client: Client,
) -> Told:
    """Ask whether SUBJECT would be let do ACTION in SPACE, on ELEMENT or on the space."""
    body = {"subject": subject, "action": action, **({} if element is None else {"element": element})}
    return _shown(client.result("POST", _path(space, "/decide"), body, patient=True))


@governance.command()
@space_argument
@click.option("--control-only", is_flag=True, help="Changes of the control plane alone.")
@click.option("--refusals", is_flag=True, help="What was refused, counted by day.")
@service_command
def audit(space: str, *, control_only: bool, refusals: bool, client: Client) -> Told:
    """List what was let through in SPACE, or what was refused."""
    query: dict[str, str | int] = {"control_only": "true"} if control_only else {}
    return _shown(
        _pages(client, _path(space, "/refusals" if refusals else "/audit"), {} if refusals else query)
    )
