"""Material: what each phase of a run with a model has to look at, found by the host and never by the model.

What lives here: bounded looks at what is new since the last run, what is worn, which tasks are open. What must never
live here: judging any of it. What the host did not select for a phase, a model in that phase may not archive, merge or
end (`core.agents.maintenance.rules`): so a memory that orders it to do so reaches nothing that was not on the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from core.agents.maintenance.decay import MNEMONIC, SLEEP_TASK, after_place, place_of
from core.agents.maintenance.due import due_at
from core.agents.maintenance.phases import CLASSES, Phase
from core.agents.maintenance.tasks import ABOUT
from core.agents.maintenance.working import open_tasks
from core.agents.recall.records import record_of, row_of
from core.agents.vocabulary import COMMITMENT, EVENT, PERSON, PROFILE
from core.model.elements import Concept, Json
from core.model.instants import Instant, format_instant
from core.model.literals import Ref
from core.protocol.http_types import MemoryPolicy
from core.schema.library import FACTS_REF
from core.state.indexes import made_key, name_key, object_key, subject_key, type_key
from core.state.view import View

ROLE: Final = "maintenance"
MOST: Final = 20  # of anything that a phase is shown,
EPISODES: Final = 40  # but for episodes, of which a daydream must keep up with some twenty conversations
INSIGHTS: Final = 3  # from which something may be concluded about oneself
STRETCH: Final = 500  # new Concepts looked at in one run
WORN: Final = 500  # old ones looked at in one full run
LOOKED_AT: Final = 100  # of one type, the newest
_TEXT: Final = 600  # characters of one line
_SOON_MS: Final = 24 * 3600 * 1000
_DAY_MS: Final = 24 * 3600 * 1000
_EVENTS: Final = frozenset({EVENT, f"{PROFILE}/Experience"})
_LASTING: Final = frozenset({
    PERSON, COMMITMENT, SLEEP_TASK,
    *(f"{PROFILE}/{name}" for name in ("SelfModel", "Skill", "SkillTrial", "Watch")),
})  # fmt: skip
"""Types that never wear out by themselves."""


class Stretch(msgspec.Struct, frozen=True):
    """The Concepts that are new since the last look, maintenance's own and facts left out.

    place: where the next look begins, if all of these were seen to. full: there may be more of them.
    """

    concepts: tuple[Concept, ...]
    place: str | None
    full: bool = False

    def after(self, shown: Sequence[Concept], wanted: Sequence[Concept]) -> str | None:
        """Where the next look begins if of the wanted only so many were shown."""
        return self.place if len(shown) == len(wanted) else place_of(shown[-1].id)


class Look(msgspec.Struct, frozen=True):
    """What a phase is chosen from.

    place: where the last look of this phase ended. most: how many lines the model can read beside the rest. waiting:
    how many episodes may wait for a fuller run before this one consolidates them.
    """

    view: View
    policy: MemoryPolicy
    now: Instant
    salt: str
    place: str | None = None
    self_identity: str | None = None
    most: int = EPISODES
    waiting: int = 1

    @property
    def few(self) -> int:
        """As many as are shown of anything but episodes."""
        return min(MOST, self.most)


class Material(msgspec.Struct, frozen=True):
    """What one phase is about.

    lines: what it is shown, one JSON object each. offered: the elements that it may archive or weigh. pairs: what it
    may merge, both ways. tasks: the SleepTasks it may take up. place: where the next look of this phase begins; what
    was not shown, and what waits for company, is looked at again.
    """

    lines: tuple[dict[str, Json], ...] = ()
    offered: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()
    tasks: frozenset[str] = frozenset()
    place: str | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look at."""
        return not self.lines


def stretch_of(look: Look) -> Stretch:
    """The next new Concepts."""
    found: list[Concept] = []
    place, seen = look.place, 0
    for element in islice(look.view.ids("concept", after_place(look.place, look.salt)), STRETCH):
        place, seen = place_of(element), seen + 1
        concept = look.view.get(element)
        if isinstance(concept, Concept) and _is_of_interest(concept):
            found.append(concept)
    return Stretch(tuple(found), place, full=seen == STRETCH)


def worn_of(look: Look) -> Stretch:
    """The next old Concepts that nothing has renewed: at the floor of their strength, and old enough.

    Of orphans, about which nothing is stated, at most as many as the policy says; the next look begins there.
    """
    found: list[Concept] = []
    place = look.place
    seen = orphans = 0
    age = look.policy.stale_event_threshold_days * _DAY_MS
    for element in islice(look.view.ids("concept", after_place(look.place, look.salt)), WORN):
        concept = look.view.get(element)
        worn = isinstance(concept, Concept) and _is_worn(concept, look, age)
        if worn and _is_orphan(look.view, element):
            if orphans == look.policy.orphan_max_count:
                return Stretch(tuple(found), place)
            orphans += 1
        seen, place = seen + 1, place_of(element)
        if worn and isinstance(concept, Concept):
            found.append(concept)
            if len(found) == look.few:
                return Stretch(tuple(found), place)
    return Stretch(tuple(found), place if seen == WORN else None)


def _is_of_interest(concept: Concept) -> bool:
    plumbing = concept.schema_ref == SLEEP_TASK or concept.schema_ref.startswith(FACTS_REF)
    mine = concept.system.origin.channel == ROLE
    return concept.system.state == "active" and not plumbing and not mine


def _is_orphan(view: View, concept: str) -> bool:
    """Whether no statement has a Concept at an end of it."""
    return not view.find(subject_key(concept)) and not view.find(object_key(Ref(concept)))


def _is_worn(concept: Concept, look: Look, age: int) -> bool:
    strength = concept.facets.get(MNEMONIC, {}).get("memory_strength")
    return (
        _is_of_interest(concept)
        and concept.schema_ref not in _LASTING
        and concept.id != look.self_identity
        and not concept.retention.legal_hold
        and concept.retention.retention_class != "pinned"
        and isinstance(strength, (int, float))
        and strength <= look.policy.decay_floor
        and concept.system.created_at + age <= look.now
    )


def gather(phase: Phase, look: Look) -> Material:
    """What a phase has to look at; bounded, and the same for the same state."""
    special = _GATHER.get(phase.name)
    found = Material() if special is None else special(look)
    tasks = list(islice(_tasks(look, phase), look.few))
    return Material(
        (*found.lines, *(_task_line(look.view, task) for task in tasks)),
        found.offered,
        found.pairs,
        frozenset(task.id for task in tasks),
        found.place,
    )


def _tasks(look: Look, phase: Phase) -> Iterator[Concept]:
    for task in open_tasks(look.view, look.now):
        kind = str(task.attributes.get("task_class"))
        if kind in phase.classes or (phase.name == "tasks" and kind not in CLASSES):
            yield task


def _task_line(view: View, task: Concept) -> dict[str, Json]:
    about = [ref.target for ref in task.structural if ref.field == ABOUT]
    filed = list(view.find(made_key(task.id))[:1])
    told: dict[str, Json] = {
        "task": task.id,
        "version": task.system.version,
        "class": str(task.attributes.get("task_class")),
        "summary": str(task.attributes.get("summary"))[:_TEXT],
        "about": list(about[:MOST]),
    }
    return told | ({"filed_by": filed[0]} if filed else {})


# --- what is particular to a phase


def _consolidation(look: Look) -> Material:
    """New Events and Experiences, if there are two to compare.

    A single one waits for company; in a quick run as many as may wait do.
    """
    stretch = stretch_of(look)
    events = [one for one in stretch.concepts if one.schema_ref in _EVENTS]
    if 0 < len(events) <= look.waiting and not stretch.full:
        return Material(place=look.place)
    if len(events) < 2:
        return Material(place=stretch.place)
    return _shown(look, events[: look.most], place=stretch.after(events[: look.most], events))


def _skills(look: Look) -> Material:
    stretch = stretch_of(look)
    experiences = [one for one in stretch.concepts if one.schema_ref == f"{PROFILE}/Experience"]
    shown = experiences[: look.few]
    skills = [
        one for one in _newest(look, f"{PROFILE}/Skill") if one.attributes.get("status") == "needs_review"
    ]
    return _shown(look, [*shown, *skills[: look.few]], place=stretch.after(shown, experiences))


def _salience(look: Look) -> Material:
    """New memories that nobody has weighed; they may be given weight and nothing else."""
    stretch = stretch_of(look)
    fresh = [
        one
        for one in stretch.concepts
        if one.facets.get(MNEMONIC, {}).get("salience") is None and one.schema_ref in _EVENTS | {COMMITMENT}
    ]
    shown = fresh[: look.most]
    return _shown(look, shown, offered=True, place=stretch.after(shown, fresh))


def _identity(look: Look) -> Material:
    """Things of one type and one name. People are left out: a name is shared by many."""
    stretch = stretch_of(look)
    pairs: list[tuple[Concept, Concept]] = []
    for one in stretch.concepts:
        if one.name is None or one.schema_ref in _LASTING | _EVENTS:
            continue
        for other_id in look.view.find(name_key(one.name))[:MOST]:
            other = look.view.get(other_id)
            if isinstance(other, Concept) and other.id < one.id and _may_be_one(one, other):
                pairs.append((one, other))
    shown = pairs[: look.few]
    lines = [
        {"may_be_one": [one.id, other.id], "type": one.schema_ref, "keys": [one.key, other.key]}
        for one, other in shown
    ]
    place = stretch.after([one for one, _ in shown], [one for one, _ in pairs])
    told = _shown(look, {each.id: each for pair in shown for each in pair}.values(), place=place)
    both = frozenset(ends for one, other in shown for ends in ((one.id, other.id), (other.id, one.id)))
    return Material((*told.lines, *lines), pairs=both, place=place)


def _may_be_one(one: Concept, other: Concept) -> bool:
    return (
        one.schema_ref == other.schema_ref
        and other.system.state == "active"
        and one.canonical_id in (None, other.canonical_id)
    )


def _commitments(look: Look) -> Material:
    due = []
    for one in _newest(look, COMMITMENT):
        at = due_at(look.view, one.id)
        if at is not None and at <= look.now + _SOON_MS:
            due.append((at, one))
    due.sort(key=lambda each: (each[0], each[1].id))
    lines = [
        {"commitment": one.id, "version": one.system.version, "due_at": format_instant(at)}
        for at, one in due[: look.few]
    ]
    shown = _shown(look, [one for _, one in due[: look.few]], offered=True)
    return Material((*shown.lines, *lines), shown.offered)


def _self_model(look: Look) -> Material:
    """What was learned lately, if it is enough to see oneself in."""
    insights = [one for one in _newest(look, f"{PROFILE}/Insight") if place_of(one.id) > (look.place or "")]
    if len(insights) < INSIGHTS:
        return Material(place=look.place)
    return _shown(look, insights[: look.few], place=place_of(insights[0].id))


def _imports(look: Look) -> Material:
    stretch = stretch_of(look)
    brought = [one for one in stretch.concepts if one.system.origin.import_id is not None]
    return _shown(look, brought[: look.few], place=stretch.after(brought[: look.few], brought))


def _retention(look: Look) -> Material:
    worn = worn_of(look)
    return _shown(look, worn.concepts, offered=True, place=worn.place)


_GATHER: Final[Mapping[str, Callable[[Look], Material]]] = {
    "consolidation": _consolidation,
    "skills": _skills,
    "salience": _salience,
    "identity": _identity,
    "commitments": _commitments,
    "self_model": _self_model,
    "imports": _imports,
    "retention": _retention,
}


def _newest(look: Look, schema_ref: str) -> Iterator[Concept]:
    for element in islice(reversed(look.view.find(type_key(schema_ref))), LOOKED_AT):
        found = look.view.get(element)
        if isinstance(found, Concept) and found.system.state == "active":
            yield found


def _shown(
    look: Look, concepts: Iterable[Concept], *, offered: bool = False, place: str | None = None
) -> Material:
    """Concepts as lines, with their versions, so that what is written can say on which it rests."""
    lines: list[dict[str, Json]] = []
    for concept in concepts:
        line = record_of(look.view, concept.id, most=_TEXT)
        if line is not None:
            lines.append({**row_of(line, _TEXT), "version": concept.system.version})
    ids = frozenset(str(line["id"]) for line in lines)
    return Material(tuple(lines), ids if offered else frozenset(), place=place)
