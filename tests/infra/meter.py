"""What DynamoDB bills, counted at the client: capacity units by operation."""

from __future__ import annotations

from typing import Any

from infra.aws.clients import Clients


class Meter:
    """Asks every DynamoDB call of `clients` for its consumed capacity and adds it up."""

    def __init__(self, clients: Clients) -> None:
        self.calls: list[tuple[str, float]] = []
        for client in (clients.dynamodb, clients.dynamodb_once):
            events = client.meta.events
            events.register("provide-client-params.dynamodb", self._ask)
            events.register("after-call.dynamodb", self._count)

    def _ask(self, params: dict[str, Any], model: Any, **_: object) -> dict[str, Any]:
        if "ReturnConsumedCapacity" in model.input_shape.members:
            return {**params, "ReturnConsumedCapacity": "TOTAL"}
        return params

    def _count(self, parsed: dict[str, Any], model: Any, **_: object) -> None:
        consumed = parsed.get("ConsumedCapacity", [])
        for each in consumed if isinstance(consumed, list) else [consumed]:
            self.calls.append((model.name, float(each["CapacityUnits"])))

    def take(self) -> dict[str, float]:
        """Units by operation since the last look."""
        units: dict[str, float] = {}
        for name, amount in self.calls:
            units[name] = units.get(name, 0) + amount
        self.calls.clear()
        return units
