"""Fuzzed ids, keys and cursors across spaces and principals: nothing hidden ever comes out, and nothing breaks.

A case takes a request with a place for a name, and puts in an id that is hidden, one of another space, another caller's
cursor or key, or any of these changed; asks as somebody who may not see it; and holds the answer against two rules. It
has nothing hidden in it, and a hidden name is answered exactly as one that was never given.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from tests.functions.governed import SECRET, Governed
from tests.functions.world import Answer

CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz"
MARK = "@"
Shape = tuple[str, str, Any, str]  # method, path, body, query; MARK is where the name goes

BY_ID: tuple[Shape, ...] = (
    ("POST", "/v1/demo/execute_kip", 'FIND(?c) WHERE {?c CONCEPT {id: "@"}}', ""),
    ("POST", "/v1/demo/execute_kip", 'FIND(?e) WHERE {?e EVIDENCE {id: "@"}}', ""),
    ("POST", "/v1/demo/execute_kip", 'FIND(COUNT(?c)) WHERE {?c CONCEPT {id: "@"}} AS OF SEQ 3', ""),
    ("POST", "/v1/demo/execute_kip", 'FIND(?p) WHERE {?p ({id: "@"}, ?r, ?o)}', ""),
    ("POST", "/v1/demo/execute_kip", 'HISTORY {id: "@"}', ""),
    ("POST", "/v1/demo/execute_kip", 'UPDATE {id: "@"} SET name = "x"', ""),
    ("POST", "/v1/demo/execute_kip", 'ARCHIVE {id: "@"}', ""),
    ("POST", "/v1/demo/memory/pin", {"entity": "@"}, ""),
    ("POST", "/v1/demo/memory/forget", {"entities": ["@"], "dry_run": True}, ""),
    ("POST", "/v1/demo/memory/forget", {"entities": ["@"]}, ""),
    ("POST", "/v1/demo/probe", {"query": "@"}, ""),
    (
        "POST",
        "/host/v1/demo/governance/commands",
        {"command": "classify", "ids": ["@"], "label": "secret"},
        "",
    ),
    ("POST", "/host/v1/demo/governance/decide", {"subject": "bob", "action": "read", "element": "@"}, ""),
)
BY_FACT: tuple[Shape, ...] = (
    ("GET", "/v1/demo/facts/@", None, "agent_id=ann"),
    ("DELETE", "/v1/demo/facts/@", None, "agent_id=ann"),
    ("DELETE", "/v1/demo/graymatter/forget/@", None, "agent=ann"),
    ("GET", "/v1/demo/facts/checkpoints/@", None, "agent_id=ann"),
)
BY_CURSOR: tuple[Shape, ...] = (
    ("GET", "/v1/demo/conversations", None, "cursor=@"),
    ("GET", "/v1/demo/conversations", None, "collection=recall&cursor=@"),
    ("GET", "/host/v1/demo/governance/audit", None, "cursor=@"),
    ("GET", "/host/v1/demo/governance/refusals", None, "cursor=@"),
    ("GET", "/host/v1/demo/governance/records/rules", None, "cursor=@"),
    ("POST", "/v1/demo/execute_kip",
     {"command": "FIND(?c.id) WHERE {?c CONCEPT {}} LIMIT 1 CURSOR :c", "parameters": {"c": "@"}}, ""),
)  # fmt: skip
BY_NUMBER: tuple[Shape, ...] = (
    ("GET", "/v1/demo/conversations/@", None, ""),
    ("GET", "/v1/demo/conversations/@/delta", None, ""),
    ("GET", "/v1/demo/conversations/@", None, "collection=recall"),
    ("POST", "/v1/demo/memory/forget", {"conversations": ["@"], "dry_run": True}, ""),
)
KEYED: tuple[Shape, ...] = (
    ("POST", "/v1/demo/facts", {"agent_id": "ann", "text": "the same"}, ""),
    ("POST", "/v1/demo/execute_kip", 'CREATE CONCEPT ?c {TYPE "Person" NAME "the same"}', ""),
    ("POST", "/v1/demo/formation", {"messages": [{"role": "user", "content": "hello"}]}, ""),
)


class Fuzz:
    """Cases from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = Governed()
        self.ids = [*self.world.hidden]
        for number in range(len(self.ids)):  # keys that alice has used
            body = {"agent_id": "own", "text": f"the {SECRET} key {number}"}
            key = {"idempotency-key": f"key-{number}"}
            made = self.world.as_("alice", "POST", "/v1/demo/facts", body, headers=key).result
            self.world.command({"command": "classify", "ids": [made["element"]], "label": "secret"})
            self.world.hidden.append(made["element"])

    def run(self, cases: int) -> list[str]:
        """What went wrong in so many cases."""
        wrong: list[str] = []
        for _ in range(cases):
            found = self.chance.choices(
                (self._by_id, self._by_fact, self._by_cursor, self._by_number, self._by_key), (6, 3, 4, 2, 1)
            )[0]()
            if found is not None:
                wrong.append(found)
        return wrong

    def _who(self) -> tuple[str, str]:
        return self.chance.choice(("bob", "eve", "mallory")), self.chance.choice(("*", "*", "read", "write"))

    def ask(self, who: tuple[str, str], shape: Shape, name: str, **more: Any) -> Answer:
        method, path, body, query = shape
        space = "demo"
        return self.world.as_(
            who[0],
            method,
            path.replace(MARK, name),
            _put(body, name),
            query=query.replace(MARK, name),
            scope=who[1],
            space=space,
            **more,
        )

    def _leak(self, what: str, who: tuple[str, str], name: str, answer: Answer) -> str | None:
        body = answer.body.replace(name.encode(), b"*")
        shown = msgspec.structs.replace(answer, body=body)
        leaks = [each for each in self.world.leaks(shown) if each not in name]
        if leaks or answer.status >= 500:
            return f"{what} as {who} with {name!r}: {answer.status} {leaks} {answer.body[:300]!r}"
        return None

    def _pair(self, shapes: tuple[Shape, ...], hidden: str, absent: str) -> str | None:
        """A hidden name and an absent one: the same answer, and nothing in it."""
        who, shape = self._who(), self.chance.choice(shapes)
        one, other = self.ask(who, shape, hidden), self.ask(who, shape, absent)
        found = self._leak(shape[1], who, hidden, one)
        texts = _plain(one, hidden), _plain(other, absent)
        if found is None and (one.status != other.status or texts[0] != texts[1]):
            found = f"{shape} as {who}: {hidden} {texts[0][:300]!r} but {absent} {texts[1][:300]!r}"
        return found

    def _changed(self, text: str) -> str:
        """A text with a character or two changed, cut, doubled or put in."""
        letters = list(text)
        for _ in range(self.chance.randint(1, 2)):
            place = self.chance.randrange(len(letters)) if letters else 0
            letters[place : place + self.chance.randint(0, 1)] = self.chance.choices(
                CHARACTERS + "-_=.%A", k=self.chance.randint(0, 2)
            )
        return "".join(letters).replace("%", "%25") or "0"

    def _by_id(self) -> str | None:
        hidden = self.chance.choice(self.ids)
        if self.chance.random() < 0.3:
            who, shape, name = self._who(), self.chance.choice(BY_ID), self._changed(hidden)
            return self._leak(shape[1], who, name, self.ask(who, shape, name.replace('"', "")))
        place = self.chance.randrange(2, 10)
        absent = hidden[:place] + "z" + hidden[place + 1 :]
        return self._pair(
            BY_ID, hidden, absent if absent not in self.world.visible else f"{hidden[0]}-0zzzzzzz000jhaew"
        )

    def _by_fact(self) -> str | None:
        hidden = self.world.hidden_facts[0]
        absent = "".join(self.chance.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=25))
        return self._pair(BY_FACT, hidden, f"0{absent}")

    def _by_cursor(self) -> str | None:
        who, shape = self._who(), self.chance.choice(BY_CURSOR)
        cursor = self.chance.choice(self.world.cursors)
        name = cursor if self.chance.random() < 0.5 else self._changed(cursor)
        return self._leak(shape[1], who, name, self.ask(who, shape, name))

    def _by_number(self) -> str | None:
        return self._pair(BY_NUMBER, str(self.chance.randint(1, 3)), str(self.chance.randint(10**6, 10**9)))

    def _by_key(self) -> str | None:
        who, shape = self._who(), self.chance.choice(KEYED)
        key = f"key-{self.chance.randrange(len(self.ids))}"
        answer = self.ask(who, shape, "", headers={"idempotency-key": key})
        return self._leak(shape[1], who, key, answer)


def _put(body: Any, name: str) -> Any:
    if isinstance(body, str):
        return body.replace(MARK, name)
    if isinstance(body, dict):
        return {key: _put(value, name) for key, value in body.items()}
    if isinstance(body, list):
        return [int(name) if each == MARK and name.isdigit() else _put(each, name) for each in body]
    return body


def _plain(answer: Answer, name: str) -> bytes:
    """A body without the name asked for, and without whether this caller has asked the same before."""
    return answer.body.replace(name.encode(), b"*").replace(
        b'"negative_cached":true', b'"negative_cached":false'
    )
