"""Secrets from Secrets Manager and parameters from SSM, kept in memory for a few minutes.

What lives here: reading a secret by its name. What must never live here: writing one, logging one, or a default.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from core.model.instants import Instant
from core.ports import Clock
from infra.aws.faults import translated

if TYPE_CHECKING:
    from infra.aws.clients import Clients

_PARAMETER: Final = "ssm:"


class Secrets:
    """Reads secrets and remembers each for at most `max_age_ms`, so that a withdrawn one stops working soon."""

    def __init__(self, clients: Clients, clock: Clock, *, max_age_ms: int = 300_000) -> None:
        self._clients = clients
        self._clock = clock
        self._max_age = max_age_ms
        self._kept: dict[str, tuple[Instant, str]] = {}
        self._lock = Lock()

    def get(self, name: str) -> str:
        """The secret's text.

        Args:
            name: `ssm:/path/of/parameter`, or the name or ARN of a Secrets Manager secret.

        Raises:
            Unavailable: the service did not answer.
            StoreFault: there is no such secret, or no right to read it.
        """
        with self._lock:
            now = self._clock.now()
            at, text = self._kept.get(name, (0, ""))
            if name in self._kept and now - at < self._max_age:
                return text
            self._kept.pop(name, None)
            text = self._read(name)
            self._kept[name] = (now, text)
            return text

    def _read(self, name: str) -> str:
        if name.startswith(_PARAMETER):
            with translated("GetParameter"):
                answer = self._clients.ssm.get_parameter(
                    Name=name.removeprefix(_PARAMETER), WithDecryption=True
                )
            return str(answer["Parameter"]["Value"])
        with translated("GetSecretValue"):
            answer = self._clients.secretsmanager.get_secret_value(SecretId=name)
        return str(answer["SecretString"])
