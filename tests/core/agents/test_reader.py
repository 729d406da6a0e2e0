"""What the reader takes for a statement, and above all what it does not."""

import pytest

from core.agents.offline.claims import Claim, Correction, Promise, Retirement
from core.agents.offline.reader import read_message
from core.model.instants import format_instant, parse_instant

SAID = parse_instant("2023-08-02T10:00:00Z")


def claims(text: str) -> list[str]:
    """The claims of a text, in short: subject, predicate or label, value, and how they are held."""
    out = []
    for found in read_message(text, SAID):
        if not isinstance(found, Claim):
            continue
        subject = found.subject.name or found.subject.relation or "I"
        held = "" if found.stance == "support" else "not "
        tense = "" if found.tense == "state" else f" ({found.tense})"
        out.append(f"{subject}: {held}{found.label or found.predicate} {found.value.text}{tense}")
    return out


STATED = [
    ("My name is Bob.", ["I: name Bob"]),
    ("Call me Al", ["I: name Al"]),
    ("I'm 32 years old", ["I: age 32"]),
    ("I just turned 40.", ["I: age 40 (change)"]),
    ("My birthday is May 5th, 1990.", ["I: birthday 1990-05-05"]),
    ("I was born on 5 May", ["I: birthday --05-05"]),
    ("I was born in 1990", ["I: birth year 1990"]),
    ("my timezone is utc+2", ["I: timezone UTC+2"]),
    ("I'm in the Pacific time zone", ["I: timezone Pacific time"]),
    ("My time zone is Europe/Berlin now", ["I: timezone Europe/Berlin"]),
    ("I'm single.", ["I: relationship_status single"]),
    ("We got married last year", ["I: relationship_status married (change)"]),
    ("I'm married to Tom", ["I: relationship_status married", "I: has_partner Tom"]),
    ("I'm vegan", ["I: diet vegan"]),
    ("I became a vegetarian", ["I: diet vegetarian (change)"]),
    ("I'm allergic to peanuts and shellfish", ["I: allergic_to peanuts", "I: allergic_to shellfish"]),
    ("I speak German and French", ["I: speaks German", "I: speaks French"]),
    ("My favorite color is blue.", ["I: favourite colour blue"]),
    ("Bob's favourite film is Alien.", ["Bob: favourite film Alien"]),
    ("My phone number is 555-0199", ["I: phone number 555-0199"]),
    ("I live in Berlin.", ["I: lives_in Berlin"]),
    ("i live in berlin", ["I: lives_in berlin"]),
    ("I’m currently living in New York City with my dog", ["I: lives_in New York City"]),
    ("I moved to Munich last May, and I love hiking.", ["I: lives_in Munich (change)", "I: likes hiking"]),
    (
        "I moved from Sweden to Norway 3 years ago.",
        ["I: lives_in Sweden (left)", "I: lives_in Norway (change)"],
    ),
    ("I used to live in Hamburg.", ["I: lives_in Hamburg (past)"]),
    ("I no longer live in Berlin.", ["I: not lives_in Berlin (change)"]),
    ("I don't live in Berlin anymore", ["I: not lives_in Berlin (change)"]),
    ("I am originally from Spain.", ["I: comes_from Spain"]),
    ("I visited Paris last week", ["I: visited Paris (once)"]),
    ("I'm a software engineer.", ["I: job software engineer"]),
    ("I work as a nurse at Mercy Hospital", ["I: job nurse", "I: works_for Mercy Hospital"]),
    ("I work for Acme Corp.", ["I: works_for Acme Corp"]),
    ("I joined Google in March", ["I: works_for Google (change)"]),
    ("My brother works at Google", ["brother: works_for Google"]),
    ("My sister Anna lives in Paris.", ["Anna: lives_in Paris", "I: has_sibling Anna"]),
    ("Eve is my boss", ["I: reports_to Eve"]),
    ("Anna is Tom's sister.", ["Tom: has_sibling Anna"]),
    ("My dad's name is Carl.", ["I: has_parent Carl"]),
    ("I have a daughter named Mia.", ["I: has_child Mia"]),
    ("I have two kids.", ["I: number of children 2"]),
    ("I have a dog named Rex", ["I: owns_pet Rex"]),
    ("We adopted a kitten called Luna", ["I: owns_pet Luna"]),
    ("I love hiking and swimming", ["I: likes hiking", "I: likes swimming"]),
    ("I hate olives but I love anchovies", ["I: dislikes olives", "I: likes anchovies"]),
    ("I don't like coffee anymore.", ["I: not likes coffee (change)"]),
    ("I used to love jazz", ["I: likes jazz (past)"]),
    ("I can't stand cilantro.", ["I: dislikes cilantro"]),
    ("I'm a big fan of jazz", ["I: likes jazz"]),
    ("I prefer tea over coffee", ["I: prefers tea over coffee"]),
    ("My birthday is 1990-05-05", ["I: birthday 1990-05-05"]),
    ("My sister's birthday is June 1", ["sister: birthday --06-01"]),
    ("Bob's birthday is on the 3rd of July, 1980", ["Bob: birthday 1980-07-03"]),
    ("We just broke up", []),
    ("My employer is Acme", ["I: works_for Acme"]),
    ("My job is teacher at Hill School", ["I: job teacher"]),
    ("I left my job at Acme", ["I: not works_for Acme (change)"]),
    ("My hometown is Bath", ["I: home town Bath"]),
    ("I'm allergic to animals with fur.", ["I: allergic_to animals with fur"]),
]


@pytest.mark.parametrize(("text", "expected"), STATED)
def test_a_plain_statement_is_a_claim(text: str, expected: list[str]) -> None:
    """What somebody plainly says of themselves or of others is claimed, with subject, value and tense."""
    assert claims(text) == expected


NOT_STATED = [
    # questions
    "Do you live in Berlin?", "Is my birthday May 5?", "what if I quit my job?", "where do I live", "I live in Rome, right?",
    # suppositions
    "If I lived in Berlin I would be happy.", "I might move to Paris.", "I'd love to live in Rome", "I wish I lived in Rome",
    "Imagine I live in Rome.", "Let's say I work at Google", "Maybe I live in a simulation", "We should move to Paris",
    "I'm not sure I like tea", "I'm thinking about moving to Oslo", "Suppose I am a nurse.", "I may go to Paris",
    "I don't know if I like it", "I would hate olives", "Unless I live in Rome, no", "I could be a teacher",
    # what others say, and quotations
    'She said "I live in Paris".', "He said I live in Rome", "My friend told me he lives in Oslo", "Anna thinks I live in Rome.",
    "> I live in Rome", "`I live in Rome`", "```\nI live in Rome\n```", "According to Tom I live in Rome", "“I am a nurse”, read the sign",
    "In the novel, I live in Rome", "I dreamed I moved to Paris",
    # jokes
    "I love Mondays /s", "yeah right, I love mondays", "I live on the moon, just kidding", "I love taxes 🙃", "I work for Santa, jk",
    # manners of speech
    "I love it", "I love that idea", "I love you", "I love the colour", "I like to think so", "I like your dress", "I hate when that happens",
    "Sounds like a plan, John!", "Looks like a blast!", "I love holding them", "I'm into it", "I'm a big fan", "I like my coffee black",
    "I'm a mess", "I'm a bit tired", "I'm 5 minutes away", "I'm 100% sure", "I'm here", "I'm at work", "I'm in trouble", "I'm so tired",
    "I live in fear", "I live for music", "I live in a small house", "I live in the past", "I'm from here", "I work at night",
    "I'm married to the idea", "I was married to my work", "I'm single-handedly doing this", "I'm a single parent", "I'm engaged in talks",
    "my name is irrelevant", "call me later", "Call me tomorrow", "I'm an engineer at heart", "I went to bed", "I visited friends last week",
    "My birthday is soon", "My birthday is in spring", "My birthday is on the 45th of May", "I'm 0 years old", "I'm 300 years old",
    "I was born ready", "Bob's birthday is soon", "My car is broken.", "My team is like my second family", "My address is private", "I am the best", "My dog is sick", "I have a dog",
    "I love stories that scare me", "I left early.", "I am on Mountain View street", "It is what it is.",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_is_no_plain_statement_makes_no_claim(text: str) -> None:
    """Questions, suppositions, others' words, jokes and manners of speech claim nothing that would be believed."""
    found = [claim for claim in read_message(text, SAID) if isinstance(claim, Claim) and not claim.ends]

    assert found == []


def test_an_ending_without_a_beginning_is_marked() -> None:
    """Saying "I left Acme" only ends a claim that was made before."""
    found = [claim for claim in read_message("I left Acme.", SAID) if isinstance(claim, Claim)]

    assert {claim.predicate for claim in found} == {"lives_in", "works_for"}
    assert all(claim.ends and claim.stance == "reject" for claim in found)


@pytest.mark.parametrize(
    ("text", "new", "old"),
    [
        ("not Berlin, Munich", "Munich", "Berlin"),
        ("It's Munich, not Berlin.", "Munich", "Berlin"),
        ("Sorry, I meant Vienna.", "Vienna", None),
        ("Actually, it's UTC+1 now.", "UTC+1", None),
        ("Correction: it's blue", "blue", None),
    ],
)
def test_a_correction_names_the_new_value_and_the_old_one_where_it_is_said(
    text: str, new: str, old: str | None
) -> None:
    """A value put in place of another is a correction."""
    found = [item for item in read_message(text, SAID) if isinstance(item, Correction)]

    assert [(item.new, item.old) for item in found] == [(new, old)]


@pytest.mark.parametrize(
    "text", ["I changed jobs", "I quit my job last week.", "I retired last month.", "I was laid off"]
)
def test_an_end_without_a_successor_is_a_retirement(text: str) -> None:
    """Who says that a job ended, says it of job and employer."""
    found = [item for item in read_message(text, SAID) if isinstance(item, Retirement)]

    assert [item.predicates for item in found] == [("works_for", "job")]


@pytest.mark.parametrize(
    ("text", "kind", "summary", "due"),
    [
        ("I'll send the report by Friday.", "promise", "send the report by Friday", "2023-08-04"),
        ("Remind me to call mom tomorrow", "reminder", "call mom tomorrow", "2023-08-03"),
        ("please remind me tomorrow to call mom", "reminder", "call mom", "2023-08-03"),
        (
            "I have a dentist appointment on Friday at 3pm.",
            "appointment",
            "dentist appointment on Friday at 3pm",
            "2023-08-04",
        ),
        ("My flight is on 9 August", "appointment", "flight", "2023-08-09"),
        ("I promise to water the plants", "promise", "water the plants", None),
        (
            "I need to renew my passport before September 1",
            "plan",
            "renew my passport before September 1",
            "2023-09-01",
        ),
        ("I'm going to a conference next week", "plan", "go to a conference next week", "2023-08-07"),
    ],
)
def test_a_commitment_has_a_summary_and_a_date(text: str, kind: str, summary: str, due: str | None) -> None:
    """Promises, reminders, appointments and plans are commitments, due when their words say."""
    (found,) = [item for item in read_message(text, SAID) if isinstance(item, Promise)]

    assert (found.commitment_class, found.summary) == (kind, summary)
    assert (format_instant(found.due.start)[:10] if found.due else None) == due


@pytest.mark.parametrize(
    "text",
    [
        "I'll be there",
        "I'll let you know",
        "I will see",
        "I had a meeting last week",
        "If I can, I'll call tomorrow",
    ],
)
def test_small_talk_commits_to_nothing(text: str) -> None:
    """A bare "I'll" and what lies in the past are no commitments."""
    assert [item for item in read_message(text, SAID) if isinstance(item, Promise)] == []


def test_a_document_is_not_a_statement() -> None:
    """A very long text states nothing, and costs nothing to read."""
    assert read_message("I live in Berlin. " * 5000, SAID) == []


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "?!", "\u200b\u200d", "\u202eI live in Berlin.", "🙂🙂🙂", "e\u0301" * 500, "((((((" * 500, "a" * 19_000, "I " * 9_000,
             "我住在北京。", "أنا أعيش في برلين", "İİİİ ı", "my " * 3000, "I live in " + "A" * 10_000, "\x00"]
)  # fmt: skip
def test_odd_text_is_read_in_bounded_time(text: str) -> None:
    """Any text can be read, and patterns do not explode on it."""
    assert len(read_message(text, SAID)) < 50


@pytest.mark.parametrize(
    "text", ["I work at " + " " * 19_980 + "x", "My name is" + "\t" * 19_900 + "x", "A" * 20_000]
)
def test_a_sentence_made_to_keep_a_process_busy_is_no_statement(text: str) -> None:
    """Each of these took up to half a minute; a sentence beyond a thousand characters is not matched at all."""
    assert read_message(text, SAID) == []
