"""A stack that SAM deployed to ministack, for tests: its API, its outputs, and tokens for it."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from functions.minting import generate_key, mint
from tests.ministack import LocalAws, find_executable, free_port, fresh_name, wait_until_healthy

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60.0


class Stack:
    """A deployed stack."""

    def __init__(self, aws: LocalAws, name: str, private: str) -> None:
        self.aws = aws
        self.name = name
        self._private = private
        cloud = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        self.outputs = {each["OutputKey"]: each["OutputValue"] for each in cloud["Outputs"]}
        self.http = httpx.Client(
            base_url=f"{aws.url}/_aws/execute-api/{self.outputs['ApiId']}/$default",
            trust_env=False,
            timeout=60,
        )

    def client(self, service: str) -> Any:
        """A client of boto3 for ministack."""
        return self.aws.session().client(service, endpoint_url=self.aws.url)

    def resource(self, logical_id: str) -> str:
        """The name that a resource of the template got."""
        asked = {"StackName": self.name, "LogicalResourceId": logical_id}
        found = self.client("cloudformation").describe_stack_resource(**asked)["StackResourceDetail"]
        return str(found["PhysicalResourceId"])

    def token(self, audience: str, scope: str = "*", subject: str = "ada") -> str:
        """A CWT for a space, or for every one (`*`)."""
        now = int(time.time())  # noqa: TID251 - the deployed functions check the real time
        return mint(self._private, subject=subject, audience=audience, scope=scope, now_s=now)

    def send(self, method: str, path: str, body: Any = None, token: str | None = None) -> httpx.Response:
        """One request."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return self.http.request(method, path, json=body, headers=headers)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """The `result` of a request that must succeed."""
        response = self.send(method, path, body, token)
        assert response.status_code == 200, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()["result"]

    def create_space(self, space: str) -> None:
        """A new space."""
        self.call(
            "POST", "/admin/create_space", {"user": "ada", "space_id": space, "tier": 2}, self.token("*")
        )

    def wait_formed(self, space: str, conversation: int, seconds: float = WAIT_S) -> None:
        """Wait until formation has passed a conversation."""
        deadline = time.monotonic() + seconds
        token = self.token(space)
        while (
            self.call("GET", f"/v1/{space}/formation_status", token=token)["formation_processed_id"]
            < conversation
        ):
            assert time.monotonic() < deadline, f"not formed after {seconds} s"
            time.sleep(0.3)  # noqa: TID251 - other processes are at work


@contextmanager
def strict_aws(work: Path) -> Iterator[LocalAws]:
    """A ministack of our own that checks rights; credentials named `test` are the account's root."""
    executable = find_executable()
    if executable is None:
        pytest.skip("no ministack: scripts/test installs one into .venv-ministack")
    port = free_port()
    env = {
        **os.environ,  # noqa: TID251 - of a process of our own
        "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "TMPDIR": str(work), "LOG_LEVEL": "WARNING",
        "IOT_MTLS_ENABLED": "0", "AUTH": "true",
    }  # fmt: skip
    with (work / "log").open("wb") as log:
        process = subprocess.Popen([executable], env=env, stdout=log, stderr=log)
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}", process, work / "log")
            yield LocalAws(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(30)


def deploy(aws: LocalAws, *overrides: str) -> Stack:
    """Package and deploy template.yaml; the account's operator is `ada`."""
    if not (ROOT / ".venv-sam" / "bin" / "sam").exists():
        pytest.skip("scripts/test installs SAM CLI into .venv-sam")
    name = fresh_name("stack")
    private, public = generate_key()
    given = [f"TenantPublicKeys={public}", f"AdminPublicKeys={public}", "Managers=ada", "McpHosts=127.0.0.1"]
    env = {**os.environ, "NOEMA_MINISTACK": aws.url}  # noqa: TID251 - the command's own
    done = subprocess.run(
        ["scripts/deploy", "--local", "--stack", name, "--parameter-overrides", *given, *overrides],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    stack = Stack(aws, name, private)
    stack.client("s3").delete_bucket_policy(Bucket=stack.outputs["BucketName"])
    return stack
