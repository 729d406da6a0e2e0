"""`noema serve` as a process, for tests: started on a free port, stopped in the ways a process can be stopped."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
FORM_S = 60.0


class Service:
    """A running service: its URL, what it printed, and a client for it."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, banner: str, errors: IO[bytes]) -> None:
        self.process = process
        self.url = url
        self.banner = banner
        self._errors = errors
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=30)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The `result` of a request that must succeed."""
        response = self.http.request(method, path, json=body, headers=headers)
        assert response.status_code == 200, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()["result"]

    def form(self, space: str, *said: str) -> int:
        """Submit one conversation of these user messages and wait until it has been formed; its id."""
        messages = [{"role": "user", "name": "Ada", "content": each} for each in said]
        conversation = self.call("POST", f"/v1/{space}/formation", {"messages": messages})["conversation"]
        self.wait_formed(space, conversation)
        return int(conversation)

    def wait_formed(self, space: str, conversation: int, seconds: float = FORM_S) -> None:
        """Wait until formation has passed a conversation."""
        deadline = time.monotonic() + seconds
        while self.call("GET", f"/v1/{space}/formation_status")["formation_processed_id"] < conversation:
            assert time.monotonic() < deadline, f"not formed after {seconds} s"
            time.sleep(0.05)  # noqa: TID251 - another process is at work

    def stop(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)

    @property
    def errors(self) -> str:
        """What it has written to standard error."""
        self._errors.flush()
        return Path(self._errors.name).read_text("utf-8", "replace")


def environment(**more: str) -> dict[str, str]:
    """The environment of a command: ours, without settings of Noema's, and with no embedder that happens to be here."""
    dropped = ("NOEMA_", "ED25519", "ALLOW_", "MANAGERS", "AWS_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}  # noqa: TID251
    return {**own, "PYTHONPATH": str(ROOT), "NOEMA_EMBEDDER": "none", **more}


def serve_command(data: Path, *options: str) -> list[str]:
    """`noema serve` over a data folder, on a port that is free."""
    command = [sys.executable, "-P", "-m", "functions.cli", "serve", "--port", "0", "--data", str(data)]
    return [*command, *options]


@contextmanager
def serving(data: Path, *options: str, **env: str) -> Iterator[Service]:
    """The service over a data folder, until the block ends."""
    with tempfile.NamedTemporaryFile() as errors:
        process = subprocess.Popen(
            serve_command(data, *options),
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(**env),
            cwd=ROOT,
        )
        try:
            yield _ready(process, errors)
        finally:
            process.kill()
            process.wait()


def _ready(process: subprocess.Popen[bytes], errors: IO[bytes]) -> Service:
    assert process.stdout is not None
    banner = ""
    while "Stop with Ctrl-C." not in banner:
        line = process.stdout.readline().decode()
        assert line, f"the service did not start:\n{Path(errors.name).read_text()}"
        banner += line
    url = re.search(r"http://\S+", banner)
    assert url
    return Service(process, url.group(), banner, errors)
