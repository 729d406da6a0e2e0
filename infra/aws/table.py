"""`Table` in DynamoDB: the commit point of the product.

What lives here: requests and answers of DynamoDB, and what its refusals mean. What must never live here: what
the rows mean. The table has a partition key `pk` and a sort key `sk`, both strings.

One write alone is a conditional Put, Update or Delete, at half the price of a transaction; several are one
`TransactWriteItems`. Either way a refusal brings the row as it stands, which saves the caller a read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from core.ports import (
    Check,
    Delete,
    Put,
    Refused,
    Row,
    StoreFault,
    TooLarge,
    Unavailable,
    Update,
    Value,
    When,
    Write,
)
from core.storage.rows import check_key, check_writes
from infra.aws.faults import code_of, translated

if TYPE_CHECKING:
    from infra.aws.clients import Clients

Request = dict[str, Any]  # the members of a DynamoDB request, as boto3 takes them
Typed = Mapping[str, Any]  # a DynamoDB attribute value, such as {"N": "1"}

_LEAST_SORT_KEY: Final = "\x00"  # DynamoDB refuses an empty key even as a bound
_COLLIDED: Final = frozenset({"TransactionConflict", "TransactionConflictException"})
_THROTTLED: Final = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})


class DynamoTable:
    """Rows in the DynamoDB table `name`."""

    def __init__(self, clients: Clients, name: str) -> None:
        self._clients = clients
        self._name = name

    def get(self, pk: str, sk: str) -> Row | None:
        """The row as it stands, or None."""
        check_key(pk, sk)
        with translated("GetItem"):
            answer = self._clients.dynamodb.get_item(
                TableName=self._name, Key=_key(pk, sk), ConsistentRead=True
            )
        return _row(answer["Item"]) if "Item" in answer else None

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """Rows with `first <= sk <= last` in key order, at most `limit`; as many pages as that takes."""
        first = first or _LEAST_SORT_KEY
        if limit <= 0 or first > last:
            return []
        request: Request = {
            "TableName": self._name,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {":pk": {"S": pk}, ":first": {"S": first}, ":last": {"S": last}},
            "ScanIndexForward": not reverse,
        }
        found: list[tuple[str, Row]] = []
        while True:
            with translated("Query"):
                answer = self._clients.dynamodb.query(**request, Limit=limit - len(found))
            found += [(item["sk"]["S"], _row(item)) for item in answer["Items"]]
            if len(found) >= limit or not answer.get("LastEvaluatedKey"):
                return found
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def transact(self, writes: Sequence[Write]) -> None:
        """Apply all the writes or none."""
        check_writes(writes)
        if len(writes) == 1 and not isinstance(writes[0], Check):
            self._write_one(writes[0])
        elif writes:
            self._write_all(writes)

    def _write_one(self, write: Put | Update | Delete) -> None:
        client = self._clients.dynamodb_once
        send: Callable[..., object]
        match write:
            case Put():
                send = client.put_item
            case Update():
                send = client.update_item
            case Delete():
                send = client.delete_item
        with translated(type(write).__name__):
            try:
                send(**_request(self._name, write))
            except ClientError as error:
                if code_of(error) == "ConditionalCheckFailedException":
                    raise Refused({0: _refused_row(error.response)}) from error
                if code_of(error) in _COLLIDED:
                    raise Refused({}) from error
                raise

    def _write_all(self, writes: Sequence[Write]) -> None:
        items: list[Any] = [  # a TypedDict of four optional members; `_request` builds exactly one
            {_MEMBER[type(write)]: _request(self._name, write)} for write in writes
        ]
        with translated("TransactWriteItems"):
            try:
                self._clients.dynamodb.transact_write_items(TransactItems=items)
            except ClientError as error:
                if code_of(error) == "TransactionCanceledException":
                    raise _cancellation(error.response) from error
                raise


_MEMBER: Final[dict[type[Write], str]] = {
    Put: "Put",
    Update: "Update",
    Delete: "Delete",
    Check: "ConditionCheck",
}


def _cancellation(response: Mapping[str, Any]) -> StoreFault:
    """What a cancelled transaction means. In every case nothing was written."""
    reasons = response.get("CancellationReasons", [])
    codes = {reason.get("Code", "None") for reason in reasons}
    failed = {
        index: _refused_row(reason)
        for index, reason in enumerate(reasons)
        if reason.get("Code") == "ConditionalCheckFailed"
    }
    if failed:
        return Refused(failed)
    if codes & _COLLIDED:
        return Refused({})
    if codes & _THROTTLED:
        return Unavailable("TransactWriteItems: throttled")
    if any("size" in reason.get("Message", "").lower() for reason in reasons):
        return TooLarge("TransactWriteItems: a row would grow over its bound")
    return StoreFault(f"TransactWriteItems: {sorted(codes - {'None'})}")


def _refused_row(answer: Mapping[str, Any]) -> Row | None:
    return _row(answer["Item"]) if answer.get("Item") else None


# --- requests


def _request(table: str, write: Write) -> Request:
    """One write as the members that DynamoDB takes alone and in a transaction alike."""
    names = _Names()
    request: Request = {"TableName": table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    match write:
        case Put():
            request["Item"] = {**_key(write.pk, write.sk), **_item(write.row)}
        case Update():
            request["Key"] = _key(write.pk, write.sk)
            request["UpdateExpression"] = _update(write, names)
        case Delete() | Check():
            request["Key"] = _key(write.pk, write.sk)
    if condition := _condition(write.when, names):
        request["ConditionExpression"] = condition
    if names.names:
        request["ExpressionAttributeNames"] = names.names
    if names.values:
        request["ExpressionAttributeValues"] = names.values
    return request


class _Names:
    """Placeholders of one request, so that no attribute name can be taken for a reserved word."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Typed] = {}

    def name(self, attribute: str) -> str:
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = attribute
        return placeholder

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = _typed(value)
        return placeholder


def _update(write: Update, names: _Names) -> str:
    sets = [
        f"{names.name(name)} = {names.value(value)}"
        for name, value in write.assign.items()
        if value is not None
    ]
    removes = [names.name(name) for name, value in write.assign.items() if value is None]
    adds = [f"{names.name(name)} {names.value(amount)}" for name, amount in write.add.items()]
    clauses = (("SET", sets), ("REMOVE", removes), ("ADD", adds))
    return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses if parts)


def _condition(when: When | None, names: _Names) -> str:
    if when is None:
        return ""
    parts = []
    if when.absent:
        parts.append("attribute_not_exists(pk)")
    if when.present:
        parts.append("attribute_exists(pk)")
    for attribute, value in when.equals.items():
        name = names.name(attribute)
        parts.append(f"attribute_not_exists({name})" if value is None else f"{name} = {names.value(value)}")
    for attribute, bound in when.below.items():
        name = names.name(attribute)
        parts.append(f"(attribute_not_exists({name}) OR {name} < {names.value(bound)})")
    return " AND ".join(parts)


# --- values


def _key(pk: str, sk: str) -> dict[str, Typed]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _item(row: Row) -> dict[str, Typed]:
    return {name: _typed(value) for name, value in row.items() if value is not None}


def _typed(value: Value) -> Typed:
    match value:
        case bool():  # before int, which a bool also is
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case bytes():
            return {"B": value}
        case None:
            raise ValueError("None is never stored")


def _row(item: Mapping[str, Typed]) -> Row:
    return {name: _plain(typed) for name, typed in item.items() if name not in ("pk", "sk")}


def _plain(typed: Typed) -> Value:
    ((kind, value),) = typed.items()
    if kind == "N":
        return int(value)
    if kind == "B":
        return bytes(value)
    plain: Value = value
    return plain
