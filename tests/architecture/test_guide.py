"""ARCHITECTURE.md leads to code that is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PLACE = re.compile(
    r"`((?:core|functions|infra|tests|docs)/[\w/]*(?:\.py)?)(?:: (\w+)(?:\.(\w+))?)?`|\]\((docs/[\w./]+)\)"
)


def places() -> list[tuple[str, str, str]]:
    found = {(each[1] or each[4], each[2] or "", each[3] or "") for each in PLACE.finditer(GUIDE)}
    return sorted(found)


@pytest.mark.parametrize(("path", "name", "member"), places())
def test_what_the_guide_names_is_there(path: str, name: str, member: str) -> None:
    """Each file, and each function or class in it that the guide says to open, exists under that name."""
    file = ROOT / path

    assert file.exists()
    if name:
        kinds = (ast.FunctionDef, ast.ClassDef)
        defined = {
            each.name for each in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(each, kinds)
        }
        assert {name, member or name} <= defined


def test_the_guide_names_much() -> None:
    """The test above looks at what stands in the guide: that is dozens of places, and functions among them."""
    assert len(places()) > 50
    assert sum(1 for _, name, _ in places() if name) > 12
