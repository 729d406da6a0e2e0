"""The command line against a running service: remember, import, interrupt, resume, ask."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local import ROOT, Service, environment, serving

NOEMA = [sys.executable, "-P", "-m", "functions.cli"]


@pytest.fixture(name="service", scope="module")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("data"), "--quiet") as service:
        yield service


def noema(service: Service, *args: str, code: int = 0, stdin: str | None = None) -> str:
    """The standard output of a command that must end with `code`."""
    done = subprocess.run(
        [*NOEMA, *args], env=environment(NOEMA_URL=service.url), cwd=ROOT, input=stdin,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_space_is_made_and_shown(service: Service) -> None:
    """Create, then info; creating it again is refused."""
    noema(service, "space", "create", "shown", "--owner", "ada", "--tier", "1")

    info = json.loads(noema(service, "space", "info", "shown", "--json"))

    assert (info["id"], info["owner"], info["tier"]["tier"]) == ("shown", "ada", 1)
    assert "exists already" in noema(service, "space", "create", "shown", code=1)
    assert "owner" in noema(service, "space", "info", "shown")
    assert "noema:" in noema(service, "space", "info", "absent", code=1)


def test_a_text_is_remembered_once_and_recalled(service: Service, tmp_path: Path) -> None:
    """The same file sent twice is one conversation; the answer cites it."""
    noema(service, "space", "create", "notes")
    file = tmp_path / "notes.txt"
    file.write_text("I moved to Lisbon in May 2024. I prefer green tea. 你好 \u200f")

    first = json.loads(noema(service, "remember", "-s", "notes", str(file), "--json"))
    second = json.loads(noema(service, "remember", "-s", "notes", "-", "--json", stdin=file.read_text()))
    found = json.loads(noema(service, "recall", "notes", "What do I prefer to drink?", "--json"))

    assert first["conversations"] == second["conversations"] == [1]
    assert "green tea" in found["answer"]
    assert found["memories"]
    assert "green tea" in noema(service, "recall", "notes", "What do I prefer to drink?")


def test_an_interrupted_import_resumes(service: Service, tmp_path: Path) -> None:
    """Killed in the middle and run again, every conversation of the file is there exactly once, in order."""
    count = 60
    lines = [
        {"messages": [{"role": "user", "name": "Bo", "content": f"Item {n} is box {n}."}]}
        for n in range(count)
    ]
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    noema(service, "space", "create", "talk")
    _kill_when_begun(service, file)
    kept = json.loads(Path(f"{file}.noema-import").read_text())["done"]

    told = json.loads(noema(service, "import", "-s", "talk", str(file), "--json"))

    assert 0 < len(kept) < count
    assert told["resumed"] == len(kept)
    assert told["conversations"] == list(range(1, count + 1))
    assert told["failed"] == []
    assert not Path(f"{file}.noema-import").exists()
    assert service.call("GET", "/v1/talk/info")["conversations"] == count


def _kill_when_begun(service: Service, file: Path) -> None:
    process = subprocess.Popen(
        [*NOEMA, "import", "-s", "talk", str(file)], env=environment(NOEMA_URL=service.url), cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not Path(f"{file}.noema-import").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)  # noqa: TID251 - another process is at work
    process.kill()
    process.wait()


def test_a_locomo_file_is_imported_whole(service: Service, tmp_path: Path) -> None:
    """Each session is a conversation with its date; --create makes the space; a second import adds nothing."""
    file = tmp_path / "locomo.json"
    file.write_text(
        json.dumps(
            {
                "sample_id": "conv-1",
                "conversation": {
                    "session_1_date_time": "1:56 pm on 8 May, 2023",
                    "session_1": [{"speaker": "Ann", "text": "I adopted a cat called Miso."}],
                    "session_2_date_time": "2:00 pm on 9 May, 2023",
                    "session_2": [{"speaker": "Bo", "text": "I work at the harbour."}],
                },
            }
        )
    )

    first = json.loads(noema(service, "import", "-s", "locomo", "--create", str(file), "--json"))
    again = json.loads(noema(service, "import", "-s", "locomo", "--create", str(file), "--json"))

    assert first["conversations"] == again["conversations"] == [1, 2]
    assert first["messages"] == 2
    assert service.call("GET", "/v1/locomo/info")["conversations"] == 2


def test_what_the_service_refuses_is_told(service: Service, tmp_path: Path) -> None:
    """An unknown space and an empty message end the command with the service's own words."""
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": ""}]}))
    noema(service, "space", "create", "strict")

    assert "noema:" in noema(service, "recall", "absent_space", "why?", code=1)
    assert "noema:" in noema(service, "import", "-s", "strict", str(file), code=1)
    assert "noema:" in noema(service, "import", "-s", "Not A Space", str(file), code=1)


def test_doctor_is_content_with_a_running_service(service: Service) -> None:
    """Service and clock are checked against the one that runs."""
    told = json.loads(noema(service, "doctor", "--json"))

    verdicts = {each["check"]: each["verdict"] for each in told["checks"]}
    assert told["ok"] is True
    assert verdicts["service"] == verdicts["clock"] == "ok"
