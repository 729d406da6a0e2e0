"""`noema serve`: the whole service on this machine: the Lambda handlers, a store in a folder, the offline brain."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from sqlite3 import DatabaseError
from typing import TYPE_CHECKING, Final, NoReturn, cast
from urllib.parse import unquote

import click

from functions.cli.terminal import Failure
from functions.model_settings import models_in_words
from functions.settings import SettingsError, is_loopback, load

if TYPE_CHECKING:
    from functions.local.background import Background, Message, Source
    from functions.local.gateway import Handler, Server

_KEYS: Final = ("ED25519_PUBKEYS", "NOEMA_ADMIN_PUBKEYS")

_READY: Final = """\
Noema serves {url}
  memory   {data}
  access   {access}
  model    {model}
  meaning  {meaning}

Try these three, in another terminal:

  curl -s {url}/admin/create_space -H 'content-type: application/json' {auth}\
-d '{{"user": "me", "space_id": "demo", "tier": 2}}'

  curl -s {url}/v1/demo/formation -H 'content-type: application/json' {auth}\
-d '{{"messages": [{{"role": "user", "name": "Ada", "content": "I moved to Lisbon in May. I prefer green tea."}}]}}'

  curl -s {url}/v1/demo/recall_structured -H 'content-type: application/json' {auth}\
-d '{{"query": "What does Ada prefer to drink?"}}'

{url}/SKILL.md tells an agent how to use it; {url}/openapi.json lists every route.
Stop with Ctrl-C.
"""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8042, show_default=True, help="0: any free port."
)
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), envvar="NOEMA_DATA_DIR",
              default=".noema", show_default=True, help="Where the memory is kept.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No line for each request.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON value when it is ready.")
def serve(host: str, port: int, data: Path, *, quiet: bool, as_json: bool) -> None:
    """Run the whole service on this machine until Ctrl-C.

    Memory is kept in a folder and survives a restart, also after a power cut. Without keys every caller on this
    machine is admitted, and the service listens on loopback only. With ED25519_PUBKEYS (see `noema keygen`) it
    asks for tokens, as in a deployment.
    """
    os.environ.update(environment(os.environ, host, data))  # noqa: TID251 - the handlers read their settings there
    try:
        server, background = build(host, port, quiet=quiet)
    except (SettingsError, Failure) as error:
        raise click.ClickException(str(error)) from error
    url = f"http://{'[' + host + ']' if ':' in host else host}:{server.port}"
    keys = any(os.environ.get(name) for name in _KEYS)  # noqa: TID251 - only to tell of it
    auth = '-H "authorization: Bearer $NOEMA_TOKEN" ' if keys else ""
    access = "tokens (see `noema token --help`)" if keys else "everybody on this machine, without a token"
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)
        background.start()
        if as_json:
            click.echo(
                json.dumps({"url": url, "data": str(data.resolve()), "tokens": keys}, ensure_ascii=False)
            )
        else:
            text = _READY.format(
                url=url,
                data=data.resolve(),
                access=access,
                model=models_in_words(load().models),
                meaning=_meaning(os.environ),  # noqa: TID251 - only to tell of it
                auth=auth,
            )
            click.echo(text)
        sys.stdout.flush()
        server.run()
    except SystemExit:
        pass
    finally:
        click.echo("noema: finishing what is under way ...", err=True)
        server.close()
        background.stop()


def environment(given: Mapping[str, str], host: str, data: Path) -> dict[str, str]:
    """What the handlers' settings are to be, where the environment does not say otherwise.

    Nobody is admitted without a token unless the listener is on loopback; `functions.settings` checks it again.
    """
    out = {"NOEMA_ENDPOINT_HOST": host, "NOEMA_DATA_DIR": str(data)}
    out["NOEMA_STORE"] = given.get("NOEMA_STORE", "embedded")
    # One line of JSON for each request is for CloudWatch; here the gateway writes a short one.
    out["POWERTOOLS_LOG_LEVEL"] = given.get("POWERTOOLS_LOG_LEVEL", "WARNING")
    if is_loopback(host) and not any(given.get(name) for name in _KEYS):
        out["ALLOW_INSECURE_LOCAL"] = given.get("ALLOW_INSECURE_LOCAL", "1")
    # Search by meaning where its weights are installed; which it is, is printed.
    out["NOEMA_EMBEDDER"] = given.get("NOEMA_EMBEDDER") or ("static" if find_spec("wordllama") else "none")
    return out


def _meaning(environ: Mapping[str, str]) -> str:
    """What search by meaning is done with."""
    name = environ.get("NOEMA_EMBEDDER", "none")
    if name == "none":
        return f"search by words alone (for meaning too: {sys.executable} -m pip install --no-deps wordllama)"
    return f"search by words and by meaning ({name})"


def build(host: str, port: int, *, quiet: bool) -> tuple[Server, Background[Message]]:
    """The server and the work beside it, over the services that the environment names.

    Raises:
        SettingsError: the environment is not usable.
        Failure: the port is taken, or the data folder cannot be used.
    """
    from functions import tick, worker  # noqa: PLC0415 - all that serves is imported once it is wanted
    from functions.bootstrap import services  # noqa: PLC0415
    from functions.local.background import Background  # noqa: PLC0415
    from functions.local.gateway import Gateway, Server  # noqa: PLC0415

    try:
        found = services()
    except (OSError, DatabaseError) as error:
        raise Failure(f"the memory cannot be opened: {error}. Try --data with another folder.") from error
    found.sends_frames = True
    if found.settings.store == "aws":
        raise Failure(
            "NOEMA_STORE is aws, whose queue drives Lambda functions. Serve `embedded` or `memory`."
        )
    if found.settings.locked:
        raise Failure(
            "nobody would be admitted: there are no keys, and going without is for loopback alone. "
            "Make a key with `noema keygen`, or listen on 127.0.0.1."
        )

    def log(line: str) -> None:
        click.echo(line, err=True)

    gateway = Gateway(_handlers(), clock=found.clock, log=(lambda _: None) if quiet else log)
    try:
        server = Server(gateway, host, port)
    except OSError as error:
        raise Failure(
            f"cannot listen on {host} port {port}: {error.strerror or error}. Try --port."
        ) from error
    # The queue begins empty: hint at what an earlier process left. If that one was killed in the middle its lease
    # still stands; whoever holds one really is fenced by this, not harmed, and its work is done here.
    for space_id in found.formation.sweep(grace_ms=0):
        found.leases.raise_epochs(space_id, ("formation",))
    queue = cast("Source[Message]", found.queue)  # the embedded one: the services know only how to send
    background = Background(queue, worker.handler, tick.handler, clock=found.clock, log=log)
    return server, background


def _handlers() -> Callable[[str, str], tuple[str, Handler]]:
    """Which function answers a method and a path, as in a deployment."""
    from functions import endpoints, management, reads, writes  # noqa: PLC0415
    from functions.mcp import handler as mcp  # noqa: PLC0415

    handlers: dict[str, Handler] = {
        "reads": reads.handler,
        "writes": writes.handler,
        "management": management.handler,
        "mcp": mcp.handler,
    }

    def handler_for(method: str, path: str) -> tuple[str, Handler]:
        name = endpoints.function_for(method, unquote(path))
        return name, handlers[name]

    return handler_for


def _end(number: int, frame: object) -> NoReturn:
    del number, frame
    raise SystemExit(0)
