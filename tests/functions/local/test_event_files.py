"""tests/events/*.json, for `sam local invoke`: each is an event that its function answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from functions import management, reads, tick, worker, writes
from functions.adapters import adapters
from functions.bootstrap import Services, build
from functions.mcp import handler as mcp
from functions.routing import respond
from functions.settings import read_settings

EVENTS = Path(__file__).resolve().parents[2] / "events"
# In an order in which each finds what it needs.
FILES = (
    "reads-info",
    "management-create_space",
    "writes-formation",
    "worker-formation",
    "reads-recall",
    "mcp-tools_list",
    "tick-scheduled",
)
ROUTES = {
    "reads": reads.ROUTES,
    "management": management.ROUTES,
    "writes": writes.ROUTES,
    "mcp": mcp.ROUTES,
}


def event(name: str) -> dict[str, Any]:
    return json.loads((EVENTS / f"{name}.json").read_text("utf-8"))


def test_every_file_is_tried() -> None:
    """The folder holds these events, and the variables that `--env-vars` takes."""
    assert {each.stem for each in EVENTS.glob("*.json")} == {*FILES, "env-vars"}


def test_the_events_answer_one_another() -> None:
    """Over one store, in order: a space is made, a conversation taken in, formed, and recalled."""
    variables = event("env-vars")["Parameters"] | {"NOEMA_ENDPOINT_HOST": "127.0.0.1"}
    settings = read_settings(variables)
    services = build(settings, adapters(settings))

    answers = {name: _run(name, services) for name in FILES}

    for name in (
        "reads-info",
        "management-create_space",
        "writes-formation",
        "reads-recall",
        "mcp-tools_list",
    ):
        assert answers[name]["statusCode"] == 200, answers[name]
    assert answers["worker-formation"] == {"batchItemFailures": []}
    assert "green tea" in json.loads(answers["reads-recall"]["body"])["result"]["answer"]
    assert answers["tick-scheduled"].keys() == {"formation", "maintenance", "upkeep", "facts", "recall"}


def _run(name: str, services: Services) -> dict[str, Any]:
    function = name.partition("-")[0]
    if function == "worker":
        return worker.work(event(name), None, services)
    if function == "tick":
        return dict(tick.tick(services))
    return respond(event(name), None, ROUTES[function], lambda: services)


@pytest.mark.parametrize(
    "name", ["reads-info", "reads-recall", "management-create_space", "writes-formation", "mcp-tools_list"]
)
def test_an_http_event_has_the_members_of_api_gateway(name: str) -> None:
    """The members of payload format 2.0, as AWS documents them for a request without authorizer and cookies."""
    found = event(name)

    assert found["version"] == "2.0"
    assert {
        "routeKey",
        "rawPath",
        "rawQueryString",
        "headers",
        "requestContext",
        "isBase64Encoded",
    } <= found.keys()
    assert {"accountId", "apiId", "domainName", "domainPrefix", "http", "requestId", "routeKey", "stage", "time",
            "timeEpoch"} == found["requestContext"].keys()  # fmt: skip
    assert {"method", "path", "protocol", "sourceIp", "userAgent"} == found["requestContext"]["http"].keys()
