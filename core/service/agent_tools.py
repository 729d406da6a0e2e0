"""The tools of agents, carried out: KIP over the space, the reference, declared vocabulary, notes.

What lives here: from a tool call to its result, for one run on one space. What must never live here: what a call may
say (`core.agents.tools`), prompts, the loop (`core.service.thinking`). Whatever goes wrong inside a command is a
result the model reads; only a lost lease passes through, since then nothing may be written any more.

A writing toolbox writes each command once: its idempotency key is made of the run's seal and of the command as it
runs, so a worker that died after a commit finds the commit there when it comes again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from core.agents.prompts.kip_card import SECTIONS
from core.agents.tools import specs
from core.agents.tools.calls import DeclareCall, NoteCall, TopicCall, read_arguments, read_kip
from core.agents.tools.cognition import Settled
from core.agents.tools.fitting import fit
from core.agents.tools.schema import schema_text
from core.agents.tools.symbols import declare
from core.authority import Principal, holds, visible
from core.errors import NoemaError
from core.governance import admit
from core.governance.control import is_governed
from core.language import format_command, is_mutation, parse
from core.language.ast_kml import KmlStatement
from core.model.elements import AnyElement, Json
from core.model.instants import Instant
from core.models.chat import ToolCall, ToolResult
from core.ports import Clock
from core.protocol.request import Operation, Request
from core.protocol.response import Response
from core.schema.environment import Environment, environment_of
from core.service.commit import Commits
from core.service.kip import Kip
from core.service.notes import Notes
from core.service.values import Fence, Proposal
from core.state.space import SpaceState
from core.state.view import View
from core.transaction.draft import Draft

MAX_RESULT: Final = 16_000  # characters of one call's result
READ_MS: Final = 15_000  # contract §5.1: of one KIP read
COMMIT_MS: Final = 20_000
ENDPOINT: Final = "agent"


class Lease(Protocol):
    """Under which fence a write is made; asked before each, because a lease is renewed meanwhile."""

    def __call__(self) -> Fence:
        """The fence.

        Raises:
            Fenced: it is lost.
        """


class Rulebook(Protocol):
    """What holds for the commands of a run: what the host binds, and what a statement may be."""

    @property
    def reserved(self) -> dict[str, Json]:
        """The parameters the host binds; no call may give them."""

    def settle(
        self,
        statement: KmlStatement,
        parameters: dict[str, Any],
        view: View,
        env: Environment,
        *,
        sees: Callable[[AnyElement], bool],
    ) -> Settled:
        """A statement as it may run.

        Raises:
            NoemaError: it may not, in words that tell the model what to do instead.
        """


class Writing(msgspec.Struct, frozen=True):
    """What lets a toolbox write: the lease, the rules for what it writes, and the seal of its idempotency keys."""

    lease: Lease
    rules: Rulebook
    seal: str
    commits: Commits
    notes: Notes


class Toolbox:
    """The tools of one run on one space; `use` is what `core.service.thinking.Terms` wants.

    Args:
        kip: runs commands.
        space_id: the space.
        principal: the caller on whose behalf the run is made, with the rights a run has.
        clock: the time.
        until: when the run ends (ms); no command outlasts it.
        parameters: values the host binds for every command, such as `:counterparty`.
        writing: None for an agent that only reads.
    """

    def __init__(
        self,
        kip: Kip,
        space_id: str,
        principal: Principal,
        *,
        clock: Clock,
        until: Instant,
        parameters: dict[str, Json] | None = None,
        writing: Writing | None = None,
    ) -> None:
        self._kip = kip
        self._space_id = space_id
        self._principal = principal
        self._clock = clock
        self._until = until
        self._bound = dict(parameters or {})
        self._writing = writing
        self.commits = 0
        self._tools: dict[str, Callable[[ToolCall], Json]] = {
            specs.EXECUTE_KIP_READONLY.name: self._read_only,
            specs.KIP_REFERENCE.name: self._reference,
        }
        if writing is not None:
            self._bound |= writing.rules.reserved
            self._tools |= {
                specs.EXECUTE_KIP.name: self._execute,
                specs.DECLARE_SYMBOLS.name: self._declare,
                specs.NOTES.name: self._note,
            }

    def use(self, call: ToolCall) -> ToolResult:
        """Carry a call out; the result is JSON or plain text, and fits.

        Raises:
            Fenced: the lease is lost.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            raise NoemaError("NotAuthorized", f"{call.name} is not available to you")
        found = tool(call)
        if isinstance(found, str):
            return ToolResult(call.id, call.name, found[:MAX_RESULT])
        failed = isinstance(found, dict) and found.get("status") == "failed"
        return ToolResult(call.id, call.name, fit(found, MAX_RESULT), failed)

    # --- KIP

    def _read_only(self, call: ToolCall) -> Json:
        return self._run(call, readonly=True)

    def _execute(self, call: ToolCall) -> Json:
        return self._run(call, readonly=False)

    def _run(self, call: ToolCall, *, readonly: bool) -> Json:
        asked = read_kip(call)
        taken = sorted(asked.parameters.keys() & self._bound.keys())
        if taken:
            raise NoemaError(
                "NotAuthorized",
                f"the parameter :{taken[0]} is bound already",
                hint="Leave it out of `parameters`, and use it in the command.",
            )
        results: list[Json] = []
        for command in asked.commands:
            result = self._command(command, asked.parameters, readonly=readonly)
            results.append(result)
            if result["status"] == "failed":
                break
        skipped = len(asked.commands) - len(results)
        failed = any(isinstance(one, dict) and one["status"] == "failed" for one in results)
        answer: dict[str, Json] = {"status": "failed" if failed else "succeeded", "results": results}
        return answer | ({"not_run": skipped} if skipped else {})

    def _command(self, text: str, parameters: dict[str, Any], *, readonly: bool) -> dict[str, Json]:
        try:
            tree = parse(text)
            if readonly or not is_mutation(tree):
                return self._told(self._send(text, {**parameters, **self._bound}, readonly=True))
            return self._write(tree, parameters)
        except NoemaError as error:
            return {"status": "failed", "error": _brief(error.to_wire())}

    def _write(self, tree: Any, parameters: dict[str, Any]) -> dict[str, Json]:  # a KML statement
        writing = self._writing
        assert writing is not None, "only a writing toolbox has the tool"
        state = self._kip.read(self._space_id)
        asked = admit(self._principal, state.meta, state, self._clock.now())
        settled = writing.rules.settle(
            tree,
            parameters,
            state,
            environment_of(state.meta),
            sees=lambda element: visible(asked, element),
        )
        told: dict[str, Json] = {"on_record": list(settled.on_record)} if settled.on_record else {}
        if settled.statement is None:
            return {"status": "no_effect", **told}
        text = format_command(settled.statement)
        key = f"{writing.seal}:{hashlib.sha256(text.encode()).hexdigest()}"
        response = self._send(text, {}, readonly=False, key=key)
        if response.receipt is not None and response.receipt.status == "committed":
            self.commits += 1
        return self._told(response) | told

    def _send(
        self, text: str, parameters: dict[str, Any], *, readonly: bool, key: str | None = None
    ) -> Response:
        operation = Operation(command=text, parameters=parameters)
        if key is not None:
            operation = msgspec.structs.replace(operation, idempotency_key=key)
        now = self._clock.now()
        return self._kip.execute(
            self._space_id,
            Request(kip="2.0", operations=(operation,)),
            self._principal,
            deadline=min(self._until, now + (READ_MS if readonly else COMMIT_MS)),
            readonly=readonly,
            endpoint=ENDPOINT,
            fence=None if key is None or self._writing is None else self._writing.lease(),
        )

    def _told(self, response: Response) -> dict[str, Json]:
        """What the model needs of a response: no digests, no echoes."""
        if isinstance(response.error, dict):
            return {"status": "failed", "error": _brief(response.error)}
        result = response.results[0]
        told: dict[str, Json] = {"status": result.status}
        if result.result is not msgspec.UNSET:
            told["result"] = msgspec.to_builtins(result.result)
        if isinstance(result.error, dict):
            told["error"] = _brief(result.error)
        if isinstance(result.warnings, list):
            told["warnings"] = [warning.message for warning in result.warnings]
        if isinstance(result.next_cursor, str):
            told["next_cursor"] = result.next_cursor
        return told

    # --- the others

    def _reference(self, call: ToolCall) -> Json:
        topic = read_arguments(call, TopicCall).topic
        if topic == "schema":
            return schema_text(environment_of(self._kip.read(self._space_id).meta))
        if topic not in SECTIONS:
            raise NoemaError("InvalidInput", f"the topics are {', '.join([*SECTIONS, 'schema'])}")
        return SECTIONS[topic]

    def _declare(self, call: ToolCall) -> Json:
        writing, wish = self._writing, read_arguments(call, DeclareCall)
        assert writing is not None, "only a writing toolbox has the tool"
        now = self._clock.now()

        def decide(state: SpaceState) -> Proposal:
            self._check_schema(state)
            found = declare(state.meta, wish.types, wish.predicates)
            told: Json = {
                "declared": list(found.added),
                "known": list(found.known),
                "rejected": list(found.rejected),
                "package": found.package,
            }
            if found.meta is None:
                return Proposal(None, outcome=told)
            draft = Draft(
                state,
                now=max(now, state.at),
                origin=self._principal.origin,
                transaction_class="management",
            )
            draft.set_meta(schema=found.meta.schema, extensions=found.meta.extensions)
            return Proposal(draft.finish({"declared": list(found.added)}), outcome=told)

        committed = writing.commits.commit(
            self._space_id, decide, deadline=min(self._until, now + COMMIT_MS), fence=writing.lease()
        )
        return committed.outcome

    def _check_schema(self, state: SpaceState) -> None:
        """Refuse vocabulary where the records do not let whoever the run is for change the schema."""
        if not is_governed(state.meta):
            return
        who = msgspec.structs.replace(self._principal, permissions=frozenset({"manage_schema"}))
        if not holds(admit(who, state.meta, state, self._clock.now()), "manage_schema"):
            raise NoemaError(
                "NotAuthorized",
                "the records of this space do not let this run declare names",
                hint="Use what `schema` shows.",
            )

    def _note(self, call: ToolCall) -> Json:
        writing, wish = self._writing, read_arguments(call, NoteCall)
        assert writing is not None, "only a writing toolbox has the tool"
        if wish.action == "list":
            return {"notes": writing.notes.index(self._space_id)}
        if wish.action == "read":
            return {"id": wish.id, "text": writing.notes.read(self._space_id, wish.id)}
        if wish.action != "write":
            raise NoemaError("InvalidInput", "`action` must be list, read or write")
        deadline = min(self._until, self._clock.now() + COMMIT_MS)
        writing.notes.write(self._space_id, wish.id, wish.text, fence=writing.lease(), deadline=deadline)
        return {"status": "succeeded"}


def _brief(error: dict[str, Any]) -> dict[str, Json]:
    """An error as the model reads it."""
    return {name: error[name] for name in ("code", "message", "hint", "details") if error.get(name)}
