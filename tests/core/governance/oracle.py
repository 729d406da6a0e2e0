"""Governed queries against a filtered copy: random spaces, random records, random questions.

What a caller is answered must be exactly what somebody without any limit is answered by a copy of the space that
holds only what the caller may know: hidden elements gone, references to them gone, hidden fields empty. The copy is
made by the plain reading of the rules below (`may`), which shares no code with `core.governance.access`.

    for seed in range(5_000):
        assert difference(seed) is None

Where the specification lets an answer differ on purpose, `same` says so.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import msgspec

from core.authority import Principal
from core.governance.control import Control, Delegation, Group, Policy, Rule, Selector, with_control
from core.governance.permissions import ROLES
from core.model.elements import (
    Activity,
    AnyElement,
    Assertion,
    Citation,
    Concept,
    Evidence,
    Governance,
    Origin,
    Payload,
    Proposition,
    StructuralRef,
)
from core.model.literals import Literal, Ref
from core.model.log import Delta
from core.mutation.records import payload_digest
from core.state.space import SpaceState
from core.transaction.draft import Draft
from tests.conformance.packages import CORE_DOMAIN, package
from tests.conformance.world import World

PACKAGE = "kip://test/core-domain@1.0.0"
TYPES = ("Person", "Person", "Theme", "Document", "Experience", "ExperienceStep", "Skill")
PREDICATES = ("knows", "prefers", "timezone", "is_vegetarian")
WORDS = ("harbour", "plan", "dark", "mode", "alice", "vault", "morning", "rust", "kettle", "north")
LABELS = (None, "public", "private", "secret")
WRITERS = ("ana", "ben", "cy")
ASKER = "ana"
MASKED = ("name", "attributes.note", "payload", "confidence")
STEP = f"{PACKAGE}/has_step"
SOURCE = f"{PACKAGE}/compiled_from"


# --- random spaces


class Maker:
    """A random space of a few commits, its records and questions, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(packages=[package(CORE_DOMAIN)], only=True)
        self.concepts: list[Concept] = []
        self.propositions: list[Proposition] = []
        self.assertions: list[Assertion] = []
        self.evidence: list[Evidence] = []
        self.activities: list[Activity] = []
        for _ in range(self.random.randint(2, 4)):
            self._commit()

    def _commit(self) -> None:
        chance = self.random
        self.world.now += 1000
        draft = Draft(self.world.state, now=self.world.now, origin=Origin(chance.choice(WRITERS), "test"))
        for _ in range(chance.randint(3, 9)):
            self._concept(draft)
        for _ in range(chance.randint(1, 5)):
            self.evidence.append(self._evidence(draft))
        for _ in range(chance.randint(3, 9)):
            self._statement(draft)
        for _ in range(chance.randint(0, 2)):
            self._activity(draft)
        for element in chance.sample(self.concepts, min(2, len(self.concepts))):
            now = draft.get(element.id)
            assert now is not None
            draft.change(now, governance=Governance(classification=chance.choice(LABELS)))
        if chance.random() < 0.3 and len(self.concepts) > 4:
            self._merge(draft)
        delta = draft.finish()
        assert delta is not None
        self.world._append(delta)

    def _governance(self) -> Governance:
        return Governance(classification=self.random.choice((*LABELS, None, None)))

    def _text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, 5)))

    def _concept(self, draft: Draft) -> None:
        chance = self.random
        kind = chance.choice(TYPES)
        structural = []
        steps = [each for each in self.concepts if each.schema_ref.endswith("/ExperienceStep")]
        if kind == "Experience" and steps:
            chosen = chance.sample(steps, min(len(steps), chance.randint(1, 3)))
            structural = [StructuralRef(STEP, each.id) for each in chosen]
        lived = [each for each in self.concepts if each.schema_ref.endswith("/Experience")]
        if kind == "Skill" and lived:
            structural = [StructuralRef(SOURCE, chance.choice(lived).id)]
        self.concepts.append(
            draft.create(
                Concept,
                schema_ref=f"{PACKAGE}/{kind}",
                key=f"k{len(self.concepts)}",
                name=self._text() if chance.random() < 0.9 else None,
                attributes={"note": self._text(), "size": chance.randint(0, 3)},
                structural=tuple(structural),
                governance=self._governance(),
            )
        )

    def _evidence(self, draft: Draft) -> Evidence:
        text = self._text()
        made_by = (
            self.random.choice(self.activities).id if self.activities and self.random.random() < 0.2 else None
        )
        return draft.create(
            Evidence,
            evidence_class="message",
            payload=Payload("inline", text),
            content_digest=payload_digest(text),
            source=(self.random.choice(self.concepts).id,) if self.random.random() < 0.5 else (),
            generated_by=made_by,
            governance=self._governance(),
        )  # fmt: skip

    def _statement(self, draft: Draft) -> None:
        chance = self.random
        predicate = chance.choice(PREDICATES)
        subjects = self._of_type("Person")
        objects = subjects if predicate == "knows" else self._of_type("Theme")
        if not subjects or not objects:
            return
        subject = chance.choice(subjects)
        obj: Any = Ref(chance.choice(objects).id)
        if predicate == "timezone":
            obj = Literal(f"+0{chance.randint(1, 3)}:00")
        elif predicate == "is_vegetarian":
            obj = Literal(chance.random() < 0.5)
        proposition = draft.find_proposition(subject.id, f"{PACKAGE}/{predicate}", obj)
        if proposition is None:
            proposition = draft.create(
                Proposition, subject=subject.id, predicate_ref=f"{PACKAGE}/{predicate}", object=obj,
                governance=self._governance(),
            )  # fmt: skip
            self.propositions.append(proposition)
        for _ in range(chance.randint(0, 2)):
            cited = chance.sample(self.evidence, min(len(self.evidence), chance.randint(0, 2)))
            self.assertions.append(
                draft.create(
                    Assertion,
                    proposition=proposition.id,
                    asserted_by=chance.choice(self.concepts).id,
                    stance=chance.choice(("support", "support", "reject")),
                    mode=chance.choice(("stated", "observed", "inferred")),
                    asserted_at=draft.now,
                    confidence=chance.choice((None, 0.4, 0.9)),
                    evidence=tuple(Citation(each.id) for each in cited),
                    governance=self._governance(),
                )
            )

    def _of_type(self, name: str) -> list[Concept]:
        return [each for each in self.concepts if each.schema_ref.endswith(f"/{name}")]

    def _activity(self, draft: Draft) -> None:
        chance = self.random
        self.activities.append(
            draft.create(
                Activity,
                activity_class="inference",
                status="completed",
                inputs=tuple(each.id for each in chance.sample(self.evidence, min(2, len(self.evidence)))),
                outputs=tuple(each.id for each in self.assertions[-1:]),
                governance=self._governance(),
            )
        )

    def _merge(self, draft: Draft) -> None:
        kinds: dict[str, list[Concept]] = {}
        for each in self.concepts:
            now = draft.get(each.id)
            if isinstance(now, Concept) and now.merged_into is None:
                kinds.setdefault(now.schema_ref, []).append(now)
        pairs = [each for each in kinds.values() if len(each) > 1]
        if pairs:
            source, target = self.random.sample(self.random.choice(pairs), 2)
            draft.change(source, merged_into=target.id, state="merged")

    # --- random records

    def control(self) -> Control:
        """Records under which the asker sees a part of the space."""
        chance = self.random
        rules = [
            Rule(
                id=f"allow{n}", effect="allow", subjects=(self._subject(),), permissions=self._granted(),
                where=self._selector(), fields=self._fields(),
            )
            for n in range(chance.randint(1, 4))
        ]  # fmt: skip
        rules += [
            Rule(
                id=f"deny{n}", effect="deny", subjects=(self._subject(),),
                permissions=chance.choice((("discover",), ("discover",), ("search",), ("project",))),
                where=self._selector(narrow=True),
            )
            for n in range(chance.randint(0, 3))
        ]  # fmt: skip
        if chance.random() < 0.3:
            rules.append(
                Rule(
                    id="mask", effect="deny", subjects=("*",), permissions=("read",), where=self._selector(),
                    fields=(chance.choice(MASKED),),
                )
            )  # fmt: skip
        lent = ()
        if chance.random() < 0.4:
            lent = (
                Delegation(
                    id="lent", delegator="ben", delegate=ASKER, permissions=self._granted(), where=self._selector()
                ),
            )  # fmt: skip
        groups = (Group(name="team", members=tuple(chance.sample(WRITERS, 2))),)
        policy = Policy(default="deny", default_classification=chance.choice(("internal", "public")))
        return Control(
            version=1, owners=("root",), policy=policy, rules=tuple(rules), groups=groups, delegations=lent
        )

    def _subject(self) -> str:
        return self.random.choice(("*", f"principal:{ASKER}", "principal:ben", "group:team"))

    def _granted(self) -> tuple[str, ...]:
        seen = ("discover", "read", "read_history", "read_raw_origin")
        more = [name for name in ("search", "project") if self.random.random() < 0.8]
        return (*seen, *more)

    def _fields(self) -> tuple[str, ...]:
        return (self.random.choice(MASKED),) if self.random.random() < 0.2 else ()

    def _selector(self, *, narrow: bool = False) -> Selector:
        chance = self.random
        if not narrow and chance.random() < 0.4:
            return Selector()
        choice = chance.randint(0, 6)
        if choice == 0:
            kinds = ("concept", "proposition", "assertion", "evidence", "activity")
            return Selector(kinds=tuple(chance.sample(kinds, chance.randint(1, 4))))  # type: ignore[arg-type]
        if choice == 1:
            return Selector(types=(f"{PACKAGE}/{chance.choice(TYPES)}",))
        if choice == 2:
            return Selector(predicates=(f"{PACKAGE}/{chance.choice(PREDICATES)}",))
        if choice == 3:
            some = [*self.concepts, *self.propositions, *self.assertions, *self.evidence]
            return Selector(ids=tuple(each.id for each in chance.sample(some, min(4, len(some)))))
        if choice == 4:
            return Selector(origins=(chance.choice(WRITERS),))
        if choice == 5:
            return Selector(own=chance.random() < 0.5)
        return Selector(classifications=tuple(chance.sample(("public", "internal", "private", "secret"), 2)))

    # --- random questions

    def question(self) -> tuple[str, str]:
        """A question, and what it takes: find, search or believe."""
        chance = self.random
        kind, pick, word = chance.choice(TYPES), chance.choice(self.concepts), chance.choice(WORDS)
        predicate = chance.choice(PREDICATES)
        label, other = chance.choice(LABELS[1:]), chance.choice(self.concepts)
        seq = chance.randint(1, self.world.state.seq)
        at = chance.choice(("", "", f" AS OF SEQ {seq}"))
        finds = [
            f'FIND(COUNT(?c)) WHERE {{?c CONCEPT {{type: "{kind}"}}}}{at}',
            f'FIND(?c) WHERE {{?c CONCEPT {{type: "{kind}"}}}}{at}',
            f'FIND(?c.key, ?c.name) WHERE {{?c CONCEPT {{}} FILTER(CONTAINS(?c.name, "{word}"))}}{at}',
            f"FIND(?c.name, COUNT(?c)) WHERE {{?c CONCEPT {{}}}}{at} ORDER BY ?c.name",
            f'FIND(?c.key) WHERE {{?c CONCEPT {{type: "{kind}"}} NOT {{(?c, "{predicate}", ?x)}}}}',
            f'FIND(?c.key, ?x) WHERE {{?c CONCEPT {{}} OPTIONAL {{(?c, "{predicate}", ?x)}}}}{at}',
            f'FIND(?s.key, ?o) WHERE {{?p (?s, "{predicate}", ?o)}}{at}',
            f'FIND(?p) WHERE {{?p (?s, "{predicate}", ?o)}}{at}',
            f"FIND(?a, ?p.predicate_ref) WHERE {{?a ASSERTION {{proposition: ?p}}}}{at}",
            f"FIND(?a.stance, COUNT(?a)) WHERE {{?a ASSERTION {{asserted_by: ?w}}}}{at}",
            "FIND(?a.confidence, ?e.payload.inline) WHERE {?a ASSERTION {evidence: ?e}}",
            f"FIND(?e) WHERE {{?e EVIDENCE {{}}}}{at}",
            "FIND(?e.payload.inline, ?c.key) WHERE {?e EVIDENCE {source: ?c}} ORDER BY ?e.payload.inline",
            "FIND(?x) WHERE {?x ACTIVITY {}}",
            "FIND(?x.activity_class, ?i.payload.inline) WHERE {?x ACTIVITY {inputs: ?i}}",
            'FIND(?c.key, ?s.key, ?f.index) WHERE {?f STRUCTURAL (?c, "has_step", ?s)}',
            'FIND(?c.key, ?s.key) WHERE {STRUCTURAL (?c, "compiled_from", ?s)}',
            'FIND(?c.key, COUNT(?s)) WHERE {?c CONCEPT {} STRUCTURAL (?c, "has_step", ?s)}',
            f'FIND(?a.key, ?b.key) WHERE {{(?a, "knows"{{1,3}}, ?b)}}{at}',
            f'FIND(?b.key) WHERE {{({{id: "{pick.id}"}}, "knows"{{0,2}}, ?b)}}',
            f'FIND(?c) WHERE {{?c CONCEPT {{id: "{pick.id}"}}}}{at}',
            f'FIND(?c.key) WHERE {{UNION {{?c CONCEPT {{type: "{kind}"}}}} UNION {{(?c, "{predicate}", ?x)}}}}',
            f'FIND(?c.key) WHERE {{?c CONCEPT {{}} FILTER(?c.governance.classification == "{label}")}}',
            "FIND(MAX(?c.attributes.size), MIN(?c.name), COUNT(?c)) WHERE {?c CONCEPT {}}",
            "FIND(?c.attributes.note, ?c._system.origin.principal_id) WHERE {?c CONCEPT {}}",
            'FIND(?c.id, ?c.merged_into) WHERE {?c CONCEPT {state: "merged"}}',
            f'FIND(?s.key) WHERE {{(?s, "{predicate}", {{id: "{other.id}"}})}}',
        ]  # fmt: skip
        subject = chance.choice(self.propositions or [None])  # type: ignore[list-item]
        if subject is None:
            return chance.choice(finds), "find"
        obj = subject.object
        said = f'{{id: "{obj.id}"}}' if isinstance(obj, Ref) else json.dumps(obj.value)
        policy = chance.choice(("test-deterministic", "kip:policy:baseline"))
        explained = chance.choice(("none", "summary", "ledger"))
        how = f' WITH EPISTEMIC {{policy: "{policy}", explanation: "{explained}"}}'
        named = subject.predicate_ref.rpartition("/")[2]
        beliefs = [
            f'FIND(?b) WHERE {{?b BELIEF ({{id: "{subject.subject}"}}, "{named}", {said})}}{how}',
            f'FIND(?b) WHERE {{?b BELIEF SLOT ({{id: "{subject.subject}"}}, "{named}")}}{how}',
            f'FIND(?b) WHERE {{?b BELIEF (id: "{subject.id}")}}{how}',
        ]
        searches = [
            f'SEARCH COGNITION "{word} {chance.choice(WORDS)}" LIMIT 200',
            f'SEARCH CONCEPT "{word}" LIMIT 200',
            f'SEARCH PROPOSITION "{word}" LIMIT 200',
            f'SEARCH ASSERTION "{word}" LIMIT 200',
            f'SEARCH EVIDENCE "{word}" LIMIT 2',
            f'SEARCH COGNITION "{word}" AS OF SEQ {seq} LIMIT 200',
        ]
        table = {"find": finds, "believe": beliefs, "search": searches}
        takes = chance.choices(("find", "believe", "search"), (5, 2, 2))[0]
        return chance.choice(table[takes]), takes


# --- the plain reading of the rules


def may(control: Control, who: str, name: str, element: AnyElement, get: Callable[[str], Any]) -> bool:
    """Whether a principal holds a permission on an element: deny over allow, lent over nothing (KIP §28-30)."""
    for rule in control.rules:
        against = rule.effect == "deny" and not rule.fields and {name, "discover"} & set(rule.permissions)
        mine = against and _is_for(rule.subjects, control, who)
        if mine and _takes_in(rule.where, control, who, element, get):
            return False
    for rule in control.rules:
        if (
            rule.effect == "allow"
            and name in _given(rule.permissions)
            and _is_for(rule.subjects, control, who)
        ) and _takes_in(rule.where, control, who, element, get):
            return True
    return any(
        lent.delegate == who
        and name in _given(lent.permissions)
        and _takes_in(lent.where, control, who, element, get)
        and may(control, lent.delegator, name, element, get)
        for lent in control.delegations
    )


def _given(names: tuple[str, ...]) -> set[str]:
    out = set(names)
    for each in names:
        out |= set(ROLES.get(each.removeprefix("role:"), ()))
    if out & {"read", "search", "project"}:
        out.add("discover")
    return out


def _is_for(subjects: tuple[str, ...], control: Control, who: str) -> bool:
    groups = {f"group:{group.name}" for group in control.groups if who in group.members}
    return any(each in {"*", f"principal:{who}"} | groups for each in subjects)


def _takes_in(
    where: Selector, control: Control, who: str, element: AnyElement, get: Callable[[str], Any]
) -> bool:
    kind = type(element).__name__.lower()
    label = element.governance.classification or control.policy.default_classification
    predicate = None
    if isinstance(element, Proposition):
        predicate = element.predicate_ref
    elif isinstance(element, Assertion):
        predicate = get(element.proposition).predicate_ref
    origin = element.system.origin.principal
    type_ref = element.schema_ref if isinstance(element, Concept) else None
    return not (
        (where.kinds and kind not in where.kinds)
        or (where.types and type_ref not in where.types)
        or (where.predicates and predicate not in where.predicates)
        or (where.classifications and label not in where.classifications)
        or (where.ids and element.id not in where.ids)
        or (where.origins and origin not in where.origins)
        or (where.own is not None and where.own != (origin == who))
    )


def masked(control: Control, who: str, element: AnyElement, get: Callable[[str], Any]) -> set[str]:
    """The fields of an element that a reader may not read: what every grant hides, and what any deny does."""
    denied = {
        path
        for rule in control.rules
        if rule.effect == "deny" and rule.fields and _is_for(rule.subjects, control, who)
        and _takes_in(rule.where, control, who, element, get)
        for path in rule.fields
    }  # fmt: skip
    hiding = [
        set(rule.fields)
        for rule in control.rules
        if rule.effect == "allow" and "read" in rule.permissions and _is_for(rule.subjects, control, who)
        and _takes_in(rule.where, control, who, element, get)
    ]  # fmt: skip
    for lent in control.delegations:
        inside = lent.delegate == who and _takes_in(lent.where, control, who, element, get)
        if inside and may(control, lent.delegator, "read", element, get):
            hiding.append(masked(control, lent.delegator, element, get))
    return denied | (set.intersection(*hiding) if hiding else set())


def seen(
    control: Control, who: str, element: AnyElement, get: Callable[[str], Any], takes: tuple[str, ...]
) -> bool:
    """Whether an element is in the copy: it may be discovered, and so may everything that it is about."""
    if not may(control, who, "discover", element, get):
        return False
    judged = isinstance(element, (Proposition, Assertion)) or "project" not in takes
    if judged and any(not may(control, who, name, element, get) for name in takes):
        return False
    about: list[str] = []
    if isinstance(element, Proposition):
        about = [element.subject, *([element.object.id] if isinstance(element.object, Ref) else [])]
    elif isinstance(element, Assertion):
        about = [element.proposition, element.asserted_by]
    known = () if "search" in takes else takes
    return all(seen(control, who, get(each), get, known) for each in about)


# --- the copy


class Copy:
    """The space as if what the caller may not know had never been."""

    def __init__(self, world: World, control: Control, who: str, takes: tuple[str, ...]) -> None:
        self.get = world.state.get
        self.control, self.who = control, who
        self.whole = "project" in takes
        ids = [put.id for delta in world.deltas for put in delta.puts]
        self.kept = {
            each for each in ids if seen(control, who, world.state.get(each), world.state.get, takes)
        }
        self.world = World(packages=[package(CORE_DOMAIN)], only=True)
        for delta in world.deltas[len(self.world.deltas) :]:
            self.world._append(self._delta(delta))
        self.world.now = world.now

    def _delta(self, delta: Delta) -> Delta:
        puts = tuple(self._scrubbed(put) for put in delta.puts if put.id in self.kept)
        return msgspec.structs.replace(delta, puts=puts)

    def _ids(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each for each in ids if each in self.kept)

    def _scrubbed(self, element: AnyElement) -> AnyElement:
        # what may be projected may be projected whole: a mask is about reading (KIP §29.4)
        hidden = set() if self.whole else masked(self.control, self.who, self.get(element.id), self.get)
        fields: dict[str, Any] = {
            "structural": tuple(ref for ref in element.structural if ref.target in self.kept)
        }
        if isinstance(element, Concept):
            if element.merged_into is not None and element.merged_into not in self.kept:
                fields["merged_into"] = None
            if "name" in hidden:
                fields["name"] = None
            if "attributes.note" in hidden:
                fields["attributes"] = {k: v for k, v in element.attributes.items() if k != "note"}
        elif isinstance(element, Assertion):
            cited = tuple(each for each in element.evidence if each.evidence in self.kept)
            fields["evidence"] = cited
            if "confidence" in hidden:
                fields["confidence"] = None
        elif isinstance(element, Evidence):
            made_by = element.generated_by
            fields["source"] = self._ids(element.source)
            fields["generated_by"] = made_by if made_by in self.kept else None
            if "payload" in hidden:
                fields["payload"] = Payload("inline", None)
        elif isinstance(element, Activity):
            fields["inputs"], fields["outputs"] = self._ids(element.inputs), self._ids(element.outputs)
        return msgspec.structs.replace(element, **fields)


# --- the comparison


def plain(value: Any) -> Any:  # JSON
    """A result without what is null or empty: a hidden field is left out where the copy has an empty one."""
    if isinstance(value, dict):
        kept = {name: plain(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, [], {}, {"mode": "inline"})}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def without(value: Any, kept: set[str]) -> Any:  # JSON
    """A search's answer without ends that may be known of and not searched; the copy does not have them."""
    if isinstance(value, dict):
        if isinstance(value.get("id"), str) and value["id"] not in kept:
            return {}
        return {name: without(item, kept) for name, item in value.items()}
    return [without(item, kept) for item in value] if isinstance(value, list) else value


def ask(world: World, text: str, who: Principal) -> Any:  # the rows, or the code of what is wrong
    """Every row of an answer, page after page, or the code of the refusal."""
    rows: list[Any] = []
    cursor: str | None = None
    for _ in range(200):
        command = text if cursor is None else f"{text} CURSOR :cursor"
        given = {} if cursor is None else {"cursor": cursor}
        response = world.send(
            {"kip": "2.0", "operations": [{"command": command, "parameters": given}]}, principal=who
        )
        (result,) = response["results"]
        if result["status"] != "succeeded":
            return result["error"]["code"]
        rows.extend(result["result"])
        cursor = result.get("next_cursor")
        if cursor is None:
            return rows
    raise AssertionError("a page that never ends")


def difference(seed: int) -> str | None:
    """What differs between the governed answer and the copy's for a seed, or None."""
    maker = Maker(seed)
    control = maker.control()
    world = maker.world
    questions = [maker.question() for _ in range(4)]
    limited = maker.random.random() < 0.4
    world.states[-1] = _governed(world.state, control)
    asker = Principal(ASKER)
    for text, takes in questions:
        needs = {"find": (), "believe": ("project",), "search": ("search",)}[takes]
        made = Copy(world, control, ASKER, needs)
        copy = made.world
        paged = takes == "find" and limited and "LIMIT" not in text
        asked = f"{text} LIMIT 3" if paged else text
        got = ask(world, asked, asker)
        wanted = ask(copy, asked, Principal("root"))
        if got in ("NotAuthorized", "ProjectionNotAuthorized"):
            if _holds(world, control, takes):
                return f"{asked}\n  refused, though there is something that it may be asked of"
            continue
        if takes == "search":
            copy.states[-1] = _governed(copy.state, control)
            exact = without(ask(copy, asked, asker), made.kept)
            if plain(got) != plain(exact):
                return f"{asked}\n  governed: {plain(got)}\n  copy:     {plain(exact)}"
            if "LIMIT 2 " in f"{asked} ":
                continue  # scores are reckoned against a constant for who may not see everything
            if isinstance(got, list):
                got, wanted = sorted(row["id"] for row in got), sorted(row["id"] for row in wanted)
        if not same(got, wanted):
            return f"{asked}\n  governed: {plain(got)}\n  copy:     {plain(wanted)}"
    return None


def _governed(state: SpaceState, control: Control) -> SpaceState:
    return SpaceState(
        meta=with_control(state.meta, control), ver=state.ver, seq=state.seq, at=state.at, tail=state.tail
    )


def _holds(world: World, control: Control, takes: str) -> bool:
    """Whether there is an element on which the asker holds the permission that a question takes."""
    name = {"find": "read", "believe": "project", "search": "search"}[takes]
    get = world.state.get
    ids = {put.id for delta in world.deltas for put in delta.puts}
    return any(may(control, ASKER, name, get(each), get) for each in ids)


def same(got: Any, wanted: Any) -> bool:
    """Whether two answers are the same; of two refusals, whether both are."""
    return plain(got) == plain(wanted)
