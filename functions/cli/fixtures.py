"""Runs KIP fixture files: a setup, then cases of one command each with what it must answer (`noema kip fixtures`).

What lives here: a space in this process over the reference store, and the judgement of a case. What must never
live here: anything that needs more than `core`, since the same files are run in Pyodide. Ids differ between
engines, so an expected `C:<1>` stands for the first Concept id that an answer names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from core.authority import Principal
from core.errors import NoemaError
from core.model.elements import Origin
from core.model.instants import Instant
from core.model.log import SpaceMeta, Tier
from core.protocol.request import read_request
from core.protocol.response import encode_response, failure
from core.schema.environment import initial_environment, install_package, set_active_packages
from core.service.commit import Birth, Commits
from core.service.erasure import Erasures
from core.service.kip import Kip
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.storage.memory import MemoryObjects, MemoryTable

_ID: Final = re.compile(r"[CPAEX]-[0-9a-hjkmnp-tv-z]{16}\Z")
_SPACE: Final = "fixture"
_START: Final[Instant] = 1_780_000_000_000
_OWNER: Final = Principal("owner")
_MINUTE_MS: Final = 60_000


class Case(msgspec.Struct, frozen=True):
    """One case's verdict: `problem` is None where it passed."""

    file: str
    name: str
    problem: str | None


class _Steps:
    """Time that moves a second with each command, and chance that counts: a run is the same on every machine."""

    def __init__(self) -> None:
        self.time = _START
        self._drawn = 0

    def now(self) -> Instant:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += round(seconds * 1000)

    def token(self, count: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(self._drawn.to_bytes(8, "big")).digest(count)

    def uniform(self, low: float, high: float) -> float:
        del high
        return low


class FixtureSpace:
    """A fresh space over the reference store, in which some schema packages are active besides the default ones."""

    def __init__(self, packages: Iterable[dict[str, Any]] = ()) -> None:
        self._steps = steps = _Steps()
        table, objects = MemoryTable(), MemoryObjects(steps)
        spaces = Spaces(table, objects, steps)
        commits = Commits(table, objects, steps, steps, spaces)
        upkeep = Upkeep(spaces, Leases(table, steps), steps)
        self._kip = Kip(spaces, commits, Erasures(spaces, upkeep, steps), steps, secret=b"fixtures")
        artifacts = list(packages)

        def describe(birth: Birth) -> SpaceMeta:
            meta = SpaceMeta(
                space_id=birth.space_id, instance=birth.instance, salt=birth.salt, owner=_OWNER.id,
                created_at=birth.at, tier=Tier(5, birth.at), schema=initial_environment(),
            )  # fmt: skip
            refs = list(meta.schema.packages)
            for artifact in artifacts:
                meta = install_package(meta, artifact)
                manifest = artifact["manifest"]
                refs.append(f"{manifest['package_id']}@{manifest['version']}")
            return set_active_packages(meta, refs)

        commits.create(_SPACE, describe, origin=Origin("owner", "fixture"), deadline=steps.now() + _MINUTE_MS)

    def run(self, command: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """The response to one command, as a client reads it."""
        self._steps.time += 1000
        operation = {"command": command, "parameters": parameters or {}}
        try:
            request = read_request({"kip": "2.0", "operations": [operation]})
            response = self._kip.execute(_SPACE, request, _OWNER, deadline=self._steps.time + _MINUTE_MS)
        except NoemaError as error:
            response = failure(error)
        value: dict[str, Any] = json.loads(encode_response(response))
        return value


def run_fixture(fixture: dict[str, Any]) -> Iterator[Case]:
    """The verdict of every case of a fixture file's content, over one fresh space.

    Raises:
        NoemaError: a package of the file cannot be installed.
        KeyError: the content has not the shape of a fixture.
    """
    space = FixtureSpace(fixture.get("packages", ()))
    for command in fixture.get("setup", ()):
        response = space.run(command)
        if response["status"] != "succeeded":
            yield Case(fixture["name"], "setup", json.dumps(response))
            return
    for case in fixture["cases"]:
        response = space.run(case["command"], case.get("params"))
        yield Case(fixture["name"], case["name"], _judged(case, response))


def error_code(response: dict[str, Any]) -> str | None:
    """The first error code of a response, or None."""
    if "error" in response:
        return str(response["error"]["code"])
    return next((str(result["error"]["code"]) for result in response["results"] if "error" in result), None)


def _judged(case: dict[str, Any], response: dict[str, Any]) -> str | None:
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
    return None if _equal(actual, wanted) else f"expected {wanted}, got {actual}"


def _equal(left: Any, right: Any) -> bool:  # JSON values
    """JSON equality in which 0 and 0.0 are one number and true is none."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    return bool(left == right)


def _sorted(value: Any) -> Any:  # a JSON value
    if not isinstance(value, list):
        return value
    return sorted(value, key=lambda item: json.dumps(item, sort_keys=True))


def normalized(value: Any, seen: dict[str, str] | None = None) -> Any:  # a JSON value
    """A value with every element id replaced by its letter and the order of its first appearance."""
    names = {} if seen is None else seen
    if isinstance(value, str) and _ID.match(value):
        if value not in names:
            count = sum(name.startswith(value[0]) for name in names.values())
            names[value] = f"{value[0]}:<{count + 1}>"
        return names[value]
    if isinstance(value, list):
        return [normalized(item, names) for item in value]
    if isinstance(value, dict):
        return {name: normalized(item, names) for name, item in value.items()}
    return value
