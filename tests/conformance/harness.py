"""The conformance harness (conformance paper §5): one durable space, its people, and hands on time and faults.

A `World` is a service process over the memory store: requests go through the real use case and the real commit
loop, and what is asserted of durable state is read by another process from the store. Every request and every
response that passes is checked against the published schemas. Fixtures are loaded by the host, not by KML (§5).

    def test_kip2_core_002_proposition_tuple_is_immutable(world):
        claim = world.ok('ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")').id("p")
        with world.unchanged():
            reply = world.invoke("owner", 'UPDATE :p SET FIELDS {object: "+01:00"}', p=claim)
        assert reply.code == "ImmutableField"
        assert world.element(claim).object == "+08:00"
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from jsonschema import Draft202012Validator

from core.authority import Principal
from core.capsule.stream import lines_of
from core.epistemic.trust import TrustRecord, TrustState, trust_of, with_trust
from core.errors import NoemaError
from core.model.elements import AnyElement, Concept, Governance, Origin
from core.model.ids import Kind
from core.model.log import Delta, SpaceMeta, Tier
from core.ports import Row, Table, Unavailable, Write
from core.protocol.capsule_types import ExportAsk, ImportWish, RestoreAsk
from core.protocol.request import decode_request, read_request
from core.protocol.response import encode_response, failure
from core.query import Limits
from core.schema.environment import initial_environment, install_package, set_active_packages
from core.service.capsules import Capsules
from core.service.chain import CheckpointInput, Checkpoints
from core.service.commit import Birth, Commits
from core.service.erasure import Erasures
from core.service.kip import Kip
from core.service.leases import Leases
from core.service.restoring import Restores
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.storage.memory import MemoryObjects, MemoryTable
from core.transaction.draft import Draft
from core.transaction.needs import Artifact, Need
from infra.signing.ed25519 import Ed25519Keys
from tests.conformance.governing import Governing
from tests.conformance.ids import conformance
from tests.conformance.packages import CORE_DOMAIN, SECONDARY, package, wire_schema
from tests.doubles import CountingEntropy, FakeClock

__all__ = [
    "CORE",
    "CORE_DOMAIN",
    "DETERMINISTIC",
    "SECOND",
    "SECONDARY",
    "Reply",
    "World",
    "conformance",
    "request",
]

SPACE: Final = "test"
CORE: Final = "kip://test/core-domain@1.0.0"
SECOND: Final = "kip://test/secondary@1.0.0"
DETERMINISTIC: Final = 'WITH EPISTEMIC {policy: "test-deterministic"}'
MINUTE: Final = 60_000
KEYS: Final = Ed25519Keys(b"the key of the conformance tests")
"""The deployment's own signing key."""

BINDINGS: Final = {
    "self": ("Person", "Self", {}),
    "alice": ("Person", "Alice", {}),
    "bob": ("Person", "Bob", {}),
    "carol": ("Person", "Carol", {}),
    "project_alpha": ("Project", "Project Alpha", {}),
    "dark_mode": ("Theme", "Dark mode", {}),
    "light_mode": ("Theme", "Light mode", {}),
    "status_planning": ("StatusValue", "Planning", {"code": "planning"}),
    "status_active": ("StatusValue", "Active", {"code": "active"}),
    "status_paused": ("StatusValue", "Paused", {"code": "paused"}),
    "org_acme": ("Organization", "Acme", {}),
    "service_api": ("Service", "API", {}),
}
"""The canonical bindings (§9): symbol, type, name, attributes. A symbol is also its Concept's key."""

TRUSTED: Final = ("self", "alice", "bob")
"""The fixture's protected trust: whose word is trusted; of Carol, and of everybody else, nothing is said."""

_READER: Final = frozenset({"discover", "read", "search", "project"})
PERMISSIONS: Final[dict[str, frozenset[str] | None]] = {
    "owner": None,
    "alice_writer": _READER
    | {"create", "update", "record_attributed_assertion", "assert_as_actor", "retract_own", "supersede_own"},
    "recorder": _READER | {"create", "record_attributed_assertion"},
    "reader_full": _READER,
    "reader_no_project": _READER - {"project"},
    "reader_no_search": _READER - {"search"},
    "reader_hidden": _READER,
    "maintenance": _READER | {"maintain", "manage_retention", "archive"},
    "importer": frozenset({"discover", "read", "import"}),
}
"""The canonical principals (§10) by name, with what each may do; None is everything."""


# --- requests and replies


def request(*operations: str | tuple[str, dict[str, Any]] | dict[str, Any], **members: Any) -> dict[str, Any]:
    """A request envelope around commands, (command, parameters) pairs or whole operations."""
    made = []
    for operation in operations:
        if isinstance(operation, dict):
            made.append(operation)
        elif isinstance(operation, tuple):
            made.append({"command": operation[0], "parameters": operation[1]})
        else:
            made.append({"command": operation})
    return {"kip": "2.0", "operations": made, **members}


class Reply(dict[str, Any]):
    """A response as a client reads it, with short ways to what tests look at."""

    @property
    def code(self) -> str | None:
        """The first error code, or None."""
        errors = [self.get("error"), *(result.get("error") for result in self["results"])]
        return next((str(error["code"]) for error in errors if error), None)

    @property
    def codes(self) -> list[str | None]:
        """The error code of each operation, None where it has none."""
        return [(result.get("error") or {}).get("code") for result in self["results"]]

    @property
    def statuses(self) -> list[str]:
        """The status of each operation."""
        return [result["status"] for result in self["results"]]

    @property
    def result(self) -> Any:
        """The result of the first operation."""
        return self["results"][0].get("result")

    @property
    def receipt(self) -> dict[str, Any]:
        """The receipt of the one transaction."""
        found: dict[str, Any] = self["receipt"]
        return found

    @property
    def cursor(self) -> str | None:
        """Where the first operation's next page begins."""
        found: str | None = self["results"][0].get("next_cursor")
        return found

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """The first operation's caveats."""
        return list(self["results"][0].get("warnings", ()))

    def id(self, handle: str) -> dict[str, str]:
        """What a handle of the first operation stands for, as a parameter: `{"id": ...}`."""
        return {"id": self.result["handles"][handle]["id"]}

    def ids(self) -> dict[str, dict[str, str]]:
        """All handles of the first operation, as parameters."""
        return {name: self.id(name) for name in self.result["handles"]}


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(wire_schema(name))


def _valid(name: str, value: Any) -> None:
    problem = next(iter(_validator(name).iter_errors(value)), None)
    assert problem is None, f"breaks {name}.schema.json at {problem.json_path}: {problem.message}"


# --- the store, with seams


class SeamTable:
    """A table at which a test can act between plan and commit, and after a commit."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.before: list[Callable[[], object]] = []  # done before the next write, once each
        self.lose_answer = False  # the next write lands, and from then on the store is silent
        self.silent = False

    def get(self, pk: str, sk: str) -> Row | None:
        """As the table's."""
        self._answer()
        return self.table.get(pk, sk)

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """As the table's."""
        self._answer()
        return self.table.query(pk, first, last, limit=limit, reverse=reverse)

    def transact(self, writes: Sequence[Write]) -> None:
        """As the table's, with what was asked for around it."""
        self._answer()
        if self.before:
            self.before.pop(0)()
        self.table.transact(writes)
        self.silent = self.lose_answer
        self._answer()

    def _answer(self) -> None:
        if self.silent:
            raise Unavailable("the store does not answer")


class _StagingKip(Kip):
    """The use case with staged artifacts, which a deployment does not offer yet."""

    artifacts: dict[str, bytes]

    def answer(self, space_id: str, need: Need) -> Any:
        """As the use case's, and artifacts by their handles."""
        if isinstance(need, Artifact) and need.handle in self.artifacts:
            return self.artifacts[need.handle]
        return super().answer(space_id, need)


class _Process:
    """A service process: nothing cached when it starts."""

    def __init__(self, table: Table, objects: MemoryObjects, clock: FakeClock, seed: int) -> None:
        entropy = CountingEntropy(seed)
        self.spaces = Spaces(table, objects, clock)
        self.commits = Commits(table, objects, clock, entropy, self.spaces)
        self.upkeep = upkeep = Upkeep(self.spaces, Leases(table, clock), entropy)
        self.checkpoints = Checkpoints(self.spaces, clock, KEYS)
        self.capsules = Capsules(self.spaces, self.commits, clock, signer=KEYS, verifier=KEYS)
        self.kip = _StagingKip(
            self.spaces,
            self.commits,
            Erasures(self.spaces, upkeep, entropy),
            clock,
            secret=b"harness",
            signer=KEYS,
            verifier=KEYS,
        )


# --- the world


class World(Governing):
    """One fresh space in the canonical schema, its bindings, and everybody who may speak to it.

    `ref["alice"]` is what `:alice` means: `{"id": ...}`; every canonical binding that a command names is given to
    it. The clock moves one second with each request and otherwise only when told to.
    """

    def __init__(
        self, *packages: str, aliases: dict[str, str] | None = None, seeded: bool = True, life: int = 0
    ) -> None:
        self.clock = FakeClock()
        self.seam = SeamTable(MemoryTable())
        self.objects = MemoryObjects(self.clock)
        self.artifacts: dict[str, bytes] = {}
        self.ref: dict[str, dict[str, str]] = {}
        self._processes = life  # worlds with another `life` have other instances and other ids
        self._process = self._started()
        self._born([package(name) for name in packages or (CORE_DOMAIN,)], aliases, seeded=seeded)
        self.principals = {name: self._principal(name) for name in PERMISSIONS}

    def _started(self) -> _Process:
        self._processes += 1
        process = _Process(self.seam, self.objects, self.clock, self._processes)
        process.kip.artifacts = self.artifacts
        return process

    def _born(self, artifacts: list[dict[str, Any]], aliases: dict[str, str] | None, *, seeded: bool) -> None:
        def describe(birth: Birth) -> SpaceMeta:
            meta = SpaceMeta(
                space_id=birth.space_id, instance=birth.instance, salt=birth.salt, owner="owner",
                created_at=birth.at, tier=Tier(5, birth.at), schema=initial_environment(),
            )  # fmt: skip
            for artifact in artifacts:
                meta = install_package(meta, artifact)
            return set_active_packages(meta, [each["manifest"]["package_ref"] for each in artifacts], aliases)

        def seed(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self.clock.now(), origin=Origin("host", "fixture"))
            for name, (type_name, title, attributes) in BINDINGS.items() if seeded else ():
                made = draft.create(
                    Concept, schema_ref=f"{CORE}/{type_name}", key=name, name=title, attributes=attributes
                )
                self.ref[name] = {"id": made.id}
            if seeded:
                said = tuple(TrustRecord("actor", self.ref[name]["id"], "trusted") for name in TRUSTED)
                draft.set_meta(self_identity=self.ref["self"]["id"])
                draft.meta = with_trust(draft.meta, TrustState(said))
            return Proposal(draft.finish())

        until = self.clock.now() + MINUTE
        self._process.commits.create(
            SPACE, describe, origin=Origin("host", "fixture"), deadline=until, seed=seed
        )

    def _principal(self, name: str) -> Principal:
        actors = None
        if name in ("alice_writer", "recorder", "maintenance") and self.ref:
            actors = frozenset({self.ref["alice"]["id"]} if name == "alice_writer" else ())
        hidden = frozenset({"secret"}) if name == "reader_hidden" else frozenset[str]()
        return Principal(name, "kip", PERMISSIONS[name], actors, hidden)

    # --- speaking

    def invoke(
        self,
        principal: str | Principal,
        said: str | dict[str, Any] | bytes,
        /,
        *,
        readonly: bool = False,
        malformed: bool = False,
        patience: int = 15_000,
        **parameters: Any,
    ) -> Reply:
        """The reply to a request, a bare command, or a body of bytes.

        Args:
            principal: who asks: a name of §10 or a Principal of one's own.
            said: a command, an envelope (see `request`) or raw bytes.
            readonly: the endpoint that may not write.
            malformed: the request is not meant to fit its schema, so it is not checked.
            patience: milliseconds until the transport's deadline.
            parameters: for a bare command.
        """
        who = self.principals[principal] if isinstance(principal, str) else principal
        self.clock.advance(1000)
        try:
            if isinstance(said, bytes):
                checked = decode_request(said)
            else:
                body = request((said, parameters)) if isinstance(said, str) else said
                if not malformed:
                    body = self._with_bindings(body)
                    _valid("kip-request", body)
                checked = read_request(json.loads(json.dumps(body)))
            response = self._process.kip.execute(
                SPACE, checked, who, deadline=self.clock.time + patience, readonly=readonly
            )
        except NoemaError as error:
            response = failure(error)
        reply = Reply(json.loads(encode_response(response)))
        _valid("kip-response", reply)
        return reply

    def _with_bindings(self, body: dict[str, Any]) -> dict[str, Any]:
        operations = [dict(operation) for operation in body.get("operations", ())]
        for operation in operations:
            named = re.findall(r":([a-z_][a-z0-9_]*)", operation.get("command", ""))
            given = body.get("parameters", {}) | operation.get("parameters", {})
            missing = {name: self.ref[name] for name in named if name in self.ref and name not in given}
            if missing:
                operation["parameters"] = {**operation.get("parameters", {}), **missing}
        return {**body, "operations": operations}

    def ok(self, command: str | dict[str, Any], /, **parameters: Any) -> Reply:
        """The owner's reply to what must succeed."""
        reply = self.invoke("owner", command, **parameters)
        assert reply["status"] == "succeeded", reply
        return reply

    def rows(self, command: str, /, **parameters: Any) -> Any:
        """The result of the owner's command, which must succeed."""
        return self.ok(command, **parameters).result

    def refused(self, command: str | dict[str, Any], /, **parameters: Any) -> str:
        """The code with which the owner's command must fail, leaving durable state as it was."""
        with self.unchanged():
            reply = self.invoke("owner", command, **parameters)
        assert reply["status"] == "failed", reply
        return str(reply.code)

    # --- reading what is durable, past every cache

    def state(self) -> SpaceState:
        """The newest state, as a process that has just started reads it from the store."""
        return self._looking().spaces.load(SPACE)

    def element(self, found: str | dict[str, str]) -> Any:
        """The stored element of an id or a `{"id": ...}`, or None."""
        return self.state().get(found["id"] if isinstance(found, dict) else found)

    def elements(self, kind: Kind) -> list[Any]:
        """Every stored element of a kind, in order of creation."""
        state = self.state()
        return [element for found in state.ids(kind) if (element := state.get(found)) is not None]

    def log(self) -> list[Delta]:
        """Every commit, oldest first."""
        return self._looking().spaces.deltas(SPACE, 0, 100_000)

    def envelopes(self, principal: str = "owner", after: int = 0) -> list[dict[str, Any]]:
        """The change envelopes after a `space_seq`, as CHANGES gives them."""
        found: list[dict[str, Any]] = self.invoke(
            principal, "CHANGES AFTER SEQ :n LIMIT 1000", n=after
        ).result
        return found

    def digest(self) -> str:
        """One text for all durable state: the log's place, protected state and every element."""
        state = self.state()
        kinds: tuple[Kind, ...] = ("concept", "proposition", "assertion", "evidence", "activity")
        every = [state.get(found) for kind in kinds for found in state.ids(kind)]
        content = msgspec.json.encode([state.ver, state.seq, state.meta, every], order="deterministic")
        return hashlib.sha256(content).hexdigest()

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """What happens within leaves no trace in durable state: no commit, no element, no new version."""
        before = self.digest()
        yield
        assert self.digest() == before, "durable state has changed"

    def _looking(self) -> _Process:
        """A new process that looks at the store itself, whatever the seam is set to."""
        return _Process(self.seam.table, self.objects, self.clock, 0)

    # --- what only a host can do

    def host(self, change: Callable[[Draft], object], *, management: bool = True) -> None:
        """Commit a change that no command can make; or, not `management`, load a fixture."""

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(
                state,
                now=max(self.clock.now(), state.at),
                origin=Origin("host", "fixture"),
                transaction_class="management" if management else "cognitive",
            )
            change(draft)
            return Proposal(draft.finish())

        self.clock.advance(1000)
        self._process.commits.commit(SPACE, decide, deadline=self.clock.time + MINUTE)

    def activate(
        self,
        artifacts: Iterable[dict[str, Any]],
        *,
        only: bool = False,
        aliases: dict[str, str] | None = None,
    ) -> None:
        """Install and activate schema packages; `only` puts all others out of force."""

        def change(draft: Draft) -> None:
            refs = [] if only else list(draft.meta.schema.packages)
            for artifact in artifacts:
                draft.meta = install_package(draft.meta, artifact)
                refs.append(artifact["manifest"]["package_ref"])
            draft.meta = set_active_packages(draft.meta, refs, aliases)

        self.host(change)

    def trust(self, *records: TrustRecord, default: str | None = None) -> None:
        """Add to the space's protected trust state: whose word counts how much."""

        def change(draft: Draft) -> None:
            now = trust_of(draft.meta)
            kept = TrustState((*now.records, *records), default or now.default, now.version + 1)  # type: ignore[arg-type]
            draft.meta = with_trust(draft.meta, kept)

        self.host(change)

    def classify(self, found: dict[str, str], classification: str = "secret") -> None:
        """Give an element a classification; `reader_hidden` may not discover what is `secret`."""

        def change(draft: Draft) -> None:
            element: AnyElement | None = draft.get(found["id"])
            assert element is not None
            draft.change(element, governance=Governance(classification=classification))

        self.host(change)

    # --- Capsules, as a host asks for them

    def export_space(self, principal: str = "owner", **ask: Any) -> dict[str, Any]:
        """The whole space as a Capsule, or what changed `since_seq`."""
        self.clock.advance(1000)
        return self._process.capsules.export(SPACE, self.principals[principal], ExportAsk(**ask))

    def export_lines(self, principal: str = "owner", **ask: Any) -> Iterator[bytes]:
        """The whole space as the lines of a Capsule, made as they are taken."""
        return self._process.capsules.lines(SPACE, self.principals[principal], ExportAsk(**ask))

    def import_capsule(
        self,
        artifact: dict[str, Any],
        principal: str = "owner",
        *,
        plan_digest: str | None = None,
        key: str | None = None,
        **wish: Any,
    ) -> dict[str, Any]:
        """What became of an import. Raises what it is refused with."""
        self.clock.advance(1000)
        return self._process.capsules.run(
            SPACE,
            self.principals[principal],
            artifact,
            ImportWish(**wish),
            deadline=self.clock.time + MINUTE,
            plan_digest=plan_digest,
            key=key,
        )

    def preview_capsule(
        self, artifact: dict[str, Any], principal: str = "owner", **wish: Any
    ) -> dict[str, Any]:
        """What an import would do now."""
        self.clock.advance(1000)
        return self._process.capsules.preview(SPACE, self.principals[principal], artifact, ImportWish(**wish))

    def restore(self, artifact: dict[str, Any], space_id: str, **ask: Any) -> dict[str, Any]:
        """Make a space out of a backup, as an operator does."""
        restores = Restores(self.seam.table, self.objects, self.clock, CountingEntropy(7), verifier=KEYS)
        operator = Caller("operator", "cli", "*", manager=True, everywhere=True)
        asked = RestoreAsk(**{"owner": "owner", "activate_schema": True, "accept_unsigned": False, **ask})
        return restores.restore(operator, space_id, lambda: lines_of(artifact), asked, lambda _, __: None)

    def space(self, space_id: str) -> SpaceState:
        """The newest state of another space of the same store."""
        return self._looking().spaces.load(space_id)

    # --- time and faults

    def race(self, act: Callable[[], object]) -> None:
        """Before the next write lands, another process does this: a conflict between plan and commit."""
        rival = self._started()

        def before() -> None:
            mine, self._process = self._process, rival
            try:
                act()
            finally:
                self._process = mine

        self.seam.before.append(before)

    def drop_response(self, principal: str, said: str | dict[str, Any], /, **parameters: Any) -> None:
        """Send a request whose response the client never sees."""
        self.invoke(principal, said, **parameters)

    @contextlib.contextmanager
    def silent_after_commit(self) -> Iterator[None]:
        """Within, the first write lands and then the store is silent: nobody knows the outcome."""
        self.seam.lose_answer = True
        try:
            yield
        finally:
            self.seam.lose_answer = self.seam.silent = False

    def expire_cursors(self) -> None:
        """Let so much time pass that every page cursor given so far has expired."""
        self.clock.advance(Limits().cursor_ttl_ms + 1000)

    def stage_artifact(self, handle: str, content: bytes) -> None:
        """Make bytes available under an opaque handle."""
        self.artifacts[handle] = content

    def expire_artifact(self, handle: str) -> None:
        """Take a staged artifact away."""
        del self.artifacts[handle]

    def trim_history(self, days: int = 100) -> None:
        """Let days pass, and give up the history before them, as upkeep does when it is old enough."""
        upkeep = self._process.upkeep
        upkeep.compact(SPACE, "harness")
        self.clock.advance(days * 24 * 60 * MINUTE)
        self.ok('CREATE CONCEPT ?later {TYPE "Document"}')
        assert upkeep.trim_history(SPACE, keep_ms=MINUTE).deltas > 0
        self.restart()

    def another_space(self, space_id: str) -> None:
        """Make a second, empty space in the same store."""

        def describe(birth: Birth) -> SpaceMeta:
            return SpaceMeta(
                space_id=birth.space_id, instance=birth.instance, salt=birth.salt, owner="somebody",
                created_at=birth.at, tier=Tier(5, birth.at), schema=initial_environment(), name="Hidden away",
            )  # fmt: skip

        until = self.clock.now() + MINUTE
        self._process.commits.create(space_id, describe, origin=Origin("host", "fixture"), deadline=until)

    def checkpoint(self) -> dict[str, Any]:
        """A signed checkpoint of the whole log, as the operator keeps it."""
        made = self._process.checkpoints.make(SPACE, CheckpointInput())
        value: dict[str, Any] = msgspec.to_builtins(made)
        return value

    def restart(self) -> None:
        """Another process takes over: every cache is cold."""
        self._process = self._started()
