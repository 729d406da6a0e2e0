"""Places: where people live, where they come from, and where they have been."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.agents.offline.claims import SPEAKER, Claim, Finding, Value
from core.agents.offline.clauses import Clause
from core.agents.offline.rules.rule import Rule, expand, find_subjects, match_rules, pick_date, rule
from core.agents.offline.values import read_place
from core.model.instants import Instant

RULES: Final[tuple[Rule, ...]] = (
    rule(r"{adv}used to live in (?P<value>.+)", "lives_in", "place", tense="past"),
    rule(r"{adv}(?:was|were) living in (?P<value>.+)", "lives_in", "place", tense="past"),
    rule(r"{adv}lived in (?P<value>.+)", "lives_in", "place", tense="past"),
    rule(r"{adv}(?:left|moved away from|moved out of) (?P<value>[A-Z].+)", "lives_in", "place", stance="reject", tense="change", ends=True),
    rule(r"{adv}{neg}{adv}(?:live|lives|reside|resides) in (?:the (?:city|town|village|state) of )?(?P<value>.+)", "lives_in", "place"),
    rule(r"{be}(?:living|based|residing|located) in (?P<value>.+)", "lives_in", "place"),
    rule(r"{adv}been living in (?P<value>.+)", "lives_in", "place"),
    rule(r"{adv}(?:moved|relocated|moving back|moved back) (?:here )?(?:from [A-Z][\w ]*? )?(?:back )?to (?P<value>.+)", "lives_in", "place", tense="change"),
    rule(r"{be}(?:originally )?from (?P<value>.+)", "comes_from", "place"),
    rule(r"{adv}(?:come|comes) from (?P<value>.+)", "comes_from", "place"),
    rule(r"{adv}(?:grew up|was born and raised|was raised|was born) in (?P<value>[A-Z].+)", "comes_from", "place"),
    rule(r"{adv}(?:visited|travell?ed to|flew to|vacationed in) (?P<value>[A-Z].+)", "visited", "place", tense="once"),
    rule(r"{adv}(?:been|went on (?:a )?(?:trip|holiday|vacation)|took a trip) to (?P<value>[A-Z].+)", "visited", "place", tense="once"),
    rule(r"{adv}went to (?P<value>[A-Z][\w-]+(?:, [A-Z][\w-]+)?)(?=$|[,.!]| last| in | with| for| this| on| yesterday| again| once | twice)", "visited", "place", tense="once"),
)  # fmt: skip
_FROM: Final = re.compile(
    r"(?:moved|relocated|came) (?:here )?(?:to (?P<to>[A-Z][\w ]*?) )?from (?P<value>[A-Z].+)"
)
_HOME: Final = re.compile(
    r"(?:[Mm]y|[Oo]ur) (?:current |new )?(?:home|house|flat|apartment) is (?:now )?in (?P<value>[A-Z].+)"
)
_NOT_A_PLACE: Final = re.compile(
    r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|January|February|March|April|May|June|July|August|September"
    r"|October|November|December|Christmas|Easter|Pride|Comic|I)\b"
)


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """Places stated in a clause: `"I moved from Berlin to Munich"` also says that Berlin was home."""
    yield from _origin(clause, said_at)
    home = _HOME.match(expand(clause.text))
    if home and (place := read_place(home["value"])) and not _NOT_A_PLACE.match(place):
        yield Claim(SPEAKER, "lives_in", Value("place", place), span=clause.span)
    for found in match_rules(RULES, clause, said_at):
        if isinstance(found, Claim) and not _NOT_A_PLACE.match(found.value.text):
            yield found


def _origin(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    for subject, rest in find_subjects(expand(clause.text)):
        hit = _FROM.search(rest)
        place = read_place(hit["value"].split(" to ")[0]) if hit else None
        if hit is None or place is None or _NOT_A_PLACE.match(place):
            continue
        when = pick_date(clause, said_at, "change")
        yield Claim(subject, "lives_in", Value("place", place), tense="left", when=when, span=clause.span)
