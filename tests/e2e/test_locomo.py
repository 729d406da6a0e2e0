"""The main job on real input: a year of two people's talk is imported, and questions about it cite the right turns.

The data set (LoCoMo) may not be shipped; the test reads it from beside the repository and skips where it is not.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.local import ROOT, environment, serving

DATA = ROOT.parent / "shared" / "bench" / "locomo-dev.json"
SAMPLE = "conv-26"
MISLEADING = 5  # questions about what was never said: the honest answer to them cites nothing
AT_LEAST = 0.7  # of the other questions; 0.73 measured


def test_questions_about_a_year_of_talk_cite_the_right_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most questions that have an answer are answered with one of the turns that the data set names as evidence."""
    if not DATA.exists():
        pytest.skip("the LoCoMo file is not beside the repository (../shared/bench/locomo-dev.json)")
    sample = next(each for each in json.loads(DATA.read_text("utf-8")) if each["sample_id"] == SAMPLE)
    told = {turn["dia_id"]: turn["text"] for turns in _sessions(sample) for turn in turns}
    asked = [
        each
        for each in sample["qa"]
        if each["category"] != MISLEADING and any(turn in told for turn in each["evidence"])
    ]
    with serving(tmp_path, "--quiet") as service:
        command = [
            sys.executable,
            "-P",
            "-m",
            "functions.cli",
            "import",
            "-s",
            "conv",
            "--create",
            "--sample",
            SAMPLE,
        ]
        done = subprocess.run(
            [*command, "--json", str(DATA)], env=environment(NOEMA_URL=service.url), cwd=ROOT,
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        answers = [
            service.call("POST", "/v1/conv/recall_structured", {"query": q["question"]}) for q in asked
        ]

    hits = [
        _cites(answer, [told[e] for e in question["evidence"] if e in told])
        for answer, question in zip(answers, asked, strict=True)
    ]

    assert json.loads(done.stdout)["messages"] == len(told)
    with capsys.disabled():
        print(f"\n  {SAMPLE}: {len(told)} turns; {sum(hits)} of {len(hits)} questions cite a gold turn")
    assert sum(hits) >= AT_LEAST * len(hits)


def _sessions(sample: dict) -> list[list[dict]]:
    return [
        turns
        for name, turns in sample["conversation"].items()
        if name.startswith("session_") and isinstance(turns, list)
    ]


def _cites(answer: dict, gold: list[str]) -> bool:
    """Whether a citation begins as one of the turns does, after the speaker's name."""
    cited = [
        memory["name"].partition(": ")[2] for memory in answer.get("memories") or () if memory.get("name")
    ]
    return any(turn[:80] == text[: len(turn[:80])] for turn in gold for text in cited)
