"""What AWS's errors become: every code that matters, as the fault that a caller can react to."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest

from core.ports import Delete, Put, Refused, StoreFault, TooLarge, Unavailable, Update, When
from infra.aws.clients import Clients
from infra.aws.objects import S3Objects
from infra.aws.queue import SqsQueue
from infra.aws.table import DynamoTable
from tests.infra.proxy import Answer, BadNetwork
from tests.ministack import free_port

ONE = [Update("p", "a", add={"n": 1}, when=When(present=True))]
TWO = [Put("p", "a", {"text": "secret text"}), Delete("p", "b", When(present=True))]
ROW = {
    "pk": {"S": "p"},
    "sk": {"S": "b"},
    "n": {"N": "12345678901234567"},
    "b": {"B": "AAE="},
    "t": {"BOOL": True},
}
PLAIN = {"n": 12345678901234567, "b": b"\x00\x01", "t": True}


@pytest.fixture
def network() -> Iterator[BadNetwork]:
    """A network with nothing behind it."""
    network = BadNetwork()
    yield network
    network.close()


def cancelled(*codes: str, **more: object) -> Answer:
    """A cancelled transaction with a reason for each write."""
    reasons = [{"Code": code, "Message": "secret text", **(more if code != "None" else {})} for code in codes]
    return Answer.dynamodb(400, "TransactionCanceledException", CancellationReasons=reasons)


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (cancelled("None", "ConditionalCheckFailed", Item=ROW), {1: PLAIN}),
        (cancelled("None", "ConditionalCheckFailed"), {1: None}),
        (cancelled("ConditionalCheckFailed", "ConditionalCheckFailed"), {0: None, 1: None}),
        (cancelled("TransactionConflict", "ConditionalCheckFailed"), {1: None}),
        (cancelled("TransactionConflict", "None"), {}),
    ],
)
def test_a_cancelled_transaction_is_refused(network: BadNetwork, answer: Answer, failed: object) -> None:
    """Failed conditions are named with their rows; a collision alone names none."""
    network.plan = [answer]

    with pytest.raises(Refused) as refused:
        DynamoTable(network.clients(), "t").transact(TWO)
    assert refused.value.failed == failed
    assert network.seen == ["TransactWriteItems"]


def test_a_refused_single_write_brings_its_row(network: BadNetwork) -> None:
    """A condition that fails on a single write gives the row as it stands, or None."""
    failed = Answer.dynamodb(400, "ConditionalCheckFailedException", Item=ROW)
    network.plan = [
        failed,
        Answer.dynamodb(400, "ConditionalCheckFailedException"),
        Answer.dynamodb(400, "TransactionConflictException"),
    ]
    table = DynamoTable(network.clients(), "t")

    for expected in ({0: PLAIN}, {0: None}, {}):
        with pytest.raises(Refused) as refused:
            table.transact(ONE)
        assert refused.value.failed == expected


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (cancelled("ThrottlingError", "None"), Unavailable),
        (cancelled("ProvisionedThroughputExceeded", "None"), Unavailable),
        (Answer.dynamodb(400, "TransactionInProgressException"), Unavailable),
        (Answer.dynamodb(400, "ThrottlingException"), Unavailable),
        (Answer.dynamodb(400, "ProvisionedThroughputExceededException"), Unavailable),
        (Answer.dynamodb(400, "RequestLimitExceeded"), Unavailable),
        (Answer.dynamodb(500, "InternalServerError"), Unavailable),
        (Answer(503, b""), Unavailable),
        (Answer(502, b"<html>not JSON</html>"), Unavailable),
        (Answer.dynamodb(400, "ValidationException", message="Item size has exceeded the maximum allowed size"), TooLarge),
        (Answer.dynamodb(400, "ValidationException", message="Item size to update has exceeded the maximum allowed size"), TooLarge),
        (Answer.dynamodb(400, "ResourceNotFoundException"), StoreFault),
        (Answer.dynamodb(400, "AccessDeniedException"), StoreFault),
        (Answer.dynamodb(400, "ValidationException"), StoreFault),
        (Answer.dynamodb(400, "UnrecognizedClientException"), StoreFault),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value.status),
)  # fmt: skip
@pytest.mark.parametrize("writes", [ONE, TWO], ids=["one", "two"])
def test_an_error_of_dynamodb_becomes_a_fault(
    network: BadNetwork, answer: Answer, fault: type[StoreFault], writes: list[object]
) -> None:
    """Busy is told from too large and from broken, for one write and several; nothing quotes a message."""
    network.plan = [answer] * 3

    with pytest.raises(StoreFault) as caught:
        DynamoTable(network.clients(), "t").transact(writes)  # type: ignore[arg-type]
    if b"CancellationReasons" in answer.body and len(writes) == 1:
        return  # a single write is never cancelled
    assert type(caught.value) is fault
    assert "secret text" not in str(caught.value)


def test_a_row_that_grows_too_large_in_a_transaction_is_too_large(network: BadNetwork) -> None:
    """DynamoDB hides this one among the cancellation reasons."""
    reason = {
        "Code": "ValidationError",
        "Message": "Item size to update has exceeded the maximum allowed size",
    }
    network.plan = [
        Answer.dynamodb(400, "TransactionCanceledException", CancellationReasons=[reason, {"Code": "None"}])
    ]

    with pytest.raises(TooLarge):
        DynamoTable(network.clients(), "t").transact(TWO)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Answer.s3(403, "AccessDenied"), StoreFault),
        (Answer.s3(404, "NoSuchBucket"), StoreFault),
        (Answer.s3(400, "EntityTooLarge"), TooLarge),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value.status),
)
def test_an_error_of_s3_becomes_a_fault(network: BadNetwork, answer: Answer, fault: type[StoreFault]) -> None:
    """What S3 will never do is told from what it cannot do now, for every method; a missing bucket is not a missing object."""
    objects = S3Objects(network.clients(), "b")
    calls = [
        lambda: objects.put("k", b"secret text"),
        lambda: objects.get("k"),
        lambda: list(objects.list("k")),
        lambda: objects.delete(["k"]),
    ]

    for call in calls:
        network.plan = [answer] * 3
        with pytest.raises(StoreFault) as caught:
            call()
        assert type(caught.value) is fault
        assert "secret text" not in str(caught.value)


@pytest.mark.parametrize("answer", [Answer.s3(503, "SlowDown"), Answer(500)], ids=["slow down", "500"])
def test_a_busy_s3_is_unavailable(network: BadNetwork, answer: Answer) -> None:
    """S3 that answers busy three times is Unavailable; one method, as botocore waits for seconds between repeats."""
    network.plan = [answer] * 3

    with pytest.raises(Unavailable):
        S3Objects(network.clients(), "b").get("k")
    assert network.seen == ["GET"] * 3


def test_a_delete_that_is_only_partly_done_is_no_success(network: BadNetwork) -> None:
    """S3 answers 200 to a batch of which some keys could not be deleted."""
    network.plan = [
        Answer(200, b"<DeleteResult><Error><Key>k</Key><Code>InternalError</Code></Error></DeleteResult>")
    ]

    with pytest.raises(Unavailable):
        S3Objects(network.clients(), "b").delete(["k", "l"])


def test_a_service_that_is_not_there_is_unavailable() -> None:
    """Nobody listens: every port says Unavailable."""
    session = boto3.Session(aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1")
    clients = Clients(session, endpoint=f"http://127.0.0.1:{free_port()}")

    with pytest.raises(Unavailable):
        DynamoTable(clients, "t").get("p", "a")
    with pytest.raises(Unavailable):
        S3Objects(clients, "b").get("k")
    with pytest.raises(Unavailable):
        SqsQueue(clients, "http://127.0.0.1/q").send("g", "b", dedupe="d")


def test_a_malformed_request_is_not_taken_for_a_busy_service(network: BadNetwork) -> None:
    """What botocore itself refuses to send is a plain fault."""
    with pytest.raises(StoreFault) as caught:
        S3Objects(network.clients(), "b").get("")
    assert type(caught.value) is StoreFault
