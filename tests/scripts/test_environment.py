"""What an environment loses when its lock changes, and what it keeps."""

from pathlib import Path

import pytest

from scripts import environment

HASH = " \\\n    --hash=sha256:00\n"


def test_only_what_a_lock_brought_leaves_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that a former lock named and no lock names now goes; what was installed by hand was never named."""
    locks, home = tmp_path / "requirements", tmp_path / ".venv"
    locks.mkdir()
    home.mkdir()
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (home / "runtime.lock").write_text(f"Kept_One==1{HASH}gone.runtime==1{HASH}moved==1{HASH}")
    (home / "dev.lock").write_text(f"gone-dev==1{HASH}")
    (locks / "runtime.lock").write_text(f"kept-one==2{HASH}new==1{HASH}")
    (locks / "dev.lock").write_text(f"moved==1{HASH}")

    assert environment.leftovers(home) == ["gone-dev", "gone-runtime"]


def test_a_fresh_environment_has_no_leftovers(tmp_path: Path) -> None:
    """Without a copy of a lock nothing is known to have come from one."""
    assert environment.leftovers(tmp_path / ".venv") == []
