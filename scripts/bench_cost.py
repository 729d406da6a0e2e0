#!/usr/bin/env python3
"""What requests cost: calls of AWS, units they are billed in, tokens of a model, and dollars for a thousand.

    scripts/bench cost [--json]

The routes are those of the service, over stores that count; rows are weighed as DynamoDB weighs them (names and
values in bytes), reads are strong, a transaction of several writes counts double. The space is warm: what a request
costs that finds nothing in memory is in the table of the store (docs/benchmarks.md). Model tokens are exact counts of
the requests as JSON, by o200k_base; a provider counts by its own tokenizer.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from core.models.chat import ChatReply, ChatRequest, Usage
from core.models.tokens import Tokenizer
from core.ports import Check, Delete, Objects, Put, Range, Row, Update, Write
from core.storage.memory import MemoryTable
from functions.adapters import Adapters
from functions.bootstrap import build
from functions.worker import work
from infra.tokens import O200kTokenizer
from tests.doubles import FixedModels, ScriptedModel, calls, says
from tests.functions.world import KEYED, World

# Dollars, on demand, in us-east-1, as published on 2026-11-30 (DynamoDB's price list is that of November 2024).
PRICES: dict[str, float] = {
    "WRU": 0.625e-6,  # DynamoDB, a write unit
    "RRU": 0.125e-6,  # DynamoDB, a read unit
    "S3 PUT": 5e-6,
    "S3 GET": 0.4e-6,
    "SQS": 0.5e-6,  # FIFO, a request; a hint is sent, received and deleted
    "HTTP": 1e-6,  # API Gateway, a request
    "invocation": 0.2e-6,
    "GB-s": 13.3334e-6,  # Lambda on arm64
}
MEMORY_GB = 1.0
MODEL_IN, MODEL_OUT = 1.0e-6, 5.0e-6  # dollars a token of a small hosted model: 1 and 5 dollars a million


def weight(row: Row) -> int:
    """The bytes of a row as DynamoDB counts them."""
    return sum(len(name) + _size(value) for name, value in row.items())


def _size(value: Any) -> int:
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode()) if isinstance(value, str) else 1 + len(str(value)) // 2


class CountingTable:
    """A table that counts calls and units."""

    def __init__(self, counts: Counter[str]) -> None:
        self.table = MemoryTable()
        self.counts = counts

    def get(self, pk: str, sk: str) -> Row | None:
        """As the table's; a strong read of 4 KB is one unit."""
        row = self.table.get(pk, sk)
        self._read(0 if row is None else weight(row) + len(pk + sk))
        return row

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """As the table's; the rows of an answer are weighed together."""
        rows = self.table.query(pk, first, last, limit=limit, reverse=reverse)
        self._read(sum(weight(row) + len(pk + sk) for sk, row in rows))
        return rows

    def _read(self, size: int) -> None:
        self.counts["DynamoDB calls"] += 1
        self.counts["RRU"] += max(1, -(-size // 4096))

    def transact(self, writes: Sequence[Write]) -> None:
        """As the table's; several writes are a transaction, in which each counts double."""
        self.table.transact(writes)
        self.counts["DynamoDB calls"] += 1
        units = sum(max(1, -(-self._touched(write) // 1024)) for write in writes)
        self.counts["WRU"] += units * (2 if len(writes) > 1 else 1)

    def _touched(self, write: Write) -> int:
        if isinstance(write, Put):
            return weight(write.row) + len(write.pk + write.sk)
        if isinstance(write, (Update, Check)):
            return weight(self.table.get(write.pk, write.sk) or {}) + len(write.pk + write.sk)
        assert isinstance(write, Delete)
        return 1


class CountingObjects:
    """Objects that count calls."""

    def __init__(self, counts: Counter[str], objects: Objects) -> None:
        self.objects = objects
        self.counts = counts

    def put(self, key: str, body: bytes) -> None:
        """As the objects'."""
        self.counts["S3 PUT"] += 1
        self.objects.put(key, body)

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """As the objects'."""
        self.counts["S3 GET"] += 1
        return self.objects.get(key, first, length)

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """As the objects'."""
        self.counts["S3 GET"] += len(ranges)
        return self.objects.get_many(ranges)

    def list(self, prefix: str) -> Iterator[Any]:
        """As the objects'."""
        self.counts["S3 PUT"] += 1
        return self.objects.list(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        """As the objects'."""
        self.objects.delete(keys)


class CountingQueue:
    """A queue that keeps what it is sent, and counts: a hint is sent, received and deleted."""

    def __init__(self, counts: Counter[str]) -> None:
        self.sent: list[tuple[str, str]] = []
        self.counts = counts

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        """Keep a hint."""
        del dedupe
        self.counts["SQS"] += 3
        self.sent.append((group, body))


class CountedModel(ScriptedModel):
    """A scripted model that says what its requests would have cost, by exact tokens of their JSON."""

    def __init__(self, script: Sequence[Any], tokenizer: Tokenizer) -> None:
        super().__init__([self._counted(reply) for reply in script])
        self._tokenizer = tokenizer
        self._before = ""
        self.used: list[Usage] = []

    def _counted(self, reply: Any) -> Callable[[ChatRequest], ChatReply]:
        def said(request: ChatRequest) -> ChatReply:
            given: ChatReply = reply(request) if callable(reply) else reply
            text = msgspec.json.encode(request.system).decode() + msgspec.json.encode(request.tools).decode()
            text += msgspec.json.encode(request.turns).decode()
            shared = next((n for n, (a, b) in enumerate(zip(text, self._before, strict=False)) if a != b), 0)
            shared = shared or (min(len(text), len(self._before)) if self._before else 0)
            self._before = text
            wrote = given.text + "".join(call.raw for call in given.calls)
            usage = Usage(
                self._tokenizer.count(text),
                self._tokenizer.count(wrote),
                self._tokenizer.count(text[:shared]) if shared else 0,
                1,
            )
            self.used.append(usage)
            return msgspec.structs.replace(given, usage=usage)

        return said


class Meter:
    """A service over counting stores, and what each request took."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tokenizer = O200kTokenizer()
        self.queue = CountingQueue(self.counts)
        self.world = World(table=CountingTable(self.counts), queue=self.queue)
        self.world.objects = CountingObjects(self.counts, self.world.objects)
        self.world.use(KEYED)
        self.world.make_space(tier=6)
        self.rows: list[tuple[str, Counter[str], float, Usage]] = []

    def use(self, model: CountedModel | None) -> None:
        """Give every space a model, or none."""
        world = self.world
        adapters = Adapters(
            world.table, world.objects, world.queue, world.clock, world.entropy, models=FixedModels(model)
        )
        world.services = build(KEYED, adapters)

    def deliver(self) -> None:
        """Hand the worker what the queue holds."""
        sent, self.queue.sent = self.queue.sent, []
        records = [
            {"messageId": str(n), "body": body, "attributes": {"MessageGroupId": group}}
            for n, (group, body) in enumerate(sent)
        ]
        if records:
            answer = work({"Records": records}, None, self.world.services)
            assert answer == {"batchItemFailures": []}, answer

    def post(self, path: str, body: Any, **headers: str) -> Any:
        """A request that must be answered well."""
        found = self.world.ask("POST", f"/v1/demo/{path}", body, token=self.world.token(), headers=headers)
        assert found.status in (200, 202), found.body
        return found.json

    def get(self, path: str, query: str = "") -> Any:
        """A read."""
        found = self.world.ask("GET", f"/v1/demo/{path}", token=self.world.token(), query=query)
        assert found.status == 200, found.body
        return found.json

    def measure(
        self, name: str, do: Callable[[], object], *, http: bool = True, model: CountedModel | None = None
    ) -> None:
        """Note what something costs, the second time it is done."""
        self.counts.clear()
        began = time.process_time()
        do()
        took = time.process_time() - began
        found = Counter(self.counts)
        found["invocation"] += 1
        if http:
            found["HTTP"] += 1
        used = Usage()
        for each in [] if model is None else model.used:
            used = used.plus(each)
        self.rows.append((name, found, took, used))


def dollars(counts: Counter[str], took: float, usage: Usage) -> tuple[float, float]:
    """For a thousand requests: AWS, and a small hosted model."""
    aws = sum(PRICES[name] * number for name, number in counts.items() if name in PRICES)
    aws += PRICES["GB-s"] * MEMORY_GB * took
    return aws * 1000, (usage.input_tokens * MODEL_IN + usage.output_tokens * MODEL_OUT) * 1000


SAID = [
    "I moved to Lisbon in May and I work as a nurse.", "I love green tea and hiking in the Alps.",
    "My sister Anna lives in Paris.", "My timezone is UTC+1.", "Remind me to call the plumber on June 30.",
]  # fmt: skip


def conversation(number: int) -> dict[str, Any]:
    """Five messages, new in each."""
    return {
        "messages": [{"role": "user", "name": "Alice", "content": f"{text} ({number})"} for text in SAID],
        "timestamp": 1_779_000_000_000 + number * 3_600_000,
    }


def answering(meter: Meter, rounds: int) -> CountedModel:
    """A model that searches so many times and then answers."""
    searches = [
        calls("search_memory", {"query": f"Alice Lisbon {n}"}, call_id=f"c{n}") for n in range(rounds)
    ]
    last = says('Alice lives in Lisbon.\n<memory_meta>{"found": true, "uncertainty": 0.1}</memory_meta>')
    return CountedModel([*searches, last], meter.tokenizer)


def run() -> Meter:
    """Every row of the table."""
    meter = Meter()
    for number in range(20):
        meter.post("formation", conversation(number))
        meter.deliver()
    question = {"query": "Where does Alice live?"}
    fact = {"agent_id": "ann", "text": "Deploys run on Friday.", "confidence": "verified"}
    meter.post("facts", fact)
    meter.post("recall", question)
    kip = {"command": 'FIND(?p.name) WHERE { ?p CONCEPT {type: "Person"} } LIMIT 10'}
    meter.post("execute_kip_readonly", kip)
    meter.post("probe", {"query": "zaphod"})

    meter.measure("info", lambda: meter.get("info"))
    meter.measure("formation: taken in", lambda: meter.post("formation", conversation(20)))
    meter.measure("formation: formed, 5 messages", meter.deliver, http=False)
    while meter.queue.sent:  # what forming has called for, upkeep and maintenance, is not recall's
        meter.deliver()
    meter.measure("recall", lambda: meter.post("recall", question))
    meter.measure("recall, later: taken in", lambda: meter.post("recall", question, prefer="respond-async"))
    meter.measure("recall, later: answered", meter.deliver, http=False)
    budget = {**question, "budget": {"max_tokens": 1000}}
    meter.post("recall", budget)
    meter.measure("recall, a packet of 1,000 tokens", lambda: meter.post("recall", budget))
    meter.measure("probe, a hit", lambda: meter.post("probe", {"query": "Lisbon"}))
    meter.measure("probe, a miss", lambda: meter.post("probe", {"query": "trillian"}))
    meter.measure("probe, a kept miss", lambda: meter.post("probe", {"query": "trillian"}))
    meter.measure("execute_kip_readonly", lambda: meter.post("execute_kip_readonly", kip))
    write = {"command": 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: "bob"} SET FIELDS {name: "Bob"}}'}
    meter.measure("execute_kip, an UPSERT", lambda: meter.post("execute_kip", write))
    meter.measure("facts: kept", lambda: meter.post("facts", {**fact, "text": "Standups are at nine."}))
    recall = {"agent_id": "ann", "query": "when do we deploy?"}
    meter.measure("facts: recalled", lambda: meter.post("facts/recall", recall))
    meter.measure("conversations, a page", lambda: meter.get("conversations", "collection=recall"))
    for rounds in (0, 1, 3):
        warm, model = answering(meter, rounds), answering(meter, rounds)
        meter.use(warm)
        meter.post("recall", question)
        meter.world.services.models.model = model  # type: ignore[attr-defined]  # FixedModels
        name = f"recall with a model, {rounds + 1} request{'s' if rounds else ''}"
        meter.measure(name, lambda: meter.post("recall", question), model=model)
    return meter


HEADING = """\
| request | DynamoDB calls | RRU | WRU | S3 PUT, GET | SQS | CPU, ms | AWS, $ per 1,000 | tokens in (same prefix), out | model, $ per 1,000 |
|---|---|---|---|---|---|---|---|---|---|"""


def told(name: str, counts: Counter[str], took: float, usage: Usage) -> dict[str, object]:
    """A row of the table."""
    aws, model = dollars(counts, took, usage)
    tokens = (
        f"{usage.input_tokens:,} ({usage.cached_tokens:,}), {usage.output_tokens}" if usage.requests else ""
    )
    return {
        "request": name,
        **{each: counts[each] for each in ("DynamoDB calls", "RRU", "WRU")},
        "S3": f"{counts['S3 PUT']}, {counts['S3 GET']}",
        "SQS": counts["SQS"],
        "cpu_ms": round(took * 1000, 1),
        "aws": f"{aws:.4f}",
        "tokens": tokens,
        "model": f"{model:.2f}" if usage.requests else "",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="as JSON")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    meter = run()
    if options.json:
        print(json.dumps([told(*row) for row in meter.rows]))
        return
    print(HEADING)
    for row in meter.rows:
        cells = told(*row)
        print("| " + " | ".join(str(cell) for cell in cells.values()) + " |")


if __name__ == "__main__":
    main()
