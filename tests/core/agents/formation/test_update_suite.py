"""The update suite: after many generated changes, what is believed and what is on record."""

import pytest

from tests.updates import cases, form_case, judge, measure

CASES = cases()
FAMILIES = sorted({case.family for case in CASES})
HELD_OFFLINE = 0.9  # of all cases; measured 0.92. What is missing is the family of free wording.


def test_there_are_enough_cases():
    """At least two hundred, of many families, the same for a seed."""
    assert len(CASES) >= 200
    assert len(FAMILIES) >= 15
    assert cases() == CASES


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "free"])
def test_the_offline_reader_keeps_up_with_a_family(family: str):
    """Every case of a family that rules can read ends with the right belief and the right history."""
    found = [case for case in CASES if case.family == family]
    wrong = [
        (case.said, verdict.found)
        for case in found
        if not (verdict := judge(form_case(case, model=False).spaces.load("home"), case)).right
    ]
    assert wrong == []


@pytest.mark.parametrize("seed", [5, 11])
def test_the_offline_reader_keeps_up_with_most(seed: int):
    """Of all cases, free wording included, nine of ten end right, on seeds it was not made with too."""
    every = measure(cases(seed), model=False)[-1]
    assert every.right / every.cases >= HELD_OFFLINE


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_understands_keeps_up_with_all(family: str):
    """What a model means it can say through the tools: every case ends with the right belief and history."""
    found = [case for case in CASES if case.family == family]
    wrong = [
        (case.said, verdict.found)
        for case in found
        if not (verdict := judge(form_case(case, model=True).spaces.load("home"), case)).right
    ]
    assert wrong == []


@pytest.mark.parametrize("family", ["again", "past"])
def test_was_it_ever_so(family: str):
    """A question about the past is answered with what was, by the offline recall, whoever formed it."""
    for case in (case for case in CASES if case.family == family and case.ever is not None):
        for model in (False, True):
            question, word = case.ever or ("", "")
            assert word in form_case(case, model=model).ask(question).answer
