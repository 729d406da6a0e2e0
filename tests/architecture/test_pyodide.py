"""Core runs where there is no operating system: in Pyodide, under node."""

import json
import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

UNREACHABLE = 69  # scripts/pyodide_check: no node, or no package registry


def run(*command: str) -> dict[str, object]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode == UNREACHABLE:
        pytest.skip(f"Pyodide is not to be had here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def check(found: dict[str, object]) -> None:
    assert found["numpy"] is False
    assert found["formed"] == 1
    assert found["found"] is True
    assert "green tea" in str(found["answer"])
    assert found["kip"] == ["green tea", "Pyodide"]
    assert found["fixtures"] in (None, {"passed": 80, "failed": 0})  # None: not beside the repository


def test_core_works_in_pyodide() -> None:
    """Every module of core imports in Pyodide; a space remembers, answers, and runs KIP commands there."""
    found = run("scripts/pyodide_check")

    assert found["platform"] == "emscripten"
    check(found)


def test_the_same_check_works_here() -> None:
    """The check means the same under this Python, so a failure in Pyodide is Pyodide's."""
    start = (
        f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); "
        "runpy.run_path('scripts/pyodide_check.py', run_name='__main__')"
    )

    check(run(sys.executable, "-c", start))
