"""Every call that the documents show is made, and works."""

import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from functions.cli.main import _COMMANDS
from functions.documents import _STATIC
from functions.endpoints import ENDPOINTS, find
from tests.functions.world import Answer, World, served

DOCUMENTS = {"api.md": Path(__file__).parents[2] / "docs" / "api.md", "SKILL.md": _STATIC / "SKILL.md"}
FENCE = re.compile(r"```sh\n(.*?)```", re.DOTALL)


class Shown(msgspec.Struct):
    """One curl of a document."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes | None


def shown(text: str) -> list[Shown]:
    """The curls in a document's shell blocks, in order."""
    calls: list[Shown] = []
    for block in FENCE.findall(text):
        words = shlex.split(block.replace("\\\n", " "), comments=True)
        starts = [place for place, word in enumerate(words) if word == "curl"]
        ends = [*starts[1:], len(words)] if starts else []
        calls += [read(words[start + 1 : end]) for start, end in zip(starts, ends, strict=True)]
    return calls


def read(words: list[str]) -> Shown:
    method, url, headers, body = "", "", {}, None
    rest = iter(words)
    for word in rest:
        if word in ("-H", "-X", "-d", "--data-binary"):
            value = next(rest)
            if word == "-H" and ":" in value:
                name, _, content = value.partition(":")
                headers[name.strip().lower()] = content.strip()
            elif word == "-H" and value == "$JSON":
                headers["content-type"] = "application/json"
            elif word == "-X":
                method = value
            elif word in ("-d", "--data-binary"):
                body = value.encode()
        elif word.startswith("$NOEMA"):
            url = word.removeprefix("$NOEMA")
        else:
            assert word == "-s", f"this test does not know what curl does with {word}"
    headers.pop("authorization", None)
    path, _, query = url.partition("?")
    return Shown(method or ("GET" if body is None else "POST"), path, query, headers, body)


def made(world: World, call: Shown) -> Answer:
    token = world.admin_token() if call.path.startswith("/admin") else world.token()
    return world.ask(call.method, call.path, call.body, token=token, headers=call.headers, query=call.query)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_call_shown_works(name: str) -> None:
    """Made in the order of the document, but for the deletion, which comes last."""
    world = World()
    calls = shown(DOCUMENTS[name].read_text("utf-8"))
    assert len(calls) >= 6
    if name == "SKILL.md":
        world.make_space()
    person = capsule = b""
    for call in sorted(calls, key=lambda each: each.path.endswith("/delete_space")):
        if call.body is not None:
            call.body = call.body.replace(b"$PERSON", person).replace(b"$CAPSULE", capsule)
        answer = made(world, call)
        if call.path.endswith("/get_or_init_user"):
            person = answer.result["id"].encode()
        elif call.path.endswith("/capsules/export"):
            capsule = msgspec.json.encode(answer.result)
        later = "prefer" in call.headers or call.path.endswith("/shadow_eval")
        assert answer.status == (202 if later else 200), (
            call.method,
            call.path,
            answer.body,
        )


def test_the_api_page_shows_every_route() -> None:
    """No endpoint that is served is missing from docs/api.md (an icon needs no example)."""
    calls: list[Any] = shown(DOCUMENTS["api.md"].read_text("utf-8"))
    names = {find(call.method, call.path)[0] for call in calls}

    assert names == set(served()) - {"favicon", "touch_icon", "space_status"}
    assert "/status" in DOCUMENTS["api.md"].read_text("utf-8")


def test_the_missing_routes_are_named() -> None:
    """What answers 501 is listed as such."""
    text = DOCUMENTS["api.md"].read_text("utf-8").split("## Where this differs")[1]
    for endpoint in ENDPOINTS.values():
        if endpoint.function is None:
            last = endpoint.path.replace("/{rest+}", "").rstrip("}").split("/")[-1].strip("{}")
            known = {
                "space": "MCP",
                "memory": "Memory Interface",
                "sources": "Memory Interface",
                "ref": "Memory Interface",
                "status": "runtime",
            }
            known |= {"responses": "attention"}
            assert known.get(last, last) in text, endpoint.path


def test_nobody_is_told_to_install_a_package_named_like_this_one() -> None:
    """The name `noema` on PyPI is somebody else's package, so no text says to install it from there."""
    root = Path(__file__).parents[2]
    texts = [root / "README.md", *(root / "docs").rglob("*.md")]
    texts += [path for folder in ("core", "functions", "infra") for path in (root / folder).rglob("*.*")]
    told = re.compile(rb"(?:pip install|uvx|pipx \w+)[^\n]*?\s['\"]?noema\b")
    assert [path.name for path in texts if path.suffix != ".pyc" and told.search(path.read_bytes())] == []


def test_the_readme_names_every_command_and_every_page() -> None:
    """Whoever reads the README alone has heard of each command, and is led to each page of docs/."""
    root = Path(__file__).parents[2]
    readme = (root / "README.md").read_text("utf-8")

    assert [name for name in _COMMANDS if f"`noema {name}" not in readme] == []
    assert [page.name for page in (root / "docs").glob("*.md") if f"](docs/{page.name})" not in readme] == []
