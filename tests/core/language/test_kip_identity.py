"""The programs of `identity.kip` print back to themselves, and their spelling does not matter to their meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.language import format_command, kml, meta, parse, to_canonical

_FILE = Path(__file__).parents[2] / "fixtures" / "language" / "identity.kip"


def _programs() -> list[str]:
    lines = [line for line in _FILE.read_text().splitlines() if not line.startswith("//")]
    return [block.strip("\n") for block in re.split(r"\n\n+", "\n".join(lines)) if block.strip()]


@pytest.mark.parametrize("program", _programs())
def test_a_canonical_program_prints_back_to_itself(program: str) -> None:
    """Parsing and printing a canonical text changes no character of it."""
    assert format_command(parse(program)) == program


@pytest.mark.parametrize("program", _programs())
def test_spelling_does_not_change_a_command(program: str) -> None:
    """Whitespace, comments and the case of keywords leave the tree and its canonical form as they are."""
    spelled = "// a note\n" + re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m[1] or " \t// note\r\n", program)
    lowered = re.sub(
        r'("(?:[^"\\]|\\.)*")|([?:.][a-zA-Z_]+)|\b[A-Z_]{2,}\b',
        lambda m: m[1] or m[2] or m[0].lower(),
        program,
    )

    for variant in (spelled, lowered):
        assert parse(variant) == parse(program)
        assert to_canonical(parse(variant)) == to_canonical(parse(program))


def test_the_file_covers_every_statement() -> None:
    """`identity.kip` has at least one program of each statement and each clause of MUTATE."""
    text = "\n".join(_programs())

    for word in ("FIND", "MUTATE", *kml.STATEMENTS, *meta.STATEMENTS):
        assert re.search(rf"^\s*{word}\b", text, re.MULTILINE), word
    assert "SET RETENTION" in text
