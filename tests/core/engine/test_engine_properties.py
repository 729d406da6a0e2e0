"""Random MUTATE plans: whole or not at all, the same in any order of clauses, and replayed to the same state."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.elements import KIND_OF_TYPE
from core.model.ids import KINDS
from core.state.indexes import entries
from core.state.space import genesis
from tests.core.mutation.conftest import People

NAMES = ["a", "b", "c", "d"]
PEOPLE = [":alice", ":bob", ":carol", ":said"]

number = st.sampled_from([0, 1, 2, 0.5])


@st.composite
def clauses(draw):
    """One to six clauses over four handles and three people; many plans are wrong in some way."""
    made = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    person = st.sampled_from(PEOPLE + [f"?{name}" for name in made])
    out = [draw(_creation(name, person)) for name in made]
    out += draw(st.lists(_change(person), min_size=0 if out else 1, max_size=4))
    return out


@st.composite
def _creation(draw, name, person):
    kind = draw(
        st.sampled_from(["person", "theme", "evidence", "activity", "ensure", "assert", "upsert", "bad"])
    )
    if kind == "person":
        return f'CREATE CONCEPT ?{name} {{TYPE "Person" NAME "{name}" SET ATTRIBUTES {{n: {draw(number)}}}}}'
    if kind == "theme":
        return f'CREATE CONCEPT ?{name} {{TYPE "Theme" NAME "{name}" SET FACET "MnemonicState" {{salience: {draw(number)}}}}}'
    if kind == "evidence":
        return f'CREATE EVIDENCE ?{name} {{SET FIELDS {{evidence_class: "x", payload: "{name}"}} SET STRUCTURAL {{("source", {draw(person)})}}}}'
    if kind == "activity":
        return f'CREATE ACTIVITY ?{name} {{SET FIELDS {{activity_class: "{name}"}} SET STRUCTURAL {{("outputs", {draw(person)})}}}}'
    if kind == "ensure":
        return f'ENSURE PROPOSITION ?{name} ({draw(person)}, "knows", {draw(person)})'
    if kind == "assert":
        return f'ASSERT ?{name} ({draw(person)}, "timezone", "{draw(number)}") {{by: {draw(person)}, mode: "stated"}}'
    if kind == "upsert":
        key = draw(st.sampled_from(["alice", "k1", "k2"]))
        return f'UPSERT CONCEPT ?{name} {{MATCH {{type: "Person", key: "{key}"}} SET ATTRIBUTES {{n: {draw(number)}}}}}'
    return f'CREATE CONCEPT ?{name} {{TYPE "Spaceship"}}'


@st.composite
def _change(draw, person):
    target = draw(person)
    return draw(st.sampled_from([
        f"UPDATE {target} SET ATTRIBUTES {{n: {draw(number)}}}",
        f"UPDATE {target} SET ATTRIBUTES {{m: {draw(number)}}}",
        f'UPDATE {target} SET FIELDS {{name: "renamed"}}',
        'UPDATE ?x SET ATTRIBUTES {n: ADD(COALESCE(?x.attributes.n, 1), 1)} WHERE {?x CONCEPT {type: "Person"}} LIMIT 2',
        f"ARCHIVE {target}",
        f"TOMBSTONE {target}",
        f"SET RETENTION {target} {{legal_hold: true}}",
        f"MERGE CONCEPT {target} INTO {draw(person)}",
        f'PURGE {target} CONFIRM "PURGE"',
        f"RETRACT ASSERTION {target}",
        f"SUPERSEDE ASSERTION {target} BY {draw(person)}",
        f"SUPERSEDE ASSERTION :said BY {draw(person)}",
        f"CORRECT EVIDENCE {target} BY {draw(person)}",
        f'UPDATE {target} SET STRUCTURAL {{("experienced_by", {draw(person)})}}',
        f'TRANSITION ACTIVITY {target} TO "completed"',
    ]))  # fmt: skip


def contents(world):
    """Everything a space holds, with ids replaced by what they stand for, so that two spaces can be compared."""
    state = world.state
    labels = {}
    for kind in KINDS:
        for element_id in state.ids(kind):
            element = state.get(element_id)
            labels[element_id] = f"{kind}:{getattr(element, 'name', '')}:{getattr(element, 'key', '')}"

    def plain(value):
        if isinstance(value, str):
            return labels.get(value, value)
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {plain(name): plain(item) for name, item in value.items()}
        return value

    rows = []
    for kind in KINDS:
        for element_id in state.ids(kind):
            element = state.get(element_id)
            fields = {
                name: getattr(element, name)
                for name in element.__struct_fields__
                if name not in {"id", "system"}
            }
            facts = [kind, plain(msgspec.to_builtins(fields)), element.system.version, element.system.state]
            rows.append(json.dumps(facts, sort_keys=True))
    return sorted(rows)


class Said(People):
    """The people, after Alice has said something."""

    def __init__(self) -> None:
        super().__init__()
        self.ref["said"] = self.handles(
            'ASSERT ?a (:alice, "timezone", "x") {by: :alice, mode: "stated"}', self.ref
        )["a"]


def run(world, plan):
    """Whether the plan committed; all its commands are over the same people."""
    return world.run("MUTATE {" + "\n".join(plan) + "}", world.ref)["status"] == "succeeded"


@settings(max_examples=150, deadline=None)
@given(st.lists(clauses(), min_size=1, max_size=3))
def test_a_plan_commits_whole_or_not_at_all(plans):
    """A failed plan leaves the very same state; a committed one moves each version once and no index lies."""
    world = Said()
    for plan in plans:
        before, seq, commits = world.state, world.state.seq, len(world.deltas)
        done = run(world, plan)
        if not done or len(world.deltas) == commits:
            assert world.state is before
            continue
        delta = world.deltas[-1]
        assert (len(world.deltas), world.state.seq) == (commits + 1, seq + 1)
        for element in delta.puts:
            old = before.get(element.id)
            assert element.system.version == (1 if old is None else old.system.version + 1)
            assert element != old
            for key in entries(element, KIND_OF_TYPE[type(element)]):
                assert element.id in world.state.find(key)

    replayed = genesis(world.deltas[0]).apply(*world.deltas[1:])
    for kind in KINDS:
        assert list(replayed.ids(kind)) == list(world.state.ids(kind))
        assert all(replayed.get(found) == world.state.get(found) for found in replayed.ids(kind))


@settings(max_examples=150, deadline=None)
@given(st.data(), clauses())
def test_the_order_of_clauses_means_nothing(data, plan):
    """A plan and any permutation of it commit to the same contents, or neither commits."""
    first, second = Said(), Said()
    done = run(first, plan)
    again = run(second, data.draw(st.permutations(plan)))

    assert done == again
    assert contents(first) == contents(second)


@settings(max_examples=60, deadline=None)
@given(clauses())
def test_a_repeated_dry_run_predicts_the_run(plan):
    """A dry run says what the run then does, and changes nothing itself."""
    world = Said()
    operation = {"command": "MUTATE {" + "\n".join(plan) + "}", "parameters": world.ref}
    before = world.state
    dry = world.send({"kip": "2.0", "operations": [operation], "options": {"dry_run": True}})
    assert world.state is before
    real = world.send({"kip": "2.0", "operations": [operation]})

    assert dry["status"] == real["status"]
    if real["status"] == "succeeded" and real["receipt"]["status"] == "committed":
        would = dry["results"][0]["warnings"][0]["details"]["would"]
        assert would == real["receipt"]["change_summary"]
