"""SEARCH over all five kinds: who is found by which words, in which order, as of when, by whom."""

from __future__ import annotations

import msgspec
import pytest

from core.authority import Principal
from core.model.elements import Governance, Origin
from core.transaction.draft import Draft
from tests.core.meta.conftest import READER, hiding


def found(nexus, command, **more):
    return [hit["id"] for hit in nexus.get(command, **more)]


def classify(nexus, name, classification):
    """Mark an element, as a host does."""
    nexus.now += 1000
    draft = Draft(nexus.state, now=nexus.now, origin=Origin("host", "test"))
    draft.change(nexus.state.get(nexus.id(name)), governance=Governance(classification))
    nexus._append(draft.finish())


# --- what is found


@pytest.mark.parametrize(
    ("kind", "words", "name"),
    [
        ("CONCEPT", "alice", "alice"),
        ("CONCEPT", "ali", "alice"),
        ("CONCEPT", "mountain climbing", "alice"),
        ("EVIDENCE", "evening", "message"),
        ("ACTIVITY", "consolidation", "activity"),
        ("PROPOSITION", "dark", "likes"),
        ("ASSERTION", "dark mode", "claim"),
        ("ASSERTION", "oslo", "zone"),
    ],
)
def test_each_kind_is_found_by_its_words(nexus, kind, words, name):
    """A Concept by names and attributes, Evidence by content, an Activity by class, statements through their ends."""
    assert found(nexus, f'SEARCH {kind} "{words}"') == [nexus.id(name)]


def test_a_proposition_is_found_by_its_literal_and_by_its_predicate(nexus):
    """The words of a Literal object and of a predicate's name count as a statement's own."""
    hits = nexus.get('SEARCH PROPOSITION "oslo timezone"')

    assert hits[0]["object"] == {"value": "Europe/Oslo"}
    assert hits[0]["retrieval"]["matched_fields"] == ["predicate", "object"]
    assert found(nexus, 'SEARCH PROPOSITION "timezone"') == [hits[0]["id"]]


def test_an_assertion_is_found_by_its_actor(nexus):
    """Who made a claim is one of its ends."""
    hits = nexus.get('SEARCH ASSERTION "bob"')

    assert [hit["id"] for hit in hits] == [nexus.id("claim")]
    assert hits[0]["asserted_by"] == {"id": nexus.id("bob"), "label": "Bob"}
    assert hits[0]["retrieval"]["matched_fields"] == ["asserted_by"]
    assert (hits[0]["stance"], hits[0]["mode"], hits[0]["status"]) == ("support", "stated", "active")


def test_a_renamed_end_changes_what_finds_a_statement(nexus):
    """Statements are found by the names their ends have now, with nothing reindexed."""
    nexus.do('UPDATE :dark SET FIELDS {name: "Midnight"}')

    assert found(nexus, 'SEARCH PROPOSITION "dark"') == []
    assert found(nexus, 'SEARCH PROPOSITION "midnight"') == [nexus.id("likes")]


def test_cognition_searches_every_kind_and_a_name_comes_before_what_is_said_of_it(nexus):
    """COGNITION has one order for all kinds; what bears a name stands before statements that lend it."""
    kinds = [hit["kind"] for hit in nexus.get('SEARCH COGNITION "bob"')]

    assert kinds == ["concept", "assertion"]
    assert {hit["kind"] for hit in nexus.get('SEARCH COGNITION "alice dark consolidation"')} == {
        "concept", "proposition", "assertion", "evidence", "activity",
    }  # fmt: skip


def test_a_hit_names_exactly_what_was_found(nexus):
    """A hit carries id, kind and exact schema reference for the next command, and a passage with the word."""
    (hit,) = nexus.get('SEARCH CONCEPT "norway"')

    assert hit["id"] == nexus.id("alice")
    assert hit["kind"] == "concept"
    assert hit["schema_ref"] == "kip://test/core-domain@1.0.0/Person"
    assert hit["name"] == "Alice Chen"
    assert hit["snippet"] == "climbs mountains in Norway"
    assert hit["retrieval"]["matched_fields"] == ["attributes.description"]


def test_a_long_text_is_shown_around_the_word(nexus):
    """A snippet is short and holds the word that fits, wherever in the text it stands."""
    text = "filler words " * 200 + "then the needle appears " + "and more " * 100
    nexus.do('CREATE EVIDENCE ?e { SET FIELDS {evidence_class: "message", payload: :text} }', text=text)

    (hit,) = nexus.get('SEARCH EVIDENCE "needle"')

    assert "needle" in hit["snippet"]
    assert len(hit["snippet"]) <= 202


def test_a_merged_concept_leads_to_its_survivor(nexus):
    """Words of a merged Concept find the survivor once, which says by which id it was found."""
    nexus.do('CREATE CONCEPT ?b { TYPE "Person" NAME "Robert" }')
    (robert,) = nexus.get('SEARCH CONCEPT "robert"')
    nexus.do("MERGE CONCEPT :robert INTO :bob", robert={"id": robert["id"]})

    (hit,) = nexus.get('SEARCH CONCEPT "robert"')

    assert hit["id"] == nexus.id("bob")
    assert hit["merged_from"] == robert["id"]


@pytest.mark.parametrize("command", ["ARCHIVE :bob", "TOMBSTONE :bob"])
def test_what_is_out_of_use_is_not_found(nexus, command):
    """Archived and tombstoned elements take no part in ordinary grounding."""
    nexus.do(command)

    assert found(nexus, 'SEARCH CONCEPT "bob"') == []


# --- narrowing


def test_with_type_and_with_predicate_narrow(nexus):
    """A type or a predicate, by local name or exact reference, leaves only what has it."""
    assert found(nexus, 'SEARCH CONCEPT "alice dark" WITH TYPE "Theme"') == [nexus.id("dark")]
    exact = "kip://test/core-domain@1.0.0/Theme"
    assert found(nexus, 'SEARCH COGNITION "alice dark" WITH TYPE :type', type=exact) == [nexus.id("dark")]
    (hit,) = nexus.get('SEARCH PROPOSITION "alice" WITH PREDICATE "timezone"')
    assert hit["predicate_ref"].endswith("/timezone")


def test_a_clause_of_another_kind_is_refused(nexus):
    """WITH TYPE does not go with Evidence, WITH PREDICATE not with Concepts; unknown names say what is near."""
    assert nexus.code('SEARCH EVIDENCE "x" WITH TYPE "Person"') == "TypeMismatch"
    assert nexus.code('SEARCH CONCEPT "x" WITH PREDICATE "prefers"') == "TypeMismatch"
    error = nexus.refused('SEARCH CONCEPT "x" WITH TYPE "Persom"')
    assert error["code"] == "SchemaSymbolNotFound"
    assert "Person" in error["hint"]


def test_threshold_is_a_share_from_0_to_1(nexus):
    """THRESHOLD keeps what fits at least so well; scores lie between 0 and 1."""
    scores = [hit["retrieval"]["score"] for hit in nexus.get('SEARCH COGNITION "alice dark"')]

    assert all(0 < score < 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    kept = nexus.get('SEARCH COGNITION "alice dark" THRESHOLD :least', least=scores[1])
    assert [hit["retrieval"]["score"] for hit in kept] == [s for s in scores if s >= scores[1]]
    assert nexus.get('SEARCH COGNITION "alice" THRESHOLD 1') == []
    assert nexus.code('SEARCH COGNITION "alice" THRESHOLD 1.5') == "ConstraintViolation"


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_modes_that_are_not_there_are_refused(nexus, mode):
    """Only keyword mode is served; another one is refused by name, never answered with keywords."""
    error = nexus.refused(f'SEARCH CONCEPT "alice" MODE "{mode}"')

    assert error["code"] == "SearchModeUnsupported"
    assert error["details"]["supported"] == ["keyword"]


def test_operands_are_checked(nexus):
    """An empty term and a LIMIT that is no number are refused."""
    assert nexus.code('SEARCH CONCEPT ""') == "TypeMismatch"
    assert nexus.code('SEARCH CONCEPT "a" LIMIT "b"') in {"TypeMismatch", "InvalidSyntax"}


# --- what an answer says of itself


def test_the_answer_says_how_fresh_and_of_what_kind_it_is(nexus):
    """Every answer names the index's seq, the space's, the consistency, and what its scores mean."""
    search = nexus.one('SEARCH CONCEPT "alice"')["context"]["search"]

    assert search["index_seq"] == search["current_space_seq"] == nexus.state.seq
    assert search["consistency"] == "transactional"
    assert search["mode"] == "keyword"
    assert "not confidence" in search["score_semantics"]


def test_a_miss_is_not_called_absence(nexus):
    """An empty answer says that it proves nothing, and which command would."""
    result = nexus.one('SEARCH CONCEPT "zanzibar"')

    assert result["result"] == []
    assert [warning["code"] for warning in result["warnings"]] == ["SearchMiss"]
    assert "FIND" in result["warnings"][0]["message"]


def test_a_term_without_words_is_told(nexus):
    """A term of stop words looks for nothing, and says so instead of claiming a miss."""
    assert [w["code"] for w in nexus.one('SEARCH CONCEPT "the of"')["warnings"]] == ["SearchNoTerms"]


def test_scores_are_stored_nowhere(nexus):
    """A search changes no element and no seq."""
    before = msgspec.json.encode(nexus.state.get(nexus.id("alice"))), nexus.state.ver
    nexus.get('SEARCH CONCEPT "alice"')

    assert (msgspec.json.encode(nexus.state.get(nexus.id("alice"))), nexus.state.ver) == before


def test_a_bounded_search_says_so(nexus):
    """Where more statements fit than are weighed, the answer carries a warning."""
    people = "\n".join(f'CREATE CONCEPT ?p{i} {{ TYPE "Person" NAME "Twin {i}" }}' for i in range(120))
    nexus.do(f"MUTATE {{ {people} }}")

    assert "SearchBounded" in [w["code"] for w in nexus.one('SEARCH PROPOSITION "twin"')["warnings"]]
    assert len(nexus.get('SEARCH CONCEPT "twin" LIMIT 200')) == 120


# --- the past, and pages


def test_historical_search_reads_the_words_of_then(nexus):
    """AS OF SEQ finds by the names of that state, and says which index it read."""
    then = nexus.state.seq
    nexus.do('UPDATE :bob SET FIELDS {name: "Robert"}')

    result = nexus.one('SEARCH CONCEPT "bob" AS OF SEQ :seq', seq=then)

    assert [hit["name"] for hit in result["result"]] == ["Bob"]
    assert result["context"]["search"]["index_seq"] == then
    assert result["context"]["search"]["current_space_seq"] == then + 1
    assert result["context"]["search"]["consistency"] == "historical"
    assert found(nexus, 'SEARCH CONCEPT "bob"') == []


def test_a_seq_that_has_not_been_reached_is_refused(nexus):
    """The future has no index."""
    assert nexus.code('SEARCH CONCEPT "bob" AS OF SEQ 999') == "HistoricalSnapshotUnavailable"


def test_the_past_does_not_find_what_was_purged(nexus):
    """Purged words are gone from historical search too."""
    then = nexus.state.seq
    nexus.do('PURGE :message REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"')

    assert found(nexus, 'SEARCH EVIDENCE "evening" AS OF SEQ :seq', seq=then) == []


def test_pages_keep_the_state_they_began_with(nexus):
    """A cursor goes on in the index of the first page, whatever is written in between."""
    whole = found(nexus, 'SEARCH COGNITION "alice"')
    first = nexus.one('SEARCH COGNITION "alice" LIMIT 2')
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" NAME "Alice" }')

    rest = nexus.one('SEARCH COGNITION "alice" LIMIT 50 CURSOR :c', c=first["next_cursor"])

    assert [hit["id"] for hit in first["result"] + rest["result"]] == whole
    assert "next_cursor" not in rest


def test_cursors_continue_only_their_own_search(nexus):
    """Another term, another caller, another family and a made-up cursor are told apart."""
    cursor = nexus.one('SEARCH COGNITION "alice" LIMIT 1')["next_cursor"]
    listed = nexus.one("LIST TYPES LIMIT 1")["next_cursor"]

    assert nexus.code('SEARCH COGNITION "bob" LIMIT 1 CURSOR :c', c=cursor) == "CursorMismatch"
    other = Principal("someone")
    assert nexus.code('SEARCH COGNITION "alice" CURSOR :c', c=cursor, principal=other) == "CursorMismatch"
    assert nexus.code('SEARCH COGNITION "alice" CURSOR :c', c=listed) == "CursorTypeMismatch"
    assert nexus.code('SEARCH COGNITION "alice" CURSOR "nonsense"') == "CursorInvalidated"
    nexus.now += 4_000_000
    assert nexus.code('SEARCH COGNITION "alice" CURSOR :c', c=cursor) == "CursorExpired"


def test_a_pinned_search_says_so(nexus):
    """Under a snapshot token the index is the token's, and where the space stands now is not claimed."""
    token, then = nexus.get("SNAPSHOT")["snapshot_token"], nexus.state.seq
    nexus.do('UPDATE :bob SET FIELDS {name: "Robert"}')
    request = {
        "kip": "2.0",
        "read": {"snapshot_token": token},
        "operations": [{"command": 'SEARCH CONCEPT "bob"'}],
    }

    result = nexus.send(request)["results"][0]

    assert [hit["name"] for hit in result["result"]] == ["Bob"]
    search = result["context"]["search"]
    assert (search["index_seq"], search["consistency"]) == (then, "snapshot")
    assert "current_space_seq" not in search


def test_a_cursor_does_not_outlive_what_its_caller_may_see(nexus):
    """When more is hidden from a caller than on the first page, the cursor is no longer good."""
    cursor = nexus.one('SEARCH COGNITION "alice" LIMIT 1', principal=hiding("a"))["next_cursor"]

    error = nexus.code('SEARCH COGNITION "alice" CURSOR :c', c=cursor, principal=hiding("b"))

    assert error == "CursorInvalidated"


def test_a_hit_shows_what_there_is(nexus):
    """Evidence without an inline payload, and a Concept without a name, are shown without a passage of their own."""
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" SET ATTRIBUTES {note: "unnamed wanderer"} }')
    (hit,) = nexus.get('SEARCH CONCEPT "wanderer"')
    assert hit["name"] is None
    ref = {"id": hit["id"]}
    nexus.do('ENSURE PROPOSITION ?p (:x, "prefers", :dark)', x=ref)

    statements = {row["subject"]["id"]: row for row in nexus.get('SEARCH PROPOSITION "dark"')}

    assert "label" not in statements[ref["id"]]["subject"]
    assert statements[ref["id"]]["snippet"] == "prefers · Dark Mode"


# --- who may


def test_searching_needs_its_own_permission(nexus):
    """Who may read may not therefore search."""
    assert nexus.code('SEARCH CONCEPT "alice"', principal=READER) == "NotAuthorized"


def test_what_is_hidden_takes_no_part(nexus):
    """Hidden elements are not found, statements about them neither, and their names are not shown."""
    classify(nexus, "dark", "secret")
    guest = hiding("secret")

    assert found(nexus, 'SEARCH COGNITION "mode" WITH TYPE "Theme"', principal=guest) == []
    assert found(nexus, 'SEARCH PROPOSITION "dark"', principal=guest) == []
    about = 'SEARCH PROPOSITION "prefers alice" WITH PREDICATE "prefers"'
    assert found(nexus, about, principal=guest) == []  # what is said of it is hidden with it
    assert found(nexus, about) != []
    assert found(nexus, 'SEARCH PROPOSITION "dark"') == [nexus.id("likes")]


def test_hidden_texts_do_not_move_what_is_seen(nexus):
    """Scores, order and frequencies for a caller are the same whether hidden texts exist or not."""
    guest = hiding("secret")
    before = nexus.get('SEARCH COGNITION "dark alice"', principal=guest)
    nexus.do(
        'CREATE EVIDENCE ?secret { SET FIELDS {evidence_class: "message", payload: "dark dark alice dark alice"} }'
    )
    newest = nexus.deltas[-1].puts[0].id
    nexus.ref["secret"] = {"id": newest}
    classify(nexus, "secret", "secret")

    assert nexus.get('SEARCH COGNITION "dark alice"', principal=guest) == before
    assert newest in found(nexus, 'SEARCH COGNITION "dark alice"')


def test_what_is_secret_now_cannot_be_found_in_the_past(nexus):
    """Historical search obeys the authority of today (KIP §68.2)."""
    then = nexus.state.seq
    classify(nexus, "message", "secret")
    guest = hiding("secret")

    assert found(nexus, 'SEARCH EVIDENCE "evening" AS OF SEQ :seq', seq=then, principal=guest) == []
    assert found(nexus, 'SEARCH EVIDENCE "evening" AS OF SEQ :seq', seq=then) == [nexus.id("message")]
