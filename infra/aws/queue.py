"""`Queue` in SQS FIFO: hints that a space has work.

What lives here: sending. Receiving is Lambda's event source. What must never live here: what a message means.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from infra.aws.faults import translated

if TYPE_CHECKING:
    from infra.aws.clients import Clients


class SqsQueue:
    """The FIFO queue at `url`; a message group is worked on one message at a time, in order."""

    def __init__(self, clients: Clients, url: str) -> None:
        self._clients = clients
        self._url = url

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        """Hand over one message; a repeat of `dedupe` within five minutes is dropped."""
        with translated("SendMessage"):
            self._clients.sqs.send_message(
                QueueUrl=self._url,
                MessageBody=body,
                MessageGroupId=group,
                # Hashed, because SQS takes 128 characters of a small alphabet only.
                MessageDeduplicationId=sha256(dedupe.encode()).hexdigest(),
            )
