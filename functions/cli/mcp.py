"""`noema mcp`: one space as an MCP server on standard input and output, for a client that starts it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from functions.cli.terminal import Failure
from functions.settings import SettingsError

if TYPE_CHECKING:
    from functions.bootstrap import Services
    from functions.local.background import Message, Source
    from functions.mcp.stdio import Reply

_TIMEOUT_S = 60.0


@click.command()
@click.option(
    "-s", "--space", "space_id", envvar=["NOEMA_SPACE", "MCP_SPACE_ID"], required=True, help="The space."
)
@click.option("--url", envvar="NOEMA_URL", help="A service elsewhere; without it, the memory in --data.")
@click.option("--token", envvar=["NOEMA_TOKEN", "MCP_AUTH_TOKEN"], help="A CWT or a space token, for --url.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), envvar="NOEMA_DATA_DIR",
              default=".noema", show_default=True, help="Where the memory is kept, without --url.")  # fmt: skip
@click.option(
    "--create",
    is_flag=True,
    envvar="MCP_AUTO_CREATE_SPACE",
    help="Make the space in --data if it is not there.",
)
@click.option(
    "--tier",
    type=click.IntRange(0, 14),
    default=4,
    show_default=True,
    envvar="MCP_AUTO_CREATE_TIER",
    help="Its size class, with --create.",
)
def mcp(space_id: str, url: str | None, token: str | None, data: Path, *, create: bool, tier: int) -> None:
    """Serve one space to an MCP client over standard input and output.

    The client starts this command; `noema init` writes that into the configurations of the usual ones. With --url
    every message is handed to a service elsewhere. Without it the memory is the folder --data, which `noema serve`
    and other clients may use at the same time, and whoever can start the command may read and write it.
    """
    stream = _stream()
    try:
        if url is not None:
            _there(stream, url, token, space_id)
        else:
            _here(stream, space_id, data, tier=tier if create else None)
    except (Failure, SettingsError) as error:
        raise click.ClickException(str(error)) from error
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the client is gone


def _stream() -> IO[bytes]:
    """Standard output, kept for JSON-RPC alone: everything else that writes there goes to standard error."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return stream


def _there(stream: IO[bytes], url: str, token: str | None, space_id: str) -> None:
    import httpx  # noqa: PLC0415

    from functions.mcp import stdio  # noqa: PLC0415

    given = {"authorization": f"Bearer {token}"} if token else {}
    try:
        client = httpx.Client(headers=given, timeout=_TIMEOUT_S, trust_env=False)
        target = httpx.URL(f"{url.rstrip('/')}/mcp/{space_id}")
    except httpx.InvalidURL as error:
        raise Failure(f"{url} is no URL", "Give one such as https://memory.example.org") from error

    def post(body: bytes, headers: Mapping[str, str]) -> Reply:
        try:
            return client.post(target, content=body, headers=dict(headers))
        except httpx.HTTPError as error:
            raise OSError(str(error) or type(error).__name__) from error

    with client:
        stdio.run(sys.stdin.buffer, stream, stdio.There(post))


def _here(stream: IO[bytes], space_id: str, data: Path, *, tier: int | None) -> None:
    from functions.cli.serve import environment  # noqa: PLC0415 - the same store and settings as `noema serve`

    os.environ.update(environment(os.environ, "127.0.0.1", data))  # noqa: TID251 - where the handlers read theirs
    import msgspec  # noqa: PLC0415

    from functions import tick, worker  # noqa: PLC0415
    from functions.bootstrap import services  # noqa: PLC0415
    from functions.identity import LOCAL  # noqa: PLC0415
    from functions.local.background import Background  # noqa: PLC0415
    from functions.mcp import stdio  # noqa: PLC0415
    from functions.mcp.handler import TOOLBOX  # noqa: PLC0415

    found = services()
    if found.settings.store == "aws":
        raise Failure("NOEMA_STORE is aws, which is served by Lambda. Give --url.")
    if tier is not None:
        _create(found, space_id, tier)

    def log(line: str) -> None:
        click.echo(line, err=True)

    found.formation.sweep(grace_ms=0)  # the queue begins empty: hint at what an earlier process left
    queue = cast("Source[Message]", found.queue)  # the embedded one: the services know only how to send
    background = Background(queue, worker.handler, tick.handler, clock=found.clock, log=log)
    background.start()
    try:
        caller = msgspec.structs.replace(LOCAL, channel="mcp")
        stdio.run(sys.stdin.buffer, stream, stdio.Here(found, TOOLBOX, caller, space_id))
    finally:
        background.stop()


def _create(found: Services, space_id: str, tier: int) -> None:
    """Make the space; one that is there stays as it is."""
    from core.errors import NoemaError  # noqa: PLC0415
    from core.protocol.http_types import CreateSpaceInput  # noqa: PLC0415
    from functions.identity import LOCAL  # noqa: PLC0415

    wish = CreateSpaceInput(user=LOCAL.subject, space_id=space_id, tier=tier)
    try:
        found.admin.create_space(LOCAL, wish, found.clock.now() + 10_000)
    except NoemaError as error:
        if error.code != "IdentityConflict":
            raise Failure(f"the space {space_id} cannot be made: {error.message}", error.hint) from error
