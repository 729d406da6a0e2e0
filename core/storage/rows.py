"""What a `Table` means: bounds, conditions and changes of rows, as pure functions.

What lives here: the one definition of `When` and of what each `Write` does to a row, used by every store that
does not delegate it to DynamoDB (in memory, SQLite), and the checks that every store makes before it asks.
What must never live here: where rows are kept. The rules are DynamoDB's, because that is the store that
cannot be changed; where DynamoDB leaves a case vague, the case is refused for all stores alike.

A malformed write is a bug of ours and raises `ValueError`; a write over a bound may come from a caller's data
and raises `TooLarge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.ports import (
    MAX_ROW_BYTES,
    MAX_TRANSACTION_BYTES,
    MAX_WRITES,
    Check,
    Delete,
    Put,
    Refused,
    Row,
    TooLarge,
    Update,
    Value,
    When,
    Write,
)

MAX_INTEGER = 2**63 - 1  # DynamoDB keeps 38 digits; 64 bits are what every encoding of a row keeps
MAX_PARTITION_KEY_BYTES = 2048  # DynamoDB's bounds of the two key attributes
MAX_SORT_KEY_BYTES = 1024
KEY_ATTRIBUTES = ("pk", "sk")


def check_key(pk: str, sk: str) -> None:
    """Raise `ValueError` unless the two may name a row: not empty, not too long, no lone surrogate."""
    if not 0 < len(pk.encode()) <= MAX_PARTITION_KEY_BYTES or not 0 < len(sk.encode()) <= MAX_SORT_KEY_BYTES:
        raise ValueError("a row's keys are 1 to 2048 and 1 to 1024 bytes")


def row_bytes(pk: str, sk: str, row: Row) -> int:
    """The size of a row as DynamoDB bills it: names and values in UTF-8, numbers by their digits."""
    size = len("pksk") + len(pk.encode()) + len(sk.encode())
    for name, value in row.items():
        if value is not None:
            size += len(name.encode()) + _value_bytes(value)
    return size


def _value_bytes(value: Value) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueError("an integer of a row has at most 64 bits")
        return len(str(abs(value))) // 2 + 2
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, bytes):
        return len(value)
    raise ValueError(f"a row cannot hold a {type(value).__name__}")


def check_writes(writes: Sequence[Write]) -> None:
    """Check a transaction's form and size before a store is asked.

    Raises:
        TooLarge: too many writes, a row or the whole transaction over its bound.
        ValueError: a key is malformed, a row is written twice, or a write has no defined meaning.
    """
    if len(writes) > MAX_WRITES:
        raise TooLarge(f"{len(writes)} writes in one transaction; at most {MAX_WRITES}")
    if len({(write.pk, write.sk) for write in writes}) < len(writes):
        raise ValueError("a transaction writes each row at most once")
    total = 0
    for write in writes:
        check_key(write.pk, write.sk)
        size = row_bytes(write.pk, write.sk, _attributes(write))
        if size > MAX_ROW_BYTES:
            raise TooLarge(f"a row of {size} bytes; at most {MAX_ROW_BYTES}")
        total += size
    if total > MAX_TRANSACTION_BYTES:
        raise TooLarge(f"a transaction of {total} bytes; at most {MAX_TRANSACTION_BYTES}")


def _attributes(write: Write) -> Row:
    """The attributes a write brings, after checking that it may bring them."""
    match write:
        case Put():
            attributes = write.row
        case Update():
            _check_update(write)
            attributes = {**write.assign, **write.add}
        case Delete() | Check():
            return {}
    if any(name in KEY_ATTRIBUTES or not name for name in attributes):
        raise ValueError("a row's attributes cannot be named pk, sk or nothing")
    return attributes


def _check_update(write: Update) -> None:
    if write.assign.keys() & write.add.keys():
        raise ValueError("an update cannot assign and add to the same attribute")
    changes = write.add or any(value is not None for value in write.assign.values())
    when = write.when or When()
    certain = when.present or any(value is not None for value in when.equals.values())
    if not changes and not (write.assign and certain):
        # Whether removing attributes brings an absent row to life is nothing to rely on.
        raise ValueError("an update that only removes must be conditional on the row's presence")


def holds(when: When | None, row: Row | None) -> bool:
    """Whether a condition holds of a row as it stands (None: absent)."""
    if when is None:
        return True
    if (when.absent and row is not None) or (when.present and row is None):
        return False
    values = row or {}
    return all(_same(values.get(name), value) for name, value in when.equals.items()) and all(
        _less(values.get(name), bound) for name, bound in when.below.items()
    )


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other  # DynamoDB tells true from 1; Python's == does not


def _less(value: Value, bound: int) -> bool:
    return value is None or (type(value) is int and value < bound)


def changed(write: Write, row: Row | None) -> Row | None:
    """The row after a write whose condition holds; None if it is absent then.

    Raises:
        TooLarge: the row grew over its bound.
        ValueError: `add` met something that is not a number.
    """
    match write:
        case Put():
            return {name: value for name, value in write.row.items() if value is not None}
        case Update():
            after = {**(row or {}), **write.assign}
            for name, amount in write.add.items():
                number = after.get(name, 0)
                if type(number) is not int:
                    raise ValueError(f"cannot add to attribute {name}, which is not a number")
                after[name] = number + amount
            after = {name: value for name, value in after.items() if value is not None}
            if row_bytes(write.pk, write.sk, after) > MAX_ROW_BYTES:
                raise TooLarge(f"the row would grow over {MAX_ROW_BYTES} bytes")
            return after
        case Delete():
            return None
        case Check():
            return row


def apply_writes(writes: Sequence[Write], rows: Sequence[Row | None]) -> list[Row | None]:
    """What the rows of a transaction are after it, given what they are before.

    Raises:
        Refused: some condition does not hold; `failed` names every such write and its row.
    """
    failed = {
        index: row
        for index, (write, row) in enumerate(zip(writes, rows, strict=True))
        if not holds(write.when, row)
    }
    if failed:
        raise Refused(failed)
    return [changed(write, row) for write, row in zip(writes, rows, strict=True)]
