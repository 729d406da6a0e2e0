"""`noema facts`: facts out into files, and in from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from functions.cli.client import Client
from functions.cli.terminal import Failure, json_option, service_options, space_option


@click.group()
def facts() -> None:
    """Export the facts that agents keep, or import them. A fact is one text in an agent's namespace."""


@facts.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["json", "markdown", "obsidian"]), default="json",
              show_default=True, help="json imports back without loss.")  # fmt: skip
@click.option("--agent", help="Of one agent; without it of all.")
@click.option("--graph/--no-graph", default=True, help="Obsidian: notes of named things, and a canvas.")
@space_option
@service_options
@json_option
def export(
    *,
    directory: Path,
    form: str,
    agent: str | None,
    space_id: str,
    url: str,
    token: str | None,
    graph: bool,
) -> tuple[str, object]:
    """Write the facts of a space into DIRECTORY, which is made if it is not there."""
    query: dict[str, str | int] = {"format": form, "graph": str(graph).lower()}
    if agent is not None:
        query["agent_id"] = agent
    with Client(url, token) as client:
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
@service_options
@json_option
def import_facts(
    *, file: Path, form: str, agent: str | None, space_id: str, url: str, token: str | None
) -> tuple[str, object]:
    """Keep the facts in FILE. Importing it again adds nothing."""
    try:
        data = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} cannot be read as UTF-8 text") from error
    body: dict[str, Any] = {"format": form, "data": data}
    if agent is not None:
        body["agent_id"] = agent
    with Client(url, token) as client:
        report: dict[str, Any] = client.result("POST", f"/v1/{space_id}/facts/import", body)
    told = f"Added {report['added']} facts; {report['present']} were there already."
    if report["passed_over"]:
        told += f"\nPassed over {report['passed_over']}:\n" + "\n".join(
            f"  {each}" for each in report["notes"]
        )
    return told, report
