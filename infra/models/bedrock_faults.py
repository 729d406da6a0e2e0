"""What Bedrock's and botocore's exceptions mean, as a `ModelFault`; for models and embedders alike.

What lives here: that table. What must never live here: a request, and any text of an exception in a message: it may
quote the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's name for it
    EventStreamError,
    HTTPClientError,
    ReadTimeoutError,
)

from core.model.instants import Instant
from core.models.chat import FaultKind, ModelFault, Usage
from core.ports import Clock
from infra.models.refusals import OVERFLOW, retry_after

_FAULTS: Final[dict[str, tuple[FaultKind, str]]] = {
    "ThrottlingException": ("rate_limited", "Bedrock limits how much may be asked"),
    "ServiceQuotaExceededException": ("rate_limited", "the account's quota of Bedrock is used up"),
    "ModelTimeoutException": ("unavailable", "the model took too long for Bedrock"),
    "ModelNotReadyException": ("unavailable", "the model is not ready"),
    "ModelErrorException": ("unavailable", "the model failed"),
    "ModelStreamErrorException": ("unavailable", "the model failed in the middle of the reply"),
    "InternalServerException": ("unavailable", "Bedrock failed"),
    "ServiceUnavailableException": ("unavailable", "Bedrock is not available"),
    "AccessDeniedException": ("unauthorized", "the role may not use this model"),
    "UnrecognizedClientException": ("unauthorized", "AWS does not accept the credentials"),
    "ExpiredTokenException": ("unauthorized", "the AWS credentials have expired"),
    "ResourceNotFoundException": ("bad_request", "Bedrock knows no such model in this region"),
    "ValidationException": ("bad_request", "Bedrock refuses the request"),
}
_ONE: Final = Usage(requests=1)


@contextmanager
def bedrock_faults(clock: Clock) -> Iterator[None]:
    """Around a request: what botocore raises leaves as a `ModelFault`."""
    try:
        yield
    except (ClientError, EventStreamError) as error:
        raise _fault(error, clock.now()) from error
    except ReadTimeoutError as error:
        raise ModelFault("timeout", "the model did not answer in time", usage=_ONE) from error
    except (HTTPClientError, ConnectionError) as error:
        raise ModelFault("unavailable", f"Bedrock cannot be reached ({type(error).__name__})") from error
    except BotoCoreError as error:  # no credentials, no region, a malformed argument
        kind: FaultKind = "unauthorized" if "Credentials" in type(error).__name__ else "bad_request"
        raise ModelFault(kind, f"Bedrock was not asked ({type(error).__name__})") from error


def _fault(error: ClientError | EventStreamError, now: Instant) -> ModelFault:
    found = error.response.get("Error", {})
    code = str(found.get("Code", "unknown"))
    code = code[:1].upper() + code[1:]  # in a stream the codes begin small
    kind, said = _FAULTS.get(code, ("unavailable", "Bedrock failed"))
    meta = error.response.get("ResponseMetadata", {})
    status = meta.get("HTTPStatusCode", 0)
    if code not in _FAULTS and 400 <= status < 500:
        kind, said = "bad_request", "Bedrock refuses the request"
    if code == "ValidationException" and OVERFLOW.search(str(found.get("Message", ""))):
        kind, said = "context_overflow", "the request does not fit into the model's context"
    wait = retry_after(meta.get("HTTPHeaders", {}), now)
    return ModelFault(kind, f"{said} ({code})", retry_after_ms=wait, usage=_ONE)
