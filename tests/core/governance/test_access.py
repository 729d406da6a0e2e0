"""What records come to: deny over allow, loans, groups and roles, masks, and the order of nothing."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest

from core.authority import Principal, allows, authorize, authorize_new, represents, visible
from core.errors import NoemaError
from core.governance.access import UNREADABLE, Access, admit
from core.governance.control import (
    Binding,
    Control,
    Delegation,
    Group,
    Party,
    Policy,
    Role,
    Rule,
    Selector,
    control_of,
    with_control,
)
from core.governance.permissions import ALL, PROJECT_UNSEEN
from core.model.elements import Assertion, Concept, Governance, Origin, Proposition, System
from core.model.literals import Ref
from core.query.fields import ALL_FIELDS
from core.state.layer import Empty, Layer
from tests.core.mutation.conftest import People

SYSTEM = System(1, 0, 0, "t", "t", Origin("ana", "c"))
TYPE = "kip://a@1.0.0/T"


def concept(name: str, label: str | None = None, origin: str = "ana", **more) -> Concept:
    system = System(1, 0, 0, "t", "t", Origin(origin, "c"))
    return Concept(id=f"C-{name}", system=system, schema_ref=TYPE, governance=Governance(label, **more))


ALICE, SECRET = concept("alice"), concept("vault", "secret")
KNOWS = Proposition(id="P-1", system=SYSTEM, subject="C-alice", predicate_ref="p", object=Ref("C-vault"))
OF_ALICE = Proposition(id="P-2", system=SYSTEM, subject="C-alice", predicate_ref="q", object=Ref("C-alice"))
CLAIM = Assertion(
    id="A-1", system=SYSTEM, proposition="P-2", asserted_by="C-alice", stance="support", mode="stated",
    asserted_at=0,
)  # fmt: skip


def view(*elements) -> Layer:
    layer = Layer(Empty())
    for element in (ALICE, SECRET, KNOWS, OF_ALICE, CLAIM, *elements):
        layer.put(element)
    return layer


def rule(effect, permissions, subjects=("*",), fields=(), name=None, since=None, until=None, **where) -> Rule:
    found = name or f"{effect}:{permissions}:{subjects}:{where}"
    return Rule(
        id=found, effect=effect, subjects=tuple(subjects), permissions=tuple(permissions), fields=fields,
        where=Selector(**where), since=since, until=until,
    )  # fmt: skip


def access(*rules, who="ana", now=0, principal=None, elements=(), **records) -> Access:
    control = Control(version=1, rules=rules, **records)
    return Access(principal or Principal(who), control, view(*elements), now)


# --- the rules of KIP §30


RULES = [
    rule(effect, [permission], [subject], name=f"{effect}{permission}{subject}{where}", **where)
    for effect in ("allow", "deny")
    for permission in ("read", "update", "*")
    for subject in ("principal:ana", "*")
    for where in ({}, {"ids": ("C-alice",)})
]
ASKED = list(product(("read", "update"), (ALICE, SECRET)))


def decided(rules) -> list[bool]:
    made = access(*rules)
    return [made.can(name, element) for name, element in ASKED]


def test_the_order_and_the_number_of_equal_rules_mean_nothing():
    """Any order of any three rules decides the same, and so does a rule said twice (formal P2, P6)."""
    for rules in list(combinations(RULES, 3))[::7]:
        base = decided(rules)

        assert all(decided(each) == base for each in permutations(rules))
        assert decided([*rules, rules[0]]) == base


def test_a_deny_only_takes_and_an_allow_never_takes_back():
    """Adding a deny allows nothing; adding an allow never lifts an explicit deny (formal P3, P4)."""
    for rules in combinations(RULES, 2):
        base = decided(rules)
        for extra in RULES:
            extended = decided([*rules, extra])
            if extra.effect == "deny":
                assert all(was or not now for was, now in zip(base, extended, strict=True))
            else:
                denied = next(
                    access(*(each for each in rules if each.effect == "deny"), rule("allow", ["*"]))
                    for _ in (1,)
                )
                for (name, element), now in zip(ASKED, extended, strict=True):
                    assert not now or denied.can(name, element)


def test_nothing_is_allowed_without_a_grant():
    """A governed space is closed to whom it says nothing of."""
    nobody = access()

    assert nobody.anywhere == frozenset()
    assert not nobody.sees(ALICE)
    assert not any(nobody.can(name, ALICE) for name in ALL)


def test_no_permission_rewrites_what_the_protocol_keeps():
    """A rule for everything gives permissions by their names, and none of them is to break an invariant."""
    owner = access(rule("allow", ["*"]))

    assert owner.anywhere == ALL - {PROJECT_UNSEEN}
    assert not {"rewrite_proposition_tuple", "write_system_origin", "self_elevate_authority"} & ALL


# --- who


def test_groups_roles_and_standing():
    """A group's grant is its members'; a role is its permissions; who is suspended holds nothing, an owner neither."""
    grant = rule("allow", ["role:scribe"], ["group:team"])
    records = {"groups": (Group(name="team", members=("ana",)),), "roles": (Role(name="scribe", permissions=("read", "create")),)}  # fmt: skip

    assert access(grant, **records).anywhere == {"discover", "read", "create"}
    assert access(grant, who="ben", **records).anywhere == frozenset()
    for status in ("suspended", "revoked"):
        away = (Party(id="ana", status=status),)
        assert access(grant, parties=away, **records).anywhere == frozenset()
        assert access(parties=away, owners=("ana",)).anywhere == frozenset()
    assert access(owners=("ana",)).anywhere == ALL - {PROJECT_UNSEEN}
    assert not access(rule("deny", ["purge"]), owners=("ana",)).can("purge", ALICE)


def test_a_rule_counts_from_its_beginning_to_its_end():
    """Before `since` and from `until` on, a rule is not there."""
    timed = rule("allow", ["read"], since=10, until=20)

    assert [access(timed, now=now).can("read", ALICE) for now in (9, 10, 19, 20)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_credential_bounds_what_records_give():
    """A token of a narrow scope gets no more than that, whatever was granted; nor less by default of `scopes`."""
    reader = Principal("ana", permissions=frozenset({"read"}))
    everything = rule("allow", ["*"])

    assert access(everything, principal=reader).anywhere == {
        "discover",
        "read",
        "read_history",
        "read_raw_origin",
    }
    scopes = Policy(default="scopes")
    assert access(principal=reader, policy=scopes).can("read", ALICE)
    assert not access(rule("deny", ["read"]), principal=reader, policy=scopes).can("read", ALICE)
    unlimited = access(policy=scopes)
    assert unlimited.can("purge", ALICE)
    assert not unlimited.may("manage_policy")  # a scope is no office


# --- loans


def lent(name="d", delegator="ben", delegate="ana", permissions=("read", "update"), **more) -> Delegation:
    return Delegation(id=name, delegator=delegator, delegate=delegate, permissions=permissions, **more)


def test_a_loan_gives_what_the_lender_has_now_and_no_more():
    """Permissions and elements are both those of the lender and of the loan; what the lender loses is lost."""
    his = rule("allow", ["read", "purge"], ["principal:ben"], ids=("C-alice",))
    loan = (lent(),)

    both = access(his, delegations=loan)
    assert (both.can("read", ALICE), both.can("read", SECRET)) == (True, False)
    assert (both.can("update", ALICE), both.can("purge", ALICE)) == (False, False)
    assert not access(delegations=loan).can("read", ALICE)
    assert not access(his, rule("deny", ["read"], ["principal:ben"]), delegations=loan).can("read", ALICE)
    assert not access(his, delegations=loan, parties=(Party(id="ben", status="revoked"),)).can("read", ALICE)
    assert not access(his, delegations=(lent(until=5),), now=5).can("read", ALICE)
    narrow = (lent(where=Selector(ids=("C-vault",))),)
    assert not access(his, delegations=narrow).can("read", ALICE)


def test_a_loan_is_not_lent_on_unless_it_says_so():
    """Of a chain, each link but the last must be redelegable; a circle gives nothing and ends."""
    his = rule("allow", ["read"], ["principal:cy"])
    first = lent("1", "cy", "ben")

    assert not access(his, delegations=(first, lent("2"))).can("read", ALICE)
    onward = lent("1", "cy", "ben", redelegable=True)
    assert access(his, delegations=(onward, lent("2"))).can("read", ALICE)
    circle = (lent("1", "ana", "ben", redelegable=True), lent("2", "ben", "ana", redelegable=True))
    assert not access(delegations=circle).can("read", ALICE)


# --- what


@pytest.mark.parametrize(
    ("where", "takes"),
    [
        ({"kinds": ("concept",)}, (True, False)),
        ({"types": (TYPE,)}, (True, False)),
        ({"types": ("kip://a@1.0.0",)}, (True, False)),
        ({"types": ("kip://a@1.0.0/Other",)}, (False, False)),
        ({"predicates": ("q",)}, (False, True)),
        ({"classifications": ("internal",)}, (True, True)),
        ({"classifications": ("public",)}, (False, False)),
        ({"ids": ("A-1",)}, (False, True)),
        ({"origins": ("ana",)}, (True, True)),
        ({"own": True}, (True, True)),
        ({"own": False}, (False, False)),
        ({"imported": False}, (True, True)),
        ({"imported": True}, (False, False)),
        ({"kinds": ("concept",), "ids": ("A-1",)}, (False, False)),
    ],
)
def test_a_selector_looks_at_trusted_properties(where, takes):
    """Kind, type, predicate (an Assertion has its Proposition's), label, id, origin; all that is given must hold."""
    made = access(rule("allow", ["read"], **where))

    assert (made.can("read", ALICE), made.can("read", CLAIM)) == takes


def test_what_is_about_the_hidden_is_hidden():
    """A Proposition with a hidden end, and a claim about it, do not exist; other statements do."""
    made = access(rule("allow", ["read"]), rule("deny", ["discover"], classifications=("secret",)))
    about = Assertion(
        id="A-2", system=SYSTEM, proposition="P-1", asserted_by="C-alice", stance="support", mode="stated",
        asserted_at=0,
    )  # fmt: skip

    assert [made.sees(each) for each in (ALICE, SECRET, KNOWS, OF_ALICE, CLAIM)] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert not made.sees(about)
    assert not access(rule("allow", ["read"]), rule("deny", ["discover"], ids=("C-alice",))).sees(
        CLAIM
    )  # its actor


def test_statements_about_statements_may_be_deep():
    """A tower of ten thousand statements is looked through without recursion, and hidden by what it stands on."""
    tower = [
        Proposition(id=f"P-t{n}", system=SYSTEM, subject="C-alice", predicate_ref="q",
                    object=Ref(f"P-t{n - 1}" if n else "C-vault"))
        for n in range(10_000)
    ]  # fmt: skip
    made = access(
        rule("allow", ["read"]), rule("deny", ["discover"], classifications=("secret",)), elements=tower
    )

    assert not made.sees(tower[-1])
    assert access(rule("allow", ["read"], kinds=("concept", "proposition")), elements=tower).sees(tower[-1])


def test_fields_are_hidden_by_every_grant_or_by_any_deny():
    """Two grants show what either does; a deny of fields hides them from all; without reading nothing shows."""
    named = rule("allow", ["read"], fields=("name",), name="1")
    noted = rule("allow", ["read"], fields=("name", "attributes.note"), name="2")
    denied = rule("deny", ["read"], fields=("key",), name="3")
    origin = rule("allow", ["read_raw_origin"], name="4")

    assert access(named, noted, origin).hidden(ALICE) == {"name"}
    assert access(named, noted, denied, origin).hidden(ALICE) == {"name", "key"}
    assert access(named).hidden(ALICE) == {"name", "_system.origin"}
    assert access(rule("allow", ["discover"])).hidden(ALICE) == UNREADABLE


def test_unreadable_is_every_field_but_that_it_is_there():
    """No field that a kind may get is forgotten."""
    assert ALL_FIELDS - {"id", "kind", "space_id"} == UNREADABLE


def test_quarantine_is_for_reviewers():
    """What is in quarantine exists for who may quarantine, and counts in nobody's projection."""
    bad = concept("bad", quarantined=True)
    everything = rule("allow", ["*"])

    assert access(everything, elements=(bad,), quarantined=1).sees(bad)
    assert not access(everything, elements=(bad,), quarantined=1).counts(bad)
    assert not access(rule("allow", ["read", "project"]), quarantined=1).sees(bad)


def test_unseen_grounds_count_only_where_that_is_granted_by_name():
    """`project` alone uses what is visible; `project_unseen` is never part of `*`."""
    hidden = rule("deny", ["discover"], kinds=("assertion",))

    assert not access(rule("allow", ["*"]), hidden).counts(CLAIM)
    unseen = rule("allow", [PROJECT_UNSEEN], kinds=("assertion",))
    assert access(rule("allow", ["*"]), hidden, unseen).counts(CLAIM)
    assert not access(rule("allow", ["*"]), rule("deny", ["project"])).counts(CLAIM)


# --- voices


def test_a_voice_is_bound_by_a_record():
    """In a governed space only a binding gives a voice, within its scope and time, to the owner no less."""
    bound = Binding(id="b", principal="ana", actor="C-alice", where=Selector(predicates=("q",)), until=10)

    made = access(rule("allow", ["*"]), bindings=(bound,))
    assert made.represents("C-alice", CLAIM)
    assert not made.represents("C-vault", CLAIM)
    assert not access(rule("allow", ["*"]), bindings=(bound,), now=10).represents("C-alice", CLAIM)
    assert not access(owners=("ana",)).represents("C-alice", CLAIM)
    assert access(policy=Policy(default="scopes")).represents(
        "C-alice", CLAIM
    )  # scopes decide, as without records
    other = Assertion(
        id="A-3", system=SYSTEM, proposition="P-1", asserted_by="C-alice", stance="support", mode="stated",
        asserted_at=0,
    )  # fmt: skip
    assert not made.represents("C-alice", other)


def admitted(made: Access) -> Principal:
    return Principal("ana", access=made)


def code_of(call, *args) -> str:
    with pytest.raises(NoemaError) as caught:
        call(*args)
    return caught.value.code


def test_the_gates_ask_the_records():
    """`authorize`, `visible` and `represents` decide by the records where a caller has them."""
    made = admitted(
        access(rule("allow", ["read", "retract_own"]), rule("deny", ["discover"], ids=("C-vault",)))
    )

    authorize(made, "read", ALICE)
    assert code_of(authorize, made, "update", ALICE) == "NotAuthorized"
    assert code_of(authorize, made, "read", SECRET) == "NotFoundOrNotVisible"
    assert code_of(authorize, made, "retract", CLAIM) == "RetractionNotAuthorized"
    assert (visible(made, SECRET), allows(made, "read"), represents(made, "C-alice")) == (False, True, False)
    assert code_of(authorize_new, made, "create", ALICE) == "NotAuthorized"
    assert made.access is not None
    assert made.access.used == ["allow:['read', 'retract_own']:('*',):{}"]


def test_some_deeds_take_more_than_a_permission():
    """Strong authentication and approvals are asked for where the policy says so."""
    policy = Policy(strong=("purge",), approvals={"tombstone": 2})
    made = access(rule("allow", ["*"]), policy=policy)

    weak = Principal("ana", strong=False, access=made)
    assert code_of(authorize, weak, "purge", ALICE) == "RequiresStrongerAuthentication"
    authorize(admitted(made), "purge", ALICE)
    assert code_of(authorize, admitted(made), "tombstone", ALICE) == "RequiresApproval"


# --- where it is kept


def test_records_stand_in_protected_state_and_come_back_equal():
    """What is stored is read back as it was, beside everything else that is protected."""
    meta = People().state.meta
    control = Control(version=3, rules=(rule("allow", ["read"], own=True),), owners=("o",))

    kept = with_control(meta, control)
    assert control_of(kept) == control
    assert control_of(meta) is None
    assert kept.extensions.keys() - meta.extensions.keys() == {"governance"}


def test_too_many_records_are_refused():
    """Protected state is read whole, so its size has an end."""
    meta = People().state.meta
    many = tuple(rule("allow", ["read"], name=str(n)) for n in range(5_001))

    assert code_of(with_control, meta, Control(version=1, rules=many)) == "ResourceExhausted"


def test_a_space_without_records_leaves_its_callers_as_they_are():
    """Scopes decide as they always did, and cost nothing; a transport's own hidden labels become records."""
    state = People().state

    owner = Principal("owner")
    assert admit(owner, state.meta, state, 0) is owner
    guest = admit(Principal("g", hidden=frozenset({"secret"})), state.meta, state, 0)
    assert guest.access is not None
    assert (guest.access.open, guest.access.version) == (False, 0)
    assert not visible(guest, SECRET)
