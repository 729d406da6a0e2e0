"""Facts as files: Markdown for reading, notes and a canvas for Obsidian, JSON that imports back without loss.

What lives here: from facts to a map of file names and texts. What must never live here: writing files, and the
facts' loading. Names are made of texts, so they are cut to what every file system takes and told apart by -2, -3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from core.facts.graph import names_in
from core.facts.values import Fact
from core.facts.wire import as_json
from core.model.instants import format_instant

Format = Literal["json", "markdown", "obsidian"]
Files = dict[str, str]

_UNSAFE: Final = re.compile(r"[^\w .-]+")
_LONGEST: Final = 60
_CARD: Final = (320, 160)  # pixels of a note on the canvas
_COLUMNS: Final = 6


def export(facts: Sequence[Fact], form: Format, *, graph: bool = True) -> Files:
    """The files of an export.

    Args:
        facts: of any agents, retired ones and aliases included.
        form: `json` one array of whole facts; `markdown` a file for each agent; `obsidian` a note for each fact.
        graph: whether Obsidian gets notes of the entities that facts name, and a canvas.
    """
    if form == "json":
        return {"memories.json": json.dumps([as_json(fact) for fact in facts], ensure_ascii=False, indent=2)}
    return _markdown(facts) if form == "markdown" else _obsidian(facts, graph=graph)


def _by_agent(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    out: dict[str, list[Fact]] = {}
    for fact in facts:
        out.setdefault(fact.agent_id, []).append(fact)
    return dict(sorted(out.items()))


def _markdown(facts: Sequence[Fact]) -> Files:
    """One file for each agent, newest first; what is retired stands under its own heading."""
    names, files = _Names(), Files()
    for agent, found in _by_agent(facts).items():
        live = [fact for fact in found if fact.live and fact.kind == "fact"]
        parts = [f"# Memories of {agent}\n"]
        parts += [_item(fact) for fact in live]
        for title, kept in (
            ("Vocabulary", [fact for fact in found if fact.live and fact.kind == "alias"]),
            ("Retired", [fact for fact in found if not fact.live]),
        ):
            if kept:
                parts += [f"\n## {title}\n", *(_item(fact) for fact in kept)]
        files[names.of(agent, ".md")] = "\n".join(parts) + "\n"
    return files


def _item(fact: Fact) -> str:
    """A list item; further lines of the text are indented so that it stays one."""
    told = [format_instant(fact.created_at)]
    told += [fact.confidence] if fact.confidence else []
    told += ["pinned"] if fact.pinned else []
    text = fact.text.replace("\r\n", "\n").replace("\n", "\n  ")
    return f"- {text}  \n  _{', '.join(told)}_"


def _obsidian(facts: Sequence[Fact], *, graph: bool) -> Files:
    names, files = _Names(), Files()
    index: list[str] = ["# Index\n"]
    notes: dict[str, str] = {}  # fact id -> note
    for agent, found in _by_agent(facts).items():
        index.append(f"\n## {agent}\n")
        for fact in found:
            note = names.of(f"{_title(fact.text)}", ".md")
            notes[fact.id] = note
            index.append(f"- [[{note.removesuffix('.md')}]]")
    entities = _entities(facts) if graph else {}
    entity_notes = {name: names.of(name, ".md") for name in entities}
    for fact in facts:
        files[notes[fact.id]] = _note(fact, notes, entity_notes)
    for name, ids in entities.items():
        mentions = "\n".join(f"- [[{notes[fact_id].removesuffix('.md')}]]" for fact_id in ids)
        files[entity_notes[name]] = f"---\ntags:\n  - entity\n---\n\n# {name}\n\n{mentions}\n"
    files["_index.md"] = "\n".join(index) + "\n"
    if graph:
        files["memory.canvas"] = _canvas(facts, notes, {entity_notes[n]: ids for n, ids in entities.items()})
    return files


def _title(text: str) -> str:
    return text.strip().partition("\n")[0]


def _note(fact: Fact, notes: Mapping[str, str], entities: Mapping[str, str]) -> str:
    """A note: front matter, the text, links to what it names and to what replaces it."""
    front: dict[str, Any] = {
        "id": fact.id,
        "agent": fact.agent_id,
        "created": format_instant(fact.created_at),
        "accessed": format_instant(fact.accessed_at),
        "access_count": fact.access_count,
        "weight": f"{fact.weight:.4f}",
        "tags": ["memory", *(["alias"] if fact.kind == "alias" else []), *([] if fact.live else ["retired"])],
    }
    if fact.pinned:
        front["pinned"] = True
    if fact.confidence:
        front["confidence"] = fact.confidence
    lines = ["---", *(_yaml(name, value) for name, value in front.items()), "---", "", fact.text, ""]
    linked = [entities[name] for name in names_in(fact.text) if name in entities]
    if fact.superseded_by in notes:
        lines.append(f"Replaced by [[{notes[fact.superseded_by].removesuffix('.md')}]]")
    if linked:
        lines.append(" ".join(f"[[{note.removesuffix('.md')}]]" for note in dict.fromkeys(linked)))
    return "\n".join(lines) + "\n"


def _yaml(name: str, value: Any) -> str:  # a scalar, or a list of plain words
    if isinstance(value, list):
        return "\n".join([f"{name}:", *(f"  - {item}" for item in value)])
    if isinstance(value, str) and name != "weight":
        return f"{name}: {json.dumps(value, ensure_ascii=False)}"  # a JSON text is a YAML one
    return f"{name}: {json.dumps(value) if isinstance(value, bool) else value}"


def _entities(facts: Iterable[Fact]) -> dict[str, list[str]]:
    """The names that live facts hold, and which facts hold each."""
    out: dict[str, list[str]] = {}
    for fact in facts:
        if fact.live and fact.kind == "fact":
            for name in names_in(fact.text):
                out.setdefault(name, []).append(fact.id)
    return dict(sorted(out.items()))


def _canvas(facts: Sequence[Fact], notes: Mapping[str, str], entities: Mapping[str, list[str]]) -> str:
    """A canvas (jsoncanvas.org): cards for facts and entities, and a line for each mention."""
    width, height = _CARD
    places: dict[str, dict[str, Any]] = {}
    for place, note in enumerate([*entities, *(notes[fact.id] for fact in facts)]):
        places[note] = {
            "id": f"n{place}",
            "type": "file",
            "file": note,
            "x": (place % _COLUMNS) * (width + 40),
            "y": (place // _COLUMNS) * (height + 40),
            "width": width,
            "height": height,
        }
    edges = [
        {
            "id": f"e{number}",
            "fromNode": places[notes[fact_id]]["id"],
            "toNode": places[note]["id"],
            "fromSide": "top",
            "toSide": "bottom",
        }
        for number, (note, fact_id) in enumerate((note, i) for note, ids in entities.items() for i in ids)
    ]
    return json.dumps({"nodes": list(places.values()), "edges": edges}, ensure_ascii=False, indent=2)


class _Names:
    """File names, each given once; case does not tell two apart, because file systems differ on it."""

    def __init__(self) -> None:
        self._given: set[str] = {"_index.md"}

    def of(self, wish: str, suffix: str) -> str:
        """A free name near what is wished."""
        base = " ".join(_UNSAFE.sub(" ", wish).split())[:_LONGEST].strip(" .") or "memory"
        name, number = base + suffix, 2
        while name.lower() in self._given:
            name, number = f"{base}-{number}{suffix}", number + 1
        self._given.add(name.lower())
        return name
