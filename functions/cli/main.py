"""The entry point: which commands there are, and where each one lives.

What lives here: names. What must never live here: a command's imports. A command line that takes half a second
to say `--help` is not used, so a command's module is imported when the command is looked up, and only then.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import click

from functions.cli.terminal import print_error
from functions.settings import VERSION

_AS_JSON: Final = "noema.as_json"

# name -> (module, attribute, one line of help shown in the list)
_COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "serve": ("functions.cli.serve", "serve", "Run the whole service on this machine."),
    "space": ("functions.cli.space", "space", "Create a space, or look at one."),
    "remember": ("functions.cli.memory", "remember", "Send a text or a conversation to be remembered."),
    "recall": ("functions.cli.memory", "recall", "Ask a space a question."),
    "import": ("functions.cli.importing", "import_file", "Import a conversation file; can be resumed."),
    "migrate": ("functions.cli.migrate", "migrate", "Take over a graph of KIP 1.x."),
    "capsule": ("functions.cli.capsule", "capsule", "Export a memory, verify one, or import it."),
    "governance": ("functions.cli.governance", "governance", "Say who may know and do what in a space."),
    "facts": ("functions.cli.facts", "facts", "Keep and recall the facts of agents; export and import them."),
    "keygen": ("functions.cli.keys", "keygen", "Make a signing key."),
    "token": ("functions.cli.keys", "token", "Mint an access token (a CWT)."),
    "mcp": ("functions.cli.mcp", "mcp", "Serve one space to an MCP client, over stdin and stdout."),
    "init": ("functions.cli.init", "init", "Wire the memory into coding agents on this machine."),
    "doctor": ("functions.cli.doctor", "doctor", "Check this installation and say what to do."),
    "kip": ("functions.cli.kip", "kip", "Run KIP 2.0 commands; tools for the language."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; what is wrong with a command's own arguments is told in JSON where JSON was asked for."""
        ctx.meta[_AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # whatever the command returns
        """Run the command; a call that click refuses ends with its exit code, 2."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if ctx.meta[_AS_JSON]:
                print_error(error.format_message())
            elif isinstance(error, click.UsageError):
                raise  # click adds how the command is called
            else:
                click.echo(f"noema: {error.format_message()}", err=True)
            sys.exit(error.exit_code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a person meets them."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is none of that name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table above, so that it imports nothing."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, row[2]) for name, row in _COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="noema")
def main() -> None:
    """Noema: a memory service for AI agents.

    Start it with `noema serve`, then try `noema space create demo`, `noema remember -s demo notes.txt` and
    `noema recall demo "what did I note?"`. Every command takes --help, and --json for a program to read.

    NOEMA_URL, NOEMA_TOKEN and NOEMA_SPACE stand in for --url, --token and --space.
    """
