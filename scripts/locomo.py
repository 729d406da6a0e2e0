"""Conversations with questions, as LoCoMo's files have them; read strictly, and every complaint names its place.

What lives here: the file's shape, and its gold: which turns are evidence for a question. What must never live here:
anything that asks or measures.

A file is a list of samples. A sample has a `conversation` (`session_1`, `session_2`... each a list of turns with
`speaker`, `dia_id` and `text`, and `session_1_date_time`...) and `qa`: questions with `category` and `evidence`, the
ids of turns. Some evidence is malformed ("D8:6; D9:17", "D30:05"): what reads as ids of turns is taken, the rest is left.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MISLEADING = 5  # the category of questions about what was never said
_ID = re.compile(r"D(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_TIMES = ("%I:%M %p on %d %B, %Y", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")


class BadFileError(Exception):
    """The file is not of LoCoMo's shape; the message says where."""


@dataclass(frozen=True)
class Turn:
    """What somebody said. `id`: as evidence names it."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Session:
    """Turns in order, and when they were said (RFC 3339)."""

    at: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Asked:
    """A question. `gold`: the turns that are evidence; may be empty."""

    text: str
    category: int
    gold: frozenset[str]
    answer: str


@dataclass(frozen=True)
class Sample:
    """A conversation and what is asked about it."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Asked, ...]

    @property
    def turns(self) -> list[Turn]:
        """All turns in order."""
        return [turn for session in self.sessions for turn in session.turns]

    @property
    def speakers(self) -> list[str]:
        """Who speaks, each once, in the order in which they first do."""
        return list(dict.fromkeys(turn.speaker for turn in self.turns))


def read(path: Path) -> list[Sample]:
    """The samples of a file.

    Raises:
        BadFileError: it cannot be read or is not of that shape.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadFileError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadFileError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, list) or not found:
        raise BadFileError(f"{path}: a list of conversations is expected")
    return [_sample(one, f"{path}, conversation {number}") for number, one in enumerate(found, 1)]


def _sample(found: Any, place: str) -> Sample:
    if not isinstance(found, dict) or not isinstance(found.get("conversation"), dict):
        raise BadFileError(f"{place}: an object with `conversation` is expected")
    conversation = found["conversation"]
    numbers = sorted(int(match[1]) for name in conversation if (match := _SESSION.fullmatch(name)))
    sessions = tuple(
        session for number in numbers if (session := _session(conversation, number, place)).turns
    )
    if not sessions:
        raise BadFileError(f"{place}: `session_1`, a list of turns, is expected")
    known = {turn.id for session in sessions for turn in session.turns}
    questions = found.get("qa")
    if not isinstance(questions, list):
        raise BadFileError(f"{place}: `qa`, a list of questions, is expected")
    asked = tuple(
        _asked(one, known, f"{place}, question {number}") for number, one in enumerate(questions, 1)
    )
    return Sample(str(found.get("sample_id", place)), sessions, asked)


def _session(conversation: dict[str, Any], number: int, place: str) -> Session:
    turns, at = conversation[f"session_{number}"], conversation.get(f"session_{number}_date_time")
    place = f"{place}, session_{number}"
    if not isinstance(turns, list):
        raise BadFileError(f"{place}: a list of turns is expected")
    if not isinstance(at, str):
        raise BadFileError(f"{place}: `session_{number}_date_time`, a text, is expected")
    read = tuple(_turn(one, f"{place}, turn {index}") for index, one in enumerate(turns, 1))
    return Session(_time(at, place), tuple(turn for turn in read if turn.text.strip()))


def _turn(found: Any, place: str) -> Turn:
    members = ("speaker", "dia_id", "text")
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in members):
        raise BadFileError(f"{place}: an object with the texts {', '.join(members)} is expected")
    match = _ID.fullmatch(found["dia_id"])
    return Turn(_named(match) if match else found["dia_id"], found["speaker"], found["text"])


def _time(text: str, place: str) -> str:
    for form in _TIMES:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            continue
    raise BadFileError(f"{place}: {text!r} is no time, such as '1:56 pm on 8 May, 2023'")


def _asked(found: Any, known: set[str], place: str) -> Asked:
    if not isinstance(found, dict) or not isinstance(found.get("question"), str):
        raise BadFileError(f"{place}: an object with `question`, a text, is expected")
    category, evidence = found.get("category", 0), found.get("evidence", [])
    if not isinstance(category, int) or not isinstance(evidence, (list, str)):
        raise BadFileError(f"{place}: `category` is a number and `evidence` a list of ids")
    named = [evidence] if isinstance(evidence, str) else [str(one) for one in evidence]
    gold = {one for one in named if one in known}
    gold |= {name for one in named for match in _ID.finditer(one) if (name := _named(match)) in known}
    return Asked(found["question"], category, frozenset(gold), str(found.get("answer", "")))


def _named(match: re.Match[str]) -> str:
    """The id as turns have it: "D30:05" is "D30:5"."""
    return f"D{int(match[1])}:{int(match[2])}"
