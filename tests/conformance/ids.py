"""The ids of the KIP 2.0 conformance suite, and which test stands for which id.

A test stands for an id by its decorator, or by its name alone: `test_kip2_core_001_and_a_few_words`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

SHARED: Final = Path(__file__).parents[3] / "shared" / "kip"
FAMILIES: Final = {
    "CORE": "KIP-Core", "SCHEMA": "KIP-Schema", "EPI": "KIP-Epistemic", "GOV": "KIP-Governance",
    "TX": "KIP-Transactions", "CAP": "KIP-Capsule", "KQL": "KIP-KQL", "KML": "KIP-KML", "META": "KIP-META",
    "RT": "KIP-Runtime", "HIST": "KIP-Historical", "HA": "KIP-High-Assurance", "MIG": "KIP-1-Migration",
    "X": None,
}  # fmt: skip
"""Families in the order of the paper, with the profile each belongs to; X crosses all of them."""

_NAME: Final = re.compile(r"test_kip2_(core|schema|epi|gov|tx|cap|kql|kml|meta|rt|hist|ha|mig|x)_(\d{3})")


def conformance(test_id: str, level: str = "MUST") -> Callable[[Any], Any]:
    """Mark a test as the one of an id; `level` is the paper's: MUST, SHOULD or OPTIONAL."""

    def mark(test: Any) -> Any:
        named = id_of_name(test.__name__)
        assert named in (None, test_id), f"{test.__name__} is marked as {test_id}"
        return pytest.mark.conformance(test_id, level)(test)

    return mark


def id_of_name(name: str) -> str | None:
    """The id that a test function's name says it stands for."""
    found = _NAME.match(name.lower())
    return None if found is None else f"KIP2-{found[1].upper()}-{found[2]}"


@cache
def all_ids() -> dict[str, dict[str, str]]:
    """Every id with its title and level; empty where ../shared/kip is not beside the repository."""
    path = SHARED / "conformance-ids.json"
    if not path.is_file():
        return {}
    return {entry["id"]: entry for entry in json.loads(path.read_text("utf-8"))}
