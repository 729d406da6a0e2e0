"""Queue and secrets on the local AWS."""

from __future__ import annotations

import pytest

from core.ports import StoreFault
from infra.aws.queue import SqsQueue
from infra.aws.secrets import Secrets
from tests.doubles import FakeClock
from tests.ministack import LocalAws, fresh_name

pytestmark = pytest.mark.ministack


def test_a_message_goes_out_with_its_group_and_is_deduplicated(ministack: LocalAws) -> None:
    """A repeat of a deduplication id is dropped; any text may be one."""
    url = ministack.make_queue_url()
    queue = SqsQueue(ministack.shared, url)

    queue.send("space_a", '{"space":"space_a"}', dedupe="formation 1 é " + "x" * 200)
    queue.send("space_a", '{"space":"space_a"}', dedupe="formation 1 é " + "x" * 200)
    queue.send("space_b", "b", dedupe="formation 1")

    received = []
    for _ in range(5):
        answer = ministack.shared.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
        )
        for message in answer.get("Messages", []):
            received.append((message["Attributes"]["MessageGroupId"], message["Body"]))
            ministack.shared.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert sorted(received) == [("space_a", '{"space":"space_a"}'), ("space_b", "b")]


def test_a_secret_is_kept_for_its_time_and_read_again_after(ministack: LocalAws) -> None:
    """A changed secret is seen when the kept one is too old, and not before."""
    name = fresh_name("secret")
    manager = ministack.shared.secretsmanager
    manager.create_secret(Name=name, SecretString="one")
    clock = FakeClock()
    secrets = Secrets(ministack.shared, clock, max_age_ms=60_000)

    assert secrets.get(name) == "one"
    manager.put_secret_value(SecretId=name, SecretString="two")
    clock.advance(59_999)
    assert secrets.get(name) == "one"
    clock.advance(1)
    assert secrets.get(name) == "two"


def test_a_withdrawn_secret_stops_working(ministack: LocalAws) -> None:
    """A secret that can no longer be read is not served from memory past its time."""
    name = fresh_name("secret")
    ministack.shared.secretsmanager.create_secret(Name=name, SecretString="one")
    clock = FakeClock()
    secrets = Secrets(ministack.shared, clock, max_age_ms=1000)
    assert secrets.get(name) == "one"
    ministack.shared.secretsmanager.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    clock.advance(1000)

    for _ in range(2):
        with pytest.raises(StoreFault):
            secrets.get(name)


def test_a_parameter_is_read_decrypted(ministack: LocalAws) -> None:
    """`ssm:` names a parameter."""
    name = "/" + fresh_name("parameter")
    ministack.shared.ssm.put_parameter(Name=name, Value="sk-1", Type="SecureString")

    assert Secrets(ministack.shared, FakeClock()).get("ssm:" + name) == "sk-1"
