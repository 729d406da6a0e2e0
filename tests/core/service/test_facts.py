"""The fact memory on the log: what is remembered, revised, retired, erased, recalled and consolidated."""

import json
import math
import threading

import pytest

from core.errors import NoemaError
from core.facts import writing
from core.facts.corpus import Corpus
from core.facts.imports import read
from core.facts.ranking import Policy, rank
from core.facts.recalling import Tuning
from core.facts.tokens import TOKENIZERS
from core.facts.values import SHARED, RecallOptions
from core.model.log import SchemaEnvironment
from core.ports import Unavailable
from core.schema.environment import environment_of
from core.schema.library import FACTS_REF, NOEMA_REF, PROFILE_REF
from core.schema.validate import (
    check_attributes,
    check_cardinality,
    check_facet,
    check_source,
    check_target,
)
from core.service.values import Caller, Proposal
from core.storage.layout import space_pk
from core.storage.memory import MemoryTable
from core.transaction.draft import Draft
from tests.core.service.fact_world import DAY, FactWorld
from tests.doubles import FailingTable, FakeClock, Faults


def code_of(call, *args, **more):
    with pytest.raises(NoemaError) as refused:
        call(*args, **more)
    return refused.value.code


def stored(world, needle):
    """Whether the log, as it is kept, still holds a text."""
    spaces = world.world.spaces
    born = spaces.head("home").min_delta
    return any(needle in repr(delta) for delta in spaces.deltas("home", born - 1, 10_000))


# --- remembering


def test_a_fact_is_kept_verbatim_and_found():
    """What is remembered comes back byte for byte, with an id, a time, and no label unless one was given."""
    world = FactWorld()
    text = "  Ann likes tea.\n\tVery much – 茶!  "
    fact = world.remember(text)
    assert (fact.text, fact.confidence, fact.superseded_by, fact.weight) == (text, "", "", 1.0)
    assert len(fact.id) == 26
    assert world.facts.get("home", "ann", fact.id) == fact
    assert world.texts("tea") == [text]
    assert world.remember("x", confidence="verified").confidence == "verified"


def test_the_same_text_twice_is_two_facts_and_one_answer():
    """Writing does not look for duplicates; recalling does."""
    world = FactWorld()
    first, second = world.remember("Ann likes tea."), world.remember("Ann likes tea.")
    assert first.id < second.id
    assert world.texts("tea") == ["Ann likes tea."]
    assert world.facts.stats("home", "ann").fact_count == 2


def test_a_retry_key_writes_once():
    """The same call under the same key gives the same fact and writes nothing; another call under it is refused."""
    world = FactWorld()
    fact = world.remember("Ann likes tea.", key="k1")
    version = world.version()
    assert world.remember("Ann likes tea.", key="k1") == fact
    assert world.version() == version
    assert code_of(world.remember, "Ann likes coffee.", key="k1") == "IdempotencyConflict"


@pytest.mark.parametrize("label", ["", "Verified", "sure", 1, True])
def test_unknown_labels_are_refused_before_any_effect(label):
    """The three labels are exact."""
    world = FactWorld()
    version = world.version()
    assert code_of(world.remember, "x", confidence=label) == "InvalidInput"
    assert world.version() == version


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "InvalidInput"),
        (None, "InvalidInput"),
        ("a\ud800b", "InvalidInput"),
        ("x" * 1_000_000, "PayloadTooLarge"),
    ],
)
def test_texts_that_cannot_be_facts_are_refused(text, code):
    """Nothing, null, half a surrogate pair and a megabyte are refused by name, with nothing written."""
    world = FactWorld()
    version = world.version()
    assert code_of(world.remember, text) == code
    assert world.version() == version


@pytest.mark.parametrize("agent", ["", "   ", None, 7, "a" * 2000, "a\udc00"])
def test_namespaces_that_name_nobody_are_refused(agent):
    """A namespace is a text that is not blank."""
    world = FactWorld()
    assert code_of(world.remember, "x", agent=agent) == "InvalidInput"
    assert code_of(world.recall, "x", agent=agent) == "InvalidInput"


def test_namespaces_are_never_trimmed():
    """` project ` and `project` are two; Unicode and control characters are fine."""
    world = FactWorld()
    for agent in (" project ", "project", "プロジェクト", "a\x1fb", "__shared__"):
        world.remember(f"of {agent!r}", agent)
    for agent in (" project ", "project", "プロジェクト", "a\x1fb", "__shared__"):
        assert world.texts(agent=agent) == [f"of {agent!r}"]
    assert set(world.facts.agents("home")) == {" project ", "project", "プロジェクト", "a\x1fb", "__shared__"}


def test_h_namespaces_and_spaces_are_apart():
    """(h) Nothing of one tenant or agent is found by another; a positive control finds it where it is."""
    world = FactWorld()
    world.world.create("other")
    world.remember("the secret is plum", "ann", "home")
    assert world.texts("secret plum", "ann", "home") == ["the secret is plum"]
    for agent, space in (("bob", "home"), (SHARED, "home"), ("ann", "other"), ("bob", "other")):
        assert world.texts("secret plum", agent, space) == []
        assert world.facts.facts(space, agent) == ()
    assert code_of(world.recall, "secret", space="nowhere") == "NotFoundOrNotVisible"
    assert world.facts.recall_all(world.caller, "other", "ann", "secret plum").texts == ()


def test_a_space_made_before_the_package_gets_it_with_the_first_fact():
    """An older space's environment is upgraded by a management commit, once; reading does not upgrade it."""
    world = FactWorld()

    def without(state):
        draft = Draft(
            state, now=world.clock.now(), origin=world.caller.origin, transaction_class="management"
        )
        draft.set_meta(schema=SchemaEnvironment(1, (PROFILE_REF, NOEMA_REF)))
        return Proposal(draft.finish())

    world.world.commits.commit("home", without, deadline=world.deadline)
    version = world.version()
    assert world.texts("tea") == []
    assert world.version() == version
    world.remember("Ann likes tea.")
    meta = world.world.spaces.load("home").meta
    assert meta.schema == SchemaEnvironment(2, (PROFILE_REF, NOEMA_REF, FACTS_REF))
    world.remember("Ann likes cake.")
    assert world.version() == version + 3


def test_extracted_facts_are_unverified():
    """Up to five sentences of a model's JSON answer; whatever else it says is one fact as it is."""
    world = FactWorld()
    said = json.dumps([f"Sentence {n}." for n in range(7)])
    made = world.call("remember_extracted", f"```json\n{said}\n```")
    assert [fact.text for fact in made] == [f"Sentence {n}." for n in range(5)]
    assert {fact.confidence for fact in made} == {"unverified"}
    for raw in ("no JSON at all", "[]", '{"a": 1}', "[1, 2]", "[" * 5000):
        assert [fact.text for fact in world.call("remember_extracted", raw)] == [raw]


def test_a_full_space_takes_no_more_facts():
    """A tier's room is counted in Concepts; beyond it nothing is written, and both numbers are told."""
    world = FactWorld(create=False)
    world.world.create("home", tier=0)
    for n in range(99):
        world.remember(f"note {n}")
    with pytest.raises(NoemaError) as full:
        world.remember("one more")
    assert full.value.code == "SpaceTierExceeded"
    assert (full.value.details["held"], full.value.details["limit"]) == (100, 100)
    world.call("forget", "note 1")


def test_what_is_written_fits_the_package():
    """Every Concept, facet and reference that the use cases write is one that the package's definitions admit."""
    world = FactWorld(learn_prefix=4)
    world.remember("Ann likes tea.", confidence="verified")
    world.remember("old", confidence="unverified")
    world.call("revise", "old", "new")
    world.call("pin", "new")
    world.call("unpin", "new")
    world.call("forget", "new")
    world.call("alias", "db", ["pg"])
    world.call("link", "Acme", "Payments")
    world.call("save_checkpoint", state={"a": 1}, messages=[{"role": "user"}], metadata={"s": "x"})
    raw = {"id": "x1", "agent_id": "ann", "text": "t", "created_at": "2026-01-05T10:00:00Z", "weight": 0.3,
           "access_count": 2, "accessed_at": "2026-01-06T10:00:00Z", "pinned": True, "confidence": "odd"}  # fmt: skip
    found = read(json.dumps([raw]), "graymatter", agent_id=None, now=world.clock.time)
    world.facts.import_facts(world.caller, "home", found, deadline=world.deadline)
    state = world.world.spaces.load("home")
    environment = environment_of(state.meta)
    seen = set()
    for element_id in state.ids("concept"):
        element = state.get(element_id)
        definition = environment.type(element.schema_ref, write=True)
        check_attributes(definition, element.attributes)
        for ref, values in element.facets.items():
            check_facet(environment.facet(ref, write=True), element, "concept", values)
            seen.update(values)
        for link in element.structural:
            field = environment.structural(link.field)
            target = state.get(link.target)
            check_source(field, "concept", element.schema_ref)
            check_target(field, "concept", target.schema_ref)
            check_cardinality(field, [each for each in element.structural if each.field == link.field])
        seen.add(element.schema_ref.rpartition("/")[2])
    assert seen >= {"Fact", "FactNamespace", "FactEntity", "Checkpoint", "CheckpointSeries", "retired", "kind",
                    "confidence", "decays_from", "weight", "pinned_at", "accessed_at", "metadata"}  # fmt: skip


# --- revising, forgetting, pinning


def test_a_revision_replaces_every_live_copy():
    """All live copies of the exact text point at the replacement; only it is recalled, and it is not pinned."""
    world = FactWorld()
    old = [world.remember("Ann lives in Paris.") for _ in range(3)]
    world.call("pin", "Ann lives in Paris.")
    done = world.call("revise", "Ann lives in Paris.", "Ann lives in Rome.")
    assert set(done.retired) == {fact.id for fact in old}
    assert world.texts("Ann lives") == ["Ann lives in Rome."]
    by_id = {fact.id: fact for fact in world.facts.facts("home", "ann")}
    assert {by_id[fact.id].superseded_by for fact in old} == {done.fact.id}
    assert not by_id[done.fact.id].pinned
    receipt = world.recall("Ann", options=RecallOptions(explain=True)).receipts[0]
    assert set(receipt.provenance.supersedes) == {fact.id for fact in old}
    assert code_of(world.call, "revise", "Ann lives in Paris.", "x") == "NotFoundOrNotVisible"
    assert code_of(world.call, "revise", "ann lives in rome.", "x") == "NotFoundOrNotVisible"


@pytest.mark.parametrize(
    ("old", "given", "new"),
    [
        (["verified"], None, "inferred"),
        ([None], None, "inferred"),
        (["verified", "unverified"], None, "unverified"),
        (["unverified"], "verified", "verified"),
    ],
)
def test_a_revision_without_a_label_is_conservative(old, given, new):
    """The lowest label of what it replaces, and at most inferred; an explicit one stands."""
    world = FactWorld()
    for label in old:
        world.remember("x", confidence=label)
    assert world.call("revise", "x", "y", confidence=given).fact.confidence == new


def test_a_revision_that_fails_in_the_middle_says_what_is_committed(monkeypatch):
    """Beyond one commit's bound the rest follows; if it cannot, the error names the replacement and what is live."""
    monkeypatch.setattr("core.service.facts.MAX_TARGETS", 2)
    world = FactWorld()
    old = [world.remember("x").id for _ in range(3)]
    commit = world.world.commits.commit
    calls = []

    def failing(*args, **more):
        calls.append(1)
        if len(calls) == 2:
            raise NoemaError("ServiceUnavailable", "not now")
        return commit(*args, **more)

    world.world.commits.commit = failing
    with pytest.raises(NoemaError) as failed:
        world.call("revise", "x", "y")
    world.world.commits.commit = commit
    details = failed.value.details
    assert failed.value.code == "ServiceUnavailable"
    assert (details["retired"], details["live"]) == (old[:2], old[2:])
    assert world.facts.get("home", "ann", details["fact_id"]).text == "y"
    assert set(world.texts()) == {"x", "y"}  # never neither


def test_forgetting_retires_and_stays_on_record():
    """A forgotten text is never recalled again, its facts stay in the list, retired by the agent, weight untouched."""
    world = FactWorld()
    world.remember("the secret is plum")
    world.remember("tea is nice")
    ids = world.call("forget", "the secret is plum")
    assert world.texts("secret plum") == ["tea is nice"]
    kept = world.facts.get("home", "ann", ids[0])
    assert (kept.superseded_by, kept.weight, kept.text) == ("agent", 1.0, "the secret is plum")
    assert code_of(world.call, "forget", "the secret is plum") == "NotFoundOrNotVisible"
    world.remember("the secret is plum")
    assert "the secret is plum" in world.texts("secret plum")


def test_deleting_is_physical():
    """A deleted fact is in no row and no history; a missing one is no error; retired facts stay retired."""
    world = FactWorld()
    fact = world.remember("the secret is plum")
    done = world.call("revise", "the secret is plum", "the secret is pear")
    assert world.facts.delete(world.caller, "home", "ann", done.fact.id) is True
    assert world.facts.delete(world.caller, "home", "ann", done.fact.id) is False
    assert world.facts.delete(world.caller, "home", "ann", "nothing") is False
    assert world.texts("secret") == []
    assert world.facts.get("home", "ann", fact.id).superseded_by == "agent"
    assert not stored(world, "is pear")
    assert stored(world, "is plum")


def test_deleting_the_best_match_wants_confirmation():
    """Without confirm nothing is deleted; in an empty namespace there is nothing to delete."""
    world = FactWorld()
    assert world.facts.delete_best(world.caller, "home", "ann", "tea", confirm=True) is None
    fact = world.remember("Ann likes tea.")
    world.remember("Bob rows.")
    world.remember("Cy swims.")
    assert (
        code_of(world.facts.delete_best, world.caller, "home", "ann", "tea", confirm=False) == "InvalidInput"
    )
    assert world.facts.delete_best(world.caller, "home", "ann", "tea", confirm=True) == fact.id
    assert world.texts("tea") == ["Cy swims.", "Bob rows."]


def test_pinning_is_for_live_facts_and_unpinning_for_all():
    """A pin sets its time, touches no label, and outlives retirement until it is taken away."""
    world = FactWorld()
    world.remember("x", confidence="verified")
    ids = world.call("pin", "x")
    assert world.facts.get("home", "ann", ids[0]).pinned_at == world.clock.time
    assert world.facts.get("home", "ann", ids[0]).confidence == "verified"
    world.call("forget", "x")
    assert code_of(world.call, "pin", "x") == "NotFoundOrNotVisible"
    assert world.call("unpin", "x") == ids
    assert not world.facts.get("home", "ann", ids[0]).pinned


def test_links_are_propositions_and_give_hints():
    """A link relates two names in lower case, once; its label is a hint, never a fact, and none with a filter."""
    world = FactWorld()
    first = world.call("link", " Acme Corp ", "Payments")
    assert first.startswith("P-")
    version = world.version()
    assert world.call("link", "acme corp", "payments") == first
    assert world.version() == version
    world.remember("Acme Corp signed today.")
    recalled = world.recall("signed", options=RecallOptions(hints=True))
    assert (recalled.texts, recalled.hints) == (("Acme Corp signed today.",), ("payments",))
    filtered = RecallOptions(hints=True, min_confidence="unverified")
    assert world.recall("signed", options=filtered).hints == ()
    explained = world.recall("signed", options=RecallOptions(explain=True))
    assert len(explained.receipts[0].kg_links) == 1
    assert code_of(world.call, "link", " ", "x") == "InvalidInput"


# --- recalling


def test_aliases_widen_a_query_and_are_never_recalled():
    """A taught word finds what stands under the other; a forgotten alias does not; aliases are in no answer."""
    world = FactWorld()
    world.remember("Postgres holds the ledger.")
    for n in range(8):
        world.remember(f"note {n}")
    world.call("alias", "db", ["postgres", "pg"])
    assert world.texts("db")[0] == "Postgres holds the ledger."
    assert not any("alias" in text for text in world.texts("alias db pg postgres"))
    assert world.facts.stats("home", "ann").aliases == 1
    world.call("forget", "alias: db = postgres, pg")
    assert world.recall("db").facts[0].text == "note 7"
    assert code_of(world.call, "alias", " ", ["x"]) == "InvalidInput"
    assert code_of(world.call, "alias", "x", ["", " "]) == "InvalidInput"


def test_weak_matches_say_so():
    """Where fewer than half of the words are known, the answer names the unknown ones and words that stand near."""
    world = FactWorld()
    world.remember("The payments service uses Postgres.")
    world.remember("Deploys run on Friday.")
    weak = world.recall("which database engine stores invoices")
    assert "databas" in weak.feedback
    assert "memory_alias" in weak.feedback
    assert world.recall("payments postgres").feedback is None


def test_recalling_both_namespaces_merges_them():
    """The agent's and the shared facts share the answer; a text in both comes first."""
    world = FactWorld()
    for n in range(10):
        world.remember(f"tea note {n}")
        world.remember(f"tea shared {n}", SHARED)
    world.remember("tea for all")
    world.remember("tea for all", SHARED)
    recalled = world.facts.recall_all(world.caller, "home", "ann", "tea for all", RecallOptions(explain=True))
    assert recalled.texts[0] == "tea for all"
    assert len(recalled.texts) == len(recalled.receipts) == 8
    assert sum("shared" in text for text in recalled.texts) >= 3


def test_a_batch_keeps_to_one_policy_and_reports_failures_by_query():
    """Blank queries are skipped, a query that fails says so and the others answer, the merged view is distinct."""
    world = FactWorld()
    world.remember("Ann likes tea.")
    world.remember("Bob rows boats.")
    batch = world.facts.recall_batch(
        world.caller, "home", "ann", ["tea", " ", "boats", "x" * 70_000], RecallOptions(confidence_weight=0)
    )
    assert [each.query for each in batch.per_query][:2] == ["tea", "boats"]
    assert batch.per_query[2].error.startswith("PayloadTooLarge")
    assert set(batch.merged) == {"Ann likes tea.", "Bob rows boats."}
    assert batch.retrieval.confidence_weight == 0
    assert code_of(world.facts.recall_batch, world.caller, "home", "ann", [" "]) == "InvalidInput"
    assert code_of(world.facts.recall_batch, world.caller, "home", "ann", ["x"] * 99) == "InvalidInput"


def test_d_the_space_sets_the_weight_that_callers_leave_out():
    """(d) A space's default counts where none is given; an explicit 0 overrides it; NaN and more are refused."""
    world = FactWorld()
    world.remember("tea one", confidence="unverified")
    world.remember("tea two", confidence="verified")
    world.remember("boat")
    world.facts.tune(world.caller, "home", Tuning(confidence_weight=0.5), deadline=world.deadline)
    assert world.recall("tea").retrieval.confidence_weight == 0.5
    assert world.recall("tea", options=RecallOptions(confidence_weight=0)).retrieval.confidence_weight == 0
    for weight in (math.nan, 0.6, -1):
        bad = Tuning(confidence_weight=weight)
        assert code_of(world.facts.tune, world.caller, "home", bad, deadline=world.deadline) == "InvalidInput"


def test_a_token_with_labels_recalls_nothing():
    """Facts bear no labels, so a restricted token may read none."""
    world = FactWorld()
    restricted = Caller("token:x", "rest", "read", kind="space_token", labels=("a",))
    assert code_of(world.facts.recall, restricted, "home", "ann", "x") == "NotAuthorized"


def test_recalls_are_counted_beside_the_log():
    """A recall moves no version; the counts and times it leaves are seen at once and after a consolidation."""
    world = FactWorld()
    fact = world.remember("Ann likes tea.")
    version = world.version()
    world.clock.advance(DAY)
    world.recall("tea")
    world.recall("tea", options=RecallOptions(explain=True))
    assert world.version() == version
    seen = world.facts.get("home", "ann", fact.id)
    assert (seen.access_count, seen.accessed_at) == (2, world.clock.time)
    world.call("consolidate")
    assert world.facts.get("home", "ann", fact.id).access_count == 2
    world.recall("tea")
    assert world.facts.get("home", "ann", fact.id).access_count == 3
    assert world.version() == version


def test_a_recall_that_cannot_be_noted_is_a_recall():
    """When the store does not take the note, the answer stands and only the count is lost."""
    table = FailingTable(MemoryTable(), Faults(error=Unavailable))
    world = FactWorld(table)
    fact = world.remember("Ann likes tea.")
    table.faults = Faults(at=(0,), error=Unavailable)
    assert world.texts("tea") == ["Ann likes tea."]
    table.faults = Faults()
    assert world.facts.get("home", "ann", fact.id).access_count == 0


def test_a_fact_that_vanishes_while_it_is_recalled_does_no_harm():
    """Erased between ranking and return: the answer is of the moment it was asked, and nothing revives the fact."""
    table = FailingTable(MemoryTable())
    world = FactWorld(table)
    fact = world.remember("Ann likes tea.")
    other = FactWorld(table.table, world.clock, create=False, seed=9)

    def erase_first(writes):
        table.before_transact = None
        assert other.facts.delete(other.caller, "home", "ann", fact.id)

    table.before_transact = erase_first
    assert world.texts("tea") == ["Ann likes tea."]
    assert world.texts("tea") == []
    assert world.facts.get("home", "ann", fact.id) is None
    world.call("consolidate")
    assert world.facts.facts("home", "ann") == ()


def test_the_states_index_ranks_as_reading_every_text_does():
    """A process that kept up, one that loads now, and an index made of the texts give the same ranks and scores."""
    world = FactWorld()
    words = ["tea", "boats", "running", "茶を飲む", "Lisbon's", "the", "friday", "2026"]
    for n in range(60):
        world.remember(" ".join(words[(n * k) % 8] for k in range(1, 2 + n % 7)))
        if n % 9 == 0:
            world.recall("tea boats friday")
        if n % 7 == 3:
            world.call("forget", world.recall("tea").texts[0])
    fresh = FactWorld(world.world.table, world.clock, create=False, seed=9)
    with world.facts._namespaces.current("home", "ann") as (_, namespace):
        read_texts = Corpus(TOKENIZERS["unicode"])
        read_texts.fill(each for each in namespace.facts.values() if each.live)
    for query in ("tea", "boats running friday", "茶を", "lisbon 2026 tea tea", "nothing"):
        here = world.recall(query, options=RecallOptions(explain=True, top_k=30)).receipts
        there = fresh.recall(query, options=RecallOptions(explain=True, top_k=30)).receipts
        texts = rank(read_texts, TOKENIZERS["unicode"](query), Policy(top_k=30))
        assert [each.ranks for each in here] == [each.ranks for each in there]
        assert [each.ranks for each in here] == [each.ranks for each in texts]


def test_another_process_sees_what_was_written():
    """Two processes over one store: each sees the other's writes at its next recall."""
    world = FactWorld()
    other = FactWorld(world.world.table, world.clock, create=False, seed=9)
    assert other.texts("tea") == []
    world.remember("Ann likes tea.")
    assert other.texts("tea") == ["Ann likes tea."]
    other.call("forget", "Ann likes tea.")
    other.remember("Ann likes cake.")
    assert world.texts("tea") == ["Ann likes cake."]


def test_ten_thousand_aliases_are_bearable():
    """A namespace full of aliases still answers, and by them."""
    world = FactWorld()
    world.remember("the zebra sleeps")
    world.remember("another note")
    world.remember("third note")

    def many(state):
        draft = Draft(state, now=world.clock.now(), origin=world.caller.origin)
        texts = [f"alias: word{n} = other{n}" for n in range(10_000)]
        writing.remember(draft, "ann", [*texts, "alias: stripy = zebra"], b"0" * 10, kind="alias")
        return Proposal(draft.finish())

    world.world.commits.commit("home", many, deadline=world.deadline)
    assert world.texts("stripy")[0] == "the zebra sleeps"


# --- consolidation


def test_weights_fade_and_never_rise():
    """Half at 30 days; a second run at once changes nothing; a recall restarts the clock and raises nothing."""
    world = FactWorld()
    fact = world.remember("Ann likes tea.")

    def weight():
        return world.facts.get("home", "ann", fact.id).weight

    world.clock.advance(30 * DAY)
    assert weight() == 1.0
    version = world.version()
    assert world.call("consolidate").decayed == 1
    assert weight() == pytest.approx(0.5)
    for _ in range(5):
        assert world.call("consolidate").decayed == 0
    assert weight() == pytest.approx(0.5)
    world.recall("tea")
    assert weight() == pytest.approx(0.5)
    world.clock.advance(30 * DAY)
    world.call("consolidate")
    assert weight() == pytest.approx(0.5)
    world.clock.advance(30 * DAY)
    world.call("consolidate")
    assert weight() == pytest.approx(0.25)
    assert world.version() == version


def test_a_pinned_fact_keeps_its_weight():
    """Pinned: no fall, from when it was pinned; unpinned: it falls with the next consolidation, not before."""
    world = FactWorld()
    fact = world.remember("Ann likes tea.")

    def weight():
        return world.facts.get("home", "ann", fact.id).weight

    world.clock.advance(30 * DAY)
    world.call("consolidate")
    world.call("pin", "Ann likes tea.")
    world.clock.advance(300 * DAY)
    world.call("consolidate")
    assert weight() == pytest.approx(0.5)
    assert world.call("consolidate").pruned == 0
    world.call("unpin", "Ann likes tea.")
    assert weight() == pytest.approx(0.5)
    world.clock.advance(DAY)
    done = world.call("consolidate")
    assert done.pruned == 1
    assert world.texts("tea") == []


def test_faded_facts_are_erased_and_fresh_ones_stay():
    """Below 0.01, after 199.3 days, an unpinned fact goes physically, retired ones too; others stay."""
    world = FactWorld()
    world.remember("the secret is plum")
    world.remember("old and forgotten")
    world.call("forget", "old and forgotten")
    world.remember("pinned for ever")
    world.call("pin", "pinned for ever")
    world.clock.advance(round(199.2 * DAY))
    assert world.call("consolidate").pruned == 0
    world.clock.advance(round(0.3 * DAY))
    world.remember("fresh")
    assert world.call("consolidate").pruned == 2
    assert {fact.text for fact in world.facts.facts("home", "ann")} == {"pinned for ever", "fresh"}
    assert not stored(world, "secret is plum")


class Model:
    """A model that answers what it is told to, and lets something happen meanwhile."""

    def __init__(self, answer, meanwhile=lambda: None):
        self.answer = answer
        self.meanwhile = meanwhile
        self.shown = []

    def summarise(self, space_id, facts, until):
        self.shown = list(facts)
        self.meanwhile()
        return self.answer(facts) if callable(self.answer) else self.answer


def consuming(count, **more):
    return lambda facts: json.dumps(
        {"summary": "In short.", "consumes": [fact.id for fact in facts][:count], **more}
    )


def full(model, **options):
    world = FactWorld(model=model, **options)
    for n in range(21):
        world.remember(f"note {n}", confidence="verified" if n else "unverified")
    return world


def test_a_summary_replaces_the_weakest_and_is_counted():
    """More than twenty facts and a model: the weakest half is shown, what it consumes points at the summary."""
    model = Model(consuming(3))
    world = full(model)
    done = world.call("consolidate")
    assert len(model.shown) == 10
    assert (done.consumed, done.summary.text, done.summary.confidence) == (3, "In short.", "unverified")
    by_id = {fact.id: fact for fact in world.facts.facts("home", "ann")}
    assert {by_id[fact.id].superseded_by for fact in model.shown[:3]} == {done.summary.id}
    stats = world.facts.stats("home", "ann")
    assert (stats.consolidations, stats.facts_consumed, stats.live) == (1, 3, 19)


def test_what_contradicts_itself_is_told_and_left_alone():
    """The model's notes come back, shortened and few; the facts they are about stay as they are."""
    model = Model(
        consuming(2, contradictions=["note 3 says tea, note 4 says coffee", "x" * 999, 7, *"abcdefghijk"])
    )
    done = full(model).call("consolidate")
    assert done.contradictions[0] == "note 3 says tea, note 4 says coffee"
    assert (len(done.contradictions), len(done.contradictions[1])) == (10, 300)
    assert done.consumed == 2


def test_without_a_model_or_with_few_facts_nothing_is_summarised():
    """The threshold is strict, and no model means no summary, with no complaint."""
    world = FactWorld()
    for n in range(30):
        world.remember(f"note {n}")
    assert world.call("consolidate").problem is None
    model = Model(consuming(3))
    world = FactWorld(model=model)
    for n in range(21):
        world.remember(f"note {n}")
    world.call("forget", "note 3")
    assert world.call("consolidate").summary is None  # twenty-one rows, of which twenty are live
    assert model.shown == []
    world.facts.tune(world.caller, "home", Tuning(consolidate_above=19), deadline=world.deadline)
    assert world.call("consolidate").summary is not None


@pytest.mark.parametrize(
    "answer",
    ["", "prose", "[]", '{"summary": " ", "consumes": ["x"]}', '{"summary": "s", "consumes": []}',
     '{"summary": "s", "consumes": ["not shown"]}', '{"summary": null, "consumes": null}'],
)  # fmt: skip
def test_an_unusable_summary_leaves_everything_as_it_is(answer):
    """What a model says is not trusted: an answer that does not fit changes nothing and is reported."""
    world = full(Model(answer))
    version = world.version()
    assert world.call("consolidate").problem == "the model's answer is no summary"
    assert world.version() == version


def test_a_model_that_fails_does_not_stop_the_rest():
    """Decay and pruning go on, and the failure is told."""

    def fail(_):
        raise NoemaError("ServiceUnavailable", "no model")

    world = full(Model(fail))
    world.clock.advance(30 * DAY)
    done = world.call("consolidate")
    assert done.problem == "ServiceUnavailable: no model"
    assert done.decayed == 21


def test_e_a_write_during_a_consolidation_is_never_undone():
    """(e) Revised, forgotten and pinned while the model thinks: nothing is revived, unpinned or overwritten."""
    model = Model(consuming(10))
    world = full(model)
    other = FactWorld(world.world.table, world.clock, create=False, seed=9)

    def meanwhile():
        other.call("revise", "note 0", "note zero")
        other.call("forget", "note 1")
        other.call("pin", "note 2")

    model.meanwhile = meanwhile
    done = world.call("consolidate")
    assert {fact.text for fact in model.shown} >= {"note 0", "note 1", "note 2"}
    now = {fact.text: fact for fact in world.facts.facts("home", "ann")}
    assert now["note 0"].superseded_by == now["note zero"].id
    assert now["note 1"].superseded_by == "agent"
    assert now["note 2"].live
    assert now["note 2"].pinned
    assert done.consumed == 7
    assert now["note zero"].live


def test_two_consolidations_at_once_are_one():
    """The second finds the lease held and does nothing; so do those that threads start together."""
    model = Model(consuming(2))
    world = full(model)
    seen = []
    model.meanwhile = lambda: seen.append(world.call("consolidate").ran)
    assert world.call("consolidate").ran
    assert seen == [False]
    model.meanwhile = lambda: None
    world.facts.tune(world.caller, "home", Tuning(consolidate_above=5), deadline=world.deadline)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(world.call("consolidate").ran)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 4
    assert any(results)
    assert world.facts.stats("home", "ann").consolidations == 1 + sum(results)


def test_a_pin_that_comes_first_keeps_a_faded_fact(monkeypatch):
    """Pinned after it was chosen for pruning and before it is retired: it stays."""
    world = FactWorld()
    world.remember("Ann likes tea.")
    other = FactWorld(world.world.table, world.clock, create=False, seed=9)
    world.clock.advance(300 * DAY)
    commit = world.facts._writer.commit

    def pin_first(*args, **more):
        if args[3]["do"] == "prune":
            other.call("pin", "Ann likes tea.")
        return commit(*args, **more)

    monkeypatch.setattr(world.facts._writer, "commit", pin_first)
    assert world.call("consolidate").pruned == 0
    assert world.texts("tea") == ["Ann likes tea."]


def test_recalls_race_with_forgetting_and_nothing_comes_back():
    """Threads recall, forget, pin and consolidate at once; what was forgotten stays so, what is pinned stays pinned."""
    world = FactWorld(clock=FakeClock(step_ms=1))
    for n in range(12):
        world.remember(f"note {n}")
    failures = []

    def run(act):
        try:
            for n in range(6):
                act(n)
        except NoemaError as error:
            if error.code not in ("SerializationConflict", "ServiceUnavailable"):
                failures.append(error)

    acts = [
        lambda n: world.recall(f"note {n}"),
        lambda n: world.call("forget", f"note {n}"),
        lambda n: world.call("pin", f"note {n + 6}"),
        lambda _: world.call("consolidate"),
    ]
    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    now = {fact.text: fact for fact in world.facts.facts("home", "ann")}
    assert all(now[f"note {n}"].superseded_by == "agent" for n in range(6))
    assert all(now[f"note {n + 6}"].pinned for n in range(6))
    assert not {f"note {n}" for n in range(6)} & set(world.texts("note"))


# --- learnt aliases


def test_words_that_miss_and_then_find_become_aliases():
    """A miss followed by a hit with a word of the same beginning, seen twice, is an alias after consolidation."""
    world = FactWorld(learn_prefix=4)
    world.remember("Postgres holds the ledger.")
    for n in range(4):
        world.remember(f"note {n}")
    version = world.version()
    for seen in range(2):
        world.recall("postgrez")
        world.clock.advance(60_000)
        world.recall("postgres")
        world.clock.advance(60_000)
        assert world.version() == version  # a read never writes the log
        assert world.call("consolidate").learnt == seen
    alias = next(fact for fact in world.facts.facts("home", "ann") if fact.kind == "alias")
    assert alias.alias_source == "usage"
    assert world.texts("postgrez")[0] == "Postgres holds the ledger."
    assert world.call("consolidate").learnt == 0


def test_a_miss_is_forgotten_after_half_an_hour():
    """What comes too late teaches nothing."""
    world = FactWorld(learn_prefix=4)
    world.remember("Postgres holds the ledger.")
    for _ in range(3):
        world.recall("postgrez")
        world.clock.advance(31 * 60_000)
        world.recall("postgres")
    assert world.call("consolidate").learnt == 0


def test_learning_is_off_unless_asked_for_and_filters_teach_nothing():
    """By default no row of words is kept; with a filter neither."""
    for world, options in (
        (FactWorld(), RecallOptions()),
        (FactWorld(learn_prefix=3), RecallOptions(min_confidence="unverified")),
    ):
        world.remember("kubernetes runs here")
        world.recall("kuberneetes cluster", options=options)
        rows = world.world.table.query(space_pk("home"), "F#", "F#~", limit=100)
        assert not any(sk.endswith("#v") for sk, _ in rows)


# --- checkpoints


def test_checkpoints_are_kept_and_the_latest_is_resumed():
    """Each save is a new one; the latest by time is resumed; agents do not share them; absence is None."""
    world = FactWorld()
    assert world.facts.latest_checkpoint("home", "ann") is None
    first = world.call("save_checkpoint", state={"step": 1}, metadata={"source": "mcp"})
    world.clock.advance(1000)
    second = world.call("save_checkpoint", state={"step": 2}, messages=[{"role": "user", "content": "hi"}])
    world.call("save_checkpoint", agent="bob")
    assert world.facts.latest_checkpoint("home", "ann") == second
    assert world.facts.checkpoints("home", "ann") == (second, first)
    assert world.facts.latest_checkpoint("home", "bob").state is None
    assert world.facts.agents("home") == ()  # a checkpoint is no fact
    assert world.call("save_checkpoint", key="k") == world.call("save_checkpoint", key="k")


@pytest.mark.parametrize("bad", [1, 2, 33, -1, True, 4.0])
def test_a_beginning_that_pairs_anything_is_refused(bad):
    """Learning takes 0, or 3 to 32 characters."""
    world = FactWorld()
    assert (
        code_of(world.facts.tune, world.caller, "home", Tuning(learn_prefix=bad), deadline=world.deadline)
        == "InvalidInput"
    )
