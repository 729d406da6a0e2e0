"""Ingestion: source material minted into Evidence inside the transaction, byte for byte (KIP §71.1, §88.12).

What lives here: one Evidence per entry of a request's `ingest`. What must never live here: any change of a
payload, and any use of `source_actor` as who is asking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.errors import NoemaError
from core.model.elements import Payload
from core.model.ids import is_element_id
from core.model.instants import parse_instant
from core.mutation.records import check_retry, payload_digest
from core.mutation.settle import settle
from core.mutation.work import Work
from core.protocol.request import IngestEvidence
from core.state.indexes import client_key


def mint_evidence(
    work: Work, entries: Sequence[IngestEvidence], artifact: Callable[[str], bytes]
) -> dict[str, str]:
    """Write one Evidence for each entry; the id of each by the entry's key.

    An entry whose `client_key` exists with the same content is the Evidence that is there.

    Args:
        work: a statement of its own over the request's draft.
        entries: what the request ingests.
        artifact: the bytes of a staged artifact by its handle.

    Raises:
        NoemaError: ClientKeyConflict, NotFoundOrNotVisible for an unknown source_actor, ArtifactParseError.
    """
    minted: dict[str, str] = {}
    for entry in entries:
        fields = _fields(work, entry, artifact)
        key = entry.client_key
        existing = work.by_client_key("evidence", key) if isinstance(key, str) else None
        if existing is not None:
            check_retry(existing, "evidence", fields)
            minted[entry.key] = existing.id
            continue
        edit = work.new("evidence", "create")
        edit.fields.update(fields)
        if isinstance(key, str):
            edit.fields["client_key"] = key
            work.claim(client_key("evidence", key), edit.id, "two ingested entries have one client key")
        minted[entry.key] = edit.id
    settle(work)
    return minted


def _fields(work: Work, entry: IngestEvidence, artifact: Callable[[str], bytes]) -> dict[str, Any]:
    payload = entry.payload
    if isinstance(entry.payload_artifact, str):
        try:
            payload = artifact(entry.payload_artifact).decode("utf-8")
        except UnicodeDecodeError as error:
            raise NoemaError("ArtifactParseError", "the artifact is not UTF-8 text") from error
    fields: dict[str, Any] = {
        "evidence_class": entry.evidence_class,
        "payload": Payload("inline", payload),
        "content_digest": payload_digest(payload),
        "media_type": "text/plain" if isinstance(payload, str) else "application/json",
    }
    if isinstance(entry.media_type, str):
        fields["media_type"] = entry.media_type
    if isinstance(entry.observed_at, str):
        fields["observed_at"] = parse_instant(entry.observed_at)
    if isinstance(entry.source_actor, str):
        fields["source"] = (_source(work, entry.source_actor),)
    return fields


def _source(work: Work, actor: str) -> str:
    """The element a semantic source names: by id, by canonical id or by the key of a Concept."""
    if is_element_id(actor):
        return work.identified({"id": actor})
    for member in ("key", "canonical_id"):
        found = work.concepts({member: actor})
        if found:
            return found[0]
    raise NoemaError(
        "NotFoundOrNotVisible",
        "source_actor names no Concept by id, key or canonical_id",
        hint="Create the Concept first, or leave source_actor out: a name is not an identity.",
        details={"member": "source_actor"},
    )
