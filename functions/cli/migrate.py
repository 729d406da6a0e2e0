"""`noema migrate`: a file of KIP 1.x concepts and propositions, into a space, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from functions.cli.client import Client, service_command
from functions.cli.terminal import Failure, space_option

Json = Any  # a JSON value

PAGE: Final = 500
_SUMS: Final = ("counts", "mapping")


@click.command("migrate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@space_option
@click.option(
    "--source", required=True, help="A name for the old graph, the same in every run: a-z, 0-9, hyphens."
)
@click.option("--confidence", type=click.Choice(["truth", "strength", "unknown"]), default="truth", show_default=True,
              help="What metadata.confidence meant: belief, how easily it came to mind, or nobody knows.")  # fmt: skip
@click.option("--access", multiple=True, metavar="OLD=NEW",
              help="The classification an old access level stands for; may be given again.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Write nothing; report what would be done.")
@service_command
def migrate(file: Path, space_id: str, client: Client, **wish: Json) -> tuple[str, object]:
    """Take over the KIP 1.x graph in FILE. Run it again after an interruption: nothing is written twice.

    \b
    FILE is one of
      JSON     {"concepts": [...], "propositions": [...]}, or a list of both
      JSONL    a concept or a proposition on each line
    A concept has "type" and "name"; a proposition "subject", "predicate" and "object", each end an id,
    "Type:name", or an object such as {"type", "name"} or {"value"}. Both may have "id", "attributes", "metadata".

    A graph of more than one page is reported page by page: in a dry run, later pages do not know earlier ones, and
    count what builds on them as unresolved.
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is
    concepts, links = read(file.read_text("utf-8"), file.name)
    wish["access_levels"] = dict(_level(each) for each in wish.pop("access"))
    total: dict[str, Json] = {}
    for page in pages(concepts, links):
        report = client.result("POST", f"/v1/{space_id}/management/migrate", {**wish, **page})
        total = add(total, report)
    return _told(total, dry_run=wish["dry_run"]), total


def read(text: str, name: str) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """The concepts and the propositions in a file.

    Raises:
        Failure: the file is none that can be read, with the place.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = [
            _line(line, number, name) for number, line in enumerate(text.splitlines(), 1) if line.strip()
        ]
    if isinstance(value, dict) and ("concepts" in value or "propositions" in value):
        value = [*(value.get("concepts") or ()), *(value.get("propositions") or ())]
    records = value if isinstance(value, list) else [value]
    concepts: list[dict[str, Json]] = []
    links: list[dict[str, Json]] = []
    for number, record in enumerate(records, 1):
        if isinstance(record, dict) and {"subject", "predicate", "object"} <= set(record):
            links.append(record)
        elif isinstance(record, dict) and {"type", "name"} <= set(record):
            concepts.append(record)
        else:
            raise Failure(
                f"{name}: record {number} is neither a concept nor a proposition of KIP 1.x",
                'A concept has "type" and "name", a proposition "subject", "predicate" and "object".',
            )
    if not records:
        raise Failure(
            f"{name} holds no records", "`noema migrate --help` describes the files that can be read."
        )
    return concepts, links


def _line(line: str, number: int, name: str) -> Json:
    try:
        return json.loads(line)
    except ValueError as error:
        raise Failure(f"{name} is neither JSON nor JSON lines: line {number} cannot be read") from error


def _level(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old or not new:
        raise Failure(f"--access {text} is not OLD=NEW", "For example: --access team=internal")
    return old, new


def pages(concepts: list[dict[str, Json]], links: list[dict[str, Json]]) -> Iterator[dict[str, list[Json]]]:
    """Requests in an order in which ends are there before their links; a small graph is one request."""
    if len(concepts) + len(links) <= PAGE:
        yield {"concepts": concepts, "propositions": links}
        return
    for at in range(0, len(concepts), PAGE):
        yield {"concepts": concepts[at : at + PAGE], "propositions": []}
    known = {link["id"]: link for link in links if isinstance(link.get("id"), str)}
    ordered = sorted(links, key=lambda link: _height(link, known, 0))
    for at in range(0, len(ordered), PAGE):
        yield {"concepts": [], "propositions": ordered[at : at + PAGE]}


def _height(link: dict[str, Json], known: dict[str, dict[str, Json]], deep: int) -> int:
    """How many links stand below a link; links about links come after those they are about."""
    below = 0
    for end in (link["subject"], link["object"]):
        inner = end if isinstance(end, dict) and "predicate" in end else None
        name = end if isinstance(end, str) else end.get("id") if isinstance(end, dict) else None
        inner = inner or (known.get(name) if isinstance(name, str) else None)
        if inner is not None and deep < 20:
            below = max(below, 1 + _height(inner, known, deep + 1))
    return below


def add(total: dict[str, Json], report: dict[str, Json]) -> dict[str, Json]:
    """Two reports as one."""
    if not total:
        return dict(report)
    out = dict(total)
    for name in _SUMS:
        out[name] = {key: out[name].get(key, 0) + count for key, count in report[name].items()}
    out["already_there"] += report["already_there"]
    out["committed"] = out["committed"] or report["committed"]
    out["unresolved"] = [*out["unresolved"], *report["unresolved"]][:100]
    out["governance_changes"] = list(
        dict.fromkeys([*out["governance_changes"], *report["governance_changes"]])
    )
    doubts = {each["code"]: each for each in out["warnings"]}
    for each in report["warnings"]:
        before = doubts.get(each["code"])
        doubts[each["code"]] = {**each, "count": each["count"] + (before["count"] if before else 0)}
    out["warnings"] = list(doubts.values())
    return out


def _told(total: dict[str, Json], *, dry_run: bool) -> str:
    made = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in total["mapping"].items() if count)
    lines = [
        f"{'Would write' if dry_run else 'Written'}: {made or 'nothing'}; {total['already_there']} were there already."
    ]
    lines += [
        f"  {each['count']:>6}  {each['code']}  ({', '.join(each['examples'][:3])})"
        for each in total["warnings"]
    ]
    lines += [f"  {change}" for change in total["governance_changes"]]
    if total["unresolved"]:
        lines.append(f"  left out, an end is not known: {'; '.join(total['unresolved'][:5])}")
    return "\n".join(lines)
