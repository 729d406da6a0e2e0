"""Runs the suite and reports: a table per family for people, a conformance report (CONF §3, §7) for programs.

    scripts/conformance [--report FILE] [--family TX] [--failures]

An id passes if every test of it passes. One without a test is pending, and so is an optional one whose capability
is not advertised; neither is ever counted as passed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from core.model.instants import Instant, format_instant
from core.protocol.capabilities import SUPPORTED
from core.protocol.request import KIP_VERSION
from functions.settings import VERSION
from infra.system import SystemClock
from tests.conformance.ids import FAMILIES, SHARED, all_ids, id_of_name

ROOT: Final = Path(__file__).parents[2]
CLAIMED: Final = tuple(family for family, profile in FAMILIES.items() if profile is not None)
"""Families whose profiles this version claims: all. The scenarios (X) have no profile, and count with all of them."""


class Outcome:
    """What became of one id: how many of its tests ran and the first failure."""

    def __init__(self) -> None:
        self.passed = 0
        self.failure: str | None = None
        self.skip: str | None = None
        self.seconds = 0.0

    @property
    def verdict(self) -> str:
        """`passed`, `failed` or `pending`."""
        if self.failure is not None:
            return "failed"
        return "passed" if self.passed and self.skip is None else "pending"


class Collector:
    """A pytest plugin that gathers outcomes by id."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.unknown: list[str] = []
        self.broken: list[str] = []  # what could not even be collected
        self._ids: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember a file that cannot be imported: its ids would otherwise only look pending."""
        if report.failed:
            self.broken.append(f"{report.nodeid}: {report.longreprtext.strip().splitlines()[-1]}")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Learn which id each test is of."""
        for item in items:
            mark = item.get_closest_marker("conformance")
            found = mark.args[0] if mark else id_of_name(getattr(item, "originalname", item.name))
            if found is None:
                continue
            self._ids[item.nodeid] = found
            if found not in all_ids():
                self.unknown.append(f"{item.nodeid} is of {found}, which the suite does not have")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        found = self._ids.get(report.nodeid)
        if found is None:
            return
        outcome = self.outcomes.setdefault(found, Outcome())
        outcome.seconds += report.duration
        if report.failed and outcome.failure is None:
            outcome.failure = report.longreprtext.strip()[-2_000:] or "failed"
        elif report.skipped:
            outcome.skip = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
        elif report.passed and report.when == "call":
            outcome.passed += 1


# --- the report


def _result(entry: dict[str, str], outcome: Outcome) -> dict[str, Any]:
    family = entry["id"].split("-")[1]
    profile = FAMILIES[family]
    result: dict[str, Any] = {
        "id": entry["id"],
        "title": entry["title"],
        "level": entry["level"],
        "profiles": [profile] if profile else [],
        "duration_ms": round(outcome.seconds * 1000),
    }
    if outcome.verdict == "passed":
        return {**result, "status": "PASS", "attempts": 1}
    if outcome.verdict == "failed":
        failure = {"phase": "assertion", "message": outcome.failure or "failed"}
        return {**result, "status": "FAIL", "attempts": 1, "failures": [failure]}
    if outcome.skip is not None and entry["level"] == "OPTIONAL":
        skip = {"reason": "unsupported_capability", "message": outcome.skip}
        return {**result, "status": "SKIP_UNSUPPORTED", "skip": skip}
    error = {"code": "TestMissing", "message": outcome.skip or "there is no test of this id yet"}
    return {**result, "status": "HARNESS_ERROR", "error": error}


def _profiles(results: list[dict[str, Any]]) -> dict[str, Any]:
    out = {}
    for family in CLAIMED:
        mine = [each for each in results if each["id"].split("-")[1] == family]
        required = [each for each in mine if each["level"] == "MUST"]
        passed = sum(each["status"] == "PASS" for each in required)
        out[str(FAMILIES[family])] = {
            "status": "PASS" if passed == len(required) else "FAIL",
            "required_tests": len(required),
            "passed": passed,
            "failed": len(required) - passed,
            "should_warnings": sum(each["level"] == "SHOULD" and each["status"] != "PASS" for each in mine),
            "skipped_optional": sum(each["status"] == "SKIP_UNSUPPORTED" for each in mine),
            "test_ids": [each["id"] for each in mine],
        }
    return out


def report_of(outcomes: dict[str, Outcome], began: Instant, ended: Instant) -> dict[str, Any]:
    """The report, valid against `conformance-report.schema.json`."""
    results = [_result(entry, outcomes.get(entry["id"], Outcome())) for entry in all_ids().values()]
    count = {
        name.lower(): sum(each["status"] == name for each in results)
        for name in ("PASS", "FAIL", "SKIP_UNSUPPORTED", "NOT_APPLICABLE", "HARNESS_ERROR")
    }
    failed = {
        f"{level.lower()}_failed": sum(
            each["level"] == level and each["status"] in ("FAIL", "HARNESS_ERROR") for each in results
        )
        for level in ("MUST", "SHOULD", "OPTIONAL")
    }
    profiles = _profiles(results)
    ids = "\n".join(all_ids()).encode()
    return {
        "schema_version": "1.0",
        "suite": {
            "name": "KIP 2.0 Conformance Suite",
            "spec_version": "2.0-draft",
            "vector_set_digest": f"sha256:{hashlib.sha256(ids).hexdigest()}",
        },
        "implementation": {
            "name": "Noema",
            "version": VERSION,
            "kip_version": KIP_VERSION,
            "commit": _commit(),
            "runtime": f"Python {platform.python_version()}",
        },
        "runner": {"name": "tests/conformance", "version": VERSION},
        "started_at": format_instant(began),
        "completed_at": format_instant(ended),
        "duration_ms": ended - began,
        "overall_status": "FAIL" if failed["must_failed"] else "PASS",
        "profiles_claimed": [str(FAMILIES[family]) for family in CLAIMED],
        "capabilities_advertised": dict(SUPPORTED),
        "summary": {"total": len(results), **count, **failed},
        "profiles": profiles,
        "tests": results,
    }


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def check_report(report: dict[str, Any]) -> None:
    """Raise `jsonschema.ValidationError` unless the report fits its published schema."""
    schemas = [json.loads(path.read_text("utf-8")) for path in (SHARED / "schemas").glob("*.schema.json")]
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas
    )
    schema = next(each for each in schemas if each["$id"] == "urn:kip:2.0:schema:conformance-report")
    Draft202012Validator(schema, registry=registry).validate(report)


# --- the table


def table(outcomes: dict[str, Outcome]) -> list[str]:
    """A line per family, and the totals last."""
    lines = [f"{'family':<8}{'passed':>8}{'failed':>8}{'pending':>9}{'of':>6}"]
    totals = {"passed": 0, "failed": 0, "pending": 0}
    for family in FAMILIES:
        mine = [found for found in all_ids() if found.split("-")[1] == family]
        verdicts = [outcomes.get(found, Outcome()).verdict for found in mine]
        counts = {name: verdicts.count(name) for name in totals}
        for name, number in counts.items():
            totals[name] += number
        lines.append(
            f"{family:<8}{counts['passed']:>8}{counts['failed']:>8}{counts['pending']:>9}{len(mine):>6}"
        )
    lines.append(f"{totals['passed']} passed, {totals['failed']} failed, {totals['pending']} pending")
    return lines


def main() -> int:
    """Run the suite; 1 if an id failed, 2 if the suite itself is broken."""
    parser = argparse.ArgumentParser(
        prog="scripts/conformance", description="Run the KIP 2.0 conformance suite."
    )
    parser.add_argument("--report", type=Path, default=ROOT / ".build" / "conformance-report.json")
    parser.add_argument("--family", type=str.upper, choices=list(FAMILIES), help="only the ids of one family")
    parser.add_argument("--failures", action="store_true", help="print each failing id and why")
    asked = parser.parse_args()
    if not all_ids():
        print(
            "noema: there is no ../shared/kip beside the repository, so there is no list of ids",
            file=sys.stderr,
        )
        return 2
    began = SystemClock().now()
    collector = Collector()
    only = [] if asked.family is None else ["-k", f"kip2_{asked.family}_"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main(
            [str(ROOT / "tests" / "conformance"), "-p", "no:cacheprovider", *only], [collector]
        )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        collector.broken.append(f"pytest ended with {code!r}: {said.getvalue()[-500:]}")
    report = report_of(collector.outcomes, began, SystemClock().now())
    check_report(report)
    asked.report.parent.mkdir(parents=True, exist_ok=True)
    asked.report.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if asked.failures:
        for found, outcome in collector.outcomes.items():
            if outcome.failure is not None:
                print(f"{found} {all_ids().get(found, {}).get('title', '?')}\n{outcome.failure}\n")
    for problem in [*collector.unknown, *collector.broken]:
        print(f"noema: {problem}", file=sys.stderr)
    print(f"report: {asked.report}", file=sys.stderr)
    print("\n".join(table(collector.outcomes)))
    if collector.unknown or collector.broken:
        return 2
    return int(any(outcome.verdict == "failed" for outcome in collector.outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
