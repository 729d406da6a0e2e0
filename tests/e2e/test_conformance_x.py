"""KIP2-X over HTTP: the conformance scenarios against the stack that SAM deployed to ministack.

Each scenario has a space of its own, born as an operator makes one: the backup of a space in the canonical schema is
restored through the API, and then governed through it. Principals are CWTs with their names. What no host can do to a
deployed stack is skipped with its reason.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx
import msgspec
import pytest
from jsonschema import Draft202012Validator

from core.authority import Principal
from core.governance.commands import AnyCommand
from core.service.governance import Outcome
from tests.conformance.governing import Governing
from tests.conformance.harness import CORE, PERMISSIONS, Reply, World
from tests.conformance.packages import wire_schema
from tests.conformance.scenarios import SCENARIOS, NoWay, Scenario
from tests.e2e.deployed import Stack

pytestmark = pytest.mark.ministack
_RESPONSE = Draft202012Validator(wire_schema("kip-response"))
_serial = count(1)


class Refused(Exception):
    """What a route of the host refused, by its code."""


class OverHttp(Governing):
    """The driver over a deployed stack, in a space that is governed as the harness's is."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.space = f"scenario_{next(_serial)}"
        self.principals: dict[str, Principal] = {}
        backup = {"capsule": World(life=50).export_space(include_schema=True), "owner": "owner"}
        stack.call(
            "POST",
            f"/admin/{self.space}/restore_capsule",
            {**backup, "accept_unsigned": True, "activate_schema": True},
            stack.token("*"),
        )
        found = self._post("owner", {"command": "FIND(?c.key, ?c.id) WHERE {?c CONCEPT {}}"}).json()
        self.ref = {key: {"id": element} for key, element in found["results"][0]["result"]}
        assert {"self", "alice", "bob", "carol"} <= set(self.ref)
        self.govern(PERMISSIONS)
        self.grant("reader_hidden", "read_history", name="history")

    # --- the driver

    def say(self, principal: str, said: str | dict[str, Any], /, **parameters: Any) -> Reply:
        body = {"command": said, "parameters": parameters} if isinstance(said, str) else said
        response = self._post(principal, self._with_bindings(body))
        if response.status_code != 200:
            assert response.status_code in (401, 403), response.text
            error = {"code": response.json()["error"]["data"]["code"]}
            return Reply({"status": "failed", "results": [], "error": error})
        reply = Reply(response.json())
        problem = next(iter(_RESPONSE.iter_errors(dict(reply))), None)
        assert problem is None, problem
        return reply

    def lose_answer(self, principal: str, said: dict[str, Any], /) -> None:
        with contextlib.suppress(httpx.ReadTimeout):
            self._post(principal, said, timeout=httpx.Timeout(60, read=0.001))

    def command(
        self, command: AnyCommand, by: str | Principal = "owner", *, operator: bool = False
    ) -> Outcome:
        assert isinstance(by, str)
        assert not operator
        body = msgspec.to_builtins(command)
        token = self._stack.token(self.space, subject=by)
        done = self._stack.call("POST", f"/host/v1/{self.space}/governance/commands", body, token)
        return msgspec.convert(done, Outcome)

    def admit(self, principal: str, /) -> None:
        self.grant(principal, "discover", "read", "create", name=f"admitted:{principal}")

    def withdraw(self, principal: str, /) -> None:
        self.revoke(f"admitted:{principal}")

    def held_index(self) -> contextlib.AbstractContextManager[str]:
        raise NoWay(
            "the stack has no embedder, and its keyword index is part of the state: no index can be held back"
        )

    def preview_capsule(self, artifact: dict[str, Any], /) -> dict[str, Any]:
        return self._capsules("preview", {"capsule": artifact})

    def import_capsule(self, artifact: dict[str, Any], plan_digest: str, /) -> dict[str, Any]:
        return self._capsules("import", {"capsule": artifact, "plan_digest": plan_digest})

    def error_of(self, act: Callable[[], object], /) -> str:
        with pytest.raises(Refused) as caught:
            act()
        return str(caught.value)

    # --- HTTP

    def _post(self, principal: str, body: dict[str, Any], **options: Any) -> httpx.Response:
        token = self._stack.token(self.space, subject=principal)
        return self._stack.http.post(
            f"/v1/{self.space}/execute_kip",
            json=body,
            headers={"authorization": f"Bearer {token}"},
            **options,
        )

    def _capsules(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        token = self._stack.token(self.space, subject="importer")
        response = self._stack.send("POST", f"/host/v1/{self.space}/capsules/{what}", body, token)
        answer = response.json()
        if response.status_code != 200:
            raise Refused(answer["error"]["data"]["code"])
        result: dict[str, Any] = answer["result"]
        return result

    def _with_bindings(self, body: dict[str, Any]) -> dict[str, Any]:
        """As the harness does: the canonical bindings that a command names and is not given."""
        text = json.dumps(body)
        named = {name: self.ref[name] for name in re.findall(r":([a-z_]+)", text) if name in self.ref}
        return {**body, "parameters": {**named, **body.get("parameters", {})}}


@pytest.fixture(name="driver")
def _driver(stack: Stack) -> Iterator[OverHttp]:
    driver = OverHttp(stack)
    yield driver
    stack.call("POST", f"/admin/{driver.space}/delete_space", {"space_id": driver.space}, stack.token("*"))


@pytest.mark.parametrize(
    "scenario", [pytest.param(each, id=name.lower().replace("-", "_")) for name, each in SCENARIOS.items()]
)
def test_scenario(scenario: Scenario, driver: OverHttp) -> None:
    """The scenario holds through API Gateway, the functions and the store of the stack."""
    try:
        scenario(driver)
    except NoWay as missing:
        pytest.skip(str(missing))


def test_the_space_speaks_the_canonical_schema(driver: OverHttp) -> None:
    """What the scenarios stand on: the restored space has the test's package in force, and its people."""
    described = driver.say("owner", f'DESCRIBE PREDICATE "{CORE}/timezone"')
    assert described["status"] == "succeeded"
