"""Forming one conversation with a model, under the drain's lease, so that it can be left and taken up at any point.

What lives here: capture, the runs over the windows of a conversation, the one review, and the commit that ends it.
What must never live here: whose turn it is (`core.service.formation`), what the model is told (`core.agents`).

A worker may die, be fenced or run out of time anywhere. What makes that harmless: the messages are Evidence before
the model is asked, under keys of their content; each command of the model is one commit under the lease's epoch with
a key of its content; the row says which windows are read; and a run that begins anew is shown what rests on the
conversation already. The row becomes `completed` and the mark moves in one transaction, which happens once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.agents.formation.captured import ensure_reader, find_captured, find_events, find_products
from core.agents.formation.ending import react, why
from core.agents.formation.telling import (
    REVIEW_FROM,
    Telling,
    Window,
    cut_windows,
    size_of,
    tell,
    tell_done,
    tell_uncovered,
    window_room,
)
from core.agents.offline.formation import form_part, mention
from core.agents.prompts.formation import REVIEW, VERSION, system_prompt
from core.agents.tools.cognition import Rules
from core.agents.tools.schema import schema_text
from core.agents.tools.specs import FORMING
from core.agents.tools.terms import Captured
from core.agents.vocabulary import PERSON
from core.authority import Principal, visible
from core.errors import NoemaError
from core.governance import admit
from core.governance.control import is_governed
from core.model.elements import Activity, Concept, Json, Origin
from core.model.instants import Instant
from core.models.budget import Limits, Meter, estimate_request
from core.models.chat import (
    ChatModel,
    ChatRequest,
    ModelFault,
    Models,
    Turn,
    Usage,
)
from core.models.run import Finished, Script, converse, goes_on
from core.ports import Clock, Row, Update, When
from core.protocol.canonical import digest_of_bytes
from core.schema.environment import environment_of
from core.service.agent_tools import Toolbox, Writing
from core.service.commit import Commits
from core.service.conversation_record import Record
from core.service.formation_authority import RIGHTS, check_formed
from core.service.formation_place import COMMIT_MS, Kept, Outcome, Place, add_warnings
from core.service.kip import Kip
from core.service.notes import Notes
from core.service.spaces import Spaces
from core.service.thinking import Allowance, Terms, drive, unlimited, usual_limits
from core.service.values import Idempotency, Proposal
from core.service.watching import Watched
from core.state.space import SpaceState
from core.storage.layout import conversation_sk, space_pk
from core.transaction.draft import Draft

WORK: Final = "formation"
RUN_MS: Final = 30 * 60 * 1000  # contract §4.6: of all runs over one conversation
MAX_GOES: Final = 5  # times a window is begun without being finished: workers that die, turns too short
MAX_REPLY: Final = 4096  # tokens of one reply
MAX_REPORT: Final = 2_000  # characters of the model's last words on the record


class Mind:
    """Formation with models, for every space that has one. Safe to share between threads.

    Args:
        models: which model serves a space; none there means the offline reader.
        kip: runs the model's commands.
        notes: of formation.
        clock: the time.
        spaces: reads.
        commits: the one commit loop.
        allowance_of: what a space may spend on a model today.
        deployment: the operator's own section of the prompt.
        limits_of: what all runs over one conversation may take together.
    """

    def __init__(
        self,
        models: Models,
        kip: Kip,
        notes: Notes,
        clock: Clock,
        *,
        spaces: Spaces,
        commits: Commits,
        allowance_of: Callable[[str, ChatModel], Allowance] = unlimited,
        deployment: str = "",
        limits_of: Callable[[str, ChatModel], Limits] = usual_limits,
    ) -> None:
        self.models = models
        self.kip = kip
        self.notes = notes
        self.clock = clock
        self.spaces = spaces
        self.commits = commits
        self.allowance_of = allowance_of
        self.prompt = system_prompt(deployment)
        self.limits_of = limits_of

    def serves(self, space_id: str) -> bool:
        """Whether a space has a model, if only one that cannot be used now."""
        try:
            return self.models.of(space_id, WORK) is not None
        except (NoemaError, ModelFault):
            return True

    def read(self, place: Place, lease: Kept) -> Outcome | None:
        """Form a conversation as far as it goes; None where the space has no model.

        Raises:
            Fenced: the lease is lost.
            NoemaError: the store failed.
        """
        try:
            model = self.models.of(place.space_id, WORK)
        except (NoemaError, ModelFault) as error:
            # A model of the space's own whose key cannot be opened, say.
            return Outcome("again", f"model_unusable: {getattr(error, 'code', 'ModelFault')}")
        if model is None:
            return None
        if not model.capabilities.tools:
            return Outcome("offline", "model_without_tools")
        try:
            terms = _Means(
                model,
                self.limits_of(place.space_id, model),
                self.allowance_of(place.space_id, model),
            )
        except NoemaError as error:
            if error.code != "ResourceExhausted":
                raise
            # A budget in money, and nobody said what the model costs.
            return Outcome("offline", "model_budget")
        return _Reader(self, terms, place, lease).read()


class _Means(msgspec.Struct, frozen=True):
    """What one conversation is read with: the model, what the runs may take, what the space may spend."""

    model: ChatModel
    limits: Limits
    allowance: Allowance


class _Reader:
    """One conversation, read by a model."""

    def __init__(self, mind: Mind, means: _Means, place: Place, lease: Kept) -> None:
        model = means.model
        self._mind = mind
        self._allowance = means.allowance
        self._place = place
        self._lease = lease
        self._clock = mind.clock
        self._model = Watched(model, lease, mind.clock)
        self._began = mind.clock.now()
        record, limits = place.record, means.limits
        self._meter = Meter(
            Limits(
                max(0, limits.turns - record.count("turns")),
                None if limits.tokens is None else max(0, limits.tokens - _tokens(record)),
                limits.micros,
            ),
            model.capabilities,
        )
        self._made = 0  # commits of the model in this turn
        self._warnings: list[str] = []
        self._report = ""

    def read(self) -> Outcome:
        """Read what is not read yet, and end the conversation, or say why it is left.

        Raises:
            Fenced: the lease is lost.
            NoemaError: the store failed.
        """
        record = self._place.record
        if not record.count("captured"):
            record = self._capture(record)
        messages = find_captured(self._load(), self._place.dialogue)
        if not record.count("evidence"):  # every word of it was on record already, and read when it was filed
            self._complete(messages, made=False)
            return Outcome("complete")
        windows = cut_windows(self._place.dialogue, messages, self._room())
        finished: Finished | None = None
        for number in range(record.count("window"), len(windows)):
            if record.count("goes") >= MAX_GOES:
                return self._left(Outcome("offline", "model_no_progress"))
            self._note({"goes": record.count("goes") + 1, "status": "working"})
            finished = self._run(self._script(messages, windows, number), messages)
            outcome = self._judge(finished, messages, goes=record.count("goes") + 1)
            if outcome.reaction not in ("complete", "warn"):
                return self._left(outcome)
            if outcome.reaction == "warn":
                left = len(windows) - number - 1
                self._warnings.append(
                    outcome.reason + (f"; {left} of {len(windows)} windows are unread" if left else "")
                )
                self._complete(messages)
                return outcome
            if number + 1 < len(windows):
                self._note({"window": number + 1, "goes": None, **self._spent()})
                record = msgspec.structs.replace(record, row={**record.row, "goes": None})
        if size_of(self._place.dialogue) >= REVIEW_FROM and not record.count("reviewed"):
            self._review(messages, windows, finished)
        self._complete(messages)
        return Outcome("complete")

    # --- capture

    def _capture(self, record: Record) -> Record:
        """File the messages as Evidence and the exchange as an Event, part by part, before the model is asked."""
        place, start = self._place, record.count("done")
        row = record.row
        while True:
            now = self._clock.now()
            begun, evidence = start, int(str(row.get("evidence") or 0))

            def decide(
                state: SpaceState, begun: int = begun, evidence: int = evidence, now: Instant = now
            ) -> Proposal:
                draft = Draft(state, now=max(now, state.at), origin=_origin(record))
                part = form_part(draft, place.dialogue, begun, reading="none")
                ensure_reader(draft)
                passed = check_formed(draft)
                last = part.next >= len(place.dialogue.messages)
                told: Row = {"done": part.next, "evidence": evidence + part.evidence}
                assign: Row = {**told, "status": "working", "updated": now, "captured": int(last)}
                return Proposal(
                    draft.finish({"conversation": record.number, "captured": [begun, part.next], **passed}),
                    outcome=dict(told),
                    rows=(self._update(assign, done=begun or None),),
                )

            outcome = self._commit(f"capture:{start}", decide)
            assert isinstance(outcome, dict), "a capture answers with its counts"
            row = {**row, **outcome}
            start = outcome["done"]
            if start >= len(place.dialogue.messages):
                return msgspec.structs.replace(record, row={**row, "captured": 1})
            self._lease()

    # --- runs

    def _room(self) -> int:
        """The tokens of one window: what the model can read, less all that is told beside the messages."""
        fixed = ChatRequest(self._mind.prompt, (Turn("user", self._vocabulary()),), FORMING)
        context = self._model.capabilities.context_tokens
        return window_room(context, _reply_tokens(context), estimate_request(fixed))

    def _vocabulary(self) -> str:
        return schema_text(environment_of(self._load().meta))

    def _script(
        self, messages: list[tuple[int, Captured]], windows: list[Window], number: int, ask: str = ""
    ) -> Script:
        state = self._load()
        notes = self._notes(state).index(self._place.space_id)
        asked = admit(self._principal(state, [one for _, one in messages]), state.meta, state, state.at)
        telling = Telling(
            windows[number],
            number,
            len(windows),
            self._vocabulary(),
            notes,
            sees=lambda element: visible(asked, element),
        )
        parts = [tell(state, self._place.dialogue, messages, telling)]
        products = find_products(state, [one for _, one in messages])
        if products.all:
            parts.append(tell_done(state, products))
        context = self._model.capabilities.context_tokens
        return Script(
            system=self._mind.prompt,
            opening=(Turn("user", "\n\n".join([*parts, ask] if ask else parts)),),
            tools=FORMING,
            max_tokens=_reply_tokens(context),
            context_tokens=context,
        )

    def _run(self, script: Script, messages: list[tuple[int, Captured]]) -> Finished:
        left = RUN_MS - self._place.record.count("spent") - (self._clock.now() - self._began)
        until = min(self._place.until, self._clock.now() + max(0, left))
        tools = self._toolbox([one for _, one in messages], until)
        terms = Terms(
            model=self._model,
            use_tool=tools.use,
            clock=self._clock,
            until=until,
            allowance=self._allowance,
        )
        finished = drive(converse(script, self._meter), terms)
        self._made += tools.commits
        self._report = finished.text or self._report
        return finished

    def _toolbox(self, messages: list[Captured], until: Instant) -> Toolbox:
        place = self._place
        state, record = self._load(), place.record
        reader = ensure_reader(Draft(state, now=state.at, origin=_origin(record))).id
        seal = f"{place.instance}:{record.number}:{record.count('run')}"
        said_at = int(place.dialogue.timestamp or 0)
        rules = Rules(
            tuple(messages), reader, said_at, f"f{record.number}.{place.instance}", self._given(state)
        )
        writing = Writing(self._lease, rules, seal, self._mind.commits, self._notes(state))
        return Toolbox(
            self._mind.kip,
            place.space_id,
            self._principal(state, messages),
            clock=self._clock,
            until=until,
            writing=writing,
        )

    def _principal(self, state: SpaceState, messages: list[Captured]) -> Principal:
        """The caller who submitted the conversation, with the rights a run has on their behalf."""
        reader = ensure_reader(Draft(state, now=state.at, origin=_origin(self._place.record))).id
        people = {
            one.speaker
            for one in messages
            if isinstance(found := state.get(one.speaker), Concept) and found.schema_ref == PERSON
        }
        return Principal(
            id=_origin(self._place.record).principal,
            channel=WORK,
            permissions=RIGHTS,
            # who speaks alone may withdraw; among several nobody can tell who asks for what
            actors=frozenset({reader} | people) if len(people) == 1 else frozenset({reader}),
        )

    def _notes(self, state: SpaceState) -> Notes:
        """The notes that a run may read: in a governed space those of the submitter's own runs."""
        notes = self._mind.notes
        return notes.of(_origin(self._place.record).principal) if is_governed(state.meta) else notes

    def _given(self, state: SpaceState) -> dict[str, Json]:
        key = self._place.dialogue.context.counterparty
        found = (
            None
            if key is None
            else Draft(state, now=state.at, origin=Origin("", "")).find_concept(PERSON, key)
        )
        return {} if found is None else {"counterparty": {"id": found.id}}

    def _judge(self, finished: Finished, messages: list[tuple[int, Captured]], *, goes: int) -> Outcome:
        written = bool(find_products(self._load(), [one for _, one in messages]).all)
        spent = self._place.record.count("spent") + self._clock.now() - self._began
        stuck = goes >= MAX_GOES and not self._made
        over = finished.ended == "time" and (spent >= RUN_MS or stuck)
        reaction = react(
            msgspec.structs.replace(finished, ended="turns") if over else finished, written=written
        )
        return Outcome(reaction, "" if reaction == "complete" else why(finished))

    def _left(self, outcome: Outcome) -> Outcome:
        """Keep on the row what was spent, and how often the window was begun without anything coming of it."""
        self._note({**self._spent(), **({"goes": None} if self._made else {})})
        return outcome

    def _review(
        self, messages: list[tuple[int, Captured]], windows: list[Window], finished: Finished | None
    ) -> None:
        """The one review (contract §4.11). Its failure is told and undoes nothing; it is never begun twice."""
        self._note({"reviewed": 1, "window": len(windows), "goes": None, **self._spent()})
        state = self._load()
        products = find_products(state, [one for _, one in messages])
        asked = f"{REVIEW}\n\n{tell_uncovered(state, messages, products)}"
        script = self._script(messages, windows, len(windows) - 1, "" if finished else asked)
        if finished is not None:
            script = goes_on(script, finished, asked)
        reviewed = self._run(script, messages)
        if not reviewed.ok:
            self._warnings.append(f"review_failed: {why(reviewed)}")

    # --- the end

    def _complete(self, messages: list[tuple[int, Captured]], *, made: bool = True) -> None:
        """End the conversation: what was made, by whom, and the row and the mark, in one transaction."""
        place, now = self._place, self._clock.now()
        captured = [one for _, one in messages]

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=max(now, state.at), origin=Origin(_origin(place.record).principal, WORK))
            products = find_products(draft.view, captured)
            if made and products.all:
                for event in find_events(draft.view, place.dialogue):
                    mention(draft, event, products.touched)
                draft.create(
                    Activity,
                    activity_class="extraction",
                    status="completed",
                    started_at=min(self._began, draft.now),
                    ended_at=draft.now,
                    inputs=tuple(element for one in captured for element in one.all),
                    outputs=products.all,
                    associated_actors=(ensure_reader(draft).id,),
                    parameters_digest=digest_of_bytes(f"{self._model.name} {VERSION}".encode()),
                )
            writes, head = place.ends(place.record)
            claims = len(products.claims)
            row: Row = {
                "status": "completed",
                "claims": claims,
                "commitments": products.commitments,
                "updated": now,
                "answer": _answer(len(captured), claims, products.commitments, self._report),
                **dict.fromkeys(("failed_reason", "rounds", "first_failed", "retry_at", "goes")),
                **self._spent(),
            }
            return Proposal(
                draft.finish({"conversation": place.record.number}),
                rows=(self._update(row), *writes),
                head=head,
            )

        self._commit("end", decide)

    def _commit(self, step: str, decide: Callable[[SpaceState], Proposal]) -> Json:
        place = self._place
        key = f"{place.instance}:{place.record.number}:{place.record.count('run')}:{step}"
        return self._mind.commits.commit(
            place.space_id,
            decide,
            deadline=self._clock.now() + COMMIT_MS,
            idempotency=Idempotency(WORK, key, str(place.record.row.get("body_digest"))),
            fence=self._lease(),
        ).outcome

    def _note(self, assign: Row) -> None:
        """Write on the row without a commit of memory."""
        row: Row = {**assign, "updated": self._clock.now()}
        proposal = Proposal(None, rows=(self._update(row),))
        deadline = self._clock.now() + COMMIT_MS
        self._mind.commits.commit(
            self._place.space_id, lambda _: proposal, deadline=deadline, fence=self._lease()
        )

    def _update(self, assign: Row, **seen: int | None) -> Update:
        record = self._place.record
        when = When(equals={"nonce": record.row["nonce"], "run": record.row.get("run"), **seen})
        return Update(
            space_pk(self._place.space_id), conversation_sk(WORK, record.number), assign=assign, when=when
        )

    def _spent(self) -> Row:
        """What the record says was spent and by whom, all runs of the conversation together."""
        record, used = self._place.record, self._meter.usage
        total = _usage(record).plus(used)
        row: Row = {
            "model": self._model.name,
            "prompt": VERSION,
            "turns": record.count("turns") + self._meter.turns,
            "spent": record.count("spent") + self._clock.now() - self._began,
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
            "cached_tokens": total.cached_tokens,
            "requests": total.requests,
        }
        if self._warnings:
            row["warnings"] = add_warnings(record, self._warnings)
        return row

    def _load(self) -> SpaceState:
        return self._mind.spaces.load(self._place.space_id)


def _reply_tokens(context: int) -> int:
    """What one reply may take; less of a small context."""
    return min(MAX_REPLY, context // 8)


def _usage(record: Record) -> Usage:
    names = ("input_tokens", "output_tokens", "cached_tokens", "requests")
    return Usage(*(record.count(name) for name in names))


def _tokens(record: Record) -> int:
    return record.count("input_tokens") + record.count("output_tokens")


def _origin(record: Record) -> Origin:
    return Origin(record.text("user") or "unknown", record.text("channel") or "rest")


def _answer(evidence: int, claims: int, commitments: int, report: str) -> str:
    counted = ", ".join(
        f"{count} {noun}" if count == 1 else f"{count} {noun}s"
        for count, noun in ((evidence, "message"), (claims, "claim"), (commitments, "commitment"))
    )
    told = f"{counted} on record."
    return f"{told}\n{report.strip()[:MAX_REPORT]}" if report.strip() else told
