"""Runs the shared fixture files: a setup, then cases of one command each with what it must answer.

Ids differ between engines, so an expected `C:<1>` stands for the first Concept id that the answer names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.world import World, error_code

_ID = re.compile(r"[CPAEX]-[0-9a-hjkmnp-tv-z]{16}\Z")


class Case:
    """One case's verdict: `problem` is None where it passed."""

    def __init__(self, file: str, name: str, problem: str | None) -> None:
        self.file = file
        self.name = name
        self.problem = problem


def run_fixture(path: Path) -> Iterator[Case]:
    """The verdict of every case of a file, over one fresh space."""
    fixture = json.loads(path.read_text("utf-8"))
    world = World(packages=fixture.get("packages", ()))
    for command in fixture.get("setup", ()):
        response = world.run(command)
        if response["status"] != "succeeded":
            yield Case(fixture["name"], "setup", json.dumps(response))
            return
    for case in fixture["cases"]:
        response = world.run(case["command"], case.get("params") or {})
        yield Case(fixture["name"], case["name"], _judge(case, response))


def _judge(case: dict[str, Any], response: dict[str, Any]) -> str | None:
    expected = case["expect"]
    code = error_code(response)
    if "error" in expected:
        return None if code == expected["error"] else f"expected {expected['error']}, got {code or response}"
    if code is not None:
        return f"failed with {code}: {json.dumps(response)[:600]}"
    if "result" not in expected:
        return None
    actual = normalized(response["results"][0].get("result"))
    wanted = expected["result"]
    if not case.get("ordered"):
        actual, wanted = _sorted(actual), _sorted(wanted)
    same = json.dumps(actual, sort_keys=True) == json.dumps(wanted, sort_keys=True) or _equal(actual, wanted)
    return None if same else f"expected {wanted}, got {actual}"


def _equal(left: Any, right: Any) -> bool:
    """JSON equality in which 0 and 0.0 are one number and true is none."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[k], right[k]) for k in left)
    return bool(left == right)


def _sorted(value: Any) -> Any:
    return (
        sorted(value, key=lambda item: json.dumps(item, sort_keys=True)) if isinstance(value, list) else value
    )


def normalized(value: Any, seen: dict[str, str] | None = None) -> Any:
    """A value with every element id replaced by its letter and the order of its first appearance."""
    names = {} if seen is None else seen
    if isinstance(value, str) and _ID.match(value):
        if value not in names:
            letter = value[0]
            count = sum(name.startswith(letter) for name in names.values())
            names[value] = f"{letter}:<{count + 1}>"
        return names[value]
    if isinstance(value, list):
        return [normalized(item, names) for item in value]
    if isinstance(value, dict):
        return {name: normalized(item, names) for name, item in value.items()}
    return value
