"""The values a dense search gives: order, ties, kinds, what does not count; and the text an element is compared by."""

from __future__ import annotations

import numpy as np
import pytest

from core.model.elements import Activity, Concept, Evidence, Payload
from core.search.dense import Coverage, Dense, Scored, nothing
from core.search.wording import MAX_CHARS, ends, fingerprint, wording
from tests.core.query.brain import Brain


def part(scores: dict[str, float]) -> Scored:
    """Rows with these ids and similarities."""
    ids = list(scores)
    return Scored(
        np.asarray(list(scores.values()), dtype=np.float32),
        np.frombuffer("".join(one[0] for one in ids).encode(), dtype=np.uint8),
        ids.__getitem__,
        {one: row for row, one in enumerate(ids)}.get,
    )


def dense(*parts: dict[str, float], **coverage: object) -> Dense:
    return Dense(Coverage(model="m", **coverage), [part(one) for one in parts], np)  # type: ignore[arg-type]


def test_the_nearest_come_first_of_the_kinds_asked_for() -> None:
    """Over all parts, equal ones in the order of the index, those that do not count left out."""
    found = dense({"E-1": 0.5, "C-1": 0.9, "E-2": float("nan")}, {"E-3": 0.7, "E-4": 0.5, "P-1": -0.1})
    assert [one for one, _ in found.ranked("E")] == ["E-3", "E-1", "E-4"]
    assert [one for one, _ in found.ranked("EC", 2)] == ["C-1", "E-3"]
    assert [one for one, _ in found.ranked("CPEX")][-1] == "P-1"
    assert list(found.ranked("A")) == []
    assert list(found.ranked("E", 0)) == []


def test_a_long_ranking_is_the_whole_order() -> None:
    """However much of it is read, it is a prefix of the same order."""
    rng = np.random.default_rng(1)
    scores = {f"E-{number:04d}": float(value) for number, value in enumerate(np.round(rng.random(3000), 2))}
    found = dense(scores)
    whole = [one for one, _ in found.ranked("E")]
    assert whole == sorted(scores, key=lambda one: (-np.float32(scores[one]), one))
    assert [one for one, _ in found.ranked("E", 700)] == whole[:700]
    ranking = found.ranked("E")
    assert [next(ranking)[0] for _ in range(600)] == whole[:600]


def test_single_elements_are_looked_up() -> None:
    """Those without a vector, and those replaced by a newer part, are not there."""
    found = dense({"E-1": float("nan")}, {"E-1": 0.3, "E-2": 0.4})
    assert found.of(["E-1", "E-2", "E-9"]) == pytest.approx({"E-1": 0.3, "E-2": 0.4})


def test_the_spread_is_that_of_one_kind() -> None:
    """Mean and deviation of what counts; harmless where there is nothing or all is equal."""
    found = dense({"E-1": 0.2, "E-2": 0.4, "C-1": 9.0, "E-3": float("nan")})
    assert found.spread("E") == pytest.approx((0.3, 0.1), abs=1e-6)
    assert found.spread("P") == (0.0, 1.0)
    assert found.spread("C") == (9.0, 1.0)
    assert nothing(Coverage(model=None)).spread("E") == (0.0, 1.0)


def test_an_empty_search_works_like_any_other() -> None:
    """It yields nothing and says why; it is usable only where nothing is missing."""
    empty = nothing(Coverage(model=None, degraded="no_embedder"))
    assert (list(empty.ranked("E")), empty.of(["E-1"]), empty.degraded) == ([], {}, "no_embedder")
    assert not empty.coverage.usable
    assert Coverage(model="m").usable
    assert Coverage(model="m", vectors=3, degraded="lagging").usable


# --- wording


def test_each_kind_is_worded_by_what_it_says() -> None:
    """Evidence by its text, a Concept by its names and texts, a statement by its ends, an Assertion not at all."""
    brain = Brain()
    ann = brain.concept("Person", "Ann", attributes={"town": "lives in Oslo"})
    town = brain.concept("Place", "Bergen")
    note = brain.evidence("message", "the launch code")
    said = brain.says(ann, "knows", town)
    claim = brain.claim(said, ann) if hasattr(brain, "claim") else None
    brain.commit()
    view = brain.state

    def told(element: object) -> str:
        return wording(view.get(element.id), view)  # type: ignore[arg-type,attr-defined]

    assert told(ann) == "Ann\nlives in Oslo"
    assert told(note) == "the launch code"
    assert told(said) == "Ann knows Bergen"
    assert ends(view.get(said.id)) == (ann.id, town.id)  # type: ignore[arg-type]
    if claim is not None:
        assert told(claim) == ""


def test_long_texts_are_cut_and_empty_ones_are_empty() -> None:
    """The bound is in characters; spaces alone say nothing."""
    system = Brain().concept("Person", "x").system
    long = Evidence(
        id="E-1", system=system, evidence_class="m", payload=Payload("inline", "é" * 9000), content_digest=""
    )
    blank = Evidence(
        id="E-1", system=system, evidence_class="m", payload=Payload("inline", "  \n"), content_digest=""
    )
    nameless = Concept(id="C-1", system=system, schema_ref="t")
    run = Activity(id="X-1", system=system, activity_class="reflection")
    memory = Brain().state
    assert len(wording(long, memory)) == MAX_CHARS
    assert wording(blank, memory) == wording(nameless, memory) == ""
    assert wording(run, memory) == "reflection"


def test_a_fingerprint_tells_texts_apart_and_is_keyed() -> None:
    """The same text under the same key, and nothing else; lone surrogates do no harm."""
    assert fingerprint("tea", b"k") == fingerprint("tea", b"k")
    assert len({fingerprint(text, key) for text in ("tea", "Tea", "\ud800") for key in (b"k", b"l")}) == 6
    assert fingerprint("tea", b"k" * 99) == fingerprint("tea", b"k" * 64)
