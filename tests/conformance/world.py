"""A space in memory with its whole log: what a test speaks KIP to, without a store.

It answers the engine's needs the way a service does: older states from the log, retained outcomes from a dict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jsonschema import Draft202012Validator

from core.authority import Principal
from core.engine import Context, Outcome, execute
from core.errors import NoemaError
from core.model.elements import Origin
from core.model.ids import part_of
from core.model.instants import Instant
from core.model.log import Delta, SpaceMeta, Tier
from core.protocol.request import read_request
from core.protocol.response import Response, encode_response, failure
from core.query import Coordinate
from core.schema.environment import initial_environment, install_package, set_active_packages
from core.state.space import SpaceState, genesis
from core.transaction.draft import Draft
from core.transaction.needs import Artifact, Deltas, Given, Need, RetainedOutcome, RetainedParts
from tests.conformance.packages import wire_schema

EPOCH: Instant = 1_780_000_000_000
OWNER = Principal("owner")


class World:
    """One space. `states[i]` is the space after log version `i + 1`; every commit takes a second."""

    def __init__(
        self, space_id: str = "test", *, packages: Iterable[dict[str, Any]] = (), only: bool = False
    ) -> None:
        meta = SpaceMeta(
            space_id=space_id,
            instance="i1",
            salt="abcde",
            owner="owner",
            created_at=EPOCH,
            tier=Tier(5, EPOCH),
            schema=initial_environment(),
        )
        first = Delta(
            ver=1, seq=0, snapshot_seq=0, tx_id="tx-genesis", at=EPOCH, origin=Origin("owner", "test"),
            transaction_class="management", meta=meta,
        )  # fmt: skip
        self.deltas = [first]
        self.states = [genesis(first)]
        self.retained: dict[tuple[str, str], Any] = {}
        self.artifacts: dict[str, bytes] = {}
        self.now = EPOCH
        artifacts = list(packages)
        if artifacts:
            self.activate(artifacts, only=only)

    @property
    def state(self) -> SpaceState:
        """The newest state."""
        return self.states[-1]

    def activate(
        self,
        artifacts: Iterable[dict[str, Any]],
        *,
        only: bool = False,
        aliases: dict[str, str] | None = None,
    ) -> None:
        """Install and activate packages, as a host does; `only` puts all others out of force."""
        meta = self.state.meta
        refs = [] if only else list(meta.schema.packages)
        for artifact in artifacts:
            meta = install_package(meta, artifact)
            manifest = artifact["manifest"]
            refs.append(f"{manifest['package_id']}@{manifest['version']}")
        self.manage(set_active_packages(meta, refs, aliases))

    def manage(self, meta: SpaceMeta) -> None:
        """Commit protected state, as a host does."""
        self.now += 1000
        draft = Draft(self.state, now=self.now, origin=Origin("host", "test"), transaction_class="management")
        draft.meta = meta
        delta = draft.finish()
        assert delta is not None
        self._append(delta)

    def _append(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self.states.append(self.state.apply(delta))

    # --- speaking

    def send(
        self, request: dict[str, Any], *, principal: Principal = OWNER, readonly: bool = False
    ) -> dict[str, Any]:
        """The response to a request given as JSON; its commits are appended to the log."""
        try:
            checked = read_request(request)
        except NoemaError as error:
            return json_of(failure(error))
        self.now += 1000
        outcome = self.outcome(checked, principal=principal, readonly=readonly)
        for delta in outcome.deltas:
            self._append(delta)
        for item in outcome.retained:
            self.retained[item.retry.scope, item.retry.key] = {
                "digest": item.retry.digest,
                "outcome": item.outcome,
            }
        assert outcome.response is not None
        return json_of(outcome.response)

    def outcome(self, checked: Any, *, principal: Principal = OWNER, readonly: bool = False) -> Outcome:
        """What a request comes to, with every need answered and nothing appended."""
        given = Given()
        while True:
            context = Context(
                principal=principal, now=self.now, readonly=readonly, secret=b"test-secret", given=given
            )
            outcome = execute(self.state, checked, context)
            if outcome.need is None:
                return outcome
            given = given.plus(outcome.need, self._answer(outcome.need))

    def tentative(self, request: dict[str, Any], *, principal: Principal = OWNER) -> Outcome:
        """What a request would come to now: a transaction that has run and not committed."""
        return self.outcome(read_request(request), principal=principal)

    def run(self, command: str, parameters: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """The response to one command."""
        operation: dict[str, Any] = {"command": command}
        if parameters:
            operation["parameters"] = parameters
        return self.send({"kip": "2.0", "operations": [operation]}, **options)

    def ok(self, command: str, parameters: dict[str, Any] | None = None, **options: Any) -> Any:
        """The result of a command that must succeed."""
        response = self.run(command, parameters, **options)
        assert response["status"] == "succeeded", response
        return response["results"][0].get("result")

    def error(self, command: str, parameters: dict[str, Any] | None = None, **options: Any) -> str:
        """The code with which a command must fail."""
        before = len(self.deltas)
        response = self.run(command, parameters, **options)
        assert response["status"] == "failed", response
        assert len(self.deltas) == before, "a failed command committed"
        return str(error_code(response))

    # --- the engine's needs

    def _answer(self, need: Need) -> Any:
        if isinstance(need, Coordinate):
            return self._state_at(need)
        if isinstance(need, Deltas):
            return [delta for delta in self.deltas if delta.ver > need.after][: need.limit]
        if isinstance(need, RetainedOutcome):
            return self.retained.get((need.scope, need.key))
        if isinstance(need, RetainedParts):
            found = {
                part_of(key): kept for (scope, key), kept in self.retained.items() if scope == need.scope
            }
            return {
                place: kept for (key, place), kept in found.items() if key == need.key and place is not None
            }
        assert isinstance(need, Artifact)
        return self.artifacts.get(need.handle) or NoemaError(
            "ArtifactUnavailable", "there is no such artifact"
        )

    def _state_at(self, need: Coordinate) -> SpaceState | NoemaError:
        if need.tx is not None:
            for delta, state in zip(self.deltas, self.states, strict=True):
                if delta.tx_id == need.tx:
                    return state
            return NoemaError("TransactionUnknown", "no such transaction")
        if need.seq is not None:
            if need.seq > self.state.seq:
                return NoemaError("HistoricalSnapshotUnavailable", "the space has not reached it")
            return [state for state in self.states if state.seq <= need.seq][-1]
        found = [state for state in self.states if state.at <= (need.time or 0)]
        return found[-1] if found else NoemaError("HistoricalSnapshotUnavailable", "before the space began")


_RESPONSE = Draft202012Validator(wire_schema("kip-response"))


def json_of(response: Response) -> dict[str, Any]:
    """A response as a client reads it: through bytes, and always as the published schema wants it."""
    value: dict[str, Any] = json.loads(encode_response(response))
    problem = next(iter(_RESPONSE.iter_errors(value)), None)
    assert problem is None, f"the response breaks its schema: {problem.message}"
    return value


def error_code(response: dict[str, Any]) -> str | None:
    """The first error code of a response."""
    if "error" in response:
        return str(response["error"]["code"])
    return next((str(r["error"]["code"]) for r in response["results"] if "error" in r), None)
