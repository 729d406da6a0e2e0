"""The trace: which records tools have really shown a model. Citations come from it and from nothing else.

What lives here: finding the records in what tools answered, and the numbers of citations in an answer. What must
never live here: any trust in what the model says it has read. An id counts where it names its own record and the
record's content stands beside it; a bare reference, such as the subject of a triple, shows nothing of what it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from core.model.elements import Json
from core.model.ids import BODY_DIGITS
from core.models.run import Used

_PATTERN: Final = rf"[CPAEX]-[0-9a-hjkmnp-tv-z]{{{BODY_DIGITS}}}"
_ID: Final = re.compile(rf"{_PATTERN}\Z")
_GROUP: Final = re.compile(rf"[ \t]*\[\s*(?:{_PATTERN}|\d{{1,3}})(?:[\s,;]+(?:{_PATTERN}|\d{{1,3}}))*\s*\]")
_BARE: Final = re.compile(rf"\(?\b{_PATTERN}\b\)?")
_IDS: Final = re.compile(_PATTERN)
_OWN: Final = ("id", "proposition_id")  # members that name the record they stand in
# Members that say nothing of what a record holds.
_FRAME: Final = frozenset({
    "id", "proposition_id", "kind", "space_id", "schema_ref", "type", "retrieval", "_system", "governance",
    "retention",
})  # fmt: skip
_DEEPEST: Final = 40


def is_id(value: Json) -> bool:
    """Whether a value is the id of an element, and nothing else."""
    return isinstance(value, str) and _ID.match(value) is not None


def ids_seen(trace: Iterable[Used]) -> tuple[str, ...]:
    """The records that the calls of a run have shown, each once, in the order in which they were first shown."""
    found: dict[str, None] = {}
    for used in trace:
        if (
            not used.result.failed or '"results"' in used.result.content[:200]
        ):  # some of several commands failed
            found.update(dict.fromkeys(ids_in(used.result.content)))
    return tuple(found)


def ids_in(content: str) -> tuple[str, ...]:
    """The records in a tool's answer, which is JSON; none in anything else."""
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return ()
    return tuple(dict.fromkeys(_records(value, 0)))


def _records(value: Json, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if any(_tells(each) for name, each in value.items() if name not in _FRAME):
            yield from (value[name] for name in _OWN if is_id(value.get(name)))
        parts: Iterable[Json] = [each for name, each in value.items() if name != "error"]
    elif isinstance(value, list):
        if any(_tells(each) for each in value if not isinstance(each, (dict, list))):
            yield from (each for each in value if is_id(each))  # a row of columns: its ids with their content
        parts = value
    else:
        return
    for part in parts:
        yield from _records(part, depth + 1)


def _tells(value: Json) -> bool:
    """Whether a value says anything but which element is meant."""
    if isinstance(value, dict):
        return any(_tells(each) for each in value.values())
    if isinstance(value, list):
        return any(_tells(each) for each in value)
    return value is not None and value != "" and not is_id(value)


def mentioned(text: str) -> tuple[str, ...]:
    """The ids that stand in an answer, each once, in order."""
    return tuple(dict.fromkeys(_IDS.findall(text)))


def numbered(text: str, cited: Sequence[str]) -> str:
    """An answer with numbers for its citations: `[E-…]` becomes `[2]`, and an id that nothing has shown is gone.

    Args:
        text: as the model wrote it. Numbers that it made up itself go too.
        cited: the ids that may be cited, in the order of their numbers, counted from 1.
    """
    places = {name: place for place, name in enumerate(cited, 1)}

    def group(match: re.Match[str]) -> str:
        found = [places[name] for name in _IDS.findall(match.group()) if name in places]
        return f" [{', '.join(map(str, sorted(set(found))))}]" if found else ""

    def bare(match: re.Match[str]) -> str:
        place = places.get(_IDS.findall(match.group())[0])
        return "" if place is None else f"[{place}]"

    return _BARE.sub(bare, _GROUP.sub(group, text)).strip()
