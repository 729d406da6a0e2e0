"""Making a Capsule: roots, the closure around them, and the payload, all of one snapshot (KIP §37.4, §40, §41.1).

What lives here: which elements are included, what stands for those that are not, and the artifact. What must never
live here: the selection itself (`core.query`) and signing (`proofs`). Everything passes the two gates of
`core.authority`: what the caller may not discover is not mentioned at all, not even as a gap; what it may see and
not export is a `redacted` ExternalRef; what was erased is an `unavailable` one (KIP §40.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from core.authority import Principal, authorize
from core.capsule.format import (
    FORMAT,
    PLURAL,
    VERSION,
    AnyRecord,
    Blob,
    Closure,
    ExternalRef,
    Handling,
    Manifest,
    Payload,
    Pointer,
    Records,
    SchemaDependency,
    Source,
    SourceChange,
)
from core.capsule.records import blob_of, record_of
from core.errors import NoemaError
from core.model.elements import (
    KIND_OF_TYPE,
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Evidence,
    Json,
    Proposition,
)
from core.model.ids import KINDS, LETTER, Kind, kind_of, sort_key
from core.model.instants import Instant, format_instant
from core.model.literals import Ref
from core.model.log import Delta, SpaceMeta
from core.protocol.canonical import NUMBER_RULE, PROFILE, digest_of
from core.query.world import World
from core.schema.environment import INSTALLED, Environment
from core.state.indexes import made_key
from core.state.space import SpaceState
from core.transaction.scope import space_uri

CANONICALIZATION: Final = {
    "profile": PROFILE,
    "numbers": NUMBER_RULE,
    "keys": "code point order",
    "text": "UTF-8, not normalised",
}
NEVER: Final = (
    "credentials and space tokens", "grants, policies and trust", "signing keys", "conversations and their queue",
    "erased content", "retry keys of requests",
)  # fmt: skip
"""What no Capsule has, whoever asks (KIP §37.2, design §169)."""

ORIGIN_FIELDS: Final = frozenset({"_system.origin"})
"""Fields without which an element is still told as a whole; who and what it came by is then left out."""

Dimension = str  # semantic, evidence, provenance, structural, lineage


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How to export: the options of `EXPORT CAPSULE ... WITH` and of the host's route.

    without: classifications whose elements are withheld as redacted. max_records: beyond it the export is refused.
    whole: a backup, in which a statement about what is not in it has no place, for it could not be restored.
    """

    closure: str = "selective"
    provenance_depth: int = 3
    include_schema: bool = False
    include_blobs: bool = True
    without: frozenset[str] = frozenset()
    max_records: int = 5_000
    whole: bool = False


def closure_of(wish: Wish) -> Closure:
    """The declared closure that a wish comes to (KIP §40.3)."""
    if wish.closure == "closed":
        return Closure(
            mode="closed", semantic="closed", evidence="closed", structural="closed", provenance="full"
        )
    if wish.closure == "referential":
        return Closure(
            mode="referential",
            semantic="external",
            evidence="external",
            structural="external",
            provenance="none",
        )
    return Closure(
        mode="selective", semantic="closed", evidence="closed", structural="external", provenance="bounded",
        provenance_depth=wish.provenance_depth,
    )  # fmt: skip


def nexus_of(meta: SpaceMeta) -> str:
    """The identity of this life of a space, as provenance elsewhere."""
    return f"urn:noema:nexus:{meta.instance}"


class Exporter:
    """One export of one state. Made for one artifact, thrown away with it.

    Args:
        world: the state as the caller may see it.
        principal: who exports.
        wish: how.
    """

    def __init__(self, world: World, principal: Principal, wish: Wish) -> None:
        self.world = world
        self.wish = wish
        self._principal = principal
        self._verdicts: dict[str, str] = {}  # element -> include | redacted | unavailable | hidden
        self._tokens: dict[str, str] = {}
        self._counts = dict.fromkeys(KINDS, 0)
        self._externals: dict[str, ExternalRef] = {}
        self._blobs: dict[str, Blob] = {}
        self.filtered = not world.open
        self._symbols: set[str] = set()
        self._classes: set[str] = set()
        self._mentioned: dict[Kind, int] = {}

    # --- what may be in it

    def verdict(self, element_id: str) -> str:
        """Whether an element may be included, or what stands for it.

        What cannot be told without something hidden is hidden too. Statements may stand about statements to any
        depth, so this does not recurse.
        """
        known = self._verdicts.get(element_id)
        if known is not None:
            return known
        trail = {element_id: self._own(element_id)}
        below = [element_id] if trail[element_id] == "include" else []
        while below:
            element = self.world.stored(below.pop())
            for end in () if element is None else _ends(element):
                if end not in trail:
                    trail[end] = self._verdicts.get(end) or self._own(end)
                    if trail[end] == "include" and end not in self._verdicts:
                        below.append(end)
        found = trail[element_id]
        if found == "include" and "hidden" in trail.values():
            found = "hidden"
        elif found == "include" and self.wish.whole and len(set(trail.values())) > 1:
            found = "redacted"
        if found == "include":  # and so is all it is told with, which rests on less; each is looked at once
            self._verdicts.update((each, own) for each, own in trail.items() if own == "include")
        self._verdicts[element_id] = found
        return found

    def _own(self, element_id: str) -> str:
        element = self.world.stored(element_id)
        if element is None:
            return "unavailable"
        if self.world.get(element_id) is None:
            return "hidden"
        if element.system.state == "purged":
            return "unavailable"
        if element.governance.quarantined:  # what is held back here does not travel
            return "redacted"
        fields = self.world.hidden(element) or frozenset()
        if element.governance.classification in self.wish.without or fields - ORIGIN_FIELDS:
            return "redacted"
        try:
            authorize(self._principal, "export", element)
        except NoemaError as error:
            return "redacted" if error.code != "NotFoundOrNotVisible" else "hidden"
        return "include"

    def gather(self, roots: Iterable[str]) -> list[str]:
        """The roots and everything the closure adds to them, in order of creation.

        Raises:
            NoemaError: ArtifactTooLarge beyond the wished bound.
        """
        depth = self.wish.provenance_depth if self.wish.closure == "selective" else 1 << 30
        left: dict[str, int] = {}
        queue: deque[str] = deque()

        def reach(element_id: str, remaining: int) -> None:
            if self.verdict(element_id) != "include" or left.get(element_id, -1) >= remaining:
                return
            left[element_id] = remaining
            queue.append(element_id)
            if len(left) > self.wish.max_records:
                raise _too_many(self.wish.max_records)

        for root in roots:
            reach(root, depth)
        while queue:
            current = queue.popleft()
            element = self.world.stored(current)
            if element is None or self.wish.closure == "referential":
                continue
            for dimension, target in self._followed(element):
                remaining = left[current] - (dimension == "provenance")
                if remaining >= 0:
                    reach(target, remaining)
        return sorted(left, key=sort_key)

    def _followed(self, element: AnyElement) -> Iterator[tuple[Dimension, str]]:
        everything = self.wish.closure == "closed"
        for dimension, target in references(element):
            if everything or dimension in {"semantic", "evidence", "provenance"}:
                yield dimension, target
        if isinstance(element, (Assertion, Evidence)):
            yield from (("provenance", maker) for maker in self.world.find(made_key(element.id)))

    # --- refs

    def name(self, ids: Iterable[str]) -> None:
        """Give included elements their local refs: a letter for the kind and a number, in this order."""
        for element_id in ids:
            kind = kind_of(element_id)
            self._counts[kind] += 1
            self._tokens[element_id] = (
                f"{LETTER[kind].lower() if kind != 'activity' else 'v'}:{self._counts[kind]}"
            )

    def point(self, element_id: str) -> Pointer | None:
        """Where a reference to an element points; None where it may not be mentioned."""
        token = self._tokens.get(element_id)
        if token is not None:
            return Pointer(ref=token)
        verdict = self.verdict(element_id)
        if verdict == "hidden":
            return None
        external = self._externals.get(element_id)
        if external is None:
            external = self._external(element_id, verdict, f"x:{len(self._externals) + 1}")
            self._externals[element_id] = external
        return Pointer(external=external.external_ref)

    def _external(self, element_id: str, verdict: str, token: str) -> ExternalRef:
        kind = kind_of(element_id)
        if verdict == "redacted":  # says that there is something, and nothing of it (design §64)
            return ExternalRef(external_ref=token, kind="redacted", element_kind=kind, reason="policy")
        if verdict == "unavailable":
            return ExternalRef(external_ref=token, kind="unavailable", element_kind=kind, reason="erased")
        element = self.world.stored(element_id)
        if isinstance(element, Concept):
            return ExternalRef(
                external_ref=token,
                kind="canonical_identity" if element.canonical_id else "source_element",
                element_kind=kind,
                element_id=element_id,
                canonical_id=element.canonical_id,
                schema_ref=element.schema_ref,
            )
        return ExternalRef(
            external_ref=token, kind="source_element", element_kind=kind, element_id=element_id
        )

    def blob(self, text: str, media_type: str) -> str:
        """The ref of a long text in the blob table."""
        made = blob_of(f"b:{len(self._blobs) + 1}", text, media_type, included=self.wish.include_blobs)
        return self._blobs.setdefault(made.digest, made).blob_ref

    # --- a large export, whose records are made one by one

    def named(self) -> Iterator[AnyElement]:
        """Every element that has a ref, kind by kind in canonical order."""
        by_kind: dict[str, list[str]] = {kind: [] for kind in PLURAL}
        for element_id in self._tokens:
            by_kind[kind_of(element_id)].append(element_id)
        for ids in by_kind.values():
            for element_id in ids:
                element = self.world.view.get(element_id)
                if element is not None:
                    yield element

    def mention(self, element: AnyElement) -> None:
        """Take note of what an element refers to and is made of, so that a header can say so before any record."""
        for _, target in references(element):
            self.point(target)
        self._symbols.update(ref.rpartition("/")[0] for ref in symbols(element))
        if element.governance.classification is not None:
            self._classes.add(element.governance.classification)
        kind = KIND_OF_TYPE[type(element)]
        self._mentioned[kind] = self._mentioned.get(kind, 0) + 1

    def headed(
        self, state: SpaceState, env: Environment, *, extensions: dict[str, dict[str, Any]], **told: Any
    ) -> Payload:
        """The payload of a snapshot without its records, all of which have been mentioned."""
        counts = {plural: self._mentioned.get(kind, 0) for kind, plural in PLURAL.items()}
        return Payload(
            manifest=self.manifest("snapshot", counts, **told),
            source=self.source(state),
            records=Records(),
            schema=dependencies(self._symbols, state.meta, env, embed=self.wish.include_schema),
            external_refs=tuple(self._externals.values()),
            handling=self._handling(),
            extensions=extensions,
        )

    # --- the payload

    def record(self, element: AnyElement, *, inline: bool = False) -> AnyRecord:
        """The record of an element that has its ref; `inline` keeps long texts out of the blob table."""
        closed = bool(self.world.hidden(element))
        return record_of(
            element, self._tokens[element.id], self.point, None if inline else self.blob, origin=not closed
        )

    def records(self, elements: Iterable[AnyElement]) -> Records:
        """Records of elements that have their refs, kind by kind."""
        lists: dict[str, list[Any]] = {name: [] for name in PLURAL.values()}
        for element in elements:
            kind = KIND_OF_TYPE[type(element)]
            lists[PLURAL[kind]].append(self.record(element))
        return Records(**{name: tuple(found) for name, found in lists.items()})

    def snapshot(self, ids: list[str], state: SpaceState, env: Environment, **told: Any) -> Payload:
        """The payload of a snapshot Capsule; `told` is what the manifest says besides (Manifest's members)."""
        self.name(ids)
        elements = [element for found in ids if (element := self.world.stored(found)) is not None]
        records = self.records(elements)
        return self.payload("snapshot", records, elements, state, env, **told)

    def payload(
        self,
        kind: Any,  # Manifest.kind
        records: Records,
        elements: list[AnyElement],
        state: SpaceState,
        env: Environment,
        *,
        source: Source | None = None,
        changes: tuple[SourceChange, ...] = (),
        extensions: dict[str, dict[str, Any]] | None = None,
        **told: Any,
    ) -> Payload:
        """A payload around records or changes."""
        counts = dict.fromkeys(PLURAL.values(), 0)
        for each in [records, *(change.records for change in changes)]:
            for plural in counts:
                counts[plural] += len(getattr(each, plural))
        for element in elements:
            self.mention(element)
        return Payload(
            manifest=self.manifest(kind, counts, **told),
            source=source or self.source(state),
            schema=dependencies(self._symbols, state.meta, env, embed=self.wish.include_schema),
            records=records,
            changes=changes,
            external_refs=tuple(self._externals.values()),
            blobs=tuple(self._blobs.values()),
            handling=self._handling(),
            extensions=extensions or {},
        )

    def _handling(self) -> Handling | None:
        return Handling(classifications=tuple(sorted(self._classes))) if self._classes else None

    def manifest(self, kind: Any, counts: dict[str, int], **told: Any) -> Manifest:
        """The manifest of this export; `told` are the members that only the caller knows."""
        return Manifest(
            kind=kind,
            counts=counts,
            canonicalization=CANONICALIZATION,
            exclusions=NEVER,
            policy="filtered" if self.filtered else "unfiltered",
            **({"closure": closure_of(self.wish)} | told),
        )

    def source(self, state: SpaceState) -> Source:
        """Where and when the records are from."""
        me = state.meta.self_identity
        shown = None if me is None or me not in self._tokens else Pointer(ref=self._tokens[me])
        return Source(
            nexus_id=nexus_of(state.meta),
            space_ref=space_uri(state.meta.space_id),
            snapshot_seq=state.seq,
            snapshot_tx=transaction_of(state),
            schema_environment_version=state.meta.schema.version,
            identity=shown,
        )


def transaction_of(state: SpaceState) -> str:
    """The transaction that made a state what it is: with the nexus, a name of exactly this point of its log."""
    return f"{state.meta.salt}-{state.seq}"


def seal(payload: Payload) -> dict[str, Any]:
    """The artifact around a payload: canonical digest, no proofs yet."""
    # JSON's own types, as everybody else will read it.
    body = msgspec.json.decode(msgspec.json.encode(payload))
    digest = digest_of(body)
    integrity = {"content_digest": digest, "digest_profile": PROFILE, "proofs": []}
    return {"format": FORMAT, "version": VERSION, "payload": body, "integrity": integrity}


def with_proof(artifact: dict[str, Any], proof: dict[str, Json]) -> dict[str, Any]:
    """An artifact with one more proof; its digest and identity stay (design §135)."""
    integrity = artifact["integrity"]
    return {**artifact, "integrity": {**integrity, "proofs": [*integrity.get("proofs", []), proof]}}


def capsule_id(digest: str) -> str:
    """The identity of a Capsule by its content (design §14)."""
    return f"urn:kip:capsule:{digest}"


# --- deltas


def delta_payload(
    exporter: Exporter,
    base: SpaceState,
    state: SpaceState,
    deltas: list[Delta],
    env: Environment,
    *,
    now: Instant,
) -> Payload:
    """What was committed after `base`, commit by commit, as the caller may see it now (design §243-§250)."""
    touched = [
        (
            delta,
            [put for put in delta.puts if exporter.verdict(put.id) == "include" or _is_gone(exporter, put)],
        )
        for delta in deltas
    ]
    ids = {put.id for _, puts in touched for put in puts}
    if len(ids) > exporter.wish.max_records:
        raise _too_many(exporter.wish.max_records)
    exporter.name(sorted(ids, key=sort_key))
    changes = tuple(
        SourceChange(
            space_seq=delta.seq,
            tx_id=delta.tx_id,
            committed_at=format_instant(delta.at),
            transaction_class=delta.transaction_class,
            records=exporter.records(_as_now(exporter, put) for put in puts),
        )
        for delta, puts in touched
        if puts
    )
    source = msgspec.structs.replace(exporter.source(state), base_seq=base.seq, base_tx=transaction_of(base))
    elements = [put for _, puts in touched for put in puts]
    return exporter.payload(
        "delta", Records(), elements, state, env,
        source=source, changes=changes, completeness="selection_complete", created_at=format_instant(now),
        selection={"transactions": {"after_seq": base.seq, "to_seq": state.seq}},
    )  # fmt: skip


def _is_gone(exporter: Exporter, put: AnyElement) -> bool:
    """Whether a commit's element has been erased since: its stub goes along, without what is gone (KIP §60.3)."""
    now = exporter.world.stored(put.id)
    return now is not None and now.system.state == "purged" and exporter.world.get(put.id) is not None


def _as_now(exporter: Exporter, put: AnyElement) -> AnyElement:
    now = exporter.world.stored(put.id)
    return now if now is not None and now.system.state == "purged" else put


# --- what elements refer to


def references(element: AnyElement) -> Iterator[tuple[Dimension, str]]:
    """Every reference of an element with the dimension of closure it belongs to."""
    yield from (("structural", ref.target) for ref in element.structural)
    if isinstance(element, Concept):
        if element.merged_into is not None:
            yield "semantic", element.merged_into
    elif isinstance(element, Proposition):
        yield "semantic", element.subject
        if isinstance(element.object, Ref):
            yield "semantic", element.object.id
    elif isinstance(element, Assertion):
        yield "semantic", element.proposition
        yield "semantic", element.asserted_by
        yield from (("evidence", cited.evidence) for cited in element.evidence)
        yield from (("semantic", target) for target in element.context_refs)
        yield from (("lineage", target) for target in (*element.supersedes, *element.superseded_by))
    elif isinstance(element, Evidence):
        yield from (("provenance", target) for target in element.source)
        if element.generated_by is not None:
            yield "provenance", element.generated_by
        yield from (("lineage", target) for target in (*element.corrects, *element.corrected_by))
    elif isinstance(element, Activity):
        yield from (("provenance", target) for target in element.inputs)
        yield from (("semantic", target) for target in element.associated_actors)
        yield from (("outputs", target) for target in element.outputs)


def _ends(element: AnyElement) -> tuple[str, ...]:
    """What an element cannot be told without."""
    if isinstance(element, Proposition):
        obj = element.object
        return (element.subject, obj.id) if isinstance(obj, Ref) else (element.subject,)
    if isinstance(element, Assertion):
        return (element.proposition, element.asserted_by)
    return ()


# --- schema and handling


def dependencies(
    wanted: Collection[str], meta: SpaceMeta, env: Environment, *, embed: bool
) -> tuple[SchemaDependency, ...]:
    """The exact packages that give elements their meaning, in order of their references (KIP §20, design §159).

    Args:
        wanted: references of packages.
        meta: the space, whose installed packages may go along.
        env: its schema.
        embed: whether packages that not every engine has go along.
    """
    installed = meta.extensions.get(INSTALLED) or {}
    found = []
    for ref, package in sorted({**env.readable, **env.active}.items()):
        if ref in wanted:
            name, _, version = ref.rpartition("@")
            artifact = installed.get(ref) if embed else None
            found.append(
                SchemaDependency(package=name, version=version, digest=package.digest, artifact=artifact)
            )
    return tuple(found)


def symbols(element: AnyElement) -> Iterator[str]:
    """The exact schema symbols an element bears."""
    if isinstance(element, Concept):
        yield element.schema_ref
    elif isinstance(element, Proposition):
        yield element.predicate_ref
    yield from element.facets
    yield from (ref.field for ref in element.structural)


def _too_many(limit: int) -> NoemaError:
    return NoemaError(
        "ArtifactTooLarge",
        f"the Capsule would have more than {limit} records",
        hint='Select fewer roots, or use closure "referential"; whole spaces: noema capsule export.',
        details={"limit": limit},
    )
