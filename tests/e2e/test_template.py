"""template.yaml: valid, in step with the endpoints, and what it must promise about erasure and rights."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SAM = ROOT / ".venv-sam" / "bin"
FUNCTIONS = ("Reads", "Writes", "Management", "Mcp", "Worker", "Tick")


class Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, each kept as {tag: value}."""


def _tagged(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {tag: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {tag: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {tag: loader.construct_mapping(node, deep=True)}


Loader.add_multi_constructor("!", _tagged)


@pytest.fixture(name="resources", scope="module")
def _resources() -> dict[str, Any]:
    template = yaml.load((ROOT / "template.yaml").read_text("utf-8"), Loader)
    return template["Resources"]


@pytest.mark.parametrize(
    "command", [["sam", "validate", "--lint", "-t", "template.yaml"], ["cfn-lint", "template.yaml"]]
)
def test_the_tools_find_nothing(command: list[str]) -> None:
    """`sam validate --lint` and cfn-lint are clean."""
    tool = SAM / command[0]
    if not tool.exists():
        pytest.skip("scripts/test installs SAM CLI and cfn-lint into .venv-sam")
    env = {
        "PATH": "/usr/bin:/bin",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "SAM_CLI_TELEMETRY": "0",
        "HOME": "/tmp",
    }
    done = subprocess.run(
        [str(tool), *command[1:]], cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_endpoint_has_its_route() -> None:
    """The routes are those of functions/endpoints.py, each to the function that serves it, and one for the rest."""
    done = subprocess.run(
        [sys.executable, "scripts/template_routes.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_nothing_can_be_restored_that_was_erased(resources: dict[str, Any]) -> None:
    """No point-in-time recovery, no versions, no replicas, no lock on objects; and the stack's end erases nothing."""
    table, bucket = resources["Table"], resources["Bucket"]

    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": False}
    assert "StreamSpecification" not in table["Properties"]
    assert (
        not {"VersioningConfiguration", "ObjectLockEnabled", "ReplicationConfiguration"}
        & bucket["Properties"].keys()
    )
    assert table["DeletionPolicy"] == bucket["DeletionPolicy"] == "Retain"


def test_objects_are_written_once_by_policy(resources: dict[str, Any]) -> None:
    """A PUT without If-None-Match is denied to everybody, and nothing is public."""
    statements = {
        each["Sid"]: each for each in resources["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    }

    deny = statements["WriteOnce"]

    assert (deny["Effect"], deny["Principal"], deny["Action"]) == ("Deny", "*", "s3:PutObject")
    assert deny["Condition"]["Null"] == {"s3:if-none-match": "true"}
    assert set(resources["Bucket"]["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_its_own_role_without_wildcards(resources: dict[str, Any], name: str) -> None:
    """No action ends in *, every resource is one of the stack's, and logs go to a group with an end."""
    role = resources[f"{name}Role"]["Properties"]
    statements = [s for policy in role["Policies"] for s in policy["PolicyDocument"]["Statement"]]
    actions = [
        a for s in statements for a in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
    ]

    assert resources[name]["Properties"]["Role"] == {"GetAtt": f"{name}Role.Arn"}
    assert "ManagedPolicyArns" not in role
    assert not [action for action in actions if "*" in action]
    assert not [s for s in statements if s["Resource"] == "*"]
    assert resources[f"{name}Log"]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_only_who_must_may_delete(resources: dict[str, Any]) -> None:
    """The reading function deletes nothing and writes conversations alone; only the worker receives from the queue."""
    text = {name: str(resources[f"{name}Role"]) for name in FUNCTIONS}

    assert not re.search(r"s3:DeleteObject|dynamodb:DeleteItem|sqs:Receive", text["Reads"])
    assert _objects(resources, "Reads", "s3:PutObject") == ["${Bucket.Arn}/*/c/*"]
    assert not re.search(r"s3:(Put|Delete)Object", text["Tick"])
    assert [name for name in FUNCTIONS if "sqs:ReceiveMessage" in text[name]] == ["Worker"]


@pytest.mark.parametrize("name", ["Reads", "Writes", "Management", "Mcp", "Worker", "Tick"])
def test_whoever_takes_work_in_may_hint_at_it(resources: dict[str, Any], name: str) -> None:
    """Questions to be answered later come to the reading function: without the right, each would be a 500."""
    assert "sqs:SendMessage" in str(resources[f"{name}Role"])


def _objects(resources: dict[str, Any], name: str, action: str) -> list[str]:
    """The objects that a function may do something with."""
    (policy,) = resources[f"{name}Role"]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    return [each["Resource"]["Sub"] for each in statements if action in each["Action"]]


def test_a_message_that_fails_ends_with_the_dead_letters(resources: dict[str, Any]) -> None:
    """Both queues are FIFO, a failure in a batch is reported alone, and the visibility outlasts the worker."""
    queue, letters = resources["WorkQueue"]["Properties"], resources["DeadLetters"]["Properties"]
    worker = resources["Worker"]["Properties"]

    assert queue["FifoQueue"]
    assert letters["FifoQueue"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 5
    assert resources["WorkerSource"]["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert queue["VisibilityTimeout"] >= 6 * worker["Timeout"]


def test_models_may_be_used_as_far_as_they_were_named(resources: dict[str, Any]) -> None:
    """Bedrock, secret and key each by their own parameter; who seals a key cannot open it; managing invokes nothing."""
    policies = {
        name: each["Properties"] for name, each in resources.items() if each["Type"] == "AWS::IAM::Policy"
    }
    rights = {
        name: (statement["Action"], statement["Resource"])
        for name, policy in policies.items()
        for statement in policy["PolicyDocument"]["Statement"]
        if name in ("SealPolicy", "OpenPolicy", "ModelPolicy", "ModelKeyPolicy")
    }

    assert rights == {
        "SealPolicy": ("kms:GenerateDataKey", {"GetAtt": "SpaceKey.Arn"}),
        "OpenPolicy": ("kms:Decrypt", {"GetAtt": "SpaceKey.Arn"}),
        "ModelPolicy": (
            ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"],
            {"Ref": "BedrockModelArns"},
        ),
        "ModelKeyPolicy": ("secretsmanager:GetSecretValue", {"Ref": "ModelKeySecretArn"}),
    }
    assert policies["SealPolicy"]["Roles"] == [{"Ref": "ManagementRole"}]
    for name in ("OpenPolicy", "ModelPolicy", "ModelKeyPolicy"):
        assert [role["Ref"] for role in policies[name]["Roles"]] == [
            "ReadsRole",
            "WritesRole",
            "McpRole",
            "WorkerRole",
        ]
    key = resources["SpaceKey"]
    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["DeletionPolicy"] == "Retain"


def test_models_cost_nothing_by_default() -> None:
    """A stack deployed as it is uses none, lets nobody bring one, and makes no key."""
    template = yaml.load((ROOT / "template.yaml").read_text("utf-8"), Loader)
    parameters = template["Parameters"]

    defaults = {
        name: parameters[name]["Default"]
        for name in ("Model", "SpaceModels", "BedrockModelArns", "RecallModel")
    }

    assert defaults == {"Model": "off", "SpaceModels": "off", "BedrockModelArns": "", "RecallModel": ""}
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert variables["NOEMA_MODEL"] == {"Ref": "Model"}
    assert variables["NOEMA_MODEL_KEY"] == {"If": ["HasModelKey", {"Sub": "secret:${ModelKeySecretArn}"}, ""]}


def test_the_container_is_off_and_may_no_more_than_the_worker(resources: dict[str, Any]) -> None:
    """Everything of it hangs on one parameter that is empty; its rights are the worker's without receiving, and no wildcard."""
    template = yaml.load((ROOT / "template.yaml").read_text("utf-8"), Loader)
    parts = [name for name in resources if name.startswith("Task")]
    assert template["Parameters"]["TaskImage"]["Default"] == ""
    assert sorted(parts) == ["TaskCluster", "TaskDefinition", "TaskExecutionRole", "TaskLog", "TaskRole"]
    assert {resources[name]["Condition"] for name in parts} == {"HasTask"}

    statements = resources["TaskRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    plain = [each["If"][1] if "If" in each else each for each in statements]
    actions = {
        a for each in plain for a in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    assert not [action for action in actions if "*" in action]
    assert not [each for each in plain if each["Resource"] == "*"]
    assert {action for action in actions if action.startswith("sqs")} == {"sqs:SendMessage"}


def test_the_container_has_the_functions_environment(resources: dict[str, Any]) -> None:
    """Each variable of the functions that its work reads, with the same value; keys that admit callers are not among them."""
    template = yaml.load((ROOT / "template.yaml").read_text("utf-8"), Loader)
    functions = template["Globals"]["Function"]["Environment"]["Variables"]
    (container,) = resources["TaskDefinition"]["Properties"]["ContainerDefinitions"]
    own = {each["Name"]: each["Value"] for each in container["Environment"]}

    assert own == {
        name: value
        for name, value in functions.items()
        if name.startswith("NOEMA_") and name != "NOEMA_ADMIN_PUBKEYS"
    }
