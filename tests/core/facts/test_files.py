"""Facts as files, and facts from files: nothing is lost, nothing that does not fit gets in."""

import json
import re

import msgspec
import pytest

from core.errors import NoemaError
from core.facts.exports import export
from core.facts.imports import read
from core.facts.wire import as_json
from tests.core.facts.made import NOW, fact


def imported(entries, form="graymatter", agent_id=None):
    text = entries if isinstance(entries, str) else json.dumps(entries)
    return read(text, form, agent_id=agent_id, now=NOW)


RAW = {
    "id": "01ABC",
    "agent_id": "ann",
    "text": "Ann likes tea.",
    "created_at": "2026-01-05T10:00:00.123456789Z",
}


def test_an_old_row_loads_as_live_and_unpinned():
    """Members that an old store did not have are as they were: live, unpinned, no label, weight 1."""
    (made,) = imported([RAW]).facts
    assert (made.live, made.pinned, made.confidence, made.weight, made.kind) == (True, False, "", 1.0, "fact")
    assert made.created_at % 1000 == 123
    assert made.accessed_at == made.created_at


def test_everything_of_a_new_row_is_taken():
    """Weight, counts, pin, unknown label, alias, retirement; Go's zero time is no pin."""
    full = {
        **RAW,
        "accessed_at": "2026-02-01T00:00:00Z",
        "access_count": 7,
        "weight": 0.25,
        "confidence": "gut feeling",
        "pinned": True,
        "pinned_at": "2026-01-06T00:00:00Z",
        "kind": "alias",
        "alias_source": "usage",
        "superseded_by": "agent",
        "embedding": [0.1, 0.2],
    }
    (made,) = imported([full]).facts
    assert (made.access_count, made.weight, made.confidence, made.kind) == (7, 0.25, "gut feeling", "alias")
    assert (made.pinned, made.superseded_by, made.alias_source) == (True, "agent", "usage")
    (other,) = imported([{**RAW, "pinned": False, "pinned_at": "0001-01-01T00:00:00Z"}]).facts
    assert not other.pinned


def test_our_own_json_loses_nothing():
    """What is exported reads back as the same facts, but for the element, which is the new space's."""
    facts = [
        fact("a", "one\ntwo", 3, confidence="verified", pinned_at=NOW),
        fact("b", "old", 2, superseded_by="a", weight=0.5, access_count=3, accessed_at=NOW),
        fact("c", "alias: db = pg", 1, kind="alias", alias_source="usage", decays_from=NOW),
    ]
    back = imported(export(facts, "json")["memories.json"], "noema").facts
    assert [{**as_json(each), "element": ""} for each in back] == [
        {**as_json(each), "element": ""} for each in facts
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": 7},
        {"id": "x" * 65},
        {"id": "agent"},
        {"id": "a\nb"},
        {"text": ""},
        {"text": None},
        {"text": "x" * 300_000},
        {"agent_id": " "},
        {"agent_id": None},
        {"created_at": "yesterday"},
        {"weight": "heavy"},
        {"weight": True},
        {"kind": "dream"},
    ],
)
def test_an_entry_that_does_not_fit_is_passed_over_and_told(change):
    """One bad entry does not keep the others out."""
    found = imported([{**RAW, **change}, {**RAW, "id": "good"}, 7])
    assert [each.id for each in found.facts] == ["good"]
    assert found.passed_over == 2
    assert found.notes[0].startswith("entry 1: ")


@pytest.mark.parametrize("text", ["", "{", "7", '{"a": 1}', "[" * 20_000, "null"])
def test_a_file_of_another_format_is_refused(text):
    """What holds no array of entries is InvalidInput."""
    with pytest.raises(NoemaError) as refused:
        imported(text)
    assert refused.value.code == "InvalidInput"


def test_numbers_that_are_no_numbers_stay_out():
    """NaN and infinity are no weights; weights out of range are cut to it."""
    assert imported('[{"id": "a", "agent_id": "x", "text": "t", "weight": NaN}]').passed_over == 1
    (made,) = imported([{**RAW, "weight": 1e300, "access_count": -4}]).facts
    assert (made.weight, made.access_count) == (1.0, 0)


def test_mem0_memories_keep_their_ids_and_owners():
    """`results` or a bare list; whose it is comes from agent_id, user_id or run_id; a model's words are unverified."""
    entries = {
        "results": [
            {"id": "m1", "memory": "Likes tea", "user_id": "ann", "created_at": "2026-01-05T10:00:00-07:00"},
            {"id": "m2", "memory": "Rows", "agent_id": "bot", "user_id": "ann"},
            {"id": "m3", "memory": ""},
        ]
    }
    found = imported(entries, "mem0")
    assert [(each.id, each.agent_id, each.confidence) for each in found.facts] == [
        ("m1", "ann", "unverified"),
        ("m2", "bot", "unverified"),
    ]
    assert found.passed_over == 1
    assert {each.agent_id for each in imported(entries, "mem0", "me").facts} == {"me"}


def test_the_mcp_memory_server_gives_observations_relations_and_links():
    """One fact for each observation and relation, a link for each relation; the same file gives the same ids."""
    lines = "\n".join(
        json.dumps(each)
        for each in (
            {
                "type": "entity",
                "name": "Acme",
                "entityType": "company",
                "observations": ["founded in 1990", 7],
            },
            {"type": "entity", "name": "Bob", "entityType": "person", "observations": []},
            {"type": "relation", "from": "Acme", "to": "Bob", "relationType": "employs"},
            {"type": "relation", "from": "Acme", "relationType": "employs"},
        )
    )
    found = imported(lines, "mcp-memory", "ann")
    assert [each.text for each in found.facts] == [
        "Acme: founded in 1990",
        "Bob is a person",
        "Acme employs Bob",
    ]
    assert found.links == (("Acme", "Bob"),)
    assert found.passed_over == 1
    assert found == imported(lines, "mcp-memory", "ann")
    assert imported(lines, "mcp-memory").facts == ()  # whose they are is nowhere said


def test_markdown_has_a_file_for_each_agent():
    """Names that collide get -2; texts of many lines stay one item; retired facts stand apart."""
    facts = [
        fact("a", "one\ntwo", 3),
        fact("b", "old", 2, superseded_by="agent"),
        fact("c", "alias: db = pg", 1, kind="alias"),
    ]
    twins = [msgspec.structs.replace(facts[0], agent_id=agent) for agent in ("a/b", "A?b")]
    files = export([*facts, *twins], "markdown")
    assert set(files) == {"ann.md", "A b.md", "a b-2.md"}
    text = files["ann.md"]
    assert "- one\n  two" in text
    assert text.index("## Vocabulary") < text.index("## Retired") < text.index("- old")


def test_an_obsidian_vault_hangs_together():
    """Each fact has a note with front matter, every link leads to a note, the canvas names notes that are there."""
    facts = [
        fact("a", "Acme Corp hired Ann Lee.", 3, confidence="verified", pinned_at=NOW),
        fact("b", "Acme Corp hired Ann Lee.", 2, weight=1 / 3),
        fact("c", '../../etc/passwd: "Acme Corp" [x]', 1, superseded_by="a"),
        fact("d", "alias: db = pg", 1, kind="alias"),
    ]
    files = export(facts, "obsidian")
    assert "_index.md" in files
    names = {name.removesuffix(".md") for name in files}
    for name, text in files.items():
        assert "/" not in name
        for target in re.findall(r"\[\[(.*?)\]\]", text):
            assert target in names
    assert "Acme Corp hired Ann Lee-2.md" in files
    note = files["Acme Corp hired Ann Lee.md"]
    assert note.startswith('---\nid: "a"\nagent: "ann"\n')
    assert "pinned: true" in note
    assert 'confidence: "verified"' in note
    assert "weight: 0.3333" in files["Acme Corp hired Ann Lee-2.md"]
    canvas = json.loads(files["memory.canvas"])
    assert {node["file"] for node in canvas["nodes"]} <= set(files)
    ids = {node["id"] for node in canvas["nodes"]}
    assert canvas["edges"]
    assert all({edge["fromNode"], edge["toNode"]} <= ids for edge in canvas["edges"])
    plain = export(facts, "obsidian", graph=False)
    assert len(plain) == len(facts) + 1


def test_an_empty_export_is_whole():
    """No facts: an empty array, no agents, an index."""
    assert json.loads(export([], "json")["memories.json"]) == []
    assert export([], "markdown") == {}
    assert set(export([], "obsidian")) == {"_index.md", "memory.canvas"}
