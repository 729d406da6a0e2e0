"""`noema import`: a file of conversations, sent one after another, that can be interrupted and resumed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, Self

import click
import msgspec

from functions.cli import forming, transcripts
from functions.cli.client import Client, service_command
from functions.cli.terminal import Failure, space_option

_SUFFIX: Final = ".noema-import"


class Progress:
    """Which conversations of a file the service has taken, kept beside the file after every one.

    A conversation is known by its content, so a file that has grown resumes too. The service is given the same
    key, so a crash between its answer and our note does no harm either.
    """

    def __init__(self, path: Path, target: str, done: dict[str, int]) -> None:
        self._path = path
        self._target = target
        self.done = done
        self._kept = True

    @classmethod
    def beside(cls, file: Path, target: str, *, restart: bool) -> Self:
        """The progress of an earlier run into the same target; empty if there is none."""
        path = file.with_name(file.name + _SUFFIX)
        if restart or not path.exists():
            return cls(path, target, {})
        try:
            kept = json.loads(path.read_text("utf-8"))
            done = (
                {str(key): int(value) for key, value in kept["done"].items()}
                if kept["target"] == target
                else {}
            )
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise Failure(f"{path} cannot be read", "Give --restart to begin anew.") from error
        return cls(path, target, done)

    def note(self, key: str, conversation: int) -> None:
        """Keep that one more was taken; whole or not at all.

        Where nothing can be written beside the file, nothing is kept: the next run sends everything again, and
        the service knows each conversation by its key.
        """
        self.done[key] = conversation
        if not self._kept:
            return
        part = self._path.with_name(self._path.name + ".part")
        try:
            part.write_bytes(msgspec.json.encode({"target": self._target, "done": self.done}))
            part.replace(self._path)
        except OSError as error:
            self._kept = False
            click.echo(f"noema: how far this came is not kept: {self._path}: {error.strerror}", err=True)

    def finish(self) -> None:
        """Everything has been formed: there is nothing to resume."""
        self._path.unlink(missing_ok=True)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@space_option
@click.option("--sample", help="Of a LoCoMo file: which conversation, such as conv-26.")
@click.option("--create", is_flag=True, help="Create the space if it does not exist.")
@click.option("--restart", is_flag=True, help="Forget how far an earlier run came.")
@service_command
def import_file(
    file: Path, space_id: str, sample: str | None, client: Client, *, create: bool, restart: bool
) -> tuple[str, object]:
    """Import the conversations in FILE; run it again to resume after an interruption.

    \b
    FILE is one of
      LoCoMo   {"conversation": {"session_1": [{"speaker", "text"}], "session_1_date_time": ...}}, or a list
      JSON     [{"role", "content", "name"?, "timestamp"?}], {"messages": [...]}, or a list of the latter
      JSONL    a message or a conversation on each line
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is
    try:
        sessions = transcripts.read(file.read_text("utf-8"), file.name, sample)
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is not UTF-8 text") from error
    if create:
        _create(client, space_id)
    progress = Progress.beside(file, f"{client.url}/v1/{space_id}", restart=restart)
    return _run(client, space_id, sessions, progress)


def _create(client: Client, space_id: str) -> None:
    try:
        client.result("POST", "/admin/create_space", {"user": "me", "space_id": space_id, "tier": 3})
    except Failure as failure:
        if failure.code != "IdentityConflict":  # it is there already
            raise


def _run(
    client: Client, space_id: str, sessions: list[transcripts.Session], progress: Progress
) -> tuple[str, dict[str, Any]]:
    resumed = sum(session.key in progress.done for session in sessions)
    messages = sum(len(session.body["messages"]) for session in sessions)
    if resumed:
        click.echo(f"resuming: {resumed} of {len(sessions)} have been sent", err=True)
    with click.progressbar(length=2 * len(sessions), label="sending and forming", file=sys.stderr) as bar:
        bar.update(resumed)
        for session in sessions:
            if session.key not in progress.done:
                progress.note(session.key, forming.submit(client, space_id, session.body, session.key))
                bar.update(1)
        ids = [progress.done[session.key] for session in sessions]
        failed = forming.wait(client, space_id, ids, bar.update)
    progress.finish()
    value = {
        "space": space_id,
        "conversations": ids,
        "messages": messages,
        "resumed": resumed,
        "failed": [{"conversation": each["_id"], "reason": each.get("failed_reason")} for each in failed],
    }
    if failed:
        raise Failure(
            f"{len(failed)} of {len(ids)} conversations could not be formed, the first: "
            f"{failed[0]['_id']}: {failed[0].get('failed_reason')}",
        )
    return f"{len(ids)} conversations with {messages} messages are in {space_id}.", value
