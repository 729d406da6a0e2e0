"""The official `mcp` client against a running service: over HTTP on the local gateway, and over stdio."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from functions.mcp.handler import TOOLBOX
from functions.minting import generate_key, mint
from tests.e2e.local import ROOT, Service, environment, serving

TIMEOUT_S = 60
MODES = ["legacy", "auto", "2026-07-28"]  # greet; discover, and greet if there is none; the stateless form
NOEMA = ["-P", "-m", "functions.cli", "mcp"]


@pytest.fixture(name="service", scope="module")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("data"), "--quiet") as service:
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        yield service


def run(story: Any) -> Any:
    """Run a story, which must end in time."""

    async def timed() -> Any:
        return await asyncio.wait_for(story, TIMEOUT_S)

    return asyncio.run(timed())


@asynccontextmanager
async def over_http(url: str, mode: str) -> AsyncIterator[Client]:
    async with Client(streamable_http_client(url), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_stdio(*args: str, mode: str, **env: str) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=sys.executable, args=[*NOEMA, *args], env=environment(**env), cwd=ROOT
    )
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


async def visit(client: Client, space: str, agent: str) -> None:
    """What an agent does: look, remember, search, be told no. The client validates every answer by itself."""
    if client.server_info is not None and client.instructions is not None:  # unknown where nobody was greeted
        assert client.server_info.name == "noema"
        assert "anda_brain_recall_memory" in client.instructions
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == [tool["name"] for tool in TOOLBOX.listed]

    info = await call(client, "anda_brain_get_space_info", {})
    assert info["id"] == space
    stored = await call(client, "memory_add", {"agent_id": agent, "text": "Releases are cut on Tuesdays."})
    assert stored == {"agent_id": agent, "stored": True}
    found = await call(client, "memory_search", {"agent_id": agent, "query": "releases", "explain": True})
    assert found["explained"][0]["text"] == "Releases are cut on Tuesdays."
    absent = {"agent_id": agent, "on_missing": "empty"}
    assert await call(client, "checkpoint_resume", absent) == {"found": False, "agent_id": agent}
    talk = {"messages": [{"role": "user", "name": "Ada", "content": "I moved to Lisbon in May."}]}
    assert (await call(client, "anda_brain_remember_conversation", talk))["conversation"] >= 1

    refused = await client.call_tool("memory_search", {"agent_id": "", "query": "x"})
    assert (refused.is_error, refused.structured_content) == (True, None)
    with pytest.raises(MCPError) as told:
        await client.call_tool("anda_brain_wiki_search", {})
    assert told.value.error.code == -32602


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, result.content
    return result.structured_content


@pytest.mark.parametrize("mode", MODES)
def test_over_http(service: Service, mode: str) -> None:
    """Every era, over real HTTP on the local gateway."""

    async def story() -> None:
        async with over_http(f"{service.url}/mcp/demo", mode) as client:
            await visit(client, "demo", f"http {mode}")

    run(story())


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio_here(tmp_path: Path, mode: str) -> None:
    """Every era, with the memory in a folder that the process itself opens; the space is made when asked for."""

    async def story() -> None:
        data = ("-s", "own", "--data", str(tmp_path), "--create")
        async with over_stdio(*data, mode=mode) as client:
            await visit(client, "own", "me")
        async with over_stdio(*data, mode=mode) as again:
            found = await call(again, "memory_search", {"agent_id": "me", "query": "releases"})
        assert found["facts"] == ["Releases are cut on Tuesdays."]

    run(story())


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio_to_a_service_elsewhere(service: Service, mode: str) -> None:
    """Every era, each message handed on over HTTP."""

    async def story() -> None:
        async with over_stdio("-s", "demo", "--url", service.url, mode=mode) as client:
            await visit(client, "demo", f"stdio {mode}")

    run(story())


def test_what_is_told_over_mcp_is_formed_and_recalled(service: Service) -> None:
    """Remembered by one client, formed in the background, recalled by another."""

    async def story() -> None:
        async with over_http(f"{service.url}/mcp/demo", "auto") as client:
            talk = {"messages": [{"role": "user", "name": "Ada", "content": "I prefer green tea."}]}
            number = (await call(client, "anda_brain_remember_conversation", talk))["conversation"]
            service.wait_formed("demo", number)
            found = await call(
                client, "anda_brain_recall_memory", {"query": "What does Ada prefer to drink?"}
            )
        assert found["found"] is True
        assert "green tea" in found["content"]
        assert found["memories"]

    run(story())


def test_a_service_with_keys_takes_the_token(tmp_path: Path) -> None:
    """NOEMA_TOKEN reaches the service through stdio; without it every call fails, and says why."""
    private, public = generate_key()
    keys = {"ED25519_PUBKEYS": public, "NOEMA_ADMIN_PUBKEYS": public, "MANAGERS": "boss"}
    with serving(tmp_path, "--quiet", **keys) as service:
        now = now_s()
        admin = mint(private, subject="boss", audience="*", scope="write", now_s=now)
        wish = {"user": "ada", "space_id": "demo", "tier": 1}
        service.call("POST", "/admin/create_space", wish, authorization=f"Bearer {admin}")
        token = mint(private, subject="ada", audience="demo", scope="*", now_s=now)

        async def story() -> None:
            there = ("-s", "demo", "--url", service.url)
            async with over_stdio(*there, mode="auto", NOEMA_TOKEN=token) as client:
                await visit(client, "demo", "keyed")
            with pytest.raises(ExceptionGroup) as told:
                async with over_stdio(*there, mode="legacy"):
                    pass
            assert "authentication failed" in str(first(told.value))

        run(story())


def test_what_init_wrote_starts(tmp_path: Path) -> None:
    """The command in .mcp.json, started by a client with its bare environment, serves the memory that it names."""
    home, project, starter = tmp_path / "home", tmp_path / "project", tmp_path / "noema"
    home.mkdir()
    project.mkdir()
    starter.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m functions.cli "$@"\n')
    starter.chmod(0o755)
    args = ["init", "--only", "claude", "--folder", str(project), "--command", str(starter)]
    env = environment(HOME=str(home))
    subprocess.run([str(starter), *args], env=env, capture_output=True, check=True, timeout=60)
    wired = json.loads((project / ".mcp.json").read_text("utf-8"))["mcpServers"]["noema"]

    async def story() -> None:
        bare = {"PATH": env["PATH"], "HOME": str(home)}
        parameters = StdioServerParameters(
            command=wired["command"], args=wired["args"], env=bare, cwd=project
        )
        async with Client(stdio_client(parameters), mode="auto") as client:
            await visit(client, "main", "project")

    run(story())
    assert (home / ".noema" / "noema.db").exists()


def test_two_processes_share_one_memory(tmp_path: Path) -> None:
    """Two clients start a server each over the same folder; what one stores the other finds at once."""
    data = ("-s", "own", "--data", str(tmp_path), "--create")

    async def story() -> None:
        async with over_stdio(*data, mode="auto") as one, over_stdio(*data, mode="legacy") as two:
            for n in range(5):
                await call(one, "memory_add", {"agent_id": "a", "text": f"Note {n} of the first."})
                await call(two, "memory_add", {"agent_id": "a", "text": f"Note {n} of the second."})
            found = await call(two, "memory_search", {"agent_id": "a", "query": "note", "top_k": 20})
        assert found["count"] == 10

    run(story())


def first(error: BaseException) -> BaseException:
    """The error at the bottom of nested groups."""
    return first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def now_s() -> int:
    return int(time.time())  # noqa: TID251 - the service under test checks the real time
