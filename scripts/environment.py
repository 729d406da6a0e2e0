"""Makes one of the project's Python environments from its lock file, and prints the path of its interpreter.

    python scripts/environment.py {runtime|dev|ministack|sam}

Run by any Python >= 3.12 that has `venv`; standard library only. An environment carries a copy of the lock it
was made from: while the two are equal it is used as it is, and otherwise brought up to date in place, so that a
process that runs in it goes on. `dev` is `runtime` and more, in the same `.venv`. Two runs at once are safe: the
second waits for the first and finds the work done.
"""

import fcntl
import filecmp
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOMES = {"runtime": ".venv", "dev": ".venv", "ministack": ".venv-ministack", "sam": ".venv-sam"}
WITHIN = {"dev": "runtime"}  # installing the first also gives the second


def current(home: Path, name: str) -> bool:
    """Whether the environment was made from this lock as it now is."""
    lock, copy = ROOT / "requirements" / f"{name}.lock", home / f"{name}.lock"
    return copy.exists() and filecmp.cmp(lock, copy, shallow=False)


def usable(python: Path) -> bool:
    """Whether the environment's interpreter still runs (the one it was made from may have gone)."""
    try:
        return subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make(home: Path) -> None:
    """A fresh, empty virtual environment."""
    shutil.rmtree(home, ignore_errors=True)
    # The interpreter behind a virtual environment, if we run in one: it might be the one just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run([base, "-m", "venv", home], capture_output=True, text=True, check=False)
    if made.returncode:
        shutil.rmtree(home, ignore_errors=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(
            f"{made.stdout}{made.stderr}\nnoema: {base} cannot make a virtual environment.\n"
            f"On Debian or Ubuntu: apt-get install python{version}-venv"
        )


def install(home: Path, name: str) -> None:
    """Install exactly what the lock names, each file checked against its hash, then keep the lock's copy."""
    lock = ROOT / "requirements" / f"{name}.lock"
    print(f"noema: installing {lock.relative_to(ROOT)} into {home.name} ...", file=sys.stderr, flush=True)
    python = home / "bin" / "python"
    command: list[str | Path] = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    command += ["--no-deps", "--require-hashes", "--prefer-binary", "-r", lock]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        sys.exit(f"noema: pip could not install {lock.name}; the message above says why. Then try again.")
    stale = leftovers(home)
    if stale:
        command = [home / "bin" / "python", "-m", "pip", "uninstall", "-qq", "--yes", *stale]
        subprocess.run(command, stdout=sys.stderr, check=False)
    for each in (name, WITHIN.get(name)):
        if each:
            shutil.copyfile(ROOT / "requirements" / f"{each}.lock", home / f"{each}.lock")


def leftovers(home: Path) -> list[str]:
    """Packages that a lock the environment was made from named, and none of its locks names any more.

    What somebody put there by hand, such as the weights of an embedder, stands in no lock and stays.
    """
    here = [name for name, where in HOMES.items() if where == home.name]
    before = set().union(*(named(home / f"{name}.lock") for name in here))
    now = set().union(*(named(ROOT / "requirements" / f"{name}.lock") for name in here))
    return sorted(before - now)


def named(lock: Path) -> set[str]:
    """The packages that a lock names; none if there is no such lock."""
    lines = lock.read_text("utf-8").splitlines() if lock.exists() else []
    return {canonical(line.partition("==")[0]) for line in lines if "==" in line}


def canonical(name: str) -> str:
    """A package's name as comparisons need it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def ensure(name: str) -> Path:
    """The interpreter of a ready environment."""
    home = ROOT / HOMES[name]
    python = home / "bin" / "python"
    if current(home, name) and usable(python):
        return python
    (ROOT / ".build").mkdir(exist_ok=True)
    with (ROOT / ".build" / f"{home.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if current(home, name) and usable(python):
            return python
        if not usable(python):
            make(home)
        install(home, name)
    return python


if __name__ == "__main__":
    print(ensure(sys.argv[1]))
