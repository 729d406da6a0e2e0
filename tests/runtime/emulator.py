"""Lambda's Runtime API on a socket, and a function's process behind it: what `sam local` needs docker for.

The process is the real `awslambdaric`, which polls for the next event and posts what the handler answers. This
side hands events over, waits until the function's timeout, and ends and restarts a process that ran out of time,
as the platform does.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any, NamedTuple, Self

ROOT = Path(__file__).resolve().parents[2]
INIT_S = 30.0  # how long a process may take to ask for its first event


class Invocation(NamedTuple):
    """What became of an event: the handler's result, or an error (`errorType`, `errorMessage`)."""

    result: Any
    error: dict[str, Any] | None
    ms: float
    cold: bool


class Function:
    """One function with one process at a time.

    Args:
        handler: as in the template, such as `functions.reads.handler`.
        timeout_s: the function's timeout.
        env: its environment variables, besides those of the platform.
        code: the folder it runs in: the repository, or a package that was built.
    """

    def __init__(
        self, handler: str, *, timeout_s: float = 10.0, env: dict[str, str] | None = None, code: Path = ROOT
    ) -> None:
        self._handler = handler
        self._timeout_s = timeout_s
        self._env = env or {}
        self._code = code
        self._events: Queue[tuple[str, bytes]] = Queue()
        self._answers: Queue[tuple[str, str, bytes]] = Queue()
        self._asked = threading.Event()  # the process is up and waits for an event
        self._process: subprocess.Popen[bytes] | None = None
        self._serial = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _api(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._end()
        self._server.shutdown()
        self._server.server_close()

    @property
    def pid(self) -> int | None:
        """The process that stands ready, if one does."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def invoke(self, event: Any) -> Invocation:
        """Run the handler on an event, in a new process if none stands ready."""
        began = time.perf_counter()
        cold = self.pid is None
        if cold:
            self._start()
        self._serial += 1
        request_id = f"00000000-0000-4000-8000-{self._serial:012d}"
        self._events.put((request_id, json.dumps(event).encode()))
        result, error = self._wait(request_id)
        return Invocation(result, error, (time.perf_counter() - began) * 1000, cold)

    def _wait(self, request_id: str) -> tuple[Any, dict[str, Any] | None]:
        if not self._asked.wait(INIT_S):
            self._end()
            return None, {"errorType": "Runtime.ExitError", "errorMessage": "the process did not start"}
        try:
            what, about, body = self._answers.get(timeout=self._timeout_s)
        except Empty:
            self._end()
            return None, {
                "errorType": "Sandbox.Timedout",
                "errorMessage": f"timed out after {self._timeout_s} s",
            }
        value = json.loads(body) if body else None
        if what == "response":
            assert about == request_id
            return value, None
        if what == "init":
            self._end()
        return None, value

    def _start(self) -> None:
        self._asked.clear()
        self._events, self._answers = Queue(), Queue()
        keep = {"PATH", "HOME", "LANG", "TMPDIR", "OPENBLAS_CORETYPE"}
        env = {name: value for name, value in os.environ.items() if name in keep}  # noqa: TID251 - as bare as Lambda's
        env |= {
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_port}",
            "AWS_LAMBDA_FUNCTION_NAME": "noema-test",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_REGION": "us-east-1",
            "LAMBDA_TASK_ROOT": str(self._code),
            "PYTHONPATH": str(self._code),
            **self._env,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "awslambdaric", self._handler],
            cwd=self._code,
            env=env,
            stdout=subprocess.DEVNULL,
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    # --- what the process asks for

    def next_event(self) -> tuple[str, bytes, int]:
        """The next event with its deadline (Unix ms), which begins now; blocks until there is one."""
        self._asked.set()
        request_id, body = self._events.get()
        return request_id, body, int((time.time() + self._timeout_s) * 1000)  # noqa: TID251 - the platform's clock

    def answer(self, what: str, request_id: str, body: bytes) -> None:
        """The handler's result, its error, or that it could not be loaded."""
        self._asked.set()
        self._answers.put((what, request_id, body))


def _api(function: Function) -> type[BaseHTTPRequestHandler]:
    class RuntimeApi(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for an answer: with many small ones each event costs 40 ms

        def setup(self) -> None:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().setup()

        def do_GET(self) -> None:
            request_id, body, deadline_ms = function.next_event()
            self._send(
                200, body, {
                    "Lambda-Runtime-Aws-Request-Id": request_id,
                    "Lambda-Runtime-Deadline-Ms": str(deadline_ms),
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:noema-test",
                },
            )  # fmt: skip

        def do_POST(self) -> None:
            body = self._body()
            parts = self.path.split(
                "/"
            )  # /2018-06-01/runtime/invocation/ID/response, or .../runtime/init/error
            if parts[3] == "init":
                function.answer("init", "", body)
            else:
                function.answer(parts[5], parts[4], body)
            self._send(202, b"{}", {})

        def _body(self) -> bytes:
            if "content-length" in self.headers:
                return self.rfile.read(int(self.headers["content-length"]))
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *args: object) -> None:
            pass

    return RuntimeApi
