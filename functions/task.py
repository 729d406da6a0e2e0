"""The container's entry: the worker's own work, for as long as it takes.

    python -m functions.task formation --space demo --seconds 7200
    python -m functions.task maintenance --space demo --scope full
    python -m functions.task recall --space demo
    python -m functions.task shadow-eval --space demo --policy '{"decay_floor": 0.2}' --replay-sample 8
    python -m functions.task export --space demo --file demo.capsule.gz
    python -m functions.task import --space copy --file demo.capsule.gz --mode restore --owner alice

What lives here: arguments, the end of a task as an exit code, and giving the work back when it is told to stop. What must never
live here: the work, which is what a message of the queue has done (`functions.worker`), or a service's. The environment is the
functions'; nothing is different but the time. One line of JSON on stdout says how it ended.

    0 done      1 failed      2 arguments or settings      75 left, and hinted at: another goes on from the rows

SIGTERM, which a container gets some seconds before its end, stops the work where it is. That is as safe as dying there, which
every part of it survives; leases are given back and the work is hinted at, so that somebody goes on at once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

import msgspec

from core.capsule.stream import is_lines, lines_of
from core.errors import NoemaError
from core.ports import StoreFault
from core.protocol.capsule_types import ExportAsk, ImportWish, RestoreAsk
from core.protocol.memory_types import MaintenanceInput, ShadowInput
from core.service.callers import principal_of
from core.service.hints import FORMATION, MAINTENANCE, RECALL, SHADOW, Work, send_hint
from core.service.shadow_row import last_report
from core.service.values import Caller
from functions.bootstrap import Services, services
from functions.logs import bug
from functions.settings import SettingsError
from functions.worker import WORK

DONE, FAILED, USAGE, LEFT = 0, 1, 2, 75  # 75: EX_TEMPFAIL
DEFAULT_S: Final = 3_600
OPERATOR: Final = Caller("operator", "task", "*", kind="system", manager=True)
_WORKS: Final[Mapping[str, Work]] = {
    "recall": RECALL, "formation": FORMATION, "maintenance": MAINTENANCE, "shadow-eval": SHADOW,
}  # fmt: skip


class Stopped(BaseException):
    """The container is to end. Passes through whatever handles errors; what must be given back is given back on its way."""


class Unusable(Exception):  # noqa: N818 - what somebody must correct before trying again
    """An argument cannot be used."""


def main(argv: Sequence[str] | None = None, found: Services | None = None) -> int:
    """Do one task; the exit code."""
    given = _parser().parse_args(argv)
    try:
        running = services() if found is None else found
        code, told = _run(running, given)
    except (SettingsError, Unusable) as error:
        code, told = USAGE, {"message": str(error)}
    except NoemaError as error:
        code, told = FAILED, {"code": error.code, "message": error.message}
    except StoreFault as fault:
        code, told = FAILED, {"code": "ServiceUnavailable", "message": type(fault).__name__}
    except Exception as error:  # noqa: BLE001 - the edge: what is no NoemaError is a bug, logged without what it was about
        bug(error, task=given.task, space=given.space)
        code, told = FAILED, {"code": "InternalError", "message": type(error).__name__}
    status = {DONE: "done", LEFT: "left"}.get(code, "failed")
    print(json.dumps({"task": given.task, "space": given.space, "status": status, **told}), flush=True)  # noqa: T201 - the task's answer
    return code


def _run(found: Services, given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """The task, stopped cleanly if it is told to stop."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        if given.task == "export":
            return DONE, _export(found, given)
        if given.task == "import":
            return DONE, _import(found, given)
        return _work(found, given)
    except Stopped:
        work = _WORKS.get(given.task)
        if work is not None:
            send_hint(found.queue, found.entropy, given.space, work)
        return LEFT, {"reason": "stopped"}
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_IGN)  # once is enough: a second must not break off the giving back
    raise Stopped


# --- the worker's work


def _work(found: Services, given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    space, told = given.space, dict[str, Any]()
    found.spaces.head(space)
    if given.task == "maintenance" and given.scope is not None:
        wish = MaintenanceInput(scope=given.scope)
        told["run"] = found.maintenance.submit(OPERATOR, space, wish).conversation
    if given.task == "shadow-eval" and given.policy is not None:
        found.shadows.submit(OPERATOR, space, _wish(given))
    deadline = found.clock.now() + given.seconds * 1000
    do = _form if given.task == "formation" else WORK[_WORKS[given.task]]
    left = do(found, space, deadline)
    if given.task == "shadow-eval":
        report = last_report(found.table, space)
        told["report"] = None if report is None else msgspec.to_builtins(report)
        if report is not None and report.status == "failed":
            return FAILED, told
    if given.task == "maintenance" and told.get("run") is not None and not left:
        record = found.conversations.record(space, "maintenance", told["run"])
        if record.status == "failed":
            return FAILED, {**told, "reason": record.text("failed_reason")}
    return (LEFT if left else DONE), told


def _form(found: Services, space: str, deadline: int) -> bool:
    """Form what waits, and make each run of maintenance that formation gives way to; whether some is left."""
    before = -1
    while True:
        left = WORK[FORMATION](found, space, deadline)
        formed = found.spaces.head(space).number("formed")
        if not left or formed == before or found.clock.now() >= deadline:
            return left
        before = formed
        WORK[MAINTENANCE](found, space, deadline)


def _wish(given: argparse.Namespace) -> ShadowInput:
    """The wish for an evaluation; the policy is JSON, or `@` and the file that holds it."""
    text = given.policy
    try:
        if text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        members = {"policy": json.loads(text), "replay_sample": given.replay_sample}
        return msgspec.convert(
            {name: each for name, each in members.items() if each is not None}, ShadowInput
        )
    except (OSError, ValueError) as error:  # a ValidationError is a ValueError
        raise Unusable(f"--policy cannot be used: {error}") from error


# --- Capsules


def _export(found: Services, given: argparse.Namespace) -> dict[str, Any]:
    """Write a space into a file, whole or not at all; compressed if its name ends in .gz."""
    ask = ExportAsk(include_schema=given.include_schema)
    lines = found.capsules.lines(given.space, principal_of(OPERATOR, readonly=False), ask)
    file = Path(given.file)
    part = file.with_name(f"{file.name}.part")
    size = 0
    try:
        with part.open("wb") as raw, _packed(raw, file) as out:
            for line in lines:
                size += out.write(line)
        part.replace(file)
    except OSError as error:
        raise Unusable(f"{file} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return {"file": str(file), "bytes": size}


def _packed(raw: IO[bytes], file: Path) -> AbstractContextManager[Any]:  # something with `write`
    """A file to write into, as its name says; gzip without a time, so that the same Capsule is the same file."""
    return gzip.GzipFile("", "wb", 6, raw, mtime=0) if file.suffix == ".gz" else nullcontext(raw)


def _import(found: Services, given: argparse.Namespace) -> dict[str, Any]:
    file = Path(given.file)
    try:
        start = next(iter(_lines(file)), b"")
        if given.mode == "restore":
            return _restore(found, given, lambda: _source(file, start))
        if is_lines(start):
            raise Unusable("a Capsule in lines is a whole space: --mode restore makes a new space of it")
        artifact = json.loads(b"".join(_lines(file)))
    except (OSError, EOFError, ValueError) as error:
        raise Unusable(f"{file} cannot be read: {error}") from error
    deadline = found.clock.now() + given.seconds * 1000
    who = principal_of(OPERATOR, readonly=False)
    report = found.capsules.run(given.space, who, artifact, ImportWish(mode=given.mode), deadline=deadline)
    return {"report": report}


def _restore(found: Services, given: argparse.Namespace, source: Any) -> dict[str, Any]:  # opens the backup
    if given.owner is None:
        raise Unusable("--mode restore needs --owner: whose the new space is")
    ask = RestoreAsk(owner=given.owner, accept_unsigned=given.accept_unsigned)
    report = found.restores.restore(OPERATOR, given.space, source, ask, lambda _done, _total: None)
    while found.upkeep.compact(given.space, found.entropy.token(8).hex()) is not None:
        pass  # a restored space is folded at once, a few thousand commits at a time
    return {"report": report}


def _source(file: Path, start: bytes) -> Iterable[bytes]:
    return _lines(file) if is_lines(start) else lines_of(json.loads(b"".join(_lines(file))))


def _lines(file: Path) -> Iterator[bytes]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        yield from opened


# --- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m functions.task", description=__doc__.partition("\n")[0])
    tasks = parser.add_subparsers(dest="task", required=True)
    for name, words in (
        ("recall", "Answer the questions that wait."),
        ("formation", "Form the conversations that wait."),
        ("maintenance", "Make the run that waits, or with --scope one of its own."),
        ("shadow-eval", "Carry on the evaluation that waits, or with --policy one of its own."),
        ("export", "Write a space into a file, as a signed Capsule."),
        ("import", "Import a Capsule, or restore a whole space from one."),
    ):
        task = tasks.add_parser(name, help=words, description=words)
        task.add_argument("--space", required=True)
        task.add_argument("--seconds", type=_seconds, default=DEFAULT_S, help="how long it may take")
        for flags, options in _ARGUMENTS.get(name, ()):
            task.add_argument(*flags, **options)
    return parser


_ARGUMENTS: Final[Mapping[str, Sequence[tuple[tuple[str, ...], dict[str, Any]]]]] = {
    "maintenance": [(("--scope",), {"choices": ["full", "quick", "daydream"]})],
    "shadow-eval": [
        (("--policy",), {"help": "the candidate: JSON, or @ and a file of it"}),
        (("--replay-sample",), {"type": int}),
    ],
    "export": [(("--file",), {"required": True}), (("--include-schema",), {"action": "store_true"})],
    "import": [
        (("--file",), {"required": True}),
        (("--mode",), {"choices": ["merge", "isolate", "restore"], "default": "merge"}),
        (("--owner",), {"help": "whose the restored space is"}),
        (("--accept-unsigned",), {"action": "store_true"}),
    ],
}


def _seconds(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 7 * 24 * 3600:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    sys.exit(main())
