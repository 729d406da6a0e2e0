"""What a model may write: decided on the tree of its commands, each refusal with what is allowed."""

from pathlib import Path
from typing import Any

import pytest

from core.agents.tools.cognition import ALLOWED, Rules, clauses_of
from core.agents.tools.terms import Captured
from core.agents.vocabulary import ORGANIZATION, PERSON, PLACE, TOOL
from core.errors import NoemaError
from core.language import format_command, is_mutation, parameter_names, parse
from core.model.elements import Assertion, Citation, Evidence, Origin, Payload, ValidTime
from core.model.instants import parse_instant
from core.model.literals import Ref, make_literal
from core.model.log import SpaceMeta, Tier
from core.schema.environment import environment_of, initial_environment
from core.state.layer import Empty
from core.state.space import SpaceState
from core.transaction.draft import Draft

SAID = parse_instant("2026-05-01T10:00:00Z")
LATER = parse_instant("2026-05-01T10:05:00Z")


class Space:
    """Alice and Bob have said one thing each; the reader is there; Berlin is known."""

    def __init__(self) -> None:
        meta = SpaceMeta("home", "one", "abcde", "alice", 0, Tier(4, 0), initial_environment())
        draft = Draft(
            SpaceState.on(Empty(), meta=meta, ver=0, seq=0, at=0), now=LATER, origin=Origin("a", "b")
        )
        self.alice = draft.ensure_concept(PERSON, "name:alice", name="Alice").id
        self.bob = draft.ensure_concept(PERSON, "name:bob", name="Bob").id
        self.carol = draft.ensure_concept(PERSON, "name:carol", name="Carol").id
        self.reader = draft.ensure_concept(TOOL, "noema:formation", name="Noema").id
        self.berlin = draft.ensure_concept(PLACE, "berlin", name="Berlin").id
        self.acme = draft.ensure_concept(ORGANIZATION, "acme", name="Acme").id
        self.heard, self.other, self.own = (
            draft.create(
                Evidence, evidence_class=kind, payload=Payload("inline", "x"), content_digest="sha256:" + "0" * 64
            ).id
            for kind in ("user_statement", "user_statement", "observation")
        )  # fmt: skip
        about = draft.ensure_proposition(self.alice, "kip://noema/memory@1.0.0/lives_in", Ref(self.berlin))
        zone = draft.ensure_proposition(
            self.alice, "kip://noema/memory@1.0.0/timezone", make_literal("UTC+1")
        )
        self.claim, self.zone = (
            draft.create(
                Assertion, proposition=found.id, asserted_by=self.alice, stance="support", mode="stated",
                asserted_at=SAID, evidence=(Citation(self.heard, "support"),), valid_time=valid,
            ).id
            for found, valid in ((about, ValidTime()), (zone, ValidTime(SAID, None)))
        )  # fmt: skip
        delta = draft.finish()
        assert delta is not None
        self.state = draft.state.apply(delta)
        messages = (
            Captured(self.heard, self.alice, SAID),
            Captured(self.other, self.bob, LATER, ("E-piece",)),
        )
        self.rules = Rules(messages, self.reader, SAID, "seal", {"counterparty": {"id": self.alice}})

    def settle(self, text: str, **parameters: Any) -> str | None:
        """The command as it may run, as text; None if there is nothing left to do."""
        found = self.rules.settle(parse(text), parameters, self.state, environment_of(self.state.meta))  # type: ignore[arg-type]
        self.on_record = found.on_record
        return None if found.statement is None else format_command(found.statement)

    def refused(self, text: str, **parameters: Any) -> NoemaError:
        """Why a command may not run."""
        with pytest.raises(NoemaError) as caught:
            self.settle(text, **parameters)
        return caught.value


@pytest.fixture
def space() -> Space:
    """The space of these tests."""
    return Space()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('UPDATE "C-1" SET ATTRIBUTES {a: 1}', "UPDATE"),
        ('SET RETENTION "A-1" {retention_class: "x"}', "SET RETENTION"),
        ('ARCHIVE "C-1"', "ARCHIVE"),
        ('TOMBSTONE "C-1"', "TOMBSTONE"),
        ('PURGE "C-1" CONFIRM "PURGE"', "PURGE"),
        ('MERGE CONCEPT "C-1" INTO "C-2"', "MERGE CONCEPT"),
        ('MUTATE { ARCHIVE "C-1" }', "ARCHIVE"),
    ],
)
def test_what_is_no_cognition_is_refused(space: Space, text: str, words: str):
    """Families that edit, delete or merge are refused, in MUTATE too, and the error names what is allowed."""
    error = space.refused(text)
    assert error.code == "NotAuthorized"
    assert error.message == f"{words} is not for you"
    assert error.details["allowed"] == list(ALLOWED)


def test_a_claim_is_dated_by_the_message_it_cites(space: Space):
    """Whatever time a model writes, a claim was made when its message was said."""
    text = 'ASSERT (:who2, "timezone", "UTC+2") {by: :who2, mode: "stated", evidence: :msg2, at: "1999-01-01T00:00:00Z"}'
    settled = space.settle(text)
    assert settled is not None
    assert '"2026-05-01T10:05:00.000Z"' in settled
    assert "1999" not in settled


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('ASSERT (:who1, "timezone", "UTC") {by: :who1, mode: "stated"}', "cites the message"),
        ('ASSERT (:who1, "timezone", "UTC") {by: :who2, mode: "stated", evidence: :msg1}', "who said the message"),
        ('ASSERT (:who1, "timezone", "UTC") {by: :who1, mode: "stated", evidence: :msg2}', "who said the message"),
        ('ASSERT (:who1, "timezone", "UTC") {by: :self, mode: "observed", evidence: :msg1}', "who said the message"),
        ('ASSERT (:who1, "timezone", "UTC") {by: :who1, mode: "inferred", evidence: :msg1}', "by: :self"),
        ('ASSERT (:who1, "timezone", "UTC") {by: :self, mode: "imported", evidence: :msg1}', "written out"),
        ('ASSERT (:who1, "timezone", "UTC") {by: :who1, mode: :m, evidence: :msg1}', "written out"),
        ('MUTATE { UPSERT CONCEPT ?x { MATCH {type: "Person", key: "name:zoe"} } ASSERT (?x, "timezone", "UTC") {by: ?x, mode: "stated", evidence: :msg1} }', "who said the message"),
        ('CREATE ASSERTION ?a { SET FIELDS {proposition: {id: "P-1"}, asserted_by: :who2, stance: "support", mode: "stated"} SET STRUCTURAL { ("evidence", :msg1) } }', "who said the message"),
    ],
)  # fmt: skip
def test_no_words_are_put_into_anybodys_mouth(space: Space, text: str, problem: str):
    """A claim is by who said what it cites; what is inferred is the reader's."""
    assert problem in space.refused(text, m="imported").message


@pytest.mark.parametrize(
    "text",
    [
        'ASSERT (:counterparty, "timezone", "UTC") {by: :counterparty, mode: "stated", evidence: [:msg1, :msg2]}',
        'ASSERT (:who2, "timezone", "UTC") {by: :self, mode: "inferred", confidence: 0.5, evidence: :msg1}',
        'ASSERT (:who2, "timezone", "UTC") {by: :self, mode: "predicted"}',
        'ASSERT (:who1, "timezone", "UTC") {by: :who2, mode: "stated", evidence: "E-piece"}',
        'ENSURE PROPOSITION (:who1, "timezone", "UTC")',
        'UPSERT CONCEPT ?x { MATCH {type: "Place", key: "rome"} SET FIELDS {name: "Rome"} }',
        'CREATE CONCEPT ?x { TYPE "Insight" NAME "i" SET ATTRIBUTES {summary: "s"} SET FACET "MnemonicState" {salience: 0.5} }',
        'CREATE CONCEPT ?x { TYPE "Skill" NAME "s" SET ATTRIBUTES {skill_class: "workflow", summary: "s", procedure: "p", status: "candidate"} }',
        'CREATE EVIDENCE ?e { SET FIELDS {evidence_class: "observation", payload: "it is raining"} }',
        'CREATE ACTIVITY ?x { SET FIELDS {activity_class: "reflection", status: "completed"} }',
        'TRANSITION ACTIVITY "X-1" TO "completed"',
        'RETRACT ASSERTION "A-1"',
    ],
)  # fmt: skip
def test_cognition_may_be_written(space: Space, text: str):
    """What forming a memory takes is let through."""
    assert space.settle(text) is not None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('RETRACT ASSERTION ?a WHERE { ?a ASSERTION {mode: "stated"} }', "by its id"),
        ('SUPERSEDE ASSERTION "A-1" BY "A-2"', "the same statement makes"),
        ('TRANSITION ACTIVITY "X-1" TO :s', "state of its own"),
        ('CREATE EVIDENCE ?e { SET FIELDS {evidence_class: "user_statement", payload: "x"} }', "captured already"),
        ('CREATE EVIDENCE ?e { SET FIELDS {payload: "x"} }', "captured already"),
        ('CREATE CONCEPT ?x { TYPE "Fact" NAME "x" }', "another part"),
        ('CREATE CONCEPT ?x { TYPE "SleepTask" NAME "x" }', "another part"),
        ('CREATE CONCEPT ?x { TYPE "Skill" NAME "x" SET ATTRIBUTES {status: "validated"} }', "candidate"),
        ('CREATE CONCEPT ?x { TYPE "Skill" NAME "x" SET FACET "SkillUtility" {utility: 1} }', "MnemonicState"),
        ('CREATE CONCEPT ?x { TYPE "Insight" NAME "x" SET FACET "MnemonicState" {last_metabolized_at: null} }', "MnemonicState"),
        ('CREATE CONCEPT ?x { TYPE "Place" NAME "x" SET FIELDS {canonical_id: "x"} }', "not yours"),
        ('UPSERT CONCEPT ?x { MATCH {type: "Place", key: "berlin"} UNSET ATTRIBUTES {a} }', "UNSET"),
        ('UPSERT CONCEPT ?x { MATCH {type: "Person", key: "name:alice"} SET ATTRIBUTES {role: "admin"} }', "no attribute"),
        ('UPSERT CONCEPT ?x { MATCH {type: "Person", key: "name:carol"} SET FIELDS {name: "Karl"} }', "keeps the name"),
        ('CORRECT EVIDENCE :msg1 BY "E-2"', "stands as it came"),
        ('CORRECT EVIDENCE :heard BY "E-2"', "stands as it came"),
    ],
)  # fmt: skip
def test_what_is_kept_elsewhere_is_not_written(space: Space, text: str, problem: str):
    """Standing, retention, other parts' records, captured Evidence and other people's names stay as they are."""
    assert problem in space.refused(text, s="archived", heard=space.heard).message


def test_a_speaker_may_be_named_and_own_evidence_corrected(space: Space):
    """A speaker's name may change by their words; Evidence the model wrote may be corrected."""
    assert space.settle('UPSERT CONCEPT ?x { MATCH {id: :id} SET FIELDS {name: "Alicia"} }', id=space.alice)
    assert space.settle('CORRECT EVIDENCE :own BY "E-2"', own=space.own)


def test_a_parameter_of_the_host_cannot_be_given(space: Space):
    """Neither :msgN nor :whoN nor :self may come with a call."""
    for name in ("msg1", "who2", "self", "counterparty"):
        command = parse('ENSURE PROPOSITION (:who1, "timezone", "UTC")')
        with pytest.raises(NoemaError, match=f":{name} is bound already"):
            space.rules.settle(command, {name: {"id": "C-1"}}, space.state, environment_of(space.state.meta))  # type: ignore[arg-type]


def test_a_second_thing_of_one_name_is_refused_with_the_first_ones_id(space: Space):
    """CREATE answers with what is there; a CLIENT KEY of its own says that it is another one."""
    error = space.refused('CREATE CONCEPT ?x { TYPE "Place" NAME "Berlin" }')
    assert (error.code, error.details["id"]) == ("IdentityConflict", space.berlin)
    error = space.refused(
        'UPSERT CONCEPT ?x { MATCH {type: "Person", key: "carol2"} SET FIELDS {name: "Carol"} }'
    )
    assert error.details["id"] == space.carol
    assert space.settle('CREATE CONCEPT ?x { TYPE "Place" NAME "Berlin" CLIENT KEY "berlin-nh" }')
    assert space.settle('CREATE CONCEPT ?x { TYPE "Organization" NAME "Berlin" }')


def test_no_refusal_tells_of_what_the_caller_may_not_see(space: Space):
    """A Concept that is hidden from the caller is no second one to them, and its id is not told."""
    statement: Any = parse('CREATE CONCEPT ?x { TYPE "Place" NAME "Berlin" }')
    env = environment_of(space.state.meta)
    settled = space.rules.settle(statement, {}, space.state, env, sees=lambda found: found.id != space.berlin)
    assert settled.statement is not None
    claim: Any = parse('ASSERT (:who1, "lives_in", {type: "Place", key: "berlin"}) {by: :who1, mode: "stated", evidence: :msg1}')  # fmt: skip
    assert space.rules.settle(claim, {}, space.state, env, sees=lambda _: False).on_record == ()


def test_client_keys_are_of_the_conversation(space: Space):
    """A key that a model gives is sealed, so another conversation's same key is another."""
    settled = space.settle('CREATE CONCEPT ?x { TYPE "Commitment" CLIENT KEY "a" NAME "x" SET ATTRIBUTES {summary: "x", status: "pending"} }')  # fmt: skip
    assert settled is not None
    assert 'CLIENT KEY "seal:a"' in settled
    settled = space.settle(
        'ASSERT (:who2, "timezone", "UTC") {by: :who2, mode: "stated", evidence: :msg2, key: "a"}'
    )
    assert settled is not None
    assert '"seal:a"' in settled


def test_a_claim_on_record_from_the_same_message_is_left_out(space: Space):
    """A run that reads a conversation again writes nothing of it twice, whatever the rest of its statement."""
    claim = 'ASSERT (:who1, "lives_in", {type: "Place", key: "berlin"}) {by: :who1, mode: "stated", evidence: :msg1}'
    assert space.settle(claim) is None
    assert space.on_record == (space.claim,)
    both = f'MUTATE {{ UPSERT CONCEPT ?b {{ MATCH {{type: "Place", key: "berlin"}} }} {claim} }}'
    settled = space.settle(both)
    assert settled is not None
    assert "ASSERT" not in settled
    handle = claim.replace("ASSERT (", "ASSERT ?a (") + ' CREATE ACTIVITY ?x { SET FIELDS {activity_class: "reflection", status: "completed"} SET STRUCTURAL { ("outputs", ?a) } }'  # fmt: skip
    error = space.refused(f"MUTATE {{ {handle} }}")
    assert (error.code, error.details["id"]) == ("IdentityConflict", space.claim)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('ASSERT (:who1, "timezone", "UTC+1") {by: :who1, mode: "stated", evidence: :msg1, valid: {from: "2026-05-01T10:00:00Z"}}', True),
        ('ASSERT (:who1, "timezone", "UTC+1") {by: :who1, mode: "stated", evidence: :msg1}', False),
        ('ASSERT (:who1, "timezone", "UTC+1") {by: :who1, mode: "stated", evidence: :msg1, valid: {from: "nonsense"}}', False),
        ('ASSERT (:who1, "timezone", "UTC+1") {by: :who1, mode: "stated", stance: "reject", evidence: :msg1}', False),
        ('ASSERT (:who1, "timezone", "UTC+2") {by: :who1, mode: "stated", evidence: :msg1}', False),
        ('ASSERT (:who1, "nonsense", "UTC+2") {by: :who1, mode: "stated", evidence: :msg1}', False),
        ('ASSERT ({type: "Person", name: "Zoe"}, "timezone", "UTC+2") {by: :who1, mode: "stated", evidence: :msg1}', False),
        ('ASSERT (:who1, "lives_in", :berlin) {by: :who1, mode: "stated", evidence: :msg1}', True),
    ],
)  # fmt: skip
def test_the_same_is_the_same_tuple_stance_message_and_time(space: Space, text: str, same: bool):
    """Another interval, stance or value of one message is another claim."""
    assert (space.settle(text, berlin={"id": space.berlin}) is None) == same


def clauses() -> list[Any]:
    """Every clause of every mutation of the language's round-trip corpus, as a tree."""
    text = (Path(__file__).parents[3] / "fixtures" / "language" / "identity.kip").read_text("utf-8")
    found = []
    for block in text.split("\n\n"):
        try:
            tree = parse(block)
        except NoemaError:
            continue
        if is_mutation(tree):
            found += list(clauses_of(tree))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("clause", clauses(), ids=lambda clause: type(clause).__name__)
def test_every_shape_of_mutation_is_decided(space: Space, clause: Any):
    """Whatever KML there is, it is let through in a form that prints, or refused by a typed error."""
    names = parameter_names(clause) - space.rules.reserved.keys()
    for value in ({"id": "C-1"}, "completed", 1):  # which of them fits where the place takes one at all
        try:
            given = dict.fromkeys(names, value)
            settled = space.rules.settle(clause, given, space.state, environment_of(space.state.meta))
        except NoemaError:
            continue
        assert settled.statement is not None
        assert format_command(settled.statement)


def test_the_corpus_holds_many_shapes():
    """The clauses tried are of most families."""
    assert len({type(clause) for clause in clauses()}) >= 12
