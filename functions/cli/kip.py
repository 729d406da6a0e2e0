"""`noema kip`: tools for the KIP 2.0 language that need no service."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from functions.cli.terminal import Failure


@click.group()
def kip() -> None:
    """Tools for the KIP 2.0 language."""


@kip.command()
def parse() -> None:
    """Tell of each command in a JSON array (standard input) whether it parses.

    \b
    ["FIND(?x) WHERE { ?x {type: \\"Person\\"} }", "FIND("]
    answers with an array of the same length:
    [{"accepts": true, "language": "kql"}, {"accepts": false, "error": "InvalidSyntax"}]
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is
    from core.language.parser import verdict  # noqa: PLC0415 - the grammar takes time to build

    try:
        commands: Any = json.load(sys.stdin)
    except ValueError as error:
        raise _usage("standard input is not JSON") from error
    if not isinstance(commands, list) or not all(isinstance(each, str) for each in commands):
        raise _usage("standard input must be a JSON array of texts")
    click.echo(json.dumps([verdict(each) for each in commands], ensure_ascii=False))


def _usage(message: str) -> click.ClickException:
    hint = """Try: echo '["DESCRIBE PRIMER"]' | noema kip parse"""
    return click.ClickException(str(Failure(f"{message}. {hint}")))
