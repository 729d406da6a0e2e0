"""A streamed answer from `noema serve`, as a client reads it."""

import hashlib
import json
from pathlib import Path

from tests.e2e.local import serving

NDJSON = {"accept": "application/x-ndjson"}


def test_the_service_says_that_it_streams_and_does(tmp_path: Path) -> None:
    """DESCRIBE CAPABILITIES says so; a query and the change stream come in frames whose digest is right."""
    with serving(tmp_path) as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})

        def ask(command: str, **headers: str) -> list[dict]:
            with service.http.stream(
                "POST", "/v1/demo/execute_kip", json={"command": command}, headers=headers
            ) as answer:
                assert answer.status_code == 200
                lines = [line + "\n" for line in answer.iter_lines()]
            data = [line for line in lines if json.loads(line)["kind"] == "data"] if headers else []
            frames = [json.loads(line) for line in lines]
            if headers and frames[-1]["kind"] == "final":
                digest = hashlib.sha256("".join(data).encode()).hexdigest()
                assert frames[-1]["data"]["digest"] == f"sha256:{digest}"
            return frames

        [plain] = ask("DESCRIBE CAPABILITIES")
        written = [ask(f'CREATE CONCEPT ?c {{TYPE "Person" NAME "p{n} 🙂"}}', **NDJSON) for n in range(3)]
        people = ask('FIND(?c.name) WHERE {?c CONCEPT {type: "Person"}}', **NDJSON)
        changes = ask("CHANGES AFTER SEQ 0", **NDJSON)

    assert plain["results"][0]["result"]["supported"]["streaming"] is True
    receipts = [frames[-1]["data"]["response"]["receipt"]["tx_id"] for frames in written]
    assert people[1]["data"]["rows"] == ["p0 🙂", "p1 🙂", "p2 🙂"]
    envelopes = [frame["data"]["envelope"] for frame in changes if frame["kind"] == "data"]
    assert [each["tx_id"] for each in envelopes][-3:] == receipts
