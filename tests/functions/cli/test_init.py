"""`noema init` in temporary homes and projects: merged, never overwritten, the same when run again."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from functions.cli import wiring
from functions.cli.main import main
from functions.cli.wiring import AGENTS, BEGIN, END, NAME, ByHand, Server, with_block

SERVER = Server(space="demo", agent="proj", command=("/opt/noema", "mcp", "--space", "demo"))
REMOTE = Server(space="demo", agent="proj", url="https://memory.example.org/", token="NOEMA_TOKEN")
FILES = {
    "claude": (".mcp.json", "CLAUDE.md"),
    "cursor": (".cursor/mcp.json", ".cursor/rules/noema.mdc"),
    "codex": (".codex/config.toml", "AGENTS.md"),
    "opencode": ("opencode.json", "AGENTS.md"),
    "vscode": (".vscode/mcp.json", ".github/copilot-instructions.md"),
}


class Place:
    """A home and a project in it."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "home" / "my proj"
        self.project.mkdir(parents=True)

    def init(self, *args: str, code: int = 0) -> Result:
        env = {"HOME": str(self.home), "NOEMA_URL": None, "NOEMA_SPACE": None, "NOEMA_TOKEN": None}
        given = ["init", "--folder", str(self.project), "--command", "/bin/sh", *args]
        result = CliRunner().invoke(main, given, env=env)
        assert result.exit_code == code, result.output
        return result

    def doctor(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        monkeypatch.chdir(self.project)
        env = {
            "HOME": str(self.home),
            "NOEMA_URL": "http://127.0.0.1:9",
            "NOEMA_DATA_DIR": str(self.home / "d"),
        }
        told = CliRunner().invoke(main, ["doctor", "--json"], env=env)
        value = json.loads(told.stdout)
        return [each for each in value["checks"] if each["check"] == "agents"]

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def text(self, path: str) -> str:
        return (self.project / path).read_bytes().decode()

    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.home)): p.read_bytes() for p in self.home.rglob("*") if p.is_file()}


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_every_agent_is_wired_in_its_own_words(place: Place) -> None:
    """Each configuration names the command, each model's file has the block; no other file is made."""
    place.init("--space", "demo")

    args = ["mcp", "--space", "demo", "--data", str(place.home / ".noema"), "--create"]
    local = {"command": "/bin/sh", "args": args}
    assert json.loads(place.text(".mcp.json")) == {"mcpServers": {NAME: {"type": "stdio", **local}}}
    assert json.loads(place.text(".cursor/mcp.json")) == {"mcpServers": {NAME: local}}
    assert json.loads(place.text(".vscode/mcp.json")) == {"servers": {NAME: {"type": "stdio", **local}}}
    assert tomllib.loads(place.text(".codex/config.toml")) == {"mcp_servers": {NAME: local}}
    assert json.loads(place.text("opencode.json"))["mcp"] == {
        "servers": {NAME: {"type": "local", "command": ["/bin/sh", *args]}}
    }
    for _, rules in FILES.values():
        assert place.text(rules).count(BEGIN) == place.text(rules).count(END) == 1
        assert 'agent_id` "my-proj"' in place.text(rules)
    assert place.text(".cursor/rules/noema.mdc").startswith("---\n")
    assert len(place.files()) == 9  # Codex and OpenCode read the same AGENTS.md


def test_running_it_again_changes_nothing(place: Place) -> None:
    """Not a byte, and no copy is made; the answer says so."""
    place.init()
    before = place.files()

    told = json.loads(place.init("--json").stdout)

    assert place.files() == before
    assert {each["verdict"] for each in told["files"]} == {"unchanged"}


def test_a_dry_run_changes_nothing_and_shows_what_would(place: Place) -> None:
    """With the lines of each file."""
    place.write("CLAUDE.md", "# Mine\n")

    told = place.init("--dry-run").output

    assert list(place.files()) == ["my proj/CLAUDE.md"]
    assert "would be created" in told
    assert "would be changed" in told
    assert "+## Memory" in told


THEIRS: dict[str, str] = {
    ".mcp.json": '{\n    "mcpServers": {\n        "github": {"command": "gh", "args": []}\n    },\n    "other": [1, 2.50, "é"]\n}\n',
    ".cursor/mcp.json": '{"mcpServers":{}}',
    ".codex/config.toml": '# my settings\nmodel = "o3"  # the best\n\n[mcp_servers.docs]\ncommand = "docs"\n\n[profiles.x]\na = 1',
    "opencode.json": '{"mcp": {"docs": {"type": "local", "command": ["docs"], "enabled": true}}, "theme": "dark"}',
    ".vscode/mcp.json": '{\n\t"inputs": [{"id": "mine"}],\n\t"servers": {"x": {"type": "stdio", "command": "x"}}\n}',
    "CLAUDE.md": "# Rules\r\n\r\nBe brief.\r\n",
    "AGENTS.md": "Do not panic.",
    ".github/copilot-instructions.md": "",
}


def test_what_is_there_stays(place: Place) -> None:
    """Every other server, setting and comment; a copy of each file that was changed lies beside it."""
    for path, text in THEIRS.items():
        place.write(path, text)

    place.init()

    claude = json.loads(place.text(".mcp.json"))
    assert claude["mcpServers"]["github"] == {"command": "gh", "args": []}
    assert (claude["other"], list(claude)) == ([1, 2.5, "é"], ["mcpServers", "other"])
    assert '\n        "noema"' in place.text(".mcp.json")  # their indentation
    assert place.text(".codex/config.toml").startswith(THEIRS[".codex/config.toml"])
    opencode = json.loads(place.text("opencode.json"))
    assert list(opencode["mcp"]) == ["docs", NAME]  # the layout that the file already has
    assert opencode["mcp"][NAME]["enabled"] is True
    vscode = json.loads(place.text(".vscode/mcp.json"))
    assert (list(vscode["servers"]), vscode["inputs"]) == (["x", NAME], [{"id": "mine"}])
    assert place.text("CLAUDE.md").startswith("# Rules\r\n\r\nBe brief.")
    assert place.text("AGENTS.md").startswith("Do not panic.\n\n<!--")
    for path, text in THEIRS.items():
        assert place.text(f"{path}.noema-backup") == text


def test_a_block_is_replaced_in_its_place(place: Place) -> None:
    """Text before and after it stays, also where the block was written by an older version."""
    place.write("CLAUDE.md", f"before\n\n{BEGIN}\nold words\n{END}\n\nafter\n")

    place.init("--only", "claude")

    text = place.text("CLAUDE.md")
    assert text.startswith("before\n\n<!--")
    assert text.endswith("-->\n\nafter\n")
    assert "old words" not in text


OTHER = {
    ".mcp.json": json.dumps({"mcpServers": {NAME: {"command": "theirs"}}}),
    ".cursor/mcp.json": json.dumps({"mcpServers": {NAME: {"command": "theirs"}}}),
    ".vscode/mcp.json": json.dumps({"servers": {NAME: {"command": "theirs"}}}),
    "opencode.json": json.dumps({"mcp": {"servers": {NAME: {"type": "local", "command": ["theirs"]}}}}),
    ".codex/config.toml": f'[mcp_servers.{NAME}]\ncommand = "theirs"\n\n[mcp_servers.{NAME}.env]\nA = "1"\n\n[x]\nb = 2\n',
}


def test_another_server_of_that_name_is_replaced_only_by_force(place: Place) -> None:
    """Left as it is with the lines to add; --force replaces it and keeps a copy."""
    for path, text in OTHER.items():
        place.write(path, text)

    told = place.init("--space", "demo", code=1).output
    assert {path: place.text(path) for path in OTHER} == OTHER
    assert "--force" in told
    assert '"noema": {' in told

    place.init("--space", "demo", "--force")
    for path, text in OTHER.items():
        assert "theirs" not in place.text(path)
        assert place.text(f"{path}.noema-backup") == text
    codex = tomllib.loads(place.text(".codex/config.toml"))
    assert (codex["x"], set(codex["mcp_servers"][NAME])) == ({"b": 2}, {"command", "args"})


ODD: dict[str, str] = {
    "comments": '{\n  // mine\n  "mcpServers": {}\n}',
    "a comma too many": '{"mcpServers": {},}',
    "a list": "[]",
    "servers that are a list": '{"mcpServers": []}',
    "a member twice": '{"a": 1, "a": 2}',
    "no JSON": "hello",
}


@pytest.mark.parametrize("name", ODD)
def test_a_file_that_cannot_be_merged_is_left_as_it_is(place: Place, name: str) -> None:
    """Its reason and the lines to add are shown, the exit code is 1, and the other files are wired."""
    file = place.write(".mcp.json", ODD[name])

    told = place.init("--only", "claude", code=1).output

    assert file.read_text() == ODD[name]
    assert "by hand" in told
    assert '"mcpServers": {' in told
    assert BEGIN in place.text("CLAUDE.md")


@pytest.mark.parametrize(
    "text",
    ["[", 'mcp_servers = { docs = { command = "d" } }', "mcp_servers = 7", b"\xff\xfe".decode("latin-1")],
)
def test_toml_that_cannot_be_added_to_is_left_as_it_is(place: Place, text: str) -> None:
    """Broken, or with its tables written in a line."""
    file = place.project / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))

    place.init("--only", "codex", code=1)

    assert file.read_bytes() == text.encode("latin-1")


def test_half_a_block_is_not_guessed_at() -> None:
    """One mark without the other."""
    for text in (BEGIN, f"text\n{END}\n", f"{END}\n{BEGIN}"):
        with pytest.raises(ByHand):
            with_block(text, SERVER)


def test_a_service_elsewhere_is_wired_by_its_url_and_no_token_is_written(place: Place) -> None:
    """Each agent's own spelling of a variable; the secret itself stands nowhere."""
    env = ("--url", "https://memory.example.org/", "--space", "demo")
    place.init(*env)
    endpoint = "https://memory.example.org/mcp/demo"

    assert json.loads(place.text(".mcp.json"))["mcpServers"][NAME] == {
        "type": "http", "url": endpoint, "headers": {"Authorization": "Bearer ${NOEMA_TOKEN}"},
    }  # fmt: skip
    assert json.loads(place.text(".cursor/mcp.json"))["mcpServers"][NAME] == {
        "url": endpoint, "headers": {"Authorization": "Bearer ${env:NOEMA_TOKEN}"},
    }  # fmt: skip
    vscode = json.loads(place.text(".vscode/mcp.json"))
    assert vscode["servers"][NAME]["headers"] == {"Authorization": "Bearer ${input:noema-token}"}
    assert [each["id"] for each in vscode["inputs"]] == ["noema-token"]
    assert json.loads(place.text("opencode.json"))["mcp"]["servers"][NAME] == {
        "type": "remote", "url": endpoint, "headers": {"Authorization": "Bearer {env:NOEMA_TOKEN}"},
    }  # fmt: skip
    assert tomllib.loads(place.text(".codex/config.toml"))["mcp_servers"][NAME] == {
        "url": endpoint, "bearer_token_env_var": "NOEMA_TOKEN",
    }  # fmt: skip
    before = place.files()
    place.init(*env)
    assert place.files() == before


def test_a_service_on_this_machine_is_wired_without_a_token(place: Place) -> None:
    """An empty bearer would be refused where none is needed."""
    place.init("--url", "http://127.0.0.1:8042")

    assert "NOEMA_TOKEN" not in "".join(place.text(config) for config, _ in FILES.values())


def test_a_home_is_wired_for_all_projects(place: Place) -> None:
    """The agents' files below the home, none in the project; agents without such a rules file get none."""
    place.init("--user")

    assert {name for name in place.files() if not name.startswith("my proj/")} == {
        ".claude.json", ".claude/CLAUDE.md", ".cursor/mcp.json", ".codex/config.toml", ".codex/AGENTS.md",
        ".config/opencode/opencode.json", ".config/opencode/AGENTS.md", ".config/Code/User/mcp.json",
    }  # fmt: skip
    assert not list(place.project.iterdir())


def test_only_some_agents(place: Place) -> None:
    """--only may be repeated; another name is no agent."""
    place.init("--only", "codex", "--only", "vscode")
    assert len(place.files()) == 4
    place.init("--only", "emacs", code=2)
    place.init("--space", "Not A Space", code=1)


def test_rights_and_links_stay(place: Place) -> None:
    """A file keeps its mode, a link stays a link to the file that was changed."""
    real = place.write("real.json", "{}")
    real.chmod(0o600)
    (place.project / ".mcp.json").symlink_to(real)

    place.init("--only", "claude")

    assert (place.project / ".mcp.json").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert NAME in json.loads(real.read_text())["mcpServers"]


def test_two_copies_of_one_file_do_not_meet(place: Place) -> None:
    """The first copy is never overwritten by a later one."""
    place.write("CLAUDE.md", "first")
    place.init("--only", "claude")
    place.init("--only", "claude", "--agent", "other")

    assert place.text("CLAUDE.md.noema-backup") == "first"
    assert BEGIN in place.text("CLAUDE.md.noema-backup-2")


def test_what_an_agent_reads_back_is_what_was_merged() -> None:
    """For every agent, from nothing and from a file with other servers."""
    for agent in AGENTS.values():
        for server in (SERVER, REMOTE):
            text = agent.merge("", server, False)
            assert agent.read(text) is not None
            assert agent.merge(text, server, False) == text
            assert agent.read("") is None
        assert wiring.snippet(agent, SERVER)


def test_doctor_knows_who_is_wired(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody; then all, with their files; then one without its block, and one whose command is gone."""
    assert [each["verdict"] for each in place.doctor(monkeypatch)] == ["ok"]
    assert "noema init" in place.doctor(monkeypatch)[0]["do"]

    place.init()
    assert [each["verdict"] for each in place.doctor(monkeypatch)] == ["ok"] * 5

    (place.project / "CLAUDE.md").write_text("mine\n")
    assert (
        "CLAUDE.md has no block"
        in next(e for e in place.doctor(monkeypatch) if e["verdict"] == "warn")["saw"]
    )
    place.write(".cursor/mcp.json", "{ // broken")
    assert sum(each["verdict"] == "warn" for each in place.doctor(monkeypatch)) == 2


def test_doctor_finds_a_command_that_is_gone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault with its remedy: the agent could not start the server."""
    place.init("--only", "codex", "--command", str(place.home / "gone"), "--force")
    monkeypatch.chdir(place.project)

    told = CliRunner().invoke(
        main, ["doctor"], env={"HOME": str(place.home), "NOEMA_URL": "http://127.0.0.1:9"}
    )

    assert told.exit_code == 1
    assert "noema init --force" in told.output
