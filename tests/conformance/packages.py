"""The conformance test packages (KIP conformance §8)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

CORE_DOMAIN = "test-core-domain-1.0.0"
SECONDARY = "test-secondary-1.0.0"
_FOLDER = Path(__file__).parents[1] / "fixtures" / "kip"


@cache
def package(name: str) -> dict[str, Any]:
    """A package's artifact by its file name; not to be changed by a test."""
    return json.loads((_FOLDER / "packages" / f"{name}.schema.json").read_text("utf-8"))


@cache
def wire_schema(name: str) -> dict[str, Any]:
    """A wire schema: `kip-request` or `kip-response`."""
    return json.loads((_FOLDER / "schemas" / f"{name}.schema.json").read_text("utf-8"))
