"""Capsules as hosts ask for them: export, verify, preview, import (KIP §41).

What lives here: the use cases around `core.capsule`, over durable spaces: one read of a state, or one commit. What must
never live here: what a Capsule means, and who may call; whoever calls has a verified `Principal`, and every element
passes the gates of `core.authority` all the same. Uploading is not importing: `verify` and `preview` keep nothing, and
nothing is ever fetched from an address in a Capsule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from core.authority import Principal, authorize
from core.capsule.export import Exporter, Wish, delta_payload, seal, with_proof
from core.capsule.format import Payload
from core.capsule.plan import Importing
from core.capsule.proofs import CAPSULE_DOMAIN, CAPSULE_SCOPE, make_proof
from core.capsule.read import MAX_CHANGES, MAX_RECORDS, read_capsule
from core.capsule.stream import last_line, name_everything, write_lines
from core.capsule.verify import verify_artifact
from core.errors import NoemaError
from core.meta.attestations import sign_receipt
from core.meta.capsules import described, previewed, stale_plan
from core.meta.operands import world_of
from core.model.elements import Json
from core.model.ids import KINDS
from core.model.instants import Instant, format_instant
from core.model.proofs import Verdict
from core.ports import Clock, Signer, Verifier
from core.protocol.canonical import digest_of
from core.protocol.capsule_types import ExportAsk, ImportWish
from core.protocol.request import KIP_VERSION, Operation, Request
from core.schema.environment import environment_of
from core.service.commit import Commits
from core.service.spaces import Spaces
from core.service.values import Idempotency, Proposal
from core.state.space import SpaceState
from core.transaction.needs import Checked, Given, Missing
from core.transaction.record import committed_receipt, record_of
from core.transaction.scope import Context, Scope, governed

MAX_REST_BYTES: Final = 5_000_000  # of a Capsule that is an answer; a Lambda may answer 6 MB
MAX_CHECKS: Final = 32  # signatures of one artifact that are looked at
SPACE_EXTENSION: Final = "noema/space"
_MAPPED: Final = 1_000  # ids that an import's answer lists
_REQUEST: Final = Request(kip=KIP_VERSION, operations=(Operation(command="EXPORT CAPSULE"),))

T = TypeVar("T")


class Capsules:
    """Capsules of durable spaces.

    Args:
        spaces, commits: how spaces are read and written.
        clock: the time.
        signer, verifier: keys; without them nothing is signed, and no signature is understood.
    """

    def __init__(
        self,
        spaces: Spaces,
        commits: Commits,
        clock: Clock,
        *,
        signer: Signer | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self._spaces = spaces
        self._commits = commits
        self._clock = clock
        self._signer = signer
        self._verifier = verifier

    # --- export

    def export(self, space_id: str, principal: Principal, ask: ExportAsk) -> dict[str, Any]:
        """A whole space, or what changed since a point, as one artifact.

        Raises:
            NoemaError: NotAuthorized; ArtifactTooLarge for what one answer cannot hold; what reading raises.
        """
        payload = self._payload(space_id, principal, ask)
        artifact = seal(payload)
        if ask.sign:
            artifact = with_proof(artifact, self._proof(str(artifact["integrity"]["content_digest"])))
        size = len(msgspec.json.encode(artifact))
        if size > MAX_REST_BYTES:
            raise _too_large(size)
        return artifact

    def _payload(self, space_id: str, principal: Principal, ask: ExportAsk) -> Payload:
        scope, exporter = self._exporter(space_id, principal, ask, MAX_RECORDS)
        state = scope.state
        if ask.since_seq is not None:
            base = self._spaces.load_at(space_id, seq=ask.since_seq)
            deltas = self._spaces.deltas(space_id, base.ver, MAX_CHANGES + 1)
            deltas = [delta for delta in deltas if delta.ver <= state.ver]
            if len(deltas) > MAX_CHANGES:
                raise NoemaError(
                    "ArtifactTooLarge",
                    f"more than {MAX_CHANGES} commits since then",
                    hint="Export smaller steps, or a new snapshot.",
                    details={"limit": MAX_CHANGES},
                )
            return delta_payload(exporter, base, state, deltas, scope.env, now=self._clock.now())
        if sum(getattr(state.counts, kind) for kind in KINDS) > 4 * MAX_RECORDS:
            raise _too_large(None)
        ids = [found for kind in KINDS for found in state.ids(kind) if exporter.verdict(found) == "include"]
        if len(ids) > MAX_RECORDS:
            raise _too_large(None)
        return exporter.snapshot(ids, state, scope.env, **self._whole(state))

    def lines(self, space_id: str, principal: Principal, ask: ExportAsk) -> Iterator[bytes]:
        """A whole space as the lines of a Capsule (`core.capsule.stream`), in bounded memory, of one snapshot.

        The bytes depend on nothing but the state, the caller's sight, the options, the time and the key.

        Raises:
            NoemaError: as `export`, before the first line.
        """
        scope, exporter = self._exporter(space_id, principal, ask, 1 << 30)
        state = scope.state
        name_everything(exporter, state)
        for element in exporter.named():  # the header comes first, so what it says is gathered first
            exporter.mention(element)
        payload = exporter.headed(state, scope.env, **self._whole(state))

        def written() -> Iterator[bytes]:
            digest = yield from write_lines(
                payload, (exporter.record(element, inline=True) for element in exporter.named())
            )
            yield last_line(digest, [self._proof(digest)] if ask.sign else [])

        return written()

    def _whole(self, state: SpaceState) -> dict[str, Any]:
        """What the manifest of a whole space says."""
        meta = state.meta
        about = {"name": meta.name, "description": meta.description, "tier": meta.tier.tier}
        told: dict[str, Any] = {name: value for name, value in about.items() if value is not None}
        if meta.memory_policy:
            told["memory_policy"] = meta.memory_policy
        return {
            "completeness": "space_complete",
            "created_at": format_instant(self._clock.now()),
            "selection": {"space": "whole"},
            "extensions": {SPACE_EXTENSION: told},
        }

    def _exporter(
        self, space_id: str, principal: Principal, ask: ExportAsk, most: int
    ) -> tuple[Scope, Exporter]:
        now = self._spaces.load(space_id)
        scope = self.scope(now, principal)
        authorize(scope.context.principal, "export")
        if ask.as_of_seq is not None and ask.as_of_seq != now.seq:
            past = self._spaces.load_at(space_id, seq=ask.as_of_seq)
            scope = self.scope(past, principal, present=now)
        wish = Wish(
            closure="closed",
            include_schema=ask.include_schema,
            include_blobs=ask.include_blobs,
            without=frozenset(ask.without),
            max_records=most,
            whole=ask.since_seq is None,
        )
        return scope, Exporter(world_of(scope), scope.context.principal, wish)

    def _proof(self, digest: str) -> dict[str, Json]:
        if self._signer is None:
            raise NoemaError("UnsupportedCapability", "this service has no key to sign with")
        now = format_instant(self._clock.now())
        return make_proof(self._signer.sign, CAPSULE_DOMAIN, digest, scope=CAPSULE_SCOPE, created_at=now)

    # --- verify and preview

    def check(self, key_id: str, payload: bytes, value: bytes) -> Verdict:
        """What a signature is worth, as far as this deployment understands it."""
        return Verdict(valid=None) if self._verifier is None else self._verifier.check(key_id, payload, value)

    def verify(self, artifact: dict[str, Any]) -> dict[str, Any]:
        """The report of VERIFY CAPSULE, with what the artifact says of itself.

        Raises:
            NoemaError: DigestMismatch, ProofInvalid, ArtifactParseError, CapsuleValidationFailed.
        """
        report = verify_artifact(artifact, self.check)
        capsule = read_capsule(artifact)
        return {**report, "claims": described(capsule.artifact, capsule.digest)}

    def preview(
        self, space_id: str, principal: Principal, artifact: dict[str, Any], wish: ImportWish
    ) -> dict[str, Json]:
        """What an import would do to the space now; nothing is written or reserved.

        Raises:
            NoemaError: as PREVIEW IMPORT CAPSULE.
        """
        capsule = read_capsule(artifact)
        scope = self.scope(self._spaces.load(space_id), principal)
        report, _ = self._answered(scope, lambda given: previewed(capsule, wish, given))
        return report

    # --- import

    def run(
        self,
        space_id: str,
        principal: Principal,
        artifact: dict[str, Any],
        wish: ImportWish,
        *,
        deadline: Instant,
        plan_digest: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Import a Capsule in one transaction, or nothing of it.

        Args:
            space_id: the destination.
            principal: who imports.
            artifact: the Capsule.
            wish: mode and mappings; a restore is `core.service.restoring`'s.
            deadline: when to give up (ms).
            plan_digest: of the previewed plan; if the import would do anything else now, it is refused.
            key: the request's retry key.

        Returns:
            The receipt, the plan's digest, what was created, and where it landed.

        Raises:
            NoemaError: ImportPreviewConflict, IdentityConflict, SchemaPackageUnavailable, CapsuleValidationFailed,
                PreconditionFailed, and what committing raises.
        """
        if wish.mode == "restore":
            raise NoemaError(
                "NotAuthorized",
                "a restore makes a new space, and takes an operator",
                hint="noema capsule import --mode restore, or import with mode merge.",
            )
        capsule = read_capsule(artifact)
        asked = digest_of(["import", capsule.digest, msgspec.to_builtins(wish), plan_digest])

        def decide(state: SpaceState) -> Proposal:
            scope = self.scope(state, principal)
            report, run = self._answered(scope, lambda given: previewed(capsule, wish, given))
            if plan_digest is not None and report["import_plan_digest"] != plan_digest:
                raise stale_plan()
            run.refuse_conflicts()
            check_tier(state, run.applied.created.get("concept", 0))
            return self._proposal(state, run, report, asked)

        idempotency = None if key is None else Idempotency(f"{principal.id}\x1fcapsules", key, asked)
        committed = self._commits.commit(space_id, decide, deadline=deadline, idempotency=idempotency)
        outcome: dict[str, Any] = committed.outcome
        return outcome

    def _proposal(self, state: SpaceState, run: Importing, report: dict[str, Any], asked: str) -> Proposal:
        """The commit of an import that was run, and its answer."""
        told: dict[str, Any] = {
            name: report[name]
            for name in ("import_plan_digest", "created", "updated", "gaps", "proofs", "source")
        }
        told |= {
            "capsule_digest": run.capsule.digest,
            "mode": run.wish.mode,
            "counts": report["plan"]["counts"],
            "partial": any(each.act in {"skip", "unresolved"} for each in run.decisions.values()),
            "mapping": dict(list(run.local.items())[:_MAPPED]),
        }
        record = record_of(
            run.draft, request_digest=asked, result_digest=digest_of(told), transaction_class="import"
        )
        access = run.principal.access
        if access is not None and access.version:  # which records of governance let it pass (KIP §41.2)
            record["authority"] = {"policy_version": access.version, "records": access.used}
        named = ("capsule_digest", "import_plan_digest", "mode", "source")
        delta = run.draft.finish({**record, "import": {name: told[name] for name in named}})
        space_id = state.meta.space_id
        if delta is None:
            told["receipt"] = {
                "status": "no_effect", "space_id": space_id, "snapshot_seq": state.seq,
                "transaction_class": "import", "request_digest": asked,
            }  # fmt: skip
            return Proposal(None, told)
        receipt = committed_receipt(space_id, delta)
        signed = receipt if self._signer is None else sign_receipt(receipt, self._signer.sign)
        told["receipt"] = msgspec.to_builtins(signed)
        return Proposal(delta, told)

    # --- surroundings

    def scope(self, state: SpaceState, principal: Principal, present: SpaceState | None = None) -> Scope:
        """A state as the caller may see it, by the space's records of now."""
        context = Context(principal=principal, now=self._clock.now())
        context = governed(context, _REQUEST, present or state)
        return Scope(
            view=state,
            state=state,
            env=environment_of(state.meta),
            context=context,
            request=_REQUEST,
            present=present,
        )

    def _answered(self, scope: Scope, ask: Callable[[Scope], T]) -> T:
        """What `ask` gives, with the signatures it wants checked."""
        given = Given()
        for _ in range(MAX_CHECKS):
            context = msgspec.structs.replace(scope.context, given=given)
            try:
                return ask(msgspec.structs.replace(scope, context=context))
            except Missing as missing:
                need = missing.need
                assert isinstance(need, Checked), "an import needs nothing else"
                given = given.plus(need, self.check(need.key_id, need.payload, need.value))
        raise NoemaError("ResourceExhausted", f"more than {MAX_CHECKS} signatures on one artifact")


def check_tier(state: SpaceState, concepts: int) -> None:
    """Refuse what the space's tier does not admit.

    Raises:
        NoemaError: SpaceTierExceeded, with both numbers.
    """
    limit, after = state.meta.tier.limit, state.counts.concept + concepts
    if concepts and after > limit:
        raise NoemaError(
            "SpaceTierExceeded",
            f"the space admits {limit} concepts, and would have {after}",
            details={"limit": limit, "concepts": after},
        )


def _too_large(size: int | None) -> NoemaError:
    return NoemaError(
        "ArtifactTooLarge",
        "the space is too large for one answer" if size is None else f"the Capsule has {size} bytes",
        hint="Export it with the command line against its store: noema capsule export --data-dir, or as deltas.",
        details={"limit_bytes": MAX_REST_BYTES, "limit_records": MAX_RECORDS},
    )
