"""ministack, the local AWS, for tests and scripts: find it, start it, make tables, buckets and queues, stop it.

`NOEMA_MINISTACK` is the URL of one that runs (scripts/test gives that) or the path of its executable. Without
it, `.venv-ministack/bin/ministack` in the repository and then the PATH are tried.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import boto3

from infra.aws.clients import Clients
from infra.aws.objects import S3Objects
from infra.aws.table import DynamoTable

REGION = "us-east-1"
START_DEADLINE_S = 40.0
_RUN = secrets.token_hex(4)  # of this process: several may share one ministack
_serial = count(1)


class LocalAws:
    """A running ministack at `url`, and how to make things in it. Every name it gives is new.

    Without a url the calls go to whatever catches botocore's, which is moto's in-process AWS.
    `shared` are the product's own clients, pointed here.
    """

    def __init__(self, url: str | None) -> None:
        self.url = url or ""
        self.shared = Clients(self.session(), endpoint=url, connections=80)

    def session(self) -> boto3.Session:
        """Credentials and a region, as ministack takes any."""
        return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)

    def environment(self) -> dict[str, str]:
        """Variables for a child process that uses botocore's own configuration."""
        return {
            "AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        }  # fmt: skip

    def make_table(self) -> DynamoTable:
        """A new empty table with the product's keys."""
        return DynamoTable(self.shared, self.make_table_name())

    def make_table_name(self) -> str:
        """The name of a new empty table."""
        name = fresh_name("table")
        self.shared.dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
        )
        return name

    def make_objects(self) -> S3Objects:
        """A new empty bucket."""
        return S3Objects(self.shared, self.make_bucket_name())

    def make_bucket_name(self) -> str:
        """The name of a new empty bucket."""
        name = fresh_name("bucket")
        self.shared.s3.create_bucket(Bucket=name)
        return name

    def make_queue_url(self) -> str:
        """The URL of a new FIFO queue."""
        answer = (
            self.session()
            .client("sqs", endpoint_url=self.url)
            .create_queue(QueueName=fresh_name("queue") + ".fifo", Attributes={"FifoQueue": "true"})
        )
        return answer["QueueUrl"]


def fresh_name(kind: str) -> str:
    """A name no other test of any worker uses."""
    return f"noema-{kind}-{_RUN}-{next(_serial)}"


@contextmanager
def start_local_aws() -> Iterator[LocalAws | None]:
    """The local AWS that is named, or a new one that is stopped at the end; None if there is none to start."""
    named = os.environ.get("NOEMA_MINISTACK", "")  # noqa: TID251
    if named.startswith(("http://", "https://")):
        yield LocalAws(named.rstrip("/"))
        return
    executable = named or find_executable()
    if executable is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="noema-ministack-") as work:
        port = free_port()
        environment = {
            **os.environ,  # noqa: TID251
            "PATH": os.pathsep.join([str(Path(executable).parent), os.environ.get("PATH", "")]),  # noqa: TID251
            "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "WARNING", "TMPDIR": work,
            "IOT_MTLS_ENABLED": "0",  # it would listen on every address
        }  # fmt: skip
        with Path(work, "log").open("w+b") as log:
            process = subprocess.Popen([executable], env=environment, stdout=log, stderr=log)
            try:
                wait_until_healthy(f"http://127.0.0.1:{port}", process, Path(work, "log"))
                yield LocalAws(f"http://127.0.0.1:{port}")
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def find_executable() -> str | None:
    """The executable in the repository's own environment or on the PATH."""
    own = Path(__file__).parent.parent / ".venv-ministack" / "bin" / "ministack"
    return str(own) if own.exists() else shutil.which("ministack")


def wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the service answers; raise with its log if it ends or the deadline passes."""
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url + "/_ministack/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)  # noqa: TID251
    raise RuntimeError(f"ministack did not start:\n{log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
