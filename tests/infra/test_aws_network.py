"""What the AWS adapters do when answers are lost: real requests through a network that loses them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.ports import KeyExists, Put, Refused, Unavailable, Update, When
from infra.aws.objects import S3Objects
from infra.aws.table import DynamoTable
from tests.infra.proxy import Answer, BadNetwork
from tests.ministack import LocalAws

pytestmark = pytest.mark.ministack


@pytest.fixture
def network(ministack: LocalAws) -> Iterator[BadNetwork]:
    """A bad network in front of the local AWS."""
    network = BadNetwork(ministack.url)
    yield network
    network.close()


@pytest.fixture
def table(ministack: LocalAws, network: BadNetwork) -> DynamoTable:
    """A table behind the bad network, with one row."""
    table = DynamoTable(network.clients(), ministack.make_table_name())
    table.transact([Put("p", "HEAD", {"ver": 1, "n": 0})])
    network.seen.clear()
    return table


@pytest.fixture
def objects(ministack: LocalAws, network: BadNetwork) -> S3Objects:
    """A bucket behind the bad network."""
    return S3Objects(network.clients(), ministack.make_bucket_name())


COMMIT = [
    Update("p", "HEAD", {"ver": 2}, {"n": 1}, When(equals={"ver": 1})),
    Put("p", "D#2", {"body": b"x"}, When(absent=True)),
]


@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_a_transaction_is_repeated_and_lands_once(network: BadNetwork, table: DynamoTable, loss: str) -> None:
    """A transaction whose answer is lost is sent again under its token, succeeds, and took effect once."""
    network.plan = [loss, loss]  # type: ignore[list-item]

    table.transact(COMMIT)

    assert network.seen == ["TransactWriteItems"] * 3
    assert table.get("p", "HEAD") == {"ver": 2, "n": 1}


@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_a_transaction_without_any_answer_has_an_unknown_outcome(
    network: BadNetwork, table: DynamoTable, loss: str
) -> None:
    """After three lost answers the fault is Unavailable, and looking tells what happened."""
    network.plan = [loss] * 3  # type: ignore[list-item]

    with pytest.raises(Unavailable):
        table.transact(COMMIT)

    landed = loss == "lose answer"
    assert table.get("p", "HEAD") == ({"ver": 2, "n": 1} if landed else {"ver": 1, "n": 0})
    assert (table.get("p", "D#2") is not None) == landed


@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_a_single_write_is_never_repeated(network: BadNetwork, table: DynamoTable, loss: str) -> None:
    """A write of one row has no token, so a lost answer is an unknown outcome and not a second effect."""
    network.plan = [loss]  # type: ignore[list-item]
    with pytest.raises(Unavailable):
        table.transact([Update("p", "HEAD", add={"n": 1})])
    network.plan = [loss]  # type: ignore[list-item]
    with pytest.raises(Unavailable):
        table.transact([Put("p", "I#key", {"by": "me"}, When(absent=True))])

    assert network.seen == ["UpdateItem", "PutItem"]
    landed = loss == "lose answer"
    assert table.get("p", "HEAD") == {"ver": 1, "n": int(landed)}
    assert table.get("p", "I#key") == ({"by": "me"} if landed else None)


def test_reads_are_repeated(network: BadNetwork, table: DynamoTable) -> None:
    """A lost read is asked again."""
    network.plan = ["lose answer", "lose request"]
    assert table.get("p", "HEAD") == {"ver": 1, "n": 0}
    network.plan = ["lose request", "lose answer"]
    assert table.query("p", "A", "Z", limit=5) == [("HEAD", {"ver": 1, "n": 0})]
    network.plan = ["lose request"] * 3

    with pytest.raises(Unavailable):
        table.get("p", "HEAD")


def test_a_repeated_put_of_an_object_knows_its_own_effect(network: BadNetwork, objects: S3Objects) -> None:
    """A put whose first answer is lost meets its own object when repeated, and succeeds."""
    network.plan = ["lose answer"]
    objects.put("k", b"mine")
    network.plan = ["lose request"]
    objects.put("k2", b"mine too")

    assert (objects.get("k"), objects.get("k2")) == (b"mine", b"mine too")


def test_a_repeated_put_does_not_take_anothers_object_for_its_own(
    network: BadNetwork, objects: S3Objects
) -> None:
    """A put that is repeated and meets other bytes says that the key exists."""
    objects.put("k", b"theirs")
    network.plan = ["lose request"]

    with pytest.raises(KeyExists):
        objects.put("k", b"mine")
    assert objects.get("k") == b"theirs"


def test_a_put_in_conflict_is_tried_again_within_bounds(network: BadNetwork, objects: S3Objects) -> None:
    """S3's 409 means undecided: the put is tried again, four times at most."""
    conflict = Answer.s3(409, "ConditionalRequestConflict")
    network.plan = [conflict] * 3
    objects.put("k", b"x")
    network.plan = [conflict] * 4

    with pytest.raises(Unavailable):
        objects.put("k2", b"x")
    assert objects.get("k") == b"x"
    assert objects.get("k2") is None


def test_a_refusal_on_a_repeated_transaction_is_final(network: BadNetwork, table: DynamoTable) -> None:
    """A transaction that another overtook is refused, also when its first request was lost."""
    table.transact([Update("p", "HEAD", {"ver": 9})])
    network.plan = ["lose request"]

    with pytest.raises(Refused) as refused:
        table.transact(COMMIT)
    assert refused.value.failed == {0: {"ver": 9, "n": 0}}
