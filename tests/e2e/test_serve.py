"""`noema serve` as a person meets it: the printed curl lines work, and what was remembered survives a kill -9."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from functions import writes
from functions.adapters import adapters
from functions.bootstrap import build
from functions.local.events import http_event
from functions.routing import respond
from functions.settings import Settings, read_settings
from tests.e2e.local import ROOT, environment, serve_command, serving


def test_the_three_printed_lines_work(tmp_path: Path) -> None:
    """Create a space, send a conversation, ask: as printed, one after another, the answer is there."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    with serving(tmp_path) as service:
        create, send, ask = [
            line.strip() for line in service.banner.splitlines() if line.startswith("  curl")
        ]

        created, sent = _shell(create), _shell(send)
        service.wait_formed("demo", sent["result"]["conversation"])
        asked = _shell(ask)

    assert created["result"]["id"] == "demo"
    assert asked["result"]["found"] is True
    assert "green tea" in asked["result"]["answer"]


def test_it_says_who_thinks(tmp_path: Path) -> None:
    """What is printed names the model of each role, or says that there is none."""
    with serving(tmp_path) as service:
        assert "model    none: " in service.banner
    with serving(tmp_path, NOEMA_MODEL_RECALL="openai:m@http://127.0.0.1:9/v1") as service:
        assert "model    formation offline, recall openai:m, " in service.banner


def _shell(line: str) -> dict:
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30, check=True)
    return json.loads(done.stdout)


def test_memory_survives_a_kill(tmp_path: Path) -> None:
    """After kill -9 and a restart the service answers from what was remembered before."""
    with serving(tmp_path) as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        service.form("demo", "I prefer green tea.")
        before = service.call("GET", "/v1/demo/info")
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    with serving(tmp_path) as again:
        after = again.call("GET", "/v1/demo/info")
        found = again.call("POST", "/v1/demo/recall_structured", {"query": "What does Ada prefer?"})

    assert after == before
    assert "green tea" in found["answer"]


def test_what_was_left_undone_is_formed_at_the_next_start(tmp_path: Path) -> None:
    """A conversation that was stored, and whose queue died with its process, is formed when the service starts."""
    with serving(tmp_path) as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        service.stop()
    conversation = _submit_without_a_worker(tmp_path)
    with serving(tmp_path) as again:
        again.wait_formed("demo", conversation)
        info = again.call("GET", "/v1/demo/info")

    assert info["formation_processed_id"] == conversation
    assert info["concepts"] > 0


def test_a_worker_that_was_killed_holds_up_nothing(tmp_path: Path) -> None:
    """The lease that a killed process still holds ends with the next start, not two minutes later."""
    with serving(tmp_path) as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        service.stop()
    conversation = _submit_without_a_worker(tmp_path)
    settings = _settings(tmp_path)
    assert build(settings, adapters(settings)).leases.acquire("demo", "formation", "killed", 120_000)

    with serving(tmp_path) as again:
        again.wait_formed("demo", conversation)


def _settings(data: Path) -> Settings:
    return read_settings(
        {
            "NOEMA_STORE": "embedded",
            "NOEMA_DATA_DIR": str(data),
            "ALLOW_INSECURE_LOCAL": "1",
            "NOEMA_ENDPOINT_HOST": "127.0.0.1",
        }
    )


def _submit_without_a_worker(data: Path) -> int:
    """What the writes function does, in a process that ends before its queue is read."""
    settings = _settings(data)
    event = http_event(
        method="POST",
        path="/v1/demo/formation",
        query="",
        headers=[("content-type", "application/json"), ("host", "127.0.0.1")],
        body=json.dumps(
            {"messages": [{"role": "user", "name": "Ada", "content": "I live in Lisbon."}]}
        ).encode(),
        source="127.0.0.1",
        request_id="r1",
        now_ms=0,
    )
    answer = respond(event, None, writes.ROUTES, lambda: build(settings, adapters(settings)))
    assert answer["statusCode"] == 200, answer["body"]
    return int(json.loads(answer["body"])["result"]["conversation"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_graceful(tmp_path: Path, number: int) -> None:
    """The service ends by itself with exit code 0, and says what it is doing; no traceback."""
    with serving(tmp_path) as service:
        code = service.stop(number)

        assert code == 0
        assert "finishing" in service.errors
        assert "Traceback" not in service.errors


def test_a_program_reads_where_it_listens(tmp_path: Path) -> None:
    """With --json one JSON value on standard output says that it is ready, and where."""
    command = serve_command(tmp_path, "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            answer = httpx.get(ready["url"] + "/info", timeout=10)
        finally:
            process.kill()

    assert answer.status_code == 200
    assert ready["data"] == str(tmp_path)
    assert ready["tokens"] is False


def test_a_folder_that_holds_no_memory_is_told(tmp_path: Path) -> None:
    """A file where the folder should be, or another file in the store's place: a line that says so, no traceback."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "noema.db").write_bytes(b"no database" * 100)
    for data, why in ((tmp_path / "file" / "below", "Not a directory"), (tmp_path, "file is not a database")):
        with (
            pytest.raises(AssertionError, match="the memory cannot be opened: .*" + why) as told,
            serving(data),
        ):
            pass
        assert "Traceback" not in str(told.value)


def test_a_second_service_on_the_port_says_so(tmp_path: Path) -> None:
    """The second one ends with a line that names the port, and the first goes on."""
    with serving(tmp_path / "a") as service:
        port = service.url.rsplit(":", 1)[1]
        with (
            pytest.raises(AssertionError, match=f"cannot listen on 127.0.0.1 port {port}"),
            serving(tmp_path / "b", "--port", port),
        ):
            pass

        assert service.http.get("/info").status_code == 200


def test_requests_from_a_web_page_elsewhere_are_refused(tmp_path: Path) -> None:
    """Without keys the service trusts this machine, not a page that a browser on it has open."""
    with serving(tmp_path) as service:
        rebound = service.http.post(
            "/admin/create_space",
            json={"user": "me", "space_id": "demo", "tier": 2},
            headers={"host": "evil.example", "origin": "http://evil.example"},
        )

        assert rebound.status_code in (401, 403)


def test_the_log_shows_no_text(tmp_path: Path) -> None:
    """What was said, asked and answered is in no line that the service writes."""
    with serving(tmp_path) as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        service.form("demo", "My secret number is 48151623.")
        service.call("POST", "/v1/demo/recall_structured", {"query": "48151623?"})
        service.http.post("/v1/demo/formation?q=48151623", content=b"{48151623")
        service.stop()

        assert "48151623" not in service.errors
        assert "POST /v1/demo/formation 200" in service.errors
