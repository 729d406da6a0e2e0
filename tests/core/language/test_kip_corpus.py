"""The reference parser's verdict on 400 texts, and every command of the shared fixtures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.language import bind, parameter_names, parse, verdict

_SHARED = Path(__file__).parents[4] / "shared" / "kip"
_needs_shared = pytest.mark.skipif(
    not _SHARED.is_dir(), reason=f"the shared KIP material is not at {_SHARED}"
)


def _corpus() -> list[dict[str, Any]]:
    return json.loads((_SHARED / "corpus" / "parser-corpus.json").read_text())


@_needs_shared
def test_every_text_of_the_corpus_gets_the_reference_verdict() -> None:
    """All texts are accepted or refused, and in the language, as the reference parser does."""
    differing = [
        (entry["source"], verdict(entry["source"]))
        for entry in _corpus()
        if {key: verdict(entry["source"]).get(key) for key in ("accepts", "language")}
        != {"accepts": entry["accepts"], "language": entry.get("language")}
    ]

    assert len(_corpus()) == 400
    assert differing == []


@_needs_shared
def test_every_refusal_of_the_corpus_has_the_reference_code() -> None:
    """On the corpus, not even an error code differs from the reference parser's."""
    differing = [
        (entry["source"], entry["error"], verdict(entry["source"]).get("error"))
        for entry in _corpus()
        if not entry["accepts"] and verdict(entry["source"]).get("error") != entry["error"]
    ]

    assert differing == []


@_needs_shared
def test_every_fixture_command_parses_unless_its_fault_is_in_the_text() -> None:
    """Setups parse; a case fails to parse exactly when it expects InvalidSyntax."""
    cases = 0
    for path in sorted((_SHARED / "fixtures").glob("*.json")):
        fixture = json.loads(path.read_text())
        for text in fixture["setup"]:
            assert verdict(text)["accepts"], text
        for case in fixture["cases"]:
            cases += 1
            assert verdict(case["command"])["accepts"] == (case["expect"].get("error") != "InvalidSyntax"), (
                case
            )
            if verdict(case["command"])["accepts"] and not parameter_names(parse(case["command"])):
                bind(parse(case["command"]), {})  # what the state must judge is not refused by its literals

    assert cases == 80
