"""The command line: help without imports, answers for people and programs, and failures that say what to do."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from core.language import from_json, parse, to_canonical
from functions import cwts
from functions.cli.importing import Progress
from functions.cli.main import main
from functions.cli.terminal import now_s
from functions.failures import to_response, unauthenticated
from functions.keys import parse_public_key

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing listens
COMMANDS = [
    (), ("serve",), ("space",), ("space", "create"), ("space", "info"), ("remember",), ("recall",), ("import",), ("keygen",),
    ("token",), ("mcp",), ("init",), ("doctor",), ("kip",), ("kip", "run"), ("kip", "parse"), ("kip", "fixtures"),
    ("migrate",), ("capsule",), ("capsule", "export"), ("governance",), ("governance", "send"), ("facts",), ("facts", "recall"),
]  # fmt: skip


def run(*args: str, stdin: str | None = None, **env: str) -> Result:
    variables = {
        name: None
        for name in os.environ  # noqa: TID251 - a developer's own settings must not reach the commands
        if name.startswith(("NOEMA_", "ED25519", "ALLOW_", "MANAGERS"))
    }
    return CliRunner().invoke(main, list(args), input=stdin, env={**variables, **env})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps(command: tuple[str, ...]) -> None:
    """--help says what a command does and exits with 0."""
    result = run(*command, "--help")

    assert result.exit_code == 0
    assert len(result.output.split()) > 15


def test_help_imports_no_command() -> None:
    """The list of commands is shown without any command's imports."""
    code = (
        "import sys; from functions.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'httpx', 'boto3', 'cwt', 'cryptography', 'numpy'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_a_key_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    """The key file is readable by nobody else, and an existing one is never overwritten."""
    file = tmp_path / "k"

    made = json.loads(run("keygen", str(file), "--json").stdout)
    again = run("keygen", str(file))
    shown = run("keygen", str(file), "--show").stdout.strip()

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert parse_public_key(made["public_key"]).x
    assert shown == made["public_key"]
    assert again.exit_code == 1
    assert "exists already" in again.stderr


def test_a_minted_token_is_one_the_service_takes(tmp_path: Path) -> None:
    """What `token` prints verifies under the key that `keygen` made, with the claims that were asked for."""
    file = str(tmp_path / "k")
    public = json.loads(run("keygen", file, "--json").stdout)["public_key"]

    minted = run("token", "--key", file, "--sub", "ada", "--aud", "demo", "--scope", "read").stdout.strip()
    claims = cwts.verify(minted, (parse_public_key(public),), now_s())

    assert (claims.subject, claims.audience, claims.scope) == ("ada", "demo", "read")


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("token", "--key", "absent", "--sub", "a", "--aud", "b"), 1, "there is no key in absent"),
        (("token", "--key", "bad", "--sub", "a", "--aud", "b"), 1, "holds no private key"),
        (("token", "--key", "bad", "--sub", "a", "--aud", "*", "--life", "7200"), 1, "an hour at most"),
        (("token", "--key", "bad", "--sub", "", "--aud", "b"), 1, "no service admits ''"),
        (("token", "--key", "bad", "--sub", "token:ci", "--aud", "b"), 1, "no service admits 'token:ci'"),
        (("token", "--key", "bad", "--sub", "a", "--aud", "Bad Aud"), 1, "--aud: a space id is"),
        (("token", "--sub", "a", "--aud", "b", "--life", "0"), 2, "not in the range"),
        (("token", "--sub", "a"), 2, "Missing option '--aud'"),
        (("recall", "demo", "why?", "--url", NOWHERE), 1, "there is no service at"),
        (("recall", "demo", "why?", "--url", "nonsense"), 1, "there is no service at"),
        (("space", "info", "demo", "--url", NOWHERE), 1, "noema serve"),
        (("remember", "bad"), 2, "Missing option '-s' / '--space'"),
        (("remember", "absent", "-s", "demo"), 2, "No such file"),
        (("remember", "empty", "-s", "demo"), 1, "is empty"),
        (("remember", "binary", "-s", "demo"), 1, "is not UTF-8 text"),
        (("import", "binary", "-s", "demo"), 1, "is not UTF-8 text"),
        (("import", "bad", "-s", "demo"), 1, "neither JSON nor JSON lines"),
        (("forget",), 2, "No such command"),
        (("serve", "--host", "0.0.0.0", "--port", "0"), 1, "nobody would be admitted"),
    ],
)  # fmt: skip
def test_a_failure_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: int, told: str
) -> None:
    """A clear line on standard error, nothing on standard output, and an exit code that is not 0."""
    (tmp_path / "bad").write_text("no key !!")
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(tmp_path)

    result = run(*args)

    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_who_is_not_admitted_is_told_where_a_token_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service speaks of a header; the command line says how it is given one."""
    refusal = json.loads(to_response(unauthenticated()).body)
    monkeypatch.setattr(httpx.Client, "request", lambda *_, **__: httpx.Response(401, json=refusal))

    told = run("space", "info", "demo", "--url", NOWHERE).stderr

    assert "authentication failed" in told
    assert "NOEMA_TOKEN" in told
    assert "--token" in told


def test_a_failure_is_json_where_json_was_asked_for() -> None:
    """--json answers with one value also when the command fails."""
    result = run("recall", "demo", "why?", "--url", NOWHERE, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["message"] == f"there is no service at {NOWHERE}"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("remember", "absent", "-s", "demo"), "No such file"),
        (("recall", "demo"), "Missing argument 'QUESTION'"),
        (("space", "create", "demo", "--tier", "15"), "not in the range"),
        (("forget",), "No such command"),
    ],
)
def test_a_call_that_is_wrong_is_told_in_json_too(args: tuple[str, ...], told: str) -> None:
    """--json answers with one value also when the arguments are wrong; the exit code is 2."""
    result = run(*args, "--json")

    assert (result.exit_code, result.stderr) == (2, "")
    assert told in json.loads(result.stdout)["error"]["message"]


def test_an_import_goes_on_where_its_progress_cannot_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a file in a folder that takes no file, one line says so, once, and nothing fails."""
    progress = Progress.beside(tmp_path / "absent" / "talk.json", "space", restart=False)

    progress.note("a", 1)
    progress.note("b", 2)
    progress.finish()

    assert progress.done == {"a": 1, "b": 2}
    assert capsys.readouterr().err.count("is not kept") == 1


def test_kip_parse_judges_each_command() -> None:
    """An array of texts gives an array of verdicts of the same length."""
    result = run("kip", "parse", stdin='["DESCRIBE PRIMER", "FIND(", "\\u0000"]')

    verdicts = json.loads(result.stdout)

    assert verdicts[0] == {"accepts": True, "language": "META"}
    assert [each["accepts"] for each in verdicts] == [True, False, False]


def test_kip_parse_gives_the_tree_of_what_parses() -> None:
    """With --ast each command that parses comes with its tree, which stands in for the text in a request."""
    text = 'FIND(?x.name) WHERE { ?x {type: "Person", key: :k} } LIMIT 3'
    result = run("kip", "parse", "--ast", stdin=json.dumps([text, "FIND("]))

    found, refused = json.loads(result.stdout)

    assert to_canonical(from_json(found["ast"])) == to_canonical(parse(text))
    assert "ast" not in refused


@pytest.mark.parametrize("stdin", ["", "{}", "[1]", '["a"'])
def test_kip_parse_refuses_other_input(stdin: str) -> None:
    """Anything but a JSON array of texts is an error with an example."""
    result = run("kip", "parse", stdin=stdin)

    assert result.exit_code == 1
    assert "noema kip parse" in result.stderr


def test_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    """A key that cannot be read and a damaged store are failures with a remedy; a healthy place is not."""
    (tmp_path / "noema.db").write_bytes(b"this is no database" * 100)

    healthy = run(
        "doctor", "--json", NOEMA_URL=NOWHERE, NOEMA_DATA_DIR=str(tmp_path / "new"), NOEMA_STORE="embedded"
    )
    damaged = run("doctor", NOEMA_URL=NOWHERE, NOEMA_DATA_DIR=str(tmp_path), NOEMA_STORE="embedded")
    mistyped = run("doctor", "--json", NOEMA_URL=NOWHERE, ED25519_PUBKEYS="oops")

    assert json.loads(healthy.stdout)["ok"] is True
    assert damaged.exit_code == 1
    assert "noema.db" in damaged.stderr
    assert "Restore the folder" in damaged.stderr
    assert mistyped.exit_code == 1
    told = json.loads(mistyped.stdout)
    assert told["ok"] is False
    assert {each["verdict"] for each in told["checks"] if each["check"] == "settings"} == {"fail"}
