"""`noema init`: tells the coding agents on this machine of the memory, and their models when to use it."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from functions.cli import wiring
from functions.cli.terminal import Failure, json_option
from functions.cli.wiring import AGENTS, Agent, ByHand, Scope, Server

_BACKUP: Final = ".noema-backup"
_SPACE: Final = re.compile(r"[a-z0-9_]{1,64}\Z")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One file: what became of it, or would; and for whom."""

    agent: str
    path: Path
    before: str | None  # None: it is not there yet
    after: str | None  # None: it cannot be merged
    problem: str | None = None
    by_hand: str | None = None

    @property
    def verdict(self) -> str:
        """created, changed, unchanged or by hand."""
        if self.after is None:
            return "by hand"
        if self.before is None:
            return "created"
        return "unchanged" if self.before == self.after else "changed"


_OPTIONS: Final = (
    click.option("-s", "--space", default="main", show_default=True, envvar="NOEMA_SPACE", help="The space."),
    click.option(
        "--url", envvar="NOEMA_URL", help="A service elsewhere; without it, a memory on this machine."
    ),
    click.option(
        "--token-env", default="NOEMA_TOKEN", show_default=True, help="The variable that will hold the token."
    ),
    click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where the memory is kept, without --url; default ~/.noema.",
    ),
    click.option(
        "--only", multiple=True, type=click.Choice(list(AGENTS)), help="Only these agents; may be repeated."
    ),
    click.option("--user", "for_user", is_flag=True, help="Wire your home (all projects), not this folder."),
    click.option(
        "--folder",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=".",
        help="The project; default is here.",
    ),
    click.option(
        "--agent",
        "agent_id",
        help="The namespace of facts that the model uses; default is the folder's name.",
    ),
    click.option("--command", help="How to start noema, where it is not found."),
    click.option("--force", is_flag=True, help="Replace another server of the name noema."),
    click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the command its options, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_options
@json_option
def init(
    *,
    space: str,
    url: str | None,
    token_env: str,
    data: Path | None,
    only: tuple[str, ...],
    folder: Path,
    agent_id: str | None,
    command: str | None,
    for_user: bool,
    force: bool,
    dry_run: bool,
) -> tuple[str, object]:
    """Wire the memory into Claude Code, Cursor, Codex, OpenCode and VS Code.

    Adds one server to each agent's configuration and one block to the file that its model reads. Whatever else
    stands in these files stays; a file that is changed is copied beside itself first. Running it again changes
    nothing. No token is written: entries name the variable of --token-env.
    """
    if not _SPACE.match(space):
        raise Failure(f"{space!r} is no name of a space", "Use lower-case letters, digits and underscores.")
    home = Path.home()
    scope: Scope = "user" if for_user else "project"
    root = home if for_user else folder.resolve()
    server = Server(
        space=space,
        agent=agent_id or ("me" if for_user else _slug(root.name)),
        command=() if url else (*_start(command), *_arguments(space, data or home / ".noema")),
        url=url,
        token=wiring.token_for(url, token_env),
    )
    changes = [
        each for name in only or AGENTS for each in plan(AGENTS[name], server, root, scope, force=force)
    ]
    # Codex and OpenCode read the same AGENTS.md.
    changes = list({each.path: each for each in changes}.values())
    if not dry_run:
        for each in changes:
            if each.verdict in ("created", "changed"):
                _write(each)
    text, value = _told(changes, server, dry_run=dry_run)
    if any(each.after is None for each in changes):
        raise Failure(
            "some files were left as they are", "Add the lines above by hand.", answer=(text, value)
        )
    return text, value


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "project"


def _start(command: str | None) -> tuple[str, ...]:
    """How this very installation is started, with whole paths: an agent's PATH is another one."""
    if command:
        return (command,)
    here, checkout = Path(sys.argv[0]), Path(__file__).parents[2] / "scripts" / "noema"
    if here.name == "noema" and here.exists():
        return (str(here.absolute()),)
    found = shutil.which("noema") or (str(checkout) if checkout.exists() else None)
    return (found,) if found else (sys.executable, "-m", "functions.cli")


def _arguments(space: str, data: Path) -> tuple[str, ...]:
    return ("mcp", "--space", space, "--data", str(data.expanduser().resolve()), "--create")


# --- planning


def plan(agent: Agent, server: Server, root: Path, scope: Scope, *, force: bool) -> Iterator[Change]:
    """What becomes of an agent's two files."""
    path = config_path(agent, root, scope)
    yield _planned(agent, path, lambda text: agent.merge(text, server, force), wiring.snippet(agent, server))
    rules = agent.rules[scope]
    if rules is not None:
        yield _planned(
            agent,
            root / rules,
            lambda text: wiring.with_block(text, server, agent.preface),
            wiring.block(server),
        )


def config_path(agent: Agent, root: Path, scope: Scope) -> Path:
    """The configuration that is there, or the one that would be made."""
    candidates = [root / each for each in agent.config[scope]]
    if agent is AGENTS["vscode"] and scope == "user" and sys.platform == "darwin":
        candidates.reverse()
    return next((each for each in candidates if each.exists()), candidates[0])


def _planned(agent: Agent, path: Path, merge: Callable[[str], str], by_hand: str) -> Change:
    before: str | None = None
    try:
        before = read(path)
        return Change(agent=agent.title, path=path, before=before, after=merge(before or ""))
    except ByHand as problem:
        return Change(
            agent=agent.title, path=path, before=before, after=None, problem=str(problem), by_hand=by_hand
        )


def read(path: Path) -> str | None:
    """A file's text; None if there is none.

    Raises:
        ByHand: it cannot be read as text.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ByHand("it cannot be read as UTF-8 text") from error


# --- writing


def _write(change: Change) -> None:
    """Write a file whole or not at all; one that was there is copied beside itself first.

    Raises:
        Failure: it could not be written.
    """
    target = Path(os.path.realpath(change.path))  # a link stays a link
    part = target.with_name(f"{target.name}.noema-part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes((change.after or "").encode("utf-8"))
        if target.exists():
            shutil.copymode(target, part)
            shutil.copy2(target, _backup(target))
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Failure(f"{change.path} cannot be written: {error.strerror}") from error


def _backup(target: Path) -> Path:
    """A name for the copy that no earlier copy has."""
    names = (target.with_name(f"{target.name}{_BACKUP}{'' if n == 1 else f'-{n}'}") for n in range(1, 10_000))
    return next(name for name in names if not name.exists())


# --- telling


def _told(changes: list[Change], server: Server, *, dry_run: bool) -> tuple[str, object]:
    lines = []
    for each in changes:
        verdict = (
            f"would be {each.verdict}" if dry_run and each.verdict in ("created", "changed") else each.verdict
        )
        lines.append(f"{each.agent:<12} {verdict:<16} {each.path}")
        if each.after is None:
            lines.append(f"  {each.problem}. Add this yourself:\n")
            lines += [f"    {line}" for line in (each.by_hand or "").splitlines()] + [""]
        elif dry_run and each.before != each.after:
            old, new = (each.before or "").splitlines(), each.after.splitlines()
            lines += [f"    {line}" for line in difflib.unified_diff(old, new, lineterm="", n=1)][2:]
    if server.token is not None:
        lines.append(f"\nSet {server.token} where the agents run. `noema token` makes one.")
    lines.append("\nRestart the agents, then look at `noema doctor`.")
    files = [
        {"agent": each.agent, "path": str(each.path), "verdict": each.verdict, "problem": each.problem}
        for each in changes
    ]
    return "\n".join(lines), {"space": server.space, "dry_run": dry_run, "files": files}
