"""The shapes that cross the HTTP boundary: request bodies in, results out, as the REST contract names them.

What lives here: structs and their bounds, nothing that decides. What must never live here: statuses, headers
and formats (a transport's business) and anything the caller may not say about itself: no request body names a
principal.

Requests tolerate members they do not know where an agent sends them (a newer client must not break), and
refuse them on management calls, where a misspelt member would silently change nothing. In responses a member
whose value is unknown is **omitted**, so an optional one is the only kind that has a default.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from core.model.elements import Json

Collection = Literal["formation", "recall", "maintenance"]
ConversationStatus = Literal["submitted", "working", "completed", "failed", "idle", "cancelled"]
Scope = Literal["read", "write", "*"]

MAX_FORMATION_TOKENS: Final = 100_000  # estimated, of one submission (contract §1.5)
MAX_RECALL_TOKENS: Final = 65_535  # estimated, of one question
MAX_TIER: Final = 14  # 10^16 nodes: beyond anything that can be stored, and still an exact number in JSON

Line = Annotated[str, Meta(min_length=1, max_length=128)]
Label = Annotated[str, Meta(min_length=1, max_length=64)]
Number = Annotated[int, Meta(ge=1, le=2**53)]
Offset = Annotated[int, Meta(ge=0, le=2**53)]
TierNumber = Annotated[int, Meta(ge=0, le=MAX_TIER)]


# --- what an agent sends


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation. `timestamp` is when it was said (Unix ms); `user` is only quoted text."""

    role: Annotated[str, Meta(min_length=1, max_length=64)]
    content: str | list[str | dict[str, Any]]  # parts: text, or {"type": ..., "text": ...}
    name: str | None = None
    user: str | None = None
    timestamp: int | float | str | None = None


class InputContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who and what a request is about. `user` is an older spelling of `counterparty`."""

    counterparty: str | None = None
    user: str | None = None
    agent: str | None = None
    source: str | None = None
    topic: str | None = None


class FormationInput(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to remember. `context` may also be the object as JSON text (see `parse_context`)."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    context: InputContext | str | None = None
    timestamp: str | int | float | None = None


class RecallBudget(msgspec.Struct, frozen=True, kw_only=True):
    """How much a recall may return and may read, in tokens of the named tokenizer."""

    tokenizer: str | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=65_536)] = 4_096
    context_tokens: Annotated[int, Meta(ge=1, le=131_072)] = 32_768


class RecallInput(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the memory."""

    query: str
    context: InputContext | str | None = None
    budget: RecallBudget | None = None


class ProbeInput(msgspec.Struct, frozen=True, kw_only=True):
    """A cheap look: is there anything on this? `limit` is clamped to 1-100."""

    query: str
    limit: int = 8


class ForgetInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Elements to erase physically, by id, and transcripts to erase with them, by conversation."""

    entities: Annotated[list[str], Meta(min_length=1, max_length=100)]
    dry_run: bool = False
    conversations: Annotated[list[Number], Meta(max_length=100)] = []


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which page of which collection; `limit` is clamped to 1-100 and is 10 if absent."""

    collection: Collection = "formation"
    cursor: str | None = None
    limit: int | None = None


class ConversationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which collection a conversation is in."""

    collection: Collection = "formation"


class DeltaQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which collection, and how much of the conversation the caller has."""

    collection: Collection = "formation"
    messages_offset: Offset = 0
    artifacts_offset: Offset = 0


def parse_context(raw: InputContext | str | None) -> InputContext | None:
    """The context of a request in its one form: `'{"topic": "x"}'` -> `InputContext(topic="x")`.

    Clients send it as an object, as JSON text, or as JSON text inside JSON text; blank text and `null` are no
    context (contract §1.5). `user` moves to `counterparty`.

    Raises:
        ValueError: the text is not such JSON.
    """
    for _ in range(2):
        if not isinstance(raw, str):
            break
        if not raw.strip():
            return None
        try:
            raw = msgspec.json.decode(raw, type=InputContext | str | None)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError("context is neither an object nor the JSON text of one") from error
    if isinstance(raw, str):
        if not raw.strip():
            return None
        raise ValueError("context is text within text within text")
    if raw is not None and raw.user is not None:
        return msgspec.structs.replace(raw, counterparty=raw.counterparty or raw.user, user=None)
    return raw


# --- what an owner or a manager sends


class CreateSpaceInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new space: its owner's subject, its id and its size class (10 ** (tier + 2) nodes)."""

    user: Line
    space_id: str
    tier: TierNumber


class DeleteSpaceInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole space to delete; the id is repeated so that a wrong path deletes nothing."""

    space_id: str


class MemoryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a space's memory behaves (contract §6.7); an omitted member takes its default.

    daily_token_budget, daily_micros_budget: what the space may spend on models in one UTC day, in tokens and in
    millionths of a dollar; they only tighten what the operator allows.
    """

    version: Annotated[int, Meta(ge=1, le=2**31)] = 1
    memory_strength_decay_factor: Annotated[float, Meta(gt=0, le=1)] = 0.95
    decay_floor: Annotated[float, Meta(ge=0, lt=1)] = 0.3
    recall_reinforcement: Annotated[float, Meta(ge=0, le=1)] = 0.1
    correction_penalty: Annotated[float, Meta(gt=0, le=1)] = 0.5
    stale_event_threshold_days: Annotated[int, Meta(ge=1, le=365)] = 7
    unconsolidated_max_backlog: Annotated[int, Meta(ge=1, le=10_000)] = 20
    orphan_max_count: Annotated[int, Meta(ge=1, le=10_000)] = 10
    self_test_queries_per_cycle: Annotated[int, Meta(ge=0, le=100)] = 4
    self_test_token_budget: Annotated[int, Meta(ge=1_000, le=1_000_000)] = 20_000
    recall_search_threshold: Annotated[float, Meta(gt=0, le=1)] = 0.35
    recall_max_rounds: Annotated[int, Meta(ge=1, le=50)] = 7
    recall_budget: RecallBudget | None = None
    shadow_replay_sample: Annotated[int, Meta(ge=1, le=16)] = 4
    daily_token_budget: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    daily_micros_budget: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class UpdateSpaceInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be changed of a space: absent keeps, `null` clears. A policy is replaced whole."""

    name: Annotated[str, Meta(max_length=128)] | UnsetType | None = UNSET
    description: Annotated[str, Meta(max_length=4096)] | UnsetType | None = UNSET
    public: bool | UnsetType = UNSET
    memory_policy: MemoryPolicy | UnsetType = UNSET
    wiki_digest: Any | UnsetType = UNSET  # the wiki is not part of this deployment: refused by name
    wiki_audit_reads: Any | UnsetType = UNSET
    wiki_acl_defaults: Any | UnsetType = UNSET


class RestartFormationInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The conversation from which formation starts again."""

    conversation: Number


class AddSpaceTokenInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to mint. `expires_at` is Unix ms; labels restrict a read token and admit no memory reads."""

    scope: Scope
    name: Label
    expires_at: int | None = None
    labels: Annotated[list[Label], Meta(max_length=32)] | None = None


class RevokeSpaceTokenInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token to revoke, by its value or by its name (exactly one)."""

    token: str | None = None
    name: str | None = None


# --- what we answer


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens a provider counted, and how many requests it took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0


class AgentOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run of an agent said. A failed run is a 200 with `failed_reason` and what content there is."""

    content: str
    conversation: int | None = None
    failed_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    warnings: tuple[str, ...] = ()


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One citation of an answer: the element, and what helps to weigh it. `created_at` is RFC 3339."""

    entity: str
    type: str | None = None
    name: str | None = None
    confidence: float | None = None
    source: str | None = None
    created_at: str | None = None


class MemoryBudget(msgspec.Struct, frozen=True, kw_only=True):
    """What a budgeted answer was held to, and took: tokens of the whole packet, by the named tokenizer."""

    tokenizer: str
    token_limit: int
    tokens: int
    context_token_limit: int


class ReceiptScope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a receipt is kept: the space, and which life of its id."""

    space_id: str
    space_instance: str


class RecallReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The handle of a receipt: what was delivered is on record under it. `digest` is the receipt's."""

    id: str
    digest: str
    scope: ReceiptScope


class RecallOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer with its receipts. `uncertainty` runs from 0 (sure) to 1 (guessing).

    degraded: why nearness in meaning did not rank, or not everything (`embedder_unavailable`, `lagging`...).
    """

    answer: str
    found: bool
    usage: Usage
    uncertainty: float | None = None
    memories: tuple[Memory, ...] = ()
    conversation: int | None = None
    model: str | None = None
    failed_reason: str | None = None
    memory_budget: MemoryBudget | None = None
    recall_receipt: RecallReceipt | None = None
    degraded: str | None = None


class ProbeOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether anything was found; absent `search_exhaustive` means it is not known."""

    found: bool
    negative_cached: bool
    search_exhaustive: bool | None = None
    hits: tuple[Memory, ...] = ()


class Conversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One submission or run and what became of it. `period` is hours since 1970; times are Unix ms."""

    id: int = msgspec.field(name="_id")
    user: str
    label: Collection
    messages: tuple[Json, ...]
    resources: tuple[Json, ...]
    artifacts: tuple[Json, ...]
    status: ConversationStatus
    period: int
    created_at: int
    updated_at: int
    usage: Usage
    thread: str | None = None
    failed_reason: str | None = None
    child: int | None = None
    extra: dict[str, Json] | None = None


class ConversationDelta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a conversation gained after the offsets given."""

    id: int = msgspec.field(name="_id")
    messages: tuple[Json, ...]
    artifacts: tuple[Json, ...]
    status: ConversationStatus
    updated_at: int
    usage: Usage
    failed_reason: str | None = None
    child: int | None = None


class Forgotten(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one element that was to be forgotten; an error leaves it as it is."""

    entity: str
    existed: bool
    error: str | None = None


class ForgetReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, or would be: the elements named and those that could not stand without them."""

    dry_run: bool
    deleted_concepts: int
    deleted_propositions: int
    deleted_assertions: int
    deleted_evidence: int
    deleted_activities: int
    entities: tuple[Forgotten, ...]


class TierView(msgspec.Struct, frozen=True, kw_only=True):
    """A size class and since when it holds (Unix ms)."""

    tier: int
    updated_at: int


class MaintenanceAt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When each kind of maintenance last completed and the last one began (Unix ms); absent: never."""

    daydream: int | None = None
    full: int | None = None
    quick: int | None = None
    start_at: int | None = None


class SpaceInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A space as its readers see it. `space_id` repeats `id`: both spellings are in use."""

    id: str
    space_id: str
    owner: str
    db_stats: dict[str, int]
    concepts: int
    propositions: int
    conversations: int
    public: bool
    tier: TierView
    formation_usage: Usage
    recall_usage: Usage
    maintenance_usage: Usage
    formation_processed_id: int
    maintenance_processed_id: int
    maintenance_at: MaintenanceAt
    name: str | None = None
    description: str | None = None


class FormationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a space has formed: for watching, not a receipt of one task.

    formation_waiting: conversations not yet formed. formation_cancelled: how many were set aside because they
    could not be formed, the last of them in formation_last_cancelled (0: none ever was).
    """

    id: str
    concepts: int
    propositions: int
    conversations: int
    formation_processing: bool
    maintenance_processing: bool
    formation_processed_id: int
    maintenance_processed_id: int
    maintenance_at: MaintenanceAt
    formation_waiting: int
    formation_cancelled: int
    formation_last_cancelled: int


class SpaceToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A credential of one space. `token` is the whole value once, when it is minted, and its prefix ever after.

    Times are Unix ms. How often a token was used is not counted, so no such member is shown.
    """

    token: str
    name: str
    scope: Scope
    created_at: int
    updated_at: int
    created_by: str
    expires_at: int | None = None
    labels: tuple[str, ...] | None = None


class ServiceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What this service is. `models`: which model does what for spaces that bring none; "offline" needs none.

    embedder: what search by meaning compares with; "none" without it.
    """

    name: str
    version: str
    sharding: int
    description: str
    models: dict[str, str] = {}
    embedder: str = "none"
