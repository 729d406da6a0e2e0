"""The vocabulary in code and the schema packages are one."""

import hashlib
import json
from pathlib import Path

import pytest

from core.agents import vocabulary
from core.agents.offline.cues import ALSO, CUES, RELATIONAL
from core.agents.offline.rules import identity, places, preferences, relations, work
from core.agents.offline.rules.rule import RELATIONS

PACKAGES = Path(vocabulary.__file__).parents[1] / "schema" / "packages"
OURS = json.loads((PACKAGES / "noema-memory-1.0.0.schema.json").read_text())
DEFINED = {
    definition["ref"]: definition
    for path in PACKAGES.glob("*.schema.json")
    for family in json.loads(path.read_text())["definitions"].values()
    for definition in family.values()
    if isinstance(definition, dict) and "ref" in definition
}
OWN = {ref: definition for ref, definition in DEFINED.items() if ref.startswith(vocabulary.PACKAGE)}


def test_every_reference_in_code_is_defined_by_a_package() -> None:
    """What is written is what the schema names."""
    used = {
        value
        for value in vars(vocabulary).values()
        if isinstance(value, str) and "@" in value and value.count("/") > 3
    }

    assert used - {vocabulary.PROFILE, vocabulary.PACKAGE} <= set(DEFINED)


def test_what_is_functional_in_code_is_functional_in_the_package() -> None:
    """The writer and the projection agree on which predicates have one value."""
    functional = {ref for ref, definition in OWN.items() if definition.get("functional")}

    assert functional == vocabulary.FUNCTIONAL


def test_every_rule_claims_a_predicate_that_can_be_asked_for() -> None:
    """Each predicate that a rule writes is defined, and has a row of cues."""
    rules = (*identity.RULES, *places.RULES, *preferences.RULES, *work.RULES)
    names = (
        {rule.predicate for rule in rules} | set(relations.PREDICATES.values()) | {"has_relative", "owns_pet"}
    )

    assert names <= set(CUES)
    assert {vocabulary.predicate(name) for name in names} <= set(DEFINED)


def test_every_cue_is_a_predicate() -> None:
    """The table of cues names predicates of the packages only, and its side tables name its rows."""
    assert {vocabulary.predicate(name) for name in CUES} <= set(DEFINED)
    assert set(ALSO) | {other for others in ALSO.values() for other in others} | RELATIONAL <= set(CUES)


@pytest.mark.parametrize("relation", RELATIONS.split("|"))
def test_every_relation_leads_to_a_predicate(relation: str) -> None:
    """No word for a relative is without meaning."""
    assert relations.PREDICATES.get(relation, "has_relative") in CUES


def test_the_package_has_its_digest() -> None:
    """The content digest covers everything but itself, in the draft canonical form."""
    body = {name: value for name, value in OURS.items() if name != "integrity"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    assert OURS["integrity"]["content_digest"] == "sha256:" + hashlib.sha256(canonical).hexdigest()


def test_no_name_of_ours_shadows_the_profile() -> None:
    """Local names stay unambiguous when both packages are in force."""
    names = [vocabulary.local_name(ref) for ref in DEFINED]

    assert len(names) == len(set(names))
