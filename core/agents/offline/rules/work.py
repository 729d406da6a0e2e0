"""Work and study: occupation, employer, school."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from core.agents.offline.claims import SPEAKER, Claim, Finding, Retirement, Value
from core.agents.offline.clauses import Clause
from core.agents.offline.rules.rule import BE, Rule, expand, match_rules, pick_date, rule
from core.agents.offline.values import read_organization, read_text
from core.model.instants import Instant

# Nouns that name an occupation. "I'm a fan" and "I'm a mess" must not, so "I'm a ..." needs one of these.
OCCUPATIONS: Final = (
    "accountant|actor|actress|analyst|architect|artist|assistant|attorney|author|baker|barber|barista|bartender|biologist|bookkeeper"
    "|builder|butcher|carpenter|cashier|chef|chemist|cleaner|coach|composer|consultant|contractor|cook|counsell?or|dancer|dentist"
    "|designer|developer|dietitian|director|doctor|driver|economist|editor|electrician|engineer|entrepreneur|farmer|filmmaker"
    "|firefighter|florist|freelancer|gardener|geologist|hairdresser|historian|illustrator|instructor|investor|janitor|journalist|judge"
    "|lawyer|lecturer|librarian|linguist|manager|marketer|mathematician|mechanic|midwife|model|musician|novelist|nurse|nutritionist"
    "|optician|painter|paralegal|paramedic|pediatrician|pharmacist|photographer|physician|physicist|physiotherapist|pianist|pilot"
    "|plumber|poet|police officer|potter|principal|producer|professor|programmer|psychiatrist|psychologist|radiologist|realtor"
    "|receptionist|recruiter|researcher|sailor|salesperson|scientist|sculptor|secretary|singer|soldier|statistician|student|surgeon"
    "|surveyor|tailor|teacher|technician|therapist|translator|tutor|veterinarian|vet|waiter|waitress|welder|writer|yoga teacher"
)
_A_JOB: Final = rf"(?P<value>(?:[a-z]+[ -]){{0,3}}?(?:{OCCUPATIONS}))(?=$|[,.!;]| (?:at|in|for|now|by|with|from|and|who|since|these|currently)\b(?! heart))"

RULES: Final[tuple[Rule, ...]] = (
    rule(rf"{{adv}}used to be (?:a |an |the ){_A_JOB}", "job", "text", tense="past"),
    rule(r"{adv}used to work as (?:a |an |the )(?P<value>.+)", "job", "text", tense="past"),
    rule(r"{adv}(?:used to work|worked) (?:for|at) (?P<value>[A-Z].+)", "works_for", "organization", tense="past"),
    rule(r"{adv}worked as (?:a |an |the )(?P<value>.+)", "job", "text", tense="past"),
    rule(rf"{BE}(?:working as )?(?:a |an |the ){_A_JOB}", "job", "text"),
    rule(r"{adv}{neg}works? as (?:a |an |the )?(?P<value>[a-z].+)", "job", "text"),
    rule(rf"{{adv}}(?:became|started working as|started as|got promoted to|was promoted to) (?:a |an |the )?{_A_JOB}", "job", "text", tense="change"),
    rule(rf"{{be}}an? {_A_JOB}", "job", "text"),
    rule(r"{adv}{neg}works? (?:for|at) (?P<value>.+)", "works_for", "organization"),
    rule(r"{be}(?:working|employed) (?:for|at|by) (?P<value>.+)", "works_for", "organization"),
    rule(r"{adv}(?:joined|(?:started|began)(?: (?:working|work|a (?:new )?job))? (?:at|for|with)|got (?:a |my )?(?:new )?(?:job|offer|position) (?:at|with)) (?P<value>[A-Z].+)", "works_for", "organization", tense="change"),
    rule(r"{adv}(?:left|quit|resigned from|was laid off from|got laid off from|was fired from) (?:my job at |my position at )?(?P<value>[A-Z].+)", "works_for", "organization", stance="reject", tense="change", ends=True),
    rule(r"{adv}(?:left|quit) my job at (?P<value>.+)", "works_for", "organization", stance="reject", tense="change"),
    rule(r"{adv}{neg}(?:studies|study) at (?P<value>[A-Z].+)", "studies_at", "organization"),
    rule(r"{be}(?:studying|a student|enrolled) at (?P<value>[A-Z].+)", "studies_at", "organization"),
)  # fmt: skip
_MY_JOB: Final = re.compile(
    r"my (?:current |new )?(?:job|occupation|profession|job title) is (?:now )?(?:a |an |being an? )?(?P<value>[a-z].+)",
    re.IGNORECASE,
)
_EMPLOYER: Final = re.compile(
    r"my (?:current |new )?(?:employer|company) is (?:now )?(?P<value>.+)", re.IGNORECASE
)
_JOB_AT: Final = re.compile(r" (?:at|for|with) (?P<value>[A-Z].+)")
_CHANGED: Final = re.compile(
    r"i (?:just |recently |have |finally )*(?:changed|switched) (?:jobs|my job|careers?)\b"
    r"|i (?:just |recently |have |finally )*(?:quit|left|lost) my job(?! at)\b|i (?:was |got )(?:just |recently )?(?:laid off|fired)(?! from)\b"
    r"|i (?:just |recently |have |finally )*(?:retired)\b",
    re.IGNORECASE,
)


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """Work stated in a clause: `"I'm a nurse at Mercy Hospital"` names the job and the employer."""
    text = expand(clause.text)
    if hit := _MY_JOB.match(text):
        title = read_text(hit["value"].split(" at ")[0])
        if title is not None and len(title.split()) <= 5:
            yield Claim(SPEAKER, "job", Value("text", title), span=clause.span)
    elif (hit := _EMPLOYER.match(text)) and (employer := read_organization(hit["value"])):
        yield Claim(SPEAKER, "works_for", Value("organization", employer), span=clause.span)
    elif _CHANGED.match(text):
        when = pick_date(clause, said_at, "change")
        yield Retirement(SPEAKER, ("works_for", "job"), when, clause.span)
    for found in match_rules(RULES, clause, said_at):
        if not isinstance(found, Claim) or found.predicate != "job":
            yield found
            continue
        title = re.split(r" (?:at|for|with) ", found.value.text)[0]
        yield msgspec.structs.replace(found, value=Value("text", title))
        if found.stance == "support":
            at = _JOB_AT.search(text)
            place = read_organization(at["value"]) if at else None
            if place:
                yield Claim(
                    found.subject,
                    "works_for",
                    Value("organization", place),
                    tense=found.tense,
                    when=found.when,
                    span=clause.span,
                )
