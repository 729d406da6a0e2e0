"""The harness itself: a suite on a harness that cannot see a failure proves nothing."""

from __future__ import annotations

import pytest

from core.epistemic.trust import TrustRecord
from tests.conformance.harness import DETERMINISTIC, request
from tests.conformance.ids import all_ids, conformance, id_of_name
from tests.conformance.report import Outcome, check_report, report_of, table

ENSURE = 'ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")'


def test_bindings_principals_and_readers(world):
    """A command sees the bindings it names, and its commit is in the log, the state and the envelopes."""
    reply = world.ok(ENSURE)

    assert world.element(reply.id("p")).subject == world.ref["alice"]["id"]
    assert [delta.tx_id for delta in world.log()][-1] == reply.receipt["tx_id"]
    assert [envelope["tx_id"] for envelope in world.envelopes()][-1] == reply.receipt["tx_id"]
    assert len(world.elements("concept")) == 12
    assert world.invoke("importer", ENSURE.replace("08", "09")).code == "NotAuthorized"
    assert world.invoke("reader_full", ENSURE, readonly=True).code == "ReadonlyViolation"


def test_a_change_is_not_called_unchanged(world):
    """A commit within `unchanged` fails the test, and a refused command passes it."""
    assert world.refused('CREATE CONCEPT ?x {TYPE "Spaceship"}') == "SchemaSymbolNotFound"
    with pytest.raises(AssertionError, match="has changed"), world.unchanged():
        world.ok(ENSURE)


def test_a_request_that_breaks_its_schema_is_refused_by_the_harness(world):
    """What does not fit the published schema is sent only where the test says that it is malformed."""
    body = request("DESCRIBE PROTOCOL", surplus=1)
    with pytest.raises(AssertionError, match="kip-request"):
        world.invoke("owner", body)

    assert world.invoke("owner", body, malformed=True).code == "InvalidRequestEnvelope"
    assert world.invoke("owner", b"{").code == "InvalidRequestEnvelope"


def test_a_race_is_run_between_plan_and_commit(world):
    """The rival's commit is before the one that was planned first, which sees it."""
    rivals = []
    world.race(lambda: rivals.append(world.ok(ENSURE)))
    late = world.ok(ENSURE)

    assert late.id("p") == rivals[0].id("p")
    assert late.receipt["status"] == "no_effect"


def test_a_silent_store_leaves_the_outcome_unknown(world):
    """The commit stands, the client cannot know it, and the retry under its key finds it."""
    body = request({"command": ENSURE, "idempotency_key": "k"})
    with world.silent_after_commit():
        reply = world.invoke("owner", body, patience=100)

    assert reply["status"] == "outcome_unknown"
    assert world.ok(body).receipt["status"] == "committed"
    assert len(world.elements("proposition")) == 1


def test_trust_and_classification_are_the_hosts(world):
    """Protected state that no command reaches decides what weighs and who may see."""
    world.ok('ASSERT (:alice, "timezone", "+08:00") {by: :bob, mode: "stated"}')
    ask = f'FIND(?b.status) WHERE {{?b BELIEF (:alice, "timezone", "+08:00")}} {DETERMINISTIC}'
    assert world.rows(ask) == ["accepted"]
    world.trust(TrustRecord("actor", world.ref["bob"]["id"], "weak"))
    assert world.rows(ask) == ["uncertain"]

    world.classify(world.ref["carol"])
    count = 'FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Person"}}'
    assert (world.rows(count), world.invoke("reader_hidden", count).result) == ([4], [3])


def test_cursors_and_artifacts_expire(world):
    """Time and handles are the test's to spend."""
    page = world.ok('FIND(?c.key) WHERE {?c CONCEPT {type: "Person"}} LIMIT 1')
    more = 'FIND(?c.key) WHERE {?c CONCEPT {type: "Person"}} LIMIT 1 CURSOR :c'
    assert len(world.rows(more, c=page.cursor)) == 1
    world.expire_cursors()

    assert world.refused(more, c=page.cursor) == "CursorExpired"


def test_a_name_or_a_mark_says_which_id_a_test_is_of():
    """Both must agree where both are given."""
    assert id_of_name("test_KIP2_TX_007_whatever") == "KIP2-TX-007"

    def test_kip2_tx_008():
        """Nothing."""

    with pytest.raises(AssertionError):
        conformance("KIP2-TX-007")(test_kip2_tx_008)


def test_the_report_counts_only_what_ran():
    """A failed id fails, a missing one is pending and never passes, and the report fits its schema."""
    if not all_ids():
        pytest.skip("no ../shared/kip beside the repository")
    good, bad = Outcome(), Outcome()
    good.passed, bad.passed, bad.failure = 1, 3, "assert 1 == 2"
    outcomes = {"KIP2-CORE-001": good, "KIP2-CORE-002": bad}
    report = report_of(outcomes, 1_780_000_000_000, 1_780_000_001_000)
    check_report(report)

    assert table(outcomes)[-1] == "1 passed, 1 failed, 296 pending"
    assert (report["summary"]["pass"], report["summary"]["fail"], report["overall_status"]) == (1, 1, "FAIL")
    assert report["profiles"]["KIP-Core"]["passed"] == 1
