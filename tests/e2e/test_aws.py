"""The deployed stack: SAM puts template.yaml onto ministack, and the memory works through its API.

API Gateway, Lambda, DynamoDB, S3, the FIFO queue with its event source and the Scheduler are ministack's; the
package, the template and every line of ours are the ones that go to AWS. ministack runs with AUTH=true, so each
function has the rights of its role in the template and no more. Only the bucket's policy is taken away: it asks
for TLS, and for a condition key (the If-None-Match header) that ministack does not know.
"""

import time
from typing import Any

import cbor2
import pytest

from core.ports import Update
from core.storage.layout import DUE_PK, due_rows
from functions.minting import generate_key, mint
from infra.aws.table import DynamoTable
from tests.e2e.deployed import WAIT_S, Stack

pytestmark = pytest.mark.ministack
TICK_S = 150.0  # the Scheduler rings once a minute


MESSAGES = [
    {"role": "user", "name": "Ada", "content": "I moved to Lisbon in May 2024."},
    {"role": "assistant", "content": "How do you like it?"},
    {"role": "user", "name": "Ada", "content": "Very much. I prefer green tea now. 你好 🙂"},
]


def test_what_was_said_is_formed_by_the_queue_and_recalled(stack: Stack) -> None:
    """Create, send, wait for the queue and the worker, ask: the answer cites what was said."""
    stack.create_space("flow")
    token = stack.token("flow")

    conversation = stack.call("POST", "/v1/flow/formation", {"messages": MESSAGES}, token)["conversation"]
    stack.wait_formed("flow", conversation)
    found = stack.call(
        "POST", "/v1/flow/recall_structured", {"query": "What does Ada prefer to drink?"}, token
    )

    assert found["found"] is True
    assert "green tea" in found["answer"]
    assert found["memories"]
    assert _waiting(stack, "DeadLettersUrl") == 0


def test_who_may_not_is_refused_at_the_api(stack: Stack) -> None:
    """No token, a token of another space, a forged one, and a space's token at /admin; unknown paths are 404."""
    stack.create_space("guarded")
    forged = mint(generate_key()[0], subject="ada", audience="guarded", scope="*", now_s=int(time.time()))  # noqa: TID251
    wish = {"user": "ada", "space_id": "more", "tier": 0}

    answers = [
        stack.send("GET", "/v1/guarded/info").status_code,
        stack.send("GET", "/v1/guarded/info", token=stack.token("other")).status_code,
        stack.send("GET", "/v1/guarded/info", token=forged).status_code,
        stack.send("POST", "/admin/create_space", wish, stack.token("guarded")).status_code,
        stack.send("GET", "/v1/nothing/here/at/all").status_code,
        stack.send("GET", "/info").status_code,
    ]

    assert answers[:3] == [401, 401, 401]
    assert answers[3] in (401, 403)
    assert answers[4:] == [404, 200]


def test_a_space_brings_a_model_that_its_own_key_opens(stack: Stack) -> None:
    """The managing function seals with KMS and cannot open; the reading one opens, and tells that the model failed."""
    stack.create_space("owner")
    token = stack.token("owner")
    wish = {
        "family": "openai", "model": "m", "api_base": "https://models.invalid/v1",
        "api_key": "sk-of-an-owner-0123456789-WXYZ",
    }  # fmt: skip

    assert stack.call("PATCH", "/v1/owner/management/space_byok", wish, token) is True
    shown = stack.call("GET", "/v1/owner/management/space_byok", None, token)
    asked = stack.call("POST", "/v1/owner/recall", {"query": "What does Ada drink?"}, token)

    assert shown["api_key_end"] == "WXYZ"
    assert "sk-of-an-owner" not in str(shown)
    assert asked["failed_reason"]
    rows = stack.client("dynamodb").get_item(
        TableName=stack.outputs["TableName"], Key={"pk": {"S": "S#owner"}, "sk": {"S": "K#model"}}
    )
    sealed = rows["Item"]["sealed"]["B"]
    assert sealed[0] == 1
    assert b"sk-of-an-owner" not in sealed


def test_kip_is_spoken_by_two_functions_with_the_rights_there_are(stack: Stack) -> None:
    """The reading one makes the signing key; the writing one writes, retries and purges; both follow one cursor."""
    stack.create_space("kip")
    token = stack.token("kip")

    def say(path: str, command: str, **parameters: Any) -> dict[str, Any]:
        body = {"command": command, "parameters": parameters}
        response = stack.http.post(f"/v1/kip/{path}", json=body, headers={"authorization": f"Bearer {token}"})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        assert answer["status"] == "succeeded", answer
        return answer

    find = 'FIND(?c.name) WHERE {?c CONCEPT {type: "Person"}} LIMIT 1'
    assert say("execute_kip_readonly", find)["results"][0]["result"] == []
    for name in ("Ada", "Łukasz 🙂"):
        say("execute_kip", 'CREATE CONCEPT ?c {TYPE "Person" NAME :n}', n=name)
    page = say("execute_kip_readonly", find)["results"][0]
    rest = say("execute_kip", find + " CURSOR :c", c=page["next_cursor"])["results"][0]
    purged = say("execute_kip", 'PURGE ?c WHERE {?c CONCEPT {name: "Ada"}} CONFIRM "PURGE"')["results"][0]

    assert (page["result"], rest["result"]) == (["Ada"], ["Łukasz 🙂"])
    assert len(purged["result"]["purged"]) == 1
    assert "warnings" not in purged  # erased from all of history, now
    assert say("execute_kip_readonly", find)["results"][0]["result"] == ["Łukasz 🙂"]


def test_mcp_is_a_function_of_its_own(stack: Stack) -> None:
    """An agent adds a fact, finds it, sends a conversation and recalls it, with the rights that the role has."""
    stack.create_space("agents")
    headers = {"authorization": f"Bearer {stack.token('agents')}", "mcp-protocol-version": "2025-11-25"}

    def tool(name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response = stack.http.post("/mcp/agents", json=message, headers=headers)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        assert not result["isError"], result
        return dict(result["structuredContent"])

    assert tool("memory_add", agent_id="a", text="Releases are cut on Tuesdays.")["stored"] is True
    assert tool("memory_search", agent_id="a", query="releases")["facts"] == ["Releases are cut on Tuesdays."]
    assert tool("memory_add", agent_id="a", text="Releases are cut on Tuesdays.")["stored"] is False
    number = tool("anda_brain_remember_conversation", messages=MESSAGES)["conversation"]
    stack.wait_formed("agents", number)
    found = tool("anda_brain_recall_memory", query="What does Ada prefer to drink?")

    assert "green tea" in found["content"]
    assert stack.http.get("/mcp/agents", headers=headers).status_code == 405
    refused = stack.http.post("/mcp/agents", json={}, headers={**headers, "host": "evil.example"})
    assert refused.status_code in (403, 404)  # 404 where the gateway itself does not know the name


def test_large_and_binary_bodies_pass_through(stack: Stack) -> None:
    """A conversation of a megabyte goes in as JSON, and CBOR goes both ways."""
    stack.create_space("large")
    token = stack.token("large")
    long = {"messages": [{"role": "user", "content": "word " * 4000} for _ in range(15)]}

    conversation = stack.call("POST", "/v1/large/formation", long, token)["conversation"]
    answer = stack.http.post(
        "/v1/large/formation",
        content=cbor2.dumps({"messages": MESSAGES}),
        headers={
            "authorization": f"Bearer {token}",
            "content-type": "application/cbor",
            "accept": "application/cbor",
        },
    )
    stack.wait_formed("large", conversation + 1)

    assert answer.headers["content-type"] == "application/cbor"
    assert cbor2.loads(answer.content)["result"]["conversation"] == conversation + 1


def test_the_tick_brings_back_work_whose_message_was_lost(stack: Stack) -> None:
    """With its queue message gone, a conversation is formed all the same: the Scheduler's tick finds the row."""
    stack.create_space("lost")
    token = stack.token("lost")
    source = _source(stack)
    functions = stack.client("lambda")
    functions.update_event_source_mapping(UUID=source, Enabled=False)
    _until(lambda: functions.get_event_source_mapping(UUID=source)["State"] == "Disabled", WAIT_S)

    conversation = stack.call("POST", "/v1/lost/formation", {"messages": MESSAGES}, token)["conversation"]
    stack.client("sqs").purge_queue(QueueUrl=stack.outputs["WorkQueueUrl"])
    assert _waiting(stack, "WorkQueueUrl") == 0
    _age_due_rows(stack)
    functions.update_event_source_mapping(UUID=source, Enabled=True)
    stack.wait_formed("lost", conversation, TICK_S)


def test_a_space_is_erased_with_the_rights_there_are(stack: Stack) -> None:
    """Forgetting by the writing function, and deletion by the managing one: rows and objects go."""
    stack.create_space("gone")
    token = stack.token("gone")
    long = {"messages": [{"role": "user", "name": "Ada", "content": "I live in Porto. " + "word " * 3000}]}
    conversation = stack.call("POST", "/v1/gone/formation", long, token)["conversation"]
    stack.wait_formed("gone", conversation)
    found = stack.call("POST", "/v1/gone/recall_structured", {"query": "Where does Ada live?"}, token)
    entities = [memory["entity"] for memory in found["memories"]]

    report = stack.call("POST", "/v1/gone/memory/forget", {"entities": entities}, token)
    stack.call("POST", "/admin/gone/delete_space", {"space_id": "gone"}, stack.token("*"))

    assert all("error" not in each or each["error"] is None for each in report["entities"])
    assert stack.send("GET", "/v1/gone/info", token=token).status_code == 404
    keys = stack.client("s3").list_objects_v2(Bucket=stack.outputs["BucketName"], Prefix="gone/")
    assert keys["KeyCount"] == 0


def test_a_function_has_no_other_rights(stack: Stack) -> None:
    """The rights are really checked: the reading function's role may not delete, nor read another's queue."""
    role = stack.resource("ReadsRole")
    table = f"arn:aws:dynamodb:us-east-1:000000000000:table/{stack.outputs['TableName']}"
    simulate = stack.client("iam").simulate_principal_policy(
        PolicySourceArn=f"arn:aws:iam::000000000000:role/{role}",
        ActionNames=["dynamodb:GetItem", "dynamodb:DeleteItem", "sqs:ReceiveMessage"],
        ResourceArns=[table],
    )

    decisions = {each["EvalActionName"]: each["EvalDecision"] for each in simulate["EvaluationResults"]}

    assert decisions["dynamodb:GetItem"] == "allowed"
    assert decisions["dynamodb:DeleteItem"] == decisions["sqs:ReceiveMessage"] == "implicitDeny"


def _source(stack: Stack) -> str:
    worker = stack.resource("Worker")
    (source,) = stack.client("lambda").list_event_source_mappings(FunctionName=worker)["EventSourceMappings"]
    return str(source["UUID"])


def _waiting(stack: Stack, queue: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    told = stack.client("sqs").get_queue_attributes(QueueUrl=stack.outputs[queue], AttributeNames=names)[
        "Attributes"
    ]
    return sum(int(told[name]) for name in names)


def _age_due_rows(stack: Stack) -> None:
    """As if an hour had passed: the sweep gives a hint a minute before it sends another."""
    table = DynamoTable(stack.aws.shared, stack.outputs["TableName"])
    rows = table.query(DUE_PK, *due_rows("formation"), limit=100)
    assert rows
    for sk, row in rows:
        table.transact([Update(DUE_PK, sk, assign={"at": int(str(row["at"])) - 3_600_000})])


def _until(holds: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)  # noqa: TID251 - another process is at work
