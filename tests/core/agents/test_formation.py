"""A part of a conversation becomes Evidence, an Event, claims and commitments in one transaction."""

import hashlib
import unicodedata

import msgspec
import pytest

from core.agents.dialogue import Message
from core.agents.offline.formation import CHUNK_CHARACTERS, PART_BYTES, PART_MESSAGES, part_end
from core.agents.vocabulary import (
    COMMITMENT,
    COMMITTED_TO,
    EVENT,
    HAS_TURN,
    INVOLVES,
    MENTIONS,
    OWED_TO,
    TOOL,
    WORDING,
)
from core.model.elements import Activity, Assertion, Concept, Evidence
from core.model.instants import parse_instant
from tests.core.agents.memory import Memory

TEXTS = {
    "plain": "I live in Berlin.",
    "NFC": unicodedata.normalize("NFC", "Café Zoë"),
    "NFD": unicodedata.normalize("NFD", "Café Zoë"),
    "right to left": "أنا أعيش في برلين \u202eabc\u202c",
    "emoji": "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈",
    "zero width": "a\u200bb\u200dc\ufeff",
    "spaces": "  leading, trailing \r\n\t ",
    "control": "a\x00b\x1fc\x7f",
    "Chinese": "我住在北京，喜欢喝茶。",
    "astral": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_message_is_evidence_byte_for_byte(text: str) -> None:
    """The payload is the exact text, never normalised, trimmed or retyped, and the digest is of its bytes."""
    memory = Memory()
    memory.say(text)

    (evidence,) = memory.all("evidence")
    assert isinstance(evidence, Evidence)
    assert evidence.payload.inline == text
    assert evidence.content_digest == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_a_very_long_message_is_several_evidence_that_join_to_it() -> None:
    """What does not fit one element is cut, and the pieces in order are the message."""
    text = "".join(f"{i} 🙂 " for i in range(20_000))
    memory = Memory()
    memory.say(text)

    pieces = [
        evidence.payload.inline for evidence in memory.all("evidence") if isinstance(evidence, Evidence)
    ]
    assert len(pieces) == -(-len(text) // CHUNK_CHARACTERS)
    assert "".join(pieces) == text


def test_parts_of_content_are_kept_as_json() -> None:
    """An array of parts is stored as it came."""
    parts = [{"type": "text", "text": "I love tea."}, {"type": "image", "url": "u"}]
    memory = Memory()
    memory.form([{"role": "user", "name": "Alice", "content": parts}])

    (evidence,) = memory.all("evidence")
    assert isinstance(evidence, Evidence)
    assert evidence.payload.inline == parts
    assert evidence.media_type == "application/json"
    assert memory.claims() == ["Alice> Alice likes tea"]


def test_speaker_time_and_class_are_kept() -> None:
    """Evidence says who spoke, when, and in which role."""
    memory = Memory()
    memory.form(
        [
            {"role": "user", "name": "Alice", "content": "hi", "timestamp": 1_777_000_000_000},
            {"role": "assistant", "content": "hello"},
            {"role": "tool", "name": "search", "content": "{}"},
            {"role": "constructor", "content": "boo"},
        ]
    )

    found = [evidence for evidence in memory.all("evidence") if isinstance(evidence, Evidence)]
    assert [e.evidence_class for e in found] == [
        "user_statement",
        "agent_statement",
        "tool_result",
        "message",
    ]
    assert found[0].observed_at == 1_777_000_000_000
    assert found[1].observed_at == parse_instant("2026-05-01T10:00:00Z")
    sources = [memory.state.get(e.source[0]) for e in found]
    assert [s.name for s in sources if isinstance(s, Concept)] == [
        "Alice",
        "assistant",
        "search",
        "constructor",
    ]
    assert isinstance(sources[2], Concept)
    assert sources[2].schema_ref == TOOL


def test_the_event_lists_the_turns_in_order_and_who_took_part() -> None:
    """The exchange is one Event with its times, participants, what came up, and its turns."""
    memory = Memory()
    memory.form(
        [
            {"role": "user", "name": "Alice", "content": "I live in Berlin.", "timestamp": 1_777_000_000_000},
            {"role": "user", "name": "Bob", "content": "Nice", "timestamp": 1_777_000_060_000},
        ],
        context={"topic": "homes"},
    )

    (event,) = [c for c in memory.all("concept") if isinstance(c, Concept) and c.schema_ref == EVENT]
    evidence = [element.id for element in memory.all("evidence")]
    targets = {
        field: [r.target for r in event.structural if r.field == field]
        for field in (HAS_TURN, INVOLVES, MENTIONS)
    }
    assert targets[HAS_TURN] == evidence
    assert [memory.state.get(t).name for t in targets[INVOLVES]] == ["Alice", "Bob"]  # type: ignore[union-attr]
    assert [memory.state.get(t).name for t in targets[MENTIONS]] == ["Berlin"]  # type: ignore[union-attr]
    assert event.attributes["started_at"] < event.attributes["ended_at"]
    assert event.attributes["context_summary"] == "homes"
    assert event.attributes["summary"] == "Conversation of Alice, Bob on 24 April 2026, 2 messages"


def test_a_claim_cites_its_evidence_and_points_at_its_words() -> None:
    """An Assertion names the speaker, the time of saying, the Evidence, where the sentence stands, and the words of its date."""
    memory = Memory()
    memory.say("Hello. I moved to Munich last week. Bye.")

    (claim,) = memory.all("assertion")
    (evidence,) = memory.all("evidence")
    assert isinstance(claim, Assertion)
    assert claim.evidence[0].evidence == evidence.id
    assert claim.asserted_at == parse_instant("2026-05-01T10:00:00Z")
    assert claim.valid_time.start == parse_instant("2026-04-20T00:00:00Z")
    wording = claim.facets[WORDING]
    assert isinstance(evidence, Evidence)
    sentence = evidence.payload.inline[wording["at"] :][: wording["length"]]
    assert (sentence, wording["time_text"]) == ("I moved to Munich last week.", "last week")


def test_the_extraction_is_recorded() -> None:
    """An Activity leads from the Evidence to what was made of it."""
    memory = Memory()
    memory.say("I live in Berlin.")

    (activity,) = memory.all("activity")
    (evidence,) = memory.all("evidence")
    assert isinstance(activity, Activity)
    assert activity.inputs == (evidence.id,)
    assert memory.all("assertion")[0].id in activity.outputs


def test_forming_the_same_conversation_again_changes_nothing() -> None:
    """Every element is keyed by the input, so a repeat commits nothing."""
    memory = Memory()
    memory.say("I live in Berlin.", "Remind me to call Eve tomorrow.")
    before = memory.state

    memory.say("I live in Berlin.", "Remind me to call Eve tomorrow.")

    assert memory.state is before


def test_forming_is_deterministic() -> None:
    """The same conversation makes the same elements, ids included."""
    one, two = Memory(), Memory()
    for memory in (one, two):
        memory.say("I live in Berlin. My sister Anna loves tea.", "I'll call her tomorrow.")

    for kind in ("concept", "proposition", "assertion", "evidence", "activity"):
        assert one.all(kind) == two.all(kind)


def test_a_commitment_says_whose_it_is_and_to_whom() -> None:
    """A promise is a Commitment of its maker, owed to the other one."""
    memory = Memory()
    memory.form(
        [
            {"role": "user", "name": "Alice", "content": "hi"},
            {"role": "assistant", "content": "I'll send the report by Friday."},
        ]
    )

    (made,) = [c for c in memory.all("concept") if isinstance(c, Concept) and c.schema_ref == COMMITMENT]
    links = {ref.field: memory.state.get(ref.target) for ref in made.structural}
    assert links[COMMITTED_TO].name == "assistant"  # type: ignore[union-attr]
    assert links[OWED_TO].name == "Alice"  # type: ignore[union-attr]
    assert made.attributes["due_at"] == "2026-05-08T23:59:59.999Z"
    assert made.attributes["due_text"] == "by Friday"
    assert made.attributes["status"] == "pending"


@pytest.mark.parametrize(
    ("message", "context", "name"),
    [
        ({"name": "Alice"}, {}, "Alice"),
        ({"user": "u-1", "name": "Alice"}, {}, "Alice"),
        ({"user": "u-1"}, {}, "u-1"),
        ({}, {"counterparty": "u-2"}, "u-2"),
        ({"name": "Alice"}, {"counterparty": "u-2"}, "Alice"),
        ({}, {}, "user"),
    ],
)
def test_the_first_person_is_the_speaker(message: dict[str, str], context: dict[str, str], name: str) -> None:
    """The user, else the name, else the counterparty, else the role says who "I" is."""
    memory = Memory()
    memory.form([{"role": "user", "content": "I live in Berlin.", **message}], context=context)

    assert memory.claims() == [f"{name}> {name} lives_in Berlin"]


def test_a_name_said_replaces_a_stand_in() -> None:
    """Who says "my name is Bob" is called so from then on, and is found by it."""
    memory = Memory()
    memory.form([{"role": "user", "content": "My name is Bob. I love tea."}])
    memory.say("I live in Berlin.", by="Bob", at="2026-05-02T10:00:00Z")

    assert memory.claims() == ["Bob> Bob name Bob", "Bob> Bob likes tea", "Bob> Bob lives_in Berlin"]


def test_a_relative_is_one_person_with_and_without_the_name() -> None:
    """Saying "My sister" and "my sister Anna" and "Anna" are one person."""
    memory = Memory()
    memory.say("My sister lives in Paris.", "My sister Anna loves tea.", "Anna lives in Rome.")

    assert memory.claims(predicate="lives_in") == ["Alice> Anna lives_in Rome"]
    assert memory.claims(predicate="lives_in", status="superseded") == ["Alice> Anna lives_in Paris"]


def test_an_ambiguous_name_makes_no_claim() -> None:
    """Where two people have the name, nothing is claimed of either."""
    memory = Memory()
    memory.form(
        [
            {"role": "user", "user": "u-1", "name": "Anna", "content": "hi"},
            {"role": "user", "user": "u-2", "name": "Anna", "content": "hi"},
        ]
    )
    memory.say("Anna lives in Rome.", at="2026-05-02T10:00:00Z")

    assert memory.claims() == []


def test_a_nameless_assistant_claims_nothing_of_itself_and_tools_nothing_at_all() -> None:
    """Only people are believed to speak of themselves."""
    memory = Memory()
    memory.form(
        [
            {"role": "user", "content": "hello there"},
            {"role": "assistant", "content": "I love tea. I live in Berlin."},
            {"role": "tool", "content": "I live in Rome."},
            {"role": "system", "content": "I work for Acme."},
        ]
    )

    assert memory.claims() == []


def test_parts_hold_at_least_one_message_and_stay_in_bounds() -> None:
    """A long conversation is cut by number and by bytes."""
    many = tuple(Message(role="user", content="x") for _ in range(PART_MESSAGES + 1))
    large = tuple(Message(role="user", content="x" * (PART_BYTES + 1)) for _ in range(2))

    assert part_end(many, 0) == PART_MESSAGES
    assert part_end(many, PART_MESSAGES) == PART_MESSAGES + 1
    assert part_end(large, 0) == 1


def test_breaking_up_ends_the_partnership() -> None:
    """What was held of a partner is rejected from then on."""
    memory = Memory()
    memory.say("I'm married to Tom.", at="2026-04-01T10:00:00Z")
    memory.say("We broke up last week.")

    assert memory.claims() == [
        "Alice> Alice not has_partner Tom",
        "Alice> Alice not relationship_status married",
    ]


def test_loving_somebody_is_about_the_person() -> None:
    """A topic that is a known person's name is that person."""
    memory = Memory()
    memory.say("My sister Anna lives in Paris.", "I love Anna.")

    (liked,) = [c for c in memory.all("concept") if isinstance(c, Concept) and c.name == "Anna"]
    assert memory.claims(predicate="likes") == ["Alice> Alice likes Anna"]
    assert liked.key == "name:anna"


def test_the_assistant_is_the_space_itself_where_it_is_known() -> None:
    """A space with a self identity hears its own statements from it."""
    memory = Memory()
    memory.form([{"role": "assistant", "user": "me", "name": "Noe", "content": "hi"}])
    (mine,) = [c for c in memory.all("concept") if isinstance(c, Concept) and c.key == "me"]
    memory.state.meta = msgspec.structs.replace(memory.state.meta, self_identity=mine.id)
    memory.form(
        [{"role": "assistant", "content": "I'll water the plants tomorrow."}], at="2026-05-02T10:00:00Z"
    )

    (made,) = [c for c in memory.all("concept") if isinstance(c, Concept) and c.schema_ref == COMMITMENT]
    assert made.structural[0].target == mine.id


def test_the_contexts_agent_is_the_assistant() -> None:
    """An agent named by the context speaks as itself."""
    memory = Memory()
    memory.form([{"role": "assistant", "content": "hello"}], context={"agent": "agent-7"})

    assert next(c.key for c in memory.all("concept") if isinstance(c, Concept)) == "agent-7"


def test_a_known_user_who_gives_a_name_keeps_the_old_one_as_alias() -> None:
    """A new display name replaces the old, which still finds the person."""
    memory = Memory()
    memory.form([{"role": "user", "user": "u-1", "name": "Liz", "content": "hi"}])
    memory.form(
        [{"role": "user", "user": "u-1", "name": "Elizabeth", "content": "My name is Beth."}],
        at="2026-05-02T10:00:00Z",
    )
    memory.form([{"role": "user", "user": "u-1", "content": "hi again"}], at="2026-05-03T10:00:00Z")

    (person,) = [c for c in memory.all("concept") if isinstance(c, Concept) and c.key == "u-1"]
    assert (person.name, person.aliases) == ("Elizabeth", ("Liz", "Beth"))


def test_no_other_element_holds_a_copy_of_what_was_said() -> None:
    """The Evidence is the only place of a message's words, so that erasing it erases them."""
    memory = Memory()
    memory.say("Purple elephants dance. I live in Berlin. Purple elephants sleep.", "More purple elephants.")

    for kind in ("concept", "proposition", "assertion", "activity"):
        assert b"lephant" not in msgspec.json.encode(memory.all(kind))


@pytest.mark.parametrize(
    "text",
    [
        "  I live in Berlin!  ",
        "Hi… I live in Berlin.",
        "“Quoted.” Dr. Who came.\n\tI live in Berlin;",
        "İ ﬁ 🙂\nI live in Berlin.",
    ],
)
def test_a_span_is_exact_whatever_stands_before_it(text: str) -> None:
    """Quotations, abbreviations and characters that change their length under folding move no offset."""
    memory = Memory()
    memory.say(text)

    (claim,) = memory.all("assertion")
    assert isinstance(claim, Assertion)
    wording = claim.facets[WORDING]
    assert text[wording["at"] :][: wording["length"]].rstrip(".;!").endswith("I live in Berlin")
