"""Preferences: what people like, love, hate, avoid and prefer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.agents.offline.claims import Finding
from core.agents.offline.clauses import Clause
from core.agents.offline.rules.rule import Rule, expand, match_rules, rule
from core.model.instants import Instant

_LIKE: Final = r"(?:loves?|likes?|enjoys?|adores?)"
_HATE: Final = r"(?:hates?|dislikes?|despises?|detests?|loathes?|cannot stand|cannot bear)"

RULES: Final[tuple[Rule, ...]] = (
    rule(rf"{{adv}}used to (?:really )?{_LIKE} (?P<value>.+)", "likes", "topic", tense="past", split=True),
    rule(rf"{{adv}}used to (?:really )?{_HATE} (?P<value>.+)", "dislikes", "topic", tense="past", split=True),
    rule(r"{adv}(?:stopped|quit) (?:liking|enjoying|loving) (?P<value>.+)", "likes", "topic", stance="reject", tense="change"),
    rule(rf"{{adv}}{{neg}}{{adv}}{_LIKE} (?P<value>.+)", "likes", "topic", split=True),
    rule(rf"{{adv}}{{neg}}{{adv}}{_HATE} (?P<value>.+)", "dislikes", "topic", split=True),
    rule(r"{be}(?:a |an )?(?:really |very )?(?:(?:big|huge|great|massive|avid) )?fan of (?P<value>.+)", "likes", "topic", split=True),
    rule(r"{be}(?:really |very |so |totally )?(?:into|fond of|crazy about|passionate about|obsessed with|keen on) (?P<value>.+)", "likes", "topic", split=True),
    rule(r"{adv}{neg}{adv}prefers? (?P<value>.+)", "prefers", "topic"),
    rule(r"{adv}fell in love with (?P<value>.+)", "likes", "topic", tense="change"),
)  # fmt: skip
# "I like to think", "I love being told", "I like my coffee black", "I liked it": manners of speech, not preferences.
_MANNER: Final = re.compile(
    rf"\b{_LIKE} (?:to think|to believe|to say|my (?:coffee|tea|steak|eggs)|your|how|when|that|the (?:way|idea|fact|sound|look))\b",
    re.IGNORECASE,
)


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """Preferences stated in a clause."""
    if _MANNER.search(expand(clause.text)):
        return
    yield from match_rules(RULES, clause, said_at)
