"""Imports: plans that go stale, replays, chains of deltas, quarantine, and what may not come along."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from core.errors import NoemaError
from core.model.elements import Governance
from core.protocol.canonical import digest_of
from tests.conformance.harness import World
from tests.conformance.packages import SECONDARY, package

SAY = (
    'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: :text}} '
    'ENSURE PROPOSITION ?p (:alice, "prefers", :dark_mode) CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, '
    'asserted_by: :alice, stance: "support", mode: "stated"} SET STRUCTURAL {("evidence", ?e)}}}'
)


@pytest.fixture
def source() -> World:
    """Another brain."""
    return World(life=100)


@pytest.fixture
def world() -> World:
    """The destination."""
    return World()


def code(call: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(NoemaError) as caught:
        call(*args, **more)
    return caught.value.code


def resealed(artifact: dict[str, Any], change: Any) -> dict[str, Any]:
    made = copy.deepcopy(artifact)
    change(made["payload"])
    made["integrity"] = {"content_digest": digest_of(made["payload"]), "proofs": []}
    return made


def came(world: World, kind: Any) -> list[Any]:
    return [each for each in world.elements(kind) if each.system.origin.sources]


# --- plans


def test_a_plan_goes_stale_with_the_schema(world: World, source: World) -> None:
    """What was previewed under another schema environment is not what would be imported."""
    artifact = source.export_space()
    digest = world.preview_capsule(artifact)["import_plan_digest"]
    world.activate([package(SECONDARY)])
    with world.unchanged():
        assert code(world.import_capsule, artifact, plan_digest=digest) == "ImportPreviewConflict"


def test_a_plan_goes_stale_with_what_it_decided(world: World, source: World) -> None:
    """A Proposition that was to be created, and was created by somebody else since, is another plan."""
    source.ok(SAY, text="a")
    artifact = source.rows('EXPORT CAPSULE ?a WHERE {?a ASSERTION {}} WITH {closure: "closed"}')["artifact"]
    refs = {each["key"]: each["ref"] for each in artifact["payload"]["records"]["concepts"]}
    mappings = {ref: world.ref[key]["id"] for key, ref in refs.items()}
    digest = world.preview_capsule(artifact, mappings=mappings)["import_plan_digest"]
    world.ok('CREATE CONCEPT ?x {TYPE "Person" NAME "Zoe"}')
    assert world.preview_capsule(artifact, mappings=mappings)["import_plan_digest"] == digest
    world.ok('ENSURE PROPOSITION ?p (:alice, "prefers", :dark_mode)')

    assert (
        code(world.import_capsule, artifact, mappings=mappings, plan_digest=digest) == "ImportPreviewConflict"
    )


def test_validate_import_plan(world: World, source: World) -> None:
    """A plan is valid while an import would still do it, and is told to be stale after."""
    artifact = source.export_space()
    plan = world.preview_capsule(artifact)["plan"]
    ask = "VALIDATE IMPORT PLAN :p WITH {parameters: {capsule: :c}}"

    assert world.rows(ask, p=plan, c=artifact)["valid"] is True
    assert world.rows("VALIDATE IMPORT PLAN :p", p=plan)["current"] is None
    world.import_capsule(artifact)
    stale = world.rows(ask, p=plan, c=artifact)
    assert (stale["valid"], stale["error"]["code"]) == (False, "ImportPreviewConflict")
    assert world.rows("VALIDATE IMPORT PLAN :p", p={"format": "x"})["error"]["code"] == "ArtifactParseError"


# --- replays


def test_importing_again_changes_nothing(world: World, source: World) -> None:
    """The same Capsule twice, and another Capsule of the same elements, make nothing twice."""
    source.ok(SAY, text="a")
    first = world.import_capsule(source.export_space())
    with world.unchanged():
        again = world.import_capsule(source.export_space())

    assert (first["receipt"]["status"], again["receipt"]["status"]) == ("committed", "no_effect")
    assert set(again["counts"]) == {"map"}


def test_a_copy_of_a_copy_is_still_the_first(source: World) -> None:
    """C gets A's memory from A and through B, and has each element once."""
    source.ok(SAY, text="a")
    middle, last = World(life=200), World(life=300)
    middle.import_capsule(source.export_space())
    last.import_capsule(source.export_space())

    done = last.import_capsule(middle.export_space())

    assert "assertion" not in done["created"]
    assert "evidence" not in done["created"]
    assert len(came(last, "assertion")) == 1


def test_a_retry_key_gives_the_first_answer(world: World, source: World) -> None:
    """A lost answer is asked for again; another request under the key is refused."""
    artifact = source.export_space()
    first = world.import_capsule(artifact, key="k")

    assert world.import_capsule(artifact, key="k") == first
    assert code(world.import_capsule, artifact, key="k", partial=True) == "IdempotencyConflict"


def test_what_was_erased_here_does_not_come_back(world: World, source: World) -> None:
    """An element that was purged after an import stays purged when its Capsule comes again."""
    source.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "forget me"}}')
    artifact = source.export_space()
    world.import_capsule(artifact)
    [evidence] = came(world, "evidence")
    world.ok('PURGE :e CONFIRM "PURGE"', e={"id": evidence.id})

    done = world.import_capsule(artifact, partial=True)

    assert done["counts"] == {"map": 12, "skip": 1}
    assert [each.payload.mode for each in came(world, "evidence")] == ["purged"]


def test_a_source_cannot_rewrite_what_it_gave(world: World, source: World) -> None:
    """The same source element with another immutable content is a conflict, never an update."""
    source.ok(SAY, text="a")
    artifact = source.export_space()
    world.import_capsule(artifact)

    def turned(payload: Any) -> None:
        payload["records"]["assertions"][0]["stance"] = "reject"

    signed = source.rows('EXPORT CAPSULE ?a WHERE {?a ASSERTION {}} WITH {closure: "closed"}')["artifact"]
    forged = resealed(signed, turned)
    report = world.preview_capsule(forged)  # unsigned: what was signed once is not overwritten by a stranger
    assert report["plan"]["counts"].get("map") is None
    world2 = World(life=7)
    world2.import_capsule(resealed(signed, lambda _: None))
    assert code(world2.import_capsule, forged) == "IdentityConflict"


# --- deltas


def chain(source: World, world: World) -> tuple[int, dict[str, Any]]:
    """A snapshot of the source imported, and the seq a delta goes on from."""
    source.ok(SAY, text="a")
    world.import_capsule(source.export_space())
    return source.state().seq, {}


def test_deltas_go_on_where_the_last_import_ended(world: World, source: World) -> None:
    """New elements are made and changed ones follow; a gap is refused; the same delta twice changes nothing."""
    base, _ = chain(source, world)
    source.ok('UPDATE :alice SET FIELDS {name: "Alicia"}')
    source.ok('CREATE CONCEPT ?x {TYPE "Person" NAME "Zoe"}')
    middle = source.state().seq
    claim = source.elements("assertion")[0].id
    source.ok("RETRACT ASSERTION :a", a={"id": claim})
    first = source.export_space(since_seq=base, as_of_seq=None)
    gap = source.export_space(since_seq=middle)

    assert [each["space_seq"] for each in first["payload"]["changes"]] == [base + 1, base + 2, base + 3]
    with world.unchanged():
        assert code(world.import_capsule, gap) == "PreconditionFailed"
    done = world.import_capsule(first)

    assert (done["created"], done["updated"]) == ({"concept": 1}, 2)
    names = {each.name for each in came(world, "concept")}
    assert {"Alicia", "Zoe"} <= names
    assert [each.status for each in came(world, "assertion")] == ["retracted"]
    with world.unchanged():
        world.import_capsule(first)


def test_a_delta_leaves_alone_what_was_changed_here(world: World, source: World) -> None:
    """A Concept that somebody here has renamed keeps the name it has here."""
    base, _ = chain(source, world)
    mine = next(each for each in came(world, "concept") if each.name == "Alice")
    world.ok('UPDATE :c SET FIELDS {name: "Our Alice"}', c={"id": mine.id})
    source.ok('UPDATE :alice SET FIELDS {name: "Alicia"}')

    world.import_capsule(source.export_space(since_seq=base))

    assert world.element(mine.id).name == "Our Alice"


def test_deletion_elsewhere_is_followed_only_when_asked(world: World, source: World) -> None:
    """An erasure at the source leaves our element, or tombstones it; it never erases here."""
    source.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "bye"}}')
    evidence = source.elements("evidence")[0].id
    world.import_capsule(source.export_space())
    base = source.state().seq
    source.ok('PURGE :e CONFIRM "PURGE"', e={"id": evidence})
    delta = source.export_space(since_seq=base)
    other = World(life=9)

    world.import_capsule(delta)
    assert "bye" not in str(delta)
    assert came(world, "evidence")[0].system.state == "active"
    full = source.export_space()
    assert full["payload"]["records"].get("evidence") is None
    other.import_capsule(full)
    assert came(other, "evidence") == []


# --- isolation


def test_isolated_memory_is_out_of_recall_until_it_is_released(world: World, source: World) -> None:
    """Isolated elements answer no query, search or belief; a merge of the same Capsule releases them."""
    source.ok(SAY, text="quarantined words")
    artifact = source.export_space()
    world.import_capsule(artifact, mode="isolate")

    assert {each.system.state for each in came(world, "assertion")} == {"archived"}
    assert (
        world.rows('FIND(?c) WHERE {?c CONCEPT {type: "Person", name: "Alice"}}')[0]["id"]
        == world.ref["alice"]["id"]
    )
    assert world.rows("FIND(COUNT(?a)) WHERE {?a ASSERTION {}}") == [0]
    assert world.rows('SEARCH EVIDENCE "quarantined words"') == []
    done = world.import_capsule(artifact)
    assert done["created"] == {}
    assert world.rows("FIND(COUNT(?a)) WHERE {?a ASSERTION {}}") == [1]


# --- who may, and what a tier admits


def test_who_may_not_import_may_not_preview(world: World, source: World) -> None:
    """A reader may neither import nor ask what an import would do."""
    artifact = source.export_space()

    assert code(world.import_capsule, artifact, "reader_full") == "NotAuthorized"
    assert code(world.preview_capsule, artifact, "reader_full") == "NotAuthorized"
    assert code(source.export_space, "reader_full") == "NotAuthorized"
    assert world.preview_capsule(artifact, "importer")["would"] == "commit"


def test_hidden_elements_leave_no_trace_in_an_export(source: World) -> None:
    """Neither record, nor reference, nor count, nor gap tells of what the exporter may not discover."""
    source.ok(SAY, text="a word")
    source.classify(source.ref["alice"])
    reader = source.principals["reader_hidden"]
    who = type(reader)(reader.id, permissions=frozenset({"discover", "read", "export"}), hidden=reader.hidden)
    source.principals["sharer"] = who

    artifact = source.export_space("sharer")
    text = str(artifact)

    assert source.ref["alice"]["id"] not in text
    assert "Alice" not in text
    assert artifact["payload"].get("external_refs") is None
    assert artifact["payload"]["manifest"]["counts"]["assertions"] == 0
    assert artifact["payload"]["manifest"]["policy"] == "filtered"


def test_what_is_in_quarantine_does_not_travel(source: World) -> None:
    """A quarantined element, and what is said about it, is in no backup, whoever exports."""
    source.ok(SAY, text="held back")

    def hold(draft: Any) -> None:
        for each in source.elements("evidence"):
            draft.change(each, governance=Governance(quarantined=True))

    source.host(hold)
    artifact = source.export_space()

    assert "held back" not in str(artifact)
    assert [each["kind"] for each in artifact["payload"]["external_refs"]] == ["redacted"]


def test_classification_travels(world: World, source: World) -> None:
    """An element is classified at least as it was; a Capsule cannot lower what is here."""
    source.classify(source.ref["alice"], "confidential")
    artifact = source.export_space()

    world.import_capsule(artifact)

    labels = {each.name: each.governance.classification for each in came(world, "concept")}
    assert labels["Alice"] == "confidential"
    assert artifact["payload"]["handling"]["classifications"] == ["confidential"]
    assert world.element(world.ref["alice"]).governance.classification is None


def test_a_mapping_is_a_deed_of_its_own(world: World, source: World) -> None:
    """Saying that two are one takes `merge_identity`, a record to say it of, and an element here of its kind and type."""
    artifact = source.rows('EXPORT CAPSULE :alice WHERE {?p CONCEPT {type: "Person"}}')["artifact"]
    alice, theme = world.ref["alice"]["id"], world.ref["dark_mode"]["id"]

    assert code(world.preview_capsule, artifact, "importer", mappings={"c:1": alice}) == "NotAuthorized"
    assert code(world.preview_capsule, artifact, mappings={"c:7": alice}) == "ConstraintViolation"
    for wrong in (theme, "C-nobody"):
        assert world.preview_capsule(artifact, mappings={"c:1": wrong})["would"] == "conflict"
    assert world.preview_capsule(artifact, mappings={"c:1": alice})["would"] == "commit"
    world.import_capsule(artifact, mappings={"c:1": alice})
    assert world.preview_capsule(artifact)["plan"]["decisions"][0]["local"] == alice
    other = world.ref["bob"]["id"]
    assert world.preview_capsule(artifact, mappings={"c:1": other})["would"] == "conflict"


def test_external_references_land_where_they_may(world: World, source: World) -> None:
    """A claim about what is not in the Capsule is unresolved, unless a mapping or an earlier import says what it is."""
    source.ok(SAY, text="a")
    claims = source.rows('EXPORT CAPSULE ?a WHERE {?a ASSERTION {}} WITH {closure: "referential"}')[
        "artifact"
    ]

    assert world.preview_capsule(claims)["would"] == "conflict"
    assert code(world.import_capsule, claims) == "ImportPreviewConflict"
    with world.unchanged():
        partly = world.import_capsule(claims, partial=True)
    assert (partly["partial"], partly["counts"]) == (True, {"unresolved": 1})
    world.import_capsule(source.rows("EXPORT CAPSULE ?p WHERE {?p PROPOSITION (?s, ?q, ?o)}")["artifact"])
    done = world.import_capsule(claims)
    assert done["created"] == {"assertion": 1}
    assert [gap["field"] for gap in done["gaps"]] == ["evidence"]
