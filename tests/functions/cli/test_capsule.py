"""`noema capsule`: over a service, and over a store's folder in this process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from core.authority import Principal
from core.migration.legacy import LegacyConcept, MigrationInput
from core.protocol.request import read_request
from functions.adapters import adapters
from functions.bootstrap import build
from functions.cli import capsule as command
from functions.kip import envelope_of
from functions.local.library import open_directory
from functions.settings import Settings
from tests.functions.world import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A service that the command's client reaches without a socket, with one Person in it."""
    made = World().make_space().make_space("other")
    said = 'CREATE CONCEPT ?c {TYPE "Person" NAME "Ada"}'
    assert made.ask("POST", "/v1/demo/execute_kip", said, token=made.token()).status == 200

    class Client:
        def __init__(self, url: str, token: str | None) -> None:
            pass

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def result(self, method: str, path: str, body: Any = None) -> Any:
            token = made.admin_token() if path.startswith("/admin") else made.token(aud="*")
            answer = made.ask(method, path, body, token=token)
            if answer.status != 200:
                raise command.Failure(answer.json["error"]["message"], code=answer.code)
            return answer.result

    monkeypatch.setattr(command, "Client", Client)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store in a folder, with a space of three persons."""
    home = tmp_path / "store"
    open_directory(home, "demo").close()
    for name in ("Ada", "Bob", "Cy"):
        create(home, name)
    return home


def create(home: Path, name: str) -> None:
    settings = Settings(store="embedded", data_dir=str(home), insecure_local=True)
    services = build(settings, adapters(settings))
    said = read_request(envelope_of(f'CREATE CONCEPT ?c {{TYPE "Person" NAME "{name}"}}'))
    services.kip.execute("demo", said, Principal("me"), deadline=services.clock.now() + 10_000)
    services.table.close()  # type: ignore[attr-defined]  # the embedded one


def run(*args: str, ok: bool = True) -> Any:
    done = CliRunner().invoke(command.capsule, list(args), env={"NOEMA_URL": None, "NOEMA_SPACE": None})
    assert (done.exit_code == 0) is ok, done.output
    return done.output


def test_out_of_one_service_and_into_a_space(world: World, tmp_path: Path) -> None:
    """Exported, verified, previewed and imported; again it has no effect; a stale plan is refused."""
    file = str(tmp_path / "demo.json")
    assert "1 records" in run("export", file, "--space", "demo")
    assert "Intact: snapshot of urn:noema:space:demo" in run("verify", file)
    shown = json.loads(run("preview", file, "--space", "other", "--json"))
    plan = shown["import_plan_digest"]
    assert "would be imported: 1 create" in run("preview", file, "--space", "other")

    assert "committed: 1 concept" in run("import", file, "--space", "other", "--plan", plan)
    assert "no_effect" in run("import", file, "--space", "other")
    assert "would do something else" in run("import", file, "--space", "other", "--plan", plan, ok=False)
    assert "Restored 1 records" in run(
        "import", file, "--space", "fork", "--mode", "restore", "--accept-unsigned"
    )


def test_a_tampered_file_is_refused(world: World, tmp_path: Path) -> None:
    """A word changed in a file fails verification with exit code 1 and the code in JSON."""
    file = tmp_path / "demo.json"
    run("export", str(file), "--space", "demo")
    file.write_text(file.read_text("utf-8").replace('"Ada"', '"Eve"'), "utf-8")

    error = json.loads(run("verify", str(file), "--json", ok=False))["error"]

    assert error["code"] == "DigestMismatch"


@pytest.mark.parametrize("name", ["backup.lines", "backup.gz"])
def test_a_folder_is_backed_up_and_restored(folder: Path, tmp_path: Path, name: str) -> None:
    """A store is exported line by line, its own key is known to it, and a new space is made of it."""
    file = tmp_path / name
    told = json.loads(run("export", str(file), "--space", "demo", "--data", str(folder), "--json"))
    assert told["counts"]["concepts"] == 3
    assert "signed by an unknown key" in run("verify", str(file))
    assert "signed by this-deployment" in run("verify", str(file), "--data", str(folder))
    key = told["proofs"][0]["verification_method"]
    assert "signed by ours" in run("verify", str(file), "--signer", f"ours={key}")

    done = run("import", str(file), "--space", "again", "--mode", "restore", "--data", str(folder))

    assert "Restored 3 records into again (signed by this-deployment)" in done
    preview = json.loads(run("preview", str(file), "--space", "again", "--data", str(folder), "--json"))
    assert preview["would"] == "no_effect"


def test_a_backup_holds_what_its_restoring_needs(folder: Path, tmp_path: Path) -> None:
    """Packages of the space's own go along unless told otherwise; a restore puts them into force if asked to."""
    settings = Settings(store="embedded", data_dir=str(folder), insecure_local=True)
    services = build(settings, adapters(settings))
    page = MigrationInput(source="crm", concepts=[LegacyConcept(type="Drug", name="Aspirin")])
    services.migration.migrate(command._OPERATOR, "demo", page, services.clock.now() + 10_000)
    services.table.close()  # type: ignore[attr-defined]  # the embedded one
    file = str(tmp_path / "backup.gz")
    run("export", file, "--space", "demo", "--data", str(folder))
    restore = ("import", file, "--space", "again", "--mode", "restore", "--data", str(folder))

    assert "--activate-schema" in run(*restore, ok=False)
    assert "into again" in run(*restore, "--activate-schema")


def test_a_cut_file_is_refused(folder: Path, tmp_path: Path) -> None:
    """A backup without its last line, and half a gzip file, are refused and leave no space."""
    whole, cut = tmp_path / "a.lines", tmp_path / "b.lines"
    run("export", str(whole), "--space", "demo", "--data", str(folder))
    lines = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:-1]))
    half = tmp_path / "c.gz"
    half.write_bytes(gzip.compress(whole.read_bytes())[:-9])

    for file in (cut, half):
        run("verify", str(file), ok=False)
        run("import", str(file), "--space", "again", "--mode", "restore", "--data", str(folder), ok=False)
    again = str(tmp_path / "d.lines")
    assert "there is no space again" in run(
        "export", again, "--space", "again", "--data", str(folder), ok=False
    )


def test_a_delta_goes_on_from_a_backup(folder: Path, tmp_path: Path) -> None:
    """What is new since a seq goes into the restored space."""
    backup, news = str(tmp_path / "a.lines"), str(tmp_path / "b.json")
    seq = json.loads(run("export", backup, "--space", "demo", "--data", str(folder), "--json"))[
        "snapshot_seq"
    ]
    run("import", backup, "--space", "again", "--mode", "restore", "--data", str(folder))
    create(folder, "Di")
    run("export", news, "--space", "demo", "--since", str(seq), "--data", str(folder))

    assert "committed: 1 concept" in run("import", news, "--space", "again", "--data", str(folder))


def test_bad_options_are_told(world: World, tmp_path: Path) -> None:
    """A mapping without an id, and a key that is none, are named."""
    file = str(tmp_path / "demo.json")
    run("export", file, "--space", "demo")

    assert "ref=id" in run("preview", file, "--space", "other", "--map", "c:1", ok=False)
    assert "--signer" in run("verify", file, "--signer", "x=notakey", ok=False)
