"""A governed space with two people over HTTP: alice owns it, bob sees a part. What the tests and the proofs share.

What bob may not know of bears one word that stands nowhere else, and ids that only alice's answers give; so an answer to
bob that holds any of them is a leak.
"""

from __future__ import annotations

import json
from typing import Any

from functions.worker import work
from tests.functions.world import Answer, World

SECRET = "zanzibar"  # in everything that is hidden from bob
OPEN = "harbour"  # in everything that he may see
BASE = "/host/v1/{}/governance"


class Governed(World):
    """Two spaces of alice's, both governed; bob has a grant in `demo` and a token for `other` that holds nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: list[str] = []  # ids of elements
        self.visible: list[str] = []
        self.hidden_facts: list[str] = []
        self.cursors: list[str] = []  # of alice's pages
        for space in ("demo", "other"):
            self.make_space(space)
            self._fill(space)
            self._govern(space)
        self._conversations()

    # --- asking

    def as_(self, sub: str, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        space = more.pop("space", None) or path.split("/")[2 if not path.startswith("/host") else 3]
        scope = more.pop("scope", "*")
        return self.ask(method, path, body, token=self.token(sub=sub, aud=space, scope=scope), **more)

    def kip(self, sub: str, text: str, space: str = "demo", **parameters: Any) -> dict[str, Any]:
        """The one operation result of a KIP command."""
        body = {"command": text, "parameters": parameters} if parameters else {"command": text}
        answer = self.as_(sub, "POST", f"/v1/{space}/execute_kip", body).json
        found: dict[str, Any] = answer["results"][0] if answer.get("results") else answer
        return found

    def command(self, command: dict[str, Any], *, by: str = "alice", space: str = "demo") -> dict[str, Any]:
        """A command of the control plane that is let through."""
        answer = self.as_(by, "POST", f"{BASE.format(space)}/commands", command)
        found: dict[str, Any] = answer.result
        return found

    def allow(self, name: str, subject: str, *permissions: str, **where: Any) -> None:
        """A grant."""
        rule = {
            "id": name,
            "effect": "allow",
            "subjects": [f"principal:{subject}"],
            "permissions": list(permissions),
            "where": where,
        }
        self.command({"command": "put_rule", "rule": rule})

    def tool(self, sub: str, name: str, arguments: dict[str, Any] | None = None) -> Answer:
        """A tool of MCP."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments or {}},
        }
        headers = {"mcp-protocol-version": "2025-11-25"}
        return self.as_(sub, "POST", "/mcp/demo", message, headers=headers)

    def form(self, space: str = "demo") -> None:
        """Let the worker form what waits."""
        work({"Records": [_message(space, "formation")]}, None, self.services)

    # --- making

    def _fill(self, space: str) -> None:
        ids: dict[str, list[str]] = {SECRET: [], OPEN: []}
        for word, found in ids.items():
            for number in range(3):
                made = self.kip(
                    "alice",
                    f'CREATE CONCEPT ?c {{TYPE "Person" NAME "{word} {number}" }}',
                    space,
                )
                found.append(_id_of(made))
            fact = self.as_(
                "alice",
                "POST",
                f"/v1/{space}/facts",
                {"agent_id": "ann", "text": f"Ann keeps a {word} in the {word} house"},
            ).result
            element = self.kip(
                "alice", f'FIND(?c.id) WHERE {{?c CONCEPT {{}} FILTER(?c.key == "{fact["id"]}")}}', space
            )
            found.append(_first(element["result"]))
            if word == SECRET and space == "demo":
                self.hidden_facts.append(fact["id"])
        if space == "demo":
            self.hidden, self.visible = ids[SECRET], ids[OPEN]
        self._secret(space, ids[SECRET])

    def _secret(self, space: str, ids: list[str]) -> None:
        self.command({"command": "classify", "ids": ids, "label": "secret"}, space=space)

    def _govern(self, space: str) -> None:
        self.command({"command": "set_policy", "policy": {"default": "deny"}}, space=space)
        if space != "demo":
            return
        seen = ["public", "internal"]
        self.allow("bob-reads", "bob", "role:reader", "read_history", "read_raw_origin", classifications=seen)
        self.allow("bob-writes", "bob", "role:writer", "retract_own", "supersede_own", "maintain")

    def _conversations(self) -> None:
        for number in range(3):
            said = {
                "messages": [{"role": "user", "name": "Alice", "content": f"I love the {SECRET} {number}."}]
            }
            self.as_("alice", "POST", "/v1/demo/formation", said).result
        self.form()
        found = self.kip("alice", f'SEARCH COGNITION "{SECRET}" LIMIT 100')
        ids = sorted({each["id"] for each in found["result"]} - set(self.hidden))
        self.command({"command": "classify", "ids": ids, "label": "secret"})
        self.hidden += ids
        self.as_("alice", "POST", "/v1/demo/recall", {"query": f"Who loves the {SECRET}?"}).result
        for path, query in (
            ("/v1/demo/conversations", "limit=1"),
            ("/host/v1/demo/governance/audit", "limit=1"),
            ("/host/v1/demo/governance/records/rules", "limit=1"),
        ):
            self.cursors.append(self.as_("alice", "GET", path, query=query).json["next_cursor"])
        paged = self.kip("alice", "FIND(?c.id) WHERE {?c CONCEPT {}} LIMIT 1")
        self.cursors.append(paged["next_cursor"])

    # --- judging

    def leaks(self, answer: Answer) -> list[str]:
        """What of the hidden stands in an answer."""
        text = answer.body.decode("utf-8", "replace").lower()
        return [each for each in (SECRET, *self.hidden, *self.hidden_facts) if each.lower() in text]


def _message(space: str, what: str) -> dict[str, Any]:
    return {
        "messageId": "m0",
        "receiptHandle": "r",
        "body": json.dumps({"work": what, "space": space}),
        "attributes": {"MessageGroupId": space, "ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "awsRegion": "eu-central-1",
    }


def _id_of(result: dict[str, Any]) -> str:
    """The one id in an operation's result."""
    return next(each for each in _texts(result) if each.startswith("C-"))


def _first(value: Any) -> str:
    return next(iter(_texts(value)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts(each)]
