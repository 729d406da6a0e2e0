"""The table of docs/security.md on scopes and records, each row made and each cell held against the service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.functions.world import Answer, World

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
HEAD = ("who", "credential", "records")
DEEDS = ("knows", "writes", "remembers", "governs", "audits", "manages")
FIND = {"command": "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}"}
CREATE = {"command": 'CREATE CONCEPT ?c {TYPE "Person" NAME "New"}'}
GROUP = {"command": "put_group", "group": {"name": "team", "members": ["x"]}}
BASE = "/host/v1/demo/governance"


def rows() -> list[dict[str, str]]:
    """The rows of the table, by the names of its columns."""
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| who | credential | records |"))
    names = [each.strip() for each in lines[start].strip("|").split("|")]
    assert tuple(names) == (*HEAD, *DEEDS)
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return found
        found.append(dict(zip(names, (each.strip() for each in line.strip("|").split("|")), strict=True)))
    raise AssertionError("the table ends with the page")


ROWS = rows()


class Row:
    """One row as a service: a space of alice's with something in it, and whoever the row is about."""

    def __init__(self, row: dict[str, str]) -> None:
        self.world = World().make_space()
        self.owner = self.world.token()
        assert self.world.ask("POST", "/v1/demo/execute_kip", CREATE, token=self.owner).status == 200
        if "public" in row["credential"]:
            self.world.make_public()
        self.token, self.subject = self._credential(row["who"], row["credential"])
        self._records(row["records"])

    def _credential(self, who: str, credential: str) -> tuple[str | None, str]:
        scope = (re.findall(r"`([^`]+)`", credential) or [""])[0]
        if credential.startswith("none"):
            return None, "anonymous"
        if credential.startswith("admin"):
            return self.world.admin_token(), "boss"
        if credential.startswith("CWT"):
            return self.world.token(sub=who, scope=scope), who
        labels = {"labels": ["hr"]} if credential.startswith("labelled") else {}
        assert credential.split(" `", maxsplit=1)[0] in {"space token", "labelled token"}
        return self.world.space_token(scope=scope, name="ci", **labels), "token:ci"

    def _records(self, text: str) -> None:
        if text == "none":
            return
        default, _, rule = text.partition(", ")
        self._send({"command": "set_policy", "policy": {"default": default.strip("`")}})
        if rule:
            effect, permission = rule.split()
            self._send(
                {
                    "command": "put_rule",
                    "rule": {
                        "id": "r",
                        "effect": effect,
                        "subjects": [f"principal:{self.subject}"],
                        "permissions": [permission],
                    },
                }
            )

    def _send(self, command: dict[str, Any]) -> None:
        answer = self.world.ask("POST", f"{BASE}/commands", command, token=self.world.admin_token())
        assert answer.status == 200, answer.body

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        return self.world.ask(method, path, body, token=self.token)

    def may(self, deed: str) -> bool:
        """Whether the row's caller may do it."""
        if deed == "knows":
            answer = self._ask("POST", "/v1/demo/execute_kip_readonly", FIND)
            return answer.status == 200 and bool(
                re.search(r"[1-9]", str(answer.json["results"][0].get("result")))
            )
        if deed == "writes":
            answer = self._ask("POST", "/v1/demo/execute_kip", CREATE)
            return answer.status == 200 and answer.json["status"] == "succeeded"
        asked: dict[str, tuple[str, str, Any]] = {
            "remembers": ("POST", "/v1/demo/facts", {"agent_id": "ann", "text": "Ann rows."}),
            "governs": ("POST", f"{BASE}/commands", GROUP),
            "audits": ("GET", f"{BASE}/audit", None),
            "manages": ("PATCH", "/v1/demo/management/update_space", {"name": "x"}),
        }
        return self._ask(*asked[deed]).status == 200


@pytest.mark.parametrize("row", ROWS, ids=[" ".join(each[name] for name in HEAD) for each in ROWS])
def test_each_cell_of_the_table_is_so(row: dict[str, str]) -> None:
    """What the row's caller may do is what the row says. Governing comes last: a first command makes records."""
    made = Row(row)
    order = [*(deed for deed in DEEDS if deed != "governs"), "governs"]

    assert {deed: made.may(deed) for deed in order} == {deed: row[deed] == "yes" for deed in order}


def test_the_table_has_every_kind_of_caller() -> None:
    """All credentials, both policies and none, and as many rows as the page is meant to have."""
    assert {each["credential"].split(" `")[0] for each in ROWS} == {
        "CWT", "space token", "labelled token", "none", "none, public space", "admin CWT",
    }  # fmt: skip
    assert {each["records"].partition(",")[0] for each in ROWS} == {"none", "`deny`", "`scopes`"}
    assert all(each[deed] in {"yes", "no"} for each in ROWS for deed in DEEDS)
    assert len(ROWS) >= 30
