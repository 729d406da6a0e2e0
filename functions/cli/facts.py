"""`noema facts`: what agents keep, one text at a time, and files of it out and in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from core.facts.values import LABELS
from functions.cli.client import Client, service_command
from functions.cli.terminal import Failure, space_option


@click.group()
def facts() -> None:
    """Keep, recall, list and consolidate the facts of agents; export and import them.

    A fact is one text in an agent's namespace; `__shared__` is the one that all agents of a space share.
    """


_AGENT = click.argument("agent")


@facts.command()
@_AGENT
@click.argument("text")
@click.option("--confidence", type=click.Choice(LABELS), help="What is known of it; without it, no label.")
@click.option(
    "--again", is_flag=True, help="Keep it also if this memory served it lately: somebody said it anew."
)
@space_option
@service_command
def remember(
    *,
    agent: str,
    text: str,
    confidence: str | None,
    space_id: str,
    client: Client,
    again: bool,
) -> tuple[str, object]:
    """Keep TEXT, verbatim, as a fact of AGENT."""
    body: dict[str, Any] = {"agent_id": agent, "text": text, "again": again}
    if confidence is not None:
        body["confidence"] = confidence
    kept: dict[str, Any] = client.result("POST", f"/v1/{space_id}/facts", body)
    return f"{kept['id']}  {kept['text']}", kept


@facts.command()
@_AGENT
@click.argument("query")
@click.option("--top-k", type=click.IntRange(1, 1000), default=8, show_default=True, help="How many at most.")
@click.option("--scope", type=click.Choice(["agent", "shared", "all"]), default="agent", show_default=True,
              help="The agent's facts, the shared ones, or both.")  # fmt: skip
@click.option("--explain", is_flag=True, help="With the ranks and the score of each.")
@space_option
@service_command
def recall(
    *,
    agent: str,
    query: str,
    top_k: int,
    scope: str,
    space_id: str,
    client: Client,
    explain: bool,
) -> tuple[str, object]:
    """The facts of AGENT that fit QUERY best."""
    body = {"agent_id": agent, "query": query, "top_k": top_k, "scope": scope, "explain": explain}
    found: dict[str, Any] = client.result("POST", f"/v1/{space_id}/facts/recall", body)
    lines = list(found["facts"]) + [_explained(each) for each in found.get("explained", ())]
    if found.get("feedback"):
        lines.append(f"({found['feedback']})")
    return "\n".join(lines) or "Nothing is kept there.", found


def _explained(receipt: dict[str, Any]) -> str:
    ranks = receipt["ranks"]
    places = "/".join(str(ranks[f"{name}_rank"]) for name in ("vector", "keyword", "recency"))
    return f"{ranks['fused_score']:.6f}  {places:<9} {receipt['text']}"


@facts.command("list")
@_AGENT
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at most."
)
@click.option("--retired", is_flag=True, help="Those that were replaced or forgotten too.")
@space_option
@service_command
def list_facts(*, agent: str, limit: int, space_id: str, client: Client, retired: bool) -> tuple[str, object]:
    """The facts of AGENT, newest first."""
    query: dict[str, str | int] = {"agent_id": agent, "limit": limit, "retired": str(retired).lower()}
    found: list[dict[str, Any]] = client.result("GET", f"/v1/{space_id}/facts", query=query)
    lines = [
        f"{each['id']}  {each['text']}{'  (retired)' * bool(each.get('superseded_by'))}" for each in found
    ]
    return "\n".join(lines) or "Nothing is kept there.", found


@facts.command()
@_AGENT
@space_option
@service_command
def consolidate(*, agent: str, space_id: str, client: Client) -> tuple[str, object]:
    """Let weights fade, and prune what has faded, now; it happens by itself too."""
    done: dict[str, Any] = client.result("POST", f"/v1/{space_id}/facts/consolidate", {"agent_id": agent})
    if not done["ran"]:
        return "Another run works at the moment; nothing was done.", done
    told = f"{done['decayed']} faded, {done['consumed']} summarised, {done['pruned']} erased."
    return f"{told} {done['problem']}" if done.get("problem") else told, done


@facts.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["json", "markdown", "obsidian"]), default="json",
              show_default=True, help="json imports back without loss.")  # fmt: skip
@click.option("--agent", help="Of one agent; without it of all.")
@click.option("--graph/--no-graph", default=True, help="Obsidian: notes of named things, and a canvas.")
@space_option
@service_command
def export(
    *,
    directory: Path,
    form: str,
    agent: str | None,
    space_id: str,
    client: Client,
    graph: bool,
) -> tuple[str, object]:
    """Write the facts of a space into DIRECTORY, which is made if it is not there."""
    query: dict[str, str | int] = {"format": form, "graph": str(graph).lower()}
    if agent is not None:
        query["agent_id"] = agent
    files: dict[str, str] = client.result("GET", f"/v1/{space_id}/facts/export", query=query)["files"]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / Path(name).name).write_text(text, "utf-8", newline="")  # names have no folders
    except OSError as error:
        raise Failure(f"{directory} cannot be written: {error.strerror}") from error
    return f"Wrote {len(files)} files to {directory}.", {"files": sorted(files)}


@facts.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["noema", "graymatter", "mem0", "mcp-memory"]),
              default="noema", show_default=True, help="Whose export FILE is.")  # fmt: skip
@click.option(
    "--agent", help="The namespace of everything in FILE; without it each entry goes where it says."
)
@space_option
@service_command
def import_facts(
    *, file: Path, form: str, agent: str | None, space_id: str, client: Client
) -> tuple[str, object]:
    """Keep the facts in FILE. Importing it again adds nothing."""
    try:
        data = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} cannot be read as UTF-8 text") from error
    body: dict[str, Any] = {"format": form, "data": data}
    if agent is not None:
        body["agent_id"] = agent
    report: dict[str, Any] = client.result("POST", f"/v1/{space_id}/facts/import", body)
    told = f"Added {report['added']} facts; {report['present']} were there already."
    if report["passed_over"]:
        told += f"\nPassed over {report['passed_over']}:\n" + "\n".join(
            f"  {each}" for each in report["notes"]
        )
    return told, report
