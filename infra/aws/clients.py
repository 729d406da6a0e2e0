"""boto3 clients with our timeouts and retries, built when they are first asked for.

What lives here: how long we wait and what may be sent again. What must never live here: a call. Each client is
built once for a process; S3's costs a cold start 30 ms, so a request that needs no object never builds it.

What botocore may repeat by itself: reads, and transactions, to which it adds a `ClientRequestToken` so that
DynamoDB knows a repeat. A write of a single row has no such token: repeated after an answer that was lost, its own
first effect would look like another's. It goes through `dynamodb_once`, which never repeats; its caller looks.
Endpoint, region and credentials come from the environment, as botocore reads it.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

_CONNECT_S: Final = 1.0  # within a region a connection stands in milliseconds or not at all
_DYNAMODB_READ_S: Final = 3.0  # a slow transaction takes tens of milliseconds
_S3_READ_S: Final = 10.0  # between two packets, not for a whole object
_SQS_READ_S: Final = 5.0
_ATTEMPTS: Final = 3

# A client's time is fixed, so there is one for each.
_MODEL_READ_S: Final = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0)

Service = Literal["dynamodb", "s3", "sqs", "secretsmanager", "ssm", "kms", "bedrock-runtime"]


class Clients:
    """The process's AWS clients.

    Args:
        session: where region and credentials come from; boto3's default session if omitted.
        endpoint: one URL for every service, for a local AWS; botocore's own choice if omitted.
        connections: how many calls at once each client can make without opening connections anew.
    """

    def __init__(
        self, session: boto3.Session | None = None, *, endpoint: str | None = None, connections: int = 10
    ) -> None:
        self._session = session
        self._endpoint = endpoint
        self._connections = connections
        self._bedrock: dict[float, Any] = {}
        self._lock = Lock()  # building a client is not safe among threads; using one is

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        """For reads and transactions."""
        client: DynamoDBClient = self._build("dynamodb", _DYNAMODB_READ_S, _ATTEMPTS)
        return client

    @cached_property
    def dynamodb_once(self) -> DynamoDBClient:
        """For writes of a single row, which are never repeated silently."""
        client: DynamoDBClient = self._build("dynamodb", _DYNAMODB_READ_S, 1)
        return client

    @cached_property
    def s3(self) -> S3Client:
        """For objects. A put may be repeated: `infra.aws.objects` tells its own first effect from another's."""
        client: S3Client = self._build("s3", _S3_READ_S, _ATTEMPTS)
        return client

    @cached_property
    def sqs(self) -> SQSClient:
        """For hints; SQS drops a repeat by its deduplication id."""
        client: SQSClient = self._build("sqs", _SQS_READ_S, _ATTEMPTS)
        return client

    @cached_property
    def secretsmanager(self) -> Any:  # read once in minutes; not worth a stub package
        """For secrets."""
        return self._build("secretsmanager", _SQS_READ_S, _ATTEMPTS)

    @cached_property
    def ssm(self) -> Any:  # read once in minutes; not worth a stub package
        """For parameters."""
        return self._build("ssm", _SQS_READ_S, _ATTEMPTS)

    @cached_property
    def kms(self) -> Any:  # called when a key is set or read; not worth a stub package
        """For data keys."""
        return self._build("kms", _SQS_READ_S, _ATTEMPTS)

    def bedrock(self, left_s: float) -> Any:  # four calls; not worth a stub package
        """For models: the client that waits the longest, but not beyond `left_s`; it repeats nothing."""
        read_s = max((each for each in _MODEL_READ_S if each <= left_s), default=_MODEL_READ_S[0])
        if read_s not in self._bedrock:
            self._bedrock[read_s] = self._build("bedrock-runtime", read_s, 1)
        return self._bedrock[read_s]

    def _build(self, service: Service, read_s: float, attempts: int) -> Any:  # each property names the type
        config = Config(
            connect_timeout=_CONNECT_S,
            read_timeout=read_s,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=self._connections,
            tcp_keepalive=True,
        )
        with self._lock:
            if self._session is None:
                self._session = boto3.Session()
            return self._session.client(service, endpoint_url=self._endpoint, config=config)
