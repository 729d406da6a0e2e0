"""The handlers as Lambda runs them: in a process of `awslambdaric`, cold, warm, failing and out of time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from functions.local.events import http_event
from functions.minting import generate_key, mint
from tests.runtime.emulator import ROOT, Function

# Each function, and the services that its first event builds.
FUNCTIONS = {
    "reads": ("recall", "admin"),
    "writes": ("conversations",),
    "management": ("admin", "tokens"),
    "mcp.handler": ("recall", "facts", "echoes"),
    "worker": ("formation", "caretaking"),
    "tick": ("formation", "caretaking"),
}
HANDLERS = "tests.runtime.handlers"


def request(method: str, path: str, body: object = None, token: str | None = None):
    headers = [("content-type", "application/json")]
    if token:
        headers.append(("authorization", f"Bearer {token}"))
    return http_event(
        method=method,
        path=path,
        query="",
        headers=headers,
        body=b"" if body is None else json.dumps(body).encode(),
        source="127.0.0.1",
        request_id="r1",
        now_ms=0,
    )


def test_a_function_answers_cold_and_warm(capsys: pytest.CaptureFixture[str]) -> None:
    """The first event starts a process and the next ones find it; a warm answer takes milliseconds."""
    with Function("functions.reads.handler") as reads:
        cold = reads.invoke(request("GET", "/info"))
        pid = reads.pid
        warm = [reads.invoke(request("GET", "/info")) for _ in range(20)]

        assert (cold.cold, cold.error, cold.result["statusCode"]) == (True, None, 200)
        assert json.loads(cold.result["body"])["name"] == "noema"
        assert reads.pid == pid
        assert all(not each.cold and each.result["statusCode"] == 200 for each in warm)

    median = sorted(each.ms for each in warm)[10]
    with capsys.disabled():
        print(f"\n  reads: cold {cold.ms:.0f} ms, warm {median:.2f} ms (median of 20, in the emulator)")


def test_an_exception_is_an_error_of_that_invocation_alone() -> None:
    """The error is reported by its type, and the same process takes the next event."""
    with Function(f"{HANDLERS}.raises") as function:
        first, pid = function.invoke({}), function.pid
        second = function.invoke({})

        assert first.error is not None
        assert (first.error["errorType"], first.error["errorMessage"]) == ("ValueError", "no")
        assert second.error is not None
        assert function.pid == pid


def test_a_function_out_of_time_is_ended_and_started_again() -> None:
    """An invocation over its timeout is an error; the next one runs in a new process."""
    with Function(f"{HANDLERS}.sleeps", timeout_s=3.0) as function:
        before = function.invoke({})
        late = function.invoke({"sleep": 30})
        after = function.invoke({})

        assert 0 < before.result["left"] <= 3000
        assert late.error is not None
        assert late.error["errorType"] == "Sandbox.Timedout"
        assert after.cold
        assert after.result["pid"] != before.result["pid"]


def test_a_handler_that_cannot_be_loaded_is_an_error_of_the_start() -> None:
    """A missing module is reported by the runtime, and does not hang."""
    with Function("functions.absent.handler") as function:
        told = function.invoke({})

        assert told.error is not None
        assert told.error["errorType"] == "Runtime.ImportModuleError"


def test_a_deployed_function_without_keys_admits_nobody() -> None:
    """ALLOW_INSECURE_LOCAL is of no use where Lambda runs the code: every request is refused, none is served."""
    env = {"ALLOW_INSECURE_LOCAL": "1", "NOEMA_ENDPOINT_HOST": "127.0.0.1"}
    with Function("functions.reads.handler", env=env) as reads:
        told = reads.invoke(request("GET", "/v1/demo/info"))

        assert told.error is not None or told.result["statusCode"] >= 500


def test_a_space_is_created_and_read_by_two_functions(tmp_path: Path) -> None:
    """Management and reads, each in its own process over one store, agree; tokens are asked for."""
    private, public = generate_key()
    env = {
        "NOEMA_STORE": "embedded",
        "NOEMA_DATA_DIR": str(tmp_path),
        "ED25519_PUBKEYS": public,
        "NOEMA_ADMIN_PUBKEYS": public,
        "MANAGERS": "ada",
    }
    token = _token(private)
    wish = {"user": "ada", "space_id": "demo", "tier": 1}
    with Function("functions.management.handler", env=env) as management:
        made = management.invoke(request("POST", "/admin/create_space", wish, token))
        refused = management.invoke(request("POST", "/admin/create_space", {**wish, "space_id": "other"}))
    with Function("functions.reads.handler", env=env) as reads:
        info = reads.invoke(request("GET", "/v1/demo/info", token=token))

    assert made.result["statusCode"] == 200, made.result["body"]
    assert refused.result["statusCode"] == 401
    assert json.loads(info.result["body"])["result"]["owner"] == "ada"


def _token(private: str) -> str:
    import time  # noqa: PLC0415 - the real service checks the real time

    return mint(private, subject="ada", audience="*", scope="*", now_s=int(time.time()))  # noqa: TID251 - see above


IMPORTS = """
import sys, time, resource
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
before = cpu()
import functions.{name}
imported = cpu()
from functions.bootstrap import services
services().table._clients.dynamodb
for each in {needs}:
    getattr(services(), each)
ready = cpu()
print(round((imported - before) * 1000), round((ready - before) * 1000), *sorted(sys.modules))
"""
READS_BUDGET_MS = 400  # of CPU: imports, services and the DynamoDB client


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_starts_within_its_budget(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Imports stay lean: no numpy, no S3, no web client; and the read path is ready in at most 400 ms.

    Measured in CPU time, the best of five, so that a busy machine does not decide.
    """
    runs = [_imports(name) for _ in range(5)]
    imported = min(int(run[0]) for run in runs)
    ready = min(int(run[1]) for run in runs)
    loaded = set(runs[0][2:])

    assert not {"mcp", "pydantic", "numpy", "httpx", "click", "waitress", "cryptography", "moto"} & loaded
    assert name != "reads" or ready <= READS_BUDGET_MS
    with capsys.disabled():
        print(f"\n  {name}: import {imported} ms, ready for its first event {ready} ms (CPU, best of 5)")


def _imports(name: str) -> list[str]:
    env = {
        "PATH": os.environ["PATH"],  # noqa: TID251
        "NOEMA_STORE": "aws",
        "NOEMA_TABLE": "t",
        "NOEMA_BUCKET": "b",
        "NOEMA_QUEUE_URL": "q",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    code = IMPORTS.format(name=name, needs=FUNCTIONS[name])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.split()
