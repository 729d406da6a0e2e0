"""What every command shares: its options, how it answers, how it fails, and the clock on the wall.

What lives here: the one place of the command line that reads the time and waits. What must never live here:
what a command does.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

import click

DEFAULT_URL: Final = "http://127.0.0.1:8042"


class Failure(Exception):  # noqa: N818 - the end of a command, not a bug
    """The command did not do what it was asked.

    Args:
        message: what was wrong, for the person who typed the command.
        hint: what to do next.
        code: the service's error code, where the service said no.
        answer: what there is to show nevertheless, for a person and for a program.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        code: str | None = None,
        answer: tuple[str, object] | None = None,
    ) -> None:
        self.message = message
        self.hint = hint
        self.code = code
        self.answer = answer
        super().__init__(message)


def json_option(command: Callable[..., Any]) -> Callable[..., None]:
    """Gives a command `--json`, prints what it returns, and turns a `Failure` into a line and exit code 1.

    The command returns a pair: the text for a person, and the value for a program.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON value, also for an error.")
    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, **kwargs: Any) -> None:
        try:
            text, value = command(*args, **kwargs)
        except Failure as failure:
            _fail(failure, as_json=as_json)
        except KeyboardInterrupt:
            _fail(Failure("interrupted"), as_json=as_json)
        if as_json:
            click.echo(json.dumps(value, ensure_ascii=False, indent=2))
        elif text:
            click.echo(text)

    return wrapped


def print_error(message: str, **more: str | None) -> None:
    """An error as one JSON value on standard output; what is None is left out."""
    error = {"message": message, **{name: value for name, value in more.items() if value is not None}}
    click.echo(json.dumps({"error": error}, ensure_ascii=False))


def _fail(failure: Failure, *, as_json: bool) -> NoReturn:
    if as_json and failure.answer is not None:
        click.echo(json.dumps(failure.answer[1], ensure_ascii=False, indent=2))
    elif as_json:
        print_error(failure.message, hint=failure.hint, code=failure.code)
    else:
        if failure.answer is not None and failure.answer[0]:
            click.echo(failure.answer[0])
        click.echo(f"noema: {failure.message}", err=True)
        if failure.hint:
            click.echo(f"  {failure.hint}", err=True)
    sys.exit(1)


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `--url` and `--token`."""
    url = click.option(
        "--url", envvar="NOEMA_URL", default=DEFAULT_URL, show_default=True, help="The service."
    )
    token = click.option("--token", envvar="NOEMA_TOKEN", help="A CWT or a space token.")
    return url(token(command))


def space_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `--space`."""
    return click.option("-s", "--space", "space_id", envvar="NOEMA_SPACE", required=True, help="The space.")(
        command
    )


def now_s() -> int:
    """Unix seconds."""
    return int(time.time())  # noqa: TID251 - the command line's own clock


def pause(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)  # noqa: TID251 - a person is waiting too
