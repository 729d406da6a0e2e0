"""The retrieval benchmark's reading of files, its arithmetic, and that pieces of Chinese are found."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.bench_recall import embedder_of, form, measure, pieces, substrings
from scripts.locomo import Asked, BadFileError, read
from scripts.scores import groups, means, score
from tests.services import World

BANK = Path(__file__).resolve().parents[2].parent / "shared" / "bench" / "memory_bank_cn.json"


def sample(**members: Any) -> dict[str, Any]:
    """A conversation of two sessions with one question."""
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_2_date_time": "9:05 am on 3 June, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "I bought a kayak."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello!"},
            {"speaker": "Bob", "dia_id": "D1:2", "text": " "},
            {"speaker": "Ann", "dia_id": "D1:03", "text": "I paint every day."},
        ],
    }
    question = {"question": "What does Ann paint?", "answer": "paint", "category": 4, "evidence": ["D1:3"]}
    return {"sample_id": "one", "conversation": conversation, "qa": [question], **members}


def written(folder: Path, found: Any) -> Path:
    """A file of something."""
    path = folder / "file.json"
    path.write_text(json.dumps(found), "utf-8")
    return path


def test_sessions_come_in_order_with_their_times(tmp_path: Path) -> None:
    """Whatever the order in the file; turns without a text are left out, and ids are written one way."""
    [found] = read(written(tmp_path, [sample()]))

    assert [session.at for session in found.sessions] == ["2023-05-08T13:56:00Z", "2023-06-03T09:05:00Z"]
    assert [turn.id for turn in found.turns] == ["D1:1", "D1:3", "D2:1"]
    assert found.speakers == ["Ann", "Bob"]


@pytest.mark.parametrize(
    ("evidence", "gold"),
    [
        (["D1:1", "D2:1"], {"D1:1", "D2:1"}),
        (["D1:1; D2:1"], {"D1:1", "D2:1"}),
        (["D1:03"], {"D1:3"}),
        (["D9:9", "D", "D1:1:2"], {"D1:1"}),
        (["(D1:1),D2:1"], {"D1:1", "D2:1"}),
        ([], set()),
        ("D1:1", {"D1:1"}),
    ],
)
def test_malformed_evidence_is_split_or_left(tmp_path: Path, evidence: Any, gold: set[str]) -> None:
    """What reads as the id of a turn of this conversation counts, and nothing else does."""
    question = {"question": "?", "category": 1, "evidence": evidence}
    [found] = read(written(tmp_path, [sample(qa=[question])]))

    assert found.questions[0].gold == gold


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({}, "a list of conversations"),
        ([], "a list of conversations"),
        ([{"qa": []}], "conversation 1: an object with `conversation`"),
        ([sample(conversation={})], "`session_1`"),
        ([sample(conversation={"session_1": [], "session_1_date_time": "2023-05-08"})], "`session_1`"),
        (
            [sample(conversation={"session_1": [{"text": "x"}], "session_1_date_time": "2023-05-08"})],
            "turn 1",
        ),
        ([sample(conversation={"session_1": [], "session_1_date_time": "soon"})], "'soon' is no time"),
        ([sample(conversation={"session_1": []})], "session_1_date_time"),
        ([sample(qa={})], "`qa`"),
        ([sample(qa=[{"category": 1}])], "question 1"),
        ([sample(qa=[{"question": "?", "category": "one"}])], "`category` is a number"),
    ],
)
def test_a_bad_file_is_refused_by_its_place(tmp_path: Path, found: Any, told: str) -> None:
    """The message says which conversation, session, turn or question is not as it should be."""
    with pytest.raises(BadFileError, match=r"file\.json") as caught:
        read(written(tmp_path, found))

    assert told in str(caught.value)


def test_a_file_that_is_no_json_or_not_there_is_refused(tmp_path: Path) -> None:
    """Both are said in words."""
    (tmp_path / "text").write_text("hello", "utf-8")
    with pytest.raises(BadFileError, match="not JSON"):
        read(tmp_path / "text")
    with pytest.raises(BadFileError, match="No such file"):
        read(tmp_path / "none")


def test_shares_are_of_the_gold_within_cuts_and_tokens() -> None:
    """A turn counts within a budget if it and all before it fit."""
    asked = Asked("?", 1, frozenset({"b", "z"}), "")
    found = ["a", "b", *(str(n) for n in range(30)), "z"]
    got = score(asked, found, lambda turn: 4000 if turn == "a" else 4, 0.5)

    assert got.shares == (0.5, 0.5, 0.5, 0.0, 0.0, 1.0)


def test_groups_leave_what_was_never_said_out_of_what_has_an_answer() -> None:
    """Category 5 counts in all, and not in the categories 1 to 4."""
    asked = [Asked("?", number, frozenset({"a"}), "") for number in (1, 5, 5)]
    scores = [score(one, ["a"] if one.category == 1 else [], lambda _: 4, 0.001) for one in asked]
    found = {name: means(some) for name, some in groups(scores).items()}

    assert list(found) == ["category 1", "category 5", "categories 1-4", "all"]
    assert found["categories 1-4"]["recall@5"] == 100.0
    assert found["all"]["recall@5"] == 33.3
    assert found["all"]["questions"] == 3


def test_questions_go_through_the_services(tmp_path: Path) -> None:
    """A conversation is formed and compacted, and its question finds its turn."""
    [found] = read(written(tmp_path, [sample()]))
    space = form(World(), "one", found)

    assert space.find("What does Ann paint?")[0] == "D1:3"
    assert measure(space, found.questions)[0].shares[0] == 1.0


def test_an_unknown_embedder_is_refused_by_name() -> None:
    """The message says which there are."""
    with pytest.raises(BadFileError, match="possible are none, static"):
        embedder_of("magic", World())
    assert embedder_of("none", World()) is None


def test_pieces_lie_within_runs_of_chinese() -> None:
    """They never reach over a mark."""
    assert pieces("你好，我叫张曼婷。", 4) == ["我叫张曼", "叫张曼婷"]
    assert pieces("hello", 2) == []


def test_every_piece_of_a_chinese_dialogue_is_found() -> None:
    """Pieces of 2 and of 4 characters lead to the turn that they are from, always."""
    if not BANK.exists():
        pytest.skip("MemoryBank's file is not beside the repository (../shared/bench/memory_bank_cn.json)")
    found = substrings(BANK)

    assert {name: row["its turn is found"] for name, row in found.items()} == {
        "2 characters": 100,
        "4 characters": 100,
    }


def test_a_bad_bank_is_refused(tmp_path: Path) -> None:
    """A file of another shape is told by its name."""
    with pytest.raises(BadFileError, match="MemoryBank"):
        substrings(written(tmp_path, {"a": 1}))
