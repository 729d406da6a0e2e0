"""`noema space`: create a space, or look at one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from functions.cli.client import Client, service_command
from functions.cli.terminal import Failure


@click.group()
def space() -> None:
    """Create a space, or look at one. A space is one memory with its own owner, tokens and size."""


@space.command()
@click.argument("space_id")
@click.option("--owner", default="me", show_default=True, help="Whose space it is.")
@click.option("--tier", type=click.IntRange(0, 14), default=2, show_default=True,
              help="Size class: 10^(tier+2) concepts or conversations.")  # fmt: skip
@service_command
def create(space_id: str, owner: str, tier: int, client: Client) -> tuple[str, object]:
    """Create SPACE_ID (lower-case letters, digits, underscore). Needs a manager's token where there are keys."""
    made = client.result("POST", "/admin/create_space", {"user": owner, "space_id": space_id, "tier": tier})
    return f"Created {space_id} (owner {owner}, room for {10 ** (tier + 2):,}).", made


@space.command()
@click.argument("space_id")
@service_command
def info(space_id: str, client: Client) -> tuple[str, object]:
    """Show what SPACE_ID holds and how far its formation is."""
    found: dict[str, Any] = client.result("GET", f"/v1/{space_id}/info")
    return "\n".join(f"{name:<26}{_shown(name, value)}" for name, value in found.items()), found


@space.command("trim-history")
@click.argument("space_id")
@click.option("--keep-days", type=click.IntRange(1, 36_500), required=True, help="How much history stays.")
@click.option("--yes", is_flag=True, help="Do it; without this the command only says what it would do.")
@service_command
def trim_history(space_id: str, keep_days: int, client: Client, *, yes: bool) -> tuple[str, object]:
    """Give up the history of SPACE_ID that is older than --keep-days, for good. The present never changes.

    What is below the new floor can no longer be read with AS OF. Needs a manager's token where there are keys.
    """
    if not yes:
        raise Failure(
            f"history of {space_id} older than {keep_days} days would be given up for good",
            "Say --yes to do it.",
        )
    done: dict[str, Any] = client.result("POST", f"/admin/{space_id}/trim_history", {"keep_days": keep_days})
    gone = f"{done['deltas']} commits and {done['manifests']} snapshots"
    return f"History of {space_id} begins at version {done['floor']}; {gone} went.", done


def _shown(name: str, value: Any) -> str:  # any JSON value
    if isinstance(value, int) and not isinstance(value, bool) and name.endswith("_at") and value > 10**11:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="seconds")
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(key, inner)}" for key, inner in value.items()) or "-"
    return "-" if value is None else str(value)
