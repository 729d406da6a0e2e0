"""From a request to the transactions it asks for: parsed, classified, keyed (KIP §32.3 phases 1, 2, 6 and 8).

What lives here: everything that can be decided without a state. What must never live here: execution.

What an operation is comes from what its text parses to, never from its label (KIP §73.1, §88.3). An operation
that cannot run carries its error, so that a batch can still run the others where its mode lets it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.language import Command, is_mutation, language_of, parse
from core.language.bind import parameter_names
from core.language.canonical import from_json, to_canonical
from core.model.ids import part_key
from core.protocol.canonical import digest_of
from core.protocol.capabilities import ISOLATION, check_requirements
from core.protocol.request import IngestEvidence, Operation, Request
from core.transaction.scope import ACT_AS, Context, space_uri

_CACHED_TEXT: Final = 8_192  # characters; longer commands are rarely sent twice


class Parsed(msgspec.Struct, frozen=True):
    """A command and what follows from its text alone."""

    command: Command
    digest: str
    parameters: frozenset[str]


class Op(msgspec.Struct, frozen=True):
    """One operation, ready to run, or the error that keeps it from running."""

    operation: Operation
    parameters: dict[str, Any]
    parsed: Parsed | None
    error: NoemaError | None = None

    @property
    def writes(self) -> bool:
        """Whether it may change the space."""
        return self.parsed is not None and is_mutation(self.parsed.command)


class Retry(msgspec.Struct, frozen=True):
    """An idempotency key with its scope and the digest of the request it stands for (KIP §34)."""

    scope: str
    key: str
    digest: str


class Unit(msgspec.Struct, frozen=True):
    """Operations that share one snapshot and, if they write, one transaction."""

    ops: tuple[Op, ...]
    writes: bool
    digest: str
    retry: Retry | None = None
    ingest: tuple[IngestEvidence, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """A request as the units that run one after the other. `stops`: a failure skips the units after it."""

    request: Request
    units: tuple[Unit, ...]
    stops: bool


def prepare(request: Request, space_id: str, context: Context) -> Plan:
    """The plan of a request against one space.

    Args:
        request: the checked envelope.
        space_id: the space the transport resolved.
        context: who asks and by which endpoint.

    Raises:
        NoemaError: what is wrong with the request as a whole: NotFoundOrNotVisible for another space,
            UnsupportedCapability, UnsupportedIsolation, InvalidRequestEnvelope, ReadonlyViolation for ingest.
    """
    _check_space(request, space_id)
    check_requirements(request.requires, semantic=context.semantic, streaming=context.streaming)
    execution = request.execution
    isolation = getattr(execution, "isolation", msgspec.UNSET)
    if isinstance(isolation, str) and isolation not in ISOLATION:
        raise NoemaError(
            "UnsupportedIsolation",
            f"there is no isolation level {isolation}",
            details={"supported": list(ISOLATION)},
        )
    ingest = request.ingest.evidence if isinstance(request.ingest.evidence, tuple) else ()
    ops = [_op(request, operation, ingest, context) for operation in request.operations]
    one = request.mode == "atomic" or len(ops) == 1
    _check_whole(request, ingest, context, one=one)
    if one:
        units: tuple[Unit, ...] = (_unit(request, tuple(ops), ingest, context, _whole_key(request)),)
    else:
        units = tuple(
            _unit(request, (op,), (), context, _own_key(request, op, place)) for place, op in enumerate(ops)
        )
    on_error = getattr(execution, "on_error", "stop")
    return Plan(request, units, stops=request.mode == "sequence" and on_error != "continue")


def _check_space(request: Request, space_id: str) -> None:
    selected = request.space
    if isinstance(selected, msgspec.UnsetType):
        return
    wrong_id = isinstance(selected.id, str) and selected.id != space_id
    wrong_uri = isinstance(selected.uri, str) and selected.uri != space_uri(space_id)
    if wrong_id or wrong_uri:
        raise NoemaError("NotFoundOrNotVisible", "the request selects another space than its address does")


def _check_whole(
    request: Request, ingest: tuple[IngestEvidence, ...], context: Context, *, one: bool
) -> None:
    if ingest and context.readonly:
        raise NoemaError("ReadonlyViolation", "ingesting Evidence writes, and this endpoint only reads")
    if not one and (ingest or isinstance(request.preconditions.space_seq, int)):
        what = "ingest" if ingest else "preconditions.space_seq"
        raise NoemaError(
            "InvalidRequestEnvelope",
            f"{what} belongs to one transaction, and this request is several",
            hint='Use execution.mode "atomic", or send one operation.',
            details={"at": f"$.{what}"},
        )


# --- operations


def _op(request: Request, operation: Operation, ingest: tuple[IngestEvidence, ...], context: Context) -> Op:
    parameters = {**request.parameters, **operation.parameters}
    try:
        parsed = _parsed(operation)
        _check_op(operation, parsed, context, given=parameters.keys() | {entry.key for entry in ingest})
    except NoemaError as error:
        return Op(operation, parameters, None, error)
    return Op(operation, parameters, parsed)


def _check_op(operation: Operation, parsed: Parsed, context: Context, *, given: AbstractSet[str]) -> None:
    language = language_of(parsed.command)
    if isinstance(operation.language, str) and operation.language != language:
        raise NoemaError(
            "LanguageMismatch",
            f"the operation is labelled {operation.language} and written in {language}",
            details={"declared": operation.language, "actual": language},
        )
    if context.readonly and is_mutation(parsed.command):
        raise NoemaError("ReadonlyViolation", "the command changes the space, and this endpoint only reads")
    missing = sorted(parsed.parameters - given)
    if missing:
        raise NoemaError(
            "InvalidRequestEnvelope",
            f"no value was given for {', '.join(':' + name[:40] for name in missing[:8])}",
            hint="Give every :parameter of the command a value in `parameters`.",
            details={"missing": missing},
        )


def _parsed(operation: Operation) -> Parsed:
    if isinstance(operation.command, str):
        text = operation.command
        return _parse_cached(text) if len(text) <= _CACHED_TEXT else _described(parse(text))
    return _described(from_json(operation.ast))


@lru_cache(maxsize=512)
def _parse_cached(text: str) -> Parsed:
    return _described(parse(text))


def _described(command: Command) -> Parsed:
    return Parsed(command, digest_of(to_canonical(command)), frozenset(parameter_names(command)))


# --- transactions and their keys


def _unit(
    request: Request,
    ops: tuple[Op, ...],
    ingest: tuple[IngestEvidence, ...],
    context: Context,
    key: str | None,
) -> Unit:
    writes = bool(ingest) or any(op.writes for op in ops)
    if not writes:
        return Unit(ops, writes=False, digest="")
    digest = _digest(request, ops, ingest)
    keyed = key is not None and not request.options.dry_run
    retry = Retry(context.idempotency_scope, str(key), digest) if keyed else None
    return Unit(ops, writes=True, digest=digest, retry=retry, ingest=ingest)


def _digest(request: Request, ops: tuple[Op, ...], ingest: tuple[IngestEvidence, ...]) -> str:
    """The digest of what is asked: trees, parameters used, ingested content and the options that change the effect.

    Formatting, `request_id`, `op_id` and everything that only observes stay out; so does what the names mean in
    the schema, so that a retry after a schema change is still a retry (KIP §34, Transactions §75-76).
    """
    token = request.read.snapshot_token
    act_as = request.extensions.get(ACT_AS)
    return digest_of({
        **({} if act_as is None else {"act_as": act_as}),
        "kip": request.kip,
        "operations": [
            {
                "command": op.parsed.digest if op.parsed is not None else None,
                "parameters": {
                    name: value
                    for name, value in op.parameters.items()
                    if op.parsed is not None and name in op.parsed.parameters
                },
            }
            for op in ops
        ],
        "ingest": [_entry(entry) for entry in ingest],
        "preconditions": msgspec.to_builtins(request.preconditions),
        "snapshot": token if isinstance(token, str) else None,
        "dry_run": request.options.dry_run,
    })  # fmt: skip


def _entry(entry: IngestEvidence) -> dict[str, Any]:
    return {
        name: value
        for name in ("key", "evidence_class", "payload", "payload_artifact", "media_type", "observed_at",
                     "source_actor", "client_key")
        if (value := getattr(entry, name)) is not msgspec.UNSET
    }  # fmt: skip


def _whole_key(request: Request) -> str | None:
    """The key of a request that is one transaction: its own, or that of its only operation (KIP Runtime §98-101)."""
    key = getattr(request.execution, "idempotency_key", msgspec.UNSET)
    own = request.operations[0].idempotency_key if len(request.operations) == 1 else msgspec.UNSET
    if isinstance(key, str) and isinstance(own, str) and key != own:
        raise NoemaError(
            "InvalidRequestEnvelope",
            "the operation and its execution name two idempotency keys",
            details={"at": "$.operations[0].idempotency_key"},
        )
    found = key if isinstance(key, str) else own
    return found if isinstance(found, str) else None


def _own_key(request: Request, op: Op, place: int) -> str | None:
    """The key of one of several transactions: its own, or one derived from the request's by its place."""
    own = op.operation.idempotency_key
    if isinstance(own, str):
        return own
    key = getattr(request.execution, "idempotency_key", msgspec.UNSET)
    return part_key(key, place) if isinstance(key, str) else None
