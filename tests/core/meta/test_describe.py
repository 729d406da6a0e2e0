"""DESCRIBE and LIST of where and as whom a request runs, what there is, and what a caller may do."""

from __future__ import annotations

import re

import msgspec
import pytest

from core.authority import Principal
from core.engine import execute
from core.epistemic.trust import TrustRecord, TrustState
from core.errors import REGISTRY
from core.language import parse
from core.meta.primer import INVARIANTS, MAX_COMPACT, MAX_FULL
from core.protocol.capabilities import LIMITS, SUPPORTED
from core.protocol.request import read_request
from core.transaction.scope import Context
from tests.conformance.world import World
from tests.core.meta.conftest import READER, hiding
from tests.core.meta.test_search import classify


def wide_package():
    """A package with more names, and longer ones, than any primer may carry."""
    names = [f"{'Extremely' * 6}LongType{i}" for i in range(600)]
    return {
        "format": "KIP-Schema-Package",
        "manifest": {"package_id": "kip://test/wide", "version": "1.0.0"},
        "definitions": {
            "concept_types": {name: {"description": "what it is " * 40} for name in names},
            "predicates": {f"p_{name}": {"description": "what it says " * 40} for name in names},
        },
    }


# --- the primer


def test_the_primer_names_its_coordinates(nexus):
    """Protocol versions, space, seq, schema and what to call next are in the compact primer (KIP2-META-001)."""
    value = nexus.get("DESCRIBE PRIMER")

    assert value["protocol"]["kip"] == "2.0"
    assert value["context"]["space"] == {"id": "test", "uri": "urn:noema:space:test", "name": None}
    assert value["context"]["snapshot_seq"] == nexus.state.seq
    assert value["schema"]["packages"] == ["kip://test/core-domain@1.0.0"]
    assert "Person" in value["schema"]["types"]
    assert "timezone" in value["schema"]["predicates"]
    assert value["invariants"] == list(INVARIANTS)
    assert value["next"]
    assert value["map"]["concepts_by_type"] == {"Person": 2, "Theme": 1}


def test_the_primer_keeps_principal_and_self_apart(nexus):
    """A Principal is not the self, whatever either is called (KIP2-META-002)."""
    nexus.manage(msgspec.structs.replace(nexus.state.meta, self_identity=nexus.id("alice")))

    value = nexus.get("DESCRIBE PRIMER", principal=Principal("alice"))

    assert value["principal"]["id"] == "alice"
    assert value["self"]["id"] == nexus.id("alice")
    assert value["self"]["name"] == "Alice Chen"
    assert "schema_ref" not in value["principal"]
    assert "principal_is_not_self" in value


def test_a_space_without_a_self_says_so(nexus):
    """Nobody is taken for the self where none is designated."""
    assert nexus.get("DESCRIBE PRIMER")["self"] is None


def test_a_self_that_may_not_be_seen_is_not_told(nexus):
    """A designated self that is hidden from the caller, or is no Concept, is no self to it."""
    nexus.manage(msgspec.structs.replace(nexus.state.meta, self_identity=nexus.id("alice")))
    classify(nexus, "alice", "secret")
    assert nexus.get("DESCRIBE PRIMER", principal=hiding("secret"))["self"] is None
    nexus.manage(msgspec.structs.replace(nexus.state.meta, self_identity=nexus.id("message")))
    assert nexus.get("DESCRIBE PRIMER")["self"] is None


def test_chosen_aliases_are_in_the_primer(nexus):
    """Local names to which the space gave a meaning are part of its schema map."""
    exact = "kip://test/core-domain@1.0.0/project_status"
    nexus.activate([], aliases={"state_of": exact})

    assert nexus.get("DESCRIBE PRIMER")["schema"]["aliases"] == {"state_of": exact}


def test_the_primer_holds_no_memories(nexus):
    """Names of what is remembered, and contents, are not in a primer."""
    text = str(nexus.get('DESCRIBE PRIMER MODE "full"'))

    assert "Alice Chen" not in text
    assert "mountains" not in text


@pytest.mark.parametrize(("mode", "bound"), [("compact", MAX_COMPACT), ("full", MAX_FULL)])
def test_the_primer_is_bounded_whatever_the_schema(nexus, mode, bound):
    """Six hundred types with long names and descriptions still fit the bound that the primer states."""
    nexus.activate([wide_package()])

    value = nexus.get("DESCRIBE PRIMER MODE :mode", mode=mode)

    assert value["max_bytes"] == bound
    assert len(msgspec.json.encode(value)) <= bound
    assert any("more: LIST shows all" in str(name) for name in value["schema"]["types"])


def test_the_primers_digest_follows_its_content(nexus):
    """Equal primers have equal digests; another seq gives another."""
    first = nexus.get("DESCRIBE PRIMER")["primer_digest"]

    assert nexus.get("DESCRIBE PRIMER")["primer_digest"] == first
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" NAME "X" }')
    assert nexus.get("DESCRIBE PRIMER")["primer_digest"] != first


def test_the_full_primer_says_more(nexus):
    """Full mode adds meanings and examples; another mode is refused."""
    value = nexus.get('DESCRIBE PRIMER MODE "full"')

    assert value["examples"]
    assert {"name": "timezone", "functional": True}.items() <= next(
        row for row in value["schema"]["predicates"] if row["name"] == "timezone"
    ).items()
    assert nexus.code("DESCRIBE PRIMER MODE :m", m="huge") == "ConstraintViolation"


def test_every_command_of_the_primer_is_one(nexus):
    """What the primer tells a model to send parses as it stands."""
    value = nexus.get('DESCRIBE PRIMER MODE "full"')
    commands = [each["command"] for each in value["next"]] + list(value["examples"].values())

    assert len(commands) > 10
    for command in commands:
        parse(command)


def test_the_primer_is_enough_to_remember_and_to_recall():
    """With the usual packages, its commands without parameters run as they stand, and the claim comes back believed."""
    world = World()
    commands = [each["command"] for each in world.ok("DESCRIBE PRIMER")["next"]]
    complete = [command for command in commands if not re.search(r":\w", command)]
    for command in sorted(complete, key=lambda command: not command.startswith("MUTATE")):
        answer = world.ok(command)
        if "BELIEF" in command:
            assert answer == [["dark mode", "accepted"]]

    assert len(complete) == len(commands) - 1
    assert world.ok('SEARCH CONCEPT "dark"')[0]["name"] == "dark mode"


def test_counts_are_not_shown_to_who_may_not_see_everything(nexus):
    """Counts take hidden elements in, so a restricted caller gets none."""
    guest = hiding("secret")

    assert "concepts_by_type" not in nexus.get("DESCRIBE PRIMER", principal=guest)["map"]
    assert "counts" not in nexus.get("DESCRIBE SPACE", principal=guest)
    assert nexus.get("DESCRIBE SPACE")["counts"]["concept"] == 3


# --- protocol, context, space


def test_the_protocol_is_told_with_its_version(nexus):
    """DESCRIBE PROTOCOL names the versions and formats that are spoken (KIP2-META-003)."""
    value = nexus.get("DESCRIBE PROTOCOL")

    assert set(value["versions"].values()) == {"2.0"}
    assert value["isolation_levels"] == ["serializable", "snapshot"]
    assert value["compatibility_profiles"] == []


def test_the_execution_context_is_this_requests(nexus):
    """Space, Principal, endpoint, mode and what the client declared, which grants nothing (KIP2-META-004)."""
    request = {
        "kip": "2.0",
        "context": {"purpose": "audit"},
        "operations": [{"command": "DESCRIBE EXECUTION CONTEXT"}],
    }
    value = nexus.send(request, principal=Principal("p", actors=frozenset({"C-1"})), readonly=True)[
        "results"
    ][0]["result"]

    assert value["space"]["id"] == "test"
    assert value["principal"] == {"id": "p", "channel": "kip", "may": "everything"}
    assert value["actor_binding"]["actors"] == ["C-1"]
    assert value["endpoint"] == {"class": "kip", "readonly": True}
    assert value["declared"] == {"purpose": "audit"}
    assert value["snapshot_seq"] == nexus.state.seq


def test_only_the_addressed_space_can_be_described(nexus):
    """Another space is answered as one that does not exist (KIP2-META-012)."""
    assert nexus.get("DESCRIBE SPACE")["id"] == "test"
    assert nexus.get('DESCRIBE SPACE "urn:noema:space:test"')["space_seq"] == nexus.state.seq
    assert nexus.code('DESCRIBE SPACE "other"') == "NotFoundOrNotVisible"
    assert [row["id"] for row in nexus.get("LIST SPACES")] == ["test"]


# --- capabilities


def test_supported_and_available_are_two_things(nexus):
    """What the engine has does not depend on the caller; what the caller may use does (KIP2-META-011)."""
    owner = nexus.get("DESCRIBE CAPABILITIES")
    reader = nexus.get("DESCRIBE CAPABILITIES", principal=READER)

    assert owner["supported"] == reader["supported"] == SUPPORTED
    assert owner["available"]["purge"] is True
    assert reader["available"]["purge"] is False
    assert reader["available"]["keyword_search"] is False
    assert reader["available"]["structural_patterns"] is True


def test_a_readonly_endpoint_offers_no_writes(nexus):
    """At the endpoint that may not write, no writing capability is available to anybody."""
    available = nexus.get("DESCRIBE CAPABILITIES", readonly=True)["available"]

    assert not any(
        available[name] for name in ("mutate_block", "upsert_concept", "purge", "ingestion_context")
    )
    assert available["belief_projection"]
    assert available["keyword_search"]


def test_nothing_unsupported_is_available(nexus):
    """A capability that is not there is available to nobody."""
    value = nexus.get("DESCRIBE CAPABILITIES")

    assert not [name for name, there in value["supported"].items() if not there and value["available"][name]]
    assert set(value["available"]) == set(SUPPORTED)


def test_the_bounds_are_those_that_negotiation_uses(nexus):
    """`limits` holds every bound that `requires` may name."""
    limits = nexus.get("DESCRIBE CAPABILITIES")["limits"]

    assert LIMITS.items() <= limits.items()
    assert limits["max_query_rows"] == 1000


@pytest.mark.parametrize(
    ("capability", "command", "code"),
    [
        ("keyword_search", 'SEARCH CONCEPT "alice"', None),
        ("semantic_search", 'SEARCH CONCEPT "alice" MODE "semantic"', "SearchModeUnsupported"),
        ("hybrid_search", 'SEARCH CONCEPT "alice" MODE "hybrid"', "SearchModeUnsupported"),
        ("historical_search", 'SEARCH CONCEPT "alice" AS OF SEQ 0', None),
        ("historical_schema_environment", "DESCRIBE SCHEMA ENVIRONMENT AS OF SEQ 0", None),
        ("historical_as_of", 'FIND(?c) WHERE { ?c CONCEPT {type: "Person"} } AS OF SEQ 1', None),
        ("belief_slot", 'FIND(?s.status) WHERE { ?s BELIEF SLOT (:alice, "prefers") }', None),
        ("change_stream", "CHANGES AFTER SEQ 0", None),
        ("read_snapshots", "SNAPSHOT", None),
        ("snapshot_export", 'EXPORT CAPSULE ?r WHERE { ?r CONCEPT {type: "Person"} }', None),
    ],
)
def test_claims_and_behaviour_agree(nexus, capability, command, code):
    """What is claimed works, and what is not claimed is refused by name."""
    supported = nexus.get("DESCRIBE CAPABILITIES")["supported"][capability]
    result = nexus.one(command)

    assert supported == (code is None)
    assert result.get("error", {}).get("code") == code


# --- access


@pytest.mark.parametrize(
    ("asked", "principal", "decision", "reason"),
    [
        ('{operation: "purge"}', Principal("o"), "allowed", None),
        ('{operation: "purge"}', READER, "denied", "not_permitted"),
        ('{operation: "read", resource: :bob}', READER, "allowed", None),
        ('{operation: "read", resource: "C-nobody"}', Principal("o"), "denied", "not_found_or_not_visible"),
        ('{operation: "read", space: "other"}', Principal("o"), "denied", "not_found_or_not_visible"),
        ('{operation: "assert", actor: "C-2"}', Principal("o", actors=frozenset({"C-1"})), "requires_actor_binding", "principal_is_not_bound_to_actor"),
        ('{operation: "retract", resource: :claim}', Principal("o", actors=frozenset()), "denied", "not_the_asserting_actor"),
    ],
)  # fmt: skip
def test_access_is_decided_as_the_operation_would_be(nexus, asked, principal, decision, reason):
    """DESCRIBE ACCESS gives the decision and a reason, never the policy behind it."""
    value = nexus.get(f"DESCRIBE ACCESS WITH {asked}", principal=principal)

    assert (value["decision"], value.get("reason")) == (decision, reason)
    assert value["commit_guaranteed"] is False


def test_access_without_an_operation_lists_all(nexus):
    """Every permission of the vocabulary is decided at once."""
    actions = nexus.get("DESCRIBE ACCESS", principal=READER, readonly=True)["actions"]

    assert actions["read"] == {"decision": "allowed"}
    assert actions["search"]["reason"] == "not_permitted"
    assert actions["purge"]["reason"] == "readonly_endpoint"


def test_access_refuses_what_it_does_not_know(nexus):
    """An unknown operation or option is refused by name."""
    assert nexus.code('DESCRIBE ACCESS WITH {operation: "fly"}') == "ConstraintViolation"
    assert nexus.code('DESCRIBE ACCESS WITH {colour: "red"}') == "UnsupportedCapability"


# --- errors


@pytest.mark.parametrize("code", sorted(REGISTRY))
def test_every_error_is_described(nexus, code):
    """Category, retry class with its meaning, and what to do next."""
    value = nexus.get("DESCRIBE ERROR :code", code=code)

    assert value["category"] == REGISTRY[code].category
    assert value["retry"]["class"] == REGISTRY[code].retry
    assert value["retry"]["meaning"]
    assert value["recovery"]


def test_an_unknown_error_code_suggests_its_neighbours(nexus):
    """A code that is not in the registry is not found, with what is near."""
    assert "VersionConflict" in nexus.refused('DESCRIBE ERROR "VersionConflicts"')["hint"]


# --- policies and trust


def test_policies_are_listed_and_described(nexus):
    """The default and the portable policy, with what their scores mean."""
    listed = nexus.get("LIST EPISTEMIC POLICIES")
    portable = nexus.get('DESCRIBE EPISTEMIC POLICY "test-deterministic"')

    assert [row["policy_id"] for row in listed if row["default"]] == ["kip:policy:baseline"]
    assert "test-deterministic" in [row["policy_id"] for row in listed]
    assert nexus.get("DESCRIBE EPISTEMIC POLICY")["policy_id"] == "kip:policy:baseline"
    assert portable["score_semantics"] is None
    assert portable["version"] == "1"
    assert nexus.code('DESCRIBE EPISTEMIC POLICY "oracle"') == "ProjectionPolicyUnavailable"


def test_policies_are_paged(nexus):
    """LIST takes LIMIT and CURSOR."""
    first = nexus.one("LIST EPISTEMIC POLICIES LIMIT 2")
    rest = nexus.one("LIST EPISTEMIC POLICIES CURSOR :c", c=first["next_cursor"])

    assert len(first["result"]) == 2
    assert len(rest["result"]) == 2
    assert "next_cursor" not in rest


def test_the_projections_contract_is_told(nexus):
    """Options, statuses, and reasons that an answer may give; what may not be seen is never a reason."""
    value = nexus.get("DESCRIBE PROJECTION CAPABILITY", principal=READER)

    assert value["available"] is False
    assert value["options"]["explanation"] == ["none", "summary", "ledger"]
    assert set(value["statuses"]) == {"accepted", "rejected", "contested", "uncertain", "insufficient"}
    assert "not_visible" not in value["exclusion_reasons"]


def test_trust_is_for_the_owner_to_know(nexus):
    """Everyone gets the vocabulary; records only who may do everything; a subject's existence is never told."""
    trust = TrustState(records=(TrustRecord("actor", "C-1", "trusted"),))

    def ask(command, principal):
        request = read_request({"kip": "2.0", "operations": [{"command": command}]})
        context = Context(principal=principal, now=nexus.now, secret=b"s", trust=trust)
        return msgspec.to_builtins(execute(nexus.state, request, context).response)["results"][0]

    owner = ask("DESCRIBE TRUST", Principal("owner"))["result"]
    assert [record["subject"] for record in owner["records"]] == ["C-1"]
    assert ask('DESCRIBE TRUST "C-1"', Principal("owner"))["result"]["stated"] is True
    assert ask('DESCRIBE TRUST "C-9"', Principal("owner"))["result"]["stated"] is False
    assert ask("DESCRIBE TRUST", READER)["result"]["records"] == "not_shown"
    assert ask('DESCRIBE TRUST "C-1"', READER)["error"]["code"] == "NotAuthorized"
