"""`noema doctor`: looks at everything a working installation needs, and says what to do about what is wrong."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import click
import httpx
import msgspec

from functions.cli.client import Client
from functions.cli.init import config_path, read
from functions.cli.serve import environment
from functions.cli.terminal import Failure, json_option, now_s, service_options
from functions.cli.wiring import AGENTS, Agent, ByHand, Scope, has_block
from functions.model_settings import models_in_words
from functions.settings import Settings, SettingsError, is_loopback, read_settings

Verdict = Literal["ok", "warn", "fail"]

_PACKAGES: Final = (
    "msgspec", "snowballstemmer", "cbor2", "cwt", "boto3", "aws-lambda-powertools", "numpy", "click", "httpx", "waitress",
)  # fmt: skip
_LATE_MS: Final = 3600 * 1000  # work that is due longer than this is done by nobody
_MAX_SKEW_S: Final = 60  # what a token's times are allowed to be off by


class Finding(msgspec.Struct, frozen=True):
    """What one check saw, and what to do about it."""

    check: str
    verdict: Verdict
    saw: str
    do: str | None = None


@click.command()
@click.option("-s", "--space", help="Check this space too: its upkeep, and every commit of its log.")
@service_options
@json_option
def doctor(space: str | None, url: str, token: str | None) -> tuple[str, object]:
    """Check environment, settings, store, keys, model, the service and the clock. Changes nothing.

    With --space also one space of the service, for which a manager's token is needed where there are keys.
    """
    findings = [finding for check in _CHECKS for finding in check()]
    findings += list(_service(url, token))
    if space is not None:
        findings += list(_space(space, url, token))
    marks = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
    lines = []
    for each in findings:
        lines.append(f"{marks[each.verdict]}  {each.check:<12}{each.saw}")
        if each.do:
            lines.append(f"      {'':<12}-> {each.do}")
    value = {"ok": all(each.verdict != "fail" for each in findings), "checks": msgspec.to_builtins(findings)}
    if not value["ok"]:
        click.echo("\n".join(lines), err=True)
        failed = ", ".join(each.check for each in findings if each.verdict == "fail")
        raise Failure(f"failed: {failed}", "The lines above say what to do.", answer=("", value))
    return "\n".join(lines), value


def _python() -> Iterator[Finding]:
    saw = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}"
    yield Finding("python", "ok", saw)


def _packages() -> Iterator[Finding]:
    missing = []
    for name in _PACKAGES:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Finding("packages", "fail", f"missing: {', '.join(missing)}", "Run through scripts/noema.")
    else:
        yield Finding("packages", "ok", f"{len(_PACKAGES)} present, msgspec {version('msgspec')}")


def _settings() -> Settings | SettingsError:
    """The settings that `noema serve` would have."""
    given: Mapping[str, str] = os.environ  # noqa: TID251 - read by the same functions
    try:
        data = Path(given.get("NOEMA_DATA_DIR") or ".noema")
        return read_settings({**given, **environment(given, "127.0.0.1", data)})
    except SettingsError as error:
        return error


def _keys() -> Iterator[Finding]:
    settings = _settings()
    if isinstance(settings, SettingsError):
        yield Finding("settings", "fail", str(settings), "Correct the variable that is named.")
        return
    yield Finding("settings", "ok", f"store {settings.store}, shard {settings.sharding}")
    count = len(settings.tenant_keys) + len(settings.admin_keys)
    if count:
        verdict: Verdict = "ok" if settings.managers or not settings.admin_keys else "warn"
        do = "Set MANAGERS, or nobody can create a space." if verdict == "warn" else None
        yield Finding("keys", verdict, f"{count} verification keys, {len(settings.managers)} managers", do)
    else:
        yield Finding(
            "keys",
            "warn",
            "no keys: `noema serve` admits every caller on this machine, and a deployment admits nobody",
            "For anything but a trial: `noema keygen`, then ED25519_PUBKEYS.",
        )


def _store() -> Iterator[Finding]:
    settings = _settings()
    if isinstance(settings, SettingsError):
        return
    if settings.store == "aws":
        yield Finding("store", "ok", f"table {settings.table}, bucket {settings.bucket}; not contacted")
        return
    home = Path(settings.data_dir).resolve()
    if not home.exists():
        near = next(parent for parent in home.parents if parent.exists())
        if os.access(near, os.W_OK):
            yield Finding("store", "ok", f"{home} will be made by `noema serve`")
        else:
            yield Finding(
                "store", "fail", f"{home} cannot be made", "Set NOEMA_DATA_DIR to a folder of yours."
            )
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding("store", "fail", f"{home} is not writable", "Mend its rights, or set NOEMA_DATA_DIR.")
        return
    for file in sorted(home.glob("*.sqlite*")) + sorted(home.glob("*.db")):
        if file.suffix in {".sqlite-wal", ".sqlite-shm"}:
            continue
        yield _database(file)


def _database(file: Path) -> Finding:
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=2) as db:
            verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return Finding("store", "fail", f"{file}: {error}", "Restore the folder from a copy.")
    if verdict != "ok":
        return Finding("store", "fail", f"{file}: {verdict}", "Restore the folder from a copy.")
    return Finding("store", "ok", f"{file}: {file.stat().st_size:,} bytes, intact")


def _model() -> Iterator[Finding]:
    """Which models think and which one embeds, as this environment names them; none of them is asked."""
    settings = _settings()
    if isinstance(settings, SettingsError):
        return
    yield Finding("model", "ok", models_in_words(settings.models))
    name = settings.embedder.public_name
    if name == "none":
        do = f"For search by meaning: {sys.executable} -m pip install --no-deps wordllama, or set NOEMA_EMBEDDER."
        yield Finding("embedder", "ok", "none: words and age alone rank", do)
    else:
        yield Finding("embedder", "ok", f"{name}; not asked")


def _agents() -> Iterator[Finding]:
    """Which coding agents know of the memory, here and in the user's home."""
    wired = 0
    places: tuple[tuple[Scope, Path], ...] = (("project", Path.cwd()), ("user", Path.home()))
    for scope, root in places:
        for agent in AGENTS.values():
            finding = _agent(agent, root, scope)
            if finding is not None:
                wired += 1
                yield finding
    if not wired:
        yield Finding("agents", "ok", "no coding agent is wired", "To use the memory from one: `noema init`.")


def _agent(agent: Agent, root: Path, scope: Scope) -> Finding | None:
    """What is to be said of one agent's wiring; None if it has none."""
    path = config_path(agent, root, scope)
    try:
        entry = agent.read(read(path) or "")
        rules = agent.rules[scope]
        told = rules is None or has_block(read(root / rules) or "")
    except ByHand as problem:
        return Finding("agents", "warn", f"{agent.title}: {path}: {problem}", "Look at it yourself.")
    if entry is None:
        return None
    given = entry.get("command")
    command = given[0] if isinstance(given, list) and given else given
    if isinstance(command, str) and shutil.which(command) is None:
        return Finding(
            "agents", "fail", f"{agent.title}: there is no {command}", "`noema init --force` names it anew."
        )
    if not told:
        return Finding(
            "agents", "warn", f"{agent.title}: {root / str(rules)} has no block", "Run `noema init` again."
        )
    return Finding("agents", "ok", f"{agent.title}: {path}")


def _service(url: str, token: str | None) -> Iterator[Finding]:
    try:
        response = httpx.get(f"{url.rstrip('/')}/info", timeout=5, trust_env=False)
        told = response.json()
        name, number = told["name"], told["version"]
    except httpx.TransportError:
        yield Finding("service", "warn", f"nothing answers at {url}", "Start it with `noema serve`.")
        return
    except (ValueError, KeyError, TypeError, httpx.InvalidURL):
        yield Finding("service", "fail", f"{url} is no Noema service", "Correct --url or NOEMA_URL.")
        return
    yield Finding("service", "ok", f"{name} {number} at {url}")
    if not (token or is_loopback(httpx.URL(url).host)):
        yield Finding("token", "warn", "no token is given", "Set NOEMA_TOKEN (see `noema token --help`).")
    yield _clock(response.headers.get("date"))


def _space(space: str, url: str, token: str | None) -> Iterator[Finding]:
    """A space's upkeep, its log, and whether anybody keeps facts in it."""
    try:
        with Client(url, token) as client:
            seen = client.result("GET", f"/admin/{quote(space, safe='')}/upkeep", query={"verify": "true"})
    except Failure as failure:
        yield Finding("space", "fail", f"{space}: {failure.message}", failure.hint)
        return
    chain = seen["chain"]
    if not chain["intact"]:
        yield Finding(
            "log",
            "fail",
            f"{space}: commit {chain['broken']} is not what the chain says",
            "Stop writing and restore the store from a copy.",
        )
    else:
        redacted = f", {chain['redacted']} of them redacted" if chain["redacted"] else ""
        yield Finding("log", "ok", f"{space}: versions {chain['first']} to {chain['last']} fit{redacted}")
    waiting = (
        f"{space}: {seen['log_commits']} commits, {seen['log_bytes']:,} bytes above version {seen['base']}"
    )
    late = seen["due"] and now_s() * 1000 - seen["at"] > _LATE_MS
    do = "Is the worker running, and the schedule that rings the tick?" if late else None
    yield Finding("upkeep", "warn" if late else "ok", waiting, do)
    if seen["erasure_owed"]:
        yield Finding(
            "erasure",
            "warn",
            f"{space}: bytes of a purge are still to go",
            "The worker's next round removes them.",
        )
    due = seen.get("facts_due_at")
    if due is not None and now_s() * 1000 - due > _LATE_MS:
        yield Finding(
            "facts",
            "warn",
            f"{space}: facts should have been consolidated by now",
            "Is the schedule that rings the tick running?",
        )


def _clock(date: str | None) -> Finding:
    if date is None:
        return Finding("clock", "warn", "the service does not tell the time")
    skew = now_s() - round(parsedate_to_datetime(date).timestamp())
    if abs(skew) > _MAX_SKEW_S:
        return Finding(
            "clock", "fail", f"{skew} s apart from the service", "Set this machine's clock: tokens will fail."
        )
    return Finding("clock", "ok", f"{abs(skew)} s apart from the service")


_CHECKS: Final[tuple[Callable[[], Iterator[Finding]], ...]] = (
    _python,
    _packages,
    _keys,
    _store,
    _model,
    _agents,
)
