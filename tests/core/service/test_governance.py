"""The control plane as the host uses it: commands, approvals, audit, and what each may be told to whom."""

from __future__ import annotations

import msgspec
import pytest

from core.authority import Principal
from core.errors import NoemaError
from core.governance.commands import (
    Approve,
    Classify,
    Declassify,
    PutBinding,
    PutDelegation,
    PutGroup,
    PutParty,
    PutRole,
    PutRule,
    Quarantine,
    Release,
    RemoveBinding,
    RemoveDelegation,
    RemoveGroup,
    RemoveRole,
    RemoveRule,
    RequestApproval,
    SetInfluence,
    SetOwners,
    SetPolicy,
    SetSelf,
    SetTrust,
    WithdrawApproval,
    decode_command,
)
from core.governance.control import (
    Binding,
    Delegation,
    Group,
    Party,
    Policy,
    Role,
    Rule,
    Selector,
    control_of,
)
from core.service.values import Idempotency
from tests.conformance.harness import PERMISSIONS, World, request

STRANGER = Principal("stranger")


@pytest.fixture
def world() -> World:
    """A governed world."""
    made = World()
    made.govern(PERMISSIONS)
    return made


def allow(name: str, *permissions: str, **more) -> PutRule:
    return PutRule(
        rule=Rule(id=name, effect="allow", subjects=(f"principal:{name}",), permissions=permissions, **more)
    )


def manager(world: World, name: str, *permissions: str) -> str:
    """A principal that holds some permissions everywhere."""
    world.principals[name] = Principal(name)
    world.grant(name, *permissions, name=f"office:{name}")
    return name


# --- the first command, and who may send any


def test_a_space_gets_records_by_its_owners_first_command():
    """Until then scopes decide; from then on everything does that the records say."""
    world = World()
    assert world.policy_version() == 0
    assert world.command_refused(SetPolicy(policy=Policy()), STRANGER) == "NotAuthorized"
    first = world.command(PutRule(rule=Rule(id="no", effect="deny", subjects=("*",), permissions=("purge",))))

    assert (first.version, first.effect, world.policy_version()) == (1, True, 1)
    control = control_of(world.state().meta)
    assert control is not None
    assert (control.owners, control.policy.default) == (("owner",), "scopes")
    assert world.invoke(STRANGER, "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}").result == [
        12
    ]  # its scope still counts
    assert world.invoke("owner", 'PURGE :carol CONFIRM "PURGE"').code == "NotAuthorized"


def test_the_hosts_operator_may_step_in_and_the_audit_says_so(world):
    """Whoever has locked themselves out is let in again by the host, in plain sight."""
    world.command(PutParty(party=Party(id="owner", status="suspended")))
    assert world.command_refused(SetPolicy(policy=Policy())) == "NotAuthorized"
    assert world.invoke("owner", "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}").code == "NotAuthorized"
    world.command(PutParty(party=Party(id="owner")), Principal("root"), operator=True)

    entry = world.audit()[-1]
    assert (entry.principal, entry.operation, entry.operator) == ("root", "put_party", True)
    assert world.invoke("owner", "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}").result == [12]


@pytest.mark.parametrize(
    ("permission", "command"),
    [
        ("manage_policy", SetPolicy(policy=Policy(default_classification="private"))),
        ("manage_policy", SetSelf(concept=None)),
        ("manage_policy", PutRole(role=Role(name="scribe", permissions=("create",)))),
        ("manage_policy", PutRule(rule=Rule(id="d", effect="deny", subjects=("*",), permissions=("purge",)))),
        ("manage_grants", allow("somebody", "manage_grants")),
        ("manage_membership", PutGroup(group=Group(name="team", members=("bob",)))),
        ("manage_membership", PutParty(party=Party(id="bob", status="suspended"))),
        ("manage_actor_binding", PutBinding(binding=Binding(id="b", principal="bob", actor="C-1"))),
        ("manage_trust", SetTrust(records=({"scope": "origin", "subject": "x", "trust": "weak"},))),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_command_takes_its_own_permission(world, permission, command):
    """Who has every permission but that one is refused, and who has that one alone is let through."""
    without = manager(world, "almost", *(set(_MANAGING) - {permission}))
    alone = manager(world, "office", permission)
    before = world.policy_version()

    assert world.command_refused(command, without) == "NotAuthorized"
    assert world.policy_version() == before
    assert world.command(command, alone).effect


_MANAGING = {
    "manage_policy", "manage_grants", "manage_membership", "manage_actor_binding", "manage_trust", "manage_schema",
    "manage_delegation",
}  # fmt: skip


def test_a_token_of_narrow_scope_manages_nothing(world):
    """What a credential does not carry, no record gives: an owner's reading token changes no record."""
    reading = Principal("owner", permissions=frozenset({"read", "search"}))

    assert world.command_refused(SetPolicy(policy=Policy()), reading) == "NotAuthorized"


# --- nobody raises their own authority


def test_nobody_grants_themselves_or_gives_what_they_do_not_hold(world):
    """A manager of grants passes on what it holds; not more, and not to itself, by no way round."""
    office = manager(world, "office", "manage_grants", "manage_membership", "manage_policy", "manage_actor_binding", "read")  # fmt: skip
    world.command(PutGroup(group=Group(name="purgers")))
    world.grant("group:purgers", "purge")

    assert world.command(allow("bob", "read"), office).effect
    assert world.command_refused(allow("bob", "purge"), office) == "NotAuthorized"
    for command in (
        allow("office", "read", where=Selector(kinds=("concept",))),
        PutGroup(group=Group(name="purgers", members=("office",))),
        PutBinding(binding=Binding(id="me", principal="office", actor=world.ref["alice"]["id"])),
        SetOwners(owners=("office",)),
        SetPolicy(policy=Policy(default="scopes")),
    ):
        assert world.command_refused(command, office) == "NotAuthorized"
    world.deny("office", "read", name="kept", classifications=("secret",))
    assert world.command_refused(RemoveRule(id="kept"), office) == "NotAuthorized"


def test_a_role_that_grows_does_not_grow_its_maker(world):
    """Who defines roles cannot put into their own role what they do not hold."""
    world.command(PutRole(role=Role(name="keeper", permissions=("manage_policy",))))
    world.principals["keeper"] = Principal("keeper")
    world.grant("keeper", "role:keeper")
    grown = PutRole(role=Role(name="keeper", permissions=("manage_policy", "purge")))

    assert world.command_refused(grown, "keeper") == "NotAuthorized"
    assert world.command(PutRole(role=Role(name="other", permissions=("purge",))), "keeper").effect


def test_who_lends_lends_their_own(world):
    """A delegation is of the sender's authority, of what they hold; they may take it back."""
    chief = manager(world, "chief", "read", "manage_delegation")

    def loan(delegator: str, *permissions: str) -> PutDelegation:
        return PutDelegation(
            delegation=Delegation(id="d", delegator=delegator, delegate="agent", permissions=permissions)
        )

    assert world.command_refused(loan("owner", "read"), chief) == "NotAuthorized"
    assert world.command_refused(loan("chief", "purge"), chief) == "NotAuthorized"
    world.command(loan("chief", "read"), chief)
    agent = world.principals["agent"] = Principal("agent")
    assert world.invoke(agent, "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}").result == [12]
    assert world.governance.effective("test", agent)["delegations"][0]["id"] == "d"
    world.revoke("office:chief")
    assert world.invoke(agent, "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}").code == "NotAuthorized"
    world.command(RemoveDelegation(id="d"), chief)  # its own, though it manages nothing any more
    assert world.command_refused(RemoveDelegation(id="d")) == "NotFoundOrNotVisible"


# --- approvals


def test_an_approval_is_of_one_command_by_others(world):
    """A command that needs two approvals is carried out after two, once, by who asked, and as it was asked."""
    policy = Policy(approvals={"declassify": 2})
    world.command(SetPolicy(policy=policy))
    world.mark(world.ref["carol"])
    for name in ("first", "second"):
        manager(world, name, "approve_high_risk")
    lower = Declassify(ids=(world.ref["carol"]["id"],), label="public")
    assert world.command_refused(lower) == "RequiresApproval"

    asked = RequestApproval(until=world.clock.time + 3_600_000, request=msgspec.to_builtins(lower))
    name = world.command(asked).id
    assert name is not None
    assert world.command_refused(Approve(id=name)) == "NotAuthorized"  # the owner asked
    world.command(Approve(id=name), "first")
    assert not world.command(Approve(id=name), "first").effect  # one voice is one
    assert world.command_refused(lower) == "RequiresApproval"
    assert world.command_refused(Approve(id=name), "reader_full") == "NotAuthorized"
    world.command(Approve(id=name), "second")
    other = Declassify(ids=(world.ref["carol"]["id"],), label=None)
    assert world.command_refused(other) == "RequiresApproval"
    assert world.command(lower).effect
    assert world.element(world.ref["carol"]).governance.classification == "public"
    assert world.command_refused(lower) == "RequiresApproval"  # it is used up
    entry = next(each for each in reversed(world.audit()) if each.operation == "declassify")
    assert entry.approval is not None
    assert entry.approval["approved_by"] == ["first", "second"]


def test_an_approval_of_a_purge_is_of_these_elements(world):
    """An operation on memory is approved by its permission and elements, until a time."""
    world.command(SetPolicy(policy=Policy(approvals={"purge": 1})))
    manager(world, "second", "approve_high_risk")
    purge = 'PURGE :x CONFIRM "PURGE"'
    assert world.invoke("owner", purge, x=world.ref["carol"]).code == "RequiresApproval"
    until = world.clock.time + 60_000
    asked = RequestApproval(until=until, operation="purge", ids=(world.ref["carol"]["id"],))
    name = world.command(asked).id
    world.command(Approve(id=str(name)), "second")

    assert world.invoke("owner", purge, x=world.ref["bob"]).code == "RequiresApproval"
    assert world.invoke("owner", purge, x=world.ref["carol"])["status"] == "succeeded"
    late = world.command(RequestApproval(until=world.clock.time + 9_000, operation="purge", ids=(world.ref["bob"]["id"],)))  # fmt: skip
    world.command(Approve(id=str(late.id)), "second")
    world.clock.advance(60_000)
    assert world.invoke("owner", purge, x=world.ref["bob"]).code == "RequiresApproval"
    assert world.command_refused(Approve(id=str(late.id)), "second") == "NotFoundOrNotVisible"


def test_a_request_for_approval_may_be_withdrawn(world):
    """By who asked for it; there is none of an approval."""
    until = world.clock.time + 60_000
    name = world.command(RequestApproval(until=until, operation="purge", ids=("C-1",))).id

    assert world.command_refused(WithdrawApproval(id=str(name)), "reader_full") == "NotAuthorized"
    world.command(WithdrawApproval(id=str(name)))
    control = control_of(world.state().meta)
    assert control is not None
    assert control.approvals == ()
    for command in (
        RequestApproval(until=until, operation="purge"),
        RequestApproval(until=until),
        RequestApproval(until=until, operation="fly", ids=("C-1",)),
        RequestApproval(until=until, request={"command": "approve", "id": "x"}),
    ):
        assert world.command_refused(command) == "InvalidRequestEnvelope"
    assert (
        world.command_refused(RequestApproval(until=0, operation="purge", ids=("C-1",)))
        == "ConstraintViolation"
    )


# --- elements


def test_a_quarantine_ends_as_it_began(world):
    """A claim in quarantine is out of use, and back in it once released; doing it twice does nothing."""
    claim = world.ok('ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated"}').id("a")
    count = "FIND(COUNT(?a)) WHERE {?a ASSERTION {}}"
    world.command(Quarantine(ids=(claim["id"],)))

    assert world.invoke("reader_full", count).result == [0]
    assert not world.command(Quarantine(ids=(claim["id"],))).effect
    world.command(Release(ids=(claim["id"],)))
    assert world.invoke("reader_full", count).result == [1]
    control = control_of(world.state().meta)
    assert control is not None
    assert control.quarantined == 0


def test_commands_are_about_elements_that_are_there(world):
    """Nothing is done to what is not there, may not be seen, or is too much; a label must be of the policy's."""
    clerk = manager(world, "clerk", "classify", "read")
    world.mark(world.ref["carol"])
    world.deny("clerk", "discover", classifications=("secret",))
    absent = Classify(ids=("C-zzzzzzzz000abcde",), label="secret")

    assert world.command_refused(absent, clerk) == "NotFoundOrNotVisible"
    assert world.command_refused(Classify(ids=(world.ref["carol"]["id"],), label="secret"), clerk) == "NotFoundOrNotVisible"  # fmt: skip
    assert (
        world.command_refused(Classify(ids=(world.ref["bob"]["id"],), label="cosmic"))
        == "ConstraintViolation"
    )
    assert world.command_refused(Classify(ids=(), label="secret")) == "ConstraintViolation"
    assert world.command_refused(SetSelf(concept=absent.ids[0])) == "NotFoundOrNotVisible"
    world.command(SetInfluence(ids=(world.ref["bob"]["id"],), ceiling="advisory"))
    world.command(SetInfluence(ids=(world.ref["bob"]["id"],), ceiling="descriptive"))
    assert world.element(world.ref["bob"]).governance.authority is None


# --- what a record must be


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (PutRule(rule=Rule(id="x", effect="allow", subjects=(), permissions=("read",))), "ConstraintViolation"),
        (PutRule(rule=Rule(id="x", effect="allow", subjects=("ana",), permissions=("read",))), "ConstraintViolation"),
        (PutRule(rule=Rule(id="x", effect="allow", subjects=("*",), permissions=("fly",))), "ConstraintViolation"),
        (PutRule(rule=Rule(id="x", effect="allow", subjects=("*",), permissions=("role:none",))), "ConstraintViolation"),
        (PutRule(rule=Rule(id="x", effect="deny", subjects=("*",), permissions=("search",), fields=("name",))), "ConstraintViolation"),
        (PutRole(role=Role(name="owner", permissions=("read",))), "IdentityConflict"),
        (PutRole(role=Role(name="r", permissions=("role:reader",))), "ConstraintViolation"),
        (PutDelegation(delegation=Delegation(id="d", delegator="a", delegate="a", permissions=("read",))), "ConstraintViolation"),
        (SetOwners(owners=()), "ConstraintViolation"),
        (SetPolicy(policy=Policy(default_classification="cosmic")), "ConstraintViolation"),
        (SetPolicy(policy=Policy(classifications=("a", "a"), default_classification="a")), "ConstraintViolation"),
        (SetPolicy(policy=Policy(approvals={"fly": 1})), "ConstraintViolation"),
        (SetPolicy(policy=Policy(approvals={"purge": 0})), "ConstraintViolation"),
        (RemoveRule(id="none"), "NotFoundOrNotVisible"),
        (RemoveGroup(name="none"), "NotFoundOrNotVisible"),
        (RemoveRole(name="none"), "NotFoundOrNotVisible"),
        (RemoveBinding(id="none"), "NotFoundOrNotVisible"),
        (SetTrust(records=({"scope": "mood", "subject": "x", "trust": "weak"},)), "InvalidRequestEnvelope"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_a_record_that_cannot_be_is_refused(world, command, code):
    """Nothing is recorded that would mean nothing, or something else than it says."""
    with world.unchanged():
        assert world.command_refused(command) == code


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"command": "obey"},
        {"command": "put_rule"},
        {"command": "put_rule", "rule": {"id": "x", "effect": "maybe", "subjects": ["*"], "permissions": ["read"]}},
        {"command": "remove_rule", "id": "x", "surplus": 1},
        {"command": "put_rule", "rule": {"id": "x", "effect": "allow", "subjects": ["*"], "permissions": ["read"],
                                         "where": {"attributes": {"is_admin": True}}}},
    ],
)  # fmt: skip
def test_a_command_has_a_strict_form(value):
    """What is not exactly a command is none; a selector by an attribute does not exist."""
    with pytest.raises(NoemaError, match="no command of governance"):
        decode_command(value)


def test_every_command_has_a_json_form(world):
    """What is encoded is decoded to the same, by the name that the audit shows."""
    command = allow("ana", "read", where=Selector(kinds=("concept",), own=True))
    wire = msgspec.json.decode(msgspec.json.encode(command))

    assert wire["command"] == "put_rule"
    assert decode_command(wire) == command
    world.command(command)
    assert world.audit()[-1].command == wire


# --- once, and in order


def test_a_command_is_carried_out_once_under_its_key(world):
    """The same key gives the first outcome, and another command under it is refused."""
    key = Idempotency("owner\x1fgovernance", "k1", "digest")
    until = world.clock.time + 60_000
    send = world.governance.execute
    first = send("test", allow("ana", "read"), world.principals["owner"], deadline=until, idempotency=key)
    again = send("test", allow("ana", "read"), world.principals["owner"], deadline=until, idempotency=key)

    assert again == first
    with pytest.raises(NoemaError, match="key"):
        send(
            "test", allow("ben", "read"), world.principals["owner"], deadline=until,
            idempotency=Idempotency(key.scope, key.key, "another"),
        )  # fmt: skip


def test_two_managers_at_once_lose_nothing(world):
    """A command that comes between plan and commit is seen: both records stand."""
    world.race(lambda: world.grant("ana", "read", name="one"))
    world.grant("ben", "read", name="two")

    control = control_of(world.state().meta)
    assert control is not None
    assert {"one", "two"} <= {each.id for each in control.rules}
    assert world.log()[-1].record["governance"]["policy_version"] == control.version


# --- what is told to whom


def test_the_audit_is_for_auditors(world):
    """Every change and every governed commit stands in it, in order, for who may read it and for nobody else."""
    auditor = manager(world, "auditor", "read_audit")
    world.invoke("recorder", 'CREATE CONCEPT ?c {TYPE "Theme"}')
    entries = world.audit(auditor)

    assert [each.version for each in entries] == sorted(each.version for each in entries)
    assert entries[0].operation == "set_policy"
    last = entries[-1]
    assert (last.operation, last.principal, last.records) == ("commit", "recorder", ["canon:recorder"])
    assert last.policy_version == world.policy_version()
    with pytest.raises(NoemaError, match="governance"):
        world.audit("reader_full")
    page, after = world.governance.audit("test", world.principals[auditor], limit=2, control_only=True)
    rest, _ = world.governance.audit("test", world.principals[auditor], after=after, control_only=True)
    assert [each.operation for each in page] == ["set_policy", "put_rule"]
    assert "commit" not in {each.operation for each in rest}


def test_the_change_stream_tells_of_the_control_plane_to_auditors_alone(world):
    """A reader of history sees no commit that changed nothing but records."""
    manager(world, "historian", "read", "read_history")
    before = world.invoke("historian", "HISTORY SPACE").result
    world.grant("somebody", "read")

    assert world.invoke("historian", "HISTORY SPACE").result == before
    assert len(world.rows("HISTORY SPACE")) > len(before)
    made = world.invoke("owner", 'CREATE CONCEPT ?c {TYPE "Theme"}').receipt["tx_id"]
    assert world.rows("DESCRIBE TRANSACTION :t", t=made)["authority"]["records"] == ["owner"]
    shown = world.invoke("historian", "DESCRIBE TRANSACTION :t", t=made).result
    assert "authority" not in shown
    assert "origin" not in shown  # that takes read_raw_origin


def test_a_commit_of_secrets_alone_is_no_commit(world):
    """Its transaction id names nothing, and its receipt cannot be held against guesses, for who may not see it."""
    manager(world, "historian", "read", "read_history")
    made = world.ok('CREATE CONCEPT ?c {TYPE "Theme" NAME "vault"}')
    receipt = made.receipt
    assert world.invoke("historian", "DESCRIBE TRANSACTION :t", t=receipt["tx_id"])["status"] == "succeeded"
    world.mark(made.id("c"))
    world.deny("historian", "discover", classifications=("secret",))

    assert (
        world.invoke("historian", "DESCRIBE TRANSACTION :t", t=receipt["tx_id"]).code == "TransactionUnknown"
    )
    bare = {name: value for name, value in receipt.items() if name not in {"proofs", "proof", "signature"}}
    for claimed in (bare, {**bare, "result_digest": "sha256:0"}):
        assert world.invoke("historian", "VERIFY RECEIPT :r", r=claimed).code == "TransactionUnknown"
    assert receipt["tx_id"] not in str(world.invoke("historian", "HISTORY SPACE").result)
    assert world.invoke("owner", "VERIFY RECEIPT :r", r=receipt)["status"] == "succeeded"


def test_records_of_the_past_are_read_by_the_authority_of_today(world):
    """Which policy was in force then is told to who may audit now (Governance §176-179)."""
    then = world.state().ver
    world.grant("ana", "read", name="later")
    owner = world.principals["owner"]
    past = world.governance.as_of("test", owner, version=then)["records"]

    assert "later" not in {each["id"] for each in past["rules"]}
    assert "later" in {each["id"] for each in world.governance.describe("test", owner)["records"]["rules"]}
    with pytest.raises(NoemaError, match="governance"):
        world.governance.as_of("test", world.principals["reader_full"], version=then)


def test_everybody_may_know_what_they_may_do(world):
    """Of oneself for anybody; of others for who may audit; and without records it says so."""
    of_self = world.governance.effective("test", world.principals["alice_writer"])

    assert (of_self["governed"], of_self["owner"], of_self["sees_everything"]) == (True, False, True)
    assert "assert_as_actor" in of_self["permissions"]
    assert [each["actor"] for each in of_self["actors"]] == [world.ref["alice"]["id"]]
    with pytest.raises(NoemaError, match="governance"):
        world.governance.effective("test", world.principals["alice_writer"], "owner")
    of_other = world.governance.effective("test", world.principals["owner"], "reader_hidden")
    assert of_other["sees_everything"] is False
    assert World().governance.effective("test", Principal("x"))["governed"] is False


def test_a_decision_is_explained_to_an_auditor(world):
    """Whether somebody would be let through, by which records, or why not."""
    owner, reader = world.principals["owner"], world.principals["reader_full"]
    carol = world.ref["carol"]["id"]
    decide = world.governance.decide

    assert decide("test", owner, reader, "read", carol) == {
        "decision": "allow",
        "records": ["canon:reader_full"],
    }
    assert decide("test", owner, reader, "purge", carol)["reason"] == "NotAuthorized"
    world.mark(world.ref["carol"])
    hidden = world.principals["reader_hidden"]
    assert decide("test", owner, hidden, "read", carol)["reason"] == "NotFoundOrNotVisible"
    with pytest.raises(NoemaError, match="governance"):
        decide("test", reader, owner, "read")
    for action, element in (("fly", None), ("read", "C-zzzzzzzz000abcde")):
        with pytest.raises(NoemaError):
            decide("test", owner, reader, action, element)


# --- a key is no capability


def test_a_retry_shows_nothing_that_may_no_longer_be_seen(world):
    """The receipt is the first one's; what the operations showed is left out once less may be seen."""
    both = request(
        'CREATE CONCEPT ?c {TYPE "Theme"}',
        'FIND(?c.name) WHERE {?c CONCEPT {key: "carol"}}',
        execution={"mode": "atomic", "idempotency_key": "k"},
    )
    first = world.invoke("recorder", both)
    assert first["results"][1]["result"] == ["Carol"]
    assert world.invoke("recorder", both)["results"][1]["result"] == ["Carol"]
    world.deny("recorder", "discover", classifications=("secret",))
    world.mark(world.ref["carol"])
    again = world.invoke("recorder", both)

    assert again.receipt == first.receipt
    assert "Carol" not in str(again)
    assert again["results"][1]["warnings"][0]["code"] == "ResultWithheld"
