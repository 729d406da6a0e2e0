"""Botocore's errors as the faults of `core.ports`; they go no further than this folder.

What lives here: the one translation that all AWS adapters share. What must never live here: the meaning of a
refused condition, which each adapter knows. Only an error's code is kept: a message may quote what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's name for it
    HTTPClientError,
    IncompleteReadError,
)

from core.ports import StoreFault, TooLarge, Unavailable

_BUSY: Final = frozenset({
    "InternalError", "InternalServerError", "InternalFailure", "LimitExceededException", "ProvisionedThroughputExceededException",
    "RequestLimitExceeded", "RequestThrottled", "RequestTimeout", "RequestTimeoutException", "ServiceUnavailable",
    "SlowDown", "Throttling", "ThrottlingException", "TransactionInProgressException", "OverLimit", "RequestTimeTooSkewed",
})  # fmt: skip
_TOO_LARGE: Final = frozenset(
    {"EntityTooLarge", "ItemCollectionSizeLimitExceededException", "RequestEntityTooLarge"}
)
_SERVER_ERROR: Final = 500


def code_of(error: ClientError) -> str:
    """The error's code, such as `ThrottlingException`."""
    return error.response.get("Error", {}).get("Code", "unknown")


def fault_of(error: ClientError, operation: str) -> StoreFault:
    """The fault an AWS error is, when the adapter has no closer meaning for it.

    A code that is not understood is a plain `StoreFault`: a table that does not exist, a right that is missing.
    """
    code = code_of(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _BUSY or status >= _SERVER_ERROR:
        return Unavailable(f"{operation}: {code}")
    if code in _TOO_LARGE or (code == "ValidationException" and _names_size(error)):
        return TooLarge(f"{operation}: {code}")
    return StoreFault(f"{operation}: {code}")


def _names_size(error: ClientError) -> bool:
    # DynamoDB has no code of its own for an item or a transaction over its size.
    message = error.response.get("Error", {}).get("Message", "").lower()
    return "size" in message and ("exceed" in message or "maximum" in message)


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Run one AWS call; what botocore raises leaves as a `StoreFault`."""
    try:
        yield
    except ClientError as error:
        raise fault_of(error, operation) from error
    except (HTTPClientError, ConnectionError, IncompleteReadError) as error:
        raise Unavailable(f"{operation}: {type(error).__name__}") from error
    except BotoCoreError as error:  # no credentials, no region, a malformed argument: not the service's fault
        raise StoreFault(f"{operation}: {type(error).__name__}") from error
