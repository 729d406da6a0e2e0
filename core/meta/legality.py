"""VALIDATE and PREVIEW: is it legal, and what would it do here and now (KIP §69.2-69.3).

What lives here: the very checks that a command meets when it runs, over a draft that is dropped. What must never
live here: a second opinion; there is one planner and one mutation engine, and these ask them. Nothing is kept, so
nothing is reserved: no id, no version, no client key, no permission. Only a receipt says that something happened.

A text that is not legal is an answer (`valid: false` with the error), not a failure of the question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.language import bind, format_command, is_mutation, language_of, parameter_names, parse, to_canonical
from core.language.ast_kql import Find
from core.language.ast_meta import PreviewKml, Validate
from core.meta import capsules
from core.meta.artifacts import validate_package
from core.meta.operands import artifact_of, coordinates, options_of, past_scope, text_of
from core.model.elements import KIND_OF_TYPE, Concept, Json, Proposition
from core.mutation import MutationResult, mutate
from core.protocol.canonical import digest_of
from core.protocol.response import Warning  # noqa: A004 - the protocol's word
from core.query import plan_json, snapshot_needed
from core.transaction.draft import Draft
from core.transaction.scope import Answer, Scope, governed

_OPTIONS: Final = frozenset({"plan", "parameters"})
_LISTED: Final = 100  # changes that a preview lists one by one
_UNBOUND: Final = "UnboundParameters"
_NOTES: Final[dict[str, str]] = {
    _UNBOUND: "only the syntax was checked: give values in WITH {parameters: {...}}",
    "NotReserved": "nothing was committed or reserved; the state may be another one when the command runs",
}


# --- VALIDATE


def validate(statement: Validate, scope: Scope) -> Answer:
    """VALIDATE KQL, KML, CAPSULE, SCHEMA PACKAGE or IMPORT PLAN.

    Raises:
        NoemaError: UnsupportedCapability for unknown options.
        Missing: an older state or a staged artifact must be handed in.
    """
    options = options_of(statement.options, _OPTIONS)
    if statement.target == "CAPSULE":
        value = capsules.validate(statement.subject, scope)
        return Answer(value={**value, **_boundary(scope)}, context=coordinates(scope))
    if statement.target == "IMPORT PLAN":
        plan = artifact_of(statement.subject, scope, "import plan")
        value = capsules.validate_plan(plan, {"parameters": _parameters(options, scope)}, scope)
        return Answer(value={**value, **_boundary(scope)}, context=coordinates(scope))
    if statement.target == "SCHEMA PACKAGE":
        value = validate_package(artifact_of(statement.subject, scope, "package"), scope.env)
        return Answer(value={**value, **_boundary(scope)}, context=coordinates(scope))
    text = text_of(statement.subject, f"VALIDATE {statement.target}")
    check = _check_kql if statement.target == "KQL" else _check_kml
    return _checked(text, statement.target, options, scope, check)


def _checked(
    text: str,
    language: str,
    options: dict[str, Any],
    scope: Scope,
    check: Callable[[Any, dict[str, Any], Scope], dict[str, Json]],
) -> Answer:
    boundary = _boundary(scope)
    try:
        command, form = _read(text, language)
        given = _parameters(options, scope)
        missing = sorted(parameter_names(command) - given.keys())
        if missing:
            value = {"valid": True, "checked": ["syntax"], **form, "unbound_parameters": missing, **boundary}
            return Answer(value=value, context=coordinates(scope), warnings=(_note(_UNBOUND),))
        found = check(bind(command, given), options, scope)
    except NoemaError as error:
        return Answer(
            value={"valid": False, "error": error.to_wire(), **boundary}, context=coordinates(scope)
        )
    value = {
        "valid": True,
        "checked": ["syntax", "schema", "references", "authority"],
        **form,
        **found,
        **boundary,
    }
    return Answer(value=value, context=coordinates(scope), warnings=(_note("NotReserved"),))


def _read(text: str, language: str) -> tuple[Any, dict[str, Json]]:
    """The command and its normal form: canonical text, and the digest that idempotency is about."""
    command = parse(text)
    actual = language_of(command)
    if actual != language:
        raise NoemaError(
            "LanguageMismatch",
            f"the command is written in {actual}, not in {language}",
            details={"declared": language, "actual": actual},
        )
    return command, {
        "normalized": format_command(command),
        "command_digest": digest_of(to_canonical(command)),
    }


def _parameters(options: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Values for the inner command's parameters: the operation's, and those of WITH."""
    own = options.get("parameters", {})
    if not isinstance(own, dict):
        raise NoemaError("TypeMismatch", "WITH {parameters: ...} takes an object of values")
    return {**scope.parameters, **own}


def _check_kql(find: Find, options: dict[str, Any], scope: Scope) -> dict[str, Json]:
    """Names, fields, scopes and targets of a query, in the schema of the state that it reads; nothing is run."""
    state = scope.state
    needed = snapshot_needed(find, scope.query_context(), head_seq=state.seq, head_at=state.at)
    inner = scope if needed is None else past_scope(scope, scope.context.given.state_at(needed))
    query = inner.query_context()
    plan = plan_json(inner.view, find, inner.env, query)
    found: dict[str, Json] = {"reads_seq": inner.state.seq}
    if options.get("plan"):  # KIP §30.4: its order and its guesses follow from counts that take everything in
        found["plan"] = (
            plan if query.visible is None else {"not_shown": "not everything here is visible to you"}
        )
    return found


def _check_kml(statement: Any, options: dict[str, Any], scope: Scope) -> dict[str, Json]:
    draft, done = _run(statement, scope)
    found: dict[str, Json] = {"effect": done.effect}
    if options.get("plan"):
        found["estimated_writes"] = len(draft.changes())
    return found


# --- PREVIEW


def preview(statement: PreviewKml, scope: Scope) -> Answer:
    """PREVIEW KML: the effect a command would have on the present state, alone; nothing is written.

    Ids of what would be created are left out: the commit will give others.

    Raises:
        NoemaError: TypeMismatch for an operand that is no text. A command that would fail is an answer.
    """
    text = text_of(statement.command, "PREVIEW KML")
    boundary = _boundary(scope)
    try:
        command, form = _read(text, "KML")
        assert is_mutation(command), "only mutations are written in KML"
        bound = bind(command, scope.parameters)
        draft, done = _run(bound, scope)
    except NoemaError as error:
        value = {"would": "fail", "error": error.to_wire(), **boundary}
        return Answer(value=value, context=coordinates(scope))
    value = {
        "would": "commit" if done.effect else "no_effect",
        **form,
        **_effect(draft, done),
        **boundary,
    }
    notes = [Warning(code=code, message=message) for code, message in done.warnings]
    return Answer(value=value, context=coordinates(scope), warnings=(*notes, _note("NotReserved")))


def _run(statement: Any, scope: Scope) -> tuple[Draft, MutationResult]:
    """A bound KML statement over a draft of the present state; who calls drops it."""
    context = scope.context
    draft = Draft(scope.state, now=max(context.now, scope.state.at), origin=context.principal.origin)
    context = governed(context, scope.request, scope.state, draft.view)
    done = mutate(draft, statement, scope.env, context.principal, scope.query_context())
    return draft, done


def _effect(draft: Draft, done: MutationResult) -> dict[str, Json]:
    """What a draft would change, without the ids that only a commit gives."""
    changes = draft.changes()
    counts: dict[str, dict[str, int]] = {}
    listed: list[dict[str, Json]] = []
    fresh = {change.id for change in changes if change.op == "created"}
    for change in changes:
        element = draft.get(change.id)
        assert element is not None, "a draft drops nothing"
        kind = KIND_OF_TYPE[type(element)]
        counts.setdefault(kind, dict.fromkeys(("created", "updated", "purged"), 0))[change.op] += 1
        row: dict[str, Json] = {"kind": kind, "op": change.op, "version": change.version}
        if change.id not in fresh:
            row["id"] = change.id
        if isinstance(element, Concept):
            row["schema_ref"] = element.schema_ref
        elif isinstance(element, Proposition):
            row["predicate_ref"] = element.predicate_ref
        listed.append(row)
    result = _without(msgspec.to_builtins(done.value), fresh)
    effect: dict[str, Json] = {
        "counts": counts,
        "changes": listed[:_LISTED],
        "writes": len(changes),
        "result": result,
    }
    if len(listed) > _LISTED:
        effect["truncated"] = True
    return effect


def _without(value: Json, fresh: set[str]) -> Json:
    """A result with the ids of what does not exist replaced by the word `temporary`."""
    if isinstance(value, str):
        return "temporary" if value in fresh else value
    if isinstance(value, list):
        return [_without(item, fresh) for item in value]
    if isinstance(value, dict):
        return {name: _without(item, fresh) for name, item in value.items()}
    return value


# --- what every answer here says of itself


def _boundary(scope: Scope) -> dict[str, Json]:
    return {
        "checked_at_seq": scope.state.seq,
        "schema_environment_version": scope.env.version,
        "commit_guaranteed": False,
    }


def _note(code: str) -> Warning:
    return Warning(code=code, message=_NOTES[code])
