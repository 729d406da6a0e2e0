"""`noema remember` and `noema recall`: the two things a memory is for."""

from __future__ import annotations

import hashlib
from typing import Any, Final, TextIO

import click

from functions.cli import forming, transcripts
from functions.cli.client import Client, service_command
from functions.cli.terminal import Failure, space_option

_SHOWN: Final = 5  # citations printed for a person
_ABOUT: Final = 90  # characters of each


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@space_option
@click.option("--source", help="The name of the thread it belongs to.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it has been formed.")
@service_command
def remember(
    file: TextIO, space_id: str, source: str | None, client: Client, *, wait: bool
) -> tuple[str, object]:
    """Send FILE to be remembered; - is standard input.

    A .json or .jsonl file is read as a conversation (see `noema import`), anything else as one message.
    """
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise Failure(f"{file.name} is not UTF-8 text") from error
    if not text.strip():
        raise Failure(f"{file.name} is empty", "There is nothing to remember in it.")
    if file.name.endswith((".json", ".jsonl")):
        bodies = [session.body for session in transcripts.read(text, file.name)]
    else:
        bodies = [{"messages": [{"role": "user", "content": text}]}]
    ids = [forming.submit(client, space_id, _about(body, source), _key(body, source)) for body in bodies]
    failed = forming.wait(client, space_id, ids, lambda _: None) if wait else []
    if failed:
        raise Failure(f"it could not be formed: {failed[0].get('failed_reason') or 'no reason was given'}")
    shown = ", ".join(map(str, ids))
    state = f'formed; ask with: noema recall {space_id} "..."' if wait else "submitted"
    return f"Conversation {shown} in {space_id}: {state}", {
        "space": space_id,
        "conversations": ids,
        "formed": wait,
    }


def _about(body: dict[str, Any], source: str | None) -> dict[str, Any]:
    return {**body, "context": {**body.get("context", {}), "source": source}} if source else body


def _key(body: dict[str, Any], source: str | None) -> str:
    """The same for the same content, so that the same command given twice is remembered once."""
    return hashlib.sha256(repr((body, source)).encode("utf-8", "surrogatepass")).hexdigest()[:40]


@click.command()
@click.argument("space_id")
@click.argument("question")
@click.option("--about", "counterparty", help="Who is asking, where that matters.")
@service_command
def recall(space_id: str, question: str, counterparty: str | None, client: Client) -> tuple[str, object]:
    """Ask SPACE_ID a QUESTION; the answer comes with what it rests on."""
    body: dict[str, Any] = {"query": question}
    if counterparty:
        body["context"] = {"counterparty": counterparty}
    found: dict[str, Any] = client.result("POST", f"/v1/{space_id}/recall_structured", body)
    lines = [found["answer"]]
    if found.get("uncertainty") is not None:
        lines.append(
            f"\nfound: {'yes' if found['found'] else 'no'}   uncertainty: {found['uncertainty']:.2f}"
        )
    memories = found.get("memories") or []
    lines += [_citation(number, memory) for number, memory in enumerate(memories[:_SHOWN], start=1)]
    if len(memories) > _SHOWN:
        lines.append(f"  ... and {len(memories) - _SHOWN} more; --json shows all")
    return "\n".join(lines), found


def _citation(number: int, memory: dict[str, Any]) -> str:
    """One line for one memory that the answer rests on: its id, its date, and how it begins."""
    date = str(memory.get("created_at") or "")[:10]
    about = str(memory.get("name") or memory.get("type") or "").replace("\n", " ")
    return (
        f"  [{number}] {memory['entity']}  {date:<10}  {about[:_ABOUT]}{'…' if len(about) > _ABOUT else ''}"
    )
